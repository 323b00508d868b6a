# tall_glmer(): formulas, data that say nothing, what fits have.

few_groups <- function() {
  withr::local_seed(8)
  d <- data.frame(
    g = factor(rep(letters[1:12], each = 8), levels = letters),
    h = rep(1:4, 24),
    x = stats::rnorm(96),
    w = stats::runif(96, 0.5, 2)
  )
  u <- stats::rnorm(12)[d$g]
  d$y <- 0.5 + d$x + u + stats::rnorm(96, 0, 0.7)
  d$b <- stats::rbinom(96, 1, stats::plogis(d$x + u))
  d$n <- stats::rpois(96, exp(0.2 + 0.3 * d$x + u))
  d
}

quick <- function(...) {
  tall_glmer(..., iter = 200, chains = 2, seed = 1, refresh = 0)
}

test_that("formulas are split as lme4 has them", {
  split <- split_bars(read_bars(y ~ a * b + offset(o) - 1 + (1 + x | f(g))))
  expect_equal(split$fixed, y ~ a * b + offset(o) - 1, ignore_attr = TRUE)
  expect_equal(split$effects, ~ 1 + x, ignore_attr = TRUE)
  expect_identical(split$name, "f(g)")
  expect_true(split$correlated)
  split <- split_bars(read_bars(y ~ (0 + x || a:b)))
  expect_equal(split$fixed, y ~ 1, ignore_attr = TRUE)
  expect_identical(split$name, "a:b")
  expect_false(split$correlated)
})

test_that("formulas that cannot be fitted are refused in words", {
  d <- few_groups()
  unsupported <- list(
    y ~ . + (1 | g),
    y ~ (1 + x + I(x^2) + I(x^3) | g)
  )
  for (formula in unsupported) {
    expect_error(quick(formula, d), class = "tall_error_unsupported")
  }
  bad <- list(
    y ~ x,
    y ~ x * (1 | g),
    ~ (1 | g),
    y ~ (1 | g + h),
    y ~ (0 | g),
    y ~ x + (1 | g) + (0 + x | g)
  )
  for (formula in bad) {
    expect_error(quick(formula, d), class = "tall_error_input")
  }
  expect_error(quick("y ~ (1 | g)", d), class = "tall_error_input")
  expect_error(
    quick(y ~ (1 | g), d, family = student(5)),
    class = "tall_error_unsupported"
  )
  expect_error(tall_glm(y ~ x + (1 | g), d), "tall_glmer")
})

test_that("slopes of a constant are refused by their name", {
  d <- few_groups()
  d$seven <- 7
  d$none <- 0
  d$far <- 1e9
  for (name in c("seven", "none", "far")) {
    formula <- stats::as.formula(sprintf("y ~ x + (1 + %s | g)", name))
    error <- expect_error(quick(formula, d), class = "tall_error_input")
    expect_identical(error$value, name)
    expect_match(conditionMessage(error), name, fixed = TRUE)
  }
  formula <- y ~ x + (1 + x + seven || g)
  error <- expect_error(quick(formula, d), class = "tall_error_input")
  expect_identical(error$value, "seven")
})

test_that("data that say nothing of groups are refused in words", {
  d <- few_groups()
  d$one <- 1
  d$row <- seq_len(nrow(d))
  d$of_group <- as.numeric(d$g)
  refused <- function(formula, ...) {
    expect_error(quick(formula, d, ...), class = "tall_error_input")
  }
  refused(y ~ x + (1 | one))
  refused(y ~ x + (1 | row))
  refused(b ~ x + (1 | row), family = stats::binomial())
  refused(y ~ x + (1 + of_group | g))
  refused(y ~ x + (1 | g), prior_covariance = prior_laplace())
  refused(y ~ x + (1 | g), lambda = 2)
  # these are fine
  known <- quick(y ~ x + (1 | row), d, sigma = 0.5)
  expect_identical(known$n_data, 96)
  counts <- quick(n ~ x + (1 | row), d, family = stats::poisson())
  expect_identical(ngrps(counts), c(row = 96L))
})

test_that("missing values, weights, offsets and unused levels are glm()'s", {
  d <- few_groups()
  d$g[3] <- NA
  d$x[[10]] <- NA
  d$w[[20]] <- 0
  fit <- tall_glmer(
    n ~ x + (1 | g),
    d,
    stats::poisson(),
    weights = w,
    offset = log(h),
    iter = 200,
    seed = 1,
    refresh = 0
  )
  expect_error(
    quick(n ~ 1 + (1 | g), d, stats::poisson(), na.action = stats::na.pass),
    "`g` must not be missing, but row 3",
    class = "tall_error_input"
  )
  expect_identical(nobs(fit), 93L)
  expect_identical(ngrps(fit), c(g = 12L))
  left <- d[-c(3, 10, 20), ]
  left <- left[sample(nrow(left)), ]
  other <- tall_glmer(
    n ~ x + offset(log(h)) + (1 | g),
    left,
    stats::poisson(),
    weights = w,
    iter = 200,
    seed = 1,
    refresh = 0
  )
  expect_close(other$mode$estimate, fit$mode$estimate, tolerance = 1e-6)
})

test_that("a row of weight two is two rows", {
  d <- few_groups()
  d$two <- 2
  prior <- prior_normal(0, 1)
  twice <- quick(n ~ x + (1 | g), rbind(d, d), stats::poisson(), prior, prior)
  weighted <- tall_glmer(
    n ~ x + (1 | g),
    d,
    stats::poisson(),
    prior,
    prior,
    weights = two,
    iter = 200,
    seed = 1,
    refresh = 0
  )
  expect_close(weighted$mode$estimate, twice$mode$estimate, tolerance = 1e-5)
})

test_that("variables are named as brms names them", {
  d <- few_groups()
  fit <- quick(y ~ x + (1 + x | g), d)
  expect_identical(
    fit$variables,
    c(
      "(Intercept)", "x", "sd_g__Intercept", "sd_g__x",
      "cor_g__Intercept__x", "sigma"
    )
  )
  fit <- quick(b ~ (x || g:h), d, family = stats::binomial())
  expect_identical(
    fit$variables,
    c("(Intercept)", "sd_g:h__Intercept", "sd_g:h__x")
  )
})

test_that("effects are those of the exact conditional law", {
  d <- few_groups()
  fit <- quick(y ~ x + (1 | g), d)
  draws <- as.matrix(fit)
  effects <- ranef(fit, ndraws = nrow(draws))$g
  of <- d$g == "b"
  sum <- rowSums(outer(-draws[, 1], d$y[of], "+") - outer(draws[, 2], d$x[of]))
  variance <- 1 / (1 / draws[, 3]^2 + 8 / draws[, 4]^2)
  mean <- variance * sum / draws[, 4]^2
  expect_close(effects["b", 1], mean(mean))
  sd <- sqrt(mean(variance) + mean((mean - mean(mean))^2))
  expect_close(attr(effects, "sd")["b", 1], sd)
  drawn <- ranef(fit, summary = FALSE, groups = "b")[, 1, 1]
  n <- length(drawn)
  z <- (drawn - mean) / sqrt(variance)
  expect_lt(abs(mean(z)), 4 / sqrt(n))
  expect_lt(abs(stats::var(z) - 1), 4 * sqrt(2 / n))
  expect_error(ranef(fit, groups = "z"), class = "tall_error_input")
})

test_that("what fits have fits together", {
  d <- few_groups()
  fit <- quick(b ~ x + (1 + x | g), d, family = stats::binomial())
  expect_named(fixef(fit), c("(Intercept)", "x"))
  all <- coef(fit)$g
  own <- ranef(fit)$g
  expect_equal(all$x, own$x + fixef(fit)[["x"]])
  cov <- VarCorr(fit)$g
  expect_named(cov, c("sd", "cor", "cov"))
  expect_equal(diag(cov$cor), c("(Intercept)" = 1, x = 1))
  expect_output(print(fit), "96 observations in 12 groups of g")
  expect_output(print(VarCorr(fit)), "correlations")
  loo <- suppressWarnings(loo::loo(fit))
  expect_identical(dim(loo$pointwise)[[1]], 12L)
})

test_that("predictions are of groups, of new ones, and of the population", {
  d <- few_groups()
  fit <- quick(y ~ x + (1 + x | g), d)
  draws <- as.matrix(fit)
  new <- data.frame(x = c(0, 1, 2), g = c("a", "b", "new"))
  of <- predict(fit, new[1:2, ], ndraws = 200)
  all <- coef(fit)$g
  expect_lt(max(abs(of - c(all["a", 1], sum(all["b", ])))), 0.25)
  expect_error(predict(fit, new), class = "tall_error_input")
  population <- rstantools::posterior_epred(fit, new, re_formula = NA)
  expect_close(unname(population), unname(draws[, 1:2] %*% rbind(1, new$x)))
  many <- data.frame(x = 1, g = paste("new", 1:400))
  spread <- rstantools::posterior_linpred(
    fit,
    newdata = many,
    allow_new_levels = TRUE
  )
  effect <- spread - rowSums(draws[, 1:2])
  expected <- draws[, 3]^2 + draws[, 4]^2 +
    2 * draws[, 5] * draws[, 3] * draws[, 4]
  # each draw has a chi-squared number of 400 degrees of freedom
  z <- (rowMeans(effect^2) / expected - 1) / sqrt(2 / 400)
  expect_lt(abs(mean(z)), 4 / sqrt(length(z)))
  expect_lt(max(abs(z)), 6)
  y <- rstantools::posterior_predict(fit, ndraws = 50, seed = 1)
  expect_identical(dim(y), c(50L, 96L))
  expect_identical(
    rstantools::posterior_predict(fit, ndraws = 50, seed = 1), y
  )
  expect_error(
    predict(fit, data.frame(x = 1)),
    class = "tall_error_input"
  )
  expect_identical(predict(fit, re_formula = ~ (x | g)), predict(fit))
  of <- predict(fit, new[1:2, ], re_formula = ~ (1 | g), ndraws = 200)
  expected <- all[c("a", "b"), 1] + fixef(fit)[["x"]] * c(0, 1)
  expect_lt(max(abs(of - expected)), 0.25)
  for (other in list(~ (1 | h), ~ x + (1 | g), ~ (0 + x | g), TRUE)) {
    expect_error(predict(fit, re_formula = other), class = "tall_error_input")
  }
})

test_that("a fit read from a file has its effects, if it kept its data", {
  d <- few_groups()
  path <- withr::local_tempfile(fileext = ".rds")
  fit <- quick(b ~ x + (1 | g), d, family = stats::binomial())
  before <- ranef(fit)
  saveRDS(fit, path)
  rm(list = ls(fit_cache), envir = fit_cache)
  expect_equal(ranef(readRDS(path)), before)
  fit <- quick(b ~ x + (1 | g), d, stats::binomial(), keep_data = FALSE)
  rm(list = ls(fit_cache), envir = fit_cache)
  expect_error(ranef(fit), class = "tall_error_stale")
})

test_that("tidy() has coefficients, and parameters of groups on request", {
  d <- few_groups()
  fit <- quick(y ~ x + (1 | g), d)
  expect_identical(tidy(fit)$term, c("(Intercept)", "x"))
  all <- tidy(fit, c("fixed", "ran_pars", "auxiliary"), conf.int = TRUE)
  expect_identical(all$term, fit$variables)
  expect_identical(all$effect, c("fixed", "fixed", "ran_pars", "auxiliary"))
  expect_equal(tidy(fit, "ran_pars")$estimate, mean(as.matrix(fit)[, 3]))
})

test_that("nodes are raised until the search for the mode has its way", {
  withr::local_seed(3)
  d <- data.frame(g = rep(1:60, each = 8), x = stats::rnorm(480))
  d$y <- rep(stats::rbinom(60, 1, 0.4), each = 8)
  d$y[seq(1, 480, length.out = 8)] <- 1 - d$y[seq(1, 480, length.out = 8)]
  model <- function(nodes) {
    model_groups(cbind(1, d$x), d$y, d$g, nodes = nodes)
  }
  # 9 nodes leave ripples
  expect_error(
    suppressWarnings(find_mode(model(9))),
    "more `nodes`",
    class = "tall_error_mode"
  )
  fit <- tall_glmer(
    y ~ x + (1 | g), d, stats::binomial(),
    iter = 4, warmup = 2, chains = 1, seed = 1, refresh = 0
  ) |>
    suppressWarnings()
  expect_gt(fit$nodes, most_hermite)
  fine <- find_mode(model(401))
  off <- find_mode(model(fit$nodes))$estimate - fine$estimate
  expect_lt(max(abs(off / sqrt(diag(vcov(fine))))), 0.05)
})

test_that("a grid of nodes that is too coarse is told", {
  withr::local_seed(3)
  d <- data.frame(g = rep(1:60, each = 6), x = stats::rnorm(360))
  u <- matrix(stats::rnorm(120), 60)[d$g, ]
  d$y <- stats::rbinom(360, 1, stats::plogis(8 * u[, 1] + 6 * d$x * u[, 2]))
  is_told <- function(formula) {
    seen <- testthat::capture_warnings(tall_glmer(
      formula, d, stats::binomial(),
      iter = 4, warmup = 2, chains = 1, seed = 1, refresh = 0
    ))
    any(grepl("too large for the", seen))
  }
  expect_true(suppressMessages(is_told(y ~ x + (1 + x | g))))
  # of a single effect there are more
  d$y <- stats::rbinom(360, 1, stats::plogis(15 * u[, 1]))
  expect_false(is_told(y ~ x + (1 | g)))
})

test_that("groups that are all 0 or all 1 have a mode", {
  d <- few_groups()
  d$b[d$g %in% c("a", "b", "c")] <- 0
  d$b[d$g %in% c("d", "e", "f")] <- 1
  fit <- expect_no_warning(
    quick(b ~ x + (1 | g), d, family = stats::binomial())
  )
  effects <- as.matrix(ranef(fit)$g)[, 1]
  expect_lt(max(effects[c("a", "b", "c")]), min(effects[c("d", "e", "f")]))
})

test_that("an offset inside of a group-level term is refused", {
  data <- data.frame(
    y = rnorm(20),
    x = rnorm(20),
    o = rnorm(20),
    g = rep(1:4, 5)
  )
  formulas <- list(
    y ~ x + (offset(o) | g),
    y ~ (x + offset(o) || g),
    y ~ (1 | offset(g))
  )
  for (formula in formulas) {
    e <- expect_error(
      tall_glmer(formula, data),
      "must have `offset()` outside of the group-level term",
      fixed = TRUE,
      class = "tall_error_input"
    )
    expect_identical(e$argument, "formula")
  }
})
