# Models of the same posterior from rows of which no two are equal, each with a
# weight: a table of few factors, or of counts, has few of them, and all rows
# can be looked at in every step.

# At most this share of the rows: else merging saves too little.
merge_share <- 1 / 4

# The model; NULL where there would be more rows than that. It is for sums over
# all rows: its `n_data` is that of the rows it has.
merge_rows <- function(model) {
  most <- floor(merge_share * model$n_data)
  if (most < 1 || model_is_whitened(model)) {
    return(NULL)
  }
  plain <- model
  plain["lambda"] <- list(NULL)
  merged <- merged_model(plain, most)
  if (is.null(merged)) {
    return(NULL)
  }
  if (!is.null(model$lambda)) {
    merged$lambda <- model$lambda * merged$n_data / model$n_data
  }
  merged$traits <- model$traits
  merged$cache <- new.env(parent = emptyenv())
  merged
}

merged_model <- function(model, most) {
  UseMethod("merged_model")
}

#' @export
merged_model.default <- function(model, most) {
  pointer <- .Call(ffi_model_merge, model$pointer, as.double(most))
  if (is.integer(pointer)) {
    # nothing is lost without
    return(NULL)
  }
  model$pointer <- pointer
  model$n_data <- model_info(model)$n_data
  model
}

# Rows that are equal in what the user's functions look at. What they make of
# rows must not depend on the others of a batch: that is tried.
#' @export
merged_model.tall_model_custom <- function(model, most) {
  parts <- custom_parts(model)
  data <- parts$data
  used <- used_parts(model, parts)
  group <- equal_rows(data_parts(data$value)[used], data$n, most)
  if (is.null(group)) {
    return(NULL)
  }
  first <- which(!duplicated(group))
  parts$data <- list(
    value = keep_rows(data$value, data$n, first),
    n = length(first),
    weights = as.double(tabulate(group, length(first)))
  )
  merged <- rlang::inject(build_custom(!!!parts))
  if (is_same_density(model, merged)) merged
}

# Those of the data that a function of rows would miss.
used_parts <- function(model, parts) {
  data <- parts$data$value
  if (!is.list(data)) {
    return(1)
  }
  at <- list(init = parts$init)
  n_data <- parts$data$n
  batch <- take_rows(data, n_data, spread_rows(n_data, 20))
  functions <- model$functions[c("log_lik", "grad_log_lik")]
  uses <- lapply(Filter(is.function, functions), function(f) {
    value <- try_number(f(parts$init, batch))
    # of a function that fails nothing is known
    is.null(value) |
      vapply(seq_along(data), function(k) {
        uses_part(f, at, batch, k, value)
      }, NA)
  })
  which(Reduce(`|`, uses))
}

# Of each row the number of the first group of equal ones that it is in; NULL:
# there are more than `most`.
equal_rows <- function(parts, n_data, most) {
  group <- rep(1, n_data)
  for (part in parts) {
    m <- length(part) / n_data
    # the observation is the last dimension
    values <- as.vector(unclass(part))
    for (j in seq_len(m)) {
      value <- values[(seq_len(n_data) - 1) * m + j]
      code <- match(value, unique(value))
      group <- (group - 1) * max(code) + code
      group <- match(group, unique(group))
      if (max(group) > most) {
        return(NULL)
      }
    }
  }
  group
}

# Where the search for a mode starts, and beside it.
is_same_density <- function(model, merged) {
  start <- model$start
  points <- cbind(start, start + 0.1 * cos(seq_along(start)))
  all(vapply(1:2, function(k) {
    whole <- model_evaluate(model, points[, k], needs_finite = FALSE)
    ours <- model_evaluate(merged, points[, k], needs_finite = FALSE)
    isTRUE(all.equal(ours, whole, tolerance = 1e-8))
  }, NA))
}
