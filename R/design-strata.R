# Strata of tall_surv(): a term strata(g) of its formula, whose levels have
# hazards in pieces of their own. To the design it is a factor, whose columns
# tell of a row to which stratum it belongs, and whose coefficients are the
# levels of the hazards.

# Most of them, and most pieces of all by themselves.
most_strata <- 200

most_stratum_pieces <- 200

# What strata(...) is in the formula of such a model: of one variable its
# values, of several the combinations that there are. Row by row: a block of
# rows is read as all of them are.
read_strata <- function(...) {
  parts <- list(...)
  if (length(parts) == 0 || !is.null(names(parts))) {
    abort_input(
      "{.code strata()} must have variables, and no other arguments.",
      argument = "formula",
      value = names(parts)
    )
  }
  values <- lapply(parts, function(part) {
    if (is.factor(part)) levels(part)[part] else as.character(part)
  })
  if (length(parts) == 1) {
    return(if (is.factor(parts[[1]])) unordered(parts[[1]]) else values[[1]])
  }
  out <- do.call(paste, c(values, sep = ", "))
  replace(out, Reduce(`|`, lapply(values, is.na)), NA_character_)
}

# With treatment contrasts, whatever an ordered factor has.
unordered <- function(f) {
  factor(f, levels = levels(f), ordered = FALSE)
}

# The formula's call of survival::strata(), by either name; NULL: none.
strata_term <- function(formula) {
  terms <- Filter(
    is_strata_call,
    formula_terms(formula[[length(formula)]])
  )
  terms <- unique(terms)
  if (length(terms) > 1) {
    abort_input(
      c(
        "{.arg formula} must have one term {.code strata()}, not
         {length(terms)}.",
        i = "Combinations of several variables are {.code strata(a, b)}."
      ),
      argument = "formula",
      value = formula
    )
  }
  if (length(terms) == 1) terms[[1]]
}

is_strata_call <- function(term) {
  is.call(term) && (
    identical(term[[1]], quote(strata)) ||
      identical(term[[1]], quote(survival::strata))
  )
}

# The same by one name, wherever it is.
without_survival <- function(term) {
  if (!is.call(term)) {
    return(term)
  }
  if (is_strata_call(term)) {
    term[[1]] <- quote(strata)
    return(term)
  }
  as.call(lapply(as.list(term), without_survival))
}

# list(of, names, stratum) of the rows of a frame: the number of each row's
# stratum, their names, and which stratum's rows have a 1 in a column, see
# R/design-pieces.R; NULL: there are none. columns: names of the design's.
rows_by_strata <- function(frame, columns) {
  terms <- attr(frame, "terms")
  at <- which(vapply(as.list(attr(terms, "variables"))[-1], is_strata_call, NA))
  if (length(at) == 0) {
    return(NULL)
  }
  name <- rownames(attr(terms, "factors"))[at]
  check_strata_alone(attr(terms, "variables")[[at + 1]], terms)
  f <- as.factor(frame[[name]])
  own <- match(paste0(name, levels(f)), columns)
  # rows of the first have no column, where there is an intercept
  if (anyNA(own[-1])) {
    abort_tall(
      "unsupported",
      c(
        "{.code {name}} must have a column for each stratum but the first.",
        i = "It is a term of its own, {.code ~ {name} + x}, beside
             interactions of it, and {.code options(contrasts)} are R's."
      ),
      argument = "formula",
      value = name
    )
  }
  if (nlevels(f) > most_strata) {
    abort_input(
      c(
        "{.code {name}} must have at most {most_strata} strata, not
         {nlevels(f)}.",
        i = "A frailty, {.code (1 | g)}, is for many groups."
      ),
      argument = "formula",
      value = nlevels(f)
    )
  }
  stratum <- numeric(length(columns))
  stratum[own[-1]] <- seq_len(nlevels(f) - 1)
  list(of = as.integer(f), names = levels(f), stratum = stratum)
}

# What strata are made of has no columns beside theirs.
check_strata_alone <- function(call, terms) {
  twice <- intersect(
    vapply(as.list(call)[-1], deparse1, ""),
    attr(terms, "term.labels")
  )
  if (length(twice) > 0) {
    abort_input(
      c(
        "{.arg formula} must be without {.code {twice}} beside
         {.code {deparse1(call)}}.",
        i = "What differs between strata is in their hazards already;
             {.fn update} takes the term out: {.code . ~ . - {twice}}."
      ),
      argument = "formula",
      value = twice
    )
  }
}

# The family with its pieces. y: rows (time, entry, status) of all, or of a
# sample; weight: of each, NULL: 1; strata: of these rows, see rows_by_strata().
settle_pieces <- function(family, y, weight = NULL, strata = NULL) {
  if (!is.null(family$pieces$cuts)) {
    return(family) # a look has done it
  }
  weight <- weight %||% rep(1, nrow(y))
  asked <- family$pieces$asked
  family$pieces <- if (is.null(strata)) {
    made <- walk_of_rows(asked, y, weight)
    c(
      list(asked = asked),
      made,
      list(names = step_names(seq_len(ncol(made$basis))))
    )
  } else {
    pieces_of_strata(asked, y, weight, strata)
  }
  family
}

# Pieces of each stratum, and a walk in each. One without events has one piece.
pieces_of_strata <- function(asked, y, weight, strata) {
  at <- split(seq_len(nrow(y)), factor(strata$of, seq_along(strata$names)))
  counts <- vapply(at, function(rows) sum(weight[rows] * (y[rows, 3] == 1)), 0)
  wanted <- pieces_for_strata(counts)
  made <- Map(function(rows, n, count) {
    if (count == 0 || n == 1 && is.null(asked)) {
      return(list(cuts = numeric(), basis = matrix(0, 1, 0)))
    }
    walk_of_rows(asked, y[rows, , drop = FALSE], weight[rows], n)
  }, at, wanted, counts)
  n_cut <- unname(vapply(made, function(own) length(own$cuts), 0))
  if (sum(n_cut + 1) > most_stratum_pieces * 5) {
    abort_input(
      "{.arg pieces} must be at most {most_stratum_pieces * 5} of all strata,
       not {sum(n_cut + 1)}.",
      argument = "pieces",
      value = asked
    )
  }
  list(
    asked = asked,
    cuts = unlist(lapply(made, `[[`, "cuts"), use.names = FALSE),
    basis = block_diagonal(lapply(made, `[[`, "basis")),
    names = step_names(unlist(Map(function(s, n) {
      if (n > 0) paste0(s, ".", seq_len(n))
    }, seq_along(n_cut), n_cut))),
    n_cut = n_cut,
    stratum = strata$stratum,
    strata = strata$names
  )
}

# How many each has by itself: as of rows without strata, but fewer where the
# strata are many, and one where events are few; two somewhere.
pieces_for_strata <- function(counts) {
  n <- pmax(1, pmin(vapply(counts, usual_pieces, 0), floor(counts / 10)))
  n <- pmax(1, floor(n * min(1, most_stratum_pieces / sum(n))))
  if (all(n == 1)) {
    n[which.max(counts)] <- 2
  }
  n
}

block_diagonal <- function(blocks) {
  sizes <- vapply(blocks, dim, integer(2))
  out <- matrix(0, sum(sizes[1, ]), sum(sizes[2, ]))
  row <- column <- 0
  for (block in blocks) {
    out[row + seq_len(nrow(block)), column + seq_len(ncol(block))] <- block
    row <- row + nrow(block)
    column <- column + ncol(block)
  }
  out
}
