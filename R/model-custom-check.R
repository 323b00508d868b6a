# Functions of a user's model, tried where chains start.

check_custom <- function(model, check) {
  rows <- spread_rows(model$n_data, if (check) model$n_data else 2)
  check_log_lik_values(model, rows)
  theta <- model$start
  density <- model_evaluate(model, theta, "prior")$log_density
  if (!is.finite(density)) {
    abort_input(
      c(
        "{.fn log_prior} must be finite at {.arg init}, not {density}.",
        i = "Give an {.arg init} that the prior allows."
      ),
      argument = "log_prior",
      value = density
    )
  }
  # away from init, whose zeros may hide what is wrong
  at <- theta + 0.1 * cos(seq_along(theta))
  rows <- spread_rows(model$n_data, 20)
  evaluate <- function(part) {
    function(theta) model_evaluate(model, theta, part, index = rows)
  }
  if (!check || !is.finite(evaluate("posterior")(at)$log_density)) {
    evaluate("posterior")(theta) # shapes alone
    return(invisible())
  }
  if (!is.null(model$functions$grad_log_lik)) {
    check_derivative(evaluate("likelihood"), at, "grad_log_lik", model)
  }
  if (!is.null(model$functions$grad_log_prior)) {
    check_derivative(evaluate("prior"), at, "grad_log_prior", model)
  }
}

# At most n of the rows, evenly spaced.
spread_rows <- function(n_data, n) {
  unique(floor(seq(1, n_data, length.out = min(n, n_data))))
}

# Every row has a finite log likelihood at init.
check_log_lik_values <- function(model, rows) {
  for (first in seq(1, length(rows), by = 1e5)) {
    part <- rows[first:min(length(rows), first + 1e5 - 1)]
    value <- row_log_lik(model, model$start, part)
    bad <- which(!is.finite(value))
    if (length(bad) > 0) {
      row <- part[[bad[[1]]]]
      shown <- value[[bad[[1]]]]
      abort_input(
        c(
          "{.fn log_lik} must be finite at {.arg init} for every row, but
           it is {shown} for row {format_count(row)}.",
          i = "Are there missing values in {.arg data}, or is {.arg init} out of
               the range of the likelihood?"
        ),
        argument = "log_lik",
        value = shown,
        index = row
      )
    }
  }
}

# The gradient that the model uses against central differences of the density.
# Differences of a sum of size D carry an error of about D eps^(2/3) / h.
check_derivative <- function(evaluate, at, name, model) {
  here <- evaluate(at)
  ours <- drop(here$gradient)
  h <- .Machine$double.eps^(1 / 3) * pmax(1, abs(at))
  numeric <- vapply(seq_along(at), function(j) {
    e <- replace(numeric(length(at)), j, h[[j]])
    change <- evaluate(at + e)$log_density - evaluate(at - e)$log_density
    change / (2 * h[[j]])
  }, 0)
  scale <- max(abs(ours), abs(numeric), abs(here$log_density), 1)
  wrong <- which(!is.finite(ours) | abs(ours - numeric) > 1e-4 * scale)
  if (length(wrong) > 0) {
    j <- wrong[which.max(abs(ours - numeric)[wrong])]
    coordinate <- model$coordinates[[j]]
    abort_input(
      c(
        "{.fn {name}} disagrees with finite differences.",
        x = "Its derivative in {.code {coordinate}}, transforms
             included, is {format_number(ours[[j]])}; differences give
             {format_number(numeric[[j]])}.",
        i = "Correct it, leave it out, or switch this off with
             {.code check = FALSE}."
      ),
      argument = name,
      expected = numeric[[j]],
      value = ours[[j]],
      coordinate = coordinate
    )
  }
}

warn_differences <- function(model, autodiff) {
  if (model$plan$log_lik != "differences") {
    return(invisible())
  }
  n <- 2 * model$n_dim
  warn_tall(
    "gradient",
    c(
      "Gradients come from central differences: {n} calls of {.fn log_lik} for
       each.",
      i = if (autodiff) {
        "Give {.arg grad_log_lik}, or install the package {.pkg RTMB} for
         automatic differentiation."
      } else {
        "Give {.arg grad_log_lik}."
      }
    )
  )
}
