# Are fits of list(y ~ x, sigma ~ z) and of zero inflation calibrated, do their
# chains agree, and what do they cost beside mgcv's gaulss() and ziplss()?
#
#   Rscript bench/dpar.R [sbc] [seeds] [speed]
#
# sbc: simulation-based calibration of each response, 200 replications of 150
# rows, and of two by Langevin steps on 4,000 rows; 5 minutes. seeds: the worst
# of 20 seeds on few rows, in raw units, with zeros and outliers; 4 minutes.
# speed: 10^6 rows, in CPU seconds in turn, and how far means are from the
# maximum of the likelihood; 3 minutes.
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))

args <- commandArgs(TRUE)
wanted <- if (length(args) > 0) args else c("sbc", "seeds", "speed")
own <- if (length(wanted) == 1) paste0("dpar-", wanted) else "dpar"
bench_start(own, "Formulas of two parameters", paste(c("dpar.R", args), collapse = " "))

big <- function(x) format(x, big.mark = ",", scientific = FALSE)

# list(family, dpar, draw(mu, second, s)), s of what else there is
laws <- list(
  gaussian = list(family = gaussian(), dpar = "sigma",
    draw = function(a, b, s) rnorm(length(a), a, exp(b))),
  student = list(family = student(df = 4), dpar = "sigma",
    draw = function(a, b, s) a + exp(b) * rt(length(a), 4)),
  `negative binomial` = list(family = neg_binomial_2(), dpar = "shape",
    draw = function(a, b, s) rnbinom(length(a), size = exp(b), mu = exp(a))),
  gamma = list(family = Gamma("log"), dpar = "shape",
    draw = function(a, b, s) pmax(rgamma(length(a), exp(b), exp(b - a)), 1e-300)),
  beta = list(family = beta_regression(), dpar = "phi",
    draw = function(a, b, s) {
      p <- plogis(a)
      pmin(pmax(rbeta(length(a), exp(b) * p, exp(b) * (1 - p)), 1e-12), 1 - 1e-12)
    }),
  `zero-inflated Poisson` = list(family = zero_inflated_poisson(), dpar = "zi",
    draw = function(a, b, s) (runif(length(a)) > plogis(b)) * rpois(length(a), exp(a))),
  `zero-inflated negative binomial` = list(family = zero_inflated_negbinomial(), dpar = "zi", has_size = TRUE,
    draw = function(a, b, s) (runif(length(a)) > plogis(b)) * rnbinom(length(a), size = s, mu = exp(a)))
)

formulas <- function(law, mu, own) {
  list(mu, as.formula(call("~", as.name(law$dpar), own[[2]]), globalenv()))
}

# ---- calibration -------------------------------------------------------------

one_replication <- function(law, seed, n) {
  set.seed(seed)
  d <- data.frame(one = 1, a = rnorm(n), b = runif(n, -1, 1))
  beta <- rnorm(2, c(1, 0), c(0.5, 0.5))
  gamma <- rnorm(2, c(if (law$dpar == "phi") 1.5 else 0, 0), c(0.5, 0.5))
  s <- rgamma(1, 9, 6)
  d$y <- law$draw(beta[[1]] + beta[[2]] * d$a, gamma[[1]] + gamma[[2]] * d$b, s)
  has_size <- isTRUE(law$has_size)
  more <- if (has_size) list(prior_aux = prior_gamma(9, 6))
  fit <- do.call(tall_glm, c(list(
    formulas(law, y ~ 0 + one + a, ~ 0 + one + b), d, law$family,
    prior = setNames(list(
      prior_normal(c(1, 0), 0.5),
      prior_normal(c(if (law$dpar == "phi") 1.5 else 0, 0), 0.5)
    ), c("mu", law$dpar)),
    iter = 1500, chains = 1, seed = seed, refresh = 0
  ), more))
  draws <- as.matrix(fit)
  thin <- round(seq(1, nrow(draws), length.out = 99))
  truth <- c(beta, gamma, if (has_size) s)
  colSums(draws[thin, ] < rep(truth, each = length(thin)))
}

calibrate <- function() {
  say("\n## Calibration\n")
  say("Ranks among 99 draws, 200 replications; p of chi-squared in ten bins.\n")
  table <- NULL
  for (n in c(150, 4000)) {
    for (name in names(laws)[if (n == 150) TRUE else c(1, 6)]) {
      law <- laws[[name]]
      ranks <- vapply(1:200, function(seed) one_replication(law, seed, n),
        numeric(4 + isTRUE(law$has_size)))
      p <- format(round(apply(ranks, 1, function(r) {
        suppressWarnings(chisq.test(tabulate(1 + floor(r / 10), 10))$p.value)
      }), 2), nsmall = 2)
      table <- rbind(table, data.frame(
        law = name, rows = big(n), one = p[[1]], a = p[[2]],
        `second, one` = p[[3]], `second, b` = p[[4]],
        size = if (length(p) > 4) p[[5]] else "-", check.names = FALSE
      ))
    }
  }
  say_table(table)
}

# ---- seeds -------------------------------------------------------------------

worst_of_seeds <- function() {
  say("\n## Twenty seeds\n")
  set.seed(1)
  made <- function(law, n, a = 0.5, b = 0.3) {
    d <- data.frame(x = rnorm(n), z = rnorm(n))
    d$y <- law$draw(a + 0.6 * d$x, b + 0.5 * d$z, 1.5)
    d
  }
  fit_of <- function(law, d, mu = y ~ x, own = ~z) {
    function(seed) tall_glm(formulas(law, mu, own), d, law$family, seed = seed, refresh = 0)
  }
  raw <- made(laws$gaussian, 400)
  raw <- data.frame(y = 1e4 + 50 * raw$y, x = 1e5 + 300 * raw$x, z = 0.01 * raw$z - 40)
  far <- made(laws$gaussian, 300)
  far$y[[7]] <- 40
  empty <- made(laws[[6]], 500, b = 4)
  plenty <- made(laws[[6]], 500, b = -5)
  cars <- transform(cars, y = dist, x = speed, z = speed)
  problems <- c(
    lapply(setNames(names(laws), paste(names(laws), "200 rows", sep = ", ")), function(name) {
      fit_of(laws[[name]], made(laws[[name]], 200, b = if (name == "beta") 2 else 0.3))
    }),
    lapply(setNames(names(laws)[c(1, 3, 6, 7)], paste(names(laws)[c(1, 3, 6, 7)], "20,000 rows", sep = ", ")), function(name) {
      fit_of(laws[[name]], made(laws[[name]], 20000))
    }),
    list(
      `raw units` = fit_of(laws$gaussian, raw),
      `an outlier, gaussian` = fit_of(laws$gaussian, far),
      `an outlier, student` = fit_of(laws$student, far),
      `cars` = fit_of(laws$gaussian, cars),
      `98 % zeros` = fit_of(laws[[6]], empty),
      `hardly a zero too many` = fit_of(laws[[6]], plenty)
    )
  )
  table <- do.call(rbind, lapply(names(problems), function(name) {
    warned <- 0
    fits <- lapply(1:20, function(seed) {
      withCallingHandlers(problems[[name]](seed), warning = function(w) {
        warned <<- warned + 1
        invokeRestart("muffleWarning")
      })
    })
    worst <- function(f, how) how(vapply(fits, function(fit) how(apply(fit$draws, 3, f)), 0))
    data.frame(
      problem = name,
      rhat = format(round(worst(posterior::rhat, max), 3), nsmall = 3),
      ess = big(round(worst(posterior::ess_bulk, min))),
      tail = big(round(worst(posterior::ess_tail, min))),
      warnings = warned,
      kernel = paste(sort(unique(vapply(fits, function(fit) fit$kernel$name, ""))), collapse = ", ")
    )
  }))
  say("The largest R-hat and the least effective draws of 4,000, over parameters and seeds.\n")
  say_table(table)
}

# ---- speed -------------------------------------------------------------------

cpu <- function(code) {
  gc()
  sum(system.time(code)[c("user.self", "sys.self")])
}

compare_speed <- function(n = 1e6) {
  say("\n## ", big(n), " rows\n")
  set.seed(2)
  d <- data.frame(x1 = rnorm(n), x2 = rnorm(n), x3 = rnorm(n))
  d$y <- rnorm(n, 1 + 0.5 * d$x1 - 0.3 * d$x2, exp(0.2 + 0.4 * d$x1 - 0.2 * d$x3))
  d$count <- (runif(n) > plogis(-1 + 0.7 * d$x3)) * rpois(n, exp(0.5 + 0.4 * d$x1 - 0.2 * d$x2))
  ours <- list(
    gaussian = function(seed) tall_glm(list(y ~ x1 + x2, sigma ~ x1 + x3), d, seed = seed, refresh = 0),
    `zero-inflated Poisson` = function(seed) {
      tall_glm(list(count ~ x1 + x2, zi ~ x3), d, zero_inflated_poisson(), seed = seed, refresh = 0)
    }
  )
  theirs <- list(
    # of mgcv, whose second predictor is that of 1 / (sigma - 0.01)
    gaussian = function() mgcv::gam(list(y ~ x1 + x2, ~ x1 + x3), family = mgcv::gaulss(), data = d)
  )
  table <- NULL
  for (name in names(ours)) {
    seconds <- matrix(NA_real_, 3, 2)
    for (k in 1:3) {
      seconds[k, 1] <- cpu(fit <- ours[[name]](k))
      if (!is.null(theirs[[name]])) {
        seconds[k, 2] <- cpu(other <- theirs[[name]]())
      }
    }
    space <- asNamespace("tallbayes")
    model <- space$build_model(fit$blueprint, space$whole_rows(fit$rows))
    at <- drop(space$model_variables(model, find_mode(model)$estimate))
    sd <- sqrt(diag(vcov.of(fit)))
    table <- rbind(table, data.frame(
      model = name,
      `CPU s` = format(round(median(seconds[, 1]), 2)),
      `of mgcv` = if (anyNA(seconds[, 2])) "-" else format(round(median(seconds[, 1] / seconds[, 2]), 2)),
      `off the mode, sd` = format(round(max(abs(colMeans(as.matrix(fit)) - at) / sd), 2)),
      plan = fit$plan, check.names = FALSE
    ))
  }
  say_table(table)
}

vcov.of <- function(fit) stats::cov(as.matrix(fit))

for (part in wanted) {
  switch(part, sbc = calibrate(), seeds = worst_of_seeds(), speed = compare_speed())
}
