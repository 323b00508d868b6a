# What is settled of a smooth term: its basis, by mgcv's smoothCon(), as fixed
# columns and blocks of random ones, by mgcv's smooth2random() (see ?tall_gam).
#
# A record, class tall_smooth:
#
# * label, head, term, by, bs: as mgcv has them; term and by are text.
# * numbers, multiplier: variables of the basis, and those it is multiplied by;
#   levels: by factor.
# * has_base: has the first level no columns, as of an ordered `by` in mgcv?
# * basis: see new_basis(); NULL: columns are products of the others alone.
# * columns: data frame, a row a column: name; kind, "random" or "fixed"; block,
#   0: fixed; smooth, the label of its curve; basis, the column of the basis and
#   level, the code of joint_codes(), 0: none.
# * blocks: data frame, a row a block of random columns: block, smooth, penalty,
#   scale.
# * takes_rows: is the basis made of the rows, and not of knots alone?
# * suffixes: names of the columns of the matrix s() makes.
# * range: by number, between which values the basis is made for; seen: the same
#   of the rows it was settled with.
#
# Within a block coefficients are N(0, sigma^2). The basis is scaled so that
# sigma is the curve's own sd, the root of the mean over rows of its variance,
# which makes sigmas of different bases comparable; that of bs = "re" is the sd
# of the effects.

# values: by variable; knots: by variable, NULL: none; weights: of the rows.
new_smooth <- function(spec, values, knots = NULL, weights = NULL) {
  for (name in spec$groups) {
    values[[name]] <- as.factor(values[[name]])
  }
  kinds <- check_smooth_values(spec, values)
  whole <- which(!Reduce(`|`, lapply(values, function(x) is.na(x))))
  values <- lapply(values, `[`, whole)
  weights <- weights[whole]
  if (length(whole) == 0) {
    abort_input(
      "{.arg data} must have a row where {.code {smooth_label(spec)}} is
       known.",
      argument = "data"
    )
  }
  factors <- names(kinds)[kinds == "factor"]
  is_re <- identical(spec$bs[[1]], "re")
  numbers <- if (is_re) character() else setdiff(spec$term, factors)
  out <- list(
    label = smooth_label(spec),
    head = spec$head,
    term = spec$term,
    by = spec$by,
    bs = spec$bs,
    numbers = numbers,
    multiplier = setdiff(c(spec$term, spec$by), c(numbers, factors)),
    levels = lapply(stats::setNames(nm = factors), function(name) {
      levels_of(values[[name]])
    }),
    has_base = is.ordered(values[[spec$by %||% ""]]) && length(numbers) > 0
  )
  check_smooth_numbers(spec, values, out)
  basis <- if (length(numbers) > 0) {
    own <- knots[intersect(numbers, names(knots))]
    new_basis(spec, out, values[numbers], own, weights)
  }
  out$basis <- basis
  out$takes_rows <- !all(numbers %in% names(knots))
  out$range <- basis$range
  out$seen <- lapply(values[numbers], range)
  out <- c(out, smooth_columns(out, basis))
  structure(out, class = "tall_smooth")
}

# By variable, "number" or "factor".
check_smooth_values <- function(spec, values) {
  kinds <- vapply(names(values), function(name) {
    value_kind(values[[name]], name)
  }, "")
  in_basis <- intersect(names(kinds)[kinds == "factor"], spec$term)
  if (!any(spec$bs %in% c("re", "fs")) && length(in_basis) > 0) {
    abort_factor_in_smooth(in_basis[[1]], values[[in_basis[[1]]]], spec)
  }
  is_curves <- length(in_basis) == 1 && length(spec$term) > 1 &&
    is.null(spec$by)
  if ("fs" %in% spec$bs && !is_curves) {
    abort_input(
      "{.code {smooth_label(spec)}} with {.code bs = \"fs\"} must have numbers
       and one factor, such as {.code s(x, g, bs = \"fs\")}, and no {.arg by}.",
      argument = "formula",
      value = spec$term
    )
  }
  kinds
}

value_kind <- function(x, name) {
  if (is.factor(x) || is.character(x)) {
    return("factor")
  }
  is_number <- is_plain_numeric(x) || is.logical(x)
  if (!is_number || length(dim(x)) > 1) {
    abort_expected(x, "a numeric vector or a factor", arg = name)
  }
  bad <- which(abs(x) > most_of_data)
  if (length(bad) > 0) {
    abort_number(x, bad[[1]], arg = name)
  }
  "number"
}

abort_factor_in_smooth <- function(name, value, spec) {
  abort_input(
    c(
      "{.arg {name}} must be numeric in {.code {smooth_label(spec)}}, not
       {describe(value)}.",
      i = "Effects of its levels are {.code s({name}, bs = \"re\")}, a curve of
           each level {.code s(x, by = {name})}."
    ),
    argument = name,
    value = value
  )
}

# That some row has.
levels_of <- function(x) {
  if (is.factor(x)) {
    levels(x)[tabulate(x, nlevels(x)) > 0]
  } else {
    sort(unique(x))
  }
}

# They vary, and have at least k values.
check_smooth_numbers <- function(spec, values, smooth) {
  for (name in c(smooth$numbers, intersect(smooth$multiplier, spec$by))) {
    if (n_distinct(values[[name]], 2) == 1) {
      abort_input(
        c(
          "{.arg {name}} must vary in {.code {smooth$label}}: it is
           {format_number(values[[name]][[1]])} in every row.",
          i = if (name %in% spec$by) "Without {.arg by} it is a curve alone."
        ),
        argument = name,
        value = values[[name]][[1]]
      )
    }
  }
  if (length(smooth$numbers) == 0) {
    return(invisible())
  }
  margins <- if (spec$head == "t2") {
    rep_len(ifelse(is.na(spec$k), 5, spec$k), length(smooth$numbers))
  } else if (length(smooth$numbers) == 1) {
    if (spec$k[[1]] == -1) 10 else spec$k[[1]]
  }
  for (j in seq_along(margins)) {
    name <- smooth$numbers[[j]]
    n <- n_distinct(values[[name]], margins[[j]])
    if (n < margins[[j]]) {
      abort_input(
        c(
          "{.arg k} must be at most the number of distinct values of
           {.arg {name}}, {n}, in {.code {smooth$label}}, not {margins[[j]]}.",
          i = "Write {.code k = {n}}, or less."
        ),
        argument = "k",
        expected = n,
        value = margins[[j]]
      )
    }
  }
}

# How many distinct values there are; at least k, where some rows have them.
n_distinct <- function(x, k) {
  some <- length(unique(x[seq_len(min(length(x), 10 * k))]))
  if (some >= k) some else length(unique(x))
}

# ---- columns -----------------------------------------------------------------

# list(columns, blocks, suffixes) of a record.
smooth_columns <- function(smooth, basis) {
  names <- names(smooth$levels)
  codes <- do.call(
    expand.grid,
    c(rev(lapply(smooth$levels, seq_along)), KEEP.OUT.ATTRS = FALSE)
  )
  n_level <- prod(lengths(smooth$levels))
  text <- level_text_of(smooth$levels)
  is_own <- !is.null(smooth$by) && smooth$by %in% names &&
    !is.null(basis)
  if (is_own) {
    # a curve of its own for each level
    curves <- paste0(smooth$label, text)
    own <- setdiff(seq_len(n_level), if (smooth$has_base) 1)
    parts <- lapply(own, function(l) {
      curve_columns(curves[[l]], basis, l, "")
    })
  } else if (is.null(basis)) {
    level <- if (length(names) > 0) seq_len(n_level) else 0L
    name <- if (length(names) > 0) text else 1L
    parts <- list(data.frame(
      name = paste0(smooth$label, ".", name),
      kind = "random",
      penalty = 1L,
      smooth = smooth$label,
      basis = 0L,
      level = level
    ))
  } else {
    level <- if (length(names) > 0) seq_len(n_level) else 0L
    parts <- list(curve_columns(smooth$label, basis, level, text))
  }
  columns <- do.call(rbind, parts)
  key <- paste(match(columns$smooth, unique(columns$smooth)), columns$penalty)
  random <- columns$penalty > 0
  columns$block <- 0L
  columns$block[random] <- match(key[random], unique(key[random]))
  first <- match(seq_len(max(columns$block)), columns$block)
  blocks <- data.frame(
    block = seq_along(first),
    smooth = columns$smooth[first],
    penalty = columns$penalty[first]
  )
  blocks$scale <- sprintf("%s%d", blocks$smooth, blocks$penalty)
  columns$penalty <- NULL
  list(
    columns = columns,
    blocks = blocks,
    suffixes = paste0(".", seq_len(nrow(columns)))
  )
}

# Levels of several factors together, the last varying fastest.
level_text_of <- function(levels) {
  if (length(levels) == 0) {
    return("")
  }
  Reduce(
    function(a, b) paste0(rep(a, each = length(b)), ":", rep(b, length(a))),
    levels
  )
}

# Blocks one after another, each with all levels, and what is not penalised.
curve_columns <- function(label, basis, level, text) {
  penalty <- basis$penalty
  parts <- lapply(c(setdiff(unique(penalty), 0L), 0L), function(k) {
    own <- which(penalty == k)
    grid <- expand.grid(basis = own, level = level)
    data.frame(
      kind = rep(if (k > 0) "random" else "fixed", nrow(grid)),
      penalty = rep(as.integer(k), nrow(grid)),
      smooth = rep(label, nrow(grid)),
      basis = grid$basis,
      level = grid$level
    )
  })
  out <- do.call(rbind, parts)
  own <- if (length(level) > 1) {
    paste0(text[out$level], ".", out$basis)
  } else {
    seq_len(nrow(out))
  }
  cbind(name = paste0(label, ".", own), out)
}

# ---- the basis ---------------------------------------------------------------

smooth_rows <- 2000         # rows that a basis is made of
smooth_seen <- 2^17         # rows that these are taken from
smooth_knots <- 150         # where it has a knot at every value otherwise
smooth_joint_knots <- 400   # of several variables
knot_bases <- c("tp", "ts", "ds", "gp")

# list:
#   object   mgcv's, of variables v1, ..., without its rows
#   map      from its columns to those of the basis, scaled
#   penalty  by column of the basis, which penalises it, 0: none
#   cubics   see new_cubics(); NULL: the basis is no table
#   range    by variable
new_basis <- function(spec, smooth, values, knots, weights) {
  safe <- sprintf("v%d", seq_along(values))
  of <- reference_rows(values, knots, weights, spec)
  given <- of$knots %||% knots %||% list()
  names(given) <- safe[match(names(given), names(values))]
  object <- construct_smooth(
    spec,
    stats::setNames(of$values, safe),
    given,
    # without a constraint where the curve's mean is no part of the intercept
    is_free = length(smooth$multiplier) > 0,
    n_level = if ("fs" %in% spec$bs) length(smooth$levels[[1]])
  )
  split <- split_smooth(object, smooth$label)
  basis <- list(object = without_rows(object), map = split$map)
  x <- mgcv_basis(basis, of$values)[seq_len(of$n_own), , drop = FALSE]
  scale <- basis_scale(x, split$penalty)
  if (!all(is.finite(scale))) {
    abort_tall(
      "unsupported",
      "{.code {smooth$label}} has columns that are 0 in every row.",
      argument = "formula"
    )
  }
  basis$map <- basis$map * rep(scale, each = nrow(basis$map))
  basis$penalty <- split$penalty
  if (length(values) == 1) {
    basis$cubics <- new_cubics(basis, range(of$values[[1]]))
  }
  basis$range <- stats::setNames(of$range, names(values))
  if (length(knots) > 0 && !is.null(basis$cubics)) {
    basis$range[[1]] <- range(basis$cubics$breaks)
  }
  basis
}

# Blocks have mean square 1 in all, fixed columns each.
basis_scale <- function(x, penalty) {
  square <- colMeans(x^2)
  for (k in setdiff(penalty, 0)) {
    own <- penalty == k
    square[own] <- sum(square[own])
  }
  1 / sqrt(square)
}

# ---- the rows it is made of --------------------------------------------------

# list(values, n_own, knots, range): some rows, of which the first n_own are as
# all are; with knots given they are functions of these alone, so that a basis
# is the same for all data.
reference_rows <- function(values, knots, weights, spec) {
  range <- lapply(values, range)
  if (length(knots) == length(values)) {
    range <- lapply(knots[names(values)], range)
    values <- rows_of_knots(knots[names(values)])
    return(list(
      values = values,
      n_own = length(values[[1]]),
      knots = knots,
      range = range
    ))
  }
  if (is.null(weights)) {
    values <- scattered_rows(values)
  }
  n <- length(values[[1]])
  own <- values
  if (n > smooth_rows || !is.null(weights)) {
    order <- if (length(values) == 1) order(values[[1]]) else seq_len(n)
    rows <- order[even_rows(n, smooth_rows, weights[order])]
    own <- lapply(values, `[`, rows)
  }
  n_own <- length(own[[1]])
  kind <- if (identical(spec$bs, "fs")) spec$xt$bs %||% "tp" else spec$bs
  takes_knots <- any(kind %in% knot_bases) && spec$head == "s"
  if (length(values) == 1) {
    k <- max(smooth_knots, 2 * spec$k, na.rm = TRUE)
    knots <- lapply(values, some_values, k)
    if (n_own < n) {
      own[[1]] <- c(own[[1]], knots[[1]])
    }
  } else {
    if (n_own < n) {
      ends <- unlist(lapply(values, function(x) c(which.min(x), which.max(x))))
      own <- Map(function(some, x) c(some, x[ends]), own, values)
    }
    rows <- which(!duplicated(as.data.frame(own)))
    most <- max(smooth_joint_knots, 2 * spec$k, na.rm = TRUE)
    rows <- rows[even_rows(length(rows), most)]
    knots <- lapply(own, `[`, rows)
  }
  list(
    values = own,
    n_own = n_own,
    knots = if (takes_knots) knots,
    range = range
  )
}

# Where there are more rows, some from all over, in no step with what comes
# again every so many rows, and those at the ends.
scattered_rows <- function(values) {
  n <- length(values[[1]])
  if (n <= smooth_seen) {
    return(values)
  }
  golden <- (sqrt(5) - 1) / 2
  rows <- 1 + floor(n * ((seq_len(smooth_seen / 2) * golden) %% 1))
  ends <- unlist(lapply(values, function(x) c(which.min(x), which.max(x))))
  rows <- sort(unique(c(rows, ends)))
  lapply(values, `[`, rows)
}

# About `most` of n rows, evenly; weights: what each stands for. All, where they
# are fewer.
even_rows <- function(n, most, weights = NULL) {
  if (is.null(weights)) {
    if (n <= most) {
      return(seq_len(n))
    }
    return(unique(round(seq(1, n, length.out = most))))
  }
  below <- cumsum(weights) / sum(weights)
  at <- (seq_len(most) - 0.5) / most
  pmin(findInterval(at, below) + 1, n)
}

# At most `most` of the distinct values, the ends among them.
some_values <- function(x, most) {
  x <- sort(unique(x))
  x[even_rows(length(x), most)]
}

# Rows whose quantiles are the knots; of several variables, independent ones, by
# a Kronecker sequence.
rows_of_knots <- function(knots, n = 1024) {
  knots <- lapply(knots, function(x) sort(unique(x)))
  d <- length(knots)
  phi <- stats::uniroot(
    function(x) x^(d + 1) - x - 1,
    c(1, 2),
    tol = 1e-14
  )$root
  Map(
    function(x, j) {
      u <- if (d == 1) {
        seq(0, 1, length.out = n)
      } else {
        (0.5 + seq_len(n) / phi^j) %% 1
      }
      stats::approx(seq(0, 1, length.out = length(x)), x, u)$y
    },
    knots,
    seq_len(d)
  )
}
