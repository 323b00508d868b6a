# Random slopes of a covariate in raw units: how well chains mix, over 20 seeds,
# where the covariate is far from 0, centred, and where 0 is its least value.
#
#   Rscript bench/slopes.R [seeds]
#
# Prints a table of the worst and best over seeds: effective draws (bulk, tail),
# R-hat, and CPU seconds of a call in units of one lme4::lmer() of the same.
source("bench/common.R")

seeds <- seq_len(as.integer(c(commandArgs(TRUE), "20")[[1]]))

orthodont <- as.data.frame(nlme::Orthodont)
orthodont$Subject <- factor(as.character(orthodont$Subject))
grown <- function() {
  set.seed(4)
  d <- expand.grid(a = 0:9, Subject = 1:60)
  d$y <- 2 + (1 + rnorm(60, 0, 0.5)[d$Subject]) * d$a + rnorm(nrow(d))
  d
}
bench_start("slopes", "Random slopes of covariates in raw units")
cases <- list(
  "Orthodont, age 8 to 14" = list(
    distance ~ a * Sex + (1 + a | Subject),
    transform(orthodont, a = age)
  ),
  "Orthodont, age - 11" = list(
    distance ~ a * Sex + (1 + a | Subject),
    transform(orthodont, a = age - 11)
  ),
  "lines from one point, 0 to 9" = list(y ~ a + (1 + a | Subject), grown())
)
cpu <- function(code) {
  time <- system.time(code)
  sum(time[c("user.self", "sys.self")])
}
rows <- lapply(names(cases), function(name) {
  case <- cases[[name]]
  lmer <- stats::median(replicate(5, cpu(suppressWarnings(suppressMessages(
    lme4::lmer(case[[1]], case[[2]])
  )))))
  each <- vapply(seeds, function(seed) {
    seconds <- cpu(
      fit <- tall_glmer(case[[1]], case[[2]], seed = seed, refresh = 0)
    )
    found <- posterior::summarise_draws(posterior::as_draws_array(fit))
    c(
      min(found$ess_bulk), min(found$ess_tail), max(found$rhat),
      seconds / lmer
    )
  }, numeric(4))
  data.frame(
    case = name,
    seeds = length(seeds),
    least_bulk = round(min(each[1, ])),
    median_bulk = round(stats::median(each[1, ])),
    least_tail = round(min(each[2, ])),
    worst_rhat = round(max(each[3, ]), 3),
    lmers = round(stats::median(each[4, ]), 1)
  )
})
say_table(do.call(rbind, rows))
