# The SQL of engines that are not here, as dbplyr simulates them.

# Simulated connections quote nothing of DBI's.
local_dialect <- function(frame = parent.frame()) {
  local_fault("quote_names", function(con, names) {
    names <- as.character(names)
    if (length(names) == 0) {
      return(names)
    }
    as.character(dbplyr::escape(dbplyr::ident(names), FALSE, NULL, con = con))
  }, frame)
  quote <- quote_text
  local_fault("quote_text", function(con, text) {
    if (is_spark(con)) {
      return(quote(con, text))
    }
    as.character(dbplyr::escape(text, FALSE, NULL, con = con))
  }, frame)
}

# A request of one row of each kind of column, and its source.
simulated_rows <- function(con, formula, family, weights = NULL) {
  head <- data.frame(y = c(0, 1), x = c(0.5, 2), word = c("a", "b'c"))
  tbl <- dbplyr::tbl_lazy(
    data.frame(y = 0, x = 0.5, word = "a"),
    con = con
  )
  source <- structure(
    list(tbl = tbl, in_database = TRUE),
    class = c("tall_table", "tall_source")
  )
  request <- new_request(formula, c("y", "x", "word"), resolve_family(family))
  request$weights <- weights
  s <- sql_request(list(source), request, head)
  check_translated(s, con)
  s$is_complete <- TRUE
  s$n_cells <- 2
  design <- stats::model.frame(
    ~ log(x) + word,
    data.frame(x = 1:4, word = c("a", "b'c"))
  )
  design <- compile_design(design)
  design$variables[[1]]$name <- names(s$variables)[[1]]
  pilot <- list(
    x = matrix(c(1, 0.5, 0.25), 1),
    y = 0.5,
    weights = 1
  )
  s$cells <- cells_of_design(s, design, pilot)
  rows_passes(list(source = source, request = request), s)
}

# What a pass and a draw ask of an engine.
dialect_of <- function(con) {
  local_dialect()
  rows <- simulated_rows(con, y ~ log(x) + word, "binomial")
  s <- rows$in_sql
  own <- sql_design_rows(s, rows$source, below = 0.5)
  own <- add_eta(own, s, c(-1, 0.5, 2))
  step <- s$recipe$steps[1]
  query_text(con, add_steps(own, step)$sql)
}

# The text of every query of a look, of passes and of draws, whose results are
# those of one row.
queries_of <- function(con) {
  local_dialect()
  texts <- character()
  take <- function(con, sql) texts <<- c(texts, query_text(con, sql))
  local_fault("run_on_tables", function(tables, queries) {
    Map(function(table, query) {
      take(con, query)
      asked <- query[[length(query)]]$select
      names <- regmatches(asked, gregexpr("\\bs[0-9]+\\b", asked))[[1]]
      found <- stats::setNames(rep(list(1), length(names)), names)
      if (grepl("GROUP BY", utils::tail(texts, 1))) {
        found$v2 <- "a"
      }
      as.data.frame(found)
    }, tables, queries)
  })
  control <- list(refresh = 0, cores = 1)
  theta <- c(-1, 0.5, 2)
  draw <- list(radius = 9, phi_bar = 3, rate = 2, scale = 1)
  half <- -0.25
  cases <- list(
    list(y ~ I(-half * x - 2L) + word, "binomial", NULL),
    list(y ~ log(3 * x) + word + offset(x / 3), "poisson", quote(2 * x)),
    list(y ~ I(- -x^2) + word, "gaussian", NULL)
  )
  for (case in cases) {
    rows <- simulated_rows(con, case[[1]], case[[2]], case[[3]])
    s <- rows$in_sql
    if (case[[2]] == "gaussian") {
      products_of(rows, control)
      residuals_of(rows, theta, control)
    } else {
      sums_at(rows, theta, control)
      own <- add_eta(sql_design_rows(s, rows$source), s, theta)
      always <- sql_always(con, draw)
      own <- add_psi(own, s, diag(3), draw)
      sums <- c(s1 = paste0("SUM(", always, ")"))
      take(con, sql_select(con, sums, own$sql))
      take(con, drawn_query(rows$source, 0.25, s,
        list(theta = theta, chol = diag(3)), draw))
    }
    s$is_complete <- FALSE
    own <- sql_rows(s, rows$source)
    bad <- c(bad = paste0("SUM(", sql_bad(s, own), ")"))
    take(con, sql_select(con, bad, own$sql))
    table <- rows$source
    take(con, counts_query(table, s))
    take(con, ends_query(table, s, 1))
    take(con, ties_query(table, s, 100))
    take(con, kinds_of_some_query(table, s, 100))
    take(con, ranges_query(table, s))
    if (is.null(case[[3]])) {
      take(con, kinds_query(table, s, rows$request, 100))
    }
    levels <- s
    levels$variables <- Filter(function(v) v$kind == "levels", s$variables)
    take(con, level_sums_query(table, levels, rows$request, 0.5))
    rates <- list(all = 0.1, strata = list(v2 = c("b'c" = 0.5)))
    take(con, pilot_query(rows$source, s, rates))
  }
  texts
}

known_dialects <- function() {
  c("postgres", "sqlite", "snowflake", "mysql", "hive", "sparklyr")
}

# Those, and engines that lack what passes need: their rows are streamed.
every_dialect <- function() {
  others <- c("mssql", "oracle", "redshift", "spark_sql", "teradata", "access",
    "impala", "hana")
  is_known <- paste0("simulate_", others) %in% getNamespaceExports("dbplyr")
  c(known_dialects(), others[is_known], "duckdb")
}

simulate_dialect <- function(name) {
  if (name == "duckdb") {
    skip_without_duckdb()
    return(duckdb::simulate_duckdb())
  }
  if (name == "sparklyr") {
    # whose translations are dbplyr's but for what the package has of its own
    suppressWarnings(requireNamespace("sparklyr", quietly = TRUE))
    return(dbplyr::simulate_dbi("spark_connection"))
  }
  getExportedValue("dbplyr", paste0("simulate_", name))()
}

test_that("passes and draws are written in the words of each engine", {
  skip_if_not_installed("dbplyr")
  # another version may write the same in other words
  version <- utils::packageVersion("dbplyr")
  skip_if(version[, 1:2] != "2.3", "the snapshots are of dbplyr 2.3")
  for (name in known_dialects()) {
    con <- simulate_dialect(name)
    cat_sql <- function() cat(dialect_of(con), "\n")
    expect_snapshot(cat_sql(), variant = name)
  }
})

# Of a query: the numbers in it that need not be doubles to the engine. Those
# that are compared, say yes or no, or are the engine's own are left out.
no_doubles <- function(text, engine) {
  # names have digits, too
  text <- gsub("\\b[a-z_]+[0-9]+\\b", "name", text)
  double <- "-?[0-9.]+e[+-]?[0-9]+"
  if (!engine$reads_double) {
    double <- paste0("CAST\\(", double, " AS ", engine$double, "\\)")
  }
  others <- c(
    double,
    "CAST\\([01] AS DOUBLE\\)",
    "& 9007199254740991",
    "(LIMIT|OFFSET) [-'0-9]+",
    "(=|<>|<|>) [01]\\b",
    "THEN 1 ELSE 0 END",
    ", 0 AS .text."
  )
  for (pattern in others) {
    text <- gsub(pattern, "number", text)
  }
  regmatches(text, gregexpr("[^ ]* ?[0-9][^ ]*", text))[[1]]
}

for (name in if (rlang::is_installed("dbplyr")) every_dialect()) {
  test_that(paste("every number is written as a double:", name), {
    skip_if_not_installed("dbplyr")
    con <- simulate_dialect(name)
    engine <- sql_engine(con)
    expect_identical(engine$reads_double, name %in% c("sqlite", "duckdb"))
    texts <- queries_of(con)
    expect_gt(length(texts), 12)
    for (text in texts) {
      expect_identical(no_doubles(text, engine), character())
      # yes and no are not summed, and two signs would end the line
      whole <- "SUM\\(CASE ((?!END).)*(THEN|ELSE) [01]\\b"
      expect_false(grepl(whole, text, perl = TRUE))
      expect_false(grepl("--", text, fixed = TRUE))
    }
  })
}

test_that("numbers of terms stay as they are where functions count by them", {
  skip_if_not_installed("dbplyr")
  con <- dbplyr::simulate_postgres()
  text <- sql_translate(quote(round(x * 2, 2)), con)
  expect_match(text, "CAST(2e0 AS", fixed = TRUE)
  expect_match(text, ", 2)", fixed = TRUE)
  expect_match(sql_translate(quote(substr(word, 1, 3)), con), "1, 3")
})

test_that("what one engine takes for the end of a text ends none", {
  skip_if_not_installed("dbplyr")
  for (name in known_dialects()) {
    con <- simulate_dialect(name)
    text <- dialect_of(con)
    level <- if (is_spark(con)) "'b\\\\'c'" else "'b''c'"
    expect_match(text, paste0("WHEN ", level, " THEN [CAST(]*2e0"))
  }
})

test_that("Spark has doubles of 64 bits, and texts that end where they end", {
  skip_if_not_installed("dbplyr")
  for (class in c("spark_connection", "Spark SQL")) {
    con <- dbplyr::simulate_dbi(class)
    expect_identical(sql_engine(con)$double, "DOUBLE")
    expect_identical(sql_uniform(con), "RAND()")
    expect_identical(
      quote_text(con, c("it's", "a\\b", "\"c\"")),
      c("'it\\'s'", "'a\\\\b'", "'\"c\"'")
    )
    expect_identical(quote_text(con, character()), character())
  }
})

test_that("sparklyr's own connection has every statement", {
  skip_if_not_installed("dbplyr")
  skip_if_not_installed("sparklyr")
  con <- structure(
    list(config = list(), extensions = list()),
    class = c("spark_connection", "DBIConnection")
  )
  expect_identical(quote_names(con, c("a b", "x")), c("`a b`", "`x`"))
  text <- sql_translate(quote(ifelse(x > 2, as.integer(x), -x / 3)), con)
  expect_match(text, "IF(ISNULL", fixed = TRUE)
  expect_match(text, "CAST(2e0 AS DOUBLE)", fixed = TRUE)
  # the names and text are as it quotes them
  quoted <- simulated_rows(con, y ~ log(x) + word, "binomial")$in_sql
  expect_identical(quoted$columns, c("y", "x", "word"))
})
