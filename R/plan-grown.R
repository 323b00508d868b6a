# Rows drawn ahead of rows that grew (tall_append()): those of earlier batches
# were drawn for the fit, and it has kept them with their bounds; the pass draws
# of the new batch, at the same bounds. As long as rows are expanded where they
# were, that is exact: the number of times that a row is drawn is Poisson, and
# does not depend on other rows.

#' @export
take_rows_ahead.tall_rows_grown <- function(rows, found, draw, control) {
  kept <- rows$kept
  # a chain looks at a row once: what it needs later another pass draws
  is_there <- draw$pass == kept$pass &&
    identical(found$theta, kept$theta) && identical(found$chol, kept$chol)
  if (!is_there) {
    check_can_renew(rows)
    return(NextMethod())
  }
  own <- c("radius", "phi_bar", "rate", "scale")
  draw[own] <- kept$drawn$draw[own]
  if (is.null(rows$fresh)) {
    # a batch has gone
    return(c(kept$drawn[drawn_names], list(
      rate = draw$rate,
      total = kept$drawn$total,
      sums = kept$drawn$sums,
      facts = kept$facts,
      draw = draw,
      share = 0
    )))
  }
  found$facts <- shards_alone(rows$fresh$facts)
  taken <- take_rows_ahead(rows$fresh, found, draw, control)
  taken$batch <- rep(kept$n_batch + 1, length(taken$count))
  rates <- c(draw$rate, taken$rate)
  out <- even_drawn(list(kept$drawn, with_numbers(taken)), rates, draw)
  draw$rate <- out$rate
  c(out, list(
    total = kept$drawn$total + taken$total,
    sums = add_sums(kept$drawn$sums, taken$sums),
    facts = merge_known(list(kept$facts, taken$facts)),
    draw = draw,
    share = taken$facts$n_row / (kept$facts$n_row + taken$facts$n_row)
  ))
}

# Do rows that were drawn about a point that is now `away` standard deviations
# from the mean serve a run of as many steps as the fit had? Where all rows can
# be had a pass about another point is no dearer than one that draws more about
# this one.
draws_last <- function(taken, rows, away, d, control) {
  n_step <- steps_of_run(control, rows$kept$steps) +
    setting("recipe")$exact_pilot
  phi <- 2 * (d + 1 + away^2)^1.5
  is_enough <- taken$rate >= n_step * phi
  away <= sqrt(d) && (is_enough || is.null(rows$source))
}

# A database has no numbers of its rows, by which halve_drawn() tosses.
with_numbers <- function(drawn) {
  drawn$number <- drawn$number %||% (2^35 + seq_along(drawn$count))
  drawn
}

# By which rows of a batch are numbered; what else is known of it is found
# again, to be added.
shards_alone <- function(facts) {
  if (!is.null(facts$shards)) {
    list(shards = facts$shards)
  }
}

check_can_renew <- function(rows) {
  if (is.null(rows$source)) {
    abort_tall(
      "stale",
      c(
        "The posterior has moved too far: all rows are needed again.",
        x = "Sums and rows drawn of earlier batches are of a point too many
             standard deviations away, and the fit kept nothing that opens those
             rows.",
        i = "Give {.arg data} what opens all of them, or fit with
             {.code keep_data = TRUE}."
      ),
      argument = "data"
    )
  }
}

drawn_names <- c(
  "x", "y", "weights", "offset", "count", "psi", "number", "batch"
)

# What a fit keeps of rows that a pass drew: list(x, y, weights, offset, count,
# psi, number, batch; draw, total, sums), batch being 0 for rows of the first
# fit. NULL: they take more than setting("kept_bytes").
light_drawn <- function(drawn) {
  drawn$batch <- drawn$batch %||% numeric(length(drawn$count))
  out <- with_numbers(drawn)[drawn_names]
  out[c("draw", "total", "sums")] <- list(
    drawn$draw[c("radius", "phi_bar", "rate", "scale")],
    drawn$total,
    drawn$sums
  )
  if (utils::object.size(out) <= setting("kept_bytes")) out
}
