# Simulation-based calibration (Talts et al. 2018) of what is sampled without a
# kernel: parameters from the prior, data from them, and the rank of each
# parameter among independent draws of its posterior is uniform. Only what users
# have is called: bench/sbc.R reads this file.

sbc_n <- 2500
sbc_draws <- 63

# Independent columns with mean zero: posteriors are then correlated one way as
# often as the other.
sbc_covariates <- function(n = sbc_n) {
  cbind(
    "(Intercept)" = 1,
    a = stats::rnorm(n),
    b = stats::runif(n, -1.5, 1.5),
    c = sample(c(-1, 1), n, TRUE)
  )
}

# By name: `draw` of the parameters from their prior, and `model` of a response
# to x that they make.
sbc_problems <- function() {
  scale <- c(1, 0.5, 0.5, 0.5)
  normal <- function() stats::rnorm(4, 0, scale)
  few <- scale / 2
  prior <- tallbayes::prior_normal(0, scale)
  model <- tallbayes::model_glm
  bernoulli <- function(p) stats::rbinom(sbc_n, 1, p)
  list(
    logistic = list(
      draw = normal,
      model = function(x, theta) {
        y <- bernoulli(stats::plogis(drop(x %*% theta)))
        model(x, y, "bernoulli", prior = prior)
      }
    ),
    probit = list(
      draw = normal,
      model = function(x, theta) {
        y <- bernoulli(stats::pnorm(drop(x %*% theta)))
        model(x, y, stats::binomial("probit"), prior = prior)
      }
    ),
    poisson = list(
      draw = function() stats::rnorm(4, 0, few),
      model = function(x, theta) {
        y <- stats::rpois(sbc_n, exp(drop(x %*% theta)))
        model(x, y, "poisson", prior = tallbayes::prior_normal(0, few))
      }
    ),
    `truncated Poisson` = list(
      draw = function() stats::rnorm(4, 0, few),
      model = function(x, theta) {
        rate <- exp(drop(x %*% theta))
        none <- exp(-rate)
        u <- none + stats::runif(sbc_n) * (1 - none)
        y <- pmax(stats::qpois(u, rate), 1)
        family <- tallbayes::truncated_poisson()
        model(x, y, family, prior = tallbayes::prior_normal(0, few))
      }
    ),
    `binomial, trials and offset` = list(
      draw = normal,
      model = function(x, theta) {
        trials <- sample(1:5, sbc_n, TRUE)
        offset <- stats::runif(sbc_n, -1, 1)
        p <- stats::plogis(drop(x %*% theta) + offset)
        y <- stats::rbinom(sbc_n, trials, p) / trials
        model(
          x,
          y,
          "binomial",
          prior = prior,
          weights = trials,
          offset = offset
        )
      }
    ),
    `logistic, Laplace prior` = list(
      draw = function() few * stats::rexp(4) * sample(c(-1, 1), 4, TRUE),
      model = function(x, theta) {
        y <- bernoulli(stats::plogis(drop(x %*% theta)))
        model(x, y, "bernoulli", prior = tallbayes::prior_laplace(0, few))
      }
    )
  )
}

# The default, or what else samples that way.
sbc_sample <- function(model, seed, iter, warmup) {
  tallbayes::sg_sample(
    model,
    iter = iter,
    warmup = warmup,
    chains = 1,
    seed = seed,
    refresh = 0
  )
}

# Parameters, columns, and a model of a response that they make. A problem has
# `model` of both, or `response`, which is kept, and `regression` of it; and
# `columns`, where they are not sbc_covariates().
sbc_set <- function(problem, seed) {
  n <- if (is.null(problem$n)) sbc_n else problem$n
  columns <- problem$columns
  if (is.null(columns)) {
    columns <- function() sbc_covariates(n)
  }
  withr::with_seed(seed, {
    set <- list(theta = problem$draw(), x = columns())
    if (is.null(problem$response)) {
      set$model <- problem$model(set$x, set$theta)
    } else {
      set$y <- problem$response(set$x, set$theta)
      set$model <- problem$regression(set$x, set$y)
    }
    set
  })
}

# Of each replication the parameters and n_draw draws of them: every other one,
# which are independent under every recipe so far.
sbc_runs <- function(
  problem,
  n_rep,
  sample = sbc_sample,
  n_draw = sbc_draws,
  seeds = seq_len(n_rep)
) {
  lapply(seeds, function(seed) {
    set <- sbc_set(problem, seed)
    fit <- sample(set$model, seed, iter = 50 + 2 * n_draw, warmup = 50)
    list(
      theta = set$theta,
      draws = matrix(fit$draws, 2 * n_draw)[2 * seq_len(n_draw), ],
      kernel = fit$kernel$name
    )
  })
}

# Normal scores of the ranks, parameters x replications. spoil: what is done to
# the draws (draws x parameters) before.
sbc_scores <- function(runs, spoil = identity) {
  vapply(
    runs,
    function(run) {
      draws <- spoil(run$draws)
      rank <- colSums(draws < rep(run$theta, each = nrow(draws)))
      stats::qnorm((rank + 0.5) / (nrow(draws) + 1))
    },
    numeric(length(runs[[1]]$theta))
  )
}

# Two-sided p values of their mean and their mean square. Uniform ranks have
# scores of known variance; a sum of normal squares has heavier tails than
# theirs.
sbc_p_values <- function(scores, n_draw = sbc_draws) {
  n <- length(scores)
  at <- stats::qnorm((seq_len(n_draw + 1) - 0.5) / (n_draw + 1))
  variance <- mean(at^2)
  z <- sum(scores) / sqrt(n * variance)
  square <- sum(scores^2) / variance
  two_sided <- function(lower, upper) min(1, 2 * min(lower, upper))
  c(
    location = two_sided(stats::pnorm(z), stats::pnorm(-z)),
    spread = two_sided(
      stats::pchisq(square, n),
      stats::pchisq(square, n, lower.tail = FALSE)
    )
  )
}

# What such tests must see: draws that are away by some posterior sds, or whose
# sds are wrong.
sbc_shift <- function(by) {
  function(draws) {
    draws + rep(by * apply(draws, 2, stats::sd), each = nrow(draws))
  }
}

sbc_stretch <- function(by) {
  function(draws) {
    mean <- rep(colMeans(draws), each = nrow(draws))
    mean + by * (draws - mean)
  }
}

# A column and three levels, the second of a few rows, of which about half have
# the same outcome one and all, or nearly always all of some: tails are far from
# normal there, and heavy as the prior's.
sbc_level_problems <- function() {
  problem <- function(rows, scale) {
    location <- c(-1, 0, 0, 0)
    scale <- c(0.5, 0.5, scale, 0.5)
    level <- rep(1:3, c(sbc_n - 1000 - rows, rows, 1000))
    list(
      columns = function() {
        cbind(
          "(Intercept)" = 1,
          a = stats::rnorm(sbc_n),
          b = as.numeric(level == 2),
          c = as.numeric(level == 3)
        )
      },
      draw = function() stats::rnorm(4, location, scale),
      model = function(x, theta) {
        y <- stats::rbinom(sbc_n, 1, stats::plogis(drop(x %*% theta)))
        prior <- tallbayes::prior_normal(location, scale)
        tallbayes::model_glm(x, y, "bernoulli", prior = prior)
      }
    )
  }
  list(`rare level` = problem(4, 3), `separated level` = problem(30, 40))
}

# The same of responses with parameters beside their mean, the last of five or
# six, with exponential priors, and a gamma prior of the last of six; n: rows.
sbc_aux_problems <- function(n) {
  scale <- c(0.5, 0.25, 0.25, 0.25)
  prior <- tallbayes::prior_normal(0, scale)
  problem <- function(family, draw, rate = 1) {
    list(
      n = n,
      draw = function() c(stats::rnorm(4, 0, scale), stats::rexp(1, rate)),
      response = function(x, theta) draw(drop(x %*% theta[1:4]), theta[[5]]),
      regression = function(x, y) {
        tallbayes::model_glm(
          x,
          y,
          family,
          prior = prior,
          prior_aux = tallbayes::prior_exponential(rate)
        )
      }
    )
  }
  list(
    neg_binomial_2 = problem(
      tallbayes::neg_binomial_2(),
      function(eta, aux) stats::rnbinom(n, size = aux, mu = exp(eta))
    ),
    Gamma = problem(
      stats::Gamma("log"),
      function(eta, aux) {
        # what a double holds
        pmax(stats::rgamma(n, aux, aux / exp(eta)), 1e-300)
      }
    ),
    student = problem(
      tallbayes::student(4),
      function(eta, aux) eta + aux * stats::rt(n, 4)
    ),
    beta = problem(
      tallbayes::beta_regression(),
      function(eta, aux) {
        p <- stats::plogis(eta)
        y <- stats::rbeta(n, aux * p, aux * (1 - p))
        pmin(pmax(y, 1e-300), 1 - 2^-53)
      },
      # with less precision many a y is 1 for doubles
      rate = 1 / 200
    ),
    `student, df sampled` = list(
      n = n,
      draw = function() {
        c(stats::rnorm(4, 0, scale), stats::rexp(1), sbc_df())
      },
      response = function(x, theta) {
        drop(x %*% theta[1:4]) + theta[[5]] * stats::rt(n, theta[[6]])
      },
      regression = function(x, y) {
        tallbayes::model_glm(
          x,
          y,
          tallbayes::student(),
          prior = prior,
          prior_aux = list(
            sigma = tallbayes::prior_exponential(),
            nu = tallbayes::prior_gamma(2, 0.1)
          )
        )
      }
    )
  )
}

# Degrees of freedom: gamma(2, 0.1) above 1
sbc_df <- function() {
  repeat {
    df <- stats::rgamma(1, 2, 0.1)
    if (df > 1) {
      return(df)
    }
  }
}

# What the recipe takes of groups, which moves from far away where it is exact:
# a longer warmup, and fewer draws, since each looks at all groups.
sbc_group_draws <- 31

sbc_group_sample <- function(model, seed, iter, warmup) {
  suppressWarnings(
    tallbayes::sg_sample(
      model,
      iter = iter + 50,
      warmup = warmup + 50,
      chains = 1,
      seed = seed,
      refresh = 0
    )
  )
}

# Regressions with three classes. Priors are of predictors and thresholds at the
# means of the columns, which are 0 here.
sbc_class_problems <- function(n) {
  normal <- tallbayes::prior_normal
  columns <- function(x) scale(x[, -1], scale = FALSE)
  ordered <- function(method, quantile, draw) {
    list(
      n = n,
      draw = function() {
        share <- stats::rgamma(3, 3)
        c(stats::rnorm(3, 0, 0.5), quantile(cumsum(share / sum(share))[1:2]))
      },
      model = function(x, theta) {
        x <- columns(x)
        u <- drop(x %*% theta[1:3]) + draw(n)
        y <- 1 + (u > theta[[4]]) + (u > theta[[5]])
        tallbayes::model_classes(
          x,
          factor(y, 1:3),
          method,
          prior = normal(0, 0.5),
          prior_counts = 3
        )
      }
    )
  }
  list(
    softmax = list(
      n = n,
      draw = function() stats::rnorm(8, 0, 0.7),
      model = function(x, theta) {
        x <- cbind(x[, 1, drop = FALSE], columns(x))
        e <- exp(cbind(0, x %*% matrix(theta, 4)))
        u <- stats::runif(n) * rowSums(e)
        y <- 1 + (u > e[, 1]) + (u > e[, 1] + e[, 2])
        tallbayes::model_classes(
          x,
          factor(y, 1:3),
          prior = normal(0, 0.7),
          prior_intercept = normal(0, 0.7)
        )
      }
    ),
    logistic = ordered("logistic", stats::qlogis, stats::rlogis),
    probit = ordered("probit", stats::qnorm, stats::rnorm)
  )
}

# 200 groups of 10, with an intercept of their own, or an intercept and a slope:
# two coefficients, standard deviations, their correlation.
sbc_group_problems <- function(n_group = 200, size = 10) {
  group <- rep(seq_len(n_group), size)
  problem <- function(family, q, draw) {
    list(
      n = n_group * size,
      draw = function() {
        sd <- abs(stats::rnorm(q))
        c(stats::rnorm(2, 0, 0.5), sd, if (q == 2) stats::runif(1, -1, 1))
      },
      model = function(x, theta) {
        x <- x[, 1:2]
        u <- matrix(stats::rnorm(n_group * q), n_group)
        if (q == 2) {
          cor <- theta[[5]]
          u[, 2] <- cor * u[, 1] + sqrt(1 - cor^2) * u[, 2]
        }
        u <- u * rep(theta[2 + seq_len(q)], each = n_group)
        z <- x[, seq_len(q), drop = FALSE]
        eta <- drop(x %*% theta[1:2]) + rowSums(z * u[group, , drop = FALSE])
        tallbayes::model_groups(
          x,
          draw(eta),
          group,
          z,
          family,
          prior = tallbayes::prior_normal(0, 0.5),
          prior_covariance = tallbayes::prior_lkj(
            1,
            tallbayes::prior_normal(0, 1)
          )
        )
      }
    )
  }
  bernoulli <- function(eta) {
    stats::rbinom(length(eta), 1, stats::plogis(eta))
  }
  poisson <- function(eta) stats::rpois(length(eta), exp(eta))
  list(
    `intercept, logistic` = problem("bernoulli", 1, bernoulli),
    `intercept and slope, logistic` = problem("bernoulli", 2, bernoulli),
    `intercept, poisson` = problem("poisson", 1, poisson)
  )
}
