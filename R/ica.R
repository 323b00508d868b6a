# Independent component analysis: src/models/ica.c and its front end.

#' Independent components
#'
#' `tall_ica()` finds the posterior of an unmixing matrix: independent sources
#' of which the columns of a matrix are linear mixtures. `model_ica()` is the
#' model alone, for [sg_sample()].
#'
#' @param x (numeric matrix or data frame, n_data x K) The observations, a row
#'   each.
#' @param prior_sd (positive number) The prior of every element of the unmixing
#'   matrix is \eqn{N(0, s^2)}.
#' @param init (string, or K x K matrix) Where the search for the mode begins:
#'   `"fastICA"`, by the package of that name; `"identity"`; or an unmixing
#'   matrix.
#' @param standardise (string) What to do with the columns first, after
#'   centring: `"sphere"`, make them uncorrelated with variance one by the
#'   Cholesky factor of their covariance; `"scale"`, divide them by their
#'   standard deviations (the paper); or `"none"`, not even centre. [sources()]
#'   and [mixing()] take it into account.
#' @param kernel,gradient,subsample The parts of the run; without a kernel they
#'   are chosen as [sg_sample()] does.
#' @inheritParams sg_sample
#' @param keep_data (`TRUE` or `FALSE`) Keep `x` in the fit, so that a fit read
#'   from a file can go on?
#' @param ... More arguments of [sg_sample()]: `schedule`, `lambda`, `keep`,
#'   `monitor`.
#'
#' @details With an unmixing matrix \eqn{W} of rows \eqn{w_k} (Mauri & Zanella,
#' 2024, section 4.4) \deqn{p(x \mid W) = |\det W| \prod_k \frac1{4
#' \cosh^2(w_k^\top x / 2)}, \quad W_{kj} \sim N(0, s^2):}{p(x | W) = |det W|
#' prod_k 1 / (4 cosh^2(w_k'x / 2)), W_kj ~ N(0, s^2):} sources with the
#' logistic law. The gradient is \eqn{N W^{-\top} - \sum_i \tanh(W x_i / 2)
#' x_i^\top - W / s^2}{N W^-T - sum_i tanh(W x_i / 2) x_i' - W / s^2}; the
#' determinant needs no data and is never estimated.
#'
#' The posterior does not change when rows of \eqn{W} are swapped or change
#' sign. Every draw is therefore aligned with the matrix at the mode before
#' anything is averaged: with \eqn{C = W \hat W^{-1}}, its rows scaled to length
#' one, each row of \eqn{W} takes the place of its largest \eqn{|C_{kj}|}, the
#' largest of all first where two compete, and the sign of that element. So are
#' the matrices that `keep = "none"` averages, and those that monitors see then.
#' `fit$aligned` counts the draws that this changed, where draws are kept. The
#' estimate of the bias of standard deviations takes each chain as it ran.
#'
#' @return `model_ica()`: a `tall_model`. `tall_ica()`: a [`tall_fit`][tall_fit]
#'   of class `c("tall_ica", "tall_fit")` with the variables `W[1,1]`, `W[2,1]`,
#'   ..., the unmixing matrix of the standardised columns. Sphered ones mix
#'   best: where columns are correlated, the elements of an unmixing matrix of
#'   the columns themselves are, too.
#' @section Conditions: `tall_error_input` if there are fewer rows than columns,
#' a column is constant or determined by others, or `init` is singular;
#' `rlib_error_package_not_found` if \pkg{fastICA} is wanted and not installed.
#' @references
#' Mauri & Zanella (2024). Robust approximate sampling via stochastic gradient
#' Barker dynamics. *AISTATS*.
#'
#' Welling & Teh (2011). Bayesian learning via stochastic gradient Langevin
#' dynamics. *ICML*.
#' @seealso [sources()], [mixing()]
#' @examples
#' s <- matrix(rlogis(4000), ncol = 2)
#' x <- s %*% rbind(c(1, 0.5), c(-0.3, 1))
#' fit <- tall_ica(x, init = "identity", chains = 2, seed = 1)
#' mixing(fit)$mean
#' @export
tall_ica <- function(
  x,
  prior_sd = 1,
  init = "fastICA",
  standardise = c("sphere", "scale", "none"),
  kernel = NULL,
  gradient = NULL,
  subsample = NULL,
  iter = 2000,
  warmup = floor(iter / 2),
  thin = 1,
  chains = 4,
  cores = getOption("mc.cores", 1L),
  seed = NULL,
  refresh = getOption("tallbayes.refresh", 1),
  ...,
  keep_data = TRUE
) {
  check_given(x)
  check_flag(keep_data)
  call <- rlang::current_env()
  # components are aligned as wholes
  own <- c(names(formals(tall_ica)), "variables")
  more <- check_more(list(...), own, call)
  # before the search, which takes its time and shares the seed that is printed
  control <- rlang::inject(check_control(
    !!!run_arguments(call, check_control),
    keep = more$keep %||% "draws",
    call = call
  ))
  seed <- control$seed
  check_members(
    kernel,
    gradient,
    subsample,
    more$schedule %||% schedule_constant(),
    call
  )
  standardise <- check_choice(standardise, ica_standards)
  given <- x
  x <- check_components(x)
  scaling <- ica_scaling(x, standardise)
  x <- standard_columns(x, scaling)
  model <- model_ica(x, prior_sd)
  check_lambda(more$lambda, model)
  check_monitor(more$monitor, model, call)
  start <- with_seed(seed, ica_start(x, init, call))
  mode <- find_mode(
    model,
    method = "lbfgs",
    init = as.double(start),
    max_iter = 1000
  )
  if (!is.null(kernel) && is.null(gradient)) {
    gradient <- gradient_cv(at = mode)
  }
  reference <- matrix(mode$estimate, ncol(x))
  if ("none" %in% control$keep) {
    # no draws will be there to align: the core has to
    model <- build_ica(x, prior_sd, reference)
  }
  model$cache$mode <- mode
  run <- run_arguments(call, except = "init")
  fit <- rlang::inject(sg_sample(model, !!!run, !!!more))
  fit$data <- if (keep_data) list(x = given, prior_sd = prior_sd)
  fit$scaling <- scaling
  fit$reference <- reference
  class(fit) <- c("tall_ica", "tall_fit")
  seal_fit(finish_fit(fit))
}

#' @export
rebuild_model.tall_ica <- function(fit) {
  if (is.null(fit$data)) {
    return(NULL)
  }
  x <- standard_columns(check_components(fit$data$x), fit$scaling)
  build_ica(
    x,
    fit$data$prior_sd,
    if ("none" %in% fit$control$keep) fit$reference
  )
}

#' @rdname tall_ica
#' @export
model_ica <- function(x, prior_sd = 1) {
  x <- check_components(x)
  build_ica(x, check_number(prior_sd, positive = TRUE))
}

# reference: the unmixing matrix that variables are aligned with.
build_ica <- function(x, prior_sd, reference = NULL) {
  k <- ncol(x)
  new_model(
    "ica",
    c(list(x = x, prior_sd = prior_sd), if (!is.null(reference)) {
      list(reference = reference)
    }),
    variables = paste0("W[", row(diag(k)), ",", col(diag(k)), "]"),
    n_source = k,
    prior = NULL,
    # sources that are nearly normal leave rotations that only the tails bound
    is_far_from_normal = TRUE,
    # N log |det W|
    has_data_free = TRUE,
    start = as.double(diag(k)),
    label = "model_ica"
  )
}

check_components <- function(x, arg = "x", call = caller_env()) {
  check_given(x, arg = arg, call = call)
  if (is.data.frame(x)) {
    x <- as.matrix(x)
  }
  x <- as_double_matrix(check_matrix(x, arg = arg, call = call))
  if (nrow(x) < ncol(x)) {
    abort_input(
      c(
        "{.arg {arg}} must have at least as many rows as columns: a row is an
         observation.",
        x = "It is {nrow(x)} x {ncol(x)}."
      ),
      argument = arg,
      value = dim(x),
      call = call
    )
  }
  constant <- which(.Call(ffi_column_sds, x) == 0)
  if (length(constant) > 0) {
    name <- column_names(x)[[constant[[1]]]]
    abort_input(
      "{.arg {arg}} must have no constant column, which {.val {name}} is.",
      argument = arg,
      value = name,
      call = call
    )
  }
  # a direction without variance: W grows there until the prior stops it
  size <- eigen(stats::cor(x), symmetric = TRUE, only.values = TRUE)$values
  if (size[[length(size)]] < length(size) * .Machine$double.eps) {
    abort_input(
      c(
        "{.arg {arg}} must have linearly independent columns.",
        i = "Leave out those that others determine."
      ),
      argument = arg,
      call = call
    )
  }
  x
}

ica_standards <- c("sphere", "scale", "none")

# Columns are standardised by x -> L^-1 (x - center).
ica_scaling <- function(x, standardise) {
  k <- ncol(x)
  scale <- switch(
    standardise,
    sphere = t(chol(stats::cov(x))),
    scale = diag(.Call(ffi_column_sds, x), k),
    none = diag(k)
  )
  list(
    center = if (standardise == "none") numeric(k) else unname(colMeans(x)),
    scale = unname(scale),
    names = colnames(x)
  )
}

standard_columns <- function(x, scaling) {
  t(forwardsolve(scaling$scale, t(x) - scaling$center))
}

# An unmixing matrix to begin with.
ica_start <- function(x, init, call = caller_env()) {
  k <- ncol(x)
  # nothing to unmix; fastICA takes no single column
  if (k == 1 && is.character(init)) {
    check_choice(init, c("fastICA", "identity"), arg = "init", call = call)
    return(diag(1))
  }
  if (identical(init, "fastICA")) {
    rlang::check_installed("fastICA", "to begin the search", call = call)
    found <- fastICA::fastICA(x, k)
    # its sources have variance 1, logistic ones pi^2 / 3
    return(t(found$K %*% found$W) * pi / sqrt(3))
  }
  if (identical(init, "identity")) {
    return(diag(k))
  }
  if (is.character(init)) {
    return(
      check_choice(init, c("fastICA", "identity"), arg = "init", call = call)
    )
  }
  init <- check_matrix(init, n_row = k, n_col = k, arg = "init", call = call)
  if (rcond(init) < .Machine$double.eps) {
    abort_input(
      "{.arg init} must be a regular matrix: this one is singular.",
      argument = "init",
      call = call
    )
  }
  init
}

# ---- alignment ---------------------------------------------------------------

# What a kind of fit does with its draws once they are there.
finish_fit <- function(fit) {
  UseMethod("finish_fit")
}

#' @export
finish_fit.default <- function(fit) {
  fit
}

#' @export
finish_fit.tall_ica <- function(fit) {
  if (is.null(fit$draws)) {
    return(fit)
  }
  k <- nrow(fit$reference)
  shape <- dim(fit$draws)
  flat <- function(a) array(unclass(a), c(prod(shape[1:2]), k, k))
  draws <- flat(fit$draws)
  order <- component_order(draws, solve(fit$reference))
  fit$aligned <- sum(rowSums(order != col(order)) > 0)
  if (fit$aligned > 0) {
    fit$draws[] <- reorder_components(draws, order)
    if (!is.null(fit$gradients)) {
      fit$gradients[] <- reorder_components(flat(fit$gradients), order)
    }
  }
  fit
}

# draws: S x K x K. For each draw and each row of the reference, the row of the
# draw that takes its place, negative where it changes sign.
component_order <- function(draws, inverse) {
  n <- dim(draws)[[1]]
  k <- dim(draws)[[2]]
  cosine <- array(0, c(n, k, k))
  for (row in seq_len(k)) {
    c_row <- matrix(draws[, row, ], n) %*% inverse
    cosine[, row, ] <- c_row / sqrt(rowSums(c_row^2))
  }
  order <- matrix(0, n, k)
  for (draw in seq_len(n)) {
    order[draw, ] <- match_components(matrix(cosine[draw, , ], k))
  }
  order
}

# The largest element of all decides first.
match_components <- function(cosine) {
  k <- nrow(cosine)
  size <- abs(cosine)
  best <- max.col(size, ties.method = "first")
  if (anyDuplicated(best) == 0) {
    place <- best
  } else {
    place <- integer(k)
    for (step in seq_len(k)) {
      at <- arrayInd(which.max(size), c(k, k))
      place[[at[[1]]]] <- at[[2]]
      size[at[[1]], ] <- -1
      size[, at[[2]]] <- -1
    }
  }
  out <- integer(k)
  out[place] <- seq_len(k) * ifelse(cosine[cbind(seq_len(k), place)] < 0, -1, 1)
  out
}

reorder_components <- function(draws, order) {
  n <- nrow(draws)
  k <- ncol(order)
  out <- draws
  for (row in seq_len(k)) {
    from <- abs(order[, row])
    for (column in seq_len(k)) {
      out[, row, column] <- sign(order[, row]) *
        draws[cbind(seq_len(n), from, column)]
    }
  }
  out
}

# ---- what the components are -------------------------------------------------

#' Sources and mixing matrix of independent components
#'
#' `sources()` are the independent components of observations, `mixing()` is the
#' matrix that makes observations of them.
#'
#' @param object (`tall_ica`) A fit of [tall_ica()].
#' @param newdata (numeric matrix or data frame with K columns) Observations, on
#'   the scale of the data of the fit.
#'
#' @details Sources are \eqn{s = W x} of the standardised observations, linear
#' in the draws: their posterior means and standard deviations follow from those
#' of \eqn{W} at a cost that does not depend on the number of draws. The mixing
#' matrix is \eqn{W^{-1}} of every draw, in the units of the data: \eqn{x
#' \approx}{x ~} `center` \eqn{+ A s}.
#'
#' @return A list of two matrices, `mean` and `sd`: n x K for `sources()`, K x K
#'   with a column for each source for `mixing()`.
#' @section Conditions: `tall_error_input` if `newdata` has other columns;
#' `tall_error_unsupported` for a fit without draws.
#' @examples
#' s <- matrix(rlogis(4000), ncol = 2)
#' x <- s %*% rbind(c(1, 0.5), c(-0.3, 1))
#' fit <- tall_ica(x, init = "identity", chains = 2, seed = 1)
#' head(sources(fit, x)$mean)
#' mixing(fit)
#' @export
sources <- function(object, newdata) {
  check_spec(object, "tall_ica", "tall_ica()")
  check_has_draws(object, rlang::current_env())
  check_given(newdata)
  if (is.data.frame(newdata)) {
    newdata <- as.matrix(newdata)
  }
  k <- nrow(object$reference)
  newdata <- check_matrix(newdata, n_col = k)
  x <- standard_columns(newdata, object$scaling)
  draws <- ica_draws(object)
  mean <- sd <- matrix(
    0,
    nrow(x),
    k,
    dimnames = list(rownames(x), paste0("s", seq_len(k)))
  )
  for (row in seq_len(k)) {
    w <- matrix(draws[, row, ], dim(draws)[[1]])
    mean[, row] <- x %*% colMeans(w)
    sd[, row] <- sqrt(rowSums((x %*% stats::cov(w)) * x))
  }
  list(mean = mean, sd = sd)
}

#' @rdname sources
#' @export
mixing <- function(object) {
  check_spec(object, "tall_ica", "tall_ica()")
  check_has_draws(object, rlang::current_env())
  draws <- ica_draws(object)
  k <- dim(draws)[[2]]
  inverse <- apply(draws, 1, function(w) {
    as.double(object$scaling$scale %*% solve(matrix(w, k)))
  })
  names <- list(object$scaling$names, paste0("s", seq_len(k)))
  list(
    mean = matrix(rowMeans(inverse), k, dimnames = names),
    sd = matrix(apply(inverse, 1, stats::sd), k, dimnames = names)
  )
}

# S x K x K
ica_draws <- function(fit) {
  draws <- posterior::subset_draws(fit$draws, variable = fit$variables)
  k <- nrow(fit$reference)
  array(unclass(draws), c(posterior::ndraws(draws), k, k))
}
