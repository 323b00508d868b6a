# Formulas with smooth terms, as mgcv writes them: which are fitted, and what to
# write in place of others. What is left are calls of s() and t2(), which the
# formula's environment has from here (see smooth_functions()).

# The formula with bars as s(g, bs = "re"), in an environment that has s() and
# t2(). knots: by variable, as in mgcv::gam().
smooth_formula <- function(formula, knots = NULL) {
  check_two_sided(formula)
  knots <- check_knots(knots)
  terms <- sum_terms(formula[[3]])
  groups <- character()
  parts <- lapply(terms, function(one) {
    bars <- list(one$term)
    if (is_bar_term(one)) {
      of <- bar_groups(one$term)
      groups <<- c(groups, vapply(of, deparse1, ""))
      bars <- smooths_of_bar(one$term, of, formula)
    }
    lapply(bars, function(term) list(sign = one$sign, term = term))
  })
  terms <- unlist(parts, recursive = FALSE)
  formula[[3]] <- join_terms(terms)
  home <- new.env(parent = environment(formula))
  made <- smooth_functions(knots, groups)
  for (name in names(made)) {
    assign(name, made[[name]], home)
  }
  environment(formula) <- home
  check_smooth_terms(formula)
  check_unused_knots(knots, formula)
  formula
}

# The calls of s() and t2() in a formula of smooth_formula().
formula_smooths <- function(formula) {
  home <- environment(formula)
  Filter(
    function(term) is_smooth_call(term, home),
    formula_terms(formula[[length(formula)]])
  )
}

# ---- what is refused ---------------------------------------------------------

check_smooth_terms <- function(formula) {
  home <- environment(formula)
  check_smooth_calls(formula)
  check_terms(formula)
  calls <- formula_smooths(formula)
  if (length(calls) == 0) {
    return(invisible())
  }
  rlang::check_installed("mgcv", "for smooth terms.")
  labels <- vapply(calls, function(call) {
    smooth_label(check_smooth_call(call, home, formula))
  }, "")
  again <- labels[duplicated(labels)]
  if (length(again) > 0) {
    abort_input(
      c(
        "{.arg formula} must have each smooth term once, and
         {.code {again[[1]]}} is there twice.",
        i = "One term with a larger {.arg k} is as flexible as both."
      ),
      argument = "formula",
      value = again
    )
  }
  check_smooth_products(formula, calls)
}

# Those of mgcv and brms that are not fitted, with what to write. Plain text.
other_smooths <- list(
  te = list(
    what = "tensor products are written with t2()",
    instead = function(x) paste0("Write `t2(", list_text(x), ")`.")
  ),
  ti = list(
    what = "tensor products are written with t2()",
    instead = function(x) {
      paste0(
        "`t2(", list_text(x), ")` has the curves of each variable, too: leave ",
        paste0("`s(", x, ")`", collapse = " and "), " out."
      )
    }
  ),
  gp = list(
    what = "Gaussian processes are a basis of s()",
    instead = function(x) {
      paste0("Write `s(", list_text(x), ", bs = \"gp\")`.")
    }
  )
)

list_text <- function(x) paste(x, collapse = ", ")

check_smooth_calls <- function(formula) {
  home <- environment(formula)
  for (term in formula_terms(formula[[3]])) {
    head <- if (is.call(term)) term[[1]]
    if (is.call(head) && identical(head[[1]], quote(`::`)) &&
      as.character(head[[3]]) %in% smooth_names) {
      name <- as.character(head[[3]])
      abort_input(
        "{.arg formula} must have {.code {name}()} by its name alone, not
         {.code {deparse1(head)}()}.",
        argument = "formula",
        value = term
      )
    }
    check_no_smooth_inside(term, home)
    name <- foreign_name(term, names(other_smooths), home)
    if (!is.null(name)) {
      abort_foreign_term(term, other_smooths[[name]], formula)
    }
  }
}

# Such as log(s(x)).
check_no_smooth_inside <- function(term, home) {
  parts <- if (is.call(term)) as.list(term)[-1]
  while (length(parts) > 0) {
    part <- parts[[1]]
    parts <- parts[-1]
    if (is_smooth_call(part, home)) {
      abort_input(
        "{.arg formula} must add smooth terms, and {.code {deparse1(term)}} has
         {.code {deparse1(part)}} inside of another function.",
        argument = "formula",
        value = term
      )
    }
    if (is.call(part)) {
      parts <- c(parts, as.list(part)[-1])
    }
  }
}

# s(x):z is by = z.
check_smooth_products <- function(formula, calls) {
  terms <- stats::terms(drop_dot(formula))
  factors <- attr(terms, "factors")
  shown <- vapply(calls, deparse1, "")
  inside <- colSums(factors[rownames(factors) %in% shown, , drop = FALSE] > 0)
  several <- colSums(factors > 0) > 1 & inside > 0
  if (!any(several)) {
    return(invisible())
  }
  label <- colnames(factors)[several][[1]]
  abort_tall(
    "unsupported",
    c(
      "{.arg formula} has {.code {label}}: smooth terms take no part in
       interactions.",
      i = "{.code s(x, by = z)} is a curve of {.code x} times {.code z}, or one
           for each level; {.code t2(x, z)} a surface."
    ),
    argument = "formula",
    value = label
  )
}

drop_dot <- function(formula) {
  if ("." %in% all.vars(formula[[3]])) {
    abort_tall(
      "unsupported",
      "{.arg formula} has a {.code .} beside smooth terms: write the columns
       out.",
      argument = "formula",
      value = formula
    )
  }
  formula
}

# ---- bars --------------------------------------------------------------------

# The factors whose levels together are the groups of a bar.
bar_groups <- function(term) {
  group <- strip_parens(strip_parens(term)[[3]])
  if (has_call(group, ":")) as.list(group)[-1] else list(group)
}

# (1 | g) as s(g, bs = "re"); of effects that are not correlated, one each.
# groups: of bar_groups().
smooths_of_bar <- function(term, groups, formula) {
  bar <- strip_parens(term)
  check_effect_offset(bar, formula)
  check_group_term(strip_parens(bar[[3]]), formula)
  check_not_nested(strip_parens(bar[[3]]), formula)
  effects <- stats::terms(stats::as.formula(call("~", bar[[2]])))
  slopes <- lapply(attr(effects, "term.labels"), str2lang)
  has_intercept <- attr(effects, "intercept") > 0
  n <- length(slopes) + has_intercept
  if (n > 1 && identical(bar[[1]], quote(`|`))) {
    shown <- deparse1(bar)
    other <- paste(deparse1(bar[[2]]), "||", deparse1(bar[[3]]))
    abort_tall(
      "unsupported",
      c(
        "{.arg formula} has ({.code {shown}}), effects that are correlated with
         each other.",
        i = "{.code ({other})} has them without correlations; {.fn tall_glmer}
             fits correlated ones."
      ),
      argument = "formula",
      value = formula
    )
  }
  made <- function(more) as.call(c(quote(s), groups, more, bs = "re"))
  c(if (has_intercept) list(made(list())), lapply(slopes, function(x) {
    made(list(x))
  }))
}

check_not_nested <- function(group, formula) {
  if (has_call(group, "/")) {
    each <- vapply(nested_groups(group), deparse1, "")
    each <- gsub(" ", "", each)
    apart <- paste0("(1 | ", each, ")", collapse = " + ")
    abort_tall(
      "unsupported",
      c(
        "{.arg formula} has nested groups, {.code {deparse1(group)}}, which are
         several terms.",
        i = "Write {.code {apart}}. {.fn tall_glmer} takes both, also of many
             groups."
      ),
      argument = "formula",
      value = formula
    )
  }
}

# ---- knots -------------------------------------------------------------------

check_knots <- function(knots) {
  if (is.null(knots)) {
    return(NULL)
  }
  if (!is.list(knots) || !rlang::is_named(knots)) {
    abort_expected(knots, "a named list of knots by variable", arg = "knots")
  }
  for (name in names(knots)) {
    own <- knots[[name]]
    is_number <- is_plain_numeric(own) || is_time(own)
    if (!is_number || length(own) < 2 || !all(is.finite(own))) {
      abort_expected(
        own,
        "at least two finite numbers, or dates or times,",
        arg = paste0("knots$", name)
      )
    }
    if (length(unique(own)) < 2) {
      abort_input(
        "{.arg knots${name}} must have at least two values, not
         {format(own[[1]])} alone.",
        argument = "knots",
        value = own
      )
    }
  }
  lapply(knots, function(own) if (is_time(own)) own else as.double(own))
}

check_unused_knots <- function(knots, formula) {
  used <- unlist(lapply(formula_smooths(formula), function(call) {
    check_smooth_call(call, environment(formula))$term
  }))
  other <- setdiff(names(knots), used)
  if (length(other) > 0) {
    abort_input(
      c(
        "{.arg knots} must be of variables in smooth terms, and
         {.code {other[[1]]}} is in none.",
        i = if (length(used) > 0) {
          "They have {.code {unique(used)}}."
        }
      ),
      argument = "knots",
      expected = used,
      value = other
    )
  }
}
