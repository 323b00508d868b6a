# The laws of sources, expect_source(), for every member; then what sources that
# are not as they must be are told.

as_numbers <- function(rows) {
  rows[] <- lapply(rows, as.double)
  rows
}

test_that("data frames", {
  expect_source(as_source(mixed_rows()), mixed_rows())
  expect_source(as_source(mixed_rows()[1:2, ]), mixed_rows()[1:2, ])
  # dates and matrices are columns, too
  rows <- mixed_rows()
  rows$day <- as.Date("2024-02-27") + seq_len(nrow(rows))
  rows$pair <- cbind(a = rows$x, b = rows$z)
  expect_source(as_source(rows), rows)
  skip_if_not_installed("tibble")
  source <- as_source(tibble::as_tibble(mixed_rows()))
  expect_source(source, mixed_rows())
})

test_that("columns of data frames are handed out whole, and not copied", {
  rows <- data.frame(x = as.double(seq_len(150000)))
  skip_if_not(capabilities("profmem"), "R cannot trace memory")
  tracemem(rows$x)
  source <- as_source(rows)
  seen <- list()
  copies <- capture.output(n <- source_each(source, "x", function(block) {
    size <- length(block$columns$x)
    seen[[length(seen) + 1]] <<- c(block$first, block$n, size)
  }))
  untracemem(rows$x)
  expect_identical(copies, character())
  expect_equal(
    do.call(rbind, seen),
    cbind(c(0, 65536, 131072), c(65536, 65536, 18928), 150000)
  )
})

test_that("matrices", {
  x <- as.matrix(source_rows())
  expect_source(as_source(x), source_rows(), as_numbers)
  bare <- unname(x)
  expect_identical(source_names(as_source(bare)), c("x1", "x2", "x3"))
  whole <- matrix(1:12, 6, dimnames = list(NULL, c("a", "b")))
  expect_source(as_source(whole), as.data.frame(whole))
  # several blocks
  local_settings(block_least = 5, block_numbers = 1)
  expect_source(as_source(x), source_rows(), as_numbers)
})

test_that("sparse matrices", {
  x <- as.matrix(source_rows())
  x[x < 0.5] <- 0
  rows <- as.data.frame(x)
  sparse <- Matrix::Matrix(x, sparse = TRUE)
  expect_s4_class(sparse, "sparseMatrix")
  local_settings(block_least = 7, block_numbers = 1)
  for (kind in list(sparse, methods::as(sparse, "RsparseMatrix"))) {
    expect_source(as_source(kind), rows)
  }
  dense <- Matrix::Matrix(x, sparse = FALSE)
  expect_source(as_source(dense), rows)
})

test_that("rows in a file", {
  skip_on_os("windows")
  file <- withr::local_tempfile(fileext = ".tall")
  store <- tall_store(as.matrix(source_rows()), file)
  local_settings(block_least = 7, block_numbers = 1)
  expect_source(as_source(store), source_rows(), as_numbers)
})

test_that("Parquet files", {
  skip_if_not_installed("nanoparquet")
  folder <- withr::local_tempdir()
  rows <- mixed_rows()
  rows$day <- structure(19780L + seq_len(nrow(rows)), class = "Date")
  write <- function(rows, sizes) {
    unlink(file.path(folder, "*.parquet"))
    blocks <- cut_blocks(rows, sizes)
    for (k in seq_along(blocks)) {
      path <- file.path(folder, sprintf("%d.parquet", k))
      nanoparquet::write_parquet(blocks[[k]], path)
    }
  }
  for (sizes in list(23, c(4, 12))) {
    write(rows, sizes)
    expect_source(tall_parquet(folder), rows)
  }
  files <- file.path(folder, paste0(1:3, ".parquet"))
  source <- tall_parquet(files, c("k", "word"))
  expect_source(source, rows[c("k", "word")])
  expect_length(source_shards(source), 3)

  # of a pass only the files up to its last row are read, of a fetch its own
  kept <- withr::local_tempfile()
  file.copy(files[[2]], kept)
  writeLines("no such thing", files[[2]])
  fetched <- source_fetch(source, c(20, 1), "word")$word
  expect_identical(fetched, rows$word[c(20, 1)])
  expect_error(source_fetch(source, 7, "word"), class = "tall_error_source")
  # of these, no other column
  all <- nanoparquet::read_parquet(files[[1]])
  nanoparquet::write_parquet(as.data.frame(all)["word"], files[[1]])
  expect_identical(source_fetch(source, 1, "word")$word, rows$word[1])
  nanoparquet::write_parquet(as.data.frame(all), files[[1]])
  file.copy(kept, files[[2]], overwrite = TRUE)

  # another column, or type, in a later file
  nanoparquet::write_parquet(rows["k"], files[[2]])
  error <- source_error(tall_parquet(folder))
  expect_identical(error$block, 2)
  nanoparquet::write_parquet(data.frame(k = "a", word = "b"), files[[2]])
  error <- source_error(tall_parquet(folder, "k"))
  expect_identical(error$column, "k")
})

test_that("folders of Parquet files say what columns are", {
  skip_if_not_installed("nanoparquet")
  folder <- withr::local_tempdir()
  rows <- mixed_rows()
  write <- function(rows, ...) {
    path <- file.path(folder, ...)
    dir.create(dirname(path), recursive = TRUE, showWarnings = FALSE)
    nanoparquet::write_parquet(rows, path)
  }
  write(rows[1:9, ], "year=2013", "sex=F", "a b=x%2Fy", "0.parquet")
  write(rows[10, ], "year=2013", "sex=F", "a b=x%2Fy", "1.parquet")
  none <- "__HIVE_DEFAULT_PARTITION__"
  write(rows[11:23, ], "year=2014", paste0("sex=", none), "a b=z", "0.parquet")
  # what others leave beside
  write(rows, "_temporary", "0.parquet")
  write(rows, "year=2013", ".hidden.parquet")
  all <- rows
  all$year <- rep(c(2013, 2014), c(10, 13))
  all$sex <- rep(c("F", NA), c(10, 13))
  all$`a b` <- rep(c("x/y", "z"), c(10, 13))
  source <- tall_parquet(folder)
  expect_source(source, all)
  expect_length(source_shards(source), 3)
  expect_source(tall_parquet(folder, c("year", "x")), all[c("year", "x")])
  # of keys alone nothing is read
  unlink(file.path(folder, "year=2014"), recursive = TRUE)
  expect_identical(all_rows(source, c("year", "sex")), all[c("year", "sex")])
  # folders within, without keys
  plain <- withr::local_tempdir()
  dir.create(file.path(plain, "b"))
  nanoparquet::write_parquet(rows[1:3, ], file.path(plain, "a.parquet"))
  nanoparquet::write_parquet(rows[4:23, ], file.path(plain, "b", "a.parquet"))
  expect_source(tall_parquet(plain), rows)
  # a fit reads them
  n <- 3000
  big <- withr::with_seed(1, data.frame(x = rnorm(n), k = rep(1:3, n / 3)))
  big$y <- big$x + big$k + withr::with_seed(2, rnorm(n))
  parts <- withr::local_tempdir()
  for (k in 1:3) {
    dir.create(file.path(parts, paste0("k=", k)))
    nanoparquet::write_parquet(
      big[big$k == k, c("x", "y")],
      file.path(parts, paste0("k=", k), "0.parquet")
    )
  }
  of <- function(data) {
    tall_glm(y ~ x + factor(k), data, seed = 1, iter = 100, refresh = 0)
  }
  expect_equal(
    coef(of(tall_parquet(parts))),
    coef(of(big)),
    tolerance = 1e-6
  )
})

test_that("folders of Parquet files that differ are told", {
  skip_if_not_installed("nanoparquet")
  folder <- withr::local_tempdir()
  write <- function(...) {
    path <- file.path(folder, ...)
    dir.create(dirname(path), recursive = TRUE, showWarnings = FALSE)
    nanoparquet::write_parquet(source_rows(), path)
  }
  told <- function(text) {
    error <- expect_error(tall_parquet(folder), class = "tall_error_data")
    expect_match(conditionMessage(error), text)
    unlink(file.path(folder, dir(folder)), recursive = TRUE)
  }
  write("year=2013", "0.parquet")
  write("month=1", "0.parquet")
  told("has year, the first file month")
  write("year=2013", "0.parquet")
  write("0.parquet")
  told("has year, the first file none")
  write("k=2013", "0.parquet")
  told("has the column `?k`?, which its folder")
})

test_that("Parquet files that cannot be read are told", {
  skip_if_not_installed("nanoparquet")
  folder <- withr::local_tempdir()
  file <- file.path(folder, "a.parquet")
  expect_error(tall_parquet(file), class = "tall_error_data")
  expect_error(tall_parquet(folder), class = "tall_error_data")
  writeLines("no such thing", file)
  error <- expect_error(tall_parquet(file), class = "tall_error_data")
  expect_identical(error$file, normalizePath(file))
  expect_error(tall_parquet(), class = "tall_error_input")
  expect_error(tall_parquet(1), class = "tall_error_input")
  nanoparquet::write_parquet(mixed_rows(), file)
  expect_error(tall_parquet(file, "nope"), class = "tall_error_input")
  # 23 rows, 8 bytes each
  local_settings(parquet_bytes = 23 * 8 * 2)
  source <- tall_parquet(file)
  expect_identical(nrow(all_rows(source, c("x", "k"))), 23L)
  error <- source_error(source, c("x", "k", "z"))
  expect_identical(error$file, normalizePath(file))
  expect_match(conditionMessage(error), "arrow")
  # gone since
  unlink(file)
  source_error(source, "x")
})

test_that("streams, whatever their blocks", {
  rows <- mixed_rows()
  for (sizes in list(23, c(1, 7), rep(1, 22), c(0, 4, 0, 0, 9, 10), c(23, 0))) {
    expect_source(tall_stream(opener(rows, sizes)), rows)
  }
  # a function alone
  open <- function() opener(rows, c(8, 8))()$next_block
  expect_source(tall_stream(open), rows)
  # levels may be those of a block
  open <- opener(rows, c(1, 2, 5))
  dropped <- tall_stream(function() {
    inner <- open()$next_block
    function() {
      block <- inner()
      if (!is.null(block)) droplevels(block)
    }
  })
  groups <- as.character(all_rows(dropped, "group")$group)
  expect_identical(groups, as.character(rows$group))
})

test_that("shards", {
  rows <- mixed_rows()
  parts <- cut_blocks(rows, c(5, 10))
  openers <- lapply(parts, opener, sizes = 2)
  expect_source(tall_stream(openers), rows)
  expect_source(as_source(openers), rows)
  expect_length(source_shards(tall_stream(openers)), 3)
  frames <- as_source(parts)
  expect_source(frames, rows)
  expect_identical(source_size(frames), 23)
  one <- as_source(rows)
  expect_identical(source_shards(one), list(one))
})

test_that("a stream is closed once, however its pass ends", {
  counts <- new.env()
  stream <- tall_stream(opener(mixed_rows(), c(4, 4), counts))
  expect_closed <- function(code) {
    counts$opened <- counts$closed <- 0
    try(code, silent = TRUE)
    expect_identical(c(counts$opened, counts$closed), c(1, 1))
  }
  expect_closed(all_rows(stream))
  expect_closed(source_head(stream))
  expect_closed(source_fetch(stream, 2))
  expect_closed(source_fetch(stream, 99))
  expect_closed(source_each(stream, NULL, function(block) FALSE))
  expect_closed(source_each(stream, NULL, function(block) stop("no")))
  expect_closed(all_rows(stream, "nope"))
  # shards: the one that is open
  both <- new.env()
  shards <- tall_stream(list(
    opener(mixed_rows(), 4, counts),
    opener(mixed_rows(), 4, both)
  ))
  expect_closed(source_fetch(shards, 25))
  expect_identical(c(both$opened, both$closed), c(1, 1))
  expect_closed(source_fetch(shards, 2))
  expect_identical(c(both$opened, both$closed), c(1, 1))
})

# A stream of these blocks; functions among them are called.
stream_of <- function(...) {
  blocks <- list(...)
  tall_stream(function() {
    at <- 0
    function() {
      at <<- at + 1
      block <- if (at <= length(blocks)) blocks[[at]]
      if (is.function(block)) block() else block
    }
  })
}

test_that("a stream that fails midway is told with its place and cause", {
  a <- data.frame(x = 1:3, y = 4:6)
  error <- source_error(stream_of(a, a, function() stop("the line was cut")))
  expect_equal(error[c("block", "row")], list(block = 3, row = 7))
  expect_match(conditionMessage(error$parent), "the line was cut")
  expect_match(conditionMessage(error), "after 6 rows, in block 3")
  # at opening
  error <- source_error(tall_stream(function() stop("no such table")))
  expect_match(conditionMessage(error$parent), "no such table")
  # one of ours is told as it is
  ours <- stream_of(a, function() check_count("a", arg = "n"))
  expect_error(all_rows(ours), class = "tall_error_input")
})

test_that("a stream that changes columns or types is told", {
  a <- data.frame(x = 1:3, y = c("p", "q", "r"))
  error <- source_error(stream_of(a, a["x"]))
  expect_identical(error[c("block", "row", "column")], list(
    block = 2,
    row = 4,
    column = "y"
  ))
  # what is not asked for may go
  expect_identical(all_rows(stream_of(a, a["x"]), "x")$x, c(1:3, 1:3))
  # and may stand elsewhere
  turned <- all_rows(stream_of(a, a[c("y", "x")]))
  expect_identical(turned, data.frame(x = c(1:3, 1:3), y = rep(a$y, 2)))

  # integers and doubles are numbers
  expect_identical(
    all_rows(stream_of(a["x"], data.frame(x = 0.5)))$x,
    c(1, 2, 3, 0.5)
  )
  kinds <- list(
    TRUE,
    "1",
    factor("1"),
    ordered("1"),
    as.Date("2024-01-01"),
    list(1),
    cbind(1, 2)
  )
  for (kind in kinds) {
    b <- data.frame(x = 1)
    b$x <- kind
    error <- source_error(stream_of(a["x"], b))
    expect_identical(error$column, "x")
    expect_match(conditionMessage(error), "same types")
  }
})

test_that("what is no data frame, or no stream, is told", {
  a <- data.frame(x = 1:3)
  error <- source_error(stream_of(a, list(x = 1:3)))
  expect_identical(error$block, 2)
  expect_match(conditionMessage(error), "data frames")
  error <- source_error(tall_stream(function() a))
  expect_match(conditionMessage(error), "must return a function")
  expect_error(tall_stream(), class = "tall_error_input")
  expect_error(tall_stream(a), class = "tall_error_input")
  expect_error(tall_stream(list(function() 1, 2)), class = "tall_error_input")
  for (x in list("file.xls", 1:3, NULL, list(), list(1), matrix("a"), mean)) {
    expect_error(as_source(x), class = "tall_error_input")
  }
})

test_that("blocks of a source of one's own are looked at", {
  local_source <- function(block) {
    structure(list(block = block), class = c("tall_test_source", "tall_source"))
  }
  open <- function(source, columns = NULL) {
    list(next_block = function() source$block, close = function() NULL)
  }
  registerS3method("source_open", "tall_test_source", open)
  x <- list(x = 1:3, y = 1:3)
  bad <- list(
    3,
    list(columns = x),
    list(columns = x, first = 0, n = -1),
    list(columns = x, first = 1, n = 3),
    list(columns = list(x = 1:3, y = 1:4), first = 0, n = 3)
  )
  for (block in bad) {
    error <- source_error(local_source(block))
    expect_identical(error$block, 1)
  }
})

test_that("a source without rows has none, and says so where types are asked", {
  none <- mixed_rows()[0, ]
  for (source in list(stream_of(), stream_of(none, none), as_source(none))) {
    expect_identical(source_each(source, NULL, function(block) stop()), 0)
  }
  expect_error(source_head(stream_of(none)), class = "tall_error_source")
  expect_identical(source_head(as_source(none)), none)
})
