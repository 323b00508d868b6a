# Schedules of the step size. One constructor for each member of
# src/schedules/registry.c.

#' Schedules of the step size
#'
#' @param a (positive number) The factor at the start, up to \eqn{b^{-\gamma}}.
#' @param b (positive number) The delay, in steps.
#' @param gamma (number in (0, 1\]) The rate of decay.
#' @param length (count) The steps in a cycle: `iter / length` cycles are made.
#' @param exploration (number in \[0, 1)) The share of each cycle, at its
#'   beginning, that looks for another mode.
#'
#' @details
#' `schedule_constant()` leaves the kernel's step size as it is.
#' `schedule_decay()` multiplies it by \eqn{a (b + t)^{-\gamma}}{a (b +
#' t)^(-gamma)} at step \eqn{t = 0, 1, \ldots} (Welling & Teh, 2011, section 3);
#' averages are then weighted by the step size, and the draws carry these
#' weights (see [posterior::weight_draws()]).
#'
#' `schedule_cyclical()` starts over with large steps in every cycle, to visit
#' several modes with one chain (Zhang et al., 2020, eq. 1): with \eqn{r} the
#' part of the cycle that has passed, \eqn{0 \le r < 1}{0 <= r < 1}, it
#' multiplies the step size by \eqn{(\cos(\pi r) + 1) / 2}{(cos(pi r) + 1) / 2}.
#' While \eqn{r} is below `exploration` no noise is injected (a kernel that has
#' no noise to leave out, as [kernel_sgbd()], takes its extreme variant)
#' and **nothing is kept**; every `thin`-th of the other steps is, all with the
#' same weight, as in the paper. Warmup counts as part of the cycles; `warmup =
#' 0` is usual.
#'
#' @return A spec of class `tall_schedule` for [sg_sample()].
#' @section Conditions:
#' `tall_error_input` if an argument is not as described.
#' @references
#' Welling & Teh (2011). Bayesian learning via stochastic gradient Langevin
#' dynamics. *ICML*.
#'
#' Zhang, Li, Zhang, Chen & Wilson (2020). Cyclical stochastic gradient MCMC for
#' Bayesian deep learning. *ICLR*.
#' @examples
#' schedule_constant()
#' schedule_decay(a = 10, b = 1000, gamma = 0.33)
#' schedule_cyclical(length = 500, exploration = 0.25)
#' @name schedules
NULL

#' @rdname schedules
#' @export
schedule_constant <- function() {
  new_spec("schedule", "constant")
}

#' @rdname schedules
#' @export
schedule_decay <- function(a = 1, b = 1, gamma = 0.33) {
  new_spec(
    "schedule",
    "decay",
    a = check_number(a, positive = TRUE),
    b = check_number(b, positive = TRUE),
    gamma = check_number(gamma, max = 1, positive = TRUE)
  )
}

#' @rdname schedules
#' @export
schedule_cyclical <- function(length, exploration = 0.5) {
  length <- check_count(length)
  exploration <- check_number(exploration, min = 0)
  if (round(exploration * length) >= length) {
    abort_input(
      c(
        "{.arg exploration} must leave at least one step of each cycle to sample
         from.",
        x = "It is {.val {exploration}} of {length} step{?s}."
      ),
      argument = "exploration",
      value = exploration
    )
  }
  new_spec(
    "schedule",
    "cyclical",
    length = length,
    exploration = exploration
  )
}

#' @export
compile_spec.tall_schedule_cyclical <- function(spec, context) {
  member(
    "cyclical",
    list(length = spec$args$length, n_explore = count_exploring(spec))
  )
}

# The first steps of each cycle, which look for a mode.
count_exploring <- function(schedule) {
  round(schedule$args$exploration * schedule$args$length)
}

# Of n steps after `from`, those whose draws count: all but the ones that
# explore, as the table in src/schedules/ says.
count_collected <- function(schedule, from, n) {
  .Call(
    ffi_schedule_collected,
    compile_spec(schedule, list()),
    as.double(from),
    as.double(n)
  )
}

# Something must be left to keep.
check_collected <- function(schedule, control) {
  made <- control$iter - control$warmup
  n <- count_collected(schedule, control$warmup, made)
  if (n >= control$thin) {
    return(invisible())
  }
  abort_input(
    c(
      "{.arg iter} must leave a draw to keep: of the
       {count_noun(made, 'iteration')} after warmup, {format_count(n)}
       {cli::qty(n)}{?is/are} outside the exploration of
       {.fn schedule_{schedule$name}}.",
      x = schedule_traits(schedule)$exploring,
      i = "Make {.arg iter} larger, or let the schedule explore less."
    ),
    argument = "iter",
    expected = control$thin,
    value = n
  )
}

# What runs ask of a schedule: is_weighted, are averages weighted by the step
# size? Where that changes they are, unless the schedule says otherwise;
# exploring, when it explores, where it can be said in a sentence.
schedule_traits <- function(schedule) {
  UseMethod("schedule_traits")
}

new_schedule_traits <- function(is_weighted = TRUE, exploring = NULL) {
  structure(
    list(is_weighted = is_weighted, exploring = exploring),
    class = "tall_schedule_traits"
  )
}

#' @export
schedule_traits.default <- function(schedule) {
  new_schedule_traits()
}

#' @export
schedule_traits.tall_schedule_constant <- function(schedule) {
  new_schedule_traits(is_weighted = FALSE)
}

#' @export
schedule_traits.tall_schedule_cyclical <- function(schedule) {
  new_schedule_traits(
    is_weighted = FALSE,
    exploring = paste0(
      "Each cycle of ",
      count_noun(schedule$args$length, "step"),
      " begins with ",
      format_count(count_exploring(schedule)),
      " that explore."
    )
  )
}

schedule_is_constant <- function(schedule) {
  inherits(schedule, "tall_schedule_constant")
}
