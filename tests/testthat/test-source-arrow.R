# Arrow streams, read through the C data interface.

skip_if_not_installed("nanoarrow")

# A stream of arrays as they are, of the schema of the first.
arrow_stream <- function(...) {
  arrays <- list(...)
  tall_stream(function() nanoarrow::basic_array_stream(arrays))
}

arrow_array <- function(..., n = 3) {
  columns <- list(...)
  types <- lapply(columns, nanoarrow::infer_nanoarrow_schema)
  array <- nanoarrow::nanoarrow_array_init(nanoarrow::na_struct(types))
  nanoarrow::nanoarrow_array_modify(array, list(length = n, children = columns))
}

test_that("Arrow streams are sources, whatever their blocks", {
  rows <- mixed_rows()
  for (sizes in list(23, c(1, 7), c(0, 4, 0, 19))) {
    blocks <- lapply(cut_blocks(rows, sizes), nanoarrow::as_nanoarrow_array)
    expect_source(do.call(arrow_stream, blocks), rows)
  }
  # a data frame's stream
  stream <- tall_stream(function() nanoarrow::as_nanoarrow_array_stream(rows))
  expect_source(stream, rows)
})

# An array made of its buffers; valid: a flag a value.
buffer_array <- function(type, values, valid, ...) {
  bits <- c(valid, logical(-length(valid) %% 8))
  parts <- list(
    length = length(valid),
    null_count = sum(!valid),
    buffers = list(packBits(bits), values),
    ...
  )
  array <- nanoarrow::nanoarrow_array_init(type)
  nanoarrow::nanoarrow_array_modify(array, parts)
}

test_that("numbers of every width are read, with what is missing", {
  values <- c(1, NA, 100, 0)
  sizes <- c(
    int8 = 1,
    uint8 = 1,
    int16 = 2,
    uint16 = 2,
    int32 = 4,
    uint32 = 4,
    int64 = 8,
    uint64 = 8,
    float = 4,
    double = 8
  )
  for (name in names(sizes)) {
    size <- sizes[[name]]
    type <- getExportedValue("nanoarrow", paste0("na_", name))()
    numbers <- replace(values, 2, 7)
    if (grepl("int", name)) {
      numbers <- as.integer(numbers)
    }
    bytes <- writeBin(numbers, raw(), size = size)
    array <- buffer_array(type, bytes, !is.na(values))
    got <- all_rows(arrow_stream(arrow_array(x = array, n = 4)))$x
    is_whole <- grepl("int", name) && !name %in% c("uint32", "int64", "uint64")
    expect_identical(got, if (is_whole) as.integer(values) else values)

    # all bits set: -1, or the largest there is
    if (grepl("int", name)) {
      array <- buffer_array(type, as.raw(rep(255, size)), TRUE)
      got <- all_rows(arrow_stream(arrow_array(x = array, n = 1)))$x
      expect_equal(got, if (grepl("u", name)) 2^(8 * size) - 1 else -1)
    }
  }
})

test_that("booleans, text and nothing are read", {
  flags <- rep_len(c(TRUE, FALSE, NA, TRUE, TRUE), 21)
  array <- arrow_array(x = nanoarrow::as_nanoarrow_array(flags), n = 21)
  expect_identical(all_rows(arrow_stream(array))$x, flags)
  words <- c("", "h\u00e9", NA, "a longer one")
  for (type in list(nanoarrow::na_string(), nanoarrow::na_large_string())) {
    array <- nanoarrow::as_nanoarrow_array(words, schema = type)
    got <- all_rows(arrow_stream(arrow_array(x = array, n = 4)))$x
    expect_identical(got, words)
    expect_identical(Encoding(got[[2]]), "UTF-8")
  }
  none <- nanoarrow::nanoarrow_array_init(nanoarrow::na_na())
  none <- nanoarrow::nanoarrow_array_modify(
    none,
    list(length = 3, null_count = 3)
  )
  expect_identical(all_rows(arrow_stream(arrow_array(x = none)))$x, rep(NA, 3))
})

test_that("dictionaries are factors", {
  for (x in list(
    factor(c("b", NA, "a")),
    factor(c("b", "b", "b"), c("c", "b"))
  )) {
    array <- arrow_array(x = nanoarrow::as_nanoarrow_array(x))
    expect_identical(all_rows(arrow_stream(array))$x, x)
  }
  read <- function(size, levels, places, is_ordered = FALSE) {
    index <- getExportedValue("nanoarrow", paste0("na_int", 8 * size))()
    type <- nanoarrow::na_dictionary(nanoarrow::na_string(), index, is_ordered)
    bytes <- writeBin(places, raw(), size = size)
    array <- buffer_array(
      type,
      bytes,
      rep(TRUE, 3),
      dictionary = nanoarrow::as_nanoarrow_array(levels)
    )
    all_rows(arrow_stream(arrow_array(x = array)))$x
  }
  for (size in c(1, 2, 4, 8)) {
    expect_identical(
      read(size, c("lo", "hi"), c(1L, 0L, 1L), TRUE),
      factor(c("hi", "lo", "hi"), c("lo", "hi"), ordered = TRUE)
    )
  }
  # one that says the same twice, or nothing
  expect_identical(
    read(4, c("a", NA, "a", "b"), c(2L, 1L, 3L)),
    factor(c("a", NA, "b"))
  )
  # places beyond it
  for (place in c(2L, -1L)) {
    expect_error(
      read(4, c("a", "b"), c(0L, 1L, place)),
      class = "tall_error_corrupt"
    )
  }
})

test_that("slices begin where they say, of columns and of the table", {
  rows <- mixed_rows()
  rows$day <- as.Date("2024-02-27") + seq_len(nrow(rows))
  whole <- nanoarrow::as_nanoarrow_array(rows)
  slice <- function(array, offset, length) {
    parts <- list(offset = offset, length = length)
    nanoarrow::nanoarrow_array_modify(array, parts)
  }
  expected <- rows[4:20, ]
  rownames(expected) <- NULL
  expect_identical(all_rows(arrow_stream(slice(whole, 3, 17))), expected)
  columns <- lapply(whole$children, slice, offset = 2, length = 21)
  inner <- nanoarrow::nanoarrow_array_modify(
    whole,
    list(children = columns, length = 21)
  )
  expected <- rows[3:23, ]
  rownames(expected) <- NULL
  expect_identical(all_rows(arrow_stream(inner)), expected)
  expected <- rows[8:15, ]
  rownames(expected) <- NULL
  expect_identical(all_rows(arrow_stream(slice(inner, 5, 8))), expected)
})

test_that("other types are converted by nanoarrow", {
  rows <- data.frame(x = 1:3)
  rows$day <- as.Date("2024-02-27") + 0:2
  rows$time <- as.POSIXct("2024-02-27 12:00:00", tz = "UTC") + 0:2
  blocks <- lapply(cut_blocks(rows, 1), nanoarrow::as_nanoarrow_array)
  expect_identical(all_rows(do.call(arrow_stream, blocks)), rows)
})

test_that("only what is asked for is converted", {
  rows <- data.frame(x = 1:3, y = letters[1:3])
  rows$day <- as.Date("2024-02-27") + 0:2
  stream <- arrow_stream(nanoarrow::as_nanoarrow_array(rows))
  block <- source_open(stream, "x")$next_block()
  expect_identical(block$columns, list(x = 1:3))
})

test_that("a stream is released once, however a pass ends", {
  counts <- new.env()
  make <- function() {
    counts$stream <- 0
    blocks <- lapply(1:3, function(k) {
      nanoarrow::as_nanoarrow_array(data.frame(x = k, y = "a"))
    })
    tall_stream(function() {
      stream <- nanoarrow::basic_array_stream(blocks)
      nanoarrow::array_stream_set_finalizer(stream, function() {
        counts$stream <- counts$stream + 1
      })
    })
  }
  expect_released <- function(f) {
    source <- make()
    try(f(source), silent = TRUE)
    gc()
    expect_identical(counts$stream, 1)
  }
  expect_released(function(source) all_rows(source))
  expect_released(function(source) source_fetch(source, 1))
  expect_released(function(source) all_rows(source, "nope"))
  expect_released(function(source) source_each(source, "x", function(b) FALSE))
  expect_released(function(source) source_each(source, "x", stop))
})

test_that("what is no table, or no stream, is told", {
  numbers <- nanoarrow::as_nanoarrow_array(1:3)
  for (open in list(
    function() nanoarrow::basic_array_stream(list(numbers)),
    function() structure(list(), class = "unheard_of"),
    function() 3
  )) {
    expect_error(all_rows(tall_stream(open)), class = "tall_error_source")
  }
  # a stream that was read already
  stream <- nanoarrow::as_nanoarrow_array_stream(data.frame(x = 1:3))
  once <- tall_stream(function() stream)
  expect_identical(all_rows(once)$x, 1:3)
  expect_error(all_rows(once), class = "tall_error_source")
})

test_that("arrays that are not what their schema says are refused", {
  rows <- data.frame(x = 1:3, y = c("a", "b", "c"))
  schema <- nanoarrow::infer_nanoarrow_schema(rows)
  array <- nanoarrow::as_nanoarrow_array(rows["x"])
  at <- as.double(1:2)
  expect_error(
    .Call(ffi_arrow_columns, schema, array, at),
    class = "tall_error_corrupt"
  )
  whole <- nanoarrow::as_nanoarrow_array(rows)
  expect_error(
    .Call(ffi_arrow_columns, schema, whole, 3),
    class = "tall_error_corrupt"
  )
  turned <- nanoarrow::infer_nanoarrow_schema(rows[2:1])
  expect_error(
    .Call(ffi_arrow_columns, turned, whole, at),
    class = "tall_error_corrupt"
  )
  nanoarrow::nanoarrow_pointer_release(whole)
  expect_error(
    .Call(ffi_arrow_columns, schema, whole, at),
    class = "tall_error_corrupt"
  )
})
