# Regressions on tables that stay in a database: what a whole call costs beside
# one scan with as many distinct sums of products as a pass takes, how many rows
# come back, and whether the posterior is that of the same rows in memory.
#
#   Rscript bench/sql.R [rows] [database ...]
#
# Databases: sqlite, postgres, duckdb; the last one has a table of its own. The
# first needs RSQLite, the second RPostgres and a PostgreSQL server's programs,
# which it starts and stops itself, as the tests do, the last one duckdb, from
# the library that TALLBAYES_DUCKDB_LIB names where R has none.

source(file.path(
  dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))),
  "common.R"
))
suppressWarnings(suppressPackageStartupMessages({
  library(dplyr)
  library(testthat)
}))
servers <- new.env(parent = asNamespace("tallbayes"))
for (name in c("helper-targets.R", "helper-postgres.R")) {
  sys.source(file.path(bench_folder(), "..", "tests", "testthat", name), servers)
}

given <- commandArgs(trailingOnly = TRUE)
is_number <- !is.na(suppressWarnings(as.numeric(given)))
n <- c(as.numeric(given[is_number]), 1e6)[[1]]
engines <- given[!is_number]
if (length(engines) == 0) {
  engines <- c("sqlite", "postgres")
}
d <- 15

name <- if (identical(engines, "duckdb")) "sql-duckdb" else "sql"
bench_start(
  name,
  "Regressions on tables that stay in a database",
  paste(c("sql.R", given), collapse = " ")
)

set.seed(1)
rows <- as.data.frame(matrix(rnorm(n * (d - 1)), n))
names(rows) <- sprintf("x%02d", seq_len(d - 1))
eta <- drop(as.matrix(rows) %*% seq(0.5, -0.5, length.out = d - 1)) - 1
rows$y <- rbinom(n, 1, plogis(eta))
rows$z <- eta + rnorm(n)
rows$count <- rpois(n, exp(eta / 2))

say(
  format(n, big.mark = ","), " rows, ", d, " columns with the intercept. A scan
takes the ", d * (d + 1) / 2, " sums of products of ", d, " columns. Times are
wall-clock seconds, the least of three scans and of three calls in turns; SQLite
and DuckDB work in R's process with one thread, PostgreSQL with its own settings,
which share a scan among workers where there are processors. CPU seconds are those
of R's process, the least of three.\n"
)

seconds <- function(code) unname(system.time(code)[["elapsed"]])
cpu <- function(code) sum(system.time(code)[1:2])

# As many products as a pass takes, of the table's own columns.
scan_of <- function(con, table) {
  own <- sprintf("x%02d", seq_len(d - 1))
  own <- c(own, "z")
  at <- which(upper.tri(diag(d), diag = TRUE), arr.ind = TRUE)
  sums <- sprintf("SUM(%s * %s) AS s%d", own[at[, 1]], own[at[, 2]], seq_len(nrow(at)))
  sql <- paste("SELECT", paste(sums, collapse = ", "), "FROM", table)
  took <- system.time(DBI::dbGetQuery(con, sql))
  c(took[["elapsed"]], sum(took[1:2]))
}

# Rows that queries brought to R, and the CPU seconds that they took, in turn.
fetched <- new.env()
count_fetched <- function() {
  namespace <- asNamespace("tallbayes")
  real <- namespace$run_sql
  unlockBinding("run_sql", namespace)
  assign("run_sql", function(...) {
    took <- cpu(out <- real(...))
    fetched$n <- fetched$n + nrow(out)
    fetched$cpu <- c(fetched$cpu, took)
    out
  }, namespace)
}
count_fetched()

models <- list(
  logistic = list(y ~ ., binomial(), c("z", "count")),
  Poisson = list(count ~ ., poisson(), c("z", "y")),
  Gaussian = list(z ~ ., gaussian(), c("y", "count"))
)
formula_of <- function(model) {
  own <- sprintf("x%02d", seq_len(d - 1))
  reformulate(own, as.character(model[[1]][[2]]))
}

inside <- lapply(models, function(model) {
  took <- seconds(fit <- tall_glm(formula_of(model), rows, model[[2]], seed = 1))
  list(fit = fit, seconds = took)
})

compare <- function(a, b) {
  a <- summarise_draws(a$draws, "mean", "sd")
  b <- summarise_draws(b$draws, "mean", "sd")
  c(max(abs(a$mean - b$mean) / b$sd), max(abs(a$sd / b$sd - 1)))
}
summarise_draws <- posterior::summarise_draws

lines <- list()
is_shards <- function(con) is.list(con)
# in_process: has R's process the CPU time of the queries?
measure <- function(where, con, data, table, in_process = FALSE) {
  for (name in names(models)) {
    model <- models[[name]]
    took <- scan <- c(Inf, Inf)
    queries <- Inf
    for (k in 1:3) {
      scan <- if (is_shards(con)) NA else pmin(scan, scan_of(con, table))
      fetched$n <- 0
      fetched$cpu <- numeric()
      time <- system.time(
        fit <- tall_glm(formula_of(model), data, model[[2]], seed = 1)
      )
      took <- pmin(took, c(time[["elapsed"]], sum(time[1:2])))
      if (sum(fetched$cpu) < sum(queries)) {
        queries <- fetched$cpu
      }
    }
    off <- compare(fit, inside[[name]]$fit)
    lines[[length(lines) + 1]] <<- data.frame(
      database = where,
      model = name,
      scan = sprintf("%.2f", scan[[1]]),
      call = sprintf("%.2f", took[[1]]),
      scans = sprintf("%.1f", took[[1]] / scan[[1]]),
      "rows fetched" = format(fetched$n, big.mark = ","),
      "means off, sd" = sprintf("%.3f", off[[1]]),
      "sds off" = sprintf("%.1f %%", 100 * off[[2]]),
      "in memory" = sprintf("%.2f", inside[[name]]$seconds),
      check.names = FALSE
    )
    if (in_process) {
      # of the queries alone, which R's process has computed
      lines[[length(lines)]] <<- cbind(lines[[length(lines)]], data.frame(
        "CPU: scan" = sprintf("%.2f", scan[[2]]),
        "queries" = paste(sprintf("%.2f", queries), collapse = " "),
        "their scans" = sprintf("%.1f", sum(queries) / scan[[2]]),
        "call" = sprintf("%.2f", took[[2]]),
        check.names = FALSE
      ))
    }
    print(lines[[length(lines)]])
  }
}

if ("sqlite" %in% engines) {
  lite <- DBI::dbConnect(RSQLite::SQLite(), tempfile(fileext = ".sqlite"))
  DBI::dbWriteTable(lite, "data", rows)
  measure("SQLite", lite, tbl(lite, "data"), "data")
  DBI::dbDisconnect(lite)
}

if ("duckdb" %in% engines) {
  .libPaths(c(.libPaths(), Sys.getenv("TALLBAYES_DUCKDB_LIB")))
  duck <- suppressMessages(
    DBI::dbConnect(duckdb::duckdb(), config = list(threads = "1"))
  )
  DBI::dbWriteTable(duck, "data", rows)
  table <- suppressWarnings(tbl(duck, "data"))
  measure("DuckDB", duck, table, "data", in_process = TRUE)
  DBI::dbDisconnect(duck, shutdown = TRUE)
}

if ("postgres" %in% engines) {
  connect <- function(server) {
    DBI::dbConnect(RPostgres::Postgres(), host = "127.0.0.1", port = server$port,
      user = "tester", dbname = "postgres")
  }
  fill <- function(con, rows) {
    DBI::dbWriteTable(con, "data", rows)
    DBI::dbExecute(con, "VACUUM ANALYZE data")
  }
  one <- servers$start_postgres()
  two <- servers$start_postgres()
  try({
    con <- connect(one)
    fill(con, rows)
    measure("PostgreSQL", con, tbl(con, "data"), "data")
    DBI::dbExecute(con, "DROP TABLE data")
    other <- connect(two)
    half <- seq_len(n) <= n / 2
    fill(con, rows[half, ])
    fill(other, rows[!half, ])
    measure("PostgreSQL, two shards", list(con, other),
      list(tbl(con, "data"), tbl(other, "data")))
    DBI::dbDisconnect(con)
    DBI::dbDisconnect(other)
  })
  one$stop()
  two$stop()
}

say_table(do.call(rbind, lines))
say(
  "*scans* is the whole call beside that scan; *off* is beside the fit of the
same rows in memory, whose draws are others: of 4,000 draws a mean is off by some
0.02 sd and an sd by 2 %. *queries* are those of one call, in their order."
)
