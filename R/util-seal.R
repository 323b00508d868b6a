# Seals: fits and specs that are what this package made. What was altered since,
# by hand or in a file, must not reach the C core, and is told as what it is.

# ---- fits --------------------------------------------------------------------

# A fit carries a fingerprint of each of its components. sg_resume(), whose C
# code goes on from what it finds, refuses a fit in which one of those that it
# reads was altered. Functions that only look at a fit take what they get, as
# long as they can make something of it (see guard() in fit-guard.R).
seal_fit <- function(fit) {
  fit$seal <- NULL
  names <- c("class", setdiff(names(fit), unsealed))
  fit$seal <- vapply(names, component_hash, "", fit = fit)
  fit
}

# What may change without harm, or is not the fit's own. Of the same seed the
# same fits, seals included, are made: that leaves out the time they took (but
# not where the slice of a chain began that waits to be mended).
unsealed <- c("seal", "model", "call", "time", "cpu")

component_hash <- function(name, fit) {
  component <- if (name == "class") class(fit) else unclass(fit)[[name]]
  if (name == "control" && is.list(component)) {
    # where a run goes on, not how
    component <- component[setdiff(names(component), c("cores", "refresh"))]
  }
  if (name == "engine") {
    component <- unclass(component)
    component <- component[setdiff(names(component), unsealed)]
  }
  if (name == "halted" && is.list(component) && is.list(component$fit)) {
    component$fit <- unclass(component$fit)
    component$fit[c("time", "cpu")] <- NULL
  }
  .Call(ffi_hash, component)
}

# Names of the components, among `names` (NULL: all), that were altered.
altered_components <- function(fit, names = NULL) {
  seal <- fit$seal
  if (is.null(seal)) {
    return(character())
  }
  if (!is.character(seal) || is.null(names(seal))) {
    return("seal")
  }
  names <- if (is.null(names)) names(seal) else names
  is_whole <- vapply(names, FUN.VALUE = TRUE, function(name) {
    # those that are not in the seal were NULL
    known <- if (name %in% names(seal)) seal[[name]]
    if (is.null(known)) {
      !name %in% names(fit)
    } else {
      identical(component_hash(name, fit), known)
    }
  })
  time <- unclass(fit)[["time"]]
  has_time <- is.numeric(time) &&
    all(c("preparation", "sampling") %in% names(time))
  c(names[!is_whole], if (!has_time) "time")
}

# What sg_resume() goes on from.
resumed_components <- c(
  "bias_blocks",
  "chains",
  "control",
  "coordinates",
  "escape",
  "every_variable",
  "fingerprint",
  "gradient",
  "halted",
  "has_map",
  "is_whitened",
  "kernel",
  "lambda",
  "mode",
  "moments",
  "monitor",
  "monitor_state",
  "n_data",
  "n_differ",
  "noise",
  "preparation",
  "progress",
  "quadrature",
  "recipe",
  "saved",
  "schedule",
  "start_chol",
  "steps",
  "subsample",
  "variable_of",
  "variables",
  "whitening"
)

check_sealed <- function(fit, arg = "fit") {
  if (!is.list(fit) || is.null(fit$seal)) {
    abort_tall(
      "corrupt",
      c(
        "{.arg {arg}} cannot go on: it was made by another version of
         tallbayes, or lost its seal.",
        i = "Its draws are as good as they were. Run again for more."
      ),
      component = "seal"
    )
  }
  altered <- altered_components(fit, resumed_components)
  if (length(altered) > 0) {
    abort_corrupt(paste0("`", arg, "`"), altered)
  }
}

# ---- specs, priors and modes -------------------------------------------------

# Is what a constructor made still whole? Methods abort where it is not.
check_whole <- function(x, arg) {
  UseMethod("check_whole")
}

#' @export
check_whole.default <- function(x, arg) {
}

# A spec is what its constructor makes of its arguments: it is made again, so
# that whatever the constructor refuses is refused.
#' @export
check_whole.tall_spec <- function(x, arg) {
  parts <- unclass(x)
  families <- c("kernel", "gradient", "subsample", "schedule")
  at <- inherits(x, paste0("tall_", families), which = TRUE)
  family <- families[at > 0]
  if (!is.list(parts) || !identical(names(parts), c("name", "args"))) {
    abort_corrupt(paste0("`", arg, "`"), "list")
  }
  name <- parts$name
  is_named <- rlang::is_string(name) &&
    length(family) == 1 &&
    all(spec_class(family, name) %in% class(x)) &&
    identical(class(x)[[1]], spec_class(family, name)[[1]])
  if (!is_named) {
    abort_corrupt(paste0("`", arg, "`"), "name")
  }
  has_args <- is.list(parts$args) &&
    (length(parts$args) == 0 || rlang::is_named(parts$args))
  if (!has_args) {
    abort_corrupt(paste0("`", arg, "`"), "args")
  }
  make <- constructor_of(family, name)
  if (!is.null(make)) {
    given <- names(compact(parts$args))
    again <- make_again(make, parts$args[given], arg)
    kept <- names(compact(again$args))
    other <- c(setdiff(given, kept), setdiff(kept, given))
    if (length(other) > 0) {
      abort_corrupt(paste0("`", arg, "`"), other)
    }
  }
}

constructor_of <- function(family, name) {
  get0(
    paste0(family, "_", gsub("-", "_", name)),
    envir = topenv(),
    mode = "function",
    inherits = FALSE
  )
}

make_again <- function(make, args, arg) {
  tryCatch(do.call(make, args), error = function(e) {
    what <- if (inherits(e, "tall_error")) e$argument
    abort_corrupt(paste0("`", arg, "`"), what %||% "args", parent = e)
  })
}

compact <- function(x) {
  Filter(function(value) !is.null(value), x)
}

# A spec made by one of the constructors of a family:
# check_spec(kernel, "tall_kernel", "kernel_*()").
check_spec <- function(
  x,
  class,
  constructor,
  allow_null = FALSE,
  arg = caller_arg(x)
) {
  check_given(x, arg = arg)
  if (allow_null && is.null(x)) {
    return(invisible(NULL))
  }
  if (!inherits(x, class)) {
    hint <- if (is.function(x)) {
      "Call the function: what it returns is wanted here."
    }
    expected <- paste0("made by `", constructor, "`", or_null(allow_null))
    abort_expected(x, expected, hint, arg = arg)
  }
  check_whole(x, arg)
  invisible(x)
}

# What is used of a mode, as find_mode() returns it.
check_mode <- function(mode, arg = caller_arg(mode)) {
  parts <- unclass(mode)
  n <- if (is.list(parts)) length(parts$estimate)
  is_square <- function(x) {
    is.null(x) ||
      (is.double(x) && identical(dim(x), c(n, n)) && all_finite(x))
  }
  is_whole <- list(
    estimate = isTRUE(n > 0) && is.double(parts$estimate) &&
      all_finite(parts$estimate),
    chol = is_square(parts$chol),
    hessian = is_square(parts$hessian),
    scale = is.null(parts$scale) ||
      (is.double(parts$scale) && length(parts$scale) == n &&
        all(is.finite(parts$scale) & parts$scale > 0)),
    passes = is_number(parts$passes) && isTRUE(parts$passes >= 0),
    method = rlang::is_string(parts$method)
  )
  bad <- names(is_whole)[!unlist(is_whole)]
  if (length(bad) > 0) {
    abort_corrupt(paste0("`", arg, "`"), bad)
  }
  invisible(mode)
}
