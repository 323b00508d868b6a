# Values that are written as text: what type they are of, and how they are made.

# What users call the types, see tall_csv(): how column_kind() has them.
text_types <- c("logical", "numeric", "Date", "character")

# The first of the types that all values are of; NA where all are missing. A
# letter is no logical value, and a whole number with more digits than a double
# holds is text: it is a name.
text_type <- function(x) {
  x <- unique(x[!is.na(x)])
  if (length(x) == 0) {
    NA_character_
  } else if (all(x %in% c("TRUE", "FALSE", "true", "false"))) {
    "logical"
  } else if (all(is_number_text(x))) {
    "numeric"
  } else if (all(is_date_text(x))) {
    "Date"
  } else {
    "character"
  }
}

is_number_text <- function(x) {
  grepl(number_pattern, x) & !grepl("^[-+]?[0-9]{16,}$", x)
}

number_pattern <- "^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?$"

is_date_text <- function(x) {
  is_like <- grepl("^[0-9]{4}-[0-9]{2}-[0-9]{2}$", x)
  is_like[is_like] <- !is.na(as.Date(x[is_like], format = "%Y-%m-%d"))
  is_like
}

# Values of a type, NA where the text is none.
text_values <- function(x, type) {
  switch(
    type,
    logical = as.logical(x),
    numeric = suppressWarnings(as.double(x)),
    # which refuses what is long
    Date = as.Date(substr(x, 1, 100), format = "%Y-%m-%d"),
    character = x
  )
}

# Text of numbers, with a point where there is another mark.
with_point <- function(x, dec) {
  if (dec == ".") x else sub(dec, ".", x, fixed = TRUE)
}
