# model_crossed() and kernel_gibbs(). Geweke's test of sweeps, and what moves
# leave as it is, are in tools/core-check/test-crossed.c.

test_that("normal rows of two crossed factors have the posterior of a grid", {
  withr::local_seed(1)
  a <- rep(1:7, each = 6)
  b <- rep(1:6, 7)
  y <- 0.8 * stats::rnorm(7)[a] + 0.4 * stats::rnorm(6)[b] + stats::rnorm(42)
  exact <- crossed_grid(y, a, b, scale = 1, wide = 2)
  expect_lt(exact$edge, 1e-4)
  model <- model_crossed(
    cbind("(Intercept)" = rep(1, 42)),
    y,
    list(a = a, b = b),
    family = "gaussian",
    prior = prior_normal(0, 2),
    prior_covariance = prior_normal(0, 1),
    prior_aux = prior_exponential(1)
  )
  fit <- sg_sample(model, iter = 12000, warmup = 500, seed = 1, refresh = 0)
  expect_grid(unclass(fit$draws)[, , 2:4], exact)
})

test_that("one factor has the posterior of its quadrature", {
  withr::local_seed(2)
  n <- 300
  g <- sample(30, n, TRUE)
  x <- cbind("(Intercept)" = 1, x = stats::rnorm(n))
  u <- matrix(stats::rnorm(60), 30) %*% chol(matrix(c(1, 0.3, 0.3, 0.5), 2))
  y <- stats::rbinom(n, 1, stats::plogis(rowSums(x * u[g, ])))
  prior <- prior_lkj(2, sd = prior_exponential(1))
  crossed <- model_crossed(
    x,
    y,
    list(group = list(group = g, z = x)),
    prior_covariance = prior
  )
  groups <- model_groups(x, y, g, x, prior_covariance = prior)
  expect_identical(crossed$variables, groups$variables)
  one <- sg_sample(crossed, iter = 6000, warmup = 500, seed = 1, refresh = 0)
  other <- sg_sample(
    groups,
    kernel_hmc(steps = 8),
    iter = 2500,
    warmup = 500,
    chains = 2,
    seed = 2,
    refresh = 0
  )
  draws <- matrix(unclass(other$draws), ncol = 5)
  ess <- apply(unclass(other$draws), 3, posterior::ess_basic)
  for (j in 1:5) {
    x <- matrix(unclass(one$draws)[, , j], ncol = 4)
    off <- mean(x) - mean(draws[, j])
    se <- sqrt(posterior::mcse_mean(x)^2 + stats::var(draws[, j]) / ess[[j]])
    expect_lt(abs(off) / se, 4.5)
  }
})

# Of 120 rows of 15 groups.
one_factor_response <- function(name) {
  withr::with_seed(5, {
    u <- 1.2 * stats::rnorm(15)[rep(1:15, 8)]
    switch(
      name,
      probit = stats::rbinom(120, 1, stats::pnorm(u)),
      cloglog = stats::rbinom(120, 1, 1 - exp(-exp(u - 0.5))),
      poisson = stats::rpois(120, exp(0.3 + u)),
      neg_binomial_2 = stats::rnbinom(120, size = 2, mu = exp(1 + u)),
      Gamma = stats::rgamma(120, 2, 2 / exp(u)),
      gaussian = 0.3 + u + stats::rnorm(120)
    )
  })
}

one_factor_families <- list(
  probit = stats::binomial("probit"),
  cloglog = stats::binomial("cloglog"),
  poisson = stats::poisson(),
  neg_binomial_2 = neg_binomial_2(),
  Gamma = stats::Gamma("log"),
  gaussian = stats::gaussian()
)

for (name in names(one_factor_families)) {
  test_that(paste("sweeps agree with quadrature:", name), {
    y <- one_factor_response(name)
    x <- cbind("(Intercept)" = rep(1, 120))
    g <- rep(1:15, 8)
    model_by <- function(make, group) {
      make(
        x,
        y,
        group,
        family = one_factor_families[[name]],
        prior = prior_normal(0, 1),
        prior_covariance = prior_normal(0, 1),
        prior_aux = prior_exponential(1)
      )
    }
    crossed <- model_by(model_crossed, list(group = g))
    groups <- model_by(model_groups, g)
    expect_identical(crossed$variables, groups$variables)
    fit <- sg_sample(
      crossed,
      iter = 1200,
      warmup = 200,
      chains = 2,
      seed = 1,
      refresh = 0
    )
    exact <- model_grid(groups, fit$draws)
    expect_lt(exact$edge, 1e-4)
    expect_grid(unclass(fit$draws), exact)
  })
}

sbc_of_sweeps <- c(
  sbc_crossed_problems()[c("logistic", "gaussian")],
  sbc_near_problems()[c("crossed, logistic", "nested, gaussian")]
)

for (name in names(sbc_of_sweeps)) {
  test_that(paste("ranks are uniform:", name), {
    skip_on_cran()
    problem <- sbc_of_sweeps[[name]]
    n_draw <- 31
    runs <- sbc_runs(problem, 60, sbc_crossed_sample, n_draw)
    scores <- sbc_scores(runs)
    expect_gt(min(sbc_p_values(scores, n_draw)), 5e-6)
    each <- apply(scores, 1, sbc_p_values, n_draw = n_draw)
    expect_gt(min(each), 1e-5)
    # sds that are wrong by half are seen
    spoiled <- sbc_scores(runs, sbc_stretch(0.5))
    expect_lt(sbc_p_values(spoiled, n_draw)[["spread"]], 5e-6)
  })
}

crossed_example <- function(family = "bernoulli", n = 150, ...) {
  withr::with_seed(3, {
    columns <- crossed_columns(n)
    y <- stats::rbinom(n, 1, 0.4) + (family == "gaussian") * stats::rnorm(n)
    model_crossed(columns$x, y, crossed_groups(columns), family, ...)
  })
}

# one factor with three effects
crossed_three <- function() {
  withr::with_seed(4, {
    z <- cbind("(Intercept)" = 1, a = stats::rnorm(60), b = stats::rnorm(60))
    model_crossed(
      z[, 1, drop = FALSE],
      stats::rpois(60, 2),
      list(g = list(group = rep(1:10, 6), z = z)),
      "poisson"
    )
  })
}

test_that("draws depend on the seed alone, and runs go on", {
  model <- crossed_example()
  run <- function(..., seed = 1) {
    sg_sample(
      model,
      ...,
      warmup = 20,
      chains = 2,
      seed = seed,
      refresh = 0
    )
  }
  fit <- run(iter = 60)
  expect_false(identical(run(iter = 60, seed = 2)$draws, fit$draws))
  kept <- run(kernel_gibbs("draws"), iter = 60, cores = 2)
  expect_identical(kept$draws, fit$draws)
  expect_identical(kept$effects, fit$effects)
  expect_null(run(kernel_gibbs("none"), iter = 60)$effects)
  for (keep in c("draws", "summary")) {
    again <- sg_resume(
      run(kernel_gibbs(keep), iter = 35),
      iter = 25,
      refresh = 0
    )
    expect_identical(again$draws, fit$draws)
    expect_identical(again$effects, fit$effects)
    if (keep == "draws") {
      expect_identical(again$effect_draws, kept$effect_draws)
    }
  }
  # also in its warmup
  again <- sg_resume(run(iter = 25), iter = 35, refresh = 0)
  expect_identical(again$draws, fit$draws)
})

test_that("threads of a chain change no draw", {
  withr::local_seed(6)
  n <- 40000
  data <- data.frame(a = sample(3000, n, TRUE), b = sample(1500, n, TRUE))
  x <- cbind("(Intercept)" = 1, x = stats::rnorm(n))
  eta <- x[, "x"] + stats::rnorm(3000)[data$a] + stats::rnorm(1500)[data$b]
  y <- list(
    gaussian = eta + stats::rnorm(n),
    bernoulli = stats::rbinom(n, 1, stats::plogis(eta))
  )
  for (family in names(y)) {
    model <- model_crossed(
      x,
      y[[family]],
      list(a = list(group = data$a, z = x), b = data$b),
      family = family
    )
    run <- function(cores, chains) {
      kernel <- kernel_gibbs("summary", joint = family == "gaussian")
      fit <- sg_sample(
        model,
        kernel,
        iter = 8,
        warmup = 4,
        thin = 2,
        chains = chains,
        cores = cores,
        seed = 1,
        refresh = 0
      )
      list(fit$draws, fit$effects)
    }
    alone <- run(1, 1)
    expect_identical(run(3, 1), alone)
    expect_identical(run(4, 2), run(1, 2))
  }
})

test_that("equal rows are one, to sweeps and to nobody else", {
  withr::local_seed(7)
  n <- 3000
  data <- data.frame(
    a = sample(20, n, TRUE),
    b = sample(12, n, TRUE),
    x = sample(0:1, n, TRUE),
    w = stats::runif(n, 0.5, 2)
  )
  data$y <- data$x + stats::rnorm(20)[data$a] + stats::rnorm(12)[data$b] +
    stats::rnorm(n)
  # as good as equal, and all different
  data$close <- data$x + 1e-9 * seq_len(n) / n
  fit_of <- function(formula) {
    tall_glmer(
      formula,
      data = data,
      weights = w,
      kernel = kernel_gibbs("draws", joint = FALSE),
      iter = 60,
      warmup = 30,
      thin = 2,
      chains = 2,
      seed = 1,
      refresh = 0
    )
  }
  cells <- fit_of(y ~ x + (1 + x | a) + (1 | b))
  rows <- fit_of(y ~ close + (1 + close | a) + (1 | b))
  n_cell <- nrow(unique(data[c("a", "b", "x")]))
  expect_identical(cells$recipe$cells, as.double(n_cell))
  expect_null(rows$recipe$cells)
  expect_equal(
    unname(unclass(cells$draws)),
    unname(unclass(rows$draws)),
    tolerance = 1e-5,
    ignore_attr = TRUE
  )
  expect_equal(cells$effects$mean, rows$effects$mean, tolerance = 1e-5)
  expect_equal(stats::nobs(cells), n)
  expect_identical(ncol(rstantools::log_lik(cells, draws = 3)), as.integer(n))
  expect_match(
    paste(utils::capture.output(print(cells)), collapse = " "),
    "equal\\s+rows are one"
  )
  # hardly fewer cells than rows
  few <- fit_of(y ~ x + w + (1 | a) + (1 | b))
  expect_null(few$recipe$cells)
})

test_that("draws of chosen levels are those of all levels", {
  model <- crossed_example("gaussian")
  run <- function(keep, ...) {
    sg_sample(
      model,
      kernel_gibbs(keep),
      iter = 60,
      warmup = 20,
      chains = 2,
      seed = 1,
      refresh = 0,
      ...
    )
  }
  all <- run("draws")
  some <- run(list(d = c("3", "1"), s = 12))
  kept <- c("r_s[12,Intercept]", "r_s[12,x]", "r_d[1,Intercept]",
    "r_d[3,Intercept]")
  expect_identical(posterior::variables(some$effect_draws), kept)
  expect_identical(
    unclass(some$effect_draws)[],
    unclass(posterior::subset_draws(all$effect_draws, kept))[]
  )
  expect_identical(some$effects, all$effects)
  on <- sg_resume(some, iter = 10, refresh = 0)
  expect_identical(dim(on$effect_draws), c(50L, 2L, 4L))
  refused <- function(keep) {
    expect_error(run(keep), class = "tall_error_input")
  }
  refused(list(d = "nobody"))
  refused(list(what = 1))
  refused(list("a"))
  refused(list(d = list(1)))
})

test_that("quantiles of effects are those of the draws, without these", {
  local_settings(sweeps = list(most = 1))
  for (family in c("gaussian", "bernoulli")) {
    fit <- sg_sample(
      crossed_example(family),
      kernel_gibbs("draws"),
      iter = 3200,
      warmup = 200,
      chains = 2,
      seed = 1,
      refresh = 0
    )
    quantile <- function(p) apply(fit$effect_draws, 3, stats::quantile, p)
    # a tenth of a standard deviation, or so
    expect_lt(max(abs(fit$effects$q5 - quantile(0.05)) / fit$effects$sd), 0.2)
    expect_lt(max(abs(fit$effects$q95 - quantile(0.95)) / fit$effects$sd), 0.2)
    off <- (fit$effects$q95 - quantile(0.95)) / fit$effects$sd
    expect_lt(abs(mean(off)), 0.03)
  }
})

test_that("effects are those of the draws", {
  # of all sweeps
  local_settings(sweeps = list(most = 1))
  model <- crossed_example("gaussian")
  fit <- sg_sample(
    model,
    kernel_gibbs("draws"),
    iter = 100,
    warmup = 40,
    chains = 3,
    seed = 1,
    refresh = 0
  )
  draws <- fit$effect_draws
  expect_s3_class(draws, "draws_array")
  expect_identical(posterior::variables(draws), fit$effects$variable)
  expect_identical(
    fit$effects$variable[c(1:3, 25, 35)],
    c(
      "r_s[1,Intercept]", "r_s[1,x]", "r_s[2,Intercept]", "r_d[1,Intercept]",
      "r_dept[3,Intercept]"
    )
  )
  expect_equal(unname(apply(draws, 3, mean)), fit$effects$mean)
  expect_equal(unname(apply(draws, 3, stats::sd)), fit$effects$sd)
  expect_equal(
    unname(apply(draws, 3, posterior::rhat_basic, split = FALSE)),
    fit$effects$rhat
  )
  expect_output(print(fit), "sweeps of effects (exact)\n", fixed = TRUE)
  expect_output(print(summary(fit)), "sd_dept__Intercept")
})

test_that("variables are as their names say", {
  model <- crossed_example("gaussian")
  expect_identical(
    model$variables,
    c(
      "(Intercept)", "x", "sd_s__Intercept", "sd_s__x", "cor_s__Intercept__x",
      "sd_d__Intercept", "sd_dept__Intercept", "sigma"
    )
  )
  theta <- c(1, 2, -1, 0.5, 0.7, -2, 0, 0.3)
  expect_equal(
    drop(model_variables(model, theta)),
    c(1, 2, exp(-1), exp(0.5), tanh(0.7), exp(-2), 1, exp(0.3))
  )
  three <- crossed_three()
  zeta <- c(0.4, -0.8, 1.1)
  root <- partial_root(zeta, 3)
  out <- drop(model_variables(three, c(0, log(c(2, 3, 4)), zeta)))
  below <- tcrossprod(root)[cbind(c(2, 3, 3), c(1, 1, 2))]
  expect_equal(out[-1], c(2, 3, 4, below))
})

test_that("only sweeps sample it", {
  model <- crossed_example()
  expect_unsupported <- function(code) {
    error <- expect_error(code, class = "tall_error_unsupported")
    expect_match(conditionMessage(error), "kernel_gibbs()", fixed = TRUE)
  }
  expect_unsupported(sg_sample(model, kernel_mala()))
  expect_unsupported(sg_sample(model, kernel_sgld(1e-3)))
  expect_unsupported(sg_sample(model, gradient = gradient_full()))
  expect_unsupported(sg_sample(model, subsample = subsample_uniform(10)))
  decay <- schedule_decay(1, 0.5)
  expect_unsupported(sg_sample(model, schedule = decay))
  expect_unsupported(sg_sample(model, lambda = 10))
  expect_unsupported(sg_sample(model, keep = c("draws", "gradients")))
  expect_unsupported(find_mode(model))
  expect_unsupported(sg_tune(model))
  expect_unsupported(lipschitz(model))
  expect_unsupported(subsampling_weights(model, "gradient"))
  expect_unsupported(log_prob(model, numeric(model$n_dim)))
  x <- matrix(stats::rnorm(20))
  glm <- model_glm(x, rep(0:1, 10))
  expect_unsupported(sg_sample(glm, kernel_gibbs()))
})

test_that("what cannot be fitted is named", {
  x <- cbind("(Intercept)" = rep(1, 12), x = cos(1:12))
  y <- rep(0:1, 6)
  g <- rep(1:4, 3)
  crossed <- function(groups, ...) model_crossed(x, y, groups, ...)
  expect_snapshot(error = TRUE, crossed(g))
  expect_snapshot(error = TRUE, crossed(list(g)))
  expect_snapshot(error = TRUE, crossed(list(g = rep(1, 12))))
  expect_snapshot(error = TRUE, crossed(list(g = g, h = letters[g])))
  expect_snapshot(error = TRUE, crossed(list(g = g, h = 1:12), "gaussian"))
  twice <- list(group = g, z = 2 * x[, c(1, 1)])
  expect_snapshot(error = TRUE, crossed(list(g = twice)))
  expect_snapshot(error = TRUE, crossed(list(g = list(group = g, y = x))))
  expect_snapshot(error = TRUE, crossed(list(g = g[-1])))
  expect_snapshot(error = TRUE, crossed(list(g = replace(g, 3, NA))))
  expect_snapshot(error = TRUE, crossed(list(g = g), student()))
  expect_snapshot(
    error = TRUE,
    crossed(list(g = g), prior_covariance = list(h = prior_lkj()))
  )
  expect_snapshot(error = TRUE, kernel_gibbs("all"))
  # each level a row: fine where no sigma is sampled
  expect_s3_class(crossed(list(g = g, h = 1:12)), "tall_model_crossed")
  expect_s3_class(
    crossed(list(g = g, h = 1:12), "gaussian", sigma = 1),
    "tall_model_crossed"
  )
})

# Workers of firms, who seldom change these.
job_rows <- function(n_worker = 300, moves = 0.02) {
  withr::with_seed(1, {
    worker <- rep(seq_len(n_worker), each = 10)
    firm <- (worker - 1) %/% 20 + 1
    is_moved <- stats::runif(length(worker)) < moves
    firm[is_moved] <- firm[is_moved] %% max(firm) + 1
    x <- stats::rnorm(length(worker))
    data.frame(
      worker,
      firm,
      x,
      w = stats::runif(length(worker), 0.5, 2),
      wage = 1 + 0.3 * x + stats::rnorm(n_worker)[worker] +
        0.3 * stats::rnorm(n_worker)[worker] * x +
        stats::rnorm(max(firm))[firm] + stats::rnorm(length(worker))
    )
  })
}

job_fit <- function(joint, data = job_rows(), ..., iter = 700) {
  model <- model_crossed(
    cbind("(Intercept)" = 1, x = data$x),
    data$wage,
    list(
      worker = list(group = data$worker, z = cbind(one = 1, x = data$x)),
      firm = data$firm
    ),
    "gaussian",
    weights = data$w
  )
  sg_sample(
    model,
    kernel_gibbs("draws", joint),
    iter = iter,
    warmup = 100,
    chains = 2,
    seed = 1,
    refresh = 0,
    ...
  )
}

test_that("joint draws have the law of sweeps, and are nearly independent", {
  swept <- job_fit(FALSE, iter = 4100, thin = 2)
  fit <- job_fit(TRUE)
  expect_true(fit$kernel$args$joint)
  expect_match(fit$plan, "drawn jointly after each sweep")
  of <- function(x) {
    posterior::summarise_draws(x, "mean", "sd", "mcse_mean", "ess_mean")
  }
  a <- of(posterior::bind_draws(fit$draws, fit$effect_draws))
  b <- of(posterior::bind_draws(swept$draws, swept$effect_draws))
  expect_lt(
    max(abs(a$mean - b$mean) / sqrt(a$mcse_mean^2 + b$mcse_mean^2)),
    4.8
  )
  firms <- startsWith(a$variable, "r_firm")
  expect_gt(min(a$ess_mean[firms]), 400)
  # of 8,000 sweeps
  expect_lt(min(b$ess_mean[firms]) / 8000, min(a$ess_mean[firms]) / 1200 / 3)
  # a run that goes on is a longer one
  short <- job_fit(TRUE, iter = 150)
  on <- sg_resume(short, iter = 50, refresh = 0)
  expect_identical(
    unclass(on$effect_draws)[],
    unclass(job_fit(TRUE, iter = 200)$effect_draws)[]
  )
})

test_that("joint draws are made where a pilot says so", {
  local_settings(sweeps = list(joint = 0.5))
  data <- job_rows(100)
  expect_true(job_fit(NULL, data, iter = 120)$kernel$args$joint)
  local_settings(sweeps = list(joint = 0.99))
  expect_false(job_fit(NULL, data, iter = 120)$kernel$args$joint)
  local_settings(sweeps = list(joint = 0.5, poor = 0.5))
  data$good <- as.integer(data$wage > 1)
  expect_message(
    fit <- tall_glmer(
      good ~ 1 + (1 | worker) + (1 | firm),
      data,
      binomial(),
      iter = 20,
      seed = 1,
      refresh = 0
    ),
    "poorly"
  )
  expect_false(fit$kernel$args$joint)
  expect_error(
    tall_glmer(
      good ~ 1 + (1 | worker) + (1 | firm),
      data,
      binomial(),
      kernel = kernel_gibbs(joint = TRUE)
    ),
    "Gaussian",
    class = "tall_error_unsupported"
  )
  expect_error(kernel_gibbs(joint = 1), class = "tall_error_input")
  # the chain is told to be long where it is
  expect_gt(joint_sweeps(0.99), joint_sweeps(0.9))
})
