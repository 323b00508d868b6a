# Independent draws of a posterior that can be drawn from: what stands in a fit
# where others have the kernel that moved its chains. The recipe takes it; it is
# no kernel that a user gives.

kernel_of_draws <- function() {
  new_spec("kernel", "independent")
}

kernel_is_independent <- function(kernel) {
  inherits(kernel, "tall_kernel_independent")
}

# As kernel_info() has them: nothing moves.
independent_info <- list(
  is_metropolis = FALSE,
  uses_variance = FALSE,
  takes_schedule = FALSE,
  uses_loss = FALSE,
  needs_full_gradient = FALSE,
  has_tolerance = FALSE,
  is_factorised = FALSE,
  has_companion = FALSE
)

#' @export
kernel_text.tall_kernel_independent <- function(kernel, fit) {
  "independent draws (exact)"
}
