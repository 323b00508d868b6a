# tall_factorize(): ratings from a formula, and what one does with the fit.

#' Predict ratings by Bayesian matrix factorisation
#'
#' Samples a factorisation of ratings from a formula and a data frame, and
#' predicts other ratings while it runs.
#'
#' @param formula (formula) `rating ~ user + item`: the names of three columns,
#'   in this order, or expressions such as `factor(user)`.
#' @param data (data frame) The ratings, a row for each; see [model_bpmf()] for
#'   ids.
#' @param rank (whole number) The number of factors.
#' @param newdata (data frame or `NULL`) Pairs whose ratings are predicted
#'   during the run, with the columns of user and item; with that of the ratings
#'   the run also shows its root mean squared error.
#' @param ... Passed on to [model_bpmf()] or [model_pmf()]: `alpha`, `mu0`,
#'   `a0`, `b0`, `gibbs_every`.
#' @param model (string) `"bpmf"`: factors with sampled means; `"pmf"`: factors
#'   and biases.
#' @param kernel,gradient,subsample,schedule The parts of the run, see
#'   [sg_sample()]. Gradient and minibatches default to [gradient_simple()] and
#'   a hundredth of the ratings (at least 32), without replacement.
#' @param iter,warmup,thin,chains,cores,seed,refresh As in [sg_sample()].
#' @param init (string, numeric vector, matrix or `NULL`) `"default"` or
#'   `"authors"`, see [model_bpmf()], or starting points as in [sg_sample()].
#' @param every (whole number) Iterations from one look at `newdata` to the
#'   next.
#' @param clip (`TRUE`, `FALSE` or two numbers) Are the predictions of each draw
#'   clipped to the range of the ratings, or to the range given, before they are
#'   averaged? Averages of unclipped ones are kept as well.
#' @param keep (string) What is kept of the parameters. `"snapshots"`: draws of
#'   the means and precisions of the factors, and some whole states, from which
#'   other pairs are predicted; `"hyper"`: no states; `"none"`: running means
#'   and standard deviations only; `"all"`: every draw of every parameter, which
#'   is large.
#' @param snapshots (whole number) The most states to keep, over all chains,
#'   evenly spread after warmup: 8 bytes for each parameter.
#' @param monitor (list or `NULL`) More to watch: functions as in [monitors],
#'   evaluated at the same iterations.
#' @param keep_data (`TRUE` or `FALSE`) Keep the ratings in the fit, so that a
#'   fit read from a file can go on? 16 bytes for each.
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
#' @return A [`tall_fit`][tall_fit] of class `tall_factorize`. [predict()] gives
#'   the predictions, `fit$monitor` the errors along the run.
#' @section Conditions: `tall_error_input` for a formula or columns that are not
#' as described, missing ratings or ids, and those of [sg_sample()];
#' `tall_warning_ratings` for users or items without ratings.
#' @references
#' Mauri & Zanella (2024). Robust approximate sampling via stochastic gradient
#' Barker dynamics. *AISTATS*.
#' @seealso [predict.tall_factorize()], [model_bpmf()]
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
  ...,
  model = c("bpmf", "pmf"),
  kernel = kernel_sgbd(sqrt(5e-4)),
  gradient = NULL,
  subsample = NULL,
  schedule = schedule_constant(),
  iter = 5000,
  warmup = floor(iter / 2),
  thin = 10,
  chains = 4,
  cores = getOption("mc.cores", 1L),
  seed = NULL,
  init = NULL,
  every = 10,
  clip = TRUE,
  keep = c("snapshots", "hyper", "none", "all"),
  snapshots = 60,
  monitor = NULL,
  keep_data = TRUE,
  refresh = getOption("tallbayes.refresh", 1)
) {
  call <- rlang::current_env()
  check_flag(keep_data)
  model <- check_choice(model, c("bpmf", "pmf"))
  keep <- check_choice(keep, c("snapshots", "hyper", "none", "all"))
  every <- check_count(every)
  chains <- check_count(chains, most = count_limits$chains)
  snapshots <- check_count(snapshots)
  check_spec(kernel, "tall_kernel", "kernel_*()")
  parts <- check_rating_formula(formula, call)
  ratings <- rating_columns(parts, data, call)
  held_out <- new_pairs(parts, newdata, ratings, call)
  ratings <- held_out$data
  recipe <- list(
    name = model,
    rank = rank,
    given = list(...),
    init = if (is.character(init)) init else "default"
  )
  built <- rlang::inject(
    build_named_factors(!!!recipe, ratings = ratings, call = call)
  )
  range <- check_clip(clip, ratings$rating, call)
  look <- new_rating_monitor(
    built,
    held_out,
    range,
    snapshots = if (keep == "snapshots") {
      max(1, floor(snapshots / chains))
    } else {
      0
    }
  )
  if (!gradient_is_full(gradient) && !kernel_is_metropolis(kernel)) {
    subsample <- subsample %||%
      subsample_uniform(default_size(built), replace = FALSE)
  }
  fit <- sample_model(
    built,
    kernel,
    gradient,
    subsample,
    schedule,
    iter = iter,
    warmup = warmup,
    thin = thin,
    chains = chains,
    cores = cores,
    seed = seed,
    init = if (!is.character(init)) init,
    keep = if (keep == "none") "none" else "draws",
    variables = if (keep %in% c("snapshots", "hyper")) hyper_variables(built),
    monitor = rating_monitors(look, monitor, every, call),
    refresh = refresh,
    call = call
  )
  fit$formula <- formula
  fit$parts <- parts
  fit$newdata <- held_out$frame
  fit$range <- range
  fit$keep <- keep
  of_model <- c("shape", "ids", "rated", "center", "alpha", "rating_range")
  fit[of_model] <- built[of_model]
  fit$baseline <- held_out_baseline(held_out, built$center)
  fit$data <- if (keep_data) c(recipe, list(ratings = light_ratings(ratings)))
  class(fit) <- c("tall_factorize", class(fit))
  seal_fit(fit)
}

# With row numbers in half the memory.
light_ratings <- function(ratings) {
  for (side in c("user", "item")) {
    storage.mode(ratings[[side]]$index) <- "integer"
  }
  ratings
}

#' @export
rebuild_model.tall_factorize <- function(fit) {
  data <- fit$data
  if (is.null(data)) {
    return(NULL)
  }
  for (side in c("user", "item")) {
    storage.mode(data$ratings[[side]]$index) <- "double"
  }
  # what there was to warn of has been said when the model was new
  suppressWarnings(
    rlang::inject(build_named_factors(!!!data, call = caller_env())),
    classes = "tall_warning_ratings"
  )
}

# model_bpmf() or model_pmf() with the arguments that a user gave by name.
build_named_factors <- function(name, ratings, rank, given, init, call) {
  constructor <- list(bpmf = model_bpmf, pmf = model_pmf)[[name]]
  defaults <- formals(constructor)
  known <- setdiff(names(defaults), c("user", "item", "rating", "rank", "init"))
  check_dots_known(given, known, call)
  value <- function(arg) {
    if (arg %in% names(given)) given[[arg]] else defaults[[arg]]
  }
  build_factors(
    name,
    ratings,
    rank,
    alpha = value("alpha"),
    mu0 = if (name == "bpmf") value("mu0") else 0,
    a0 = value("a0"),
    b0 = value("b0"),
    init = init,
    gibbs_every = value("gibbs_every"),
    call = call
  )
}

# The means and precisions, which come last.
hyper_variables <- function(model) {
  s <- model$shape
  rows <- (s[["n_user"]] + s[["n_item"]]) * (s[["rank"]] + s[["bias"]])
  model$variables[seq(rows + 1, model$n_dim)]
}
