# tall_topics() of sources: cells are read block by block, and the draws are to
# the bit those of a data frame.

toy_cells <- function() {
  withr::with_seed(2, {
    cells <- expand.grid(doc = 1:40, word = 1:9)
    cells$count <- stats::rpois(nrow(cells), 1)
    cells <- rbind(cells[cells$count > 0, ], cells[1:10, ])
    cells[sample(nrow(cells)), ]
  })
}

small_topics <- function(dtm, ...) {
  tall_topics(
    dtm,
    k = 2,
    ...,
    train_iter = 20,
    iter = 20,
    thin = 1,
    seed = 1,
    refresh = 0
  )
}

expect_same_topics <- function(fit, memory) {
  expect_identical(fit$draws, memory$draws)
  expect_identical(fit$vocabulary, memory$vocabulary)
  expect_identical(fit$n_data, memory$n_data)
}

test_that("draws are those of a data frame, from every source", {
  cells <- toy_cells()
  memory <- small_topics(cells)
  csv <- withr::local_tempfile(fileext = ".csv")
  utils::write.csv(cells, csv, row.names = FALSE)
  sources <- list(
    csv,
    stream_of(cells, c(70, 1, 33)),
    list(cells[1:100, ], stream_of(cells[-(1:100), ], 20))
  )
  if (requireNamespace("nanoparquet", quietly = TRUE)) {
    parquet <- withr::local_tempfile(fileext = ".parquet")
    nanoparquet::write_parquet(cells, parquet)
    sources$parquet <- tall_parquet(parquet)
  }
  if (requireNamespace("RSQLite", quietly = TRUE) &&
    requireNamespace("dbplyr", quietly = TRUE)) {
    con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
    withr::defer(DBI::dbDisconnect(con))
    DBI::dbWriteTable(con, "cells", cells)
    sources$table <- dplyr::tbl(con, "cells")
  }
  for (source in sources) {
    expect_same_topics(small_topics(source), memory)
  }
})

test_that("documents and words are named as in a data frame", {
  cells <- toy_cells()
  named <- transform(
    cells,
    doc = factor(paste0("d", doc), paste0("d", 60:1)),
    word = paste0("w", word)
  )
  expect_names <- function(cells, ..., of = stream_of(cells, c(50, 3))) {
    read <- as_documents(cells, ...)
    expect_identical(documents_of(of, ..., refresh = 0), read)
  }
  expect_names(named, NULL)
  expect_names(transform(named, word = factor(word)), NULL)
  expect_names(named, paste0("w", 12:1))
  expect_names(cells, letters[1:9])
  expect_names(transform(cells, doc = doc + 0.5), NULL)
  # levels of each block's own
  own <- lapply(list(1:80, 81:nrow(named)), function(at) {
    droplevels(named[at, ])
  })
  plain <- transform(named, doc = as.character(doc))
  expect_names(plain, NULL, of = own)
  expect_same_topics(
    small_topics(stream_of(named, 70), newdata = named),
    small_topics(named, newdata = named)
  )
})

test_that("one pass reads the rows, and matrices are documents still", {
  cells <- toy_cells()
  stream <- counted_stream(cells)
  small_topics(stream$source)
  # and one for the names, which ends after a block
  expect_lte(stream$n(), 2)
  counts <- stats::xtabs(count ~ doc + word, cells)
  dtm <- matrix(counts, nrow(counts), dimnames = dimnames(counts))
  expect_identical(
    small_topics(Matrix::Matrix(dtm, sparse = TRUE))$draws,
    small_topics(dtm)$draws
  )
})

test_that("what are no counts of words is refused with its row", {
  cells <- toy_cells()
  refused <- function(source, class, ..., says = NULL) {
    class <- paste0("tall_error_", class)
    expect_error(small_topics(source, ...), says, class = class)
  }
  stream <- function(...) stream_of(transform(cells, ...), 70)
  refused(stream_of(cells[0, ], 70), "source")
  refused(stream_of(cells[-2], 70), "input", says = "word")
  refused(stream(doc = replace(doc, 80, NA)), "input", says = "row 80")
  refused(stream(word = replace(word, 90, NA)), "input", says = "row 90")
  refused(stream(word = replace(word, 99, 0.5)), "input", says = "row 99")
  refused(stream(word = letters[word]), "input", vocabulary = letters[1:3],
    says = "vocabulary")
  refused(stream(), "input", vocabulary = letters[1:3], says = "to 3")
  refused(stream(count = "a"), "input", says = "numbers")
  refused(stream(count = -1), "input", says = "counts")
  refused(stream(count = replace(count, 75, NA)), "input", says = "counts")
  mixed <- tall_stream(function() {
    k <- 0
    function() {
      k <<- k + 1
      if (k == 2) transform(cells, word = "a") else if (k < 2) cells
    }
  })
  refused(mixed, "source", says = "text")
  refused(cells, "input", store = "x.tall", says = "memory")
})
