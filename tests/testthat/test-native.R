logistic_data <- function(n_data = 3000, n_dim = 5, seed = 1) {
  withr::local_seed(seed)
  x <- cbind(1, matrix(stats::rnorm(n_data * (n_dim - 1)), n_data))
  colnames(x) <- letters[seq_len(n_dim)]
  eta <- drop(x %*% seq(-1, 1, length.out = n_dim))
  list(x = x, y = stats::rbinom(n_data, 1, stats::plogis(eta)))
}

# The built-in model and its twin in C.
logistic_twins <- function(data = logistic_data()) {
  list(
    ours = native_logistic(data$x, data$y),
    built_in = model_glm(data$x, data$y, "bernoulli", prior_normal(0, 2.5))
  )
}

test_that("logistic.c has the gradient of model_glm()", {
  skip_without_compiler()
  twins <- logistic_twins()
  withr::local_seed(2)
  theta <- matrix(stats::rnorm(20), 5)
  ours <- model_evaluate(twins$ours, theta)
  theirs <- model_evaluate(twins$built_in, theta)
  expect_close(ours$gradient, theirs$gradient, tolerance = 1e-13)
  expect_close(ours$log_density, theirs$log_density, tolerance = 1e-13)
  at <- theta[, 1]
  for (type in c("gradient", "hessian", "leverage")) {
    expect_close(
      subsampling_weights(twins$ours, at, type),
      subsampling_weights(twins$built_in, at, type)
    )
  }
  modes <- lapply(twins, find_mode, method = "newton")
  expect_close(modes$ours$estimate, modes$built_in$estimate)
  expect_close(modes$ours$chol, modes$built_in$chol)
})

test_that("logistic.c has the draws of model_glm(), by every estimator", {
  skip_without_compiler()
  twins <- logistic_twins()
  mode <- find_mode(twins$built_in)
  settings <- list(
    simple = list(kernel_sgld(1e-4), gradient_simple()),
    corrected = list(
      kernel_sgld(1e-4, variant = "corrected"),
      gradient_cv(mode)
    ),
    cv = list(kernel_sgld(1e-4), gradient_cv(mode)),
    saga = list(kernel_sgld(1e-4), gradient_saga()),
    svrg = list(kernel_sgld(1e-4), gradient_svrg(refresh = 20)),
    barker = list(kernel_sgbd(0.02), gradient_simple()),
    mala = list(kernel_mala(1e-3), gradient_full())
  )
  for (name in names(settings)) {
    fits <- lapply(twins, function(model) {
      sg_sample(
        model,
        settings[[name]][[1]],
        settings[[name]][[2]],
        if (name != "mala") subsample_uniform(50),
        iter = 200,
        chains = 2,
        cores = if (identical(model, twins$ours)) 2 else 1,
        init = mode$estimate,
        seed = 4,
        refresh = 0
      )
    })
    expect_close(fits$ours$draws, fits$built_in$draws, name, tolerance = 1e-9)
  }
})

test_that("robust.c is sampled without tuning, as exactly as by MALA", {
  skip_on_cran()
  skip_without_compiler()
  withr::local_seed(5)
  n <- 8000
  x <- cbind(1, matrix(stats::rnorm(2 * n), n))
  y <- drop(x %*% c(1, -2, 0.5)) + 0.7 * stats::rt(n, 4)
  model <- native_robust(x, y)
  fit <- sg_sample(
    model,
    iter = 4000,
    chains = 4,
    cores = 2,
    seed = 1,
    refresh = 0
  )
  expect_match(kernel_traits(fit$kernel)$text, "Leimkuhler")
  exact <- sg_sample(
    model,
    kernel_mala(1e-4, adapt = TRUE),
    gradient_full(),
    iter = 4500,
    warmup = 500,
    init = find_mode(model)$estimate,
    chains = 4,
    cores = 2,
    seed = 2,
    refresh = 0
  )
  ours <- posterior::summarise_draws(fit$draws)
  theirs <- posterior::summarise_draws(exact$draws)
  expect_identical(ours$variable, c("x1", "x2", "x3", "sigma"))
  error <- sqrt(1 / ours$ess_bulk + 1 / theirs$ess_bulk)
  expect_lt(max(abs(ours$mean - theirs$mean) / theirs$sd / error), 4)
  # 2 percent of noise at most, sds of so many draws
  spread <- sqrt(0.5 / ours$ess_bulk + 0.5 / theirs$ess_bulk)
  expect_lt(max(abs(ours$sd / theirs$sd - 1) - 0.02 - 4 * spread), 0)
  expect_close(
    exp(fit$unconstrained[, , "log_sigma"]),
    plain_draws(fit)[, , "sigma"]
  )
})

test_that("numbers stored of rows stand beside a vector, or alone", {
  skip_without_compiler()
  withr::local_seed(21)
  x <- matrix(stats::rnorm(202), 101)
  draws <- function(model, gradient) {
    sg_sample(
      model,
      kernel_sgld(1e-3, variant = "corrected"),
      gradient,
      subsample_uniform(9),
      iter = 40,
      chains = 2,
      init = rep(0.5, model$n_dim),
      keep = c("draws", "gradients"),
      seed = 1,
      refresh = 0
    )[c("draws", "gradients")]
  }
  data <- list("two means" = x, "one mean" = x[, 1, drop = FALSE])
  for (name in names(data)) {
    at <- rep(0.1, ncol(data[[name]]))
    kind <- if (name == "two means") 9L else 10L
    stored <- native_mean(data[[name]], native_table(kind))
    plain <- native_mean(data[[name]])
    expect_identical(model_info(stored)$n_scalar, as.double(ncol(data[[name]])))
    for (gradient in list(
      gradient_cv(at),
      gradient_saga(at),
      gradient_simple()
    )) {
      found <- draws(stored, gradient)
      expected <- draws(plain, gradient)
      label <- paste(name, gradient$name)
      expect_close(found$draws, expected$draws, label, tolerance = 1e-12)
      expect_close(
        found$gradients,
        expected$gradients,
        label,
        tolerance = 1e-12
      )
    }
    theta <- matrix(stats::rnorm(2 * ncol(data[[name]])), ncol(data[[name]]))
    expect_close(
      model_evaluate(stored, theta)$gradient,
      model_evaluate(plain, theta)$gradient,
      name,
      tolerance = 1e-12
    )
  }
  u <- seq_len(101) * x[, 1]
  added <- call_native(native_fixture("native.c"), "native_added")
  expect_close(added, c(sum(u), sum(u^2)), tolerance = 1e-12)
})

test_that("robust.c draws the same with stored scalars and without", {
  skip_without_compiler()
  lines <- readLines(system.file("examples", "robust.c", package = "tallbayes"))
  lines <- lines[!grepl("^ *[.](n_scalar|add_scalar) =", lines)]
  lines <- sub("robust_model", "robust_vectors", lines, fixed = TRUE)
  path <- file.path(withr::local_tempdir(), "robust-vectors.c")
  # a function is left over
  quiet <- "#pragma GCC diagnostic ignored \"-Wunused-function\""
  writeLines(c(quiet, lines), path)
  withr::local_seed(8)
  x <- cbind(1, stats::rnorm(400))
  y <- x[, 1] - x[, 2] + stats::rt(400, 4)
  scalars <- native_robust(x, y)
  vectors <- native_robust(x, y, pointer = call_native(path, "robust_vectors"))
  expect_identical(model_info(scalars)$n_scalar, 2)
  expect_identical(model_info(vectors)$n_scalar, 0)
  mode <- find_mode(scalars)
  for (gradient in list(gradient_cv(mode), gradient_saga(mode))) {
    fits <- lapply(list(scalars, vectors), function(model) {
      sg_sample(
        model,
        kernel_sgld(1e-3, variant = "corrected"),
        gradient,
        subsample_uniform(20),
        iter = 300,
        chains = 2,
        init = mode$estimate,
        seed = 9,
        refresh = 0
      )
    })
    expect_close(fits[[1]]$draws, fits[[2]]$draws, tolerance = 1e-9)
  }
})

test_that("with nothing optional, models are sampled, resumed and watched", {
  skip_without_compiler()
  withr::local_seed(6)
  x <- matrix(stats::rnorm(600, 2), 300)
  model <- native_mean(x)
  expect_identical(model$variables, c("mu[1]", "mu[2]"))
  mean <- colSums(x) / 301
  expect_close(find_mode(model)$estimate, mean, tolerance = 1e-6)
  expect_error(sg_sample(model), class = "tall_error_unsupported")
  run <- function(cores, ...) {
    sg_sample(
      model,
      kernel_sgld(1e-3),
      ...,
      chains = 10,
      cores = cores,
      seed = 3,
      refresh = 0
    )
  }
  rows <- subsample_uniform(30)
  fit <- run(2, gradient_saga(), rows, iter = 1500, warmup = 500)
  again <- run(1, gradient_saga(), rows, iter = 1500, warmup = 500)
  expect_identical(fit$draws, again$draws)
  means <- chain_means(fit, identity)
  expect_mean(means[, 1], mean[[1]])
  expect_mean(means[, 2], mean[[2]])
  half <- run(2, gradient_cv(mean), rows, iter = 300, warmup = 100)
  whole <- run(2, gradient_cv(mean), rows, iter = 500, warmup = 100)
  expect_identical(sg_resume(half, iter = 200, refresh = 0)$draws, whole$draws)
  watched <- run(
    1,
    gradient_simple(),
    subsample_weighted(30, weights = "gradient"),
    iter = 200,
    monitor = list(every = 50, log_lik = monitor_log_lik(model))
  )
  expect_gt(nrow(watched$monitor), 0)
})

test_that("arrays come as they are: names, shapes and order", {
  expect_identical(
    check_named_init(list(a = 1, b = c(2, 3), w = diag(2))),
    c(a = 1, "b[1]" = 2, "b[2]" = 3, "w[1,1]" = 1, "w[2,1]" = 0,
      "w[1,2]" = 0, "w[2,2]" = 1)
  )
  expect_identical(check_named_init(c(a = 1L, b = 2L)), c(a = 1, b = 2))
})

test_that("C++ can make a table; what it made goes with the model", {
  skip_without_compiler()
  path <- native_fixture("native-cpp.cpp")
  compiled <- compile_native(path)
  if (is.character(compiled)) {
    skip(paste("C++ does not compile here:", compiled))
  }
  withr::local_seed(7)
  x <- matrix(stats::rnorm(60), 20)
  ours <- native_mean(x, call_native(path, "native_cpp_table"))
  theirs <- native_mean(x)
  theta <- stats::rnorm(3)
  expect_identical(model_evaluate(ours, theta), model_evaluate(theirs, theta))
  expect_identical(call_native(path, "native_cpp_alive"), 1L)
  rm(ours)
  gc()
  expect_identical(call_native(path, "native_cpp_alive"), 0L)
})

test_that("a model that was saved is stale", {
  skip_without_compiler()
  file <- withr::local_tempfile()
  saveRDS(native_mean(diag(3)), file)
  model <- readRDS(file)
  expect_error(find_mode(model), class = "tall_error_stale")
  expect_error(
    model_native(model$table, diag(3), c(a = 0)),
    class = "tall_error_input"
  )
})

test_that("a status that nobody knows stops the chain, not R", {
  skip_without_compiler()
  model <- native_mean(diag(3), native_table(8L))
  expect_error(
    sg_sample(
      model,
      kernel_sgld(1e-3),
      gradient_simple(),
      subsample_uniform(2),
      iter = 10,
      init = numeric(3),
      refresh = 0
    ),
    class = "tall_error_callback"
  )
})

test_that("what a model says of a point is heard wherever it is asked", {
  skip_without_compiler()
  points <- cbind(c(0, 0), c(3, 0), c(1, 0))
  plain <- model_evaluate(native_edgy(), points)
  parts <- list(prior = "prior", gradient = "likelihood")
  for (part in names(parts)) {
    model <- do.call(native_edgy, stats::setNames(list(2.5), part))
    for (asked in c("posterior", parts[[part]])) {
      expect_error(
        model_evaluate(model, points, asked),
        class = "tall_error_nonfinite"
      )
    }
    found <- model_evaluate(model, points, needs_finite = FALSE)
    expect_identical(found$log_density[-2], plain$log_density[-2])
    expect_identical(found$gradient[, -2], plain$gradient[, -2])
    expect_true(all(is.nan(c(found$log_density[[2]], found$gradient[, 2]))))
    failing <- do.call(
      native_edgy,
      stats::setNames(list(2.5, 4), c(part, "code"))
    )
    for (needs_finite in c(TRUE, FALSE)) {
      expect_error(
        model_evaluate(failing, points, needs_finite = needs_finite),
        class = "tall_error_memory"
      )
    }
  }
  model <- native_edgy(gradient = 2.5, log_lik = 1)
  draws <- t(points)
  colnames(draws) <- c("a", "b")
  expect_snapshot(ksd(draws, model), error = TRUE)
  fit <- suppressMessages(sg_sample(
    model,
    kernel_sgld(1e-3),
    gradient_full(),
    iter = 20,
    chains = 1,
    init = c(1.9, 1.9),
    seed = 1,
    refresh = 0
  ))
  expect_snapshot(rstantools::log_lik(fit), error = TRUE)
  expect_snapshot(log_loss(fit, model), error = TRUE)
  expect_error(
    row_log_lik(native_edgy(log_lik = 2.5, code = 4), points),
    class = "tall_error_memory"
  )
})

test_that("searches for a mode step back from what is not finite, or say so", {
  skip_without_compiler()
  mode <- c(a = 2 / 1.05, b = 2 / 1.05)
  x <- matrix(2, 20, 2)
  # the first step of Newton's method goes to 2 * mode
  found <- find_mode(native_edgy(gradient = 3, x = x), "newton")
  expect_equal(found$estimate, mode, tolerance = 1e-5)
  expect_true(found$converged)
  search <- function(method, edge) {
    find_mode(native_edgy(gradient = edge, x = x), method)
  }
  expect_snapshot(search("lbfgs", 0.5), error = TRUE)
  expect_snapshot(search("lbfgs", -1), error = TRUE)
  expect_error(search("newton", -1), class = "tall_error_improper")
  expect_error(search("adam", 0.01), class = "tall_error_nonfinite")
})

test_that("a chain at a point that is not finite says that the model is", {
  skip_without_compiler()
  run <- function(kernel, init = c(0, 0), ..., edge = 1.5) {
    sg_sample(
      native_edgy(gradient = edge),
      kernel,
      ...,
      iter = 200,
      warmup = 0,
      chains = 1,
      init = init,
      seed = 1,
      refresh = 0
    )
  }
  expect_snapshot(fit <- run(kernel_mala(0.05)))
  expect_snapshot(
    fit <- run(kernel_sgld(1e-2), gradient = gradient_full())
  )
  expect_snapshot(run(kernel_mala(0.05), init = c(3, -7)), error = TRUE)
  warning <- expect_warning(
    run(kernel_mala(0.05)),
    class = "tall_warning_nonfinite"
  )
  expect_null(warning$coordinate)
  expect_null(warning$value)
  # a step that runs away is another matter
  warning <- expect_warning(
    run(kernel_sgld(10), gradient = gradient_full(), edge = Inf),
    class = "tall_warning_nonfinite"
  )
  expect_true(warning$coordinate %in% c("a", "b"))
  expect_snapshot(
    sg_tune(
      native_edgy(gradient = 0.1),
      kernel_sgld(1),
      list(step_size = c(0.01, 0.02)),
      gradient = gradient_full(),
      budget = 1e5,
      covariance = NULL,
      init = c(0, 0),
      seed = 1,
      refresh = 0
    ),
    error = TRUE
  )
})

test_that("what is stored of rows, and cannot be put back, stops the chains", {
  skip_without_compiler()
  switch_failures <- function(on) {
    call_native(native_fixture("native.c"), "native_switch", on)
  }
  withr::defer(switch_failures(FALSE))
  model <- native_edgy()
  # the looks at the chains leave other numbers with the model
  look <- function(draw) {
    switch_failures(FALSE)
    sg_sample(
      model,
      kernel_sgld(1e-3),
      gradient_cv(at = c(1, 1)),
      subsample_uniform(5),
      iter = 10,
      chains = 1,
      seed = 1,
      refresh = 0
    )
    switch_failures(TRUE)
    0
  }
  expect_warning(
    fit <- sg_sample(
      model,
      kernel_sgld(1e-3),
      gradient_cv(at = c(0, 0)),
      subsample_uniform(5),
      iter = 40,
      warmup = 0,
      chains = 2,
      monitor = list(look = look, every = 10),
      seed = 1,
      refresh = 0
    ),
    class = "tall_warning_memory"
  )
  expect_identical(dim(fit$draws)[[1]], 10L)
})

test_that("tables, data and parameters that cannot be used are refused", {
  skip_without_compiler()
  table <- native_table()
  nowhere <- call_native(native_fixture("native.c"), "native_nowhere")
  x <- diag(2)
  expect_snapshot(error = TRUE, {
    model_native("a.so", x, c(a = 0))
    model_native(nowhere, x, c(a = 0))
    model_native(native_table(1L), x, c(a = 0))
    model_native(native_table(2L), x, c(a = 0))
    model_native(native_table(3L), x, c(a = 0))
    model_native(native_table(4L), x, c(a = 0))
    model_native(native_table(5L), x, c(a = 0))
    model_native(native_table(6L), x, c(a = 0))
    model_native(native_table(7L), x, c(a = 0, b = 0))
    model_native(table, init = c(a = 0))
    model_native(table, "a", c(a = 0))
    model_native(table, list(x), c(a = 0))
    model_native(table, data.frame(x), c(a = 0))
    model_native(table, list(x = x, y = 1:3), c(a = 0))
    model_native(table, list(x = x, y = c("a", "b")), c(a = 0))
    model_native(table, matrix(NA_real_, 2, 2), c(a = 0))
    model_native(table, x)
    model_native(table, x, c(0, 0))
    model_native(table, x, c(a = 0, a = 1))
    model_native(table, x, list(a = "zero"))
    model_native(table, x, list(a = c(0, NaN)))
    model_native(table, x, c(a = 0), constants = list(data = 1))
    model_native(table, x, c(a = 0), variables = "b")
    model_native(
      native_example("robust"),
      list(x = x, y = 1:2),
      c(a = 0, b = 0, log_sigma = 0)
    )
    native_robust(cbind(x, 1), 1:2, df = -1)
  })
})

test_that("a model prints its table's name", {
  skip_without_compiler()
  expect_snapshot(native_mean(diag(3)))
})

test_that("a model outlives its library without calling it", {
  skip_without_compiler()
  skip_on_os("windows")
  folder <- withr::local_tempdir()
  path <- file.path(folder, "leaves.c")
  lines <- readLines(
    system.file("examples", "logistic.c", package = "tallbayes")
  )
  lines <- sub("logistic_model", "leaves_model", lines, fixed = TRUE)
  include <- system.file("include", package = "tallbayes")
  build <- function(lines) {
    writeLines(lines, path)
    withr::with_envvar(
      c(PKG_CPPFLAGS = paste0("-I'", include, "'")),
      withr::with_dir(
        folder,
        tools::Rcmd(
          c("SHLIB", "--preclean", "leaves.c"),
          stdout = "log",
          stderr = "log"
        )
      )
    )
    dyn.load(sub("[.]c$", .Platform$dynlib.ext, path))
  }
  unload <- function() dyn.unload(sub("[.]c$", .Platform$dynlib.ext, path))
  withr::local_seed(3)
  x <- matrix(stats::rnorm(400), 200)
  y <- as.double(stats::runif(200) < 0.5)
  make <- function(library) {
    pointer <- .Call(getNativeSymbolInfo("leaves_model", library)$address)
    model_native(
      pointer,
      list(x = x, y = y),
      c(a = 0, b = 0),
      list(prior_sd = 2)
    )
  }
  model <- make(build(lines))
  fit <- sg_sample(model, iter = 20, chains = 1, seed = 1, refresh = 0)
  unload()
  expect_lost <- function() {
    expect_error(
      find_mode(model),
      "compiled functions",
      class = "tall_error_stale"
    )
    expect_error(sg_resume(fit, 10, refresh = 0), class = "tall_error_stale")
  }
  expect_lost()
  expect_output(print(model), "compiled functions are lost")
  # other code, most likely at the same place
  one <- "square += v_theta[j] * v_theta[j];"
  other <- paste(
    "square += v_theta[j] > 9 ? v_theta[j] / v_gradient[j]",
    ": v_theta[j] * v_theta[j];"
  )
  again <- make(build(sub(one, other, lines, fixed = TRUE)))
  expect_lost()
  expect_true(all(is.finite(find_mode(again)$estimate)))
  rm(model, fit)
  gc() # destroy() of the first library is not called
  expect_true(model_is_alive(again))
  rm(again)
  gc()
  unload()
})
