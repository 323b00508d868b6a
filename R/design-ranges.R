# Where the finite values of a column are least and most, block by block.

# Of n values after the first `first`, those with TRUE in keep (of n, or NULL):
# list(min, max, min_row, max_row, n_missing, bad_row). Rows are numbered from 1
# in the block, NA where there is none; of rows with the same value the first.
# NaN is missing; bad_row is the first infinite one.
column_ranges <- function(values, first, n, keep = NULL) {
  .Call(ffi_column_ranges, values, first, n, keep)
}

# Those of a block of which the first row is number `row`, after those of the
# blocks before (NULL: none): rows are numbered in all data.
merge_ranges <- function(before, block, row = 1) {
  rows <- c("min_row", "max_row", "bad_row")
  block[rows] <- lapply(block[rows], function(at) at + row - 1)
  if (is.null(before)) {
    return(block)
  }
  out <- before
  if (!is.na(block$min) && (is.na(out$min) || block$min < out$min)) {
    out[c("min", "min_row")] <- block[c("min", "min_row")]
  }
  if (!is.na(block$max) && (is.na(out$max) || block$max > out$max)) {
    out[c("max", "max_row")] <- block[c("max", "max_row")]
  }
  out$n_missing <- out$n_missing + block$n_missing
  if (is.na(out$bad_row)) {
    out$bad_row <- block$bad_row
  }
  out
}
