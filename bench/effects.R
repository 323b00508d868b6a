# What do averages of effects over all rows cost, and how far are expansions from
# rows times draws?
#
#   Rscript bench/effects.R [near] [speed] [large] [database] [folds] [written] [beside]
#
# near: five designs of 5,000 and 200,000 rows, averages by expansion beside each
# draw at each row, and the error that was told; two minutes. speed: 10^6 rows x
# 13 numeric columns, 4,000 draws, in turn with the fit itself; a minute. large:
# 10^7 rows, and the memory beyond the data; three minutes, 6 GB. database: 10^6
# rows in SQLite and, where it is there (TALLBAYES_DUCKDB_LIB), in DuckDB, summed
# there beside read by R; four minutes. folds: what
# kfold() of 70,000 rows costs beside the fit, and from a stream; a minute.
# written: 40,000 rows x 2,000 draws into a folder of Parquet files, one file and
# text, and the memory that they take; four minutes. beside: the draws of
# marginaleffects, where it is there.
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))

args <- commandArgs(TRUE)
wanted <- if (length(args) > 0) args else c("near", "speed")
own <- if (length(wanted) == 1) paste0("effects-", wanted) else "effects"
bench_start(own, "Averages over all rows", paste(c("effects.R", args), collapse = " "))
options(tallbayes.refresh = 0)

seconds <- function(code) {
  before <- proc.time()
  force(code)
  sum((proc.time() - before)[1:2])
}

# ---- near --------------------------------------------------------------------

designs <- list(
  `slopes, interaction` = function(fit, ...) average_slopes(fit, "x", ...),
  `levels of a factor` = function(fit, ...) average_comparisons(fit, "g", ...),
  `ratio, x = -2 and 2` = function(fit, ...) {
    average_comparisons(fit, list(x = c(-2, 2)), comparison = "ratio", ...)
  },
  `log odds ratio` = function(fit, ...) {
    average_comparisons(fit, list(x = c(0, 1)), comparison = "lnor", ...)
  },
  `by groups, weighted` = function(fit, ...) {
    average_predictions(fit, by = "k", wts = "w", ...)
  }
)

made_rows <- function(n) {
  set.seed(1)
  d <- data.frame(
    x = rnorm(n), g = sample(letters[1:4], n, TRUE),
    k = sample(1:3, n, TRUE), w = runif(n)
  )
  d$y <- rbinom(n, 1, plogis(-1 + 0.5 * d$x + 0.3 * (d$g == "b")))
  d
}

if ("near" %in% wanted) {
  say("\n## Expansions beside rows times draws\n")
  say("Logistic, `y ~ x * g`, 400 draws: the root mean square of what draws are apart, in posterior sds, the largest of a table; what was told; CPU seconds.\n")
  table <- NULL
  for (n in c(5000, 200000)) {
    # found by the call
    d <- made_rows(n)
    fit <- tall_glm(y ~ x * g, d, binomial(), seed = 1)
    for (name in names(designs)) {
      ask <- designs[[name]]
      t <- c(
        exact = seconds(exact <- ask(fit, method = "exact", ndraws = 400)),
        expansion = seconds(found <- ask(fit, method = "expansion", ndraws = 400))
      )
      away <- posterior::draws_of(found$draws) - posterior::draws_of(exact$draws)
      table <- rbind(table, data.frame(
        what = name,
        rows = format(n, big.mark = ",", scientific = FALSE),
        apart = format(signif(max(sqrt(colMeans(away^2)) / exact$sd), 2)),
        told = format(signif(max(attr(found, "error")), 2)),
        exact = format(round(t[["exact"]], 1)),
        expansion = format(round(t[["expansion"]], 1))
      ))
    }
  }
  say_table(table)
}

# ---- speed -------------------------------------------------------------------

numeric_rows <- function(n) {
  set.seed(1)
  d <- as.data.frame(matrix(rnorm(n * 13), n))
  d$y <- rbinom(n, 1, plogis(-1 + 0.3 * d$V1))
  d
}

peak_mb <- function() {
  status <- readLines("/proc/self/status")
  as.numeric(gsub("[^0-9]", "", grep("^VmHWM", status, value = TRUE))) / 1024
}

costs <- function(n, rounds) {
  d <- numeric_rows(n)
  t <- replicate(rounds, c(
    fit = seconds(fit <<- tall_glm(y ~ ., d, binomial(), seed = 1)),
    slopes = seconds(found <<- average_slopes(fit))
  ))
  say(
    "\n", format(n, big.mark = ",", scientific = FALSE), " rows x 13 numeric columns, 4,000 draws, CPU seconds (",
    rounds, " rounds, medians): the fit ", round(median(t["fit", ]), 1),
    ", all 13 slopes ", round(median(t["slopes", ]), 1), "; error ",
    signif(max(attr(found, "error")), 2), " posterior sds. A row takes ",
    round(1e9 * median(t["slopes", ]) / n), " ns."
  )
}

fit <- found <- NULL
if ("speed" %in% wanted) {
  say("\n## Speed\n")
  costs(1e5, 3)
  costs(1e6, 3)
}

if ("large" %in% wanted) {
  say("\n## Ten million rows\n")
  d <- numeric_rows(1e7)
  fit <- tall_glm(y ~ ., d, binomial(), seed = 1)
  invisible(gc())
  writeLines("5", "/proc/self/clear_refs")
  before <- peak_mb()
  t <- seconds(found <- average_slopes(fit))
  say(
    "13 slopes, 4,000 draws: ", round(t), " CPU s, ", round(peak_mb() - before),
    " MB beyond the data and the fit, error ",
    signif(max(attr(found, "error")), 2), " posterior sds."
  )
}

# ---- rows in a database ------------------------------------------------------

# Connections by engine.
open_engines <- function() {
  library <- Sys.getenv("TALLBAYES_DUCKDB_LIB")
  has_duckdb <- suppressWarnings(requireNamespace(
    "duckdb",
    lib.loc = c(if (nzchar(library)) library, .libPaths()),
    quietly = TRUE
  ))
  c(
    list(SQLite = DBI::dbConnect(RSQLite::SQLite(), tempfile())),
    if (has_duckdb) {
      list(DuckDB = suppressMessages(
        DBI::dbConnect(duckdb::duckdb(tempfile()), config = list(threads = "1"))
      ))
    }
  )
}

asked_of_tables <- list(
  `two predictions` = function(fit, ...) {
    average_predictions(fit, list(V1 = c(-1, 1)), ...)
  },
  `13 slopes` = function(fit, ...) average_slopes(fit, ...),
  `predictions by 10 groups` = function(fit, ...) {
    average_predictions(fit, by = "k", ...)
  }
)

if ("database" %in% wanted) {
  say("\n## Rows in a database\n")
  n <- 1e6
  d <- numeric_rows(n)
  d$k <- rep_len(1:10, n)
  fit <- tall_glm(reformulate(sprintf("V%d", 1:13), "y"), d, binomial(), seed = 1)
  table <- NULL
  for (engine in names(connections <- open_engines())) {
    con <- connections[[engine]]
    DBI::dbWriteTable(con, "d", d)
    rows <- dplyr::tbl(con, "d")
    for (name in names(asked_of_tables)) {
      ask <- asked_of_tables[[name]]
      t <- c(
        read = seconds(read <- ask(
          fit,
          newdata = as_source(rows, in_database = FALSE),
          method = "expansion"
        )),
        summed = seconds(
          summed <- ask(fit, newdata = rows, method = "expansion")
        )
      )
      table <- rbind(table, data.frame(
        engine = engine,
        what = name,
        read = format(round(t[["read"]], 1)),
        summed = format(round(t[["summed"]], 1)),
        ratio = format(round(t[["read"]] / t[["summed"]], 1)),
        apart = format(signif(max(abs(summed$mean - read$mean) / read$sd), 1))
      ))
    }
    DBI::dbDisconnect(con)
  }
  say(
    "10^6 rows x 13 numeric columns, ", posterior::ndraws(fit$draws), " draws, ",
    "one thread, CPU seconds: rows that R reads, sums that the database ",
    "computes, and by how much the latter is faster; how far means are apart, ",
    "in posterior sds.\n"
  )
  say_table(table)
}

# ---- cross-validation --------------------------------------------------------

if ("folds" %in% wanted) {
  say("\n## Cross-validation\n")
  d <- made_rows(70000)
  t <- c(
    fit = seconds(fit <- tall_glm(y ~ x * g, d, binomial(), seed = 1)),
    folds = seconds(memory <- kfold(fit, K = 3))
  )
  rows <- as_source(d)
  fit <- tall_glm(y ~ x * g, rows, binomial(), seed = 1)
  t <- c(t, source = seconds(passed <- kfold(fit, K = 3)))
  say(
    "70,000 rows, K = 3, CPU seconds: the fit ", round(t[["fit"]], 1),
    ", kfold() ", round(t[["folds"]], 1), ", of rows that are passed over ",
    round(t[["source"]], 1), "; elpd ",
    paste(
      round(c(memory$estimates[1, 1], passed$estimates[1, 1]), 2),
      collapse = " and "
    ), "."
  )
}

# ---- written draws -----------------------------------------------------------

if ("written" %in% wanted) {
  say("\n## Draws that are written\n")
  d <- made_rows(40000)
  fit <- tall_glm(y ~ x * g, d, binomial(), seed = 1)
  folder <- tempfile()
  dir.create(folder)
  table <- NULL
  for (to in c("draws/", "draws.parquet", "draws.csv")) {
    invisible(gc())
    writeLines("5", "/proc/self/clear_refs")
    before <- peak_mb()
    path <- file.path(folder, to)
    t <- seconds(posterior_epred(fit, d, ndraws = 2000, to = path))
    files <- list.files(folder, recursive = TRUE, full.names = TRUE)
    table <- rbind(table, data.frame(
      to = to,
      `CPU s` = round(t, 1),
      `MB beyond the fit` = round(peak_mb() - before),
      `MB on disk` = round(sum(file.size(files)) / 2^20),
      check.names = FALSE
    ))
    unlink(files)
  }
  say("40,000 rows x 2,000 draws, 610 MB as a matrix.\n")
  say_table(table)
}

# ---- marginaleffects ---------------------------------------------------------

if ("beside" %in% wanted) {
  say("\n## marginaleffects\n")
  if (getRversion() < "4.4.0") {
    # it takes that from R 4.4
    assign("%||%", rlang::`%||%`, globalenv())
  }
  d <- made_rows(5000)
  fit <- tall_glm(y ~ x * g, d, binomial(), seed = 1)
  own <- average_comparisons(fit, list(x = c(0, 1)), method = "exact")
  theirs <- marginaleffects::avg_comparisons(fit, variables = list(x = c(0, 1)))
  draws <- marginaleffects::posterior_draws(theirs)$draw
  say(
    "5,000 rows x ", posterior::ndraws(own$draws), " draws: the largest ",
    "difference of a draw is ",
    signif(max(abs(sort(draws) - sort(posterior::draws_of(own$draws)))), 2), "."
  )
}
