# Blueprints: what a model of a regression is, but for its rows. With one, a
# model can be made of any rows: all of a fit, some that were drawn, those that
# were held out.

# family: from resolve_family(), NULL where the method or the rows say what the
# response is; priors: a list of tall_prior by name; sigma: known, or NULL;
# storage: how the model keeps its rows. More: of its kind.
new_blueprint <- function(
  kind,
  ...,
  family = NULL,
  priors,
  sigma = NULL,
  storage = "double"
) {
  structure(
    list(
      family = family,
      priors = priors,
      sigma = sigma,
      storage = storage,
      ...
    ),
    class = c(paste0("tall_blueprint_", kind), "tall_blueprint")
  )
}

# priors: prior, prior_intercept (NULL: `prior` is that of all columns),
# prior_aux, and with blocks prior_smooth. centers: is the intercept's prior on
# the predictor at the covariates' means? blocks: of read_blocks().
blueprint_glm <- function(
  family,
  priors,
  sigma = NULL,
  storage = "double",
  centers = TRUE,
  blocks = NULL
) {
  new_blueprint(
    "glm",
    family = family,
    priors = priors,
    sigma = sigma,
    storage = storage,
    centers = centers,
    blocks = blocks
  )
}

# Of held-out rows, whose likelihood alone is asked for.
blueprint_flat <- function(family, sigma = NULL) {
  flat <- list(prior = prior_flat(), prior_aux = prior_flat())
  blueprint_glm(family, flat, sigma, centers = FALSE)
}

# The effects of groups integrated out. priors: prior_covariance, too; nodes: of
# the quadrature, NULL: as many as it needs.
blueprint_groups <- function(
  family,
  priors,
  sigma = NULL,
  nodes = NULL,
  centers = TRUE
) {
  new_blueprint(
    "groups",
    family = family,
    priors = priors,
    sigma = sigma,
    nodes = nodes,
    centers = centers
  )
}

# method: a name of class_methods. priors: prior and prior_intercept, or
# prior_counts.
blueprint_classes <- function(method, priors, storage = "double") {
  new_blueprint("classes", method = method, priors = priors, storage = storage)
}

# sigma: in the units of the response, or "sampled". priors: prior, prior_aux.
# arg_hidden: what the user calls the widths of the layers.
blueprint_network <- function(
  hidden,
  activation,
  priors,
  sigma = "sampled",
  storage = "double",
  arg_hidden = "layers"
) {
  new_blueprint(
    "network",
    hidden = hidden,
    activation = activation,
    priors = priors,
    sigma = sigma,
    storage = storage,
    arg_hidden = arg_hidden
  )
}

# The model of rows (tall_rows, wherever they lie: they are brought to memory).
build_model <- function(blueprint, rows) {
  UseMethod("build_model")
}

# The same of alike_rows(): its `n_data` are those that differ, `n_all` those
# that they stand for.
build_alike <- function(blueprint, rows) {
  model <- build_model(blueprint, rows)
  model$n_all <- sum(rows$count)
  model
}

# Is a row with the weight k as k rows, to priors as well? Precisions are none,
# and units are those of the responses of all rows. Models of one predictor have
# other ways with rows in memory, but where a parameter is sampled.
counts_rows <- function(blueprint) {
  UseMethod("counts_rows")
}

#' @export
counts_rows.default <- function(blueprint) {
  FALSE
}

#' @export
counts_rows.tall_blueprint_classes <- function(blueprint) {
  TRUE
}

#' @export
counts_rows.tall_blueprint_dpar <- function(blueprint) {
  is_counting(blueprint$family)
}

#' @export
counts_rows.tall_blueprint_glm <- function(blueprint) {
  family <- blueprint$family
  is.null(blueprint$blocks) &&
    !has_pieces(family) &&
    !is_mixture_prior(blueprint$priors$prior) &&
    anyNA(known_values(family, blueprint$sigma)) &&
    is_counting(family)
}

is_counting <- function(family) {
  !has_precisions(family) && !find_response(family)$has_units
}
