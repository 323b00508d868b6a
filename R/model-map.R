# From the variables of a model to its parameters and back: what log_prob() and
# grad_log_prob() need of the map beside its values, which C has.
#
# A map is list(to_free, volume, pull), functions of matrices with a point in
# each column:
#   to_free(v)       parameters (n_dim x K) of variables; NaN: there are none
#   volume(theta)    list(log, gradient): log |dv / dtheta| (K), and its
#                    gradient in theta (n_dim x K)
#   pull(theta, g)   the gradient in v of what has the gradient g in theta; NULL
#                    where variables do not vary one by one
model_map <- function(model) {
  if (!model_has_map(model)) {
    return(plain_map(model$n_dim))
  }
  own_map(model)
}

own_map <- function(model) {
  UseMethod("own_map")
}

# Variables that are their parameters.
plain_map <- function(n_dim) {
  list(
    to_free = identity,
    volume = function(theta) {
      list(log = numeric(ncol(theta)), gradient = 0 * theta)
    },
    pull = function(theta, g) g
  )
}

# Of some parameters the exponentials, in a unit and above a limit, as their
# names say; all others as they are.
#' @export
own_map.tall_model <- function(model) {
  is_log <- model$coordinates == paste0("log_", model$variables)
  if (any(!is_log & model$coordinates != model$variables)) {
    abort_no_inverse(model)
  }
  exp_map(model, which(is_log))
}

exp_map <- function(model, at) {
  ends <- matrix(0, model$n_dim, 2)
  ends[at, 1] <- -Inf
  ends <- model_variables(model, ends)
  lower <- ends[at, 1]
  unit <- ends[at, 2] - lower
  list(
    to_free = function(v) {
      v[at, ] <- quiet_log((v[at, , drop = FALSE] - lower) / unit)
      v
    },
    volume = function(theta) {
      slope <- 0 * theta
      slope[at, ] <- 1
      list(
        log = sum(log(unit)) + colSums(theta[at, , drop = FALSE]),
        gradient = slope
      )
    },
    pull = function(theta, g) {
      g[at, ] <- g[at, ] / (unit * exp(theta[at, ]))
      g
    }
  )
}

quiet_log <- function(x) {
  suppressWarnings(log(x))
}

#' @export
own_map.tall_model_native <- function(model) {
  abort_no_inverse(
    model,
    "The table has a {.code constrain()}, and nothing leads back."
  )
}

#' @export
own_map.tall_model_ica <- function(model) {
  abort_no_inverse(
    model,
    "Rows of the unmixing matrix are put in an order, with a sign and a length,
     and nothing leads back."
  )
}

abort_no_inverse <- function(model, why = NULL) {
  abort_tall(
    "unsupported",
    c(
      "The parameters of {.code {model$label}()} cannot be found from its
       variables.",
      x = why,
      i = "Give unconstrained parameters, with {.code unconstrained = TRUE} and
           {.code jacobian = TRUE}."
    ),
    argument = "unconstrained"
  )
}

# ---- classes -----------------------------------------------------------------

# Intercepts and thresholds at covariates of 0 are those at their means, c, but
# for c^T b; thresholds after the first are sums of exponentials.
#' @export
own_map.tall_model_classes <- function(model) {
  if (is.null(model$thresholds)) intercepts_map(model) else cuts_map(model)
}

intercepts_map <- function(model) {
  p <- model$n_coef
  c <- model$center
  # where each class has its intercept, and its coefficients
  at <- seq(match("(Intercept)", model$columns), model$n_dim, by = p)
  first <- (seq_along(at) - 1) * p
  map <- plain_map(model$n_dim)
  map$to_free <- function(v) {
    for (k in seq_along(at)) {
      v[at[[k]], ] <- v[at[[k]], ] +
        colSums(c * v[first[[k]] + seq_len(p), , drop = FALSE])
    }
    v
  }
  map$pull <- function(theta, g) {
    for (k in seq_along(at)) {
      rows <- first[[k]] + seq_len(p)
      g[rows, ] <- g[rows, ] + c %o% g[at[[k]], ]
    }
    g
  }
  map
}

cuts_map <- function(model) {
  b <- seq_len(model$n_coef)
  cuts <- model$thresholds
  c <- model$center
  steps <- cuts[-1]
  list(
    to_free = function(v) {
      cut <- v[cuts, , drop = FALSE]
      v[steps, ] <- quiet_log(cut[-1, ] - cut[-length(cuts), ])
      v[cuts[[1]], ] <- cut[1, ] - colSums(c * v[b, , drop = FALSE])
      v
    },
    volume = function(theta) {
      slope <- 0 * theta
      slope[steps, ] <- 1
      list(log = colSums(theta[steps, , drop = FALSE]), gradient = slope)
    },
    pull = function(theta, g) {
      g[steps, ] <- g[steps, ] * exp(-theta[steps, ])
      g[b, ] <- g[b, ] - c %o% g[cuts[[1]], ]
      before <- cuts[-length(cuts)]
      g[before, ] <- g[before, ] - g[steps, ]
      g
    }
  )
}

# ---- models of functions -----------------------------------------------------

# As in src/base/transform.h.
#' @export
own_map.tall_model_custom <- function(model) {
  kind <- model$kind
  size <- lengths(model$init)
  free <- ifelse(kind == "simplex", size - 1, size)
  pieces <- function(x, sizes) {
    split(x, factor(rep(names(kind), sizes), names(kind)))
  }
  each <- function(theta, f) {
    out <- apply(theta, 2, function(point) {
      unlist(Map(f, pieces(point, free), kind), use.names = FALSE)
    })
    matrix(out, ncol = ncol(theta))
  }
  list(
    to_free = function(v) {
      out <- apply(v, 2, function(point) {
        found <- suppressWarnings(unconstrain(pieces(point, size), kind))
        unlist(found, use.names = FALSE)
      })
      matrix(out, model$n_dim)
    },
    volume = function(theta) {
      list(
        log = colSums(each(theta, log_slope)),
        gradient = each(theta, log_slope_by)
      )
    },
    pull = if (!any(kind == "simplex")) {
      function(theta, g) g * exp(-each(theta, log_slope))
    }
  )
}

# The shifted coordinates of a simplex' sticks.
stick_at <- function(y) {
  y - log(rev(seq_along(y)))
}

log_slope <- function(y, kind) {
  log_logistic <- function(t) stats::plogis(t, log.p = TRUE)
  if (kind == "simplex") {
    t <- stick_at(y)
    left <- rev(seq_along(y))
    return(log_logistic(t) + left * log_logistic(-t))
  }
  switch(
    kind,
    real = 0 * y,
    positive = y,
    unit = log_logistic(y) + log_logistic(-y)
  )
}

# Of the sum of log_slope().
log_slope_by <- function(y, kind) {
  if (kind == "simplex") {
    z <- stats::plogis(stick_at(y))
    return(1 - z - rev(seq_along(y)) * z)
  }
  switch(
    kind,
    real = 0 * y,
    positive = 1 + 0 * y,
    unit = 1 - 2 * stats::plogis(y)
  )
}

# ---- groups ------------------------------------------------------------------

# See src/models/groups-factor.c and groups-prior.c: lambda of Sigma' and (sd,
# cor) of Sigma = A Sigma' A^T, A = T^-T.
#' @export
own_map.tall_model_groups <- function(model) {
  shape <- lambda_shape(model)
  at <- model$n_coef + seq_len(model$n_lambda)
  aux <- exp_map(model, aux_coordinates(model))
  each <- function(theta, f) {
    matrix(apply(theta[at, , drop = FALSE], 2, f, shape), ncol = ncol(theta))
  }
  list(
    to_free = function(v) {
      out <- aux$to_free(v)
      out[at, ] <- each(v, lambda_of_variables)
      out
    },
    volume = function(theta) {
      out <- aux$volume(theta)
      out$log <- out$log + drop(each(theta, lambda_volume))
      out$gradient[at, ] <- each(theta, function(lambda, shape) {
        slopes_of(lambda_volume, lambda, shape)
      })
      out
    },
    pull = function(theta, g) {
      g <- aux$pull(theta, g)
      for (k in seq_len(ncol(theta))) {
        slopes <- slopes_of(variables_of_lambda, theta[at, k], shape)
        g[at, k] <- solve(t(slopes), g[at, k])
      }
      g
    }
  )
}

# list(q, row, column, span, back): row and column of Lambda that lambda below
# its diagonal are of.
lambda_shape <- function(model) {
  q <- length(model$groups$effects)
  span <- model$span %||% diag(q)
  below <- which(lower.tri(diag(q)), arr.ind = TRUE)
  below <- below[order(below[, 1]), , drop = FALSE]
  if (!model$groups$correlated) {
    below <- below[0, , drop = FALSE]
  }
  list(
    q = q,
    row = below[, 1],
    column = below[, 2],
    span = span,
    back = t(solve(span))
  )
}

# Derivatives of an analytic function, values x arguments: no digit is lost by
# a complex step (Squire & Trapp 1998, SIAM Review 40:110).
slopes_of <- function(f, x, ...) {
  h <- 1e-150
  columns <- lapply(seq_along(x), function(j) {
    Im(f(replace(as.complex(x), j, complex(1, x[[j]], h)), ...)) / h
  })
  do.call(cbind, columns)
}

# (sd, cor) of lambda, real or complex.
variables_of_lambda <- function(lambda, shape) {
  q <- shape$q
  factor <- matrix(0 * lambda[[1]], q, q)
  for (a in seq_len(q)) {
    rest <- exp(lambda[[a]])
    for (l in which(shape$row == a)) {
      zeta <- lambda[[q + l]]
      factor[a, shape$column[[l]]] <- rest * tanh(zeta)
      rest <- rest / cosh(zeta)
    }
    factor[a, a] <- rest
  }
  factor <- shape$back %*% factor
  covariance <- factor %*% t(factor)
  sd <- sqrt(diag(covariance))
  cor <- covariance / outer(sd, sd)
  c(sd, cor[cbind(shape$row, shape$column)])
}

# log |d(sd, cor) / dlambda|
lambda_volume <- function(lambda, shape) {
  q <- shape$q
  sd <- variables_of_lambda(lambda, shape)[seq_len(q)]
  if (length(shape$row) == 0) {
    return(sum(log(sd)))
  }
  (q + 1) * (sum(lambda[seq_len(q)]) + sum(log(diag(shape$back)))) -
    sum((q + 1 - shape$column) * log(cosh(lambda[-seq_len(q)]))) -
    q * sum(log(sd))
}

lambda_of_variables <- function(v, shape) {
  q <- shape$q
  sd <- v[seq_len(q)]
  cor <- diag(q)
  at <- cbind(shape$row, shape$column)
  cor[at] <- cor[at[, 2:1, drop = FALSE]] <- v[-seq_len(q)]
  none <- rep(NaN, length(v))
  if (any(sd <= 0)) {
    return(none)
  }
  half <- tryCatch(chol(cor), error = function(e) NULL)
  if (is.null(half)) {
    return(none)
  }
  # rows of T^T D R^(1/2), whose products are Sigma'
  half <- t(qr.R(qr(half %*% (sd * shape$span))))
  half <- sweep(half, 2, sign(diag(half)), "*")
  tau <- log(rowSums(half^2)) / 2
  zeta <- vapply(seq_along(shape$row), function(l) {
    a <- shape$row[[l]]
    b <- shape$column[[l]]
    asinh(half[a, b] / sqrt(sum(half[a, (b + 1):a]^2)))
  }, 0)
  c(tau, zeta)
}
