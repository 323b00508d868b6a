# What was given to a fit as an argument is found again in new data.

test_that("an offset given as an argument is that of new data", {
  skip_if_not_installed("rstantools")
  withr::local_seed(1)
  data <- data.frame(x = rnorm(3000), exposure = rexp(3000) + 0.5)
  data$y <- rpois(3000, data$exposure * exp(0.3 + 0.5 * data$x))
  fit <- function(formula, offset = NULL) {
    rlang::inject(tall_glm(
      formula,
      data = data,
      offset = !!offset,
      family = poisson(),
      monitor = list(
        every = 50,
        loss = monitor_log_loss(data),
        lik = monitor_log_lik(data),
        rmse = monitor_rmse(data)
      ),
      iter = 200,
      seed = 1,
      refresh = 0
    ))
  }
  given <- fit(y ~ x, quote(log(exposure)))
  inside <- fit(y ~ x + offset(log(exposure)))
  new <- data[1:50, ]
  expect_identical(plain_draws(given), plain_draws(inside))
  for (f in list(
    function(fit) predict(fit, new, type = "response"),
    function(fit) rstantools::log_lik(fit, newdata = new),
    function(fit) rstantools::posterior_predict(fit, new, seed = 1),
    function(fit) log_loss(fit, new),
    function(fit) rmse(fit, new),
    function(fit) fit$monitor
  )) {
    expect_equal(f(given), f(inside))
  }
  # one's own takes its place
  expect_equal(
    predict(given, new, offset = 0),
    predict(inside, transform(new, exposure = 1))
  )
  expect_error(predict(given, data["x"]), class = "tall_error_input")
  expect_error(log_loss(given, data[c("x", "y")]), class = "tall_error_input")
  # nor can a matrix have one
  x <- cbind(1, data$x)
  matrix_fit <- tall_glm.fit(
    x,
    data$y,
    family = poisson(),
    offset = log(data$exposure),
    iter = 100,
    seed = 1,
    refresh = 0
  )
  expect_error(predict(matrix_fit, x[1:2, ]), class = "tall_error_input")
  expect_length(predict(matrix_fit, x[1:2, ], offset = c(0, 1)), 2)
})

test_that("the trials of proportions are those of new data", {
  withr::local_seed(2)
  data <- data.frame(x = rnorm(2500), trials = sample(1:9, 2500, TRUE))
  data$yes <- rbinom(2500, data$trials, plogis(data$x))
  data$no <- data$trials - data$yes
  # held-out rows with something missing are left out by monitors
  held_out <- data
  held_out$x[1:20] <- NA
  fit <- function(formula, weights = NULL) {
    rlang::inject(tall_glm(
      formula,
      data = data,
      weights = !!weights,
      family = binomial(),
      monitor = list(every = 50, loss = monitor_log_loss(held_out)),
      iter = 200,
      seed = 1,
      refresh = 0
    ))
  }
  proportions <- fit(yes / trials ~ x, quote(trials))
  counts <- fit(cbind(yes, no) ~ x)
  expect_equal(log_loss(proportions, data), log_loss(counts, data))
  expect_equal(proportions$monitor, counts$monitor)
  expect_equal(
    utils::tail(counts$monitor$value, 1),
    log_loss(counts, held_out[-(1:20), ]),
    tolerance = 0.01
  )
})

test_that("fits with weighted draws and those that ran away are printed", {
  withr::local_seed(3)
  x <- cbind(1, rnorm(500))
  model <- model_glm(x, rpois(500, exp(x %*% c(1, 0.5))), family = "poisson")
  fit <- sg_sample(
    model,
    kernel_sgld(1e-4),
    schedule = schedule_decay(a = 1, b = 10, gamma = 0.5),
    iter = 200,
    seed = 1,
    refresh = 0
  )
  shown <- utils::capture.output(print(fit))
  expect_match(shown, "x2", all = FALSE, fixed = TRUE)
  weights <- as.numeric(fit[["weights"]])
  draws <- draws_matrix(fit)
  expect_equal(
    unname(coef(fit)),
    unname(colSums(draws * weights) / sum(weights))
  )
  expect_error(bias_check(fit), class = "tall_error_unsupported")

  away <- suppressWarnings(sg_sample(
    model,
    kernel_sgld(10),
    iter = 100,
    warmup = 0,
    seed = 1,
    refresh = 0
  ))
  shown <- utils::capture.output({
    print(away)
    print(summary(away))
  })
  expect_match(shown, "from 4 chains", all = FALSE, fixed = TRUE)
  expect_match(shown, "4 of 4 chains stopped", all = FALSE, fixed = TRUE)
})

test_that("fits without a formula refuse what needs one", {
  fit <- sg_sample(
    model_density("normal"),
    kernel_mala(0.5),
    iter = 20,
    chains = 1,
    seed = 1,
    refresh = 0
  )
  for (f in list(fitted, residuals, formula, family, update)) {
    e <- expect_error(f(fit), class = "tall_error_unsupported")
    expect_match(conditionMessage(e), "model_density", fixed = TRUE)
  }
})

test_that("a source that cannot be closed costs no fit", {
  data <- data.frame(x = c(1, 2, 4, 3, 6), y = c(1, 3, 2, 5, 4))
  stream <- function(close) {
    tall_stream(function() {
      is_done <- FALSE
      list(
        next_block = function() {
          if (!is_done) {
            is_done <<- TRUE
            data
          }
        },
        close = close
      )
    })
  }
  fit_of <- function(source) {
    tall_glm(y ~ x, source, iter = 20, seed = 1, refresh = 0)
  }
  whole <- fit_of(stream(function() NULL))
  jams <- stream(function() stop("the tap is stuck"))
  for (source in list(jams, as_source(list(jams, data[0, ])))) {
    told <- list()
    fit <- withCallingHandlers(fit_of(source), warning = function(w) {
      told <<- c(told, list(w))
      invokeRestart("muffleWarning")
    })
    expect_identical(as.matrix(fit), as.matrix(whole))
    expect_gt(length(told), 0)
    for (w in told) {
      expect_s3_class(w, "tall_warning_source")
      expect_match(conditionMessage(w), "stream could not be closed")
      expect_match(conditionMessage(w$parent), "the tap is stuck")
    }
  }
  # a member of one's own, whose reader is no stream
  own <- structure(list(), class = c("tall_jammed", "tall_source"))
  local_mocked_s3_method <- function(class, value) {
    registerS3method("source_open", class, value, asNamespace("tallbayes"))
  }
  local_mocked_s3_method("tall_jammed", function(source, columns = NULL) {
    reader <- source_open(as_source(data), columns)
    reader$close <- function() stop("the tap is stuck")
    reader
  })
  expect_warning(
    n <- source_each(own, NULL, function(block) TRUE),
    class = "tall_warning_source"
  )
  expect_identical(n, 5)
  # what fails while rows are read is still the error
  fails <- tall_stream(function() {
    list(
      next_block = function() stop("no more water"),
      close = function() stop("the tap is stuck")
    )
  })
  expect_error(
    suppressWarnings(fit_of(fails)),
    class = "tall_error_source"
  )
})
