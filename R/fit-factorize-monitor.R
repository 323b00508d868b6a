# Ratings held out, looked at while chains run.

# NULL: no clipping
# range: of the ratings.
check_clip <- function(clip, range) {
  if (identical(clip, TRUE)) {
    return(range)
  }
  if (identical(clip, FALSE)) {
    return(NULL)
  }
  if (!is_plain_numeric(clip) || length(clip) != 2 || anyNA(clip) ||
    clip[[1]] >= clip[[2]]) {
    abort_expected(clip, "TRUE, FALSE or two increasing numbers", arg = "clip")
  }
  as.double(clip)
}

new_rating_monitor <- function(model, held_out, range, snapshots) {
  structure(
    list(
      name = "ratings",
      shape = model$shape,
      center = model$center,
      newdata = as.data.frame(held_out[c("user", "item")]),
      rating = held_out$rating,
      range = range,
      snapshots = snapshots
    ),
    class = c("tall_monitor_ratings", "tall_monitor")
  )
}

# The list for sample_model(); NULL: nothing to look at.
rating_monitors <- function(look, monitor, every) {
  is_one <- !is.list(monitor) || inherits(monitor, "tall_monitor")
  if (!is.null(monitor) && is_one) {
    abort_expected(
      monitor,
      "a list such as list(mine = function(theta) ...)",
      arg = "monitor"
    )
  }
  taken <- intersect(names(monitor), c("rmse", "every"))
  if (length(taken) > 0) {
    abort_input(
      c(
        "{.arg monitor} must not have an element {.field {taken[[1]]}} here.",
        i = if (taken[[1]] == "every") "Give {.arg every} on its own."
      ),
      argument = "monitor"
    )
  }
  has_look <- nrow(look$newdata) > 0 || look$snapshots > 0
  if (!has_look && length(monitor) == 0) {
    return(NULL)
  }
  c(list(every = every), if (has_look) list(rmse = look), monitor)
}

clip_to <- function(x, range) {
  if (is.null(range)) x else pmin(pmax(x, range[[1]]), range[[2]])
}

# Resolved by the front end already.
#' @export
check_held_out.tall_monitor_ratings <- function(monitor, model, arg) {
}

#' @export
evaluate_monitor.tall_monitor_ratings <- function(
  monitor,
  model,
  parameter,
  theta,
  state
) {
  mean <- monitor$center + drop(factor_means(
    monitor$shape,
    parameter,
    monitor$newdata$user,
    monitor$newdata$item
  ))
  clipped <- clip_to(mean, monitor$range)
  state <- list(
    plain = add_to_moments(state$plain, mean),
    clipped = add_to_moments(state$clipped, clipped),
    states = add_snapshot(state$states, parameter, monitor$snapshots)
  )
  rmse <- function(x) {
    if (!is.null(monitor$rating)) sqrt(mean((monitor$rating - x)^2))
  }
  list(draw = rmse(clipped), ergodic = rmse(state$clipped$mean), state = state)
}

# Running moments, Welford (1962): list(n, mean, square).
add_to_moments <- function(state, x) {
  if (is.null(state)) {
    return(list(n = 1, mean = x, square = numeric(length(x))))
  }
  n <- state$n + 1
  shift <- x - state$mean
  mean <- state$mean + shift / n
  list(n = n, mean = mean, square = state$square + shift * (x - mean))
}

# Every so manyth state, `most` of them: when there are more, every other is
# dropped and the distance doubled, so that they stay evenly spread however long
# the run becomes.
add_snapshot <- function(states, parameter, most) {
  if (most == 0) {
    return(NULL)
  }
  if (is.null(states)) {
    states <- list(seen = 0, every = 1, kept = list())
  }
  states$seen <- states$seen + 1
  if (states$seen %% states$every != 0) {
    return(states)
  }
  if (length(states$kept) == most) {
    states$kept <- states$kept[seq_along(states$kept) %% 2 == 0]
    states$every <- 2 * states$every
    if (states$seen %% states$every != 0) {
      return(states)
    }
  }
  states$kept[[length(states$kept) + 1]] <- parameter
  states
}

# rMSE of the mean rating; NULL without ratings held out
held_out_baseline <- function(held_out, center) {
  if (!is.null(held_out$rating)) sqrt(mean((held_out$rating - center)^2))
}
