# Group-level terms of a formula, by lme4's conventions: (1 | g), (1 + x | g),
# (x || g), (1 | a/b), which is (1 | a) + (1 | a:b).

# list(fixed, frame, terms): formulas of the population's part and of all
# variables together, and for each grouping factor list(effects, group, name,
# correlated): a one-sided formula, the expression of the factor, how it is
# called.
read_bars <- function(formula) {
  check_two_sided(formula)
  if ("." %in% all.vars(formula[[3]])) {
    abort_tall(
      "unsupported",
      "{.arg formula} has a {.code .} beside a group-level term: write the
       columns out.",
      argument = "formula",
      value = formula
    )
  }
  terms <- sum_terms(formula[[3]])
  is_bar <- vapply(terms, is_bar_term, TRUE)
  check_bars(terms, is_bar, formula)
  bars <- lapply(terms[is_bar], function(one) strip_parens(one$term))
  fixed <- formula
  fixed[[3]] <- join_terms(terms[!is_bar])
  frame <- formula
  frame[[3]] <- fixed[[3]]
  own <- list()
  for (bar in bars) {
    group <- strip_parens(bar[[3]])
    check_group_term(group, formula)
    check_effect_offset(bar, formula)
    frame[[3]] <- call("+", call("+", frame[[3]], bar[[2]]), plain_group(group))
    own <- c(own, lapply(nested_groups(group), function(group) {
      list(
        effects = stats::as.formula(
          call("~", bar[[2]]),
          environment(formula)
        ),
        group = group,
        name = gsub(" ", "", deparse1(group)),
        correlated = identical(bar[[1]], quote(`|`))
      )
    }))
  }
  check_factors_once(own, formula)
  list(fixed = fixed, frame = frame, terms = own)
}

# Of one grouping factor: its term beside the formulas.
split_bars <- function(bars) {
  term <- bars$terms[[1]]
  c(bars["fixed"], term, bars["frame"])
}

# a/b/c is a, a:b, a:b:c
nested_groups <- function(group) {
  if (!(is.call(group) && identical(group[[1]], as.name("/")))) {
    return(list(group))
  }
  outer <- nested_groups(strip_parens(group[[2]]))
  inner <- call(":", outer[[length(outer)]], strip_parens(group[[3]]))
  c(outer, list(inner))
}

# What a model frame takes: the variables of nested groups, too.
plain_group <- function(group) {
  nested <- nested_groups(group)
  nested[[length(nested)]]
}

check_factors_once <- function(terms, formula) {
  names <- vapply(terms, `[[`, "", "name")
  twice <- names[duplicated(names)]
  if (length(twice) > 0) {
    name <- twice[[1]]
    abort_input(
      c(
        "{.arg formula} must have one group-level term for each grouping factor,
         and {.code {name}} has several.",
        i = "Effects of {.code {name}} that are not correlated are
             {.code (1 + x || {name})}, correlated ones
             {.code (1 + x | {name})}."
      ),
      argument = "formula",
      value = formula
    )
  }
}

# The terms of a sum, each list(sign, term).
sum_terms <- function(x, sign = "+") {
  is_op <- function(op) is.call(x) && identical(x[[1]], as.name(op))
  if (is_op("+") && length(x) == 3) {
    c(sum_terms(x[[2]], sign), sum_terms(x[[3]], sign))
  } else if (is_op("+")) {
    sum_terms(x[[2]], sign)
  } else if (is_op("-") && length(x) == 3) {
    c(sum_terms(x[[2]], sign), list(list(sign = "-", term = x[[3]])))
  } else if (is_op("-")) {
    list(list(sign = "-", term = x[[2]]))
  } else {
    list(list(sign = sign, term = x))
  }
}

join_terms <- function(terms) {
  out <- NULL
  for (one in terms) {
    out <- if (is.null(out)) {
      if (one$sign == "+") one$term else call("-", one$term)
    } else {
      call(one$sign, out, one$term)
    }
  }
  out %||% 1
}

is_bar_call <- function(x) {
  is.call(x) && as.character(x[[1]])[[1]] %in% c("|", "||")
}

is_bar_term <- function(one) {
  one$sign == "+" && is.call(one$term) &&
    identical(one$term[[1]], as.name("(")) &&
    is_bar_call(strip_parens(one$term))
}

# Group-level terms, and nowhere else a bar.
check_bars <- function(terms, is_bar, formula) {
  inside <- Filter(
    Negate(is.null),
    lapply(terms[!is_bar], function(one) find_bar(one$term))
  )
  if (length(inside) > 0) {
    shown <- deparse1(inside[[1]])
    abort_input(
      c(
        "{.arg formula} must have each group-level term in parentheses, added
         to the others.",
        x = "{.code {shown}} is not.",
        i = "Write {.code y ~ x + (1 | g)}; a logical \"or\" is
             {.code I(a | b)}."
      ),
      argument = "formula",
      value = formula
    )
  }
  if (!any(is_bar)) {
    abort_input(
      c(
        "{.arg formula} must have a group-level term such as {.code (1 | g)}.",
        i = "Without one, use {.fn tall_glm}."
      ),
      argument = "formula",
      value = formula
    )
  }
}

# Does an expression call the function?
has_call <- function(x, name) {
  is.call(x) && (identical(x[[1]], as.name(name)) ||
    any(vapply(as.list(x)[-1], has_call, TRUE, name)))
}

# An offset has no coefficient, and so none that differs between groups.
check_effect_offset <- function(bar, formula) {
  if (has_call(bar, "offset")) {
    shown <- deparse1(bar)
    abort_input(
      c(
        "{.arg formula} must have {.fn offset} outside of the group-level term:
         {.code ({shown})} has one inside.",
        i = "An offset counts once for each row, in whatever group it is: write
             {.code y ~ offset(x) + (1 | g)}. For effects of {.code x} that
             differ between groups write {.code (x | g)}."
      ),
      argument = "formula",
      value = formula
    )
  }
}

check_group_term <- function(group, formula) {
  shown <- deparse1(group)
  has_other <- vapply(c("+", "*", "|"), has_call, TRUE, x = group)
  if (any(has_other)) {
    abort_input(
      c(
        "{.arg formula} must have one grouping factor after the bar, not
         {.code {shown}}.",
        i = "An interaction is {.code a:b}, groups within others are
             {.code a/b}, and two factors have terms of their own,
             {.code (1 | a) + (1 | b)}."
      ),
      argument = "formula",
      value = formula
    )
  }
}

# ---- of a model frame --------------------------------------------------------

# Terms of a part of the frame's formula, with the constants that variables such
# as poly() took from the data.
part_terms <- function(formula, frame) {
  whole <- attr(frame, "terms")
  terms <- stats::terms(formula)
  of <- function(terms) {
    vapply(as.list(attr(terms, "variables"))[-1], deparse1, "")
  }
  at <- match(of(terms), of(whole))
  attr(terms, "predvars") <- as.call(
    c(quote(list), as.list(attr(whole, "predvars"))[-1][at])
  )
  attr(terms, "dataClasses") <- attr(whole, "dataClasses")[at]
  attr(terms, ".Environment") <- environment(formula)
  terms
}

# The columns of the frame that these terms have, with weights and offset.
part_frame <- function(terms, frame) {
  variables <- vapply(as.list(attr(terms, "variables"))[-1], deparse1, "")
  own <- intersect(c("(weights)", "(offset)"), names(frame))
  out <- frame[c(variables, own)]
  attr(out, "terms") <- terms
  out
}

# A factor whose levels are in the order of the data's own.
group_factor <- function(group, frame) {
  if (is.call(group) && identical(group[[1]], as.name(":"))) {
    return(quick_interaction(
      group_factor(group[[2]], frame),
      group_factor(group[[3]], frame)
    ))
  }
  quick_factor(frame[[deparse1(strip_parens(group))]])
}

# factor() without writing every value out, and without a copy of a factor whose
# levels are all there. Numbers that are written alike are one level.
quick_factor <- function(x) {
  if (is.factor(x) && !anyNA(levels(x))) {
    is_there <- tabulate(x, nlevels(x)) > 0
    return(if (all(is_there)) x else factor(x))
  }
  if (!is.null(attributes(x)) || !typeof(x) %in% c("integer", "double")) {
    return(factor(x))
  }
  code_numbers(x, as.character) %||% factor(x)
}

# interaction() in the order of the first factor, of levels that are there.
quick_interaction <- function(a, b) {
  n <- nlevels(b)
  code <- if (nlevels(a) < .Machine$integer.max / max(1, n)) {
    (as.integer(a) - 1L) * n + as.integer(b)
  } else {
    (as.integer(a) - 1) * n + as.integer(b)
  }
  label <- function(code) {
    paste0(
      levels(a)[(code - 1) %/% n + 1],
      ":",
      levels(b)[(code - 1) %% n + 1]
    )
  }
  code_numbers(code, label) %||%
    interaction(a, b, sep = ":", drop = TRUE, lex.order = TRUE)
}

# A factor of numbers in their order, with labels made of them; NULL: two have
# the same one. Whole numbers that lie together need a table of their span,
# which takes less than a hash of all.
code_numbers <- function(x, label) {
  before <- table_start(x)
  if (is.null(before)) {
    values <- sort(unique(x))
    codes <- match(x, values)
  } else {
    if (before != 0) {
      x <- x - before
    }
    is_there <- tabulate(x) > 0
    values <- before + which(is_there)
    codes <- cumsum(is_there)[x]
  }
  labels <- label(values)
  if (anyDuplicated(labels) > 0) {
    return(NULL)
  }
  attr(codes, "levels") <- labels
  class(codes) <- "factor"
  codes
}

# One less than the least of whole numbers whose span is shorter than they are;
# NULL: others.
table_start <- function(x) {
  if (!is.integer(x) || length(x) == 0 || (is.na(x[[1]]) && all(is.na(x)))) {
    return(NULL)
  }
  least <- min(x, na.rm = TRUE)
  span <- as.double(max(x, na.rm = TRUE)) - least
  if (span < length(x) && least > -.Machine$integer.max) least - 1L
}
