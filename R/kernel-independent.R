# Independent draws of a posterior that can be drawn from: what stands in a fit
# where others have the kernel that moved its chains. The recipe takes it; it is
# no kernel that a user gives.

kernel_of_draws <- function() {
  new_spec("kernel", "independent")
}

#' @export
kernel_traits.tall_kernel_independent <- function(kernel) {
  new_kernel_traits("independent draws (exact)")
}
