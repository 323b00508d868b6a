# Averages of hurdle models, whose zeros and counts above 0 are fits of their
# own, see R/fit-hurdle.R. Rows are those of the counts, with those of the zeros
# as `zeros`, and so are draws: a draw of the one goes with that of the other
# that has its number.

is_hurdle_fit <- function(fit) inherits(fit, "tall_hurdle")

# The fits that an average is of.
average_fits <- function(fit) {
  if (is_hurdle_fit(fit)) unclass(fit)[c("counts", "zeros")] else list(fit)
}

# The one that knows all rows, with the columns of both.
fit_of_all_rows <- function(fit) {
  if (!is_hurdle_fit(fit)) {
    return(fit)
  }
  out <- fit$zeros
  out$columns <- union(out$columns, fit$counts$columns)
  out
}

# One that has draws.
drawn_fit <- function(fit) {
  if (is_hurdle_fit(fit)) fit$counts else fit
}

average_draws <- function(fit, n_draw) {
  out <- choose_draws(drawn_fit(fit), n_draw, resample = TRUE)
  if (is_hurdle_fit(fit)) {
    out$zeros <- choose_draws(fit$zeros, n_draw, resample = TRUE)
  }
  out
}

average_group_request <- function(fit, re_formula) {
  if (is_hurdle_fit(fit)) {
    lapply(average_fits(fit), group_request, re_formula)
  } else {
    group_request(fit, re_formula)
  }
}

# The design of these rows, of all that predictors need.
average_design <- function(fit, data, groups) {
  if (!is_hurdle_fit(fit)) {
    return(prediction_rows(fit, data, groups = groups))
  }
  out <- prediction_rows(fit$counts, data, groups = groups$counts)
  out$zeros <- prediction_rows(fit$zeros, data, groups = groups$zeros)
  out
}

#' @export
join_draws.tall_hurdle <- function(fit, rows, draws, groups) {
  zeros <- join_draws(fit$zeros, rows$zeros, draws$zeros, groups$zeros)
  out <- join_draws(fit$counts, rows, draws, groups$counts)
  out$zeros <- zeros
  out
}

# scale: "response", or what predict() calls its parts.
#' @export
predictor.tall_hurdle <- function(fit, rows, draws, scale) {
  above <- function() {
    eta <- predictor(fit$counts, rows, draws, "link")
    counts_above(fit$counts$family, eta, draws$aux)
  }
  zero <- function() {
    predictor(fit$zeros, rows$zeros, draws$zeros, "response")
  }
  switch(
    scale,
    zero = zero(),
    count = above(),
    response = (1 - zero()) * above()
  )
}

#' @export
predicted_names.tall_hurdle <- function(fit, scale) {
  NULL
}

# ---- expanded ----------------------------------------------------------------

# Predictors of the zeros, of the counts, and the log of the counts' size.
#' @export
expansion_of.tall_hurdle <- function(fit, request) {
  if (!all(vapply(average_fits(fit), inherits, NA, "tall_glm"))) {
    return(NULL)
  }
  counts <- fit$counts
  p <- c(fit$zeros$n_coef, counts$n_coef)
  n_aux <- sum(is.na(known_aux(counts)))
  above <- function(eta) {
    mu <- matrix(eta[[1]], 1)
    as.numeric(counts_above(counts$family, mu, aux_at(counts, eta[-1])))
  }
  is_zero <- function(eta) {
    as.numeric(response_mean(fit$zeros$family, eta[[1]]))
  }
  of_counts <- 1 + seq_len(1 + n_aux)
  list(
    theta = function(draws) {
      cbind(draws$zeros$theta, draws$theta, log_aux_draws(counts, draws))
    },
    columns = c(
      list(seq_len(p[[1]]), p[[1]] + seq_len(p[[2]])),
      as.list(sum(p) + seq_len(n_aux))
    ),
    blocks = function(rows) {
      c(
        list(row_block(rows$zeros$x, rows$zeros$offset)),
        list(row_block(rows$x, rows$offset)),
        constant_blocks(rows, n_aux)
      )
    },
    parts = list(switch(
      request$type,
      zero = expanded_part(1, is_zero),
      count = expanded_part(of_counts, above),
      response = expanded_part(c(1, of_counts), function(eta) {
        (1 - is_zero(eta)) * above(eta[-1])
      })
    ))
  )
}
