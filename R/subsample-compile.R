# Schemes as the core reads them, and what is asked of them.

#' @export
compile_spec.tall_subsample_uniform <- function(spec, context) {
  size <- drawn_rows(spec, context$n_data)
  if (!spec$args$replace && size > context$n_data) {
    abort_input(
      c(
        "{.arg size} must be at most the number of rows,
         {format_count(context$n_data)}, when drawing without replacement,
         not {format_count(size)}.",
        i = "Use {.fn gradient_full} for all rows, or {.code replace = TRUE}."
      ),
      argument = "size",
      expected = context$n_data,
      value = size
    )
  }
  member("uniform", list(size = size, replace = spec$args$replace))
}

#' @export
compile_spec.tall_subsample_weighted <- function(spec, context) {
  size <- drawn_rows(spec, context$n_data)
  weights <- spec$args$weights
  if (is.character(weights)) {
    weights <- context$weights(weights)
  } else {
    check_size(weights, context$n_data, arg = "weights")
  }
  params <- list(size = size, weights = weights)
  always <- always_rows(spec, weights, size)
  if (length(always) > 0) {
    params$weights[always] <- 0
    params$always <- as.double(always)
  }
  member("weighted", params)
}

# The rows of every minibatch, by number.
always_rows <- function(spec, weights, size) {
  always <- spec$args$always
  if (isTRUE(always)) {
    always <- certain_rows(weights, size)
    check_some_drawn(always, length(weights), size)
  } else if (!is.numeric(always)) {
    return(integer())
  }
  if (length(always) > 0 && max(always) > length(weights)) {
    abort_input(
      "{.arg always} must be at most the number of rows,
       {format_count(length(weights))}, not {format_count(max(always))}.",
      argument = "always",
      expected = length(weights),
      value = always
    )
  }
  check_some_drawn(always, length(weights), size)
  always
}

# Rows that n draws with these weights would hold more than once on average;
# without them, others may be.
certain_rows <- function(weights, n) {
  rest <- sum(weights)
  certain <- integer()
  repeat {
    more <- setdiff(which(n * weights > rest), certain)
    if (length(more) == 0) {
      return(sort(certain))
    }
    certain <- c(certain, more)
    rest <- if (length(certain) < length(weights)) sum(weights[-certain]) else 0
  }
}

check_some_drawn <- function(certain, n_data, size) {
  if (length(certain) < n_data) {
    return(invisible())
  }
  abort_input(
    c(
      "{.arg always} must leave some of the {format_count(n_data)} rows to be
       drawn, {format_count(size)} of them a minibatch.",
      i = "Use {.fn gradient_full} for all rows, or {.code always = FALSE}."
    ),
    argument = "always",
    value = size
  )
}

#' @export
compile_spec.tall_subsample_optimal <- function(spec, context) {
  member("optimal", list(size = drawn_rows(spec, context$n_data)))
}

# The rows of a minibatch. So many with replacement that all of them once would
# be no more are a slip of the hand, and one step of them would take minutes.
drawn_rows <- function(spec, n_data) {
  size <- batch_rows(spec$args$size, n_data)
  most <- max(batch_size_most, n_data)
  if (size > most) {
    abort_input(
      c(
        "{.arg size} must be at most {format_count(most)} for
         {count_noun(n_data, 'row')} of data, not {format_count(size)}.",
        x = "{format_bytes(8 * size)} of row numbers for each chain, and a
             noisier gradient than that of all rows.",
        i = "Use {.fn gradient_full} for all rows, or a smaller {.arg size}."
      ),
      argument = "size",
      expected = most,
      value = size
    )
  }
  size
}

# What every data set may have minibatches of.
batch_size_most <- 1e6

#' @export
compile_spec.tall_subsample_adaptive <- function(spec, context) {
  if (!inherits(context$gradient, "tall_gradient_cv")) {
    abort_tall(
      "unsupported",
      c(
        "{.fn subsample_adaptive} bounds the noise of {.fn gradient_cv} about
         its reference point, not that of
         {.code gradient_{context$gradient$name}()}.",
        i = "Use {.fn gradient_cv}, or {.fn subsample_weighted} with a fixed
             size."
      )
    )
  }
  rows <- adaptive_range(spec, context$n_data)
  probability <- selection_probabilities(spec, context)
  constants <- model_lipschitz(
    context$model,
    hint = "Use {.fn subsample_weighted} with a fixed size."
  )
  context$spend("weights", 1)
  member("adaptive", list(
    at = context$to_sampler(context$estimator_reference()),
    rate = likelihood_scale(context$model)^2 *
      lipschitz_sum(constants, probability) / spec$args$threshold,
    min_size = rows[[1]],
    max_size = rows[[2]],
    weights = probability
  ))
}

# The least and the most rows.
adaptive_range <- function(spec, n_data) {
  least <- batch_rows(spec$args$min_size, n_data)
  most <- if (is.null(spec$args$max_size)) {
    n_data
  } else {
    min(n_data, batch_rows(spec$args$max_size, n_data))
  }
  if (least > most) {
    abort_input(
      "{.arg min_size} must be at most {format_count(most)} rows, not
       {format_count(least)}.",
      argument = "min_size",
      expected = most,
      value = least
    )
  }
  c(least, most)
}

# What its table in src/subsampling/ says: see `enum tb_scheme_flag`.
subsample_info <- function(subsample) {
  .Call(ffi_subsample_info, subsample$name)
}

# What runs ask of a scheme: a method for each whose sizes are not simply its
# argument `size`.
subsample_traits <- function(spec) {
  UseMethod("subsample_traits")
}

# largest(n_data): the most rows a minibatch can have; warn(sizes, n_data): what
# the sizes of a segment's minibatches say; light: the scheme as fits keep it,
# without N numbers that can be found again.
new_subsample_traits <- function(
  spec,
  largest = NULL,
  warn = function(sizes, n_data) invisible(),
  light = spec
) {
  size <- spec$args$size
  of_size <- function(n_data) {
    if (is.null(size)) n_data else batch_rows(size, n_data)
  }
  structure(
    list(largest = largest %||% of_size, warn = warn, light = light),
    class = "tall_subsample_traits"
  )
}

#' @export
subsample_traits.default <- function(spec) {
  new_subsample_traits(spec)
}

#' @export
subsample_traits.tall_subsample_fixed <- function(spec) {
  new_subsample_traits(spec, function(n_data) length(spec$args$index))
}

# A recipe's weights are found again when they are needed; those of a user are
# kept, because nothing else has them.
#' @export
subsample_traits.tall_subsample_weighted <- function(spec) {
  light <- spec
  if (!is.null(attr(spec, "type"))) {
    light$args$weights <- attr(spec, "type")
  }
  new_subsample_traits(spec, light = light)
}

#' @export
subsample_traits.tall_subsample_adaptive <- function(spec) {
  new_subsample_traits(
    spec,
    largest = function(n_data) adaptive_range(spec, n_data)[[2]],
    warn = function(sizes, n_data) warn_largest(spec, sizes, n_data)
  )
}

# Adaptive minibatches that do not adapt.
warn_largest <- function(subsample, sizes, n_data) {
  sizes <- sizes[!is.na(sizes)]
  most <- adaptive_range(subsample, n_data)[[2]]
  share <- mean(sizes >= most)
  if (length(sizes) == 0 || share < 0.9) {
    return(invisible())
  }
  shown <- paste0(format(100 * share, digits = 3), "%")
  warn_tall(
    "size",
    c(
      "{shown} of the adaptive minibatches have the most rows they may,
       {format_count(most)}.",
      i = "Raise {.arg threshold}, now
           {format_number(subsample$args$threshold)}, or use
           {.fn gradient_full}."
    ),
    share = share
  )
}

# p_i of a scheme with weights, 0 for a row of every minibatch; NULL: uniform.
selection_probabilities <- function(spec, context) {
  weights <- spec$args$weights
  if (identical(weights, "uniform") || is.null(weights)) {
    return(NULL)
  }
  if (is.character(weights)) {
    weights <- context$weights(weights)
  } else {
    check_size(weights, context$n_data, arg = "weights")
  }
  if (inherits(spec, "tall_subsample_weighted")) {
    size <- batch_rows(spec$args$size, context$n_data)
    weights[always_rows(spec, weights, size)] <- 0
  }
  weights / sum(weights)
}

# sum_i L_i^2 / p_i
lipschitz_sum <- function(constants, probability) {
  if (is.null(probability)) {
    length(constants) * sum(constants^2)
  } else {
    sum(constants^2 / probability)
  }
}
