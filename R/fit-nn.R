# Fits of tall_nn(): summaries of predictions, printing.

# How well predictions agree across chains, on some rows of the data: a list of
# rhat, ess_bulk (a number for each row), error and the mean epistemic sd.
nn_checked <- function(fit) {
  if (is.null(fit$draws)) {
    return(NULL)
  }
  draws <- choose_draws(fit)
  rows <- list(x = fit$check_rows$x)
  mu <- predictor(fit, rows, draws, "response")
  y <- fit$check_rows$y
  shape <- dim(fit$draws)[1:2]
  first <- matrix(mu, nrow(draws$theta))[, seq_along(y), drop = FALSE]
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
  sigma <- if (length(known_aux(object)) > 0 && !is.null(object$draws)) {
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
          c("draws", "unconstrained", "gradients", "saved", "rows", "modes")
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
