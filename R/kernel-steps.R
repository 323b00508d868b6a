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

# Where few proposals are refused in many dimensions (Roberts & Rosenthal 1998,
# JRSS B 60:255): MALA's step is h = 1.65^2 d^(-1/3) variances, then adapted.
langevin_step <- 1.65^2

# With the steps that suit a posterior of such scales: `common`, the smallest
# posterior sd of a direction, or `each`, of the coordinates.
fill_steps <- function(kernel, n_dim, common = 1, each = common) {
  args <- kernel$args
  langevin <- langevin_step
  start <- switch(
    kernel$name,
    mala = list(step_size = langevin * n_dim^(-1 / 3) * common^2),
    hmc = list(step_size = n_dim^(-1 / 4) * common),
    barker = list(sigma = sqrt(langevin) * n_dim^(-1 / 6) * each),
    adam_mcmc = {
      sigma <- args$sigma %||% (sqrt(langevin) * n_dim^(-1 / 6) * common)
      list(sigma = sigma, learning_rate = sigma / 10)
    }
  )
  for (name in names(start)) {
    kernel$args[[name]] <- args[[name]] %||% start[[name]]
  }
  kernel
}
