test_that("checkers return the value in the type they promise", {
  expect_identical(check_number(1L), 1)
  expect_identical(check_count(3L), 3)
  expect_identical(check_count(3e9), 3e9)
  expect_identical(check_seed(NULL), NULL)
  expect_identical(check_seed(-1L), -1)
  expect_identical(check_choice("b", c("a", "b")), "b")
  expect_identical(check_choice(c("a", "b"), c("a", "b")), "a")
  expect_identical(check_numeric_vector(c(a = 1L, b = 2L)), c(a = 1, b = 2))
  expect_identical(check_flag(TRUE), TRUE)
  expect_identical(check_string("a"), "a")
  expect_identical(check_number(NULL, allow_null = TRUE), NULL)
  x <- matrix(1:6, 3)
  expect_identical(check_matrix(x), x)
})

test_that("a BLAS that is wrong in threads is called by one", {
  folder <- "/usr/lib/x86_64-linux-gnu/openblas-"
  expect_false(blas_takes_threads(paste0(folder, "serial/libblas.so.3")))
  fine <- paste0(folder, "pthread/libopenblasp-r0.3.21.so")
  for (blas in c(
    fine,
    "/usr/lib/x86_64-linux-gnu/blas/libblas.so.3.11.0",
    ""
  )) {
    expect_true(blas_takes_threads(blas))
  }
  if (blas_takes_threads()) {
    expect_identical(check_cores(2), 2)
  } else {
    expect_identical(suppressMessages(check_cores(2)), 1)
  }
  withr::local_options(rlib_message_verbosity = "verbose")
  expect_message(
    inform_blas("cores"),
    "libopenblas0-pthread",
    class = "tall_message_cores"
  )
})

test_that("an input error carries argument, expectation and value", {
  step_size <- -1
  e <- expect_error(
    check_number(step_size, positive = TRUE),
    class = "tall_error_input"
  )
  expect_s3_class(e, "tall_error")
  expect_identical(e$argument, "step_size")
  expect_identical(e$expected, "a positive number")
  expect_identical(e$value, -1)
})

test_that("the error is that of the function the user called", {
  outer <- function(step_size) check_number(step_size)
  e <- expect_error(outer("a"), class = "tall_error_input")
  expect_identical(e$call, quote(outer("a")))
})

test_that("a number is refused in words", {
  step_size <- "a"
  expect_snapshot(
    check_number(step_size, positive = TRUE),
    error = TRUE,
    cnd_class = TRUE
  )
  step_size <- -1
  expect_snapshot(check_number(step_size, positive = TRUE), error = TRUE)
  step_size <- NaN
  expect_snapshot(check_number(step_size, min = 0, max = 1), error = TRUE)
  step_size <- NA_character_
  expect_snapshot(check_number(step_size, max = 1), error = TRUE)
  step_size <- c(1, 2)
  expect_snapshot(check_number(step_size, allow_null = TRUE), error = TRUE)
  step_size <- Sys.Date()
  expect_snapshot(check_number(step_size), error = TRUE)
})

test_that("a count is refused in words", {
  chains <- 0
  expect_snapshot(check_count(chains), error = TRUE)
  chains <- 1.5
  expect_snapshot(check_count(chains, max = 1000), error = TRUE)
  chains <- TRUE
  expect_snapshot(check_count(chains), error = TRUE)
})

test_that("cores are a count, of which nobody has very many", {
  expect_identical(check_cores(2L), 2)
  expect_identical(check_cores(1e10), 1024)
  cores <- 1.5
  expect_snapshot(check_cores(cores), error = TRUE)
  cores <- Inf
  expect_snapshot(check_cores(cores), error = TRUE)
})

test_that("no argument `cores` is too large for the core", {
  model <- example_model()
  x <- matrix(sin(1:40), 20)
  fit <- quick_glm()
  calls <- list(
    function(cores) find_mode(model, cores = cores)$estimate,
    function(cores) subsampling_weights(model, cores = cores),
    function(cores) lipschitz(model, cores = cores),
    function(cores) ksd(x, -x, cores = cores),
    function(cores) fssd(x, -x, seed = 1, cores = cores),
    function(cores) {
      every <- subsample_uniform(5)
      pseudo_variance(model, numeric(3), subsample = every, cores = cores)
    },
    function(cores) predict(fit, type = "response", cores = cores),
    function(cores) quick_glm(cores = cores)$draws,
    function(cores) {
      suppressMessages(sg_resume(quick_fit(model), 10, cores = cores))$draws
    }
  )
  for (call in calls) {
    expect_silent(many <- call(1e10))
    expect_false(is.null(many))
    expect_equal(many, call(1))
  }
})

test_that("a seed is refused in words", {
  seed <- "a"
  expect_snapshot(check_seed(seed), error = TRUE)
  seed <- 1e10
  expect_snapshot(check_seed(seed), error = TRUE)
  seed <- NA
  expect_snapshot(check_seed(seed), error = TRUE)
})

test_that("flags, strings and choices are refused in words", {
  replace <- NA
  expect_snapshot(check_flag(replace), error = TRUE)
  name <- 1
  expect_snapshot(check_string(name), error = TRUE)
  integrator <- "eulr"
  expect_snapshot(check_choice(integrator, c("euler", "other")), error = TRUE)
  integrator <- NULL
  expect_snapshot(check_choice(integrator, "euler"), error = TRUE)
  integrator <- "{euler"
  expect_snapshot(check_choice(integrator, c("{a}", "b")), error = TRUE)
})

test_that("a numeric vector is refused in words", {
  y <- list(1)
  expect_snapshot(check_numeric_vector(y), error = TRUE)
  y <- factor(c("a", "b"))
  expect_snapshot(check_numeric_vector(y), error = TRUE)
  y <- numeric()
  expect_snapshot(check_numeric_vector(y), error = TRUE)
  y <- 1:2
  expect_snapshot(check_numeric_vector(y, size = c(1, 1000)), error = TRUE)
  y <- c(1, NA, Inf)
  expect_snapshot(check_numeric_vector(y), error = TRUE)
  weights <- c(1, 0)
  expect_snapshot(check_numeric_vector(weights, positive = TRUE), error = TRUE)
})

test_that("a matrix is refused in words", {
  x <- data.frame(a = 1)
  expect_snapshot(check_matrix(x), error = TRUE)
  x <- matrix("a")
  expect_snapshot(check_matrix(x), error = TRUE)
  x <- matrix(0, 0, 3)
  expect_snapshot(check_matrix(x), error = TRUE)
  x <- matrix(0, 2, 3)
  expect_snapshot(check_matrix(x, n_row = 4, n_col = 3), error = TRUE)
  x <- matrix(c(1, 2, 3, 4, -Inf, 6), 3, dimnames = list(NULL, c("a", "{b}")))
  expect_snapshot(check_matrix(x), error = TRUE)
  x <- matrix(c(1L, NA))
  expect_snapshot(check_matrix(x), error = TRUE)
})

test_that("finite values whose sum overflows are finite", {
  x <- rep(.Machine$double.xmax, 3)
  expect_identical(check_finite(x), x)
})

test_that("lengths that differ are refused in words", {
  x <- matrix(0, 1000, 2)
  y <- numeric(999)
  expect_snapshot(check_same_rows(x, y), error = TRUE)
})

test_that("a spec of the wrong family is refused in words", {
  kernel <- "sgld"
  expect_snapshot(
    check_spec(kernel, "tall_kernel", "kernel_*()"),
    error = TRUE
  )
  kernel <- function() NULL
  expect_snapshot(
    check_spec(kernel, "tall_kernel", "kernel_*()", allow_null = TRUE),
    error = TRUE
  )
  kernel <- structure(list(), class = "tall_kernel")
  expect_identical(check_spec(kernel, "tall_kernel", "kernel_*()"), kernel)
})

test_that("unknown names are refused in words", {
  init <- c("agee", "sex")
  expect_snapshot(check_known(init, c("age", "sex")), error = TRUE)
  init <- c("height", "weight")
  expect_snapshot(check_known(init, c("age", "sex")), error = TRUE)
})

test_that("every kind of value has a description", {
  expect_identical(describe(NULL), "NULL")
  expect_identical(describe(mean), "a function")
  expect_identical(describe(Inf), "Inf")
  expect_identical(describe(NA), "NA")
  expect_identical(describe(-2L), "the number -2")
  expect_identical(describe(TRUE), "TRUE")
  expect_identical(describe(integer()), "a numeric vector of 0 values")
  expect_identical(describe(letters), "a character vector of 26 values")
  expect_identical(
    describe(diag(2)),
    "a numeric matrix of 2 rows and 2 columns"
  )
  expect_identical(describe(list(1)), "a list of 1 element")
  expect_identical(describe(mtcars), "a data frame with 32 rows")
  expect_identical(describe(quote(a)), "a <symbol>")
  expect_identical(
    describe(strrep("a", 50)),
    paste0("the string \"", strrep("a", 37), "...\"")
  )
})

test_that("a column without a name has none in a message", {
  x <- cbind(1, a = c(1, NA))
  x[2, 1] <- Inf
  expect_error(
    check_matrix(x),
    "row 2, column 1 is Inf",
    fixed = TRUE
  )
})

test_that("vectors with names are matched by them", {
  expect_identical(match_names(c(b = 2, a = 1), c("a", "b")), c(1, 2))
  expect_identical(match_names(2:1, c("a", "b")), 2:1)
  expect_error(
    match_names(c(c = 2, d = 1), c("a", "b"), "column", hint = "", arg = "x"),
    'unknown columns "c" and "d"'
  )
  expect_snapshot(
    match_names(c(b = 2, 1), c("a", "b"), arg = "x"),
    error = TRUE
  )
  expect_snapshot(
    match_names(c(b = 2, c = 1), c("a", "b"), arg = "x"),
    error = TRUE
  )
  expect_snapshot(match_names(c(b = 2), c("a", "b"), arg = "x"), error = TRUE)
  expect_snapshot(
    match_names(c(b = 2, b = 1), c("a", "b"), arg = "x"),
    error = TRUE
  )
})
