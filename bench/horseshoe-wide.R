# A horseshoe of as many columns as there may be: what runs, how long a step takes,
# and what memory. See README.md.
#
#   Rscript bench/horseshoe-wide.R [rows] [columns ...]

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))

arguments <- as.numeric(commandArgs(TRUE))
n <- if (length(arguments) > 0) arguments[[1]] else 1e5
columns <- if (length(arguments) > 1) arguments[-1] else c(300, 1000)
bench_start(
  "horseshoe-wide",
  "A horseshoe of many columns",
  paste("horseshoe-wide.R", paste(arguments, collapse = " "))
)

# Ten are not 0, the others are; a column of ones beside.
wide_model <- function(n, d) {
  set.seed(37)
  x <- matrix(rnorm(n * d), n)
  beta <- c(1, -0.8, 0.5, -0.4, 0.3, -0.25, 0.2, -0.15, 0.1, 0.05, numeric(d - 10))
  y <- rbinom(n, 1, plogis(-1 + drop(x %*% beta)))
  colnames(x) <- sprintf("x%04d", seq_len(d))
  x <- cbind("(Intercept)" = 1, x)
  model_glm(
    x,
    y,
    prior = prior_hs(global_scale = 0.02),
    prior_intercept = prior_normal(0, 2.5)
  )
}

# Of Linux; elsewhere NA.
peak_memory <- function() {
  status <- tryCatch(readLines("/proc/self/status"), error = function(e) "")
  line <- grep("^VmHWM", status, value = TRUE)
  if (length(line) == 1) as.numeric(gsub("[^0-9]", "", line)) / 1000 else NA
}

row_of <- function(d) {
  model <- wide_model(n, d)
  mode <- cpu_seconds(find_mode(model))
  run <- function(iter) {
    fit <- NULL
    seconds <- cpu_seconds(fit <- suppressWarnings(
      sg_sample(model, iter = iter, warmup = 4, chains = 1, seed = 1, refresh = 0)
    ))
    list(seconds = seconds, fit = fit)
  }
  few <- run(8)
  more <- run(48)
  each <- (more$seconds - few$seconds) / 40
  data.frame(
    rows = format(n, big.mark = ","),
    columns = d,
    coordinates = dim(more$fit$unconstrained)[[3]],
    kernel = more$fit$kernel$name,
    `steps a draw` = more$fit$steps,
    accepted = fixed(mean(more$fit$chains$acceptance), 2),
    `mode, CPU s` = fixed(mode, 1),
    `pilots, CPU s` = fixed(max(0, few$seconds - 8 * each), 1),
    `a draw, ms` = fixed(1000 * each, 0),
    `4 x 2,000 draws, min` = fixed(8000 * each / 60, 0),
    `peak, MB` = fixed(peak_memory(), 0),
    check.names = FALSE
  )
}

say_table(do.call(rbind, lapply(columns, row_of)))
say(
  "\nCPU seconds. What few draws take is taken from what 40 more do: the difference\n",
  "is pilots. Memory is the most of the process so far, rows included."
)
