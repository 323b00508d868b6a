# Records of a text file: lines, or several where they end within quotes.

# $read(n): the next n records or fewer, a string each, line ends within quotes
# as `line_mark`; empty lines are none. Of length 0: the end. $close().
record_reader <- function(path, format) {
  con <- tryCatch(gzfile(path, "rt"), condition = function(e) {
    abort_tall(
      "data",
      "{.path {path}} cannot be read.",
      file = path,
      parent = if (inherits(e, "error")) e
    )
  })
  row <- 0
  read_lines <- function(n) {
    lines <- readLines(con, n, warn = FALSE, encoding = "UTF-8")
    bad <- which(!validUTF8(lines))
    if (length(bad) > 0) {
      abort_text(bad[[1]] + row, path)
    }
    lines
  }
  read <- function(n) {
    lines <- read_lines(n)
    inside <- quotes_before(lines, format$quote)
    while (inside[[length(lines) + 1]]) {
      more <- read_lines(longest_record)
      if (length(more) == 0 || length(lines) > n + 2 * longest_record) {
        first <- max(which(!inside[seq_along(lines)]))
        abort_open_quote(lines[[first]], row + first - 1, path)
      }
      own <- !quotes_before(more, format$quote)
      # the first line that ends where no quote is open
      end <- which(!own[-1])[1]
      if (!is.na(end)) {
        pushBack(more[seq_along(more) > end], con, encoding = "UTF-8")
        more <- more[seq_len(end)]
      }
      lines <- c(lines, more)
      inside <- quotes_before(lines, format$quote)
    }
    records <- join_lines(lines, !inside[seq_along(lines)])
    records <- records[nzchar(records)]
    if (length(records) == 0 && length(lines) > 0) {
      return(read(n))
    }
    row <<- row + length(records)
    records
  }
  list(read = read, close = once(function() close(con)))
}

longest_record <- 1000

# What no text has in it: "record separator".
line_mark <- "\x1e"

# begins: of each line, does a record begin with it?
join_lines <- function(lines, begins) {
  if (all(begins)) {
    return(lines)
  }
  record <- cumsum(begins)
  long <- record %in% record[!begins]
  out <- lines[begins]
  joined <- vapply(
    split(lines[long], record[long]),
    paste,
    "",
    collapse = line_mark
  )
  out[as.integer(names(joined))] <- joined
  out
}

# Of each line, and after the last: does it begin within quotes?
quotes_before <- function(lines, quote) {
  if (!nzchar(quote) || !any(grepl(quote, lines, fixed = TRUE))) {
    return(logical(length(lines) + 1))
  }
  without <- gsub(quote, "", lines, fixed = TRUE)
  n <- nchar(lines, "bytes") - nchar(without, "bytes")
  c(FALSE, cumsum(n) %% 2 == 1)
}

abort_text <- function(row, path) {
  abort_source(
    c(
      "{.path {path}} must be UTF-8, which row {format_count(row)}, or one
       shortly after it, is not.",
      i = "{.fn iconv} makes it so."
    ),
    list(row = row),
    file = path
  )
}

abort_open_quote <- function(line, row, path) {
  shown <- if (nchar(line) > 40) paste0(substr(line, 1, 40), "...") else line
  abort_source(
    c(
      "Row {format_count(row)} of {.path {path}} opens a quote that does not
       end within {format_count(longest_record)} lines.",
      x = "It begins {.val {shown}}.",
      i = "{.code quote = \"\"} takes quotes for what they are."
    ),
    list(row = row),
    file = path
  )
}
