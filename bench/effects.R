# What do averages of effects over all rows cost, and how far are expansions from
# rows times draws?
#
#   Rscript bench/effects.R [near] [speed] [large] [database] [several] [folds]
#     [written] [beside]
#
# near: five designs of 5,000 and 200,000 rows, averages by expansion beside each
# draw at each row, and the error that was told; two minutes. speed: 10^6 rows x
# 13 numeric columns, 4,000 draws, in turn with the fit itself; a minute. large:
# 10^7 rows, and the memory beyond the data; three minutes, 6 GB. database: 10^6
# rows in SQLite and, where it is there (TALLBAYES_DUCKDB_LIB), in DuckDB, summed
# there beside read by R; four minutes. several: what hangs on several predictors,
# times to an event, two formulas, classes, hurdles, up to 200,000 rows x 4,000
# draws; four minutes. folds: what kfold() of 70,000 rows costs beside the fit,
# and from a source; of 10^6 rows in a Parquet file, its passes and time beside
# those of folds that read the file each by itself; three minutes. written:
# 40,000 rows x 2,000 draws into a folder of Parquet files, one file and text, and
# the memory that they take; four minutes. beside: the draws of marginaleffects,
# where it is there.
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

# ---- several predictors ------------------------------------------------------

several_rows <- function(n) {
  set.seed(1)
  d <- data.frame(x = rnorm(n), z = rnorm(n), g = sample(letters[1:3], n, TRUE))
  eta <- 0.5 * d$x - 0.4 * (d$g == "b")
  d$time <- 10 * rexp(n, exp(eta))^0.8
  d$status <- d$time < 30
  d$time <- pmin(d$time, 30)
  d$y <- rnorm(n, eta, exp(0.3 * d$z))
  d$count <- rpois(n, exp(eta)) * (runif(n) > plogis(d$z - 1))
  d$class <- cut(
    eta + rlogis(n), c(-Inf, -1, 0.5, Inf), c("l", "m", "h"),
    ordered_result = TRUE
  )
  d
}

several <- list(
  `survival at a time, hazard in pieces` = list(
    fit = function(d) tall_surv(Surv(time, status) ~ x + z + g, d, seed = 1),
    args = list(times = 10),
    rows = 2e5
  ),
  `survival at a time, log-normal` = list(
    fit = function(d) {
      tall_surv(Surv(time, status) ~ x + z + g, d, "lognormal", seed = 1)
    },
    args = list(times = 10)
  ),
  `sigma of two formulas` = list(
    fit = function(d) tall_glm(list(y ~ x + g, sigma ~ z), d, seed = 1),
    args = list(dpar = "sigma")
  ),
  `counts with zeros of their own` = list(
    fit = function(d) {
      tall_glm(list(count ~ x + g, zi ~ z), d, zero_inflated_poisson(), seed = 1)
    },
    rows = 2e5
  ),
  `three ordered classes` = list(
    fit = function(d) tall_polr(class ~ x + z + g, d, seed = 1)
  ),
  `hurdle` = list(
    fit = function(d) {
      tall_glm(list(count ~ x + g, hu ~ z), d, hurdle_poisson(), seed = 1)
    }
  )
)

if ("several" %in% wanted) {
  say("\n## Functions of several predictors\n")
  say("CPU seconds of each draw at each row, and of the expansion; the root mean square of what draws are apart, in posterior sds, the largest of a table; what was told.\n")
  table <- NULL
  for (name in names(several)) {
    own <- several[[name]]
    n <- if (is.null(own$rows)) 2e4 else own$rows
    d <- several_rows(n)
    fit <- own$fit(d)
    n_draw <- posterior::ndraws((if (is.null(fit$counts)) fit else fit$counts)$draws)
    ask <- function(...) {
      more <- list(fit, newdata = d, ndraws = n_draw, ...)
      do.call(average_predictions, c(more, own$args))
    }
    t <- c(
      expansion = seconds(found <- ask(method = "expansion")),
      exact = seconds(exact <- ask(method = "exact"))
    )
    away <- posterior::draws_of(found$draws) - posterior::draws_of(exact$draws)
    table <- rbind(table, data.frame(
      what = name,
      rows = format(n, big.mark = ",", scientific = FALSE),
      draws = format(n_draw, big.mark = ","),
      exact = format(round(t[["exact"]], 1)),
      expansion = format(round(t[["expansion"]], 1)),
      ratio = format(round(t[["exact"]] / t[["expansion"]])),
      apart = format(signif(max(sqrt(colMeans(away^2)) / exact$sd), 2)),
      told = format(signif(max(attr(found, "error")), 2))
    ))
  }
  say_table(table)
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

# Rows of a file whose passes are counted as they end.
n_end <- 0
source_open.counted <- function(source, columns = NULL) {
  reader <- source_open(source$rows, columns)
  next_block <- reader$next_block
  reader$next_block <- function() {
    block <- next_block()
    n_end <<- n_end + is.null(block)
    block
  }
  reader
}
registerS3method("source_open", "counted", source_open.counted)

# kfold() where each fold reads the source by itself, to fit and to score, and
# one more pass has the densities under the fit.
folds_apart <- function(fit, of, ndraws) {
  own <- asNamespace("tallbayes")
  fold <- own$source_folds(fit, of)
  priors <- own$settled_arguments(fit)
  ask <- function(of, whole) {
    own$new_crossing(of, paste("fold", 1:5), ndraws, whole, FALSE, 0)
  }
  elpd <- numeric(length(of))
  for (k in 1:5) {
    data <- own$source_part(fit$rows$source, fold, k)
    again <- own$call_again(fit, c(list(data = data), priors))
    scores <- list(own$new_score(again, fit, ask(of, FALSE)))
    alone <- own$score_rows(fit, scores, ask(as.integer(of == k), FALSE))
    elpd[of == k] <- alone$elpd[of == k]
  }
  own$score_rows(fit, list(), ask(0L * of, TRUE))
  elpd
}

if ("folds" %in% wanted) {
  file <- tempfile(fileext = ".parquet")
  d <- as.data.frame(matrix(rnorm(1e7), 1e6))
  d$y <- rnorm(1e6) + d$V1
  d$z <- rbinom(1e6, 1, plogis(0.3 * d$V1))
  nanoparquet::write_parquet(d, file)
  rm(d)
  rows <- structure(
    list(rows = tall_parquet(file)),
    class = c("counted", "tall_source")
  )
  for (name in c("gaussian", "binomial")) {
    response <- c(gaussian = "y", binomial = "z")[[name]]
    formula <- reformulate(paste0("V", 1:10), response)
    family <- get(name)
    n_end <- 0
    t <- seconds(fit <- tall_glm(formula, rows, family(), seed = 1))
    n <- n_end
    n_end <- 0
    t <- c(t, seconds(found <- kfold(fit, K = 5, ndraws = 100)))
    n <- c(n, n_end)
    n_end <- 0
    t <- c(t, seconds(elpd <- folds_apart(fit, found$folds, 100)))
    n <- c(n, n_end)
    say(
      "\n1,000,000 rows x 10 columns in a Parquet file, ", name,
      ", K = 5, 100 draws: ", n[[1]], " passes for the fit, ", n[[2]],
      " for kfold(), ", n[[3]], " where each fold reads the file by itself; CPU ",
      "time of kfold() ", round(t[[2]] / t[[1]], 1), " times that of the fit, ",
      round(t[[3]] / t[[2]], 2), " times as much by themselves; elpd apart by ",
      signif(max(abs(elpd - found$pointwise[, 1])), 2), " at most."
    )
  }
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
