# Learnt scales where the response has a parameter that is sampled: all rows
# decide. Least effective draws of 4,000, largest R-hat, and CPU seconds, the
# worst of all parameters and seeds. See README.md.
#
#   Rscript bench/scaled-rows.R [seeds] [rows]
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))

given <- as.integer(commandArgs(TRUE))
n_seed <- if (length(given) > 0) given[[1]] else 20
n <- if (length(given) > 1) given[[2]] else 500

draw <- list(
  gamma = function(eta) rgamma(length(eta), 3, 3 / exp(eta)),
  student = function(eta) eta + 0.5 * rt(length(eta), 4),
  beta = function(eta) {
    y <- rbeta(length(eta), 8 * plogis(eta), 8 * plogis(-eta))
    pmin(pmax(y, 1e-6), 1 - 1e-6)
  },
  negbin = function(eta) rnbinom(length(eta), size = 2, mu = exp(eta))
)
families <- list(
  gamma = gamma_regression(),
  student = student(),
  beta = beta_regression(),
  negbin = neg_binomial_2()
)
fits <- list(
  smooths = function(d, ...) tall_gam(y ~ s(x) + s(z) + s(w) + v1, d, ...),
  hs = function(d, ...) tall_glm(y ~ ., d, ..., prior = prior_hs())
)

data_of <- function(name, seed) {
  set.seed(100 + seed)
  x <- runif(n)
  z <- rnorm(n)
  w <- runif(n)
  v <- matrix(rnorm(n * 20), n, dimnames = list(NULL, paste0("v", 1:20)))
  eta <- sin(6 * x) + 0.3 * z + 0.5 * v[, 1] - 0.3 * v[, 2]
  data.frame(x, z, w, v, y = draw[[name]](eta))
}

bench_start("scaled-rows", "Learnt scales where all rows decide")
say(
  "Where the response has a parameter that is sampled, and under fixed priors that ",
  "are narrow beside what rows say. Four chains, 4,000 draws; the worst of all ",
  "parameters and seeds. `smooths`: `y ~ s(x) + s(z) + s(w) + v1`, the last curve ",
  "null; `hs`: 23 columns under a horseshoe.\n"
)

# The worst of fits by seed: largest R-hat, least ESS, most CPU seconds.
worst_of <- function(fit) {
  each <- vapply(seq_len(n_seed), FUN.VALUE = numeric(3), function(seed) {
    before <- proc.time()
    found <- suppressWarnings(suppressMessages(fit(seed)))
    used <- sum((proc.time() - before)[1:2])
    found <- posterior::summarise_draws(found, "rhat", "ess_bulk")
    c(max(found$rhat), min(found$ess_bulk), used)
  })
  data.frame(
    seeds = n_seed,
    `R-hat` = sprintf("%.3f", max(each[1, ])),
    `least ESS` = sprintf("%.0f", min(each[2, ])),
    `CPU s` = sprintf("%.1f", max(each[3, ])),
    check.names = FALSE
  )
}

rows <- list()
for (model in names(fits)) {
  for (name in names(families)) {
    worst <- worst_of(function(seed) {
      fits[[model]](data_of(name, seed), family = families[[name]], seed = seed)
    })
    rows[[length(rows) + 1]] <- cbind(model, response = name, rows = n, worst)
    cat(unlist(rows[[length(rows)]]), "\n")
  }
}
say_table(do.call(rbind, rows))

# a spike where the prior is, and a wide foot: see R/plan-heavy.R
say("`y ~ s(x, k = 8) + z`, 800 rows, logit, with `prior_student(1, 0, scale)`:\n")
narrow_data <- function(seed) {
  set.seed(seed)
  d <- data.frame(x = runif(800), z = rnorm(800))
  d$y <- rbinom(800, 1, plogis(sin(6 * d$x) + 0.8 * d$z))
  d
}
narrow <- lapply(c(0.05, 0.1, 0.25), function(scale) {
  worst <- worst_of(function(seed) {
    tall_gam(
      y ~ s(x, k = 8) + z,
      narrow_data(seed),
      binomial(),
      prior = prior_student(1, 0, scale),
      seed = seed
    )
  })
  cbind(scale = format(scale), worst)
})
say_table(do.call(rbind, narrow))
