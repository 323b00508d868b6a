# How much gradient noise a kernel tolerates, and how much a fit had.

#' Noise tolerance of a fit
#'
#' How often gradient noise was larger than the kernel can make up for,
#' coordinate by coordinate.
#'
#' @param fit ([`tall_fit`][tall_fit]) A fit by [kernel_sgld()] or
#'   [kernel_sgbd()].
#'
#' @details With \eqn{\tau} the standard deviation of the estimated gradient in
#' a coordinate, a Langevin step of variance \eqn{h = \sigma^2} tolerates
#' \eqn{\tau \le 2 / \sigma}{tau <= 2 / sigma}: beyond it the noise of the
#' gradient alone exceeds the noise that the step should inject. A Barker
#' increment \eqn{w} tolerates \eqn{\tau \le K /
#' |w|}{tau <= K / |w|}, \eqn{K = 1.702}; Proposition 3 of Mauri & Zanella
#' (2024) gives the exact limit for small gradients, \eqn{\tau^* = 4 \phi(0) /
#' |w| \approx 1.596 / |w|}{tau* = 4 phi(0) / |w| = 1.596 / |w|}.
#'
#' The noise is that of the minibatches themselves, looked at every twentieth
#' step after warmup (every hundredth, where a [model_custom()] is
#' differentiated automatically); with whitened fits it is that of the whitened
#' coordinates.
#'
#' For [kernel_sghmc()] the limit is \eqn{\tau \le \sqrt{2 a / \eta}}{tau <=
#' sqrt(2 a / eta)}, beyond which the gradient's noise is more than the friction
#' \eqn{a} takes up.
#'
#' @return An object of class `tall_noise_tolerance`, a data frame with a row
#'   for each coordinate: `variable`; `tau`, the root mean variance of its
#'   gradient noise; `step`, \eqn{\sigma} (for Langevin kernels \eqn{\sqrt h},
#'   for [kernel_sghmc()] \eqn{\sqrt \eta}{sqrt(eta)}); `tolerance`, the largest
#'   `tau` that \eqn{\sigma} tolerates (for Barker kernels \eqn{\tau^*});
#'   `beyond`, the share of proposals beyond the limit; `largest`, the largest
#'   \eqn{\sigma} that keeps 99 percent of proposals within it at this noise.
#' @section Conditions:
#' `tall_error_unsupported` for a kernel that has no such limit.
#' @references
#' Mauri & Zanella (2024). Robust approximate sampling via stochastic gradient
#' Barker dynamics. *AISTATS*.
#' @examples
#' x <- cbind("(Intercept)" = 1, age = rnorm(1000))
#' y <- rbinom(1000, 1, plogis(0.5 + x[, "age"]))
#' model <- model_glm(x, y, family = "bernoulli")
#' fit <- sg_sample(
#'   model,
#'   kernel_sgbd(0.05),
#'   gradient_simple(),
#'   subsample_uniform(50),
#'   iter = 500,
#'   seed = 1
#' )
#' noise_tolerance(fit)
#' @export
noise_tolerance <- function(fit) {
  check_spec(fit, "tall_fit", "sg_sample()")
  if (is.null(fit$noise) || fit$noise$looks == 0) {
    abort_tall(
      "unsupported",
      c(
        "The fit has no record of gradient noise.",
        i = if (kernel_is_independent(fit$kernel)) {
          "Its draws are independent and exact: no gradient was estimated."
        } else {
          "Kernels without a limit to the noise have none, Metropolis kernels
           among them; minibatches of one row show none."
        }
      )
    )
  }
  tau <- unname(sqrt(fit$noise$variance / fit$noise$looks))
  tolerance <- kernel_traits(fit$kernel)$tolerance
  what <- if (!is.null(tolerance)) tolerance(fit)
  step <- rep_len(what$sizes, length(fit$coordinates))
  structure(
    data.frame(
      variable = fit$coordinates,
      tau = tau,
      step = step,
      tolerance = what$tolerance / step,
      beyond = unname(fit$noise$beyond / fit$noise$looks),
      largest = what$limit / (what$quantile * tau)
    ),
    gradient = fit$gradient,
    class = c("tall_noise_tolerance", "data.frame")
  )
}

#' @export
print.tall_noise_tolerance <- function(x, ...) {
  check_no_dots(...)
  cat("Gradient noise against what the kernel tolerates\n\n")
  shown <- utils::head(as.data.frame(x), 30)
  rownames(shown) <- shown$variable
  shown$variable <- NULL
  shown$beyond <- sprintf("%.1f%%", 100 * shown$beyond)
  print(shown, digits = 3)
  if (nrow(x) > 30) {
    cat("# ... with ", nrow(x) - 30, " more\n", sep = "")
  }
  advice <- noise_advice(mean(x$beyond), attr(x, "gradient"))
  cat("\n", advice, "\n", sep = "")
  invisible(x)
}

# The share of proposals beyond the tolerance, and what to do.
noise_advice <- function(beyond, gradient) {
  share <- paste0(formatC(100 * beyond, digits = 1, format = "f"), "%")
  if (beyond > 0.01) {
    paste0(
      "Gradient noise is beyond the kernel's tolerance in ",
      share,
      " of proposals:\n",
      "  take ", gradient_traits(gradient)$remedies, "."
    )
  } else {
    paste0(
      "Gradient noise is within the kernel's tolerance (beyond it in ",
      share,
      " of proposals)."
    )
  }
}

plot_noise <- function(fit) {
  rlang::check_installed("ggplot2", "to plot gradient noise")
  table <- as.data.frame(noise_tolerance(fit))
  table$variable <- factor(table$variable, rev(unique(table$variable)))
  long <- data.frame(
    variable = rep(table$variable, 2),
    what = rep(c("noise of the gradient", "tolerance"), each = nrow(table)),
    value = c(table$tau, table$tolerance)
  )
  ggplot2::ggplot(
    long,
    ggplot2::aes(
      x = .data[["value"]],
      y = .data[["variable"]],
      shape = .data[["what"]]
    )
  ) +
    ggplot2::geom_point() +
    ggplot2::scale_x_log10() +
    ggplot2::scale_shape_manual(values = c(16, 124)) +
    ggplot2::labs(x = "standard deviation", y = NULL, shape = NULL)
}

#' Probabilities of Barker dynamics
#'
#' The probability that a coordinate moves by \eqn{+z} rather than \eqn{-z},
#' given the gradient as estimated, or on average over the noise of that
#' estimate.
#'
#' @param gradient (numeric vector) The estimated gradient \eqn{\hat g}{g}.
#' @param delta (numeric vector) The exact gradient.
#' @param z (numeric vector) The increment.
#' @param tau (non-negative numeric vector) The standard deviation of the
#'   gradient noise.
#' @param variant (string) As in [kernel_sgbd()].
#' @param constant (positive number) \eqn{K}, as there.
#'
#' @details The arguments are recycled to a common length.
#' `sgbd_expected_probability()` is the mean of `sgbd_probability()` over
#' \eqn{\hat g \sim N(\delta, \tau^2)}{g ~ N(delta, tau^2)}, by quadrature.
#' Mauri & Zanella (2024): for `"vanilla"` it is within 0.019 of \eqn{p(c
#' \delta, z)}{p(c delta, z)}, \eqn{c = 1.702 / \sqrt{1.702^2 + z^2 \tau^2}}
#' (Proposition 2); for `"corrected"` within 0.019 of \eqn{p(\delta,
#' z)}{p(delta, z)} when \eqn{\tau < 1.702 / |z|} (Corollary 1).
#'
#' @return A numeric vector of probabilities.
#' @section Conditions:
#' `tall_error_input` for arguments that are not as described.
#' @references
#' Mauri & Zanella (2024). Robust approximate sampling via stochastic gradient
#' Barker dynamics. *AISTATS*.
#' @examples
#' sgbd_probability(gradient = 2, z = c(-0.5, 0.5))
#' # gradient noise shrinks the probability towards one half ...
#' sgbd_expected_probability(delta = 2, z = 0.5, tau = c(0, 1, 3))
#' # ... which the correction undoes within its tolerance, 1.702 / 0.5
#' sgbd_expected_probability(2, 0.5, tau = c(0, 1, 3), variant = "corrected")
#' @export
sgbd_probability <- function(
  gradient,
  z,
  tau = 0,
  variant = c("vanilla", "corrected", "extreme"),
  constant = 1.702
) {
  gradient <- check_gradient(gradient)
  z <- check_numeric_vector(z)
  tau <- check_tau(tau)
  variant <- check_choice(variant, sgbd_variants)
  constant <- check_number(constant, positive = TRUE)
  barker_probability(gradient, z, tau, variant, constant)
}

barker_probability <- function(gradient, z, tau, variant, constant) {
  product <- gradient * z
  extreme <- ifelse(product == 0, 0, Inf * sign(product))
  argument <- switch(
    variant,
    vanilla = product,
    extreme = extreme,
    corrected = {
      room <- constant^2 - (tau * z)^2 + 0 * product
      ifelse(room > 0, product * constant / sqrt(pmax(room, 0)), extreme)
    }
  )
  stats::plogis(argument)
}

# Infinite gradients have a sign.
check_gradient <- function(x, arg = caller_arg(x)) {
  check_given(x, arg = arg)
  if (!is_plain_numeric(x) || length(x) == 0 || anyNA(x)) {
    abort_expected(x, "a numeric vector without NA", arg = arg)
  }
  as.double(x)
}

check_tau <- function(tau, arg = caller_arg(tau)) {
  force(arg) # before `tau` is a value
  tau <- check_numeric_vector(tau, arg = arg)
  if (any(tau < 0)) {
    bad <- which(tau < 0)[[1]]
    abort_value(tau, bad, "be zero or more", arg = arg)
  }
  tau
}

#' @rdname sgbd_probability
#' @export
sgbd_expected_probability <- function(
  delta,
  z,
  tau,
  variant = c("vanilla", "corrected", "extreme"),
  constant = 1.702
) {
  delta <- check_numeric_vector(delta)
  z <- check_numeric_vector(z)
  tau <- check_tau(tau)
  variant <- check_choice(variant, sgbd_variants)
  constant <- check_number(constant, positive = TRUE)
  n <- max(length(delta), length(z), length(tau))
  delta <- rep_len(delta, n)
  z <- rep_len(z, n)
  tau <- rep_len(tau, n)
  vapply(
    seq_len(n),
    function(k) {
      barker_mean(delta[[k]], z[[k]], tau[[k]], variant, constant)
    },
    numeric(1)
  )
}

barker_mean <- function(delta, z, tau, variant, constant) {
  if (tau == 0) {
    return(barker_probability(delta, z, tau, variant, constant))
  }
  is_step <- variant == "extreme" ||
    (variant == "corrected" && abs(z) * tau >= constant)
  if (is_step) {
    # P(z (delta + tau xi) > 0)
    return(if (z == 0) 0.5 else stats::pnorm(sign(z) * delta / tau))
  }
  integrand <- function(xi) {
    barker_probability(delta + tau * xi, z, tau, variant, constant) *
      stats::dnorm(xi)
  }
  # the sigmoid is steepest where delta + tau xi = 0
  middle <- max(-10, min(10, -delta / tau))
  breaks <- sort(unique(c(-12, middle, 0, 12)))
  sum(vapply(
    seq_len(length(breaks) - 1),
    function(k) {
      stats::integrate(
        integrand,
        breaks[[k]],
        breaks[[k + 1]],
        rel.tol = 1e-10,
        subdivisions = 500
      )$value
    },
    numeric(1)
  ))
}
