test_that("priors that learn their scales print their arguments", {
  expect_snapshot({
    prior_ridge()
    prior_ridge(Inf, location = c(a = 1, b = 0))
    prior_hs(global_scale = 0.1, autoscale = TRUE)
    prior_r2d2(0.2, 5)
  })
})

test_that("their arguments are refused in words", {
  expect_snapshot(prior_hs(global_scale = 0), error = TRUE, cnd_class = TRUE)
  expect_snapshot(prior_ridge(df = -1), error = TRUE)
  expect_snapshot(prior_r2d2(mean_R2 = 1), error = TRUE)
  expect_snapshot(prior_r2d2(cons_D2 = 0.01), error = TRUE)
  expect_snapshot(
    prior_resolve(
      prior_r2d2(cons_D2 = c(a = 1, c = 1)),
      names = c("a", "b"),
      column_sd = c(1, 1),
      takes_mixture = TRUE
    ),
    error = TRUE
  )
})

test_that("their places are those of the core's registry", {
  places <- unlist(lapply(prior_kinds, `[[`, "mixture"))
  expect_named(places, names(prior_mixtures))
  core <- .Call(ffi_mixture_registry)[places + 1]
  expect_identical(core, c("ridge", "horseshoe", "r2d2"))
})

test_that("they are resolved to a block of coefficients", {
  resolved <- prior_resolve(
    prior_hs(autoscale = TRUE),
    prior_normal(),
    names = c("(Intercept)", "a", "b"),
    column_sd = c(0, 2, 4),
    units = list(sd = 3),
    takes_mixture = TRUE
  )
  own <- resolved$mixture
  expect_identical(
    own$names,
    c("hs_global", "hs_slab", "hs_local[a]", "hs_local[b]")
  )
  expect_identical(own$params$mixture_at, c(1, 2))
  expect_identical(own$params$mixture_scale, c(3 / 2, 3 / 4))
  expect_identical(own$params$mixture_argument, c(1, 1, 0.01, 4, 2.5))
  expect_identical(core_kinds(resolved), c(1, 0, 0))
  expect_length(append_hyper(resolved)$kind, 3 + 4)
})

test_that("models without hyperparameters refuse them", {
  expect_snapshot(
    prior_resolve(prior_hs(), names = "a"),
    error = TRUE,
    cnd_class = TRUE
  )
  d <- data.frame(x = 1:10, y = rep(0:1, 5))
  expect_snapshot(
    tall_glm(y ~ x, d, family = binomial(), prior_intercept = prior_hs()),
    error = TRUE
  )
  d$hs_global <- d$x
  expect_snapshot(tall_glm(y ~ hs_global, d, prior = prior_hs()), error = TRUE)
})

# precisions as the help has them
test_that("precisions are those of the help", {
  resolve <- function(prior) {
    prior_resolve(
      prior,
      names = c("a", "b", "c"),
      column_sd = c(1, 2, 4),
      takes_mixture = TRUE
    )$mixture
  }
  s <- 1 / c(1, 2, 4)
  hs <- resolve(prior_hs(autoscale = TRUE))
  natural <- cbind(c(0.3, 2, 1, 0.5, 7), c(0.01, 1, 100, 2, 3))
  expected <- apply(natural, 2, function(x) {
    (1 / x[[2]]^2 + 1 / (x[[1]] * x[3:5])^2) / s^2
  })
  expect_equal(mixture_precision(hs, natural), expected)

  r2d2 <- resolve(prior_r2d2())
  natural <- cbind(c(0.3, 0.2, 0.7, 0.1))
  expected <- 1 / (s^2 * natural[-1] * 0.3 / 0.7)
  expect_equal(drop(mixture_precision(r2d2, natural)), expected)

  ridge <- resolve(prior_ridge(autoscale = TRUE))
  expect_equal(drop(mixture_precision(ridge, cbind(0.4))), 1 / (s * 0.4)^2)
})

test_that("draws from the prior have its moments", {
  n <- 20000
  se <- function(x) sd(x) / sqrt(length(x))
  near <- function(x, mean) expect_lt(abs(mean(x) - mean), 5 * se(x))
  tau <- simulate(prior_ridge(Inf, scale = 2), n, seed = 1)
  near(tau[, "ridge_sd"]^2, 4)
  near(tau[, "x1"]^2, 4)

  cons <- c(0.5, 1, 2.5)
  prior <- prior_r2d2(0.3, 4, cons_D2 = cons)
  r2d2 <- simulate(prior, n, seed = 1, n_coef = 3)
  r2 <- r2d2[, "r2d2_R2"]
  near(r2, 0.3)
  near((r2 - 0.3)^2, 0.3 * 0.7 / 5)
  for (j in 1:3) {
    share <- r2d2[, paste0("r2d2_share[x", j, "]")]
    near(share, cons[[j]] / 4)
    near((share - cons[[j]] / 4)^2, cons[[j]] * (4 - cons[[j]]) / (16 * 5))
  }

  hs <- simulate(prior_hs(3, 5, 0.1, 6, 2), n, seed = 1, n_coef = 2)
  ks <- function(x, cdf) {
    expect_gt(suppressWarnings(stats::ks.test(as.double(x), cdf)$p.value), 1e-4)
  }
  ks(hs[, "hs_global"] / 0.1, function(x) 2 * stats::pt(x, 5) - 1)
  ks(hs[, "hs_local[x2]"], function(x) 2 * stats::pt(x, 3) - 1)
  # 6 * 4 / c^2 is chi-squared
  ks(24 / hs[, "hs_slab"]^2, function(x) stats::pchisq(x, 6))
})

test_that("the same seed gives the same draws, and R's generator is left", {
  set.seed(1)
  before <- .Random.seed
  one <- simulate(prior_hs(), 5, seed = 3, n_coef = 2)
  expect_identical(.Random.seed, before)
  expect_identical(simulate(prior_hs(), 5, seed = 3, n_coef = 2), one)
  expect_false(identical(simulate(prior_hs(), 5, n_coef = 2), one))
})

# Piironen & Vehtari (2017), equation 3.11: p_0 of d effective coefficients
test_that("the guess of the global scale gives the effective number", {
  n_data <- 1000
  tau <- 2 / 8 / sqrt(n_data)
  draws <- simulate(prior_hs(), 20000, seed = 1, n_coef = 10)
  local <- posterior::subset_draws(draws, "hs_local", regex = TRUE)
  effective <- rowSums(1 - 1 / (1 + n_data * (tau * local)^2))
  expect_lt(abs(mean(effective) - 2), 5 * sd(effective) / sqrt(20000))
})

test_that("priors of rstanarm and brms are told in ours", {
  d <- data.frame(x = 1:10, y = rep(0:1, 5))
  told <- function(prior) {
    conditionMessage(expect_error(
      rlang::inject(tall_glm(y ~ x, d, prior = !!prior)),
      class = "tall_error_input"
    ))
  }
  says <- function(prior, ours) {
    text <- gsub("\\s+", " ", told(prior))
    expect_match(text, paste0("write `", ours, "`"), fixed = TRUE)
  }
  says(
    quote(hs(global_scale = 0.1)),
    paste0(
      "prior_hs(df = 1, global_df = 1, global_scale = 0.1, ",
      "slab_df = 4, slab_scale = 2.5)"
    )
  )
  says(
    quote(horseshoe(3, 0.5)),
    paste0(
      "prior_hs(df = 3, global_df = 1, global_scale = 0.5, ",
      "slab_df = 4, slab_scale = 2)"
    )
  )
  says(
    quote(horseshoe(par_ratio = 0.1)),
    paste0(
      "prior_hs(df = 1, global_df = 1, global_scale = 0.1/sqrt(nrow(data)), ",
      "slab_df = 4, slab_scale = 2)"
    )
  )
  says(
    "R2D2(0.3, prec_R2 = 4)",
    "prior_r2d2(mean_R2 = 0.3, prec_R2 = 4, cons_D2 = 0.5)"
  )
  given <- list(dist = "hs", df = 2, location = 0, scale = 1, global_df = 1)
  given <- c(given, global_scale = 0.2, slab_df = 4, slab_scale = 2.5)
  says(
    given,
    paste0(
      "prior_hs(df = 2, global_df = 1, global_scale = 0.2, ",
      "slab_df = 4, slab_scale = 2.5)"
    )
  )
})
