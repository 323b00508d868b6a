# Passes over the rows of a source. Rows are regrouped into chunks of a fixed
# size by their number, so that sums, and all that follows from them, do not
# depend on the blocks in which a source hands them out.

# f(model) of the first n rows of a chunk, a model of the core for as long as
# that takes: see R/model-chunk.R.
with_chunk_model <- function(chunk, n, rows, f) {
  model <- chunk_model(
    chunk$x,
    n,
    if (is.matrix(chunk$y)) select_rows(chunk$y, seq_len(n)) else chunk$y,
    chunk$weights,
    chunk$offset,
    rows$family
  )
  on.exit(.Call(ffi_model_release, model))
  f(model)
}

# ---- facts of the columns ----------------------------------------------------

# Counts, means and sums of squares about them, of columns and of the response
# less its offset, chunk after chunk: Chan, Golub & LeVeque (1983, The American
# Statistician 37). share: that of weights in the largest.
new_column_facts <- function() {
  total <- NULL
  list(
    add = function(chunk, n) {
      x <- .Call(ffi_column_moments, chunk$x, n)
      y <- first_column(chunk$y)
      y <- if (is.null(chunk$offset)) y else y - chunk$offset
      y_own <- .Call(ffi_column_moments, y, n)
      part <- list(
        n = n,
        mean = c(x$mean, y_own$mean),
        square = c(x$square, y_own$square)
      )
      if (!is.null(chunk$weights)) {
        y <- y[seq_len(n)]
        w <- chunk$weights[seq_len(n)]
        centre <- sum(w * y) / sum(w)
        part$weighted <- c(max(w), sum(w), centre, sum(w * (y - centre)^2))
      }
      total <<- merge_facts(total, part)
      NULL
    },
    # NULL: there were none
    total = function() total
  )
}

# As build_model() finds them of rows in memory; `total` has what they were made
# of, to be merged with that of other rows. shards: rows of each, where there
# are several.
facts_of <- function(total, shards = NULL) {
  p <- length(total$mean) - 1
  sd <- sqrt(total$square / max(1, total$n - 1))
  units <- list(mean = total$mean[[p + 1]], sd = sd[[p + 1]])
  units$sd <- units$aux_sd <- if (units$sd > 0) units$sd else 1
  if (!is.null(total$weighted)) {
    w <- total$weighted
    square <- w[[4]] / w[[1]] / max(1, total$n - 1)
    square <- if (square > 0) square else w[[2]] / w[[1]] / total$n
    units$aux_sd <- sqrt(w[[1]] * square)
  }
  out <- list(
    mean = total$mean[seq_len(p)],
    sd = sd[seq_len(p)],
    units = units,
    n_row = total$n,
    response = total$mean[[p + 1]],
    total = total
  )
  out$shards <- shards
  out
}

# Facts of rows that follow one another, from those of each part.
merge_known <- function(parts) {
  facts_of(Reduce(merge_facts, lapply(parts, `[[`, "total")))
}

merge_facts <- function(a, b) {
  if (is.null(a)) {
    return(b)
  }
  n <- a$n + b$n
  away <- b$mean - a$mean
  out <- list(
    n = n,
    mean = a$mean + away * b$n / n,
    square = a$square + b$square + away^2 * a$n * b$n / n
  )
  if (!is.null(a$weighted)) {
    u <- a$weighted
    v <- b$weighted
    w <- u[[2]] + v[[2]]
    away <- v[[3]] - u[[3]]
    out$weighted <- c(
      max(u[[1]], v[[1]]),
      w,
      u[[3]] + away * v[[2]] / w,
      u[[4]] + v[[4]] + away^2 * u[[2]] * v[[2]] / w
    )
  }
  out
}

# What tells other rows from these: numbers, and how far they may be off. Sums
# that a database takes in any order differ by their rounding.
facts_key <- function(facts) {
  facts[c("n_row", "mean", "response")]
}

same_facts <- function(before, now, is_exact) {
  if (is_exact) {
    return(identical(facts_key(before), facts_key(now)))
  }
  scale <- c(before$sd, before$units$sd)
  a <- c(before$mean, before$response)
  b <- c(now$mean, now$response)
  before$n_row == now$n_row && all(abs(a - b) <= 1e-9 * (scale + abs(a)))
}

# ---- sums --------------------------------------------------------------------

# list(log_lik, gradient, hessian) of the likelihood at theta, over all rows.
add_sums <- function(total, part) {
  own <- c("log_lik", "gradient", "hessian")
  if (is.null(total)) {
    return(part[own])
  }
  Map(`+`, total[own], part[own])
}

# One pass: what over(rows, args, first) makes of each shard with rows that
# count, of which there are `first` before it. It is list(add, end), of which
# add(chunk, n, first) is told each chunk, as each_chunk() does, and
# end(seen) what that returns; this has list(n_row, n_missing, ...), with what
# new_column_facts() has in total as `columns`, or without. known: facts of a
# pass before, which say how many rows shards have.
#
# list(parts, facts, n_missing)
pass_over <- function(rows, over, args, show, known = NULL) {
  if (!is_passed_rows(rows)) {
    pass <- over(rows, args, 0)
    seen <- each_chunk(rows, pass$add, show)
    return(merge_parts(list(pass$end(seen))))
  }
  check_source_kept(rows)
  args$rows <- without_source(rows)
  args$over <- over
  parts <- each_shard(
    rows$source,
    visit_chunks,
    args,
    rows_before(source_shards(rows$source), known$shards),
    show
  )
  digest <- merge_digests(lapply(parts, `[[`, "digest"))
  check_same_digest(rows$digest, digest)
  merge_parts(parts)
}

# Rows before each shard. known: how many count in each, NULL: nobody knows, and
# numbers have gaps.
rows_before <- function(shards, known) {
  if (length(shards) == 1) {
    0
  } else if (length(known) == length(shards)) {
    cumsum(known) - known
  } else {
    shard_offsets(shards)
  }
}

merge_parts <- function(parts) {
  n_row <- vapply(parts, `[[`, 0, "n_row")
  n_missing <- sum(vapply(parts, `[[`, 0, "n_missing"))
  if (sum(n_row) == 0) {
    abort_source(
      "{.arg data} gave no rows, and it did before.",
      is_empty = TRUE
    )
  }
  own <- parts[n_row > 0]
  total <- Reduce(merge_facts, lapply(own, `[[`, "columns"))
  list(
    parts = own,
    facts = if (!is.null(total)) {
      facts_of(total, if (length(parts) > 1) n_row)
    },
    n_missing = n_missing
  )
}

visit_chunks <- function(args, first) {
  pass <- args$over(args$rows, args, first)
  chunks <- new_chunks(args$rows, pass$add)
  list(add = chunks$add, end = function(n_read) pass$end(chunks$end()))
}

#' @export
sums_at.tall_rows <- function(rows, theta, control, pass = 1) {
  args <- list(theta = theta, cores = control$cores)
  found <- pass_over(rows, sums_over, args, pass_show(pass, control))
  total <- Reduce(add_sums, lapply(found$parts, `[[`, "sums"))
  c(total, found[c("facts", "n_missing")])
}

sums_over <- function(rows, args, first) {
  total <- NULL
  columns <- new_column_facts()
  add <- function(chunk, n, first) {
    part <- with_chunk_model(chunk, n, rows, function(model) {
      chunk_sums(model, args$theta, args$cores)
    })
    total <<- add_sums(total, part)
    columns$add(chunk, n)
  }
  end <- function(seen) {
    c(seen, list(sums = total, columns = columns$total()))
  }
  list(add = add, end = end)
}

pass_show <- function(pass, control, of = 3) {
  label <- paste0("Pass ", pass, " of about ", max(pass, of))
  list(label = label, refresh = control$refresh)
}

#' @export
products_of.tall_rows <- function(rows, control) {
  args <- list(cores = control$cores)
  show <- list(label = "Pass 1 of 1", refresh = control$refresh)
  found <- pass_over(rows, products_over, args, show)
  total <- Reduce(merge_products, lapply(found$parts, `[[`, "products"))
  c(total, found[c("facts", "n_missing")])
}

products_over <- function(rows, args, first) {
  total <- NULL
  columns <- new_column_facts()
  add <- function(chunk, n, first) {
    p <- ncol(chunk$x)
    part <- with_chunk_model(chunk, n, rows, function(model) {
      .Call(ffi_model_product_sums, model, p, args$cores)
    })
    abort_status(part$status)
    total <<- merge_products(total, part)
    columns$add(chunk, n)
  }
  end <- function(seen) {
    c(seen, list(products = total, columns = columns$total()))
  }
  list(add = add, end = end)
}

merge_products <- function(a, b) {
  if (is.null(a)) {
    return(b[c("mean", "sums", "weight")])
  }
  weight <- a$weight + b$weight
  away <- b$mean - a$mean
  list(
    mean = a$mean + away * b$weight / weight,
    sums = a$sums + b$sums +
      tcrossprod(away) * (a$weight / weight * b$weight),
    weight = weight
  )
}

#' @export
residuals_of.tall_rows <- function(rows, beta, control) {
  show <- list(label = "Another pass", refresh = control$refresh)
  found <- pass_over(rows, residuals_over, list(beta = beta), show)
  sum_of <- function(name) Reduce(`+`, lapply(found$parts, `[[`, name))
  list(rss = sum_of("rss"), gradient = sum_of("gradient"))
}

residuals_over <- function(rows, args, first) {
  rss <- 0
  gradient <- 0
  add <- function(chunk, n, first) {
    own <- seq_len(n)
    x <- chunk$x[own, , drop = FALSE]
    r <- chunk$y[own] - drop(x %*% args$beta)
    if (!is.null(chunk$offset)) {
      r <- r - chunk$offset[own]
    }
    w <- if (is.null(chunk$weights)) 1 else chunk$weights[own]
    rss <<- rss + sum(w * r^2)
    gradient <<- gradient + drop(crossprod(x, w * r))
  }
  end <- function(seen) c(seen, list(rss = rss, gradient = gradient))
  list(add = add, end = end)
}
