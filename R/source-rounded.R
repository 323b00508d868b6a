# Sources some of whose columns are rounded, so that more of their rows are
# alike: a member that rounds what another one hands out. A database rounds by
# itself.

# data: whatever as_source() takes; steps: numbers by the names of columns.
rounded_data <- function(data, steps) {
  if (is.data.frame(data)) {
    check_rounded(steps, names(data))
    return(round_columns(data, steps))
  }
  source <- data_source(data)
  check_rounded(steps, source_names(source))
  # other types are told before anything is computed
  round_columns(source_head(source, names(steps)), steps)
  round_source(source, steps)
}

check_rounded <- function(steps, names) {
  absent <- setdiff(names(steps), names)
  if (length(absent) > 0) {
    hint <- did_you_mean(absent[[1]], names, "`")
    abort_input(
      c(
        "{.arg data} has no column {.code {absent[[1]]}}.",
        x = "{.arg compress} rounds it.",
        i = escape_cli(hint)
      ),
      argument = "compress",
      expected = names,
      value = absent[[1]]
    )
  }
}

round_source <- function(source, steps) {
  UseMethod("round_source")
}

#' @export
round_source.default <- function(source, steps) {
  structure(
    list(source = source, steps = steps),
    class = c("tall_source_rounded", "tall_source")
  )
}

#' @export
round_source.tall_source_frame <- function(source, steps) {
  as_source(rounded_data(source$data, steps))
}

#' @export
round_source.tall_shards <- function(source, steps) {
  source$shards <- lapply(source$shards, round_source, steps)
  source
}

#' @export
round_source.tall_table <- function(source, steps) {
  if (!is.null(source$tbl)) {
    source$tbl <- round_table(source$tbl, steps)
    return(source)
  }
  open <- source$open
  tall_table(
    function() {
      opened <- open_table(open)
      opened$table <- round_table(opened$table, steps)
      opened
    },
    source$in_database
  )
}

# A lazy table. Steps and columns are doubles there: a database may divide whole
# numbers by a whole number, or be exact in decimals.
round_table <- function(table, steps) {
  con <- dbplyr::remote_con(table)
  rounded <- lapply(names(steps), function(name) {
    step <- sql_number(steps[[name]], con)
    column <- sql_double(quote_names(con, name), con)
    out <- paste0("ROUND(", column, " / ", step, ") * ", step)
    if (is_sqlite(con)) {
      # where each value has a type, text is told as text
      own <- quote_names(con, name)
      out <- paste0("CASE TYPEOF(", own, ") WHEN 'text' THEN ", own,
        " ELSE ", out, " END")
    }
    dbplyr::sql(out)
  })
  dplyr::mutate(table, !!!stats::setNames(rounded, names(steps)))
}

round_columns <- function(data, steps) {
  for (name in names(steps)) {
    data[[name]] <- round_column(data[[name]], steps[[name]], name)
  }
  data
}

round_column <- function(x, step, name) {
  if (!is.numeric(x) || is.matrix(x)) {
    abort_input(
      "{.arg compress} rounds columns of numbers: {.field {name}} is
       {describe(x)}.",
      argument = "compress",
      value = name
    )
  }
  is_whole <- is.integer(x) && step == floor(step)
  out <- step * round(x / step)
  if (is_whole && all(abs(out) <= .Machine$integer.max, na.rm = TRUE)) {
    out <- as.integer(out)
  }
  out
}

#' @export
source_open.tall_source_rounded <- function(source, columns = NULL) {
  reader <- source_open(source$source, columns)
  steps <- source$steps
  next_block <- function() {
    block <- reader$next_block()
    if (is.null(block)) {
      return(NULL)
    }
    there <- intersect(names(steps), names(block$columns))
    columns <- round_columns(as.list(block_frame(block)), steps[there])
    list(columns = columns, first = 0, n = block$n)
  }
  list(next_block = next_block, close = reader$close)
}

#' @export
names_without_pass.tall_source_rounded <- function(source) {
  names_without_pass(source$source)
}

#' @export
source_names.tall_source_rounded <- function(source) {
  source_names(source$source)
}

#' @export
source_size.tall_source_rounded <- function(source) {
  source_size(source$source)
}

#' @export
source_fetch.tall_source_rounded <- function(source, rows, columns = NULL) {
  found <- source_fetch(source$source, rows, columns)
  there <- intersect(names(source$steps), names(found))
  round_columns(found, source$steps[there])
}

#' @export
source_shards.tall_source_rounded <- function(source) {
  lapply(source_shards(source$source), round_source, source$steps)
}
