# Learnt scales where the response has a parameter that is sampled: all rows
# decide. Least effective draws of 4,000, largest R-hat, and CPU seconds, the
# worst of all parameters and seeds. See README.md.
#
#   Rscript bench/scaled-rows.R [seeds] [rows]
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))

library(tallbayes)

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

for (model in names(fits)) {
  for (name in names(families)) {
    each <- vapply(seq_len(n_seed), function(seed) {
      before <- proc.time()
      fit <- suppressWarnings(suppressMessages(fits[[model]](
        data_of(name, seed),
        family = families[[name]],
        seed = seed,
        refresh = 0
      )))
      used <- sum((proc.time() - before)[1:2])
      found <- posterior::summarise_draws(fit, "rhat", "ess_bulk")
      c(max(found$rhat), min(found$ess_bulk), used)
    }, numeric(3))
    cat(sprintf(
      "| %s | %s | %d | %d | %.3f | %.0f | %.1f |\n",
      model, name, n, n_seed, max(each[1, ]), min(each[2, ]), max(each[3, ])
    ))
  }
}
