# Terms of formulas that other packages read in their own way, such as mgcv's
# s(x) and brms's y | trials(n): refused, with what to write instead.

check_terms <- function(formula) {
  check_no_bars(formula)
  home <- environment(formula)
  if (length(formula) == 3) {
    check_addition(formula[[2]], home)
  }
  for (term in formula_terms(formula[[length(formula)]])) {
    name <- foreign_name(term, names(foreign_terms), home)
    if (!is.null(name)) {
      abort_foreign_term(term, foreign_terms[[name]], formula)
    }
  }
}

# What the operators of formulas join, in order. Not by recursion: a sum of many
# columns is as deep.
formula_terms <- function(term) {
  operators <- c("+", "-", "*", "/", ":", "^", "%in%", "(")
  open <- list(term)
  terms <- list()
  while (length(open) > 0) {
    last <- open[[length(open)]]
    open[[length(open)]] <- NULL
    is_joined <- is.call(last) && is.symbol(last[[1]]) &&
      as.character(last[[1]]) %in% operators
    if (is_joined) {
      open <- c(open, rev(as.list(last)[-1]))
    } else {
      terms[[length(terms) + 1]] <- last
    }
  }
  terms
}

# Which of `names` is called, unless it is a function of the user's own; NULL:
# none.
foreign_name <- function(term, names, home) {
  if (!is.call(term)) {
    return(NULL)
  }
  head <- term[[1]]
  if (is.call(head) && identical(head[[1]], quote(`::`))) {
    package <- as.character(head[[2]])
    name <- as.character(head[[3]])
  } else if (is.symbol(head)) {
    name <- as.character(head)
    there <- get0(name, home, mode = "function")
    space <- if (is.null(there)) NULL else topenv(environment(there))
    package <- if (is.null(there)) {
      "none"
    } else if (isNamespace(space)) {
      getNamespaceName(space)[[1]]
    } else {
      "the user's"
    }
  } else {
    return(NULL)
  }
  homes <- c(
    "none", "base", "stats", "mgcv", "gam", "gamm4", "brms", "survival"
  )
  if (name %in% names && package %in% homes) name
}

strip_parens <- function(x) {
  while (is.call(x) && identical(x[[1]], as.name("("))) {
    x <- x[[2]]
  }
  x
}

# (1 | g) would be read as a logical column.
check_no_bars <- function(formula) {
  bar <- find_bar(formula[[length(formula)]])
  if (is.null(bar)) {
    return(invisible())
  }
  abort_tall(
    "unsupported",
    c(
      "{.arg formula} has the term {.code ({deparse1(bar)})}: group-level terms
       are not fitted here.",
      i = "{.fn tall_glmer} fits them. A logical \"or\" is
           {.code I(a | b)}."
    ),
    argument = "formula",
    value = formula
  )
}

# The first `|` that is not inside a function such as I(), or NULL.
find_bar <- function(term) {
  is_bar <- function(x) {
    is.call(x) && is.symbol(x[[1]]) && as.character(x[[1]]) %in% c("|", "||")
  }
  Find(is_bar, formula_terms(term))
}

# ---- terms -------------------------------------------------------------------

# list(what, instead): what is not fitted, and what to write, of the term's
# arguments as text. Plain text.
smooth_term <- list(
  what = "smooth terms are not fitted here",
  instead = function(x) {
    curves <- paste0("splines::ns(", x, ", df = 4)")
    paste0(
      "`tall_gam()` fits them. Natural splines are curves of a number of ",
      "degrees of freedom: `",
      paste(curves, collapse = " * "),
      "`",
      if (length(x) == 1) paste0("; `poly(", x, ", 3)` is a polynomial"),
      "."
    )
  }
)

correlated_term <- list(
  what = "observations are independent here, given the parameters",
  instead = function(x) "Other models are for `model_custom()`."
)

error_term <- list(
  what = "covariates are taken as measured without error",
  instead = function(x) "Other models are for `model_custom()`."
)

foreign_terms <- list(
  s = smooth_term,
  te = smooth_term,
  ti = smooth_term,
  t2 = smooth_term,
  gp = smooth_term,
  mo = list(
    what = "monotonic effects are not fitted here",
    instead = function(x) {
      paste0(
        "`factor(", x[[1]], ", ordered = FALSE)` has a coefficient for each ",
        "level, an ordered factor polynomials of its levels."
      )
    }
  ),
  cs = list(
    what = "effects of ordered classes are the same for all of them",
    instead = function(x) "`tall_multinom()` has coefficients of each class."
  ),
  me = error_term,
  mi = error_term,
  ar = correlated_term,
  ma = correlated_term,
  arma = correlated_term,
  cosy = correlated_term,
  gr = list(
    what = "groups are independent here",
    instead = function(x) paste0("Write `(1 | ", x[[1]], ")`.")
  ),
  mm = list(
    what = "a row is of one group",
    instead = function(x) "Other models are for `model_custom()`."
  )
)

# Arguments without a name: those with one, as k = 10, say how smooth it is.
term_arguments <- function(term) {
  given <- as.list(term)[-1]
  bare <- (names(given) %||% rep("", length(given))) == ""
  shown <- if (any(bare)) given[bare] else given
  if (length(shown) > 0) unname(vapply(shown, deparse1, "")) else "x"
}

abort_foreign_term <- function(term, entry, formula) {
  abort_tall(
    "unsupported",
    c(
      "{.arg formula} has the term {.code {deparse1(term)}}: {entry$what}.",
      i = escape_cli(entry$instead(term_arguments(term)))
    ),
    argument = "formula",
    value = formula
  )
}

# ---- y | trials(n) -----------------------------------------------------------

not_available <- function(what) {
  function(y, x) {
    paste(what, "are not available; they are for `model_custom()`.")
  }
}

# What to write, of the response and the term's argument as text.
additions <- list(
  trials = function(y, x) {
    if (x == "1") {
      paste0("Without trials a response is 0 or 1: `", y, " ~ ...`.")
    } else {
      paste0("Write `cbind(", y, ", ", x, " - ", y, ") ~ ...`: successes and ",
        "failures.")
    }
  },
  weights = function(y, x) {
    paste0("Weights are an argument: `weights = ", x, "`.")
  },
  subset = function(y, x) {
    paste0("It is an argument: `subset = ", x, "`.")
  },
  rate = function(y, x) {
    paste0("Write `", y, " ~ ... + offset(log(", x, "))`.")
  },
  cens = function(y, x) {
    paste0(
      "Censored numbers are `", y, " | cens(", x, ") ~ ...` of `tall_glm()`, ",
      "`tall_gam()` and `tall_glmer()`; times to an event have `tall_surv()`."
    )
  },
  trunc = function(y, x) {
    paste(
      "Counts of which none is 0 have `family = truncated_poisson()`; other",
      "truncated responses are for `model_custom()`."
    )
  },
  se = not_available("Known standard errors"),
  mi = function(y, x) {
    "Rows without a response are left out; models of them: `model_custom()`."
  },
  thres = function(y, x) {
    "Thresholds are those of the levels of the response, an ordered factor."
  },
  cat = function(y, x) {
    "Classes are the levels of the response, a factor."
  },
  dec = not_available("Models of decisions")
)

# What of a left side that is no response of one number a row: what to write.
several_numbers <- list(
  Surv = function(of) {
    time <- of[[1]]
    event <- if (length(of) > 1) of[[2]] else "event"
    if (length(of) > 2) {
      time <- paste0("(", of[[2]], " - ", of[[1]], ")")
      event <- of[[3]]
    }
    paste0(
      "`tall_surv()` fits times to an event. With a constant hazard they are ",
      "counts, too: `", event, " ~ ... + offset(log(", time,
      "))` with `family = poisson()`; with one that is constant in pieces, ",
      "the same of the rows that `survival::survSplit()` makes, and a factor ",
      "of the pieces."
    )
  },
  mvbind = function(of) {
    each <- paste0("`", of, "`", collapse = ", ")
    paste0("Fit one model for each: ", each, ".")
  }
)

check_one_response <- function(left, home) {
  name <- foreign_name(left, names(several_numbers), home)
  if (is.null(name)) {
    return(invisible())
  }
  abort_tall(
    "unsupported",
    c(
      "The left-hand side of {.arg formula} must be a response of one number a
       row, not {.code {deparse1(left)}}.",
      i = escape_cli(several_numbers[[name]](term_arguments(left)))
    ),
    argument = "formula",
    value = left
  )
}

# The left side is a response, with nothing behind a `|`. Of a logical one,
# a | b, it is an operator.
check_addition <- function(left, home) {
  left <- strip_parens(left)
  check_one_response(left, home)
  if (!is.call(left) || !identical(left[[1]], quote(`|`))) {
    return(invisible())
  }
  for (term in formula_terms(left[[3]])) {
    name <- foreign_name(term, names(additions), home)
    if (is.null(name)) {
      next
    }
    y <- deparse1(left[[2]])
    abort_tall(
      "unsupported",
      c(
        "The left-hand side of {.arg formula} must be the response alone, not
         {.code {deparse1(left)}}.",
        i = escape_cli(additions[[name]](y, term_arguments(term)[[1]]))
      ),
      argument = "formula",
      value = left
    )
  }
}
