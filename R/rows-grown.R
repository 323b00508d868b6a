# Rows that came in batches, see tall_append(): those of a fit, of which its
# passes found something, and a batch since. Where that was found, a pass looks
# at the batch alone.
#
# The rows are those of the fit with another source, of both; besides
#
#   fresh  the batch, class tall_rows_passes or _database
#   kept   what was found of the others: list(theta, chol, facts, drawn), see
#          light_drawn(); pass, the number of the one that uses it; steps of
#          the fit from one draw to the next; n_batch, the last batch's number

# source: of both, NULL: nobody opens them again.
rows_grown <- function(rows, fresh, source, kept) {
  fields <- unclass(with_source(rows, source))
  fields["in_sql"] <- list(NULL)
  fields["fresh"] <- list(fresh)
  fields$kept <- kept
  tall_rows("grown", fields)
}

is_grown <- function(rows) {
  inherits(rows, "tall_rows_grown")
}

# As rows of one source, which they are to who comes later.
without_growth <- function(rows) {
  fields <- unclass(rows)
  fields[c("fresh", "kept")] <- NULL
  rows_passes(fields)
}

# Of two sources the one after the other.
join_sources <- function(a, b) {
  if (!is.null(a) && !is.null(b)) {
    new_shards(c(source_shards(a), source_shards(b)))
  }
}
