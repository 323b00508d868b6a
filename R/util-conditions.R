# Every condition this package raises, in one place. Nothing else in R/ names a
# condition class: errors go through abort_input(), abort_tall() and
# abort_status(), warnings through warn_tall() and warn_status().

#' Conditions raised by tallbayes
#'
#' Every error has the class `tall_error`, every warning `tall_warning`, and
#' below it one of the classes listed here, so that a program can catch exactly
#' what it can deal with:
#' `tryCatch(..., tall_error_improper = function(e) ...)`.
#'
#' @section Errors:
#' * `tall_error_input`: an argument is not what it must be. The condition has
#'   the fields `argument` (its name), `expected` and `value`.
#' * `tall_error_unsupported`: parts that are fine on their own cannot work
#'   together, or a model cannot do what is asked of it.
#' * `tall_error_improper`: the posterior has no finite mode or is not proper,
#'   as with separated classes under a flat prior.
#' * `tall_error_mode`: the log posterior of a model has no mode, or its Hessian
#'   is not negative definite where the search for one ended. The posterior may
#'   be proper all the same.
#' * `tall_error_data`: a data set or a [tall_store()] is not on this machine,
#'   or is not what it should be; of a store, the field `file` is its path.
#' * `tall_error_source`: rows do not come as they must, as from a stream that
#'   fails midway or changes its columns or types; the fields `block`, `row` and
#'   `column` say where, see [tall_source].
#' * `tall_error_stale`: a model lost its data, as after [readRDS()].
#' * `tall_error_corrupt`: something that the package made, such as a fit, a
#'   kernel or a model, is no longer what it was: it was altered by hand, or
#'   read from a damaged file. The condition has the field `component`, what was
#'   found to be wrong.
#' * `tall_error_worker`: a worker of the plan of the package \pkg{future}
#'   failed; the condition has the field `chain`, or `shard` where it passed
#'   over rows.
#' * `tall_error_nonfinite`, `tall_error_escaped`, `tall_error_callback`,
#'   `tall_error_memory`, `tall_error_argument`, `tall_error_singular`,
#'   `tall_error_bound`: the computation had to stop. The condition has the
#'   fields `status`, `chain`, `iteration`, `coordinate` and `value`, `NULL`
#'   where there is none.
#'
#' @section Warnings:
#' * `tall_warning_interrupted`: the run was interrupted and returns the draws
#'   made so far.
#' * `tall_warning_nonfinite`, `tall_warning_escaped` and so on, one for each
#'   way to stop: a chain stopped early and the draws until then are kept; the
#'   fields are those of the error.
#' * `tall_warning_exhausted`: chains have used all rows that passes over the
#'   data had drawn for them, and return the draws made so far.
#' * `tall_warning_clusters`: [robust_draws()] are made of few clusters, and
#'   cover less than they say.
#' * `tall_warning_gradient`: the gradients of a [model_custom()] come from
#'   central differences.
#' * `tall_warning_prior`: a Laplace prior is too narrow for a kernel that does
#'   not accept or reject, or a Student prior so narrow that draws may stay in
#'   its spike.
#' * `tall_warning_recipe`: the settings chosen without tuning may not suit
#'   this posterior.
#' * `tall_warning_mode`: the search for the mode did not converge.
#' * `tall_warning_size`: adaptive minibatches are nearly always as large as
#'   they may be.
#' * `tall_warning_monitor`: a monitor failed; the run went on.
#' * `tall_warning_ratings`: a factorisation has more factors than users and
#'   items, or predictions are asked for that the ratings say nothing of.
#' * `tall_warning_extrapolation`: smooth terms are asked for values outside of
#'   the range that they were made for.
#' * `tall_warning_response`: fits that are compared have different responses.
#' * `tall_warning_concurvity`: a smooth term and others have nearly the same
#'   columns, and are not known one by one; the fields `term` and `other` are
#'   their names.
#' * `tall_warning_smooth`: \pkg{mgcv} makes a smooth term in another way than
#'   it was asked for, such as with a larger `k`; the field `smooth` names it.
#' * `tall_warning_source`: a stream or another source could not be closed after
#'   its rows were read; the fit is kept.
#'
#' @section Messages:
#' * `tall_message_cores`: chains run one after another although `cores` or a
#'   plan of the package \pkg{future} asks for more, because a model's functions
#'   are R's or because R's BLAS is wrong in threads; or shards are passed over
#'   one after another because they cannot be sent to workers.
#'
#' @name tall_conditions
#' @keywords internal
NULL

# `message` is a cli message, read in the caller's frame; fields go into `...`.
abort_tall <- function(
  kind,
  message,
  ...,
  call = error_frame(),
  .envir = parent.frame()
) {
  kind <- match.arg(kind, error_kinds)
  cli::cli_abort(
    message,
    ...,
    class = c(paste0("tall_error_", kind), "tall_error"),
    call = call,
    .envir = .envir
  )
}

warn_tall <- function(
  kind,
  message,
  ...,
  call = error_frame(),
  .envir = parent.frame()
) {
  kind <- match.arg(kind, warning_kinds)
  cli::cli_warn(
    message,
    ...,
    class = c(paste0("tall_warning_", kind), "tall_warning"),
    call = call,
    .envir = .envir
  )
}

# For messages of their own wording; checkers use abort_expected().
abort_input <- function(
  message,
  ...,
  argument = NULL,
  expected = NULL,
  value = NULL,
  .envir = parent.frame()
) {
  abort_tall(
    "input",
    message,
    ...,
    argument = argument,
    expected = expected,
    value = value,
    .envir = .envir
  )
}

# "`arg` must be <expected>, not <what x is>." `expected` is plain text, `hint`
# and `seen` likewise.
abort_expected <- function(
  x,
  expected,
  hint = NULL,
  seen = describe(x),
  arg = caller_arg(x)
) {
  abort_input(
    c("{.arg {arg}} must be {expected}, not {seen}.", i = escape_cli(hint)),
    argument = arg,
    expected = expected,
    value = x
  )
}

# `component` (plain text, several: the first is told) of `what`, plain text,
# is not what the package makes. `because`: a line more.
abort_corrupt <- function(what, component, because = NULL, ...) {
  abort_tall(
    "corrupt",
    c(
      "{what} is damaged: its {.code {component[[1]]}} is not as it was made.",
      x = escape_cli(because),
      i = "It was altered by hand, or comes from a damaged file: make it again."
    ),
    component = component,
    ...
  )
}

# What C finds wrong in what a door is given: see ffi_fault_at().
abort_fault <- function(what, file, line) {
  abort_tall(
    "corrupt",
    c(
      "The C core was given something that it cannot read: {what}.",
      x = "An object that tallbayes made was altered by hand, or comes from a
           damaged file.",
      i = "If it was not, this is a fault in tallbayes; please report it
           ({file}:{line})."
    ),
    component = what,
    call = NULL
  )
}

# ---- what the C core reports ---------------------------------------------

# In the order of `enum tb_status` in src/base/status.h. `because` completes
# "Chain 2 stopped at iteration 1,204: ". Where it is known which coordinate
# became not finite, status_entry() says so instead.
status_table <- list(
  ok = NULL,
  nonfinite = list(
    because = "the model reported a value that is not finite.",
    hint = "Smaller steps may keep the chain from such points. With a model that
            returns NaN there, kernels that accept or reject go on."
  ),
  escaped = list(
    because = "its draws left the region that holds the posterior.",
    hint = "The step size is too large for the tails of this posterior: make
            it smaller, or use {.fn kernel_mala}, which cannot run away."
  ),
  callback = list(
    because = "a function of the model failed.",
    hint = NULL
  ),
  memory = list(
    because = "there is not enough memory.",
    hint = NULL
  ),
  unsupported = list(
    because = "what was given does not provide what is needed here.",
    hint = NULL
  ),
  argument = list(
    because = "the core was given a parameter that it cannot use.",
    hint = "This is a fault in tallbayes; please report it."
  ),
  singular = list(
    because = "a matrix is not positive definite.",
    hint = "Parameters of which the density knows only a combination do this:
            drop one of them, or give each a proper prior."
  ),
  interrupted = list(
    because = "it was interrupted.",
    hint = NULL
  ),
  bound = list(
    because = "a row changed its log likelihood by more than the bound that
               exact sampling from a few rows relies on.",
    hint = "This is a fault in tallbayes; please report it. {.fn kernel_mala}
            needs no bounds."
  ),
  exhausted = list(
    because = "it has used all rows that were drawn for it.",
    hint = NULL
  )
)

error_kinds <- c(
  "input",
  "improper",
  "mode",
  "data",
  "source",
  "stale",
  "corrupt",
  "worker",
  names(status_table)[-1]
)

warning_kinds <- c(
  "clusters",
  "gradient",
  "prior",
  "recipe",
  "mode",
  "nodes",
  "size",
  "monitor",
  "limits",
  "ratings",
  "source",
  "extrapolation",
  "response",
  "concurvity",
  "smooth",
  names(status_table)[-1]
)

# `status`: the code or its name. Returns the name.
status_name <- function(status) {
  if (is.character(status)) {
    return(match.arg(status, names(status_table)))
  }
  if (!status %in% (seq_along(status_table) - 1L)) {
    rlang::abort(paste("Unknown status", status), .internal = TRUE)
  }
  names(status_table)[[status + 1L]]
}

# Where numbers ended: the name of a coordinate and its value there; NULL where
# it is not known.
new_place <- function(coordinate = NULL, value = NULL) {
  stopifnot(is.null(coordinate) || rlang::is_string(coordinate))
  structure(list(coordinate = coordinate, value = value), class = "tall_place")
}

# list(because, hint), with the former as plain text.
status_entry <- function(status, at = new_place(), parent = NULL) {
  if (status != "nonfinite" || is.null(at$coordinate)) {
    return(status_table[[status]])
  }
  shown <- if (is.null(at$value)) "non-finite" else format_number(at$value)
  list(
    because = paste0(
      # with a cause, it is the gradient that is not finite
      if (!is.null(parent)) "the gradient in ",
      "`", at$coordinate, "` became ", shown, "."
    ),
    hint = "The step size is too large for this posterior: make it smaller,
            or use {.fn kernel_mala}, which cannot run away."
  )
}

# An interrupt that the core has heard goes on.
pass_interrupt <- function(status) {
  if (status_name(status) == "interrupted") {
    rlang::interrupt()
  }
}

# Do nothing when all is well, else say what happened and where. `at` is a
# place, `detail` one more line of plain text, `hint` what to do, in place of
# the status' own.
abort_status <- function(status, ...) {
  signal_status(abort_tall, status, ...)
}

# The same for a chain that stopped while its draws are kept.
warn_status <- function(status, ...) {
  signal_status(warn_tall, status, ...)
}

signal_status <- function(
  signal,
  status,
  chain = NULL,
  iteration = NULL,
  at = new_place(),
  detail = NULL,
  parent = NULL,
  hint = NULL
) {
  status <- status_name(status)
  if (status == "ok") {
    return(invisible())
  }
  entry <- status_entry(status, at, parent)
  because <- entry$because
  who <- if (is.null(chain)) {
    "The computation stopped"
  } else {
    paste("Chain", chain, "stopped")
  }
  when <- if (!is.null(iteration)) {
    paste(" at iteration", format_count(iteration))
  }
  of_chain <-
    status != "nonfinite" || !is.null(chain) || !is.null(at$coordinate)
  if (is.null(hint) && of_chain && is.null(parent)) {
    hint <- entry$hint # not where the cause is shown
  }
  signal(
    status,
    c(
      "{who}{when}: {because}",
      x = escape_cli(detail),
      i = hint
    ),
    status = status,
    chain = chain,
    iteration = iteration,
    coordinate = at$coordinate,
    value = at$value,
    parent = parent
  )
}

# ---- wording ---------------------------------------------------------------

# What `x` is, to stand after "not": `the string "a"`, `the number -1`,
# `a numeric vector of 3 values`, `a <tall_mode>`.
describe <- function(x) {
  if (is.null(x)) {
    return("NULL")
  }
  if (is.function(x)) {
    return("a function")
  }
  if (is.data.frame(x)) {
    return(paste("a data frame with", count_noun(nrow(x), "row")))
  }
  if (is.factor(x)) {
    return(paste("a factor with", count_noun(nlevels(x), "level")))
  }
  if (is.object(x)) {
    return(paste0("a <", class(x)[[1]], ">"))
  }
  if (is.list(x)) {
    return(paste("a list of", count_noun(length(x), "element")))
  }
  if (!is.atomic(x)) {
    return(paste0("a <", typeof(x), ">"))
  }
  type <- switch(
    typeof(x),
    double = ,
    integer = "numeric",
    typeof(x)
  )
  if (is.matrix(x)) {
    return(sprintf(
      "a %s matrix of %s and %s",
      type,
      count_noun(nrow(x), "row"),
      count_noun(ncol(x), "column")
    ))
  }
  if (length(x) != 1) {
    article <- if (type == "integer") "an" else "a"
    return(paste(article, type, "vector of", count_noun(length(x), "value")))
  }
  describe_scalar(x)
}

describe_scalar <- function(x) {
  if (is.character(x) && !is.na(x)) {
    shown <- if (nchar(x) > 40) paste0(substr(x, 1, 37), "...") else x
    return(paste0("the string \"", shown, "\""))
  }
  if (is.numeric(x) && is.finite(x)) {
    return(paste("the number", format_exactly(x)))
  }
  format(unname(x))
}

# 1,204; numbers that no one counts to as they are written in R
format_count <- function(n) {
  ifelse(
    is.finite(n) & abs(n) > 1e16,
    format_number(n),
    format(n, big.mark = ",", scientific = FALSE, trim = TRUE)
  )
}

format_number <- function(x) {
  format(unname(x), digits = 7, trim = TRUE)
}

# The same where the digits that are left out may be what is wrong: 2.000000001
# must not be told as 2.
format_exactly <- function(x) {
  shown <- format_number(x)
  is_round <- is.numeric(x) && is.finite(x) &&
    signif(x, 4) == as.double(shown) && as.double(shown) != x
  if (!isTRUE(is_round)) {
    return(shown)
  }
  longer <- format(unname(x), digits = 15, trim = TRUE)
  if (as.double(longer) == x) longer else sprintf("%.17g", x)
}

# "1 row", "1,000 rows"
count_noun <- function(n, noun, plural = paste0(noun, "s")) {
  paste(format_count(n), if (n == 1) noun else plural)
}

# Plain text that cli must not read as markup; NULL stays NULL.
escape_cli <- function(x) {
  if (is.null(x)) {
    return(NULL)
  }
  gsub("}", "}}", gsub("{", "{{", x, fixed = TRUE), fixed = TRUE)
}
