smooth_rows <- function(n = 300) {
  withr::local_seed(3)
  x <- cbind("(Intercept)" = 1, a = stats::rnorm(n))
  z <- matrix(stats::rnorm(n * 6), n) / sqrt(3)
  colnames(z) <- paste0("z", 1:6)
  eta <- 0.3 * x[, "a"] + drop(z[, 1:3] %*% c(0.5, -0.4, 0.2))
  list(x = cbind(x, z), eta = eta, of = c(0, 0, 1, 1, 1, 2, 2, 2))
}

test_that("blocks are resolved to a ridge each", {
  d <- smooth_rows()
  y <- 4 * (d$eta + seq(-1, 1, length.out = 300))
  blocks <- c("", "", rep("s(u)", 3), rep("s(v)", 3))
  model <- model_glm(d$x, y, "gaussian", blocks = blocks)
  own <- model$mixture
  expect_identical(own$names, c("smooth_sd[s(u)]", "smooth_sd[s(v)]"))
  expect_identical(own$coordinates, paste0("log_", own$names))
  expect_identical(own$at, 3:8)
  expect_identical(own$params$mixture_size, c(3, 3))
  expect_equal(own$params$mixture_argument[c(2, 7)], rep(stats::sd(y), 2))
  expect_equal(
    drop(mixture_precision(own, cbind(c(0.5, 2)))),
    rep(1 / c(0.5, 2)^2, each = 3)
  )
  expect_identical(tail(model$variables, 3), c("sigma", own$names))
  # by number, in the order of the numbers
  by_number <- model_glm(d$x, y, "gaussian", blocks = c(0, 0, 7, 7, 7, 2, 2, 2))
  expect_identical(by_number$mixture$names, c("smooth_sd[2]", "smooth_sd[7]"))
  expect_identical(by_number$mixture$at, c(6:8, 3:5))
  # others may have a prior that learns its scales, too
  both <- model_glm(
    d$x,
    y,
    "gaussian",
    prior = prior_hs(),
    prior_intercept = prior_normal(),
    blocks = d$of
  )$mixture
  expect_identical(both$names[c(1, 3, 4)], c(
    "hs_global",
    "hs_local[a]",
    "smooth_sd[1]"
  ))
  expect_equal(
    mixture_precision(both, cbind(c(0.3, 2, 1, 0.5, 7))),
    cbind(c(1 / 4 + 1 / 0.09, rep(1 / c(0.5, 7)^2, each = 3)))
  )
  # no block, no scale
  expect_null(model_glm(d$x, y, "gaussian", blocks = numeric(8))$mixture)
})

test_that("the posterior of blocks is that of quadrature, for each prior", {
  d <- smooth_rows()
  withr::local_seed(4)
  y <- d$eta + stats::rnorm(300)
  priors <- list(
    list(prior_exponential(2), function(s) -2 * s),
    list(prior_normal(0, 0.5), function(s) -(s / 0.5)^2 / 2),
    list(prior_student(3, 0, 0.5), function(s) stats::dt(2 * s, 3, log = TRUE))
  )
  for (one in priors) {
    grid <- smooth_grid(d$x, y, d$of, rep(2.5, 8), one[[2]])
    model <- model_glm(
      d$x,
      y,
      "gaussian",
      sigma = 1,
      blocks = d$of,
      prior_smooth = one[[1]]
    )
    fit <- sg_sample(model, iter = 3500, warmup = 500, seed = 1, refresh = 0)
    draws <- posterior::as_draws_array(fit)
    at <- function(name) posterior::extract_variable_matrix(draws, name)
    for (k in 1:2) {
      s <- log(at(paste0("smooth_sd[", k, "]")))
      expect_moment(s, grid_mean(grid, grid$phi[, k]))
      expect_moment(s^2, grid_mean(grid, grid$phi[, k]^2))
    }
    for (j in c("a", "z1", "z4")) {
      b <- grid$beta[, match(j, colnames(d$x))]
      v <- grid$variance[, match(j, colnames(d$x))]
      expect_moment(at(j), grid_mean(grid, b))
      expect_moment(at(j)^2, grid_mean(grid, b^2 + v))
    }
  }
})

test_that("blocks and their prior that cannot be are refused", {
  d <- smooth_rows(20)
  y <- rep(0:1, 10)
  make <- function(...) model_glm(d$x, y, ...)
  expect_snapshot(make(blocks = c(0, 1)), error = TRUE)
  expect_snapshot(make(blocks = c(-1, rep(0, 7))), error = TRUE)
  expect_snapshot(make(blocks = rep(TRUE, 8)), error = TRUE)
  refuse <- function(prior) make(blocks = d$of, prior_smooth = prior)
  expect_snapshot(refuse(NULL), error = TRUE)
  expect_snapshot(refuse(prior_hs()), error = TRUE)
  expect_snapshot(refuse(prior_normal(1, 2)), error = TRUE)
  expect_snapshot(refuse(prior_normal(0, c(1, 2))), error = TRUE)
  expect_snapshot(make(prior_smooth = prior_exponential(1)), error = TRUE)
  model <- make(blocks = d$of)
  expect_snapshot(
    sg_sample(model, kernel_sgld(1e-3), iter = 10),
    error = TRUE
  )
})

test_that("they go on where they stopped", {
  d <- smooth_rows()
  withr::local_seed(5)
  y <- stats::rbinom(300, 1, stats::plogis(d$eta))
  model <- model_glm(d$x, y, blocks = d$of)
  run <- function(n) {
    sg_sample(model, iter = 50 + n, warmup = 50, seed = 2, refresh = 0)
  }
  expect_equal(
    posterior::as_draws_array(sg_resume(run(50), 50)),
    posterior::as_draws_array(run(100)),
    ignore_attr = TRUE
  )
})

# Scales from their prior, of which a tenth is below 0.05, curves from these,
# and data: ranks of scales and of curves at points are uniform.
test_that("ranks of scales and curves are uniform", {
  skip_on_cran()
  n <- 250
  n_rank <- 15
  blocks <- c(0, rep(1, 4), rep(2, 4))
  basis <- function(u) {
    b <- splines::bs(u, knots = 0.5, Boundary.knots = 0:1)
    1.5 * sweep(unclass(b)[, 1:4], 2, 0.25)
  }
  rows_at <- function(u, v) unname(cbind(1, basis(u), basis(v)))
  points <- rows_at(c(0.1, 0.6), c(0.9, 0.4))
  for (family in c("bernoulli", "gaussian")) {
    ranks <- vapply(seq_len(60), FUN.VALUE = numeric(4), function(k) {
      withr::local_seed(3000 + k)
      x <- rows_at(stats::runif(n), stats::runif(n))
      sds <- stats::rexp(2, 2)
      beta <- stats::rnorm(9) * c(0.5, rep(sds, each = 4))
      eta <- drop(x %*% beta)
      sigma <- stats::rexp(1, 1)
      y <- if (family == "gaussian") {
        eta + sigma * stats::rnorm(n)
      } else {
        stats::rbinom(n, 1, stats::plogis(eta))
      }
      model <- model_glm(
        x,
        y,
        family,
        prior = prior_normal(0, 0.5),
        prior_aux = prior_exponential(1),
        blocks = blocks,
        prior_smooth = prior_exponential(2)
      )
      fit <- sg_sample(
        model,
        iter = 150 + 10 * n_rank,
        warmup = 150,
        thin = 10,
        chains = 1,
        seed = k,
        refresh = 0
      )
      draws <- unclass(posterior::as_draws_matrix(fit$draws))
      told <- cbind(
        draws[, c("smooth_sd[1]", "smooth_sd[2]")],
        draws[, 1:9] %*% t(points)
      )
      known <- c(sds, points %*% beta)
      colSums(told < rep(known, each = n_rank))
    })
    # four cells of four ranks each
    p <- apply(ranks, 1, function(r) {
      stats::chisq.test(table(factor(r %/% 4, 0:3)))$p.value
    })
    expect_gt(min(p) * length(p), 0.01)
  }
})
