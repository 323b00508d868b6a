# The time that a call takes, from where it begins to its return: what passed,
# and what processors did for it meanwhile.

# Where the clock stands: list(elapsed, cpu), seconds. Of this process and of
# those that it started and that have ended, not of workers or databases.
clock <- function() {
  now <- proc.time()
  own <- c("user.self", "sys.self", "user.child", "sys.child")
  list(
    elapsed = now[["elapsed"]],
    cpu = sum(now[own], na.rm = TRUE)
  )
}

clock_since <- function(began) {
  Map(`-`, clock(), began)
}

# A fit as its call returns it: all but its preparation was sampling.
end_clock <- function(fit, began) {
  force(fit) # the call is a promise
  took <- clock_since(began)
  fit$time[["sampling"]] <- took$elapsed - fit$time[["preparation"]]
  fit$cpu <- took$cpu
  fit
}

# The same where a fit goes on. NULL: an earlier version did not tell.
add_clock <- function(fit, began) {
  force(fit)
  took <- clock_since(began)
  fit$time[["sampling"]] <- fit$time[["sampling"]] + took$elapsed
  if (!is.null(fit$cpu)) {
    fit$cpu <- fit$cpu + took$cpu
  }
  fit
}
