# Monitors: what is watched while a run goes on, every so many iterations.

#' Monitors of a run
#'
#' Quantities evaluated while the chains run: losses on held-out data, at single
#' draws and for ergodic averages, or functions of your own.
#'
#' @param newdata (`tall_model` or data frame) Held-out data: a model made from
#'   them with the same columns, or, for [tall_glm()] and [tall_nn()], a data
#'   frame.
#'
#' @details Monitors are given as `monitor = list(every = 100, loss =
#' monitor_log_loss(test), mine = function(theta) ...)`: `every` is in
#' iterations, warmup included; the others have names of your choice. A function
#' of your own receives the variables of one chain, a named vector on the
#' natural scale, and returns a number, or a vector whose length does not
#' change. If it fails or its length changes, the run goes on, the value is
#' `NA`, and a warning says when it was first so.
#'
#' With \eqn{T} the held-out rows, a built-in monitor gives a value for the draw
#' at iteration \eqn{t}, and one for the ergodic average since the end of
#' warmup:
#'
#' * `monitor_log_loss()`: \eqn{-\frac1{|T|} \sum_{i \in T} \log p(y_i \mid
#'   \theta_t)}{-mean_i log p(y_i | theta_t)}, and the same with the average
#'   over the draws of \eqn{p(y_i \mid \theta_t)}{p(y_i | theta_t)}: for a
#'   Bernoulli response the log-loss of ergodic averages (Mauri & Zanella, 2024,
#'   eq. 41, with the minus before both of its terms).
#' * `monitor_log_lik()`: \eqn{\frac1{|T|} \sum_{i \in T} \log p(y_i \mid
#'   \theta_t)}{mean_i log p(y_i | theta_t)}, and the same at the average of the
#'   draws (eqs. 44 and 45).
#' * `monitor_rmse()`: the root mean squared error of the predicted means of a
#'   generalised linear model or a network, clipped to `range` when it is given,
#'   and that of their averages (eqs. 42 and 43).
#'
#' @return A spec of class `tall_monitor`. A fit has its values in
#'   `fit$monitor`, a data frame of `iteration`, `chain`, `monitor`, `statistic`
#'   (`"draw"` or `"ergodic"`) and `value`; `plot(fit, "monitor")` draws them.
#' @section Conditions: `tall_error_input` for a list that is not as described
#' or held-out data that do not fit the model; `tall_warning_monitor` when a
#' monitor fails.
#' @references
#' Mauri & Zanella (2024). Robust approximate sampling via stochastic gradient
#' Barker dynamics. *AISTATS*.
#' @examples
#' test <- mtcars[1:10, ]
#' fit <- tall_glm(
#'   am ~ wt,
#'   data = mtcars[-(1:10), ],
#'   family = binomial(),
#'   monitor = list(
#'     every = 50,
#'     loss = monitor_log_loss(test),
#'     log_lik = monitor_log_lik(test),
#'     slope = function(theta) theta[["wt"]]
#'   ),
#'   seed = 1
#' )
#' tail(fit$monitor)
#'
#' watched <- list(every = 100, rmse = monitor_rmse(test))
#' fit <- tall_glm(mpg ~ wt, mtcars[-(1:10), ], monitor = watched, seed = 1)
#' tail(fit$monitor)
#' @name monitors
NULL

#' @rdname monitors
#' @export
monitor_log_loss <- function(newdata) {
  new_monitor("log_loss", newdata)
}

#' @rdname monitors
#' @export
monitor_log_lik <- function(newdata) {
  new_monitor("log_lik", newdata)
}

#' @rdname monitors
#' @param x (numeric matrix or data frame) Held-out covariates, with the columns
#'   of the model; for [tall_glm()] and [tall_nn()] a data frame with response
#'   and covariates.
#' @param y (numeric vector or `NULL`) Their responses; `NULL` with a data
#'   frame.
#' @param range (two numbers or `NULL`) The range predictions are clipped to.
#' @export
monitor_rmse <- function(x, y = NULL, range = NULL) {
  check_given(x)
  range <- check_numeric_vector(range, size = 2, allow_null = TRUE)
  if (!is.data.frame(x)) {
    check_matrix(x)
    y <- check_numeric_vector(y, size = nrow(x))
  }
  structure(
    list(name = "rmse", newdata = x, y = y, range = range),
    class = c("tall_monitor_rmse", "tall_monitor")
  )
}

new_monitor <- function(name, newdata) {
  check_given(newdata, arg = "newdata")
  if (!is.data.frame(newdata)) {
    check_model(newdata, arg = "newdata")
  }
  structure(
    list(name = name, newdata = newdata),
    class = c(paste0("tall_monitor_", name), "tall_monitor")
  )
}

#' @export
print.tall_monitor <- function(x, ...) {
  check_no_dots(...)
  rows <- if (inherits(x$newdata, "tall_model")) {
    x$newdata$n_data
  } else {
    nrow(x$newdata)
  }
  cat(
    "<tall_monitor> ",
    x$name,
    " on ",
    count_noun(rows, "row"),
    "\n",
    sep = ""
  )
  invisible(x)
}

# ---- arguments ---------------------------------------------------------------

# NULL, or list(every, monitors): the list a user gives, checked.
check_monitor <- function(monitor, model) {
  if (is.null(monitor)) {
    return(NULL)
  }
  if (!is.list(monitor) || inherits(monitor, "tall_monitor")) {
    abort_expected(
      monitor,
      "a list such as list(every = 100, loss = monitor_log_loss(test))",
      arg = "monitor"
    )
  }
  every <- check_count(
    if (is.null(monitor$every)) 100 else monitor$every,
    arg = "monitor$every"
  )
  monitors <- monitor[names(monitor) != "every"]
  if (length(monitors) == 0 || is.null(names(monitors)) ||
    any(names(monitors) == "")) {
    abort_input(
      "{.arg monitor} must name at least one monitor besides {.arg every}.",
      argument = "monitor"
    )
  }
  for (name in names(monitors)) {
    check_one_monitor(monitors[[name]], name, model)
  }
  list(every = every, monitors = monitors)
}

check_one_monitor <- function(monitor, name, model) {
  arg <- paste0("monitor$", name)
  if (is.function(monitor)) {
    return(invisible())
  }
  if (!inherits(monitor, "tall_monitor")) {
    abort_expected(monitor, "a function or monitor_*()", arg = arg)
  }
  check_held_out(monitor, model, arg)
}

# Are a monitor's held-out data of the model? Methods abort where they are not,
# and may prepare in the monitor's own environments what evaluations need.
check_held_out <- function(monitor, model, arg) {
  UseMethod("check_held_out")
}

#' @export
check_held_out.default <- function(monitor, model, arg) {
  newdata <- monitor$newdata
  if (is.data.frame(newdata)) {
    abort_input(
      "{.arg {arg}} must hold a model or a matrix here, not a data frame.",
      argument = arg
    )
  }
  if (!inherits(newdata, "tall_model") && is.null(model$n_coef)) {
    abort_tall(
      "unsupported",
      c(
        "{.fn monitor_rmse} is for {.fn model_glm}, not for
         {.code {model$label}()}.",
        i = "Use {.fn monitor_log_lik}, or a function of the parameters."
      )
    )
  }
  variables <- if (inherits(newdata, "tall_model")) {
    newdata$variables
  } else {
    column_names(newdata)
  }
  wanted <- if (inherits(newdata, "tall_model")) {
    model$variables
  } else {
    model$variables[seq_len(model$n_coef)]
  }
  if (!identical(variables, wanted)) {
    abort_input(
      c(
        "{.arg {arg}} must have the variables of the model.",
        x = "The model has {quote_columns(wanted)}; the held-out data
             {quote_columns(variables)}."
      ),
      argument = arg,
      expected = wanted,
      value = variables
    )
  }
}

# ---- evaluation --------------------------------------------------------------

# A stateful evaluator of all monitors: $at(iteration, is_warmup, position) and
# $result(), list(table, problems, state); $state() is that alone. The first
# column of a position is that of chain n_first + 1.
monitor_recorder <- function(monitor, model, state = list(), n_first = 0) {
  rows <- list()
  problems <- list()
  lengths <- list()
  value_of <- function(name, column, iteration, position, is_warmup) {
    one <- monitor$monitors[[name]]
    theta <- function() {
      stats::setNames(position$variable[, column], model$variables)
    }
    key <- paste(name, n_first + column)
    if (is.function(one)) {
      return(list(draw = user_value(one, theta(), name, lengths, function(n) {
        lengths[[name]] <<- n
      })))
    }
    before <- if (!is_warmup) state[[key]]
    # `theta` stays a promise where it is not looked at: it may be long
    out <- evaluate_monitor(
      one,
      model,
      position$parameter[, column],
      theta(),
      before
    )
    if (!is_warmup) {
      state[[key]] <<- out$state
    }
    list(draw = out$draw, ergodic = if (!is_warmup) out$ergodic)
  }
  at <- function(iteration, is_warmup, position) {
    for (column in which(position$alive)) {
      chain <- n_first + column
      for (name in names(monitor$monitors)) {
        values <- tryCatch(
          value_of(name, column, iteration, position, is_warmup),
          error = function(e) {
            if (is.null(problems[[name]])) {
              problems[[name]] <<- list(
                iteration = iteration,
                chain = chain,
                message = conditionMessage(e)
              )
            }
            list(draw = NA_real_)
          }
        )
        rows[[length(rows) + 1]] <<- monitor_rows(
          iteration,
          chain,
          name,
          values
        )
      }
    }
  }
  result <- function() {
    list(table = do.call(rbind, rows), problems = problems, state = state)
  }
  list(at = at, result = result, state = function() state)
}

# What monitors remember of a chain.
state_of_chain <- function(state, monitor, chain) {
  keys <- paste(names(monitor$monitors), chain)
  state[intersect(keys, names(state))]
}

# Numbers of a user's function, always as many.
user_value <- function(f, theta, name, lengths, remember) {
  value <- f(theta)
  if (!is.numeric(value) || length(value) == 0) {
    stop("it must return numbers, not ", describe(value), ".", call. = FALSE)
  }
  wanted <- lengths[[name]]
  if (is.null(wanted)) {
    remember(length(value))
  } else if (length(value) != wanted) {
    stop(
      "it returned ",
      count_noun(length(value), "value"),
      " where it had returned ",
      wanted,
      ".",
      call. = FALSE
    )
  }
  value
}

monitor_rows <- function(iteration, chain, name, values) {
  values <- Filter(function(v) !is.null(v), values)
  if (length(values) == 0) {
    return(NULL)
  }
  counts <- vapply(values, length, 1L)
  value <- unlist(lapply(values, as.double), use.names = FALSE)
  inner <- unlist(lapply(values, function(v) {
    if (length(v) == 1) {
      ""
    } else {
      paste0("[", if (is.null(names(v))) seq_along(v) else names(v), "]")
    }
  }))
  data.frame(
    iteration = iteration,
    chain = chain,
    monitor = paste0(name, inner),
    statistic = rep(names(values), counts),
    value = value
  )
}

# list(draw, ergodic, state): the value at theta, that of the average so far,
# and the running sums.
evaluate_monitor <- function(monitor, model, parameter, theta, state) {
  UseMethod("evaluate_monitor")
}

#' @export
evaluate_monitor.tall_monitor_log_loss <- function(
  monitor,
  model,
  parameter,
  theta,
  state
) {
  log_p <- drop(row_log_lik(monitor$newdata, parameter))
  state <- add_to_mean(state, exp(log_p))
  list(draw = -mean(log_p), ergodic = -mean(log(state$mean)), state = state)
}

#' @export
evaluate_monitor.tall_monitor_log_lik <- function(
  monitor,
  model,
  parameter,
  theta,
  state
) {
  log_p <- function(at) {
    mean(row_log_lik(monitor$newdata, at))
  }
  state <- add_to_mean(state, parameter)
  list(draw = log_p(parameter), ergodic = log_p(state$mean), state = state)
}

#' @export
evaluate_monitor.tall_monitor_rmse <- function(
  monitor,
  model,
  parameter,
  theta,
  state
) {
  eta <- drop(monitor$newdata %*% theta[seq_len(ncol(monitor$newdata))])
  if (!is.null(monitor$offset)) {
    eta <- eta + monitor$offset
  }
  mean <- response_mean(model$family, eta)
  if (!is.null(monitor$range)) {
    mean <- pmin(pmax(mean, monitor$range[[1]]), monitor$range[[2]])
  }
  state <- add_to_mean(state, mean)
  rmse <- function(prediction) {
    sqrt(sum((monitor$y - prediction)^2) / length(eta))
  }
  list(draw = rmse(mean), ergodic = rmse(state$mean), state = state)
}

# A running mean: list(n, mean).
add_to_mean <- function(state, x) {
  if (is.null(state)) {
    return(list(n = 1, mean = x))
  }
  n <- state$n + 1
  list(n = n, mean = state$mean + (x - state$mean) / n)
}

warn_monitor <- function(problems) {
  for (name in names(problems)) {
    problem <- problems[[name]]
    message <- escape_cli(problem$message)
    warn_tall(
      "monitor",
      c(
        "The monitor {.field {name}} failed at iteration
         {format_count(problem$iteration)} of chain {problem$chain}.",
        x = message,
        i = "The run went on; its value is {.code NA} there."
      ),
      monitor = name,
      iteration = problem$iteration,
      chain = problem$chain
    )
  }
}

# Steps of a stretch (counted from 1) after which monitors are evaluated, with
# the iteration each belongs to. from: what knows the iterations before.
monitor_points <- function(stretch, plan, control, from) {
  every <- control$monitor$every
  if (is.null(every) || !is.null(stretch$points)) {
    return(stretch$points)
  }
  n_warmup <- stretch$n_warmup
  before <- from$iterations_before
  iterations <- n_warmup + floor(stretch$n_sampling / plan$steps)
  at <- seq_len(iterations)
  at <- at[(before + at) %% every == 0]
  steps <- ifelse(at <= n_warmup, at, n_warmup + (at - n_warmup) * plan$steps)
  data.frame(step = steps, iteration = before + at, is_warmup = at <= n_warmup)
}

plot_monitor <- function(fit) {
  rlang::check_installed("ggplot2", "to plot monitors")
  if (is.null(fit$monitor)) {
    abort_tall(
      "unsupported",
      c(
        "The fit has no monitors.",
        i = "Run with {.code monitor = list(every = 100, ...)}, see
             {.help monitors}."
      )
    )
  }
  table <- fit$monitor
  table$chain <- factor(table$chain)
  ggplot2::ggplot(
    table,
    ggplot2::aes(
      x = .data[["iteration"]],
      y = .data[["value"]],
      colour = .data[["chain"]],
      linetype = .data[["statistic"]]
    )
  ) +
    ggplot2::geom_line(na.rm = TRUE) +
    ggplot2::facet_wrap(ggplot2::vars(.data[["monitor"]]), scales = "free_y") +
    ggplot2::scale_linetype_manual(
      values = c(draw = "dotted", ergodic = "solid")
    ) +
    ggplot2::labs(y = NULL)
}
