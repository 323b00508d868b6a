# Hurdle models: what makes a count 0, and what makes it large, are two fits
# without a parameter in common.

# The two fits, by calls of the front end that the user called. name: of the
# family; matched: that call; without_bars: what is called for zeros whose
# formula has no group-level terms, NULL: the same.
fit_hurdle <- function(name, matched, caller, without_bars = NULL) {
  formulas <- hurdle_formulas(eval(matched$formula, caller))
  y <- formulas$mu[[2]]
  if (is_censored(strip_parens(y)) || rlang::is_call(y, "cens")) {
    abort_not_censored(name, formulas$mu)
  }
  if (is_handed_on(matched$subset)) {
    matched$subset <- handed_on(matched$subset, caller)$expression
  }
  matched$formula <- formulas$mu
  matched$family <- hurdle_counts_of[[name]]()
  counts <- matched
  above <- bquote(.(y) > 0)
  counts$subset <- if (is.null(matched$subset)) {
    above
  } else {
    bquote((.(matched$subset)) & .(above))
  }
  zeros <- matched
  zeros$formula <- formulas$hu
  zeros$family <- quote(stats::binomial())
  seed <- eval(matched$seed, caller)
  if (!is.null(seed)) {
    # the same streams of random numbers would make draws go together
    zeros$seed <- (check_seed(seed) + 1) %% .Machine$integer.max
  }
  # of what zeros have not: an exposure is of rates
  zeros[c("prior_aux", "offset")] <- NULL
  if (!is.null(without_bars) && !"|" %in% all.names(formulas$hu[[3]])) {
    zeros[[1]] <- without_bars
    zeros["prior_covariance"] <- NULL
  }
  found <- list(
    zeros = eval(zeros, caller),
    counts = tell_no_counts(eval(counts, caller), y)
  )
  data <- if (!is.null(matched$data)) eval(matched$data, caller)
  structure(
    list(
      counts = found$counts,
      zeros = found$zeros,
      formula = formulas$given,
      family = new_hurdle_family(name),
      data = if (keeps_rows(found$zeros)) data,
      subset = matched$subset,
      call = sys.call(sys.parent())
    ),
    class = "tall_hurdle"
  )
}

keeps_rows <- function(fit) {
  has_values(fit$rows)
}

tell_no_counts <- function(code, y) {
  withCallingHandlers(code, tall_error_input = function(e) {
    if (identical(e$argument, "subset") && identical(e$value, 0)) {
      abort_input(
        "{.code {deparse1(y)}} must be above 0 in at least one row.",
        argument = "formula",
        value = 0
      )
    }
  })
}

# list(mu, hu, given): formulas of the counts above 0 and of the zeros.
hurdle_formulas <- function(formula) {
  given <- formula
  parts <- formulas_by_parameter(formula)
  other <- setdiff(names(parts), c("mu", "hu"))
  if (length(other) > 0) {
    abort_own_predictors(formula, other)
  }
  mu <- parts$mu
  if (length(mu) < 3) {
    abort_no_response()
  }
  right <- if (is.null(parts$hu)) 1 else parts$hu[[length(parts$hu)]]
  home <- if (is.null(parts$hu)) environment(mu) else environment(parts$hu)
  hu <- eval(bquote(is_zero(.(mu[[2]])) ~ .(right)))
  environment(hu) <- list2env(list(is_zero = is_zero), parent = home)
  list(mu = mu, hu = hu, given = given)
}

# Is a count 0? Other numbers are told here, where all rows are seen.
is_zero <- function(y) {
  is_number <- is_plain_numeric(y) || is.logical(y)
  bad <- if (is_number) which(y < 0 | y != round(y))
  if (!is_number || length(bad) > 0) {
    seen <- if (is_number) format_number(y[[bad[[1]]]]) else describe(y)
    abort_input(
      "The response of a hurdle model must be a count, not {seen}.",
      argument = "formula",
      value = y
    )
  }
  y == 0
}
