# Pieces of time in which a hazard is constant, of tall_surv(). They are part of
# the family of a model's blueprint, `pieces`:
#
#   asked  how many a user wants, or where they are to be cut
#   cuts   where one ends and the next begins, K - 1 numbers; NULL: not settled
#   basis  K x (K - 1): log hazards are its product with the steps, less what
#          the intercept says
#   names  of the steps' coefficients
#
# and where strata have hazards of their own, see R/design-strata.R, of these
# cuts and rows of the basis one stratum's after the other's,
#
#   n_cut    how many cuts each has
#   stratum  of each column of the design whose rows have a 1 in it, counted
#            from 0; 0: it tells of none
#   strata   their names
#
# Steps are those of a random walk: from one piece to the next with a variance
# in proportion to the distance between their middles, independent given their
# standard deviation, as coefficients of a smooth term are. With all of them 0
# the hazard is constant. Over the events the log hazards have mean 0, and
# before the data are seen the mean variance 1 at a standard deviation of 1.

# asked: of tall_surv()'s `pieces`.
pieces_family <- function(asked) {
  family <- new_family(response_piecewise(NULL), aux = c(1, 1))
  family$pieces <- list(asked = asked)
  family
}

# The name of the steps' standard deviation, smooth_sd[basehaz].
pieces_block <- "basehaz"

# A number of pieces, or a vector of cuts; NULL: so many as the events bear.
check_pieces <- function(pieces) {
  if (is.null(pieces)) {
    return(NULL)
  }
  check_numeric_vector(pieces, positive = TRUE, most = most_of_data)
  if (length(pieces) == 1 && pieces == floor(pieces)) {
    return(check_count(pieces, min = 2, max = most_pieces))
  }
  if (length(pieces) == 1) {
    return(as.double(pieces))
  }
  falls <- which(diff(pieces) <= 0)
  if (length(falls) > 0) {
    abort_value(
      pieces,
      falls[[1]] + 1,
      "be larger than the one before",
      arg = "pieces"
    )
  }
  if (length(pieces) >= most_pieces) {
    abort_expected(pieces, paste("fewer than", most_pieces, "cuts"))
  }
  as.double(pieces)
}

most_pieces <- 200

# So many pieces where nobody says: some events in each at least, 25 up to
# 10,000 events, and beyond in proportion to the fourth root of their number.
# What a constant hazard in a piece leaves out of a coefficient falls with the
# square of the number of pieces, and its standard deviation with the root of
# that of events.
usual_pieces <- function(n_event) {
  n <- 25 * max(1, n_event / 1e4)^(1 / 4)
  floor(max(2, min(n, n_event / 10, most_pieces)))
}

step_names <- function(number) {
  paste0(pieces_block, ".", number)
}

# list(cuts, basis) of these rows, in n pieces where the user does not say.
walk_of_rows <- function(asked, y, weight, n = NULL) {
  is_event <- y[, 3] == 1
  time <- y[is_event, 1]
  weight <- weight[is_event]
  cuts <- if (is.null(asked) || is_count_of_pieces(asked)) {
    usual_cuts(time, weight, asked %||% n %||% usual_pieces(sum(weight)))
  } else {
    asked
  }
  list(cuts = cuts, basis = walk_basis(cuts, time, weight, max(y[, 1])))
}

is_count_of_pieces <- function(asked) {
  length(asked) == 1 && asked == floor(asked)
}

# Quantiles of the times of events, each of them one, and none the last event;
# of one time alone, half of it.
usual_cuts <- function(time, weight, n) {
  at <- order(time)
  time <- time[at]
  share <- cumsum(weight[at]) / sum(weight)
  wanted <- seq_len(n - 1) / n
  found <- unique(time[findInterval(wanted, share, left.open = TRUE) + 1])
  found <- found[found < max(time)]
  if (length(found) == 0) max(time) / 2 else found
}

# end: where the last piece is thought to end.
walk_basis <- function(cuts, time, weight, end) {
  n <- length(cuts) + 1
  end <- max(end, cuts[[n - 1]] * 1.01)
  middle <- (c(0, cuts) + c(cuts, end)) / 2
  root <- sqrt(diff(middle))
  basis <- outer(seq_len(n), seq_len(n - 1), ">") * rep(root, each = n)
  # a piece without events counts a little
  share <- tabulate_weights(piece_of(cuts, time), weight, n)
  share <- (share + 1e-3 * sum(share) / n) / sum(share + 1e-3 * sum(share) / n)
  basis <- basis - rep(drop(share %*% basis), each = n)
  basis / sqrt(sum(share * rowSums(basis^2)))
}

tabulate_weights <- function(at, weight, n) {
  out <- numeric(n)
  found <- rowsum(weight, at)
  out[as.integer(rownames(found))] <- found
  out
}
