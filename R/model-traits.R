# What a model can do, and what others must know of it besides its numbers. Each
# constructor says it once, by model_traits(); all else reads `model$traits` and
# asks no model for its name. What the core knows of a model (has it rows'
# weights, a Hessian, a map from parameters to variables?) it is asked for:
# model_info().
#
# start: where searches begin and chains that nobody placed. Unconstrained
#   numbers, a function that draws them, or NULL: zeros.
# draw: a function of a generator of standard normals that gives a starting
#   point; NULL: chains start around the mode. A model that has one needs none.
# mode_method: how find_mode() searches by default; NULL: by Newton's method
#   where there is a Hessian, else by L-BFGS.
# curvature_passes: passes over the data that a Hessian costs.
# gradient: the estimator where none is given, by its name.
# batch: rows of a minibatch where none is given; NULL: by the recipe's rule.
# gibbs_every: steps between draws that the model makes of some parameters
#   itself; NULL: it makes none.
# n_aux: how many of the last coordinates (before hyperparameters of the prior,
#   see n_hyper()) are parameters of the response's.
# has_classes: are its rows of classes, with several predictors or thresholds?
# has_columns: are its parameters, but those, coefficients of the columns of
#   a design? Then it has a `family`, and `n_coef` of them.
# has_data_free: has the likelihood a part that no row carries? A Gibbs
#   posterior cannot scale it.
# has_several: does a row act through several predictors?
# is_far_from_normal: is it known before anyone has looked?
# is_grouped: are its rows groups, whose effects are integrated out?
# is_noisy: is noise added to its gradients?
# is_swept: does it move its own chains, by sweeps? Then it has no gradient, and
#   kernel_gibbs() alone samples it.
# is_users: is its density a user's own, of which nothing is known?
# runs_r: does the core call functions of R, which may stop a chain?
usual_traits <- list(
  start = NULL,
  draw = NULL,
  mode_method = NULL,
  curvature_passes = 1,
  gradient = "cv",
  batch = NULL,
  gibbs_every = NULL,
  n_aux = 0,
  has_classes = FALSE,
  has_columns = FALSE,
  has_data_free = FALSE,
  has_several = FALSE,
  is_far_from_normal = FALSE,
  is_grouped = FALSE,
  is_noisy = FALSE,
  is_swept = FALSE,
  is_users = FALSE,
  runs_r = FALSE
)

# Those that are not as usual are given by name.
model_traits <- function(...) {
  own <- list(...)
  stopifnot(all(rlang::names2(own) %in% names(usual_traits)))
  traits <- usual_traits
  traits[names(own)] <- own
  traits
}

# Are these what model_traits() made? Of functions only that they are some.
are_traits <- function(x, n_dim) {
  if (!is.list(x) || !identical(names(x), names(usual_traits))) {
    return(FALSE)
  }
  is_numbers <- function(value) {
    is.double(value) && length(value) == n_dim && all_finite(value)
  }
  at_least <- function(value, min) is_number(value) && isTRUE(value >= min)
  or_none <- function(name, is_one) is.null(x[[name]]) || is_one(x[[name]])
  flags <- grep("^(is|has|runs)_", names(x))
  all(
    or_none("start", function(value) is.function(value) || is_numbers(value)),
    or_none("draw", is.function),
    or_none("mode_method", rlang::is_string),
    or_none("batch", function(value) at_least(value, 1)),
    or_none("gibbs_every", function(value) at_least(value, 1)),
    at_least(x$curvature_passes, 0),
    at_least(x$n_aux, 0),
    rlang::is_string(x$gradient) &&
      is.function(constructor_of("gradient", x$gradient)),
    vapply(x[flags], rlang::is_bool, TRUE)
  )
}

# The coordinates that are parameters of the response: the last but
# hyperparameters of the prior.
aux_coordinates <- function(model) {
  n_aux <- model$traits$n_aux
  model$n_dim - n_hyper(model) - n_aux + seq_len(n_aux)
}

# How many of the last coordinates are hyperparameters.
n_hyper <- function(model) {
  length(model$mixture$names)
}

# How many there are of those that rows see.
n_seen <- function(model) {
  model$n_dim - n_hyper(model)
}

# The model's rows, under the prior that those are not of.
rows_pointer <- function(model) {
  (model$base %||% model)$pointer
}

has_hyper <- function(model) {
  n_hyper(model) > 0
}

sampled_aux <- function(model) {
  model$variables[aux_coordinates(model)]
}

# What each of them is above, natural.
aux_lower <- function(model) {
  facts <- response_facts(model$family)
  facts$lower[match(sampled_aux(model), facts$aux)]
}
