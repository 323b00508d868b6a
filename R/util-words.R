# Words of messages: names, ranges, numbers.

range_text <- function(min, max) {
  if (is.finite(min) && is.finite(max)) {
    paste(" between", format_count(min), "and", format_count(max))
  } else if (is.finite(min)) {
    paste(" of at least", format_count(min))
  } else if (is.finite(max)) {
    paste(" of at most", format_count(max))
  } else {
    ""
  }
}

or_null <- function(allow_null) {
  if (allow_null) " or NULL" else ""
}

rows_text <- function(x) {
  noun <- if (length(dim(x)) > 1) "row" else "value"
  count_noun(NROW(x), noun)
}

# "a", "b" and "c"
quote_all <- function(x, last = "and") {
  x <- paste0("\"", x, "\"")
  n <- length(x)
  if (n == 1) {
    return(x)
  }
  paste(paste(x[-n], collapse = ", "), last, x[[n]])
}

did_you_mean <- function(x, choices, mark = "\"") {
  if (!rlang::is_string(x) || length(choices) == 0) {
    return(NULL)
  }
  distance <- utils::adist(x, choices, ignore.case = TRUE, partial = FALSE)
  # two neighbours that changed places are two changes
  most <- if (nchar(x) < 5) 1 else max(2, nchar(x) %/% 3)
  # of a letter nothing would be left
  most <- min(most, nchar(x) - 1)
  near <- choices[[which.min(distance)]]
  if (min(distance) > most) {
    longer <- choices[vapply(choices, is_short_for, TRUE, x = x)]
    if (length(longer) == 0) {
      return(NULL)
    }
    near <- longer[[which.min(nchar(longer))]]
  }
  paste0("Did you mean ", mark, near, mark, "?")
}

# "wgt" for "weight": its letters, in their order, from the first on, and no
# fewer than a third of them.
is_short_for <- function(x, word) {
  letters <- strsplit(tolower(x), "")[[1]]
  is_short <- length(letters) < max(3, nchar(word) / 3)
  if (is_short || !all(grepl("[a-z0-9]", letters))) {
    return(FALSE)
  }
  grepl(paste0("^", paste(letters, collapse = ".*")), tolower(word))
}

quote_columns <- function(names, most = 5) {
  shown <- paste0("`", utils::head(names, most), "`")
  if (length(names) > most) {
    shown <- c(shown, paste(length(names) - most, "more"))
  }
  cli::ansi_collapse(shown, last = " and ")
}

# At most six values.
values_text <- function(x) {
  shown <- vapply(utils::head(x, 6), format_number, "")
  shown <- paste(with_names(shown, x), collapse = ", ")
  if (length(x) > 6) {
    shown <- paste0(shown, ", ... with ", length(x) - 6, " more")
  }
  shown
}

# "hp = 0": texts of the first values of x with their names, where it has any.
with_names <- function(text, x) {
  names <- names(x)[seq_along(text)]
  if (is.null(names)) unname(text) else paste(names, "=", text)
}

# "0.57"; ">0.99" where nearly all, but not all, was accepted.
rate_text <- function(x) {
  if (isTRUE(x > 0.99 && x < 1)) ">0.99" else format(x, digits = 2)
}

# "57%"; "more than 99%"
share_text <- function(x) {
  if (isTRUE(x > 0.99 && x < 1)) {
    return("more than 99%")
  }
  paste0(format(100 * x, digits = 2), "%")
}

# "12 seconds", "3 minutes", "2 hours"
format_seconds <- function(seconds) {
  if (seconds < 90) {
    count_noun(max(1, round(seconds)), "second")
  } else if (seconds < 5400) {
    count_noun(round(seconds / 60), "minute")
  } else {
    count_noun(round(seconds / 3600), "hour")
  }
}
