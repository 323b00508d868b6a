# The frame that a condition names: that of the function the user called, which
# is the outermost public one that led here. From the frame that signals, the
# way is from caller to caller (not down the stack, so that what fails in
# sg_sample(model, kernel_sgld(-1)) is kernel_sgld()), through functions of ours
# and of R's own, and ends at anyone else's. Where nothing public led here, it
# is the nearest function that is no package's, or NULL.
error_frame <- function() {
  callers <- sys.parents()
  public <- public_functions()
  at <- callers[[sys.nframe()]]
  found <- nearest <- 0
  while (at > 0) {
    f <- sys.function(at)
    is_public <- is_ours(f) && is_one_of(f, public)
    if (is_public) {
      found <- at
    } else if (nearest == 0 && !is_of_package(f)) {
      nearest <- at
    }
    if (!is_passed_through(f)) {
      break
    }
    at <- next_caller(at, f, callers, is_public)
  }
  at <- if (found > 0) found else nearest
  if (at > 0) sys.frame(at)
}

# Exports and methods, also those that are registered when other packages load.
# A user who registers a method of a generic of ours may give the function.
public_functions <- function() {
  space <- topenv()
  methods <- Filter(is.character, getNamespaceInfo(space, "S3methods")[, 3])
  names <- c(getNamespaceExports(space), unlist(methods), late_methods)
  Filter(is.function, mget(names, space, ifnotfound = list(NULL)))
}

# Methods of generics of other packages whose names are not theirs.
late_methods <- c(mad = "mad_of_fit", sd = "sd_of_fit", var = "var_of_fit")

# Asked before is_one_of(), which takes a fourth of a millisecond.
is_ours <- function(f) {
  !is.primitive(f) && identical(topenv(environment(f)), topenv())
}

is_one_of <- function(f, public) {
  for (one in public) {
    if (identical(f, one)) {
      return(TRUE)
    }
  }
  FALSE
}

is_of_package <- function(f) {
  is.primitive(f) || isNamespace(environment(f))
}

is_passed_through <- function(f) {
  is.primitive(f) ||
    environmentName(topenv(environment(f))) %in% passed_through
}

passed_through <- c("tallbayes", "base", "methods", "rlang", "stats", "utils")

# The number of the caller's frame, 0 at the end. For a function inside of one
# of ours it is the one that it was made in, where that still runs: handlers of
# conditions are called by R. What compiled code calls has no caller: there it
# is what stands below on the stack.
next_caller <- function(at, f, callers, is_public) {
  is_inside <- !is_public && is_ours(f)
  if (is_inside) {
    for (k in rev(seq_len(at - 1))) {
      if (identical(sys.frame(k), environment(f))) {
        return(k)
      }
    }
  }
  caller <- callers[[at]]
  if (caller > 0 && caller < at) {
    return(caller)
  }
  if (is_inside) at - 1 else 0
}

# An error of ours that a worker sent, as one of the call that is made here.
told_here <- function(error) {
  if (inherits(error, "tall_error")) {
    error$call <- rlang::error_call(error_frame())
  }
  error
}
