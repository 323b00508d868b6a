# Arguments of front ends as they were written: what `...` of a caller hands on
# stands in a matched call as `..1`, which means nothing elsewhere.

# Those that are evaluated in the data.
placed_arguments <- c("weights", "subset", "offset")

# A matched call as update() can evaluate it and users read it: with what was
# written for `..1`, and the front end under its own name. caller: where the
# front end was called.
written_call <- function(matched, front, caller) {
  for (k in seq_along(matched)[-1]) {
    if (is_handed_on(matched[[k]])) {
      matched[k] <- list(handed_on(matched[[k]], caller)$written)
    }
  }
  head <- matched[[1]]
  own <- if (is.call(head) && length(head) == 3) head[[3]] else head
  if (!identical(own, as.name(front))) {
    matched[[1]] <- as.name(front)
  }
  matched
}

# weights, subset and offset so that they mean in model.frame(), which looks
# into the data and to `home`, what they mean where they were written: columns
# stay names; variables that are elsewhere only become their values.
place_arguments <- function(matched, columns, home, caller) {
  for (name in intersect(placed_arguments, names(matched))) {
    written <- matched[[name]]
    given <- if (is_handed_on(written)) handed_on(written, caller)
    # f(weights = ): as if it were not there
    if (rlang::is_missing(written) || rlang::is_missing(given$expression)) {
      matched[[name]] <- NULL
      next
    }
    taken <- tryCatch(
      if (is.null(given)) {
        place_values(written, columns, home, caller)
      } else {
        place_values(given$expression, columns, given$env, home)
      },
      # an argument of the caller that does not exist
      error = function(e) {
        abort_input(
          "{.arg {name}} cannot be evaluated: {.code {deparse1(written)}}.",
          argument = name,
          parent = e
        )
      }
    )
    matched[name] <- list(taken)
  }
  matched
}

# Variables are looked for in `first` and `second`; what model.frame() finds by
# itself stays a name.
place_values <- function(expression, columns, first, second) {
  values <- list()
  for (name in setdiff(all.vars(expression), columns)) {
    here <- variable_at(name, first)
    there <- variable_at(name, second)
    values[[name]] <- if (!identical(here, there)) here %||% there
  }
  place_free(expression, values)
}

# An expression with values for the names of variables, but not where names are
# those of functions, of their arguments, or of parts of something.
place_free <- function(x, values) {
  if (is.name(x) && nzchar(as.character(x))) {
    name <- as.character(x)
    return(if (name %in% names(values)) values[[name]] else x)
  }
  if (!is.call(x) || length(values) == 0) {
    return(x)
  }
  head <- if (is.name(x[[1]])) as.character(x[[1]]) else ""
  if (head == "function") {
    x[[3]] <- place_free(x[[3]], values[setdiff(names(values), names(x[[2]]))])
    return(x)
  }
  own <- seq_along(x)
  if (nzchar(head)) {
    own <- own[-1]
  }
  if (head %in% c("$", "@")) {
    own <- 2
  }
  for (k in own) {
    if (!rlang::is_missing(x[[k]])) {
      x[[k]] <- place_free(x[[k]], values)
    }
  }
  x
}

# NULL: there is none, or but a function.
variable_at <- function(name, env) {
  value <- get0(name, env)
  if (!is.function(value)) value
}

is_handed_on <- function(x) {
  is.name(x) && grepl("^[.][.][0-9]+$", as.character(x))
}

# list(written, expression, env) of `..1` and so on, which the caller was given;
# of what has been evaluated already the expression is its value.
handed_on <- function(name, caller) {
  k <- as.integer(sub("..", "", name, fixed = TRUE))
  given <- rlang::eval_bare(quote(rlang::enquos(...)), caller)[[k]]
  written <- rlang::eval_bare(quote(substitute(list(...))), caller)
  list(
    written = written[[k + 1]],
    expression = rlang::quo_get_expr(given),
    env = rlang::quo_get_env(given)
  )
}

check_two_sided <- function(formula) {
  if (!inherits(formula, "formula")) {
    abort_expected(formula, "a formula", arg = "formula")
  }
  if (length(formula) != 3) {
    abort_no_response()
  }
}

abort_no_response <- function() {
  abort_input(
    "{.arg formula} must have a response on its left-hand side.",
    argument = "formula"
  )
}
