with_archive <- Filter(
  function(name) !is.null(data_sets[[name]]$archive),
  names(data_sets)
)

cached <- function() {
  list.files(data_cache(), all.files = TRUE, no.. = TRUE, recursive = TRUE)
}

expect_refused <- function(code) {
  expect_error(suppressMessages(code), class = "tall_error_data")
}

# ---- look-up ----------------------------------------------------------------

test_that("all of the sepsis data are there on every machine", {
  local_no_data()
  withr::local_envvar(TALLBAYES_DATA = NA)
  expect_silent(sepsis <- tall_data("sepsis", download = FALSE))
  expect_s3_class(sepsis, "data.frame", exact = TRUE)
  expect_identical(dim(sepsis), c(110204L, 4L))
  expect_named(sepsis, names(data_sets$sepsis$tables[[1]]$types))
  expect_false(anyNA(sepsis))
  outcome <- sepsis$hospital_outcome_1alive_0dead
  expect_identical(tabulate(outcome + 1L), c(8105L, 102099L))
  # with their source and licence
  beside <- system.file("extdata", "sepsis.md", package = "tallbayes")
  for (said in c("CC BY 4.0", "10.24432/C53C8N")) {
    expect_match(readLines(beside), said, fixed = TRUE, all = FALSE)
  }
})

test_that("what comes with the package is read last", {
  folder <- local_no_data()
  set <- data_sets$sepsis
  shipped <- system.file("extdata", "sepsis.csv.xz", package = "tallbayes")
  expect_identical(data_find(set), shipped)
  own <- file.path(folder, "sepsis.csv.xz")
  writeLines("no table", own)
  expect_identical(data_find(set), own)
  # a file that is damaged does not turn into another
  e <- expect_refused(tall_data("sepsis"))
  expect_identical(e$file, own)
})

test_that("what is missing is said with where to put it", {
  folder <- local_no_data()
  hide <- function(x) {
    x <- gsub(data_cache(), "<cache>", x, fixed = TRUE)
    gsub(folder, "<folder>", x, fixed = TRUE)
  }
  expect_snapshot(
    tall_data("casp", download = FALSE),
    error = TRUE,
    transform = hide
  )
  expect_snapshot(tall_data("meg"), error = TRUE, transform = hide)
  file.create(file.path(folder, "newsgroups-w1000-docs.tsv.xz"))
  expect_snapshot(tall_data("newsgroups"), error = TRUE, transform = hide)
  withr::local_envvar(TALLBAYES_DATA = file.path(folder, "none"))
  expect_match(one_line(expect_refused(tall_data("casp"))), "does not exist")
  withr::local_envvar(TALLBAYES_DATA = "")
  e <- expect_refused(tall_data("casp"))
  expect_match(one_line(e), "can name another folder")
  expect_identical(e$folders, data_cache())
})

test_that("the cache is searched after the folder, archives after files", {
  folder <- local_no_data()
  set <- data_sets$casp
  expect_identical(data_find(set), NA_character_)
  cache <- tools::R_user_dir("tallbayes", "cache")
  dir.create(cache, recursive = TRUE)
  for (place in c(cache, folder)) {
    for (file in c(set$archive$file, set$tables[[1]]$file)) {
      file.create(file.path(place, file))
      expect_identical(data_find(set), file.path(place, file))
    }
  }
})

for (name in names(data_sets)) {
  test_that(paste("the local file is read as its entry says:", name), {
    folder <- local_no_data()
    small <- small_set(name)
    tables <- small$set$tables
    data <- if (length(tables) == 1) list(small$data) else small$data
    for (i in seq_along(tables)) {
      bytes <- table_bytes(data[[i]], tables[[i]])
      write_xz(bytes, file.path(folder, tables[[i]]$file))
    }
    expect_equal(data_get(name, small$set, download = FALSE), small$data)
  })
}

# ---- archives ----------------------------------------------------------------

for (name in with_archive) {
  test_that(paste("archive, download and file give the same:", name), {
    folder <- local_no_data()
    source <- withr::local_tempdir()
    small <- small_set(name)
    set <- serve_archive(name, small, source)
    expect_message(
      downloaded <- data_get(name, set, download = TRUE),
      "Downloading"
    ) |>
      suppressMessages()
    expect_equal(downloaded, small$data)
    expect_identical(cached(), set$archive$file)

    # from now on the source may be gone
    unlink(source, recursive = TRUE)
    expect_silent(again <- data_get(name, set, download = FALSE))
    expect_identical(again, downloaded)

    # the archive may be put into the folder by hand
    from <- file.path(data_cache(), set$archive$file)
    file.rename(from, file.path(folder, set$archive$file))
    expect_identical(data_get(name, set, download = FALSE), downloaded)
  })
}

test_that("the option tallbayes.refresh decides about the bar of a download", {
  withr::local_options(cli.progress_handlers_only = "logger")
  from <- withr::local_tempfile()
  to <- withr::local_tempfile()
  writeLines("some data", from)
  lines <- function(refresh) {
    withr::local_options(tallbayes.refresh = refresh)
    utils::capture.output(fetch_file(paste0("file://", from), to))
  }
  expect_identical(lines(0), character())
  expect_gt(length(lines(1)), 0)
  expect_identical(readLines(to), "some data")
})

test_that("MovieLens is not downloaded without its terms", {
  local_no_data()
  source <- withr::local_tempdir()
  set <- serve_archive("movielens", small_set("movielens"), source)
  expect_message(
    data_get("movielens", set, download = TRUE),
    "without separate permission"
  ) |>
    suppressMessages()
})

test_that("nothing is downloaded unless it is allowed", {
  local_no_data()
  source <- withr::local_tempdir()
  set <- serve_archive("casp", small_set("casp"), source)
  e <- expect_error(
    data_get("casp", set, download = FALSE),
    class = "tall_error_data"
  )
  expect_match(one_line(e), "download = TRUE", fixed = TRUE)
  expect_identical(cached(), character())
  withr::local_options(rlang_interactive = FALSE)
  expect_false(eval(formals(tall_data)$download))
  withr::local_options(rlang_interactive = TRUE)
  expect_true(eval(formals(tall_data)$download))
  withr::local_options(tallbayes.download = NA)
  expect_error(tall_data("casp"), "`download`", class = "tall_error_input")
})

test_that("over the web it is the same, until the line breaks", {
  skip_on_cran()
  local_no_data()
  source <- withr::local_tempdir()
  base <- local_server(source)
  small <- small_set("covertype", n_row = 5000)
  set <- serve_archive("covertype", small, source, paste0(base, "/cut"))
  path <- file.path(source, set$archive$file)
  expect_gt(file.size(path), 2^15)

  e <- expect_refused(data_get("covertype", set, download = TRUE))
  expect_identical(e$file, set$archive$url)
  expect_match(one_line(e), "did not arrive in full")
  expect_match(one_line(e), "covertype.zip", fixed = TRUE)
  expect_identical(cached(), character())
  expect_length(list.files(tempdir(), "^tall-"), 0)

  set$archive$url <- paste0(base, "/none/none.zip")
  e <- expect_refused(data_get("covertype", set, download = TRUE))
  expect_match(conditionMessage(e$parent), "404")
  expect_identical(cached(), character())

  set$archive$url <- paste0(base, "/", set$archive$file)
  expect_identical(remote_size(set$archive$url), file.size(path))
  data <- suppressMessages(data_get("covertype", set, download = TRUE))
  expect_equal(data, small$data)
  expect_identical(cached(), set$archive$file)
  kept <- file.path(data_cache(), set$archive$file)
  expect_identical(tools::md5sum(kept)[[1]], tools::md5sum(path)[[1]])
})

test_that("without a network the error says so", {
  local_no_data()
  set <- data_sets$casp
  # nothing answers at the port for discarded bytes
  set$archive$url <- "http://127.0.0.1:9/casp.zip"
  withr::local_envvar(no_proxy = "127.0.0.1")
  e <- expect_refused(data_get("casp", set, download = TRUE))
  expect_identical(e$file, set$archive$url)
  expect_s3_class(e$parent, "condition")
  expect_identical(cached(), character())
  expect_identical(remote_size(set$archive$url), NA_real_)
})

test_that("a download that is something else is not kept", {
  local_no_data()
  source <- withr::local_tempdir()
  small <- small_set("arrhythmia")
  set <- serve_archive("arrhythmia", small, source)
  set$tables[[1]]$checksum <- strrep("0", 32)
  e <- expect_refused(data_get("arrhythmia", set, download = TRUE))
  expect_identical(e$file, set$archive$url)
  expect_identical(e$found, small$set$tables[[1]]$checksum)

  path <- file.path(source, set$archive$file)
  writeBin(zip_bytes(list(readme = charToRaw("moved\n"))), path)
  e <- expect_refused(data_get("arrhythmia", set, download = TRUE))
  expect_identical(e$expected, "an archive that holds arrhythmia.data")

  writeLines("<html>Moved</html>", path)
  e <- expect_refused(data_get("arrhythmia", set, download = TRUE))
  expect_match(one_line(e), "cannot be read")
  expect_identical(cached(), character())
  expect_length(list.files(tempdir(), "^tall-"), 0)
})

test_that("a cache that cannot be written to is named", {
  folder <- local_no_data()
  source <- withr::local_tempdir()
  file.create(file.path(folder, "cache"))
  set <- serve_archive("casp", small_set("casp"), source)
  e <- expect_refused(data_get("casp", set, download = TRUE))
  expect_identical(e$file, file.path(data_cache(), set$archive$file))
  expect_match(one_line(e), "R_USER_CACHE_DIR")
})

# ---- bad files ---------------------------------------------------------------

test_that("a file that is something else is refused in words", {
  folder <- local_no_data()
  path <- file.path(folder, "casp.csv.xz")
  small <- small_set("casp")
  table <- small$set$tables[[1]]
  refused <- function(data, set = small$set) {
    bytes <- if (is.data.frame(data)) table_bytes(data, table) else data
    writeBin(bytes, path)
    e <- expect_refused(data_get("casp", set, download = TRUE))
    expect_identical(e$file, path)
    expect_match(one_line(e), path, fixed = TRUE)
    c(e$expected, e$found)
  }
  data <- small$data
  expect_identical(refused(data[1:3]), c("10 columns", "3 columns"))
  expect_identical(
    refused(data[c(1, 3, 2, 4:10)]),
    c("`F1` as column 2", "`F2`")
  )
  expect_identical(refused(data[1:7, ]), c("20 rows", "7 rows"))
  altered <- data
  altered$F1[[3]] <- 0
  expect_identical(
    refused(altered),
    c(
      paste("content with the checksum", table$checksum),
      data_checksum(altered)
    )
  )
  altered <- transform(data, F8 = F8 + 0.5)
  expect_match(refused(altered)[[2]], "integer")
  expect_identical(refused(charToRaw("not a table"))[[2]], "1 column")
  expect_identical(refused(raw())[[2]], "0 columns")
  expect_match(refused(charToRaw("RMSD,\"F1\n"))[[2]], ".")

  # without a header only the number of columns can be compared
  small <- small_set("covertype")
  path <- file.path(folder, "covertype.csv.xz")
  table <- small$set$tables[[1]]
  set <- small$set
  expect_identical(
    refused(small$data[1:54], set),
    c("55 columns", "54 columns")
  )
  with_names <- table_bytes(small$data, table, header = TRUE)
  expect_match(refused(with_names, set)[[2]], "elevation")
})

test_that("the refusal names the file, what it should be and what it is", {
  folder <- local_no_data()
  small <- small_set("casp")
  path <- file.path(folder, "casp.csv.xz")
  write_xz(table_bytes(small$data, small$set$tables[[1]]), path)
  hide <- function(x) gsub(folder, "<folder>", x, fixed = TRUE)
  expect_snapshot(tall_data("casp"), error = TRUE, transform = hide)
})

test_that("a file that was cut off is refused", {
  folder <- local_no_data()
  small <- small_set("meg", n_row = 500)
  path <- file.path(folder, "meg10.csv.xz")
  bytes <- table_bytes(small$data, small$set$tables[[1]])
  xz <- memCompress(bytes, "xz")
  for (n in round(length(xz) * c(0.01, 0.5, 0.95))) {
    writeBin(xz[seq_len(n)], path)
    e <- expect_refused(data_get("meg", small$set, download = FALSE))
    expect_match(one_line(e), "cut off")
    expect_identical(e$file, path)
  }
  gz <- gzip_bytes(bytes)
  writeBin(gz[seq_len(length(gz) %/% 2)], path)
  expect_refused(data_get("meg", small$set, download = FALSE))
  writeBin(bytes[seq_len(length(bytes) - 100)], path)
  expect_refused(data_get("meg", small$set, download = FALSE))

  small <- small_set("casp")
  zip <- archive_bytes("casp", small$data, small$set$tables[[1]])
  path <- file.path(folder, small$set$archive$file)
  writeBin(zip[seq_len(length(zip) %/% 2)], path)
  e <- expect_refused(data_get("casp", small$set, download = FALSE))
  expect_identical(e$file, path)
})

test_that("an unknown data set is refused in words", {
  expect_snapshot(tall_data("sepsi"), error = TRUE, cnd_class = TRUE)
  expect_snapshot(tall_data(1), error = TRUE)
})

test_that("the checksum is of values, names and types", {
  a <- data.frame(x = 1:3, y = c(0.1, 2, 1e-20), z = c("a", "b", NA))
  expect_identical(data_checksum(a), data_checksum(a[1:3, ]))
  differs <- function(b) expect_false(data_checksum(a) == data_checksum(b))
  differs(transform(a, y = c(0.1, 2, 2e-20)))
  differs(stats::setNames(a, 1:3))
  differs(transform(a, x = as.double(x)))
  differs(transform(a, x = c(1L, NA, 3L)))
  differs(transform(a, z = c("a", "c", NA)))
})

# ---- the full data sets ------------------------------------------------------

for (name in names(data_sets)) {
  test_that(paste("the full data set reads as its entry says:", name), {
    data <- full_data(name)
    tables <- data_sets[[name]]$tables
    data <- if (is.null(names(tables))) list(data) else data
    expect_named(data, names(tables))
    for (i in seq_along(tables)) {
      expect_s3_class(data[[i]], "data.frame", exact = TRUE)
      expect_named(data[[i]], names(tables[[i]]$types))
      expect_identical(nrow(data[[i]]), as.integer(tables[[i]]$n_row))
    }
    expect_identical(anyNA(data, recursive = TRUE), name == "arrhythmia")
  })
}

test_that("the full data sets are those of the papers", {
  covertype <- full_data("covertype")
  classes <- c(211840, 283301, 35754, 2747, 9493, 17367, 20510)
  expect_equal(tabulate(covertype$cover_type), classes)
  for (group in c("^wilderness_", "^soil_")) {
    expect_true(all(rowSums(covertype[grep(group, names(covertype))]) == 1))
  }
  arrhythmia <- full_data("arrhythmia")
  missing <- colSums(is.na(arrhythmia))
  expect_equal(
    missing[missing > 0],
    c(v11 = 8, v12 = 22, v13 = 1, v14 = 376, v15 = 1)
  )
  movielens <- full_data("movielens")
  expect_equal(
    tabulate(movielens$rating),
    c(6110, 11370, 27145, 34174, 21201)
  )
  expect_identical(anyDuplicated(movielens[c("user", "item")]), 0L)
  expect_equal(range(full_data("meg")), c(-1321.6, 1420.8), tolerance = 1e-4)
  newsgroups <- full_data("newsgroups")
  expect_identical(sum(newsgroups$counts$count), 961394L)
  expect_equal(table(newsgroups$docs$split)[["train"]], 11256)
})
