# model_groups(): regressions with group-level effects that are integrated out,
# and what tall_glmer() shares with it. The rows that estimators draw are
# groups.

#' Multilevel regressions with one grouping factor
#'
#' The posterior of the coefficients, and of the standard deviations and
#' correlations of groups' effects, of a generalised linear model whose groups
#' have effects of their own. [tall_glmer()] builds one from a formula.
#'
#' @param x (numeric matrix, n_row x n_coef) The covariates.
#' @param y (vector of n_row values) The response, as in [model_glm()].
#' @param group (factor or vector of n_row values) The group of each row; unused
#'   levels are dropped.
#' @param z (numeric matrix, n_row x q, or `NULL`) The covariates whose
#'   coefficients differ between groups, at most 3; `NULL`: an intercept.
#' @param family (string or family object) As in [model_glm()]: any response but
#'   those that are not log-concave, `student()` and `beta_regression()`.
#' @param prior,prior_intercept,prior_aux,weights,offset,sigma As in
#'   [model_glm()].
#' @param prior_covariance ([prior_lkj()], a prior of standard deviations, or
#'   `NULL`) The prior of the effects' standard deviations and correlations;
#'   `NULL`: flat.
#' @param correlated (`TRUE` or `FALSE`) Are the effects of a group correlated?
#' @param nodes (whole number or `NULL`) Nodes of the quadrature in each
#'   dimension. `NULL`: 9, or as many as the recipe of a run without a kernel
#'   finds. More than 50 are equal steps in place of Gauss and Hermite's nodes,
#'   for standard deviations that are large.
#'
#' @details With \eqn{u_g = \Lambda v_g}{u_g = Lambda v_g}, \eqn{v_g \sim N(0,
#' I)}{v_g ~ N(0, I)}, what a group adds to the log posterior is \deqn{L_g =
#' \log \int \prod_{i \in g} p(y_i \mid x_i^\top \beta + z_i^\top \Lambda v)\,
#' N(v; 0, I)\, dv,}{L_g = log int prod_{i in g} p(y_i | x_i'beta + z_i'Lambda
#' v) N(v; 0, I) dv,} by adaptive Gauss-Hermite quadrature about the mode of the
#' integrand, or the trapezoidal rule; its derivatives are those of the
#' identities of Fisher and Louis. A Gaussian response needs three nodes, which
#' are exact, and as few rows of a group as there are columns. To estimators,
#' schemes and kernels the group is the datum: `n_data` is the number of groups.
#' The parameters are the coefficients, the logarithms of the standard
#' deviations of the effects (`log_sd_g__x`), then Fisher's z (atanh) of their
#' canonical partial correlations row by row (`atanh_g__x__z`; with two effects
#' of their correlation), and the logarithm of the response's parameter. With
#' several effects these are effects of covariates in one unit, and about their
#' means where these are far from 0 (2.5 standard deviations), so that neither
#' the units of a covariate nor where its 0 lies matter to a sampler.
#' Priors are those of the effects as they are written, \eqn{\Sigma = A \Sigma'
#' A^\top}{Sigma = A Sigma' A'}, and variables their standard deviations and
#' correlations. Metropolis kernels make a fifth of their steps in the
#' coordinates of that prior.
#'
#' @return A `tall_model` for [sg_sample()] and [find_mode()].
#' @section Conditions: those of [model_glm()]; `tall_error_unsupported` for
#' more than three effects, or a response that is not log-concave.
#' @references
#' Pinheiro & Bates (1995). Approximations to the log-likelihood function in the
#' nonlinear mixed-effects model. *Journal of Computational and Graphical
#' Statistics* 4, 12-35.
#'
#' Trefethen & Weideman (2014). The exponentially convergent trapezoidal rule.
#' *SIAM Review* 56, 385-458.
#' @examples
#' g <- rep(1:50, each = 10)
#' x <- cbind("(Intercept)" = 1, x = rnorm(500))
#' y <- rbinom(500, 1, plogis(x[, "x"] + rnorm(50)[g]))
#' model <- model_groups(x, y, g)
#' model
#' @export
model_groups <- function(
  x,
  y,
  group,
  z = NULL,
  family = "bernoulli",
  prior = prior_normal(0, 2.5),
  prior_intercept,
  prior_aux = prior_exponential(autoscale = TRUE),
  prior_covariance = prior_lkj(),
  weights = NULL,
  offset = NULL,
  sigma = NULL,
  correlated = TRUE,
  nodes = NULL
) {
  check_given(x)
  x <- check_design(x)
  check_given(y)
  check_given(group)
  z <- z %||% cbind("(Intercept)" = rep(1, nrow(x)))
  z <- check_design(z)
  check_same_rows(x, z, arg = "x", arg_y = "z")
  check_same_rows(x, group, arg = "x", arg_y = "group")
  if (is.null(colnames(z))) {
    colnames(z) <- paste0("z", seq_len(ncol(z)))
  }
  family <- resolve_family(family)
  check_effects(colnames(z))
  group <- as_group(group, "group")
  priors <- list(
    prior = as_prior(prior),
    prior_intercept = if (!missing(prior_intercept)) as_prior(prior_intercept),
    prior_aux = as_prior(prior_aux),
    prior_covariance = as_covariance_prior(prior_covariance)
  )
  rows <- rows_memory(
    look_at_rows(matrix_reader(x, z), group),
    y,
    weights,
    offset,
    groups = list(
      group = group,
      name = "group",
      correlated = check_flag(correlated)
    )
  )
  nodes <- if (!is.null(nodes)) check_count(nodes, most = 500)
  blueprint <- blueprint_groups(family, priors, sigma, nodes, centers = FALSE)
  build_model(blueprint, rows)
}

# Each row's group, of levels that are there.
as_group <- function(group, arg) {
  group <- quick_factor(group)
  if (anyNA(group)) {
    abort_value(
      group,
      which(is.na(group))[[1]],
      "be no missing value",
      arg = arg
    )
  }
  group
}

# in each dimension, and what the recipe takes where these will not do; of
# several effects, whose nodes are many, it begins with fewer
usual_nodes <- 9
more_nodes <- c(15, 25, 41, 101, 201, 401)
few_nodes <- 5

first_nodes <- function(q) {
  if (q > 1) few_nodes else usual_nodes
}

# `x` of the rows is what look_at_rows() found; `groups`, list(group, name,
# correlated).
#' @export
build_model.tall_blueprint_groups <- function(blueprint, rows) {
  rows <- whole_rows(rows)
  x <- rows$x
  terms <- rows$groups
  family <- blueprint$family
  nodes <- blueprint$nodes
  if (is.null(rows$file)) {
    check_grouped_family(family, y = rows$y)
  }
  names <- group_names(x$effects, terms)
  read <- read_regression(blueprint, rows, function(columns, aux) {
    check_names_differ(c(columns, names$variables, aux))
  })
  entry <- find_response(family)
  facts <- read$facts
  is_sampled <- read$is_sampled
  n_aux <- sum(is_sampled)
  n_lambda <- length(names$variables)
  functional <- if (blueprint$centers) center_functional(x, n_aux)
  if (!is.null(functional)) {
    functional$weights <-
      append(functional$weights, numeric(n_lambda), ncol(x))
  }
  own <- insert_lambda(read$prior, ncol(x), n_lambda, "flat")
  is_exact <- entry$is_quadratic
  covariance <- covariance_params(
    blueprint$priors$prior_covariance,
    x$effects,
    rows$spread %||% read$rows$y,
    entry$has_units
  )
  sizes <- terms$sizes %||%
    as.double(tabulate(terms$group, nlevels(terms$group)))
  n_node <- if (is_exact) 3 else nodes %||% usual_nodes
  span <- effects_span(x, terms)
  new_model(
    "groups",
    c(covariance, list(
      rows = if (is.null(rows$file)) {
        put_rows(x, sizes, read$rows, terms$group, entry)
      } else {
        open_group_rows(rows$file)
      },
      z = as.double(effect_columns(x) - 1),
      span = span,
      n_coef = as.double(ncol(x)),
      correlated = as.double(terms$correlated),
      nodes = as.double(quadrature(n_node)),
      response = facts$place,
      aux = if (length(is_sampled) > 0) unname(read$known_aux),
      prior_kind = as.double(own$kind),
      prior_location = own$location,
      prior_scale = own$scale,
      prior_shape = own$shape,
      prior_at = functional$at,
      prior_functional = functional$weights
    )),
    variables = c(
      read$coefficients,
      names$variables,
      facts$aux[is_sampled]
    ),
    coordinates = c(
      read$coefficients,
      names$coordinates,
      facts$coordinate[is_sampled]
    ),
    variable_of = c(
      seq_len(ncol(x)),
      ncol(x) + names$of,
      ncol(x) + n_lambda + seq_len(n_aux)
    ),
    n_coef = ncol(x),
    n_lambda = n_lambda,
    n_rows = nrow(x),
    span = span,
    groups = list(
      name = terms$name,
      levels = terms$levels %||% levels(terms$group),
      effects = x$effects,
      correlated = terms$correlated,
      sizes = sizes
    ),
    is_exact = is_exact,
    nodes = nodes,
    family = family,
    # a density of the logarithm that is proper, and is not quadratic
    prior = insert_lambda(read$prior, ncol(x), n_lambda, "exponential"),
    prior_functional = functional,
    sigma = read$sigma,
    traits = model_traits(
      start = groups_start(x, names, read$units, n_aux),
      n_aux = n_aux,
      is_grouped = TRUE
    ),
    label = "model_groups",
    store = groups_store
  )
}

groups_store <- list(type = "dense", read_only = FALSE, storage = "double")

# Where Newton's method begins: groups that differ by half a unit. Standardised
# effects are in units of the first.
groups_start <- function(x, names, units, n_aux) {
  size <- 0.5 * (units$sd %||% 1)
  lambda <- numeric(length(names$variables))
  lambda[seq_along(x$effects)] <- log(size / max(x$most[[1]], 1e-8))
  c(numeric(ncol(x)), lambda, if (n_aux > 0) log(units$aux_sd %||% 1))
}

# Priors of the coordinates with those of lambda between coefficients and
# auxiliary parameter.
insert_lambda <- function(resolved, n_coef, n_lambda, kind) {
  put <- function(values, new) append(values, rep(new, n_lambda), n_coef)
  compact(list(
    kind = put(resolved$kind, prior_kinds[[kind]]$code),
    location = put(resolved$location, 0),
    scale = put(resolved$scale, 1),
    shape = if (!is.null(resolved$shape)) put(resolved$shape, 0)
  ))
}

# Rows as the core takes them, those of a group after each other: a pointer, for
# the parameter "rows". sizes: rows of each group; rows: list(y, weights,
# offset). entry: of the response. Rows of several effects that say the same are
# merged, since each is looked at at many nodes.
put_rows <- function(x, sizes, rows, group, entry) {
  own <- which(is.na(x$same))
  if (nrow(x) > 1e6) {
    gc() # what was made on the way here, before there is more
  }
  out <- .Call(
    ffi_groups_rows,
    groups_store$type,
    sizes,
    as.double(ncol(x) + length(own)),
    as.double(NCOL(rows$y)),
    !is.null(rows$weights),
    !is.null(rows$offset),
    entry$is_quadratic,
    NULL
  )
  check_group_door(out)
  each_rows(x$reader, function(block, first, n, is_last) {
    status <- .Call(
      ffi_groups_add,
      out,
      model_columns(block, n, x),
      as.double(n),
      as.double(first),
      group,
      rows$y,
      rows$weights,
      rows$offset,
      is_last
    )
    abort_status(status)
  })
  if (length(x$effects) > 1) {
    check_group_door(
      .Call(ffi_groups_merge, out, isTRUE(entry$has_trials), NULL)
    )
  }
  out
}

# As brms names them.
group_names <- function(effects, terms) {
  effects <- gsub("(Intercept)", "Intercept", effects, fixed = TRUE)
  q <- length(effects)
  name <- terms$name
  sds <- paste0("sd_", name, "__", effects)
  below <- which(lower.tri(diag(q)), arr.ind = TRUE)
  below <- below[order(below[, 1], below[, 2]), , drop = FALSE]
  if (!terms$correlated) {
    below <- below[0, , drop = FALSE]
  }
  pair <- function(first) {
    if (nrow(below) == 0) {
      return(character())
    }
    paste0(
      first, name, "__", effects[below[, 2]], "__", effects[below[, 1]]
    )
  }
  # of standardised effects: only the last is the one that is written, but for
  # its unit
  mixed <- c(nrow(below) > 0 & seq_len(q) < q, rep(TRUE, nrow(below)))
  list(
    effects = effects,
    variables = c(sds, pair("cor_")),
    coordinates = c(paste0("log_", sds), pair("atanh_")),
    of = ifelse(mixed, NA_integer_, seq_along(mixed))
  )
}

check_names_differ <- function(names) {
  twice <- unique(names[duplicated(names)])
  if (length(twice) > 0) {
    abort_input(
      "Variables must have different names, but {.val {twice[[1]]}} would come
       twice: rename a column or the grouping factor.",
      argument = "formula",
      value = twice
    )
  }
}

# ---- nodes -------------------------------------------------------------------

# Nodes t of a quadrature about a group's mode, in sqrt(2) of the sds that its
# curvature there has, and the logarithms of their weights times e^(t^2).
#
# Few nodes are those of Gauss and Hermite, exact for polynomials beside a
# normal law. Where sds are large and a group's responses all alike, its law of
# v is half a normal one beside a steep slope, which no polynomial is: then many
# equal steps (the trapezoidal rule), whose error falls exponentially for what
# is analytic (Trefethen and Weideman, 2014, SIAM Review 56, 385-458). They
# reach as far as the prior does where the mode has eight times its curvature.
quadrature <- function(n) {
  if (n <= most_hermite) {
    return(gauss_hermite(n))
  }
  t <- seq(-12, 12, length.out = n)
  cbind(t, log(t[[2]] - t[[1]]))
}

most_hermite <- 50

# The logarithm of a weight times e^(t^2): one over the sum of squares of the
# orthonormal Hermite functions, which never underflows.
gauss_hermite <- function(n) {
  if (n == 1) {
    return(cbind(0, log(sqrt(pi))))
  }
  off <- sqrt(seq_len(n - 1) / 2)
  jacobi <- matrix(0, n, n)
  jacobi[cbind(2:n, seq_len(n - 1))] <- off
  jacobi <- jacobi + t(jacobi)
  t <- eigen(jacobi, symmetric = TRUE, only.values = TRUE)$values
  for (k in 1:2) {
    h <- hermite_functions(t, n)
    # phi_n' = sqrt(2 n) phi_(n - 1) - t phi_n, and phi_n is 0 at a node
    t <- t - h[, n + 1] / (sqrt(2 * n) * h[, n] - t * h[, n + 1])
  }
  t <- (t - rev(t)) / 2
  cbind(t, -log(rowSums(hermite_functions(t, n)[, seq_len(n)]^2)))
}

# phi_0..phi_n at t, columns
hermite_functions <- function(t, n) {
  h <- matrix(0, length(t), n + 1)
  h[, 1] <- pi^(-1 / 4) * exp(-t^2 / 2)
  h[, 2] <- sqrt(2) * t * h[, 1]
  for (j in seq_len(n - 1) + 1) {
    h[, j + 1] <- t * sqrt(2 / j) * h[, j] - sqrt((j - 1) / j) * h[, j - 1]
  }
  h
}

set_nodes <- function(model, n) {
  status <- .Call(ffi_groups_nodes, model$pointer, as.double(quadrature(n)))
  abort_status(status)
  invisible(model)
}

# Are effects integrated out by nodes, which leave an error?
model_has_nodes <- function(model) {
  model$traits$is_grouped && !model$is_exact
}

# Rows that the core has after those that say the same were merged.
merged_rows <- function(model) {
  .Call(ffi_groups_n_row, model$pointer)
}

get_nodes <- function(model) {
  .Call(ffi_groups_n_node, model$pointer)
}

# What was found with other nodes.
forget_mode <- function(model) {
  rm(list = ls(model$cache, all.names = TRUE), envir = model$cache)
}
