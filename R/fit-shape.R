# Shapes: what a component of a fit can be, see fit-shapes.R. A shape is a
# function of a component and of fit_sizes(): TRUE where it is one.

maybe <- function(shape) {
  force(shape)
  function(x, of) is.null(x) || shape(x, of)
}

every <- function(shape, names = NULL) {
  force(shape)
  function(x, of) {
    is_plain_list(x) && all(names %in% names(x)) &&
      all(vapply(x, shape, TRUE, of))
  }
}

# A list of these elements, each of its shape; others may be there.
fields <- function(...) {
  shapes <- list(...)
  function(x, of) {
    is_plain_list(x) && !is.null(names(x)) &&
      all(vapply(names(shapes), function(name) {
        isTRUE(shapes[[name]](x[[name]], of))
      }, TRUE))
  }
}

# What a model is but for its rows. priors: the shape of its list of them.
shape_blueprint <- function(kind, priors) {
  shape <- fields(
    family = maybe(shape_family),
    priors = priors,
    sigma = maybe(function(x, of) is.numeric(x) || rlang::is_string(x)),
    storage = shape_string
  )
  function(x, of) {
    inherits(x, paste0("tall_blueprint_", kind)) && shape(unclass(x), of)
  }
}

is_plain_list <- function(x) {
  is.list(x) && !is.object(x)
}

shape_count <- function(x, of) {
  is_number(x) && is.finite(x) && x >= 0 && x == floor(x) && x <= 2^53
}

shape_number <- function(x, of) is_number(x) && is.finite(x)

shape_numbers <- function(x, of) is_plain_numeric(x)

shape_flag <- function(x, of) is.logical(x) && length(x) == 1 && !is.na(x)

shape_string <- function(x, of) rlang::is_string(x)

shape_strings <- function(x, of) is.character(x) && !anyNA(x)

shape_language <- function(x, of) {
  is.language(x) || is.atomic(x) && length(x) <= 1
}

shape_formula <- function(x, of) {
  inherits(x, "formula") && is.call(x) && length(x) %in% 2:3 &&
    is.environment(environment(x))
}

shape_terms <- function(x, of) {
  shape_formula(x, of) && inherits(x, "terms") &&
    is.call(attr(x, "variables")) && is.character(attr(x, "term.labels")) &&
    is_number(attr(x, "response"))
}

# Names of variables: unique, as every array has them.
shape_variables <- function(x, of) {
  shape_strings(x, of) && length(x) > 0 && anyDuplicated(x) == 0
}

# Which variable each coordinate is of, NA: none.
shape_variable_of <- function(x, of) {
  shape_values(x, of) && length(x) == of$n_dim &&
    all(is.na(x) | x %in% seq_len(of$n_every))
}

shape_spec <- function(family) {
  force(family)
  function(x, of) {
    inherits(x, paste0("tall_", family)) && is_whole(x)
  }
}

# Beside a spec's parts it may have what a plan found: how chains of learnt
# scales move, and rows drawn ahead.
shape_gradient <- function(x, of) {
  if (!is.list(x) || !all(names(unclass(x)) %in% gradient_parts)) {
    return(FALSE)
  }
  own <- structure(unclass(x)[c("name", "args")], class = class(x))
  shape_spec("gradient")(own, of)
}

gradient_parts <- c("name", "args", "surrogate", "ahead")

shape_prior_spec <- function(x, of) {
  inherits(x, "tall_prior") && is_whole(x)
}

shape_lkj <- function(x, of) {
  inherits(x, "tall_prior_lkj") && is.list(x) &&
    all(vapply(unclass(x), shape_known, TRUE, of))
}

# Numbers, or another prior.
shape_known <- function(x, of) {
  shape_number(x, of) || is.null(x) || shape_prior_spec(x, of)
}

is_whole <- function(x) {
  tryCatch(
    {
      check_whole(x, "x")
      TRUE
    },
    error = function(e) FALSE
  )
}

# The prior of each coordinate, as the core has it.
shape_prior <- function(x, of) {
  shape <- fields(
    kind = shape_numbers,
    location = shape_numbers,
    scale = shape_numbers
  )
  n <- if (is.list(x)) lengths(unclass(x)[c("kind", "location", "scale")])
  shape(x, of) && all(n == of$n_dim)
}

shape_whitening <- function(x, of) {
  n <- of$n_dim
  is_plain_list(x) && is.double(x$center) && length(x$center) == n &&
    is.double(x$chol) && length(x$chol) %in% c(n, n^2) &&
    shape_flag(x$is_diagonal, of)
}

shape_mode <- function(x, of) {
  inherits(x, "tall_mode") && length(unclass(x)$estimate) == of$n_dim &&
    !is.null(check_mode(x))
}

# Arrays of iterations x kept chains x something.
shape_array <- function(names) {
  force(names)
  function(x, of) {
    at <- unclass(x)
    is.double(at) && length(dim(at)) == 3 && dim(at)[[2]] <= of$n_chain &&
      (is.null(names) || dim(at)[[3]] == length(of$parts[[names]])) &&
      (is.null(dimnames(at)) || length(dimnames(at)) == 3)
  }
}

# There are none where none are kept, or no chain came through.
shape_draws <- function(x, of) {
  if (is.null(x)) {
    parts <- of$parts
    return("none" %in% parts$control$keep || !any(parts$chains$status == "ok"))
  }
  inherits(x, "draws_array") && shape_array(NULL)(x, of) && !anyNA(x) &&
    all(of$parts$variables %in% dimnames(unclass(x))[[3]])
}

shape_control <- fields(
  iter = shape_count,
  warmup = shape_count,
  thin = function(x, of) shape_count(x, of) && x >= 1,
  chains = function(x, of) shape_count(x, of) && x >= 1,
  cores = shape_count,
  seed = function(x, of) shape_number(x, of) && x == floor(x),
  keep = function(x, of) {
    shape_strings(x, of) && length(x) > 0
  },
  refresh = shape_number,
  record = maybe(function(x, of) {
    shape_numbers(x, of) && all(x %in% seq_len(of$n_every))
  })
)

shape_chains <- function(x, of) {
  is_table <- shape_columns(
    status = "text",
    draws = "number",
    acceptance = "number",
    passes = "number",
    step_size = "number",
    escaped = "number",
    outside = "number",
    nonfinite = "number"
  )
  is_table(x, of) && nrow(x) == of$n_chain &&
    all(x$status %in% names(status_table)) &&
    !anyNA(x$draws)
}

# A data frame whose columns have a value for each row.
is_frame <- function(x) {
  is.data.frame(x) && is.character(names(x)) &&
    all(vapply(unclass(x), NROW, 0L) == nrow(x))
}

is_number_or_none <- function(x) {
  is_plain_numeric(x) || is.logical(x) && all(is.na(x))
}

shape_columns <- function(...) {
  types <- c(...)
  function(x, of) {
    is_frame(x) && all(vapply(names(types), function(name) {
      switch(types[[name]],
        number = is_number_or_none(x[[name]]),
        text = is.character(x[[name]])
      )
    }, TRUE))
  }
}

shape_time <- function(x, of) {
  is_plain_numeric(x) && all(c("preparation", "sampling") %in% names(x))
}

shape_preparation <- function(x, of) {
  is_plain_numeric(x) && !anyNA(x) &&
    all(names(new_ledger()$passes) %in% names(x))
}

shape_noise <- function(x, of) {
  shape <- fields(
    looks = shape_count,
    variance = shape_numbers,
    beyond = shape_numbers
  )
  shape(x, of) && length(x$variance) == of$n_dim &&
    length(x$beyond) == of$n_dim
}

# Running moments of a chain.
shape_moments <- function(x, of) {
  k <- of$n_every
  numbers <- function(n) function(x, of) is.double(x) && length(x) == n
  shape <- fields(
    n = shape_count,
    mean = numbers(k),
    square = numbers(k),
    product = maybe(numbers(k^2))
  )
  shape(x, of)
}

# Sums over blocks of draws, of which the bias is estimated.
shape_blocks <- function(x, of) {
  is_matrix <- function(value) {
    is.double(value) && is.matrix(value) &&
      all(dim(value) == c(length(x$count), of$n_dim))
  }
  is_plain_list(x) && is.double(x$count) && is.double(x$mean) &&
    length(x$mean) == of$n_dim && is_matrix(x$gradient) && is_matrix(x$product)
}

shape_saved <- function(x, of) {
  is_plain_list(x) && length(x) == of$n_chain &&
    # of independent draws how many there were
    all(vapply(x, function(part) {
      is.null(part) || is.raw(part) || shape_count(part, of)
    }, TRUE))
}

shape_family <- function(x, of) {
  is_plain_list(x) && rlang::is_string(x$name) && rlang::is_string(x$link) &&
    is.null(tryCatch(response_facts(x), error = identity)$message) &&
    (is.null(x$object) || inherits(x$object, "family"))
}

shape_frame <- function(x, of) {
  terms <- attr(x, "terms")
  variables <- as.list(attr(terms, "variables"))[-1]
  is_frame(x) && nrow(x) > 0 && shape_terms(terms, of) &&
    all(vapply(variables, deparse1, "") %in% names(x)) &&
    all(vapply(unclass(x), is.atomic, TRUE)) &&
    same_classes(x, attr(terms, "dataClasses"))
}

# As model.frame() wrote them down.
same_classes <- function(frame, classes) {
  here <- vapply(frame[names(classes)], stats::.MFclass, "")
  is.character(classes) && all(here == classes)
}

shape_levels <- function(x, of) {
  is_plain_list(x) &&
    (length(x) == 0 || rlang::is_named(x)) &&
    all(vapply(x, shape_strings, TRUE, of))
}

shape_contrasts <- function(x, of) {
  is_plain_list(x) && rlang::is_named(x) &&
    all(vapply(x, function(one) {
      is.function(one) || rlang::is_string(one) || is.matrix(one)
    }, TRUE))
}

shape_list <- function(x, of) is_plain_list(x)

shape_pair <- function(x, of) shape_numbers(x, of) && length(x) == 2

shape_values <- function(x, of) is_number_or_none(x)

shape_value <- function(x, of) is_number_or_none(x) && length(x) == 1

# Coefficients of a regression, beside which there are auxiliary parameters.
shape_n_coef <- function(x, of) {
  n_aux <- length(response_aux(of$parts$family)) +
    length(of$parts$family$pieces$names) +
    length(of$parts$prior$mixture$names)
  shape_count(x, of) && x >= 1 && (of$n_every - x) %in% 0:n_aux
}

shape_bars <- fields(
  fixed = shape_formula,
  effects = shape_formula,
  group = shape_language,
  name = shape_string,
  correlated = shape_flag,
  frame = shape_formula
)

# Of several factors.
shape_crossed_bars <- fields(
  fixed = shape_formula,
  frame = shape_formula,
  terms = every(fields(
    effects = shape_formula,
    group = shape_language,
    name = shape_string,
    correlated = shape_flag
  ))
)

shape_factors <- function(x, of) {
  shape <- every(fields(
    name = shape_string,
    levels = shape_strings,
    effects = shape_strings,
    correlated = shape_flag,
    sizes = shape_numbers
  ))
  shape(x, of) && length(x) > 1 &&
    identical(names(x), unname(vapply(x, `[[`, "", "name")))
}

# What a formula asks of rows: of those that are passed over, or of a frame.
shape_request <- function(x, of) {
  family <- maybe(shape_family)
  shape <- switch(
    class(x)[[1]],
    tall_request = fields(response_name = shape_string),
    tall_request_glm = fields(family = family, sparse = maybe(shape_flag)),
    tall_request_dpar = fields(family = family, dpar = function(x, of) {
      inherits(x, "tall_dpar_parts") && is.list(x)
    }),
    tall_request_groups = fields(family = family, bars = shape_bars),
    tall_request_crossed = fields(family = family, bars = shape_crossed_bars),
    tall_request_classes = fields(is_ordered = shape_flag),
    tall_request_network = function(x, of) is.list(x)
  )
  inherits(x, "tall_request") && shape(unclass(x), of)
}

# The rows of a fit: what they have where they were kept.
shape_rows <- function(x, of) {
  inherits(x, "tall_rows") && is.list(x) && switch(
    sub("tall_rows_", "", class(x)[[1]]),
    frame = maybe(shape_request)(x$request, of) &&
      maybe(shape_frame)(x$frame, of),
    matrix = shape_family(x$family, of) && (is.null(x$x) ||
      length(dim(x$x)) == 2 && NROW(x$y) == nrow(x$x)),
    shape_request(x$request, of) && inherits(x$design, "tall_design") &&
      maybe(function(x, of) inherits(x, "tall_source"))(x$source, of)
  )
}
