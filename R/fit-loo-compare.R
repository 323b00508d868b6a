# Fits are compared on the rows that both have: what loo() remembers of them,
# and what is said where they differ.

# More rows than that may be left out without their numbers being remembered.
most_left_out <- 1e6

# Are the rows in memory?
is_quick_to_tell <- function(fit) {
  !is.null(fit$na_action) || inherits(fit$rows$source, "tall_source_frame")
}

#' @rdname loo-tall_glm
#' @exportS3Method loo::loo_compare
loo_compare.tall_loo <- function(x, ...) {
  check_compared(list(x, ...))
  check_same_rows_of(c(list(x), list(...)))
  NextMethod()
}

# Sums over a sample cannot be paired as those over all observations are.
check_compared <- function(results) {
  is_some <- vapply(results, inherits, TRUE, "tall_waic_some")
  if (any(is_some)) {
    abort_tall(
      "unsupported",
      c(
        "{.fn loo_compare} does not take a {.fn waic} of a subsample.",
        i = "Compare what {.fn loo} returns, or
             {.code waic(fit, observations = NULL)}."
      ),
      argument = "x"
    )
  }
}

#' @exportS3Method loo::loo_compare
loo_compare.tall_fit <- function(x, ...) {
  abort_expected(
    x,
    "what loo() returns",
    "loo_compare(loo(fit1), loo(fit2)) compares two fits.",
    arg = "x"
  )
}

# Of those results that say what their rows are, each with the first.
check_same_rows_of <- function(results) {
  own <- Filter(function(x) !is.null(attr(x, "rows")), results)
  if (length(own) < 2) {
    return(invisible())
  }
  labels <- loo_labels(own)
  for (k in seq_along(own)[-1]) {
    check_same_two(own[c(1, k)], labels[c(1, k)])
  }
}

# Densities of different numbers, such as y and log(y), tell nothing of which
# model is better. loo_compare() warns of that by itself.
warn_other_responses <- function(results) {
  hash <- compact(lapply(unname(results), attr, "yhash"))
  if (length(unique(hash)) > 1) {
    warn_tall(
      "response",
      c(
        "Fits that are compared must have the same response, and these have
         not.",
        i = "Densities of {.code log(y)}, of a factor or of counts are not those
             of {.code y}."
      )
    )
  }
}

# Their names in the list, else those of the fits.
loo_labels <- function(results) {
  given <- rlang::names2(results)
  own <- vapply(
    seq_along(results),
    function(k) attr(results[[k]], "model_name") %||% paste0("model", k),
    ""
  )
  ifelse(nzchar(given), given, own)
}

# The same responses are of the same rows, whatever `subset` numbered them by.
# Else it is the numbers of those that were left out, or how many, where these
# are not known.
check_same_two <- function(results, labels) {
  rows <- lapply(results, attr, "rows")
  hash <- lapply(results, attr, "yhash")
  out <- lapply(rows, `[[`, "left_out")
  number <- function(name) vapply(rows, `[[`, 0, name)
  is_known <- !any(vapply(out, is.null, TRUE))
  n_all <- number("n_row") + lengths(out)
  # rows that the other leaves out
  alone <- if (is_known && n_all[[1]] == n_all[[2]]) {
    list(setdiff(out[[2]], out[[1]]), setdiff(out[[1]], out[[2]]))
  }
  has_same_response <- !is.null(hash[[1]]) && identical(hash[[1]], hash[[2]])
  has_same_rows <- if (is_known) {
    !is.null(alone) && sum(lengths(alone)) == 0
  } else {
    diff(number("n_missing")) == 0
  }
  has_same_number <- rows[[1]]$unit == rows[[2]]$unit &&
    diff(number("n_data")) == 0 && diff(number("n_row")) == 0
  if (has_same_number && (has_same_response || has_same_rows)) {
    return(invisible())
  }
  abort_input(
    c(
      "Fits that are compared must have the same rows of the data.",
      x = "{.code {labels[[1]]}} has {loo_rows_text(rows[[1]])}; {.code
           {labels[[2]]}} has {loo_rows_text(rows[[2]])}.",
      x = rows_of_one(alone[[1]], labels[[1]]),
      x = rows_of_one(alone[[2]], labels[[2]]),
      i = same_rows_hint(rows)
    ),
    argument = "x",
    value = number("n_row")
  )
}

# "69,900 observations, 100 left out for missing values"
loo_rows_text <- function(rows) {
  paste0(
    count_noun(rows$n_row, "observation"),
    if (rows$unit == "group") paste(" in", count_noun(rows$n_data, "group")),
    if (rows$n_missing > 0) {
      paste0(", ", format_count(rows$n_missing), " left out for missing values")
    }
  )
}

# "Row 12 and 3 others are used by `fit` alone."; NULL: there are none.
rows_of_one <- function(rows, label) {
  n <- length(rows)
  if (n == 0) {
    return(NULL)
  }
  which <- paste("Row", format_count(min(rows)))
  if (n > 1) {
    which <- paste(which, "and", count_noun(n - 1, "other"))
  }
  cli::format_inline(
    "{which} {cli::qty(n)}{?is/are} used by {.code {label}} alone."
  )
}

# How both get the same rows.
same_rows_hint <- function(rows) {
  if (rows[[1]]$unit != rows[[2]]$unit) {
    return("One is of groups left out, the other of rows: they cannot be
            compared.")
  }
  if (rows[[1]]$n_missing + rows[[2]]$n_missing == 0) {
    return("Fit both to the same data, with the same {.arg subset}.")
  }
  "Fit both to rows that lack nothing that either needs:
   {.code stats::na.omit(data[variables])}, {.arg variables} those of both
   formulas."
}
