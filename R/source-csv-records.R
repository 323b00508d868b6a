# Records of a text file: lines, or several where they end within quotes. Bytes
# are read in large parts, and pieces of whole records cut from them
# (src/data/text.h).

# $read(n): the next n records or fewer, a list of
#   text        one string of them all, each ended by a line feed, as are lines
#               within quotes; empty lines are none
#   n           how many
#   row         how many stand before them in the file, the names among them
#   path        the file
#   has_quotes  is there a quote in it?
#   is_regular  do quotes stand around whole values?
#   is_tight    without blanks outside of them?
# NULL: the end. $close().
record_reader <- function(path, format) {
  part <- byte_reader(path)
  bytes <- raw()
  used <- row <- last <- 0
  next_piece <- function(n) {
    open <- NULL
    repeat {
      piece <- cut_records(bytes, used, n, format, part$is_over())
      used <<- used + piece$n_taken
      if (piece$n > 0 || part$is_over() && used == length(bytes)) {
        return(piece)
      }
      open <- open %||% if (piece$n_open > 0) piece$n_open
      left <- length(bytes) - used
      if (part$is_over() || isTRUE(piece$n_open > open + longest_record)) {
        abort_open_quote(bytes[used + seq_len(left)], row, path)
      }
      bytes <<- part$read(bytes, used, last)
      used <<- 0
    }
  }
  read <- function(n) {
    piece <- next_piece(n)
    if (piece$n == 0) {
      return(NULL)
    }
    piece$row <- row
    piece$path <- path
    row <<- row + piece$n
    last <<- piece$n
    if (!piece$is_ascii && !validUTF8(piece$text)) {
      abort_text(piece, format)
    }
    piece
  }
  list(read = read, close = part$close)
}

longest_record <- 1000

cut_records <- function(bytes, used, n, format, is_over) {
  quote <- byte_of(format$quote)
  sep <- byte_of(format$sep)
  .Call(ffi_text_records, bytes, used, n, quote, sep, is_over)
}

# What the core takes for a character; 256: none, as of those of many bytes.
byte_of <- function(character) {
  byte <- as.integer(charToRaw(character %||% ""))
  if (length(byte) == 1) byte else 256L
}

# $read(bytes, used, last): what follows the first `used` of them, and as many
# bytes of the file or more, by how many records they were made of `last` time;
# $is_over(): it has no more.
byte_reader <- function(path) {
  part <- tryCatch(
    if (is_compressed(path)) compressed_part(path) else plain_part(path),
    condition = function(e) {
      abort_tall(
        "data",
        "{.path {path}} cannot be read.",
        file = path,
        parent = if (inherits(e, "error")) e
      )
    }
  )
  # few for the names, and the rows that types are guessed by
  size <- 2^14
  is_over <- FALSE
  read <- function(bytes, used, last) {
    if (last < enough_records) {
      size <<- min(4 * size, setting("text_bytes"))
    }
    left <- length(bytes) - used
    out <- part$read(bytes, used, max(size, left))
    is_over <<- length(out) == left
    out
  }
  list(read = read, is_over = function() is_over, close = part$close)
}

# With more the calls of a piece cost nothing, but its bytes leave the cache.
enough_records <- 1e4

# May it be? By how gzip, bzip2, xz and lzma begin.
is_compressed <- function(path) {
  begin <- as.integer(readBin(path, "raw", 3))
  length(begin) > 0 &&
    (begin[[1]] %in% c(0x1f, 0xfd, 0x5d) || identical(begin, c(66L, 90L, 104L)))
}

# $read(bytes, used, n): so many more at most, $close().
compressed_part <- function(path) {
  con <- gzfile(path, "rb")
  list(
    read = function(bytes, used, n) {
      .Call(ffi_text_join, bytes, used, readBin(con, "raw", n))
    },
    close = once(function() close(con))
  )
}

# R's connections read 4,096 bytes at a time.
plain_part <- function(path) {
  offset <- 0
  read <- function(bytes, used, n) {
    out <- .Call(ffi_text_read, bytes, used, path, offset, n)
    check_fault(out, path)
    offset <<- offset + length(out) - (length(bytes) - used)
    out
  }
  list(read = read, close = function() NULL)
}

# What no text has in it: "record separator".
line_mark <- "\x1e"

# The records of a piece, a string each, line ends within quotes as `line_mark`.
split_records <- function(piece, format) {
  lines <- strsplit(piece$text, "\n", fixed = TRUE)[[1]]
  record <- records_of(lines, piece, format)
  if (!anyDuplicated(record)) {
    return(lines)
  }
  out <- lines[!duplicated(record)]
  long <- record %in% record[duplicated(record)]
  joined <- split(lines[long], record[long])
  joined <- vapply(joined, paste, "", collapse = line_mark)
  out[as.integer(names(joined))] <- joined
  out
}

# Of each line of a piece which record it is of.
records_of <- function(lines, piece, format) {
  if (length(lines) == piece$n) {
    return(seq_along(lines))
  }
  without <- gsub(format$quote, "", lines, fixed = TRUE, useBytes = TRUE)
  n_quote <- nchar(lines, "bytes") - nchar(without, "bytes")
  before <- c(0, cumsum(n_quote))[seq_along(lines)]
  cumsum(before %% 2 == 0)
}

# row: of the file, 0 that of the names.
row_words <- function(row) {
  if (row == 0) "The line of names" else paste("Row", format_count(row))
}

abort_text <- function(piece, format) {
  lines <- strsplit(piece$text, "\n", fixed = TRUE, useBytes = TRUE)[[1]]
  bad <- which(!validUTF8(lines))[[1]]
  row <- piece$row + records_of(lines, piece, format)[[bad]] - 1
  abort_source(
    c(
      "{row_words(row)} of {.path {piece$path}} is not text in UTF-8.",
      i = "{.fn iconv} makes it so."
    ),
    list(row = row),
    file = piece$path
  )
}

# bytes: of a record that does not end.
abort_open_quote <- function(bytes, row, path) {
  bytes <- utils::head(bytes, 1000)
  line <- strsplit(rawToChar(bytes[bytes != 0]), "[\r\n]", useBytes = TRUE)
  line <- iconv(line[[1]][[1]], "UTF-8", "UTF-8", sub = "")
  shown <- if (nchar(line) > 40) paste0(substr(line, 1, 40), "...") else line
  abort_source(
    c(
      "{row_words(row)} of {.path {path}} opens a quote that does not end within
       {format_count(longest_record)} lines.",
      x = "It begins {.val {shown}}.",
      i = "{.code quote = \"\"} takes quotes for what they are."
    ),
    list(row = row),
    file = path
  )
}
