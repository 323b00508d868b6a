# Left sides of formulas that say of a row between which limits it lies:
# Surv(time, event), and brms' y | cens(status, y2). Both are calls of functions
# here, which the formula's environment has under these names, and that make of
# their arguments, row by row, a matrix of three columns:
#
#   status   what a row says                   columns
#   1        it is y                           y, entry, 1
#   0        it is not below y                 y, entry, 0
#   2        it is not above y                 y, 0, 2
#   3        it lies between y and other       y, other, 3
#
# entry: from when on the row was seen, 0 mostly. They need no other rows, so
# that a block of rows is read as all of them are.

limit_columns <- function(y, other, status) {
  y <- as.double(y)
  other <- rep_len(as.double(other), length(y))
  # what lies nowhere else has no limit there
  other[is.na(other) & !is.na(y) & status %in% 0:2] <- 0
  cbind(time = y, other = other, status = as.double(status))
}

# The formula with what it takes, "Surv", "cens" or nothing (NULL), in its
# environment; anything else as it is.
with_limits <- function(formula, takes = NULL) {
  if (!inherits(formula, "formula") || length(formula) != 3) {
    return(formula)
  }
  left <- strip_parens(formula[[2]])
  is_surv <- is.call(left) && is_of_survival(left[[1]])
  if (is_surv && !is.null(strata_term(formula))) {
    formula[[3]] <- without_survival(formula[[3]])
  }
  if (is_surv && takes %in% c("Surv", "right")) {
    left[[1]] <- quote(Surv)
    left <- name_arguments(left, read_surv)
  } else if (is_censored(left) && identical(takes, "cens")) {
    of <- strip_parens(left[[3]])
    of <- name_arguments(of, function(x, y2 = NULL) NULL)
    left <- as.call(c(quote(cens), left[[2]], as.list(of)[-1]))
    left <- name_arguments(left, read_cens)
  } else {
    return(formula)
  }
  formula[[2]] <- left
  home <- environment(formula)
  name <- if (identical(takes, "right")) "Surv" else takes
  known <- stats::setNames(limit_readers[takes], name)
  if (name == "Surv") {
    known <- c(known, limit_readers["strata"])
  }
  is_known <- function(name) {
    identical(get0(name, home, inherits = FALSE), known[[name]])
  }
  if (!all(vapply(names(known), is_known, NA))) {
    environment(formula) <- list2env(known, parent = home)
  }
  formula
}

# survival's Surv, by either name
is_of_survival <- function(head) {
  identical(head, quote(Surv)) || identical(head, quote(survival::Surv))
}

# y | cens(x) or y | cens(x, y2), and nothing else behind the bar; or what
# with_limits() made of one.
is_censored <- function(left) {
  is.call(left) && identical(left[[1]], quote(`|`)) &&
    rlang::is_call(strip_parens(left[[3]]), "cens")
}

has_limits_left <- function(formula) {
  inherits(formula, "formula") && length(formula) == 3 &&
    rlang::is_call(formula[[2]], "cens") &&
    identical(get0("cens", environment(formula)), limit_readers$cens)
}

# What such a formula's environment has: a saved fit keeps these, and what they
# call is the package's that reads it.
limit_readers <- list(
  Surv = function(...) read_surv(...),
  right = function(...) read_right(...),
  cens = function(...) read_cens(...),
  strata = function(...) read_strata(...)
)

# The call, if these are arguments that f has.
name_arguments <- function(call, f) {
  tryCatch(match.call(f, call), error = function(e) {
    abort_input(
      c(
        "The left-hand side of {.arg formula} cannot be read:
         {.code {deparse1(call)}}.",
        x = escape_cli(conditionMessage(e))
      ),
      argument = "formula",
      value = call
    )
  })
  call
}

# ---- Surv() ------------------------------------------------------------------

surv_types <- c("right", "counting", "left", "interval", "interval2")

# As survival::Surv() reads its arguments, but for what all rows together say:
# events are TRUE or 1, and 1 and 2 are not taken for 0 and 1.
read_surv <- function(time, time2, event, type = NULL, origin = 0) {
  if (missing(time)) {
    abort_surv("{.code Surv()} must have a time.")
  }
  if (inherits(time, "Surv")) {
    return(columns_of_surv(time))
  }
  has_two <- !missing(time2) && !missing(event)
  type <- check_surv_type(type, has_two, missing(time2))
  time <- surv_time(time, origin, "time")
  # without names the second one is the event
  if (type %in% c("right", "left")) {
    status <- if (!missing(event)) {
      surv_event(event)
    } else if (!missing(time2)) {
      surv_event(time2)
    } else {
      rep(1, length(time))
    }
    is_left <- type == "left"
    return(limit_columns(time, 0, if (is_left) 2 - status else status))
  }
  time2 <- surv_time(time2, origin, "time2")
  if (type == "counting") {
    return(counting_columns(time, time2, surv_event(event)))
  }
  if (type == "interval2") {
    return(interval_columns(time, time2))
  }
  status <- as.double(event)
  check_surv_status(status, 0:3, "`0`, `1`, `2` or `3`")
  is_between <- status %in% 3
  limit_columns(time, ifelse(is_between, time2, 0), status)
}

# Of a hazard in pieces.
read_right <- function(...) {
  y <- read_surv(...)
  if (any(y[, 3] > 1, na.rm = TRUE)) {
    abort_tall(
      "unsupported",
      c(
        "{.code basehaz = \"piecewise\"} is for times that are censored on the
         right, {.code Surv(time, event)} or {.code Surv(start, stop, event)}.",
        i = "Hazards of a law, such as {.code basehaz = \"weibull\"}, take times
             that are censored on the left or in intervals."
      ),
      argument = "formula"
    )
  }
  y
}

check_surv_type <- function(type, has_two, has_one) {
  if (is.null(type)) {
    return(if (has_two) "counting" else "right")
  }
  if (identical(type, "mstate")) {
    abort_competing()
  }
  type <- check_choice(type, surv_types)
  is_short <- type %in% c("counting", "interval") && !has_two ||
    type == "interval2" && has_one
  if (is_short) {
    abort_surv(
      "{.code Surv(type = \"{type}\")} must have more arguments than these.",
      type
    )
  }
  type
}

surv_time <- function(time, origin, arg) {
  if (!is.numeric(time) && !inherits(time, "difftime")) {
    abort_surv(
      "{.arg {arg}} of {.code Surv()} must be numeric, not {describe(time)}.",
      time
    )
  }
  as.double(time) - origin
}

# 1: seen, 0: not; a factor has several causes.
surv_event <- function(event) {
  if (is.factor(event)) {
    abort_competing()
  }
  if (!is.logical(event) && !is.numeric(event)) {
    abort_surv(
      "The event of {.code Surv()} must be TRUE or FALSE, or 1 or 0, not
       {describe(event)}.",
      event
    )
  }
  event <- as.double(event)
  check_surv_status(event, 0:1, "TRUE or FALSE, or 1 or 0")
  event
}

check_surv_status <- function(status, known, words) {
  bad <- which(!status %in% c(known, NA))
  if (length(bad) == 0) {
    return(invisible())
  }
  seen <- status[[bad[[1]]]]
  hint <- if (seen == 2) {
    "Of events that are 2, write {.code Surv(time, status == 2)}; of several
     causes, that of each: {.code Surv(time, cause == 1)}."
  }
  abort_surv(
    "The event of {.code Surv()} must be {words}, not {format_number(seen)}.",
    seen,
    hint
  )
}

counting_columns <- function(start, stop, status) {
  is_early <- which(start < 0)
  if (length(is_early) > 0) {
    # 0 would say that the row was seen from the beginning
    abort_surv(
      "A row's entry in {.code Surv(start, stop, event)} must be 0 or later, not
       {format_number(start[is_early[[1]]])}.",
      start[is_early[[1]]]
    )
  }
  bad <- which(start >= stop)
  if (length(bad) > 0) {
    at <- bad[[1]]
    abort_surv(
      "A row must end after its entry: {.code Surv(start, stop, event)} has
       {format_number(start[[at]])} and {format_number(stop[[at]])}.",
      c(start[[at]], stop[[at]])
    )
  }
  limit_columns(stop, start, status)
}

# (NA or 0, t]: before t; (t, NA or Inf): beyond it; [t, t]: at t.
interval_columns <- function(lower, upper) {
  no_lower <- is.na(lower) | lower <= 0
  no_upper <- is.na(upper) | upper == Inf
  status <- ifelse(no_lower, 2, ifelse(no_upper, 0, ifelse(
    lower == upper,
    1,
    3
  )))
  status[no_lower & no_upper] <- NA
  time <- ifelse(no_lower, upper, lower)
  limit_columns(time, ifelse(status %in% 3, upper, 0), status)
}

# An object that survival::Surv() made.
columns_of_surv <- function(x) {
  type <- attr(x, "type")
  of <- unclass(x)
  switch(
    type,
    right = limit_columns(of[, 1], 0, of[, 2]),
    left = limit_columns(of[, 1], 0, 2 - of[, 2]),
    counting = counting_columns(of[, 1], of[, 2], of[, 3]),
    interval = limit_columns(
      of[, 1],
      ifelse(of[, 3] == 3, of[, 2], 0),
      of[, 3]
    ),
    abort_competing()
  )
}

abort_surv <- function(message, value = NULL, hint = NULL) {
  abort_input(
    c(message, i = hint),
    argument = "formula",
    value = value,
    .envir = parent.frame()
  )
}

abort_competing <- function() {
  abort_tall(
    "unsupported",
    c(
      "The event of {.code Surv()} must be of one kind: competing risks have no
       likelihood here.",
      i = "Fit one model for each cause, of which the others censor:
           {.code Surv(time, cause == \"relapse\")}. Its hazard is that of the
           cause among those that are still there."
    ),
    argument = "formula"
  )
}

# ---- cens() ------------------------------------------------------------------

# As brms reads cens(): "none" or 0, "right" or 1, "left" or -1, "interval" or
# 2, then to y2; TRUE and FALSE: "right" and "none".
read_cens <- function(y, x, y2 = NULL) {
  status <- cens_status(x)
  if (!is.numeric(y)) {
    abort_cens("The response of {.code cens()} must be numeric.", y)
  }
  status <- rep_len(status, length(y))
  is_between <- status %in% 3
  if (any(is_between) && is.null(y2)) {
    abort_cens(
      "{.code cens()} must have {.arg y2}, where the interval ends.",
      NULL
    )
  }
  limit_columns(y, if (is.null(y2)) 0 else ifelse(is_between, y2, 0), status)
}

cens_status <- function(x) {
  words <- c("right", "none", "left", "interval")
  codes <- if (is.character(x) || is.factor(x)) {
    match(as.character(x), words) - 1
  } else if (is.numeric(x) || is.logical(x)) {
    match(as.double(x), c(1, 0, -1, 2)) - 1
  } else {
    rep(NA_real_, length(x))
  }
  bad <- which(is.na(codes) & !is.na(x))
  if (length(bad) > 0) {
    abort_cens(
      "{.code cens()} must be {.val none}, {.val right}, {.val left} or
       {.val interval}, or 0, 1, -1 or 2, not {.val {x[[bad[[1]]]]}}.",
      x[[bad[[1]]]]
    )
  }
  codes
}

abort_cens <- function(message, value) {
  abort_input(
    message,
    argument = "formula",
    value = value,
    .envir = parent.frame()
  )
}

# What has limits, by the name of the response that has none.
censored_responses <- c(
  gaussian = "censored_gaussian",
  student = "censored_student",
  poisson = "censored_poisson",
  neg_binomial_2 = "censored_neg_binomial_2"
)

# The response of a formula with cens() on its left, of those that have one.
censored_family <- function(family, formula) {
  if (!has_limits_left(formula) || has_limits(family)) {
    return(family)
  }
  if (!family$name %in% names(censored_responses)) {
    abort_not_censored(family$name, formula)
  }
  new_family(
    find_response(censored_responses[[family$name]]),
    family$link,
    object = family$object,
    aux = family$aux
  )
}

abort_not_censored <- function(name, formula) {
  abort_tall(
    "unsupported",
    c(
      "{.code cens()} is for {.code family = gaussian()}, {.code student()},
       {.code poisson()} and {.code neg_binomial_2()}, not for {.val {name}}.",
      i = "Times to an event that are censored have {.fn tall_surv}; others
           are for {.fn model_custom}."
    ),
    argument = "formula",
    value = formula
  )
}

# ---- of a response -----------------------------------------------------------

# The three columns of what stands on the left of a formula; a column of the
# data may be what survival::Surv() made.
limits_response <- function(response, name) {
  if (inherits(response, "Surv")) {
    return(as_double_values(columns_of_surv(response)))
  }
  if (!is.matrix(response) || ncol(response) != 3) {
    abort_expected(response, "Surv(time, event)", arg = name)
  }
  as_double_values(response)
}
