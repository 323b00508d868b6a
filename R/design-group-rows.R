# Rows of multilevel regressions, read in blocks, so that no design matrix of
# all rows is made.
#
# A reader is list(n, p, columns, effects, block): `n` rows of `p` columns;
# names of the columns of x, NULL without, and of z; block(first, n), list(x, z)
# of rows first + 1, ..., first + n at least, in matrices that the next call
# writes over.

matrix_reader <- function(x, z) {
  list(
    n = nrow(x),
    p = ncol(x),
    columns = colnames(x),
    effects = colnames(z),
    block = function(first, n) {
      rows <- first + seq_len(n)
      is_whole <- n == nrow(x)
      part <- function(x) {
        as_double_matrix(as.matrix(if (is_whole) x else design_rows(x, rows)))
      }
      list(x = part(x), z = part(z))
    }
  )
}

# Of a model frame; terms: of the population's part and of the effects. Its
# designs are list(contrasts).
frame_part_reader <- function(frame, fixed, effects) {
  x <- part_filler(fixed, part_frame(fixed, frame))
  z <- part_filler(effects, part_frame(effects, frame))
  list(
    n = nrow(frame),
    p = length(x$columns),
    columns = x$columns,
    effects = z$columns,
    contrasts = x$contrasts,
    z_contrasts = z$contrasts,
    block = function(first, n) list(x = x$fill(first, n), z = z$fill(first, n))
  )
}

# list(columns, contrasts, fill(first, n)): what model.matrix() makes of terms,
# by blocks. sample: rows by which the program of the design is judged.
part_filler <- function(terms, frame, sample = 1000) {
  n_row <- nrow(frame)
  if (!any(is_design_variable(terms))) {
    n_column <- attr(terms, "intercept")
    ones <- matrix(1, min(n_row, rows_of_width(n_column)), n_column)
    return(list(
      columns = rep("(Intercept)", n_column),
      fill = function(first, n) ones
    ))
  }
  is_text <- vapply(frame, is.character, TRUE)
  frame[is_text] <- lapply(frame[is_text], quick_factor)
  rows <- unique(floor(seq(1, n_row, length.out = sample)))
  few <- frame[rows, , drop = FALSE]
  attr(few, "terms") <- terms
  design <- compile_design(few)
  values <- frame_values(design, frame)
  size <- min(n_row, rows_of_width(length(design$columns)))
  chunk <- new_chunk(design, size, n_y = 0)
  list(
    columns = design$columns,
    contrasts = design$contrasts,
    fill = function(first, n) {
      chunk$fill <- 0
      fill_chunk(chunk, design, shift_values(design, values, first, n))
      chunk$x
    }
  )
}

# The values of n rows after the first ones.
shift_values <- function(design, values, first, n) {
  shift <- function(one) {
    one$first <- one$first + first
    one
  }
  values$columns <- lapply(values$columns, shift)
  values$sources <- lapply(values$sources, shift)
  values$n <- n
  values$row <- first + 1
  if (is.null(design$program)) {
    whole <- whole_values(design, values)
    values$columns <- list(list(values = whole, first = 0))
  }
  values
}

# do(block, first, n, is_last) of each block of the reader.
each_rows <- function(reader, do) {
  size <- rows_of_width(reader$p + length(reader$effects))
  for (first in seq(0, reader$n - 1, by = size)) {
    n <- min(size, reader$n - first)
    do(reader$block(first, n), first, n, first + n == reader$n)
  }
}

# ---- a look ------------------------------------------------------------------

# What a regression has to know of all rows before it takes them: class
# "tall_looked", which stands for the matrix x where shape, names, means and
# standard deviations of its columns are asked for. most: of the absolute values
# of z; z_moments: list(n, mean, square), means of z and of products about these
# (NULL where there is one effect); same: the column of x that is that of z, or
# NA; varies: is it another in some rows of a group? (NA where there is one
# effect.)
look_at_rows <- function(reader, group) {
  # C writes into it in place
  seen <- if (length(reader$effects) > 1) {
    matrix(NaN, nlevels(group), length(reader$effects))
  }
  look <- NULL
  each_rows(reader, function(block, first, n, is_last) {
    look <<- look_on(look, block, n, first, group, seen)
  })
  looked_of(look, reader$n, reader$columns, reader$effects, reader)
}

# What was found so far (NULL: nothing), and in the first n rows of a block,
# whose groups are those after `first`. seen: of ffi_groups_look().
look_on <- function(look, block, n, first, group, seen) {
  x <- top_rows(block$x, n)
  look$moments <- join_moments(look$moments, list(
    n = n,
    mean = colMeans(x),
    sd = design_sds(x)
  ))
  found <- .Call(
    ffi_groups_look,
    block$x,
    block$z,
    as.double(n),
    as.double(first),
    group,
    seen
  )
  if (!is.null(seen)) {
    own <- square_moments(top_rows(block$z, n))
    look$z_moments <- join_squares(look$z_moments, own)
  }
  look$most <- pmax(look$most %||% 0, found$most)
  look$same <- (look$same %||% TRUE) & found$same
  look$varies <- (look$varies %||% FALSE) | found$varies
  look
}

# reader: NULL where rows are not to be read again.
looked_of <- function(look, n_row, columns, effects, reader = NULL) {
  structure(
    list(
      reader = reader,
      dim = c(n_row, nrow(look$same)),
      names = columns,
      mean = look$moments$mean,
      sd = look$moments$sd,
      effects = effects,
      most = look$most,
      z_moments = look$z_moments,
      same = apply(look$same, 2, function(is_same) which(is_same)[1]),
      varies = if (length(effects) > 1) look$varies else NA
    ),
    class = "tall_looked"
  )
}

top_rows <- function(x, n) {
  if (nrow(x) == n) x else x[seq_len(n), , drop = FALSE]
}

# Means and standard deviations of rows and of others, of all of them.
join_moments <- function(a, b) {
  if (is.null(a)) {
    return(b)
  }
  n <- a$n + b$n
  away <- b$mean - a$mean
  square <- a$sd^2 * (a$n - 1) + b$sd^2 * (b$n - 1) + away^2 * a$n * b$n / n
  list(n = n, mean = a$mean + away * b$n / n, sd = sqrt(square / (n - 1)))
}

# Of the columns of z: means, and means of products about them.
square_moments <- function(z) {
  mean <- colMeans(z)
  about <- sweep(z, 2, mean)
  list(n = nrow(z), mean = mean, square = crossprod(about) / nrow(z))
}

join_squares <- function(a, b) {
  if (is.null(a)) {
    return(b)
  }
  n <- a$n + b$n
  share <- b$n / n
  away <- b$mean - a$mean
  list(
    n = n,
    mean = a$mean + share * away,
    square = (1 - share) * a$square + share * b$square +
      share * (1 - share) * tcrossprod(away)
  )
}

# A covariate is centred where its mean is so many standard deviations from 0.
far_mean <- 2.5

# T of z = T z': lower triangular, columns of z' in one unit and, where there is
# an intercept that they may be correlated with, about their means if these are
# far from 0. (Nearer, effects at 0 may be all but the same in all groups, which
# is narrow in the coordinates of effects elsewhere.) NULL: one effect, as it
# is. Any T near that one would do: so many digits are kept of it that it does
# not depend on the order of the rows. terms: list(name, correlated).
effects_span <- function(x, terms) {
  moments <- x$z_moments
  if (is.null(moments)) {
    return(NULL)
  }
  sd <- sqrt(diag(moments$square))
  mean <- moments$mean
  has_intercept <- sd[[1]] == 0
  is_far <- terms$correlated & has_intercept & sd > 0 &
    abs(mean) > far_mean * sd
  size <- ifelse(is_far, sd, sqrt(sd^2 + mean^2))
  size <- size / size[[1]]
  span <- diag(signif(size, 6))
  span[is_far, 1] <- round(mean[is_far] / size[is_far], 6) *
    signif(size[is_far], 6)
  span
}

is_looked <- function(x) {
  inherits(x, "tall_looked")
}

#' @export
dim.tall_looked <- function(x) {
  unclass(x)$dim
}

#' @export
dimnames.tall_looked <- function(x) {
  names <- unclass(x)$names
  if (!is.null(names)) list(NULL, names)
}

# Where the columns of z are among those of the model: effects of a covariate
# that is there have its column.
effect_columns <- function(x) {
  at <- x$same
  own <- which(is.na(at))
  at[own] <- ncol(x) + seq_along(own)
  at
}

# The columns of x and those of z that are not among them, of the first n rows
# of a block.
model_columns <- function(block, n, x) {
  own <- which(is.na(x$same))
  if (length(own) == 0) {
    return(block$x)
  }
  some <- seq_len(n)
  cbind(block$x[some, , drop = FALSE], block$z[some, own, drop = FALSE])
}
