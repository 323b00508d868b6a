# Expansions of averages over rows that are functions of several predictors:
# formulas of two parameters, classes, times to an event, hurdles.

several_data <- function(n, seed = 4) {
  withr::local_seed(seed)
  data <- data.frame(
    x = stats::rnorm(n),
    g = factor(rep_len(c("a", "b", "c"), n)),
    k = rep_len(1:2, n)
  )
  eta <- 0.5 * data$x - 0.4 * (data$g == "b")
  data$y <- stats::rnorm(n, eta, exp(0.3 * data$x))
  is_zero <- stats::runif(n) < stats::plogis(data$x - 1)
  data$count <- ifelse(is_zero, 0, stats::rpois(n, exp(0.5 + eta)))
  data$o <- cut(
    eta + stats::rlogis(n),
    c(-Inf, -1, 0.5, Inf),
    c("l", "m", "h"),
    ordered_result = TRUE
  )
  data$time <- 10 * stats::rexp(n, exp(eta))^0.8
  data$status <- data$time < 30
  data$time <- pmin(data$time, 30)
  data
}

# What a member is asked for, by name: how it is fitted, and with which
# arguments averages are.
several_members <- list(
  `spread of two formulas` = list(
    fit = function(...) tall_glm(list(y ~ x, sigma ~ x + g), ...),
    args = list(dpar = "sigma")
  ),
  `counts with zeros` = list(
    fit = function(...) {
      family <- zero_inflated_poisson()
      tall_glm(list(count ~ x + g, zi ~ x), ..., family = family)
    }
  ),
  `ordered classes` = list(fit = function(...) tall_polr(o ~ x + g, ...)),
  classes = list(fit = function(...) tall_multinom(o ~ x + g, ...)),
  `hazards of strata` = list(
    fit = function(...) {
      tall_surv(Surv(time, status) ~ x + strata(g), ..., pieces = 4)
    },
    args = list(times = c(3, 12))
  ),
  `restricted means` = list(
    fit = function(...) tall_surv(Surv(time, status) ~ x, ..., "weibull"),
    args = list(type = "rmst", times = 20)
  ),
  `accelerated times` = list(
    fit = function(...) tall_surv(Surv(time, status) ~ x, ..., "lognormal"),
    args = list(type = "hazard", times = 9)
  ),
  medians = list(
    fit = function(...) tall_surv(Surv(time, status) ~ x, ..., "loglogistic"),
    args = list(type = "median")
  ),
  hurdles = list(
    fit = function(...) {
      tall_glm(list(count ~ x, hu ~ g), ..., family = hurdle_negbinomial())
    }
  )
)

fit_several <- function(member, data) {
  member$fit(data, iter = 200, chains = 2, seed = 1, refresh = 0)
}

# Root mean squares over draws of how far two tables are apart, in posterior
# standard deviations.
apart <- function(found, exact) {
  away <- posterior::draws_of(found$draws) - posterior::draws_of(exact$draws)
  sqrt(colMeans(away^2)) / exact$sd
}

test_that("expansions of every member are as near as they say", {
  data <- several_data(5000)
  for (name in names(several_members)) {
    member <- several_members[[name]]
    fit <- fit_several(member, data)
    ask <- function(...) {
      more <- list(newdata = data, by = "k", ndraws = 50, ...)
      do.call(average_predictions, c(list(fit), more, member$args))
    }
    found <- ask(method = "expansion")
    exact <- ask(method = "exact")
    labels <- intersect(names(exact), c("k", "class", "time"))
    expect_identical(as.list(found)[labels], as.list(exact)[labels])
    told <- attr(found, "error")
    expect_lt(max(apart(found, exact) / told), 3.5, label = name)
    expect_lt(max(told), 0.01, label = name)
  }
})

# ---- the order ---------------------------------------------------------------

# Draws that are nearer to their means, by a factor.
shrink_draws <- function(fit, draws, by) {
  nearer <- function(x) {
    x <- as.matrix(x)
    centre <- rep(colMeans(x), each = nrow(x))
    centre + by * (x - centre)
  }
  draws$theta <- nearer(draws$theta)
  if (!is.null(draws$zeros)) {
    draws$zeros$theta <- nearer(draws$zeros$theta)
  }
  if (has_pieces(fit$family)) {
    draws$aux <- nearer(draws$aux)
  } else if (!is.null(draws$aux)) {
    draws$aux <- exp(nearer(log(draws$aux)))
  }
  draws
}

# Of the average over rows of each part, how far the second order is from the
# exact values: a standard deviation over draws.
second_order_error <- function(fit, request, data, by) {
  draws <- shrink_draws(fit, average_draws(fit, NULL), by)
  expansion <- expansion_of(fit, request)
  theta <- expansion$theta(draws)
  centre <- colMeans(theta)
  away <- theta - rep(centre, each = nrow(theta))
  rows <- average_design(fit, data, NULL)
  blocks <- expansion$blocks(rows)
  slopes <- expand_rows(expansion, blocks, centre)
  weight <- rep(1 / nrow(data), nrow(data))
  cells <- add_cells(NULL, expansion$parts, blocks, slopes, weight)
  exact <- average_values(request, rows, draws)
  dim(exact) <- c(nrow(theta), nrow(data), length(cells))
  vapply(seq_along(cells), FUN.VALUE = 0, function(k) {
    of <- part_columns(expansion, k)
    second <- cell_draws(cells[[k]], away[, of, drop = FALSE])
    stats::sd(second - rowMeans(exact[, , k]))
  })
}

test_that("what expansions leave out falls with the cube of a distance", {
  data <- several_data(150)
  for (name in names(several_members)) {
    member <- several_members[[name]]
    fit <- fit_several(member, data)
    asked <- member$args
    request <- ask_scale(
      list(fit = fit),
      asked$type,
      asked$times,
      asked$dpar,
      "auto",
      NULL
    )
    error <- lapply(c(0.5, 0.25), function(by) {
      second_order_error(fit, request, data, by)
    })
    ratio <- error[[1]] / error[[2]]
    # without a second derivative it is 4
    expect_gt(min(ratio), 7, label = name)
    expect_lt(max(ratio), 9, label = name)
  }
})

test_that("derivatives are those of the function", {
  eta <- seq(-3, 3, length.out = 50)
  data <- data.frame(x = eta, y = rep(0:1, 25))
  for (family in list(
    binomial(), binomial("probit"), binomial("cloglog"), poisson(), gaussian()
  )) {
    fit <- tall_glm(
      y ~ x,
      data,
      family,
      iter = 20,
      warmup = 10,
      chains = 1,
      seed = 1,
      refresh = 0
    )
    part <- expansion_of(fit, list(type = "response"))$parts[[1]]
    found <- part$slopes(list(eta))
    expect_equal(found$value, family$linkinv(eta))
    expect_equal(found$first[, 1], family$mu.eta(eta), tolerance = 1e-7)
    h <- 1e-5
    second <- (family$mu.eta(eta + h) - family$mu.eta(eta - h)) / (2 * h)
    expect_equal(found$second[, 1], second, tolerance = 1e-5)
  }
  # of several predictors, and of a sum over some
  b <- rev(eta) / 2
  c <- cos(eta)
  found <- difference_slopes(
    function(eta) exp(eta[[1]]) * sin(eta[[2]]) * eta[[3]]^2,
    list(eta, b, c)
  )
  expect_equal(
    found$first,
    exp(eta) * cbind(sin(b) * c^2, cos(b) * c^2, 2 * sin(b) * c),
    tolerance = 1e-7
  )
  expect_identical(
    predictor_pairs(3),
    cbind(c(1L, 1L, 2L, 1L, 2L, 3L), c(1L, 2L, 2L, 3L, 3L, 3L))
  )
  expect_equal(
    found$second,
    exp(eta) * cbind(
      sin(b) * c^2,
      cos(b) * c^2,
      -sin(b) * c^2,
      2 * sin(b) * c,
      2 * cos(b) * c,
      2 * sin(b)
    ),
    tolerance = 1e-4
  )
  g <- function(u) exp(-exp(u))
  found <- sum_slopes(g, c(0.5, 2), list(eta, b, c))
  all <- difference_slopes(
    function(eta) 0.5 * g(eta[[1]] + eta[[2]]) + 2 * g(eta[[1]] + eta[[3]]),
    list(eta, b, c)
  )
  expect_equal(found[1:2], all[1:2])
  pairs <- predictor_pairs(3)
  at <- match(
    paste(sum_pairs(2)[, 1], sum_pairs(2)[, 2]),
    paste(pairs[, 1], pairs[, 2])
  )
  expect_equal(found$second, all$second[, at], tolerance = 1e-4)
  expect_lt(max(abs(all$second[, -at])), 1e-8)
})
