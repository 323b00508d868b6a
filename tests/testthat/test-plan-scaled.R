# Gaussian responses under priors with hyperparameters, from sums over the rows,
# wherever these lie.

shrunk_sizes <- function(n = 6000, seed = 3) {
  withr::with_seed(seed, {
    data <- data.frame(
      x = stats::rnorm(n),
      z = 1000 + 50 * stats::rexp(n),
      f = factor(sample(c("a", "b", "c"), n, TRUE, c(0.7, 0.29, 0.01))),
      w = stats::runif(n, 0.5, 2),
      o = stats::runif(n)
    )
    data$size <- 3 + 0.3 * data$x + data$o + stats::rnorm(n)
    data$x[c(5, n - 77)] <- NA
    data
  })
}

shrunk_fit <- function(data, prior = prior_ridge(), iter = 300, ...) {
  tall_glm(
    size ~ x + z + f + x:f + offset(o),
    data,
    stats::gaussian(),
    weights = w,
    prior = prior,
    iter = iter,
    warmup = 100,
    chains = 2,
    seed = 4,
    refresh = 0,
    ...
  )
}

shrinking <- list(
  ridge = prior_ridge(),
  horseshoe = prior_hs(),
  shares = prior_r2d2()
)

test_that("the mode from sums is that from rows", {
  data <- stats::na.omit(shrunk_sizes(800))
  x <- cbind(1, data$x, data$z, data$f == "b")
  for (sigma in list(NULL, 1.1)) {
    for (intercept in list(prior_normal(0, 5), prior_student(3, 0, 5))) {
      model <- model_glm(x, data$size, "gaussian", prior = prior_hs(),
        prior_intercept = intercept, sigma = sigma, weights = data$w,
        offset = data$o)
      sums <- sums_of_scaled(model, 1)
      ours <- scaled_mode_of_sums(model, sums)
      rows <- find_mode(model, refresh = 0)
      expect_equal(ours$estimate, rows$estimate, tolerance = 1e-5)
      expect_equal(ours$hessian, rows$hessian, tolerance = 1e-4)
      expect_identical(ours$given, rows$given)
      expect_identical(ours$passes, 0)
    }
  }
})

test_that("draws from sources are those of the same rows in memory", {
  skip_on_cran()
  data <- shrunk_sizes()
  for (sigma in list(NULL, 1)) {
    for (kind in names(shrinking)) {
      memory <- shrunk_fit(data, shrinking[[kind]], sigma = sigma)
      expect_identical(sum(memory$passes), 1)
      local({
        local_passes(1000, 512)
        fit <- shrunk_fit(stream_of(data, c(700, 13)), shrinking[[kind]],
          sigma = sigma)
        expect_false(is.null(fit$rows$source), label = kind)
        # the look and the sums
        expect_identical(sum(fit$passes), 2)
        expect_equal(
          unclass(fit$draws),
          unclass(memory$draws),
          tolerance = 1e-6,
          label = kind
        )
      })
    }
  }
})

test_that("scales of heavy tails come from sums over a source, too", {
  skip_on_cran()
  data <- shrunk_sizes(2500)
  tails <- prior_student(3, 0, 2.5)
  memory <- shrunk_fit(data, prior_intercept = tails, iter = 200)
  expect_match(memory$plan, "coefficients integrated out")
  local_passes(1000, 512)
  fit <- shrunk_fit(stream_of(data, 700), prior_intercept = tails, iter = 200)
  expect_equal(
    unclass(fit$draws),
    unclass(memory$draws),
    tolerance = 1e-6
  )
  more <- sg_resume(fit, 50, refresh = 0)
  whole <- shrunk_fit(stream_of(data, 700), prior_intercept = tails, iter = 250)
  expect_identical(unclass(more$draws), unclass(whole$draws))
})

test_that("no source, chunk or thread makes other draws", {
  skip_on_cran()
  data <- shrunk_sizes()
  local_passes(1000, 512)
  rows <- shrunk_fit(data)
  streamed <- shrunk_fit(stream_of(data, c(313, 1, 977)), cores = 2)
  expect_identical(streamed$draws, rows$draws)
  expect_near <- function(fit) {
    expect_equal(unclass(fit$draws), unclass(rows$draws), tolerance = 1e-6)
  }
  halves <- list(
    stream_of(data[1:2500, ], 700),
    stream_of(data[-(1:2500), ], 700)
  )
  expect_near(shrunk_fit(halves))
  skip_if_not_installed("nanoparquet")
  file <- withr::local_tempfile(fileext = ".parquet")
  nanoparquet::write_parquet(data, file)
  parquet <- shrunk_fit(tall_parquet(file))
  expect_identical(parquet$draws, rows$draws)
})

test_that("a database hands over sums", {
  data <- shrunk_sizes()
  data$f <- as.character(data$f)
  local_passes(1000, 512)
  rows <- shrunk_fit(data)
  for (engine in c("SQLite", "DuckDB")) {
    con <- if (engine == "SQLite") {
      local_sqlite()
    } else if (nzchar(Sys.getenv("TALLBAYES_DUCKDB_LIB"))) {
      local_duckdb()
    }
    if (is.null(con)) {
      next
    }
    fit <- shrunk_fit(table_of(con, data))
    expect_false(is.null(fit$rows$in_sql), label = engine)
    expect_equal(
      unclass(fit$draws),
      unclass(rows$draws),
      tolerance = 1e-5,
      label = engine
    )
    more <- sg_resume(fit, 50, refresh = 0)
    expect_equal(
      unclass(more$draws),
      unclass(shrunk_fit(data, iter = 350)$draws),
      tolerance = 1e-5,
      label = engine
    )
  }
})

test_that("a run on such sums goes on, also after it was saved", {
  data <- shrunk_sizes()
  local_passes(1000, 512)
  for (kind in c("ridge", "horseshoe")) {
    fit <- shrunk_fit(stream_of(data, 700), shrinking[[kind]], iter = 200)
    more <- sg_resume(unserialize(serialize(fit, NULL)), 100, refresh = 0)
    whole <- shrunk_fit(stream_of(data, 700), shrinking[[kind]])
    expect_identical(unclass(more$draws), unclass(whole$draws))
    # sums are kept
    expect_identical(sum(more$passes), sum(fit$passes))
  }
  fit <- shrunk_fit(data, prior_ridge(), iter = 200)
  more <- sg_resume(fit, 100, refresh = 0)
  expect_identical(unclass(more$draws), unclass(shrunk_fit(data)$draws))
})

test_that("what follows a fit on sums is as in memory", {
  data <- shrunk_sizes(2500)
  memory <- shrunk_fit(data)
  local_passes(1000, 512)
  fit <- shrunk_fit(stream_of(data, 700))
  new <- stats::na.omit(data)[1:20, ]
  expect_equal(
    predict(fit, new),
    predict(memory, new),
    tolerance = 1e-6
  )
  expect_equal(
    rstantools::posterior_linpred(fit, newdata = new),
    rstantools::posterior_linpred(memory, newdata = new),
    tolerance = 1e-6
  )
  expect_equal(
    rstantools::log_lik(fit, newdata = new),
    rstantools::log_lik(memory, newdata = new),
    tolerance = 1e-6
  )
  expect_match(utils::capture.output(summary(fit)), "^ridge_sd", all = FALSE)
  expect_equal(
    shrinkage(fit),
    shrinkage(memory),
    tolerance = 1e-6,
    ignore_attr = TRUE
  )
  expect_match(fit$plan, "^exact steps on sums over all rows")
})

wide_sizes <- function(n = 12, p = 16) {
  withr::with_seed(1, {
    x <- matrix(stats::rnorm(n * p), n)
    y <- drop(x[, 1:2] %*% c(2, -1)) + stats::rnorm(n)
    data.frame(x, y = y)
  })
}

wide_fit <- function(data, prior, iter, ...) {
  tall_glm(
    y ~ . - 1,
    data,
    stats::gaussian(),
    prior = prior,
    prior_aux = prior_exponential(1),
    iter = iter,
    seed = 4,
    refresh = 0,
    ...
  )
}

# Given the standard deviation t of the coefficients and sigma, y is normal with
# variance t^2 XX' + sigma^2: sums over a grid of both.
wide_ridge_means <- function(data, scale = 2.5, df = 3) {
  x <- as.matrix(data[names(data) != "y"])
  axes <- eigen(tcrossprod(x), symmetric = TRUE)
  z <- drop(crossprod(axes$vectors, data$y))
  grid <- expand.grid(
    t = seq(log(1e-4), log(100), length.out = 150),
    s = seq(log(1e-4), log(30), length.out = 150)
  )
  variance <- outer(exp(2 * grid$t), axes$values) + exp(2 * grid$s)
  log_density <- -rowSums(log(variance)) / 2 -
    drop((1 / variance) %*% z^2) / 2 +
    stats::dt(exp(grid$t) / scale, df, log = TRUE) + grid$t +
    grid$s - exp(grid$s)
  weight <- exp(log_density - max(log_density))
  weight <- weight / sum(weight)
  shrunk <- exp(2 * grid$t) * sweep(1 / variance, 2, z, "*")
  along <- crossprod(x[, 1:3], axes$vectors)
  c(
    drop(along %*% drop(crossprod(shrunk, weight))),
    sigma = sum(weight * exp(grid$s)),
    ridge_sd = sum(weight * exp(grid$t))
  )
}

test_that("more columns than rows are shrunk as a grid says", {
  skip_on_cran()
  data <- wide_sizes()
  fit <- expect_no_warning(wide_fit(data, prior_ridge(), 2000))
  expect_match(fit$plan, "coefficients integrated out")
  exact <- wide_ridge_means(data)
  draws <- posterior::subset_draws(fit$draws, variable = names(exact))
  found <- posterior::summarise_draws(draws, "mean", "mcse_mean")
  gap <- as.numeric(found$mean) - unname(exact)
  expect_lt(max(abs(gap) / as.numeric(found$mcse_mean)), 4)
})

test_that("more columns than rows are shrunk by each such prior", {
  skip_on_cran()
  data <- wide_sizes()
  for (kind in c("horseshoe", "shares")) {
    fit <- expect_no_warning(wide_fit(data, shrinking[[kind]], 1000))
    expect_match(fit$plan, "all coefficients are drawn anew", label = kind)
    shown <- posterior::summarise_draws(fit$draws, "rhat")
    expect_lt(max(shown$rhat), 1.05, label = kind)
  }
  half <- wide_fit(data, prior_hs(), 150, warmup = 100)
  whole <- wide_fit(data, prior_hs(), 200, warmup = 100)
  more <- sg_resume(half, 50, refresh = 0)
  expect_identical(unclass(more$draws), unclass(whole$draws))
})

# Of columns about their means, so that the intercept has the mean of y alone:
# summed over a grid, also that of a heavy-tailed prior.
centred_ridge_means <- function(data, log_prior) {
  x <- scale(as.matrix(data[names(data) != "y"]), scale = FALSE)
  n <- nrow(x)
  axes <- eigen(tcrossprod(x), symmetric = TRUE)
  values <- axes$values[-n]
  z <- drop(crossprod(axes$vectors[, -n], data$y))
  t <- seq(log(1e-4), log(100), length.out = 150)
  s <- seq(log(1e-4), log(30), length.out = 150)
  grid <- expand.grid(t = t, s = s)
  variance <- outer(exp(2 * grid$t), values) + exp(2 * grid$s)
  # a part of the intercept's prior next to 0, and all around the mean
  a <- sort(c(sinh(seq(-12, 12, length.out = 4001)) / 1e3,
    mean(data$y) + seq(-1, 1, length.out = 2001) * 5))
  width <- diff(c(a[[1]], (a[-1] + a[-length(a)]) / 2, a[[length(a)]]))
  of_s <- vapply(s, function(s) {
    like <- exp(stats::dnorm(mean(data$y), a, exp(s) / sqrt(n), log = TRUE) +
      log_prior(a)) * width
    c(sum(like), sum(like * a), sum(like * (abs(a) < 0.3)))
  }, numeric(3))
  of_s <- of_s[, rep(seq_along(s), each = length(t))]
  log_density <- -rowSums(log(variance)) / 2 -
    drop((1 / variance) %*% z^2) / 2 + log(of_s[1, ]) +
    stats::dt(exp(grid$t) / 2.5, 3, log = TRUE) + grid$t +
    grid$s - exp(grid$s)
  weight <- exp(log_density - max(log_density))
  weight <- weight / sum(weight)
  c(
    sigma = sum(weight * exp(grid$s)),
    ridge_sd = sum(weight * exp(grid$t)),
    centre = sum(weight * of_s[2, ] / of_s[1, ]),
    near = sum(weight * of_s[3, ] / of_s[1, ])
  )
}

test_that("beside them intercepts under heavy tails are drawn exactly", {
  skip_on_cran()
  data <- wide_sizes()
  data$y <- data$y - mean(data$y) + 1.4
  priors <- list(
    list(prior_student(3, 0, 0.5), function(a) {
      stats::dt(a / 0.5, 3, log = TRUE)
    }),
    list(prior_student(1, 0, 0.02), function(a) {
      stats::dt(a / 0.02, 1, log = TRUE)
    }),
    list(prior_laplace(0, 0.3), function(a) -abs(a) / 0.3)
  )
  for (prior in priors) {
    exact <- centred_ridge_means(data, prior[[2]])
    fit <- expect_no_warning(tall_glm(
      y ~ .,
      data,
      stats::gaussian(),
      prior = prior_ridge(),
      prior_intercept = prior[[1]],
      prior_aux = prior_exponential(1),
      iter = 3000,
      seed = 4,
      refresh = 0
    ))
    expect_match(fit$plan, "coefficients integrated out")
    draws <- posterior::as_draws_array(fit$draws)
    names <- setdiff(names(data), "y")
    centre <- draws[, , "(Intercept)"][, , 1]
    for (name in names) {
      centre <- centre + mean(data[[name]]) * draws[, , name][, , 1]
    }
    found <- list(
      draws[, , "sigma"][, , 1],
      draws[, , "ridge_sd"][, , 1],
      centre,
      (abs(centre) < 0.3) + 0
    )
    for (k in 1:4) {
      x <- unclass(found[[k]])
      gap <- abs(mean(x) - exact[[k]])
      expect_lt(gap, 4 * posterior::mcse_mean(x), label = names(exact)[[k]])
    }
    expect_gt(posterior::ess_bulk(found[[3]]), 400)
  }
})

# A chain of its own kind on log scales, log sigma and the intercept, each moved
# in turn, the coefficients integrated out: y - a ~ N(0, X V X' + sigma^2).
horseshoe_chain <- function(x, y, log_prior, n_sweep) {
  p <- ncol(x)
  log_density <- function(q) {
    scale <- exp(q[seq_len(p + 3)])
    v <- 1 / (1 / scale[[p + 2]]^2 + 1 / (scale[[p + 1]] * scale[1:p])^2)
    variance <- x %*% (v * t(x)) + diag(scale[[p + 3]]^2, nrow(x))
    root <- tryCatch(chol(variance), error = function(e) NULL)
    if (is.null(root)) {
      return(-Inf)
    }
    z <- backsolve(root, y - q[[p + 4]], transpose = TRUE)
    sum(stats::dt(scale[1:p], 1, log = TRUE)) +
      stats::dt(scale[[p + 1]] / 0.5, 1, log = TRUE) -
      # c^2 is inverse gamma(2, 2 2.5^2)
      4 * q[[p + 2]] - 2 * 2.5^2 / scale[[p + 2]]^2 - q[[p + 2]] -
      scale[[p + 3]] + sum(q[seq_len(p + 3)]) + log_prior(q[[p + 4]]) -
      sum(log(diag(root))) - sum(z^2) / 2
  }
  q <- c(numeric(p + 3), mean(y))
  now <- log_density(q)
  out <- matrix(0, n_sweep, 3, dimnames = list(NULL, c("t", "s", "a")))
  for (i in seq_len(n_sweep)) {
    step <- stats::rnorm(p + 4) * rep(c(2.5, 1.5, 1), c(p + 2, 1, 1))
    for (k in seq_along(q)) {
      to <- replace(q, k, q[[k]] + step[[k]])
      then <- log_density(to)
      if (log(stats::runif(1)) < then - now) {
        q <- to
        now <- then
      }
    }
    out[i, ] <- q[c(p + 1, p + 3, p + 4)]
  }
  out[-(1:500), ]
}

test_that("a horseshoe of more columns than rows is as another chain has it", {
  skip_on_cran()
  data <- wide_sizes(6, 7)
  x <- scale(as.matrix(data[names(data) != "y"]), scale = FALSE)
  other <- withr::with_seed(5, horseshoe_chain(x, data$y, function(a) {
    stats::dt(a / 0.5, 3, log = TRUE)
  }, 8000))
  fit <- expect_no_warning(tall_glm(
    y ~ .,
    data,
    stats::gaussian(),
    prior = prior_hs(global_scale = 0.5),
    prior_intercept = prior_student(3, 0, 0.5),
    prior_aux = prior_exponential(1),
    seed = 4,
    refresh = 0
  ))
  expect_match(fit$plan, "drawn anew")
  shown <- fit$unconstrained
  expect_lt(max(apply(shown, 3, posterior::rhat)), 1.02)
  centre <- shown[, , "(Intercept)"]
  for (name in colnames(x)) {
    centre <- centre + mean(data[[name]]) * shown[, , name]
  }
  found <- list(
    t = shown[, , "log_hs_global"],
    s = shown[, , "log_sigma"],
    a = centre
  )
  for (name in names(found)) {
    gap <- mean(found[[name]]) - mean(other[, name])
    error <- sqrt(posterior::mcse_mean(unclass(found[[name]]))^2 +
      posterior::mcse_mean(other[, name])^2)
    expect_lt(abs(gap) / error, 4, label = name)
  }
})

test_that("few rows beside the columns are enough for such priors", {
  skip_on_cran()
  data <- wide_sizes(20, 17)
  for (kind in c("horseshoe", "shares")) {
    fit <- wide_fit(data, shrinking[[kind]], 1000)
    expect_match(fit$plan, "all coefficients are drawn anew", label = kind)
    shown <- posterior::summarise_draws(fit$draws, "rhat")
    expect_lt(max(shown$rhat), 1.05, label = kind)
  }
})

test_that("columns that fit every response are told of", {
  data <- withr::with_seed(1, data.frame(x = stats::rnorm(40)))
  data$size <- 2 * data$x
  for (rows in list(data, stream_of(data, 7))) {
    expect_error(
      tall_glm(size ~ x, rows, stats::gaussian(), prior = prior_ridge(),
        refresh = 0),
      "fit the response exactly",
      class = "tall_error_improper"
    )
  }
})

test_that("improper posteriors are refused under such priors, too", {
  data <- withr::with_seed(1, data.frame(x = stats::rnorm(300)))
  data$y <- 0L
  for (prior in list(prior_hs(), prior_ridge(), prior_r2d2())) {
    for (family in list(stats::binomial(), stats::poisson())) {
      expect_error(
        tall_glm(y ~ x, data, family, prior = prior, prior_intercept = NULL,
          refresh = 0),
        "not proper",
        class = "tall_error_improper"
      )
    }
  }
})

test_that("hyperparameters have proper priors", {
  refused <- function(code, arg) {
    said <- paste0("`", arg, "` must be")
    expect_error(code, said, class = "tall_error_input")
  }
  refused(prior_ridge(df = 0), "df")
  refused(prior_ridge(scale = Inf), "scale")
  refused(prior_hs(global_df = 0), "global_df")
  refused(prior_hs(global_scale = Inf), "global_scale")
  refused(prior_hs(slab_scale = Inf), "slab_scale")
  refused(prior_hs(df = Inf), "df")
  refused(prior_r2d2(prec_R2 = Inf), "prec_R2")
  data <- data.frame(x = 1:30, y = rep(0:1, 15))
  for (prior in list(NULL, prior_flat())) {
    refused(
      tall_gam(y ~ s(x), data, stats::binomial(), prior_smooth = prior),
      "prior_smooth"
    )
  }
})
