# What print() says in a few words, of robust draws and of biases.

# "HC1, 200 clusters by g; sds 0.98 to 2.40 times the posterior's"; NULL: draws
# are the posterior's.
robust_text <- function(robust) {
  if (is.null(robust)) {
    return(NULL)
  }
  is_by <- !is.null(robust$by)
  range <- formatC(range(robust$ratio), digits = 2, format = "f")
  paste0(
    robust$type,
    if (robust$weights == "sampling") ", sampling weights",
    ", ",
    count_noun(round(robust$clusters), if (is_by) "cluster" else "row"),
    if (is_by && robust$by != "") paste0(" by ", robust$by),
    if (!is.null(robust$strata)) {
      paste(" in", count_noun(robust$strata, "stratum", "strata"))
    },
    "; sds ",
    paste(unique(range), collapse = " to "),
    " times the posterior's"
  )
}

# For print(); NULL: nothing was rounded.
compressed_text <- function(compressed) {
  if (is.null(compressed)) {
    return(NULL)
  }
  steps <- compressed$steps
  what <- paste(names(steps), "to", vapply(steps, format_number, ""))
  shift <- compressed$shift
  most <- which.max(abs(shift %||% numeric()))
  c(
    paste(what, collapse = ", "),
    if (length(most) == 0) {
      "what that does to the posterior is not known"
    } else if (abs(shift[[most]]) < 0.005) {
      "posterior means move by less than 0.005 of their sds"
    } else {
      paste0(
        "posterior means move by ",
        format_number(signif(abs(shift[[most]]), 2)),
        " of their sds at most (",
        names(shift)[[most]],
        ")",
        if (abs(shift[[most]]) > 2) ": take smaller steps"
      )
    }
  )
}

# "+2.6% (se 1.1)"
bias_text <- function(value, se, label = "se ") {
  paste0(percent_text(value, "+"), "% (", label, percent_text(se), ")")
}

# Numbers beyond a thousand percent say no more than that.
percent_text <- function(x, flag = "") {
  text <- formatC(100 * x, digits = 1, format = "f", flag = flag)
  ifelse(
    is.finite(x) & abs(x) > 10,
    paste0(">", substr(flag, 1, 1), "1000"),
    text
  )
}
