test_that("parameters are named side by side, rows first", {
  d <- data.frame(user = c("b", "a"), item = c(1, 2), rating = 1:2)
  bpmf <- model_bpmf(d$user, d$item, d$rating, rank = 2)
  sides <- function(f) c(f("user"), f("item"))
  rows <- c(
    "user[a,1]", "user[a,2]", "user[b,1]", "user[b,2]",
    "item[1,1]", "item[1,2]", "item[2,1]", "item[2,2]"
  )
  pairs <- function(what) {
    sides(function(s) paste0(what, "_", s, "[", 1:2, "]"))
  }
  expect_identical(bpmf$variables, c(rows, pairs("mu"), pairs("lambda")))
  expect_identical(
    bpmf$coordinates,
    c(rows, pairs("mu"), pairs("log_lambda"))
  )
  pmf <- model_pmf(d$user, d$item, d$rating, rank = 1)
  expect_identical(
    pmf$variables,
    c(
      "user[a,1]", "user_bias[a]", "user[b,1]", "user_bias[b]",
      "item[1,1]", "item_bias[1]", "item[2,1]", "item_bias[2]",
      "lambda_user[1]", "lambda_user_bias", "lambda_item[1]", "lambda_item_bias"
    )
  )
})

test_that("numbers, factors and strings are the same ratings", {
  d <- triplets()
  theta <- seq(-1, 1, length.out = 11 * 2 + 8)
  at <- function(user, item) {
    model_evaluate(model_bpmf(user, item, d$rating, rank = 2), theta)
  }
  expect_identical(
    at(letters[d$user], factor(letters[d$item], letters[1:5])),
    at(d$user, d$item)
  )
  # a level, or number, without ratings has rows of its own
  wide <- model_bpmf(factor(d$user, 1:9), d$item, d$rating, rank = 2)
  expect_identical(wide$n_dim, (9 + 5) * 2 + 8)
  expect_identical(which(!wide$rated$user), 7:9)
  expect_identical(
    model_bpmf(c(d$user, 8), c(d$item, 1), c(d$rating, 1), 2)$n_dim,
    (8 + 5) * 2 + 8
  )
})

test_that("a pair that comes twice counts twice", {
  d <- triplets()
  theta <- seq(-1, 1, length.out = 11 * 2 + 6)
  log_lik <- function(d) {
    # the same center: the mean of all
    model <- model_pmf(d$user, d$item, d$rating, rank = 1)
    model_evaluate(model, theta[seq_len(model$n_dim)], "likelihood")$log_density
  }
  expect_close(log_lik(rbind(d, d)), 2 * log_lik(d))
})

test_that("starting points are what the help says", {
  d <- triplets(400, 60, 80)
  start <- function(constructor, init) {
    model <- constructor(d$user, d$item, d$rating, rank = 5, init = init)
    withr::with_seed(1, model$start())
  }
  n_row <- 140 * 5
  default <- start(model_bpmf, "default")
  expect_identical(default[-seq_len(n_row)], numeric(20))
  expect_lt(abs(sd(default[seq_len(n_row)]) - 0.1), 5 * 0.1 / sqrt(2 * n_row))
  theirs <- start(model_bpmf, "authors")
  mean <- matrix(theirs[n_row + 1:10], 5)
  rows <- c(rep(mean[, 1], 60), rep(mean[, 2], 80))
  expect_lt(
    abs(sd(theirs[seq_len(n_row)] - rows) - 1),
    5 / sqrt(2 * n_row)
  )
  log_lambda <- theirs[n_row + 10 + 1:10]
  expect_lt(max(abs(log_lambda[6:10] + 0.1)), 0.5)
  expect_identical(
    start(model_pmf, "authors"),
    c(rep(c(rep(0.35, 5), 0.05), 140), rep(log(2), 12))
  )
  # chains start apart, and the same again with the same seed
  model <- model_bpmf(d$user, d$item, d$rating, rank = 5)
  fit <- function() {
    sg_sample(
      model,
      kernel_sgbd(1e-9),
      iter = 2,
      warmup = 1,
      chains = 2,
      seed = 3
    )
  }
  draws <- plain_draws(fit())[1, , 1:3]
  expect_true(all(draws[1, ] != draws[2, ]))
  expect_identical(plain_draws(fit())[1, , 1:3], draws)
})

test_that("defaults suit models with very many parameters", {
  d <- triplets(9000, 600, 700)
  model <- model_bpmf(d$user, d$item, d$rating, rank = 20)
  expect_gt(model$n_dim, 25000)
  fit <- sg_sample(model, kernel_sgbd(0.02), iter = 20, chains = 1, seed = 1)
  expect_identical(fit$gradient$name, "simple")
  expect_identical(unique(as.double(fit$sizes)), 90)
  expect_null(fit[["bias"]])
  mode <- suppressWarnings(find_mode(model, max_iter = 20))
  expect_null(mode$chol)
  expect_error(sg_sample(model), class = "tall_error_unsupported")
})

test_that("what is no rating is refused by name", {
  d <- triplets()
  run <- function(user = d$user, item = d$item, rating = d$rating, ...) {
    model_bpmf(user, item, rating, ...)
  }
  replace_at <- function(x, value) {
    x[[3]] <- value
    x
  }
  expect_snapshot(error = TRUE, run(rating = replace_at(d$rating, NA)))
  expect_snapshot(error = TRUE, run(user = replace_at(d$user, NA)))
  expect_snapshot(error = TRUE, run(user = replace_at(d$user, 0)))
  expect_snapshot(error = TRUE, run(item = replace_at(d$item, 1.5)))
  expect_snapshot(error = TRUE, run(item = as.list(d$item)))
  expect_snapshot(error = TRUE, run(item = replace_at(letters[d$item], NA)))
  expect_snapshot(error = TRUE, run(user = replace_at(d$user, 123456)))
  expect_snapshot(error = TRUE, run(item = d$item[-1]))
  expect_snapshot(error = TRUE, run(rank = 0))
  expect_snapshot(error = TRUE, run(alpha = 0))
  expect_snapshot(error = TRUE, run(init = "mine"))
  expect_snapshot(model <- run(rank = 7))
  expect_no_warning(run(rank = 6))
})

# ---- Gibbs -------------------------------------------------------------------

test_that("precisions are drawn from their conditional law, others stay", {
  d <- triplets()
  for (name in c("bpmf", "pmf")) {
    model <- if (name == "bpmf") {
      model_bpmf(d$user, d$item, d$rating, 2, 3, 0.4, 1.3, 0.8, gibbs_every = 1)
    } else {
      model_pmf(d$user, d$item, d$rating, 2, 3, 1.3, 0.8, gibbs_every = 1)
    }
    # without a 0, which the smallest of steps would change
    theta <- seq(-1, 1.03, length.out = model$n_dim)
    sampler <-
      new_sampler(kernel_still(), gradient_simple(), subsample_uniform(3))
    plan <- new_plan(model, sampler)
    plan$init <- matrix(theta)
    n <- 4000
    control <- test_control(n, keep = "draws")
    segment <- run_segment(plan, control, new_stretch(0, n))
    draws <- matrix(segment$buffers$draw, n)[-1, ]
    width <- 2 + (name == "pmf")
    at <- model$n_dim - 2 * width + seq_len(2 * width)
    expect_identical(draws[7, -at], theta[-at])
    p <- split_factors(theta, 6, 5, 2, name == "pmf")
    has_mean <- name == "bpmf"
    for (side in 1:2) {
      rows <- list(p$user, p$item)[[side]]
      centred <- sweep(rows, 2, p$mu[, side])
      away <- if (has_mean) (p$mu[, side] - 0.4)^2 / 2 else 0
      shape <- 1.3 + (nrow(rows) + has_mean) / 2
      rate <- 0.8 + colSums(centred^2) / 2 + away
      for (k in seq_len(width)) {
        lambda <- draws[, at[(side - 1) * width + k]]
        test <- stats::ks.test(unique(lambda), "pgamma", shape, rate[[k]])
        expect_gt(test$p.value, 1e-4)
        expect_length(unique(lambda), n - 1)
      }
    }
  }
})

test_that("runs with Gibbs draws do not depend on how they are run", {
  d <- triplets()
  model <- model_pmf(d$user, d$item, d$rating, 2, gibbs_every = 3)
  run <- function(iter) {
    sg_sample(
      model,
      kernel_sgbd(0.05),
      iter = iter,
      warmup = 10,
      chains = 2,
      seed = 5,
      refresh = 0
    )
  }
  whole <- run(60)
  expect_identical(sg_resume(run(37), 23, refresh = 0)$draws, whole$draws)
  without <- model_pmf(d$user, d$item, d$rating, 2)
  other <- sg_sample(
    without,
    kernel_sgbd(0.05),
    iter = 60,
    warmup = 10,
    chains = 2,
    seed = 5,
    refresh = 0
  )
  expect_false(identical(other$draws, whole$draws))
})

test_that("a momentum that must be exact goes with no Gibbs draws", {
  d <- triplets()
  model <- model_pmf(d$user, d$item, d$rating, 2, gibbs_every = 3)
  expect_snapshot(
    sg_sample(
      model,
      kernel_adam_mcmc(0.01, 0.01, exact = TRUE, momentum_sd = 1)
    ),
    error = TRUE
  )
})

# A Gibbs sampler of all parameters, in plain R: expected ratings of the first
# pair and logs of the first precisions, averaged over a chain.
plain_gibbs <- function(d, rank, alpha, mu0, a0, b0, has_bias, n_iter) {
  width <- rank + has_bias
  y <- d$rating - mean(d$rating)
  rows <- list(matrix(rnorm(max(d$user) * width), ncol = width))
  rows[[2]] <- matrix(rnorm(max(d$item) * width), ncol = width)
  index <- list(d$user, d$item)
  mu <- matrix(0, width, 2)
  lambda <- matrix(1, width, 2)
  k <- seq_len(rank)
  out <- matrix(0, n_iter, 3)
  for (t in seq_len(n_iter)) {
    for (side in 1:2) {
      other <- rows[[3 - side]][index[[3 - side]], , drop = FALSE]
      x <- if (has_bias) cbind(other[, k, drop = FALSE], 1) else other
      target <- if (has_bias) y - other[, width] else y
      for (i in seq_len(nrow(rows[[side]]))) {
        here <- index[[side]] == i
        xi <- x[here, , drop = FALSE]
        precision <- alpha * crossprod(xi) + diag(lambda[, side], width)
        linear <- alpha * crossprod(xi, target[here]) +
          lambda[, side] * mu[, side]
        root <- chol(precision)
        rows[[side]][i, ] <- backsolve(
          root,
          backsolve(root, linear, transpose = TRUE) + rnorm(width)
        )
      }
      n <- nrow(rows[[side]])
      if (!has_bias) {
        mu[, side] <- rnorm(
          width,
          (colSums(rows[[side]]) + mu0) / (n + 1),
          1 / sqrt(lambda[, side] * (n + 1))
        )
      }
      square <- colSums(sweep(rows[[side]], 2, mu[, side])^2)
      away <- if (has_bias) 0 else (mu[, side] - mu0)^2
      lambda[, side] <- rgamma(
        width,
        a0 + (n + !has_bias) / 2,
        b0 + (square + away) / 2
      )
    }
    out[t, ] <- c(
      first_mean(rows, rank),
      log(lambda[1, 1]),
      log(lambda[width, 2])
    )
  }
  colMeans(out[-seq_len(n_iter / 5), ])
}

first_mean <- function(rows, rank) {
  u <- rows[[1]][1, ]
  v <- rows[[2]][1, ]
  sum(u[seq_len(rank)] * v[seq_len(rank)]) +
    sum(u[-seq_len(rank)]) + sum(v[-seq_len(rank)])
}

test_that("an exact kernel agrees with a Gibbs sampler written in R", {
  skip_on_cran()
  d <- triplets(14, 3, 3)
  for (name in c("bpmf", "pmf")) {
    has_bias <- name == "pmf"
    mu0 <- if (has_bias) 0 else 0.5
    n_chain <- 24
    theirs <- withr::with_seed(1, replicate(
      n_chain,
      plain_gibbs(d, 1, 1, mu0, 4, 3, has_bias, 600)
    ))
    for (every in list(NULL, 2)) {
      model <- if (has_bias) {
        model_pmf(d$user, d$item, d$rating, 1, 1, 4, 3, gibbs_every = every)
      } else {
        model_bpmf(
          d$user,
          d$item,
          d$rating,
          1,
          1,
          mu0,
          4,
          3,
          gibbs_every = every
        )
      }
      fit <- sg_sample(
        model,
        kernel_mala(0.2, adapt = TRUE),
        iter = 6000,
        warmup = 1000,
        chains = n_chain,
        cores = 2,
        seed = 2,
        refresh = 0
      )
      shape <- model$shape
      last <- c(paste0("lambda_item", if (has_bias) "_bias" else "[1]"))
      ours <- chain_means(fit, function(theta) {
        colnames(theta) <- fit$variables
        cbind(
          drop(factor_means(shape, t(theta), 1, 1)),
          log(theta[, "lambda_user[1]"]),
          log(theta[, last])
        )
      })
      for (k in 1:3) {
        expect_mean(ours[, k] - theirs[k, ], 0, paste(name, "statistic", k))
      }
    }
  }
})
