# Are default draws right where posteriors are far from normal? Simulation-based
# calibration (Talts et al., 2018) of tall_glm() with a rare level, a separated
# level, a baseline without an event, and priors with scales of their own, these
# also by passes over a stream, and of a Gaussian response from sums. See
# README.md.
#
#   Rscript bench/sbc-awkward.R [replications] [problem ...]

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))
source(file.path(bench_folder(), "..", "tests", "testthat", "helper-sbc.R"))

n_row <- 2500
# Kept draws are that far apart, as such chains may stay where they are.
sbc_thin <- 20

# theta of a prior with one standard deviation a coefficient; the intercept's prior
# is of the predictor at the columns' means, as tall_glm() has it.
with_normal_priors <- function(intercept, sd, level_rows) {
  level <- factor(rep(letters[seq_along(level_rows)], level_rows))
  list(
    data = function() {
      data.frame(a = rnorm(length(level)), level = level)
    },
    formula = y ~ a + level,
    arguments = list(
      prior = prior_normal(0, sd, autoscale = FALSE),
      prior_intercept = prior_normal(intercept[[1]], intercept[[2]], autoscale = FALSE)
    ),
    draw = function(x) c(rnorm(1, intercept[[1]], intercept[[2]]), rnorm(length(sd), 0, sd))
  )
}

half_t <- function(n, df, scale) abs(rt(n, df)) * scale

# Rows of those by passes: of few, steps from rows drawn ahead look at too many.
n_streamed <- 20000

# Of ten standard normal columns.
with_scales <- function(prior, draw, n = n_row) {
  list(
    data = function() data.frame(matrix(rnorm(10 * n), n)),
    formula = y ~ .,
    arguments = list(
      prior = prior,
      prior_intercept = prior_normal(-1, 0.5, autoscale = FALSE)
    ),
    draw = function(x) c(rnorm(1, -1, 0.5), draw(ncol(x) - 1))
  )
}

with_ridge <- function(...) {
  with_scales(
    prior_ridge(df = 3, scale = 0.3),
    function(d) {
      sd <- half_t(1, 3, 0.3)
      c(rnorm(d, 0, sd), ridge_sd = sd)
    },
    ...
  )
}

# With few coefficients that are not nearly 0.
with_horseshoe <- function(...) {
  with_scales(
    prior_hs(global_scale = 0.01),
    function(d) {
      global <- half_t(1, 1, 0.01)
      local <- half_t(d, 1, 1)
      slab <- 2.5 / sqrt(rgamma(1, 2, 2))
      sd <- 1 / sqrt(1 / slab^2 + 1 / (global * local)^2)
      c(rnorm(d, 0, sd), hs_global = global, hs_slab = slab)
    },
    ...
  )
}

# The same where rows are only passed over: a look at 4,000 of them, and blocks.
streamed <- function(problem) {
  problem$source <- function(data) {
    n <- nrow(data)
    tall_stream(function() {
      at <- 0
      function() {
        rows <- at + seq_len(min(4000, n - at))
        at <<- at + length(rows)
        if (length(rows) > 0) data[rows, , drop = FALSE]
      }
    })
  }
  problem
}

# A Gaussian response, its sigma another parameter.
gaussian_response <- function(problem) {
  draw <- problem$draw
  problem$family <- gaussian()
  problem$arguments$prior_aux <- prior_exponential(1)
  problem$draw <- function(x) c(draw(x), sigma = rexp(1))
  problem
}

put_settings <- utils::getFromNamespace("put_settings", "tallbayes")

# draw(x): the intercept at the columns' means, the coefficients, and then by name
# what else a fit has draws of
problems <- list(
  # 4 rows, about half of them separated
  `rare-level` = function() {
    with_normal_priors(c(-1, 0.5), c(0.5, 3, 0.5), c(1496, 4, 1000))
  },
  # 30 rows, nearly always all 0 or all 1
  `separated-level` = function() {
    with_normal_priors(c(-1, 0.5), c(0.5, 40, 0.5), c(1470, 30, 1000))
  },
  # 50 rows, mostly without an event
  `baseline-without-event` = function() {
    with_normal_priors(c(-3, 0.5), c(0.5, 3, 3), c(50, 1450, 1000))
  },
  ridge = function() with_ridge(),
  horseshoe = function() with_horseshoe(),
  `ridge-stream` = function() streamed(with_ridge(n_streamed)),
  `horseshoe-stream` = function() streamed(with_horseshoe(n_streamed)),
  `gaussian-ridge-stream` = function() {
    streamed(gaussian_response(with_ridge(n_streamed)))
  },
  `gaussian-horseshoe-stream` = function() {
    streamed(gaussian_response(with_horseshoe(n_streamed)))
  }
)

# Scores of one replication, by the names of the parameters.
replication <- function(problem, seed) {
  set.seed(seed)
  data <- problem$data()
  x <- model.matrix(problem$formula[-2], data)
  theta <- problem$draw(x)
  names(theta)[seq_len(ncol(x))] <- colnames(x)
  theta[[1]] <- theta[[1]] - sum(colMeans(x)[-1] * theta[2:ncol(x)])
  eta <- drop(x %*% theta[seq_len(ncol(x))])
  family <- if (is.null(problem$family)) binomial() else problem$family
  data$y <- if (family$family == "gaussian") {
    rnorm(nrow(x), eta, theta[["sigma"]])
  } else {
    as.numeric(runif(nrow(x)) < plogis(eta))
  }
  source <- if (is.null(problem$source)) data else problem$source(data)
  fit <- suppressWarnings(do.call(tall_glm, c(
    list(problem$formula, source, family),
    problem$arguments,
    list(
      chains = 1, seed = seed, warmup = 200, iter = 200 + sbc_draws * sbc_thin
    )
  )))
  draws <- posterior::as_draws_matrix(fit$draws)[sbc_thin * seq_len(sbc_draws), ]
  draws <- draws[, names(theta)]
  rank <- colSums(draws < rep(theta, each = sbc_draws))
  list(
    scores = setNames(qnorm((rank + 0.5) / (sbc_draws + 1)), names(theta)),
    kernel = paste0(
      if (!is.null(problem$source) && !is.null(fit$rows$source)) "passes, ",
      fit$kernel$name
    ),
    # what ranks take for granted
    lag_1 = max(apply(draws, 2, function(v) {
      if (sd(v) == 0) 1 else cor(v[-1], v[-sbc_draws])
    }))
  )
}

row_of_problem <- function(name, n_rep) {
  problem <- tryCatch(problems[[name]](), error = function(e) NULL)
  before <- if (!is.null(problem$source)) put_settings(list(look = list(rows = 4000)))
  on.exit(if (!is.null(before)) put_settings(before))
  if (is.null(problem)) {
    say("- ", name, ": skipped, the package has no such prior")
    return(NULL)
  }
  seconds <- cpu_seconds(
    runs <- lapply(seq_len(n_rep), function(seed) replication(problem, seed))
  )
  scores <- vapply(runs, function(run) run$scores, runs[[1]]$scores)
  p <- apply(scores, 1, sbc_p_values)
  at <- qnorm((seq_len(sbc_draws + 1) - 0.5) / (sbc_draws + 1))
  kernels <- table(vapply(runs, function(run) run$kernel, ""))
  worst <- which(p == min(p), arr.ind = TRUE)[1, ]
  data.frame(
    problem = name,
    kernel = paste(names(kernels), kernels, collapse = ", "),
    `mean, sds` = fixed(-mean(scores)),
    `sd` = percent(sqrt(mean(at^2) / mean(scores^2)) - 1),
    `least p` = number(min(p)),
    `of parameter` = paste0(colnames(p)[[worst[[2]]]], ", ", rownames(p)[[worst[[1]]]]),
    `times their number` = number(min(1, min(p) * length(p))),
    `median lag 1` = fixed(median(vapply(runs, function(run) run$lag_1, 0))),
    `CPU s each` = fixed(seconds / n_rep, 2),
    check.names = FALSE
  )
}

arguments <- commandArgs(TRUE)
n_rep <- if (length(arguments) > 0) as.integer(arguments[[1]]) else 400
wanted <- if (length(arguments) > 1) arguments[-1] else names(problems)
bench_start(
  paste(c("sbc-awkward", arguments[-1]), collapse = "-"),
  "Simulation-based calibration far from normal",
  paste("sbc-awkward.R", paste(arguments, collapse = " "))
)
say(
  n_rep, " replications of ", format(n_row, big.mark = ","), " rows each (",
  format(n_streamed, big.mark = ","), " of streams), parameters drawn from their prior, ", sbc_draws, " draws\n",
  "every ", sbc_thin, " steps. The mean of draws is off by that many posterior sds,",
  " their sd by that\nshare, over all parameters; p: of one parameter's location or",
  " spread, and by how many\nthere are of both. Lag 1: the largest correlation of",
  " successive kept draws, which would\nbe about 0.2 if independent.\n"
)
rows <- Filter(Negate(is.null), lapply(wanted, row_of_problem, n_rep))
if (length(rows) > 0) say_table(do.call(rbind, rows))
