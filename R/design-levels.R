# Factors of so many levels that no pilot has them all: looks stop there.

# What a look hands back of a factor that no pilot has all levels of: `why`.
# n, n_row: how many, of rows in all, where that is known; NULL: it stopped
# where there were too many.
too_many_levels <- function(name, n = NULL, n_row = NULL) {
  most <- format_count(setting("look")$levels)
  many <- if (is.null(n)) {
    paste("more than", most, "levels")
  } else {
    paste0(format_count(n), " levels (passes take up to ", most, ")")
  }
  list(
    is_whole = TRUE,
    why = paste0("`", name, "` has ", many),
    name = name,
    n_levels = n,
    n_row = n_row
  )
}

# Refused before the rows are brought, where their design cannot be.
check_levels_fit <- function(found) {
  if (is.null(found$n_levels)) {
    return(invisible())
  }
  bytes <- 8 * found$n_row * found$n_levels
  free <- free_memory()
  if (is.na(free) || bytes <= free) {
    return(invisible())
  }
  abort_tall(
    "memory",
    c(
      "The design matrix takes {format_bytes(bytes)}, and memory has
       {format_bytes(free)}.",
      x = "{.code {found$name}} has {format_count(found$n_levels)} levels, a
           column for each in {count_noun(found$n_row, 'row')}.",
      i = "{.code sparse = TRUE} keeps what is not 0.",
      i = "Of numbers and outcomes of two kinds, {.fn tall_glmer} takes
           {.code (1 | group)}."
    ),
    argument = "formula",
    value = bytes,
    expected = free
  )
}

# Of one factor, or of several together?
too_many_groups <- function(tables, s, counts) {
  names <- sql_level_names(s)
  levels <- vapply(names, function(name) {
    max(vapply(counts, function(found) length(unique(found[[name]])), 1L))
  }, 1L)
  if (max(levels) <= setting("look")$levels) {
    no_sql("the factors have too many combinations")
  }
  # not all groups were fetched
  name <- names[[which.max(levels)]]
  whole <- vapply(tables, function(table) {
    rows <- sql_rows(s, table)
    con <- rows$con
    sums <- c(
      n = paste0("COUNT(DISTINCT ", quote_names(con, name), ")"),
      rows = "COUNT(*)"
    )
    found <- run_sql(con, sql_select(con, sums, rows$sql))
    c(as.double(found$n), as.double(found$rows))
  }, c(0, 0))
  variable <- s$variables[[as.integer(substring(name, 2))]]
  too_many_levels(variable$name, max(whole[1, ]), sum(whole[2, ]))
}
