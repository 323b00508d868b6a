# Random slopes of a covariate in raw units: how well chains mix, over 20 seeds,
# where the covariate is far from 0, centred, and where 0 is its least value.
#
#   Rscript bench/slopes.R [seeds] [seeds of flights]
#
# Prints a table of the worst and best over seeds: effective draws (bulk, tail),
# R-hat, and CPU seconds of a call in units of one lme4::lmer() of the same; of
# flights by plane (package nycflights13) in units of one glm() without groups.
# A part whose package is not there, or of 0 seeds, is left out.
source("bench/common.R")

seeds <- as.integer(c(commandArgs(TRUE), "20", "4")[1:2])
if (length(commandArgs(TRUE)) == 1) seeds[[2]] <- min(4L, seeds[[1]])

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
# Least bulk and tail effective draws, largest R-hat, CPU seconds by `unit`: a
# row for each seed.
judge <- function(case, n_seed, unit, ...) {
  t(vapply(seq_len(n_seed), function(seed) {
    seconds <- cpu(
      fit <- tall_glmer(case[[1]], case[[2]], ..., seed = seed, refresh = 0)
    )
    found <- posterior::summarise_draws(posterior::as_draws_array(fit))
    c(min(found$ess_bulk), min(found$ess_tail), max(found$rhat), seconds / unit)
  }, numeric(4)))
}
worst <- function(name, each, unit) {
  out <- data.frame(
    case = name,
    seeds = nrow(each),
    least_bulk = round(min(each[, 1])),
    median_bulk = round(stats::median(each[, 1])),
    least_tail = round(min(each[, 2])),
    worst_rhat = round(max(each[, 3]), 3)
  )
  out[[unit]] <- round(stats::median(each[, 4]), 1)
  out
}

if (seeds[[1]] > 0 && requireNamespace("lme4", quietly = TRUE)) {
  say_table(do.call(rbind, lapply(names(cases), function(name) {
    case <- cases[[name]]
    lmer <- stats::median(replicate(5, cpu(suppressWarnings(suppressMessages(
      lme4::lmer(case[[1]], case[[2]])
    )))))
    worst(name, judge(case, seeds[[1]], lmer), "lmers")
  })))
}

if (seeds[[2]] > 0 && requireNamespace("nycflights13", quietly = TRUE)) {
  flights <- as.data.frame(nycflights13::flights)
  flights <- flights[!is.na(flights$arr_delay), ]
  flights$late <- as.integer(flights$arr_delay > 15)
  set.seed(1)
  some <- sample(unique(flights$tailnum), 1000)
  tables <- list(
    "flights of 1,000 planes" = flights[flights$tailnum %in% some, ],
    "flights of all planes" = flights
  )
  say(
    "\n`late ~ hour + (1 + hour | tailnum)`, binomial, hour 5 to 23; in units of\n",
    "one `glm(late ~ hour)` of the same rows.\n"
  )
  say_table(do.call(rbind, lapply(names(tables), function(name) {
    d <- tables[[name]]
    glm <- cpu(stats::glm(late ~ hour, binomial(), d))
    case <- list(late ~ hour + (1 + hour | tailnum), d)
    each <- judge(case, seeds[[2]], glm, family = binomial())
    out <- worst(name, each, "glms")
    cbind(
      out[1:2],
      rows = nrow(d),
      planes = length(unique(d$tailnum)),
      out[-(1:2)],
      cpu_seconds = round(stats::median(each[, 4]) * glm, 1)
    )
  })))
}
