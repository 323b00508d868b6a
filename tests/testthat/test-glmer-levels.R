# tall_glmer() with few levels in all: columns, wherever the rows lie.

skip_if_not_installed("mgcv")

# Columns, however few the rows are.
local_columns <- function(rows = 2000, env = parent.frame()) {
  local_passes(rows, env = env)
  local_settings(
    levels = list(start = 0, cube = 0, square = 0, product = 0),
    .frame = env
  )
}

levels_rows <- function(n = 12000) {
  withr::with_seed(11, {
    d <- data.frame(
      s = sample(12, n, TRUE),
      school = sample(c("n", "e", "s", "w"), n, TRUE),
      class = sample(3, n, TRUE),
      x = stats::rnorm(n),
      f = sample(c("u", "v"), n, TRUE),
      w = stats::runif(n, 0.5, 2)
    )
    eta <- 0.5 * d$x - 0.5 + 0.4 * (d$f == "v") +
      0.6 * stats::rnorm(12)[d$s] + 0.2 * stats::rnorm(12)[d$s] * d$x +
      0.4 * stats::rnorm(12)[3 * match(d$school, c("n", "e", "s", "w")) - 3 +
        d$class]
    d$y <- eta + stats::rnorm(n)
    d$b <- stats::rbinom(n, 1, stats::plogis(eta))
    # a class that nobody goes to
    d <- d[!(d$school == "w" & d$class == 3), ]
    d$x[[7]] <- NA
    d$s[[9]] <- NA
    rownames(d) <- NULL
    d
  })
}

quick_levels <- function(formula, data, ..., iter = 300) {
  tall_glmer(
    formula,
    data,
    ...,
    iter = iter,
    chains = 2,
    seed = 1,
    refresh = 0
  )
}

levels_fit <- local({
  fit <- NULL
  function() {
    local_columns()
    fit <<- fit %||% quick_levels(
      y ~ f + x + (1 + x || s) + (1 | school / class),
      levels_rows()
    )
    fit
  }
})

# Means and standard deviations of two chains of draws of one law, in Monte
# Carlo standard errors: the largest.
largest_z <- function(a, b) {
  of <- function(x) {
    posterior::summarise_draws(x, "mean", "sd", "mcse_mean", "mcse_sd")
  }
  a <- of(a)
  b <- of(b)
  expect_identical(a$variable, b$variable)
  max(
    abs(a$mean - b$mean) / sqrt(a$mcse_mean^2 + b$mcse_mean^2),
    abs(a$sd - b$sd) / sqrt(a$mcse_sd^2 + b$mcse_sd^2)
  )
}

test_that("columns and sweeps have the same posterior", {
  data <- levels_rows(3000)
  both <- function(formula, family, ...) {
    swept <- quick_levels(
      formula,
      data,
      family,
      kernel = kernel_gibbs(),
      iter = 2000,
      ...
    )
    local_columns()
    fit <- quick_levels(formula, data, family, iter = 2000, ...)
    expect_identical(swept$kernel$name, "gibbs")
    expect_false(fit$kernel$name == "gibbs")
    expect_lt(largest_z(fit$draws, swept$draws), 4)
    z <- largest_z(fit$effect_draws, swept$effect_draws)
    expect_lt(z, 4.5)
    expect_identical(fit$factors, swept$factors)
    expect_identical(fit$coordinates, swept$coordinates)
    expect_identical(fit$prior$kind, swept$prior$kind)
  }
  # that count, each for its factor
  priors <- list(
    s = prior_lkj(sd = prior_exponential(c(2))),
    school = prior_normal(0, 0.3)
  )
  both(
    y ~ x + (1 + x || s) + (1 | school / class),
    gaussian(),
    prior_covariance = priors,
    weights = w
  )
  both(b ~ f + (1 | s) + (1 | school), binomial())
})

test_that("the default prior of wide responses is that of their spread", {
  local_columns()
  data <- levels_rows(4000)
  data$y <- 40 * data$y
  fit <- quick_levels(y ~ x + (1 | s) + (1 | school), data, iter = 20)
  scale <- fit$blueprint$priors$prior_covariance$s$sd$scale
  # that of the pilot's rows
  expect_equal(scale, stats::mad(data$y), tolerance = 0.1)
  params <- fit$engine$blueprint$priors$prior_smooth
  expect_equal(params[["s(school)1"]]$scale, scale)
  shown <- prior_summary(fit)$covariance
  expect_equal(shown[[2]]$scale, scale)
  expect_identical(weighted_mad(c(5, 1, 9, 2), c(1, 1, 1, 0)), 4 * 1.4826)
})

test_that("the same rows have the same draws wherever they lie", {
  local_columns()
  data <- levels_rows()
  formula <- y ~ f + x + (1 + x || s) + (1 | school / class)
  fit <- levels_fit()
  streamed <- quick_levels(formula, stream_of(data, c(700, 5000, 13)))
  expect_equal(streamed$draws, fit$draws)
  expect_equal(streamed$effect_draws, fit$effect_draws)
  expect_identical(streamed$factors, fit$factors)
  expect_equal(streamed$n_missing, 2)
  expect_equal(
    unname(stats::predict(streamed)),
    unname(stats::predict(fit))
  )
  skip_if_not_installed("RSQLite")
  skip_if_not_installed("dbplyr")
  con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
  withr::defer(DBI::dbDisconnect(con))
  DBI::dbWriteTable(con, "rows", data)
  table <- dplyr::tbl(con, "rows")
  of_table <- quick_levels(formula, table)
  expect_s3_class(of_table$rows, "tall_rows_database")
  expect_identical(of_table$factors, fit$factors)
  expect_lt(largest_z(of_table$draws, fit$draws), 4.5)
  expect_equal(length(stats::predict(of_table)), nrow(data) - 2)
})

test_that("fits have what those of sweeps have", {
  data <- levels_rows()
  fit <- levels_fit()
  expect_identical(class(fit)[1:2], c("tall_crossed", "tall_glmer"))
  expect_identical(
    fit$variables,
    c(
      "(Intercept)", "fv", "x", "sd_s__Intercept", "sd_s__x",
      "sd_school__Intercept", "sd_school:class__Intercept", "sigma"
    )
  )
  expect_identical(
    ngrps(fit),
    c(s = 12L, school = 4L, "school:class" = 11L)
  )
  known <- data[stats::complete.cases(data), ]
  expect_identical(
    fit$factors$s$sizes,
    as.double(table(known$s))
  )
  expect_identical(fit$factors$s$levels, as.character(1:12))
  expect_identical(
    fit$factors[["school:class"]]$sizes,
    as.double(table(paste(known$school, known$class)))
  )
  expect_identical(stats::nobs(fit), nrow(known) + 0)
  expect_equal(
    fit$effects$mean,
    unname(colMeans(posterior::as_draws_matrix(fit$effect_draws)))
  )
  expect_output(
    print(fit),
    "in 12 groups of s, 4 of school, 11 of school:class"
  )
  expect_output(print(prior_summary(fit)), "half Student t")
  expect_identical(stats::formula(fit), fit$formula)
  expect_named(VarCorr(fit), c(names(ngrps(fit)), "residual__"))
  # gradients of what are no parameters
  expect_error(ksd(fit), "no log posterior", class = "tall_error_unsupported")
})

test_that("predictions of rows that are passed over are those of the draws", {
  data <- levels_rows()
  fit <- levels_fit()
  known <- data[stats::complete.cases(data), ]
  draws <- as.matrix(fit)
  u <- ranef(fit, summary = FALSE)
  at <- c(1, 400, 9000)
  new <- known[at, ]
  of_class <- match(
    paste0(new$school, ":", new$class),
    dimnames(u[["school:class"]])[[2]]
  )
  x <- cbind(1, new$f == "v", new$x)
  eta <- draws[, 1:3] %*% t(x) +
    u$s[, new$s, 1] + sweep(u$s[, new$s, 2], 2, new$x, "*") +
    u$school[, new$school, 1] + u[["school:class"]][, of_class, 1]
  found <- rstantools::posterior_linpred(fit, newdata = new)
  expect_equal(unname(found), unname(eta))
  own <- rstantools::posterior_epred(fit)
  expect_equal(unname(own[, at]), unname(eta))
  expect_equal(
    unname(rstantools::log_lik(fit)[, at]),
    matrix(stats::dnorm(
      rep(new$y, each = nrow(eta)),
      unname(eta),
      draws[, "sigma"],
      log = TRUE
    ), nrow(eta))
  )
  f <- rstantools::log_lik(fit, pointwise = TRUE)
  some <- f(attr(f, "data")[at, , drop = FALSE], attr(f, "draws"))
  expect_equal(unname(some), unname(rstantools::log_lik(fit)[, at]))
  part <- rstantools::posterior_linpred(
    fit,
    newdata = new,
    re_formula = ~ (1 | school)
  )
  expect_equal(
    unname(part),
    unname(draws[, 1:3] %*% t(x) + u$school[, new$school, 1])
  )
  expect_equal(unname(stats::fitted(fit)[at]), unname(colMeans(eta)))
  expect_equal(nrow(stats::model.matrix(fit)), nrow(known))
  expect_equal(
    stats::model.frame(fit)[["y"]],
    known$y
  )
  new$school <- "elsewhere"
  expect_error(
    stats::predict(fit, new),
    "elsewhere",
    class = "tall_error_input"
  )
  wider <- stats::predict(fit, new, se.fit = TRUE, allow_new_levels = TRUE)
  expect_gt(wider$se.fit[[1]], stats::sd(eta[, 1]))
})

test_that("such fits go on, and are read from files", {
  local_columns()
  data <- levels_rows()
  formula <- y ~ x + (1 | s) + (1 | school)
  whole <- quick_levels(formula, data, iter = 60, warmup = 20)
  fit <- quick_levels(formula, data, iter = 40, warmup = 20)
  file <- withr::local_tempfile()
  saveRDS(fit, file)
  # the rows are there once
  expect_null(fit$engine$rows)
  read <- readRDS(file)
  on <- sg_resume(read, iter = 20, refresh = 0)
  expect_identical(unclass(on$draws)[], unclass(whole$draws)[])
  expect_identical(on$effects, whole$effects)
  expect_identical(stats::predict(read, data[1:3, ]),
    stats::predict(fit, data[1:3, ]))
  bare <- quick_levels(formula, data, iter = 20, keep_data = FALSE)
  expect_error(stats::predict(bare), class = "tall_error_stale")
  expect_length(stats::predict(bare, data[1:3, ]), 3)
  read$engine$saved <- rev(read$engine$saved)
  expect_error(sg_resume(read, iter = 2), class = "tall_error_corrupt")
})

test_that("rows that steps often look at are columns in memory", {
  # a pass draws a fourth of the rows at most
  local_columns()
  local_settings(recipe = list(full_share = 0.01))
  data <- levels_rows(3000)
  formula <- b ~ f + x + (1 + x || s) + (1 | school / class)
  swept <- quick_levels(
    formula,
    data,
    binomial(),
    kernel = kernel_gibbs(),
    iter = 2000
  )
  fit <- quick_levels(formula, data, binomial(), iter = 2000)
  expect_identical(fit$kernel$name, "smh")
  expect_null(fit$rows$source)
  expect_lt(largest_z(fit$draws, swept$draws), 4)
  expect_identical(fit$factors, swept$factors)
  expect_equal(
    unname(stats::predict(fit)),
    unname(stats::predict(fit, data[stats::complete.cases(data), ]))
  )
  expect_message(
    streamed <- tall_glmer(
      formula,
      stream_of(data, 900),
      binomial(),
      iter = 40,
      chains = 2,
      seed = 1
    ),
    "brought to memory"
  )
  expect_identical(streamed$kernel$name, "smh")
  on <- sg_resume(streamed, iter = 10, refresh = 0)
  expect_identical(dim(on$effect_draws)[[1]], 30L)
  local_settings(levels = list(bytes = 1e5))
  fit <- quick_levels(formula, data, binomial(), iter = 10)
  expect_identical(fit$kernel$name, "gibbs")
})

test_that("what columns do not serve is swept", {
  local_columns()
  data <- levels_rows(3000)
  swept <- function(formula, ..., rows = data) {
    fit <- quick_levels(formula, rows, ..., iter = 10)
    expect_identical(fit$kernel$name, "gibbs")
    fit
  }
  formula <- y ~ x + (1 | s) + (1 | school)
  swept(y ~ (1 + x | s) + (1 | school))
  swept(y ~ (0 + f || s) + (1 | school))
  swept(y ~ (1 | s) + (1 | factor(class)))
  swept(formula, kernel = kernel_gibbs())
  swept(formula, keep_effects = "summary")
  swept(formula, prior_covariance = NULL)
  swept(formula, variables = "x")
  swept(formula, init = c(0, 0, 0, 0, 0))
  swept(round(exp(y)) ~ (1 | s) + (1 | school), family = neg_binomial_2())
  local_settings(levels = list(most = 12))
  swept(formula)
  expect_message(
    tall_glmer(
      formula,
      stream_of(data, 500),
      prior_covariance = NULL,
      iter = 10,
      chains = 1,
      seed = 1
    ),
    NA
  )
})

test_that("many levels, and rows that take less, are swept", {
  local_passes()
  data <- levels_rows(3000)
  formula <- y ~ x + (1 | s) + (1 | school)
  fit <- quick_levels(formula, data, iter = 10)
  expect_identical(fit$kernel$name, "gibbs")
  expect_message(
    fit <- tall_glmer(
      formula,
      stream_of(data, 500),
      iter = 10,
      chains = 1,
      seed = 1
    ),
    "brought to memory: .*sweeps"
  )
  expect_identical(fit$kernel$name, "gibbs")
  # by count
  control <- list(chains = 4, iter = 2000, warmup = 1000, thin = 1)
  of_sweeps <- function(n, name) {
    swept_seconds(n, 5, 2, resolve_family(name), control)
  }
  expect_gt(levels_seconds(1e6, 900, 2, control), of_sweeps(1e6, "gaussian"))
  expect_lt(levels_seconds(1e7, 90, 2, control), of_sweeps(1e7, "binomial"))
})

test_that("factors that cannot be told apart are refused, as by sweeps", {
  local_columns()
  data <- levels_rows(3000)
  data$copy <- letters[data$s]
  data$one <- 1
  refused <- function(formula, text) {
    expect_error(
      quick_levels(formula, data),
      text,
      class = "tall_error_input"
    )
  }
  refused(y ~ (1 | s) + (1 | copy), "part the rows alike")
  refused(y ~ (1 | s) + (1 | one), "one")
  refused(y ~ (1 + class || school:class) + (1 | s), "class")
})
