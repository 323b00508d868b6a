# Are fits of y | cens(status, y2) ~ x of counts and of Student responses
# calibrated, and do their chains agree?
#
#   Rscript bench/censored.R [sbc] [seeds]
#
# sbc: simulation-based calibration, 200 replications of 150 rows, a third each
# seen, censored on one side, and between two limits; 6 minutes. seeds: the worst
# of 20 seeds of 400 rows; 5 minutes.
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))

args <- commandArgs(TRUE)
wanted <- if (length(args) > 0) args else c("sbc", "seeds")
bench_start("censored", "Censored counts and outliers", paste(c("censored.R", args), collapse = " "))

laws <- list(
  poisson = list(family = poisson(), is_count = TRUE, draw = function(eta, s) rpois(length(eta), exp(eta))),
  `negative binomial` = list(family = neg_binomial_2(), aux = TRUE, is_count = TRUE,
    draw = function(eta, s) rnbinom(length(eta), size = s, mu = exp(eta))),
  student = list(family = student(df = 4), aux = TRUE,
    draw = function(eta, s) eta + s * rt(length(eta), 4))
)

# What is said of y: limits that know nothing of it.
censor <- function(y, is_count) {
  n <- length(y)
  limit <- if (is_count) rpois(n, 3) else rnorm(n)
  width <- if (is_count) 1 + rpois(n, 2) else rexp(n)
  kind <- sample(c("seen", "beyond", "between"), n, TRUE)
  # counts are said to lie beyond a limit, or not; between steps of a ladder
  low <- if (is_count) (width + 1) * floor(y / (width + 1)) - 1 else width * floor(y / width)
  high <- if (is_count) low + width + 1 else low + width
  status <- ifelse(kind == "seen", "none", ifelse(kind == "between", "interval",
    ifelse(y > limit, "right", "left")))
  # P(low < Y <= high), which from below 0 on is P(Y <= high)
  is_low <- is_count & kind == "between" & low < 0
  data.frame(
    y = ifelse(is_low, high, ifelse(kind == "seen", y, ifelse(kind == "between", low, limit))),
    y2 = high,
    status = ifelse(is_low, "left", status)
  )
}

simulate <- function(law, n) {
  x <- cbind(one = 1, a = rnorm(n))
  beta <- rnorm(2, 0, c(1, 0.7))
  s <- rgamma(1, 9, 6)
  y <- law$draw(drop(x %*% beta), s)
  d <- cbind(censor(y, isTRUE(law$is_count)), x)
  list(data = d, truth = c(beta, if (isTRUE(law$aux)) s))
}

fit_law <- function(law, d, seed, ...) {
  tall_glm(
    y | cens(status, y2) ~ 0 + one + a, d, law$family,
    prior = prior_normal(0, c(1, 0.7)), prior_aux = prior_gamma(9, 6),
    seed = seed, ...
  )
}

uniform_p <- function(ranks) {
  apply(ranks, 1, function(r) {
    suppressWarnings(chisq.test(tabulate(1 + floor(r / 10), 10))$p.value)
  })
}

if ("sbc" %in% wanted) {
  say("\n## Calibration\n")
  say("Ranks among 99 draws, 200 replications of 150 rows; p of chi-squared in ten bins.\n")
  table <- NULL
  for (name in names(laws)) {
    law <- laws[[name]]
    ranks <- vapply(1:200, function(seed) {
      set.seed(seed)
      made <- simulate(law, 150)
      draws <- as.matrix(fit_law(law, made$data, seed, iter = 1500, chains = 1))
      thin <- round(seq(1, nrow(draws), length.out = 99))
      colSums(draws[thin, ] < rep(made$truth, each = length(thin)))
    }, numeric(if (isTRUE(law$aux)) 3 else 2))
    p <- format(round(uniform_p(ranks), 2))
    table <- rbind(table, data.frame(
      law = name, one = p[[1]], a = p[[2]], parameter = if (length(p) > 2) p[[3]] else "-"
    ))
  }
  say_table(table)
}

if ("seeds" %in% wanted) {
  say("\n## Twenty seeds\n")
  say("400 rows, 4 chains of 1,000: the largest R-hat and the least effective sample size.\n")
  table <- NULL
  for (name in names(laws)) {
    law <- laws[[name]]
    set.seed(1)
    made <- simulate(law, 400)
    found <- vapply(1:20, function(seed) {
      s <- summary(fit_law(law, made$data, seed))$table
      c(max(s$rhat), min(s$ess_bulk, s$ess_tail))
    }, numeric(2))
    table <- rbind(table, data.frame(
      law = name,
      censored = paste(round(100 * mean(made$data$status != "none")), "%"),
      rhat = format(round(max(found[1, ]), 3)),
      ess = format(round(min(found[2, ])))
    ))
  }
  say_table(table)
}
