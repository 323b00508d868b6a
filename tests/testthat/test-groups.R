# Groups' effects integrated out: the model against densities of R's own, and
# its posterior against one on a grid. The laws of models are in
# test-conformance-model.R.

shapes <- function() {
  withr::local_seed(3)
  group <- rep(1:12, times = rep_len(c(1, 6, 3), 12))
  n <- length(group)
  x <- cbind("(Intercept)" = 1, x = stats::rnorm(n), w = stats::rnorm(n))
  u <- stats::rnorm(12, 0, 0.8)[group]
  eta <- 0.3 + 0.5 * x[, "x"] + u
  list(
    group = group,
    x = x,
    y = list(
      bernoulli = stats::rbinom(n, 1, stats::plogis(eta)),
      probit = stats::rbinom(n, 1, stats::pnorm(eta)),
      poisson = stats::rpois(n, exp(eta)),
      neg_binomial_2 = stats::rnbinom(n, mu = exp(eta), size = 2),
      Gamma = stats::rgamma(n, 2, 2 / exp(eta)),
      gaussian = eta + stats::rnorm(n)
    ),
    weights = stats::runif(n, 0.5, 2)
  )
}

test_that("gradient and Hessian are derivatives, for each response and size", {
  withr::local_seed(4)
  s <- shapes()
  families <- list(
    bernoulli = "bernoulli",
    probit = stats::binomial("probit"),
    poisson = "poisson",
    neg_binomial_2 = neg_binomial_2(),
    Gamma = stats::Gamma("log"),
    gaussian = "gaussian"
  )
  for (name in names(families)) {
    for (q in 1:3) {
      # of sums with errors of their own beyond 1e-5, at 15^3 nodes
      nodes <- c(41, 25, 15)[[q]]
      model <- model_groups(
        s$x[, 1:2],
        s$y[[name]],
        s$group,
        s$x[, seq_len(q), drop = FALSE],
        family = families[[name]],
        weights = if (!name %in% c("bernoulli", "probit")) s$weights,
        nodes = nodes,
        correlated = q < 3
      )
      theta <- stats::runif(model$n_dim, -0.6, 0.3)
      f <- function(t) model_evaluate(model, t)$log_density
      g <- function(t) drop(model_evaluate(model, t)$gradient)
      here <- curvature(model, theta)
      size <- max(abs(here$hessian))
      expect_close(drop(slopes(f, theta, 2e-3)), g(theta),
        paste(name, q, "gradient"),
        tolerance = 1e-4
      )
      expect_close(-slopes(g, theta, 2e-3) / size, here$hessian / size,
        paste(name, q, "Hessian"),
        tolerance = 1e-4
      )
      expect_close(here$gradient, g(theta))
    }
  }
})

test_that("normal groups are those of the closed form, to rounding", {
  s <- shapes()
  n <- length(s$group)
  offset <- stats::qnorm(stats::ppoints(n))
  model <- model_groups(
    s$x[, 1:2], s$y$gaussian + 1e4, s$group, s$x,
    family = "gaussian", weights = s$weights, offset = offset
  )
  theta <- c(1e4, 0.4, -0.2, -0.5, -0.4, 0.3, 0.1, -0.2, 0.15)
  factor <- factor_of(theta[3:8], 3, span_of(s$x))
  expected <- vapply(split(seq_len(n), s$group), function(rows) {
    half <- s$x[rows, , drop = FALSE] %*% factor
    v <- tcrossprod(half) + diag(exp(0.3) / s$weights[rows], length(rows))
    e <- (s$y$gaussian + 1e4 - offset - s$x[, 1:2] %*% theta[1:2])[rows]
    root <- chol(v)
    -length(rows) / 2 * log(2 * pi) - sum(log(diag(root))) -
      sum(backsolve(root, e, transpose = TRUE)^2) / 2
  }, 0)
  got <- drop(row_log_lik(model, theta))
  expect_close(got, unname(expected), tolerance = 1e-10)
})

test_that("nodes integrate polynomials, and are symmetric", {
  for (n in c(1, 2, 3, 9, 41, 100)) {
    nodes <- gauss_hermite(n)
    w <- exp(nodes[, 2] - nodes[, 1]^2)
    k <- 0:(2 * n - 1)
    k <- k[k < 30]
    exact <- ifelse(k %% 2 == 1, 0, gamma((k + 1) / 2))
    got <- vapply(k, function(k) sum(w * nodes[, 1]^k), 0)
    expect_close(got / gamma((k + 1) / 2), exact / gamma((k + 1) / 2))
    expect_identical(nodes[, 1], -rev(nodes[, 1]))
  }
})

test_that("many nodes integrate what large standard deviations make", {
  withr::local_seed(3)
  group <- rep(1:40, each = 4)
  x <- cbind(1, stats::rnorm(160))
  y <- rep(stats::rbinom(40, 1, 0.4), each = 4)
  y[1:5 * 30] <- 1 - y[1:5 * 30]
  v <- seq(-9, 9, length.out = 10001)
  integral <- function(theta) {
    eta <- drop(x %*% theta[1:2])
    rows <- stats::plogis(
      (2 * y - 1) * outer(eta, exp(theta[[3]]) * v, "+"),
      log.p = TRUE
    )
    log(drop(exp(rowsum(rows, group)) %*% stats::dnorm(v)) * diff(v[1:2]))
  }
  error <- function(nodes, log_sd) {
    model <- model_groups(x, y, group, nodes = nodes)
    theta <- c(-1, 0.3, log_sd)
    max(abs(row_log_lik(model, theta) - integral(theta)))
  }
  # sds of 20 and 55, for which 50 nodes of Gauss and Hermite do not do
  expect_gt(error(50, 3), 1e-3)
  expect_lt(error(201, 3), 1e-4)
  expect_lt(error(401, 4), 1e-4)
})

test_that("order of rows, unused levels and labels do not matter", {
  s <- shapes()
  model <- function(at, group) {
    model_groups(s$x[at, 1:2], s$y$poisson[at], group, family = "poisson",
      weights = s$weights[at]
    )
  }
  at <- rev(seq_along(s$group))
  one <- model(seq_along(at), s$group)
  other <- model(at, factor(letters[s$group[at]], levels = letters))
  theta <- c(0.2, 0.1, -0.3)
  expect_identical(other$n_data, 12)
  expect_close(row_log_lik(other, theta), row_log_lik(one, theta))
})

test_that("large groups go through in parts", {
  withr::local_seed(5)
  n <- c(5000, 3, 700)
  group <- rep(1:3, n)
  x <- cbind(1, stats::rnorm(sum(n)))
  y <- stats::rbinom(sum(n), 1, stats::plogis(x[, 2]))
  model <- model_groups(x, y, group)
  theta <- c(0.1, 0.7, -0.5)
  expected <- integrate_groups(
    group,
    function(eta) stats::plogis((2 * y - 1) * eta, log.p = TRUE),
    drop(x %*% theta[1:2]),
    exp(theta[[3]]),
    most = 8
  )
  got <- drop(row_log_lik(model, theta))
  expect_close(got[[2]], expected[[2]], tolerance = 1e-6)
  f <- function(t) model_evaluate(model, t)$log_density
  g <- drop(model_evaluate(model, theta)$gradient)
  expect_close(drop(slopes(f, theta, 1e-3)) / 1e3, g / 1e3, tolerance = 1e-6)
  small <- model_groups(x[group == 3, ], y[group == 3], group[group == 3])
  expect_close(drop(row_log_lik(small, theta)), got[[3]])
})

test_that("estimates of order 2 have the mean of all groups", {
  s <- shapes()
  model <- model_groups(s$x[, 1:2], s$y$bernoulli, s$group)
  mode <- find_mode(model)
  white <- whiten_model(model, mode, FALSE)
  for (one in list(model, white)) {
    at <- if (identical(one, white)) numeric(3) else as.double(mode$estimate)
    fit <- sg_sample(
      model,
      kernel_sgld(1e-12),
      gradient_cv(at = mode, order = 2),
      subsample_weighted(2, weights = "leverage"),
      iter = 4, warmup = 0, chains = 1, seed = 1, refresh = 0
    )
    expect_identical(fit$chains$status, "ok")
  }
  # the expansion is exact where it is made, and quadratic about it
  gradient <- function(t) drop(model_evaluate(white, t)$gradient)
  expect_close(gradient(numeric(3)), numeric(3), tolerance = 1e-4)
  expect_close(gradient(c(1e-3, 0, 0)) / 1e-3, c(-1, 0, 0), tolerance = 0.01)
})

# What the recipe takes to be far from normal, where groups are many.
many_groups <- function(sd, size) {
  n_group <- groups_settings$many + 500
  group <- rep(seq_len(n_group), size)
  x <- cbind(1, stats::rnorm(length(group)))
  eta <- drop(x %*% c(0.3, 0.5)) + stats::rnorm(n_group, 0, sd)[group]
  y <- stats::rbinom(length(eta), 1, stats::plogis(eta))
  model <- model_groups(x, y, group)
  mode <- find_mode(model)
  white <- whiten_model(model, mode, FALSE)
  list(model = white, cubic = order_weights(white, mode, list(cores = 1)))
}

# as far_coordinates() has it, of all groups
whole_shape <- function(model, steps) {
  along <- sd_directions(model)
  points <- do.call(cbind, lapply(c(steps, 0), function(r) r * along))
  density <- matrix(density_at(model, points), ncol(along))
  lost <- density[, length(steps) + 1] - density[, seq_along(steps)]
  t(sweep(lost, 2, steps^2 / 2, "/"))
}

test_that("a sample of many groups tells their shape, where it is clear", {
  withr::local_seed(6)
  steps <- c(setting("recipe")$radii, -setting("recipe")$radii)
  clear <- many_groups(sd = 0.7, size = 4)
  ledger <- new_ledger()
  expect_identical(far_coordinates(clear$model, clear$cubic, ledger), integer())
  expect_lt(sum(ledger$passes), 12)
  found <- sampled_shape(
    clear$model,
    sd_directions(clear$model),
    steps,
    clear$cubic,
    ledger
  )
  exact <- whole_shape(clear$model, steps)
  expect_lt(max(abs(found$ratio - exact) / (found$error + 1e-3)), 4)
  expect_gt(max(abs(exact - 1)), 0.02)
  expect_lt(max(found$error), 0.01)
  # an sd of 0 is left to all of them
  none <- many_groups(sd = 0, size = 3)
  far <- far_coordinates(none$model, none$cubic, new_ledger())
  expect_identical(far, 3L)
  expect_identical(far_coordinates(none$model, NULL, new_ledger()), far)
})

# more than a block of rows
many_rows <- function(n = 70000) {
  withr::local_seed(9)
  d <- data.frame(
    g = sample(900L, n, TRUE),
    x = stats::rnorm(n),
    f = sample(c("a", "b", "c"), n, TRUE),
    w = stats::runif(n, 0.5, 2),
    o = stats::rnorm(n) / 3
  )
  d$y <- stats::rbinom(n, 1, stats::plogis(d$x))
  d
}

test_that("rows that are read in blocks are those of model.matrix()", {
  d <- many_rows()
  fixed <- y ~ stats::poly(x, 2) * f + offset(o)
  frame <- stats::model.frame(y ~ stats::poly(x, 2) * f + offset(o) + w, d)
  reader <- frame_part_reader(
    frame,
    part_terms(fixed, frame),
    part_terms(~ 0 + f + w, frame)
  )
  x <- z <- NULL
  each_rows(reader, function(block, first, n, is_last) {
    expect_identical(is_last, !is.null(x))
    x <<- rbind(x, block$x[seq_len(n), ])
    z <<- rbind(z, block$z[seq_len(n), ])
  })
  expect_equal(x, stats::model.matrix(fixed, d), ignore_attr = TRUE)
  expect_equal(z, stats::model.matrix(~ 0 + f + w, d), ignore_attr = TRUE)
  group <- factor(rep_len(1:7, nrow(d)))
  look <- look_at_rows(reader, group)
  expect_equal(look$mean, colMeans(x))
  expect_equal(look$sd, apply(x, 2, stats::sd))
  expect_equal(look$most, apply(abs(z), 2, max))
  expect_identical(look$same, c(NA, 4L, 5L, NA))
  expect_identical(look$varies, rep(TRUE, 4))
  # one value of a group that is another, in the last block
  last <- replace(rep(2, nrow(d)), nrow(d) - 1, 3)
  flat <- cbind(a = 1, b = rep_len(1:7, nrow(d)), c = last)
  look <- look_at_rows(matrix_reader(x, flat), group)
  expect_identical(look$varies, c(FALSE, FALSE, TRUE))
})

test_that("rows in any order, in blocks, make the model of groups in order", {
  d <- many_rows()
  model <- function(d, ...) {
    model_groups(
      cbind(1, x = d$x), d$y, d$g, cbind(1, w = d$w),
      weights = d$w,
      offset = d$o,
      ...
    )
  }
  sorted <- d[order(d$g), ]
  rownames(sorted) <- NULL
  theta <- c(0.1, 0.7, -0.3, -1, 0.2)
  of <- function(d, ...) drop(row_log_lik(model(d, ...), c(theta, -0.1)))
  expect_identical(
    of(d, family = neg_binomial_2()),
    of(sorted, family = neg_binomial_2())
  )
  got <- of(d, family = "gaussian")
  expect_identical(got, of(sorted, family = "gaussian"))
  rows <- which(d$g == 900)
  some <- rbind(d[rows, ], d[d$g == 1, ])
  # the same covariance, of which other rows have other lambda
  covariance <- tcrossprod(factor_of(theta[3:5], 2, span_of(cbind(1, d$w))))
  theta[3:5] <- lambda_of(covariance, span_of(cbind(1, some$w)))
  one <- model(some, family = "gaussian")
  expect_close(row_log_lik(one, c(theta, -0.1))[[2]], got[[900]])
})

# Rows that say nothing: draws are of the prior of standard deviations and
# correlations, whatever the coordinates. z of P(u < p), u uniform, over p.
prior_errors <- function(x, eta, iter) {
  x <- cbind("(Intercept)" = 1, x = x)
  model <- model_groups(
    x[, 1, drop = FALSE], c(1, -1, 2, 0), c(1, 1, 2, 2), x,
    family = "gaussian", sigma = 1e4,
    prior = prior_normal(0, 1),
    prior_covariance = prior_lkj(eta, prior_student(3, 0, 2))
  )
  fit <- sg_sample(
    model, kernel_mala(0.5, adapt = TRUE), gradient_full(),
    iter = iter, warmup = 5000, thin = 10, chains = 4, seed = 1, refresh = 0,
    init = numeric(4)
  )
  draws <- posterior::as_draws_array(fit)
  of <- function(j) matrix(as.numeric(draws[, , j]), ncol = 4)
  u <- list(
    2 * stats::pt(of(2) / 2, 3) - 1,
    2 * stats::pt(of(3) / 2, 3) - 1,
    stats::pbeta((of(4) + 1) / 2, eta, eta)
  )
  vapply(u, function(u) {
    vapply(c(0.05, 0.25, 0.5, 0.75, 0.95), function(p) {
      is_below <- u < p
      ess <- posterior::ess_mean(is_below)
      (mean(is_below) - p) / sqrt(p * (1 - p) / ess)
    }, 0)
  }, numeric(5))
}

test_that("the prior of covariances is what it says, in all coordinates", {
  skip_on_cran()
  # about 0, and 5 standard deviations from it, with moves of the model's own
  expect_lt(max(abs(prior_errors(c(-2, 0, 3, -1), 2, 45000))), 4)
  expect_lt(max(abs(prior_errors(c(9, 11, 14, 10), 1, 305000))), 4)
})

test_that("covariates in raw units and centred ones have one likelihood", {
  s <- shapes()
  model <- function(shift) {
    x <- cbind(1, x = 3 * s$x[, 2] + shift)
    model_groups(x, s$y$gaussian, s$group, x, family = "gaussian", sigma = 1)
  }
  covariance <- matrix(c(1.2, 0.3, 0.3, 0.5), 2)
  value <- function(shift) {
    back <- rbind(c(1, -shift), c(0, 1)) # u at 0 of that at the shift
    span <- span_of(cbind(1, 3 * s$x[, 2] + shift))
    lambda <- lambda_of(back %*% covariance %*% t(back), span)
    beta <- drop(back %*% c(0.4, -0.2))
    sum(row_log_lik(model(shift), c(beta, lambda)))
  }
  expect_close(value(40), value(0), tolerance = 1e-8)
  expect_close(value(4e4), value(0), tolerance = 1e-4)
})

test_that("groups are numbered as by factor() and interaction()", {
  withr::local_seed(4)
  columns <- list(
    c(3L, NA, 1L, 3L), -2:2, c(1.5, 2, NA), c(0.1 + 0.2, 0.3),
    factor(c("b", "a"), levels = c("b", "z", "a")), c("x", NA, "a"),
    c(NA_integer_, NA), integer(), c(-.Machine$integer.max, 5L),
    addNA(factor(c(1, NA))), sample(50, 1e3, TRUE) - 20L
  )
  for (x in columns) {
    expect_identical(quick_factor(x), factor(x))
  }
  a <- factor(sample(c("u", "v", "w:x", NA), 30, TRUE))
  for (b in list(sample(3, 30, TRUE), sample(c("k", "x:k"), 30, TRUE))) {
    expect_identical(
      quick_interaction(a, factor(b)),
      interaction(a, b, sep = ":", drop = TRUE, lex.order = TRUE)
    )
  }
})

test_that("a matrix is read in blocks", {
  local_settings(block_least = 70, block_numbers = 1)
  x <- withr::with_seed(1, matrix(rnorm(600), 200, 3))
  z <- cbind(a = x[, 1])
  look <- look_at_rows(matrix_reader(x, z), factor(rep(1:4, 50)))
  expect_equal(unname(look$mean), colMeans(x))
})
