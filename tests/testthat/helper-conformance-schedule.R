# Schedules: a factor h_t / h of the step size, and averages weighted by it.
# test-conformance-schedule.R applies the laws to every entry; `factor` is the
# formula, steps counted from 0.

conformance_schedules <- function() {
  list(
    constant = list(
      name = "constant",
      spec = schedule_constant(),
      factor = function(t) rep(1, length(t))
    ),
    decay = list(
      name = "decay",
      spec = schedule_decay(a = 3, b = 20, gamma = 0.55),
      factor = function(t) 3 * (20 + t)^-0.55
    ),
    harmonic = list(
      name = "decay",
      spec = schedule_decay(a = 5, b = 0.5, gamma = 1),
      factor = function(t) 5 / (0.5 + t)
    )
  )
}
