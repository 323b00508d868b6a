# What does it cost to compare what every pass over a stream hands out with the
# first? The digest of a block's rows beside one pass of the log likelihood over
# them, on one core.
#
#   Rscript bench/digest.R [rounds]

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))

rounds <- c(as.numeric(commandArgs(TRUE)), 9)[[1]]
bench_start("digest", "The digest of a stream's rows")

n <- 65536
set.seed(1)
x <- matrix(rnorm(6 * n), n)
columns <- lapply(1:6, function(j) x[, j])
words <- list(sample(c("alpha", "beta", "gamma"), n, TRUE))
model <- model_glm(x, rbinom(n, 1, 0.3), "bernoulli", prior_normal())
digest_of <- function(columns) {
  sum <- c(0, 0)
  for (k in 1:50) {
    sum <- .Call(tallbayes:::ffi_rows_digest, columns, 0, n, sum)
  }
}
seconds <- interleave(list(
  numbers = function() cpu_seconds(digest_of(columns)),
  text = function() cpu_seconds(digest_of(words)),
  pass = function() {
    cpu_seconds(for (k in 1:50) tallbayes:::model_evaluate(model, rep(0.1, 6)))
  }
), rounds)
row <- function(name) fixed(1e9 * stats::median(seconds[, name]) / 50 / n, 1)
say_table(data.frame(
  what = c("six numbers", "one column of text", "log likelihood and gradient, 6 columns"),
  `ns a row` = vapply(c("numbers", "text", "pass"), row, ""),
  check.names = FALSE
))
say(
  "\nDigest of six numbers / such a pass: ",
  fixed(ratio(seconds, "numbers", "pass"))
)
