# The one pass of averages over all rows, see R/fit-average.R: of each draw, see
# R/fit-average-pass.R, or by an expansion, see R/fit-average-expansion.R and,
# where a database has the sums, R/fit-average-sql.R.

# list(groups, parts, n_row, n_missing, is_expanded, estimate(estimand, g, k)),
# k a row of parts, see average_parts(). plan: of prediction_plan() and its kin.
average_rows <- function(request, plan) {
  fit <- request$fit
  n <- average_n(request)
  asked <- request$n_draw %||% posterior::ndraws(drawn_fit(fit)$draws)
  parts <- average_parts(request)
  n_value <- n * length(plan$sets) * max(1, nrow(parts))
  is_expanded <- expands(request, n_value * asked)
  n_draw <- request$n_draw
  if (!is_expanded) {
    n_draw <- n_draw %||% affordable_draws(drawn_fit(fit), n_value)
  }
  draws <- average_draws(fit, n_draw)
  told <- list(parts = parts, is_expanded = is_expanded)
  summed <- if (is_expanded) expansion_by_sql(request, plan, draws)
  if (!is.null(summed)) {
    return(c(summed, told))
  }
  pass <- if (is_expanded) {
    expansion_pass(request, plan, draws)
  } else {
    exact_pass(request, plan, draws)
  }
  n_row <- n_missing <- 0
  each_average_block(request, function(block) {
    n_row <<- n_row + nrow(block$data)
    n_missing <<- n_missing + block$n_missing
    if (nrow(block$data) > 0) {
      pass$add(block)
    }
  })
  c(
    pass$finish(),
    list(n_row = n_row, n_missing = n_missing),
    told
  )
}

# What averages of a row there are, a data frame with a row for each: classes,
# times; without rows: one.
average_parts <- function(request) {
  classes <- predicted_names(request$fit, request$type)
  if (!is.null(classes)) {
    data.frame(class = classes)
  } else if (any(request$at > 0) && request$type != "median") {
    data.frame(time = request$at)
  } else {
    data.frame()
  }
}

# How many rows, NA: nobody knows.
average_n <- function(request) {
  fit <- request$fit
  newdata <- request$newdata
  if (is.null(newdata)) {
    stats::nobs(fit)
  } else if (is.data.frame(newdata)) {
    nrow(newdata)
  } else {
    n_passed_over(fit_of_all_rows(fit), newdata)
  }
}

# Is the average expanded? size: numbers of an exact one.
expands <- function(request, size) {
  is_possible <- !is.null(expansion_of(request$fit, request))
  if (request$method == "expansion" && !is_possible) {
    abort_tall(
      "unsupported",
      c(
        "{.code method = \"expansion\"} is for smooth functions of linear
         predictors, without effects that are integrated out.",
        i = "{.code method = \"exact\"} with {.arg ndraws} takes fewer draws."
      ),
      argument = "method"
    )
  }
  is_large <- is.na(size) || size > setting("average_exact")
  is_possible && switch(
    request$method,
    exact = FALSE,
    expansion = TRUE,
    auto = is_large
  )
}
