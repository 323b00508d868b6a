# tall_nn() of sources: brought to memory, or with the inputs in a file, the
# draws are to the bit those of the same rows in a data frame.

skip_on_os("windows")

new_file <- function(env = parent.frame()) {
  withr::local_tempfile(fileext = ".tall", .local_envir = env)
}

stored_data <- function(n = 3000) {
  data <- remote_data(n)
  data$flag <- as.integer(data$flag)
  data$f <- as.character(data$f)
  data$kind <- c("u", "v", "w")[1 + (data$z > 1040) + (data$z > 1080)]
  data
}

small_nn <- function(formula, data, ..., iter = 20, train_iter = 50) {
  tall_nn(
    formula,
    data,
    hidden = 4,
    train_iter = train_iter,
    iter = iter,
    chains = 2,
    seed = 3,
    refresh = 0,
    ...
  )
}

draws_of <- function(fit) unclass(posterior::as_draws_array(fit))

no_collecting <- function(env = parent.frame()) {
  home <- asNamespace("tallbayes")
  code <- quote(stop("all rows were brought to memory"))
  suppressMessages(trace("collect_source", code, print = FALSE, where = home))
  undo <- function() suppressMessages(untrace("collect_source", where = home))
  withr::defer(undo(), env)
}

# A CSV file with all digits of its numbers.
exact_csv <- function(data, env = parent.frame()) {
  path <- withr::local_tempfile(fileext = ".csv", .local_envir = env)
  is_double <- vapply(data, is.double, TRUE)
  data[is_double] <- lapply(data[is_double], function(x) {
    ifelse(is.na(x), NA, sprintf("%.17g", x))
  })
  utils::write.csv(data, path, row.names = FALSE, quote = FALSE)
  path
}

test_that("sums in parts are those of colMeans() and of one column", {
  withr::local_seed(1)
  x <- cbind(rnorm(5000, 1e6), rexp(5000), 1e-300, 7)
  parts <- split(seq_len(5000), rep(1:3, c(17, 3000, 1983)))
  sums <- matrix(0, 3, 4)
  for (at in parts) sums <- .Call(ffi_add_sums, sums, x[at, ])
  means <- .Call(ffi_sums_means, sums, 5000)
  expect_identical(means[1, ], colMeans(x))
  squares <- numeric(4)
  for (at in parts) {
    squares <- .Call(ffi_add_squares, squares, x[at, ], means[2, ])
  }
  expect_identical(sqrt(squares / 4999), .Call(ffi_column_sds, x))
})

test_that("rows of every source are brought to memory without a store", {
  data <- stored_data(300)
  expected <- draws_of(small_nn(size ~ x + f * word, data))
  csv <- exact_csv(data)
  shards <- list(data[1:100, ], data[101:300, ])
  for (source in list(csv, tall_csv(csv), stream_of(data, 70), shards)) {
    fit <- small_nn(size ~ x + f * word, source)
    expect_identical(draws_of(fit), expected)
    expect_identical(nrow(predict(fit)), 298L)
  }
})

test_that("draws with a store are those of a data frame, to the bit", {
  data <- stored_data()
  formula <- size ~ x + log(z) + f * word + flag
  memory <- small_nn(formula, data, subset = z < 1200)
  local_passes(chunk = 500)
  no_collecting()
  sources <- list(
    data,
    stream_of(data, c(700, 12, 2500)),
    list(data[1:500, ], stream_of(data[501:3000, ], 999))
  )
  sources$csv <- exact_csv(data)
  if (requireNamespace("nanoparquet", quietly = TRUE)) {
    parquet <- withr::local_tempfile(fileext = ".parquet")
    nanoparquet::write_parquet(data, parquet)
    sources$parquet <- tall_parquet(parquet)
  }
  if (requireNamespace("RSQLite", quietly = TRUE) &&
    requireNamespace("dbplyr", quietly = TRUE)) {
    con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
    withr::defer(DBI::dbDisconnect(con))
    DBI::dbWriteTable(con, "rows", data)
    sources$table <- dplyr::tbl(con, "rows")
  }
  for (source in sources) {
    file <- new_file()
    fit <- small_nn(formula, source, subset = z < 1200, store = file)
    expect_true(file.exists(file))
    expect_identical(draws_of(fit), draws_of(memory))
    expect_identical(fit$fingerprint, memory$fingerprint)
    expect_identical(fit$scaling, memory$scaling)
    expect_equal(fit$n_missing, memory$n_missing)
  }
  expect_length(list.files(dirname(file), "^writing-"), 0)
})

test_that("responses are of the kinds that a data frame's are", {
  data <- stored_data()
  data$level <- factor(data$kind, c("w", "v", "u", "none"))
  local_passes()
  for (response in list(quote(kind), quote(level), quote(z > 1030),
    quote(factor(y)))) {
    formula <- eval(bquote(.(response) ~ x + f))
    memory <- small_nn(formula, data)
    fit <- small_nn(formula, stream_of(data, c(700, 13)), store = new_file())
    expect_identical(draws_of(fit), draws_of(memory))
    expect_identical(fit$response_levels, memory$response_levels)
    expect_equal(predict(fit), predict(memory), ignore_attr = TRUE)
    expect_equal(fitted(fit), fitted(memory), ignore_attr = TRUE)
  }
})

test_that("passes are two, after the fit rows come from the source", {
  data <- stored_data()
  local_passes()
  no_collecting()
  stream <- counted_stream(data)
  fit <- small_nn(size ~ x + f, stream$source, store = new_file())
  # two that end after a block, for names and types; the look and the writing
  expect_lte(stream$n(), 5)
  memory <- small_nn(size ~ x + f, data)
  expect_equal(fit$passes, memory$passes + 2)
  expect_equal(stats::nobs(fit), stats::nobs(memory))
  expect_equal(residuals(fit), residuals(memory), ignore_attr = TRUE)
  skip_if_not_installed("ggplot2")
  one <- small_nn(size ~ x, stream$source, store = new_file())
  expect_s3_class(plot(one, "prediction"), "ggplot")
})

test_that("memory does not grow with the rows", {
  local_passes(chunk = 500)
  no_collecting()
  most <- function(n) {
    withr::local_seed(1)
    used <- 0
    stream <- tall_stream(function() {
      at <- 0
      function() {
        if (at == n) {
          return(NULL)
        }
        rows <- at + 1:1000
        at <<- at + 1000
        columns <- lapply(1:30, function(j) sin(rows * j))
        names(columns) <- paste0("x", 1:30)
        if (at == n) {
          used <<- max(used, gc()[[2, 1]] * 8)
        }
        data.frame(columns, y = cos(rows))
      }
    })
    fit <- small_nn(
      y ~ .,
      stream,
      store = new_file(),
      kernel = kernel_sgld(1e-6),
      train_iter = 2,
      iter = 2
    )
    expect_equal(stats::nobs(fit), n)
    used
  }
  few <- most(10000)
  # inputs take 240 bytes a row, the response 8
  expect_lt(most(30000) - few, 20000 * 60)
})

test_that("a fit that was saved opens its file again", {
  data <- stored_data()
  local_passes()
  file <- new_file()
  source <- stream_of(data, 999)
  float_nn <- function(...) {
    small_nn(size ~ x + f, ..., storage = "float", sigma = 1)
  }
  fit <- float_nn(source, store = file)
  expect_identical(tall_store(file = file)$type, "float")
  expect_identical(draws_of(fit), draws_of(float_nn(data)))
  saved <- new_file()
  saveRDS(fit, saved)
  expect_identical(
    draws_of(sg_resume(readRDS(saved), iter = 10)),
    draws_of(sg_resume(fit, iter = 10))
  )
  light <- small_nn(size ~ x, source, store = new_file(), keep_data = FALSE)
  expect_error(predict(light), class = "tall_error_stale")
  unlink(file)
  expect_error(sg_resume(readRDS(saved), iter = 10), class = "tall_error_data")
})

test_that("what cannot be had is refused, and leaves no file", {
  data <- stored_data()
  local_passes()
  file <- new_file()
  refused <- function(formula, source, class, ..., store = file) {
    expect_error(
      small_nn(formula, source, ..., store = store),
      class = paste0("tall_error_", class)
    )
    expect_false(file.exists(file))
    expect_length(list.files(dirname(file), "^writing-"), 0)
  }
  stream <- stream_of(data, 700)
  refused(size ~ x, stream_of(data[0, ], 10), "source")
  refused(size ~ absent, stream, "input")
  refused(size ~ 1, stream, "input")
  refused(size ~ x + offset(z), stream, "unsupported")
  refused(size ~ rank(x), stream, "input")
  refused(size ~ x, stream, "input", na.action = na.fail)
  refused(size ~ x, stream, "data", store = file.path(file, "none.tall"))
  one <- transform(data, kind = "same")
  refused(kind ~ x, stream_of(one, 700), "input")
  # a block of other types, and a source that gives other rows then
  turned <- function(change) {
    opened <- 0
    tall_stream(function() {
      opened <<- opened + 1
      own <- stream_of(change(data, opened), 700)
      own$open()
    })
  }
  mixed <- tall_stream(function() {
    k <- 0
    function() {
      k <<- k + 1
      if (k == 4) transform(data[1:9, ], x = "a") else if (k < 4) data
    }
  })
  refused(size ~ x, mixed, "source")
  refused(size ~ x + f, turned(function(data, k) {
    if (k > 4) data$f[[2000]] <- "new"
    data
  }), "input")
  refused(size ~ x, turned(function(data, k) data[seq_len(3000 - (k > 4)), ]),
    "source")
  writeLines("mine", file)
  expect_error(
    small_nn(size ~ x, stream, store = file),
    class = "tall_error_input"
  )
  expect_identical(readLines(file), "mine")
})
