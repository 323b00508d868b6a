test_that("draws are those of the same model in C, whatever runs", {
  data <- logistic_data()
  built_in <- model_glm(data$x, data$y, prior = prior_normal(0, 2))
  own <- logistic_custom(data$x, data$y)
  at <- c(0.4, -0.2)
  for (kernel in conformance_kernels()) {
    for (gradient in conformance_gradients()) {
      if (!kernel_takes(kernel, gradient) || isTRUE(kernel$draws_rows)) {
        next
      }
      scheme <- if (gradient$uses_rows) subsample_uniform(6)
      label <- paste(kernel$name, kernel$variant, gradient$name)
      # Hessians of rows are differences of gradients there
      tolerance <- if (gradient$name == "cv2") 1e-5 else 1e-8
      expect_same_run(
        own, built_in, label, tolerance,
        kernel$make(0.05), gradient$make(at), scheme, init = at
      )
    }
  }
})

test_that("weighted, optimal and gradient-weighted minibatches are the same", {
  data <- logistic_data()
  built_in <- model_glm(data$x, data$y, prior = prior_normal(0, 2))
  own <- logistic_custom(data$x, data$y)
  at <- c(0.4, -0.2)
  schemes <- list(
    subsample_weighted(6, rep(1:3, 20)),
    subsample_weighted(6, "gradient"),
    subsample_optimal(6)
  )
  for (scheme in schemes) {
    run <- function(model) {
      sg_sample(
        model,
        kernel_sgld(0.05, "corrected"),
        gradient_cv(at),
        scheme,
        iter = 12,
        chains = 2,
        init = at,
        seed = 3,
        refresh = 0
      )$draws
    }
    expect_close(run(own), run(built_in), scheme$name, tolerance = 1e-8)
  }
})

test_that("the mode is that of Newton's method, its Hessian counted", {
  data <- logistic_data()
  expected <- find_mode(model_glm(data$x, data$y, prior = prior_normal(0, 2)))
  model <- logistic_custom(data$x, data$y)
  for (method in c("lbfgs", "newton")) {
    mode <- find_mode(model, method)
    expect_close(mode$estimate, expected$estimate, method, tolerance = 1e-6)
    expect_close(vcov(mode), vcov(expected), method, tolerance = 1e-6)
  }
  evaluations <- nrow(find_mode(model, "lbfgs")$trace)
  # the Hessians at the start and at the end
  expect_identical(find_mode(model, "lbfgs")$passes, evaluations + 10)
})

test_that("the recipe samples a model with transforms", {
  skip_on_cran()
  withr::local_seed(12)
  n <- 2500
  y <- stats::rexp(n, 2)
  model <- model_custom(
    function(theta, batch) log(theta$rate) - theta$rate * batch,
    # Gamma(3, 1), so that the posterior is Gamma(3 + n, 1 + sum(y))
    function(theta) 2 * log(theta$rate) - theta$rate,
    y,
    list(rate = 1),
    function(theta, batch) 1 / theta$rate - batch,
    function(theta) 2 / theta$rate - 1,
    list(rate = "positive")
  )
  fit <- sg_sample(
    model,
    iter = 300,
    warmup = 50,
    chains = 8,
    seed = 2,
    refresh = 0
  )
  expect_identical(fit$kernel$name, "sgld")
  expect_identical(dimnames(fit$draws)$variable, "rate")
  expect_identical(dimnames(fit$unconstrained)[[3]], "log_rate")
  expect_close(log(unclass(fit$draws)), fit$unconstrained)
  shape <- 3 + n
  mean <- shape / (1 + sum(y))
  draws <- unclass(fit$draws)[, , 1]
  expect_mean(colMeans(draws), mean, "mean")
  expect_mean(colMeans((draws - mean)^2), mean^2 / shape, "variance")
})

test_that("a run that goes on is the run that was not stopped", {
  data <- logistic_data()
  model <- logistic_custom(data$x, data$y)
  run <- function(iter) {
    sg_sample(
      model,
      kernel_sghmc(0.05, friction = 0.5),
      gradient_saga(),
      subsample_uniform(6),
      iter = iter,
      warmup = 5,
      chains = 2,
      init = c(0, 0),
      seed = 5,
      refresh = 0
    )
  }
  path <- withr::local_tempfile()
  saveRDS(run(10), path)
  again <- sg_resume(
    readRDS(path),
    10,
    model = logistic_custom(data$x, data$y),
    refresh = 0
  )
  expect_identical(unclass(again$draws), unclass(run(20)$draws))
  expect_error(
    sg_resume(
      readRDS(path),
      10,
      model = logistic_custom(data$x, 1 - data$y),
      refresh = 0
    ),
    class = "tall_error_input"
  )
})

test_that("an error in a run stops its chain, keeps draws and says where", {
  data <- logistic_data()
  count <- 0
  fails <- function(theta, batch) {
    count <<- count + 1
    if (count == 121) stop("out of {luck}")
    logistic_rows(theta, batch)
  }
  model <- logistic_custom(data$x, data$y, fails, check = FALSE)
  count <- 0
  found <- with_warnings(short_sgld(model))
  fit <- found$value
  expect_length(found$warnings, 1)
  warning <- found$warnings[[1]]
  expect_s3_class(warning, "tall_warning_callback")
  failed <- warning$chain
  expect_identical(which(fit$chains$status == "callback"), failed)
  expect_identical(dim(fit$draws), c(90L, 2L, 2L))
  stopped <- fit$stopped[[paste0("chain", failed)]]
  expect_identical(nrow(stopped), as.integer(warning$iteration) - 11L)
  error <- warning$parent
  expect_s3_class(error, "tall_error_callback")
  expect_match(conditionMessage(error), "grad_log_lik.*out of \\{luck\\}")
  # the draw before it, from which the step was made
  expect_lt(max(abs(error$theta$beta - stopped[nrow(stopped), ])), 1)
  # it fails once only
  expect_identical(dim(sg_resume(fit, 10)$draws), c(100L, 3L, 2L))
})

test_that("a function that returns no numbers, or too few, is told its place", {
  data <- logistic_data()
  count <- 0
  at <- Inf
  later <- function(bad) {
    function(theta, batch) {
      count <<- count + 1
      if (count == at) bad(batch) else logistic_rows(theta, batch)
    }
  }
  run <- function(bad) {
    at <<- Inf
    model <- logistic_custom(data$x, data$y, later(bad), check = FALSE)
    count <<- 0
    at <<- 160
    found <- with_warnings(short_sgld(model, chains = 2))
    expect_length(found$warnings, 1)
    list(fit = found$value, warning = found$warnings[[1]])
  }
  bad <- list(
    "one number" = function(batch) 1,
    "wrong shape" = function(batch) t(batch$x),
    "wrong length" = function(batch) list(beta = batch$x[-1, ]),
    "nothing" = function(batch) NULL,
    "NA" = function(batch) NA * batch$x,
    "a NaN" = function(batch) replace(batch$x, 3, NaN)
  )
  for (name in names(bad)) {
    found <- run(bad[[name]])
    w <- found$warning
    kind <- if (name %in% c("NA", "a NaN")) "nonfinite" else "callback"
    expect_s3_class(w, paste0("tall_warning_", kind))
    status <- found$fit$chains$status
    expect_setequal(unique(status), c("ok", kind))
    failed <- which(status == kind)
    expect_identical(w$chain, failed, info = name)
    expect_identical(dim(found$fit$draws), c(90L, 1L, 2L), info = name)
    stopped <- found$fit$stopped[[1]]
    expect_identical(nrow(stopped), as.integer(w$iteration) - 11L, info = name)
    expect_s3_class(w$parent, "tall_error_callback")
    expect_match(conditionMessage(w$parent), "`grad_log_lik()`", fixed = TRUE)
    # one step on from the last draw
    last <- stopped[nrow(stopped), ]
    expect_lt(max(abs(w$parent$theta$beta - last)), 1)
    expect_false(identical(w$parent$theta$beta, unname(last)))
  }
  expect_match(
    conditionMessage(run(bad[["NA"]])$warning),
    paste0(
      "gradient in `beta\\[1\\]` became NA.*",
      "`grad_log_lik\\(\\)` failed: it, or its"
    )
  )
})

test_that("proposals where the likelihood is no number are rejected in words", {
  data <- logistic_data()
  bounded <- function(value, is_out = function(beta) beta[[1]] < 0.5) {
    model_custom(
      function(theta, batch) {
        eta <- drop(batch$x %*% theta$beta)
        out <- batch$y * eta - log1p(exp(eta))
        if (is_out(theta$beta)) value + out else out
      },
      function(theta) 0,
      data,
      list(beta = c(1, 0)),
      logistic_rows,
      function(theta) c(0, 0),
      check = FALSE
    )
  }
  run <- function(value) {
    sg_sample(
      bounded(value),
      kernel_mala(0.2),
      iter = 200,
      warmup = 0,
      chains = 2,
      init = c(0.7, 0),
      seed = 1,
      refresh = 0
    )
  }
  expect_warning(fit <- run(NaN), class = "tall_warning_callback")
  expect_true(all(fit$chains$status == "ok"))
  expect_gt(sum(fit$chains$nonfinite), 0)
  expect_gt(min(fit$draws[, , "beta[1]"]), 0.5)
  expect_no_warning(same <- run(-Inf))
  expect_identical(unclass(same$draws), unclass(fit$draws))
  error <- expect_error(
    find_mode(bounded(NaN), init = c(0, 0)),
    class = "tall_error_improper"
  )
  expect_s3_class(error$parent, "tall_error_callback")
  error <- expect_error(
    find_mode(
      bounded(NaN, function(beta) abs(beta[[1]] - 0.5) < 0.45),
      init = c(0, 0)
    ),
    class = "tall_error_nonfinite"
  )
  expect_gt(error$parent$theta$beta[[1]], 0.1)
  expect_error(
    sg_sample(bounded(NaN), kernel_mala(0.2), init = c(0, 0), refresh = 0),
    class = "tall_error_nonfinite"
  )
})

test_that("an error elsewhere is the user's, worded, and the model lives on", {
  data <- logistic_data()
  broken <- FALSE
  fails <- function(theta, batch) {
    if (broken) stop("no luck")
    logistic_rows(theta, batch)
  }
  model <- logistic_custom(data$x, data$y, fails)
  calls <- list(
    function() find_mode(model),
    function() subsampling_weights(model, c(0, 0), "gradient"),
    function() sg_sample(model, kernel_sgld(0.01), chains = 1, refresh = 0),
    function() model_evaluate(model, c(0, 0)),
    function() curvature(model, c(0, 0))
  )
  for (call in calls) {
    broken <- TRUE
    error <- expect_error(call(), "no luck", class = "tall_error_callback")
    expect_identical(names(error$theta), "beta")
    broken <- FALSE
    expect_true(all(is.finite(model_evaluate(model, c(0, 0))$gradient)))
  }
})

test_that("an interrupt takes back the slice and lets the run go on", {
  data <- logistic_data()
  at <- Inf
  count <- 0
  stops <- function(theta, batch) {
    count <<- count + 1
    if (count == at) {
      # what Ctrl-C does
      rlang::interrupt()
    }
    logistic_rows(theta, batch)
  }
  model <- logistic_custom(data$x, data$y, stops)
  run <- function() {
    sg_sample(
      model,
      kernel_sghmc(0.05, friction = 0.5),
      gradient_simple(),
      subsample_uniform(6),
      iter = 200,
      warmup = 0,
      chains = 2,
      init = c(0, 0),
      seed = 5,
      refresh = 0
    )
  }
  whole <- run()
  count <- 0
  at <- 100
  expect_warning(part <- run(), class = "tall_warning_interrupted")
  expect_true(all(part$chains$status == "ok"))
  n <- nrow(part$draws)
  expect_lt(n, 200)
  at <- Inf
  rest <- sg_resume(part, refresh = 0)
  expect_identical(unclass(rest$draws), unclass(whole$draws))
})

test_that("everything around a run does what it does with the model in C", {
  skip_on_cran()
  withr::local_options(tallbayes.refresh = 0)
  data <- logistic_data(3000)
  built_in <- model_glm(data$x, data$y, prior = prior_normal(0, 2))
  own <- logistic_custom(data$x, data$y)
  at <- c(0.9, 0)
  cv <- gradient_cv(at)
  minibatch <- subsample_uniform(50)
  held_out <- list(
    model_glm(data$x[1:30, ], data$y[1:30]),
    logistic_custom(data$x[1:30, ], data$y[1:30])
  )
  run <- function(model) {
    is_own <- inherits(model, "tall_model_custom")
    sg_sample(
      model,
      kernel_sgld(1e-3),
      cv,
      minibatch,
      iter = 60,
      chains = 2,
      init = at,
      seed = 1,
      monitor = list(
        every = 10,
        held_out = monitor_log_lik(held_out[[1 + is_own]]),
        loss = monitor_log_loss(held_out[[1 + is_own]]),
        mine = function(theta) theta[[1]]
      ),
      keep = c("draws", "gradients"),
      refresh = 0
    )
  }
  grid <- list(step_size = 10^(-5:-3), size = c(20, 60))
  tune <- function(metric) {
    function(model) {
      race <- sg_tune(
        model,
        kernel_sgld,
        grid,
        metric,
        budget = 2e5,
        gradient = cv,
        subsample = minibatch,
        covariance = diag(2) / 500,
        init = at,
        seed = 1,
        refresh = 0
      )
      race$rungs[c("arm", "iterations", "gradients", "score", "survived")]
    }
  }
  calls <- list(
    pseudo_variance = function(m) {
      list(
        pseudo_variance(m, c(1, 0.1), cv, minibatch),
        pseudo_variance(
          m,
          c(1, 0.1),
          cv,
          minibatch,
          "monte_carlo",
          50,
          seed = 1
        )
      )
    },
    adam = function(m) withr::with_seed(1, find_mode(m, "adam")$estimate),
    ksd = tune("ksd"),
    fssd = tune("fssd"),
    fit = function(m) {
      fit <- run(m)
      bias <- bias_check(fit, seed = 3, refresh = 0)
      list(
        fit$monitor$value,
        withr::with_seed(1, fssd(fit)),
        ksd(fit),
        zero_variance(fit),
        zero_variance(fit, gradient = "full"),
        noise_tolerance(fit)[-1],
        bias$table[-1],
        log_loss(fit, held_out[[1 + inherits(m, "tall_model_custom")]])
      )
    }
  )
  # the coordinates have other names
  numbers <- function(x) as.numeric(unlist(x))
  for (name in names(calls)) {
    expect_close(
      numbers(calls[[name]](own)),
      numbers(calls[[name]](built_in)),
      name,
      tolerance = 1e-6
    )
  }
  for (call in list(
    function() lipschitz(own),
    function() noise_threshold(own, kernel_sgbd(0.01), 50, at = at),
    function() subsampling_weights(own, at, "lipschitz"),
    function() {
      sg_sample(own, kernel_sgld(1e-3), subsample = subsample_adaptive(1))
    },
    function() rstantools::prior_summary(run(own)),
    function() fitted(run(own))
  )) {
    expect_error(call(), class = "tall_error_unsupported")
  }
})

test_that("a fit from a file prints, and its model says that it is gone", {
  data <- logistic_data()
  fit <- sg_sample(
    logistic_custom(data$x, data$y),
    kernel_sgld(0.01),
    iter = 40,
    chains = 2,
    seed = 1,
    refresh = 0
  )
  path <- withr::local_tempfile()
  saveRDS(fit, path)
  again <- readRDS(path)
  expect_identical(
    utils::capture.output(print(again)),
    utils::capture.output(print(fit))
  )
  expect_identical(summary(again)$table, summary(fit)$table)
  expect_output(print(again$model), "its data are lost")
  for (call in list(
    function() find_mode(again$model),
    function() sg_sample(again$model, kernel_sgld(0.01)),
    function() sg_resume(again, 10),
    function() ksd(again),
    function() bias_check(again)
  )) {
    expect_error(call(), class = "tall_error_stale")
  }
})

test_that("draws on the natural scale are named as posterior names them", {
  entry <- entry_custom_transforms()
  model <- entry$model
  expect_identical(
    model$variables,
    c("mu[1]", "mu[2]", "sigma", "p", "w[1]", "w[2]", "w[3]")
  )
  expect_identical(
    model$coordinates,
    c("mu[1]", "mu[2]", "log_sigma", "logit_p", "stick_w[1]", "stick_w[2]")
  )
  expect_identical(custom_names(list(B = matrix(0, 2, 2)))[[3]], "B[1,2]")
  # init comes back from the coordinates it was turned into
  fit <- sg_sample(
    model,
    kernel_sgld(1e-12),
    gradient_simple(),
    subsample_uniform(4),
    iter = 2,
    warmup = 0,
    chains = 1,
    init = model$start,
    seed = 1,
    refresh = 0
  )
  expect_close(
    fit$draws[1, 1, ],
    c(0, 0, 1.5, 0.4, 0.2, 0.3, 0.5),
    tolerance = 1e-4
  )
})

test_that("ksd and zero variance take gradients in the coordinates", {
  entry <- entry_custom_transforms()
  fit <- sg_sample(
    entry$model,
    kernel_mala(0.02),
    iter = 300,
    chains = 2,
    seed = 1,
    keep = c("draws", "gradients"),
    refresh = 0
  )
  expect_true(is.finite(ksd(fit)))
  better <- zero_variance(fit)
  expect_identical(posterior::variables(better), entry$model$variables)
  expect_true(all(is.finite(better)))
})

test_that("data may be a matrix, a vector, a data frame or a list", {
  x <- matrix(c(1:6, 2.5, 0), 4, dimnames = list(letters[1:4], c("u", "v")))
  seen <- NULL
  look <- function(data, f) {
    model_custom(
      function(theta, batch) {
        seen <<- batch
        f(batch) * theta$a
      },
      function(theta) -theta$a^2,
      data,
      list(a = 1),
      function(theta, batch) f(batch),
      function(theta) -2 * theta$a
    )
  }
  batch_of <- function(model, index) {
    .Call(ffi_model_log_lik, model$pointer, 1, index)
    seen
  }
  expect_identical(
    batch_of(look(x, function(b) b[, "v"]), c(3, 1, 3)),
    unname(x[c(3, 1, 3), ]) +
      matrix(0, 3, 2, dimnames = list(NULL, c("u", "v")))
  )
  expect_identical(batch_of(look(x[, 1], identity), 2), 2)
  frame <- data.frame(
    v = x[, 2],
    f = factor(c("p", "q", "p", "q")),
    s = c("a", "b", "c", "d")
  )
  frame$m <- unname(x)
  taken <- frame[c(4, 2), ]
  rownames(taken) <- NULL
  expect_identical(batch_of(look(frame, function(b) b$v), c(4, 2)), taken)
  listed <- list(v = x[, 2], a = array(1:24, 4:2))
  expect_identical(
    batch_of(look(listed, function(b) b$v), c(4, 2))$a,
    listed$a[c(4, 2), , ]
  )
})

test_that("rows come in their places, however many and wherever from", {
  n <- 700
  x <- matrix(as.double(seq_len(n * 9)), n)
  data <- list(
    x = x,
    k = seq_len(n),
    l = seq_len(n) %% 3 == 0,
    m = x[, 1:3] > 1000
  )
  seen <- NULL
  model <- model_custom(
    function(theta, batch) {
      seen <<- batch
      batch$k * theta$a
    },
    function(theta) 0,
    data,
    list(a = 1),
    function(theta, batch) as.double(batch$k),
    function(theta) 0
  )
  withr::local_seed(7)
  for (size in c(1, 7, 8, 9, 64, 500, 500, 333)) {
    at <- sample(n, size, TRUE)
    .Call(ffi_model_log_lik, model$pointer, 1, as.double(at))
    taken <- list(
      x = x[at, , drop = FALSE],
      k = at,
      l = data$l[at],
      m = data$m[at, , drop = FALSE]
    )
    expect_identical(seen, taken)
  }
  expect_identical(custom_parts(model)$data$value$x, t(x))
})

test_that("vectors of doubles are taken together, others beside them", {
  n <- 600
  data <- data.frame(
    u = as.double(seq_len(n)),
    k = rev(seq_len(n)),
    v = seq_len(n) / 7,
    s = as.character(seq_len(n)),
    d = as.Date("2020-01-01") + seq_len(n)
  )
  data$m <- matrix(as.double(seq_len(2 * n)), n)
  seen <- NULL
  own <- function(data) {
    model_custom(
      function(theta, batch) {
        seen <<- batch
        batch$v * theta$a
      },
      function(theta) 0,
      data,
      list(a = 1),
      function(theta, batch) batch$v,
      function(theta) 0
    )
  }
  withr::local_seed(7)
  for (form in list(data, as.list(data))) {
    model <- own(form)
    for (size in c(1, 7, 8, 17, 500)) {
      at <- sample(n, size, TRUE)
      .Call(ffi_model_log_lik, model$pointer, 1, as.double(at))
      taken <- data[at, ]
      rownames(taken) <- NULL
      expect_identical(seen, if (is.data.frame(form)) taken else as.list(taken))
    }
  }
  # three vectors of doubles once more
  copied <- model_info(own(data))$memory - model_info(own(data[-1]))$memory
  expect_gte(copied, 2 * 8 * n)
})

test_that("tapes read some vectors of the data, in any order", {
  skip_if_not_installed("RTMB", "2.0")
  withr::local_seed(3)
  data <- data.frame(z = stats::rnorm(90), k = sample(3L, 90, TRUE))
  data[c("x", "unused", "y")] <- matrix(stats::rnorm(270), 90)
  model <- model_custom(
    function(theta, batch) {
      -0.5 * (batch$y - theta$a * batch$x - batch$k * exp(theta$b * batch$z))^2
    },
    function(theta) -theta$a^2 - theta$b^2,
    data,
    list(a = 0.5, b = 0.2)
  )
  rows <- c(5, 88, 5, 31)
  batch <- data[rows, ]
  bent <- batch$k * exp(-0.3 * batch$z)
  e <- batch$y - 0.7 * batch$x - bent
  found <- model_evaluate(model, c(0.7, -0.3), "likelihood", index = rows)
  expect_close(
    drop(found$gradient),
    c(sum(e * batch$x), sum(e * bent * batch$z)),
    tolerance = 1e-12
  )
})

test_that("a batch that a function keeps, whole or in part, stays as it was", {
  data <- logistic_data()
  held <- whole <- copies <- list()
  change <- function(batch) {
    batch$y[] <- 0
    batch$x[1, ] <- NA
    batch
  }
  keeps <- function(theta, batch) {
    k <- length(copies) + 1
    copies[[k]] <<- batch$x + 0
    if (k %% 3 == 1) held[[k]] <<- batch$x
    if (k %% 3 == 2) whole[[k]] <<- batch
    change(batch)
    logistic_rows(theta, batch)
  }
  run <- function(model) {
    sg_sample(
      model,
      kernel_sgld(0.01),
      gradient_simple(),
      subsample_uniform(6),
      iter = 30,
      warmup = 0,
      chains = 1,
      init = c(0, 0),
      seed = 1,
      refresh = 0
    )$draws
  }
  model <- logistic_custom(data$x, data$y, keeps, check = FALSE)
  held <- whole <- copies <- list()
  draws <- run(model)
  expect_identical(draws, run(logistic_custom(data$x, data$y)))
  expect_identical(length(unique(copies)), length(copies))
  for (k in seq_along(copies)) {
    kept <- if (k %% 3 == 1) held[[k]] else if (k %% 3 == 2) whole[[k]]$x
    if (!is.null(kept)) expect_identical(kept, copies[[k]])
  }
})

test_that("batches that nobody keeps are written over", {
  data <- logistic_data()
  places <- character()
  looks <- function(theta, batch) {
    places <<- c(places, rlang::obj_address(batch$x))
    logistic_rows(theta, batch)
  }
  model <- logistic_custom(data$x, data$y, looks, check = FALSE)
  places <- character()
  for (k in 1:20) {
    model_evaluate(model, c(0, 0), index = 1:6 + k)
  }
  expect_lt(length(unique(places)), 5)
})

test_that("the rows of a minibatch are asked for together", {
  data <- logistic_data(200)
  sizes <- integer()
  counts <- function(theta, batch) {
    sizes <<- c(sizes, length(batch$y))
    logistic_rows(theta, batch)
  }
  model <- logistic_custom(data$x, data$y, counts)
  run <- function(gradient, subsample = subsample_uniform(6)) {
    sizes <<- integer()
    sg_sample(
      model,
      kernel_sgld(0.01),
      gradient,
      subsample,
      iter = 10,
      warmup = 0,
      chains = 1,
      init = c(0, 0),
      seed = 1,
      refresh = 0
    )
    sizes
  }
  # the table, then the gradient where the chain starts and after each step
  expect_identical(run(gradient_saga()), c(200L, rep(6L, 11)))
  expect_identical(run(gradient_simple()), rep(6L, 11))
  expect_identical(run(gradient_cv(c(1, 1))), c(200L, rep(6L, 22)))
  optimal <- run(gradient_saga(), subsample_optimal(6))
  expect_identical(sort(unique(optimal)), c(6L, 200L))
})

test_that("values of other types and forms are what they say", {
  own <- function(value, prior_value) {
    model_custom(
      function(theta, batch) -batch * theta$a - batch * sum(theta$b),
      function(theta) -3L * as.integer(sum(theta$b)),
      c(1, 2, 3),
      list(a = 2, b = c(1, 5)),
      function(theta, batch) value(-batch),
      function(theta) prior_value(c(0, -3, -3)),
      check = FALSE
    )
  }
  forms <- list(
    matrix = function(v) cbind(v, v, v),
    integers = function(v) matrix(as.integer(c(v, v, v)), length(v)),
    list = function(v) list(a = v, b = cbind(v, v)),
    "other order" = function(v) list(b = c(v, v), more = "x", a = v),
    "integer list" = function(v) list(a = as.integer(v), b = cbind(v, v))
  )
  prior_forms <- list(
    vector = identity,
    integers = as.integer,
    list = function(v) list(a = v[[1]], b = v[2:3]),
    "other order" = function(v) list(b = as.integer(v[2:3]), a = v[[1]]),
    names = function(v) c(x = v[[1]], y = v[[2]], z = v[[3]]),
    row = function(v) matrix(v, 1)
  )
  expect_gradient <- function(model, label) {
    here <- model_evaluate(model, c(2, 1, 5), index = c(1, 3, 3))
    expect_identical(drop(here$gradient), c(-7, -10, -10), info = label)
    expect_identical(here$log_density, -7 * 8 - 18, info = label)
    expect_identical(drop(
      model_evaluate(model, c(2, 1, 5), index = 2)$gradient
    ),
      c(-2, -5, -5),
      info = label
    )
  }
  for (name in names(forms)) {
    expect_gradient(own(forms[[name]], identity), name)
  }
  for (name in names(prior_forms)) {
    expect_gradient(
      own(forms$matrix, prior_forms[[name]]),
      paste("prior", name)
    )
  }
})

test_that("an error that a function catches itself is no error", {
  data <- logistic_data()
  catches <- function(theta, batch) {
    tryCatch(stop("never mind"), error = identity)
    try(log("a"), silent = TRUE)
    logistic_rows(theta, batch)
  }
  model <- logistic_custom(data$x, data$y, catches)
  exact <- logistic_custom(data$x, data$y)
  expect_identical(
    model_evaluate(model, c(1, 2)),
    model_evaluate(exact, c(1, 2))
  )
  expect_length(model$state$errors, 0)
})

test_that("bad input is refused in words", {
  data <- logistic_data()
  ll <- function(theta, batch) batch * theta$a
  lp <- function(theta) 0
  own <- function(...) {
    arguments <- list(
      log_lik = ll,
      log_prior = lp,
      data = c(1, 2, 3),
      init = list(a = 1),
      grad_log_lik = function(theta, batch) batch,
      grad_log_prior = function(theta) 0
    )
    given <- list(...)
    arguments[names(given)] <- given
    do.call(model_custom, arguments)
  }
  expect_s3_class(own(), "tall_model")
  expect_snapshot(error = TRUE, {
    own(log_lik = function(theta, batch) 1)
    own(log_lik = function(theta, batch) "a")
    own(log_lik = function(theta, batch) nonsense)
    own(log_lik = function(theta) 1)
    own(data = c(1, NA, 3))
    own(data = list(u = 1:3, v = matrix(0, 4, 2)))
    own(data = list(1, 2))
    own(data = list(u = list(1)))
    own(init = list(1))
    own(init = list(a = "b"))
    own(grad_log_lik = function(theta, batch) cbind(batch, batch))
    own(grad_log_lik = function(theta, batch) list(b = batch))
    own(grad_log_lik = function(theta, batch) 2 * batch)
    own(grad_log_prior = function(theta) c(0, 0))
    own(grad_log_prior = function(theta) list(a = 1))
    own(log_prior = function(theta) -Inf)
    own(transform = list(b = "positive"))
    own(transform = list(a = "negative"))
    own(transform = list(a = "unit"))
    own(transform = list(a = "simplex"))
    own(init = list(a = -1), transform = list(a = "positive"))
  })
  expect_s3_class(
    own(grad_log_lik = function(theta, batch) 2 * batch, check = FALSE),
    "tall_model"
  )
})

test_that("central differences warn, and agree with the formula", {
  data <- logistic_data()
  expect_warning(
    model <- logistic_custom(data$x, data$y, NULL, NULL, autodiff = FALSE),
    class = "tall_warning_gradient"
  )
  exact <- logistic_custom(data$x, data$y)
  at <- c(0.3, -1)
  expect_close(
    model_evaluate(model, at)$gradient,
    model_evaluate(exact, at)$gradient,
    tolerance = 1e-7
  )
  expect_close(
    subsampling_weights(model, at, "gradient"),
    subsampling_weights(exact, at, "gradient"),
    tolerance = 1e-7
  )
})

test_that("a model prints what it is", {
  data <- logistic_data()
  expect_snapshot(print(logistic_custom(data$x, data$y)))
  expect_snapshot(print(entry_custom_transforms()$model))
})
