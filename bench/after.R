# What comes after the fit: summary, predictions, loo on the sepsis fit, and
# posterior_epred against one tcrossprod. See README.md.
#
#   Rscript bench/after.R
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "common.R"))
bench_start("after", "After the fit")

median_time <- function(f, n) {
  stats::median(vapply(seq_len(n), function(k) system.time(f())[["elapsed"]], 0))
}

sepsis <- tall_data("sepsis")
fit_time <- system.time(
  fit <- tall_glm(
    hospital_outcome_1alive_0dead ~
      age_years + sex_0male_1female + episode_number,
    sepsis,
    binomial(),
    seed = 1,
    refresh = 0
  )
)[["elapsed"]]
loo_fit <- function() suppressWarnings(suppressMessages(loo::loo(fit, observations = 400)))
loo_fit()
rows <- data.frame(
  what = c("summary()", "predict(type = \"response\")", "predict()", "loo(), 400 observations"),
  seconds = c(
    median_time(function() summary(fit), 5),
    median_time(function() predict(fit, type = "response"), 3),
    median_time(function() predict(fit), 3),
    median_time(loo_fit, 3)
  ),
  target = c("< 1 s", "< 1 s", "< 1 s", "< 2 s")
)
say("Sepsis, 110,204 rows, 4,000 draws; the fit itself took ",
  format(fit_time, digits = 2), " s.\n")
say(paste(knitr::kable(rows, digits = 3), collapse = "\n"))

set.seed(1)
ratios <- vapply(c(4, 10, 50), function(d) {
  x <- cbind(1, matrix(rnorm(4000 * (d - 1)), 4000))
  y <- as.integer(runif(4000) < 0.5)
  small <- tall_glm.fit(x, y, binomial(), seed = 1, refresh = 0)
  new <- x[1:1000, ]
  theta <- as.matrix(small)[, seq_len(d)]
  pairs <- vapply(1:15, function(k) {
    ours <- system.time(rstantools::posterior_epred(small, new))[["elapsed"]]
    blas <- system.time(tcrossprod(theta, new))[["elapsed"]]
    c(ours, blas)
  }, c(0, 0))
  stats::median(pairs[1, ]) / stats::median(pairs[2, ])
}, 0)
say("\nposterior_epred() of 1,000 rows and 4,000 draws over one tcrossprod() of that
size, target <= 2 (columns: ratio): ",
  paste0(c(4, 10, 50), ": ", format(ratios, digits = 3), collapse = ", "), ".")
