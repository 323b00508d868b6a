# Smooth terms of rows that a database passes over: what it reads of them, and
# their bases as SQL. A table of cubics (R/design-smooth-tables.R) is a search
# for the interval of a number, by comparisons, and a cubic in each.
#
# A column of a smooth term is a column of its basis, a number of the query like
# others, times an indicator of levels and times numbers: see R/design-cells.R.

# Pieces of all columns of bases together: engines do not take longer queries.
sql_pieces <- 8000

# ---- what is read ------------------------------------------------------------

# Numbers whose values are levels are so in SQL.
written_in_smooth <- function(call, env) {
  spec <- check_smooth_call(call, env)
  lapply(unique(c(spec$term, spec$by)), function(text) {
    own <- str2lang(text)
    if (text %in% spec$groups) call("factor", own) else own
  })
}

# Numbers of smooth terms, whose ends are those of all rows: places among the
# variables.
sql_ranged <- function(s, covariates, env) {
  inside <- lapply(covariates, function(expression) {
    if (is_smooth_call(expression, env)) written_in_smooth(expression, env)
  })
  names <- vapply(unlist(inside, recursive = FALSE), deparse1, "")
  is_number <- vapply(s$variables, function(v) v$kind == "numbers", TRUE)
  which(is_number & names(s$variables) %in% names)
}

# ---- the bases ---------------------------------------------------------------

# Why a database cannot make the smooth terms of a design; NULL: it can.
smooths_beyond_sql <- function(design) {
  smooths <- compact(lapply(design$variables, `[[`, "smooth"))
  for (smooth in smooths) {
    if (!is_in_table(smooth)) {
      return(paste0("`", smooth$label, "` is no table of cubics"))
    }
  }
  pieces <- vapply(smooths, function(smooth) {
    prod(dim(smooth$basis$cubics$coefficients)[-1])
  }, 0)
  if (sum(pieces) > sql_pieces) {
    "bases of smooth terms have too many pieces for a query"
  }
}

# With `bases`, columns of bases: list(of, label, cubics, column), `of` the
# place of its number among the variables. They are numbered after these.
with_bases <- function(s, design) {
  smooths <- compact(lapply(design$variables, `[[`, "smooth"))
  bases <- lapply(unname(smooths), function(smooth) {
    lapply(setdiff(unique(smooth$columns$basis), 0), function(column) {
      list(
        of = place_of_text(s, smooth$numbers, "numbers"),
        label = smooth$label,
        cubics = smooth$basis$cubics,
        column = column
      )
    })
  })
  s$bases <- unlist(bases, recursive = FALSE)
  s
}

# Of a variable that a smooth term has as this text.
place_of_text <- function(s, text, kind) {
  kinds <- vapply(s$variables, `[[`, "", "kind")
  names <- c(text, sprintf("factor(%s)", text))
  at <- which(names(s$variables) %in% names & kinds == kind)
  if (length(at) == 0) {
    no_sql(paste0("`", text, "` is taken otherwise by the database"))
  }
  at[[length(at)]]
}

# What column j of a smooth term multiplies, as design_operands() has it.
smooth_operands <- function(s, design, smooth, j) {
  own <- smooth$columns[j, ]
  basis <- if (own$basis > 0) {
    is_own <- vapply(s$bases, function(base) {
      base$label == smooth$label && base$column == own$basis
    }, TRUE)
    list(list(variable = length(s$variables) + which(is_own), values = NULL))
  }
  times <- lapply(smooth$multiplier, function(text) {
    list(variable = place_of_text(s, text, "numbers"), values = NULL)
  })
  c(basis, times, if (own$level > 0) level_operands(s, design, smooth, own))
}

# Indicators; of levels of several factors the last varies fastest.
level_operands <- function(s, design, smooth, own) {
  code <- own$level - 1
  out <- list()
  for (text in rev(names(smooth$levels))) {
    levels <- smooth$levels[[text]]
    level <- levels[[code %% length(levels) + 1]]
    code <- code %/% length(levels)
    at <- place_of_text(s, text, "levels")
    known <- levels_in_sql(design, names(s$variables)[[at]])
    one <- list(variable = at, values = as.double(known == level))
    out <- c(list(one), out)
  }
  out
}

# Levels of a variable, by what R calls it; of factors of smooth terms alone
# those that these know.
levels_in_sql <- function(design, name) {
  own <- design$variables[[name]]
  if (!is.null(own) && is.null(own$smooth)) {
    return(own$levels)
  }
  for (variable in design$variables) {
    levels <- variable$smooth$levels
    at <- match(name, c(names(levels), sprintf("factor(%s)", names(levels))))
    if (!is.na(at)) {
      return(rep(levels, 2)[[at]])
    }
  }
  NULL
}

# ---- as SQL ------------------------------------------------------------------

# Rows of sql_rows() with, for each table of cubics, x1, ... its number, of a
# cyclic one within its period, and t1, ... the distance from the break before.
add_distances <- function(rows, s, keep) {
  con <- rows$con
  tables <- tables_of_bases(s)
  numbers <- vapply(tables, function(table) {
    x <- quote_names(con, sprintf("v%d", table$of))
    cubics <- table$cubics
    if (is.na(cubics$period)) {
      return(x)
    }
    period <- sql_number(cubics$period, con)
    turns <- bquote(floor(
      (.(as.name(sprintf("v%d", table$of))) - .(cubics$breaks[[1]])) /
        .(cubics$period)
    ))
    paste(x, "-", sql_translate(turns, con), "*", period)
  }, "")
  at <- seq_along(tables)
  names(numbers) <- sprintf("x%d", at)
  rows$sql <- sql_select(con, numbers, rows$sql, keep, engine = rows$engine)
  distances <- vapply(at, function(m) {
    x <- quote_names(con, sprintf("x%d", m))
    breaks <- sql_number(tables[[m]]$cubics$breaks, con)
    before <- c(breaks[[1]], breaks)
    sql_search(x, breaks, paste(x, "-", before))
  }, "")
  names(distances) <- sprintf("t%d", at)
  rows$sql <- sql_select(con, distances, rows$sql, c(keep, names(numbers)),
    engine = rows$engine)
  rows
}

tables_of_bases <- function(s) {
  labels <- vapply(s$bases, `[[`, "", "label")
  s$bases[!duplicated(labels)]
}

# A column of a basis, after add_distances().
sql_of_basis <- function(s, base, con) {
  labels <- vapply(tables_of_bases(s), `[[`, "", "label")
  m <- match(base$label, labels)
  x <- quote_names(con, sprintf("x%d", m))
  t <- quote_names(con, sprintf("t%d", m))
  of <- base$cubics$coefficients[, base$column, ]
  leaves <- apply(matrix(of, 4), 2, sql_cubic, t = t, con = con)
  sql_search(x, sql_number(base$cubics$breaks, con), leaves)
}

sql_cubic <- function(of, t, con) {
  last <- max(1, which(of != 0))
  out <- sql_number(of[[last]], con)
  for (k in rev(seq_len(last - 1))) {
    out <- paste0(sql_number(of[[k]], con), " + ", t, " * (", out, ")")
  }
  out
}

# leaves: one more than breaks, of numbers before the first, from the first on,
# ...
sql_search <- function(x, breaks, leaves) {
  if (length(unique(leaves)) == 1) {
    return(leaves[[1]])
  }
  middle <- length(breaks) %/% 2 + 1
  before <- seq_len(middle)
  paste0(
    "CASE WHEN ", x, " < ", breaks[[middle]], " THEN ",
    sql_search(x, breaks[before[-middle]], leaves[before]), " ELSE ",
    sql_search(x, breaks[-before], leaves[-before]), " END"
  )
}
