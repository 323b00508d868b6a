# Densities with known moments, member "density" of src/models/registry.c. A new
# one is a function in `density_forms` and its terms in src/models/density.c.

#' Densities to try samplers on
#'
#' Targets with known moments and without data, whose gradients can be given
#' noise on purpose: what a sampler makes of gradient noise, skewness or heavy
#' tails can then be measured against the truth.
#'
#' @param name (string) The density of every coordinate:
#'   * `"normal"`: parameters `mean = 0` and `sd = 1`;
#'   * `"skew-normal"` (Azzalini, 1985): \eqn{2 \phi(z) \Phi(\alpha z) /
#'     \omega}{2 phi(z) Phi(alpha z) / omega}, \eqn{z = (\theta - \xi) /
#'     \omega}{z = (theta - xi) / omega}; parameters `shape`
#'     (\eqn{\alpha}{alpha}), `location = 0` (\eqn{\xi}{xi}) and `scale = 1`
#'     (\eqn{\omega}{omega});
#'   * `"student"`: Student's t; parameters `df`, `location = 0`, `scale = 1`;
#'   * `"mixture"`: of normals; parameters `means`, `sds = 1` and `weights = 1`,
#'     one value for each component (or one for all), the same in every
#'     coordinate; weights are divided by their sum;
#'   * `"banana"`: pairs of coordinates, \eqn{\theta_1 \sim N(0, s_1^2)}{theta_1
#'     ~ N(0, s_1^2)} and \eqn{\theta_2 \mid \theta_1 \sim N(b (\theta_1^2 -
#'     s_1^2), s_2^2)}{theta_2 | theta_1 ~ N(b (theta_1^2 - s_1^2), s_2^2)}
#'     (after Haario, Saksman & Tamminen, 1999); parameters `curvature = 1`
#'     (\eqn{b}) and `sd = c(1, 1)`.
#' @param ... The parameters of that density, by their full names, and `dim`
#'   (whole number), the number of coordinates. Parameters have one value, or
#'   one for each coordinate (`curvature` one for each pair); without `dim`
#'   there are as many coordinates as the longest of them has values
#'   (`"banana"`: at least two).
#' @param gradient_noise (string) Law of the noise that is added, fresh and
#'   independent in each coordinate, to every gradient a sampler asks for.
#' @param noise_scale (non-negative number, or one for each coordinate) Its
#'   scale: the standard deviation of `"normal"` noise; that of `"laplace"`
#'   noise is \eqn{\sqrt 2}{sqrt(2)} times as large, and `"cauchy"` noise has
#'   none.
#'
#' @details The coordinates (of `"banana"`: the pairs) are independent, and all
#' coordinates are uncorrelated. The log density is normalised and exact. Only
#' gradients carry noise, and only those that drive a chain: [ksd()] and
#' [find_mode()] see the exact ones.
#'
#' There are no rows, so the gradient is always [gradient_full()]'s, which is
#' the default for this model. It reports the variance of the noise to the
#' corrected variants of [kernel_sgld()] and [kernel_sgbd()]: \eqn{s^2}, \eqn{2
#' s^2}, and for Cauchy noise, nominally, \eqn{s^2}, with \eqn{s} the
#' `noise_scale`. Metropolis kernels need `gradient_noise = "none"`. Without
#' `init`, chains start at independent draws from the density.
#'
#' @return A `tall_model` for [sg_sample()]. Its element `moments` is a list of
#'   the exact `mean` and `sd` of every coordinate, `NA` where there is none and
#'   `Inf` where it diverges (Student's t with few degrees of freedom); [vcov()]
#'   gives the covariance matrix.
#' @section Conditions:
#' `tall_error_input` if an argument is not as described; a parameter that the
#' density does not have is refused, and so is `noise_scale` without
#' `gradient_noise`, or the reverse.
#' @references
#' Azzalini (1985). A class of distributions which includes the normal ones.
#' *Scandinavian Journal of Statistics* 12, 171-178.
#'
#' Haario, Saksman & Tamminen (1999). Adaptive proposal distribution for random
#' walk Metropolis algorithm. *Computational Statistics* 14, 375-395.
#'
#' Mauri & Zanella (2024). Robust approximate sampling via stochastic gradient
#' Barker dynamics. *AISTATS*.
#' @examples
#' target <- model_density(
#'   "skew-normal",
#'   shape = 20,
#'   gradient_noise = "normal",
#'   noise_scale = 0.6
#' )
#' target
#' fit <- sg_sample(target, kernel_sgbd(0.3), iter = 20000, seed = 1)
#' c(truth = target$moments$mean[[1]], estimate = mean(as.matrix(fit)))
#'
#' # three coordinates of different scales
#' vcov(model_density("normal", sd = c(0.1, 1, 10)))
#' @export
model_density <- function(
  name,
  ...,
  gradient_noise = c("none", "normal", "laplace", "cauchy"),
  noise_scale = NULL
) {
  check_given(name)
  name <- check_choice(name, names(density_forms))
  gradient_noise <- check_choice(gradient_noise, gradient_noises)
  parameters <- check_density_parameters(list(...), name)
  form <- do.call(density_forms[[name]], parameters)
  n_dim <- length(form$location)
  noise_scale <- check_noise_scale(noise_scale, gradient_noise, n_dim)
  each <- paste0("theta[", seq_len(n_dim), "]")
  variables <- if (n_dim == 1) "theta" else each
  new_model(
    "density",
    c(
      list(form = match(name, names(density_forms)) - 1),
      form[c("location", "scale", "shape")],
      form$components,
      list(
        noise = match(gradient_noise, gradient_noises) - 1,
        noise_scale = noise_scale
      )
    ),
    variables = variables,
    density = name,
    parameters = parameters,
    gradient_noise = gradient_noise,
    noise_scale = noise_scale,
    moments = lapply(form$moments, stats::setNames, variables),
    traits = model_traits(
      start = rep_len(form$start, n_dim),
      draw = form$draw,
      is_noisy = any(noise_scale > 0)
    ),
    label = "model_density"
  )
}

gradient_noises <- c("none", "normal", "laplace", "cauchy")

# Each takes its parameters and gives `location`, `scale` and `shape` of every
# coordinate as the core wants them, `moments`, `start` (where its density is
# not zero to rounding) and `draw`: one draw, from a function that gives n
# standard normals. In the order of v_form in src/models/density.c.
density_forms <- list(
  normal = function(mean = 0, sd = 1, dim = NULL) {
    check_positive(sd, "sd")
    p <- density_vectors(list(mean = mean, sd = sd), dim)
    list(
      location = p$mean,
      scale = p$sd,
      shape = 0 * p$mean,
      moments = list(mean = p$mean, sd = p$sd),
      start = p$mean,
      draw = function(normals) p$mean + p$sd * normals(length(p$mean))
    )
  },
  "skew-normal" = function(shape, location = 0, scale = 1, dim = NULL) {
    check_given(shape, "shape")
    check_positive(scale, "scale")
    p <- density_vectors(
      list(shape = shape, location = location, scale = scale),
      dim
    )
    delta <- p$shape / sqrt(1 + p$shape^2)
    mean <- p$location + p$scale * delta * sqrt(2 / pi)
    list(
      location = p$location,
      scale = p$scale,
      shape = p$shape,
      moments = list(
        mean = mean,
        sd = p$scale * sqrt(1 - 2 * delta^2 / pi)
      ),
      start = mean,
      draw = function(normals) {
        z <- matrix(normals(2 * length(delta)), ncol = 2)
        p$location +
          p$scale * (delta * abs(z[, 1]) + sqrt(1 - delta^2) * z[, 2])
      }
    )
  },
  student = function(df, location = 0, scale = 1, dim = NULL) {
    check_given(df, "df")
    check_positive(df, "df")
    check_positive(scale, "scale")
    p <- density_vectors(list(df = df, location = location, scale = scale), dim)
    spread <- ifelse(p$df > 2, sqrt(p$df / pmax(p$df - 2, 0)), Inf)
    list(
      location = p$location,
      scale = p$scale,
      shape = p$df,
      moments = list(
        mean = ifelse(p$df > 1, p$location, NA),
        sd = ifelse(p$df > 1, p$scale * spread, NA)
      ),
      start = p$location,
      draw = function(normals) {
        u <- stats::pnorm(normals(length(p$df)))
        p$location + p$scale * stats::qt(u, p$df)
      }
    )
  },
  mixture = function(means, sds = 1, weights = 1, dim = 1) {
    check_given(means, "means")
    check_positive(sds, "sds")
    check_positive(weights, "weights")
    p <- density_vectors(
      list(means = means, sds = sds, weights = weights),
      NULL,
      unit = "component"
    )
    p$weights <- p$weights / sum(p$weights)
    dim <- check_count(dim, most = count_limits$integer, arg = "dim")
    mean <- sum(p$weights * p$means)
    square <- sum(p$weights * (p$sds^2 + (p$means - mean)^2))
    list(
      location = numeric(dim),
      scale = rep(1, dim),
      shape = numeric(dim),
      components = p[c("means", "sds", "weights")],
      moments = list(mean = rep(mean, dim), sd = rep(sqrt(square), dim)),
      start = p$means[[which.max(p$weights)]],
      draw = function(normals) {
        z <- matrix(normals(2 * dim), ncol = 2)
        at <- findInterval(stats::pnorm(z[, 1]), cumsum(p$weights)) + 1
        at <- pmin(at, length(p$means)) # the sum may round to less than one
        p$means[at] + p$sds[at] * z[, 2]
      }
    )
  },
  banana = function(curvature = 1, sd = c(1, 1), dim = NULL) {
    check_positive(sd, "sd")
    dim <- check_count(
      dim,
      min = 2,
      most = count_limits$integer,
      allow_null = TRUE,
      arg = "dim"
    )
    if (!is.null(dim) && dim %% 2 != 0) {
      abort_expected(dim, "an even whole number", arg = "dim")
    }
    pairs <- if (is.null(dim)) NULL else dim / 2
    if (length(sd) %% 2 != 0) {
      abort_expected(
        sd,
        "a vector with two values, or two for each pair of coordinates",
        seen = count_noun(length(sd), "value"),
        arg = "sd"
      )
    }
    s <- matrix(sd, 2)
    p <- density_vectors(
      list(curvature = curvature, sd = s[1, ], sd = s[2, ]),
      pairs,
      unit = "pair"
    )
    first <- p[[2]]
    second <- p[[3]]
    both <- function(a, b) as.double(rbind(a, b))
    list(
      location = numeric(2 * length(first)),
      scale = both(first, second),
      shape = both(p$curvature, p$curvature),
      moments = list(
        mean = numeric(2 * length(first)),
        sd = both(first, sqrt(second^2 + 2 * p$curvature^2 * first^4))
      ),
      start = 0,
      draw = function(normals) {
        z <- matrix(normals(2 * length(first)), ncol = 2)
        theta <- first * z[, 1]
        both(theta, p$curvature * (theta^2 - first^2) + second * z[, 2])
      }
    )
  }
)

check_density_parameters <- function(parameters, name) {
  known <- names(formals(density_forms[[name]]))
  given <- names(parameters)
  if (length(parameters) > 0 && (is.null(given) || any(given == ""))) {
    abort_input(
      c(
        "The parameters of a density must be named.",
        i = "{.val {name}} has {.arg {known}}."
      ),
      argument = "...",
      expected = known
    )
  }
  check_known(given, known, "parameter", arg = "...")
  if (anyDuplicated(given)) {
    twice <- given[duplicated(given)][[1]]
    abort_input(
      "{.arg {twice}} is given twice.",
      argument = twice
    )
  }
  parameters
}

check_positive <- function(x, arg) {
  check_numeric_vector(x, positive = TRUE, arg = arg)
}

# Numeric vectors of one value or of as many as there are coordinates, all
# brought to that length: `dim`, or the longest.
density_vectors <- function(values, dim, unit = "coordinate") {
  for (arg in unique(names(values))) {
    check_numeric_vector(values[[arg]], arg = arg)
  }
  n <- max(lengths(values))
  if (!is.null(dim)) {
    n <- check_count(dim, most = count_limits$integer, arg = "dim")
  }
  for (k in seq_along(values)) {
    if (!length(values[[k]]) %in% c(1, n)) {
      has <- length(values[[k]])
      arg <- names(values)[[k]]
      abort_input(
        "{.arg {arg}} must have one value, or one for each of
         {count_noun(n, unit)}, not {format_count(has)}.",
        argument = arg,
        expected = unique(c(1, n)),
        value = values[[k]]
      )
    }
  }
  lapply(values, function(x) rep_len(as.double(x), n))
}

check_noise_scale <- function(noise_scale, gradient_noise, n_dim) {
  if (gradient_noise == "none") {
    if (!is.null(noise_scale)) {
      abort_input(
        c(
          "{.arg noise_scale} has no use without {.arg gradient_noise}.",
          i = "Give for instance {.code gradient_noise = \"normal\"}."
        ),
        argument = "noise_scale",
        value = noise_scale
      )
    }
    return(numeric(n_dim))
  }
  if (is.null(noise_scale)) {
    abort_input(
      "{.arg noise_scale} must be given with {.arg gradient_noise}.",
      argument = "noise_scale"
    )
  }
  check_numeric_vector(noise_scale, size = c(1, n_dim), arg = "noise_scale")
  if (any(noise_scale < 0)) {
    bad <- which(noise_scale < 0)[[1]]
    abort_value(noise_scale, bad, "be zero or more", "noise_scale")
  }
  rep_len(as.double(noise_scale), n_dim)
}

# "skew-normal (shape 20), gradient noise normal (0.6)"
density_text <- function(model) {
  shown <- model$parameters[names(model$parameters) != "dim"]
  values <- vapply(shown, values_text, "")
  paste0(
    model$density,
    if (length(shown) > 0) {
      paste0(" (", paste(names(shown), values, collapse = ", "), ")")
    },
    if (model$gradient_noise != "none") {
      scale <- values_text(unique(model$noise_scale))
      paste0("; gradient noise: ", model$gradient_noise, " (", scale, ")")
    }
  )
}

#' @export
print.tall_model_density <- function(x, ...) {
  check_no_dots(...)
  cat("<tall_model> model_density(): ", density_text(x), "\n", sep = "")
  cat("  ", count_noun(x$n_dim, "parameter"), ", no data\n", sep = "")
  if (!model_is_alive(x)) {
    cat("  it is lost (read back from a file)\n")
  }
  invisible(x)
}

#' @importFrom stats vcov
#' @export
vcov.tall_model_density <- function(object, ...) {
  check_no_dots(..., .ignore = none_aliased)
  sd <- object$moments$sd
  out <- diag(sd^2, length(sd))
  dimnames(out) <- list(names(sd), names(sd))
  out
}
