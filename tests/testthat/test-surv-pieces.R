# Hazards that are constant in pieces of time: tall_surv(basehaz = "piecewise").

piece_data <- function(n = 300, seed = 5) {
  withr::local_seed(seed)
  data <- data.frame(a = stats::rnorm(n), g = rep_len(c("u", "v", "w"), n))
  eta <- 0.6 * data$a + c(u = 0, v = 0.4, w = -0.3)[data$g]
  event <- (stats::rexp(n) / exp(eta))^(1 / 1.4)
  last <- stats::runif(n, 0.2, 3)
  data$entry <- ifelse(stats::runif(n) < 0.3, stats::runif(n, 0, 0.3), 0)
  data$time <- pmax(pmin(event, last), data$entry + 0.01)
  data$seen <- event <= last
  data$w <- rep_len(c(1, 2), n)
  data$o <- rep_len(c(-0.2, 0.1, 0.3), n)
  data
}

run_pieces <- function(formula, data, ..., iter = 500, chains = 2, seed = 1) {
  tall_surv(
    formula,
    data,
    ...,
    iter = iter,
    chains = chains,
    seed = seed,
    refresh = 0
  )
}

test_that("the likelihood is that of the pieces", {
  data <- piece_data(80)
  fit <- run_pieces(
    Surv(entry, time, seen) ~ a + offset(o),
    data,
    pieces = c(0.3, 0.7, 1.5),
    weights = w,
    iter = 20
  )
  pieces <- fit$family$pieces
  expect_identical(pieces$cuts, c(0.3, 0.7, 1.5))
  model <- build_model(fit$blueprint, whole_rows(fit$rows))
  theta <- c(-0.3, 0.4, 0.5, -1, 0.2, log(0.7))
  alpha <- drop(pieces$basis %*% theta[3:5])
  eta <- theta[[1]] + theta[[2]] * data$a + data$o
  by_hand <- pieces_by_hand(
    pieces$cuts, alpha, eta, data$entry, data$time, data$seen
  )
  found <- model_evaluate(model, theta, "likelihood")
  expect_equal(found$log_density, sum(data$w * by_hand), tolerance = 1e-12)
  # and of draws, as loo() has them
  log_lik <- rstantools::log_lik(fit)
  draw <- as.matrix(fit)[3, ]
  alpha <- drop(pieces$basis %*% draw[pieces$names])
  eta <- draw[[1]] + draw[[2]] * data$a + data$o
  by_hand <- pieces_by_hand(
    pieces$cuts, alpha, eta, data$entry, data$time, data$seen
  )
  expect_equal(unname(log_lik[3, ]), data$w * by_hand)
})

test_that("it has the posterior of importance sampling", {
  data <- piece_data(60)
  fit <- run_pieces(
    Surv(entry, time, seen) ~ a,
    data,
    pieces = c(0.4, 1),
    prior = prior_normal(0, 1),
    prior_intercept = prior_normal(0, 4),
    prior_smooth = prior_exponential(2),
    weights = w,
    iter = 3000,
    chains = 4,
    seed = 2
  )
  expect_output(print(fit), "Exact: no step size", fixed = TRUE)
  # by the density that the first test has row by row, and the prior's
  model <- build_model(fit$blueprint, whole_rows(fit$rows))
  theta <- c(-0.3, 0.4, 0.5, -1, log(0.7))
  prior <- stats::dnorm(-0.3 + 0.4 * mean(data$a), 0, 4, log = TRUE) +
    stats::dnorm(0.4, 0, 1, log = TRUE) +
    sum(stats::dnorm(c(0.5, -1), 0, 0.7, log = TRUE)) -
    2 * 0.7 + log(0.7)
  flat <- c(0, 0, 0, 0, 0)
  at <- function(theta) model_evaluate(model, theta, "prior")$log_density
  expect_equal(
    at(theta) - at(flat),
    prior - (2 * stats::dnorm(0, 0, 1, log = TRUE) -
      log(4) + stats::dnorm(0, log = TRUE) +
      stats::dnorm(0, log = TRUE) - 2)
  )
  ours <- moments_at(fit$unconstrained)
  other <- weighted_moments(model, fit$unconstrained)
  expect_moments_near(ours, other)
})

test_that("two events have the posterior of importance sampling, too", {
  # far from normal: rows stay as they are, and lines move them
  data <- piece_data(100)
  data$seen <- seq_len(100) %in% c(3, 9)
  fit <- run_pieces(
    Surv(time, seen) ~ a,
    data,
    prior = prior_normal(0, 1),
    prior_intercept = prior_normal(0, 3),
    iter = 3000,
    chains = 4
  )
  expect_lt(max(apply(fit$draws, 3, posterior::rhat)), 1.02)
  model <- build_model(fit$blueprint, whole_rows(fit$rows))
  other <- weighted_moments(model, fit$unconstrained)
  expect_moments_near(moments_at(fit$unconstrained), other)
})

test_that("rows that are split by piece have the same posterior", {
  skip_if_not_installed("survival")
  data <- piece_data(400)
  fit <- run_pieces(
    Surv(entry, time, seen) ~ a + g,
    data,
    pieces = 6,
    prior = prior_normal(0, 1),
    prior_intercept = NULL,
    iter = 2000,
    chains = 4
  )
  pieces <- fit$family$pieces
  Surv <- survival::Surv
  split <- survival::survSplit(
    Surv(entry, time, seen) ~ a + g,
    data,
    cut = pieces$cuts,
    episode = "piece"
  )
  z <- pieces$basis[split$piece, ]
  colnames(z) <- pieces$names
  x <- cbind(stats::model.matrix(~ a + g, split), z)
  model <- model_glm(
    x,
    split$seen,
    "poisson",
    offset = log(split$time - split$entry),
    prior = prior_normal(0, 1),
    prior_intercept = NULL,
    blocks = rep(c("", "basehaz"), c(4, ncol(z)))
  )
  other <- sg_sample(model, iter = 2000, seed = 2, refresh = 0)
  moments <- function(fit) {
    posterior::summarise_draws(
      fit$draws, "mean", "sd", "mcse_mean", "ess_bulk"
    )
  }
  ours <- moments(fit)
  theirs <- moments(other)
  expect_identical(ours$variable, theirs$variable)
  z <- (ours$mean - theirs$mean) /
    sqrt(as.numeric(ours$mcse_mean)^2 + as.numeric(theirs$mcse_mean)^2)
  expect_lt(max(abs(z)), 4.5)
  se <- sqrt(1 / as.numeric(ours$ess_bulk) + 1 / as.numeric(theirs$ess_bulk))
  expect_lt(max(abs(log(as.numeric(ours$sd) / as.numeric(theirs$sd))) / se), 5)
})

test_that("with many pieces the maximum is that of Cox's model", {
  skip_if_not_installed("survival")
  data <- piece_data(1500)
  cox <- survival::coxph(
    survival::Surv(entry, time, seen) ~ a + g,
    data,
    ties = "breslow"
  )
  x <- stats::model.matrix(~ a + g, data)
  y <- cbind(data$time, data$entry, as.double(data$seen))
  off <- vapply(c(10, 50, 199), FUN.VALUE = 0, function(n) {
    family <- settle_pieces(pieces_family(n), y)
    model <- chunk_model(x, nrow(x), y, NULL, NULL, family)
    theta <- numeric(4 + length(family$pieces$names))
    for (k in 1:30) {
      sums <- chunk_sums(model, theta)
      step <- solve(sums$hessian, sums$gradient)
      theta <- theta + step / max(1, max(abs(step)))
    }
    expect_lt(max(abs(step)), 1e-8)
    max(abs(theta[2:4] - stats::coef(cox)) / sqrt(diag(stats::vcov(cox))))
  })
  expect_lt(off[[1]], 0.5)
  expect_lt(off[[2]], 0.1)
  expect_lt(off[[3]], 0.02)
})

test_that("a hazard that changes is found again", {
  withr::local_seed(3)
  n <- 20000
  x <- stats::rnorm(n)
  cuts <- c(1, 2, 3)
  rate <- c(0.1, 0.6, 0.2, 0.5)
  total <- c(0, cumsum(rate[1:3]))
  goal <- stats::rexp(n) / exp(0.5 * x)
  at <- findInterval(goal, total)
  event <- c(0, cuts)[at] + (goal - total[at]) / rate[at]
  data <- data.frame(x, time = pmin(event, 5), seen = event < 5)
  fit <- run_pieces(Surv(time, seen) ~ x, data, pieces = cuts)
  expect_identical(fit$kernel$name, "smh")
  expect_lt(mean(fit$sizes), 100)
  curve <- posterior_survfit(
    fit,
    data.frame(x = 0),
    "haz",
    times = c(0.5, 1.5, 2.5, 4),
    prob = 0.999
  )
  expect_true(all(curve$ci_lb < rate & rate < curve$ci_ub))
  expect_lt(max(curve$ci_ub / curve$ci_lb), 1.4)
  expect_lt(abs(coef(fit)[["x"]] - 0.5), 4 * sqrt(vcov(fit)["x", "x"]))
})

test_that("predictions are those of the pieces, draw by draw", {
  data <- piece_data()
  fit <- run_pieces(Surv(entry, time, seen) ~ a, data, pieces = 5, iter = 100)
  pieces <- fit$family$pieces
  draws <- as.matrix(fit)
  new <- data.frame(a = c(-1, 0.5))
  eta <- draws[, 1] + outer(draws[, 2], new$a)
  alpha <- draws[, pieces$names] %*% t(pieces$basis)
  begin <- c(0, pieces$cuts)
  end <- c(pieces$cuts, Inf)
  hazard <- function(t) {
    drop(exp(alpha) %*% pmax(pmin(t, end) - begin, 0)) * exp(eta)
  }
  mean_of <- function(x) unname(colMeans(x))
  ask <- function(...) unname(predict(fit, new, ...))
  for (t in c(pieces$cuts[[2]], 0.1, 5)) {
    expect_equal(ask("cumhaz", times = t), mean_of(hazard(t)))
    expect_equal(ask("survival", times = t), mean_of(exp(-hazard(t))))
    own <- exp(alpha[, sum(begin < t)] + eta)
    expect_equal(ask("hazard", times = t), mean_of(own))
    by_steps <- function(k) {
      f <- function(s) {
        vapply(s, function(s) mean(exp(-hazard(s)[, k])), 0)
      }
      # the integrand has a kink at each cut
      at <- c(0, pieces$cuts[pieces$cuts < t], t)
      sum(mapply(function(a, b) stats::integrate(f, a, b)$value,
        at[-length(at)], at[-1]))
    }
    expect_equal(ask("rmst", times = t), c(by_steps(1), by_steps(2)))
  }
  # S at a quantile
  rows <- asked_rows(ask_rows(fit, new))
  q <- surv_values(fit, rows, choose_draws(fit), "quantile", 0.3)
  back <- vapply(seq_len(nrow(q)), function(d) hazard(q[d, 2])[d, 2], 0)
  expect_equal(exp(-back), rep(0.7, nrow(q)))
  drawn <- rstantools::posterior_predict(fit, new, seed = 1)
  below <- mean(drawn[, 1] < q[, 1])
  expect_lt(abs(below - 0.3), 4.5 * sqrt(0.21 / nrow(q)))
  # residuals of martingales have no sum, as far as the prior lets them
  expect_lt(abs(sum(residuals(fit))), 0.05 * sum(data$seen))
  expect_equal(
    unname(residuals(fit, "coxsnell")),
    as.numeric(data$seen) - unname(residuals(fit))
  )
  loo <- suppressWarnings(loo::loo(fit))
  expect_identical(nrow(loo$pointwise), nrow(data))
})

test_that("pieces end at quantiles of events, and steps have mean 0", {
  time <- c(1, 1, 1, 2, 3, 4, 5, 6)
  expect_identical(usual_cuts(time, rep(1, 8), 4), c(1, 2, 4))
  # weights are counts
  expect_identical(
    usual_cuts(time, rep(c(3, 1), c(1, 7)), 2),
    usual_cuts(c(1, 1, time), rep(1, 10), 2)
  )
  # ties by the thousand, of one time and of two
  expect_identical(usual_cuts(rep(2, 1000), rep(1, 1000), 25), 1)
  expect_identical(usual_cuts(rep(c(1, 2), 500), rep(1, 1000), 25), 1)
  expect_identical(usual_pieces(70), 7)
  expect_identical(usual_pieces(1e4), 25)
  expect_identical(usual_pieces(16e4), 50)
  expect_identical(usual_pieces(1), 2)
  # what a look has settled stays, where all rows are brought to memory
  y <- cbind(1:100, 0, 1)
  family <- settle_pieces(pieces_family(4), y)
  expect_identical(settle_pieces(family, y[51:100, ]), family)
  withr::local_seed(1)
  time <- stats::rexp(200)
  cuts <- c(0.2, 0.5, 2, 30)
  basis <- walk_basis(cuts, time, rep(1, 200), 40)
  share <- tabulate(piece_of(cuts, time), 5) / 200
  expect_equal(drop(share %*% basis), numeric(4), tolerance = 1e-2)
  expect_equal(sum(share * rowSums(basis^2)), 1, tolerance = 1e-2)
  # steps by the distance of middles
  size <- diff(basis)[cbind(1:4, 1:4)]^2
  expect_equal(size / size[[1]], diff(c(0.1, 0.35, 1.25, 16, 35)) / 0.25)
})

test_that("frailties and smooth terms are columns", {
  data <- piece_data(400)
  fit <- run_pieces(Surv(time, seen) ~ s(a, k = 5) + (1 | g), data, iter = 200)
  expect_s3_class(fit, "tall_gam")
  expect_true(all(
    c("smooth_sd[s(a)1]", "smooth_sd[s(g)1]", "smooth_sd[basehaz]") %in%
      fit$variables
  ))
  expect_output(print(fit), "s\\(a\\)")
  table <- smooth_table(fit)
  expect_true(all(table$edf > 0 & table$edf < table$size))
  expect_length(predict(fit, data[1:3, ], "median"), 3)
  more <- sg_resume(fit, iter = 50)
  expect_identical(posterior::ndraws(more$draws), 300L)
})

test_that("the prior alone, kernels and resumed runs", {
  data <- piece_data(200)
  prior <- run_pieces(Surv(time, seen) ~ a, data, prior_PD = TRUE, iter = 4000)
  sd <- as.matrix(prior)[, "smooth_sd[basehaz]"]
  expect_lt(abs(mean(sd) - 1), 5 / sqrt(length(sd)))
  fit <- run_pieces(Surv(time, seen) ~ a, data, pieces = 4, iter = 2000)
  other <- run_pieces(
    Surv(time, seen) ~ a,
    data,
    pieces = 4,
    kernel = kernel_hmc(),
    iter = 2000
  )
  a <- posterior::summarise_draws(fit$draws, "mean", "mcse_mean")
  b <- posterior::summarise_draws(other$draws, "mean", "mcse_mean")
  z <- (a$mean - b$mean) /
    sqrt(as.numeric(a$mcse_mean)^2 + as.numeric(b$mcse_mean)^2)
  expect_lt(max(abs(z)), 4.5)
  shown <- capture.output(print(fit))
  expect_false(any(grepl("basehaz.1", shown, fixed = TRUE)))
  expect_true(any(grepl("piecewise (proportional hazards), 4 pieces", shown,
    fixed = TRUE)))
  path <- withr::local_tempfile()
  saveRDS(fit, path)
  again <- readRDS(path)
  expect_identical(
    predict(again, data[1:3, ], "median"),
    predict(fit, data[1:3, ], "median")
  )
})

test_that("what pieces cannot be is refused", {
  data <- piece_data(60)
  data$low <- data$time / 2
  data$one <- 1
  ask <- function(formula = Surv(time, seen) ~ a, ...) {
    run_pieces(formula, data, ..., iter = 10)
  }
  expect_refusals(
    "tall_error_input",
    ask(pieces = 1),
    ask(pieces = 1e4),
    ask(pieces = c(1, 1, 2)),
    ask(pieces = c(2, 1)),
    ask(pieces = c(0, 1)),
    ask(pieces = "many"),
    ask(pieces = NA),
    ask(basehaz = "weibull", pieces = 5),
    ask(prior_aux = prior_exponential(1)),
    ask(unit = 3),
    ask(prior_smooth = prior_normal(1, 1)),
    ask(Surv(time, seen & FALSE) ~ a)
  )
  data$S <- survival::Surv(data$low, data$time, type = "interval2")
  expect_refusals(
    "tall_error_unsupported",
    ask(Surv(low, time, type = "interval2") ~ a),
    ask(Surv(time, seen, type = "left") ~ a),
    ask(S ~ a),
    ask(basehaz = "ms")
  )
  # of one time: a piece has no event, and the walk's prior
  fit <- ask(Surv(one, seen) ~ a, chains = 1)
  expect_identical(fit$family$pieces$cuts, 0.5)
})

test_that("effects that change with time are seen", {
  skip_if_not_installed("survival")
  withr::local_seed(7)
  n <- 4000
  x <- stats::rnorm(n)
  z <- stats::rnorm(n)
  # hazards of x are proportional before and after 1, where its effect ends
  early <- stats::rexp(n) / exp(0.8 * x)
  time <- ifelse(early < 1, early, 1 + stats::rexp(n))
  last <- stats::runif(n, 0.2, 4)
  data <- data.frame(x, z, time = pmin(time, last), seen = time <= last)
  fit <- run_pieces(Surv(time, seen) ~ x + z, data)
  found <- ph_check(fit)
  cox <- survival::coxph(survival::Surv(time, seen) ~ x + z, data)
  theirs <- survival::cox.zph(cox, transform = "log")$table
  z <- found$change / found$sd
  expect_lt(found$upper[[1]], 0)
  expect_lt(abs(z[[1]]^2 / theirs["x", "chisq"] - 1), 0.15)
  expect_lt(abs(abs(z[[2]]) - sqrt(theirs["z", "chisq"])), 0.3)
  stretches <- attr(found, "stretches")
  of_x <- stretches[stretches$term == "x", ]
  is_early <- of_x$to < 0.9
  expect_lt(abs(mean(of_x$log_ratio[is_early]) - 0.8), 0.1)
  expect_lt(abs(mean(of_x$log_ratio[of_x$from > 1])), 0.15)
  expect_equal(of_x$from[-1], of_x$to[-nrow(of_x)])
  # other stretches, and the hazard of a law
  again <- ph_check(fit, pieces = unique(stretches$to)[1:3])
  expect_identical(nrow(again), 2L)
  law <- ph_check(run_pieces(Surv(time, seen) ~ x + z, data, "weibull"))
  expect_lt(abs(law$change[[1]] / found$change[[1]] - 1), 0.2)
  expect_output(print(found), "first tenth")
  skip_if_not_installed("ggplot2")
  expect_s3_class(plot(found), "ggplot")
  expect_refusals(
    "tall_error_unsupported",
    ph_check(run_pieces(Surv(time, seen) ~ x, data, "lognormal", iter = 20))
  )
  expect_refusals("tall_error_input", ph_check(cox), ph_check(fit, prob = 2))
})

test_that("proportional hazards are checked in awkward designs", {
  withr::local_seed(12)
  n <- 400
  data <- data.frame(
    x = stats::rnorm(n),
    f = rep_len(c("u", "v"), n),
    g = sample(letters[1:6], n, TRUE)
  )
  data$twice <- 2 * data$x
  data$time <- stats::rexp(n, exp(0.5 * data$x))
  data$seen <- data$time < 1
  data$time <- pmin(data$time, 1)
  check <- function(formula, ...) {
    suppressWarnings(ph_check(run_pieces(formula, data, ..., iter = 200)))
  }
  one <- check(Surv(time, seen) ~ x + f)
  # a level for each stretch, whatever the columns: the same at other columns
  other <- check(Surv(time, seen) ~ 0 + x + f)
  at <- match("x", other$term)
  expect_lt(abs(one$change[[1]] - other$change[[at]]), 0.2 * one$sd[[1]])
  expect_lt(abs(other$sd[[at]] / one$sd[[1]] - 1), 0.05)
  # what rows do not tell is NA, or left to the priors
  tied <- check(Surv(time, seen) ~ x + twice)
  expect_identical(nrow(tied), 2L)
  grouped <- check(Surv(time, seen) ~ x + (1 | g))
  expect_true("x" %in% grouped$term)
  expect_lt(abs(grouped$change[[1]] - one$change[[1]]), one$sd[[1]])
  # nothing to look at
  expect_refusals(
    "tall_error_unsupported",
    check(Surv(time, seen) ~ 1),
    check(Surv(time, seen) ~ s(x))
  )
  fit <- run_pieces(Surv(time, seen) ~ x, data, iter = 100)
  expect_refusals("tall_error_input", ph_check(fit, pieces = c(5000, 6000)))
  data$seen <- seq_len(n) == 7
  fit <- suppressWarnings(run_pieces(Surv(time, seen) ~ x, data, iter = 100))
  expect_refusals("tall_error_unsupported", ph_check(fit))
})
