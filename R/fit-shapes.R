# What the components of fits are, by class: types, lengths, names, and how they
# belong together. A seal says that a fit is as it was made, but whoever alters
# one can seal it again: an error in a function of a fit that is not what its
# class declares is that of the fit (see guard()), any other is a fault of ours
# and stays what it is.

# Names of the components that are not as the class of the fit declares.
misshapen_parts <- function(fit) {
  parts <- unclass(fit)
  if (!is.list(parts) || is.null(names(parts))) {
    return("type")
  }
  shapes <- fit_shapes
  for (class in declared_classes(fit)) {
    shapes <- utils::modifyList(shapes, class_shapes[[class]])
  }
  # the others are said to be so, too, where sizes cannot be had
  of <- tryCatch(fit_sizes(parts), error = function(e) NULL)
  is_fine <- function(name) {
    isTRUE(tryCatch(shapes[[name]](parts[[name]], of), error = function(e) {
      FALSE
    }))
  }
  bad <- names(shapes)[!vapply(names(shapes), is_fine, TRUE)]
  c(bad, if (anyDuplicated(names(parts)) > 0) "names")
}

# Several grouping factors are declared by themselves.
declared_classes <- function(fit) {
  classes <- intersect(names(class_shapes), class(fit))
  if ("tall_crossed" %in% classes) setdiff(classes, "tall_glmer") else classes
}

# What lengths refer to: chains, those that were kept, and variables.
fit_sizes <- function(parts) {
  list(
    parts = parts,
    n_chain = parts$control$chains,
    n_variable = length(parts$variables),
    n_every = length(parts$every_variable),
    n_dim = length(parts$coordinates)
  )
}

# ---- of every fit ------------------------------------------------------------

# Without names that a fit need not have.
fit_shapes <- list(
  draws = shape_draws,
  gradients = maybe(shape_array(NULL)),
  unconstrained = maybe(shape_array(NULL)),
  log_posterior = maybe(shape_array(NULL)),
  sizes = maybe(shape_array(NULL)),
  stopped = function(x, of) {
    is_plain_list(x) && all(vapply(x, is.numeric, TRUE))
  },
  model_label = shape_string,
  family = maybe(shape_family),
  prior = maybe(shape_prior),
  variables = shape_variables,
  every_variable = shape_variables,
  coordinates = shape_variables,
  variable_of = maybe(shape_variable_of),
  has_map = maybe(shape_flag),
  n_data = shape_count,
  n_differ = maybe(shape_count),
  fingerprint = shape_string,
  lambda = maybe(shape_number),
  whitening = maybe(shape_whitening),
  stand_in = maybe(shape_whitening),
  is_whitened = shape_flag,
  kernel = shape_spec("kernel"),
  gradient = shape_gradient,
  subsample = maybe(shape_spec("subsample")),
  schedule = shape_spec("schedule"),
  steps = function(x, of) shape_count(x, of) && x >= 1,
  escape = shape_number,
  compressed = maybe(fields(
    steps = shape_numbers,
    shift = maybe(shape_numbers)
  )),
  robust = maybe(fields(
    type = shape_string,
    weights = shape_string,
    by = maybe(shape_string),
    clusters = shape_number,
    ratio = function(x, of) {
      shape_numbers(x, of) && length(x) == of$n_variable
    },
    covariance = function(x, of) {
      is.double(x) && identical(dim(x), rep(of$n_dim, 2L))
    }
  )),
  quadrature = maybe(fields(
    nodes = shape_count,
    effects = shape_count,
    compared = shape_value,
    error = shape_value,
    draws = shape_count
  )),
  recipe = maybe(every(function(x, of) is.null(x) || is.atomic(x))),
  plan = maybe(shape_strings),
  mode = maybe(shape_mode),
  start_chol = maybe(function(x, of) {
    is.double(x) && length(x) %in% c(of$n_dim, of$n_dim^2)
  }),
  control = shape_control,
  seed = shape_number,
  time = shape_time,
  cpu = maybe(shape_number),
  progress = fields(
    warmup_done = shape_count,
    sampled = shape_count,
    collected = shape_count,
    iterations_before = shape_count
  ),
  monitor = maybe(shape_columns(
    iteration = "number",
    chain = "number",
    monitor = "text",
    statistic = "text",
    value = "number"
  )),
  monitor_state = shape_list,
  noise = maybe(shape_noise),
  bias_blocks = function(x, of) {
    is_plain_list(x) && length(x) %in% c(0, of$n_chain) &&
      all(vapply(x, maybe(shape_blocks), TRUE, of))
  },
  moments = every(shape_moments),
  preparation = shape_preparation,
  saved = shape_saved,
  chains = shape_chains,
  passes = shape_number,
  bias = maybe(shape_columns(
    variable = "text",
    sd_bias = "number",
    sd_bias_se = "number"
  )),
  step_sizes = maybe(function(x, of) is.matrix(x) && is.double(x))
)

# Of ordered classes one coefficient for each, and thresholds; of others one for
# each and every class but the first.
shape_class_columns <- function(x, of) {
  n <- length(x)
  k <- length(of$parts$response_levels) - 1
  is_ordered <- class_methods[[of$parts$method]]$is_ordered
  shape_strings(x, of) && anyDuplicated(x) == 0 &&
    of$parts$n_coef == (if (is_ordered) n + k else n * k)
}

# ---- of a class --------------------------------------------------------------

# Of a formula, or, without one, of a matrix.
formula_shapes <- list(
  formula = maybe(shape_formula),
  terms = function(x, of) {
    if (is.null(x)) is.null(of$parts$formula) else shape_terms(x, of)
  },
  xlevels = maybe(shape_levels),
  contrasts = maybe(shape_contrasts),
  response_levels = maybe(shape_strings),
  columns = maybe(shape_strings),
  rows = maybe(shape_rows),
  na_action = maybe(function(x, of) {
    is.numeric(x) && inherits(x, c("omit", "exclude"))
  }),
  n_missing = maybe(shape_count),
  n_coef = function(x, of) shape_count(x, of) && x <= of$n_every,
  sigma = maybe(function(x, of) shape_number(x, of) && x > 0),
  storage = maybe(shape_string),
  trial_source = maybe(shape_language),
  weight_source = maybe(shape_language),
  offset_source = maybe(shape_language)
)

class_shapes <- list(
  tall_glm = utils::modifyList(formula_shapes, list(
    n_coef = shape_n_coef,
    sparse = maybe(shape_flag),
    blueprint = shape_blueprint("glm", fields(
      prior = shape_prior_spec,
      prior_intercept = shape_prior_spec,
      prior_aux = shape_prior_spec
    )),
    prior_PD = maybe(shape_flag)
  )),
  tall_glmer = utils::modifyList(formula_shapes, list(
    bars = shape_bars,
    design = fields(
      fixed = shape_terms,
      effects = shape_terms,
      xlevels = maybe(shape_levels),
      zlevels = maybe(shape_levels),
      contrasts = maybe(shape_contrasts),
      z_contrasts = maybe(shape_contrasts)
    ),
    blueprint = shape_blueprint("groups", fields(
      prior = shape_prior_spec,
      prior_intercept = shape_prior_spec,
      prior_aux = shape_prior_spec,
      prior_covariance = shape_lkj
    )),
    n_rows = shape_count,
    groups = fields(
      name = shape_string,
      levels = shape_strings,
      effects = shape_strings,
      correlated = shape_flag,
      sizes = shape_numbers
    ),
    nodes = maybe(shape_count)
  )),
  tall_crossed = utils::modifyList(formula_shapes, list(
    bars = shape_crossed_bars,
    design = fields(
      fixed = shape_terms,
      xlevels = maybe(shape_levels),
      contrasts = maybe(shape_contrasts),
      effects = every(fields(
        effects = shape_terms,
        zlevels = maybe(shape_levels),
        z_contrasts = maybe(shape_contrasts)
      )),
      rows = maybe(shape_terms)
    ),
    blueprint = shape_blueprint("crossed", fields(
      prior = shape_prior_spec,
      prior_intercept = shape_prior_spec,
      prior_aux = shape_prior_spec
    )),
    factors = shape_factors,
    effects = maybe(shape_columns(
      variable = "text",
      mean = "number",
      sd = "number",
      rhat = "number"
    )),
    effect_draws = maybe(shape_array(NULL)),
    engine = maybe(function(x, of) inherits(x, "tall_gam"))
  )),
  tall_dpar = utils::modifyList(formula_shapes, list(
    n_coef = function(x, of) {
      shape_count(x, of) && x == sum(of$parts$width) && x <= of$n_every
    },
    width = function(x, of) shape_numbers(x, of) && length(x) == 2,
    dpar = fields(
      name = shape_string,
      formulas = every(shape_formula),
      terms = every(shape_terms),
      contrasts = every(maybe(shape_contrasts))
    ),
    blueprint = shape_blueprint("dpar", fields(
      prior = every(shape_prior_spec),
      prior_intercept = every(shape_prior_spec),
      prior_aux = every(shape_prior_spec)
    ))
  )),
  tall_surv = list(basehaz = shape_string, horizon = shape_number),
  tall_classes = utils::modifyList(formula_shapes, list(
    method = function(x, of) rlang::is_string(x) && x %in% names(class_methods),
    design_columns = shape_class_columns,
    n_data = function(x, of) shape_count(x, of) && x >= 1,
    blueprint = shape_blueprint("classes", fields(prior = shape_prior_spec))
  )),
  tall_nn = utils::modifyList(formula_shapes, list(
    modes = every(function(x, of) {
      is.list(x) && is.double(unclass(x)$estimate) &&
        length(unclass(x)$estimate) == of$n_dim
    }),
    widths = shape_numbers,
    activation = function(x, of) {
      rlang::is_string(x) && x %in% names(network_activations)
    },
    likelihood = function(x, of) {
      rlang::is_string(x) && x %in% network_responses()
    },
    scaling = fields(
      x_center = shape_numbers,
      x_scale = shape_numbers,
      y_center = shape_number,
      y_scale = shape_number
    ),
    blueprint = shape_blueprint("network", fields(
      prior = shape_prior_spec,
      prior_aux = shape_prior_spec
    )),
    check_rows = fields(
      x = function(x, of) is.matrix(x) && is.double(x),
      y = function(x, of) is.atomic(x)
    ),
    checked = maybe(fields(
      rhat = shape_values,
      ess_bulk = shape_values,
      error = maybe(shape_values),
      sd_epistemic = maybe(shape_values)
    ))
  )),
  tall_ica = list(
    data = maybe(fields(
      x = function(x, of) is.numeric(x) && is.matrix(x) || is.data.frame(x),
      prior_sd = shape_number
    )),
    scaling = fields(center = shape_numbers, scale = shape_numbers),
    storage = shape_string,
    reference = function(x, of) {
      is.double(x) && is.matrix(x) && length(x) == of$n_every
    },
    aligned = maybe(shape_count)
  ),
  tall_factorize = list(
    formula = shape_formula,
    parts = fields(
      rating = shape_language,
      user = shape_language,
      item = shape_language,
      environment = function(x, of) is.environment(x)
    ),
    shape = shape_numbers,
    ids = fields(user = maybe(shape_strings), item = maybe(shape_strings)),
    rated = fields(
      user = function(x, of) is.logical(x),
      item = function(x, of) is.logical(x)
    ),
    center = shape_number,
    alpha = shape_number,
    rating_range = shape_pair,
    range = maybe(shape_pair),
    data = maybe(fields(ratings = fields(
      user = fields(index = shape_numbers),
      item = fields(index = shape_numbers)
    )))
  ),
  tall_topics = list(
    n_topic = shape_count,
    vocabulary = shape_strings,
    priors = shape_pair,
    n_token = shape_number
  )
)
