# What a quadrature leaves of a run. Effects of groups are integrated out by
# nodes, and the chains have the law of these: other nodes have another one.
# With w = p' / p of the densities by both, of whatever function h of the
# parameters
#
#   |E' h - E h| = |Cov(h, w)| / E w <= sd(h) sd(w) / E w:
#
# the coefficient of variation of w among the draws is as much as any posterior
# mean is off by, in sds of what it is the mean of; and, of itself, an sd by
# sqrt(kurtosis - 1) / 2 of that, 0.7 of it where the law is normal.

quadrature_settings <- list(
  farther = 1.6,            # so many times the nodes, at least, are compared
  most_points = 16000,      # of them
  draws = c(25, 100),       # at as many draws,
  looks = 300,              # that cost no more gradients of the run's than this
  groups = 1000,            # by so many groups, evenly spaced
  sure = 0.975,             # of the bound, by a chi-squared law
  told = 0.1                # errors beyond that are warned of
)

# list(nodes, effects: dimensions, compared, error, draws) of a fit; NULL:
# nothing is integrated out by nodes. The error is NA where there are no draws
# of all parameters, or of a kernel that has other errors.
fit_quadrature <- function(fit, model, is_interrupted = FALSE) {
  if (!model_has_nodes(model)) {
    return(NULL)
  }
  nodes <- get_nodes(model)
  out <- list(
    nodes = nodes,
    effects = length(model$groups$effects),
    compared = NA_real_,
    error = NA_real_,
    draws = 0
  )
  theta <- whole_draws(fit)
  if (is_interrupted || NROW(theta) < 2 || !kernel_is_exact(fit$kernel)) {
    return(out)
  }
  measured <- tryCatch(
    measure_quadrature(model, theta, nodes),
    # the draws are not to be lost for it
    interrupt = function(condition) NULL
  )
  utils::modifyList(out, as.list(measured))
}

# The fit with it.
add_quadrature <- function(fit, model, segment) {
  fit$quadrature <- fit_quadrature(fit, model, segment$interrupted)
  fit
}

# Draws x coordinates; NULL where some are not kept.
whole_draws <- function(fit) {
  draws <- fit$unconstrained %||% fit$draws
  if (!is.null(draws) && is.null(fit$control$record)) {
    matrix(unclass(draws), ncol = length(fit$coordinates))
  }
}

measure_quadrature <- function(model, theta, nodes) {
  s <- quadrature_settings
  q <- length(model$groups$effects)
  compared <- compared_nodes(nodes, q)
  n_draw <- s$looks * nodes^q / (nodes^q + compared^q)
  n_draw <- ceiling(min(max(n_draw, s$draws[[1]]), s$draws[[2]], nrow(theta)))
  at <- round(seq(1, nrow(theta), length.out = n_draw))
  points <- to_sampler(model, t(theta[at, , drop = FALSE]))
  n <- min(s$groups, model$n_data)
  index <- floor(seq(1, model$n_data, length.out = n))
  look <- function() {
    model_evaluate(
      model,
      points,
      "likelihood",
      index = index,
      weight = model$n_data / n,
      needs_finite = FALSE
    )$log_density
  }
  on.exit(set_nodes(model, nodes))
  here <- look()
  set_nodes(model, compared)
  list(compared = compared, error = weight_error(look() - here), draws = n_draw)
}

# Far more nodes or, where there are none, far fewer: what these are off by is
# more than what the given ones are.
compared_nodes <- function(nodes, q) {
  s <- quadrature_settings
  all <- c(usual_nodes, more_nodes)
  more <- all[all >= s$farther * nodes & all^q <= s$most_points]
  if (length(more) > 0) {
    return(more[[1]])
  }
  max(1, all[all <= nodes / s$farther])
}

# The coefficient of variation of e^difference, that which is not exceeded with
# probability `sure`; 1e-6 at least, which is nothing.
weight_error <- function(difference) {
  if (!all(is.finite(difference))) {
    return(Inf)
  }
  w <- exp(difference - max(difference))
  n <- length(w)
  more <- sqrt((n - 1) / stats::qchisq(1 - quadrature_settings$sure, n - 1))
  max(1e-6, more * stats::sd(w) / mean(w))
}

# The recipe finds as many nodes as it takes, and says itself where these do not
# do.
warn_quadrature <- function(fit, model) {
  found <- fit$quadrature
  if (!isTRUE(found$error > quadrature_settings$told) || !is.null(fit$recipe)) {
    return(invisible())
  }
  name <- model$groups$name
  warn_tall(
    "nodes",
    c(
      "The standard deviations of {.code {name}} are too large for the
       {found$nodes} nodes by which its effects are integrated out.",
      x = "Posterior means may be off by {error_words(found$error)} of their
           standard deviations.",
      i = "Leave {.arg kernel} out: the recipe finds as many nodes as it takes."
    )
  )
}

# Runs on one model begin alike, whatever nodes another has left it.
begin_nodes <- function(model) {
  if (model_has_nodes(model)) {
    nodes <- model$nodes %||%
      first_nodes(length(model$groups$effects))
    if (get_nodes(model) != nodes) {
      set_nodes(model, nodes)
      forget_mode(model)
    }
  }
}

# The same nodes for all that looks at the model of a fit: others may have run
# with it since.
restore_nodes <- function(fit, model) {
  if (is.null(fit$quadrature) || !model_has_nodes(model)) {
    return(model)
  }
  nodes <- if (is.list(fit$quadrature)) fit$quadrature$nodes
  if (!rlang::is_integerish(nodes, 1) || !isTRUE(nodes >= 1 && nodes <= 500)) {
    abort_corrupt("The fit", "quadrature")
  }
  if (get_nodes(model) != nodes) {
    set_nodes(model, nodes)
  }
  model
}

# ---- texts -------------------------------------------------------------------

# Rounded up to one digit.
error_digit <- function(error) {
  unit <- 10^floor(log10(error))
  format(ceiling(signif(error / unit, 3)) * unit, digits = 1)
}

error_words <- function(error) {
  if (error > 1) "more than 1" else paste("up to", error_digit(error))
}

# What a kernel's exactness is worth.
exact_text <- function(fit) {
  found <- fit$quadrature
  if (is.null(found)) {
    return("exact")
  }
  error <- if (is.na(found$error)) {
    "not measured"
  } else if (found$error > 1) {
    "> 1 sd"
  } else {
    paste("<=", error_digit(found$error), "sd")
  }
  paste0(
    "exact but for the quadrature, error ",
    error,
    " with ",
    paste(rep(found$nodes, found$effects), collapse = " x "),
    " nodes"
  )
}
