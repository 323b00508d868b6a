# Modes by minibatches: ADAM and stochastic gradient ascent. For models without
# a Hessian, and for data of which a full pass costs too much.

# As find_mode() lays them out; see there for the update equations. options: see
# search_options(). label: of the progress bar, see search_label(); NULL: none.
# rows: those that minibatches are of, if not all; they then stand for all.
mode_stochastic <- function(
  model,
  start,
  options,
  cores,
  label,
  rows = NULL
) {
  s <- options$settings
  max_iter <- options$max_iter
  n_data <- model$n_data
  n_pool <- if (is.null(rows)) n_data else length(rows)
  size <- min(n_pool, batch_rows(s$batch_size, n_data))
  weight <- n_data / size
  step <- switch(
    options$method,
    adam = adam_rule(s$learning_rate, s$decay, s$beta),
    sgd = sgd_rule(s$learning_rate, s$decay)
  )
  theta <- start
  watch <- search_recorder(max_iter, size, n_data, label)
  for (k in seq_len(max_iter)) {
    index <- sample.int(n_pool, size, useHash = size <= n_pool / 2)
    if (!is.null(rows)) {
      index <- rows[index]
    }
    here <- model_evaluate(
      model,
      theta,
      "posterior",
      index,
      weight,
      needs_finite = FALSE
    )
    gradient <- drop(here$gradient)
    check_search_gradient(gradient, k, model)
    theta <- theta + step(gradient, k)
    watch$at(k, here$log_density, gradient)
  }
  final <- model_evaluate(model, theta)
  has_curvature <- model_info(model)$has_curvature
  mode <- new_mode(
    model,
    new_expansion(
      theta,
      final$log_density,
      drop(final$gradient),
      if (has_curvature) proper_hessian(model, theta, cores = cores)
    ),
    new_search(
      options$method,
      max_iter * size / n_data + 1 + has_curvature,
      max_iter
    )
  )
  mode$trace <- watch$result()
  mode$distance <- mode_distance(mode, drop(final$gradient))
  mode$converged <- is.na(mode$distance) || mode$distance < sqrt(model$n_dim)
  mode
}

# The trace of a search at some 200 of its steps, and its bar, which lasts as
# long as the frame that it is made in: $at(step, log_density, gradient) and
# $result(). size: rows of a step.
search_recorder <- function(
  n_step,
  size,
  n_data,
  label,
  frame = caller_env()
) {
  every <- max(1, floor(n_step / 200))
  trace <- matrix(NA_real_, floor(n_step / every), 4)
  running <- NULL
  bar <- progress_bar(label, n_step, !is.null(label), frame)
  at <- function(step, log_density, gradient) {
    # of one minibatch it is noisy
    running <<- if (is.null(running)) {
      log_density
    } else {
      0.9 * running + 0.1 * log_density
    }
    if (step %% every != 0) {
      return(invisible())
    }
    bar$set(step)
    norm <- sqrt(sum(gradient^2))
    trace[step / every, ] <<- c(step, step * size / n_data, running, norm)
  }
  result <- function() {
    trace <- as.data.frame(trace)
    names(trace) <- c("iteration", "passes", "log_posterior", "gradient_norm")
    trace
  }
  list(at = at, result = result)
}

check_search_gradient <- function(gradient, step, model) {
  bad <- which(!is.finite(gradient))
  if (length(bad) > 0) {
    abort_status(
      "nonfinite",
      iteration = step,
      at = new_place(model$coordinates[[bad[[1]]]], gradient[[bad[[1]]]]),
      detail = "The learning rate is too large: the search ran away."
    )
  }
}

# Whose bar a run shows when its `refresh` says so.
search_label <- function(refresh) {
  if (refresh > 0) "Searching"
}

# How far from the mode, in posterior standard deviations: sqrt(g' Sigma g).
mode_distance <- function(mode, gradient) {
  if (is.null(mode$chol)) {
    return(NA_real_)
  }
  sqrt(sum(forwardsolve(mode$chol, gradient)^2))
}

# h_k = h_0 / (1 + k / k_0); constant without k_0
learning_rate_at <- function(learning_rate, decay, k) {
  learning_rate / (1 + if (is.null(decay)) 0 else k / decay)
}

adam_rule <- function(learning_rate, decay, beta, epsilon = 1e-8) {
  first <- second <- 0
  function(gradient, k) {
    first <<- beta[[1]] * first + (1 - beta[[1]]) * gradient
    second <<- beta[[2]] * second + (1 - beta[[2]]) * gradient^2
    learning_rate_at(learning_rate, decay, k) *
      (first / (1 - beta[[1]]^k)) /
      (sqrt(second / (1 - beta[[2]]^k)) + epsilon)
  }
}

sgd_rule <- function(learning_rate, decay) {
  function(gradient, k) {
    learning_rate_at(learning_rate, decay, k) * gradient
  }
}

#' Plot the search for a mode
#'
#' @param x ([`tall_mode`][find_mode()]) A mode.
#' @param type (string) `"log_posterior"` or `"gradient_norm"`, against passes
#'   over the data. For ADAM and SGD the log posterior is a running average of
#'   its minibatch estimates.
#' @param ... Unused.
#'
#' @return A ggplot object.
#' @examplesIf requireNamespace("ggplot2", quietly = TRUE)
#' x <- cbind(1, rnorm(500))
#' model <- model_glm(x, rbinom(500, 1, 0.5), family = "bernoulli")
#' mode <- find_mode(model, "adam", learning_rate = 0.02, max_iter = 500)
#' plot(mode)
#' @export
plot.tall_mode <- function(x, type = c("log_posterior", "gradient_norm"), ...) {
  check_no_dots(...)
  type <- check_choice(type, c("log_posterior", "gradient_norm"))
  rlang::check_installed("ggplot2", "to plot a mode")
  if (is.null(x$trace)) {
    abort_tall(
      "unsupported",
      c(
        "This mode has no trace.",
        i = "Find it by {.code find_mode(model, \"adam\")} or another stochastic
             method."
      )
    )
  }
  trace <- data.frame(passes = x$trace$passes, value = x$trace[[type]])
  label <- c(log_posterior = "log posterior", gradient_norm = "gradient norm")
  plot <- ggplot2::ggplot(
    trace,
    ggplot2::aes(x = .data[["passes"]], y = .data[["value"]])
  ) +
    ggplot2::geom_line() +
    ggplot2::labs(x = "passes over the data", y = label[[type]])
  if (type == "gradient_norm") {
    plot <- plot + ggplot2::scale_y_log10()
  }
  plot
}

# ADAM where a front end trains before it samples; `s` are its settings.
train_mode <- function(model, start, train_iter, s, cores, label, rows = NULL) {
  settings <- stochastic_settings(
    model,
    "adam",
    batch_size = min(s$batch, model$n_data),
    learning_rate = s$learning_rate,
    decay = train_iter / 10
  )
  options <- search_options(model, "adam", train_iter, settings)
  mode_stochastic(model, start, options, cores, label, rows)
}

# As many passes as the settings say, but not too few iterations.
default_train_iter <- function(model, s) {
  max(s$min_train, ceiling(s$epochs * model$n_data / s$batch))
}
