# Models whose rows have several predictors, with columns of their own each: of
# a mean and of a distributional parameter.

# family: with both predictors. priors: prior and prior_intercept, each a list
# by the name of what is predicted, and prior_aux.
blueprint_dpar <- function(family, priors, storage = "double") {
  new_blueprint("dpar", family = family, priors = priors, storage = storage)
}

#' @export
build_model.tall_blueprint_dpar <- function(blueprint, rows) {
  rows <- whole_rows(rows)
  family <- blueprint$family
  facts <- response_facts(family)
  width <- rows$width
  known_aux <- known_values(family)
  is_sampled <- is.na(known_aux)
  read <- check_glm_rows(rows, family)
  names <- column_names(read$x)
  check_no_aux(names, facts$aux[is_sampled])
  means <- unname(rows$facts$mean %||% design_means(read$x))
  places <- dpar_places(width, names)
  units <- dpar_units(family, read)
  sds <- function() rows$facts$sd %||% column_sds(read$x)
  prior <- dpar_priors(blueprint, sds, places, units)
  if (any(is_sampled)) {
    prior <- append_aux(
      prior,
      aux_priors(blueprint$priors$prior_aux, family, facts$aux[is_sampled]),
      1,
      facts$lower[is_sampled]
    )
  }
  center <- dpar_center(places, means)
  coordinates <- dpar_coordinates(names, places, center)
  new_model(
    "predictors",
    compact(list(
      x = as_double_matrix(unname(read$x)),
      y = as_double_values(read$y),
      weights = read$weights,
      offset = read$offset,
      response = facts$place,
      aux = if (length(is_sampled) > 0) unname(known_aux),
      width = as.double(width),
      intercept = vapply(places, function(one) {
        if (is.null(one$intercept)) NaN else one$intercept - one$at[[1]]
      }, 0),
      center = center,
      prior_kind = core_kinds(prior),
      prior_location = prior$location,
      prior_scale = prior$scale,
      prior_shape = prior$shape
    )),
    variables = c(names, facts$aux[is_sampled]),
    coordinates = c(coordinates$names, facts$coordinate[is_sampled]),
    variable_of = c(
      coordinates$of,
      length(names) + seq_len(sum(is_sampled))
    ),
    n_coef = length(names),
    width = width,
    center = center,
    family = family,
    prior = prior,
    traits = model_traits(
      start = dpar_start(family, facts, read, places, center, units),
      n_aux = sum(is_sampled),
      has_columns = TRUE,
      has_several = TRUE
    ),
    label = "tall_glm",
    store = store_of(blueprint$storage, read$x)
  )
}

# Of each predictor, by name: `at`, its columns; `names` of these without the
# parameter's; `intercept`, its column, NULL: it has none.
dpar_places <- function(width, names) {
  ends <- cumsum(width)
  out <- lapply(seq_along(width), function(k) {
    at <- seq(ends[[k]] - width[[k]] + 1, ends[[k]])
    own <- names[at]
    if (k > 1) {
      own <- substring(own, nchar(names(width)[[k]]) + 2)
    }
    intercept <- at[own == "(Intercept)"]
    list(
      at = at,
      names = own,
      intercept = if (length(intercept) == 1) intercept
    )
  })
  stats::setNames(out, names(width))
}

# list(mean, sd): of what a mean is to explain, and log_sd, where log sigma is
# expected; of responses without units 0, 1 and 0.
dpar_units <- function(family, read) {
  if (!find_response(family)$has_units) {
    return(list(mean = 0, sd = 1, log_sd = 0))
  }
  units <- response_units(read$y, read$weights, read$offset)
  list(mean = units$mean, sd = units$sd, log_sd = log(units$aux_sd))
}

# As prior_resolve() has them, of all coefficients: each predictor's by itself.
# What is beside the mean is on the scale of its link, whose units are 1.
# sds(): of all columns.
dpar_priors <- function(blueprint, sds, places, units) {
  priors <- blueprint$priors
  resolved <- lapply(seq_along(places), function(k) {
    own <- places[[k]]
    prior_resolve(
      priors$prior[[k]],
      priors$prior_intercept[[k]],
      names = own$names,
      n_dim = length(own$at),
      column_sd = function() sds()[own$at],
      units = if (k == 1) units else list(mean = units$log_sd, sd = 1)
    )
  })
  has_shape <- !vapply(resolved, function(one) is.null(one$shape), TRUE)
  fields <- c("kind", "location", "scale", if (any(has_shape)) "shape")
  lapply(stats::setNames(nm = fields), function(field) {
    unlist(lapply(resolved, function(one) {
      one[[field]] %||% numeric(length(one$kind))
    }))
  })
}

# Means of the columns of predictors that have an intercept, which is at them.
dpar_center <- function(places, means) {
  for (one in places) {
    if (is.null(one$intercept)) {
      means[one$at] <- 0
    } else {
      means[[one$intercept]] <- 0
    }
  }
  means
}

# list(names, of): chains move intercepts at the means of columns, which are
# other numbers than the variables.
dpar_coordinates <- function(names, places, center) {
  of <- seq_along(names)
  for (one in places) {
    if (!is.null(one$intercept) && any(center[one$at] != 0)) {
      names[[one$intercept]] <- paste0("centred_", names[[one$intercept]])
      of[[one$intercept]] <- NA_integer_
    }
  }
  list(names = names, of = of)
}

# Where searches begin, coordinates: of responses with units at least squares,
# of others at the same predictors for all rows.
dpar_start <- function(family, facts, read, places, center, units) {
  y <- first_column(read$y)
  weight <- read$weights %||% rep(1, length(y))
  start <- numeric(sum(lengths(lapply(places, `[[`, "at"))))
  entry <- find_response(family)
  mu <- places[[1]]
  second <- places[[2]]$intercept
  if (entry$has_units) {
    x <- read$x[, mu$at, drop = FALSE]
    x <- x - rep(center[mu$at], each = nrow(x))
    own <- least_squares(x, y - (read$offset %||% 0), weight)
    start[mu$at] <- own$coef
    if (!is.null(second)) {
      start[[second]] <- if (own$rms > 0) log(own$rms) else units$log_sd
    }
  } else {
    mean <- sum(weight * y) / sum(weight)
    if (!is.null(mu$intercept)) {
      start[[mu$intercept]] <- if (family$link == "logit") {
        stats::qlogis(mean)
      } else {
        log(max(mean, 1 / length(y)))
      }
    }
    if (names(places)[[2]] == "zi" && !is.null(second)) {
      zero <- sum(weight * (y == 0)) / sum(weight)
      start[[second]] <- stats::qlogis(min(max(zero / 2, 0.02), 0.9))
    }
  }
  is_sampled <- is.na(known_values(family))
  c(start, aux_starts(entry, facts, NULL)[is_sampled])
}

# list(coef, rms): of columns that may depend on each other.
least_squares <- function(x, y, weight) {
  gram <- crossprod(x, weight * x)
  scale <- sqrt(diag(gram))
  scale[scale == 0] <- 1
  gram <- gram / outer(scale, scale) + diag(1e-10, ncol(x))
  coef <- drop(solve(gram, crossprod(x, weight * y) / scale)) / scale
  residual <- y - drop(x %*% coef)
  list(coef = coef, rms = sqrt(mean(weight * residual^2)))
}
