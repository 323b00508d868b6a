# Fits of tall_nn(): what fits of tall_glm() have beside predictions, summaries
# of predictions, printing.

#' @rdname predict.tall_nn
#' @exportS3Method rstantools::bayes_R2
bayes_R2.tall_nn <- function(
  object,
  newdata = NULL,
  draws = NULL,
  offset = NULL,
  ...,
  ndraws = NULL,
  cores = getOption("mc.cores", 1L)
) {
  check_no_dots(..., .ignore = no_groups)
  check_is_number(object, "bayes_R2")
  check_nn_unused(offset, cores = cores)
  draws <- check_draws(object, draws, ndraws)
  x <- nn_rows(object, newdata)
  n <- nrow(x)
  if (is.null(draws)) {
    draws <- affordable_draws(object, n)
  }
  chosen <- choose_draws(object, draws, resample = TRUE)
  n_draw <- nrow(chosen$theta)
  residual <- numeric(n_draw)
  spread <- mean_spread(n, n_draw, function(rows) {
    mu <- nn_means(object, x[rows, , drop = FALSE], chosen$theta)
    variance <- response_variance(nn_family(object), mu, aux = chosen$aux)
    residual <<- residual + rowSums(variance)
    mu
  })
  explained <- spread$square / (n - 1)
  explained / (explained + residual / n)
}

check_is_number <- function(fit, f) {
  if (has_classes(nn_family(fit))) {
    abort_tall(
      "unsupported",
      c(
        "{.fn {f}} is for numeric and binary responses, not for classes.",
        i = "{.fn posterior_epred} has the probabilities of the classes, and
             {.fn log_loss} a loss."
      )
    )
  }
}

#' @export
has_few_values.tall_nn <- function(fit) {
  is.null(nn_traits(fit)$cdf)
}

# Classes count from 1.
#' @export
replicated_responses.tall_nn <- function(fit, rows, draws) {
  x <- nn_rows(fit, NULL)[rows, , drop = FALSE]
  chosen <- choose_draws(fit, draws, resample = TRUE)
  mu <- nn_means(fit, x, chosen$theta)
  first <- as.integer(has_classes(nn_family(fit)))
  list(
    y = nn_observed(fit, NULL)[rows] + first,
    yrep = nn_responses(fit, mu, chosen$aux)
  )
}

# ---- as of other models ------------------------------------------------------

#' @rdname predict.tall_nn
#' @importFrom stats fitted
#' @export
fitted.tall_nn <- function(object, draws = NULL, ..., ndraws = NULL) {
  check_no_dots(..., .ignore = no_groups)
  table <- predict.tall_nn(object, draws = draws, ndraws = ndraws)
  if (has_classes(nn_family(object))) {
    out <- as.matrix(table[paste0("mean.", object$response_levels)])
    colnames(out) <- object$response_levels
    return(out)
  }
  stats::setNames(table$mean, rownames(table))
}

#' @rdname predict.tall_nn
#' @importFrom stats residuals
#' @export
residuals.tall_nn <- function(
  object,
  type = c("response", "pearson", "deviance"),
  draws = NULL,
  ...,
  ndraws = NULL
) {
  type <- check_choice(type, c("response", "pearson", "deviance"))
  check_no_dots(..., .ignore = no_groups)
  y <- nn_observed(object, NULL)
  whole <- object
  whole$na_action <- NULL
  mu <- fitted.tall_nn(whole, draws = draws, ndraws = ndraws)
  out <- if (has_classes(nn_family(object))) {
    if (type != "response") {
      check_is_number(object, "residuals")
    }
    1 - mu[cbind(seq_along(y), y + 1)]
  } else {
    response_residuals(nn_family(object), type, y, mu)
  }
  names(out) <- rownames(object$frame)
  stats::naresid(object$na_action, out)
}

#' @rdname predict.tall_nn
#' @importFrom stats sigma
#' @export
sigma.tall_nn <- function(object, ...) {
  check_no_dots(..., .ignore = any_fallback)
  if (!has_aux(nn_family(object))) {
    return(1)
  }
  object$sigma %||%
    mean(draws_matrix(object)[, response_aux(nn_family(object))])
}

#' @rdname predict.tall_nn
#' @param x,formula (`tall_nn`) The fit.
#' @importFrom stats formula
#' @export
formula.tall_nn <- function(x, ...) {
  check_no_dots(..., .ignore = any_environment)
  stats::formula(x$terms)
}

#' @rdname predict.tall_nn
#' @importFrom stats terms
#' @export
terms.tall_nn <- function(x, ...) {
  check_no_dots(...)
  x$terms
}

#' @rdname predict.tall_nn
#' @importFrom stats model.frame
#' @export
model.frame.tall_nn <- function(formula, ...) {
  check_no_dots(...)
  check_has_data(formula)
  formula$frame
}

#' @rdname predict.tall_nn
#' @importFrom stats model.matrix
#' @export
model.matrix.tall_nn <- function(object, ...) {
  check_no_dots(...)
  check_has_data(object)
  stats::model.matrix(
    object$terms,
    object$frame,
    contrasts.arg = object$contrasts
  )
}

#' @rdname predict.tall_nn
#' @importFrom stats family
#' @export
family.tall_nn <- function(object, ...) {
  check_no_dots(...)
  family <- nn_family(object)$object
  if (is.null(family)) {
    abort_tall(
      "unsupported",
      c(
        "A {object$likelihood} response has no {.cls family}.",
        i = "{.code fit$response_levels} has its classes."
      )
    )
  }
  family
}

#' @rdname update.tall_glm
#' @export
update.tall_nn <- update.tall_glm

# How well predictions agree across chains, on some rows of the data: a list of
# rhat, ess_bulk (a number for each row), error and the mean epistemic sd.
nn_checked <- function(fit) {
  if (is.null(fit$draws)) {
    return(NULL)
  }
  theta <- choose_draws(fit)$theta
  mu <- nn_means(fit, fit$check_rows$x, theta)
  y <- fit$check_rows$y
  shape <- dim(fit$draws)[1:2]
  first <- matrix(mu, nrow(theta))[, seq_along(y), drop = FALSE]
  by_chain <- array(first, c(shape, length(y)))
  each <- function(f) {
    apply(by_chain, 3, function(values) suppressWarnings(f(values)))
  }
  list(
    rhat = if (shape[[1]] > 3) each(posterior::rhat) else NA_real_,
    ess_bulk = if (shape[[1]] > 3) each(posterior::ess_bulk) else NA_real_,
    error = nn_error(fit, mu, y),
    sd_epistemic = mean(apply(first, 2, stats::sd))
  )
}

# How wrong means are; y is standardised.
nn_error <- function(fit, mu, y) {
  mean <- apply(mu, seq_along(dim(mu))[-1], mean)
  y <- fit$scaling$y_center + fit$scaling$y_scale * y
  nn_traits(fit)$error(mean, y)
}

#' Summarise a network
#'
#' @param object,x (`tall_nn`, or its summary) The fit, from [tall_nn()].
#' @param digits (whole number) Significant digits to print.
#' @param ... Unused.
#'
#' @details The weights of a network are not identified: units can be exchanged,
#'   and chains sit in different modes. What can be compared are predictions.
#'   R-hat and the effective sample size are those of the prediction at 200
#'   evenly spaced rows of the data. An R-hat well above 1.05 says that the
#'   chains are in modes that predict differently, and that more iterations
#'   would be needed to go from one to the other; the spread between them is
#'   part of `sd_epistemic`, as it is in an ensemble. A last line says so where
#'   it exceeds 1.05 at a tenth of the rows or more.
#'   `posterior::summarise_draws(fit)` has the weights.
#'
#' @return `summary()`: a list of class `tall_nn_summary` with `rhat` and
#'   `ess_bulk` (numeric vectors), `sigma` (mean and standard deviation, or
#'   `NULL`), `error`: the root mean squared error, or the share of wrong
#'   classes, on these rows of the training data, and `sd_epistemic`, its mean
#'   over them.
#' @examples
#' data <- data.frame(x = runif(200, -2, 2))
#' data$y <- data$x^2 + rnorm(200, sd = 0.1)
#' fit <- tall_nn(y ~ x, data, hidden = 5, train_iter = 300, iter = 100)
#' summary(fit)
#' @export
summary.tall_nn <- function(object, ...) {
  check_no_dots(...)
  sigma <- if (has_aux(nn_family(object)) && !is.null(object$draws)) {
    values <- choose_draws(object)$aux
    c(mean = mean(values), sd = stats::sd(values))
  }
  structure(
    c(
      object$checked,
      list(
        sigma = sigma,
        acceptance = object$chains$acceptance,
        fit = object[setdiff(
          names(object),
          c("draws", "unconstrained", "gradients", "saved", "frame", "modes")
        )],
        n_draws = if (!is.null(object$draws)) posterior::ndraws(object$draws)
      )
    ),
    class = "tall_nn_summary"
  )
}

#' @rdname summary.tall_nn
#' @export
print.tall_nn_summary <- function(x, digits = 3, ...) {
  check_no_dots(...)
  print_nn_header(x$fit, x$n_draws)
  print_nn_lines(x, digits)
  if (!is.null(x$rhat) && !anyNA(x$rhat)) {
    shown <- rbind(
      `R-hat` = stats::quantile(x$rhat, c(0, 0.5, 0.9, 1)),
      `effective draws` = round(stats::quantile(x$ess_bulk, c(0, 0.5, 0.9, 1)))
    )
    colnames(shown) <- c("least", "median", "90 %", "largest")
    cat("\nPredictions at ", length(x$rhat), " rows of the data:\n", sep = "")
    print(signif(shown, digits + 1))
  }
  print_footer(x$fit, brief = TRUE)
  print_prediction_note(x)
  invisible(x)
}

#' @export
print.tall_nn <- function(x, digits = 3, ...) {
  check_no_dots(...)
  small <- summary(x)
  print_nn_header(x, small$n_draws)
  print_nn_lines(small, digits)
  print_footer(x, brief = TRUE)
  print_prediction_note(x$checked)
  invisible(x)
}

print_nn_header <- function(fit, n_draws) {
  response <- if (!is.null(fit$response_levels)) {
    paste0("; ", length(fit$response_levels), " levels")
  }
  cat(
    "Network: ", widths_text(fit$widths), ", ", fit$activation, ", ",
    format_count(fit$n_coef), " weights", response, "\n",
    sep = ""
  )
  print_header(fit, n_draws)
}

print_nn_lines <- function(x, digits) {
  number <- function(value) format(signif(value, digits))
  what <- paste0(nn_traits(x$fit)$error_words, " ")
  if (!is.null(x$error)) {
    n <- NROW(x$fit$check_rows$y)
    where <- if (n < x$fit$n_data) {
      paste("At", count_noun(n, "row"), "of the")
    } else {
      "On the"
    }
    cat(where, " training data: ", what, number(x$error), ",\n", sep = "")
    cat("  mean epistemic sd ", number(x$sd_epistemic), sep = "")
    if (!is.null(x$sigma)) {
      cat(", noise sd (sigma) ", number(x$sigma[["mean"]]), sep = "")
    }
    cat("\n")
  }
}
