# Rows of few kinds, as analysts have them: what does a whole call take beside
# the same with each row on its own, beside glm(), and beside one GROUP BY?
#
#   Rscript bench/flights.R
#
# nycflights13's 327,346 flights that arrived, by hour, carrier, origin and
# month, in memory, and 100 times over in DuckDB, whose library
# TALLBAYES_DUCKDB_LIB names where R has none; 5 minutes.
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))
bench_start("flights", "Rows of few kinds", "flights.R")

cpu <- function(code) sum(system.time(code)[1:2])
flights <- as.data.frame(nycflights13::flights)
flights <- flights[!is.na(flights$arr_delay), ]
flights$late <- as.integer(flights$arr_delay > 30)
by <- c("hour", "carrier", "origin", "month")
flights <- flights[c("late", by)]

# ---- in memory ---------------------------------------------------------------

own <- flights
own[by] <- lapply(own[by], factor)
formula <- late ~ hour + carrier + origin + month
fit <- function(share = 1 / 4) {
  before <- tallbayes:::put_settings(list(ties = list(share = share)))
  on.exit(tallbayes:::put_settings(before))
  tall_glm(formula, own, binomial(), seed = 1, refresh = 0)
}
alike <- fit()
times <- replicate(3, c(
  alike = cpu(alike <<- fit()),
  rows = cpu(rows <<- fit(share = 0)),
  glm = cpu(maximum <<- glm(formula, binomial(), own))
))
middle <- apply(times, 1, median)
apart <- abs(coef(alike) - coef(rows)) / sqrt(diag(vcov(rows)))
say(
  format(nrow(own), big.mark = ","), " rows of ",
  length(coef(alike)), " columns; CPU seconds of whole calls, the median of ",
  "three, in turn. Posterior means with alike rows as one and with each on its ",
  "own are up to ", fixed(max(apart), 2), " standard deviations apart.\n"
)
say_table(data.frame(
  call = c("tall_glm(), alike rows as one", "tall_glm(), each row", "glm()"),
  seconds = fixed(middle, 2),
  times = fixed(middle / middle[["alike"]], 1)
))

# ---- in a database -----------------------------------------------------------

library <- Sys.getenv("TALLBAYES_DUCKDB_LIB")
.libPaths(c(.libPaths(), library[nzchar(library)]))
if (requireNamespace("duckdb", quietly = TRUE)) {
  file <- tempfile(fileext = ".duckdb")
  con <- suppressMessages(DBI::dbConnect(duckdb::duckdb(file)))
  DBI::dbWriteTable(con, "once", flights)
  invisible(DBI::dbExecute(
    con,
    "CREATE TABLE flights AS SELECT once.* FROM once, range(100)"
  ))
  table <- suppressWarnings(dplyr::tbl(con, "flights"))
  columns <- paste(c("late", by), collapse = ", ")
  grouped <- paste("SELECT", columns, ", COUNT(*) AS n FROM flights GROUP BY",
    columns)
  both <- function(code) {
    took <- system.time(code)
    c(cpu = sum(took[1:2]), elapsed = took[[3]])
  }
  one <- function() {
    tall_glm(
      late ~ factor(hour) + carrier + origin + factor(month),
      table,
      binomial(),
      seed = 1,
      refresh = 0
    )
  }
  invisible(one())
  times <- replicate(5, c(
    query = both(DBI::dbGetQuery(con, grouped)),
    fit = both(one())
  ))
  middle <- apply(times, 1, median)
  say(
    "\n", format(100 * nrow(own), big.mark = ","), " rows in DuckDB; medians of ",
    "five, in turn.\n"
  )
  say_table(data.frame(
    what = c("one GROUP BY of the five columns", "tall_glm()"),
    `CPU s` = fixed(middle[c("query.cpu", "fit.cpu")], 2),
    `elapsed, s` = fixed(middle[c("query.elapsed", "fit.elapsed")], 2),
    `times, CPU` = fixed(middle[c("query.cpu", "fit.cpu")] /
      middle[["query.cpu"]], 1),
    `times, elapsed` = fixed(middle[c("query.elapsed", "fit.elapsed")] /
      middle[["query.elapsed"]], 1),
    check.names = FALSE
  ))
  DBI::dbDisconnect(con, shutdown = TRUE)
  unlink(file)
}
