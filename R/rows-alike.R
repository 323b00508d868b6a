# Rows of a model frame that are alike count as one. They are found in the frame
# itself, by the codes of its factors, its numbers, response, weights and
# offset, so that a design is made of those that differ alone. What depends on
# other rows, such as the knots of a spline, was settled when the frame was
# made. The rows of a fit stay all of them.

# As whole_rows() has them, but those that differ, with the number of rows in
# the weights, as `count`, and `facts` of all rows. NULL: too many differ, or
# they cannot be read as they are, which whole_rows() will say of the rows that
# the user knows. asks: FALSE where it is known that they are to be tied.
alike_rows <- function(rows, asks = TRUE) {
  if (!inherits(rows, "tall_rows_frame")) {
    return(NULL)
  }
  times <- if (!is.null(rows$index)) {
    as.double(tabulate(rows$index, nrow(rows$frame)))
  }
  kinds <- frame_kinds(rows$frame, asks, times)
  if (is.null(kinds)) {
    return(NULL)
  }
  part <- frame_part(rows$frame, kinds$first)
  read <- tryCatch(
    read_frame(rows$request, part),
    tall_error = function(cnd) NULL
  )
  if (is.null(read)) {
    return(NULL)
  }
  read$facts <- counted_moments(read$x, kinds$count)
  read$count <- kinds$count
  weigh_ties(read)
}

# list(first, count): the first row of each kind, and how many there are; NULL:
# there are too many kinds. Mostly no two rows are alike, and few tell. times:
# as many as each row of the frame stands for, NULL: one.
frame_kinds <- function(frame, asks = TRUE, times = NULL, few = 2000) {
  s <- setting("ties")
  n <- if (is.null(times)) nrow(frame) else sum(times)
  if (asks && n <= s$least) {
    return(NULL)
  }
  if (asks && is.null(times)) {
    some <- unique(floor(seq(1, n, length.out = few)))
    found <- tie_frame(frame_part(frame, some))
    if (is.null(found) || mean(found$count == 1) > 0.99) {
      return(NULL)
    }
  }
  found <- tie_frame(frame, times)
  if (!asks || length(found$count) <= s$share * n) found
}

# Means and standard deviations of columns, each row counted so many times.
counted_moments <- function(x, count) {
  n <- sum(count)
  mean <- Matrix::colSums(count * x) / n
  if (is_sparse(x)) {
    column <- rep(seq_len(ncol(x)), diff(x@p))
    own <- away <- x
    own@x <- count[x@i + 1]
    own <- Matrix::colSums(own)
    away@x <- (x@x - mean[column])^2
    square <- Matrix::colSums(count * away) + (n - own) * mean^2
  } else {
    # a constant is as far from its mean as rounding leaves it
    is_flat <- apply(x, 2, function(column) all(column == column[[1]]))
    mean[is_flat] <- x[1, is_flat]
    square <- colSums(count * (x - rep(mean, each = nrow(x)))^2)
  }
  list(mean = mean, sd = unname(sqrt(square / max(1, n - 1))))
}
