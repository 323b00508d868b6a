# What looks at tables refuse, in whatever way they count the rows.

# na.action = na.fail. n: rows that lack something.
check_none_missing <- function(request, n) {
  if (request$fails && n > 0) {
    abort_input(
      c(
        "{.arg data} has missing values in {count_noun(n, 'row')}.",
        i = "{.code na.action = na.omit} leaves such rows out."
      ),
      argument = "data",
      value = n
    )
  }
}

# R reads the rows as those of a source, and says what is wrong with them.
show_to_r <- function(request, part) {
  block <- list(
    columns = as.list(part$raw),
    first = 0,
    n = nrow(part$raw),
    row = 1
  )
  if (block$n > 0) {
    block_response(request, block, NULL)
  }
}
