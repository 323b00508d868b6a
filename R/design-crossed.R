# What a model of several grouping factors takes of a model frame.

# What a model takes of a frame: list(x, y, trials, levels, weights, offset,
# factors, arg_y, fixed, contrasts), see frame_sides(); fixed: terms; factors:
# for each list(name, group, z, correlated, design), z NULL where it is an
# intercept alone, design what reads other frames as this one was read.
crossed_sides <- function(frame, bars, family) {
  fixed <- part_terms(bars$fixed, frame)
  own <- part_frame(fixed, frame)
  sides <- frame_sides(own, family, as_double = FALSE)
  whole <- design_matrix(fixed, own)
  x <- whole$x
  check_some_columns(ncol(x))
  rownames(x) <- NULL
  c(sides, list(
    x = x,
    factors = lapply(bars$terms, crossed_factor, frame = frame),
    arg_y = response_name(own),
    fixed = fixed,
    contrasts = whole$contrasts
  ))
}

# bar: of read_bars()$terms
crossed_factor <- function(bar, frame) {
  effects <- part_terms(bar$effects, frame)
  own <- part_frame(effects, frame)
  check_covariates(own)
  made <- design_matrix(effects, own)
  z <- made$x
  rownames(z) <- NULL
  if (ncol(z) == 0) {
    abort_no_effect(bar$name)
  }
  check_effects(colnames(z), "those of a level are drawn jointly")
  list(
    name = bar$name,
    group = check_grouped(group_factor(bar$group, frame), frame, bar),
    z = if (!identical(colnames(z), "(Intercept)")) z,
    correlated = bar$correlated,
    design = list(
      effects = effects,
      zlevels = stats::.getXlevels(effects, frame),
      z_contrasts = made$contrasts
    )
  )
}

# What reads other frames as this one was read: list(fixed, xlevels, contrasts,
# effects), the last for each factor.
crossed_design <- function(frame, sides) {
  list(
    fixed = sides$fixed,
    xlevels = stats::.getXlevels(sides$fixed, frame),
    contrasts = sides$contrasts,
    effects = lapply(named_factors(sides$factors), `[[`, "design")
  )
}

named_factors <- function(factors) {
  stats::setNames(factors, vapply(factors, `[[`, "", "name"))
}

# CROSSED_FACTOR of src/models/crossed-inside.h
most_factors <- 8

check_n_factors <- function(n, arg) {
  if (n > most_factors) {
    abort_tall(
      "unsupported",
      "{.arg {arg}} has {n} grouping factors, and there may be at most
       {most_factors}.",
      argument = arg,
      value = n,
      expected = most_factors
    )
  }
}

# Factors that say nothing of what is asked of them.
check_crossed <- function(sides, family, sigma) {
  check_n_factors(length(sides$factors), "formula")
  for (factor in sides$factors) {
    own <- c(sides, factor[c("name", "group")])
    check_groups(own, family, sigma, "Leave {.code {name}} out.")
    check_varies(look_at_slopes(factor), factor$name)
  }
  check_factors_differ(sides$factors, "formula")
}

# Two factors that part the rows alike share one set of effects between them.
check_factors_differ <- function(factors, arg = "groups") {
  for (k in seq_along(factors)) {
    for (l in seq_len(k - 1)) {
      a <- factors[[l]]
      b <- factors[[k]]
      if (nlevels(a$group) == nlevels(b$group) && are_alike(a, b)) {
        abort_input(
          "{.arg {arg}} must have different grouping factors, but
           {.val {a$name}} and {.val {b$name}} part the rows alike: their
           effects cannot be told apart.",
          argument = arg,
          value = c(a$name, b$name)
        )
      }
    }
  }
}

are_alike <- function(a, b) {
  shared <- intersect(effect_names_of(a), effect_names_of(b))
  code <- as.integer(b$group)
  length(shared) > 0 && all(code == code[first_alike(a$group)])
}

# Of each row the first of its level.
first_alike <- function(group) {
  code <- as.integer(group)
  match(seq_len(nlevels(group)), code)[code]
}

effect_names_of <- function(factor) {
  colnames(factor$z) %||% "(Intercept)"
}

# list(effects, varies), as look_at_rows() has it
look_at_slopes <- function(factor) {
  z <- factor$z
  if (is.null(z) || ncol(z) == 1) {
    return(list(effects = "(Intercept)", varies = NA))
  }
  first <- first_alike(factor$group)
  list(
    effects = colnames(z),
    varies = apply(z, 2, function(column) any(column != column[first]))
  )
}

# Matrices and groups of all rows of a fit's frame: list(x, offset, factors),
# the last list(z, label) for each.
crossed_matrices <- function(frame, bars, family) {
  sides <- crossed_sides(frame, bars, family)
  x <- sides$x
  rownames(x) <- rownames(frame)
  list(
    x = x,
    offset = sides$offset %||% 0,
    factors = lapply(named_factors(sides$factors), function(factor) {
      list(
        z = factor$z %||% matrix(1, nrow(x), 1),
        label = as.character(factor$group)
      )
    })
  )
}
