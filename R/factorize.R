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

# ---- arguments ---------------------------------------------------------------

# list(rating, user, item): the expressions of rating ~ user + item.
check_rating_formula <- function(formula, call) {
  check_given(formula, arg = "formula", call = call)
  ok <- inherits(formula, "formula") && length(formula) == 3 &&
    is.call(formula[[3]]) && identical(formula[[3]][[1]], quote(`+`)) &&
    length(formula[[3]]) == 3
  if (!ok) {
    abort_expected(
      formula,
      "a formula such as rating ~ user + item",
      seen = if (inherits(formula, "formula")) {
        deparse1(formula)
      } else {
        describe(formula)
      },
      arg = "formula",
      call = call
    )
  }
  list(
    rating = formula[[2]],
    user = formula[[3]][[2]],
    item = formula[[3]][[3]],
    environment = environment(formula)
  )
}

rating_columns <- function(parts, data, call) {
  check_given(data, arg = "data", call = call)
  values <- lapply(c("user", "item", "rating"), function(part) {
    evaluate_part(parts, part, data, "data", call)
  })
  args <- vapply(
    c("user", "item", "rating"),
    function(p) deparse1(parts[[p]]),
    ""
  )
  check_ratings(values[[1]], values[[2]], values[[3]], args, call)
}

evaluate_part <- function(parts, part, data, arg, call) {
  if (!is.data.frame(data)) {
    abort_expected(data, "a data frame", arg = arg, call = call)
  }
  tryCatch(
    eval(parts[[part]], data, parts$environment),
    error = function(e) {
      message <- escape_cli(conditionMessage(e))
      abort_input(
        c(
          "{.arg {arg}} must have the columns of the formula.",
          x = message
        ),
        argument = arg,
        call = call
      )
    }
  )
}

# The pairs to predict during the run: list(frame, user, item (row numbers),
# rating (NULL: not given), data: the ratings of the fit, with rows for users
# and items that are new).
new_pairs <- function(parts, newdata, ratings, call) {
  out <- list(user = numeric(), item = numeric(), data = ratings)
  if (is.null(newdata)) {
    return(out)
  }
  for (side in c("user", "item")) {
    x <- evaluate_part(parts, side, newdata, "newdata", call)
    arg <- deparse1(parts[[side]])
    extended <- extend_ids(ratings[[side]], x, arg, call)
    if (is.null(extended$ids$labels)) {
      # all of them are rows of theta
      check_dense(c(ratings[[side]]$index, extended$index), arg, call)
    }
    out$data[[side]] <- extended$ids
    out[[side]] <- extended$index
  }
  warn_unrated(
    setdiff(out$user, ratings$user$index),
    setdiff(out$item, ratings$item$index),
    call
  )
  out$frame <- pair_frame(parts, newdata, call)
  if (all(all.vars(parts$rating) %in% names(newdata))) {
    rating <- evaluate_part(parts, "rating", newdata, "newdata", call)
    arg <- paste0("newdata$", deparse1(parts$rating))
    out$rating <- check_numeric_vector(rating, arg = arg, call = call)
  }
  out
}

pair_frame <- function(parts, newdata, call) {
  out <- lapply(c("user", "item"), function(side) {
    evaluate_part(parts, side, newdata, "newdata", call)
  })
  names <- vapply(parts[c("user", "item")], deparse1, "")
  stats::setNames(as.data.frame(out), names)
}

# ids (as check_ids() makes them) with rows for those of x that they lack, and
# the rows of x.
extend_ids <- function(ids, x, arg, call) {
  if (is.null(ids$labels)) {
    if (is.character(x) || is.factor(x)) {
      abort_expected(
        x,
        "numbers, as in the data that were fitted",
        arg = arg,
        call = call
      )
    }
    check_id_numbers(x, arg, call)
    index <- as.double(x)
    ids$n <- max(ids$n, index)
  } else {
    x <- check_labels(x, arg, call)
    ids$labels <- union(ids$labels, x)
    ids$n <- as.double(length(ids$labels))
    index <- as.double(match(x, ids$labels))
  }
  list(ids = ids, index = index)
}

check_labels <- function(x, arg, call) {
  x <- as.character(x)
  if (anyNA(x)) {
    abort_value(
      x,
      which(is.na(x))[[1]],
      "not be missing",
      arg = arg,
      call = call
    )
  }
  x
}

warn_unrated <- function(users, items, call) {
  counts <- c(
    if (length(users) > 0) count_noun(length(users), "user"),
    if (length(items) > 0) count_noun(length(items), "item")
  )
  if (length(counts) > 0) {
    what <- paste(counts, collapse = " and ")
    warn_tall(
      "ratings",
      c(
        "{.arg newdata} has {what} without ratings in the data.",
        i = "Their factors are those of the prior."
      ),
      users = users,
      items = items,
      call = call
    )
  }
}

# NULL: no clipping
check_clip <- function(clip, rating, call) {
  if (identical(clip, TRUE)) {
    return(range(rating))
  }
  if (identical(clip, FALSE)) {
    return(NULL)
  }
  if (!is_plain_numeric(clip) || length(clip) != 2 || anyNA(clip) ||
    clip[[1]] >= clip[[2]]) {
    abort_expected(
      clip,
      "TRUE, FALSE or two increasing numbers",
      arg = "clip",
      call = call
    )
  }
  as.double(clip)
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

# ---- looking at the run ------------------------------------------------------

new_rating_monitor <- function(model, held_out, range, snapshots) {
  structure(
    list(
      name = "ratings",
      shape = model$shape,
      center = model$center,
      newdata = as.data.frame(held_out[c("user", "item")]),
      rating = held_out$rating,
      range = range,
      snapshots = snapshots
    ),
    class = c("tall_monitor_ratings", "tall_monitor")
  )
}

# The list for sample_model(); NULL: nothing to look at.
rating_monitors <- function(look, monitor, every, call) {
  is_one <- !is.list(monitor) || inherits(monitor, "tall_monitor")
  if (!is.null(monitor) && is_one) {
    abort_expected(
      monitor,
      "a list such as list(mine = function(theta) ...)",
      arg = "monitor",
      call = call
    )
  }
  taken <- intersect(names(monitor), c("rmse", "every"))
  if (length(taken) > 0) {
    abort_input(
      c(
        "{.arg monitor} must not have an element {.field {taken[[1]]}} here.",
        i = if (taken[[1]] == "every") "Give {.arg every} on its own."
      ),
      argument = "monitor",
      call = call
    )
  }
  has_look <- nrow(look$newdata) > 0 || look$snapshots > 0
  if (!has_look && length(monitor) == 0) {
    return(NULL)
  }
  c(list(every = every), if (has_look) list(rmse = look), monitor)
}

clip_to <- function(x, range) {
  if (is.null(range)) x else pmin(pmax(x, range[[1]]), range[[2]])
}

#' @export
evaluate_monitor.tall_monitor_ratings <- function(
  monitor,
  model,
  parameter,
  theta,
  state
) {
  mean <- monitor$center + drop(factor_means(
    monitor$shape,
    parameter,
    monitor$newdata$user,
    monitor$newdata$item
  ))
  clipped <- clip_to(mean, monitor$range)
  state <- list(
    plain = add_to_moments(state$plain, mean),
    clipped = add_to_moments(state$clipped, clipped),
    states = add_snapshot(state$states, parameter, monitor$snapshots)
  )
  rmse <- function(x) {
    if (!is.null(monitor$rating)) sqrt(mean((monitor$rating - x)^2))
  }
  list(draw = rmse(clipped), ergodic = rmse(state$clipped$mean), state = state)
}

# Running moments, Welford (1962): list(n, mean, square).
add_to_moments <- function(state, x) {
  if (is.null(state)) {
    return(list(n = 1, mean = x, square = numeric(length(x))))
  }
  n <- state$n + 1
  shift <- x - state$mean
  mean <- state$mean + shift / n
  list(n = n, mean = mean, square = state$square + shift * (x - mean))
}

# Every so manyth state, `most` of them: when there are more, every other is
# dropped and the distance doubled, so that they stay evenly spread however long
# the run becomes.
add_snapshot <- function(states, parameter, most) {
  if (most == 0) {
    return(NULL)
  }
  if (is.null(states)) {
    states <- list(seen = 0, every = 1, kept = list())
  }
  states$seen <- states$seen + 1
  if (states$seen %% states$every != 0) {
    return(states)
  }
  if (length(states$kept) == most) {
    states$kept <- states$kept[seq_along(states$kept) %% 2 == 0]
    states$every <- 2 * states$every
    if (states$seen %% states$every != 0) {
      return(states)
    }
  }
  states$kept[[length(states$kept) + 1]] <- parameter
  states
}

# rMSE of the mean rating; NULL without ratings held out
held_out_baseline <- function(held_out, center) {
  if (!is.null(held_out$rating)) sqrt(mean((held_out$rating - center)^2))
}

# ---- predictions -------------------------------------------------------------

#' Predict ratings
#'
#' @param object (`tall_factorize`) The fit, from [tall_factorize()].
#' @param newdata (data frame or `NULL`) Pairs to predict, with the columns of
#'   user and item. `NULL`: those that were given to [tall_factorize()], whose
#'   predictions were averaged over the whole run.
#' @param interval (flag) Add `lower` and `upper`, the limits of an interval for
#'   a new rating?
#' @param level (number between 0 and 1) Its probability.
#' @param clip (`TRUE`, `FALSE`, two numbers or `NULL`) Are predictions of each
#'   draw clipped before they are averaged? `NULL`: as in the fit. For the pairs
#'   of the run either as in the fit, or not at all.
#' @param ... Unused.
#'
#' @details Other pairs than those of the run are predicted from the states that
#' were kept, `keep = "snapshots"` or `"all"`. The interval is that of a normal
#' distribution with the mean and variance of the (unclipped) expected rating,
#' \eqn{1 / \alpha}{1 / alpha} added to the variance, clipped in the end.
#'
#' A user or item that was not in the data gets factors from the prior at each
#' state, drawn with R's generator, and a warning says so: its predictions are
#' those of the average user (item), as wide as the prior.
#'
#' @return A data frame with a row for each pair, in their order: user and item,
#'   `mean` (posterior mean of the expected rating) and `sd` (its posterior
#'   standard deviation, without the noise of a rating), and the interval.
#' @section Conditions:
#' `tall_error_unsupported` if the fit kept nothing to predict from;
#' `tall_warning_ratings` for users and items without ratings.
#' @examples
#' ratings <- data.frame(user = rep(1:30, each = 10), item = rep(1:20, 15))
#' ratings$rating <- 3 + sin(ratings$user) * cos(ratings$item)
#' fit <- tall_factorize(
#'   rating ~ user + item,
#'   ratings,
#'   rank = 2,
#'   iter = 1000,
#'   chains = 2,
#'   seed = 1
#' )
#' predict(fit, data.frame(user = 1:3, item = 2), interval = TRUE)
#' @importFrom stats predict
#' @export
predict.tall_factorize <- function(
  object,
  newdata = NULL,
  interval = FALSE,
  level = 0.9,
  clip = NULL,
  ...
) {
  check_no_dots(...)
  call <- rlang::current_env()
  check_flag(interval)
  level <- check_number(level, min = 0, max = 1)
  found <- if (is.null(newdata)) {
    run_predictions(object, clip, call)
  } else {
    range <- if (is.null(clip)) {
      object$range
    } else {
      check_clip(clip, object$rating_range, call)
    }
    pair_predictions(object, newdata, range, call)
  }
  sd <- function(m) sqrt(m$square / max(1, m$n - 1))
  out <- found$frame
  out$mean <- found$clipped$mean
  out$sd <- sd(found$clipped)
  if (interval) {
    z <- stats::qnorm((1 + level) / 2)
    width <- z * sqrt(sd(found$plain)^2 + 1 / object$alpha)
    out$lower <- clip_to(found$plain$mean - width, found$range)
    out$upper <- clip_to(found$plain$mean + width, found$range)
  }
  out
}

# What the run averaged: list(frame, plain, clipped (moments), range).
run_predictions <- function(fit, clip, call) {
  states <- rating_states(fit)
  if (is.null(fit$newdata) || length(states) == 0) {
    abort_tall(
      "unsupported",
      c(
        "The run predicted no pairs.",
        i = "Give {.arg newdata} here, or to {.fn tall_factorize}."
      ),
      call = call
    )
  }
  is_plain <- identical(clip, FALSE)
  if (!is.null(clip) && !is_plain && !identical(clip, fit$range)) {
    abort_input(
      c(
        "{.arg clip} must be {.code NULL} or {.code FALSE} for the pairs of the run.",
        i = "Their predictions were averaged as they were clipped then; give
             {.arg newdata} for another range."
      ),
      argument = "clip",
      value = clip,
      call = call
    )
  }
  pool <- function(what) {
    Reduce(merge_moments, lapply(states, function(s) s[[what]]))
  }
  list(
    frame = fit$newdata,
    plain = pool("plain"),
    clipped = pool(if (is_plain) "plain" else "clipped"),
    range = if (!is_plain) fit$range
  )
}

# The monitor's states, one for each chain that has sampled.
rating_states <- function(fit) {
  keys <- paste("rmse", fit$chains$chain[fit$chains$status == "ok"])
  Filter(function(s) !is.null(s), fit$monitor_state[keys])
}

pair_predictions <- function(fit, newdata, range, call) {
  states <- kept_states(fit, call)
  shape <- fit$shape
  rows <- lapply(c("user", "item"), function(side) {
    x <- evaluate_part(fit$parts, side, newdata, "newdata", call)
    ids <- list(labels = fit$ids[[side]], n = shape[[paste0("n_", side)]])
    extend_ids(ids, x, deparse1(fit$parts[[side]]), call)
  })
  unseen <- Map(
    function(row, side) {
      n <- shape[[paste0("n_", side)]]
      list(
        new = setdiff(row$index, seq_len(n)),
        unrated = intersect(row$index, which(!fit$rated[[side]]))
      )
    },
    rows,
    c("user", "item")
  )
  warn_unrated(
    unlist(unseen[[1]]),
    unlist(unseen[[2]]),
    call
  )
  new <- lapply(unseen, function(u) u$new)
  index <- Map(
    function(row, new, n) {
      ifelse(row$index > n, n + match(row$index, new), row$index)
    },
    rows,
    new,
    shape[c("n_user", "n_item")]
  )
  wide <- shape
  wide[c("n_user", "n_item")] <- wide[c("n_user", "n_item")] + lengths(new)
  plain <- clipped <- NULL
  for (theta in states) {
    theta <- with_new_rows(theta, shape, lengths(new))
    mean <- fit$center + drop(factor_means(wide, theta, index[[1]], index[[2]]))
    plain <- add_to_moments(plain, mean)
    clipped <- add_to_moments(clipped, clip_to(mean, range))
  }
  frame <- pair_frame(fit$parts, newdata, call)
  list(frame = frame, plain = plain, clipped = clipped, range = range)
}

# Whole states, a list of theta.
kept_states <- function(fit, call) {
  kept <- if (fit$keep == "all") {
    draws <- fit$unconstrained
    shape <- dim(draws)
    draws <- matrix(draws, ncol = shape[[3]])
    lapply(seq_len(nrow(draws)), function(k) draws[k, ])
  } else {
    unlist(
      lapply(rating_states(fit), function(s) s$states$kept),
      recursive = FALSE,
      use.names = FALSE
    )
  }
  if (length(kept) == 0) {
    abort_tall(
      "unsupported",
      c(
        "The fit kept no states to predict other pairs from.",
        i = "Run again with {.code keep = \"snapshots\"}, or give the pairs as
             {.arg newdata} to {.fn tall_factorize}."
      ),
      call = call
    )
  }
  kept
}

# theta with rows from the prior, given its means and precisions, after those of
# the users and after those of the items.
with_new_rows <- function(theta, shape, n_new) {
  if (all(n_new == 0)) {
    return(theta)
  }
  width <- shape[["rank"]] + shape[["bias"]]
  ends <- width * cumsum(shape[c("n_user", "n_item")])
  has_mean <- shape[["bias"]] == 0
  log_lambda <- matrix(utils::tail(theta, 2 * width), width)
  mean <- if (has_mean) {
    matrix(theta[ends[[2]] + seq_len(2 * width)], width)
  } else {
    matrix(0, width, 2)
  }
  draw <- function(side) {
    z <- stats::rnorm(width * n_new[[side]])
    mean[, side] + exp(-log_lambda[, side] / 2) * z
  }
  c(
    theta[seq_len(ends[[1]])],
    if (n_new[[1]] > 0) draw(1),
    theta[seq(ends[[1]] + 1, ends[[2]])],
    if (n_new[[2]] > 0) draw(2)
  )
}

# ---- printing ----------------------------------------------------------------

#' @export
print.tall_factorize <- function(x, digits = 3, ...) {
  check_no_dots(...)
  digits <- check_digits(digits)
  print_factorize_header(x)
  print_held_out(x, digits)
  print_footer(x, brief = TRUE)
  invisible(x)
}

print_factorize_header <- function(x) {
  model <- toupper(sub("model_", "", x$model_label))
  cat("Formula: ", deparse1(x$formula), "\n", sep = "")
  cat("Data:    ", ratings_text(x), "\n", sep = "")
  cat(
    "Model:   ",
    model,
    " of rank ",
    format_count(x$shape[["rank"]]),
    ", alpha ",
    format_number(x$alpha),
    "; ",
    count_noun(length(x$coordinates), "parameter"),
    "\n",
    sep = ""
  )
  cat("Sampler: ", sampler_text(x), "\n", sep = "")
  cat("Kept:    ", kept_text(x), "\n", sep = "")
}

kept_text <- function(x) {
  n_draws <- x$n_draws %||% if (!is.null(x$draws)) posterior::ndraws(x$draws)
  draws <- if (!is.null(n_draws)) {
    paste0(
      count_noun(n_draws, "draw"),
      " of ",
      count_noun(length(x$variables), "parameter")
    )
  }
  states <- sum(vapply(rating_states(x), function(s) length(s$states$kept), 1L))
  parts <- c(
    draws %||% "running means",
    if (states > 0) paste(count_noun(states, "whole state"), "to predict from")
  )
  paste(parts, collapse = "; ")
}

# NULL, or a data frame: the rMSE of each chain and of all together.
held_out_errors <- function(fit) {
  states <- rating_states(fit)
  if (is.null(fit$baseline) || length(states) == 0) {
    return(NULL)
  }
  table <- fit$monitor[fit$monitor$monitor == "rmse", ]
  is_draw <- table$statistic == "draw" & table$iteration > fit$control$warmup
  chains <- sub("rmse ", "", names(states))
  draw <- vapply(
    chains,
    function(c) mean(table$value[is_draw & table$chain == c]),
    0
  )
  rating <- fit$control$monitor$monitors$rmse$rating
  rmse <- function(m) sqrt(mean((rating - m$mean)^2))
  pooled <- Reduce(merge_moments, lapply(states, function(s) s$clipped))
  data.frame(
    chain = c(chains, "all"),
    draw = c(draw, mean(draw)),
    ergodic = c(vapply(states, function(s) rmse(s$clipped), 0), rmse(pooled)),
    row.names = NULL
  )
}

print_held_out <- function(x, digits) {
  errors <- held_out_errors(x)
  if (is.null(errors)) {
    return(invisible())
  }
  all <- errors[errors$chain == "all", ]
  number <- function(v) format(v, digits = digits)
  cat(
    "\nRoot mean squared error of ",
    count_noun(nrow(x$newdata), "held-out rating"),
    ":\n  ",
    number(all$ergodic), " for averaged predictions, ",
    number(all$draw), " for single draws, ",
    number(x$baseline), " for the mean rating\n",
    sep = ""
  )
}

#' @export
summary.tall_factorize <- function(object, ...) {
  check_no_dots(...)
  states <- rating_states(object)
  means <- vapply(
    states,
    function(s) s$plain$mean,
    numeric(NROW(object$newdata))
  )
  rhat <- if (length(states) > 1 && NROW(object$newdata) > 0) {
    within <- Reduce(`+`, lapply(states, function(s) {
      s$plain$square / max(1, s$plain$n - 1)
    })) / length(states)
    between <- apply(matrix(means, ncol = length(states)), 1, stats::var)
    sqrt(1 + between / within)
  }
  fit <- object[setdiff(names(object), c("draws", "saved"))]
  fit$n_draws <- if (!is.null(object$draws)) posterior::ndraws(object$draws)
  structure(
    list(
      fit = fit,
      errors = held_out_errors(object),
      rhat = rhat
    ),
    class = "summary.tall_factorize"
  )
}

#' @export
print.summary.tall_factorize <- function(x, digits = 3, ...) {
  check_no_dots(...)
  digits <- check_digits(digits)
  fit <- x$fit
  class(fit) <- c("tall_factorize", "tall_fit")
  print_factorize_header(fit)
  if (!is.null(x$errors)) {
    cat(
      "\nRoot mean squared error of ",
      count_noun(nrow(fit$newdata), "held-out rating"),
      " (the mean rating: ",
      format(fit$baseline, digits = digits),
      ")\n",
      sep = ""
    )
    print(x$errors, digits = digits, row.names = FALSE)
    cat(
      "draw: single draws, on average; ergodic: predictions averaged over draws.\n"
    )
  }
  if (!is.null(x$rhat)) {
    q <- stats::quantile(x$rhat, c(0.5, 0.95, 1))
    cat(
      "\nDo chains agree on the expected ratings? R-hat ",
      format(q[[1]], digits = digits), " (median), ",
      format(q[[2]], digits = digits), " (95 %), ",
      format(q[[3]], digits = digits), " (largest)\n",
      sep = ""
    )
  }
  print_footer(fit)
  invisible(x)
}
