# A sketch of the data of a fit: what pictures along a covariate need of it,
# when the rows themselves are gone or in another form.

# columns: vectors by name; rows: which of their elements count, NULL: all;
# factors: names of those whose values are levels, numbers, too; counts: how
# many rows each element stands for, NULL: 1.
#
# centre   of each column its mean, or its first level
# ends     its least and largest value, or its levels
# some     a data frame of n rows, evenly spaced, without missing values
new_sketch <- function(
  columns,
  rows = NULL,
  factors = character(),
  n = 1000,
  counts = NULL
) {
  n_row <- max(0L, lengths(columns))
  is_column <- vapply(columns, FUN.VALUE = TRUE, function(x) {
    is.atomic(x) && is.null(dim(x)) && length(x) == n_row
  })
  columns <- columns[is_column]
  if (!is.null(rows)) {
    columns <- lapply(columns, `[`, rows)
  }
  for (name in intersect(factors, names(columns))) {
    columns[[name]] <- as.factor(columns[[name]])
  }
  n_row <- max(0L, lengths(columns))
  at <- unique(even_rows(n_row, min(n, n_row), counts))
  some <- as.data.frame(lapply(columns, `[`, at), optional = TRUE)
  names(some) <- names(columns)
  list(
    centre = lapply(columns, centre_of, counts),
    ends = lapply(columns, ends_of),
    some = some[stats::complete.cases(some), , drop = FALSE]
  )
}

centre_of <- function(x, counts = NULL) {
  if (!is_measured(x)) {
    return(ends_of(x)[1])
  }
  if (is.null(counts) || is_time(x)) {
    return(mean(x, na.rm = TRUE))
  }
  stats::weighted.mean(x, counts, na.rm = TRUE)
}

ends_of <- function(x) {
  if (is_measured(x)) {
    range(x, na.rm = TRUE)
  } else if (is.factor(x)) {
    factor(levels(x), levels(x), ordered = is.ordered(x))
  } else {
    sort(unique(x))
  }
}

# That of a fit; the data of others than tall_gam() are looked for.
fit_sketch <- function(fit) {
  fit[["sketch"]] %||%
    new_sketch(
      as.list(original_data(fit, held_names(fit))),
      factors = names_as_levels(fit$terms)
    )
}

# Names that stand in terms as the levels of factor(x) or of (1 | x) alone.
names_as_levels <- function(terms) {
  terms <- stats::delete.response(terms)
  variables <- as.list(attr(terms, "variables"))[-1]
  predvars <- as.list(attr(terms, "predvars"))[-1]
  levels <- others <- character()
  for (k in seq_along(variables)) {
    smooth <- if (k <= length(predvars)) settled_smooth(predvars[[k]])
    of_levels <- lapply(names(smooth$levels), str2lang)
    if (is.null(smooth) && is_factor_of_name(variables[[k]])) {
      of_levels <- variables[k]
    } else if (is.null(smooth)) {
      others <- c(others, all.vars(variables[[k]]))
    }
    levels <- c(levels, unlist(lapply(of_levels, all.vars)))
    numbers <- c(smooth$numbers, smooth$multiplier)
    others <- c(others, all.vars(str2expression(as.character(numbers))))
  }
  setdiff(unique(levels), others)
}

# factor(x), ordered(x), ...
is_factor_of_name <- function(x) {
  is.call(x) && is.name(x[[1]]) && length(x) > 1 && is.name(x[[2]]) &&
    as.character(x[[1]]) %in% c("factor", "as.factor", "ordered", "as.ordered")
}

# Columns of the data that the right side of the formula has.
covariates_of <- function(fit, f = "conditional_effects") {
  check_has_formula(fit, f)
  terms <- if (is.null(fit$bars)) fit$terms else stats::terms(fit$bars$fixed)
  intersect(all.vars(stats::delete.response(terms)), fit$columns)
}

# Covariates, and what the offset is made of.
held_names <- function(fit) {
  offset <- intersect(all.vars(fit$offset_source), fit$columns)
  union(covariates_of(fit), offset)
}
