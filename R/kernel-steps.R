# Steps that a kernel was not given: which, and what suits a posterior.

# Those that a kernel has as arguments, but not as numbers.
lacking_steps <- function(kernel) {
  steps <- c("step_size", "sigma", "learning_rate")
  Filter(
    function(name) is.null(kernel$args[[name]]),
    intersect(steps, names(kernel$args))
  )
}

lacks_step <- function(kernel) {
  inherits(kernel, "tall_metropolis") && length(lacking_steps(kernel)) > 0
}

# With the steps that suit a posterior of such scales: `common`, the smallest
# posterior sd of a direction, or `each`, of the coordinates.
fill_steps <- function(kernel, n_dim, common = 1, each = common) {
  start <- kernel_traits(kernel)$usual_steps(n_dim, common, each)
  for (name in names(start)) {
    kernel$args[[name]] <- kernel$args[[name]] %||% start[[name]]
  }
  kernel
}
