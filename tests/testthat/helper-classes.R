# Regressions with classes: the laws' entries, and data.

class_data <- function(n = 24, n_class = 3, far = 0, seed = 12) {
  withr::local_seed(seed)
  x <- cbind(stats::rnorm(n, 1), stats::runif(n, -1, 1)) + far
  x <- as_single(x)
  colnames(x) <- c("a", "b")
  list(
    x = x,
    y = c(seq_len(n_class), sample.int(n_class, n - n_class, TRUE)),
    w = stats::runif(n, 0.5, 2),
    offset = stats::rnorm(n) / 2
  )
}

centred <- function(x) {
  sweep(x, 2, colMeans(x))
}

# The prior of coefficients is normal(0, 1.5), of intercepts normal(0.2, 2).
entry_softmax <- function(n_class = 3, far = 0) {
  data <- class_data(n_class = n_class, far = far)
  x <- cbind("(Intercept)" = 1, data$x)
  z <- cbind(1, centred(data$x))
  n <- nrow(x)
  k <- n_class - 1
  p <- ncol(x)
  probs <- function(theta) {
    e <- exp(cbind(0, z %*% matrix(theta, p)))
    e / rowSums(e)
  }
  own <- cbind(seq_len(n), data$y)
  list(
    name = "classes",
    model = model_classes(
      x,
      data$y,
      prior = prior_normal(0, 1.5),
      prior_intercept = prior_normal(0.2, 2),
      weights = data$w
    ),
    log_lik = function(theta) data$w * log(probs(theta)[own]),
    log_prior = function(theta) {
      b <- matrix(theta, p)
      sum(stats::dnorm(b[1, ], 0.2, 2, log = TRUE)) +
        sum(stats::dnorm(b[-1, ], 0, 1.5, log = TRUE))
    },
    row_gradient = function(theta) {
      r <- -probs(theta)
      r[own] <- r[own] + 1
      r <- data$w * r[, -1, drop = FALSE]
      r[, rep(seq_len(k), each = p)] * z[, rep(seq_len(p), k)]
    },
    row_hessian = function(theta) {
      q <- probs(theta)[, -1, drop = FALSE]
      lapply(seq_len(n), function(i) {
        h <- diag(q[i, ], k) - tcrossprod(q[i, ])
        data$w[[i]] * kronecker(h, tcrossprod(z[i, ]))
      })
    },
    lipschitz = NULL,
    lipschitz_prior = NA,
    blocks = NULL,
    # predictors where covariates are 0
    natural = function(theta) {
      b <- matrix(theta, p)
      b[1, ] <- b[1, ] - colMeans(data$x) %*% b[-1, , drop = FALSE]
      c(b)
    },
    point = function() stats::rnorm(k * p) / 2
  )
}

# Counts of the thresholds' prior: 2, 1, ...
entry_ordered <- function(
  method = "logistic",
  n_class = 4,
  shifted = TRUE,
  far = 0
) {
  data <- class_data(n_class = n_class, far = far)
  z <- centred(data$x)
  n <- nrow(z)
  offset <- if (shifted) data$offset else numeric(n)
  counts <- rep_len(c(2, 1), n_class)
  law <- if (method == "probit") {
    list(
      p = stats::pnorm,
      d = stats::dnorm,
      dd = function(u) -u * stats::dnorm(u)
    )
  } else {
    list(
      p = stats::plogis,
      d = stats::dlogis,
      dd = function(u) stats::dlogis(u) * (1 - 2 * stats::plogis(u))
    )
  }
  cuts <- function(theta) cumsum(c(theta[3], exp(theta[-(1:3)])))
  # threshold k of y, and its slopes in (b, a)
  end <- function(theta, i, k) {
    if (k == 0 || k == n_class) {
      return(NULL)
    }
    step <- c(1, exp(theta[-(1:3)])) * (seq_len(n_class - 1) <= k)
    list(
      u = cuts(theta)[[k]] - sum(z[i, ] * theta[1:2]) - offset[[i]],
      slope = c(-z[i, ], step),
      bend = diag(c(0, 0, 0, step[-1]), n_class + 1)
    )
  }
  each <- function(theta, i, f) {
    ends <- list(end(theta, i, data$y[[i]]), end(theta, i, data$y[[i]] - 1))
    value <- law$p(ends[[1]]$u %||% Inf) - law$p(ends[[2]]$u %||% -Inf)
    f(ends, value)
  }
  slope_of <- function(ends, value) {
    part <- function(e) if (is.null(e)) 0 else law$d(e$u) * e$slope / value
    part(ends[[1]]) - part(ends[[2]])
  }
  bend_of <- function(ends, value) {
    part <- function(e) {
      if (is.null(e)) {
        return(0)
      }
      (law$dd(e$u) * tcrossprod(e$slope) + law$d(e$u) * e$bend) / value
    }
    tcrossprod(slope_of(ends, value)) - part(ends[[1]]) + part(ends[[2]])
  }
  list(
    name = "classes",
    model = model_classes(
      data$x,
      data$y,
      method,
      prior = prior_normal(0, 1.5),
      prior_counts = counts,
      weights = data$w,
      offset = if (shifted) offset
    ),
    log_lik = function(theta) {
      data$w * vapply(seq_len(n), function(i) {
        each(theta, i, function(ends, value) log(value))
      }, 0)
    },
    log_prior = function(theta) {
      c <- cuts(theta)
      share <- diff(c(0, law$p(c), 1))
      sum(stats::dnorm(theta[1:2], 0, 1.5, log = TRUE)) +
        sum(log(law$d(c))) + sum((counts - 1) * log(share)) +
        sum(theta[-(1:3)])
    },
    row_gradient = function(theta) {
      t(vapply(seq_len(n), function(i) {
        data$w[[i]] * each(theta, i, slope_of)
      }, numeric(n_class + 1)))
    },
    row_hessian = function(theta) {
      lapply(seq_len(n), function(i) data$w[[i]] * each(theta, i, bend_of))
    },
    lipschitz = NULL,
    lipschitz_prior = NA,
    blocks = NULL,
    natural = function(theta) {
      c(theta[1:2], cuts(theta) + sum(colMeans(data$x) * theta[1:2]))
    },
    point = function() {
      c(stats::rnorm(2) / 2, -1, 0.1, -0.2)[seq_len(n_class + 1)] +
        stats::rnorm(n_class + 1) / 10
    }
  )
}

classes_entries <- function() {
  list(
    "classes, softmax" = entry_softmax(),
    "classes, two" = entry_softmax(2),
    "classes, ordered" = entry_ordered(),
    "classes, ordered, probit" = entry_ordered("probit", 3, shifted = FALSE)
  )
}
