# What is said of a kernel once, beside what its table in src/kernels/ says.

# A method for each kernel that can say more than its name.
kernel_traits <- function(kernel) {
  UseMethod("kernel_traits")
}

# text: how summaries name it; bias_order: the k of the bias h^k in the step
# size h, NA where it is not known; noise_option: the argument by which it asks
# for the variance of the gradient noise, and how not to, code: list(given,
# instead); tolerance(fit): what a step tolerates of gradient noise (NULL: there
# is no limit, and the kernel's C table has no `beyond`), a list of
#   sizes      sigma, one or n_dim numbers
#   limit      the largest sigma tau
#   tolerance  the same to be shown; the exact one where `limit` is not
#   quantile   the 0.99 quantile of an increment over sigma
# usual_steps(n_dim, common, each): all steps that may be left out, by their
# arguments, see fill_steps().
new_kernel_traits <- function(
  text,
  bias_order = NA_real_,
  noise_option = list(given = "", instead = "kernel_sgld()"),
  tolerance = NULL,
  usual_steps = NULL
) {
  structure(
    list(
      text = text,
      bias_order = bias_order,
      noise_option = noise_option,
      tolerance = tolerance,
      usual_steps = usual_steps
    ),
    class = "tall_kernel_traits"
  )
}

#' @export
kernel_traits.default <- function(kernel) {
  new_kernel_traits(kernel$name)
}
