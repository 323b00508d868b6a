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

# Both use two threads. Elapsed times of a few milliseconds suffer from whatever
# else the machine does, so that processor time is shown as well.
set.seed(1)
rows <- do.call(rbind, lapply(c(4, 10, 50), function(d) {
  x <- cbind(1, matrix(rnorm(4000 * (d - 1)), 4000))
  y <- as.integer(runif(4000) < 0.5)
  small <- tall_glm.fit(x, y, binomial(), seed = 1, refresh = 0)
  new <- x[1:1000, ]
  theta <- as.matrix(small)[, seq_len(d)]
  seconds <- function(f) {
    time <- summary(system.time(for (k in 1:5) f()))
    c(time[["elapsed"]], time[["user"]] + time[["system"]])
  }
  pairs <- replicate(15, {
    c(
      seconds(function() rstantools::posterior_epred(small, new, cores = 2)),
      seconds(function() tcrossprod(theta, new))
    )
  })
  ratio <- apply(pairs[1:2, ], 1, stats::median) /
    apply(pairs[3:4, ], 1, stats::median)
  data.frame(columns = d, elapsed = ratio[[1]], processor = ratio[[2]])
}))
rows$target <- "<= 2"
say("\nposterior_epred() of 1,000 rows and 4,000 draws over one tcrossprod() of that
size, two threads each:\n")
say(paste(knitr::kable(rows, digits = 2), collapse = "\n"))
