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
  start <- usual_steps(kernel, n_dim, common, each)
  for (name in names(start)) {
    kernel$args[[name]] <- kernel$args[[name]] %||% start[[name]]
  }
  kernel
}

# Where few proposals are refused in many dimensions (Roberts & Rosenthal 1998,
# JRSS B 60:255): MALA's step is h = 1.65^2 d^(-1/3) variances, then adapted.
langevin_step <- 1.65^2

# All steps of a kernel whose steps may be left out, by their arguments.
usual_steps <- function(kernel, n_dim, common, each) {
  UseMethod("usual_steps")
}

#' @export
usual_steps.tall_kernel_mala <- function(kernel, n_dim, common, each) {
  list(step_size = langevin_step * n_dim^(-1 / 3) * common^2)
}

#' @export
usual_steps.tall_kernel_hmc <- function(kernel, n_dim, common, each) {
  list(step_size = n_dim^(-1 / 4) * common)
}

#' @export
usual_steps.tall_kernel_barker <- function(kernel, n_dim, common, each) {
  list(sigma = sqrt(langevin_step) * n_dim^(-1 / 6) * each)
}

#' @export
usual_steps.tall_kernel_adam_mcmc <- function(kernel, n_dim, common, each) {
  sigma <- kernel$args$sigma %||%
    (sqrt(langevin_step) * n_dim^(-1 / 6) * common)
  list(sigma = sigma, learning_rate = sigma / 10)
}
