# Regressions with several grouping factors: made-up rows, and posteriors known
# otherwise. bench/sbc.R reads this file.

# n rows of a student, a lecturer and a department, in which lecturers are
# nested; students' slopes of x.
crossed_columns <- function(n) {
  lecturer <- sample(8, n, TRUE)
  list(
    x = cbind("(Intercept)" = 1, x = stats::rnorm(n)),
    s = sample(12, n, TRUE),
    d = lecturer,
    dept = (lecturer + 2) %/% 3
  )
}

crossed_groups <- function(columns) {
  list(
    s = list(group = columns$s, z = columns$x),
    d = columns$d,
    dept = columns$dept
  )
}

# Parameters from their prior, in the order of the model's variables, and a
# predictor of rows: effects are drawn by the way.
crossed_prior <- tallbayes::prior_lkj(
  eta = 2,
  sd = tallbayes::prior_normal(0, 0.7)
)

crossed_draw <- function(has_sigma) {
  c(
    stats::rnorm(2, 0, 0.7),
    abs(stats::rnorm(2, 0, 0.7)),
    # LKJ(2) of two
    2 * stats::rbeta(1, 2, 2) - 1,
    abs(stats::rnorm(2, 0, 0.7)),
    if (has_sigma) stats::rexp(1)
  )
}

crossed_predictor <- function(columns, theta) {
  v <- matrix(stats::rnorm(24), 12)
  one <- theta[[3]] * v[, 1]
  slope <- theta[[4]] *
    (theta[[5]] * v[, 1] + sqrt(1 - theta[[5]]^2) * v[, 2])
  drop(columns$x %*% theta[1:2]) + one[columns$s] +
    slope[columns$s] * columns$x[, 2] +
    (theta[[6]] * stats::rnorm(8))[columns$d] +
    (theta[[7]] * stats::rnorm(3))[columns$dept]
}

# As sbc_problems(), of few rows, so that priors count.
sbc_crossed_problems <- function(n = 200) {
  problem <- function(family, respond, has_sigma = FALSE) {
    list(
      columns = function() crossed_columns(n),
      draw = function() crossed_draw(has_sigma),
      model = function(columns, theta) {
        y <- respond(crossed_predictor(columns, theta), theta)
        tallbayes::model_crossed(
          columns$x,
          y,
          crossed_groups(columns),
          family,
          prior = tallbayes::prior_normal(0, 0.7),
          prior_covariance = crossed_prior,
          prior_aux = tallbayes::prior_exponential(1)
        )
      }
    )
  }
  list(
    logistic = problem(
      "bernoulli",
      function(eta, theta) stats::rbinom(n, 1, stats::plogis(eta))
    ),
    gaussian = problem(
      "gaussian",
      function(eta, theta) stats::rnorm(n, eta, theta[[8]]),
      has_sigma = TRUE
    ),
    poisson = problem(
      "poisson",
      function(eta, theta) stats::rpois(n, exp(eta))
    )
  )
}

# Two factors of few levels, of which standard deviations are small and
# correlations near -1 or 1: students with a slope, crossed with lecturers, or
# lecturers with one, nested in departments.
near_prior <- tallbayes::prior_lkj(
  eta = 0.5,
  sd = tallbayes::prior_normal(0, 0.15)
)

near_columns <- function(n, is_nested) {
  inner <- sample(12, n, TRUE)
  list(
    x = cbind("(Intercept)" = 1, x = stats::rnorm(n)),
    inner = inner,
    outer = if (is_nested) (inner + 2) %/% 3 else sample(6, n, TRUE)
  )
}

# The predictor, from effects that are drawn by the way.
near_predictor <- function(columns, theta) {
  v <- matrix(stats::rnorm(24), 12)
  slope <- theta[[5]] * v[, 1] + sqrt(1 - theta[[5]]^2) * v[, 2]
  drop(columns$x %*% theta[1:2]) + (theta[[3]] * v[, 1])[columns$inner] +
    (theta[[4]] * slope)[columns$inner] * columns$x[, 2] +
    (theta[[6]] * stats::rnorm(6))[columns$outer]
}

sbc_near_problem <- function(is_nested, is_normal, n = 100) {
  list(
    columns = function() near_columns(n, is_nested),
    draw = function() {
      c(
        stats::rnorm(2, 0, 0.7),
        abs(stats::rnorm(2, 0, 0.15)),
        # LKJ(0.5) of two
        2 * stats::rbeta(1, 0.5, 0.5) - 1,
        abs(stats::rnorm(1, 0, 0.15)),
        if (is_normal) stats::rexp(1)
      )
    },
    model = function(columns, theta) {
      eta <- near_predictor(columns, theta)
      tallbayes::model_crossed(
        columns$x,
        if (is_normal) {
          stats::rnorm(n, eta, theta[[7]])
        } else {
          stats::rbinom(n, 1, stats::plogis(eta))
        },
        list(
          inner = list(group = columns$inner, z = columns$x),
          outer = columns$outer
        ),
        if (is_normal) "gaussian" else "bernoulli",
        prior = tallbayes::prior_normal(0, 0.7),
        prior_covariance = near_prior,
        prior_aux = tallbayes::prior_exponential(1)
      )
    }
  )
}

# By name; 100 rows.
sbc_near_problems <- function() {
  list(
    `crossed, logistic` = sbc_near_problem(FALSE, FALSE),
    `nested, gaussian` = sbc_near_problem(TRUE, TRUE),
    `crossed, gaussian` = sbc_near_problem(FALSE, TRUE),
    `nested, logistic` = sbc_near_problem(TRUE, FALSE)
  )
}

# Sweeps are many to a draw, so that these are nearly independent.
sbc_crossed_sample <- function(model, seed, iter, warmup) {
  tallbayes::sg_sample(
    model,
    iter = 200 + 10 * (iter - warmup),
    warmup = 200,
    thin = 10,
    chains = 1,
    seed = seed,
    refresh = 0
  )
}

# Means and sds of (sd_a, sd_b, sigma) of normal rows, y = b + u_a + v_b + e, at
# the midpoints of a grid: all effects integrated out. Half normal priors of the
# sds (scale), b of sd `wide`, sigma exponential.
crossed_grid <- function(y, a, b, scale, wide, n = 25) {
  za <- outer(a, sort(unique(a)), "==") + 0
  zb <- outer(b, sort(unique(b)), "==") + 0
  aa <- tcrossprod(za)
  bb <- tcrossprod(zb)
  density <- function(sd) {
    v <- sd[[1]]^2 * aa + sd[[2]]^2 * bb + wide^2
    diag(v) <- diag(v) + sd[[3]]^2
    root <- chol(v)
    -sum(log(diag(root))) - sum(backsolve(root, y, transpose = TRUE)^2) / 2 -
      sum(sd[1:2]^2) / (2 * scale^2) - sd[[3]]
  }
  middle <- (seq_len(n) - 0.5) / n
  grid <- as.matrix(expand.grid(3 * middle, 3 * middle, 0.4 + 1.4 * middle))
  log_p <- apply(grid, 1, density)
  p <- exp(log_p - max(log_p))
  p <- p / sum(p)
  mean <- colSums(grid * p)
  list(
    mean = mean,
    sd = sqrt(colSums(grid^2 * p) - mean^2),
    # what is left out at its ends
    edge = max(tapply(p, grid[, 1], sum)[n], tapply(p, grid[, 3], sum)[c(1, n)])
  )
}

# The same of the variables of a model, an intercept and one or two that are
# positive, by its own density, on a grid that reaches a little farther than
# draws of them.
model_grid <- function(model, draws) {
  draws <- matrix(unclass(draws), ncol = model$n_dim)
  n <- if (model$n_dim == 2) 40 else 20
  at <- lapply(seq_len(model$n_dim), function(j) {
    range <- range(draws[, j])
    far <- range + c(-0.3, 0.3) * diff(range)
    seq(if (j > 1) max(far[[1]], 1e-3) else far[[1]], far[[2]], length.out = n)
  })
  grid <- as.matrix(expand.grid(at))
  colnames(grid) <- model$variables
  log_p <- tallbayes::log_prob(model, grid, unconstrained = FALSE)
  p <- exp(log_p - max(log_p))
  p <- p / sum(p)
  mean <- colSums(grid * p)
  edges <- lapply(seq_len(model$n_dim), function(j) {
    tapply(p, grid[, j], sum)[c(1, n)]
  })
  list(
    mean = mean,
    sd = sqrt(colSums(grid^2 * p) - mean^2),
    edge = max(unlist(edges))
  )
}

# Are means and sds of draws (an array) those of a grid, to Monte Carlo error?
expect_grid <- function(draws, exact) {
  for (j in seq_along(exact$mean)) {
    x <- matrix(unclass(draws)[, , j], dim(draws)[[1]])
    off <- abs(mean(x) - exact$mean[[j]])
    testthat::expect_lt(off, 4.5 * posterior::mcse_mean(x))
    off <- abs(stats::sd(x) - exact$sd[[j]])
    testthat::expect_lt(off, 4.5 * posterior::mcse_sd(x))
  }
}
