# Models written in R, and their conformance entries: a regression whose
# gradients are given as a matrix, and one of everything that a transform does;
# and both with gradients by automatic differentiation.

# A logistic regression as a user writes it; by default with its gradients.
logistic_custom <- function(
  x,
  y,
  grad_log_lik = logistic_rows,
  grad_log_prior = function(theta) -theta$beta / sd^2,
  sd = 2,
  ...
) {
  model_custom(
    log_lik = function(theta, batch) {
      eta <- drop(batch$x %*% theta$beta)
      batch$y * eta - log1p(exp(eta))
    },
    log_prior = function(theta) {
      sum(stats::dnorm(theta$beta, 0, sd, log = TRUE))
    },
    data = list(x = x, y = y),
    init = list(beta = numeric(ncol(x))),
    grad_log_lik = grad_log_lik,
    grad_log_prior = grad_log_prior,
    ...
  )
}

# A few draws of both models from the same start, and their gradients, are the
# same. ...: kernel, gradient, subsample, init.
expect_same_run <- function(model, expected, label, tolerance, ...) {
  found <- lapply(list(model, expected), function(model) {
    sg_sample(
      model,
      ...,
      iter = 12,
      warmup = 4,
      chains = 2,
      keep = c("draws", "gradients"),
      seed = 3,
      refresh = 0
    )
  })
  for (part in c("draws", "gradients")) {
    of <- lapply(found, `[[`, part)
    expect_close(of[[1]], of[[2]], paste(label, part), tolerance)
  }
}

logistic_rows <- function(theta, batch) {
  eta <- drop(batch$x %*% theta$beta)
  (batch$y - stats::plogis(eta)) * batch$x
}

logistic_data <- function(n = 60, d = 2, seed = 4) {
  withr::local_seed(seed)
  x <- matrix(stats::rnorm(n * d), n)
  list(x = x, y = as.double(stats::runif(n) < stats::plogis(x[, 1])))
}

# A short run of a model whose functions may fail.
short_sgld <- function(model, size = 6, chains = 3, seed = 1) {
  sg_sample(
    model,
    kernel_sgld(0.01),
    gradient_simple(),
    subsample_uniform(size),
    iter = 100,
    warmup = 10,
    chains = chains,
    init = c(0, 0),
    seed = seed,
    refresh = 0
  )
}

# list(value, warnings): of an expression, which goes on after them.
with_warnings <- function(expr) {
  warnings <- list()
  value <- withCallingHandlers(expr, warning = function(w) {
    warnings <<- c(warnings, list(w))
    invokeRestart("muffleWarning")
  })
  list(value = value, warnings = warnings)
}

custom_entries <- function() {
  c(
    list(
      "custom, gradients of rows" = entry_custom_logistic(),
      "custom, transforms" = entry_custom_transforms()
    ),
    if (has_rtmb()) {
      list(
        "custom, tape" = entry_custom_logistic("tape"),
        "custom, tape of integers" = entry_custom_transforms("tape"),
        "custom, taped again" = entry_custom_transforms("retape")
      )
    }
  )
}

entry_custom_logistic <- function(gradients = "function", far = 0) {
  data <- logistic_data()
  x <- data$x + far
  model <- if (gradients == "function") {
    logistic_custom(x, data$y)
  } else {
    logistic_custom(x, data$y, NULL, NULL)
  }
  list(
    name = "custom",
    model = model,
    log_lik = function(theta) {
      stats::dbinom(data$y, 1, stats::plogis(drop(x %*% theta)), log = TRUE)
    },
    log_prior = function(theta) sum(stats::dnorm(theta, 0, 2, log = TRUE)),
    row_gradient = function(theta) {
      (data$y - stats::plogis(drop(x %*% theta))) * x
    },
    row_hessian = function(theta) {
      p <- stats::plogis(drop(x %*% theta))
      lapply(
        seq_along(p),
        function(i) p[[i]] * (1 - p[[i]]) * tcrossprod(x[i, ])
      )
    },
    hessian_tolerance = 1e-7,
    lipschitz = NULL,
    lipschitz_prior = NA,
    blocks = NULL,
    point = function() stats::rnorm(2)
  )
}

# A normal with two means, a coin, and a die that has one of three faces; a
# gradient that is a list. Coordinates: mu, log sigma, logit p, two sticks.
entry_custom_transforms <- function(gradients = "function") {
  withr::local_seed(8)
  n <- 40
  data <- data.frame(
    x = stats::rnorm(n, 1, 2),
    group = factor(sample(c("a", "b"), n, TRUE)),
    coin = stats::runif(n) < 0.3
  )
  data$face <- sample(3L, n, TRUE, c(0.5, 0.2, 0.3))
  group <- as.integer(data$group)
  if (gradients == "retape") {
    data$group <- as.character(data$group)
  }
  natural <- function(t) {
    z <- stats::plogis(t[5:6] - log(2:1))
    list(
      mu = t[1:2],
      sigma = exp(t[[3]]),
      p = stats::plogis(t[[4]]),
      w = c(z[[1]], (1 - z[[1]]) * c(z[[2]], 1 - z[[2]])),
      z = z
    )
  }
  log_lik <- function(theta, batch) {
    group <- batch$group
    if (is.character(group)) {
      group <- match(group, letters)
    }
    stats::dnorm(batch$x, theta$mu[group], theta$sigma, log = TRUE) +
      stats::dbinom(batch$coin, 1, theta$p, log = TRUE) +
      log(theta$w[batch$face])
  }
  list(
    name = "custom",
    model = model_custom(
      log_lik,
      log_prior = function(theta) {
        -sum(theta$mu^2) / 2 - theta$sigma + log(theta$p) + log(theta$w[[2]])
      },
      data = data,
      init = list(mu = c(0, 0), sigma = 1.5, p = 0.4, w = c(0.2, 0.3, 0.5)),
      grad_log_lik = if (gradients == "function") function(theta, batch) {
        e <- batch$x - theta$mu[batch$group]
        list(
          mu = e / theta$sigma^2 * outer(as.integer(batch$group), 1:2, "=="),
          sigma = e^2 / theta$sigma^3 - 1 / theta$sigma,
          p = ifelse(batch$coin, 1 / theta$p, -1 / (1 - theta$p)),
          w = outer(batch$face, 1:3, "==") / theta$w[batch$face]
        )
      },
      grad_log_prior = if (gradients == "function") function(theta) {
        list(
          mu = -theta$mu,
          sigma = -1,
          p = 1 / theta$p,
          w = c(0, 1 / theta$w[[2]], 0)
        )
      },
      transform = list(sigma = "positive", p = "unit", w = "simplex")
    ),
    log_lik = function(t) log_lik(natural(t), transform(data, group = group)),
    log_prior = function(t) {
      v <- natural(t)
      -sum(v$mu^2) / 2 - v$sigma + log(v$p) + log(v$w[[2]]) +
        log(v$sigma) + log(v$p * (1 - v$p)) +
        # |dw / dy| of w = (z1, (1 - z1) z2): a triangle
        log(v$z[[1]] * (1 - v$z[[1]])) +
        log((1 - v$z[[1]]) * v$z[[2]] * (1 - v$z[[2]]))
    },
    row_gradient = function(t) {
      v <- natural(t)
      e <- data$x - v$mu[group]
      cbind(
        e / v$sigma^2 * outer(group, 1:2, "=="),
        e^2 / v$sigma^2 - 1,
        data$coin - v$p,
        (data$face == 1) - v$z[[1]],
        ifelse(data$face == 1, 0, (data$face == 2) - v$z[[2]])
      )
    },
    row_hessian = function(t) {
      v <- natural(t)
      e <- data$x - v$mu[group]
      lapply(seq_len(n), function(i) {
        h <- diag(c(
          (group[[i]] == 1:2) / v$sigma^2,
          2 * e[[i]]^2 / v$sigma^2,
          v$p * (1 - v$p),
          v$z * (1 - v$z) * c(1, data$face[[i]] > 1)
        ))
        h[3, group[[i]]] <- h[group[[i]], 3] <- 2 * e[[i]] / v$sigma^2
        h
      })
    },
    hessian_tolerance = 1e-7,
    lipschitz = NULL,
    lipschitz_prior = NA,
    blocks = NULL,
    natural = function(t) {
      unlist(natural(t)[c("mu", "sigma", "p", "w")], use.names = FALSE)
    },
    point = function() c(stats::rnorm(2), 0.8, 0, 0, 0) + stats::rnorm(6) / 10
  )
}
