# What a model of groups takes of a model frame.

# What a model takes of a frame but the designs: list(y, trials, levels,
# weights, offset, group, name, correlated, arg_y, fixed, effects), the last two
# terms.
glmer_sides <- function(frame, bars, family) {
  fixed <- part_terms(bars$fixed, frame)
  effects <- part_terms(bars$effects, frame)
  own <- part_frame(fixed, frame)
  sides <- frame_sides(own, family, as_double = FALSE)
  check_covariates(part_frame(effects, frame))
  c(sides, list(
    group = check_grouped(group_factor(bars$group, frame), frame, bars),
    name = bars$name,
    correlated = bars$correlated,
    arg_y = response_name(own),
    fixed = fixed,
    effects = effects
  ))
}

# What na.pass() leaves in the data.
check_grouped <- function(group, frame, bars) {
  if (anyNA(group)) {
    bad <- which(is.na(group))[[1]]
    row <- attr(frame, "row.names")[[bad]]
    abort_value(
      group,
      bad,
      "not be missing",
      arg = bars$name,
      where = paste("row", if (is.numeric(row)) format_count(row) else row)
    )
  }
  group
}

# Rows of the frame as the fit reads them, in blocks.
glmer_reader <- function(frame, sides) {
  reader <- frame_part_reader(frame, sides$fixed, sides$effects)
  check_some_columns(length(reader$columns))
  if (length(reader$effects) == 0) {
    abort_no_effect(sides$name)
  }
  reader
}

abort_no_effect <- function(name) {
  abort_input(
    "{.arg formula} must have an effect before the bar, such as
     {.code (1 | {name})}.",
    argument = "formula"
  )
}

# What reads other frames as this one was read.
glmer_design <- function(frame, sides, reader) {
  list(
    fixed = sides$fixed,
    effects = sides$effects,
    xlevels = stats::.getXlevels(sides$fixed, frame),
    zlevels = stats::.getXlevels(sides$effects, frame),
    contrasts = reader$contrasts,
    z_contrasts = reader$z_contrasts
  )
}

# The matrices x and z of all rows of a fit's frame, with its groups and offset.
glmer_matrices <- function(frame, bars, family) {
  sides <- glmer_sides(frame, bars, family)
  matrix_of <- function(terms) {
    design_matrix(terms, part_frame(terms, frame))$x
  }
  x <- matrix_of(sides$fixed)
  rownames(x) <- rownames(frame)
  list(
    x = x,
    z = matrix_of(sides$effects),
    label = as.character(sides$group),
    offset = sides$offset %||% 0
  )
}

# Newton's method for a group's mode, and the nodes about it, take one that is
# concave.
check_grouped_family <- function(
  family,
  what = "integrated out of",
  y = NULL
) {
  if (is_log_concave(family, y)) {
    return(invisible())
  }
  hangs_on_rows <- is.function(find_response(family)$is_concave)
  abort_tall(
    "unsupported",
    c(
      "Effects of groups cannot be {what} responses of family
       {.val {family$name}}: their log density is not concave.",
      i = if (hangs_on_rows) {
        "It is where no row enters late; {.val weibull} and {.val exp} take such
         rows."
      } else {
        "There are gaussian, binomial, poisson, neg_binomial_2 and Gamma."
      }
    ),
    argument = "family"
  )
}

# ---- groups that say nothing of what is asked --------------------------------

most_effects <- 3

check_effects <- function(
  effects,
  because = "the quadrature takes a grid of nodes in each"
) {
  if (length(effects) > most_effects) {
    abort_tall(
      "unsupported",
      c(
        "A group may have at most {most_effects} effects, not
         {length(effects)}: {because}.",
        x = "They are {quote_columns(effects)}."
      )
    )
  }
}

# instead: what to do about a factor that says nothing, of its `name`. sides: of
# rows that are passed over n_row says how many there are, and group has their
# levels alone.
check_groups <- function(
  sides,
  family,
  sigma,
  instead = "Use {.fn tall_glm}."
) {
  n_group <- nlevels(sides$group)
  n_row <- sides$n_row %||% length(sides$group)
  name <- sides$name
  if (n_group < 2) {
    abort_input(
      c(
        "The grouping factor {.field {name}} must have at least two groups: with
         one, their standard deviation is that of the prior.",
        i = instead
      ),
      argument = "formula",
      value = levels(sides$group)
    )
  }
  has_scale <- find_response(family)$has_units &&
    anyNA(known_values(family, sigma))
  is_single <- n_group == n_row
  is_binary <- family$name %in% c("bernoulli", "binomial") &&
    is.null(sides$trials)
  if (is_single && is_binary && all(sides$weights %||% 1 == 1)) {
    abort_input(
      c(
        "Every group of {.field {name}} has one row: 0 or 1 says nothing of how
         groups differ.",
        i = instead
      ),
      argument = "formula",
      value = n_group
    )
  }
  if (is_single && has_scale) {
    abort_input(
      c(
        "Every group of {.field {name}} has one row: its effect and the residual
         cannot be told apart.",
        i = "Give a known {.arg sigma}.",
        i = instead
      ),
      argument = "formula",
      value = n_group
    )
  }
}

# A slope that no group can tell from its intercept. x: of look_at_rows().
check_varies <- function(x, name) {
  is_flat <- x$varies %in% FALSE & x$effects != "(Intercept)"
  if (any(is_flat)) {
    names <- x$effects[is_flat]
    abort_input(
      c(
        "{quote_columns(names)} must vary within a group of
         {.field {name}} for an effect of its own.",
        x = "{cli::qty(length(names))}{?It is/They are} the same in all rows of
             every group.",
        i = "Leave {cli::qty(length(names))}{?it/them} out of the group-level
             term, not of the others."
      ),
      argument = "formula",
      value = names
    )
  }
}
