# Front ends that need all rows of a source: these are read block by block,
# where what a row is in the model depends on that row alone, and those that are
# alike are kept once. What looks at all rows after the fit makes them again.

# tall_rows_frame, of the columns that the call needs; NULL where it is no
# source, or rows depend on others. instead: as of collect_source(); tell(frame,
# n): says how many rows are in memory.
frame_of_source <- function(front, instead, tell) {
  asked <- front$asked
  if (is.data.frame(asked$data) || !is_source_like(asked$data)) {
    return(NULL)
  }
  source <- data_source(asked$data)
  columns <- columns_by_row(asked, front$takes, source_names(source))
  found <- if (length(columns) > 0) collect_kinds(source, columns, instead)
  if (is.null(found)) {
    return(NULL)
  }
  tell(found$data, length(found$index %||% found$data[[1]]))
  of <- function(data) {
    front$asked <- ask_of(asked, data)
    front_frame(front)
  }
  if (is.null(found$index)) {
    return(of(found$data))
  }
  rows <- tryCatch(of(found$data), tall_error = function(cnd) NULL)
  if (!is.null(rows)) {
    rows <- rows_by_kind(rows, found$index, rows$missing)
  }
  rows %||% of(frame_rows(found$data, found$index))
}

# Rows of a frame of kinds, with the kind of each row as `index`, and `row`,
# their numbers in the data, where some were left out. missing: kinds that lack
# a value. NULL: `subset` says of some not whether they are in it.
rows_by_kind <- function(rows, index, missing) {
  left_out <- attr(rows$frame, "na.action")
  out <- suppressWarnings(as.integer(names(left_out)))
  if (anyNA(out)) {
    return(NULL)
  }
  kept <- as.integer(attr(rows$frame, "row.names"))
  at <- match(index, kept)
  is_kept <- !is.na(at)
  if (!is.null(left_out)) {
    is_out <- index %in% out
    # numbered among those of the subset
    number <- cumsum(is_kept | is_out)[is_out]
    names(number) <- which(is_out)
    left_out <- structure(number, class = class(left_out))
    rows$n_missing <- sum(index %in% as.integer(missing))
  }
  attr(rows$frame, "na.action") <- left_out
  rows["na_action"] <- list(left_out)
  rows$index <- at[is_kept]
  rows$row <- if (!all(is_kept)) which(is_kept)
  rows
}

# ---- what depends on a row alone ---------------------------------------------

# Columns that the call needs; NULL where a row may depend on others, or on what
# is no column. takes: arguments that make a frame, beside the formula.
columns_by_row <- function(asked, takes, names) {
  formula <- asked$formula
  known <- stats::setNames(rep(list(numeric()), length(names)), names)
  terms <- tryCatch(
    stats::terms(formula, data = frame_of(known, 0)),
    error = function(e) NULL
  )
  expressions <- c(
    as.list(attr(terms, "variables"))[-1],
    as.list(asked$matched)[intersect(names(asked$matched), c(takes, "subset"))]
  )
  home <- environment(formula)
  is_known <- !is.null(terms) && is_usual_action(asked$na.action) &&
    all(vapply(expressions, is_by_row, TRUE, names, home))
  if (is_known) intersect(names, unlist(lapply(expressions, all.vars)))
}

is_usual_action <- function(na.action) {
  usual <- list(stats::na.omit, stats::na.exclude, stats::na.fail)
  any(vapply(c(usual, "na.omit", "na.exclude", "na.fail"), identical, TRUE,
    na.action))
}

# Functions of base and stats that give a row the same whatever the others are.
row_functions <- c(
  "(", "+", "-", "*", "/", "^", "%%", "%/%", "==", "!=", "<", "<=", ">", ">=",
  "&", "|", "!", "%in%", "I", "factor", "ordered", "as.factor", "as.character",
  "as.integer", "as.numeric", "log", "log1p", "log2", "log10", "exp", "sqrt",
  "abs", "round", "floor", "ceiling", "offset", "is.na", "ifelse"
)

is_by_row <- function(expression, names, home) {
  if (is.symbol(expression)) {
    return(as.character(expression) %in% names)
  }
  if (!is.call(expression)) {
    return(is.null(expression) || is.atomic(expression) &&
      length(expression) == 1)
  }
  is_constant <- length(all.vars(expression)) == 0
  name <- if (is.symbol(expression[[1]])) as.character(expression[[1]]) else ""
  is_known <- name %in% c(row_functions, if (is_constant) c("c", ":"))
  is_known && is_own_function(name, home) &&
    all(vapply(as.list(expression)[-1], is_by_row, TRUE, names, home))
}

# Is it the function of R's, and not one of that name of the user's?
is_own_function <- function(name, home) {
  found <- get0(name, home, mode = "function")
  identical(found, get0(name, asNamespace("stats"), mode = "function"))
}
