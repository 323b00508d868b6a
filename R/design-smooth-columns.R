# Smooth terms that are settled, as C makes their columns.

# What was settled of a variable that is a smooth term, of predvars; NULL: it is
# none.
settled_smooth <- function(expression) {
  smooth <- if (is.call(expression)) as.list(expression)[["smooth"]]
  if (inherits(smooth, "tall_smooth")) smooth
}

# Does C make its columns?
is_in_table <- function(smooth) {
  !is.null(smooth) && (is.null(smooth$basis) || !is.null(smooth$basis$cubics))
}

# As C takes it: list(smooth, parts). parts: columns of its number, codes of
# levels, and multipliers. cubics: NULL, there is no number.
smooth_column <- function(cubics, columns, parts, sizes = integer()) {
  n_number <- if (is.null(cubics)) 0 else 1
  list(
    smooth = list(
      breaks = cubics$breaks,
      coefficients = cubics$coefficients,
      period = if (is.na(cubics$period %||% NA)) 0 else cubics$period,
      levels = as.integer(sizes),
      n_times = length(parts) - length(sizes) - n_number,
      basis = as.integer(columns$basis),
      level = as.integer(columns$level)
    ),
    parts = unname(parts)
  )
}

# The variables that a settled term reads, in the order of smooth_column(): each
# as compile_design() describes variables.
smooth_parts <- function(smooth) {
  numbers <- lapply(c(smooth$numbers, smooth$multiplier), function(name) {
    part_variable(name, "numbers", NULL, smooth$like[[name]])
  })
  levels <- Map(
    function(name, levels) part_variable(name, "levels", levels),
    names(smooth$levels),
    smooth$levels
  )
  is_basis <- seq_along(numbers) <= length(smooth$numbers)
  unname(c(numbers[is_basis], levels, numbers[!is_basis]))
}

# like: see design-smooth-numbers.R.
part_variable <- function(name, kind, levels, like = NULL) {
  expression <- str2lang(name)
  list(
    name = name,
    expression = expression,
    column = if (is.name(expression)) as.character(expression),
    kind = kind,
    size = 1L,
    levels = levels,
    is_logical = FALSE,
    like = like
  )
}
