# What one does with a fit of tall_nn().

#' Predictions of a network
#'
#' Means, epistemic and total standard deviations, and intervals; draws for the
#' generics of \pkg{rstantools}.
#'
#' @param object (`tall_nn`) The fit, from [tall_nn()].
#' @param newdata (data frame or `NULL`) Where to predict; `NULL`: the data of
#'   the fit, if it kept them.
#' @param prob (number between 0 and 1) Probability of the intervals.
#' @param draws,ndraws (whole number or `NULL`) Use that many draws, evenly
#'   spaced; two names for one argument. `NULL`: all.
#' @param type (string) Of `predict()`: `"table"`: means, standard deviations
#'   and intervals, as a data frame; `"link"` or `"response"`: posterior means
#'   alone, as [predict()][predict.tall_glm] of a fit of [tall_glm()] has them.
#'   Of `residuals()`: as for [tall_glm()][fitted-values].
#' @param se.fit (`TRUE` or `FALSE`) Posterior standard deviations as well? With
#'   `type = "link"` or `"response"`; the table has them.
#' @param transform (`TRUE` or `FALSE`) Apply the inverse link?
#' @param offset,trials (`NULL`) As for [tall_glm()], but networks have neither:
#'   others than `NULL` are refused.
#' @param cores (whole number) As for [tall_glm()]; one thread does the work.
#' @param seed (whole number or `NULL`) Seed of the responses. `NULL` goes on
#'   with R's generator; otherwise its state is what it was before.
#' @param pointwise (`TRUE` or `FALSE`) Return a function of rows and draws
#'   instead of a matrix?
#' @param ... Unused: other arguments are refused, but for `re_formula` and
#'   `re.form`, which may be `NULL` or `NA`: there are no group-level terms.
#'
#' @details With \eqn{f_d} the network at draw \eqn{d}: `mean` is the mean of
#'   the \eqn{f_d}, `sd_epistemic` their standard deviation (Bieringer et al.,
#'   2023, section 3), which is what more data would take away. `sd` is the
#'   total predictive standard deviation, \eqn{\sqrt{\mathrm{sd\_epistemic}^2 +
#'   \mathrm{mean}_d\, \sigma_d^2}}{sqrt(sd_epistemic^2 + mean sigma_d^2)}, and
#'   `lower` and `upper` the central interval of a new response, by the exact
#'   quantiles of the mixture of the \eqn{N(f_d, \sigma_d^2)}{N(f_d,
#'   sigma_d^2)}. For a Bernoulli response the \eqn{f_d} are probabilities of
#'   the second level, and the interval is theirs; `sd` is
#'   \eqn{\sqrt{\mathrm{mean} (1 - \mathrm{mean})}}{sqrt(mean (1 - mean))}.
#'
#' @return `predict()`: a data frame with a row for each row of `newdata` (`NA`
#'   where a covariate is missing) and the columns `mean`, `sd_epistemic`, `sd`,
#'   `lower`, `upper`; for a categorical response `class`, the most probable
#'   one, and for each level `mean.<level>` and `sd_epistemic.<level>`. With
#'   `type = "link"` or `"response"` a numeric vector, for a categorical
#'   response a matrix with a column for each level, or with `se.fit = TRUE` a
#'   list of `fit` and `se.fit`.
#'   `posterior_linpred()`, `posterior_epred()`, `posterior_predict()`: a matrix
#'   with a row for each draw and a column for each observation; for a
#'   categorical response the first two are arrays of draws x observations x
#'   levels and the last has the numbers of levels. `predictive_interval()`: two
#'   columns. `log_lik()`: a matrix of draws x observations, or with `pointwise
#'   = TRUE` a function as [log-lik] has it. `predictive_error()`: the response
#'   minus `posterior_predict()`. `bayes_R2()`: a number for each draw, as for
#'   [tall_glm()][bayes_R2.tall_glm]. `fitted()`: `mean`, or a matrix of
#'   probabilities. `residuals()`: the response minus `mean`; for a categorical
#'   response 1 minus the probability of the level that came.
#' @section Conditions:
#' `tall_error_input` if a covariate is missing in `newdata` or has a new level;
#' `tall_error_stale` if there are no data; `tall_error_memory` if `newdata` is
#' `NULL` and rows x draws exceeds 5e7 numbers.
#' @references
#' Bieringer, Kasieczka, Steffen & Trabs (2023). AdamMCMC: combining Metropolis
#' adjusted Langevin with momentum-based optimization. arXiv:2312.14027.
#' @examples
#' data <- data.frame(x = runif(200, -2, 2))
#' data$y <- sin(2 * data$x) + rnorm(200, sd = 0.1)
#' fit <- tall_nn(
#'   y ~ x,
#'   data,
#'   hidden = 10,
#'   train_iter = 500,
#'   iter = 200,
#'   chains = 2,
#'   seed = 1
#' )
#' predict(fit, data.frame(x = c(0, 1, 5)), prob = 0.5)
#' @name predict.tall_nn
NULL

#' @rdname predict.tall_nn
#' @export
predict.tall_nn <- function(
  object,
  newdata = NULL,
  type = c("table", "link", "response"),
  se.fit = FALSE,
  draws = NULL,
  offset = NULL,
  ...,
  prob = 0.9,
  ndraws = NULL,
  cores = getOption("mc.cores", 1L)
) {
  check_no_dots(..., .ignore = no_groups)
  prob <- check_prob(prob)
  type <- check_choice(type, c("table", "link", "response"))
  check_flag(se.fit)
  check_nn_unused(offset, cores = cores)
  draws <- check_draws(object, draws, ndraws)
  if (type != "table") {
    return(nn_moments(object, newdata, type, se.fit, draws))
  }
  if (se.fit) {
    abort_input(
      c(
        "{.arg se.fit} is for {.code type = \"link\"} or {.val response}.",
        i = "The table has the column {.code sd_epistemic}."
      ),
      argument = "se.fit",
      value = se.fit
    )
  }
  x <- nn_rows(object, newdata)
  chosen <- choose_draws(object, draws)
  blocks <- list()
  each_block(nrow(x), nrow(chosen$theta), size = 2^20, function(rows) {
    mu <- nn_means(object, x[rows, , drop = FALSE], chosen$theta)
    blocks[[length(blocks) + 1]] <<- nn_predictions(object, mu, chosen, prob)
  })
  out <- do.call(rbind, blocks)
  rownames(out) <- rownames(x)
  if (is.null(newdata)) nn_pad(object$na_action, out) else out
}

# Arguments of tall_glm()'s methods that mean nothing for networks.
check_nn_unused <- function(
  offset = NULL,
  trials = NULL,
  cores = 1,
  call = caller_env()
) {
  check_cores(cores, arg = "cores", call = call)
  given <- list(offset = offset, trials = trials)
  for (name in names(given)) {
    if (!is.null(given[[name]])) {
      abort_expected(
        given[[name]],
        "NULL",
        paste0("`tall_nn()` takes no ", name, "."),
        arg = name,
        call = call
      )
    }
  }
}

# Means and standard deviations over the draws, as predict.tall_glm() has them.
nn_moments <- function(fit, newdata, type, se.fit, draws, call = caller_env()) {
  x <- nn_rows(fit, newdata, call)
  chosen <- choose_draws(fit, draws)
  n_level <- max(1, length(fit$response_levels) *
    (has_classes(nn_family(fit))))
  mean <- sd <- matrix(0, nrow(x), n_level)
  f <- if (type == "link") nn_linear else nn_means
  n_each <- nrow(chosen$theta) * n_level
  each_block(nrow(x), n_each, size = 2^20, function(rows) {
    value <- f(fit, x[rows, , drop = FALSE], chosen$theta)
    value <- matrix(value, nrow(chosen$theta))
    centre <- drop(crossprod(value, chosen$weights))
    mean[rows, ] <<- centre
    if (se.fit) {
      square <- crossprod(sweep(value, 2, centre)^2, chosen$weights)
      sd[rows, ] <<- sqrt(drop(square))
    }
  })
  shape <- function(value) {
    if (n_level > 1) {
      dimnames(value) <- list(rownames(x), fit$response_levels)
    } else {
      value <- stats::setNames(drop(value), rownames(x))
    }
    if (is.null(newdata)) stats::napredict(fit$na_action, value) else value
  }
  if (se.fit) list(fit = shape(mean), se.fit = shape(sd)) else shape(mean)
}

# Rows that na.exclude left out of the fit come back as NA.
nn_pad <- function(na_action, table) {
  out <- lapply(table, function(column) {
    stats::napredict(na_action, stats::setNames(column, rownames(table)))
  })
  names <- names(out[[1]])
  out <- as.data.frame(lapply(out, unname), check.names = FALSE)
  names(out) <- names(table)
  rownames(out) <- names
  out
}

# One row of predict()'s table for each column of mu (draws x rows, or draws x
# rows x levels).
nn_predictions <- function(fit, mu, chosen, prob) {
  if (has_classes(nn_family(fit))) {
    return(class_predictions(fit, mu, chosen$weights))
  }
  mean <- drop(crossprod(mu, chosen$weights))
  centred <- sweep(mu, 2, mean)
  epistemic <- drop(crossprod(centred^2, chosen$weights))
  probs <- interval_probs(prob)
  noise <- response_variance(nn_family(fit), mu, aux = chosen$sigma)
  variance <- epistemic + drop(crossprod(noise, chosen$weights))
  quantiles <- nn_traits(fit)$quantiles
  if (is.null(quantiles)) {
    bounds <- column_quantiles(mu, probs)
  } else {
    bounds <- vapply(
      probs,
      function(p) quantiles(mu, chosen$sigma, chosen$weights, p),
      numeric(ncol(mu))
    )
    bounds <- matrix(bounds, ncol(mu))
  }
  data.frame(
    mean = mean,
    sd_epistemic = sqrt(epistemic),
    sd = sqrt(variance),
    lower = bounds[, 1],
    upper = bounds[, 2]
  )
}

class_predictions <- function(fit, mu, weights) {
  levels <- fit$response_levels
  shape <- dim(mu)
  flat <- matrix(mu, shape[[1]])
  mean <- drop(crossprod(flat, weights))
  sd <- sqrt(drop(crossprod(sweep(flat, 2, mean)^2, weights)))
  mean <- matrix(
    mean,
    shape[[2]],
    dimnames = list(NULL, paste0("mean.", levels))
  )
  sd <- matrix(
    sd,
    shape[[2]],
    dimnames = list(NULL, paste0("sd_epistemic.", levels))
  )
  best <- max.col(replace(mean, is.na(mean), -1), "first")
  best[is.na(mean[, 1])] <- NA
  data.frame(
    class = factor(levels[best], levels),
    mean,
    sd,
    check.names = FALSE
  )
}

# The p-quantile of sum_d w_d N(mu_di, sigma_d^2) for each column i: Newton's
# method kept inside a bracket.
mixture_quantiles <- function(mu, sigma, weights, p) {
  column <- function(x) drop(crossprod(x, weights))
  width <- stats::qnorm(1e-9) * max(sigma)
  low <- apply(mu, 2, min) + width
  high <- apply(mu, 2, max) - width
  mean <- column(mu)
  sd <- sqrt(column(mu^2 + sigma^2) - mean^2)
  at <- mean + stats::qnorm(p) * sd
  bad <- is.na(at)
  low[bad] <- high[bad] <- at[bad] <- 0
  mu[, bad] <- 0
  for (k in 1:100) {
    z <- (rep(at, each = nrow(mu)) - mu) / sigma
    beyond <- column(stats::pnorm(z)) - p
    low <- ifelse(beyond < 0, at, low)
    high <- ifelse(beyond > 0, at, high)
    step <- beyond / column(stats::dnorm(z) / sigma)
    next_at <- at - step
    outside <- !is.finite(next_at) | next_at <= low | next_at >= high
    next_at <- ifelse(outside & beyond != 0, (low + high) / 2, next_at)
    next_at <- ifelse(beyond == 0, at, next_at)
    moved <- max(abs(next_at - at)) / max(sigma)
    at <- next_at
    if (moved < 1e-9) {
      break
    }
  }
  at[bad] <- NA
  at
}

# ---- rows and draws of them --------------------------------------------------

# Standardised inputs of new rows, or of the fit's own.
nn_rows <- function(fit, newdata, call = caller_env()) {
  if (is.null(newdata)) {
    check_has_data(fit, "newdata", call)
    x <- stats::model.matrix(
      fit$terms,
      fit$frame,
      contrasts.arg = fit$contrasts
    )
  } else {
    x <- frame_rows(fit, newdata, call)$x
  }
  nn_standardise(nn_inputs(x), fit$scaling)
}

# Outputs at standardised inputs in the units of the response, or on the scale
# of the logit; draws x rows, with classes draws x rows x levels.
nn_linear <- function(fit, x, theta) {
  out <- network_outputs(fit, theta, unname(x))
  # gemm may turn a missing input into any kind of NaN
  out[, !stats::complete.cases(x), ] <- NA
  if (has_classes(nn_family(fit))) {
    return(out)
  }
  dim(out) <- dim(out)[1:2]
  fit$scaling$y_center + fit$scaling$y_scale * out
}

nn_means <- function(fit, x, theta) {
  response_mean(nn_family(fit), nn_linear(fit, x, theta))
}

# The response of a network: of a fit, or of what becomes one.
nn_family <- function(x) {
  new_family(find_response(x$likelihood))
}

nn_traits <- function(x) {
  find_response(x$likelihood)$network
}

nn_matrix <- function(fit, newdata, draws, f, call = caller_env()) {
  check_own_size(fit, newdata, draws, call)
  x <- nn_rows(fit, newdata, call)
  theta <- choose_draws(fit, draws, resample = TRUE)$theta
  out <- f(fit, x, theta)
  names <- draw_names(list(x = x))
  if (has_classes(nn_family(fit))) {
    names <- c(names, list(fit$response_levels))
  }
  dimnames(out) <- names
  out
}

#' @rdname predict.tall_nn
#' @exportS3Method rstantools::posterior_linpred
posterior_linpred.tall_nn <- function(
  object,
  transform = FALSE,
  newdata = NULL,
  draws = NULL,
  offset = NULL,
  ...,
  ndraws = NULL,
  cores = getOption("mc.cores", 1L)
) {
  check_flag(transform)
  check_no_dots(..., .ignore = no_groups)
  check_nn_unused(offset, cores = cores)
  draws <- check_draws(object, draws, ndraws)
  nn_matrix(object, newdata, draws, if (transform) nn_means else nn_linear)
}

#' @rdname predict.tall_nn
#' @exportS3Method rstantools::posterior_epred
posterior_epred.tall_nn <- function(
  object,
  newdata = NULL,
  draws = NULL,
  offset = NULL,
  ...,
  ndraws = NULL,
  cores = getOption("mc.cores", 1L)
) {
  check_no_dots(..., .ignore = no_groups)
  check_nn_unused(offset, cores = cores)
  draws <- check_draws(object, draws, ndraws)
  nn_matrix(object, newdata, draws, nn_means)
}

#' @rdname predict.tall_nn
#' @exportS3Method rstantools::posterior_predict
posterior_predict.tall_nn <- function(
  object,
  newdata = NULL,
  draws = NULL,
  offset = NULL,
  trials = NULL,
  seed = NULL,
  ...,
  ndraws = NULL,
  cores = getOption("mc.cores", 1L)
) {
  check_no_dots(..., .ignore = no_groups)
  check_nn_unused(offset, trials, cores)
  draws <- check_draws(object, draws, ndraws)
  seed <- check_seed(seed)
  mu <- nn_matrix(object, newdata, draws, nn_means)
  sigma <- choose_draws(object, draws, resample = TRUE)$sigma
  out <- with_seed(seed, nn_responses(object, mu, sigma))
  dimnames(out) <- dimnames(mu)[1:2]
  out
}

nn_responses <- function(fit, mu, sigma) {
  out <- find_response(fit$likelihood)$draw(mu, sigma, list())
  matrix(out, nrow(mu))
}

#' @rdname predict.tall_nn
#' @exportS3Method rstantools::predictive_interval
predictive_interval.tall_nn <- function(
  object,
  prob = 0.9,
  newdata = NULL,
  draws = NULL,
  offset = NULL,
  trials = NULL,
  seed = NULL,
  ...,
  ndraws = NULL,
  cores = getOption("mc.cores", 1L)
) {
  check_no_dots(..., .ignore = no_groups)
  check_is_number(object, "predictive_interval")
  check_nn_unused(offset, trials, cores)
  prob <- check_prob(prob)
  seed <- check_seed(seed)
  if (!is.null(nn_traits(object)$quantiles)) {
    # exact: no response is drawn
    table <- predict.tall_nn(
      object,
      newdata,
      draws = draws,
      prob = prob,
      ndraws = ndraws
    )
    out <- as.matrix(table[c("lower", "upper")])
  } else {
    yrep <- posterior_predict.tall_nn(
      object,
      newdata,
      draws,
      seed = seed,
      ndraws = ndraws
    )
    out <- column_quantiles(yrep, interval_probs(prob))
    rownames(out) <- colnames(yrep)
  }
  colnames(out) <- percent(interval_probs(prob), "")
  out
}

#' @rdname predict.tall_nn
#' @exportS3Method rstantools::log_lik
log_lik.tall_nn <- function(
  object,
  newdata = NULL,
  draws = NULL,
  offset = NULL,
  pointwise = FALSE,
  ...,
  ndraws = NULL
) {
  check_flag(pointwise)
  check_no_dots(..., .ignore = no_groups)
  check_nn_unused(offset)
  draws <- check_draws(object, draws, ndraws)
  if (!pointwise) {
    check_own_size(object, newdata, draws)
  }
  y <- nn_observed(object, newdata)
  x <- nn_rows(object, newdata)
  chosen <- choose_draws(object, draws, resample = TRUE)
  if (pointwise) {
    light <- nn_network(object)
    f <- function(rows, theta, sigma) {
      nn_log_lik(light, x[rows, , drop = FALSE], y[rows], theta, sigma)
    }
    return(loo_function(object, nrow(x), chosen, f))
  }
  out <- nn_log_lik(object, x, y, chosen$theta, chosen$sigma)
  dimnames(out) <- draw_names(list(x = x))
  out
}

# Draws x rows; sigma is NULL where it is not sampled, or not there.
nn_log_lik <- function(fit, x, y, theta, sigma) {
  response_log_density(
    nn_family(fit),
    nn_linear(fit, x, theta),
    y,
    aux = sigma
  )
}

# Responses of the rows, as the core counts them (classes from 0 on).
nn_observed <- function(fit, newdata, call = caller_env()) {
  if (is.null(newdata)) {
    check_has_data(fit, "newdata", call)
    frame <- fit$frame
  } else {
    if (!is.data.frame(newdata)) {
      abort_expected(newdata, "a data frame", arg = "newdata", call = call)
    }
    frame <- prediction_frame(fit, fit$terms, newdata, call)
  }
  nn_response_values(frame, fit, call)
}

nn_response_values <- function(frame, source, call) {
  name <- response_name(frame)
  response <- stats::model.response(frame, "any")
  levels <- source$response_levels
  if (!is.null(levels)) {
    check_levels(as.character(response), levels, name, call)
    response <- factor(as.character(response), levels)
  }
  network_response(response, source$likelihood, name, call)$values
}

# ---- losses ------------------------------------------------------------------

#' @rdname losses
#' @export
log_loss.tall_nn <- function(
  object,
  newdata,
  statistic = c("ergodic", "draw"),
  ...
) {
  check_no_dots(...)
  check_given(newdata)
  if (!is.data.frame(newdata)) {
    return(NextMethod())
  }
  statistic <- check_choice(statistic, c("ergodic", "draw"))
  test <- nn_test_rows(object, newdata)
  chosen <- choose_draws(object)
  sum <- numeric(nrow(chosen$theta))
  average <- numeric(nrow(test$x))
  each_block(nrow(test$x), length(sum), size = 2^20, function(rows) {
    log_p <- nn_log_lik(
      object,
      test$x[rows, , drop = FALSE],
      test$y[rows],
      chosen$theta,
      chosen$sigma
    )
    sum <<- sum + rowSums(log_p)
    average[rows] <<- drop(crossprod(exp(log_p), chosen$weights))
  })
  if (statistic == "draw") -sum / length(average) else -mean(log(average))
}

#' @rdname losses
#' @export
rmse.tall_nn <- function(
  object,
  newdata,
  statistic = c("ergodic", "draw"),
  range = NULL,
  ...
) {
  check_no_dots(...)
  check_is_number(object, "rmse")
  statistic <- check_choice(statistic, c("ergodic", "draw"))
  range <- check_range(range)
  test <- nn_test_rows(object, newdata)
  chosen <- choose_draws(object)
  square <- numeric(nrow(chosen$theta))
  average <- numeric(nrow(test$x))
  each_block(nrow(test$x), length(square), size = 2^20, function(rows) {
    x <- test$x[rows, , drop = FALSE]
    mu <- clip(nn_means(object, x, chosen$theta), range)
    square <<- square + rowSums(sweep(mu, 2, test$y[rows])^2)
    average[rows] <<- drop(crossprod(mu, chosen$weights))
  })
  if (statistic == "draw") {
    sqrt(square / length(average))
  } else {
    sqrt(mean((average - test$y)^2))
  }
}

# Held-out rows: x as the network reads it, y in the units of the data. `source`
# is a fit, or what nn_source() gives; omit: leave rows with missing values out.
nn_test_rows <- function(
  source,
  newdata,
  call = caller_env(),
  omit = FALSE
) {
  check_given(newdata, arg = "newdata", call = call)
  if (!is.data.frame(newdata)) {
    abort_expected(newdata, "a data frame", arg = "newdata", call = call)
  }
  frame <- prediction_frame(source, source$terms, newdata, call)
  if (omit) {
    complete <- stats::complete.cases(frame)
    frame <- frame[complete, , drop = FALSE]
    newdata <- newdata[complete, , drop = FALSE]
    attr(frame, "terms") <- source$terms
  }
  check_covariates(frame, call)
  list(
    x = nn_rows(source, newdata, call),
    y = nn_response_values(frame, source, call)
  )
}

# Held-out data frames of monitors, standardised as the data.
resolve_nn_monitors <- function(monitor, source, call) {
  if (!is.list(monitor)) {
    return(monitor) # NULL, or refused later
  }
  lapply(monitor, function(one) {
    if (!inherits(one, "tall_monitor") || !is.data.frame(one$newdata)) {
      return(one)
    }
    if (one$name == "rmse") {
      check_is_number(source, "monitor_rmse", call)
    }
    test <- held_out_parts(source, one$newdata, call, read = nn_test_rows)
    structure(
      list(
        name = one$name,
        newdata = test$x,
        y = test$y,
        range = one$range,
        network = nn_network(source)
      ),
      class = c("tall_monitor_network", "tall_monitor")
    )
  })
}

#' @export
evaluate_monitor.tall_monitor_network <- function(
  monitor,
  model,
  parameter,
  theta,
  state
) {
  network <- monitor$network
  y <- monitor$y
  weights <- function(at) t(at[seq_len(network$n_coef)])
  if (monitor$name == "rmse") {
    mu <- nn_means(network, monitor$newdata, weights(parameter))
    mu <- clip(mu, monitor$range)
    state <- add_to_mean(state, drop(mu))
    error <- function(mu) sqrt(mean((mu - y)^2))
    return(list(draw = error(mu), ergodic = error(state$mean), state = state))
  }
  log_p <- function(at) {
    sigma <- if (has_aux(nn_family(network))) {
      network$sigma %||%
        (network$scaling$y_scale * exp(at[[network$n_coef + 1]]))
    }
    drop(nn_log_lik(network, monitor$newdata, y, weights(at), sigma))
  }
  here <- log_p(parameter)
  if (monitor$name == "log_loss") {
    state <- add_to_mean(state, exp(here))
    ergodic <- -mean(log(state$mean))
    return(list(draw = -mean(here), ergodic = ergodic, state = state))
  }
  state <- add_to_mean(state, parameter)
  list(draw = mean(here), ergodic = mean(log_p(state$mean)), state = state)
}

# ---- checks ------------------------------------------------------------------

#' @export
fit_response.tall_nn <- function(fit) {
  nn_observed(fit, NULL)
}

# The mean of the weights is no network.
#' @export
loo_approximation.tall_nn <- function(fit) {
  list(loo_approximation = "lpd", loo_approximation_draws = 10)
}

#' @rdname predict.tall_nn
#' @exportS3Method rstantools::predictive_error
predictive_error.tall_nn <- function(
  object,
  newdata = NULL,
  draws = NULL,
  offset = NULL,
  seed = NULL,
  ...,
  ndraws = NULL,
  cores = getOption("mc.cores", 1L)
) {
  check_no_dots(..., .ignore = no_groups)
  check_is_number(object, "predictive_error")
  check_nn_unused(offset, cores = cores)
  yrep <- posterior_predict.tall_nn(
    object,
    newdata,
    draws,
    seed = seed,
    ndraws = ndraws
  )
  rep(nn_observed(object, newdata), each = nrow(yrep)) - yrep
}

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
  spread <- mean_spread(n, nrow(chosen$theta), function(rows) {
    nn_means(object, x[rows, , drop = FALSE], chosen$theta)
  })
  # the mean of mu (1 - mu), which is mean mu less mean mu^2
  residual <- if (is.null(chosen$sigma)) {
    spread$mean * (1 - spread$mean) - spread$square / n
  } else {
    chosen$sigma^2
  }
  explained <- spread$square / (n - 1)
  explained / (explained + residual)
}

check_is_number <- function(fit, f, call = caller_env()) {
  if (has_classes(nn_family(fit))) {
    abort_tall(
      "unsupported",
      c(
        "{.fn {f}} is for numeric and binary responses, not for classes.",
        i = "{.fn posterior_epred} has the probabilities of the classes, and
             {.fn log_loss} a loss."
      ),
      call = call
    )
  }
}

#' @rdname pp_check.tall_glm
#' @exportS3Method bayesplot::pp_check
pp_check.tall_nn <- pp_check.tall_glm

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
    yrep = nn_responses(fit, mu, chosen$sigma)
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

# ---- print and summary -------------------------------------------------------

# The rows on which chains are compared, standardised; `parts` as nn_parts() has
# them.
nn_check_rows <- function(parts) {
  n <- nrow(parts$x)
  rows <- unique(round(seq(1, n, length.out = nn_settings$rows_checked)))
  list(
    x = parts$x[rows, , drop = FALSE],
    y = parts$response$values[rows]
  )
}

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
    values <- choose_draws(object)$sigma
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

# ---- pictures ----------------------------------------------------------------

#' Plot a network
#'
#' @param x (`tall_nn`) The fit, from [tall_nn()].
#' @param type (string) `"calibration"`: how often responses lie in the central
#'   predictive intervals, against their probability; for classes, how often an
#'   event of a predicted probability happens. `"prediction"`: mean, epistemic
#'   and total intervals against the one numeric covariate of the formula. Or
#'   any type of [plot.tall_fit()].
#' @param newdata (data frame or `NULL`) Calibration: held-out data, with
#'   responses. Prediction: where to draw the curves. `NULL`: the data of the
#'   fit, for curves an even grid over them and a little beyond.
#' @param prob (number between 0 and 1) Probability of the intervals of
#'   `"prediction"`.
#' @param ... Passed on to [plot.tall_fit()].
#'
#' @return A ggplot object.
#' @section Conditions:
#' `tall_error_unsupported` for `"prediction"` with several covariates.
#' @examplesIf requireNamespace("ggplot2", quietly = TRUE)
#' data <- data.frame(x = runif(200, -2, 2))
#' data$y <- sin(2 * data$x) + rnorm(200, sd = 0.1)
#' fit <- tall_nn(y ~ x, data, hidden = 5, train_iter = 300, iter = 100)
#' plot(fit, "prediction")
#' plot(fit, "calibration")
#' @export
plot.tall_nn <- function(
  x,
  type = c(
    "calibration",
    "prediction",
    "trace",
    "dens",
    "intervals",
    "noise",
    "size",
    "monitor"
  ),
  newdata = NULL,
  prob = 0.9,
  ...
) {
  own <- c("calibration", "prediction")
  type <- check_plot_type(type, c(own, own_plots))
  if (!type %in% own) {
    return(NextMethod())
  }
  check_no_dots(...)
  prob <- check_prob(prob)
  rlang::check_installed("ggplot2", "to plot a fit")
  if (type == "calibration") {
    plot_calibration(x, newdata)
  } else {
    plot_prediction(x, newdata, prob)
  }
}

plot_calibration <- function(fit, newdata) {
  has_intervals <- !is.null(nn_traits(fit)$cdf)
  table <- if (has_intervals) {
    interval_calibration(fit, newdata)
  } else {
    class_calibration(fit, newdata)
  }
  where <- if (is.null(newdata)) "the training data" else "new data"
  base <- ggplot2::ggplot(
    table,
    ggplot2::aes(.data[["nominal"]], .data[["observed"]])
  ) +
    ggplot2::geom_abline(slope = 1, linetype = "dashed", colour = "grey50") +
    ggplot2::coord_equal(xlim = c(0, 1), ylim = c(0, 1))
  if (has_intervals) {
    base +
      ggplot2::geom_line(colour = "steelblue", linewidth = 1) +
      ggplot2::labs(
        x = "probability of the predictive interval",
        y = paste("share of responses inside, on", where)
      )
  } else {
    base +
      ggplot2::geom_pointrange(
        ggplot2::aes(ymin = .data[["low"]], ymax = .data[["high"]]),
        colour = "steelblue"
      ) +
      ggplot2::labs(
        x = "predicted probability",
        y = paste("share of events, on", where)
      )
  }
}

# The predictive distribution function at the response is uniform if all is
# well.
interval_calibration <- function(fit, newdata, call = caller_env()) {
  y <- nn_observed(fit, newdata, call)
  x <- nn_rows(fit, newdata, call)
  chosen <- choose_draws(fit)
  u <- numeric(length(y))
  each_block(nrow(x), nrow(chosen$theta), size = 2^20, function(rows) {
    mu <- nn_means(fit, x[rows, , drop = FALSE], chosen$theta)
    each <- rep(y[rows], each = nrow(mu))
    below <- nn_traits(fit)$cdf(each, mu, chosen$sigma)
    u[rows] <<- drop(crossprod(below, chosen$weights))
  })
  nominal <- seq(0, 1, by = 0.02)
  away <- 2 * abs(u - 0.5)
  data.frame(
    nominal = nominal,
    observed = vapply(nominal, function(p) mean(away <= p, na.rm = TRUE), 0)
  )
}

# All levels together, in tenths of the predicted probability; bars of two
# standard errors.
class_calibration <- function(fit, newdata, call = caller_env()) {
  y <- nn_observed(fit, newdata, call)
  table <- predict.tall_nn(fit, newdata)
  if (is.null(newdata)) {
    table <- table[rownames(fit$frame), ]
  }
  if (has_classes(nn_family(fit))) {
    p <- as.matrix(table[paste0("mean.", fit$response_levels)])
    event <- col(p) == y + 1
  } else {
    p <- table$mean
    event <- y == 1
  }
  bin <- cut(as.numeric(p), seq(0, 1, by = 0.1), include.lowest = TRUE)
  mean_of <- function(x) as.numeric(tapply(as.numeric(x), bin, mean))
  n <- as.numeric(table(bin))
  observed <- mean_of(event)
  se <- sqrt(observed * (1 - observed) / n)
  out <- data.frame(
    nominal = mean_of(p),
    observed = observed,
    low = pmax(0, observed - 2 * se),
    high = pmin(1, observed + 2 * se)
  )
  out[n > 0, ]
}

plot_prediction <- function(fit, newdata, prob, call = caller_env()) {
  name <- all.vars(stats::delete.response(fit$terms))
  name <- intersect(name, fit$columns)
  is_one <- length(name) == 1 &&
    !has_classes(nn_family(fit)) &&
    !name %in% names(fit$xlevels)
  if (!is_one) {
    abort_tall(
      "unsupported",
      c(
        "{.code type = \"prediction\"} needs one numeric covariate and one
         output; the formula has {length(name)} covariate{?s}.",
        i = "{.code predict(fit, newdata)} has the numbers to draw."
      ),
      call = call
    )
  }
  check_has_data(fit, NULL, call)
  seen <- nn_seen(fit, name)
  if (is.null(newdata)) {
    range <- range(seen$x)
    range <- range + c(-0.1, 0.1) * diff(range)
    newdata <- data.frame(seq(range[[1]], range[[2]], length.out = 300))
    names(newdata) <- name
  }
  table <- predict.tall_nn(fit, newdata, prob = prob)
  table$x <- newdata[[name]]
  z <- stats::qnorm(interval_probs(prob)[[2]])
  table$inner_low <- table$mean - z * table$sd_epistemic
  table$inner_high <- table$mean + z * table$sd_epistemic
  band <- function(low, high, fill) {
    ggplot2::geom_ribbon(
      ggplot2::aes(ymin = .data[[low]], ymax = .data[[high]]),
      fill = fill
    )
  }
  has_total <- !is.null(nn_traits(fit)$quantiles)
  ggplot2::ggplot(table, ggplot2::aes(x = .data[["x"]])) +
    (if (has_total) band("lower", "upper", "#d6e4f0")) +
    (if (has_total) {
      band("inner_low", "inner_high", "#8fb8d8")
    } else {
      band("lower", "upper", "#8fb8d8")
    }) +
    ggplot2::geom_point(
      ggplot2::aes(y = .data[["y"]]),
      data = seen,
      size = 0.6,
      alpha = 0.5
    ) +
    ggplot2::geom_line(ggplot2::aes(y = .data[["mean"]]), colour = "#1f4e79") +
    ggplot2::labs(
      x = name,
      y = response_name(fit$frame),
      subtitle = paste0(
        percent(prob),
        " intervals",
        if (has_total) ": epistemic (dark), total (light)"
      )
    )
}

# At most 1,000 of the data, evenly spaced.
nn_seen <- function(fit, name) {
  x <- if (name %in% names(fit$frame)) {
    fit$frame[[name]]
  } else {
    # a transformed covariate: as the data had it, where they are still found
    eval(as.name(name), eval(fit$call$data, environment(fit$formula)))
  }
  y <- nn_observed(fit, NULL)
  rows <- unique(round(seq(1, length(y), length.out = 1000)))
  data.frame(x = as.numeric(x)[rows], y = y[rows])
}
