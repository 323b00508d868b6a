# Predictions of networks: tables, and draws of outputs, means and responses.

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
check_nn_unused <- function(offset = NULL, trials = NULL, cores = 1) {
  check_cores(cores, arg = "cores")
  given <- list(offset = offset, trials = trials)
  for (name in names(given)) {
    if (!is.null(given[[name]])) {
      abort_expected(
        given[[name]],
        "NULL",
        paste0("`tall_nn()` takes no ", name, "."),
        arg = name
      )
    }
  }
}

# Means and standard deviations over the draws, as predict.tall_glm() has them.
nn_moments <- function(fit, newdata, type, se.fit, draws) {
  x <- nn_rows(fit, newdata)
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
  noise <- response_variance(nn_family(fit), mu, aux = chosen$aux)
  variance <- epistemic + drop(crossprod(noise, chosen$weights))
  quantiles <- nn_traits(fit)$quantiles
  if (is.null(quantiles)) {
    bounds <- column_quantiles(mu, probs)
  } else {
    bounds <- vapply(
      probs,
      function(p) quantiles(mu, chosen$aux, chosen$weights, p),
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

nn_matrix <- function(fit, newdata, draws, f) {
  check_own_size(fit, newdata, draws)
  x <- nn_rows(fit, newdata)
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
  aux <- choose_draws(object, draws, resample = TRUE)$aux
  out <- with_seed(seed, nn_responses(object, mu, aux))
  dimnames(out) <- dimnames(mu)[1:2]
  out
}

nn_responses <- function(fit, mu, aux) {
  out <- find_response(fit$likelihood)$draw(mu, aux, list())
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
