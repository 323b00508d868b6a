# Fits and specs from a file or of a user's own making: classed errors only, of
# every field of every kernel, estimator, scheme and schedule. How many of them:
# see fuzz_factor().

fuzz_model <- function() example_model(data = example_data(60))

fuzz_fit <- function(..., model = fuzz_model()) {
  suppressWarnings(sg_sample(
    model,
    ...,
    iter = 12,
    warmup = 4,
    chains = 2,
    seed = 1,
    refresh = 0
  ))
}

kernels <- conformance_kernels()
named <- vapply(kernels, function(entry) entry$name, "")
first <- tapply(names(kernels), named, function(labels) labels[[1]])

for (label in names(kernels)) {
  entry <- kernels[[label]]

  test_that(paste0(label, ": damaged fits are told"), {
    model <- fuzz_model()
    fit <- fuzz_fit(
      model = model,
      entry$make(1e-3),
      gradient = entry$gradient,
      subsample = entry$subsample
    )
    path <- withr::local_tempfile()
    saveRDS(fit, path)
    fit <- readRDS(path)
    uses <- fit_uses(model)
    all <- damages(fit)
    expect_survives(fit, uses$resume, share = 12, all = all)
    # what looks at a fit sees the kernel, not its variant
    for (use in if (label == first[[entry$name]]) uses[-1]) {
      expect_survives(fit, use, share = 4, all = all)
    }
  })

  test_that(paste0(label, ": damaged kernels are told"), {
    use <- function(kernel) {
      fuzz_fit(kernel, gradient = entry$gradient, subsample = entry$subsample)
    }
    expect_survives(entry$make(1e-3), use, share = 3)
  })
}

# ---- the other families ------------------------------------------------------

# As it comes out of a file.
from_file <- function(fit) {
  path <- withr::local_tempfile()
  saveRDS(fit, path)
  readRDS(path)
}

test_that("damaged fits of every estimator are told", {
  model <- fuzz_model()
  at <- find_mode(model)
  for (entry in conformance_gradients()) {
    fit <- fuzz_fit(
      model = model,
      kernel_sgld(1e-3, "corrected"),
      gradient = entry$make(at),
      subsample = if (entry$uses_rows) subsample_uniform(6)
    )
    expect_survives(from_file(fit), fit_uses(model)$resume, share = 20)
  }
})

test_that("damaged fits of every scheme are told", {
  model <- subsample_model()
  for (entry in conformance_subsamples(model)) {
    fit <- fuzz_fit(
      model = model,
      kernel_sgld(1e-3),
      gradient = gradient_cv(at = numeric(model$n_dim)),
      subsample = entry$spec
    )
    expect_survives(from_file(fit), fit_uses(model)$resume, share = 8)
  }
})

test_that("damaged fits of every schedule are told", {
  model <- fuzz_model()
  for (entry in conformance_schedules()) {
    fit <- suppressWarnings(sg_sample(
      model,
      kernel_sgld(1e-3),
      schedule = entry$spec,
      iter = 50,
      chains = 2,
      seed = 1,
      refresh = 0
    ))
    expect_survives(from_file(fit), fit_uses(model)$resume, share = 12)
  }
})

test_that("damaged fits that keep more, or less, are told", {
  model <- fuzz_model()
  cases <- list(
    gradients = list(keep = c("draws", "gradients"), variables = c("a", "b")),
    moments = list(keep = c("none", "covariance")),
    tempered = list(lambda = 20),
    monitored = list(monitor = list(every = 4, mean = mean))
  )
  for (case in cases) {
    fit <- do.call(fuzz_fit, c(list(kernel_sgld(1e-3), model = model), case))
    fit <- from_file(fit)
    uses <- fit_uses(model)
    all <- damages(fit)
    expect_survives(fit, uses$resume, share = 20, all = all)
    expect_survives(fit, uses$summary, share = 6, all = all)
    expect_survives(fit, share = 6, all = all, function(fit) {
      zero_variance(fit, model = model)
    })
  }
})

test_that("damaged fits of front ends are told", {
  data <- example_data(80)
  quiet <- function(code) suppressMessages(suppressWarnings(code))
  fits <- list(
    glm = quiet(quick_glm(
      y ~ a + g,
      data,
      iter = 40,
      chains = 2,
      keep_data = TRUE
    )),
    gaussian = quiet(quick_glm(
      z ~ a,
      data,
      gaussian(),
      kernel = kernel_sgbd(0.01),
      iter = 40,
      chains = 2,
      keep_data = TRUE
    )),
    nn = quiet(tall_nn(
      y ~ a,
      data,
      hidden = 2,
      train_iter = 20,
      iter = 20,
      chains = 2,
      keep_data = TRUE,
      seed = 1,
      refresh = 0
    )),
    ica = quiet(tall_ica(
      ica_data(100, 2)$x,
      init = "identity",
      iter = 20,
      chains = 2,
      keep_data = TRUE,
      seed = 1,
      refresh = 0
    ))
  )
  new <- head(data, 3)
  for (fit in fits) {
    fit <- from_file(fit)
    all <- damages(fit)
    expect_survives(fit, share = 12, all = all, function(fit) {
      sg_resume(fit, iter = 4, refresh = 0)
    })
    expect_survives(fit, fit_uses()$summary, share = 6, all = all)
    expect_survives(fit, share = 8, all = all, function(fit) {
      predict(fit, newdata = new)
    })
    if (inherits(fit, c("tall_glm", "tall_nn"))) {
      expect_survives(fit, share = 8, all = all, function(fit) {
        rstantools::posterior_predict(fit, newdata = new, draws = 4)
        rstantools::log_lik(fit, newdata = new)
      })
    }
  }
})

test_that("damaged fits of a model in R that wait to go on are told", {
  where <- new.env()
  where$bad <- numeric()
  data <- logistic_data(30)
  rows <- function(theta, batch) {
    where$calls <- where$calls + 1
    if (where$calls > where$most) stop("no luck")
    logistic_rows(theta, batch)
  }
  where$calls <- 0
  where$most <- Inf
  model <- logistic_custom(data$x, data$y, rows, check = FALSE)
  where$most <- where$calls + 30
  fit <- suppressWarnings(sg_sample(
    model,
    kernel_sgld(0.01),
    gradient = gradient_simple(),
    subsample = subsample_uniform(4),
    iter = 30,
    warmup = 10,
    chains = 2,
    init = c(0.1, 0),
    seed = 1,
    refresh = 0
  ))
  where$most <- Inf
  expect_false(is.null(fit$halted))
  expect_survives(fit, function(fit) sg_resume(fit, refresh = 0), share = 30)
})

# ---- specs -------------------------------------------------------------------

test_that("damaged estimators, schemes and schedules are told", {
  model <- subsample_model()
  run <- function(...) {
    sg_sample(model, ..., iter = 4, chains = 1, seed = 1, refresh = 0)
  }
  kernel <- kernel_sgld(1e-3)
  at <- find_mode(model)
  for (entry in conformance_gradients()) {
    expect_survives(entry$make(at), share = 10, function(gradient) {
      run(kernel, gradient)
    })
  }
  gradient <- gradient_cv(at = numeric(model$n_dim))
  # `fixed` is of these tests alone, and has no constructor
  schemes <- conformance_subsamples(model)
  for (entry in Filter(function(e) e$name != "fixed", schemes)) {
    expect_survives(entry$spec, share = 4, function(subsample) {
      run(kernel, gradient, subsample)
    })
  }
  for (entry in conformance_schedules()) {
    expect_survives(entry$spec, share = 8, function(schedule) {
      run(kernel, schedule = schedule)
    })
  }
})

test_that("damaged priors are told", {
  priors <- list(
    prior_normal(c(0, 1, 2), 2),
    prior_laplace(),
    prior_uniform(-1, 1),
    prior_flat()
  )
  for (prior in priors) {
    expect_survives(prior, share = 10, function(prior) {
      example_model(prior = prior, data = example_data(40))
    })
  }
  expect_survives(prior_exponential(), share = 20, function(prior) {
    example_model("gaussian", prior_aux = prior, data = example_data(40))
  })
})

test_that("damaged modes are told", {
  model <- fuzz_model()
  expect_survives(find_mode(model), share = 60, function(mode) {
    subsampling_weights(model, at = mode, type = "leverage")
    fuzz_fit(
      model = model,
      kernel_sgld(1e-3),
      gradient = gradient_cv(at = mode),
      subsample = subsample_weighted(4, "hessian")
    )
  })
})

test_that("damaged models are told", {
  model <- fuzz_model()
  expect_survives(model, share = 60, function(model) {
    model$cache <- new.env()
    find_mode(model)
    lipschitz(model)
    fuzz_fit(model = model, kernel_sgld(1e-3))
  })
})

# ---- forged seals ------------------------------------------------------------

# A fit that was sealed again after it was altered passes the first door. What
# is found behind it is told as what it is, and no access goes beyond the core's
# memory, which the sanitizers see.

# A fit of every kind, with how it is gone on with.
forged_cases <- function() {
  quiet <- function(code) suppressMessages(suppressWarnings(code))
  run <- list(iter = 20, chains = 2, seed = 1, refresh = 0)
  make <- function(f, ...) quiet(do.call(f, c(list(...), run)))
  data <- example_data(80)
  data$h <- factor(rep(letters[1:5], 16))
  data$o <- factor(rep(1:4, 20), ordered = TRUE)
  ratings <- data.frame(
    u = rep(1:10, 20),
    i = rep(1:8, each = 25),
    r = sin(1:200)
  )
  words <- data.frame(
    doc = rep(1:20, each = 3),
    word = rep(1:15, 4),
    count = rep(1:3, 20)
  )
  model <- fuzz_model()
  blocks <- tall_stream(function() {
    is_done <- FALSE
    function() {
      if (!is_done) {
        is_done <<- TRUE
        data
      }
    }
  })
  sgd <- list(model, kernel_sgld(1e-3))
  cases <- list(
    plain = do.call(make, c(list(sg_sample), sgd)),
    metropolis = make(
      sg_sample,
      model,
      kernel_mala(1e-3),
      keep = c("draws", "gradients")
    ),
    moments = do.call(make, c(
      list(sg_sample),
      sgd,
      list(keep = c("none", "covariance"), monitor = list(mean = mean))
    )),
    glm = make(tall_glm, y ~ a + g, data, binomial()),
    gaussian = make(tall_glm, z ~ a, data, gaussian()),
    matrix = make(tall_glm.fit, example_matrix()[1:80, ], data$y, "bernoulli"),
    stream = make(tall_glm, y ~ a + g, blocks, binomial()),
    dpar = make(tall_glm, list(z ~ a + g, sigma ~ a), data),
    glmer = make(tall_glmer, y ~ a + (1 | h), data, binomial()),
    crossed = make(tall_glmer, z ~ a + (1 | h) + (1 | o), data),
    polr = make(tall_polr, o ~ a, data),
    multinom = make(tall_multinom, h ~ a + g, data),
    nn = make(tall_nn, z ~ a, data, hidden = 2, train_iter = 20),
    ica = make(tall_ica, ica_data(100, 2)$x, init = "identity"),
    bpmf = make(tall_factorize, r ~ u + i, ratings, rank = 2),
    pmf = make(tall_factorize, r ~ u + i, ratings, rank = 2, model = "pmf"),
    topics = make(tall_topics, words, k = 2, train_iter = 20)
  )
  own <- names(cases) %in% c("plain", "metropolis", "moments")
  Map(
    function(fit, is_own) {
      list(fit = fit, model = if (is_own) model, data = data)
    },
    cases,
    own
  )
}

test_that("fits with forged seals are told, whatever is wrong with them", {
  grDevices::pdf(NULL)
  withr::defer(grDevices::dev.off())
  local_no_traces()
  seen <- character()
  for (name in names(cases <- forged_cases())) {
    case <- cases[[name]]
    class <- toString(class(case$fit))
    before <- sum(seen == class)
    seen <- c(seen, class)
    expect_identical(misshapen_parts(case$fit), character(), info = name)
    resume <- function(fit) {
      sg_resume(fit, iter = 4, model = case$model, refresh = 0)
    }
    new <- head(case$data, 3)
    uses <- c(
      methods_of(case$fit),
      list(newdata = function(fit) predict(fit, newdata = new))
    )
    # of the fit as it is they are done, or refused; of a class that was here
    # before by one in three
    turn <- if (before > 0) seq(1 + before %% 3, length(uses), by = 3)
    whole <- vapply(uses[turn %||% TRUE], FUN.VALUE = "", function(use) {
      tryCatch(
        {
          suppressMessages(suppressWarnings(utils::capture.output(
            use(case$fit)
          )))
          ""
        },
        tall_error = function(e) "",
        error = function(e) conditionMessage(e)
      )
    })
    expect_identical(unname(whole[whole != ""]), character(), info = name)
    fit <- from_file(case$fit)
    expect_survives(
      fit,
      forged_use(uses, resume),
      all = drawn(fit, damages(fit)),
      share = Inf
    )
  }
})

test_that("fits of every kernel with forged seals are told", {
  model <- fuzz_model()
  resume <- function(fit) sg_resume(fit, iter = 4, model = model, refresh = 0)
  for (label in names(kernels)[seq(1, length(kernels), by = 6)]) {
    entry <- kernels[[label]]
    fit <- fuzz_fit(
      model = model,
      entry$make(1e-3),
      gradient = entry$gradient,
      subsample = entry$subsample
    )
    use <- forged_use(fit_uses(model)[c("print", "summary", "draws")], resume)
    expect_survives(fit, use, share = 20)
  }
})

test_that("every function of a fit is guarded, and faults of ours stay ours", {
  space <- asNamespace("tallbayes")
  is_guarded <- function(name) {
    "reading" %in% all.names(body(space[[name]]))
  }
  methods <- registered_methods(space)
  classes <- c("tall_fit", "tall_regression", names(class_shapes))
  expect_true(all(c("tall_classes", "tall_nn", "tall_topics") %in% classes))
  names <- unique(methods$name[methods$class %in% classes])
  names <- Filter(function(name) length(formals(space[[name]])) > 0, names)
  expect_gt(length(names), 200)
  expect_identical(Filter(Negate(is_guarded), names), character())
  exports <- intersect(getNamespaceExports("tallbayes"), ls(space))
  of_fit <- Filter(function(name) {
    identical(names(formals(space[[name]]))[1], "fit")
  }, exports)
  expect_true("sg_resume" %in% of_fit)
  expect_identical(Filter(Negate(is_guarded), of_fit), character())
  # and what fits come out of front ends is known
  for (case in forged_cases()[c("glm", "polr", "multinom")]) {
    expect_gt(length(intersect(class(case$fit), names(class_shapes))), 0)
  }
  fit <- fuzz_fit(kernel_sgld(1e-3))
  fails <- guard(function(fit) stop("a fault of ours"))
  expect_error(fails(fit), "a fault of ours", class = "simpleError")
  fit$steps <- "a"
  e <- expect_error(fails(seal_fit(fit)), class = "tall_error_corrupt")
  expect_identical(e$component, "steps")
  expect_match(conditionMessage(e$parent), "a fault of ours")
})

# ---- by hand -----------------------------------------------------------------

test_that("bytes of a chain that were altered are refused by the core", {
  model <- fuzz_model()
  fit <- fuzz_fit(model = model, kernel_sgld(1e-3))
  fit$saved[[2]][200] <- xor(fit$saved[[2]][200], as.raw(1L))
  expect_error(
    sg_resume(seal_fit(fit), iter = 2, refresh = 0),
    class = "tall_error_corrupt"
  )
  # those of another kernel, of the same size
  other <- fuzz_fit(model = model, kernel_psgld(1e-3))
  fit$saved <- other$saved
  expect_error(
    sg_resume(seal_fit(fit), iter = 2, refresh = 0),
    class = "tall_error_corrupt"
  )
})

test_that("variables to be recorded beyond the model's are refused", {
  model <- fuzz_model()
  fit <- fuzz_fit(model = model, kernel_sgld(1e-3), variables = c("a", "b"))
  for (record in list(c(1, 1e6), c(0, 1), c(NA, 1), c(-4, 2))) {
    fit$control$record <- record
    fit$variables <- c("a", "b")
    expect_error(
      sg_resume(seal_fit(fit), iter = 2, refresh = 0),
      class = "tall_error"
    )
  }
})

test_that("a member without a name is refused", {
  expect_error(
    .Call(ffi_kernel_info, list(params = list()), 1),
    class = "tall_error_corrupt"
  )
  expect_error(
    .Call(ffi_kernel_info, list(name = NA_character_, params = list()), 1),
    class = "tall_error_corrupt"
  )
  expect_error(
    .Call(ffi_schedule_collected, NULL, 0, 1),
    class = "tall_error_corrupt"
  )
  fit <- fuzz_fit(kernel_sgld(1e-3))
  fit$kernel$name <- NULL
  expect_error(sg_resume(fit, iter = 2), class = "tall_error_corrupt")
})

test_that("external pointers of others are no models", {
  model <- fuzz_model()
  others <- list(
    methods::new("externalptr"),
    quote(a),
    new.env()
  )
  for (pointer in others) {
    model$pointer <- pointer
    expect_error(find_mode(model), class = "tall_error")
  }
})

test_that("what does no harm may be altered", {
  model <- fuzz_model()
  fit <- fuzz_fit(model = model, kernel_sgld(1e-3))
  whole <- sg_resume(fit, iter = 6, refresh = 0)
  fit$call <- quote(f(x))
  fit$note <- "mine"
  fit$time[["sampling"]] <- 0
  fit$control$cores <- 3
  fit$control$refresh <- 1
  expect_same_outcome(sg_resume(fit, iter = 6, refresh = 0), whole)
  fit$model <- NULL
  expect_same_outcome(
    sg_resume(fit, iter = 6, model = model, refresh = 0),
    whole
  )
  fit$draws <- posterior::subset_draws(fit$draws, iteration = 1:4)
  fit$chains$acceptance <- 1
  expect_s3_class(summary(fit), "tall_summary")
})

test_that("a fit of another version says that its chains cannot go on", {
  fit <- fuzz_fit(kernel_sgld(1e-3))
  fit$seal <- NULL
  expect_error(
    sg_resume(fit, iter = 2),
    "another version",
    class = "tall_error_corrupt"
  )
  expect_s3_class(summary(fit), "tall_summary")
})

test_that("a seal survives a file and is one of values, not of pointers", {
  fit <- quick_glm(iter = 20, chains = 1, keep_data = TRUE)
  expect_identical(altered_components(from_file(fit)), character())
  hash <- function(x) .Call(ffi_hash, x)
  expect_identical(hash(1:10), hash(c(1L, 2:10)))
  expect_identical(hash(new.env()), hash(globalenv()))
  f <- function(x) x + 1
  expect_identical(hash(f), hash(compiler::cmpfun(f)))
  different <- list(
    NULL, 0, 0L, FALSE, "0", NA_character_, "NA", list(), list(NULL), raw(8),
    c(a = 0), quote(x), quote(x + 1), quote(x + 2), function(x) x, numeric(),
    numeric(1), numeric(2), as.raw(0:1), as.raw(1:0)
  )
  expect_identical(anyDuplicated(vapply(different[-17], hash, "")), 0L)
})

test_that("data that took the place of a fit's are refused", {
  fit <- from_file(quick_glm(iter = 20, chains = 1, keep_data = TRUE))
  fit$rows$frame$a <- rev(fit$rows$frame$a)
  expect_error(
    sg_resume(fit, iter = 2, refresh = 0),
    class = "tall_error_corrupt"
  )
})
