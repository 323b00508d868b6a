# tall_factorize(): the front end for ratings.

#' Predict ratings by Bayesian matrix factorisation
#'
#' Samples a factorisation of ratings from a formula and a data frame or other
#' rows, and predicts other ratings while it runs.
#'
#' @param formula (formula) `rating ~ user + item`: the names of three columns,
#'   in this order, or expressions such as `factor(user)`.
#' @param data (data frame or [source][tall_source]) The ratings, a row for
#'   each; see [model_bpmf()] for ids. Paths of CSV or Parquet files, a
#'   [tall_stream()], a lazy table, or a list of such: see *Ratings of a
#'   source*.
#' @param rank (whole number) The number of factors.
#' @param newdata (data frame or `NULL`) Pairs whose ratings are predicted
#'   during the run, with the columns of user and item; with that of the ratings
#'   the run also shows its root mean squared error.
#' @param model (string) `"bpmf"`: factors with sampled means; `"pmf"`: factors
#'   and biases.
#' @param alpha,mu0,a0,b0,gibbs_every As in [model_bpmf()] and [model_pmf()],
#'   which has no `mu0`.
#' @param init (string, numeric vector, matrix or `NULL`) `"default"` or
#'   `"authors"`, see [model_bpmf()], or starting points as in [sg_sample()].
#' @param every (whole number) Iterations from one look at `newdata` to the
#'   next.
#' @param clip (`TRUE`, `FALSE` or two numbers) Are the predictions of each draw
#'   clipped to the range of the ratings, or to the range given, before they are
#'   averaged? Averages of unclipped ones are kept as well.
#' @param snapshots (whole number or `NULL`) The most whole states to keep, over
#'   all chains, evenly spread after warmup, from which other pairs are
#'   predicted: 8 bytes for each parameter. `NULL`: 60, none where every draw of
#'   every parameter is kept.
#' @param keep_data (`TRUE` or `FALSE`) Keep the ratings in the fit, so that a
#'   fit read from a file can go on? 16 bytes for each, none with `store`.
#' @param store (string or `NULL`) The path of a new file for the ratings, which
#'   are then never all in memory: see *Ratings of a source*.
#' @param ... The run: arguments of [sg_sample()] but `model`, with the same
#'   defaults except for these: `kernel = kernel_sgbd(sqrt(5e-4))`, `iter =
#'   5000`, `thin = 10`; `gradient` and `subsample`: [gradient_simple()] and a
#'   hundredth of the ratings (at least 32), without replacement; `variables`:
#'   the means and precisions of the factors, `NULL` keeps every parameter,
#'   which is large. `monitor` holds more to watch: functions as in [monitors],
#'   evaluated at the same iterations as `newdata`. Other arguments are refused.
#'
#' @details The default kernel is vanilla stochastic gradient Barker dynamics
#' with the step size that Mauri & Zanella (2024) chose for ratings from 1 to 5
#' with `alpha = 3`. For ratings on another scale give an `alpha` that fits, one
#' over the variance of a rating about its mean, and try step sizes: `plot(fit,
#' "monitor")` shows what they do to the error.
#'
#' With \eqn{\tilde R^{(t)}}{R(t)} the predictions of the draw at iteration
#' \eqn{t}, clipped, and \eqn{T} the rows of `newdata`, the monitor `rmse` has
#' the statistics `draw`, \eqn{\sqrt{|T|^{-1} \sum_T (R - \tilde
#' R^{(t)})^2}}{sqrt(mean_T (R - R(t))^2)}, and, after warmup, `ergodic`, the
#' same for the average of the predictions so far (eqs. 42 and 43).
#'
#' Users and items of `newdata` without a rating in `data` are parameters that
#' only the prior knows; a warning says so.
#'
#' @section Ratings of a source: One pass reads them block by block, numbers
#' users and items as it meets them, and leaves a row number for each and the
#' rating in memory: 16 bytes a rating, some 40 while the model is made, and 16
#' in the model. With `store` it writes them to a file beside that, of which the
#' mean is taken, and from which they are written to `store`, numbered as the
#' sorted labels are: three doubles a rating, which the model maps, and twice
#' that till the file is whole. In memory is then what there is of users and
#' items, their labels among it, and a block of ratings. Draws are to the bit
#' those that the same rows in a data frame have, from any source, with or
#' without `store`.
#'
#' Expressions are evaluated in a block of rows: what depends on other rows, as
#' `rating - mean(rating)`, is refused. `factor(user)` has the levels of all
#' rows, in their order. Factors whose levels differ from block to block have
#' the levels of all, sorted. Tables of a database need an order, as by
#' `dplyr::arrange()`.
#'
#' @return A [`tall_fit`][tall_fit] of class `tall_factorize`. [predict()] gives
#'   the predictions, `fit$monitor` the errors along the run.
#' @section Conditions: `tall_error_input` for a formula or columns that are not
#' as described, missing ratings or ids, with the row of a source, and those of
#' [sg_sample()]; `tall_error_source` for a source that fails or has no rows,
#' `tall_error_memory` where its ratings do not fit in memory, `tall_error_data`
#' for a file that cannot be written; `tall_warning_ratings` for users or items
#' without ratings.
#' @references
#' Mauri & Zanella (2024). Robust approximate sampling via stochastic gradient
#' Barker dynamics. *AISTATS*.
#' @seealso [predict.tall_factorize()], [model_bpmf()],
#'   `vignette("ratings-components-topics")`
#' @examples
#' set.seed(1)
#' ratings <- data.frame(user = rep(1:40, each = 15), item = rep(1:30, 20))
#' taste <- sin(ratings$user) * cos(ratings$item)
#' ratings$rating <- round(3 + 2 * taste + rnorm(600, sd = 0.3))
#' test <- sample(600, 100)
#' fit <- tall_factorize(
#'   rating ~ user + item,
#'   data = ratings[-test, ],
#'   rank = 2,
#'   newdata = ratings[test, ],
#'   iter = 2000,
#'   chains = 2,
#'   seed = 1
#' )
#' fit
#' head(predict(fit))
#' @export
tall_factorize <- function(
  formula,
  data,
  rank = 20,
  newdata = NULL,
  model = c("bpmf", "pmf"),
  alpha = 3,
  mu0 = 0,
  a0 = 1,
  b0 = 5,
  gibbs_every = NULL,
  init = "default",
  every = 10,
  clip = TRUE,
  snapshots = NULL,
  ...,
  keep_data = TRUE,
  store = NULL
) {
  run <- front_run(
    ...,
    .front = tall_factorize,
    .defaults = factorize_run_defaults
  )
  run$kernel <- run$kernel %||% factorize_kernel()
  check_flag(keep_data)
  check_new_store(store, sparse = FALSE)
  model <- check_choice(model, c("bpmf", "pmf"))
  check_no_means(model, missing(mu0))
  every <- check_count(every)
  snapshots <- check_count(snapshots, min = 0, allow_null = TRUE)
  parts <- check_rating_formula(formula)
  written <- written_call(match.call(), "tall_factorize", parent.frame())
  with_new_store(store, {
    ratings <- ratings_of(parts, data, store, run$control$refresh)
    held_out <- new_pairs(parts, newdata, ratings)
    ratings <- held_out$data
    blueprint <- factors_blueprint(
      model,
      rank,
      alpha,
      mu0,
      a0,
      b0,
      init = if (is.character(init)) init else "default",
      gibbs_every = gibbs_every
    )
    built <- build_factors(blueprint, ratings)
    if (!is.character(init)) {
      run["init"] <- list(init)
    }
    if (!"variables" %in% dots_names(...) && !"none" %in% run$control$keep) {
      run$variables <- hyper_variables(built)
    }
    keeps_all <- is.null(run$variables)
    range <- check_clip(clip, built$rating_range)
    snapshots <- snapshots %||% if (keeps_all) 0 else factorize_snapshots
    look <- new_rating_monitor(
      built,
      held_out,
      range,
      snapshots = if (snapshots > 0) {
        max(1, floor(snapshots / run$control$chains))
      } else {
        0
      }
    )
    run$monitor <- rating_monitors(look, run$monitor, every)
    if (!gradient_is_full(run$gradient) && !kernel_is_metropolis(run$kernel)) {
      run$subsample <- run$subsample %||%
        subsample_uniform(default_size(built), replace = FALSE)
    }
    built <- front_model(built, run)
    fit <- sample_model(built, run)
    of_model <- c("shape", "ids", "rated", "center", "alpha", "rating_range")
    front_fit(fit, run, "tall_factorize", written, c(built[of_model], list(
      formula = formula,
      parts = parts,
      newdata = held_out$frame,
      range = range,
      baseline = held_out_baseline(held_out, built$center),
      data = if (keep_data) factorize_data(blueprint, ratings)
    )))
  })
}

# States are large: of every one the means and precisions are kept alone.
factorize_run_defaults <- alist(iter = 5000, thin = 10)
factorize_kernel <- function() kernel_sgbd(sqrt(5e-4))
factorize_snapshots <- 60

# The means of factors are parameters of one of the two models alone.
check_no_means <- function(model, is_missing) {
  if (model == "pmf" && !is_missing) {
    abort_input(
      c(
        "{.arg mu0} is not used with {.code model = \"pmf\"}.",
        i = "Its factors have no means; {.code model = \"bpmf\"} has."
      ),
      argument = "mu0"
    )
  }
}

# What the model is built from again, with row numbers in half the memory.
factorize_data <- function(blueprint, ratings) {
  for (side in rating_sides(ratings)) {
    storage.mode(ratings[[side]]$index) <- "integer"
  }
  c(unclass(blueprint), list(ratings = ratings))
}

# Those whose row numbers are in memory.
rating_sides <- function(ratings) {
  if (is.null(ratings$store)) c("user", "item")
}

#' @export
rebuild_model.tall_factorize <- function(fit) {
  data <- fit$data
  if (is.null(data)) {
    return(NULL)
  }
  for (side in rating_sides(data$ratings)) {
    storage.mode(data$ratings[[side]]$index) <- "double"
  }
  # what there was to warn of has been said when the model was new
  suppressWarnings(
    build_factors(data, data$ratings),
    classes = "tall_warning_ratings"
  )
}

# The means and precisions, which come last.
hyper_variables <- function(model) {
  s <- model$shape
  rows <- (s[["n_user"]] + s[["n_item"]]) * (s[["rank"]] + s[["bias"]])
  model$variables[seq(rows + 1, model$n_dim)]
}
