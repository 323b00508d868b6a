# Specs: inert descriptions of the members of a family (kernels, estimators,
# schemes, schedules). `name` is the member's name in the C registry, `args` the
# arguments as given. compile_spec() turns one into what the C core reads: a
# name and a list of double vectors.
new_spec <- function(family, name, ...) {
  structure(
    list(name = name, args = list(...)),
    class = spec_class(family, name)
  )
}

spec_class <- function(family, name) {
  c(
    paste0("tall_", family, "_", gsub("-", "_", name)),
    paste0("tall_", family),
    "tall_spec"
  )
}

# `context` has what only the run knows: see run_context().
compile_spec <- function(spec, context) {
  UseMethod("compile_spec")
}

#' @export
compile_spec.default <- function(spec, context) {
  member(spec$name, spec$args)
}

#' @export
compile_spec.NULL <- function(spec, context) {
  NULL
}

# Numbers as doubles; names of choices are resolved before.
member <- function(name, params) {
  list(name = name, params = lapply(params, function(value) {
    if (is.null(value)) NULL else as.double(value)
  }))
}

#' @export
print.tall_spec <- function(x, ...) {
  check_no_dots(...)
  family <- sub("^tall_", "", class(x)[[2]])
  cat("<tall_", family, "> ", x$name, "\n", sep = "")
  args <- Filter(function(value) !is.null(value), x$args)
  for (arg in names(args)) {
    cat("  ", arg, ": ", arg_text(args[[arg]]), "\n", sep = "")
  }
  invisible(x)
}

arg_text <- function(value) {
  if (inherits(value, "tall_mode")) {
    "a mode found before"
  } else if (inherits(value, "tall_spec")) {
    spec_text(value)
  } else if (is.numeric(value)) {
    values_text(value)
  } else {
    paste(format(value), collapse = ", ")
  }
}

# A spec that is an argument of another.
spec_text <- function(spec) {
  UseMethod("spec_text")
}

#' @export
spec_text.default <- function(spec) {
  spec$name
}

# The function that made a spec.
constructor <- function(spec) {
  get(
    constructor_name(spec),
    envir = asNamespace("tallbayes"),
    mode = "function"
  )
}

constructor_name <- function(spec) {
  family <- sub("^tall_", "", class(spec)[[2]])
  paste0(family, "_", gsub("-", "_", spec$name))
}
