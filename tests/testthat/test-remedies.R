# What warnings, errors and printed notes advise is typed here as they give it,
# and must help. Advice to go on with sg_resume() is typed in test-halted.R,
# test-run-refill.R and test-futures.R, that of future::plan() in the last.

# What an expression says on its way, in one line; its value, if any, as an
# attribute.
said <- function(code) {
  text <- character()
  value <- NULL
  note <- function(cnd) {
    text <<- c(text, conditionMessage(cnd))
  }
  printed <- utils::capture.output(
    tryCatch(
      withCallingHandlers(
        value <- code,
        warning = function(cnd) {
          note(cnd)
          rlang::cnd_muffle(cnd)
        },
        message = function(cnd) {
          note(cnd)
          rlang::cnd_muffle(cnd)
        }
      ),
      error = note
    )
  )
  text <- gsub("\\s+", " ", paste(c(text, printed), collapse = " "))
  structure(cli::ansi_strip(text), value = value)
}

# The code in a text, between backticks, that has a word.
advised <- function(text, word) {
  found <- regmatches(text, gregexpr("`[^`]+`", text))[[1]]
  found <- gsub("`", "", found, fixed = TRUE)
  found[grepl(word, found, fixed = TRUE)][[1]]
}

# The value of `call` with the advised arguments, as they are written.
with_advice <- function(call, advice, env = parent.frame()) {
  extra <- as.list(str2lang(paste0("c(", advice, ")")))[-1]
  eval(as.call(utils::modifyList(as.list(call), extra)), env)
}

rhat_of <- function(fit) {
  max(apply(as.array(fit$draws), 3, posterior::rhat))
}

# Mean and sd of the last of two parameters, by sums over a grid that is wide
# and skewed enough. at: list of two vectors of values.
grid_moments <- function(model, at) {
  grid <- expand.grid(at)
  log_p <- density_at(model, t(as.matrix(grid)))
  p <- exp(log_p - max(log_p))
  p <- p / sum(p)
  mean <- sum(p * grid[[2]])
  list(mean = mean, sd = sqrt(sum(p * (grid[[2]] - mean)^2)))
}

expect_truth <- function(fit, truth, name, least = 100) {
  draws <- as.array(fit$draws)[, , name]
  ess <- posterior::ess_mean(draws)
  expect_gt(ess, least)
  expect_lt(abs(mean(draws) - truth$mean) / truth$sd * sqrt(ess), 4.5)
  square <- posterior::ess_mean((draws - mean(draws))^2)
  # of a skewed law
  expect_lt(abs(stats::sd(draws) / truth$sd - 1) * sqrt(square), 6)
}

# No row of the second group has the outcome.
no_events <- function() {
  withr::with_seed(1, {
    g <- rep(c("a", "b"), c(2460, 40))
    y <- stats::rbinom(2500, 1, 0.3) * (g == "a")
    data.frame(y, g)
  })
}

# ---- posteriors far from normal ----------------------------------------------

test_that("exact steps where the recipe's are not", {
  local_way("minibatches")
  data <- no_events()
  call <- quote(tall_glm(
    y ~ g,
    data,
    family = binomial(),
    prior = prior_normal(0, 10),
    iter = 500,
    seed = 1,
    refresh = 0
  ))
  text <- said(eval(call))
  expect_match(text, "The posterior of `gb` is far from normal")
  expect_identical(attr(text, "value")$kernel$name, "sgbd")
  fit <- with_advice(call, advised(text, "kernel"))
  truth <- grid_moments(
    rebuild_model(fit),
    list(seq(-1.15, -0.6, length.out = 60), seq(-50, 0, length.out = 2000))
  )
  expect_no_match(said(print(fit)), "Warning|far from normal")
  expect_match(said(print(fit)), "Exact: no step size or minibatch")
  expect_lt(rhat_of(fit), 1.05)
  expect_truth(fit, truth, "gb")

  # "A narrower prior helps."
  call$prior <- quote(prior_normal(0, 0.3))
  expect_no_match(said(eval(call)), "far from normal")

  # of a model, in whose coordinates such a kernel may not move
  x <- stats::model.matrix(~g, data)
  y <- data$y
  family <- "bernoulli"
  prior <- prior_normal(0, 10)
  text <- said(sg_sample(
    model_glm(x, y, family, prior),
    iter = 20,
    seed = 1,
    refresh = 0
  ))
  expect_match(text, "is far from normal")
  typed <- str2lang(advised(text, "kernel_mala"))
  expect_identical(typed[[1]], quote(tall_glm.fit))
  typed$family <- quote(family)
  typed$prior <- quote(prior)
  typed[c("iter", "seed", "refresh")] <- list(500, 1, 0)
  own <- eval(typed)
  expect_lt(rhat_of(own), 1.05)
  expect_truth(own, truth, "gb")
})

test_that("exact steps where chains are thrown out", {
  local_settings(recipe = list(
    exact_acceptance = 2,
    awkward_acceptance = 2,
    order_step = 0,
    escape = function(d) 0.1
  ))
  data <- withr::with_seed(2, {
    x <- 100 + stats::rnorm(3000)
    data.frame(x, y = stats::rbinom(3000, 1, stats::plogis(x - 100)))
  })
  call <- quote(tall_glm(
    y ~ x,
    data,
    family = binomial(),
    iter = 400,
    seed = 1,
    refresh = 0
  ))
  text <- said(eval(call))
  expect_match(text, "were thrown out of it")
  fit <- with_advice(call, advised(text, "kernel"))
  expect_lt(rhat_of(fit), 1.05)
  mode <- find_mode(rebuild_model(fit))
  # 3,000 rows: normal to 0.1 sds
  sd <- sqrt(diag(vcov(mode)))
  expect_lt(max(abs(coef(fit) - coef(mode)) / sd), 0.25)
})

test_that("exact steps under a narrow Laplace prior", {
  data <- withr::with_seed(3, {
    x <- cbind(a = stats::rnorm(100), b = 10 * stats::rnorm(100))
    list(x = x, y = drop(x %*% c(0.05, 0.3)) + stats::rnorm(100))
  })
  model <- model_glm(
    data$x,
    data$y,
    "gaussian",
    prior_laplace(0, 0.03),
    sigma = 1
  )
  run <- function(...) {
    sg_sample(model, ..., iter = 1000, seed = 1, refresh = 0)
  }
  text <- said(run(kernel_sgld(1e-4)))
  expect_match(text, "A run without a `kernel` is exact.", fixed = TRUE)
  truth <- grid_moments(
    model,
    list(seq(-0.4, 0.5, length.out = 400), seq(0.2, 0.4, length.out = 400))
  )
  at_a <- grid_moments(
    model_glm(
      data$x[, 2:1],
      data$y,
      "gaussian",
      prior_laplace(0, 0.03),
      sigma = 1
    ),
    list(seq(0.2, 0.4, length.out = 400), seq(-0.4, 0.5, length.out = 400))
  )
  text <- said(fit <- run())
  expect_no_match(text, "not be accurate")
  expect_match(said(print(fit)), "Exact: ")
  expect_lt(rhat_of(fit), 1.05)
  expect_truth(fit, truth, "b")
  expect_truth(fit, at_a, "a")
})

# ---- steps -------------------------------------------------------------------

test_that("smaller steps, and a kernel that cannot run away", {
  model <- example_model()
  run <- function(...) {
    sg_sample(model, ..., iter = 600, seed = 1, refresh = 0)
  }
  text <- said(run(kernel_sgld(1e3)))
  expect_match(text, "make it smaller, or use `kernel_mala()`", fixed = TRUE)
  typed <- eval(str2lang(advised(text, "kernel_mala")))
  mode <- find_mode(model)
  sd <- sqrt(diag(vcov(mode)))
  for (kernel in list(kernel_sgld(0.1 * min(sd)^2), typed)) {
    fit <- run(kernel)
    expect_true(all(fit$chains$status == "ok"))
  }
  expect_lt(rhat_of(fit), 1.05)
  expect_lt(max(abs(coef(fit) - coef(mode)) / sd), 0.5)

  # of proposals that are not accepted
  stuck <- run(kernel_mala(1e6))
  text <- said(print(stuck))
  expect_match(text, "Take a smaller `step_size`, or `adapt = TRUE`")
  call <- quote(kernel_mala(1e6))
  fit <- run(with_advice(call, advised(text, "adapt")))
  expect_no_match(said(print(fit)), "was accepted|do not agree")
  fit <- run(kernel_mala(0.5 * min(sd)^2))
  expect_no_match(said(print(fit)), "was accepted")
})

test_that("other coordinates where chains do not agree, or longer runs", {
  data <- withr::with_seed(4, {
    x <- cbind("(Intercept)" = 1, a = stats::rnorm(500) + 50)
    list(x = x, y = stats::rbinom(500, 1, stats::plogis(x[, 2] - 50)))
  })
  model <- model_glm(data$x, data$y, "bernoulli", prior = prior_normal(0, 1))
  run <- function(...) {
    sg_sample(model, ..., iter = 600, seed = 1, refresh = 0)
  }
  text <- said(print(run(kernel_mala())))
  expect_match(text, "do not agree.*Run longer, or leave `kernel` out")
  fit <- run()
  expect_no_match(said(print(fit)), "Warning")
  expect_lt(rhat_of(fit), 1.02)

  # where scales are alike, longer does
  model <- example_model()
  short <- sg_sample(
    model,
    kernel_mala(1e-3),
    iter = 60,
    chains = 2,
    seed = 1,
    refresh = 0
  )
  expect_match(said(print(short)), "Run longer")
  long <- sg_resume(short, iter = 20000, refresh = 0)
  expect_no_match(said(print(long)), "Warning")
})

test_that("smaller steps or larger minibatches against too much spread", {
  model <- example_model()
  sd <- min(sqrt(diag(vcov(find_mode(model)))))
  run <- function(step, rows, gradient = gradient_simple()) {
    sg_sample(
      model,
      kernel_sgld(step * sd^2),
      gradient,
      subsample_uniform(rows),
      iter = 6000,
      seed = 1,
      refresh = 0
    )
  }
  text <- said(print(run(0.5, 10)))
  expect_match(text, "sds are biased.*smaller step size or larger minibatches")
  worst <- function(fit) max(fit$bias$sd_bias, na.rm = TRUE)
  before <- worst(attr(said(run(0.5, 10)), "value"))
  expect_lt(worst(run(0.1, 10)), before)
  expect_lt(worst(run(0.5, 100)), before)
})

# ---- settings ----------------------------------------------------------------

# Each: what says it, in which words, and what is typed then, after which nobody
# says it any more.
silenced <- function(says, words, ...) {
  expect_match(said(says), words, fixed = TRUE)
  env <- parent.frame()
  for (typed in as.list(substitute(list(...)))[-1]) {
    text <- said(eval(typed, env))
    expect_no_match(text, words, fixed = TRUE)
    # it ran
    expect_false(is.null(attr(text, "value")))
  }
}

test_that("other settings are no longer told of", {
  wide <- withr::with_seed(1, {
    x <- matrix(stats::rnorm(20 * 25), 20)
    data.frame(x, y = x[, 1] + 2 * stats::rnorm(20))
  })
  fit_wide <- function(formula = y ~ ., ...) {
    tall_glm(
      formula,
      wide,
      ...,
      kernel = kernel_mala(),
      iter = 20,
      seed = 1,
      refresh = 0
    )
  }
  silenced(
    fit_wide(),
    "Give `sigma`, a narrower `prior` or fewer columns",
    fit_wide(sigma = 2),
    fit_wide(prior = prior_normal(0, 0.05)),
    fit_wide(y ~ X1 + X2)
  )
  model <- example_model()
  silenced(
    find_mode(model, max_iter = 1),
    "Raise `max_iter` of `find_mode()`, or give `init`",
    find_mode(model, max_iter = 100),
    find_mode(model, max_iter = 1, init = coef(find_mode(model)))
  )
  adaptive <- function(...) {
    sg_sample(model, kernel_sgld(1e-4), ..., iter = 20, seed = 1, refresh = 0)
  }
  silenced(
    adaptive(gradient_cv(), subsample_adaptive(1e-9)),
    "Raise `threshold`, now 1e-09, or use `gradient_full()`",
    adaptive(gradient_cv(), subsample_adaptive(1)),
    adaptive(gradient_full())
  )
  undefined <- function(outside) {
    model <- model_custom(
      function(theta, batch) {
        rep(if (abs(theta$a) > 1) outside else 0, length(batch$y))
      },
      function(theta) -theta$a^2 / 2,
      list(y = 1:2),
      list(a = 0),
      function(theta, batch) list(a = numeric(length(batch$y))),
      function(theta) -theta$a,
      check = FALSE
    )
    sg_sample(
      model,
      kernel_mala(1),
      init = 0,
      iter = 100,
      seed = 1,
      refresh = 0
    )
  }
  silenced(
    undefined(NaN),
    "Where the density is zero, `-Inf` says so without a warning",
    undefined(-Inf)
  )
  ratings <- data.frame(u = c(1, 1, 2, 3, 3), i = c(1, 2, 2, 1, 3), r = 1:5)
  factors <- function(rank) {
    model_pmf(ratings$u, ratings$i, ratings$r, rank)
  }
  silenced(
    factors(4),
    "No matrix of these sizes has a rank above 3",
    factors(3)
  )
  far <- sg_sample(model, kernel_mala(), iter = 300, seed = 1, refresh = 0)
  silenced(
    ksd(far, gradient = model, max_draws = 50),
    "`max_draws = Inf` takes all",
    ksd(far, gradient = model, max_draws = Inf)
  )
  slow <- function(iter, columns = 20) {
    plan <- list(
      model = list(n_dim = columns, n_data = 1e5, traits = list(n_aux = 0)),
      gradient = gradient_full(),
      steps = mala_steps(columns)
    )
    control <- list(iter = iter, warmup = iter / 2, chains = 4, refresh = 1)
    tell_slow(plan, control, given = TRUE)
    TRUE
  }
  silenced(
    slow(2000),
    "Fewer columns or a smaller `iter` is faster; a run without a `kernel`",
    slow(200),
    slow(2000, 2)
  )
})

# ---- refusals ----------------------------------------------------------------

test_that("what a refusal advises runs", {
  model <- example_model()
  run <- function(model, ..., chains = 1) {
    sg_sample(model, ..., iter = 40, chains = chains, seed = 1, refresh = 0)
  }
  d <- model$n_dim
  bounds <- example_model(prior = prior_uniform(-5, 5))
  flat <- model_glm(cbind(1, -2:3), c(0, 0, 0, 1, 1, 1), "bernoulli",
    prior = prior_flat())
  proper <- function(prior) {
    model_glm(cbind(1, -2:3), c(0, 0, 0, 1, 1, 1), "bernoulli", prior = prior)
  }
  aux <- model_glm(
    cbind(1, 1:20),
    rep(c(0, 2, 1, 5), 5),
    "neg_binomial_2"
  )
  density <- model_density("normal")
  sgld <- run(model, kernel_sgld(1e-3))
  silenced(
    run(bounds, kernel_sgld(1e-3)),
    "Use `kernel_mala()` or `kernel_barker()`, or a prior without bounds",
    run(bounds, kernel_mala()),
    run(bounds, kernel_barker()),
    run(example_model(prior = prior_normal()), kernel_sgld(1e-3))
  )
  silenced(
    run(model, kernel_hmc(), gradient_cv()),
    "Use `gradient_full()`; `kernel_mala()` and `kernel_barker()` are exact",
    run(model, kernel_hmc(), gradient_full()),
    run(model, kernel_mala(), gradient_cv()),
    run(model, kernel_barker(), gradient_cv())
  )
  silenced(
    run(model, kernel_mala(), gradient_saga()),
    "Use `gradient_full()`, `gradient_simple()` or `gradient_cv()`",
    run(model, kernel_mala(), gradient_full()),
    run(model, kernel_mala(), gradient_simple()),
    run(model, kernel_mala(), gradient_cv())
  )
  silenced(
    run(model, kernel_mala(1e-3, ratio = "minibatch"), gradient_full()),
    "Use `ratio = \"full\"`, or `gradient_cv()`",
    run(model, kernel_mala(1e-3, ratio = "full"), gradient_full()),
    run(model, kernel_mala(1e-3, ratio = "minibatch"), gradient_cv())
  )
  silenced(
    run(model, kernel_mala(), subsample = subsample_uniform(10)),
    "Leave `subsample` out, or use `gradient_cv()`",
    run(model, kernel_mala()),
    run(model, kernel_mala(), gradient_cv(), subsample_uniform(10))
  )
  silenced(
    run(
      model,
      kernel_sgld(1e-3, "corrected"),
      gradient_cv(),
      subsample_uniform(1)
    ),
    "Take minibatches of at least 2 rows, or `variant = \"vanilla\"`",
    run(
      model,
      kernel_sgld(1e-3, "corrected"),
      gradient_cv(),
      subsample_uniform(2)
    ),
    run(
      model,
      kernel_sgld(1e-3, variant = "vanilla"),
      gradient_cv(),
      subsample_uniform(1)
    )
  )
  silenced(
    run(model, kernel_mala(), schedule = schedule_decay()),
    "Leave `schedule` out",
    run(model, kernel_mala())
  )
  silenced(
    run(density, kernel_mala(), gradient_cv()),
    "Leave `gradient` out",
    run(density, kernel_mala())
  )
  silenced(
    run(aux, kernel_smh()),
    "Use `kernel_sgld()` with `gradient_cv(order = 2)`, or `kernel_mala()`",
    run(aux, kernel_sgld(1e-4), gradient_cv(order = 2)),
    run(aux, kernel_mala())
  )
  silenced(
    run(density, kernel_smh()),
    "Use `kernel_hmc()` or `kernel_mala()`",
    run(density, kernel_hmc()),
    run(density, kernel_mala())
  )
  silenced(
    run(model, gradient = gradient_cv()),
    "Give for instance `kernel = kernel_sgld(step_size)`",
    run(model, kernel = kernel_sgld(1e-3), gradient = gradient_cv())
  )
  silenced(
    run(density),
    "Give a `kernel`, for instance `kernel_sgld(step_size)`",
    run(density, kernel_sgld(0.1))
  )
  silenced(
    run(flat),
    "Give a proper prior such as `prior_normal()`",
    run(proper(prior_normal()))
  )
  silenced(
    run(model, kernel_mala(adapt = FALSE)),
    "`step_size` must be given with `adapt = FALSE`",
    run(model, kernel_mala(1e-3, adapt = FALSE)),
    run(model, kernel_mala())
  )
  silenced(
    bayesplot::log_posterior(sgld),
    "Run with `kernel_mala()` or `kernel_barker()`",
    bayesplot::log_posterior(run(model, kernel_mala())),
    bayesplot::log_posterior(run(model, kernel_barker()))
  )
  silenced(
    ksd(sgld, gradient = "kept"),
    "Run again with `keep = c(\"draws\", \"gradients\")`",
    ksd(
      run(model, kernel_mala(), keep = c("draws", "gradients")),
      gradient = "kept"
    ),
    ksd(sgld, gradient = NULL)
  )
})
