# A regression of counts whose dispersion is sampled, and nine counts of 1 among
# many of 0: the posterior of the dispersion is hardly more than its prior, far from
# normal. Are default draws those of the posterior, and what do they cost?
#
#   Rscript bench/few-events.R
#
# The truth is a sum over a grid of both parameters, in R's own densities.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))

bench_start("few-events", "Nine counts of 1")
n_event <- 9

# list(mean, sd) of the intercept and the reciprocal dispersion
truth_of <- function(n) {
  beta <- seq(log(n_event / n) - 6, log(n_event / n) + 10, 0.02)
  s <- seq(-12, 4, 0.02)
  p <- vapply(s, function(s) {
    (n - n_event) * dnbinom(0, exp(s), mu = exp(beta), log = TRUE) +
      n_event * dnbinom(1, exp(s), mu = exp(beta), log = TRUE) +
      dnorm(beta, 0, 10, log = TRUE) + dexp(exp(s), 1, log = TRUE) + s
  }, beta)
  p <- exp(p - max(p))
  p <- p / sum(p)
  mean_of <- function(value, share) sum(value * share)
  of <- function(value, share) {
    m <- mean_of(value, share)
    c(m, sqrt(mean_of((value - m)^2, share)))
  }
  rbind(of(beta, rowSums(p)), of(exp(s), colSums(p)))
}

one <- function(n) {
  data <- data.frame(y = c(rep(1, n_event), numeric(n - n_event)))
  seconds <- cpu_seconds(fit <- suppressWarnings(tall_glm(
    y ~ 1, data, neg_binomial_2(),
    prior_intercept = prior_normal(0, 10),
    prior_aux = prior_exponential(1),
    seed = 1
  )))
  truth <- truth_of(n)
  found <- posterior::summarise_draws(fit, "mean", "sd", "rhat", "ess_bulk")
  data.frame(
    rows = format(n, big.mark = ",", scientific = FALSE),
    kernel = fit$kernel$name,
    parameter = found$variable,
    `mean, sds off` = fixed((found$mean - truth[, 1]) / truth[, 2], 3),
    `sd off` = percent(found$sd / truth[, 2] - 1),
    rhat = fixed(found$rhat, 3),
    ess = fixed(found$ess_bulk, 0),
    `CPU s` = fixed(seconds, 1),
    check.names = FALSE
  )
}
say_table(do.call(rbind, lapply(c(3000, 20000, 100000, 500000), one)))
say(
  "\nUp to what takes ten minutes of one core all rows are looked at in every step,\n",
  "exactly (`barker`); beyond that minibatches are (`sgbd`), with a warning."
)
