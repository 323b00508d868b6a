# predict(): moments over the draws, classes and intervals.

#' Predictions
#'
#' Posterior means of the linear predictor or of the expected response, of fits
#' of [tall_glm()], [tall_glmer()], [tall_polr()], [tall_multinom()] and
#' [tall_nn()] alike.
#'
#' @param object (`tall_regression`) The fit.
#' @param newdata (data frame, [source][tall_source] or `NULL`) Where to
#'   predict; `NULL`: the data of the fit, if it kept them. Of fits of
#'   [tall_glm()] a source, such as a [tall_stream()], a lazy table of
#'   \pkg{dbplyr} or a matrix with the names of columns, is read block by block.
#'   A matrix with the columns of `x` for a fit of [tall_glm.fit()].
#' @param type (string) `"link"`: the linear predictor; `"response"`: its
#'   inverse link, averaged over the posterior draws (a probability for binomial
#'   responses, probabilities of classes). Of classes also `"class"`: the most
#'   probable one, and `"probs"`, another name of `"response"`. `NULL`:
#'   `"class"` for [tall_polr()] and [tall_multinom()], `"link"` for others; of
#'   networks see [predict.tall_nn()].
#' @param se.fit (`TRUE` or `FALSE`) Posterior standard deviations as well? Of
#'   `type = "class"` there are none.
#' @param draws,ndraws (whole number or `NULL`) Use that many draws, evenly
#'   spaced; two names for one argument. `NULL`: all where moments follow from
#'   those of the parameters, as of the linear predictor of [tall_glm()]; else
#'   as far as rows x draws stays below 5e7, and 400 at the least: so many also
#'   where only a pass can tell how many rows there are.
#' @param offset (numeric vector or `NULL`) Offset of the new rows, when the
#'   fit's was given as an argument rather than in the formula. `NULL`: that
#'   argument, evaluated in `newdata`; that of the fit's own rows is known.
#' @param interval (string) Intervals as well, as of [stats::predict.lm()]?
#'   `"confidence"`: of the linear predictor or the expected response;
#'   `"prediction"`: of responses, from R's generator, as
#'   [predictive_interval()][posterior-predict] (with `type = "response"`).
#' @param level (number between 0 and 1) Their probability.
#' @param re_formula,re.form (`NULL`, `NA` or `~0`, or a formula) Of
#'   [tall_glmer()]: with all effects of groups; for the population, without
#'   them; or with those of some of the fit's group-level terms, such as
#'   `~ (1 | g)`, all of a factor's effects or its intercept alone. Two names
#'   for one argument. Of models without groups `NULL` and `NA` are the same.
#' @param allow_new_levels (`TRUE` or `FALSE`) Of [tall_glmer()]: may groups of
#'   `newdata` be new? Their effects are drawn from the population's
#'   distribution, the same for all rows of a group.
#' @param seed (whole number or `NULL`) Seed of the draws of effects and of
#'   responses. `NULL`: of effects the fit's; responses go on with R's
#'   generator.
#' @param cores (whole number) Threads. The results do not depend on it.
#' @param to,overwrite (string or list, `TRUE` or `FALSE`) Write the predictions
#'   to a file or a table, block by block, and return what was written where:
#'   see [predictions-to].
#' @param ... Unused: other arguments are refused.
#'
#' @details Means and standard deviations of the linear predictor of
#' [tall_glm()] follow from those of the draws, at the cost of a row for each
#' row of `newdata`. Others take rows x draws evaluations, in blocks: the memory
#' they need does not grow with rows x draws.
#'
#' Effects of groups are drawn from their distribution given the parameters and
#' the data, draw by draw (see [ranef()][tall_glmer-methods]): what is predicted
#' for a group's rows in one draw goes together.
#'
#' Where the fit read its rows by passes over a source, so do `predict()`,
#' [fitted()][fitted-values], [residuals()][fitted-values] and their kin, which
#' hold a block of rows and their own result. What makes a matrix with a column
#' for each row, or the model frame, brings the rows to memory, and is refused
#' where that takes more than 5e7 numbers. Rows of a lazy table are streamed in
#' the order in which the database hands them out, which is one where
#' `dplyr::arrange()` says so; [augment()][fit-accessors] makes predictions of
#' such a table in the database and leaves them there.
#'
#' @return A numeric vector with a value for each row, `NA` where a covariate is
#'   missing, without names if the rows are those of a source; of classes a
#'   matrix with a column for each class or predictor, or for `type = "class"` a
#'   factor. With `se.fit = TRUE` a list of `fit` and `se.fit`. With intervals a
#'   matrix with the columns `fit`, `lwr` and `upr` in its place. Without
#'   `newdata` and with `na.action = na.exclude`, rows left out of the fit are
#'   `NA`.
#' @section Conditions:
#' `tall_error_input` if a covariate is missing in `newdata` or has a new level,
#' or where a group is new; `tall_error_stale` if there are no data;
#' `tall_error_source` if the fit's source has other rows than it had.
#' @seealso [posterior_epred()][posterior-predict] for the draws themselves.
#' @examples
#' fit <- tall_glm(am ~ wt, data = mtcars, family = binomial(), seed = 1)
#' predict(fit, data.frame(wt = c(2, 3)), type = "response", se.fit = TRUE)
#'
#' d <- data.frame(g = rep(1:60, each = 10), x = rnorm(600))
#' d$y <- rbinom(600, 1, plogis(d$x + rnorm(60)[d$g]))
#' fit <- tall_glmer(y ~ x + (1 | g), data = d, family = binomial(), seed = 1)
#' predict(fit, data.frame(x = 0, g = 1:3), type = "response")
#' predict(fit, data.frame(x = 0, g = 1), re_formula = NA)
#'
#' fit <- tall_multinom(Species ~ Sepal.Width, iris, iter = 500, seed = 1)
#' predict(fit, iris[c(1, 60, 120), ])
#' @aliases predict.tall_glm predict.tall_glmer predict.tall_classes
#' @importFrom stats predict
#' @export
predict.tall_regression <- function(
  object,
  newdata = NULL,
  type = NULL,
  se.fit = FALSE,
  draws = NULL,
  offset = NULL,
  ...,
  interval = c("none", "confidence", "prediction"),
  level = 0.95,
  re_formula = re.form,
  allow_new_levels = FALSE,
  seed = NULL,
  re.form = NULL,
  ndraws = NULL,
  cores = getOption("mc.cores", 1L),
  to = NULL,
  overwrite = FALSE
) {
  to <- check_to(to, overwrite)
  types <- predict_types(object)
  type <- check_choice(type %||% types[[1]], types, arg = "type")
  check_flag(se.fit)
  interval <- check_interval(interval, type, object)
  level <- check_prob(level)
  check_no_dots(..., .ignore = no_dpar)
  seed <- check_seed(seed)
  groups <- group_request(object, re_formula, allow_new_levels, seed)
  cores <- check_cores(cores)
  n_draw <- check_draws(object, draws, ndraws)
  is_new <- interval == "prediction"
  needs <- if (is_new) "sizes" else "design"
  asked <- ask_rows(object, newdata, offset, groups = groups, needs = needs)
  scale <- if (type == "link") "link" else "response"
  chosen <- choose_draws(
    object,
    n_draw %||% usual_draws(object, asked$n, scale),
    cores = cores
  )
  made <- list(
    chosen = chosen,
    moments = function(rows) {
      predictor_moments(object, rows, chosen, scale, se.fit)
    },
    is_class = type == "class",
    has_sd = se.fit && type != "class"
  )
  if (interval != "none") {
    few <- n_draw %||% affordable_draws(object, asked$n, most = 1e7)
    made$many <- choose_draws(object, few, resample = TRUE, cores = cores)
    made$draw <- if (is_new) response_draws else draws_on(scale)
    made$level <- level
  }
  if (is.null(to)) {
    predicted(asked, made, seed)
  } else {
    write_predictions(asked, made, seed, to)
  }
}

# made: what is made of each row: moments(rows), list(fit, se.fit), over the
# draws `chosen`; is_class, has_sd: in which form; for intervals alone many
# (draws of equal weight), draw(fit, rows, draws) and level.
predicted <- function(asked, made, seed) {
  out <- over_rows(asked, made$chosen, made$moments)
  if (made$is_class) {
    out$fit <- likely_class(asked$fit, out$fit)
  }
  if (!is.null(made$many)) {
    bounds <- with_seed(
      seed,
      row_quantiles(asked, made$many, made$level, made$draw)
    )
    out$fit <- cbind(fit = out$fit, lwr = bounds$lower, upr = bounds$upper)
  }
  if (made$has_sd) out[c("fit", "se.fit")] else out$fit
}

write_predictions <- function(asked, made, seed, to) {
  fit <- asked$fit
  has_bounds <- !is.null(made$many)
  make <- function(joined) {
    out <- made$moments(joined[[1]])
    if (made$is_class) {
      out$fit <- likely_class(fit, out$fit)
    }
    out <- out[c("fit", if (made$has_sd) "se.fit")]
    if (has_bounds) {
      bounds <- quantiles_of_rows(
        fit, joined[[2]], made$many, made$level, made$draw
      )
      out <- c(out, list(lwr = bounds$lower, upr = bounds$upper))
    }
    list(columns = prediction_columns(out))
  }
  sets <- c(list(made$chosen), if (has_bounds) list(made$many))
  with_seed(seed, write_rows(asked, sets, make, to, pads = asked$is_own))
}

predict_types <- function(fit) {
  if (inherits(fit, "tall_classes")) {
    c("class", "probs", "link", "response")
  } else {
    c("link", "response")
  }
}

draws_on <- function(scale) {
  force(scale)
  function(fit, rows, draws) predictor(fit, rows, draws, scale)
}

# Where the link is the identity, both types are of responses.
check_interval <- function(interval, type, fit) {
  known <- c("none", "confidence", "prediction")
  interval <- check_choice(interval, known)
  if (interval == "none") {
    return(interval)
  }
  check_is_number(fit, "predict(interval = )")
  is_scale <- type == "response" || fit$family$link == "identity"
  if (interval == "prediction" && !is_scale) {
    abort_input(
      c(
        "{.code interval = \"prediction\"} is of responses: it needs
         {.code type = \"response\"}.",
        i = "Of the linear predictor there is
             {.code interval = \"confidence\"}."
      ),
      argument = "interval",
      value = interval
    )
  }
  interval
}

# list(lower, upper): central quantiles of what draw(fit, rows, draws) makes of
# each row, draws x rows.
row_quantiles <- function(asked, draws, prob, draw, pads = asked$is_own) {
  over_rows(asked, draws, pads = pads, f = function(rows) {
    quantiles_of_rows(asked$fit, rows, draws, prob, draw)
  })
}

quantiles_of_rows <- function(fit, rows, draws, prob, draw) {
  probs <- interval_probs(prob)
  n <- nrow(rows$x)
  out <- matrix(0, n, 2)
  each_block(n, nrow(draws$theta), function(at) {
    values <- draw(fit, some_rows(rows, at), draws)
    out[at, ] <<- column_quantiles(values, probs)
  })
  list(lower = out[, 1], upper = out[, 2])
}
