# tall_glm(store = ): a run that needs all rows at once has its design in a
# file.

skip_on_os("windows")

new_file <- function(env = parent.frame()) {
  withr::local_tempfile(fileext = ".tall", .local_envir = env)
}

stored_fit <- function(data, store, ...) {
  remote_fit(
    y ~ x + z + f * word + flag,
    data,
    store = store,
    kernel = kernel_sgld(1e-5),
    subsample = subsample_uniform(50),
    iter = 200,
    chains = 2,
    ...
  )
}

test_that("draws are those of rows in memory, whatever the source", {
  data <- remote_data(9000)
  memory <- remote_fit(
    y ~ x + z + f * word + flag,
    data,
    kernel = kernel_sgld(1e-5),
    subsample = subsample_uniform(50),
    iter = 200,
    chains = 2
  )
  local_passes(chunk = 1000)
  a <- new_file()
  fit <- stored_fit(data, a)
  expect_true(file.exists(a))
  expect_equal(
    unclass(posterior::as_draws_array(fit)),
    unclass(posterior::as_draws_array(memory)),
    tolerance = 1e-9
  )
  expect_equal(fit$n_data, memory$n_data)
  b <- new_file()
  streamed <- stored_fit(stream_of(data, c(700, 12, 2500)), b)
  expect_identical(
    unclass(posterior::as_draws_array(streamed)),
    unclass(posterior::as_draws_array(fit))
  )
  # after the fit rows come from the source
  new <- data[c(1, 100, 2000), ]
  expect_equal(predict(fit, new), predict(memory, new), tolerance = 1e-9)
  expect_equal(
    fitted(streamed),
    fitted(memory),
    tolerance = 1e-7,
    ignore_attr = TRUE
  )
  expect_equal(stats::nobs(streamed), stats::nobs(memory))
  more <- sg_resume(fit, iter = 100)
  expect_identical(
    unclass(posterior::as_draws_array(sg_resume(streamed, iter = 100))),
    unclass(posterior::as_draws_array(more))
  )
})

test_that("weights, offset, subset and shards reach the file's model", {
  data <- remote_data(6000)
  run <- list(
    count ~ x + f + offset(log(w)),
    quote(data),
    family = stats::poisson(),
    weights = quote(w),
    subset = quote(z < 1100),
    kernel = kernel_sgbd(1e-3),
    iter = 100,
    chains = 1,
    seed = 3,
    refresh = 0
  )
  call <- as.call(c(quote(tall_glm), run))
  memory <- eval(call)
  local_passes(chunk = 1000)
  call$store <- new_file()
  shards <- list(data[1:2500, ], data[2501:6000, ])
  call[[3]] <- quote(shards)
  fit <- eval(call)
  expect_equal(
    unclass(posterior::as_draws_array(fit)),
    unclass(posterior::as_draws_array(memory)),
    tolerance = 1e-9
  )
})

test_that("a fit that was saved opens its file again", {
  local_passes()
  data <- remote_data(5000)
  file <- new_file()
  fit <- stored_fit(stream_of(data, 999), file)
  saved <- new_file()
  saveRDS(fit, saved)
  back <- readRDS(saved)
  expect_identical(
    unclass(posterior::as_draws_array(sg_resume(back, iter = 50))),
    unclass(posterior::as_draws_array(sg_resume(fit, iter = 50)))
  )
  unlink(file)
  expect_error(sg_resume(readRDS(saved), iter = 50), class = "tall_error_data")
})

test_that("single precision, and the recipe's own fallback, go to the file", {
  local_passes()
  data <- remote_data(5000)
  file <- new_file()
  fit <- stored_fit(data, file, storage = "float")
  expect_equal(tall_store(file = file)$type, "float")
  expect_equal(fit$storage, "float")
  # a posterior that passes do not find: the prior has bounds
  file <- new_file()
  fit <- remote_fit(
    y ~ x + flag,
    stream_of(data, 1000),
    prior = prior_uniform(-5, 5),
    iter = 1000,
    store = file
  )
  expect_true(file.exists(file))
  memory <- remote_fit(
    y ~ x + flag,
    data,
    prior = prior_uniform(-5, 5),
    iter = 4000
  )
  s <- posterior::summarise_draws(memory, "mean", "sd")
  expect_posterior_near(fit, s$mean, s$sd, z = 5)
})

test_that("passes that serve leave no file", {
  local_passes()
  file <- new_file()
  rows <- stream_of(remote_data(), 4000)
  remote_fit(y ~ x + flag, rows, store = file, iter = 500)
  expect_false(file.exists(file))
})

test_that("what fails leaves no file", {
  local_passes()
  data <- remote_data(5000)
  file <- new_file()
  n_open <- 0
  failing <- tall_stream(function() {
    n_open <<- n_open + 1
    last <- if (n_open > 2) 3 else 5
    k <- 0
    function() {
      k <<- k + 1
      if (k > last && last == 3) stop("the disk is gone")
      if (k <= 5) data[seq_len(1000) + 1000 * (k - 1), ]
    }
  })
  expect_error(stored_fit(failing, file), class = "tall_error_source")
  expect_length(list.files(dirname(file), "^writing-"), 0)
  expect_false(file.exists(file))
  writeLines("mine", file)
  expect_error(stored_fit(data, file), class = "tall_error_input")
  expect_identical(readLines(file), "mine")
  expect_error(
    stored_fit(data, file.path(file, "none", "x.tall")),
    class = "tall_error_data"
  )
  expect_error(
    stored_fit(data, new_file(), sparse = TRUE),
    class = "tall_error_input"
  )
})
