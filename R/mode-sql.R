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

sql_terms <- function(numbers, names, con) {
  used <- numbers != 0
  paste(sql_number(numbers[used], con), "*", names[used])
}

add_eta <- function(rows, s, theta) {
  terms <- sql_terms(theta, rows$x, rows$con)
  if (length(s$offsets) > 0) {
    terms <- c(terms, quote_names(rows$con, "offset"))
  }
  add_columns(rows, list(eta = sql_total(terms, rows$con)))
}

# ||L^-1 x_i||. keeps_x: are the columns needed afterwards?
add_norm <- function(rows, chol, keeps_x = TRUE) {
  inverse <- forwardsolve(chol, diag(nrow(chol)))
  d <- nrow(chol)
  parts <- vapply(seq_len(d), function(k) {
    at <- seq_len(k)
    terms <- sql_terms(inverse[k, at], rows$x[at], rows$con)
    sql_total(terms, rows$con)
  }, "")
  names(parts) <- sprintf("t%d", seq_len(d))
  if (!keeps_x) {
    rows$keep <- setdiff(rows$keep, sprintf("x%d", seq_len(d)))
  }
  before <- rows$keep
  rows <- add_columns(rows, parts)
  own <- quote_names(rows$con, names(parts))
  rows$keep <- before
  square <- list(square = sql_total(paste(own, "*", own), rows$con))
  rows <- add_columns(rows, square, once = FALSE)
  norm <- sql_translate(quote(sqrt(square)), rows$con)
  rows$keep <- before
  add_columns(rows, list(norm = norm))
}

# psi_i, where rows are drawn.
add_psi <- function(rows, s, chol, draw, keeps_x = TRUE) {
  bound <- s$recipe$bound
  con <- rows$con
  rows <- add_norm(rows, chol, keeps_x)
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

# Sums of products a_i b_j, i <= j, by the names "a i j". is_one: which b are 1.
product_aggregates <- function(what, left, right, is_one = FALSE) {
  at <- which(upper.tri(diag(length(left)), diag = TRUE), arr.ind = TRUE)
  i <- at[, 1]
  j <- at[, 2]
  out <- ifelse(
    rep_len(is_one, length(right))[j],
    paste0("SUM(", left[i], ")"),
    paste0("SUM(", left[i], " * ", right[j], ")")
  )
  stats::setNames(out, paste(what, i, j))
}

symmetric <- function(sums, what, d) {
  out <- matrix(0, d, d)
  own <- startsWith(names(sums), paste0(what, " "))
  out[upper.tri(out, diag = TRUE)] <- sums[own]
  out[lower.tri(out)] <- t(out)[lower.tri(out)]
  out
}

# Sums about the shift, from which facts of the columns come.
fact_aggregates <- function(rows, s, squares = TRUE) {
  con <- rows$con
  y <- quote_names(con, "y")
  if (length(s$offsets) > 0) {
    y <- paste0("(", y, " - ", quote_names(con, "offset"), ")")
  }
  z <- paste0("(", c(rows$x, y), " - ", sql_number(s$design$shift, con), ")")
  z[which(rows$is_one)] <- sql_number(0, con)
  out <- c(n = "COUNT(*)", stats::setNames(
    paste0("SUM(", z, ")"),
    paste("first", seq_along(z))
  ))
  if (squares) {
    second <- paste0("SUM(", z, " * ", z, ")")
    out <- c(out, stats::setNames(second, paste("second", seq_along(z))))
  }
  if (has_sql_weight(s)) {
    w <- quote_names(con, "weight")
    last <- z[[length(z)]]
    out <- c(
      out,
      "w sum" = paste0("SUM(", w, ")"),
      "w first" = paste0("SUM(", w, " * ", last, ")"),
      "w second" = paste0("SUM(", w, " * ", last, " * ", last, ")")
    )
  }
  out
}

# Of facts that are known: rows, and sums of responses and predictors, by which
# other rows would show.
check_aggregates <- function(rows, s) {
  con <- rows$con
  own <- length(s$design$shift)
  shift <- sql_number(s$design$shift[[own]], con)
  y <- paste(quote_names(con, "y"), "-", shift)
  c(
    n = "COUNT(*)",
    "check y" = paste0("SUM(", y, ")"),
    "check eta" = paste0("SUM(", quote_names(con, "eta"), ")")
  )
}

check_known_facts <- function(sums, s, theta, known) {
  n <- sums[["n"]]
  y <- s$design$shift[[length(s$design$shift)]] + sums[["check y"]] / n
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

# The facts, as new_column_facts() has them. largest: weight of a row.
facts_of_sums <- function(sums, s, largest = NULL) {
  own <- function(what) {
    unname(sums[startsWith(names(sums), paste0(what, " "))])
  }
  n <- sums[["n"]]
  away <- own("first") / n
  is_one <- c(lengths(s$design$columns) == 0, FALSE)
  total <- list(
    n = n,
    mean = ifelse(is_one, 1, s$design$shift + away),
    square = pmax(0, own("second") - n * away^2)
  )
  if (length(total$square) == 0) {
    total$square <- double(length(away))
  }
  if (!is.null(largest)) {
    w <- sums[["w sum"]]
    off <- sums[["w first"]] / w
    shift <- s$design$shift
    total$weighted <- c(
      largest,
      w,
      shift[[length(shift)]] + off,
      max(0, sums[["w second"]] - w * off^2)
    )
  }
  facts_of(total)
}

# Of all tables together: the sums of aggregates, and the largest weight; each:
# the sums of each table.
aggregate_tables <- function(rows, make) {
  check_source_kept(rows)
  s <- rows$in_sql
  tables <- source_tables(rows$source)
  made <- lapply(tables, function(table) make(sql_design_rows(s, table)))
  each <- sql_aggregates(tables, made)
  largest <- NULL
  if (has_sql_weight(s)) {
    queries <- lapply(made, function(one) {
      con <- one$rows$con
      top <- list(s1 = paste0("MAX(", quote_names(con, "weight"), ")"))
      sql_select(con, top, one$rows$sql)
    })
    found <- run_on_tables(tables, queries)
    largest <- max(unlist(lapply(found, `[[`, "s1")), na.rm = TRUE)
  }
  total <- Reduce(`+`, each)
  if (total[["n"]] == 0) {
    abort_source("{.arg data} has no rows that count any more.")
  }
  list(sums = total, largest = largest, each = each)
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
  d <- length(theta)
  # the sum of offsets is not known
  is_known <- !is.null(known) && length(s$offsets) == 0 && !has_sql_weight(s)
  made <- aggregate_tables(rows, function(own) {
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
    curvature <- quote_names(con, "curvature")
    bent <- paste(curvature, "*", own$x)
    bent[own$is_one] <- curvature
    names(bent) <- sprintf("h%d", seq_len(d))
    own <- add_columns(own, bent)
    score <- paste0("SUM(", quote_names(con, "score"), " * ", own$x, ")")
    score[own$is_one] <- paste0("SUM(", quote_names(con, "score"), ")")
    list(rows = own, sums = c(
      if (is_known) {
        check_aggregates(own, s)
      } else {
        fact_aggregates(own, s, squares = is.null(known))
      },
      log_lik = paste0("SUM(", quote_names(con, "log_lik"), ")"),
      stats::setNames(score, paste("g", seq_len(d))),
      product_aggregates("h", quote_names(con, names(bent)), own$x, own$is_one),
      extra$sums
    ))
  })
  sums <- made$sums
  if (is_known) {
    check_known_facts(sums, s, theta, known)
  }
  list(
    parts = list(
      log_lik = sums[["log_lik"]],
      gradient = unname(sums[startsWith(names(sums), "g ")]),
      hessian = symmetric(sums, "h", d)
    ),
    facts = if (is_known) known else facts_of_sums(sums, s, made$largest),
    sums = sums,
    each = made$each
  )
}

# About the shift first, then about the means.
#' @export
products_of.tall_rows_database <- function(rows, control) {
  s <- rows$in_sql
  d <- length(s$design$columns) + 1
  made <- aggregate_tables(rows, function(own) {
    con <- own$con
    y <- quote_names(con, "y")
    if (length(s$offsets) > 0) {
      y <- paste(y, "-", quote_names(con, "offset"))
    }
    names <- sprintf("z%d", seq_len(d))
    z <- quote_names(con, names)
    from <- paste0("(", c(own$x, y), ") - ", sql_number(s$design$shift, con))
    own <- add_columns(own, stats::setNames(from, names))
    left <- z
    if (has_sql_weight(s)) {
      names <- sprintf("h%d", seq_len(d))
      left <- quote_names(con, names)
      weighed <- paste(quote_names(con, "weight"), "*", z)
      own <- add_columns(own, stats::setNames(weighed, names))
    }
    list(rows = own, sums = c(
      fact_aggregates(own, s),
      stats::setNames(paste0("SUM(", left, ")"), paste("f", seq_len(d))),
      product_aggregates("h", left, z)
    ))
  })
  sums <- made$sums
  weight <- if (has_sql_weight(s)) sums[["w sum"]] else sums[["n"]]
  away <- unname(sums[startsWith(names(sums), "f ")]) / weight
  list(
    mean = s$design$shift + away,
    sums = symmetric(sums, "h", d) - weight * tcrossprod(away),
    weight = weight,
    facts = facts_of_sums(sums, s, made$largest),
    n_missing = s$n_missing
  )
}

#' @export
residuals_of.tall_rows_database <- function(rows, beta, control) {
  s <- rows$in_sql
  made <- aggregate_tables(rows, function(own) {
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
    wr <- quote_names(con, "wr")
    sums <- paste0("SUM(", wr, " * ", c(r, own$x), ")")
    names(sums) <- paste("g", seq_along(sums))
    list(rows = own, sums = c(n = "COUNT(*)", sums))
  })
  found <- unname(made$sums[startsWith(names(made$sums), "g ")])
  list(rss = found[[1]], gradient = found[-1])
}
