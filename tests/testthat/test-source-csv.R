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
