skip_if_not_installed("RTMB", "2.0")

# The gradients in the coordinates of two models, at a point and with the rows
# given, which may be there more than once.
expect_same_gradient <- function(
  model,
  expected,
  theta,
  index = NULL,
  label = ""
) {
  take <- function(model) {
    rows <- as.double(index %||% seq_len(model$n_data))
    .Call(ffi_model_gradient, model$pointer, theta, rows, 1.5, 7L)$gradient
  }
  expect_close(take(model), take(expected), label, tolerance = 1e-12)
}

test_that("gradients are those of the formula, whatever the number of rows", {
  withr::local_seed(3)
  data <- logistic_data(3000, 3)
  model <- logistic_custom(data$x, data$y, NULL, NULL)
  exact <- logistic_custom(data$x, data$y)
  expect_identical(model$plan$log_lik, "tape")
  for (n in c(1:35, 63:65, 500, 1023:1026, 2100, 3000)) {
    rows <- sample(3000, n, replace = TRUE)
    expect_same_gradient(model, exact, cos(1:3), rows, paste(n, "rows"))
  }
  # tapes outlive collections of garbage
  gc()
  expect_same_gradient(model, exact, sin(1:3), 1:65)
})

test_that("so are those of rows", {
  data <- logistic_data()
  model <- logistic_custom(data$x, data$y, NULL, NULL)
  exact <- logistic_custom(data$x, data$y)
  at <- c(0.3, -1)
  expect_close(
    subsampling_weights(model, at, "gradient"),
    subsampling_weights(exact, at, "gradient"),
    tolerance = 1e-12
  )
})

test_that("a run is the run with the exact gradient, to rounding", {
  data <- logistic_data()
  exact <- logistic_custom(data$x, data$y)
  model <- logistic_custom(data$x, data$y, NULL, NULL)
  at <- c(0.4, -0.2)
  schemes <- list(
    subsample_uniform(6),
    subsample_uniform(6, replace = FALSE),
    subsample_weighted(6, rep(1:3, 20)),
    subsample_weighted(6, "gradient"),
    subsample_optimal(6)
  )
  for (gradient in conformance_gradients()) {
    estimator <- gradient$make(at)
    for (scheme in if (gradient$uses_rows) schemes else list(NULL)) {
      if (identical(scheme$name, "optimal") && gradient$name != "cv") {
        next
      }
      label <- paste(gradient$name, scheme$name)
      expect_same_run(
        model, exact, label, 1e-10,
        kernel_sgld(0.05), estimator, scheme, init = at
      )
    }
  }
})

test_that("a scale, a mixture and arrays of parameters are differentiated", {
  withr::local_seed(5)
  y <- stats::rnorm(80, c(-1, 2))
  check <- function(log_lik, log_prior, data, init, transform = NULL, theta) {
    model <- model_custom(log_lik, log_prior, data, init, transform = transform)
    expect_identical(model$plan[c("log_lik", "log_prior")], list(
      log_lik = "tape",
      log_prior = "tape"
    ))
    differences <- suppressWarnings(
      model_custom(
        log_lik,
        log_prior,
        data,
        init,
        transform = transform,
        autodiff = FALSE
      )
    )
    expect_close(
      model_evaluate(model, theta)$gradient,
      model_evaluate(differences, theta)$gradient,
      tolerance = 1e-7
    )
    model
  }
  # mixture of normals: every function a mask replaces, one in a function it
  # calls
  density <- function(y, theta, k) {
    theta$w[[k]] * stats::dnorm(y, theta$mu[[k]], theta$sigma)
  }
  check(
    function(theta, batch) {
      log(density(batch, theta, 1) + density(batch, theta, 2))
    },
    function(theta) {
      sum(dnorm(theta$mu, 0, 5, log = TRUE)) - theta$sigma + log(theta$w[[1]])
    },
    y,
    list(mu = c(-0.5, 1), sigma = 1, w = c(0.4, 0.6)),
    list(sigma = "positive", w = "simplex"),
    theta = c(-0.8, 1.5, 0.3, -0.4)
  )
  # multinomial logit: a matrix of coefficients, an array of data
  x <- array(stats::rnorm(80 * 6), c(80, 3, 2))
  face <- sample(3L, 80, TRUE)
  check(
    function(theta, batch) {
      shift <- drop(batch$x[, , 2] %*% theta$v)
      eta <- cbind(0, batch$x[, , 1] %*% theta$B + shift)
      rowSums(eta * batch$is) - log(rowSums(exp(eta)))
    },
    function(theta) -sum(unlist(theta)^2) / 2,
    list(x = x, is = 1 * outer(face, 1:3, "==")),
    list(B = matrix(0, 3, 2), v = c(a = 0, b = 0, c = 0)),
    theta = cos(1:9)
  )
})

test_that("integers, logicals and factors are read by a tape that can", {
  entry <- entry_custom_transforms("tape")
  expect_identical(entry$model$plan$log_lik, "tape")
  again <- entry_custom_transforms("retape")
  expect_identical(again$model$plan$log_lik, "retape")
  exact <- entry_custom_transforms()
  theta <- c(0.2, -0.5, 0.9, 0.1, -0.3, 0.2)
  for (n in c(1, 7, 40)) {
    rows <- rep_len(c(3, 1, 40, 22), n)
    expect_same_gradient(entry$model, exact$model, theta, rows)
    expect_same_gradient(again$model, exact$model, theta, rows)
  }
})

test_that("a model is taped again for what a tape cannot read, and says so", {
  withr::local_seed(2)
  n <- 40
  data <- data.frame(
    y = stats::rnorm(n),
    group = sample(c("a", "b"), n, TRUE),
    count = sample(5L, n, TRUE),
    unused = letters[rep(1:20, 2)]
  )
  make <- function(log_lik, grad_log_lik = NULL) {
    model_custom(
      log_lik,
      function(theta) -sum(theta$mu^2) / 2,
      data,
      list(mu = c(0.1, 0.2)),
      grad_log_lik,
      function(theta) -theta$mu
    )
  }
  by_name <- make(function(theta, batch) {
    -(batch$y - theta$mu[ifelse(batch$group == "a", 1, 2)])^2 / 2
  })
  by_count <- make(function(theta, batch) {
    -(batch$y - theta$mu[ifelse(batch$count > 3, 1, 2)])^2 / 2
  })
  expect_snapshot({
    print(by_name)
    print(by_count)
  })
  exact <- function(is_first) {
    make(
      function(theta, batch) -(batch$y - theta$mu[2 - is_first(batch)])^2 / 2,
      function(theta, batch) {
        first <- is_first(batch)
        (batch$y - theta$mu[2 - first]) * cbind(first, !first)
      }
    )
  }
  pairs <- list(
    list(by_name, exact(function(batch) batch$group == "a")),
    list(by_count, exact(function(batch) batch$count > 3))
  )
  for (pair in pairs) {
    expect_close(
      subsampling_weights(pair[[1]], c(0.5, -1), "gradient"),
      subsampling_weights(pair[[2]], c(0.5, -1), "gradient"),
      tolerance = 1e-12
    )
    expect_same_gradient(pair[[1]], pair[[2]], c(0.5, -1), c(1:9, 9, 9))
    run <- function(model) {
      sg_sample(
        model,
        kernel_sgld(0.01),
        gradient_saga(),
        subsample_uniform(6),
        iter = 10,
        warmup = 0,
        chains = 1,
        init = c(0, 0),
        seed = 3,
        refresh = 0
      )$draws
    }
    expect_close(run(pair[[1]]), run(pair[[2]]), tolerance = 1e-10)
    # more rows than parameters, and fewer
    for (rows in list(1:3, 1:30)) {
      theta <- list(mu = c(0.5, -1))
      batch <- data[rows, ]
      masked <- mask_function(pair[[1]]$functions$log_lik)
      expect_equal(
        retaped_rows(masked, theta, batch),
        unname(pair[[2]]$functions$grad_log_lik(theta, batch))
      )
    }
  }
})

test_that("functions that a tape cannot lend to C are run by R", {
  y <- stats::rexp(30)
  log_lik <- function(theta, batch) log(besselK(theta$a * batch, 1))
  log_prior <- function(theta) -theta$a
  model <- model_custom(log_lik, log_prior, y, list(a = 1))
  differences <- suppressWarnings(
    model_custom(log_lik, log_prior, y, list(a = 1), autodiff = FALSE)
  )
  expect_close(
    model_evaluate(model, 0.8)$gradient,
    model_evaluate(differences, 0.8)$gradient,
    tolerance = 1e-8
  )
  at <- list(init = list(a = 1), kind = c(a = "real"), data = y, n_data = 30)
  made <- record(weighted_log_lik(mask_function(log_lik), at, 1, 1:5))
  expect_null(made$tape)
})

test_that("RTMB's functions are found, the user's and R left alone", {
  before <- search()
  config <- unlist(RTMB::TapeConfig())
  # one of R, one with the name of one of R, one that calls itself
  log <- function(x) 3 * x
  dexp <- function(x, n) if (n == 0) x else dexp(2 * x, n - 1)
  helper <- function(a, y) {
    stats::plogis(a * y, log.p = TRUE) + log(a) + dexp(a, 2)
  }
  y <- stats::rnorm(20)
  model <- model_custom(
    function(theta, batch) {
      unlist(lapply(seq_along(batch), function(k) helper(theta$a, batch[[k]])))
    },
    function(theta) {
      sum(vapply(1:3, function(k) dnorm(theta$a, k, log = TRUE), 0))
    },
    y,
    list(a = 0.5)
  )
  expect_identical(model$plan$log_lik, "tape")
  p <- stats::plogis(-0.7 * y)
  expect_close(
    model_evaluate(model, 0.7)$gradient,
    sum(y * p + 3 + 4) - sum(0.7 - 1:3)
  )
  expect_identical(search(), before)
  expect_identical(unlist(RTMB::TapeConfig()), config)
  # own versions, with numbers and on a tape
  x <- c(0.2, 1.4)
  own <- list(
    function(x) outer(x, 1:2, "+"),
    function(x) log10(x) + log2(x) + base::log(x, 3),
    function(x) lchoose(3 + x, 2),
    function(x) stats::plogis(x, 1, 2, lower.tail = FALSE),
    function(x) stats::plogis(c(-1e3, 0, 1e3) * x[[1]], log.p = TRUE),
    function(x) x^2 + x^3 + 2^x,
    function(x) c(1, unlist(list(x, x)))
  )
  for (f in own) {
    masked <- mask_function(f)
    tape <- RTMB::MakeTape(masked, x)
    expect_close(tape(x), f(x))
    expect_close(masked(x), f(x))
  }
})

test_that("what cannot be differentiated is refused, by name and place", {
  y <- c(1.5, 2, 3, -1, 0, 2)
  make <- function(log_lik, log_prior = function(theta) -theta$a^2, ...) {
    model_custom(log_lik, log_prior, y, list(a = 0.5), ...)
  }
  square <- function(theta, batch) -(batch - theta$a)^2
  helper <- function(a) psigamma(a, 2)
  expect_snapshot(error = TRUE, {
    make(function(theta, batch) if (theta$a > 0) batch * theta$a else batch)
    make(function(theta, batch) batch + helper(theta$a))
    make(function(theta, batch) batch + sum(pmax(theta$a, 0)))
    make(square, function(theta) if (theta$a > 0) 0 else -Inf)
    # a function that does something else on a tape
    make(function(theta, batch) (1 + is.complex(theta$a)) * batch * theta$a)
  })
  error <- tryCatch(
    make(function(theta, batch) if (theta$a > 0) batch * theta$a else batch),
    error = identity
  )
  expect_s3_class(error, "tall_error_input")
  expect_identical(error$argument, "log_lik")
  # without tapes, or with its gradient, it is as good as others
  uniform <- function(theta) if (theta$a > 0) 0 else -Inf
  expect_warning(
    make(square, uniform, autodiff = FALSE),
    class = "tall_warning_gradient"
  )
  model <- make(square, uniform, grad_log_prior = function(theta) 0)
  expect_identical(model$plan$log_lik, "tape")
})

test_that("counts by their mean have a tape", {
  mu <- function(theta, batch) exp(theta$b * batch$x)
  withr::local_seed(9)
  data <- data.frame(x = rnorm(50), y = rnbinom(50, 2, 0.3))
  make <- function(log_lik) {
    model_custom(
      log_lik,
      function(theta) dnorm(theta$b, log = TRUE),
      data,
      list(b = 0.5, size = 2),
      transform = list(size = "positive")
    )
  }
  by_mean <- make(function(theta, batch) {
    dnbinom(batch$y, size = theta$size, mu = mu(theta, batch), log = TRUE)
  })
  by_probability <- make(function(theta, batch) {
    p <- theta$size / (theta$size + mu(theta, batch))
    dnbinom(batch$y, theta$size, p, log = TRUE)
  })
  expect_identical(by_mean$plan$log_lik, "tape")
  expect_same_gradient(by_mean, by_probability, c(-0.3, 0.4))
})

test_that("where RTMB lacks a function, what it has is named", {
  expect_hint <- function(log_lik, hint) {
    expect_error(
      model_custom(
        log_lik,
        function(theta) dnorm(theta$a, log = TRUE),
        c(1, 2, 3),
        list(a = 0.5)
      ),
      hint,
      class = "tall_error_input"
    )
  }
  expect_hint(
    function(theta, batch) dgeom(batch, theta$a, log = TRUE),
    "no `dgeom\\(\\)`, but `dnbinom\\(x, 1, prob\\)`"
  )
  expect_hint(
    function(theta, batch) stats::pt(batch * theta$a, 3, log.p = TRUE),
    "no `pt\\(\\)`. It has `pbeta\\(\\)`.*`pnorm\\(\\)`"
  )
  # the innermost call is to blame
  expect_hint(
    function(theta, batch) {
      dnorm(batch, 0, 1, log = TRUE) + sum(0 * plnorm(batch, theta$a))
    },
    "at `plnorm\\(batch, theta\\$a\\)`.*`pnorm\\(log\\(q\\), meanlog, sdlog\\)`"
  )
  expect_hint(
    function(theta, batch) pgamma(batch, theta$a, log.p = TRUE),
    "`pgamma\\(\\)`, RTMB knows `q`.*`scale`, but not `log.p`"
  )
  expect_hint(
    function(theta, batch) dt(batch - theta$a, 4, theta$a, log = TRUE),
    "but not `ncp`"
  )
})

test_that("without RTMB the warning says what it would do", {
  data <- logistic_data()
  model <- suppressWarnings(
    logistic_custom(data$x, data$y, NULL, NULL, autodiff = FALSE)
  )
  expect_snapshot(warn_differences(model, TRUE))
})

test_that("an error while a tape is made stops the chain and says where", {
  data <- logistic_data()
  broken <- FALSE
  model <- model_custom(
    function(theta, batch) {
      if (broken) stop("no luck")
      batch$y * drop(batch$x %*% theta$beta)
    },
    function(theta) -sum(theta$beta^2),
    data,
    list(beta = c(0, 0))
  )
  broken <- TRUE
  expect_error(
    model_evaluate(model, c(0, 0), "likelihood"),
    "log_lik.*no luck",
    class = "tall_error_callback"
  )
  broken <- FALSE
  expect_true(all(is.finite(model_evaluate(model, c(0, 0))$gradient)))
})

test_that("a model that is made again on a worker has the same gradients", {
  data <- logistic_data()
  model <- logistic_custom(data$x, data$y, NULL, NULL)
  parts <- unserialize(serialize(custom_parts(model), NULL))
  again <- do.call(build_custom, parts)
  expect_identical(
    model_evaluate(again, c(1, 2))$gradient,
    model_evaluate(model, c(1, 2))$gradient
  )
})
