# Draws of groups' effects given the parameters, against their law on a grid:
# also where sds are large and a group's responses all alike, so that the law is
# half a normal one beside a steep slope.

# Draws of v, n x q: u = factor v.
draws_of_v <- function(model, theta, factor, n, seed = 1, cores = 1L) {
  u <- .Call(
    ffi_groups_draws,
    model$pointer,
    matrix(theta, length(theta), n),
    1,
    as.double(seed),
    cores
  )
  t(solve(factor, matrix(u, nrow(factor))))
}

# The most standard errors by which means over draws differ from those over the
# law on the grid: of steps at quantiles out to one in a thousand along some
# directions, smooth ones, which a grid sums to rounding; and of squares.
law_error <- function(v, log_f, most = 8.5, step = 0.05) {
  q <- ncol(v)
  axis <- seq(-most, most, by = step)
  grid <- as.matrix(expand.grid(rep(list(axis), q)))
  log_p <- log_f(grid) - rowSums(grid^2) / 2
  kept <- log_p > max(log_p) - 40
  grid <- grid[kept, , drop = FALSE]
  p <- exp(log_p[kept] - max(log_p))
  p <- p / sum(p)
  along <- rbind(diag(q), if (q > 1) rep(1, q), if (q > 1) rep_len(c(1, -1), q))
  errors <- apply(along, 1, function(c) {
    at <- drop(grid %*% c)
    drawn <- drop(v %*% c)
    mean <- sum(p * at)
    sd <- sqrt(sum(p * (at - mean)^2))
    order <- order(at)
    cuts <- at[order][findInterval(
      c(0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999),
      cumsum(p[order])
    ) + 1]
    z <- vapply(cuts, function(cut) {
      f <- function(x) stats::pnorm((x - cut) / (0.15 * sd))
      of <- f(drawn)
      expected <- sum(p * f(at))
      spread <- sqrt(sum(p * (f(at) - expected)^2) / length(drawn))
      (mean(of) - expected) / spread
    }, 0)
    square <- ((drawn - mean) / sd)^2
    fourth <- sum(p * ((at - mean) / sd)^4)
    c(z, (mean(square) - 1) / sqrt((fourth - 1) / length(drawn)))
  })
  max(abs(errors))
}

# What a row says of its linear predictor, by the names of families.
row_laws <- function() {
  list(
    logit = list(
      family = "bernoulli",
      f = function(y, eta) stats::plogis((2 * y - 1) * eta, log.p = TRUE)
    ),
    probit = list(
      family = stats::binomial("probit"),
      f = function(y, eta) stats::pnorm((2 * y - 1) * eta, log.p = TRUE)
    ),
    cloglog = list(
      family = stats::binomial("cloglog"),
      f = function(y, eta) {
        if (y == 1) log(-expm1(-exp(eta))) else -exp(eta)
      }
    ),
    poisson = list(
      family = "poisson",
      f = function(y, eta) y * eta - exp(eta)
    ),
    neg_binomial_2 = list(
      family = neg_binomial_2(),
      aux = log(1.5),
      f = function(y, eta) y * eta - (y + 1.5) * log1p(exp(eta) / 1.5)
    ),
    gamma = list(
      family = stats::Gamma("log"),
      aux = log(2),
      f = function(y, eta) -2 * (eta + y * exp(-eta))
    ),
    normal = list(
      family = "gaussian",
      aux = log(0.5),
      f = function(y, eta) -2 * (y - eta)^2
    )
  )
}

# a: the intercept; y: of the group's rows; z: n x q. Draws of the first of two
# groups, the other of which is there to make two.
expect_law <- function(law, a, factor, y, z = NULL, n = 5e4, step = 0.08) {
  entry <- row_laws()[[law]]
  n_row <- length(y)
  z <- as_single(z %||% matrix(1, n_row))
  q <- ncol(z)
  twice <- rep(seq_len(n_row), 2)
  model <- model_groups(
    cbind("(Intercept)" = rep(1, 2 * n_row)),
    as.double(y)[twice],
    rep(1:2, each = n_row),
    z[twice, , drop = FALSE],
    family = entry$family,
    correlated = q == 2
  )
  lambda <- switch(
    q,
    log(factor),
    lambda_of(tcrossprod(factor), span_of(z)),
    # effects that are not correlated are put into one unit
    log(diag(factor) * signif(sqrt(colSums(z^2) / sum(z[, 1]^2)), 6))
  )
  theta <- c(a, lambda, entry$aux)
  v <- draws_of_v(model, theta, factor, n)
  log_f <- function(grid) {
    eta <- a + tcrossprod(grid, z %*% factor)
    rows <- vapply(
      seq_len(n_row),
      function(i) entry$f(y[[i]], eta[, i]),
      eta[, 1]
    )
    rowSums(matrix(rows, nrow(grid)))
  }
  # 5: 1 in 2e6 of them would be further off
  expect_lt(
    law_error(v, log_f, step = step), 5,
    label = paste(law, "a", a, "rows", n_row, "q", q, "error")
  )
}

test_that("draws of alike groups have the law of their rows, tails and all", {
  for (size in c(1, 5, 50)) {
    for (y in 0:1) {
      expect_law("logit", -3, matrix(8), rep(y, size), step = 0.005)
    }
  }
  expect_law("probit", 1, matrix(5), c(0, 0), step = 0.005)
  expect_law("cloglog", -1, matrix(6), c(1, 1, 1), step = 0.005)
  expect_law("cloglog", -1, matrix(6), 0, step = 0.005)
  expect_law("poisson", -3, matrix(8), numeric(5), step = 0.005)
  expect_law("neg_binomial_2", 0.5, matrix(8), 0, step = 0.005)
  expect_law("gamma", 0, matrix(4), 1e-4, step = 0.005)
})

test_that("so have those of others, and normal ones that of the closed form", {
  expect_law("logit", 0.5, matrix(1), c(0, 1, 1), step = 0.005)
  expect_law("poisson", 1, matrix(2), c(3, 5), step = 0.005)
  expect_law("normal", 1, matrix(3), c(1.5, 2, 4), step = 0.005)
})

test_that("draws of two and three effects do, too", {
  factor <- rbind(c(5, 0), c(-2, 4))
  x <- c(0.5, -0.4, 1, 2, -1)
  z <- cbind("(Intercept)" = 1, x = x)
  expect_law("logit", -3, factor, rep(1, 5), z)
  expect_law("logit", -3, factor, c(0, 0, 1, 1, 0), z)
  expect_law("poisson", 0, factor, numeric(5), z)
  expect_law("normal", 1, rbind(c(1, 0), c(0.7, 0.5)), c(1, 2, 0), z[1:3, ])
  z <- cbind(z, w = c(1, 0, -1, 0.5, -0.5))
  expect_law("logit", 2, diag(c(4, 3, 2)), rep(1, 5), z, step = 0.2)
})

test_that("draws are those of their seed, whatever the cores", {
  withr::local_seed(1)
  group <- rep(1:40, each = 3)
  x <- cbind(1, stats::rnorm(120))
  model <- model_groups(x, stats::rbinom(120, 1, 0.5), group, x)
  theta <- matrix(c(0.2, 0.1, 1, 1, 0.3), 5, 20)
  draw <- function(groups, seed, cores) {
    .Call(ffi_groups_draws, model$pointer, theta, groups, seed, cores)
  }
  one <- draw(as.double(1:40), 3, 1L)
  expect_identical(draw(as.double(1:40), 3, 3L), one)
  expect_identical(
    array(draw(c(7, 30), 3, 1L), c(2, 2, 20)),
    array(one, c(2, 40, 20))[, c(7, 30), ]
  )
  expect_false(identical(draw(as.double(1:40), 4, 1L), one))
  theta[1, 20] <- NaN
  expect_error(
    abort_status(draw(as.double(1:40), 4, 1L)),
    class = "tall_error_nonfinite"
  )
})
