# Records of text made columns of values: by data.table, readr or R. Each may
# hand back text where a value is not of the type of its column, which is told.

# engine(text, types, keep, format): a list of the columns `keep` (TRUE or
# FALSE, of each column), of the types, or text where some are not. Where it
# does not see that records have other numbers of values, it asks all_whole()
# first.
csv_engines <- list(
  data.table = function(text, types, keep, format) {
    as <- ifelse(types == "Date", "character", types)
    # what it warns of is looked for, and told with its row
    suppressWarnings(data.table::fread(
      text = paste0(paste(text, collapse = "\n"), "\n"),
      sep = format$sep,
      dec = format$dec,
      quote = format$quote,
      header = FALSE,
      colClasses = ifelse(keep, as, "NULL"),
      na.strings = format$na,
      encoding = "UTF-8",
      data.table = FALSE,
      showProgress = FALSE
    ))
  },
  readr = function(text, types, keep, format) {
    letter <- c(logical = "l", numeric = "d", Date = "c", character = "c")
    read <- function(letters) {
      readr::read_delim(
        I(paste0(paste(text, collapse = "\n"), "\n")),
        delim = format$sep,
        quote = format$quote,
        col_names = FALSE,
        col_types = paste(letters, collapse = ""),
        locale = readr::locale(
          decimal_mark = format$dec,
          grouping_mark = if (format$dec == ".") "," else "."
        ),
        na = format$na,
        trim_ws = TRUE,
        progress = FALSE,
        lazy = FALSE
      )
    }
    letters <- ifelse(keep, letter[types], "-")
    out <- suppressWarnings(read(letters))
    if (nrow(readr::problems(out)) > 0) {
      if (!all_whole(text, length(types), format)) {
        return(NULL)
      }
      out <- suppressWarnings(read(ifelse(keep, "c", "-")))
    }
    as.list(out)
  },
  base = function(text, types, keep, format) {
    if (!all_whole(text, length(types), format)) {
      return(NULL)
    }
    scan(
      text = text,
      what = ifelse(keep, list(""), list(NULL)),
      sep = format$sep,
      quote = format$quote,
      na.strings = format$na,
      strip.white = TRUE,
      quiet = TRUE,
      multi.line = FALSE,
      encoding = "UTF-8"
    )[keep]
  }
)

# The first that is there.
csv_engine <- function() {
  for (name in c("data.table", "readr")) {
    if (requireNamespace(name, quietly = TRUE)) {
      return(name)
    }
  }
  "base"
}

# A list of columns by name. text: records, with attributes row, the number of
# the first, and path; types: of all columns of the file,
# in their order, by name.
parse_csv <- function(text, types, columns, format) {
  keep <- names(types) %in% columns
  if (!any(keep)) {
    return(list())
  }
  engine <- csv_engines[[format$engine]]
  found <- tryCatch(
    engine(as.character(text), types, keep, format),
    error = function(e) abort_ragged(text, length(types), format, e)
  )
  if (length(found) != sum(keep) || any(lengths(found) != length(text))) {
    abort_ragged(text, length(types), format)
  }
  names(found) <- names(types)[keep]
  has_quotes <- nzchar(format$quote) &&
    any(grepl(format$quote, text, fixed = TRUE))
  for (name in names(found)) {
    x <- found[[name]]
    if (!is.character(x) && types[[name]] != "character") {
      found[[name]] <- if (is.numeric(x)) as.double(x) else x
      next
    }
    x <- tidy_text(x, has_quotes, format)
    found[[name]] <- csv_values(x, types[[name]], name, text, format)
  }
  found
}

# Text as it was before it was quoted.
tidy_text <- function(x, has_quotes, format) {
  x <- as.character(x)
  if (has_quotes) {
    x <- gsub(line_mark, "\n", x, fixed = TRUE)
  }
  # which fread() leaves as they are
  if (has_quotes && format$engine == "data.table") {
    twice <- paste0(format$quote, format$quote)
    x <- gsub(twice, format$quote, x, fixed = TRUE)
  }
  x[x %in% format$na] <- NA
  x
}

csv_values <- function(x, type, name, text, format) {
  if (type == "character") {
    return(x)
  }
  out <- text_values(with_point(trimws(x), format$dec), type)
  bad <- which(is.na(out) & !is.na(x))
  if (length(bad) > 0) {
    row <- attr(text, "row") - 1 + bad[[1]]
    path <- attr(text, "path")
    abort_source(
      c(
        "Row {format_count(row)} of {.path {path}} has {.val {x[[bad[[1]]]]}} in
         {.field {name}}, which is no value of the type {.val {type}}.",
        i = "Say what it is, {.code types = c({name} = \"character\")}, what
             stands for a missing value, {.arg na}, or guess by more rows,
             {.code guess = Inf}."
      ),
      list(row = row),
      column = name,
      file = path
    )
  }
  out
}

# Of each record how many values it has.
count_values <- function(text, format) {
  con <- textConnection(text)
  on.exit(close(con))
  utils::count.fields(con, format$sep, format$quote, comment.char = "")
}

all_whole <- function(text, n_column, format) {
  all(count_values(text, format) == n_column)
}

abort_ragged <- function(text, n_column, format, parent = NULL) {
  n <- count_values(text, format)
  bad <- which(n != n_column)
  row <- attr(text, "row") - 1 + c(bad, 1)[[1]]
  path <- attr(text, "path")
  abort_source(
    c(
      if (length(bad) > 0) {
        "Row {format_count(row)} of {.path {path}} has
         {count_noun(n[[bad[[1]]]], 'value')} for the
         {count_noun(n_column, 'name')} of the first line."
      } else {
        "{.path {path}} cannot be read from row {format_count(row)} on."
      },
      i = "{.arg sep} and {.arg quote} say how values are told apart."
    ),
    list(row = row),
    file = path,
    parent = parent
  )
}
