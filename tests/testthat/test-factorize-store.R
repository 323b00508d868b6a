# tall_factorize() of sources: ratings are read block by block, to memory or to
# a file, and the draws are to the bit those of a data frame.

skip_on_os("windows")

new_file <- function(env = parent.frame()) {
  withr::local_tempfile(fileext = ".tall", .local_envir = env)
}

toy <- function(n = 600) {
  withr::with_seed(4, {
    d <- data.frame(
      user = c(1:25, sample(25, n - 25, TRUE)),
      item = c(1:12, sample(12, n - 12, TRUE))
    )
    d$rating <- 3 + 2 * sin(d$user) * cos(d$item) + stats::rnorm(n, sd = 0.3)
    d
  })
}

small_fit <- function(data, formula = rating ~ user + item, ...) {
  tall_factorize(
    formula,
    data,
    rank = 2,
    ...,
    iter = 40,
    thin = 1,
    chains = 2,
    seed = 1,
    variables = NULL,
    refresh = 0
  )
}

expect_same_fit <- function(fit, memory) {
  expect_identical(fit$draws, memory$draws)
  expect_identical(fit$ids, memory$ids)
  expect_identical(fit$rated, memory$rated)
  expect_identical(fit$center, memory$center)
  expect_identical(fit$rating_range, memory$rating_range)
}

test_that("means of files are those of mean(), to the bit", {
  withr::local_seed(1)
  x <- matrix(c(rexp(5000), rnorm(5000, 1e8)), 5000)
  local_settings(block_rows = 100)
  store <- tall_store(x, new_file())
  for (j in 1:2) {
    expect_identical(store_mean(store, j), mean(x[, j]))
  }
  # in parts
  sum <- matrix(0, 3, 1)
  for (at in split(1:5000, rep(1:2, c(7, 4993)))) {
    sum <- .Call(ffi_add_sums, sum, x[at, 2, drop = FALSE])
  }
  away <- c(0, 0)
  for (at in split(1:5000, rep(1:2, c(4000, 1000)))) {
    away <- .Call(ffi_add_away, away, x[at, 2], sum[1:2], 5000)
  }
  expect_identical(.Call(ffi_away_mean, away, sum[1:2], 5000), mean(x[, 2]))
})

test_that("draws are those of a data frame, from every source", {
  data <- toy()
  memory <- list(
    bpmf = small_fit(data),
    pmf = small_fit(data, model = "pmf", init = "authors")
  )
  # all digits of a double
  csv <- withr::local_tempfile(fileext = ".csv")
  text <- transform(data, rating = sprintf("%.17g", rating))
  utils::write.csv(text, csv, row.names = FALSE, quote = FALSE)
  sources <- list(
    data,
    csv,
    stream_of(data, c(70, 1, 250)),
    list(data[1:100, ], stream_of(data[101:600, ], 99))
  )
  if (requireNamespace("nanoparquet", quietly = TRUE)) {
    parquet <- withr::local_tempfile(fileext = ".parquet")
    nanoparquet::write_parquet(data, parquet)
    sources$parquet <- parquet
  }
  if (requireNamespace("RSQLite", quietly = TRUE) &&
    requireNamespace("dbplyr", quietly = TRUE)) {
    con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
    withr::defer(DBI::dbDisconnect(con))
    DBI::dbWriteTable(con, "ratings", data)
    sources$table <- dplyr::tbl(con, "ratings")
  }
  for (source in sources) {
    file <- new_file()
    expect_same_fit(small_fit(source), memory$bpmf)
    expect_same_fit(small_fit(source, store = file), memory$bpmf)
    expect_identical(dim(tall_store(file = file)), c(600L, 3L))
  }
  fit <- small_fit(
    stream_of(data, 70),
    model = "pmf",
    init = "authors",
    store = new_file()
  )
  expect_same_fit(fit, memory$pmf)
  expect_length(list.files(tempdir(), "^writing-"), 0)
})

test_that("labels are those of a data frame", {
  data <- toy()
  data <- transform(
    data,
    name = paste0("u", rev(user)),
    level = factor(letters[item], c(letters[12:1], "none")),
    far = 1000 * user
  )
  # each block with levels of its own
  own <- tall_stream(function() {
    at <- 0
    function() {
      if (at == 600) {
        return(NULL)
      }
      at <<- at + 150
      block <- data[at - 149:0, ]
      block$own <- factor(paste("i", block$item))
      block
    }
  })
  formulas <- list(
    rating ~ name + level,
    rating ~ factor(far) + item,
    rating ~ as.factor(level) + factor(name),
    abs(rating) ~ user + item
  )
  for (formula in formulas) {
    memory <- small_fit(data, formula)
    for (store in list(NULL, new_file())) {
      fit <- small_fit(stream_of(data, c(70, 3)), formula, store = store)
      expect_same_fit(fit, memory)
    }
  }
  expect_same_fit(
    small_fit(own, rating ~ user + own, store = new_file()),
    small_fit(transform(data, own = paste("i", item)), rating ~ user + own)
  )
})

test_that("held-out pairs, monitors and predictions are as in memory", {
  data <- toy()
  test <- data[501:600, ]
  test$user[[1]] <- 30
  fits <- suppressWarnings(
    list(
      small_fit(data[1:500, ], newdata = test),
      small_fit(stream_of(data[1:500, ], 70), newdata = test),
      small_fit(data[1:500, ], newdata = test, store = new_file())
    ),
    classes = "tall_warning_ratings"
  )
  for (fit in fits[2:3]) {
    expect_same_fit(fit, fits[[1]])
    expect_identical(predict(fit), predict(fits[[1]]))
    expect_identical(fit$monitor$value, fits[[1]]$monitor$value)
  }
  # other estimators read the file, too
  for (gradient in list(gradient_saga(), gradient_full())) {
    memory <- small_fit(data, gradient = gradient)
    fit <- small_fit(data, gradient = gradient, store = new_file())
    expect_identical(fit$draws, memory$draws)
  }
})

test_that("one pass reads a source, and a saved fit its file", {
  data <- toy()
  stream <- counted_stream(data)
  file <- new_file()
  fit <- small_fit(stream$source, store = file)
  # and one for the names, which ends after a block
  expect_lte(stream$n(), 2)
  saved <- new_file()
  saveRDS(fit, saved)
  expect_identical(
    sg_resume(readRDS(saved), 10, refresh = 0)$draws,
    sg_resume(small_fit(data), 10, refresh = 0)$draws
  )
  # no row of the ratings is kept beside the file
  more <- small_fit(data[rep(1:600, 5), ], store = new_file())
  growth <- utils::object.size(more$data) - utils::object.size(fit$data)
  expect_lt(abs(as.numeric(growth)), 1000)
  # a file with other ratings is not taken for it
  tall_store(cbind(1, 1, rep(0, 600)), file, overwrite = TRUE)
  expect_error(sg_resume(readRDS(saved), 10), class = "tall_error")
  unlink(file)
  expect_error(sg_resume(readRDS(saved), 10), class = "tall_error_data")
})

test_that("what is no rating is refused with its row, and leaves no file", {
  data <- toy()
  file <- new_file()
  refused <- function(source, class, ..., says = NULL, store = file) {
    expect_error(
      small_fit(source, ..., store = store),
      says,
      class = paste0("tall_error_", class)
    )
    expect_false(file.exists(file))
    expect_length(list.files(dirname(file), "^writing-"), 0)
  }
  stream <- function(...) stream_of(transform(data, ...), 70)
  for (store in list(NULL, file)) {
    refused(stream_of(data[0, ], 70), "source", store = store)
    refused(
      stream(rating = replace(rating, 301, NA)),
      "input",
      says = "row 301",
      store = store
    )
    refused(
      stream(user = replace(user, 200, NA)),
      "input",
      says = "row 200",
      store = store
    )
    refused(
      stream(item = replace(item, 99, 1.5)),
      "input",
      says = "row 99",
      store = store
    )
    refused(stream(user = 1e4 * user), "input", says = "factor", store = store)
    refused(stream(user = 2^33 * user), "input", store = store)
    refused(stream(rating = "a"), "input", store = store)
    refused(stream(name = 1), "input", rating ~ user + absent, store = store)
    refused(
      stream(name = 1),
      "input",
      I(rating - mean(rating)) ~ user + item,
      says = "other rows",
      store = store
    )
    refused(
      stream(name = 1),
      "input",
      rating ~ as.integer(factor(user)) + item,
      store = store
    )
  }
  mixed <- tall_stream(function() {
    k <- 0
    function() {
      k <<- k + 1
      if (k == 2) transform(data, item = "a") else if (k < 2) data
    }
  })
  refused(mixed, "source", says = "text")
  names <- transform(data, user = replace(paste0("u", user), 401, NA))
  refused(stream_of(names, 70), "input", says = "row 401")
  writeLines("mine", file)
  expect_error(small_fit(data, store = file), class = "tall_error_input")
  expect_identical(readLines(file), "mine")
})

test_that("a file that holds no ratings of these ids makes no model", {
  data <- toy()
  fit <- small_fit(data, store = new_file())
  ratings <- fit$data$ratings
  for (bad in list(cbind(25, 0, 0), cbind(0, -1, 0), cbind(0.5, 0, 0), 1)) {
    ratings$store <- tall_store(as.matrix(bad), new_file())
    expect_error(build_factors(fit$data, ratings), class = "tall_error")
  }
})
