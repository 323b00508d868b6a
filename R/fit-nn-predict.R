# predict() of networks: a table of means and of what is not known.

#' Predictions of a network
#'
#' Means, epistemic and total standard deviations, and intervals, as a table.
#' Draws and everything else are as for other regressions, see
#' [posterior_epred()][posterior-predict], [log_lik()][log-lik] and
#' [fitted()][fitted-values].
#'
#' @param object (`tall_nn`) The fit, from [tall_nn()].
#' @param newdata (data frame or `NULL`) Where to predict; `NULL`: the data of
#'   the fit, if it kept them.
#' @param level,prob (number between 0 and 1 or `NULL`) Probability of the
#'   intervals; two names for one argument. `NULL`: 0.9 for the table, 0.95 for
#'   those of other types.
#' @param draws,ndraws (whole number or `NULL`) Use that many draws, evenly
#'   spaced; two names for one argument. `NULL`: all for the table, else as
#'   [predict()][predict.tall_glm] of other regressions.
#' @param type (string) `"table"`: means, standard deviations and intervals, as
#'   a data frame; `"link"` or `"response"`: posterior means alone, as
#'   [predict()][predict.tall_glm] of a fit of [tall_glm()] has them.
#' @param se.fit (`TRUE` or `FALSE`) Posterior standard deviations as well? With
#'   `type = "link"` or `"response"`; the table has them.
#' @param cores (whole number) Threads, as [predict()][predict.tall_glm] of
#'   other regressions takes them; networks are evaluated in one.
#' @param to,overwrite (string or list, `TRUE` or `FALSE`) Write the predictions
#'   to a file or a table, block by block: see [predictions-to].
#' @param ... Of other types, arguments of [predict()][predict.tall_glm];
#'   networks take no `offset`.
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
#' @return A data frame with a row for each row of `newdata` (`NA` where a
#'   covariate is missing) and the columns `mean`, `sd_epistemic`, `sd`,
#'   `lower`, `upper`; for a categorical response `class`, the most probable
#'   one, and for each level `mean.<level>` and `sd_epistemic.<level>`. With
#'   `type = "link"` or `"response"` a numeric vector, for a categorical
#'   response a matrix with a column for each level, or with `se.fit = TRUE` a
#'   list of `fit` and `se.fit`.
#' @section Conditions:
#' `tall_error_input` if a covariate is missing in `newdata` or has a new level;
#' `tall_error_stale` if there are no data.
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
#' predict(fit, data.frame(x = c(0, 1, 5)), level = 0.5)
#' @export
predict.tall_nn <- function(
  object,
  newdata = NULL,
  type = c("table", "link", "response"),
  se.fit = FALSE,
  draws = NULL,
  ...,
  level = NULL,
  prob = NULL,
  ndraws = NULL,
  cores = getOption("mc.cores", 1L),
  to = NULL,
  overwrite = FALSE
) {
  type <- check_choice(type, c("table", "link", "response"))
  level <- one_level(level, prob) %||% if (type == "table") 0.9 else 0.95
  if (type != "table") {
    return(predict.tall_regression(
      as_of_now(object),
      newdata,
      type,
      se.fit,
      draws,
      ...,
      level = level,
      ndraws = ndraws,
      cores = cores,
      to = to,
      overwrite = overwrite
    ))
  }
  to <- check_to(to, overwrite)
  check_table_only(se.fit, ...)
  cores <- check_cores(cores)
  object <- as_of_now(object)
  n_draw <- check_draws(object, draws, ndraws)
  chosen <- choose_draws(object, n_draw, cores = cores)
  if (is.null(to)) {
    return(nn_table(object, newdata, chosen, level))
  }
  asked <- ask_rows(object, newdata)
  make <- function(joined) {
    mu <- predictor(object, joined[[1]], chosen, "response")
    list(columns = as.list(nn_predictions(object, mu, chosen, level)))
  }
  n_class <- max(1, length(predicted_names(object, "response")))
  size <- nrow(chosen$theta) * n_class
  write_rows(asked, list(chosen), make, to, size = size, pads = asked$is_own)
}

# Of two names for one argument; NULL where neither is given.
one_level <- function(level, prob) {
  if (!is.null(level) && !is.null(prob)) {
    abort_input(
      "{.arg level} and {.arg prob} are the same argument: give one.",
      argument = "prob",
      value = prob
    )
  }
  if (!is.null(level)) {
    check_prob(level)
  } else if (!is.null(prob)) {
    check_prob(prob)
  }
}

check_table_only <- function(se.fit, ..., offset = NULL) {
  check_flag(se.fit, arg = "se.fit")
  check_no_dots(..., .ignore = no_groups)
  if (!is.null(offset)) {
    abort_expected(offset, "NULL", "`tall_nn()` takes no offset.")
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
}

nn_table <- function(fit, newdata, draws, prob) {
  asked <- ask_rows(fit, newdata)
  if (asked$passes) {
    found <- over_rows(asked, draws, function(rows) {
      lapply(nn_table_of(fit, rows, draws, prob), unfactor)
    })
    levels <- fit$response_levels
    found$class <- if (!is.null(found$class)) factor(found$class, levels)
    return(as.data.frame(found, check.names = FALSE, optional = TRUE))
  }
  rows <- asked_rows(asked)
  out <- nn_table_of(fit, rows, draws, prob)
  if (is.null(newdata)) nn_pad(fit$na_action, out) else out
}

unfactor <- function(x) {
  if (is.factor(x)) as.character(x) else x
}

nn_table_of <- function(fit, rows, draws, prob) {
  blocks <- list()
  each_block(nrow(rows$x), nrow(draws$theta), size = 2^20, function(at) {
    mu <- predictor(fit, some_rows(rows, at), draws, "response")
    blocks[[length(blocks) + 1]] <<- nn_predictions(fit, mu, draws, prob)
  })
  out <- do.call(rbind, blocks)
  rownames(out) <- rownames(rows$x)
  out
}

# What only networks ask of a response.
nn_traits <- function(fit) {
  find_response(fit$family)$network
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
  if (has_class_response(fit)) {
    return(class_predictions(fit, mu, chosen$weights))
  }
  mean <- drop(crossprod(mu, chosen$weights))
  centred <- sweep(mu, 2, mean)
  epistemic <- drop(crossprod(centred^2, chosen$weights))
  probs <- interval_probs(prob)
  noise <- response_variance(fit$family, mu, aux = chosen$aux)
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
