# Rows drawn ahead by databases: those with u < C psi, of which R makes counts,
# and those that steps look at always. The uniform numbers u are the engine's.

#' @export
take_rows_ahead.tall_rows_database <- function(rows, found, draw, control) {
  s <- rows$in_sql
  with_psi <- function(own) {
    con <- own$con
    own <- add_psi(own, s, found$chol, draw)
    psi <- paste0(
      "SUM(CASE WHEN ", sql_always(con, draw), " = 0 THEN ",
      quote_names(con, "psi"), " ELSE ", sql_number(0, con), " END)"
    )
    always <- paste0("SUM(", sql_always(con, draw), ")")
    top <- paste0("MAX(", quote_names(con, "psi"), ")")
    list(rows = own, sums = c(psi = psi, always = always, top = top))
  }
  summed <- sql_sums_at(rows, found$theta, with_psi, found$facts)
  sums <- summed$sums
  # as new_drawn() has it
  most <- 2 * most_ahead(sums[["n"]])
  if (draw$rate * sums[["psi"]] > most) {
    draw$rate <- most / sums[["psi"]]
  }
  below <- lapply(summed$each, most_uniform, draw)
  tables <- source_tables(rows$source)
  queries <- Map(drawn_query, tables, below,
    MoreArgs = list(s = s, found = found, draw = draw))
  taken <- run_on_tables(tables, queries)
  parts <- lapply(taken, read_taken,
    rows = rows, found = found, draw = draw)
  check_share(parts, draw$rate * sums[["psi"]])
  c(join_drawn(parts), list(
    rate = draw$rate,
    total = sums[["psi"]],
    sums = summed$parts,
    facts = summed$facts
  ))
}

# The uniform number from which on no row of a table can be drawn, so that psi
# is computed of few. sums: the table's, by cell.
most_uniform <- function(sums, draw) {
  if (any(sums[, "always"] > 0)) {
    return(1)
  }
  # psi is computed twice
  min(1, 1.000001 * draw$rate * max(sums[, "top"]))
}

# The query of the rows that are drawn, and of those that steps look at always.
drawn_query <- function(table, below, s, found, draw) {
  own <- sql_design_rows(s, table, raw = TRUE, below = below)
  con <- own$con
  own <- add_eta(own, s, found$theta)
  own <- add_psi(own, s, found$chol, draw)
  raw <- sprintf("c%d", seq_along(s$columns))
  u <- quote_names(con, "u")
  psi <- quote_names(con, "psi")
  sql_select(
    con,
    list(always = sql_always(con, draw)),
    own$sql,
    keep = c(raw, "u", "psi", "eta"),
    where = paste0(
      u, " < ", psi, " * ", sql_number(draw$rate, con), " OR ",
      sql_always(con, draw), " = 1"
    )
  )
}

# The drawn rows of a table, as R reads them: their predictors must be those
# that the database has.
read_taken <- function(taken, rows, found, draw) {
  s <- rows$in_sql
  raw <- sprintf("c%d", seq_along(s$columns))
  is_always <- taken$always == 1
  mean <- draw$rate * taken$psi
  if (any(!is_always & !(taken$u < mean))) {
    abort_source(
      "The database evaluates its random numbers more than once, and rows cannot
       be drawn by them."
    )
  }
  count <- counts_of(taken$u, mean)
  count[is_always] <- 0
  keep <- is_always | count > 0
  if (!any(keep)) {
    return(NULL)
  }
  taken <- taken[keep, , drop = FALSE]
  frame <- frame_of(
    stats::setNames(lapply(taken[raw], identity), s$columns),
    nrow(taken)
  )
  read <- whole_rows(new_rows(rows, frame))
  read <- unclass(read)[c("x", "y", "weights", "offset")]
  check_predictors(read, found$theta, taken$eta)
  c(read, list(count = count[keep], psi = taken$psi))
}

# The smallest count with P(more) <= u, of a Poisson law.
counts_of <- function(u, mean) {
  stats::qpois(u, mean, lower.tail = FALSE)
}

check_predictors <- function(read, theta, eta) {
  mine <- drop(read$x %*% theta) + (read$offset %||% 0)
  scale <- drop(abs(read$x) %*% abs(theta)) + abs(read$offset %||% 0) + 1e-300
  bad <- length(mine) != length(eta) || any(abs(mine - eta) > 1e-8 * scale)
  if (bad) {
    abort_source(
      c(
        "Rows are not the same in the database as in R.",
        x = "Their linear predictors differ by more than 1e-8.",
        i = "{.code as_source(data, in_database = FALSE)} lets R read the rows."
      )
    )
  }
}

# As many draws as there should be? Their number is Poisson's.
check_share <- function(parts, mean) {
  n <- sum(vapply(parts, function(part) sum(part$count), 0))
  if (abs(n - mean) > 8 * sqrt(mean) + 10) {
    abort_source(
      "The random numbers of the database are not uniform: by them
       {format_count(n)} rows were drawn, where {format_count(round(mean))} were
       expected."
    )
  }
}
