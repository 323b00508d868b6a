# Chains that wait for rows drawn ahead: another pass draws new ones, and the
# chains go on with a model that holds them.

# What a job hands to advance_run(): a function of the number of refills before
# and of the steps that are left, of all chains, which returns list(pointer,
# gradient), for the core. plan$refill, a function of the same, returns a list
# of `model`, the same posterior with other rows, and `gradient`, from
# gradient_ahead(); NULL: there are no more. NULL where the plan has none.
compiled_refill <- function(plan, control) {
  if (is.null(plan$refill)) {
    return(NULL)
  }
  function(number, left) {
    made <- plan$refill(number, left)
    if (is.null(made)) {
      return(NULL)
    }
    plan$model <- made$model
    plan$gradient <- made$gradient
    check_ahead(plan, control)
    list(
      pointer = made$model$pointer,
      gradient = compile_spec(plan$gradient, run_context(plan, control))
    )
  }
}

is_waiting <- function(report) {
  status_name(report$status) == "exhausted"
}

chains_with <- function(run, status) {
  found <- .Call(ffi_run_status, run)$status
  which(vapply(found, status_name, "") == status)
}

# Do the chains that wait get new rows now? They do when no chain can go on
# without them, or where all should stand at the same step.
is_refill_due <- function(run, outcome, is_stop) {
  outcome != 2L && (outcome == 1L || is_stop) &&
    length(chains_with(run, "exhausted")) > 0
}

# So many refills in a row after which no chain has moved: its next step needs
# more rows than its whole stretch.
most_idle_refills <- 3

# New rows for the chains that wait, until they stand where the others do.
# function(outcome, is_stop): what ffi_run_advance() says then. $reason(): why
# there are no more rows: NULL, "none", "stretch", or the error of a pass that
# failed, which costs no draws.
row_supply <- function(run, job) {
  number <- 0
  idle <- 0
  reason <- NULL
  once <- function() {
    progress <- .Call(ffi_run_progress, run)
    made <- tryCatch(
      job$refill(number, progress$total - progress$done),
      tall_error = identity
    )
    if (is.null(made) || inherits(made, "condition")) {
      reason <<- made %||% "none"
      return(NULL)
    }
    cores <- as.integer(job$cores)
    status <-
      .Call(ffi_run_refill, run, made$pointer, made$gradient, cores)
    abort_status(status)
    number <<- number + 1
    outcome <- .Call(ffi_run_advance, run, 0, cores)
    has_moved <- .Call(ffi_run_progress, run)$done > progress$done
    idle <<- if (has_moved) 0 else idle + 1
    if (!has_moved && idle >= most_idle_refills) {
      reason <<- "stretch"
    }
    outcome
  }
  list(
    reason = function() reason,
    fill = function(outcome, is_stop) {
      if (is.null(job$refill)) {
        return(outcome)
      }
      while (is.null(reason) && is_refill_due(run, outcome, is_stop)) {
        outcome <- once() %||% outcome
      }
      outcome
    }
  )
}

# The draws that were made are kept.
warn_waiting <- function(waiting) {
  if (is.null(waiting)) {
    return(invisible())
  }
  first <- waiting$chains[[1]]
  failed <- inherits(waiting$reason, "condition")
  warn_tall(
    "exhausted",
    c(
      if (identical(waiting$reason, "stretch")) {
        "Chain {first} stopped: its next step needs more rows than a pass over
         the data draws for it."
      } else if (failed) {
        "Chain {first} stopped: another pass over the data failed."
      } else {
        "Chain {first} stopped: it has used all rows that were drawn for it."
      },
      x = if (length(waiting$chains) > 1) {
        "{length(waiting$chains)} chains stopped; the first is shown."
      },
      i = "Go on with {.code sg_resume(fit)}."
    ),
    chain = first,
    parent = if (failed) waiting$reason
  )
}
