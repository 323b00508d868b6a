# The laws of a model, written once; test-conformance-model.R applies them to
# every entry of conformance_models(). An entry has
#
#   name          the registered member
#   model         a tall_model
#   log_lik       theta -> log p(y_i | theta) of every row, from R's densities
#   log_prior     theta -> log p(theta), up to a constant
#   row_gradient  theta -> n_data x n_dim, by the formula
#   row_hessian   theta -> n_data matrices: -H_i; NULL: the model has none
#   lipschitz     L_i of every row; NULL: none
#   lipschitz_prior   the constant of g_0; NA: none
#   hessian_tolerance   of weights from a Hessian by differences; NULL: exact
#   blocks        columns of L that are kept apart: chol is block diagonal
#   point         () -> a random theta
#   rounding      of the log likelihood, other than that of doubles; NULL: none
#   is_estimated  why sums over rows are estimates; NULL: they are exact
#   runs          the model for runs, where `model` is slow or has no mode near
#                 its start; NULL: `model`
#   is_seeded     FALSE: the law of seeds is tested of an entry like it
#   natural       theta -> the variables that draws are of, by the formula;
#                 NULL: what names say, see natural_by_name()

# Numbers that every store can keep.
as_single <- function(x) {
  raw <- writeBin(as.vector(x), raw(), size = 4)
  x[] <- readBin(raw, "double", length(x), size = 4)
  x
}

conformance_models <- function() {
  trials <- c(1, 3, 2, 5)
  entries <- list(
    "ica" = entry_ica(),
    "lda" = entry_lda(),
    "lda, sparse prior" = entry_lda(beta = 0.6, n_topic = 3),
    "lda, mean" = entry_lda(beta = 0.6, coordinates = "mean"),
    "glm, gaussian" = entry_glm(
      "gaussian",
      prior = prior_normal(c(0.2, 0, -1), c(2, 1, 0.5)),
      weighted = TRUE,
      shifted = TRUE,
      sigma = 0.7
    ),
    "glm, bernoulli" = entry_glm("bernoulli", prior = prior_normal(0, 2)),
    "glm, bernoulli, weighted" = entry_glm(
      "bernoulli",
      prior = prior_flat(),
      weighted = TRUE,
      n_data = 40
    ),
    "glm, binomial" = entry_glm(
      "binomial",
      prior = prior_normal(1, 2),
      trials = trials,
      shifted = TRUE
    ),
    "glm, poisson" = entry_glm(
      "poisson",
      prior = prior_laplace(0.1, 0.3),
      weighted = TRUE,
      shifted = TRUE
    ),
    "glm, wide rows" = entry_glm(
      "bernoulli",
      prior = prior_normal(0, 1),
      n_data = 70,
      n_dim = 17
    ),
    "glm, several chunks" = entry_glm(
      "poisson",
      prior = prior_normal(0, 1),
      n_data = 9001,
      n_dim = 2
    ),
    "glm, sampled sigma" = entry_sigma(prior_exponential(2)),
    "glm, sampled sigma, flat" = entry_sigma(prior_flat()),
    "glm, negative binomial" = entry_aux("neg_binomial_2"),
    "glm, gamma" = entry_aux("Gamma"),
    "glm, Student" = entry_aux("student"),
    "glm, beta" = entry_aux("beta"),
    "glm, Student prior" = entry_glm(
      "bernoulli",
      prior = prior_student(2.5, 0.1, 0.8)
    ),
    "glm, centred intercept" = entry_centred(),
    "sums" = entry_sums(entry_sigma(prior_exponential(2))),
    "sums, known sigma" = entry_sums(
      entry_glm("gaussian", prior = prior_laplace(0.1, 0.3), sigma = 0.7)
    ),
    "density, normal" = entry_density(
      "normal",
      function(t) stats::dnorm(t, c(0.5, -1), c(1, 2), log = TRUE),
      mean = c(0.5, -1),
      sd = c(1, 2)
    ),
    "density, skew-normal" = entry_density(
      "skew-normal",
      function(t) {
        z <- (t - 0.3) / 0.7
        alpha <- c(3, -20)
        log(2 / 0.7) +
          stats::dnorm(z, log = TRUE) +
          stats::pnorm(alpha * z, log.p = TRUE)
      },
      shape = c(3, -20),
      location = 0.3,
      scale = 0.7
    ),
    "density, student" = entry_density(
      "student",
      function(t) stats::dt((t - 1) / 0.5, c(0.7, 5), log = TRUE) - log(0.5),
      df = c(0.7, 5),
      location = 1,
      scale = 0.5
    ),
    "density, mixture" = entry_density(
      "mixture",
      function(t) {
        log(0.25 * stats::dnorm(t, -1, 0.5) + 0.75 * stats::dnorm(t, 2, 1.5))
      },
      means = c(-1, 2),
      sds = c(0.5, 1.5),
      weights = c(1, 3),
      dim = 2
    ),
    "density, banana" = entry_density(
      "banana",
      function(t) {
        bend <- c(0.8, -0.3) * (t[c(1, 3)]^2 - c(4, 0.25))
        c(
          stats::dnorm(t[c(1, 3)], 0, c(2, 0.5), log = TRUE),
          stats::dnorm(t[c(2, 4)], bend, c(1, 0.2), log = TRUE)
        )
      },
      curvature = c(0.8, -0.3),
      sd = c(2, 1, 0.5, 0.2)
    ),
    "gaussian" = entry_gaussian(),
    "gaussian, one coordinate" = entry_gaussian(n_data = 9, n_dim = 1)
  )
  c(
    entries,
    network_entries(),
    groups_entries(),
    factors_entries(),
    classes_entries(),
    pieces_entries(),
    dpar_entries(),
    native_entries(),
    custom_entries()
  )
}

# Models whose columns have means far from 0: what is centred inside of one is
# another number outside.
shifted_models <- function() {
  far <- 3
  list(
    "glm, gaussian" = entry_sigma(prior_exponential(2), far = far),
    "glm, bernoulli" = entry_glm("bernoulli", prior_normal(0, 2), far = far),
    "sums" = entry_sums(entry_sigma(prior_exponential(2), far = far)),
    "groups, normal" = entry_groups("gaussian", far = far),
    "groups, logistic" = entry_groups("bernoulli", q = 1, far = far),
    "network" = entry_network("tanh", "gaussian", far = far),
    "ica" = entry_ica(far = far),
    "classes, softmax" = entry_softmax(far = far),
    "classes, two" = entry_softmax(2, far = far),
    "classes, ordered" = entry_ordered(far = far),
    "classes, two ordered" = entry_ordered(n_class = 2, far = far),
    "custom" = entry_custom_logistic(far = far)
  )
}

entry_glm <- function(
  family,
  prior,
  weighted = FALSE,
  shifted = FALSE,
  trials = NULL,
  sigma = 1,
  n_data = 23,
  n_dim = 3,
  far = 0,
  seed = 11
) {
  withr::local_seed(seed)
  x <- matrix(stats::rnorm(n_data * n_dim), n_data) / sqrt(n_dim)
  x <- as_single(x + far)
  offset <- if (shifted) stats::rnorm(n_data) / 2
  weights <- if (weighted) stats::runif(n_data, 0.5, 2)
  if (!is.null(trials)) {
    weights <- rep_len(trials, n_data)
  }
  w <- if (is.null(weights)) rep(1, n_data) else weights
  shift <- if (is.null(offset)) 0 else offset
  p <- stats::plogis(x[, 1])
  y <- switch(
    family,
    gaussian = stats::rnorm(n_data),
    bernoulli = stats::rbinom(n_data, 1, p),
    binomial = stats::rbinom(n_data, w, p) / w,
    poisson = stats::rpois(n_data, 2)
  )
  eta <- function(theta) drop(x %*% theta) + shift
  scale <- if (family == "gaussian") sigma^2 else 1
  mu <- switch(
    family,
    gaussian = identity,
    poisson = exp,
    stats::plogis
  )
  curve <- function(theta) {
    m <- mu(eta(theta))
    w / scale * switch(family, gaussian = 1 + 0 * m, poisson = m, m * (1 - m))
  }
  list(
    name = "glm",
    model = model_glm(
      x,
      y,
      family = family,
      prior = prior,
      weights = weights,
      offset = offset,
      sigma = sigma
    ),
    log_lik = function(theta) {
      m <- mu(eta(theta))
      switch(
        family,
        gaussian = stats::dnorm(y, m, sigma / sqrt(w), log = TRUE),
        bernoulli = w * stats::dbinom(y, 1, m, log = TRUE),
        binomial = stats::dbinom(round(w * y), w, m, log = TRUE),
        poisson = w * stats::dpois(y, m, log = TRUE)
      )
    },
    log_prior = function(theta) prior_density(prior, theta),
    row_gradient = function(theta) w * (y - mu(eta(theta))) / scale * x,
    row_hessian = function(theta) {
      v <- curve(theta)
      lapply(seq_len(n_data), function(i) v[[i]] * tcrossprod(x[i, ]))
    },
    lipschitz = switch(
      family,
      gaussian = w * rowSums(x^2) / scale,
      poisson = NULL,
      w * rowSums(x^2) / 4
    ),
    lipschitz_prior = switch(
      prior$kind,
      flat = 0,
      normal = max(1 / prior$scale^2),
      laplace = ,
      student = NA
    ),
    point = function() stats::runif(n_dim, -1, 1)
  )
}

prior_density <- function(prior, theta) {
  t <- (theta - prior$location) / prior$scale
  switch(
    prior$kind,
    flat = 0,
    normal = -sum(t^2) / 2,
    laplace = -sum(abs(t)),
    student = -(prior$df + 1) / 2 * sum(log1p(t^2 / prior$df))
  )
}

# Responses with a sampled parameter beside their mean, by differences of R's
# own densities; the logarithm of the parameter is the last coordinate.
entry_aux <- function(name, n_data = 21, seed = 17) {
  problem <- response_problems()[[name]]
  withr::local_seed(seed)
  x <- as_single(matrix(stats::rnorm(n_data * 2), n_data))
  offset <- stats::rnorm(n_data) / 3
  y <- problem$draw(drop(x %*% c(0.5, -0.2)) + offset)
  weights <- stats::runif(n_data, 0.5, 2)
  is_precision <- name == "student"
  prior <- prior_normal(0.3, 1.5)
  density <- function(eta, s) {
    if (is_precision) {
      problem$density(y, eta, exp(s) / sqrt(weights))
    } else {
      weights * problem$density(y, eta, exp(s))
    }
  }
  eta_at <- function(theta) drop(x %*% theta[1:2]) + offset
  slope <- function(f, h = 2e-3) {
    (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)
  }
  score <- function(eta, s) slope(function(h) density(eta + h, s))
  score_s <- function(eta, s) slope(function(h) density(eta, s + h))
  list(
    name = "glm",
    model = model_glm(
      x,
      y,
      family = problem$family(),
      prior = prior,
      weights = weights,
      offset = offset,
      prior_aux = prior_exponential(2)
    ),
    log_lik = function(theta) density(eta_at(theta), theta[[3]]),
    log_prior = function(theta) {
      prior_density(prior, theta[1:2]) +
        stats::dexp(exp(theta[[3]]), 2, log = TRUE) +
        theta[[3]]
    },
    row_gradient = function(theta) {
      eta <- eta_at(theta)
      cbind(score(eta, theta[[3]]) * x, score_s(eta, theta[[3]]))
    },
    row_hessian = function(theta) {
      eta <- eta_at(theta)
      s <- theta[[3]]
      c <- -slope(function(h) score(eta + h, s))
      a <- -slope(function(h) score(eta, s + h))
      b <- -slope(function(h) score_s(eta, s + h))
      lapply(seq_len(n_data), function(i) {
        across <- a[[i]] * x[i, ]
        rbind(cbind(c[[i]] * tcrossprod(x[i, ]), across), c(across, b[[i]]))
      })
    },
    lipschitz = NULL,
    lipschitz_prior = NA,
    blocks = 3,
    point = function() c(stats::runif(2, -1, 1), stats::runif(1, 0, 1))
  )
}

# log sigma is the last coordinate; its prior has the Jacobian of sigma.
entry_sigma <- function(
  prior_aux,
  n_data = 21,
  n_dim = 2,
  far = 0,
  seed = 13
) {
  withr::local_seed(seed)
  x <- as_single(matrix(stats::rnorm(n_data * n_dim), n_data) + far)
  y <- stats::rnorm(n_data, x[, 1], 2)
  weights <- stats::runif(n_data, 0.5, 2)
  offset <- stats::rnorm(n_data) / 3
  prior <- prior_normal(0.3, 1.5)
  error <- function(theta) {
    y - drop(x %*% theta[seq_len(n_dim)]) - offset
  }
  sigma <- function(theta) exp(theta[[n_dim + 1]])
  list(
    name = "glm",
    model = model_glm(
      x,
      y,
      family = "gaussian",
      prior = prior,
      weights = weights,
      offset = offset,
      prior_aux = prior_aux
    ),
    log_lik = function(theta) {
      sd <- sigma(theta) / sqrt(weights)
      stats::dnorm(error(theta), 0, sd, log = TRUE)
    },
    log_prior = function(theta) {
      aux <- if (prior_aux$kind == "flat") {
        0
      } else {
        stats::dexp(sigma(theta), prior_aux$rate, log = TRUE)
      }
      prior_density(prior, theta[seq_len(n_dim)]) + aux + theta[[n_dim + 1]]
    },
    row_gradient = function(theta) {
      e <- error(theta)
      r <- weights * e / sigma(theta)^2
      cbind(r * x, r * e - 1)
    },
    row_hessian = function(theta) {
      e <- error(theta)
      v <- weights / sigma(theta)^2
      lapply(seq_len(n_data), function(i) {
        across <- 2 * v[[i]] * e[[i]] * x[i, ]
        rbind(
          cbind(v[[i]] * tcrossprod(x[i, ]), across),
          c(across, 2 * v[[i]] * e[[i]]^2)
        )
      })
    },
    lipschitz = NULL,
    lipschitz_prior = NA,
    blocks = n_dim + 1,
    point = function() c(stats::runif(n_dim, -1, 1), stats::runif(1, 0, 1))
  )
}

# The intercept's prior is on the predictor at the means of the covariates.
entry_centred <- function(n_data = 25, seed = 14) {
  withr::local_seed(seed)
  x <- cbind(a = stats::rnorm(n_data, 2), "(Intercept)" = 1, b = 1:n_data / 5)
  y <- stats::rbinom(n_data, 1, 0.5)
  at <- colMeans(x)
  priors <- list(
    prior = prior_normal(0, 1.5),
    prior_intercept = prior_normal(0.5, 3),
    prior_aux = prior_flat()
  )
  blueprint <- blueprint_glm(resolve_family("bernoulli"), priors)
  model <- build_model(blueprint, rows_memory(x, y))
  p <- function(theta) stats::plogis(drop(x %*% theta))
  list(
    name = "glm",
    model = model,
    log_lik = function(theta) stats::dbinom(y, 1, p(theta), log = TRUE),
    log_prior = function(theta) {
      prior_density(prior_normal(0, 1.5), theta[c(1, 3)]) +
        prior_density(prior_normal(0.5, 3), sum(at * theta))
    },
    row_gradient = function(theta) (y - p(theta)) * x,
    row_hessian = function(theta) {
      v <- p(theta) * (1 - p(theta))
      lapply(seq_len(n_data), function(i) v[[i]] * tcrossprod(x[i, ]))
    },
    lipschitz = rowSums(x^2) / 4,
    lipschitz_prior = max(eigen(
      diag(c(1, 0, 1) / 1.5^2) + tcrossprod(at) / 3^2
    )$values),
    point = function() stats::runif(3, -0.5, 0.5)
  )
}

# The curvature that Sigma is the inverse of: without its cross terms.
apart <- function(hessian, blocks) {
  if (is.null(blocks)) {
    return(hessian)
  }
  hessian[blocks, -blocks] <- 0
  hessian[-blocks, blocks] <- 0
  hessian
}

entry_gaussian <- function(n_data = 19, n_dim = 3, seed = 12) {
  withr::local_seed(seed)
  x <- matrix(stats::rnorm(n_data * n_dim), n_data) + 2
  spd <- function() {
    crossprod(matrix(stats::rnorm(n_dim^2), n_dim)) + diag(n_dim)
  }
  covariance <- spd()
  prior_covariance <- spd()
  prior_mean <- stats::rnorm(n_dim)
  precision <- solve(covariance)
  quadratic <- function(centred, p) rowSums((centred %*% p) * centred)
  list(
    name = "gaussian",
    model = model_gaussian(x, covariance, prior_mean, prior_covariance),
    log_lik = function(theta) {
      centred <- sweep(x, 2, theta)
      constant <- determinant(2 * pi * covariance)$modulus
      -0.5 * (quadratic(centred, precision) + as.numeric(constant))
    },
    log_prior = function(theta) {
      -0.5 * quadratic(t(theta - prior_mean), solve(prior_covariance))
    },
    row_gradient = function(theta) sweep(x, 2, theta) %*% precision,
    row_hessian = function(theta) rep(list(precision), n_data),
    lipschitz = rep(max(eigen(precision)$values), n_data),
    lipschitz_prior = max(eigen(solve(prior_covariance))$values),
    point = function() stats::runif(n_dim, -3, 3)
  )
}

# A density has no rows: all of it is the prior's part. `log_density`: theta ->
# that of every coordinate, normalised.
entry_density <- function(name, log_density, ...) {
  model <- model_density(name, ...)
  d <- model$n_dim
  list(
    name = "density",
    model = model,
    log_lik = function(theta) numeric(0),
    log_prior = function(theta) sum(log_density(theta)),
    row_gradient = function(theta) matrix(0, 0, d),
    lipschitz = NULL,
    lipschitz_prior = NA,
    point = function() stats::runif(d, -3, 3)
  )
}

# A Gaussian regression that has lost its rows: what they say is the prior's
# part.
entry_sums <- function(of) {
  parts <- sums_parts(of$model, 1L)
  model <- sums_model(of$model, parts$sums, parts$fit)
  list(
    name = "sums",
    model = model,
    log_lik = function(theta) numeric(0),
    log_prior = function(theta) of$log_prior(theta) + sum(of$log_lik(theta)),
    row_gradient = function(theta) matrix(0, 0, model$n_dim),
    row_hessian = function(theta) list(),
    lipschitz = NULL,
    lipschitz_prior = NA,
    point = of$point
  )
}

skip_without_rows <- function(entry) {
  if (entry$model$n_data == 0) {
    testthat::skip(paste(entry$name, "has no rows"))
  }
}

# Laws of sums that are exact. test-topics.R holds the estimates against theirs.
skip_where_estimated <- function(entry) {
  if (!is.null(entry$is_estimated)) {
    testthat::skip(paste0(entry$name, ": ", entry$is_estimated))
  }
}

# ---- laws --------------------------------------------------------------------

density_of <- function(model, parts = "posterior") {
  function(theta) model_evaluate(model, theta, parts)$log_density
}

gradient_of <- function(model, parts = "posterior") {
  function(theta) drop(model_evaluate(model, theta, parts)$gradient)
}

law_gradient <- function(entry) {
  skip_where_estimated(entry)
  model <- entry$model
  for (k in 1:3) {
    theta <- entry$point()
    for (parts in c("posterior", "likelihood", "prior")) {
      f <- density_of(model, parts)
      g <- gradient_of(model, parts)(theta)
      expect_derivative(
        g,
        central_difference(f, theta),
        abs(f(theta)) + max(abs(g)),
        paste("gradient of the", parts)
      )
    }
    expect_close(
      gradient_of(model, "likelihood")(theta),
      colSums(entry$row_gradient(theta)),
      "gradient by its formula"
    )
  }
}

law_curvature <- function(entry) {
  model <- entry$model
  if (is.null(entry$row_hessian)) {
    expect_false(model_info(model)$has_curvature)
    testthat::skip(paste(entry$name, "has no Hessian"))
  }
  for (k in 1:3) {
    theta <- entry$point()
    out <- curvature(model, theta)
    g <- gradient_of(model)
    expect_close(out$log_posterior, density_of(model)(theta), "log posterior")
    expect_close(out$gradient, g(theta), "gradient")
    expect_derivative(
      -out$hessian,
      central_difference(g, theta),
      max(abs(g(theta))) + max(abs(out$hessian)),
      "Hessian"
    )
    expect_identical(out$hessian, t(out$hessian))
    round <- rep(0.2, model$n_dim)
    rounded <- curvature(model, theta, round = round)
    expect_derivative(
      rounded$gradient,
      central_difference(
        function(theta) curvature(model, theta, round = round)$log_posterior,
        theta
      ),
      abs(rounded$log_posterior) + max(abs(rounded$gradient)),
      "rounded gradient"
    )
    expect_derivative(
      -rounded$hessian,
      central_difference(
        function(theta) curvature(model, theta, round = round)$gradient,
        theta
      ),
      max(abs(rounded$gradient)) + max(abs(rounded$hessian)),
      "rounded Hessian"
    )
  }
}

law_density <- function(entry) {
  skip_where_estimated(entry)
  model <- entry$model
  points <- replicate(4, entry$point())
  points <- matrix(points, model$n_dim)
  ours <- model_evaluate(model, points)$log_density
  parts <- model_evaluate(model, points, "likelihood")$log_density +
    model_evaluate(model, points, "prior")$log_density
  theirs <- apply(points, 2, function(theta) {
    sum(entry$log_lik(theta)) + entry$log_prior(theta)
  })
  expect_close(ours, parts, "likelihood plus prior")
  # constants may be left out, but the same one everywhere
  expect_close(ours - ours[[1]], theirs - theirs[[1]], "log density")
}

law_rows <- function(entry) {
  skip_where_estimated(entry)
  skip_without_rows(entry)
  model <- entry$model
  n <- model$n_data
  theta <- entry$point()
  # more than one block of rows, repeated ones among them, out of order
  index <- c(sample(n, min(n, 20)), 1, n, 1)
  some <- model_evaluate(model, theta, "likelihood", index, weight = 2.5)
  expect_close(
    some$gradient,
    2.5 * colSums(entry$row_gradient(theta)[index, , drop = FALSE]),
    "gradient of some rows"
  )
  rows <- lapply(list(seq_len(n), 1:4, 5:n), function(index) {
    model_evaluate(model, theta, "likelihood", index)
  })
  expect_close(
    rows[[1]]$gradient,
    rows[[2]]$gradient + rows[[3]]$gradient,
    "gradient of the rows in two parts"
  )
  expect_close(
    rows[[1]]$log_density,
    rows[[2]]$log_density + rows[[3]]$log_density,
    "log likelihood of the rows in two parts"
  )
  all <- model_evaluate(model, theta, "likelihood")
  expect_close(all$gradient, rows[[1]]$gradient, "gradient of all rows")
}

law_log_lik <- function(entry) {
  skip_where_estimated(entry)
  skip_without_rows(entry)
  model <- entry$model
  points <- matrix(replicate(2, entry$point()), model$n_dim)
  expected <- apply(points, 2, entry$log_lik)
  ours <- .Call(ffi_model_log_lik, model$pointer, points, NULL)
  expect_close(ours, expected, "log likelihood of each row")
  index <- c(model$n_data, 2, 2)
  some <- .Call(ffi_model_log_lik, model$pointer, points, index)
  expect_close(some, expected[index, ], "log likelihood of some rows")
}

law_log_lik_many <- function(entry) {
  model <- entry$model
  points <- matrix(replicate(5, entry$point()), model$n_dim)
  many <- .Call(ffi_model_log_lik_many, model$pointer, as.double(points))
  if (is.integer(many)) {
    expect_identical(status_name(many), "unsupported")
    testthat::skip(paste(entry$name, "has no log_lik_many()"))
  }
  one <- model_evaluate(model, points, "likelihood")$log_density
  expect_close(many, one, "log likelihood at many points")
}

# A point where there is a peak to scale by: minus the Hessian is positive
# definite, and far enough from where it is not for its inverse to be compared.
peaked_point <- function(entry) {
  for (try in 1:100) {
    theta <- entry$point()
    hessian <- tryCatch(
      apart(proper_hessian(entry$model, theta), entry$blocks),
      tall_error_unsupported = function(e) NULL
    )
    if (is.null(hessian)) {
      return(theta)
    }
    curves <- eigen(hessian, symmetric = TRUE, only.values = TRUE)$values
    if (min(curves) > 1e-3 * max(curves)) {
      return(theta)
    }
  }
  stop("no point of ", entry$name, " has a peak to scale by")
}

law_weights <- function(entry) {
  skip_where_estimated(entry)
  skip_without_rows(entry)
  model <- entry$model
  theta <- peaked_point(entry)
  trace <- function(a) sum(diag(a))
  expected <- list(
    gradient = sqrt(rowSums(entry$row_gradient(theta)^2)),
    lipschitz = entry$lipschitz,
    uniform = rep(1, model$n_data)
  )
  if (!is.null(entry$row_hessian)) {
    # with the curvature that stands for a Laplace prior's
    sigma <- solve(apart(proper_hessian(model, theta), entry$blocks))
    hessians <- entry$row_hessian(theta)
    expected$hessian <- vapply(hessians, function(h) {
      sqrt(trace(h %*% sigma %*% t(h)))
    }, 0)
    # in whitened coordinates H_i is L^-1 H_i L^-T: its Frobenius norm, which
    # is tr(H_i Sigma) where H_i has rank one
    expected$leverage <- vapply(hessians, function(h) {
      sqrt(trace(h %*% sigma %*% h %*% sigma))
    }, 0)
  }
  law_robust(model, theta)
  # the law of the robust ones is their own; test-gradient-order.R has the cubic
  for (type in setdiff(weight_types, c("robust", "cubic"))) {
    compute <- function(defensive) {
      subsampling_weights(model, theta, type, defensive = defensive)
    }
    if (is.null(expected[[type]])) {
      expect_error(compute(0), class = "tall_error_unsupported")
      next
    }
    p <- expected[[type]] / sum(expected[[type]])
    tolerance <- if (type %in% c("hessian", "leverage")) entry$hessian_tolerance
    expect_close(
      compute(0),
      p,
      paste("weights of type", type),
      tolerance = tolerance %||% 1e-10
    )
    expect_close(
      compute(0.25),
      0.75 * p + 0.25 / model$n_data,
      paste("defensive weights of type", type),
      tolerance = tolerance %||% 1e-10
    )
  }
}

# No smaller than leverage weights, whose curvature is that at one point; see
# also test-subsampling.R. Models that know no bounds refuse.
law_robust <- function(model, theta) {
  if (!model_info(model)$has_weights) {
    expect_error(
      subsampling_weights(model, theta, "robust"),
      class = "tall_error_unsupported"
    )
    return(invisible())
  }
  chol <- as.double(mode_point(model, theta)$chol)
  of <- function(type) model_weights(model, type, theta, chol, 1L)
  expect_true(all(of("robust") >= (1 - 1e-10) * of("leverage")))
  p <- subsampling_weights(model, theta, "robust")
  expect_true(all(p > 0))
  expect_equal(sum(p), 1)
}

law_lipschitz <- function(entry) {
  if (is.null(entry$lipschitz)) {
    testthat::skip(paste(entry$name, "has no Lipschitz constants"))
  }
  model <- entry$model
  theta <- entry$point()
  ours <- model_weights(model, "lipschitz", theta, NULL, 1L)
  expect_close(ours, entry$lipschitz, "Lipschitz constants")
  for (k in 1:5) {
    other <- entry$point()
    change <- entry$row_gradient(theta) - entry$row_gradient(other)
    slope <- sqrt(rowSums(change^2)) / sqrt(sum((theta - other)^2))
    expect_lte(max(slope / ours), 1 + 1e-12)
  }
  prior <- model_info(model)$lipschitz_prior
  expect_identical(is.na(prior), is.na(entry$lipschitz_prior))
  if (!is.na(prior)) {
    expect_close(prior, entry$lipschitz_prior, "Lipschitz constant of g_0")
  }
}

# phi = L'(theta - center): densities equal up to a constant, gradients mapped.
# rounding: of the rows that are written.
law_whitened <- function(
  entry,
  is_diagonal,
  rounding = entry$rounding %||% 0
) {
  model <- entry$model
  if (!model_info(model)$has_curvature) {
    testthat::skip(paste(entry$name, "cannot be whitened"))
  }
  d <- model$n_dim
  center <- peaked_point(entry)
  minus_hessian <- apart(curvature(model, center)$hessian, entry$blocks)
  chol <- if (is_diagonal) {
    diag(sqrt(diag(minus_hessian)), d)
  } else {
    t(chol(minus_hessian))
  }
  before <- model_evaluate(model, center)
  twin <- whitened_twin(model, center, chol, is_diagonal)
  expect_identical(model_evaluate(model, center), before)
  expect_near <- function(...) {
    expect_close(..., tolerance = 1e-10 + 100 * rounding)
  }

  phi <- matrix(stats::rnorm(4 * d), d)
  theta <- center + backsolve(t(chol), phi)
  expect_close(.Call(ffi_model_to_parameter, twin$pointer, phi), theta, "theta")
  expect_close(.Call(ffi_model_to_sampler, twin$pointer, theta), phi, "phi")
  white <- model_evaluate(twin, phi)
  plain <- model_evaluate(model, theta)
  shift <- white$log_density - plain$log_density
  expect_near(shift, rep(shift[[1]], 4), "Jacobian")
  expect_near(
    white$gradient,
    forwardsolve(chol, plain$gradient),
    "gradient in phi"
  )
  if (model_info(model)$has_log_lik) {
    expect_near(
      .Call(ffi_model_log_lik, twin$pointer, phi, NULL),
      apply(theta, 2, entry$log_lik),
      "log likelihood of each row"
    )
  }
  many <- .Call(ffi_model_log_lik_many, twin$pointer, as.double(phi))
  if (!is.integer(many)) {
    expect_near(
      many,
      model_evaluate(twin, phi, "likelihood")$log_density,
      "log likelihood at many points"
    )
  }
  if (!is_diagonal && model_info(twin)$has_curvature) {
    expect_near(
      model_weights(twin, "leverage", numeric(d), NULL, 1L),
      model_weights(model, "leverage", center, as.double(chol), 1L),
      "leverage"
    )
  }
}

whitened_twin <- function(model, center, chol, is_diagonal) {
  twin <- model
  twin$pointer <- .Call(
    ffi_model_whiten,
    model$pointer,
    as.double(center),
    as.double(if (is_diagonal) diag(chol) else chol),
    is_diagonal,
    FALSE
  )
  twin$whitening <- list(
    center = center,
    chol = chol,
    is_diagonal = is_diagonal
  )
  twin$cache <- new.env(parent = emptyenv())
  twin
}

# With a seed, a run depends on nothing else that is random, and leaves R's
# generator as it was: not where the model was never used before, nor where a
# run with another seed has left it a mode. The step is small enough for any
# target.
law_model_seed <- function(entry) {
  withr::local_preserve_seed()
  # a search by minibatches need not come to its end
  options <- search_options
  local_fault("search_options", function(
    model,
    method = mode_method(model),
    max_iter = if (mode_is_stochastic(method)) 200 else 100,
    ...
  ) {
    options(model, method, max_iter, ...)
  })
  model <- entry$runs %||% entry$model
  run <- function(state, seed, kernel) {
    set.seed(state)
    before <- .Random.seed
    fit <- suppressWarnings(
      sg_sample(
        model,
        kernel,
        gradient = if (!is.null(kernel) && model$n_data > 0) gradient_cv(),
        iter = 12,
        warmup = 4,
        chains = 2,
        seed = seed,
        refresh = 0
      ),
      classes = "tall_warning"
    )
    expect_identical(.Random.seed, before)
    fit[c("draws", "passes", "sizes")]
  }
  for (is_recipe in c(FALSE, if (model_info(model)$has_curvature) TRUE)) {
    kernel <- if (!is_recipe) kernel_sgld(1e-12)
    model$cache <- new.env(parent = emptyenv())
    first <- run(1, seed = 5, kernel)
    again <- run(2, seed = 5, kernel)
    model$cache <- new.env(parent = emptyenv())
    other <- run(3, seed = 6, kernel)
    expect_false(identical(other$draws, first$draws))
    expect_identical(again, first)
    expect_identical(run(4, seed = 5, kernel), first)
  }
}

# What a fit keeps is that of one point: its log posterior and gradient are
# those of the model at the parameters as sampled, and so of the formula, and
# its draws are the variables there.
law_recorded <- function(entry) {
  model <- entry$model
  info <- model_info(model)
  start <- replicate(2, entry$point())
  fit <- suppressWarnings(
    sg_sample(
      model,
      if (info$has_density) kernel_mala(0.05) else kernel_sgld(1e-6),
      gradient_full(),
      iter = 8,
      warmup = 3,
      chains = 2,
      keep = c("draws", "gradients"),
      seed = 1,
      init = matrix(start, model$n_dim),
      refresh = 0
    ),
    classes = "tall_warning"
  )
  theta <- fit_unconstrained(fit)
  natural <- entry$natural %||% natural_by_name(model)
  variables <- t(matrix(apply(theta, 1, natural), ncol = nrow(theta)))
  expect_close(unname(draws_matrix(fit)), variables, "variables")
  expect_identical(fit$has_map, info$has_map)
  expect_identical(is.null(fit$unconstrained), !info$has_map)
  if (!info$has_map) {
    expect_identical(unname(draws_matrix(fit)), unname(theta))
  }
  law_recorded_values(entry, fit, theta)
}

law_recorded_values <- function(entry, fit, theta) {
  model <- entry$model
  tolerance <- max(1e-10, entry$rounding)
  if (is.null(entry$is_estimated)) {
    gradient <- matrix(fit$gradients, nrow(theta))
    expect_close(gradient, unname(model_gradients(model, theta)), "gradients")
  }
  if (!is.null(fit$log_posterior)) {
    recorded <- as.double(fit$log_posterior)
    there <- model_evaluate(model, t(theta))$log_density
    expect_close(recorded, there, "log posterior")
    formula <- apply(theta, 1, function(at) {
      sum(entry$log_lik(at)) + entry$log_prior(at)
    })
    # up to a constant
    recorded <- recorded - recorded[[1]] + formula[[1]]
    expect_close(recorded, formula, "formula", tolerance = tolerance)
  }
  if (model_info(model)$has_log_lik && model$n_data > 0) {
    expected <- t(apply(theta, 1, entry$log_lik))
    expect_close(log_lik(fit), expected, "log_lik()", tolerance = tolerance)
  }
}

# log_prob() and grad_log_prob() are the formula and its derivatives, in the
# parameters and in the variables, whose density has another volume.
law_log_prob <- function(entry) {
  model <- entry$model
  theta <- t(matrix(replicate(2, entry$point()), model$n_dim))
  given <- t(model_evaluate(model, t(theta))$gradient)
  gradient <- grad_log_prob(model, theta)
  expect_identical(unname(gradient), given)
  expect_identical(colnames(gradient), model$coordinates)
  if (!model_info(model)$has_density) {
    expect_error(log_prob(model, theta), class = "tall_error_unsupported")
    testthat::skip(paste(entry$name, "has no log density"))
  }
  density <- log_prob(model, theta)
  formula <- apply(theta, 1, function(at) {
    sum(entry$log_lik(at)) + entry$log_prior(at)
  })
  tolerance <- max(1e-10, entry$rounding)
  expect_close(diff(density), diff(formula), "log_prob()", tolerance)
  f <- function(at) log_prob(model, at)
  expect_derivative(
    gradient[1, ],
    central_difference(f, theta[1, ]),
    abs(density[[1]]) + max(abs(gradient[1, ])),
    "grad_log_prob()"
  )
  law_log_prob_variables(entry, theta, density)
}

law_log_prob_variables <- function(entry, theta, density) {
  model <- entry$model
  natural <- entry$natural %||% natural_by_name(model)
  v <- t(matrix(apply(theta, 1, natural), ncol = 2))
  map <- tryCatch(model_map(model), tall_error_unsupported = identity)
  if (inherits(map, "error")) {
    expect_error(
      log_prob(model, v, unconstrained = FALSE),
      class = "tall_error_unsupported"
    )
    return(invisible())
  }
  there <- log_prob(model, v, unconstrained = FALSE)
  expect_close(
    log_prob(model, v, unconstrained = FALSE, jacobian = TRUE),
    density,
    "density of parameters at variables"
  )
  expect_close(
    log_prob(model, theta, jacobian = FALSE),
    there,
    "density of variables at parameters"
  )
  # of a simplex all but the last
  last <- cumsum(lengths(model$init))[model$kind == "simplex"]
  free <- setdiff(seq_len(ncol(v)), last)
  volume <- apply(theta, 1, function(at) {
    slopes <- central_difference(function(at) natural(at)[free], at)
    log(abs(det(matrix(slopes, length(free)))))
  })
  expect_derivative(
    density - there,
    volume,
    length(free) * (1 + max(abs(volume), abs(v), 1 / abs(v[v != 0]))),
    "Jacobian"
  )
  if (is.null(map$pull)) {
    expect_error(
      grad_log_prob(model, v, unconstrained = FALSE),
      class = "tall_error_unsupported"
    )
    return(invisible())
  }
  gradient <- grad_log_prob(model, v, unconstrained = FALSE)
  expect_identical(colnames(gradient), model$variables)
  # a difference in units of variables that may be small
  f <- function(at) log_prob(model, at, unconstrained = FALSE)
  size <- pmin(1, abs(v[1, ]) + (v[1, ] == 0))
  expect_derivative(
    gradient[1, ] * size,
    central_difference(function(at) f(at * size), v[1, ] / size),
    abs(there[[1]]) + max(abs(gradient[1, ] * size)),
    "grad_log_prob() in variables"
  )
}

# Variables have the names of their coordinates, or those of their logarithms.
natural_by_name <- function(model) {
  is_log <- model$coordinates == paste0("log_", model$variables)
  stopifnot(is_log | model$coordinates == model$variables)
  function(theta) ifelse(is_log, exp(theta), theta)
}
