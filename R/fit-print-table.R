# Tables of estimates in the width of the console.

# Names of rows give way in their middle, since those of a term differ at their
# ends: to what the columns leave, or where that is little, and columns go to
# further lines, to 40.
print_table <- function(table, digits) {
  names <- rownames(table)
  bare <- table
  rownames(bare) <- NULL
  lines <- capture_wide(print(bare, digits = digits))
  room <- getOption("width") - 1 - max(nchar(lines, "width")) +
    nchar(nrow(table))
  short <- shorten(names, if (room >= 24) room else 40)
  rownames(table) <- ifelse(short %in% short[duplicated(short)], names, short)
  print(table, digits = digits)
}

capture_wide <- function(code) {
  before <- options(width = 10000)
  on.exit(options(before))
  utils::capture.output(code)
}

shorten <- function(x, width) {
  size <- nchar(x, "width")
  ahead <- ceiling((width - 3) / 2)
  behind <- width - 3 - ahead
  cut <- paste0(substr(x, 1, ahead), "...", substring(x, size - behind + 1))
  ifelse(size > width, cut, x)
}
