# Sums over the rows of tables, by aggregates that the databases compute: what
# mode-passes.R does by blocks. Each table hands back so many numbers, which are
# added.

# ---- steps -------------------------------------------------------------------

# rows (from sql_design_rows()) with columns more, SQL by name; `once`: must
# they be evaluated once?
add_columns <- function(rows, columns, once = TRUE) {
  rows$sql <- sql_select(
    rows$con,
    columns,
    rows$sql,
    keep = rows$keep,
    engine = if (once) rows$engine
  )
  rows$keep <- c(rows$keep, names(columns))
  rows
}

# Of a row of weight 1, of its own weight where there are weights.
translate_weighed <- function(s, expression, con) {
  if (has_sql_weight(s)) {
    expression <- bquote(weight * (.(expression)))
  }
  sql_translate(expression, con)
}

# A step is fenced where it is dear: with exp().
add_steps <- function(rows, steps) {
  for (step in steps) {
    columns <- lapply(step, sql_translate, con = rows$con)
    is_dear <- "exp" %in% unlist(lapply(step, all.names))
    rows <- add_columns(rows, columns, once = is_dear)
  }
  rows
}

# Numbers by levels times parts: `parts`, one or two of each term.
sql_of_terms <- function(rows, s, terms) {
  text <- vapply(terms, function(term) {
    number <- sql_by_levels(s, term$factors, term$table, rows$con)
    if (is.null(number)) {
      return(NA_character_)
    }
    paste(c(rows$u[setdiff(term$parts, 1)], paste0("(", number, ")")),
      collapse = " * ")
  }, "")
  text[!is.na(text)]
}

add_eta <- function(rows, s, theta, shift = 0) {
  text <- sql_of_terms(rows, s, terms_by_levels(s$cells, rbind(theta)))
  if (length(s$offsets) > 0) {
    text <- c(text, quote_names(rows$con, "offset"))
  }
  if (shift != 0) {
    text <- c(text, sql_number(shift, rows$con))
  }
  add_columns(rows, list(eta = sql_total(text, rows$con)))
}

# ||W x_i||, a column `norm`. What cannot be told from 0 may be below it.
add_norm <- function(rows, s, w) {
  con <- rows$con
  terms <- square_by_levels(s$cells, w)
  # a part times the sum of what it is multiplied by
  second <- vapply(terms, function(term) term$parts[[2]], 1)
  by_second <- lapply(split(terms, second), function(own) {
    b <- own[[1]]$parts[[2]]
    own <- lapply(own, function(term) {
      term$parts <- term$parts[[1]]
      term
    })
    total <- sql_total(sql_of_terms(rows, s, own), con)
    if (b == 1) total else paste(rows$u[[b]], "*", total)
  })
  square <- list(square = sql_total(unlist(by_second, use.names = FALSE), con))
  before <- rows$keep
  rows <- add_columns(rows, square)
  norm <- quote(sqrt(ifelse(square > 0, square, 0)))
  norm <- list(norm = sql_translate(norm, con))
  rows$keep <- before
  add_columns(rows, norm)
}

# psi_i, where rows are drawn.
add_psi <- function(rows, s, chol, draw) {
  bound <- s$recipe$bound
  con <- rows$con
  rows <- add_norm(rows, s, forwardsolve(chol, diag(nrow(chol))))
  norm <- quote_names(con, "norm")
  reach <- paste(norm, "*", sql_number(draw$radius, con))
  rows <- add_columns(rows, list(reach = reach), once = FALSE)
  rows <- add_steps(rows, bound$steps)
  third <- translate_weighed(s, bound$third, con)
  psi <- paste0(
    third, " * (", norm, " * ", norm, " * ", norm, ") * ",
    sql_number(draw$scale / 6, con)
  )
  within <- c(unlist(lapply(bound$steps, names)), "reach", "norm")
  rows$keep <- setdiff(rows$keep, within)
  add_columns(rows, list(psi = psi))
}

# Those that a step looks at always.
sql_always <- function(con, draw) {
  mean <- paste(quote_names(con, "psi"), "*", sql_number(draw$phi_bar, con))
  of <- sql_number(c(0, 1), con)
  paste("CASE WHEN", mean, "<= 1 THEN", of[[1]], "ELSE", of[[2]], "END")
}

# ---- aggregates --------------------------------------------------------------

# Sums of a_i b_j over all pairs of parts, i <= j, by the names "what i j". left
# and right: SQL of the parts, the first of right being 1.
product_aggregates <- function(what, left, right) {
  pairs <- pairs_of_parts(length(left))
  i <- pairs[, 1]
  j <- pairs[, 2]
  out <- ifelse(
    i == 1,
    paste0("SUM(", left[j], ")"),
    paste0("SUM(", left[i], " * ", right[j], ")")
  )
  stats::setNames(out, paste(what, i, j))
}

# SQL of the parts, each times a column.
times_parts <- function(rows, name) {
  own <- quote_names(rows$con, name)
  c(own, sprintf("%s * %s", own, rows$u[-1]))
}

# Sums of columns, one for each part, by the names "what i".
first_aggregates <- function(what, columns) {
  stats::setNames(
    paste0("SUM(", columns, ")"),
    paste(what, seq_along(columns))
  )
}

# The response less its offset and shift.
sql_residual <- function(rows, s) {
  y <- quote_names(rows$con, "y")
  if (length(s$offsets) > 0) {
    y <- paste(y, "-", quote_names(rows$con, "offset"))
  }
  shift <- s$cells$shift
  paste0("(", y, " - ", sql_number(shift[[length(shift)]], rows$con), ")")
}

# Sums from which facts of the columns come.
fact_aggregates <- function(rows, s, squares = TRUE) {
  y <- sql_residual(rows, s)
  u <- rows$u[-1]
  out <- c(n = "COUNT(*)", "y first" = paste0("SUM(", y, ")"))
  sum_of <- function(what, text) {
    names <- sprintf("%s %d", what, 1L + seq_along(text))
    stats::setNames(sprintf("SUM(%s)", text), names)
  }
  out <- c(out, sum_of("u first", u))
  if (squares) {
    out <- c(
      out,
      "y second" = paste0("SUM(", y, " * ", y, ")"),
      sum_of("u second", sprintf("%s * %s", u, u))
    )
  }
  if (has_sql_weight(s)) {
    w <- quote_names(rows$con, "weight")
    out <- c(
      out,
      "w top" = paste0("MAX(", w, ")"),
      "w sum" = paste0("SUM(", w, ")"),
      "w first" = paste0("SUM(", w, " * ", y, ")"),
      "w second" = paste0("SUM(", w, " * ", y, " * ", y, ")")
    )
  }
  out
}

# Of facts that are known: rows, and sums of responses and predictors, by which
# other rows would show.
check_aggregates <- function(rows, s) {
  c(
    n = "COUNT(*)",
    "check y" = paste0("SUM(", sql_residual(rows, s), ")"),
    "check eta" = paste0("SUM(", quote_names(rows$con, "eta"), ")")
  )
}

check_known_facts <- function(sums, s, theta, known) {
  n <- sums[["n"]]
  shift <- s$cells$shift
  y <- shift[[length(shift)]] + sums[["check y"]] / n
  eta <- sums[["check eta"]] / n
  is_near <- function(a, b, scale) isTRUE(abs(a - b) <= 1e-9 * scale)
  same <- n == known$n_row &&
    is_near(y, known$response, known$units$sd + abs(known$response)) &&
    is_near(
      eta,
      sum(theta * known$mean),
      sum(abs(theta) * (known$sd + abs(known$mean)))
    )
  if (!same) {
    abort_other_facts(known$n_row, n)
  }
}

# The facts, as new_column_facts() has them.
facts_of_cells <- function(s, found) {
  sums <- found$total
  n <- sums[["n"]]
  q <- length(s$cells$parts)
  shift <- s$cells$shift
  own <- seq_len(length(shift) - 1)
  pieces <- columns_in_parts(s$cells, found$f, shift[own])
  first <- c("n", sprintf("u first %d", seq_len(q)[-1]))
  counts <- sums_named(found$sums, first)
  away <- c(sums_of_columns(pieces, counts), sums[["y first"]]) / n
  square <- numeric(length(away))
  if ("y second" %in% names(sums)) {
    pairs <- pairs_of_parts(q)
    is_square <- pairs[, 1] == pairs[, 2]
    name <- ifelse(is_square, sprintf("u second %d", pairs[, 1]),
      first[pairs[, 2]])
    name[[1]] <- "n"
    is_read <- is_square | pairs[, 1] == 1
    seconds <- matrix(0, nrow(found$f), nrow(pairs))
    seconds[, is_read] <- sums_named(found$sums, name[is_read])
    square <- c(squares_of_columns(pieces, seconds), sums[["y second"]])
    square <- pmax(0, square - n * away^2)
  }
  total <- list(n = n, mean = shift + away, square = square)
  if (has_sql_weight(s)) {
    w <- sums[["w sum"]]
    off <- sums[["w first"]] / w
    total$weighted <- c(
      max(found$sums[, "w top"]),
      w,
      shift[[length(shift)]] + off,
      max(0, sums[["w second"]] - w * off^2)
    )
  }
  facts_of(total)
}

sums_named <- function(sums, names) {
  sums[, names, drop = FALSE]
}

# Of all tables together: list(f, sums, total, each): f of each column by cell,
# sums by cell, and over all; those of each table. make(rows): list(rows, sums,
# alone), the query of a table's rows, SQL by name and the names of the sums
# that no factor needs.
sum_by_cells <- function(rows, make) {
  check_source_kept(rows)
  s <- rows$in_sql
  tables <- source_tables(rows$source)
  made <- lapply(tables, function(table) make(sql_design_rows(s, table)))
  each <- cells_of_tables(s, tables, made)
  sums <- do.call(rbind, lapply(each, `[[`, "sums"))
  total <- colSums(sums)
  if (nrow(sums) == 0 || total[["n"]] == 0) {
    abort_source("{.arg data} has no rows that count any more.")
  }
  codes <- codes_of_keys(s, do.call(rbind, lapply(each, `[[`, "keys")))
  list(
    f = values_by_cell(s$cells, nrow(sums), codes),
    sums = sums,
    total = total,
    each = lapply(each, `[[`, "sums")
  )
}

# Of each table list(keys, sums), a row for each cell; by: names of further
# columns that make cells. made: see sum_by_cells().
cells_of_tables <- function(s, tables, made, by = NULL) {
  names <- names(made[[1]]$sums)
  alone <- intersect(names, made[[1]]$alone)
  is_much <- s$n_cells * length(names) > setting("cell_numbers")
  by_cell <- if (is_much) setdiff(names, alone) else names
  each <- sql_aggregates(tables, made, by_cell, c(by, made[[1]]$rows$by))
  others <- setdiff(names, by_cell)
  if (length(others) == 0) {
    return(each)
  }
  whole <- sql_aggregates(tables, made, others, by)
  Map(function(cells, of_all) {
    # f is 1 for these: they can be any cell's
    sums <- matrix(0, nrow(cells$sums), length(others))
    sums[match_keys(of_all$keys, cells$keys[by]), ] <- of_all$sums
    colnames(sums) <- others
    sums <- cbind(cells$sums, sums)[, names, drop = FALSE]
    list(keys = cells$keys, sums = sums)
  }, each, whole)
}

# Which level is meant by each value of the factors.
codes_of_keys <- function(s, keys) {
  codes <- lapply(s$cells$factors, function(k) {
    variable <- s$variables[[k]]
    level <- level_text(variable, keys[[sprintf("v%d", k)]])
    code <- match(level, s$cells$levels[[as.character(k)]])
    if (anyNA(code)) {
      abort_source(
        "{.field {variable$name}} has the level
         {.val {level[is.na(code)][[1]]}}, which it had not before.",
        column = variable$name
      )
    }
    code
  })
  stats::setNames(codes, s$cells$factors)
}

# ---- what passes compute -----------------------------------------------------

#' @export
sums_at.tall_rows_database <- function(rows, theta, control, pass = 1) {
  found <- sql_sums_at(rows, theta)
  c(found$parts, list(
    facts = found$facts,
    n_missing = rows$in_sql$n_missing
  ))
}

# more(rows): more columns, and more aggregates. known: the facts, where a pass
# has found them.
sql_sums_at <- function(rows, theta, more = NULL, known = NULL) {
  s <- rows$in_sql
  # the sum of offsets is not known
  is_known <- !is.null(known) && length(s$offsets) == 0 && !has_sql_weight(s)
  found <- sum_by_cells(rows, function(own) {
    con <- own$con
    own <- add_eta(own, s, theta)
    own <- add_steps(own, s$recipe$steps)
    extra <- if (!is.null(more)) more(own)
    own <- extra$rows %||% own
    recipe <- s$recipe
    own <- add_columns(own, list(
      log_lik = translate_weighed(s, recipe$log_lik, con),
      score = translate_weighed(s, recipe$score, con),
      curvature = translate_weighed(s, recipe$curvature, con)
    ))
    h <- names_of_parts(own, "h")
    bent <- times_parts(own, "curvature")
    own <- add_columns(own, stats::setNames(bent, h))
    products <- product_aggregates("h", quote_names(con, h), own$u)
    facts <- if (is_known) {
      check_aggregates(own, s)
    } else {
      fact_aggregates(own, s, squares = is.null(known))
    }
    list(
      rows = own,
      sums = c(
        facts,
        log_lik = paste0("SUM(", quote_names(con, "log_lik"), ")"),
        first_aggregates("g", times_parts(own, "score")),
        products,
        extra$sums
      ),
      alone = sums_without_factor(s, "h")
    )
  })
  if (is_known) {
    check_known_facts(found$total, s, theta, known)
  }
  pieces <- columns_in_parts(s$cells, found$f)
  list(
    parts = list(
      log_lik = found$total[["log_lik"]],
      gradient = sums_of_columns(pieces, sums_of(found, "g")),
      hessian = products_of_columns(pieces, sums_of(found, "h"))
    ),
    facts = if (is_known) known else facts_of_cells(s, found),
    sums = found$total,
    each = found$each
  )
}

names_of_parts <- function(rows, letter) {
  sprintf("%s%d", letter, seq_along(rows$u))
}

# Sums by cell of what has such names, in their order.
sums_of <- function(found, what) {
  own <- startsWith(colnames(found$sums), paste0(what, " "))
  found$sums[, own, drop = FALSE]
}

# Names of the products of parts that columns without a factor alone have.
sums_without_factor <- function(s, what) {
  is_alone <- parts_without_factor(s$cells)
  pairs <- pairs_of_parts(length(is_alone))
  own <- is_alone[pairs[, 1]] & is_alone[pairs[, 2]]
  sprintf("%s %d %d", what, pairs[own, 1], pairs[own, 2])
}

# About the shift first, then about the means.
#' @export
products_of.tall_rows_database <- function(rows, control) {
  s <- rows$in_sql
  found <- sum_by_cells(rows, function(own) {
    con <- own$con
    y <- sql_residual(own, s)
    z <- c(own$u, y)
    left <- z
    if (has_sql_weight(s)) {
      names <- sprintf("h%d", seq_along(z))
      left <- quote_names(con, names)
      weight <- quote_names(con, "weight")
      weighed <- c(weight, paste(weight, "*", z[-1]))
      own <- add_columns(own, stats::setNames(weighed, names))
    }
    list(
      rows = own,
      sums = c(fact_aggregates(own, s), product_aggregates("h", left, z)),
      alone = sums_without_factor(s, "h")
    )
  })
  # the response is another column, a part of its own
  d <- length(s$cells$shift)
  response <- length(s$cells$parts) + 1
  pieces <- columns_in_parts(s$cells, found$f, s$cells$shift[-d])
  pieces[[1]]$x <- cbind(pieces[[1]]$x, 0)
  pieces[[1]]$at <- seq_len(d)
  pieces[[response]] <- list(at = d, x = matrix(1, nrow(found$f), 1))
  weight <- found$total[[if (has_sql_weight(s)) "w sum" else "n"]]
  products <- sums_of(found, "h")
  first <- paste("h", 1, seq_len(response))
  away <- sums_of_columns(pieces, sums_named(products, first)) / weight
  list(
    mean = s$cells$shift + away,
    sums = products_of_columns(pieces, products) - weight * tcrossprod(away),
    weight = weight,
    facts = facts_of_cells(s, found),
    n_missing = s$n_missing
  )
}

#' @export
residuals_of.tall_rows_database <- function(rows, beta, control) {
  s <- rows$in_sql
  found <- sum_by_cells(rows, function(own) {
    con <- own$con
    own <- add_eta(own, s, beta)
    r <- paste(quote_names(con, "y"), "-", quote_names(con, "eta"))
    own <- add_columns(own, list(r = r))
    r <- quote_names(con, "r")
    weighed <- if (has_sql_weight(s)) {
      paste(quote_names(con, "weight"), "*", r)
    } else {
      r
    }
    own <- add_columns(own, list(wr = weighed))
    square <- paste0("SUM(", quote_names(con, "wr"), " * ", r, ")")
    list(rows = own, sums = c(
      n = "COUNT(*)",
      rss = square,
      first_aggregates("g", times_parts(own, "wr"))
    ))
  })
  pieces <- columns_in_parts(s$cells, found$f)
  list(
    rss = found$total[["rss"]],
    gradient = sums_of_columns(pieces, sums_of(found, "g"))
  )
}
