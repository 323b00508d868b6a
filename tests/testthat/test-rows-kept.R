# The rows that a fit keeps, fit$rows: what they are, and what they hold.

kept_data <- function(n = 600) {
  withr::with_seed(9, {
    data <- data.frame(x = rnorm(n), g = rep(c("u", "v", "w"), length.out = n))
    data$y <- rbinom(n, 1, plogis(data$x))
    data$z <- data$x + rnorm(n)
    data
  })
}

kept_fit <- function(..., data = kept_data()) {
  suppressWarnings(suppressMessages(
    tall_glm(..., data = data, iter = 40, chains = 1, seed = 1, refresh = 0)
  ))
}

test_that("a fit holds its rows in one object", {
  data <- kept_data()
  fit <- kept_fit(y ~ x, family = binomial())
  expect_s3_class(fit$rows, "tall_rows_frame")
  expect_identical(fit$rows$frame, model.frame(fit))
  expect_setequal(names(fit$rows), c("frame", "request"))
  x <- cbind("(Intercept)" = 1, x = data$x)
  fit <- suppressWarnings(tall_glm.fit(
    x, data$z, weights = rep(2, 600),
    iter = 40, chains = 1, seed = 1, refresh = 0
  ))
  expect_s3_class(fit$rows, "tall_rows_matrix")
  expect_identical(fit$rows$x, x)
  expect_identical(fit$rows$weights, rep(2, 600))
  # what is said of them elsewhere in a fit is not said twice
  gone <- c("frame", "data", "source", "store", "remote", "request")
  expect_false(any(gone %in% names(fit)))
})

test_that("rows that are passed over are held by what opens them", {
  local_settings(look = list(rows = 100, of_stratum = 20))
  data <- kept_data()
  fit <- kept_fit(z ~ x + g, data = as_source(data))
  rows <- fit$rows
  expect_s3_class(rows, "tall_rows_passes")
  expect_identical(rows$source$data, data)
  expect_equal(n_of_rows(rows), 600)
  expect_equal(rows$facts$mean[[2]], mean(data$x))
  # as many rows as columns, and the sums of all
  expect_identical(nrow(rows$some$x), 4L)
  expect_equal(rows$products$weight, 600)
  without <- kept_fit(z ~ x + g, data = as_source(data), keep_data = FALSE)
  expect_null(without$rows$source)
  expect_identical(without$rows$products, rows$products)
  expect_lt(owned_bytes(without$rows), owned_bytes(rows))
  # a model again, from these sums
  expect_identical(rebuild_model(without)$fingerprint, fit$fingerprint)
})

test_that("rows in a file are held by its path", {
  local_settings(look = list(rows = 100, of_stratum = 20))
  file <- withr::local_tempfile()
  fit <- kept_fit(
    y ~ x,
    family = binomial(),
    data = as_source(kept_data()),
    kernel = kernel_mala(0.1),
    store = file
  )
  expect_s3_class(fit$rows, "tall_rows_store")
  expect_null(fit$rows$rest)
  shown <- describe_rows(fit$rows)
  expect_match(shown, basename(file), fixed = TRUE, all = FALSE)
  expect_identical(rebuild_model(fit)$fingerprint, fit$fingerprint)
})

test_that("what was not kept is not there, and is said", {
  fits <- list(
    kept_fit(y ~ x, family = binomial(), keep_data = FALSE),
    suppressWarnings(tall_glm.fit(
      cbind(x = kept_data()$x), kept_data()$z,
      iter = 40, chains = 1, seed = 1, refresh = 0, keep_data = FALSE
    ))
  )
  for (fit in fits) {
    expect_false(has_values(fit$rows))
    expect_lt(owned_bytes(fit$rows), 10000)
    expect_match(describe_rows(fit$rows), "keep_data = FALSE", all = FALSE)
    expect_null(rebuild_model(fit))
  }
})

test_that("rows say what they are and what they take", {
  data <- kept_data()
  rows <- kept_fit(y ~ x, family = binomial())$rows
  expect_output(print(rows), "^<tall_rows> Rows of a model frame, in memory")
  shown <- describe_rows(rows)
  expect_match(shown, "^Number: 600$", all = FALSE)
  expect_match(shown, "^From: R's memory$", all = FALSE)
  size <- format_bytes(owned_bytes(rows))
  expect_match(shown, paste0("^Memory: ", size), all = FALSE)
  # two numbers a row, and what says how they are read
  expect_gt(owned_bytes(rows), 600 * 12)
  expect_lt(owned_bytes(rows), 600 * 16 + 20000)
  expect_error(print(rows, 3), class = "tall_error_input")
})

test_that("every member has a name", {
  expect_setequal(names(row_members), names(rows_fields))
})
