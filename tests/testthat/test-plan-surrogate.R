# Exact steps with awkward rows: levels with few rows or without events.

# Levels with these numbers of rows and events; the first is the baseline.
levels_data <- function(n, events) {
  data.frame(
    y = unlist(Map(function(n, k) rep(1:0, c(k, n - k)), n, events)),
    level = factor(rep(letters[seq_along(n)], n))
  )
}

# The posterior of the intercept under normal priors, the levels integrated out
# on a grid each.
intercept_by_grid <- function(n, events, scale) {
  log_lik <- function(eta, g) {
    events[[g]] * stats::plogis(eta, log.p = TRUE) +
      (n[[g]] - events[[g]]) * stats::plogis(-eta, log.p = TRUE)
  }
  a <- seq(-50, 0, length.out = 1001)
  b <- seq(-6 * scale, 6 * scale, length.out = 6001)
  log_b <- stats::dnorm(b, 0, scale, log = TRUE)
  log_p <- stats::dnorm(a, 0, scale, log = TRUE) + log_lik(a, 1)
  for (g in seq_along(n)[-1]) {
    log_p <- log_p + vapply(
      a,
      function(a) {
        l <- log_lik(a + b, g) + log_b
        max(l) + log(sum(exp(l - max(l))))
      },
      0
    )
  }
  p <- exp(log_p - max(log_p))
  mean <- sum(p * a) / sum(p)
  list(mean = mean, sd = sqrt(sum(p * (a - mean)^2) / sum(p)))
}

rare_levels <- list(
  n = c(120, 4000, 3000, 2500, 9, 40),
  events = c(0, 400, 90, 700, 0, 1)
)

rare_model <- function() {
  data <- do.call(levels_data, rare_levels)
  x <- stats::model.matrix(~level, data)
  model_glm(x, data$y, family = "bernoulli", prior = prior_normal(0, 10))
}

rare_fit <- function(..., model = rare_model()) {
  sg_sample(model, ..., refresh = 0)
}

test_that("levels without events are exact, with their rows as they are", {
  skip_on_cran()
  exact <- intercept_by_grid(rare_levels$n, rare_levels$events, 10)
  expect_no_warning(fit <- rare_fit(iter = 3000, warmup = 500, seed = 2))
  expect_s3_class(fit$kernel, "tall_kernel_smh")
  expect_match(fit$plan, "^exact steps: 169 rows that make the posterior far")
  expect_identical(fit$recipe$n_awkward, 169L)
  # the baseline's, and those of the two rare levels
  expect_identical(fit$kernel$args$awkward, as.double(c(1:120, 9621:9669)))
  expect_true(all(summary(fit)$table$sd_bias == 0))
  draws <- posterior::extract_variable_matrix(fit$draws, "(Intercept)")
  expect_lt(abs(mean(draws) - exact$mean), 4 * posterior::mcse_mean(draws))
  expect_lt(abs(stats::sd(draws) - exact$sd), 4 * posterior::mcse_sd(draws))
  summary <- posterior::summarise_draws(fit$draws, "rhat", "ess_bulk")
  expect_lt(max(summary$rhat), 1.01)
  expect_gt(min(summary$ess_bulk), 1000)
})

test_that("such a run depends on seed and model alone, and goes on", {
  model <- rare_model()
  fit <- rare_fit(iter = 60, warmup = 20, seed = 3, model = model)
  expect_same_outcome(
    rare_fit(iter = 60, warmup = 20, seed = 3, model = model, cores = 2),
    fit
  )
  longer <- sg_resume(
    unserialize(serialize(fit, NULL)),
    iter = 40,
    model = rare_model(),
    refresh = 0
  )
  whole <- rare_fit(iter = 100, warmup = 20, seed = 3, model = model)
  expect_identical(unclass(longer$draws)[, , ], unclass(whole$draws)[, , ])
})

test_that("awkward rows are those of rare cells, and as many as pay", {
  model <- rare_model()
  mode <- find_mode(model)
  control <- list(cores = 1L)
  found <- awkward_rows(model, mode, control, new_ledger())
  expect_identical(found$rows, as.double(c(1:120, 9621:9669)))
  # columns that no other rows have
  expect_identical(unname(found$rare), 5:6)
  local_settings(recipe = list(awkward_size = 0, most_awkward = 130))
  some <- awkward_rows(model, mode, control, new_ledger())
  expect_identical(length(some$rows), 130L)
  expect_true(all(some$rows %in% found$rows))
})

test_that("a model without such rows goes where it went", {
  model <- tall_model(3000)
  mode <- find_mode(model)
  control <- list(cores = 1L, chains = 1, warmup = 10, iter = 20, seed = 1)
  local_settings(recipe = list(awkward_sd = Inf))
  tried <- try_surrogate(model, mode, control, new_ledger())
  expect_null(tried$plan)
  expect_match(tried$why_not, "no rows of its own")
})
