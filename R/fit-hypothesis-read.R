# What a hypothesis says: names of variables, which need not be names of R,
# found in a string; its two sides; and whether it is linear.

# read(variables, prefix): list(label, sign, expression, of) of each string; of
# names of `expression`, the left side less the right side, to variables.
hypotheses_of <- function(hypothesis) {
  check_given(hypothesis)
  is_text <- is.character(hypothesis) && length(hypothesis) > 0 &&
    !anyNA(hypothesis)
  if (!is_text) {
    abort_expected(hypothesis, "strings such as \"x > 0\"", arg = "hypothesis")
  }
  labels <- rlang::names2(hypothesis)
  function(variables, prefix) {
    known <- known_names(variables, prefix)
    Map(function(text, label) {
      read_hypothesis(text, label, known)
    }, unname(hypothesis), labels, USE.NAMES = FALSE)
  }
}

# Of what may be written the variables that are meant: their names, without the
# prefix, and where these are no other variable's, with Intercept for
# (Intercept), and b_ before them.
known_names <- function(variables, prefix) {
  own <- variables[startsWith(variables, prefix)]
  known <- stats::setNames(own, substring(own, nchar(prefix) + 1))
  if (length(own) == 0) {
    abort_input(
      c(
        "The fit has no parameter that begins with {.val {prefix}}.",
        i = "It has {.val {variables}}."
      ),
      argument = "class",
      value = prefix,
      expected = variables
    )
  }
  plain <- gsub("(Intercept)", "Intercept", names(known), fixed = TRUE)
  both <- c(known, stats::setNames(known, plain))
  all <- c(both, stats::setNames(both, paste0("b_", names(both))))
  all[!duplicated(names(all))]
}

read_hypothesis <- function(text, label, known) {
  marked <- mark_names(text, known)
  sides <- strsplit(paste0(marked$text, " "), "[<>=]")[[1]]
  sign <- regmatches(marked$text, gregexpr("[<>=]", marked$text))[[1]]
  if (length(sign) != 1 || length(sides) != 2 || any(trimws(sides) == "")) {
    abort_hypothesis(text, "have one of =, > and < between its two sides")
  }
  expression <- lapply(sides, function(side) {
    found <- tryCatch(parse(text = side), error = function(e) NULL)
    if (length(found) != 1) {
      abort_hypothesis(text, "be what R can read")
    }
    found[[1]]
  })
  is_zero <- identical(expression[[2]], 0)
  whole <- if (is_zero) {
    expression[[1]]
  } else {
    call("-", expression[[1]], expression[[2]])
  }
  check_hypothesis_names(text, whole, marked$of, known)
  if (label == "") {
    label <- paste(label_of(sides, is_zero, marked$of), sign, "0")
  }
  list(label = label, sign = sign, expression = whole, of = marked$of)
}

# As brms shows it.
label_of <- function(sides, is_zero, of) {
  for (mark in rev(names(of))) {
    sides <- gsub(mark, of[[mark]], sides, fixed = TRUE)
  }
  sides <- paste0("(", gsub("[[:space:]]", "", sides), ")")
  sides <- gsub("((Intercept))", "(Intercept)", sides, fixed = TRUE)
  if (is_zero) sides[[1]] else paste(sides, collapse = "-")
}

# list(text, of): the text with a name of R in the place of each variable's,
# longer ones first. `of` says which are whose.
mark_names <- function(text, known) {
  of <- character()
  taken <- logical(nchar(text))
  found <- data.frame(at = integer(), size = integer(), name = character())
  for (name in names(known)[order(-nchar(names(known)))]) {
    for (form in c(paste0("`", name, "`"), name)) {
      for (at in places_of(form, text)) {
        own <- seq(at, length.out = nchar(form))
        if (!any(taken[own])) {
          taken[own] <- TRUE
          found <- rbind(found, data.frame(at, size = nchar(form), name))
        }
      }
    }
  }
  # from the end, so that places before it stay
  for (k in order(-found$at)) {
    mark <- paste0(".v", k, ".")
    of[[mark]] <- known[[found$name[[k]]]]
    before <- substring(text, 1, found$at[[k]] - 1)
    after <- substring(text, found$at[[k]] + found$size[[k]])
    text <- paste0(before, mark, after)
  }
  list(text = text, of = of)
}

# Where a name is by itself: not within a longer one, nor a function's.
places_of <- function(form, text) {
  at <- gregexpr(form, text, fixed = TRUE)[[1]]
  if (at[[1]] < 0) {
    return(NULL)
  }
  end <- at + nchar(form)
  is_word <- function(x) grepl("^[[:alnum:]._]$", x)
  before <- substring(text, at - 1, at - 1)
  after <- substring(text, end, end)
  first <- substring(form, 1, 1)
  last <- substring(form, nchar(form))
  within <- is_word(before) & (is_word(first) | first == "(") |
    is_word(after) & is_word(last) |
    after == "(" & is_word(last)
  at[!within]
}

check_hypothesis_names <- function(text, expression, of, known) {
  whole <- unlist(lapply(calls_to(expression, ":"), function(call) {
    gsub("[`[:space:]]", "", unmark(call, of))
  }))
  unknown <- c(whole, setdiff(all.vars(expression), c(names(of), "pi")))
  if (length(unknown) > 0) {
    hint <- did_you_mean(unknown[[1]], names(known))
    abort_input(
      c(
        "{.arg hypothesis} {.val {text}} must be about parameters of the fit;
         {.val {unknown[[1]]}} is none.",
        i = hint %||% "It has {.val {unique(unname(known))}}."
      ),
      argument = "hypothesis",
      value = text,
      expected = unname(known)
    )
  }
  if (length(of) == 0) {
    abort_hypothesis(text, "be about a parameter of the fit")
  }
}

calls_to <- function(expression, name) {
  if (!is.call(expression)) {
    return(NULL)
  }
  if (identical(expression[[1]], as.name(name))) {
    return(list(expression))
  }
  unlist(lapply(as.list(expression)[-1], calls_to, name), recursive = FALSE)
}

unmark <- function(expression, of) {
  text <- deparse1(expression)
  for (mark in names(of)) {
    text <- gsub(mark, of[[mark]], text, fixed = TRUE)
  }
  text
}

# must: the rest of a sentence.
abort_hypothesis <- function(text, must) {
  abort_input(
    paste0("{.arg hypothesis} {.val {text}} must ", must, "."),
    argument = "hypothesis",
    value = text
  )
}

# ---- numbers -----------------------------------------------------------------

# A number for each draw.
evaluate_hypothesis <- function(one, draws) {
  values <- lapply(one$of, function(name) unname(draws[, name]))
  psi <- tryCatch(
    suppressWarnings(eval(one$expression, values, globalenv())),
    error = function(e) {
      abort_input(
        "{.arg hypothesis} {.val {one$label}} failed.",
        argument = "hypothesis",
        parent = e
      )
    }
  )
  if (!is.numeric(psi) || length(psi) != nrow(draws)) {
    abort_hypothesis(one$label, "be a number for each draw")
  }
  bad <- sum(!is.finite(psi))
  if (bad > 0) {
    abort_hypothesis(
      one$label,
      paste("be a finite number in each draw, which it is not in", bad)
    )
  }
  as.double(psi)
}

# c("(constant)" =, variable = coefficient, ...) of a linear expression; NULL of
# others.
linear_form <- function(expression, of) {
  if (is.numeric(expression)) {
    return(c("(constant)" = as.double(expression)))
  }
  if (is.name(expression)) {
    mark <- as.character(expression)
    return(if (mark %in% names(of)) {
      c("(constant)" = 0, stats::setNames(1, of[[mark]]))
    } else {
      c("(constant)" = pi)
    })
  }
  if (length(intersect(all.vars(expression), names(of))) == 0) {
    value <- eval(expression, globalenv())
    is_one <- is.numeric(value) && length(value) == 1
    return(if (is_one) c("(constant)" = as.double(value)))
  }
  sides <- lapply(as.list(expression)[-1], linear_form, of)
  if (any(vapply(sides, is.null, TRUE))) {
    return(NULL)
  }
  operator <- expression[[1]]
  linear_call(if (is.name(operator)) as.character(operator) else "", sides)
}

linear_call <- function(operator, sides) {
  if (length(sides) == 1) {
    return(switch(operator, "(" = , "+" = sides[[1]], "-" = -sides[[1]]))
  }
  if (length(sides) != 2) {
    return(NULL)
  }
  is_constant <- lengths(sides) == 1
  switch(
    operator,
    "+" = add_linear(sides[[1]], sides[[2]]),
    "-" = add_linear(sides[[1]], -sides[[2]]),
    "*" = if (any(is_constant)) {
      at <- which(is_constant)[[1]]
      unname(sides[[at]]) * sides[[3 - at]]
    },
    "/" = if (is_constant[[2]]) sides[[1]] / unname(sides[[2]])
  )
}

add_linear <- function(a, b) {
  names <- union(names(a), names(b))
  both <- stats::setNames(numeric(length(names)), names)
  both[names(a)] <- both[names(a)] + a
  both[names(b)] <- both[names(b)] + b
  both
}
