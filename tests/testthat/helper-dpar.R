# Responses with two predictors, by R's densities.

# By the name of the entry: draw(eta_1, eta_2), density(y, eta_1, eta_2, w, s),
# complete, with weights, s the coordinate of what is sampled; family: of
# tall_glm().
two_problems <- function() {
  log_plus <- function(a, b) {
    pmax(a, b) + log1p(exp(-abs(a - b)))
  }
  inflated <- function(y, eta, f, w) {
    both <- ifelse(y == 0, log_plus(eta, f), f)
    w * (both - log_plus(0, eta))
  }
  list(
    gaussian_sigma = list(
      family = stats::gaussian(),
      dpar = "sigma",
      draw = function(a, b) stats::rnorm(length(a), a, exp(b)),
      density = function(y, a, b, w, s) {
        stats::dnorm(y, a, exp(b) / sqrt(w), log = TRUE)
      }
    ),
    student_sigma = list(
      family = student(df = 5),
      dpar = "sigma",
      known = 5,
      draw = function(a, b) a + exp(b) * stats::rt(length(a), 5),
      density = function(y, a, b, w, s) {
        scale <- exp(b) / sqrt(w)
        stats::dt((y - a) / scale, 5, log = TRUE) - log(scale)
      }
    ),
    neg_binomial_2_shape = list(
      family = neg_binomial_2(),
      dpar = "shape",
      draw = function(a, b) {
        stats::rnbinom(length(a), size = exp(b), mu = exp(a))
      },
      density = function(y, a, b, w, s) {
        w * stats::dnbinom(y, size = exp(b), mu = exp(a), log = TRUE)
      }
    ),
    Gamma_shape = list(
      family = stats::Gamma("log"),
      dpar = "shape",
      draw = function(a, b) stats::rgamma(length(a), exp(b), exp(b - a)),
      density = function(y, a, b, w, s) {
        w * stats::dgamma(y, exp(b), exp(b - a), log = TRUE)
      }
    ),
    beta_phi = list(
      family = beta_regression(),
      dpar = "phi",
      draw = function(a, b) {
        p <- stats::plogis(a)
        stats::rbeta(length(a), exp(b) * p, exp(b) * (1 - p))
      },
      density = function(y, a, b, w, s) {
        p <- stats::plogis(a)
        w * stats::dbeta(y, exp(b) * p, exp(b) * (1 - p), log = TRUE)
      }
    ),
    zero_inflated_poisson = list(
      family = zero_inflated_poisson(),
      dpar = "zi",
      draw = function(a, b) {
        (stats::runif(length(a)) > stats::plogis(b)) *
          stats::rpois(length(a), exp(a))
      },
      density = function(y, a, b, w, s) {
        inflated(y, b, stats::dpois(y, exp(a), log = TRUE), w)
      }
    ),
    zero_inflated_negbinomial = list(
      family = zero_inflated_negbinomial(),
      dpar = "zi",
      n_aux = 1,
      draw = function(a, b) {
        (stats::runif(length(a)) > stats::plogis(b)) *
          stats::rnbinom(length(a), size = 1.5, mu = exp(a))
      },
      density = function(y, a, b, w, s) {
        f <- stats::dnbinom(y, size = exp(s), mu = exp(a), log = TRUE)
        inflated(y, b, f, w)
      }
    )
  )
}

dpar_family <- function(name, problem) {
  new_family(find_response(name), aux = problem$known)
}

# Three columns of the mean, two of the other; far: where the covariates are.
entry_dpar <- function(name, n = 27, far = 0, centres = TRUE) {
  problem <- two_problems()[[name]]
  withr::local_seed(12)
  x <- as_single(matrix(stats::rnorm(3 * n, far), n) / 2)
  offset <- stats::rnorm(n) / 3
  eta <- offset + drop(x[, 1:2] %*% c(0.4, -0.3)) - far * 0.05
  y <- problem$draw(eta, 0.4 * (x[, 3] - far / 2) + 0.2)
  if (name == "gaussian_sigma") {
    y <- as_single(y)
  }
  w <- stats::runif(n, 0.5, 2)
  one <- if (centres) 1 else 0.7
  design <- cbind(one, x[, 1:2], one, x[, 3])
  colnames(design) <- c(
    if (centres) "(Intercept)" else "i", "a", "b",
    paste0(problem$dpar, "_", c(if (centres) "(Intercept)" else "i", "c"))
  )
  width <- stats::setNames(c(3L, 2L), c("mu", problem$dpar))
  flat <- prior_normal(0.2, 1.5)
  of <- stats::setNames(list(flat, flat), names(width))
  priors <- list(
    prior = of,
    prior_intercept = of,
    prior_aux = list(reciprocal_dispersion = prior_exponential(2))
  )
  blueprint <- blueprint_dpar(dpar_family(name, problem), priors)
  model <- build_model(
    blueprint,
    rows_memory(design, y, w, offset, "y", width = width)
  )
  center <- if (centres) colMeans(design) * c(0, 1, 1, 0, 1) else numeric(5)
  moved <- design - rep(center, each = n)
  n_aux <- problem$n_aux %||% 0
  density <- function(a, b, s) problem$density(y, a, b, w, s)
  at <- function(theta) {
    list(
      drop(moved[, 1:3] %*% theta[1:3]) + offset,
      drop(moved[, 4:5] %*% theta[4:5]),
      if (n_aux > 0) theta[[6]] else 0
    )
  }
  n_inner <- 2 + n_aux
  slope <- function(f, h = 2e-3) {
    (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)
  }
  moved_by <- function(p, k, h) {
    p[[k]] <- p[[k]] + h
    p
  }
  score <- function(p, k) {
    slope(function(h) do.call(density, moved_by(p, k, h)))
  }
  bend <- function(p, k, l) {
    -slope(function(h) score(moved_by(p, l, h), k))
  }
  # what inner coordinate k is of theta, a row each
  z <- list(
    cbind(moved[, 1:3], matrix(0, n, 2 + n_aux)),
    cbind(matrix(0, n, 3), moved[, 4:5], matrix(0, n, n_aux)),
    if (n_aux > 0) cbind(matrix(0, n, 5), 1)
  )
  list(
    name = "predictors",
    model = model,
    log_lik = function(theta) do.call(density, at(theta)),
    log_prior = function(theta) {
      prior_density(flat, theta[1:5]) + if (n_aux > 0) {
        stats::dexp(exp(theta[[6]]), 2, log = TRUE) + theta[[6]]
      } else {
        0
      }
    },
    row_gradient = function(theta) {
      p <- at(theta)
      Reduce(`+`, lapply(seq_len(n_inner), function(k) score(p, k) * z[[k]]))
    },
    row_hessian = function(theta) {
      p <- at(theta)
      h <- lapply(seq_len(n_inner), function(k) {
        lapply(seq_len(n_inner), function(l) bend(p, k, l))
      })
      lapply(seq_len(n), function(i) {
        sum <- 0
        for (k in seq_len(n_inner)) {
          for (l in seq_len(n_inner)) {
            sum <- sum + h[[k]][[l]][[i]] * outer(z[[k]][i, ], z[[l]][i, ])
          }
        }
        sum
      })
    },
    lipschitz = NULL,
    lipschitz_prior = if (n_aux > 0) NA else 1 / 1.5^2,
    hessian_tolerance = 1e-6,
    blocks = if (n_aux > 0) 6,
    natural = function(theta) {
      out <- theta
      out[[1]] <- theta[[1]] - sum(center[2:3] * theta[2:3])
      out[[4]] <- theta[[4]] - center[[5]] * theta[[5]]
      if (n_aux > 0) {
        out[[6]] <- exp(theta[[6]])
      }
      out
    },
    point = function() {
      c(stats::runif(5, -0.5, 0.5), if (n_aux > 0) stats::runif(1))
    }
  )
}

dpar_entries <- function() {
  list(
    "predictors, gaussian" = entry_dpar("gaussian_sigma"),
    "predictors, no intercepts" = entry_dpar("gaussian_sigma", centres = FALSE),
    "predictors, Student" = entry_dpar("student_sigma"),
    "predictors, beta" = entry_dpar("beta_phi"),
    "predictors, zeros" = entry_dpar("zero_inflated_poisson"),
    "predictors, zeros and size" = entry_dpar("zero_inflated_negbinomial")
  )
}

# Rows of each problem.
dpar_data <- function(problem, n, seed = 3) {
  withr::local_seed(seed)
  data <- data.frame(
    x = stats::rnorm(n),
    z = stats::rnorm(n),
    g = factor(rep_len(c("u", "v", "w"), n))
  )
  a <- 0.5 + 0.6 * data$x
  b <- c(sigma = 0.2, shape = 0.8, phi = 2, zi = -0.5)[[problem$dpar]] +
    0.5 * data$z
  data$y <- problem$draw(a, b)
  data
}
