# The SQL of engines that are not here, as dbplyr simulates them.

# What a pass and a draw ask of an engine, of one row of each kind of column.
dialect_of <- function(con) {
  # simulated connections quote nothing of DBI's
  local_function("quote_names", function(con, names) {
    names <- as.character(names)
    if (length(names) == 0) {
      return(names)
    }
    as.character(dbplyr::escape(dbplyr::ident(names), FALSE, NULL, con = con))
  })
  local_function("quote_text", function(con, text) {
    as.character(dbplyr::escape(text, FALSE, NULL, con = con))
  })
  head <- data.frame(y = c(0, 1), x = c(0.5, 2), word = c("a", "b'c"))
  tbl <- dbplyr::tbl_lazy(
    data.frame(y = 0, x = 0.5, word = "a"),
    con = con
  )
  source <- structure(
    list(tbl = tbl, in_database = TRUE),
    class = c("tall_table", "tall_source")
  )
  family <- resolve_family("binomial")
  request <- new_request(y ~ log(x) + word, c("y", "x", "word"), family)
  s <- sql_request(list(source), request, head)
  check_translated(s, con)
  s$is_complete <- TRUE
  s$design <- list(
    columns = list(
      list(),
      list(list(variable = 1L, levels = NULL, values = NULL)),
      list(list(variable = 2L, levels = c("a", "b'c"), values = c(0, 1)))
    ),
    shift = c(1, 0.5, 0.25, 0.5)
  )
  rows <- add_eta(sql_design_rows(s, source, below = 0.5), s, c(-1, 0.5, 2))
  step <- s$recipe$steps[1]
  query_text(con, add_steps(rows, s, step)$sql)
}

known_dialects <- function() {
  c("postgres", "sqlite", "snowflake", "mysql", "hive")
}

test_that("passes and draws are written in the words of each engine", {
  skip_if_not_installed("dbplyr")
  # another version may write the same in other words
  version <- utils::packageVersion("dbplyr")
  skip_if(version[, 1:2] != "2.3", "the snapshots are of dbplyr 2.3")
  for (name in known_dialects()) {
    con <- getExportedValue("dbplyr", paste0("simulate_", name))()
    cat_sql <- function() cat(dialect_of(con), "\n")
    expect_snapshot(cat_sql(), variant = name)
  }
})

test_that("what one engine takes for the end of a text ends none", {
  skip_if_not_installed("dbplyr")
  for (name in known_dialects()) {
    con <- getExportedValue("dbplyr", paste0("simulate_", name))()
    text <- dialect_of(con)
    expect_match(text, "WHEN 'b''c' THEN 1.0", fixed = TRUE)
  }
})
