# Data and functions of a model_custom() as tapes read them.

# A list of arrays, whatever the data are.
data_parts <- function(data) {
  if (is.list(data)) unclass(data) else list(data)
}

# "`g` is a factor, `k` integer"
parts_text <- function(data, which) {
  if (!is.list(data)) {
    return(paste("the data are", typeof(data)))
  }
  text <- vapply(names(data)[which], function(name) {
    x <- data[[name]]
    kind <- if (is.factor(x)) "a factor" else if (is.object(x)) class(x)[[1]]
    paste0("`", name, "` is ", kind %||% typeof(x))
  }, "")
  paste(text, collapse = ", ")
}

is_tape_number <- function(x) {
  is.factor(x) ||
    (typeof(x) %in% c("double", "integer", "logical") && !is.object(x))
}

# Rows as a batch, whose observation is the first dimension.
take_rows <- function(data, n_data, rows) {
  over_parts(data, length(rows), function(x) {
    x <- rows_of_part(x, n_data, rows)
    k <- length(dim(x))
    if (k > 0) aperm(x, c(k, seq_len(k - 1))) else x
  })
}

# Rows in the form of the data, whose observation is the last dimension.
keep_rows <- function(data, n_data, rows) {
  over_parts(data, length(rows), rows_of_part, n_data, rows)
}

rows_of_part <- function(x, n_data, rows) {
  dim <- dim(x)
  if (is.null(dim)) {
    return(x[rows])
  }
  k <- length(dim)
  names <- dimnames(x)
  dim(x) <- c(length(x) / n_data, n_data)
  array(x[, rows], c(dim[-k], length(rows)), names)
}

# f() of the data, or of each of their parts, of n rows then, in the same form.
over_parts <- function(data, n, f, ...) {
  if (!is.list(data)) {
    return(f(data, ...))
  }
  as_batch(lapply(unclass(data), f, ...), data, n)
}

as_batch <- function(parts, data, n) {
  attributes(parts) <- NULL
  names(parts) <- names(data)
  if (is.data.frame(data)) {
    class(parts) <- "data.frame"
    attr(parts, "row.names") <- .set_row_names(n)
  }
  parts
}

# Rows on which a tape that went wrong is told from one that did not: some of
# all, and of each of the first columns the smallest, the largest, a zero and
# the levels.
telling_rows <- function(data, n_data) {
  some <- spread_rows(n_data, 20)
  searched <- spread_rows(n_data, 1e5)
  columns <- unlist(
    lapply(Filter(is_tape_number, data_parts(data)), function(x) {
      m <- length(x) / n_data
      lapply(seq_len(min(m, 20)), function(j) x[(searched - 1) * m + j])
    }),
    recursive = FALSE
  )
  telling <- lapply(utils::head(columns, 20), function(x) {
    levels <- utils::head(seq_along(levels(x)), 50)
    x <- as.double(x)
    values <- c(min(x, na.rm = TRUE), max(x, na.rm = TRUE), 0, levels)
    searched[stats::na.omit(match(values, x))]
  })
  # unlike the data themselves, which a function may see by another way
  rev(unique(c(some, unlist(telling))))
}

# Does it matter to log_lik that a part is there?
uses_part <- function(log_lik, at, batch, k, value) {
  if (!is.list(batch)) {
    return(TRUE)
  }
  batch[[k]] <- NULL
  !identical(try_number(log_lik(at$init, batch)), value)
}

try_number <- function(expr) {
  tryCatch(suppressWarnings(expr), error = function(e) NULL)
}

# ---- what is taped -----------------------------------------------------------

# The parameters as `theta`, from their numbers, which may be on a tape.
as_theta <- function(x, init) {
  last <- cumsum(lengths(init))
  theta <- lapply(seq_along(init), function(k) {
    n <- length(init[[k]])
    one <- x[last[[k]] - n + seq_len(n)]
    shape_as(one, init[[k]])
  })
  stats::setNames(theta, names(init))
}

shape_as <- function(x, like) {
  if (!is.null(dim(like))) {
    dim(x) <- dim(like)
    dimnames(x) <- dimnames(like)
  } else if (!is.null(names(like))) {
    names(x) <- names(like)
  }
  x
}

# sum_k c_k l_k as a function of x and z = x | rows | c; z0: where to record
# it, with what a tape reads from `rows` of the data, and the rest from those
# `kept`.
weighted_log_lik <- function(log_lik, at, inputs, rows, kept = rows) {
  batch <- take_rows(at$data, at$n_data, kept)
  parts <- data_parts(batch)
  n <- length(rows)
  n_x <- length(unlist(at$init))
  n_of <- lengths(parts)[inputs]
  end <- n_x + cumsum(n_of)
  n_z <- n_x + sum(n_of) + n
  f <- function(x, z) {
    for (k in seq_along(inputs)) {
      one <- z[end[[k]] - n_of[[k]] + seq_len(n_of[[k]])]
      parts[[inputs[[k]]]] <- shape_as(one, parts[[inputs[[k]]]])
    }
    batch <- if (is.list(batch)) as_batch(parts, batch, n) else parts[[1]]
    sum(z[n_z - n + seq_len(n)] * log_lik(as_theta(x, at$init), batch))
  }
  z0 <- c(unlist(at$init), read_rows(at, inputs, rows), rep(1, n))
  list(f = f, z0 = as.double(z0), n_x = n_x)
}

# The numbers that a tape reads.
read_rows <- function(at, inputs, rows) {
  parts <- data_parts(take_rows(at$data, at$n_data, rows))
  unlist(lapply(parts[inputs], as.double))
}

# The same of the prior: z = x | 1.
weighted_log_prior <- function(log_prior, at) {
  n_x <- length(unlist(at$init))
  list(
    f = function(x, z) z[n_x + 1] * log_prior(as_theta(x, at$init)),
    z0 = as.double(c(unlist(at$init), 1)),
    n_x = n_x
  )
}
