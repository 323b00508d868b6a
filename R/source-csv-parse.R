# Records of text made columns of values: by data.table, readr or R. Each may
# hand back text where a value is not of the type of its column, which is told.

# engine(text, types, keep, format, has_quotes): a list of the columns `keep`
# (TRUE or FALSE, of each column) of a string of records, of the types, or text
# where some are not; an error, NULL or columns of another length where records
# have other numbers of values.
csv_engines <- list(
  data.table = function(text, types, keep, format, has_quotes) {
    as <- ifelse(types == "Date", "character", types)
    # what it warns of is looked for, and told with its row
    out <- suppressWarnings(data.table::fread(
      text = text,
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
    if (has_quotes) lapply(out, single_quotes, format$quote) else out
  },
  readr = function(text, types, keep, format, has_quotes) {
    letter <- c(logical = "l", numeric = "d", Date = "c", character = "c")
    for (letters in list(letter[types], "c")) {
      out <- read_by_readr(text, ifelse(keep, letters, "-"), format)
      if (nrow(readr::problems(out)) == 0) {
        return(as.list(out))
      }
    }
  },
  base = function(text, types, keep, format, has_quotes) {
    con <- rawConnection(charToRaw(text))
    on.exit(close(con))
    read <- function(what) {
      scan(
        con,
        what = ifelse(keep, what, list(NULL)),
        sep = format$sep,
        dec = format$dec,
        quote = format$quote,
        na.strings = format$na,
        strip.white = TRUE,
        quiet = TRUE,
        multi.line = FALSE,
        blank.lines.skip = FALSE,
        encoding = "UTF-8"
      )[keep]
    }
    # which takes these for missing whatever the user says, and no quotes
    if (!has_quotes && all(c("", "NA") %in% format$na)) {
      what <- list(logical = NA, numeric = 0, Date = "", character = "")
      out <- tryCatch(read(what[types]), error = function(e) NULL)
      if (!is.null(out)) {
        return(out)
      }
      seek(con, 0)
    }
    read(list(""))
  }
)

# What stands twice for one, as fread() leaves it.
single_quotes <- function(x, quote) {
  if (is.character(x)) gsub(paste0(quote, quote), quote, x, fixed = TRUE) else x
}

read_by_readr <- function(text, types, format) {
  # what is handed over as text, readr walks through once more
  file <- tempfile(fileext = ".csv")
  on.exit(unlink(file))
  writeLines(text, file, sep = "", useBytes = TRUE)
  suppressWarnings(readr::read_delim(
    file,
    delim = format$sep,
    quote = format$quote,
    col_names = FALSE,
    col_types = paste(types, collapse = ""),
    locale = readr::locale(
      decimal_mark = format$dec,
      grouping_mark = if (format$dec == ".") "," else "."
    ),
    na = format$na,
    trim_ws = TRUE,
    progress = FALSE,
    lazy = FALSE
  ))
}

# The first that is there.
csv_engine <- function() {
  for (name in c("data.table", "readr")) {
    if (requireNamespace(name, quietly = TRUE)) {
      return(name)
    }
  }
  "base"
}

# A list of columns by name. piece: see record_reader(); types: of all columns
# of the file, in their order, by name.
parse_csv <- function(piece, types, columns, format) {
  keep <- names(types) %in% columns
  if (!any(keep)) {
    return(list())
  }
  found <- parse_piece(piece, types, keep, format)
  names(found) <- names(types)[keep]
  for (name in names(found)) {
    x <- found[[name]]
    if (!is.character(x) && types[[name]] != "character") {
      found[[name]] <- if (is.numeric(x)) as.double(x) else x
      next
    }
    x <- tidy_text(x, piece$has_quotes, format)
    found[[name]] <- csv_values(x, types[[name]], name, piece, format)
  }
  found
}

# All records at once, or, where the engine does not see them as the package
# does, so that each is one line; where it does not read these, R may.
parse_piece <- function(piece, types, keep, format) {
  # readr takes a quote after a blank for a part of a value
  is_loose <- format$engine == "readr" && !piece$is_tight
  own <- if (is_loose) "base" else format$engine
  read <- function(text, engine = own) {
    tryCatch(
      csv_engines[[engine]](text, types, keep, format, piece$has_quotes),
      error = identity
    )
  }
  fits <- function(found) {
    !inherits(found, "error") && length(found) == sum(keep) &&
      all(lengths(found) == piece$n)
  }
  if (piece$is_regular && fits(found <- read(piece$text))) {
    return(found)
  }
  records <- split_records(piece, format)
  text <- paste0(paste(records, collapse = "\n"), "\n")
  found <- read(text)
  if (fits(found)) {
    return(found)
  }
  by_r <- read(text, "base")
  if (!fits(by_r)) {
    abort_ragged(records, piece, length(types), format, found)
  }
  by_r
}

# Text as it was before it was quoted.
tidy_text <- function(x, has_quotes, format) {
  x <- as.character(x)
  if (has_quotes) {
    x <- gsub(line_mark, "\n", x, fixed = TRUE)
  }
  x[x %in% format$na] <- NA
  x
}

csv_values <- function(x, type, name, piece, format) {
  if (type == "character") {
    return(x)
  }
  # of many rows there are few
  text <- unique(x)
  values <- text_values(with_point(trimws(text), format$dec), type)
  out <- values[match(x, text)]
  bad <- which(is.na(out) & !is.na(x))
  if (length(bad) > 0) {
    row <- piece$row - 1 + bad[[1]]
    path <- piece$path
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
count_values <- function(records, format) {
  con <- textConnection(records)
  on.exit(close(con))
  utils::count.fields(con, format$sep, format$quote, comment.char = "")
}

# found: what was made of them, or an error.
abort_ragged <- function(records, piece, n_column, format, found) {
  n <- count_values(records, format)
  bad <- which(n != n_column)
  row <- piece$row - 1 + c(bad, 1)[[1]]
  path <- piece$path
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
    parent = if (inherits(found, "error")) found
  )
}
