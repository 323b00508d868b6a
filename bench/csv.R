# What does a pass over a text file cost, by who reads it?
#
#   Rscript bench/csv.R
#
# 10^6 rows of three numbers, text and a logical value; one minute. Beside:
# what fread() takes for the file at once, into memory.
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))
bench_start("csv", "Text files", "csv.R")

n <- 1e6
set.seed(1)
d <- data.frame(
  x = rnorm(n),
  z = round(runif(n), 3),
  k = sample(100L, n, TRUE),
  word = sample(c("north", "south", "surgery"), n, TRUE),
  flag = runif(n) < 0.5
)
file <- tempfile(fileext = ".csv")
data.table::fwrite(d, file)
# nobody has the rows in memory who passes over their file
rm(d)
data.table::setDTthreads(1)

pass <- function(engine) {
  source <- tall_csv(file)
  source$format$engine <- engine
  reader <- source_open(source)
  while (!is.null(reader$next_block())) {}
  reader$close()
}
cpu <- function(code) sum(system.time(code)[1:2])
engines <- c("data.table", "readr", "base")
# in turn, medians of three
times <- replicate(3, c(
  vapply(engines, function(engine) cpu(pass(engine)), 0),
  fread = cpu(data.table::fread(file))
))
middle <- apply(times, 1, median)
say(
  "10^6 rows, ", round(file.size(file) / 2^20), " MB, CPU seconds of a pass, the ",
  "median of three, and as times those of fread() into memory.\n"
)
say_table(data.frame(
  reader = c(engines, "fread(), at once"),
  seconds = fixed(middle, 2),
  times = fixed(middle / middle[["fread"]], 1),
  check.names = FALSE
))
unlink(file)
