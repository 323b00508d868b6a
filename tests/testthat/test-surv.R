# Times to an event. The laws of their responses are in
# test-conformance-response.R.

surv_data <- function(n = 300, seed = 5) {
  withr::local_seed(seed)
  data <- data.frame(a = stats::rnorm(n), g = rep_len(c("u", "v", "w"), n))
  eta <- -0.4 + 0.6 * data$a + c(u = 0, v = 0.4, w = -0.3)[data$g]
  event <- 40 * (stats::rexp(n) / exp(eta))^(1 / 1.4)
  last <- stats::runif(n, 5, 120)
  data$entry <- ifelse(stats::runif(n) < 0.3, stats::runif(n, 0, 4), 0)
  data$time <- pmax(pmin(event, last), data$entry + 0.1)
  data$seen <- event <= last
  # visits that an event lies between
  data$low <- 10 * floor(data$time / 10)
  data$low[data$low == 0] <- NA
  data$high <- ifelse(data$seen, 10 * ceiling(data$time / 10), NA)
  data$w <- rep_len(c(1, 2), n)
  data$o <- rep_len(c(-0.2, 0.1, 0.3), n)
  data
}

# log density and survival of times, by the functions of stats
surv_law <- function(basehaz, unit = 1) {
  both <- function(density, cdf) {
    function(t, ...) {
      list(
        d = density(t, ..., log = TRUE),
        s = cdf(t, ..., lower.tail = FALSE, log.p = TRUE)
      )
    }
  }
  of_weibull <- both(stats::dweibull, stats::pweibull)
  of_exp <- both(stats::dexp, stats::pexp)
  of_lnorm <- both(stats::dlnorm, stats::plnorm)
  switch(
    basehaz,
    exp = function(t, eta, s) of_exp(t, exp(eta)),
    weibull = function(t, eta, s) {
      of_weibull(t, exp(s), unit * exp(-eta / exp(s)))
    },
    `weibull-aft` = function(t, eta, s) of_weibull(t, exp(s), exp(eta)),
    lognormal = function(t, eta, s) of_lnorm(t, eta, exp(s)),
    loglogistic = function(t, eta, s) {
      z <- exp(s) * (log(t) - eta)
      list(
        d = stats::dlogis(z, log = TRUE) + s - log(t),
        s = stats::plogis(-z, log.p = TRUE)
      )
    }
  )
}

# The likelihood has its maximum there: what is left of the slope in log shape
# is the Jacobian of a flat prior of the shape.
expect_stationary <- function(fit, theta) {
  has_aux <- fit$n_coef < length(theta)
  model <- build_model(fit$blueprint, whole_rows(fit$rows))
  found <- model_evaluate(model, theta)
  rest <- found$gradient - c(numeric(fit$n_coef), if (has_aux) 1)
  # a slope is of the order of the root of the rows
  expect_lt(max(abs(rest)) / sqrt(stats::nobs(fit)), 1e-3)
}

# Nodes and weights of a standard normal law.
hermite_rule <- function(n) {
  k <- sqrt(seq_len(n - 1))
  jacobi <- matrix(0, n, n)
  jacobi[cbind(seq_len(n - 1), 2:n)] <- k
  found <- eigen(jacobi + t(jacobi), symmetric = TRUE)
  list(at = found$values, weight = found$vectors[1, ]^2)
}

as_survival <- function(left) {
  left[[1]] <- quote(survival::Surv)
  left
}

surv_laws <- c("weibull", "exp", "weibull-aft", "lognormal", "loglogistic")
for (basehaz in surv_laws) {
  dist <- c(
    weibull = "weibull",
    exp = "exponential",
    `weibull-aft` = "weibull",
    lognormal = "lognormal",
    loglogistic = "loglogistic"
  )[[basehaz]]

  test_that(paste(basehaz, "has the maximum of survreg(), however censored"), {
    skip_if_not_installed("survival")
    data <- surv_data()
    left_sides <- list(
      quote(Surv(time, seen)),
      quote(Surv(low, high, type = "interval2")),
      quote(Surv(time, seen, type = "left"))
    )
    for (left in left_sides) {
      right <- quote(a + g + offset(o))
      formula <- eval(bquote(.(left) ~ .(right)))
      theirs <- survival::survreg(
        eval(bquote(.(as_survival(left)) ~ .(right))),
        data,
        weights = w,
        dist = dist,
        control = list(rel.tolerance = 1e-12)
      )
      # their offset multiplies times
      data$own <- if (basehaz %in% c("weibull", "exp")) {
        -data$o / theirs$scale
      } else {
        data$o
      }
      formula[[3]][[3]] <- quote(offset(own))
      fit <- suppressWarnings(tall_surv(
        formula,
        data,
        basehaz,
        prior = NULL,
        prior_intercept = NULL,
        prior_aux = NULL,
        unit = if (basehaz == "weibull") 20,
        weights = w,
        iter = 10,
        chains = 1,
        seed = 1,
        refresh = 0
      ))
      scale <- theirs$scale
      expected <- unname(stats::coef(theirs))
      if (basehaz %in% c("weibull", "exp")) {
        expected <- -expected / scale
      }
      if (basehaz == "weibull") {
        expected[[1]] <- expected[[1]] + log(20) / scale
      }
      if (basehaz != "exp") {
        s <- if (basehaz == "lognormal") log(scale) else -log(scale)
        expected <- c(expected, s)
      }
      expect_stationary(fit, expected)
    }
  })

  test_that(paste(basehaz, "has the posterior of importance sampling"), {
    data <- surv_data(60)
    fit <- tall_surv(
      Surv(entry, time, seen) ~ a,
      data,
      basehaz,
      prior = prior_normal(0, 1),
      prior_intercept = prior_normal(0, 4),
      prior_aux = prior_exponential(1),
      unit = if (basehaz %in% c("weibull", "exp")) 1,
      weights = w,
      iter = 3000,
      seed = 2,
      refresh = 0
    )
    expect_output(print(fit), "Exact: no step size", fixed = TRUE)
    law <- surv_law(basehaz)
    n_aux <- if (basehaz == "exp") 0 else 1
    log_posterior <- function(theta) {
      s <- if (n_aux == 1) theta[[3]] else 0
      eta <- theta[[1]] + theta[[2]] * data$a
      at <- law(data$time, eta, s)
      before <- ifelse(data$entry > 0, law(data$entry, eta, s)$s, 0)
      sum(data$w * (ifelse(data$seen, at$d, at$s) - before)) +
        stats::dnorm(theta[[1]] + theta[[2]] * mean(data$a), 0, 4, log = TRUE) +
        stats::dnorm(theta[[2]], 0, 1, log = TRUE) +
        n_aux * (s - exp(s))
    }
    last <- function(theta) {
      if (n_aux == 1) {
        theta[3, ] <- exp(theta[3, ])
      }
      theta
    }
    start <- c(if (basehaz %in% c("weibull", "exp")) -4 else 3, 0, 0)
    start <- start[seq_len(2 + n_aux)]
    # searches go to places that have no density
    truth <- suppressWarnings(importance_moments(log_posterior, start, last))
    expect_gt(truth$ess, 2000)
    expect_moments(fit, truth)
  })
}

test_that("a constant hazard is that of counts with an offset", {
  data <- surv_data()
  run <- list(iter = 10, chains = 1, seed = 1, refresh = 0)
  priors <- list(prior = prior_normal(0, 1), prior_intercept = NULL)
  surv <- do.call(tall_surv, c(
    list(Surv(time, seen) ~ a + g, data, "exp"), priors, run
  ))
  counts <- do.call(tall_glm, c(
    list(as.numeric(seen) ~ a + g + offset(log(time)), data, poisson()),
    priors,
    run
  ))
  expect_equal(
    surv$mode$estimate,
    counts$mode$estimate,
    tolerance = 1e-7
  )
  # a step looks at few rows
  many <- surv_data(5000)
  fit <- tall_surv(
    Surv(time, seen) ~ a,
    many,
    "exp",
    iter = 400,
    seed = 1,
    refresh = 0
  )
  expect_identical(fit$kernel$name, "smh")
  expect_lt(mean(fit$sizes), 2)
})

test_that("a fit does not depend on where its rows lie", {
  data <- surv_data(4000)
  data$entry[1:10] <- 0
  # rows that do not count
  data$time[[7]] <- NA
  data$a[[20]] <- NA
  run <- function(formula, source, basehaz) {
    tall_surv(
      formula,
      source,
      basehaz,
      unit = if (basehaz != "piecewise") 30,
      iter = 500,
      chains = 2,
      seed = 1,
      refresh = 0
    )
  }
  withr::local_options(tallbayes.settings = NULL)
  local_settings(look = list(rows = 500), chunk_rows = 700)
  forms <- list(
    Surv(entry, time, seen) ~ a + g,
    Surv(low, high, type = "interval2") ~ a + g
  )
  stream <- tall_stream(stream_of(data, 900))
  for (formula in forms) {
    for (basehaz in c("exp", "weibull", "piecewise")) {
      if (basehaz == "piecewise" && identical(formula, forms[[2]])) {
        next # is of rows that are censored on the right
      }
      passed <- run(formula, data, basehaz)
      streamed <- run(formula, stream, basehaz)
      expect_gt(passed$passes, 1)
      expect_equal(plain_draws(streamed), plain_draws(passed))
      whole <- local({
        local_settings(look = list(rows = 1e6))
        run(formula, data, basehaz)
      })
      sds <- sqrt(diag(vcov(whole)))
      off <- abs(coef(passed) - coef(whole)) / sds
      expect_lt(max(off), 0.25)
      expect_equal(passed$n_data, whole$n_data)
    }
  }
  # what follows a fit walks the source
  few <- data[1:5, ]
  expect_equal(
    unname(predict(streamed, few, "median")),
    unname(predict(passed, few, "median"))
  )
  r <- residuals(streamed <- run(forms[[1]], stream, "exp"))
  own <- residuals(run(forms[[1]], data, "exp"))
  expect_equal(unname(r), unname(own))
  expect_lt(abs(mean(r)), 4 / sqrt(length(r)))
})

test_that("Surv() is read as survival reads it", {
  skip_if_not_installed("survival")
  time <- c(3, 5, 2, NA, 8)
  time2 <- c(4, 9, 2, 6, NA)
  event <- c(1, 0, NA, 1, 1)
  same <- function(ours, theirs) {
    expect_identical(
      unname(ours),
      unname(columns_of_surv(theirs))
    )
  }
  surv <- survival::Surv
  same(read_surv(time, event), surv(time, event))
  same(read_surv(time, event == 1), surv(time, event == 1))
  same(read_surv(time), surv(time))
  same(read_surv(time, event, type = "left"), surv(time, event, type = "left"))
  same(read_surv(time - 2, time, event), surv(time - 2, time, event))
  status <- c(0, 1, 2, 3, 3)
  same(
    read_surv(c(1, 2, 3, 4, 5), c(1, 2, 3, 6, 9), status, type = "interval"),
    surv(c(1, 2, 3, 4, 5), c(1, 2, 3, 6, 9), status, type = "interval")
  )
  low <- c(NA, 2, 3, 4)
  high <- c(5, NA, 3, 6)
  same(
    read_surv(low, high, type = "interval2"),
    surv(low, high, type = "interval2")
  )
  # a column of the data, in memory
  data <- surv_data()
  data$S <- surv(data$time, data$seen)
  run <- function(formula) {
    fit <- tall_surv(formula, data, iter = 20, seed = 1, refresh = 0)
    plain_draws(fit)
  }
  expect_identical(run(S ~ a), run(Surv(time, seen) ~ a))
  expect_identical(run(survival::Surv(time, seen) ~ a), run(S ~ a))
})

test_that("predictions are those of the law, draw by draw", {
  data <- surv_data()
  new <- data.frame(a = c(-1, 0.5), g = c("u", "w"))
  x <- cbind(1, new$a, 0, c(0, 1))
  for (basehaz in c("weibull", "lognormal", "loglogistic")) {
    fit <- tall_surv(
      Surv(time, seen) ~ a + g,
      data,
      basehaz,
      iter = 100,
      seed = 1,
      refresh = 0
    )
    theta <- unname(as.matrix(fit))
    eta <- theta[, 1:4] %*% t(x)
    s <- log(theta[, 5])
    unit <- if (basehaz == "weibull") known_values(fit$family)[["unit"]] else 1
    law <- surv_law(basehaz, unit)
    mean_of <- function(f) {
      unname(colMeans(vapply(1:2, function(j) f(eta[, j], s), numeric(200))))
    }
    ask <- function(...) unname(predict(fit, new, ...))
    expect_equal(ask("link"), mean_of(function(eta, s) eta))
    expect_equal(ask("risk"), mean_of(function(eta, s) exp(eta)))
    survival <- function(t) function(eta, s) exp(law(t, eta, s)$s)
    expect_equal(ask("survival", times = 30), mean_of(survival(30)))
    both <- predict(fit, new, "survival", times = c(10, 30))
    expect_equal(unname(both[, 2]), mean_of(survival(30)))
    hazard <- function(eta, s) {
      at <- law(30, eta, s)
      exp(at$d - at$s)
    }
    expect_equal(ask("hazard", times = 30), mean_of(hazard))
    expect_equal(
      ask("cumhaz", times = 30),
      mean_of(function(eta, s) -law(30, eta, s)$s)
    )
    # S at a quantile
    q <- surv_values(
      fit,
      asked_rows(ask_rows(fit, new)),
      choose_draws(fit),
      "quantile",
      0.2
    )
    expect_equal(exp(law(q[, 2], eta[, 2], s)$s), rep(0.8, 200))
    mean <- vapply(1:200, function(k) {
      stats::integrate(
        function(t) exp(law(t, eta[k, 1], s[[k]])$s),
        0,
        50,
        rel.tol = 1e-8
      )$value
    }, 0)
    rmst <- predict(fit, new, "rmst", times = 50, se.fit = TRUE)
    expect_equal(rmst$fit[[1]], mean(mean), tolerance = 1e-6)
    expect_equal(rmst$se.fit[[1]], stats::sd(mean), tolerance = 5e-3)
    shown <- predict(fit, new, "median", interval = "confidence")
    expect_identical(colnames(shown), c("fit", "lwr", "upr"))
    expect_true(all(shown[, 2] < shown[, 1] & shown[, 1] < shown[, 3]))
    # draws of times have that median
    drawn <- rstantools::posterior_predict(fit, new, seed = 1)
    below <- mean(drawn[, 1] < q[, 1])
    expect_lt(abs(below - 0.2), 4.5 * sqrt(0.16 / 200))
    log_lik <- rstantools::log_lik(fit)
    at <- law(data$time[[1]], theta[, 1] + theta[, 2] * data$a[[1]], s)
    expect_equal(
      unname(log_lik[, 1]),
      if (data$seen[[1]]) at$d else at$s
    )
  }
})

test_that("curves are of rows, or averages over them", {
  skip_if_not_installed("ggplot2")
  data <- surv_data()
  fit <- tall_surv(
    Surv(time, seen) ~ a,
    data,
    iter = 200,
    seed = 1,
    refresh = 0
  )
  new <- data.frame(a = c(-1, 1))
  curves <- posterior_survfit(fit, new, times = c(20, 40), draws = 400)
  expect_s3_class(curves, "tall_survfit")
  expect_identical(curves$id, c(1L, 1L, 2L, 2L))
  each <- predict(fit, new, "survival", times = c(20, 40),
    interval = "none")
  expect_equal(curves$median, as.vector(t(each)), tolerance = 0.05)
  whole <- posterior_survfit(fit, times = c(20, 40))
  own <- predict(fit, data, "survival", times = c(20, 40))
  expect_equal(whole$median, unname(colMeans(own)), tolerance = 0.02)
  hazards <- posterior_survfit(fit, type = "cumhaz", times = c(20, 40))
  expect_equal(hazards$median, -log(whole$median), tolerance = 1e-5)
  draws <- posterior_survfit(fit, new, times = 20, return_matrix = TRUE)
  expect_identical(dim(draws[[1]]), c(400L, 2L))
  expect_s3_class(plot(whole), "ggplot")
  expect_s3_class(plot(curves, ci = FALSE), "ggplot")
  expect_output(print(whole), "average over rows")
  expect_output(print(curves, n = 2), "2 more")
  # the average is that of Kaplan and Meier, as far as the law is right
  skip_if_not_installed("survival")
  at <- summary(
    survival::survfit(survival::Surv(time, seen) ~ 1, data),
    times = c(20, 40)
  )
  expect_lt(max(abs(whole$median - at$surv) / at$std.err), 3)
})

test_that("residuals and concordance are survival's at the same place", {
  skip_if_not_installed("survival")
  data <- surv_data(2000)
  fit <- tall_surv(
    Surv(time, seen) ~ a + g,
    data,
    "weibull-aft",
    iter = 300,
    seed = 1,
    refresh = 0
  )
  theirs <- survival::survreg(survival::Surv(time, seen) ~ a + g, data)
  # of opposite sign: theirs are of the time
  off <- residuals(fit, "deviance") + residuals(theirs, "deviance")
  expect_lt(max(abs(off)), 0.02)
  martingale <- residuals(fit)
  expect_equal(
    unname(martingale),
    as.numeric(data$seen) - unname(residuals(fit, "coxsnell"))
  )
  ours <- survival::concordance(fit)
  expect_equal(
    ours$concordance,
    survival::concordance(theirs)$concordance,
    tolerance = 1e-3
  )
  hazards <- update(fit, basehaz = "weibull")
  expect_equal(
    survival::concordance(hazards)$concordance,
    ours$concordance,
    tolerance = 1e-3
  )
  table <- augment(fit)
  expect_equal(table$.resid, unname(residuals(fit, "deviance")))
})

frail_data <- function(n_group = 25, n_each = 6) {
  withr::local_seed(6)
  n <- n_group * n_each
  data <- data.frame(g = rep(seq_len(n_group), each = n_each), a = rnorm(n))
  eta <- 0.3 + 0.5 * data$a + rnorm(n_group, sd = 0.7)[data$g]
  event <- (stats::rexp(n) / exp(eta))^(1 / 1.4)
  last <- stats::runif(n, 0.2, 3)
  data$time <- pmin(event, last)
  data$seen <- event <= last
  data$low <- 0.5 * floor(data$time / 0.5)
  data$high <- ifelse(data$seen, data$low + 0.5, NA)
  data$low <- ifelse(data$seen, data$low, data$time)
  data$low[data$low == 0] <- NA
  data
}

test_that("frailties are effects of groups, integrated out", {
  data <- frail_data()
  # a constant hazard: counts
  run <- function(front, ...) {
    front(..., iter = 400, chains = 2, seed = 1, refresh = 0)
  }
  wide <- prior_normal(0, 20)
  surv <- run(tall_surv, Surv(time, seen) ~ a + (1 | g), data, "exp")
  counts <- run(
    tall_glmer,
    as.numeric(seen) ~ a + (1 | g) + offset(log(time)),
    data,
    poisson(),
    prior_intercept = wide
  )
  expect_equal(coef(surv)$g, coef(counts)$g, tolerance = 1e-4)
  expect_equal(fixef(surv), fixef(counts), tolerance = 1e-4)
  expect_equal(
    as.data.frame(VarCorr(surv))[[4]],
    as.data.frame(VarCorr(counts))[[4]],
    tolerance = 1e-3
  )
  new <- data.frame(a = 0, g = c(2, 999))
  of_group <- predict(surv, new, "survival", times = 1, allow_new_levels = TRUE)
  expect_length(of_group, 2)
  whole <- predict(surv, new, "survival", times = 1, re_formula = NA)
  expect_equal(whole[[1]], whole[[2]])
  expect_error(
    predict(surv, new, "survival", times = 1),
    class = "tall_error_input"
  )
  expect_lt(abs(mean(residuals(surv))), 0.1)
  curves <- posterior_survfit(surv, new[1, ], times = 1)
  expect_equal(curves$median, of_group[[1]], tolerance = 0.05)
  expect_output(print(summary(surv)), "proportional hazards")
})

frailties <- list(
  c("weibull", "Surv(time, seen)"),
  c("weibull", "Surv(low, high, type = \"interval2\")"),
  c("loglogistic", "Surv(time, seen)")
)
for (frailty in frailties) {
  law <- frailty[[1]]
  left <- frailty[[2]]
  test_that(paste("frailties have the posterior of quadrature:", law, left), {
    data <- frail_data()
    formula <- stats::as.formula(paste(left, "~ a + (1 | g)"))
    fit <- tall_surv(
      formula,
      data,
      law,
      prior = prior_normal(0, 1),
      prior_intercept = prior_normal(0, 2),
      prior_aux = prior_exponential(1),
      prior_covariance = prior_lkj(sd = prior_exponential(1)),
      unit = if (law == "weibull") 1,
      kernel = kernel_mala(),
      iter = 800,
      seed = 2,
      refresh = 0
    )
    rule <- hermite_rule(20)
    own <- surv_law(law)
    by_interval <- grepl("interval", left)
    # every row at every node
    n <- nrow(data)
    all <- data[rep(seq_len(n), length(rule$at)), ]
    # log likelihood of rows at effects b
    rows <- function(eta, s) {
      if (!by_interval) {
        at <- own(all$time, eta, s)
        return(ifelse(all$seen, at$d, at$s))
      }
      above <- function(t, default) {
        known <- ifelse(is.na(t), 1, t)
        ifelse(is.na(t), default, exp(own(known, eta, s)$s))
      }
      log(above(all$low, 1) - above(all$high, 0))
    }
    log_posterior <- function(theta) {
      sd <- exp(theta[[4]])
      eta <- theta[[1]] + theta[[2]] * all$a + sd * rep(rule$at, each = n)
      each <- rowsum(matrix(rows(eta, theta[[3]]), n), data$g)
      most <- apply(each, 1, max)
      sum(most + log(exp(each - most) %*% rule$weight)) +
        stats::dnorm(theta[[1]] + theta[[2]] * mean(data$a), 0, 2, log = TRUE) +
        stats::dnorm(theta[[2]], 0, 1, log = TRUE) +
        theta[[3]] - exp(theta[[3]]) + theta[[4]] - sd
    }
    natural <- function(theta) {
      theta[3:4, ] <- exp(theta[3:4, ])
      theta
    }
    truth <- suppressWarnings(importance_moments(
      log_posterior,
      c(0, 0, 0.3, -0.4),
      natural,
      n = 1500
    ))
    expect_gt(truth$ess, 500)
    at <- c("(Intercept)", "a", "shape", "sd_g__Intercept")
    fit$draws <- fit$draws[, , at]
    expect_moments(fit, truth)
  })
}

test_that("terms may be smooth", {
  data <- surv_data(800)
  data$time <- (stats::qexp(stats::ppoints(800)[rank(data$time)]) + 0.01) /
    exp(sin(2 * data$a))
  run <- list(iter = 400, chains = 2, seed = 1, refresh = 0)
  fit <- do.call(tall_surv, c(
    list(Surv(time, seen) ~ s(a, k = 6) + g, data, "exp"),
    run
  ))
  counts <- do.call(tall_gam, c(
    list(
      as.numeric(seen) ~ s(a, k = 6) + g + offset(log(time)),
      data,
      poisson(),
      prior_intercept = prior_normal(0, 20)
    ),
    run
  ))
  expect_s3_class(fit, c("tall_surv", "tall_gam", "tall_glm"), exact = FALSE)
  expect_equal(coef(fit), coef(counts), tolerance = 1e-5)
  table <- smooth_table(fit)
  expect_equal(table$edf, smooth_table(counts)$edf, tolerance = 1e-4)
  # neighbours are compared by martingale residuals
  expect_gt(table$k_index, 0.8)
  terms <- predict(fit, data[1:3, ], type = "terms")
  expect_equal(
    terms,
    predict(counts, data[1:3, ], type = "terms"),
    tolerance = 1e-4
  )
  expect_length(predict(fit, data[1:3, ], "median"), 3)
  both <- do.call(tall_surv, c(
    list(Surv(time, seen) ~ s(a, k = 4) + (1 | g), data[1:200, ], "exp"),
    run
  ))
  expect_true("smooth_sd[s(g)1]" %in% both$variables)
})

test_that("numbers may be censored", {
  skip_if_not_installed("survival")
  withr::local_seed(8)
  n <- 400
  data <- data.frame(a = rnorm(n), w = rep_len(1:2, n))
  y <- 1 + 0.7 * data$a + rnorm(n) / sqrt(data$w)
  data$status <- ifelse(y > 2, "right", ifelse(y < 0, "left", "none"))
  data$status[1:40] <- "interval"
  data$y <- pmin(pmax(y, 0), 2)
  data$y[1:40] <- floor(y[1:40])
  data$y2 <- data$y + 1
  run <- function(formula, ...) {
    tall_glm(
      formula,
      data,
      prior = NULL,
      prior_intercept = NULL,
      prior_aux = NULL,
      iter = 10,
      chains = 1,
      seed = 1,
      refresh = 0,
      ...
    )
  }
  low <- ifelse(data$status == "left", NA, data$y)
  high <- ifelse(
    data$status == "right",
    NA,
    ifelse(data$status == "interval", data$y2, data$y)
  )
  theirs <- survival::survreg(
    survival::Surv(low, high, type = "interval2") ~ a,
    data,
    dist = "gaussian",
    control = list(rel.tolerance = 1e-12)
  )
  fit <- run(y | cens(status, y2) ~ a)
  expect_stationary(fit, unname(c(coef(theirs), log(theirs$scale))))
  # codes are words
  data$code <- c(right = 1, none = 0, left = -1, interval = 2)[data$status]
  again <- run(y | cens(code, y2) ~ a)
  expect_identical(plain_draws(again), plain_draws(fit))
  # none is: the Gaussian model, weights being precisions
  none <- run(y | cens("none") ~ a, weights = w)
  least <- lm(y ~ a, data, weights = w)
  sigma <- sqrt(sum(data$w * residuals(least)^2) / n)
  expect_stationary(none, unname(c(coef(least), log(sigma))))
  fit <- tall_glm(
    y | cens(status, y2) ~ a,
    data,
    iter = 300,
    seed = 1,
    refresh = 0
  )
  expect_identical(fit$family$name, "censored_gaussian")
  expect_warning(residuals(fit), class = "tall_warning_limits")
  expect_warning(rmse(fit, data), class = "tall_warning_limits")
  expect_silent(residuals(fit, "deviance"))
  drawn <- rstantools::posterior_predict(fit, data[1:3, ], seed = 1)
  expect_equal(dim(drawn), c(600, 3))
  expect_equal(
    unname(predict(fit, data[1:3, ])),
    unname(predict(fit, data[1:3, ], "response"))
  )
  expect_gt(stats::sd(drawn[, 1]), 0.8)
  curve <- tall_gam(
    y | cens(status, y2) ~ s(a, k = 5),
    data,
    iter = 50,
    chains = 1,
    seed = 1,
    refresh = 0
  )
  expect_identical(curve$family$name, "censored_gaussian")
})

test_that("censored numbers of groups have the posterior of quadrature", {
  withr::local_seed(3)
  data <- data.frame(g = rep(1:25, each = 6), a = rnorm(150))
  y <- 0.5 + 0.6 * data$a + rnorm(25, sd = 0.7)[data$g] + rnorm(150)
  data$side <- ifelse(y > 1.3, "right", "none")
  data$y <- pmin(y, 1.3)
  fit <- tall_glmer(
    y | cens(side) ~ a + (1 | g),
    data,
    prior = prior_normal(0, 1),
    prior_intercept = prior_normal(0, 2),
    prior_aux = prior_exponential(1),
    prior_covariance = prior_lkj(sd = prior_exponential(1)),
    kernel = kernel_mala(),
    iter = 800,
    seed = 2,
    refresh = 0
  )
  # default priors are those of the numbers, 100 times as large
  of_units <- function(left) {
    data$y <- 100 * data$y
    formula <- stats::as.formula(paste(left, "~ a + (1 | g)"))
    run <- tall_glmer(formula, data, iter = 10, chains = 1, seed = 1,
      refresh = 0)
    prior_summary(run)$table$scale
  }
  expect_equal(of_units("y | cens(side)"), of_units("y"))

  rule <- hermite_rule(25)
  # every row at every node
  all <- data[rep(seq_len(150), length(rule$at)), ]
  rows <- function(eta, sigma) {
    z <- (all$y - eta) / sigma
    ifelse(
      all$side == "right",
      stats::pnorm(z, lower.tail = FALSE, log.p = TRUE),
      stats::dnorm(z, log = TRUE) - log(sigma)
    )
  }
  log_posterior <- function(theta) {
    sigma <- exp(theta[[3]])
    sd <- exp(theta[[4]])
    eta <- theta[[1]] + theta[[2]] * all$a + sd * rep(rule$at, each = 150)
    each <- rowsum(matrix(rows(eta, sigma), 150), data$g)
    most <- apply(each, 1, max)
    sum(most + log(exp(each - most) %*% rule$weight)) +
      stats::dnorm(theta[[1]] + theta[[2]] * mean(data$a), 0, 2, log = TRUE) +
      stats::dnorm(theta[[2]], 0, 1, log = TRUE) +
      theta[[3]] - sigma + theta[[4]] - sd
  }
  natural <- function(theta) {
    theta[3:4, ] <- exp(theta[3:4, ])
    theta
  }
  start <- c(0.5, 0.6, 0, -0.4)
  truth <- importance_moments(log_posterior, start, natural, n = 1500)
  expect_gt(truth$ess, 500)
  fit$draws <- fit$draws[, , c("(Intercept)", "a", "sigma", "sd_g__Intercept")]
  expect_moments(fit, truth)
})

test_that("what is no time, no event or no such model is refused", {
  data <- surv_data(50)
  data$cause <- factor(data$seen)
  ask <- function(formula, ...) {
    tall_surv(formula, data, ..., iter = 10, seed = 1, refresh = 0)
  }
  data$two <- data$seen + 1
  data$zero <- replace(data$time, 3, 0)
  data$late <- replace(data$entry, 4, 1e4)
  data$under <- replace(data$entry, 4, -1)
  expect_refusals(
    "tall_error_input",
    ask(Surv(time, two) ~ a),
    ask(Surv(time, seen & FALSE) ~ a),
    ask(Surv(zero, seen) ~ a),
    ask(Surv(-time, seen) ~ a),
    ask(Surv(late, time, seen) ~ a),
    ask(Surv(under, time, seen) ~ a),
    ask(Surv(time, g) ~ a),
    ask(Surv(time, seen, type = "interval") ~ a),
    ask(Surv(nowhere, seen) ~ a),
    ask(Surv(time, seen, nonsense = 1) ~ a),
    ask(time ~ a),
    ask(Surv(time, seen) ~ a, basehaz = "gompertz"),
    ask(Surv(time, seen) ~ a, unit = -1)
  )
  expect_refusals(
    "tall_error_unsupported",
    ask(Surv(time, cause) ~ a),
    ask(Surv(time, seen) ~ a + strata(g), basehaz = "weibull"),
    ask(Surv(time, seen) ~ a + survival::cluster(g)),
    ask(Surv(time, seen) ~ a + (1 | g) + (1 | cause), basehaz = "weibull"),
    ask(Surv(entry, time, seen) ~ a + (1 | g), basehaz = "lognormal"),
    tall_glmer(time | cens("none") ~ a + (1 | g) + (1 | cause), data),
    tall_glm(Surv(time, seen) ~ a, data),
    tall_glm(seen | cens(0) ~ a, data, binomial())
  )
  expect_refusals(
    "tall_error_input",
    tall_glm(time | cens("both") ~ a, data),
    tall_glm(time | cens("interval") ~ a, data)
  )
  fit <- ask(Surv(time, seen) ~ a)
  # what would say nothing
  expect_refusals(
    "tall_error_input",
    ask(Surv(time, seen) ~ a, basehaz = "lognormal", unit = 2),
    ask(Surv(time, seen) ~ a, "exp", prior_smooth = prior_exponential(1)),
    ask(Surv(time, seen) ~ a, prior_covariance = prior_lkj(2)),
    ask(Surv(time, seen) ~ a + (1 | g), "weibull", store = tempfile()),
    ask(Surv(time, seen) ~ a + (1 | g), "weibull", prior_PD = TRUE)
  )
  expect_refusals(
    "tall_error_unsupported",
    ask(Surv(time, seen) ~ a, monitor = list(monitor_rmse(data))),
    augment(fit, type.predict = "response"),
    fitted(fit),
    rstantools::posterior_epred(fit),
    rstantools::bayes_R2(fit),
    rmse(fit, data)
  )
  expect_refusals(
    "tall_error_input",
    predict(fit, data, "survival"),
    predict(fit, data, "survival", times = 0),
    predict(fit, data, "median", times = 3),
    predict(fit, data, "quantile", p = 1),
    predict(fit, data, "survival", times = 1:2, interval = "confidence"),
    residuals(fit, "pearson")
  )
})
