# Functions of fits: what fails in one because the fit is not what it was, or
# not what a fit is, says so. Everything else that fails is a fault of ours.

# Function f, whose first argument is a fit.
guard <- function(f) {
  fit <- as.name(names(formals(f))[[1]])
  body(f) <- bquote(
    reading(if (missing(.(fit))) NULL else .(fit), .(body(f)))
  )
  f
}

reading <- function(fit, code) {
  force(fit) # the function may assign to it
  withCallingHandlers(code, error = function(e) {
    wrong <- if (!inherits(e, "tall_error")) wrong_parts(fit)
    if (length(wrong) > 0) {
      abort_corrupt("The fit", wrong, parent = e)
    }
  })
}

# Names of the components, of a fit or of the one that is in a summary, that
# were altered, or are none of a fit.
wrong_parts <- function(x) {
  if (inherits(x, "tall_fit")) {
    if (!is.list(x)) {
      return("type")
    }
    altered <- altered_components(x)
    return(if (length(altered) > 0) altered else misshapen_parts(x))
  }
  fit <- if (is.list(x)) unclass(x)[["fit"]]
  if (is.list(fit)) {
    # it has not all of them
    own <- names(unclass(fit))
    fit <- structure(unclass(fit), class = class(fit))
    altered <- altered_components(unclass(fit), intersect(names(fit$seal), own))
    c(altered, intersect(misshapen_parts(fit), own))
  }
}

# Names of the functions of `space` to guard: the methods for fits that
# NAMESPACE registers, what prints their summaries, and `others`.
guarded_functions <- function(space, others) {
  methods <- registered_methods(space)
  classes <- c("tall_fit", "tall_regression", names(class_shapes))
  of_fit <- methods$class %in% classes
  of_summary <- methods$generic == "print" & grepl("summary", methods$class)
  found <- unique(c(methods$name[of_fit | of_summary], others))
  Filter(function(name) length(formals(space[[name]])) > 0, found)
}

# list(generic, class, name) of every S3 method in NAMESPACE. Generics of other
# packages stand there as package::generic, methods may have names of their own.
registered_methods <- function(space) {
  path <- getNamespaceInfo(space, "path")
  methods <- parseNamespaceFile(basename(path), dirname(path))$S3methods
  generic <- sub("^.*::", "", methods[, 1])
  class <- methods[, 2]
  name <- methods[, 3]
  is_plain <- is.na(name) | name == "" | grepl("::", name, fixed = TRUE)
  name[is_plain] <- paste0(generic, ".", class)[is_plain]
  list(generic = generic, class = class, name = name)
}
