# Schedules: a factor h_t / h of the step size, and averages weighted by it.
# test-conformance-schedule.R applies the laws to every entry; `factor` is the
# formula, `explores` which steps are not kept, steps counted from 0;
# `is_weighted`: do draws count by their step size?

conformance_schedules <- function() {
  list(
    constant = list(
      name = "constant",
      spec = schedule_constant(),
      factor = function(t) rep(1, length(t)),
      is_weighted = FALSE
    ),
    decay = list(
      name = "decay",
      spec = schedule_decay(a = 3, b = 20, gamma = 0.55),
      factor = function(t) 3 * (20 + t)^-0.55,
      is_weighted = TRUE
    ),
    harmonic = list(
      name = "decay",
      spec = schedule_decay(a = 5, b = 0.5, gamma = 1),
      factor = function(t) 5 / (0.5 + t),
      is_weighted = TRUE
    ),
    cyclical = list(
      name = "cyclical",
      spec = schedule_cyclical(length = 16, exploration = 0.25),
      factor = function(t) (cos(pi * (t %% 16) / 16) + 1) / 2,
      explores = function(t) t %% 16 < 4,
      is_weighted = FALSE
    )
  )
}
