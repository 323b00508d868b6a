# Exact steps from a few rows under priors with hyperparameters. That steps are
# reversible is in tools/core-check/test-proposals.c; posteriors against
# quadrature are in test-model-scaled.R as well.

scales_model <- function(prior, n = 2000, family = "bernoulli") {
  withr::local_seed(11)
  x <- cbind("(Intercept)" = 1, matrix(stats::rnorm(n * 3), n))
  colnames(x)[-1] <- c("a", "b", "c")
  eta <- -0.5 + 0.4 * x[, "a"]
  y <- switch(
    family,
    bernoulli = stats::rbinom(n, 1, stats::plogis(eta)),
    poisson = stats::rpois(n, exp(eta)),
    gaussian = eta + stats::rnorm(n)
  )
  model_glm(
    x,
    y,
    family,
    prior = prior,
    prior_intercept = prior_normal(0, 2),
    sigma = if (family == "gaussian") 1
  )
}

priors_with_scales <- list(
  ridge = prior_ridge(scale = 0.5),
  hs = prior_hs(global_scale = 0.1),
  r2d2 = prior_r2d2(0.3, 3, autoscale = FALSE)
)

test_that("draws are those of importance sampling, for each prior and family", {
  skip_on_cran()
  for (family in c("bernoulli", "poisson")) {
    for (kind in names(priors_with_scales)) {
      model <- scales_model(priors_with_scales[[kind]], family = family)
      ours <- moments_of(model, NULL, 1, 2000)
      expect_identical(ours$fit$kernel$name, "smh")
      expect_match(ours$fit$plan, "whatever the hyperparameters")
      expect_gt(min(ours$ess), 1000)
      other <- weighted_moments(model, ours$fit$unconstrained)
      expect_moments_near(ours, other)
    }
  }
})

test_that("a quadratic likelihood is the surrogate: all are accepted", {
  for (prior in priors_with_scales) {
    model <- scales_model(prior, family = "gaussian")
    fit <- sg_sample(model, kernel_smh(), iter = 200, chains = 1, seed = 1,
      refresh = 0)
    expect_true(all(fit$chains$acceptance == 1))
    expect_true(all(fit$chains$rows_thinned == 0))
  }
})

test_that("lambda scales rows, not the prior of hyperparameters", {
  model <- scales_model(prior_ridge(scale = 0.5), n = 900)
  lambda <- 90
  fit <- sg_sample(
    model,
    kernel_smh(),
    iter = 500 + 3000 * 5,
    warmup = 500,
    thin = 5,
    seed = 5,
    lambda = lambda,
    refresh = 0
  )
  other <- weighted_moments(
    model,
    fit$unconstrained,
    weight = lambda / model$n_data
  )
  expect_moments_near(moments_at(fit$unconstrained), other)
})

test_that("draws do not depend on cores, and go on where they were", {
  model <- scales_model(prior_hs(global_scale = 0.1))
  mixed <- proposal_mixture(
    proposal_scales(2),
    proposal_hmc(),
    proposal_slice(0.2),
    times = 2
  )
  for (kernel in list(
    NULL,
    kernel_smh(),
    kernel_smh(proposal = mixed, awkward = 1:10)
  )) {
    run <- function(...) {
      sg_sample(
        model,
        kernel,
        ...,
        warmup = 30,
        chains = 2,
        seed = 1,
        refresh = 0
      )
    }
    one <- run(iter = 80)
    expect_identical(run(iter = 80, cores = 2)$draws, one$draws)
    more <- sg_resume(one, iter = 40, refresh = 0)
    expect_equal(
      unclass(posterior::as_draws_array(more)),
      unclass(posterior::as_draws_array(run(iter = 120))),
      ignore_attr = TRUE
    )
  }
})

test_that("columns that depend on each other have a posterior", {
  withr::local_seed(3)
  n <- 2500
  a <- stats::rnorm(n)
  x <- cbind("(Intercept)" = 1, a = a, twice = a)
  y <- stats::rbinom(n, 1, stats::plogis(a))
  model <- model_glm(
    x,
    y,
    prior = prior_ridge(),
    prior_intercept = prior_normal(0, 2)
  )
  fit <- sg_sample(model, iter = 1000, seed = 1, refresh = 0)
  expect_identical(fit$kernel$name, "smh")
  draws <- posterior::as_draws_matrix(fit$draws)
  expect_lt(abs(mean(draws[, "a"] + draws[, "twice"]) - 1), 0.15)
  expect_lt(max(posterior::summarise_draws(fit$draws, "rhat")$rhat), 1.02)
})

test_that("where few steps are accepted all rows are looked at, told so", {
  local_settings(recipe = list(scales_acceptance = 0.999))
  model <- scales_model(prior_ridge(), n = 200)
  fit <- sg_sample(model, iter = 60, chains = 1, seed = 1, refresh = 0)
  expect_identical(fit$kernel$name, "mala")
  expect_match(fit$plan, "from a few would be accepted with probability 0")
})

test_that("hyperparameters do not count where columns are limited", {
  model <- scales_model(prior_hs(global_scale = 0.1), n = 200)
  whitening <- function(most) {
    local_settings(
      most_whitened = most,
      recipe = list(scales_acceptance = 0.999)
    )
    fit <- sg_sample(model, iter = 20, chains = 1, seed = 1, refresh = 0)
    expect_identical(fit$kernel$name, "mala")
    fit$whitening$is_diagonal
  }
  # four coefficients, five hyperparameters
  expect_false(whitening(4))
  expect_true(whitening(3))
})

test_that("as many columns as are whitened take steps from a few rows", {
  skip_on_cran()
  # 1,000 and an intercept, of which the arithmetic alone takes long
  expect_identical(setting("most_whitened"), 1001)
  n_column <- 150
  # whatever becomes of these, so that it is short
  local_settings(
    most_whitened = n_column + 1,
    recipe = list(
      scales_pilot = c(10, 10),
      exact_pilot = 4,
      scales_acceptance = 0
    )
  )
  withr::local_seed(3)
  x <- matrix(stats::rnorm(1200 * n_column), 1200)
  colnames(x) <- paste0("x", seq_len(n_column))
  x <- cbind("(Intercept)" = 1, x)
  run <- function(x) {
    prior <- prior_hs(global_scale = 0.01)
    model <- model_glm(x, rep_len(0:1, 1200), prior = prior)
    way <- try_scales(model, find_mode(model), few_control, new_ledger())
    if (is.null(way$plan)) way$why_not else way$plan$kernel$name
  }
  few_control <- list(
    iter = 4,
    warmup = 2,
    chains = 1,
    cores = 1,
    seed = 1,
    refresh = 0
  )
  expect_identical(run(x), "smh")
  expect_match(run(cbind(x, more = x[, 2]^2)), "are for fewer columns")
})

test_that("a parameter that is sampled leaves it to steps on sums", {
  withr::local_seed(4)
  d <- data.frame(a = stats::rnorm(300), b = stats::rnorm(300))
  d$y <- d$a + stats::rnorm(300)
  fit <- tall_glm(y ~ a + b, d, prior = prior_ridge(), iter = 100, refresh = 0)
  expect_match(fit$plan, "sums over all rows, since the response is Gaussian")
})

# ---- how hyperparameters are moved ------------------------------------------

# Blocks of columns with a standard deviation each: the first of effects, the
# others of none.
blocks_model <- function(n = 3000, sizes = c(4, 3, 2)) {
  withr::local_seed(7)
  d <- sum(sizes)
  x <- cbind("(Intercept)" = 1, matrix(stats::rnorm(n * d), n))
  colnames(x)[-1] <- paste0("x", seq_len(d))
  eta <- -0.5 + drop(x[, 2:5] %*% c(0.6, -0.4, 0.3, 0.5))
  base <- model_glm(
    x,
    stats::rbinom(n, 1, stats::plogis(eta)),
    prior = prior_flat(),
    prior_intercept = prior_normal(0, 2)
  )
  last <- 1 + cumsum(sizes)
  base$prior$mixture <- joined_mixtures(lapply(seq_along(sizes), function(k) {
    at <- last[[k]] - sizes[[k]] + seq_len(sizes[[k]])
    out <- resolve_mixture(prior_ridge(scale = 0.5), base$prior, at)
    out$names <- paste0("sd", k)
    out$coordinates <- paste0("log_sd", k)
    out
  }))
  at <- base$prior$mixture$at
  base$prior$kind[at] <- prior_kinds$ridge$code
  scaled_model(base)
}

joined_mixtures <- function(blocks) {
  join <- function(name) unlist(lapply(blocks, `[[`, name))
  fields <- c("at", "names", "coordinates", "start")
  params <- names(blocks[[1]]$params)
  c(
    list(kind = "ridge"),
    sapply(fields, join, simplify = FALSE),
    list(params = sapply(params, function(name) {
      unlist(lapply(blocks, function(block) block$params[[name]]))
    }, simplify = FALSE))
  )
}

test_that("blocks with a scale each have moments of importance sampling", {
  skip_on_cran()
  model <- blocks_model()
  expect_identical(n_hyper(model), 3L)
  kernels <- list(
    recipe = NULL,
    marginal = kernel_smh(proposal = proposal_marginal(rounds = 3)),
    awkward = kernel_smh(
      proposal = proposal_marginal(rounds = 3),
      awkward = 1:40
    )
  )
  other <- NULL
  for (kernel in kernels) {
    ours <- moments_of(model, kernel, 1, 1500)
    other <- other %||% weighted_moments(model, ours$fit$unconstrained)
    expect_moments_near(ours, other)
    if (is.null(kernel)) {
      expect_gt(min(ours$ess), 1500)
      expect_match(ours$fit$plan, "with the coefficients integrated out")
    }
  }
})

test_that("where a scale is nearly 0 coefficients are integrated out", {
  withr::local_seed(2)
  x <- cbind("(Intercept)" = 1, matrix(stats::rnorm(30000), 3000))
  colnames(x)[-1] <- letters[1:10]
  model <- model_glm(
    x,
    stats::rbinom(3000, 1, 0.3),
    prior = prior_ridge(),
    prior_intercept = prior_normal(0, 2)
  )
  fit <- sg_sample(model, iter = 1000, seed = 1, refresh = 0)
  expect_match(fit$plan, "with the coefficients integrated out")
  least <- function(fit) {
    min(apply(fit$unconstrained, 3, posterior::ess_bulk))
  }
  # in turn they hold one another
  in_turn <- sg_sample(
    model,
    kernel_smh(),
    iter = 500 + 500 * fit$steps,
    thin = fit$steps,
    warmup = 500,
    seed = 1,
    refresh = 0
  )
  expect_gt(least(fit), 2 * least(in_turn))
})

test_that("many hyperparameters move in turn with the coefficients", {
  local_settings(recipe = list(few_scales = 0))
  fit <- sg_sample(
    scales_model(prior_ridge()),
    iter = 60,
    chains = 1,
    seed = 1,
    refresh = 0
  )
  expect_no_match(fit$plan, "integrated out")
  expect_null(fit$kernel$args$proposal)
})

test_that("the worst coordinate says how far a chain moves", {
  x <- withr::with_seed(1, rbind(
    stats::filter(stats::rnorm(4000), 0.8, "recursive"),
    stats::rnorm(4000)
  ))
  expect_equal(stay_of_ways(list(x)), 0.8, tolerance = 0.03)
  expect_equal(stay_of_ways(list(rbind(x, 1))), 1 - 1 / 4000)
  # one that stays in a part moves fast there, and slowly for all
  part <- withr::with_seed(2, stats::rnorm(8000, -2, 0.1))
  stay <- stay_of_ways(list(wide = x, part = matrix(part, 2)))
  expect_equal(stay[["wide"]], 0.8, tolerance = 0.03)
  expect_gt(stay[["part"]], 0.95)
})

test_that("rounds, and looks at awkward rows, cost", {
  model <- blocks_model(200)
  seconds <- function(proposal, ...) scales_seconds(proposal, model, ...)
  for (make in list(proposal_scales, function(n) proposal_marginal(1, n))) {
    expect_gt(seconds(make(3)), 2 * seconds(make(1)))
    expect_gt(seconds(make(3), 1:100), seconds(make(3)))
  }
  # a slice leaves the blocks of others alone
  one <- scales_model(prior_ridge(), n = 50)
  one$n_dim <- model$n_dim
  one$mixture$params$mixture_size <- sum(model$mixture$params$mixture_size)
  own <- scales_seconds(proposal_marginal(), one)
  expect_gt(own, seconds(proposal_marginal()))
})

# ---- every way to run on such a model ---------------------------------------

test_that("each kernel and estimator runs, or says why not", {
  model <- scales_model(prior_hs(global_scale = 0.1), n = 300)
  kernels <- conformance_kernels()
  kernels <- kernels[!duplicated(vapply(kernels, `[[`, "", "name"))]
  gradients <- list(
    none = NULL,
    simple = gradient_simple(),
    cv = gradient_cv(),
    order = gradient_cv(order = 2),
    saga = gradient_saga(),
    svrg = gradient_svrg(),
    full = gradient_full()
  )
  n_run <- 0
  for (entry in kernels) {
    kernel <- entry$make(0.01)
    for (gradient in gradients) {
      said <- tryCatch(
        {
          fit <- sg_sample(
            model,
            kernel,
            gradient = gradient,
            iter = 12,
            chains = 1,
            seed = 1,
            refresh = 0
          )
          expect_true(all(is.finite(fit$draws)))
          n_run <- n_run + 1
          NULL
        },
        tall_error_unsupported = conditionMessage
      )
      if (!is.null(said)) {
        is_noisy <- !kernel_is_metropolis(kernel)
        expect_match(said, if (is_noisy) "kernel_smh" else "kernel_|gradient_")
      }
    }
  }
  expect_gt(n_run, 10)
})

test_that("what looks at a fit of it works, or says why not", {
  model <- scales_model(prior_hs(global_scale = 0.1), n = 300)
  for (kernel in list(kernel_smh(), kernel_mala())) {
    fit <- sg_sample(
      model,
      kernel,
      iter = 200,
      chains = 2,
      keep = c("draws", "gradients"),
      seed = 1,
      refresh = 0
    )
    expect_s3_class(summary(fit), "tall_summary")
    expect_true(is.finite(ksd(fit)))
    expect_no_error(suppressMessages(zero_variance(fit)))
    expect_no_error(fssd(fit))
    expect_true(all(is.finite(shrinkage(fit))))
    expect_error(bias_check(fit), class = "tall_error_unsupported")
  }
  expect_error(subsampling_weights(model), class = "tall_error_unsupported")
  expect_error(lipschitz(model), class = "tall_error_unsupported")
})

test_that("proposals of hyperparameters want some", {
  plain <- tall_model(300)
  expect_snapshot(error = TRUE, {
    sg_sample(plain, kernel_smh(proposal = proposal_scales()), refresh = 0)
    proposal_scales(0)
    proposal_scales(stay = 1)
    proposal_marginal(-1)
  })
})

# ---- calibration ------------------------------------------------------------

# Parameters from their prior, with scales near 0 among them, data from these:
# ranks are uniform.
test_that("ranks are uniform under a ridge and a horseshoe", {
  skip_on_cran()
  n <- 500
  n_rank <- 15
  prior <- list(
    ridge = prior_ridge(df = 3, scale = 0.2),
    hs = prior_hs(global_scale = 0.05, slab_scale = 1)
  )
  half_t <- function(n, df, scale) abs(stats::rt(n, df)) * scale
  draw <- list(
    ridge = function(d) {
      sd <- half_t(1, 3, 0.2)
      c(stats::rnorm(d, 0, sd), sd)
    },
    hs = function(d) {
      global <- half_t(1, 1, 0.05)
      local <- half_t(d, 1, 1)
      slab <- 1 / sqrt(stats::rgamma(1, 2, 2))
      sd <- 1 / sqrt(1 / slab^2 + 1 / (global * local)^2)
      c(stats::rnorm(d, 0, sd), global, slab)
    }
  )
  for (kind in names(prior)) {
    ranks <- vapply(
      seq_len(60),
      function(k) {
        withr::local_seed(1000 + k)
        d <- 3
        x <- cbind("(Intercept)" = 1, matrix(stats::rnorm(n * d), n))
        truth <- draw[[kind]](d)
        intercept <- stats::rnorm(1, -0.5, 0.5)
        eta <- drop(x %*% c(intercept, truth[1:d]))
        model <- model_glm(
          x,
          stats::rbinom(n, 1, stats::plogis(eta)),
          prior = prior[[kind]],
          prior_intercept = prior_normal(-0.5, 0.5)
        )
        fit <- sg_sample(
          model,
          kernel_smh(),
          iter = 100 + 12 * n_rank,
          warmup = 100,
          thin = 12,
          chains = 1,
          seed = k,
          refresh = 0
        )
        draws <- posterior::as_draws_matrix(fit$draws)
        known <- c(intercept, truth)
        colSums(draws[, seq_along(known)] < rep(known, each = n_rank))
      },
      numeric(length(draw[[kind]](3)) + 1)
    )
    # four cells of four ranks each
    p <- apply(ranks, 1, function(r) {
      stats::chisq.test(table(factor(r %/% 4, 0:3)))$p.value
    })
    expect_gt(min(p) * length(p), 0.01)
  }
})

test_that("rows that no others tell of are known as they are", {
  n <- 6000
  data <- withr::with_seed(3, {
    x <- stats::rnorm(n)
    data.frame(x, y = stats::rbinom(n, 1, stats::plogis(x / 2 - 1)))
  })
  data$g <- as.numeric(seq_len(n) <= 8)
  data$y[1:8] <- 0
  # of g and the scale by a grid: what the others know is as good as fixed
  other <- stats::glm(y ~ x, binomial(), data, subset = g == 0)
  at <- unname(stats::coef(other))
  g <- sinh(seq(-8, 4, length.out = 2000))
  log_sd <- seq(-6, 9, length.out = 1500)
  density <- outer(g, exp(log_sd), function(g, sd) {
    log_prior <- stats::dnorm(g, 0, sd, TRUE) +
      stats::dnorm(at[[2]], 0, sd, TRUE) + stats::dt(sd / 2.5, 3, log = TRUE)
    exp(log_prior + 8 * stats::plogis(-at[[1]] - g, log.p = TRUE)) * sd
  })
  mass <- rowSums(density) * cosh(asinh(g))
  below <- cumsum(mass) / sum(mass)
  probs <- c(0.02, 0.1, 0.5, 0.9)
  cuts <- g[vapply(probs, function(p) which.max(below >= p), 0)]
  x <- cbind("(Intercept)" = 1, x = data$x, g = data$g)
  model <- model_glm(
    x,
    data$y,
    prior = prior_ridge(),
    prior_intercept = prior_normal(0, 5)
  )
  for (seed in c(5, 7)) {
    fit <- sg_sample(model, seed = seed, refresh = 0)
    expect_s3_class(fit$kernel, "tall_kernel_smh")
    expect_identical(fit$kernel$args$awkward, as.double(1:8))
    draws <- posterior::extract_variable_matrix(fit$draws, "g")
    expect_lt(posterior::rhat(draws), 1.01)
    for (k in seq_along(cuts)) {
      is_below <- draws < cuts[[k]]
      n_draw <- posterior::ess_mean(is_below)
      error <- sqrt(probs[[k]] * (1 - probs[[k]]) / n_draw)
      expect_lt(abs(mean(is_below) - probs[[k]]) / error, 4)
    }
  }
})

test_that("priors with heavy tails may bend the other way beside blocks", {
  skip_if_not_installed("mgcv")
  data <- withr::with_seed(3, {
    data <- data.frame(x = stats::runif(800), z = stats::rnorm(800))
    eta <- sin(6 * data$x) + 0.8 * data$z
    data$y <- stats::rbinom(800, 1, stats::plogis(eta))
    data
  })
  # minus the log density is not convex at the mean; there, where trajectories
  # would take too long, steps go on the surrogate
  local_settings(recipe = list(stuck_share = 1))
  fit <- suppressWarnings(tall_gam(
    y ~ s(x, k = 8) + z,
    data,
    stats::binomial(),
    prior = prior_student(1, 0, 0.25),
    iter = 200,
    seed = 1,
    refresh = 0
  ))
  expect_identical(fit$kernel$name, "smh")
})

test_that("where a mode lies at a bound all rows decide", {
  d <- withr::with_seed(1, {
    d <- data.frame(x = stats::runif(300), z = stats::runif(300))
    d$b <- stats::rbinom(300, 1, stats::plogis(3 * d$x + d$z))
    d
  })
  fit <- tall_glm(
    b ~ x + z,
    d,
    stats::binomial(),
    prior = prior_ridge(),
    prior_intercept = prior_uniform(-1, 0),
    iter = 100,
    seed = 1,
    refresh = 0
  )
  expect_match(fit$plan, "the mode lies at the bound of a uniform prior")
  centred <- fit$draws[, , "(Intercept)"] +
    mean(d$x) * fit$draws[, , "x"] + mean(d$z) * fit$draws[, , "z"]
  expect_true(all(centred > -1 & centred < 0))
})

test_that("of few rows those of a rare level are known as they are", {
  d <- withr::with_seed(1, {
    d <- data.frame(x = stats::runif(200), z = stats::runif(200))
    d$w <- stats::rnorm(200)
    d$y <- stats::rbinom(200, 1, stats::plogis(sin(6 * d$x) + d$w))
    share <- c(30, 20, 10, 10, 10, 5, 5, 1)
    d$g <- factor(sample(8, 200, TRUE, prob = share))
    d
  })
  fit <- tall_gam(y ~ s(x) + w + g, d, stats::binomial(), seed = 1, refresh = 0)
  found <- posterior::summarise_draws(fit, "rhat", "ess_bulk")
  expect_lt(max(found$rhat), 1.01)
  expect_gt(min(found$ess_bulk), 1200)
})

test_that("scales move while rare levels are held", {
  data <- withr::with_seed(1, {
    n <- 3000
    data <- data.frame(x = stats::runif(n), z = stats::rnorm(n))
    data$g <- factor(sample(c(letters[1:6], "r", "s", "t"), n, TRUE))
    data$g[data$g %in% c("r", "s", "t")] <- "a"
    data$g[1:12] <- rep(c("r", "s", "t"), 3:5)
    eta <- sin(6 * data$x) + 0.3 * data$z
    data$y <- stats::rbinom(n, 1, stats::plogis(eta))
    # without an event
    data$y[1:12] <- 0
    data
  })
  fit <- function() {
    tall_gam(
      y ~ s(x, k = 8) + z + g,
      data,
      stats::binomial(),
      prior = prior_normal(0, 2.5),
      iter = 2500,
      warmup = 500,
      seed = 1,
      refresh = 0
    )
  }
  held <- fit()
  expect_identical(ncol(held$gradient$surrogate$held), 3L)
  expect_lt(max(posterior::summarise_draws(held, "rhat")$rhat), 1.01)
  # all rows decide
  local_settings(recipe = list(scales_acceptance = 1))
  other <- fit()
  expect_match(other$plan, "all rows")
  expect_moments_near(
    moments_at(held$unconstrained),
    moments_at(other$unconstrained)
  )
})
