# Fits of tall_factorize(): predictions, printing, held-out errors.

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
#' were kept, as `snapshots` or with `variables = NULL`. The interval is that of
#' a normal distribution with the mean and variance of the (unclipped) expected
#' rating, \eqn{1 / \alpha}{1 / alpha} added to the variance, clipped in the
#' end.
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
  check_flag(interval)
  level <- check_number(level, min = 0, max = 1)
  found <- if (is.null(newdata)) {
    run_predictions(object, clip)
  } else {
    range <- if (is.null(clip)) {
      object$range
    } else {
      check_clip(clip, object$rating_range)
    }
    pair_predictions(object, newdata, range)
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
run_predictions <- function(fit, clip) {
  states <- rating_states(fit)
  if (is.null(fit$newdata) || length(states) == 0) {
    abort_tall(
      "unsupported",
      c(
        "The run predicted no pairs.",
        i = "Give {.arg newdata} here, or to {.fn tall_factorize}."
      )
    )
  }
  is_plain <- identical(clip, FALSE)
  if (!is.null(clip) && !is_plain && !identical(clip, fit$range)) {
    abort_input(
      c(
        "{.arg clip} must be {.code NULL} or {.code FALSE} for the pairs of the
         run.",
        i = "Their predictions were averaged as they were clipped then; give
             {.arg newdata} for another range."
      ),
      argument = "clip",
      value = clip
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

pair_predictions <- function(fit, newdata, range) {
  states <- kept_states(fit)
  shape <- fit$shape
  rows <- lapply(c("user", "item"), function(side) {
    x <- evaluate_part(fit$parts, side, newdata, "newdata")
    ids <- list(labels = fit$ids[[side]], n = shape[[paste0("n_", side)]])
    extend_ids(ids, x, deparse1(fit$parts[[side]]))
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
  warn_unrated(unlist(unseen[[1]]), unlist(unseen[[2]]))
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
  frame <- pair_frame(fit$parts, newdata)
  list(frame = frame, plain = plain, clipped = clipped, range = range)
}

# Whole states, a list of theta.
kept_states <- function(fit) {
  kept <- if (!is.null(fit$draws) && is.null(fit$control$record)) {
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
        i = "Run again with {.code snapshots = 60}, or give the pairs as
             {.arg newdata} to {.fn tall_factorize}."
      )
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
      "draw: single draws, on average;",
      "ergodic: predictions averaged over draws.\n"
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
