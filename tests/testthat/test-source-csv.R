# Text files as sources, by each engine that is there.

csv_of <- function(lines, ext = ".csv", envir = parent.frame()) {
  file <- withr::local_tempfile(fileext = ext, .local_envir = envir)
  writeLines(lines, file, useBytes = TRUE)
  file
}

with_engine <- function(source, engine) {
  source$format$engine <- engine
  source
}

engines_here <- function() {
  names <- setdiff(names(csv_engines), "base")
  has <- vapply(names, requireNamespace, TRUE, quietly = TRUE)
  c(names[has], "base")
}

written_rows <- function() {
  rows <- mixed_rows()
  rows$k <- as.double(rows$k)
  rows$group <- as.character(rows$group)
  rows$day <- structure(19780 + seq_len(nrow(rows)), class = "Date")
  rows$word[3:6] <- c("a \"b\" c", "line\n\nends", "comma, and", "\u00e4")
  rows
}

test_that("text files are sources, whoever reads them", {
  rows <- written_rows()
  folder <- withr::local_tempdir()
  write <- function(rows, name, open = file, ...) {
    con <- open(file.path(folder, name), "w", encoding = "UTF-8")
    on.exit(close(con))
    utils::write.csv(rows, con, row.names = FALSE, na = "", ...)
  }
  dir.create(file.path(folder, "b"))
  write(rows[1:9, ], "a.csv")
  # columns of another file may have another order
  write(rows[10:23, rev(names(rows))], file.path("b", "c.csv.gz"), gzfile)
  for (engine in engines_here()) {
    source <- with_engine(tall_csv(folder), engine)
    for (size in if (engine == "base") c(4, 1000) else 7) {
      local_settings(block_rows = size)
      expect_source(source, rows)
    }
    expect_length(source_shards(source), 2)
  }
  expect_source(tall_csv(folder, c("word", "k")), rows[c("word", "k")])
})

test_that("separators, points and quotes are those of the file", {
  rows <- written_rows()
  rows$word[4] <- "line"
  for (engine in engines_here()) {
    file <- csv_of("", ".tsv")
    utils::write.table(
      rows,
      file,
      sep = "\t",
      row.names = FALSE,
      qmethod = "double",
      fileEncoding = "UTF-8"
    )
    expect_source(with_engine(tall_csv(file), engine), rows)
    utils::write.csv2(rows, file, row.names = FALSE, fileEncoding = "UTF-8")
    source <- with_engine(tall_csv(file, dec = ","), engine)
    expect_identical(source$format$sep, ";")
    expect_source(source, rows)
    # white space, quotes that are none, another word for what is missing
    file <- csv_of(c("a | b", " 5\" pipe | 1", "x|-", "", "y |3"))
    source <- with_engine(tall_csv(file, quote = "", na = "-"), engine)
    rows_read <- data.frame(a = c("5\" pipe", "x", "y"), b = c(1, NA, 3))
    expect_source(source, rows_read)
  }
})

test_that("types are those of the first rows, or as the user says", {
  lines <- c(
    "\"\",zip,id,flag,none,when,mixed",
    "1,01234,1234567890123456789,TRUE,,2024-02-29,1",
    "2,56789,2,false,NA,2024-03-01,1.5",
    "3,9,3,TRUE,7,,x"
  )
  file <- csv_of(c(paste0("\ufeff", lines[[1]]), lines[-1]))
  for (engine in engines_here()) {
    of <- function(...) with_engine(tall_csv(file, ...), engine)
    found <- all_rows(of())
    expect_identical(found, data.frame(
      V1 = c(1, 2, 3),
      zip = c(1234, 56789, 9),
      id = c("1234567890123456789", "2", "3"),
      flag = c(TRUE, FALSE, TRUE),
      none = c(NA, NA, 7),
      when = as.Date(c("2024-02-29", "2024-03-01", NA)),
      mixed = c("1", "1.5", "x")
    ))
    found <- all_rows(of("zip", types = c(zip = "character")))
    expect_identical(found$zip, c("01234", "56789", "9"))
    # what is not asked for is no error
    expect_identical(all_rows(of("zip", guess = 2))$zip, c(1234, 56789, 9))
    # of two rows `mixed` is of numbers
    error <- source_error(of(guess = 2), c("zip", "mixed"))
    expect_identical(error[c("row", "column")], list(row = 3, column = "mixed"))
    expect_match(conditionMessage(error), "\"x\"")
    expect_identical(all_rows(of(guess = Inf)), all_rows(of()))
  }
})

test_that("types that change late are told, in every block", {
  n <- 60
  x <- c(rnorm(n - 1), NA)
  lines <- c("x,y", paste0(c(x[-n], "none"), ",", seq_len(n)))
  file <- csv_of(lines)
  local_settings(block_rows = 7)
  for (engine in engines_here()) {
    source <- with_engine(tall_csv(file, guess = 50), engine)
    error <- source_error(source, "x")
    expect_identical(error$row, 60)
    expect_identical(all_rows(source, "y")$y, as.double(seq_len(n)))
    known <- with_engine(tall_csv(file, na = "none"), engine)
    expect_equal(all_rows(known)$x, x, tolerance = 1e-14)
  }
})

test_that("quotes over many lines are one value, wherever a block ends", {
  long <- paste(rep("text, \"\"and\"\" more", 40), collapse = "\n")
  lines <- c("a,b", paste0(1:9, ",\"", c(long, letters[2:9]), "\""))
  file <- csv_of(lines)
  expected <- c(gsub("\"\"", "\"", long, fixed = TRUE), letters[2:9])
  for (engine in engines_here()) {
    for (size in c(1, 2, 1000)) {
      local_settings(block_rows = size)
      source <- with_engine(tall_csv(file), engine)
      expect_identical(all_rows(source)$b, expected)
    }
  }
})

# A file of these bytes.
bytes_of <- function(text, open = file, envir = parent.frame()) {
  path <- withr::local_tempfile(fileext = ".csv", .local_envir = envir)
  con <- open(path, "wb")
  on.exit(close(con))
  writeBin(if (is.raw(text)) text else charToRaw(enc2utf8(text)), con)
  path
}

# Records with all that a cut could fall into, and what they say.
awkward_records <- c(
  "x,word,flag,day,k",
  "1.5,\"a \"\"b\"\", c\",TRUE,2024-02-29,1",
  "-2e3,\"two\n\nlines\n\",false,,2",
  "NA,\u00e4\u65e5 z,NA,2024-03-01,3",
  " 7 , white ,true, 2024-03-02 ,\"4\"",
  ",\"\",,NA,5",
  "8,\"\"\"\",TRUE,2024-03-03,"
)
awkward_rows <- data.frame(
  x = c(1.5, -2000, NA, 7, NA, 8),
  word = c("a \"b\", c", "two\n\nlines\n", "\u00e4\u65e5 z", "white", NA,
           "\""),
  flag = c(TRUE, FALSE, NA, TRUE, NA, TRUE),
  day = as.Date(c("2024-02-29", NA, "2024-03-01", "2024-03-02", NA,
                  "2024-03-03")),
  k = c(1, 2, 3, 4, 5, NA)
)

test_that("a pass is the same wherever bytes are cut", {
  ends <- c("\n", "\r\n", "\r", "\n\n", "\r\n\r\n")
  for (end in ends) {
    text <- paste(awkward_records, collapse = end)
    # line ends within quotes are those of the file
    text <- gsub("\n\nlines\n", paste0(end, "lines", end), text, fixed = TRUE)
    rows <- awkward_rows
    n_end <- if (nchar(end) > 1 && end != "\r\n") 2 else 1
    feeds <- strrep("\n", n_end)
    rows$word[[2]] <- paste0("two", feeds, "lines", feeds)
    path <- bytes_of(paste0("\ufeff", text, if (end != "\r") end))
    for (engine in engines_here()) {
      source <- with_engine(tall_csv(path), engine)
      for (size in if (engine == "base") c(1:3, 17, 2^20) else 17) {
        local_settings(text_bytes = size, block_rows = 2 + size %% 3)
        expect_identical(all_rows(source), rows)
        expect_identical(all_rows(source, c("word", "k")), rows[c("word", "k")])
      }
    }
  }
})

test_that("a pass is that of read.csv(), also where text is compressed", {
  n <- 300
  rows <- withr::with_seed(3, data.frame(
    x = rnorm(n),
    text = vapply(seq_len(n), function(i) {
      marks <- c("a", "\u00e4", ",", "\"", "\n", " b", ";")
      paste0("t", paste(sample(marks, i %% 9, TRUE), collapse = ""), "t")
    }, ""),
    flag = sample(c(TRUE, FALSE, NA), n, TRUE),
    k = sample(99, n, TRUE)
  ))
  path <- withr::local_tempfile(fileext = ".csv", lines = "")
  utils::write.csv(rows, path, row.names = FALSE, fileEncoding = "UTF-8")
  read <- utils::read.csv(path, encoding = "UTF-8")
  read$k <- as.double(read$k)
  text <- readBin(path, "raw", file.size(path))
  paths <- c(path, vapply(c(gzfile, bzfile, xzfile), function(open) {
    bytes_of(text, open, parent.frame(2))
  }, ""))
  for (engine in engines_here()) {
    for (path in paths) {
      local_settings(text_bytes = 1000)
      expect_equal(all_rows(with_engine(tall_csv(path), engine)), read)
    }
  }
})

test_that("quotes where they do not belong are values, or told", {
  lines <- c("a,b", "x \"y\" z,1", " \"k, l\" ,2", "\"m\"\"\" , \"3\"", "n,4")
  path <- csv_of(lines)
  for (engine in engines_here()) {
    local_settings(text_bytes = 3)
    found <- all_rows(with_engine(tall_csv(path), engine))
    expect_identical(found$b, c(1, 2, 3, 4))
    expect_identical(found$a[c(2, 4)], c("k, l", "n"))
    expect_identical(gsub("\"", "", found$a[c(1, 3)]), c("x y z", "m"))
    # of readr alone, a blank and a line end
    loose <- bytes_of("a,b\n \"\n,\",1\n \"k\n\n\",2\n")
    found <- all_rows(with_engine(tall_csv(loose), engine))
    expect_identical(found, data.frame(a = c("\n,", "k\n\n"), b = c(1, 2)))
    # what some parsers take for no record
    blank <- bytes_of("a\n \nb\n\n\"\"\n \n")
    found <- all_rows(with_engine(tall_csv(blank, na = "-"), engine))
    expect_identical(found$a, c("", "b", "", ""))
  }
})

test_that("errors name the same row wherever bytes are cut", {
  lines <- c("a,b", paste0(1:40, ",\"x\ny\""))
  error_of <- function(line, ...) {
    path <- csv_of(append(lines, line, 31))
    expect_error(
      all_rows(with_engine(tall_csv(path, guess = 3), engine), ...),
      class = "tall_error_source"
    )
  }
  for (engine in engines_here()) {
    for (size in c(50, 2^20)) {
      local_settings(text_bytes = size)
      of_type <- error_of("none,\"\"")
      expect_identical(of_type$row, 31)
      expect_identical(of_type$column, "a")
      expect_identical(error_of("1,2,3", "b")$row, 31)
      expect_identical(error_of("1")$row, 31)
      error <- error_of("1,\xe4")
      expect_identical(error$row, 31)
      expect_match(conditionMessage(error), "Row 31 .* UTF-8")
    }
  }
  local_settings(text_bytes = 7)
  open <- csv_of(c(lines, "41,\"\u00e4 and", "42,z"))
  error <- source_error(tall_csv(open, guess = 3))
  expect_identical(error$row, 41)
  message <- conditionMessage(error)
  expect_match(message, "\u00e4 and\"", fixed = TRUE)
  # a byte of 0 is no text, nor are names of another encoding
  zero <- bytes_of(c(charToRaw("a,b\n1,"), as.raw(0), charToRaw("\n")))
  expect_error(tall_csv(zero), "Row 1 .* UTF-8", class = "tall_error_source")
  latin <- bytes_of(as.raw(c(0x61, 0xe4, 0x0a, 0x31)))
  expect_error(tall_csv(latin), "line of names", class = "tall_error_source")
})

test_that("a value may have more lines than are looked for at an end", {
  long <- strrep("line\n", 1500)
  path <- bytes_of(paste0("a,b\n1,\"", long, "\"\n2,\"", "x\"\n"))
  local_settings(text_bytes = 2^16)
  expect_identical(all_rows(tall_csv(path))$b, c(long, "x"))
  # an end that is not there is missed after a while
  endless <- bytes_of(paste0("a,b\n1,2\n3,\"", strrep("line\n", 1e5)))
  local_settings(text_bytes = 2^10)
  error <- expect_error(tall_csv(endless), "opens", class = "tall_error_source")
  expect_identical(error$row, 2)
})

test_that("records that are none are told", {
  for (engine in engines_here()) {
    of <- function(lines) with_engine(tall_csv(csv_of(lines)), engine)
    for (bad in c("3", "3,4,5", "3,4,5,6")) {
      source <- with_engine(tall_csv(csv_of(c("a,b", "1,2"))), engine)
      cat(bad, "\n8,9\n", file = source$paths, append = TRUE, sep = "")
      error <- source_error(source)
      expect_identical(error$row, 2)
      expect_match(conditionMessage(error), "for the 2 names")
    }
  }
  expect_error(
    tall_csv(csv_of(c("a,b", "1,\"2", rep("3,4", 20)))),
    "opens a quote",
    class = "tall_error_source"
  )
  latin <- csv_of(c("a,b", "1,\xe4"))
  expect_error(tall_csv(latin), "UTF-8", class = "tall_error_source")
})

test_that("files that are none are told", {
  folder <- withr::local_tempdir()
  data_error <- function(code) expect_error(code, class = "tall_error_data")
  data_error(tall_csv(file.path(folder, "no.csv")))
  data_error(tall_csv(folder))
  empty <- csv_of(character())
  expect_match(conditionMessage(data_error(tall_csv(empty))), "names")
  twice <- csv_of("a,b,a")
  expect_match(conditionMessage(data_error(tall_csv(twice))), "two")
  two <- c(csv_of(c("a,b", "1,2")), csv_of(c("a,c", "1,2")))
  expect_match(conditionMessage(data_error(tall_csv(two))), "same columns")
  file <- two[[1]]
  input_error <- function(code) expect_error(code, class = "tall_error_input")
  input_error(tall_csv())
  input_error(tall_csv(1))
  input_error(tall_csv(file, "nope"))
  input_error(tall_csv(file, 1))
  input_error(tall_csv(file, types = c(z = "numeric")))
  input_error(tall_csv(file, types = c(a = "factor")))
  input_error(tall_csv(file, types = "numeric"))
  input_error(tall_csv(file, sep = ",,"))
  input_error(tall_csv(file, dec = ";"))
  input_error(tall_csv(file, quote = "''"))
  input_error(tall_csv(file, na = NA))
  input_error(tall_csv(file, guess = 0))
})

test_that("a path stands for the rows of its files", {
  rows <- written_rows()
  folder <- withr::local_tempdir()
  file <- file.path(folder, "a.csv")
  utils::write.csv(rows["x"], file, row.names = FALSE)
  expect_s3_class(as_source(file), "tall_csv")
  expect_s3_class(as_source(folder), "tall_csv")
  expect_length(as_source(c(file, file))$paths, 2)
  sheet <- file.path(folder, "a.xls")
  expect_error(as_source(sheet), class = "tall_error_input")
  expect_error(as_source(character()), class = "tall_error_input")
  expect_error(
    as_source(c(file, file.path(folder, "a.parquet"))),
    class = "tall_error_input"
  )
  n <- 4000
  data <- withr::with_seed(1, data.frame(x = round(rnorm(n), 3), g = 1:4))
  data$g <- letters[data$g]
  data$y <- withr::with_seed(2, rbinom(n, 1, plogis(data$x)))
  utils::write.csv(data, file, row.names = FALSE)
  of <- function(data) {
    tall_glm(y ~ x + g, data, binomial(), seed = 1, iter = 200, refresh = 0)
  }
  fit <- of(file)
  stream <- of(stream_of(data, 1000))
  expect_identical(plain_draws(fit), plain_draws(stream))
  # of predictions, too
  expect_equal(predict(fit, as_source(file)), unname(predict(fit, data)))
  expect_equal(predict(fit, file), unname(predict(fit, data)))
  expect_error(predict(fit, "a.xls"), "newdata", class = "tall_error_input")
  expect_error(predict(fit, "no.csv"), class = "tall_error_data")
  expect_equal(
    average_slopes(fit, "x", newdata = file)$mean,
    average_slopes(fit, "x", newdata = data)$mean,
    tolerance = 1e-3
  )
  # the rows of a source are brought to memory
  with_fits <- generics::augment(fit, newdata = data)
  for (newdata in list(file, stream_of(data, 1000))) {
    expect_equal(generics::augment(fit, newdata = newdata), with_fits)
  }
})
