# Rows that every source is made of, with every type that all of them can hand
# out.
source_rows <- function(n = 23) {
  withr::with_seed(8, data.frame(
    x = round(rnorm(n), 3),
    k = sample(9L, n, TRUE),
    z = seq_len(n) / 4
  ))
}

# The same and what matrices have not.
mixed_rows <- function(n = 23) {
  rows <- source_rows(n)
  rows$flag <- rows$k > 4
  rows$word <- c("ant", "bee", NA)[rows$k %% 3 + 1]
  rows$group <- factor(c("a", "b", "c")[rows$k %% 3 + 1])
  rows$x[[5]] <- NA
  rows$k[[6]] <- NA
  rows$flag[[7]] <- NA
  rows
}

# A function that opens a stream of a data frame in blocks of these sizes (rows
# that are left: another one). opened, closed: counters in an environment.
opener <- function(rows, sizes, counts = new.env()) {
  counts$opened <- counts$closed <- 0
  function() {
    counts$opened <- counts$opened + 1
    blocks <- cut_blocks(rows, sizes)
    at <- 0
    list(
      next_block = function() {
        at <<- at + 1
        if (at <= length(blocks)) blocks[[at]]
      },
      close = function() counts$closed <- counts$closed + 1
    )
  }
}

cut_blocks <- function(rows, sizes) {
  sizes <- c(sizes, nrow(rows) - sum(sizes))
  ends <- cumsum(sizes)
  Map(function(n, end) {
    out <- rows[end - n + seq_len(n), , drop = FALSE]
    rownames(out) <- NULL
    out
  }, sizes, ends)
}

# Rows that a pass hands out, as a data frame.
all_rows <- function(source, columns = NULL) {
  found <- list()
  n <- source_each(source, columns, function(block) {
    found[[length(found) + 1]] <<- block_frame(block)
  })
  expect_identical(n, sum(vapply(found, nrow, 0)))
  if (length(found) > 0) bind_frames(found)
}

source_error <- function(source, columns = NULL) {
  error <- expect_error(all_rows(source, columns), class = "tall_error_source")
  expect_s3_class(error, "tall_error")
  error
}

# The laws of a source that has these rows. `as`: what the source makes of a
# data frame's columns, where it is not the same.
expect_source <- function(source, rows, as = identity) {
  rows <- as(rows)
  rownames(rows) <- NULL
  n <- nrow(rows)
  expect_s3_class(source, "tall_source")
  expect_identical(as_source(source), source)
  expect_identical(source_names(source), names(rows))
  size <- source_size(source)
  expect_true(is.na(size) || size == n)
  head <- source_head(source)
  expect_identical(head, rows[seq_len(nrow(head)), , drop = FALSE])

  one <- names(rows)[[2]]
  expect_identical(names(source_head(source, one)), one)

  # the same rows in every pass, whatever is asked for
  expect_identical(all_rows(source), rows)
  expect_identical(all_rows(source), rows)
  some <- rev(names(rows))[1:2]
  expect_identical(all_rows(source, some), rows[some])

  # blocks are numbered, and say where their rows are
  at <- 1
  source_each(source, names(rows)[[1]], function(block) {
    expect_identical(block$row, at)
    expect_gt(block$n, 0)
    expect_identical(
      column_rows(block$columns[[1]], block$first + seq_len(block$n)),
      rows[[1]][at - 1 + seq_len(block$n)]
    )
    at <<- at + block$n
  })
  expect_identical(at, n + 1)

  # rows anywhere, twice, and none
  for (wanted in list(c(n, 1, 2, 2), 2, numeric())) {
    expected <- rows[wanted, some]
    rownames(expected) <- NULL
    expect_identical(source_fetch(source, wanted, some), expected)
  }
  refused <- c("tall_error_source", "tall_error")
  expect_error(source_fetch(source, n + 1), class = refused[[1]])
  expect_error(source_fetch(source, 0), class = "tall_error_input")
  expect_error(source_fetch(source, 1, "nope"), class = refused[[1]])

  # shards are the same rows, and none of the columns may be asked for
  parts <- lapply(source_shards(source), all_rows)
  parts <- parts[lengths(parts) > 0]
  expect_identical(bind_frames(parts), rows)
  expect_identical(nrow(all_rows(source, character())), n)

  # what is not there is told, and after the end there is nothing more
  error <- expect_error(all_rows(source, "zz"), class = refused[[1]])
  expect_identical(error$column, "zz")
  reader <- source_reader(source, some)
  while (!is.null(reader$next_block())) {
    next
  }
  expect_null(reader$next_block())
  expect_identical(as.double(reader$n_row()), as.double(n))
  reader$close()

  # a pass that ends early
  reader <- source_open(source, some)
  reader$next_block()
  reader$close()
  reader$close()
  expect_output(print(source), "<tall_source>")
}
