# One fit for all that only looks; enough rows for a sampler with bias to show.
fit <- noisy_glm(y ~ a + b, example_data(2500), iter = 400, chains = 2)

test_that("a fit and its summary print", {
  local_wide()
  expect_snapshot(print(fit), transform = scrub)
  expect_snapshot(print(summary(fit)), transform = scrub)
  expect_snapshot(print(quick_fit()), transform = scrub)
  expect_snapshot(print(quick_fit(keep = "none")), transform = scrub)
})

test_that("the exact kernel says that it is exact", {
  local_wide()
  exact <- quick_glm(data = example_data(60), iter = 40)
  expect_snapshot(print(exact), transform = scrub)
  expect_true(all(summary(exact)$table$sd_bias == 0))
})

test_that("long tables are cut", {
  data <- withr::with_seed(1, matrix(rnorm(400 * 35), 400))
  model <- model_glm(data, rep(0:1, 200))
  wide <- suppressWarnings(quick_fit(model, iter = 20))
  expect_match(capture.output(print(wide)), "25 more variables", all = FALSE)
  expect_match(
    capture.output(print(suppressWarnings(summary(wide)))),
    "5 more variables",
    all = FALSE
  )
})

test_that("a summary has posterior's columns and the bias beside them", {
  table <- summary(fit)$table
  expect_identical(
    names(table),
    c(
      "variable", "mean", "sd", "q5", "q50", "q95", "mcse_mean", "rhat",
      "ess_bulk", "ess_tail", "sd_bias", "sd_bias_se"
    )
  )
  expect_identical(table$variable, c("(Intercept)", "a", "b"))
  reference <- posterior::summarise_draws(fit)
  for (column in c("mean", "sd", "q5", "q95", "rhat", "ess_bulk", "ess_tail")) {
    expect_equal(table[[column]], as.double(reference[[column]]), info = column)
  }
  expect_true(all(table$sd_bias_se > 0))
  expect_named(
    summary(fit, probs = c(0.1, 0.9))$table[4:5],
    c("q10", "q90")
  )
  for (column in names(table)[-1]) {
    expect_type(table[[column]], "double")
    expect_false(is.object(table[[column]]))
  }
})

test_that("very short runs can be summarised", {
  expect_s3_class(summary(quick_fit(iter = 2)), "tall_summary")
  expect_output(print(summary(quick_fit(iter = 2, chains = 1))))
})

test_that("coef, vcov and nobs are those of the draws", {
  draws <- posterior::as_draws_matrix(fit)
  expect_equal(coef(fit), colMeans(draws))
  expect_equal(vcov(fit), stats::cov(draws))
  expect_identical(nobs(fit), 2500)
  expect_identical(dimnames(vcov(fit)), rep(list(fit$variables), 2))
})

test_that("every format of posterior is there", {
  expect_s3_class(posterior::as_draws(fit), "draws_array")
  expect_s3_class(posterior::as_draws_array(fit), "draws_array")
  expect_s3_class(posterior::as_draws_matrix(fit), "draws_matrix")
  expect_s3_class(posterior::as_draws_df(fit), "draws_df")
  expect_s3_class(posterior::as_draws_list(fit), "draws_list")
  expect_s3_class(posterior::as_draws_rvars(fit), "draws_rvars")
  expect_identical(posterior::niterations(posterior::as_draws(fit)), 200L)
  expect_identical(posterior::nchains(posterior::as_draws(fit)), 2L)
  expect_equal(posterior::ndraws(posterior::as_draws_df(fit)), 400)
  summary <- posterior::summarise_draws(fit)
  expect_identical(summary$variable, fit$variables)
})

test_that("base R's formats hold the same draws", {
  expect_identical(dim(as.array(fit)), c(200L, 2L, 3L))
  expect_identical(dim(as.matrix(fit)), c(400L, 3L))
  expect_identical(
    as.matrix(fit)[201:400, "b"],
    unname(as.array(fit)[, 2, "b"])
  )
  expect_identical(as.data.frame(fit)$a, unname(as.matrix(fit)[, "a"]))
  expect_named(as.data.frame(fit), fit$variables)
})

test_that("bayesplot takes a fit's array", {
  skip_if_not_installed("bayesplot")
  traces <- bayesplot::mcmc_trace(as.array(fit))
  expect_setequal(as.character(traces$data$parameter), fit$variables)
  expect_equal(traces$data$value, as.numeric(as.array(fit)))
  areas <- bayesplot::mcmc_areas(as.matrix(fit))
  expect_setequal(as.character(areas$data$parameter), fit$variables)
})

test_that("each type of plot is a ggplot of the variables asked for", {
  skip_if_not_installed("bayesplot")
  for (type in c("trace", "dens", "intervals")) {
    expect_s3_class(plot(fit, type), "ggplot")
    expect_s3_class(plot(fit, type, variables = "a"), "ggplot")
  }
  picture <- plot(fit, "trace", variables = c("b", "a"))
  expect_setequal(as.character(unique(picture$data$parameter)), c("a", "b"))
  expect_identical(nrow(picture$data), 800L)
  withr::local_pdf(NULL)
  expect_silent(print(plot(fit, "dens")))
})

test_that("plots show eight variables unless told", {
  skip_if_not_installed("bayesplot")
  data <- withr::with_seed(1, matrix(rnorm(200 * 10), 200))
  wide <- quick_fit(model_glm(data, rep(0:1, 100)), iter = 20)
  expect_snapshot(picture <- plot(wide))
  expect_identical(nlevels(factor(picture$data$parameter)), 8L)
  expect_silent(plot(wide, variables = wide$variables))
})

test_that("plots refuse in words", {
  expect_snapshot(plot(fit, variables = "aa"), error = TRUE, cnd_class = TRUE)
  e <- expect_error(plot(fit, "trce"), class = "tall_error_input")
  expect_match(conditionMessage(e), "Did you mean \"trace\"?", fixed = TRUE)
})

test_that("summaries refuse in words", {
  expect_snapshot(summary(fit, probs = 2), error = TRUE, cnd_class = TRUE)
  expect_snapshot(summary(fit, probs = "a"), error = TRUE)
})

test_that("a fit without draws says so", {
  none <- quick_fit(keep = "none")
  expect_snapshot(posterior::as_draws(none), error = TRUE, cnd_class = TRUE)
  expect_snapshot(as.matrix(none), error = TRUE)
  expect_snapshot(vcov(none), error = TRUE)
  skip_if_not_installed("bayesplot")
  expect_snapshot(plot(none), error = TRUE)
})

test_that("a run that stopped before its first draw can be printed", {
  none <- fit
  none$sizes <- none$sizes[0, , , drop = FALSE]
  expect_identical(nchar(sampler_text(none)) > 0, TRUE)
  expect_false(grepl("NA|NaN", sampler_text(none)))
})

test_that("a bias that is significant is a warning in what is printed", {
  biased <- fit
  biased$bias$sd_bias <- c(0, 0.2, 0)
  biased$bias$sd_bias_se <- c(0.01, 0.01, 0.01)
  expect_match(
    capture.output(print(biased)),
    "Warning: .*20.0%.* for a",
    all = FALSE
  )
  biased$bias$sd_bias_se[[2]] <- 0.1
  expect_match(capture.output(print(biased)), "at most \\+20.0%", all = FALSE)
})

test_that("a sampler that is too narrow is not told to run longer", {
  # the thermostat cools the coordinates that have little noise
  x <- withr::with_seed(3, cbind(1, matrix(rnorm(15000), 5000)))
  x[, 3:4] <- x[, 3:4] / 4
  colnames(x) <- c("a", "b", "c", "d")
  y <- withr::with_seed(4, rbinom(5000, 1, plogis(x[, 2] / 2 - 1)))
  model <- model_glm(x, y)
  run <- function(iter, warmup = 1000) {
    sg_sample(
      model,
      kernel_sgnht(5e-6),
      gradient_simple(),
      subsample_uniform(100),
      iter = iter,
      warmup = warmup,
      thin = 10,
      seed = 1,
      refresh = 0
    )
  }
  long <- run(100000)
  ratio <- apply(as.matrix(long), 2, stats::sd) /
    sqrt(diag(vcov(find_mode(model))))
  expect_gt(min(ratio[c("a", "b")]), 1.2)
  expect_lt(max(ratio[c("c", "d")]), 0.8)
  for (x in list(long, summary(long))) {
    out <- paste(capture.output(print(x)), collapse = "\n")
    expect_match(out, "less spread than the posterior, by -[345]")
    expect_match(out, "the kernel's own, and running longer does not mend it")
    expect_match(out, "larger minibatches or control variates", fixed = TRUE)
    expect_match(out, "posterior sds are biased, by up to +", fixed = TRUE)
    expect_no_match(out, "larger steps|[Rr]un longer")
  }
  # far too short to be everywhere
  short <- paste(capture.output(print(run(500, 100))), collapse = "\n")
  expect_no_match(short, "kernel's own, and")
})

test_that("the note on bias gives advice that helps", {
  variable <- c("a", "b", "c")
  note <- function(value, se, ...) {
    paste(bias_note(value, se, variable, ...), collapse = " ")
  }
  # too large a step, and neither sign hides the other
  large <- note(c(0.2, -0.4, 3), c(0.01, 0.01, 0.2))
  expect_match(large, "+300.0% (se 20.0) for c", fixed = TRUE)
  expect_match(large, "smaller step size", fixed = TRUE)
  expect_match(large, "+300.*less spread than the posterior, by -40.0%")
  narrow <- note(c(0.2, -0.4, 0.1), c(0.01, 0.01, 0.2))
  expect_match(narrow, "by -40.0%.*by up to \\+20.0%")
  # too short a run
  short <- note(c(0.02, -0.4, -0.2), c(0.01, 0.01, 0.01), TRUE)
  expect_match(short, "less spread than the posterior, by -40.0%", fixed = TRUE)
  expect_match(short, "run longer or take larger steps", fixed = TRUE)
  # a kernel that is too narrow, and what may be either
  mixed <- c(TRUE, FALSE, TRUE)
  own <- note(c(0.02, -0.4, -0.2), rep(0.01, 3), mixed, "care")
  expect_match(own, "It is the kernel's own.*take care")
  expect_no_match(own, "larger steps")
  either <- note(c(0.02, -0.4, -0.2), rep(0.01, 3))
  expect_match(either, "Run longer first.*take a smaller step")
  # nothing to tell, within what can be told
  fine <- note(c(0.02, -0.03, 0.9), c(0.01, 0.02, 0.8))
  expect_match(fine, "at most -3.0% (se 2.0) for b", fixed = TRUE)
  none <- note(c(0.2, -1, 0.9), c(0.5, 2e5, 0.8))
  expect_match(none, "too short to tell", fixed = TRUE)
  expect_identical(
    bias_text(c(164.4, -1, NA), c(25, 2e5, NA), label = ""),
    c(">+1000% (>1000)", "-100.0% (>1000)", "NA% (NA)")
  )
})

test_that("variables are chosen by name and by regular expression", {
  all <- as.matrix(fit)
  expect_identical(as.matrix(fit, pars = "b"), all[, "b", drop = FALSE])
  expect_identical(as.matrix(fit, variables = c("b", "a")), all[, c("b", "a")])
  expect_identical(as.matrix(fit, regex_pars = "^[ab]$"), all[, c("a", "b")])
  both <- as.matrix(fit, pars = "b", regex_pars = "Int")
  expect_identical(both, all[, c("b", "(Intercept)")])
  expect_named(as.data.frame(fit, pars = "a"), "a")
  expect_named(as.data.frame(fit, regex_pars = "a|b"), c("a", "b"))
  expect_identical(dim(as.array(fit, pars = "a")), c(200L, 2L, 1L))
  for (f in list(
    posterior::as_draws, posterior::as_draws_array, posterior::as_draws_df,
    posterior::as_draws_matrix, posterior::as_draws_list,
    posterior::as_draws_rvars
  )) {
    expect_identical(posterior::variables(f(fit, variable = "a")), "a")
    some <- f(fit, variable = "^[ab]", regex = TRUE)
    expect_identical(posterior::variables(some), c("a", "b"))
  }
  expect_identical(
    summary(fit, pars = "a")$table,
    `rownames<-`(summary(fit)$table[2, ], NULL)
  )
  decayed <- decayed_fit()
  expect_identical(
    summary(decayed, pars = "a")$table,
    `rownames<-`(summary(decayed)$table[2, ], NULL)
  )
  expect_false(
    is.null(stats::weights(posterior::as_draws_df(decayed, variable = "a")))
  )
  none <- quick_fit(keep = "none")
  expect_identical(summary(none, variables = "b")$table$variable, "b")
})

test_that("variables that are not there are refused, everywhere", {
  for (f in list(as.matrix, as.array, as.data.frame, summary, print)) {
    expect_error(f(fit, pars = "aa"), class = "tall_error_input")
    expect_error(f(fit, regex_pars = "aa"), class = "tall_error_input")
    expect_error(f(fit, regex_pars = "("), class = "tall_error_input")
    expect_error(f(fit, regex_pars = 1), class = "tall_error_input")
  }
  expect_snapshot(
    as.matrix(fit, regex_pars = "zz"),
    error = TRUE,
    cnd_class = TRUE
  )
})

test_that("coefficients come before scales of single ones in print", {
  data <- withr::with_seed(1, as.data.frame(matrix(rnorm(60 * 8), 60)))
  fit <- quick_glm(
    I(V8 > 0) ~ ., data, binomial(),
    prior = prior_hs(), iter = 40, chains = 1
  )
  lines <- capture.output(print(fit))
  at <- match(
    c("(Intercept)", "V1", "V7", "hs_global", "hs_slab"),
    sub(" .*", "", lines)
  )
  expect_false(anyNA(at))
  expect_false(is.unsorted(at))
  expect_no_match(lines, "^hs_local")
})

test_that("printing shows the variables asked for, and sigma always", {
  data <- withr::with_seed(1, as.data.frame(matrix(rnorm(60 * 36), 60)))
  wide <- quick_glm(V36 ~ ., data, gaussian(), iter = 40, chains = 1)
  lines <- function(...) capture.output(print(...))
  has <- function(lines, name) any(grepl(paste0("^", name, " "), lines))
  for (object in list(wide, suppressWarnings(summary(wide)))) {
    expect_true(has(lines(object), "sigma"))
    expect_false(has(lines(object), "V35"))
    expect_match(
      lines(object),
      "more variables .n = Inf shows all",
      all = FALSE
    )
    expect_true(has(lines(object, n = Inf), "V35"))
    expect_no_match(lines(object, n = Inf), "more variables")
    expect_true(has(lines(object, n = 2), "sigma"))
    expect_false(has(lines(object, n = 2), "V1"))
    expect_match(lines(object, n = 36), "1 more variable ", all = FALSE)
    expect_error(print(object, n = 0), class = "tall_error_input")
  }
  expect_true(has(lines(wide, pars = "V35"), "V35"))
  expect_false(has(lines(wide, pars = "V35"), "sigma"))
  # all that match, however many
  some <- suppressWarnings(summary(wide, regex_pars = "^V", digits = 7))
  expect_true(has(lines(some), "V35"))
  expect_false(has(lines(some), "sigma"))
  digits <- function(x) {
    max(nchar(gsub("[^0-9]", "", grep("^V1 ", x, value = TRUE))))
  }
  expect_gt(digits(lines(some)), digits(lines(some, digits = 2)))
})

test_that("bayesplot's other types are known by name", {
  skip_if_not_installed("bayesplot")
  types <- c(
    "areas", "hist", "acf", "dens_overlay", "violin", "rank_overlay", "rhat",
    "neff", "rhat_hist", "scatter"
  )
  for (type in types) {
    expect_s3_class(suppressMessages(plot(fit, type)), "ggplot")
  }
  # a grid of plots is put together by gridExtra
  if (requireNamespace("gridExtra", quietly = TRUE)) {
    expect_s3_class(plot(fit, "pairs"), "bayesplot_grid")
  }
  expect_identical(
    levels(factor(plot(fit, "hist", pars = "b")$data$Parameter)),
    "b"
  )
  expect_identical(
    levels(
      factor(plot(fit, "mcmc_areas", regex_pars = "^[ab]")$data$parameter)
    ),
    c("a", "b")
  )
  wide <- plot(fit, "intervals", prob_outer = 0.5)
  expect_s3_class(wide, "ggplot")
  expect_error(plot(fit, "areas", foo = 1), "foo", class = "tall_error_input")
  expect_error(
    plot(fit, plotfun = "hist"),
    "`type`",
    class = "tall_error_input"
  )
  expect_error(plot(fit, "trace", "a", 3), class = "tall_error_input")
  expect_error(plot(fit, "recover_hist"), "true", class = "tall_error_input")
  expect_error(
    plot(fit, "scatter", variables = "a"),
    class = "tall_error_input"
  )
  expect_error(plot(fit, "nuts_energy"), class = "tall_error_unsupported")
  expect_error(plot(fit, "noise", foo = 1), class = "tall_error_input")
})
