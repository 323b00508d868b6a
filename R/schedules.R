# Schedules of the step size. One constructor for each member of
# src/schedules/registry.c.

#' Schedules of the step size
#'
#' @param a (positive number) The factor at the start, up to \eqn{b^{-\gamma}}.
#' @param b (positive number) The delay, in steps.
#' @param gamma (number in (0, 1\]) The rate of decay.
#'
#' @details
#' `schedule_constant()` leaves the kernel's step size as it is.
#' `schedule_decay()` multiplies it by \eqn{a (b + t)^{-\gamma}}{a (b +
#' t)^(-gamma)} at step \eqn{t = 0, 1, \ldots} (Welling & Teh, 2011, section 3);
#' averages are then weighted by the step size, and the draws carry these
#' weights (see [posterior::weight_draws()]).
#'
#' @return A spec of class `tall_schedule` for [sg_sample()].
#' @section Conditions:
#' `tall_error_input` if an argument is not as described.
#' @references
#' Welling & Teh (2011). Bayesian learning via stochastic gradient Langevin
#' dynamics. *ICML*.
#' @examples
#' schedule_constant()
#' schedule_decay(a = 10, b = 1000, gamma = 0.33)
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

schedule_is_constant <- function(schedule) {
  inherits(schedule, "tall_schedule_constant")
}
