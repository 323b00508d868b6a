# Gaussian models whose sigma is a parameter, where the coefficients can fit
# every response. The density of coefficients and log sigma together then rises
# without end as sigma falls. The posterior may be proper all the same: with as
# many columns as rows the coefficients that fit so well are few, and integrated
# over them the density falls. A run needs a point to start from and scales to
# move by: they are taken at the most probable sigma with the coefficients
# integrated out.

can_lose_sigma <- function(model) {
  model$traits$has_columns &&
    model$traits$n_aux > 0 &&
    find_response(model$family)$is_quadratic &&
    model_info(model)$has_curvature
}

# mode: what a search found, or the error that ended it.
has_lost_sigma <- function(mode, model, max_iter) {
  if (inherits(mode, "error")) {
    return(TRUE)
  }
  d <- model$n_dim
  (!mode$converged && mode$iterations < max_iter) ||
    mode$estimate[[d]] < model_start(model)[[d]] - log(1e9)
}

# Coefficients at their mean given that sigma, with their curvature there, and
# log sigma with its variance: a mode in all but name. Errors say what is
# improper, or that there is no mode where a point that stands in is not
# welcome. NULL if the coefficients cannot fit every response: the trouble is
# another.
gaussian_centre <- function(model, stands_in, cores) {
  parts <- gaussian_parts(model, cores)
  if (!parts$fits_all) {
    return(NULL)
  }
  sigma <- sigma_posterior(parts, model)
  if (!stands_in) {
    abort_no_joint_mode(model)
  }
  # of hyperparameters that stay where they are the interval is not all
  if (sigma$sd > sigma_settings$wide && !isTRUE(model$is_held)) {
    warn_wide_sigma(sigma, model)
  }
  d <- model$n_dim
  hessian <- matrix(0, d, d)
  hessian[-d, -d] <- parts$precision(sigma$log_mode)
  hessian[d, d] <- 1 / sigma$sd^2
  theta <- c(parts$mean(sigma$log_mode), sigma$log_mode)
  theta <- box_inside(mode_box(model), theta)
  here <- model_evaluate(model, theta)
  new_mode(
    model,
    new_expansion(theta, here$log_density, drop(here$gradient), hessian),
    new_search("given sigma", parts$passes + 1, iterations = 0)
  )
}

sigma_settings <- list(
  low = 1e-8,    # least sigma looked at, in sds of the response
  rounding = 1e-11, # or in sizes of the response
  high = 1e8,    # largest
  wide = 0.5     # sd of log sigma from which MALA mixes slowly
)

# The prior of the coefficients as a normal one, of the same mean and variance
# where it is another: precision (a matrix) and gradient(beta).
normal_prior <- function(model) {
  p <- model$n_coef
  location <- model$prior$location[seq_len(p)]
  tau <- prior_precision(model$prior)[seq_len(p)]
  of <- places_of_priors(model, p)
  list(
    precision = crossprod(of * sqrt(tau)),
    gradient = function(beta) {
      drop(crossprod(of, tau * (location - drop(of %*% beta))))
    }
  )
}

# What the posterior is made of: a quadratic form in the coefficients given
# sigma, with G = X'WX,
#   precision(s)  of the coefficients, G / sigma^2 + P, at log sigma s
#   mean(s)       of the coefficients
#   log_density(s)  of log sigma, the coefficients integrated out
#   low           the least log sigma that the data can show
#   fits_all      do the coefficients that fit best leave residuals of 0?
# With M = G / sigma0^2 + P = L L' and L^-1 (G / sigma0^2) L^-T =
# Q diag(share) Q' the precision is L Q diag(share t + 1 - share) Q' L',
# t = sigma0^2 / sigma^2.
gaussian_parts <- function(model, cores) {
  p <- model$n_coef
  own <- seq_len(p)
  log_sd <- model_start(model)[[p + 1]]
  prior <- normal_prior(model)
  likelihood <- function(beta, s) {
    model_evaluate(model, c(beta, s), "likelihood")
  }
  gram <- likelihood_gram(model, log_sd, cores)
  total <- matrix(0, p + 1, p + 1)
  total[own, own] <- exp(-2 * log_sd) * gram + prior$precision
  total[p + 1, p + 1] <- 1
  root <- lower_chol(total, model)[own, own, drop = FALSE]
  half <- forwardsolve(root, t(forwardsolve(root, exp(-2 * log_sd) * gram)))
  values <- eigen((half + t(half)) / 2, symmetric = TRUE)
  share <- pmin(values$values, 1)
  share[share < 1e-12] <- 0 # rounding
  into <- function(g) drop(crossprod(values$vectors, forwardsolve(root, g)))
  out_of <- function(z) drop(backsolve(t(root), values$vectors %*% z))
  spread <- function(s) share * exp(2 * (log_sd - s)) + 1 - share

  # the slope in log sigma is r'Wr / sigma^2 less the sum of the weights
  slope <- function(beta, s) likelihood(beta, s)$gradient[[p + 1]]
  weight <- -slope(numeric(p), log_sd + 30)
  size <- exp(log_sd) * sqrt((slope(numeric(p), log_sd) + weight) / weight)
  low <- max(
    log_sd + log(sigma_settings$low),
    log(size) + log(sigma_settings$rounding)
  )

  # all is written about coefficients that fit as well as any
  near <- max(log_sd - log(1e6), low)
  beta <- numeric(p)
  for (k in 1:3) {
    g <- likelihood(beta, near)$gradient[own] + prior$gradient(beta)
    beta <- beta + out_of(into(g) / spread(near))
  }
  fit_pull <- exp(2 * near) * into(likelihood(beta, near)$gradient[own])
  prior_pull <- into(prior$gradient(beta))
  rest <- exp(2 * near) * max(0, slope(beta, near) + weight)
  pull <- function(s) fit_pull * exp(-2 * s) + prior_pull
  list(
    low = low,
    fits_all = log(rest / weight) / 2 < max(log_sd - log(1e5), low + log(100)),
    log_sd = log_sd,
    passes = 2 * curvature_passes(model) + 8,
    precision = function(s) exp(-2 * s) * gram + prior$precision,
    mean = function(s) beta + out_of(pull(s) / spread(s)),
    log_density = function(s) {
      v <- spread(s)
      log_lik <- -weight * s - rest * exp(-2 * s) / 2
      log_lik + sum(pull(s)^2 / v) / 2 - sum(log(v)) / 2 + aux_density(model, s)
    }
  )
}

# X'WX
likelihood_gram <- function(model, log_sd, cores) {
  own <- seq_len(model$n_coef)
  hessian <- function(weight) {
    out <- .Call(
      ffi_model_curvature,
      model$pointer,
      c(numeric(model$n_coef), log_sd),
      NULL,
      weight,
      NULL,
      as.integer(cores)
    )
    abort_status(out$status)
    out$hessian[own, own, drop = FALSE]
  }
  exp(2 * log_sd) * (hessian(likelihood_scale(model)) - hessian(0))
}

# The prior of log sigma, up to a constant: an exponential one is a gamma of
# shape 1.
aux_density <- function(model, s) {
  at <- model$n_dim
  prior <- model$prior
  if (!prior_facts(prior, "is_proper")[[at]]) {
    return(s)
  }
  is_gamma <- prior$kind[[at]] == prior_kinds$gamma$code
  shape <- if (is_gamma) prior$shape[[at]] else 1
  shape * s - exp(s) / prior$scale[[at]]
}

# Where log sigma is: its mode, standard deviation and 90 percent interval. An
# error if its density does not fall on both sides.
sigma_posterior <- function(parts, model) {
  s <- seq(parts$low, parts$log_sd + log(sigma_settings$high), by = 0.01)
  density <- vapply(s, parts$log_density, 0)
  n <- length(s)
  step <- 100
  # of a proper posterior the logarithm falls in proportion
  if ((density[[1 + step]] - density[[1]]) / (s[[1 + step]] - s[[1]]) < 0.05) {
    abort_exact_fit()
  }
  if ((density[[n]] - density[[n - step]]) / (s[[n]] - s[[n - step]]) > -0.05) {
    abort_endless_sigma()
  }
  w <- exp(density - max(density))
  w <- w / sum(w)
  mean <- sum(w * s)
  list(
    log_mode = s[[which.max(density)]],
    sd = sqrt(sum(w * (s - mean)^2)),
    interval = exp(s[findInterval(c(0.05, 0.95), cumsum(w)) + 1])
  )
}

abort_exact_fit <- function() {
  abort_tall(
    "improper",
    c(
      "The posterior is not proper: the columns fit the response exactly, and
       its density rises without end as {.field sigma} falls to 0.",
      i = "Is the response constant, or a function of the columns? With known
           noise give {.arg sigma}."
    ),
    columns = "sigma"
  )
}

abort_endless_sigma <- function() {
  abort_tall(
    "improper",
    c(
      "The posterior is not proper: its density does not fall as {.field sigma}
       grows.",
      i = "Give a proper {.arg prior_aux} such as {.code prior_exponential()}."
    ),
    columns = "sigma"
  )
}

abort_no_joint_mode <- function(model) {
  abort_tall(
    "improper",
    c(
      "The posterior is proper but has no mode: its density rises without end as
       {.field sigma} falls along coefficients that fit every response.",
      x = "There are {count_noun(model$n_coef, 'column')} and
           {count_noun(model$n_data, 'row')}.",
      i = "Give {.arg sigma} to the model, or sample with {.fn sg_sample}, which
           needs no mode."
    ),
    columns = "sigma"
  )
}

warn_wide_sigma <- function(sigma, model) {
  bounds <- vapply(sigma$interval, format, "", digits = 2)
  warn_tall(
    "recipe",
    c(
      "The data hardly tell {.field sigma}: its 90 percent interval is
       [{bounds[[1]]}, {bounds[[2]]}], and chains move along it slowly.",
      x = "With {count_noun(model$n_coef, 'column')} and
           {count_noun(model$n_data, 'row')} the coefficients can fit every
           response, whatever the noise.",
      i = "Look at R-hat. Give {.arg sigma}, a narrower {.arg prior} or fewer
           columns."
    ),
    columns = "sigma"
  )
}
