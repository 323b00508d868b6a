# Are fits of tall_surv() calibrated, do their chains agree, and what do they
# cost beside survreg() and coxph()?
#
#   Rscript bench/survival.R [sbc] [seeds] [sets] [cox] [strata] [speed] [large]
#     [frailty]
#
# sbc: simulation-based calibration of each law, and of hazards in pieces, 200
# replications; 4 minutes. seeds: the worst of 20 seeds on survival's lung, rows
# with few events, and censored numbers; 2 minutes. sets: data of the survival
# package in raw units, four laws and pieces, five seeds, beside survreg() and
# coxph(); 6 minutes. cox: how far hazards in pieces are from coxph() as pieces
# become more; a minute. strata: those of strata beside coxph(), two real sets
# and 200,000 rows of three hazards, from a data frame, a stream and a database,
# and twenty seeds; two minutes. speed: 10^6 rows x 5 with 32 % events, in CPU
# seconds in turn; 3 minutes. large: 10^7 rows, and the memory that they take; 4
# minutes. frailty: 10,000 groups.
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))

args <- commandArgs(TRUE)
wanted <- if (length(args) > 0) args else c("sbc", "seeds", "speed")
own <- if (length(wanted) == 1) paste0("survival-", wanted) else "survival"
bench_start(own, "Times to an event", paste(c("survival.R", args), collapse = " "))

laws <- c("exp", "weibull", "weibull-aft", "lognormal", "loglogistic")
Surv <- survival::Surv

# ---- calibration -------------------------------------------------------------

# Times of a law at linear predictors, unit 1.
draw_times <- function(law, eta, s) {
  u <- exp(eta)
  n <- length(eta)
  switch(
    law,
    exp = rexp(n, u),
    weibull = (rexp(n) / u)^(1 / s),
    `weibull-aft` = u * rexp(n)^(1 / s),
    lognormal = u * exp(s * rnorm(n)),
    loglogistic = u * exp(rlogis(n) / s)
  )
}

# Rows of every kind: censored on the right, seen late, between visits, early.
censor_times <- function(time, kind) {
  n <- length(time)
  # nothing that the times decide
  last <- runif(n, 0.5, 5)
  if (kind == "right") {
    entry <- ifelse(runif(n) < 0.4, 0.3 * last * runif(n), 0)
    keep <- time > entry
    d <- data.frame(entry, time = pmin(time, last), event = time <= last)
    return(list(rows = keep & last > entry, data = d,
      formula = Surv(entry, time, event) ~ 0 + one + a + b))
  }
  width <- 0.8
  low <- width * floor(time / width)
  high <- low + width
  late <- time > last
  low <- ifelse(late, last, low)
  high <- ifelse(late, NA, high)
  list(
    rows = rep(TRUE, n),
    data = data.frame(low, high),
    formula = Surv(low, high, type = "interval2") ~ 0 + one + a + b
  )
}

one_replication <- function(law, kind, seed, n = 150) {
  set.seed(seed)
  x <- cbind(one = 1, a = rnorm(n), b = runif(n, -1, 1))
  beta <- rnorm(3, 0, c(1, 0.7, 0.7))
  s <- rgamma(1, 9, 6)
  eta <- drop(x %*% beta)
  seen <- censor_times(draw_times(law, eta, s), kind)
  d <- cbind(seen$data, x)[seen$rows, ]
  fit <- tall_surv(
    seen$formula, d, law,
    prior = prior_normal(0, c(1, 0.7, 0.7)),
    prior_aux = prior_gamma(9, 6),
    unit = if (law %in% c("exp", "weibull")) 1,
    iter = 1500, chains = 1, seed = seed
  )
  draws <- as.matrix(fit)
  thin <- round(seq(1, nrow(draws), length.out = 99))
  truth <- c(beta, if (law != "exp") s)
  colSums(draws[thin, ] < rep(truth, each = length(thin)))
}

# A hazard in pieces, whose basis must not know the data that are drawn: that of
# other rows takes its place.
one_of_pieces <- function(seed, n = 150, cuts = c(0.2, 0.5, 1, 1.8)) {
  set.seed(seed)
  x <- cbind(one = 1, a = rnorm(n), b = runif(n, -1, 1))
  beta <- rnorm(3, 0, c(1, 0.7, 0.7))
  basis <- pieces_basis(cuts, rexp(500), rep(1, 500), 3)
  utils::assignInNamespace("walk_basis", function(...) basis, "tallbayes")
  on.exit(utils::assignInNamespace("walk_basis", pieces_basis, "tallbayes"))
  sd <- rexp(1)
  step <- sd * rnorm(length(cuts))
  rate <- exp(drop(basis %*% step))
  total <- c(0, cumsum(diff(c(0, cuts)) * rate[-length(rate)]))
  goal <- rexp(n) / exp(drop(x %*% beta))
  at <- findInterval(goal, total)
  seen <- censor_times(c(0, cuts)[at] + (goal - total[at]) / rate[at], "right")
  d <- cbind(seen$data, x)[seen$rows, ]
  fit <- tall_surv(
    seen$formula, d, "piecewise",
    prior = prior_normal(0, c(1, 0.7, 0.7)), pieces = cuts,
    iter = 1500, chains = 1, seed = seed
  )
  draws <- as.matrix(fit)
  thin <- round(seq(1, nrow(draws), length.out = 99))
  truth <- c(beta, step, sd)
  colSums(draws[thin, ] < rep(truth, each = length(thin)))
}

# The same of two strata, with walks of their own.
one_of_strata <- function(seed, n = 200, cuts = c(0.2, 0.6, 1.5)) {
  set.seed(seed)
  x <- cbind(a = rnorm(n), b = rbinom(n, 1, 0.4))
  beta <- rnorm(3, 0, c(0.7, 1, 1))
  basis <- pieces_basis(cuts, rexp(500), rep(1, 500), 3)
  utils::assignInNamespace("walk_basis", function(...) basis, "tallbayes")
  on.exit(utils::assignInNamespace("walk_basis", pieces_basis, "tallbayes"))
  sd <- rexp(1)
  step <- sd * rnorm(2 * length(cuts))
  goal <- rexp(n) / exp(beta[[1]] * x[, "a"] + beta[2:3][x[, "b"] + 1])
  time <- numeric(n)
  for (g in 0:1) {
    own <- which(x[, "b"] == g)
    rate <- exp(drop(basis %*% step[g * length(cuts) + seq_along(cuts)]))
    total <- c(0, cumsum(diff(c(0, cuts)) * rate[-length(rate)]))
    at <- findInterval(goal[own], total)
    time[own] <- c(0, cuts)[at] + (goal[own] - total[at]) / rate[at]
  }
  seen <- censor_times(time, "right")
  d <- cbind(seen$data, x)[seen$rows, ]
  fit <- tall_surv(
    Surv(entry, time, event) ~ 0 + a + strata(b), d, "piecewise",
    prior = prior_normal(0, c(0.7, 1, 1)), pieces = cuts,
    iter = 1500, chains = 1, seed = seed
  )
  draws <- as.matrix(fit)
  thin <- round(seq(1, nrow(draws), length.out = 99))
  truth <- c(beta, step, sd)
  colSums(draws[thin, ] < rep(truth, each = length(thin)))
}

pieces_basis <- getFromNamespace("walk_basis", "tallbayes")
n_pieces <- getFromNamespace("n_pieces", "tallbayes")

uniform_p <- function(ranks) {
  apply(ranks, 1, function(r) {
    suppressWarnings(chisq.test(tabulate(1 + floor(r / 10), 10))$p.value)
  })
}

calibrate <- function() {
  say("\n## Calibration\n")
  say("Ranks among 99 draws, 200 replications of 150 rows; p of chi-squared in ten bins.\n")
  table <- NULL
  for (law in laws) {
    for (kind in c("right", "between")) {
      ranks <- vapply(
        1:200,
        function(seed) one_replication(law, kind, seed),
        numeric(if (law == "exp") 3 else 4)
      )
      p <- uniform_p(ranks)
      table <- rbind(table, data.frame(
        law, rows = kind,
        one = format(round(p[[1]], 2)),
        a = format(round(p[[2]], 2)),
        b = format(round(p[[3]], 2)),
        parameter = if (law == "exp") "-" else format(round(p[[4]], 2))
      ))
    }
  }
  say_table(table)
  p <- uniform_p(vapply(1:200, one_of_pieces, numeric(8)))
  say("\nA hazard in five pieces, rows as \"right\":\n")
  names <- c("one", "a", "b", paste("step", 1:4), "sd of steps")
  say_table(data.frame(parameter = names, p = format(round(p, 2))))
  p <- uniform_p(vapply(1:200, one_of_strata, numeric(10)))
  say("\nHazards of two strata in four pieces each:\n")
  names <- c("a", "level 1", "level 2", paste("step", 1:6), "sd of steps")
  say_table(data.frame(parameter = names, p = format(round(p, 2))))
}

# ---- seeds -------------------------------------------------------------------

worst_of_seeds <- function() {
  say("\n## Twenty seeds\n")
  set.seed(1)
  few <- data.frame(x = rnorm(2000), g = rep(1:2, c(1990, 10)))
  few$time <- rexp(2000, 0.001 * exp(few$x))
  few$event <- few$time < 20
  few$time <- pmin(few$time, 20)
  say("Rows with few events: ", sum(few$event), " of 2,000.\n")
  limits <- data.frame(x = rnorm(300))
  limits$y <- limits$x + rnorm(300)
  limits$side <- ifelse(limits$y < 0.5, "left", "none")
  limits$y <- pmax(limits$y, 0.5)
  problems <- c(
    lapply(setNames(laws, paste("lung,", laws)), function(law) {
      function(seed) {
        tall_surv(Surv(time, status == 2) ~ age + sex + ph.ecog, survival::lung, law, seed = seed)
      }
    }),
    list(
      `lung, weibull, unit = 1` = function(seed) {
        tall_surv(Surv(time, status == 2) ~ age + sex + ph.ecog, survival::lung, "weibull", unit = 1, seed = seed)
      },
      `lung, piecewise` = function(seed) {
        tall_surv(Surv(time, status == 2) ~ age + sex + ph.ecog, survival::lung, seed = seed)
      },
      `few events, piecewise` = function(seed) {
        tall_surv(Surv(time, event) ~ x, few, seed = seed)
      },
      `two events, piecewise` = function(seed) {
        tall_surv(Surv(time, event) ~ x, transform(few[1:200, ], event = seq_along(x) %in% c(3, 9)), seed = seed)
      },
      `few events, weibull` = function(seed) {
        tall_surv(Surv(time, event) ~ x, few, "weibull", seed = seed)
      },
      `few events, exp` = function(seed) {
        tall_surv(Surv(time, event) ~ x, few, "exp", seed = seed)
      },
      `numbers, two thirds censored` = function(seed) {
        tall_glm(y | cens(side) ~ x, limits, seed = seed)
      }
    )
  )
  table <- do.call(rbind, lapply(names(problems), function(name) {
    fits <- lapply(1:20, problems[[name]])
    worst <- function(f, how) how(vapply(fits, function(fit) how(apply(fit$draws, 3, f)), 0))
    data.frame(
      problem = name,
      rhat = format(round(worst(posterior::rhat, max), 3), nsmall = 3),
      ess = big(round(worst(posterior::ess_bulk, min))),
      tail = big(round(worst(posterior::ess_tail, min))),
      plan = fits[[1]]$kernel$name
    )
  }))
  say("The largest R-hat and the least effective draws of 4,000, over parameters and seeds.\n")
  say_table(table)
}

big <- function(x) format(x, big.mark = ",", scientific = FALSE)

# ---- data of survival --------------------------------------------------------

compare_sets <- function() {
  say("\n## Data of the survival package\n")
  of <- list(
    veteran = list(Surv(time, status) ~ trt + celltype + karno + diagtime + age + prior, survival::veteran),
    ovarian = list(Surv(futime, fustat) ~ age + resid.ds + rx, survival::ovarian),
    pbc = list(Surv(time, status == 2) ~ age + edema + log(bili) + albumin, survival::pbc),
    gbsg = list(Surv(rfstime, status) ~ age + meno + size + grade + nodes + pgr + er + hormon, survival::gbsg),
    rotterdam = list(Surv(dtime, death) ~ age + meno + size + grade + nodes + hormon, survival::rotterdam),
    mgus2 = list(Surv(futime, death) ~ age + sex + hgb + creat, subset(survival::mgus2, futime > 0)),
    colon = list(Surv(time, status) ~ rx + sex + age + nodes, subset(survival::colon, etype == 2)),
    nwtco = list(Surv(edrel, rel) ~ stage + histol + age, transform(survival::nwtco, stage = factor(stage))),
    heart = list(Surv(start, stop, event) ~ age + surgery + transplant, survival::heart),
    kidney = list(Surv(time, status) ~ age + sex + disease, survival::kidney),
    nafld1 = list(Surv(futime, status) ~ age + male + bmi, subset(survival::nafld1, futime > 0)),
    retinopathy = list(Surv(futime, status) ~ laser + type + trt + risk, survival::retinopathy)
  )
  dists <- c(weibull = "weibull", exp = "exponential", lognormal = "lognormal", loglogistic = "loglogistic", piecewise = "")
  table <- NULL
  for (name in names(of)) {
    formula <- of[[name]][[1]]
    data <- of[[name]][[2]]
    for (law in names(dists)) {
      fits <- lapply(1:5, function(seed) {
        suppressWarnings(tall_surv(formula, data, law, seed = seed))
      })
      worst <- function(f, how) how(vapply(fits, function(fit) how(apply(fit$draws, 3, f)), 0))
      z <- if (law == "piecewise") {
        theirs <- coef(survival::coxph(formula, data))
        max(abs((coef(fits[[1]])[names(theirs)] - theirs) / sqrt(diag(vcov(fits[[1]]))[names(theirs)])))
      } else if (name == "heart") {
        NA # entries are not of survreg()
      } else {
        other <- survival::survreg(formula, data, dist = dists[[law]])
        theirs <- coef(other) / if (law %in% c("weibull", "exp")) -other$scale else 1
        max(abs((coef(fits[[1]]) - theirs) / sqrt(diag(vcov(fits[[1]]))))[-1])
      }
      table <- rbind(table, data.frame(
        data = name, law,
        rows = big(nobs(fits[[1]])),
        rhat = format(round(worst(posterior::rhat, max), 3), nsmall = 3),
        ess = big(round(worst(posterior::ess_bulk, min))),
        `off by` = if (is.na(z)) "-" else format(round(z, 2), nsmall = 2),
        kernels = paste(sort(unique(vapply(fits, function(fit) fit$kernel$name, ""))), collapse = ", "),
        check.names = FALSE
      ))
    }
  }
  say("Five seeds: the largest R-hat, the least effective draws of 4,000; the largest difference of a coefficient from survreg()'s, of pieces from coxph()'s, in posterior sds (default priors).\n")
  say_table(table)
}

# ---- beside Cox --------------------------------------------------------------

compare_cox <- function() {
  say("\n## Hazards in pieces beside Cox's model\n")
  set.seed(3)
  n <- 5000
  d <- data.frame(x = rnorm(n), z = rbinom(n, 1, 0.4))
  time <- (rexp(n) / exp(0.7 * d$x - 0.4 * d$z))^(1 / 1.5)
  last <- rexp(n, 0.5)
  d$time <- pmin(time, last)
  d$event <- time <= last
  cases <- list(
    `simulated, no ties` = list(Surv(time, event) ~ x + z, d),
    colon = list(Surv(time, status) ~ rx + sex + age + node4, subset(survival::colon, etype == 2)),
    rotterdam = list(Surv(dtime, death) ~ age + size + grade + hormon, survival::rotterdam)
  )
  table <- NULL
  for (name in names(cases)) {
    formula <- cases[[name]][[1]]
    data <- cases[[name]][[2]]
    cox <- survival::coxph(formula, data, ties = "breslow")
    efron <- survival::coxph(formula, data)
    sds <- sqrt(diag(vcov(cox)))
    off <- function(pieces) {
      # the mode, which Monte Carlo errors are not of
      fit <- tall_surv(
        formula, data, "piecewise", prior = NULL, prior_intercept = NULL,
        prior_smooth = prior_normal(0, 100), pieces = pieces,
        iter = 4000, chains = 4, seed = 1
      )
      max(abs(coef(fit)[names(coef(cox))] - coef(cox)) / sds)
    }
    table <- rbind(table, data.frame(
      data = name,
      events = big(cox$nevent),
      `5` = off(5), `10` = off(10), `25` = off(25), `50` = off(50), `100` = off(100), `199` = off(199),
      Efron = max(abs(coef(efron) - coef(cox)) / sds),
      check.names = FALSE
    ))
  }
  table[3:9] <- lapply(table[3:9], function(x) format(round(x, 3)))
  say("The largest difference of a posterior mean from the coefficient of coxph(ties = \"breslow\"), in its standard errors, by the number of pieces, flat priors and steps with standard deviations up to 100 (16,000 draws: Monte Carlo error .01); the last column: Efron's.\n")
  say_table(table)
}

# ---- groups ------------------------------------------------------------------

time_frailties <- function(n_group = 1e4, n = 1e5) {
  say("\n## Frailties\n")
  set.seed(1)
  d <- data.frame(g = rep(seq_len(n_group), each = n / n_group), x = rnorm(n))
  eta <- 0.3 + 0.5 * d$x + rnorm(n_group, sd = 0.7)[d$g]
  time <- (rexp(n) / exp(eta))^(1 / 1.4)
  last <- runif(n)
  d$time <- pmin(time, last)
  d$event <- time <= last
  seconds <- vapply(1:3, function(round) {
    cpu(fit <<- tall_surv(Surv(time, event) ~ x + (1 | g), d, "weibull", seed = 1))
  }, 0)
  found <- posterior::summarise_draws(fit$draws, "mean", "sd", "rhat", "ess_bulk")
  say(big(n), " rows in ", big(n_group), " groups, a Weibull law: CPU s ", format(round(median(seconds), 1), nsmall = 1), ", R-hat up to ", round(max(as.numeric(found$rhat)), 3), ", effective from ", round(min(as.numeric(found$ess_bulk))), " of 4,000. The data have sd .7, slope .5, shape 1.4.\n")
  say_table(data.frame(
    variable = found$variable,
    mean = format(round(as.numeric(found$mean), 3)),
    sd = format(round(as.numeric(found$sd), 4))
  ))
}

# ---- speed -------------------------------------------------------------------

cpu <- function(code) sum(system.time(code)[1:2])

compare_speed <- function(n = 1e6, rounds = 3) {
  say("\n## A million rows\n")
  set.seed(2)
  d <- as.data.frame(matrix(rnorm(5 * n), n, dimnames = list(NULL, paste0("x", 1:5))))
  eta <- -1 + 0.2 * d$x1 - 0.3 * d$x2 + 0.1 * d$x3
  time <- (rexp(n) / exp(eta))^(1 / 1.3)
  last <- runif(n, 0, 2.1)
  d$time <- pmin(time, last)
  d$event <- time <= last
  say(big(n), " rows, 5 covariates, ", round(100 * mean(d$event)), " % events; CPU s, medians of ", rounds, " rounds in turn.\n")
  formula <- Surv(time, event) ~ x1 + x2 + x3 + x4 + x5
  laws <- c("piecewise", laws)
  ways <- c(
    lapply(setNames(laws, laws), function(law) {
      function() tall_surv(formula, d, law, seed = 1)
    }),
    list(
      `coxph()` = function() survival::coxph(formula, d),
      `survreg(weibull)` = function() survival::survreg(formula, d),
      `survreg(loglogistic)` = function() survival::survreg(formula, d, dist = "loglogistic")
    )
  )
  seconds <- replicate(rounds, vapply(ways, function(way) cpu(way()), 0))
  median <- apply(seconds, 1, median)
  fits <- lapply(ways[laws], function(way) way())
  say_table(data.frame(
    way = names(ways),
    cpu = format(round(median, 1), nsmall = 1),
    `beside coxph` = paste(format(round(median / median[["coxph()"]], 2), nsmall = 2), "x"),
    draws = c(vapply(fits, function(fit) big(round(min(apply(fit$draws, 3, posterior::ess_bulk)))), ""), "-", "-", "-"),
    check.names = FALSE
  ))
  say("draws: the least effective of 4,000.\n")
}

# ---- ten million -------------------------------------------------------------

# Megabytes of this process: "VmRSS" now, "VmHWM" at most since forget_most().
megabytes <- function(what) {
  line <- grep(what, readLines("/proc/self/status"), value = TRUE)
  as.numeric(gsub("[^0-9]", "", line)) / 1024
}

forget_most <- function() cat(5, file = "/proc/self/clear_refs")

fit_large <- function(n = 1e7) {
  say("\n## Ten million rows\n")
  set.seed(4)
  d <- as.data.frame(lapply(setNames(1:5, paste0("x", 1:5)), function(k) rnorm(n)))
  time <- (rexp(n) / exp(0.5 * d$x1 - 0.3 * d$x2 + 0.2 * d$x3))^(1 / 1.3)
  last <- rexp(n, 1.1)
  d$time <- pmin(time, last)
  d$event <- time <= last
  rm(time, last)
  invisible(gc())
  formula <- Surv(time, event) ~ x1 + x2 + x3 + x4 + x5
  before <- megabytes("VmRSS")
  forget_most()
  ours <- cpu(fit <- tall_surv(formula, d, seed = 1))
  beyond <- megabytes("VmHWM") - before
  theirs <- cpu(cox <- survival::coxph(formula, d))
  z <- (coef(fit)[names(coef(cox))] - coef(cox)) / sqrt(diag(vcov(cox)))
  say(big(n), " rows, 5 covariates, ", round(100 * mean(d$event)), " % events, ", round(object.size(d) / 2^20), " MB; ", length(fit$family$pieces$cuts) + 1, " pieces.\n")
  say_table(data.frame(
    way = c("tall_surv()", "coxph()"),
    cpu = format(round(c(ours, theirs), 1), nsmall = 1),
    `MB beyond the data` = c(round(beyond), "-"),
    draws = c(big(round(min(apply(fit$draws, 3, posterior::ess_bulk)))), "-"),
    check.names = FALSE
  ))
  say("Coefficients within ", round(max(abs(z)), 2), " standard errors.\n")
}

# ---- strata ------------------------------------------------------------------

against_strata <- function() {
  # coxph() knows it by this name alone
  strata <- survival::strata
  say("\n## Strata\n")
  say("Coefficients beside coxph(ties = \"breslow\"), in its standard errors.\n")
  sets <- list(
    `lung, sex` = list(Surv(time, status == 2) ~ age + strata(sex), survival::lung),
    `veteran, cell type` = list(Surv(time, status) ~ karno + strata(celltype), survival::veteran)
  )
  table <- NULL
  for (name in names(sets)) {
    cox <- survival::coxph(sets[[name]][[1]], sets[[name]][[2]], ties = "breslow")
    fits <- lapply(1:20, function(seed) {
      tall_surv(sets[[name]][[1]], sets[[name]][[2]], seed = seed)
    })
    tables <- lapply(fits, function(fit) summary(fit)$table)
    table <- rbind(table, data.frame(
      set = name,
      rows = nobs(fits[[1]]),
      pieces = n_pieces(fits[[1]]$family$pieces),
      ours = signif(coef(fits[[1]])[[names(coef(cox))]], 3),
      cox = signif(coef(cox)[[1]], 3),
      apart = format(round((coef(fits[[1]])[[names(coef(cox))]] - coef(cox)[[1]]) / sqrt(vcov(cox)[1]), 2)),
      rhat = format(round(max(sapply(tables, function(t) max(t$rhat))), 3)),
      ess = round(min(sapply(tables, function(t) min(t$ess_bulk, t$ess_tail))))
    ))
  }
  say_table(table)
  say("\nR-hat and effective draws of 4,000 are the worst of twenty seeds.\n")
  set.seed(1)
  n <- 2e5
  shapes <- c(a = 0.6, b = 1, c = 1.8)
  d <- data.frame(x = rnorm(n), z = rbinom(n, 1, 0.3), g = sample(names(shapes), n, TRUE))
  time <- (rexp(n) / exp(0.3 * d$x - 0.5 * d$z))^(1 / shapes[d$g])
  last <- runif(n, 0, 3)
  d$time <- pmin(time, last) + 1e-6
  d$seen <- as.integer(time <= last)
  ask <- function(data) tall_surv(Surv(time, seen) ~ x + z + strata(g), data, seed = 1)
  fit <- ask(d)
  cox <- survival::coxph(Surv(time, seen) ~ x + z + strata(g), d, ties = "breslow")
  away <- (coef(fit)[c("x", "z")] - coef(cox)) / sqrt(diag(vcov(cox)))
  new <- data.frame(x = 0, z = 0, g = names(shapes))
  at <- c(0.05, 0.5, 1, 2)
  curves <- predict(fit, new, type = "survival", times = at)
  truth <- exp(-outer(shapes, at, function(k, t) t^k))
  say(
    "\n200,000 rows, hazards of three shapes, ", n_pieces(fit$family$pieces), " pieces: coefficients ",
    paste(format(round(abs(away), 3)), collapse = " and "), " standard errors from coxph(); survival at four times within ",
    format(round(max(abs(curves - truth)), 4)), " of the truth."
  )
  blocks <- tall_stream(function() {
    k <- 0
    function() {
      k <<- k + 1
      if (k <= 10) d[(k - 1) * 2e4 + seq_len(2e4), ]
    }
  })
  same <- c(stream = all.equal(coef(ask(blocks)), coef(fit)))
  if (requireNamespace("RSQLite", quietly = TRUE) && requireNamespace("dbplyr", quietly = TRUE)) {
    con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
    DBI::dbWriteTable(con, "d", d)
    same["SQLite"] <- all.equal(coef(ask(dplyr::tbl(con, "d"))), coef(fit))
    DBI::dbDisconnect(con)
  }
  say("The same means from other sources: ", paste(names(same), same, collapse = ", "), ".")
}

if ("sbc" %in% wanted) calibrate()
if ("strata" %in% wanted) against_strata()
if ("seeds" %in% wanted) worst_of_seeds()
if ("sets" %in% wanted) compare_sets()
if ("cox" %in% wanted) compare_cox()
if ("speed" %in% wanted) compare_speed()
if ("large" %in% wanted) fit_large()
if ("frailty" %in% wanted) time_frailties()
