# tall_glmer() with several grouping factors: formulas, laws, what fits have.

# Students, classes in schools, and a slope of students.
crossed_rows <- function(n = 300) {
  withr::with_seed(5, {
    data <- data.frame(
      s = factor(sample(letters[1:20], n, TRUE)),
      school = sample(4, n, TRUE),
      class = sample(3, n, TRUE),
      x = stats::rnorm(n)
    )
    eta <- data$x + stats::rnorm(20)[data$s] +
      0.5 * stats::rnorm(12)[3 * (data$school - 1) + data$class]
    data$y <- eta + stats::rnorm(n, 0, 0.7)
    data$b <- stats::rbinom(n, 1, stats::plogis(eta))
    data$trials <- sample(1:4, n, TRUE)
    data$successes <- stats::rbinom(n, data$trials, stats::plogis(eta))
    data
  })
}

crossed_fit <- local({
  fit <- NULL
  function() {
    # summaries are of the draws that are kept
    local_settings(sweeps = list(most = 1))
    fit <<- fit %||% quick_crossed(
      y ~ x + (1 + x | s) + (1 | school / class),
      crossed_rows()
    )
    fit
  }
})

quick_crossed <- function(..., iter = 200) {
  tall_glmer(..., iter = iter, chains = 2, seed = 1, refresh = 0)
}

test_that("formulas are read as lme4 has them", {
  read <- function(formula) {
    bars <- read_bars(formula)
    vapply(bars$terms, `[[`, "", "name")
  }
  expect_identical(read(y ~ x + (1 | a) + (1 | b)), c("a", "b"))
  expect_identical(read(y ~ (1 | a / b / c)), c("a", "a:b", "a:b:c"))
  expect_identical(read(y ~ (1 | a / b) + (x || d:e)), c("a", "a:b", "d:e"))
  bars <- read_bars(y ~ w + (1 + x | a / b) + (z || d))
  expect_equal(bars$fixed, y ~ w, ignore_attr = TRUE)
  expect_setequal(all.vars(bars$frame), c("y", "w", "x", "a", "b", "z", "d"))
  expect_identical(
    vapply(bars$terms, `[[`, TRUE, "correlated"),
    c(TRUE, TRUE, FALSE)
  )
})

test_that("what cannot be told apart is refused by its name", {
  data <- crossed_rows(60)
  data$copy <- toupper(data$s)
  data$one <- 1
  data$row <- seq_len(60)
  data$seven <- 7
  data$level <- as.integer(data$s)
  refused <- function(...) {
    expect_snapshot(error = TRUE, quick_crossed(..., data))
  }
  refused(y ~ (1 | s) + (1 | copy))
  refused(y ~ (1 | s) + (1 | one))
  refused(y ~ (1 | s) + (1 | row))
  refused(y ~ (1 | s) + (0 + x | s))
  refused(y ~ (1 + seven | s) + (1 | school))
  refused(y ~ (1 + level | s) + (1 | school))
  refused(y ~ (1 | s + school))
  refused(y ~ (poly(x, 3) | s) + (1 | school))
  expect_snapshot(error = TRUE, {
    quick_crossed(y ~ (1 | s) + (1 | school), data, student())
    quick_crossed(y ~ (1 | s), data, keep_effects = "draws")
    quick_crossed(y ~ (1 | s) + (1 | school), data, keep_effects = "all")
    quick_crossed(
      y ~ (1 | s) + (1 | school),
      data,
      kernel = kernel_gibbs(),
      keep_effects = "none"
    )
    quick_crossed(y ~ (1 | s) + (1 | school), data, kernel = kernel_mala())
    quick_crossed(
      y ~ (1 | s) + (1 | school),
      data,
      prior_covariance = list(prior_lkj())
    )
    quick_crossed(
      y ~ (1 | s) + (1 | school),
      data,
      prior_covariance = list(g = prior_lkj())
    )
  })
  nine <- paste0("(1 | ", c("s", letters[1:8]), ")", collapse = " + ")
  data[letters[1:8]] <- lapply(1:8, function(k) sample(5, 60, TRUE))
  refused(stats::as.formula(paste("y ~", nine)))
  # a row each is fine where no residual is sampled
  data$count <- stats::rpois(60, 2)
  fit <- quick_crossed(count ~ (1 | s) + (1 | row), data, stats::poisson())
  expect_identical(ngrps(fit)[["row"]], 60L)
})

test_that("normal rows of nested factors have the posterior of a grid", {
  data <- withr::with_seed(3, {
    data <- data.frame(a = rep(1:6, each = 9), b = rep(1:3, 18))
    data$y <- 0.7 * stats::rnorm(6)[data$a] +
      0.5 * stats::rnorm(18)[3 * (data$a - 1) + data$b] + stats::rnorm(54)
    data
  })
  exact <- crossed_grid(
    data$y,
    data$a,
    3 * (data$a - 1) + data$b,
    scale = 1,
    wide = 2
  )
  expect_lt(exact$edge, 1e-4)
  fit <- tall_glmer(
    y ~ 1 + (1 | a / b),
    data,
    prior_intercept = prior_normal(0, 2),
    prior_covariance = list(a = prior_normal(0, 1), "a:b" = prior_normal(0, 1)),
    prior_aux = prior_exponential(1),
    iter = 6000,
    warmup = 500,
    seed = 1,
    refresh = 0
  )
  expect_identical(
    posterior::variables(fit$draws),
    c("(Intercept)", "sd_a__Intercept", "sd_a:b__Intercept", "sigma")
  )
  expect_grid(unclass(fit$draws)[, , 2:4], exact)
})

# rstanarm 2.21.3, 20,000 draws of NUTS:
#   stan_glmer(y ~ x + (1 | a) + (1 | region / b), data, poisson(),
#     prior = normal(0, 2.5), prior_intercept = normal(0, 2.5),
#     prior_covariance = decov(1, 1, 1, 1), iter = 6000, warmup = 1000,
#     seed = 1)
# whose standard deviations are exponential. At least 4,500 of them count.
stan_crossed <- function() {
  list(
    mean = c(0.11489, 0.420901, 0.73154, 0.53797, 0.237347),
    sd = c(0.28699, 0.036198, 0.12435, 0.22813, 0.075644),
    a = c(
      0.239, -1.197, -0.327, 0.644, 1.301, 0.067, 1.169, -0.899, 0.638, -0.045,
      0.43, -0.309, -0.787, -0.707, -0.001, 0.018, -0.508, -1.052, 0.437,
      -0.118, 0.006, 0.362, -0.547, 0.982, 0.185
    )
  )
}

test_that("counts have the posterior that Stan finds", {
  data <- withr::with_seed(20, {
    n <- 400
    d <- data.frame(
      a = sample(25, n, TRUE),
      b = sample(24, n, TRUE),
      x = stats::rnorm(n)
    )
    d$region <- (d$b + 3) %/% 4
    d$y <- stats::rpois(n, exp(
      0.3 + 0.4 * d$x + 0.6 * stats::rnorm(25)[d$a] +
        0.4 * stats::rnorm(24)[d$b] + 0.5 * stats::rnorm(6)[d$region]
    ))
    d
  })
  stan <- stan_crossed()
  fit <- tall_glmer(
    y ~ x + (1 | a) + (1 | region / b),
    data,
    stats::poisson(),
    prior = prior_normal(0, 2.5),
    prior_intercept = prior_normal(0, 2.5),
    prior_covariance = prior_exponential(1),
    iter = 4000,
    warmup = 500,
    seed = 1,
    refresh = 0
  )
  expect_identical(fit$recipe$sweeps, 4)
  found <- posterior::summarise_draws(fit$draws, "mean", "sd", "ess_mean")
  expect_identical(
    found$variable[3:5],
    paste0("sd_", c("a", "region", "region:b"), "__Intercept")
  )
  per_draw <- 1 / 4500 + 1 / found$ess_mean
  z <- (found$mean - stan$mean) / (stan$sd * sqrt(per_draw))
  expect_lt(max(abs(z)), 4)
  # of a standard deviation about half, of laws with long tails more
  z <- (found$sd / stan$sd - 1) / sqrt(2 * per_draw)
  expect_lt(max(abs(z)), 4)
  effects <- ranef(fit)$a
  z <- (effects[[1]] - stan$a) / (attr(effects, "sd")[[1]] / sqrt(2000))
  expect_lt(max(abs(z)), 4)
})

test_that("fits have what those of lme4 and brms have", {
  data <- crossed_rows()
  fit <- crossed_fit()
  expect_s3_class(fit, c("tall_crossed", "tall_glmer"))
  expect_identical(
    fit$variables,
    c(
      "(Intercept)", "x", "sd_s__Intercept", "sd_s__x",
      "cor_s__Intercept__x", "sd_school__Intercept",
      "sd_school:class__Intercept", "sigma"
    )
  )
  expect_identical(ngrps(fit), c(s = 20L, school = 4L, "school:class" = 12L))
  expect_identical(stats::nobs(fit), 300)
  effects <- ranef(fit)
  expect_identical(names(effects), names(ngrps(fit)))
  expect_identical(rownames(effects$s), letters[1:20])
  expect_identical(rownames(effects[["school:class"]])[1:4],
    c("1:1", "1:2", "1:3", "2:1"))
  draws <- ranef(fit, summary = FALSE)
  expect_identical(dim(draws$s), c(200L, 20L, 2L))
  expect_equal(colMeans(draws$s), as.matrix(effects$s), ignore_attr = TRUE)
  expect_equal(
    apply(draws$school, 2, stats::sd),
    attr(effects$school, "sd")[[1]],
    ignore_attr = TRUE
  )
  some <- ranef(fit, groups = list(s = c("c", "a"), school = 2))
  expect_identical(names(some), c("s", "school"))
  expect_equal(some$s, effects$s[c("c", "a"), ], ignore_attr = TRUE)
  expect_identical(names(ranef(fit, groups = "school")), "school")
  expect_error(ranef(fit, groups = "x"), class = "tall_error_input")
  expect_error(
    ranef(fit, groups = list(s = "zz")),
    class = "tall_error_input"
  )
  all <- coef(fit)
  expect_equal(
    all$s[["x"]],
    fixef(fit)[["x"]] + effects$s[["x"]]
  )
  expect_equal(unique(all$school[["x"]]), fixef(fit)[["x"]])
  cov <- VarCorr(fit)
  expect_identical(names(cov), c(names(ngrps(fit)), "residual__"))
  of <- as.data.frame(cov)
  expect_identical(
    of$grp,
    c("s", "s", "s", "school", "school:class", "Residual")
  )
  table <- colMeans(as.matrix(fit))
  expect_equal(
    of$sdcor,
    unname(table[c(3, 4, 5, 6, 7, 8)])
  )
  part <- quick_crossed(
    y ~ x + (1 | s) + (1 | school),
    data,
    variables = "x"
  )
  expect_error(
    VarCorr(part),
    "all are needed",
    class = "tall_error_unsupported"
  )
  prior <- prior_summary(fit)
  expect_output(print(prior), "Group-level effects (school:class)",
    fixed = TRUE)
  expect_output(print(fit), "300 observations in 20 groups of s, 4 of school")
  expect_output(print(summary(fit)), "Group-level effects (s, 20 groups)",
    fixed = TRUE)
  expect_output(print(effects, n = 2), "Effects of 4 groups of school")
  skip_if_not_installed("insight")
  expect_length(insight::find_formula(fit)$random, 3)
})

test_that("predictions are those of the draws", {
  data <- crossed_rows()
  fit <- crossed_fit()
  draws <- as.matrix(fit)
  u <- ranef(fit, summary = FALSE)
  each <- function(x) rep(x, each = 200)
  of_class <- match(
    paste0(data$school, ":", data$class),
    rownames(ranef(fit)[["school:class"]])
  )
  students <- u$s[, data$s, 1] + u$s[, data$s, 2] * each(data$x)
  schools <- u$school[, data$school, 1]
  fixed <- draws[, 1:2] %*% rbind(1, data$x)
  eta <- fixed + students + schools + u[["school:class"]][, of_class, 1]
  expect_close(unname(posterior_linpred(fit)), unname(eta))
  expect_close(unname(posterior_epred(fit, newdata = data)), unname(eta))
  some <- function(re_formula) {
    unname(posterior_linpred(fit, re_formula = re_formula))
  }
  expect_close(some(NA), unname(fixed))
  expect_close(some(~0), unname(fixed))
  expect_close(some(~ (1 | school)), unname(fixed + schools))
  expect_close(some(~ (1 + x | s)), unname(fixed + students))
  intercepts <- u$s[, data$s, 1]
  expect_close(
    some(~ (1 | s) + (1 | school)),
    unname(fixed + intercepts + schools)
  )
  expect_close(
    unname(stats::fitted(fit)),
    unname(colMeans(eta))
  )
  expect_close(
    unname(log_lik(fit)),
    unname(stats::dnorm(each(data$y), eta, draws[, "sigma"], log = TRUE))
  )
  part <- log_lik(fit, pointwise = TRUE)
  few <- attr(part, "draws")[c(3, 150), ]
  expect_close(
    unname(part(attr(part, "data")[7:9, , drop = FALSE], few)),
    unname(log_lik(fit)[c(3, 150), 7:9])
  )
  loo <- suppressWarnings(loo::loo(fit))
  expect_identical(nrow(loo$pointwise), 300L)
  expect_identical(attr(loo, "rows")$unit, "observation")
  new <- data[1:2, ]
  new$school[[2]] <- 77
  expect_error(predict(fit, new), class = "tall_error_input")
  known <- posterior_linpred(fit, newdata = new, allow_new_levels = TRUE)
  expect_close(unname(known[, 1]), unname(eta[, 1]))
  # a school that is new, with a class that is new with it: 400 of them
  many <- data[rep(1, 400), ]
  many$school <- 100 + seq_len(400)
  spread <- posterior_linpred(fit, newdata = many, allow_new_levels = TRUE)
  away <- spread - fixed[, 1] - students[, 1]
  expected <- draws[, 6]^2 + draws[, 7]^2
  z <- (rowMeans(away^2) / expected - 1) / sqrt(2 / 400)
  expect_lt(abs(mean(z)), 4 / sqrt(length(z)))
  y <- posterior_predict(fit, ndraws = 30, seed = 1)
  expect_identical(dim(y), c(30L, 300L))
  expect_identical(posterior_predict(fit, ndraws = 30, seed = 1), y)
  expect_lt(
    log_loss(fit, data),
    log_loss(quick_crossed(y ~ (1 | school) + (1 | class), data), data)
  )
})

test_that("of effects as much is kept as was asked for", {
  data <- crossed_rows()
  formula <- b ~ x + (1 | s) + (1 | school)
  run <- function(keep, ...) {
    quick_crossed(formula, data, stats::binomial(), keep_effects = keep, ...)
  }
  draws <- run(NULL)
  expect_identical(draws$kernel, kernel_gibbs("draws", FALSE))
  summary <- run("summary")
  none <- run("none")
  expect_identical(summary$draws, draws$draws)
  expect_identical(none$draws, draws$draws)
  expect_equal(ranef(summary), ranef(draws))
  some <- run(list(s = c("b", "a"), school = 1:4))
  expect_equal(
    ranef(some, summary = FALSE, groups = list(s = c("a", "b"))),
    ranef(draws, summary = FALSE, groups = list(s = c("a", "b")))
  )
  at <- which(data$s == "b")
  expect_equal(
    stats::predict(some, data[at, ]),
    stats::predict(draws, data[at, ])
  )
  expect_error(
    stats::predict(some, data[data$s == "c", ]),
    "kept no draws of the effects of",
    class = "tall_error_unsupported"
  )
  expect_equal(coef(summary), coef(draws))
  expect_null(summary$effect_draws)
  for (f in list(predict, posterior_predict, loo::loo, log_lik)) {
    expect_error(f(summary), "keep_effects", class = "tall_error_unsupported")
  }
  expect_length(predict(summary, re_formula = NA), 300)
  expect_error(ranef(none), "keep_effects", class = "tall_error_unsupported")
  # many are told before they are made
  local_settings(effect_bytes = 1000)
  said <- testthat::capture_messages(many <- run(NULL))
  expect_match(said, "Of 24 effects means, standard deviations", all = FALSE)
  expect_identical(many$draws, draws$draws)
  expect_null(many$effect_draws)
  expect_message(run("draws"), "Draws of 24 effects take")
})

test_that("a run goes on, also from a file", {
  data <- crossed_rows(150)
  formula <- b ~ x + (x || s) + (1 | school)
  run <- function(iter, ...) {
    tall_glmer(
      formula,
      data,
      stats::binomial(),
      iter = iter,
      warmup = 40,
      chains = 2,
      seed = 1,
      refresh = 0,
      ...
    )
  }
  whole <- run(120)
  expect_identical(run(120, cores = 2)$draws, whole$draws)
  half <- run(80)
  file <- withr::local_tempfile()
  saveRDS(half, file)
  for (fit in list(half, readRDS(file))) {
    more <- sg_resume(fit, iter = 40, refresh = 0)
    expect_s3_class(more, "tall_crossed")
    expect_identical(more$draws, whole$draws)
    expect_identical(more$effect_draws, whole$effect_draws)
    expect_identical(ranef(more), ranef(whole))
  }
})

test_that("trials are rows together, and weights rows so often", {
  data <- crossed_rows(120)
  run <- function(formula, data, family = stats::binomial(), ...) {
    fit <- tall_glmer(
      formula,
      data,
      family,
      ...,
      iter = 3000,
      warmup = 500,
      seed = 1,
      refresh = 0
    )
    posterior::summarise_draws(fit$draws, "mean", "sd", "mcse_mean")
  }
  expect_same <- function(one, other) {
    z <- (one$mean - other$mean) / sqrt(one$mcse_mean^2 + other$mcse_mean^2)
    expect_lt(max(abs(z)), 4)
  }
  together <- run(
    cbind(successes, trials - successes) ~ x + (1 | s) + (1 | school),
    data
  )
  at <- rep(seq_len(120), data$trials)
  apart <- data[at, ]
  number <- stats::ave(at, at, FUN = seq_along)
  apart$one <- as.integer(number <= data$successes[at])
  expect_same(together, run(one ~ x + (1 | s) + (1 | school), apart))
  data$count <- withr::with_seed(1, stats::rpois(120, exp(data$x / 2)))
  twice <- rbind(data, data)
  expect_same(
    run(
      count ~ offset(log(trials)) + x + (1 | s) + (1 | school),
      data,
      stats::poisson(),
      weights = rep(2, 120)
    ),
    run(
      count ~ offset(log(trials)) + x + (1 | s) + (1 | school),
      twice,
      stats::poisson()
    )
  )
})
