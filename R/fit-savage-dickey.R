# Densities at a point, before and after the data: the ratio of Savage and
# Dickey, see hypothesis().

# f(psi, one): list(ratio, error, reason), the posterior density of a linear
# combination of parameters at 0 over the prior's. psi: its draws.
point_evidence <- function(fit) {
  prior <- NULL
  function(psi, one) {
    form <- linear_form(one$expression, one$of)
    if (is.null(form)) {
      return(no_evidence("it is not linear in the parameters"))
    }
    prior <<- prior %||% normal_priors(fit)
    before <- prior(form)
    if (is.character(before)) {
      return(no_evidence(before))
    }
    after <- local_density(psi, 0, fit_sample(fit))
    if (is.null(after)) {
      return(no_evidence("draws say nothing of the density there"))
    }
    log_prior <- stats::dnorm(0, before[[1]], before[[2]], log = TRUE)
    list(
      ratio = exp(after$log - log_prior),
      error = after$error,
      reason = ""
    )
  }
}

no_evidence <- function(reason) {
  list(ratio = NA_real_, error = NA_real_, reason = reason)
}

# ---- before ------------------------------------------------------------------

# f(form): c(mean, sd) of the normal prior of a linear_form(), or a sentence
# that says why it has none.
normal_priors <- function(fit) {
  why <- no_prior_because(fit)
  if (!is.null(why)) {
    return(function(form) why)
  }
  prior <- fit$prior
  names <- fit$every_variable[seq_along(prior$kind)]
  places <- prior_places(fit, length(names))
  is_normal <- prior_facts(prior, "title") == "normal"
  function(form) {
    at <- match(names(form)[-1], names)
    if (anyNA(at)) {
      name <- names(form)[-1][is.na(at)][[1]]
      return(paste0("`", name, "` has no prior of its own"))
    }
    wanted <- replace(numeric(length(names)), at, form[-1])
    # what the combination is of the normals that priors are of
    along <- solve(t(places), wanted)
    along[abs(along) < 1e-12 * max(abs(along), 1e-300)] <- 0
    other <- which(along != 0 & !is_normal)
    if (length(other) > 0) {
      return(prior_is_other(fit, names[[other[[1]]]], prior, other[[1]]))
    }
    if (all(along == 0)) {
      return("it does not depend on the parameters")
    }
    c(
      form[[1]] + sum(along * prior$location),
      sqrt(sum((along * prior$scale)^2))
    )
  }
}

no_prior_because <- function(fit) {
  if (!is.null(fit$robust)) {
    return("draws of `robust_draws()` are none of a posterior")
  }
  if (is.null(fit$prior$kind)) {
    "the prior of the model is its own"
  }
}

prior_is_other <- function(fit, name, prior, at) {
  title <- prior_facts(prior, "title")[[at]]
  is_threshold <- inherits(fit, "tall_polr") && at > length(fit$design_columns)
  has_counts <- !is.null(fit$blueprint$priors$prior_counts)
  if (is_threshold && has_counts) {
    title <- "Dirichlet"
  }
  paste0("the prior of `", name, "` is not normal but ", tolower_first(title))
}

tolower_first <- function(x) {
  is_name <- x %in% c("Laplace", "Student", "Dirichlet", "R2D2")
  if (is_name) paste0(x, "'s") else x
}

# What the prior of each variable is of, in rows: itself, or of an intercept the
# predictor at the means of the columns.
prior_places <- function(fit, n) {
  of <- diag(n)
  functional <- functional_of(fit)
  if (!is.null(functional)) {
    own <- seq_along(functional$weights)
    of[functional$at + 1, own] <- functional$weights
    return(of)
  }
  center <- fit$model$center
  if (inherits(fit, "tall_polr") || length(center) == 0) {
    return(of)
  }
  width <- fit$width %||% rep(length(center), n %/% length(center))
  center <- rep_len(center, sum(width))
  first <- cumsum(width) - width
  names <- fit$every_variable
  for (k in seq_along(width)) {
    own <- first[[k]] + seq_len(width[[k]])
    at <- own[grepl("(^|[:_])[(]Intercept[)]$", names[own])]
    if (length(at) == 1) {
      of[at, own] <- of[at, own] + center[own]
    }
  }
  of
}

# ---- after -------------------------------------------------------------------

# list(log, error): the logarithm of the density of draws at a point by local
# likelihood, log-quadratic, and its Monte Carlo error; NULL where there is
# none. With weights w of a normal kernel about the point the draws have mean
# and variance m, v: those of the product of kernel and density, whose integral
# is mean(w); see hypothesis().
local_density <- function(psi, point, sample) {
  share <- sample$share
  moments <- share_moments(psi, sample, FALSE)
  spread <- moments[[2]]
  if (!is.finite(spread) || spread == 0) {
    return(NULL)
  }
  u <- (psi - point) / spread
  n <- 1 / sum(share^2)
  width <- max(1.5 * n^(-1 / 9), abs(moments[[1]] - point) / spread / 3)
  log_kernel <- -u^2 / (2 * width^2)
  largest <- max(log_kernel)
  kernel <- exp(log_kernel - largest)
  total <- sum(share * kernel)
  own <- share * kernel / total
  mean <- sum(own * u)
  variance <- sum(own * (u - mean)^2)
  if (!is.finite(variance) || variance == 0) {
    return(NULL)
  }
  log_density <- largest + log(total) - mean^2 / (2 * variance) -
    log(2 * pi * variance) / 2 - log(spread)
  # what each draw adds to it
  of_mean <- u - mean
  of_variance <- of_mean^2 - variance
  pull <- 1 - mean * of_mean / variance +
    of_variance * (mean^2 / variance - 1) / (2 * variance)
  influence <- kernel / total * pull
  list(log = log_density, error = mc_error(influence, sample))
}

# ---- draws as they count -----------------------------------------------------

# Draws as they count: list(share, whose sum is 1, is_weighted, n_chain).
fit_sample <- function(fit) {
  weights <- choose_rows(fit)$weights
  list(
    share = weights / sum(weights),
    is_weighted = !is.null(fit[["weights"]]),
    n_chain = posterior::nchains(fit$draws)
  )
}

share_quantiles <- function(psi, sample, probs) {
  if (sample$is_weighted) {
    weighted_quantile(psi, sample$share, probs)
  } else {
    stats::quantile(psi, probs, names = FALSE)
  }
}

# Centre and spread.
share_moments <- function(psi, sample, robust) {
  if (robust) {
    middle <- share_quantiles(psi, sample, 0.5)
    return(c(middle, 1.4826 * share_quantiles(
      abs(psi - middle), sample, 0.5
    )))
  }
  mean <- sum(sample$share * psi)
  square <- sum(sample$share * (psi - mean)^2)
  # as sd() has it, where weights are equal
  few <- if (sample$is_weighted) 1 else length(psi) / (length(psi) - 1)
  c(mean, sqrt(square * few))
}

# The Monte Carlo error of a mean of draws, chain after chain.
mc_error <- function(value, sample) {
  if (sample$is_weighted || length(value) < 4 * sample$n_chain) {
    mean <- sum(sample$share * value)
    return(sqrt(sum(sample$share^2 * (value - mean)^2)))
  }
  as.double(posterior::mcse_mean(matrix(value, ncol = sample$n_chain)))
}
