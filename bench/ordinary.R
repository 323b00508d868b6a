# Ordinary tables: factors in a database and in a data frame. What a default
# call costs beside streaming the same table, beside the GROUP BY that has its
# sums, and beside maximum likelihood; and how often it reads the rows.
#
#   Rscript bench/ordinary.R [rounds [rows of the Gaussian table]]
#
# Needs nycflights13, RSQLite, RPostgres and a PostgreSQL server's programs,
# which it starts and stops itself, as the tests do. fixest where it is installed.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))
suppressWarnings(suppressPackageStartupMessages({
  library(dplyr)
  library(testthat)
}))
servers <- new.env(parent = asNamespace("tallbayes"))
for (name in c("helper-targets.R", "helper-postgres.R")) {
  sys.source(file.path(bench_folder(), "..", "tests", "testthat", name), servers)
}
arguments <- as.numeric(commandArgs(TRUE))
rounds <- c(arguments, 3)[[1]]
n_gaussian <- c(arguments[-1], 2.9e6)[[1]]
stopifnot(rounds >= 1, n_gaussian > 1e5)

# A part that fails is said, and the others go on.
part <- function(what, code) {
  began <- proc.time()[["elapsed"]]
  tryCatch(code, error = function(e) {
    say("*", what, "* could not be had: ", conditionMessage(e), "\n")
  })
  took <- round(proc.time()[["elapsed"]] - began)
  message(what, ": ", took, " s")
}

bench_start("ordinary", "Ordinary tables")

flights <- as.data.frame(nycflights13::flights)
flights <- flights[!is.na(flights$arr_delay), c(
  "arr_delay", "hour", "carrier", "origin", "month", "dep_time", "distance"
)]
flights$late <- as.integer(flights$arr_delay > 15)
asked <- late ~ hour + carrier + origin + factor(month)
free <- late ~ I(dep_time / 100) + I(distance / 1000) + carrier + origin +
  factor(month)

say(
  "CPU seconds, of R and of the server together, medians of ", rounds,
  " calls in turns, after one that is not counted. Flights: ",
  format(nrow(flights), big.mark = ","), " rows, `", deparse1(asked), "`.\n"
)

# ---- CPU of both sides -------------------------------------------------------

# Seconds of a process, and of its children that have ended: Linux.
process_seconds <- function(pid) {
  path <- sprintf("/proc/%s/stat", pid)
  text <- tryCatch(suppressWarnings(readLines(path)), error = function(e) NULL)
  if (length(text) == 0) {
    return(c(0, 0, 0))
  }
  numbers <- as.numeric(strsplit(sub(".*\\) . ", "", text), " ")[[1]])
  c(numbers[[1]], sum(numbers[11:12]) / 100, sum(numbers[13:14]) / 100)
}

# Of a PostgreSQL server: its workers, those that have ended, too.
server_seconds <- function(con) {
  if (!inherits(con, "PqConnection")) {
    return(0)
  }
  folder <- DBI::dbGetQuery(con, "SHOW data_directory")[[1]]
  own <- as.numeric(readLines(file.path(folder, "postmaster.pid"))[[1]])
  each <- vapply(list.files("/proc", "^[0-9]+$"), process_seconds, c(0, 0, 0))
  sum(each[2, each[1, ] == own]) + process_seconds(own)[[3]]
}

cpu_of <- function(code, con = NULL) {
  before <- server_seconds(con)
  took <- system.time(code)
  sum(took[c("user.self", "sys.self", "user.child", "sys.child")], na.rm = TRUE) +
    server_seconds(con) - before
}

# Median CPU seconds of calls in turns: functions of nothing.
in_turns <- function(calls, con = NULL) {
  found <- replicate(rounds + 1, vapply(calls, function(f) cpu_of(f(), con), 0))
  apply(matrix(found, length(calls))[, -1, drop = FALSE], 1, stats::median)
}

connect <- function(server) {
  suppressWarnings(DBI::dbConnect(RPostgres::Postgres(), host = "127.0.0.1",
    port = server$port, user = "tester", dbname = "postgres"))
}
quiet <- function(...) tall_glm(..., seed = 1, refresh = 0)

# ---- databases ---------------------------------------------------------------

lines <- list()
gaussian_lines <- list()
compare <- function(where, con, what, formula) {
  table <- tbl(con, "flights")
  took <- in_turns(list(
    function() quiet(formula, table, binomial()),
    function() quiet(formula, as_source(table, in_database = FALSE), binomial())
  ), con)
  lines[[length(lines) + 1]] <<- data.frame(
    table = where, model = what,
    database = fixed(took[[1]]), streamed = fixed(took[[2]]),
    ratio = times(took[[1]] / took[[2]]), asked = "at most 1.5 x"
  )
}
grouped <- function(where, con) {
  n <- nrow(flights)
  more <- flights[rep(seq_len(n), length.out = n_gaussian), c("arr_delay", "carrier")]
  row.names(more) <- NULL
  DBI::dbWriteTable(con, "many", more)
  if (inherits(con, "PqConnection")) {
    DBI::dbExecute(con, "VACUUM ANALYZE many")
  }
  sql <- paste(
    "SELECT carrier, COUNT(*), SUM(arr_delay), SUM(arr_delay * arr_delay)",
    "FROM many GROUP BY carrier"
  )
  took <- in_turns(list(
    function() quiet(arr_delay ~ carrier, tbl(con, "many"), gaussian()),
    function() DBI::dbGetQuery(con, sql)
  ), con)
  gaussian_lines[[length(gaussian_lines) + 1]] <<- data.frame(
    table = where, rows = format(n_gaussian, big.mark = ","),
    call = fixed(took[[1]]), "GROUP BY" = fixed(took[[2]]),
    ratio = times(took[[1]] / took[[2]]), asked = "at most 3 x", check.names = FALSE
  )
}

in_database <- function(where, con) {
  force(con) # it may load the driver
  on.exit(DBI::dbDisconnect(con))
  DBI::dbWriteTable(con, "flights", flights)
  if (inherits(con, "PqConnection")) {
    DBI::dbExecute(con, "VACUUM ANALYZE flights")
  }
  part(paste(where, "grouped"), grouped(where, con))
  part(paste(where, "alike"), compare(where, con, "factors and hours", asked))
  part(paste(where, "unlike"), compare(where, con, "minutes and miles", free))
}
file <- tempfile(fileext = ".sqlite")
part("SQLite", in_database("SQLite", DBI::dbConnect(RSQLite::SQLite(), file)))
unlink(file)
server <- servers$start_postgres()
if (is.null(server)) {
  say("There is no PostgreSQL on this machine.\n")
} else {
  part("PostgreSQL", in_database("PostgreSQL", connect(server)))
  server$stop()
}
say("A table in a database, over streaming the same table to R. *minutes and miles*: `",
  deparse1(free[[3]]), "`, whose rows are all different.\n")
if (length(lines) > 0) say_table(do.call(rbind, lines))
say("A Gaussian response, `arr_delay ~ carrier`, over the query that has its sums:\n")
if (length(gaussian_lines) > 0) say_table(do.call(rbind, gaussian_lines))

# ---- in memory ---------------------------------------------------------------

calls <- list(
  "tall_glm()" = function() quiet(asked, flights, binomial()),
  "glm()" = function() stats::glm(asked, binomial(), flights)
)
if (requireNamespace("fixest", quietly = TRUE)) {
  fixest::setFixest_nthreads(1)
  calls[["fixest::feglm()"]] <- function() {
    fixest::feglm(late ~ hour | carrier + origin + month, flights, family = binomial())
  }
}
part("data frame", {
  took <- in_turns(calls)
  say("The data frame, one thread:\n")
  say_table(data.frame(
    call = names(calls), seconds = fixed(took), ratio = times(took[[1]] / took),
    asked = ifelse(grepl("feglm", names(calls)), "at most 3 x", "")
  ))
})

set.seed(1)
n <- 1e6
wide <- as.data.frame(lapply(stats::setNames(nm = paste0("x", 1:6)), function(x) rnorm(n)))
wide$f <- factor(sample(letters[1:8], n, TRUE))
wide$y <- rbinom(n, 1, plogis(-2 + 0.5 * wide$x1 - 0.3 * wide$x2 + 0.4 * (wide$f == "b")))
calls <- list(
  "tall_glm()" = function() quiet(y ~ ., wide, binomial()),
  "glm()" = function() stats::glm(y ~ ., binomial(), wide)
)
part("wide", {
  took <- in_turns(calls)
  say("1,000,000 rows of 14 columns, six of them numbers that are all different:\n")
  say_table(data.frame(
    call = names(calls), seconds = fixed(took), ratio = times(took[[1]] / took),
    asked = c("", "below 1 x")
  ))
})

# ---- passes ------------------------------------------------------------------

opened <- 0
stream <- tall_stream(function() {
  opened <<- opened + 1
  at <- 0
  function() {
    rows <- at + seq_len(min(65536, nrow(flights) - at))
    at <<- at + length(rows)
    if (length(rows) > 0) flights[rows, ]
  }
})
often <- vapply(list(asked, free), function(formula) {
  opened <<- 0
  quiet(formula, stream, binomial())
  opened
}, 0)
say("A stream of the flights is opened ", often[[1]], " times for the factors and hours (",
  "its head and the look, and a pass that ties alike rows) and ", often[[2]],
  " times for the minutes and miles (the look, and all rows at once).")
