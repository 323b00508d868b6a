# Priors with scales of their own: what the recipe does, beside what it would do
# otherwise. See README.md.
#
#   Rscript bench/scales.R [seeds] [all] [case ...]
#
# in turn: hyperparameters and coefficients in turn, never with the coefficients
# integrated out; all rows, where `all` is given: steps that look at all rows,
# which take minutes, with the first seed only. Each case is fitted once
# for each seed; R-hat and ESS are the worst of all parameters, hyperparameters on
# their unconstrained coordinates, and of all seeds.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))

normal_columns <- function(n, d, eta, family = "bernoulli", prior = prior_ridge(), seed = 1) {
  set.seed(seed)
  x <- cbind("(Intercept)" = 1, matrix(rnorm(n * d), n))
  colnames(x)[-1] <- paste0("x", seq_len(d))
  eta <- drop(eta(x[, -1]))
  y <- switch(family,
    bernoulli = rbinom(n, 1, plogis(eta)),
    poisson = rpois(n, exp(eta))
  )
  model_glm(x, y, family, prior = prior, prior_intercept = prior_normal(0, 2))
}

# A level of eight rows, all without an event.
separated_level <- function(prior) {
  set.seed(3)
  n <- 6000
  x <- rnorm(n)
  y <- rbinom(n, 1, plogis(x / 2 - 1))
  y[1:8] <- 0
  x <- cbind("(Intercept)" = 1, x = x, level = rep(1:0, c(8, n - 8)))
  model_glm(x, y, prior = prior, prior_intercept = prior_normal(0, 2.5))
}

put_settings <- utils::getFromNamespace("put_settings", "tallbayes")

cases <- list(
  `ridge-near-0` = function() {
    normal_columns(20000, 10, function(x) -1 + 0 * x[, 1])
  },
  `ridge-60` = function() {
    normal_columns(20000, 60, function(x) -1 + x %*% rnorm(60, 0, 0.1))
  },
  `ridge-tall` = function() {
    normal_columns(1e5, 20, function(x) -1 + x %*% rnorm(20, 0, 0.05))
  },
  `ridge-poisson` = function() {
    normal_columns(20000, 10, function(x) -1 + x %*% rnorm(10, 0, 0.02), "poisson")
  },
  `horseshoe-8` = function() {
    normal_columns(20000, 8, function(x) -1 + 0.5 * x[, 1], prior = prior_hs())
  },
  `separated-ridge` = function() separated_level(prior_ridge()),
  `separated-horseshoe` = function() separated_level(prior_hs())
)

ways <- list(
  recipe = list(few_scales = 20),
  `in turn` = list(few_scales = 0, few_locals = 0),
  `all rows` = list(scales_acceptance = 2)
)

row_of <- function(name, way, n_seed) {
  model <- cases[[name]]()
  if (way == "all rows") n_seed <- 1
  before <- put_settings(list(recipe = ways[[way]]))
  on.exit(put_settings(before))
  found <- vapply(seq_len(n_seed), function(seed) {
    seconds <- cpu_seconds(
      fit <- suppressWarnings(sg_sample(model, seed = seed, refresh = 0))
    )
    at <- fit$unconstrained
    ess <- apply(at, 3, posterior::ess_bulk)
    c(
      rhat = max(apply(at, 3, posterior::rhat)),
      ess = min(ess),
      tail = min(apply(at, 3, posterior::ess_tail)),
      seconds = seconds,
      acceptance = mean(fit$chains$acceptance),
      steps = fit$steps
    )
  }, numeric(6))
  data.frame(
    case = name,
    way = way,
    seeds = n_seed,
    `R-hat` = fixed(max(found["rhat", ]), 3),
    `ESS bulk` = fixed(min(found["ess", ]), 0),
    tail = fixed(min(found["tail", ]), 0),
    accepted = fixed(mean(found["acceptance", ]), 2),
    steps = fixed(found["steps", 1], 0),
    `CPU s` = fixed(stats::median(found["seconds", ]), 2),
    `ESS / s` = fixed(sum(found["ess", ]) / sum(found["seconds", ]), 0),
    check.names = FALSE
  )
}

arguments <- commandArgs(TRUE)
n_seed <- if (length(arguments) > 0) as.integer(arguments[[1]]) else 20
wanted <- setdiff(arguments[-1], "all")
if (length(wanted) == 0) wanted <- names(cases)
used <- if ("all" %in% arguments) names(ways) else names(ways)[1:2]
bench_start(
  paste(c("scales", arguments[-1]), collapse = "-"),
  "Priors with scales of their own",
  paste("scales.R", paste(arguments, collapse = " "))
)
rows <- do.call(rbind, lapply(wanted, function(name) {
  do.call(rbind, lapply(used, function(way) row_of(name, way, n_seed)))
}))
say_table(rows)
say(
  "\nR-hat, ESS: the worst of all parameters and of all seeds, 4 x 1,000 draws.\n",
  "CPU s: the median. ESS / s: least ESS of each seed, over all."
)
