# Gaussian responses from sums over rows. Oracles: with normal priors y is
# normal given sigma, so that the density of sigma is known, and so are the
# coefficients given it; with flat priors lm().

sums_case <- function(n, p, seed = 1, weighted = TRUE, mean = 3) {
  withr::with_seed(seed, {
    x <- matrix(stats::rnorm(n * p, mean, 2), n)
    x <- cbind("(Intercept)" = 1, x)[, seq_len(p), drop = FALSE]
    w <- if (weighted) stats::runif(n, 0.5, 2)
    o <- if (weighted) stats::rnorm(n)
    noise <- stats::rnorm(n) / sqrt(if (weighted) w else 1)
    y <- drop(x %*% seq(1, -1, length.out = p)) + 1.5 * noise
    if (weighted) y <- y + o
    list(x = x, y = y, weights = w, offset = o)
  })
}

sums_of <- function(case, ...) {
  arguments <- utils::modifyList(
    list(
      x = case$x,
      y = case$y,
      family = "gaussian",
      weights = case$weights,
      offset = case$offset
    ),
    list(...),
    keep.null = TRUE
  )
  do.call(model_glm, arguments)
}

# The model of tall_glm(), whose intercept's prior is at the columns' means.
centred_model <- function(case, prior, intercept, sigma = NULL) {
  priors <- list(
    prior = prior,
    prior_intercept = intercept,
    prior_aux = prior_exponential(0.7)
  )
  build_model(
    blueprint_glm(resolve_family("gaussian"), priors, sigma),
    rows_memory(case$x, case$y, case$weights, case$offset)
  )
}

draw_sums <- function(model, ..., iter = 1000, seed = 1) {
  sg_sample(model, ..., iter = iter, seed = seed, refresh = 0)
}

# Given sigma: list(mean, covariance) of the coefficients, log p(y | sigma).
# root: rows of what the prior is on; mean, sd: of those.
given_sigma <- function(case, sigma, root, mean, sd) {
  n <- length(case$y)
  w <- if (is.null(case$weights)) rep(1, n) else case$weights
  y <- case$y - (if (is.null(case$offset)) 0 else case$offset)
  before <- solve(root)
  prior <- before %*% (sd^2 * t(before))
  start <- drop(before %*% mean)
  total <- case$x %*% prior %*% t(case$x) + diag(sigma^2 / w, n)
  chol <- chol(total)
  z <- backsolve(chol, y - drop(case$x %*% start), transpose = TRUE)
  precision <- crossprod(case$x * sqrt(w)) / sigma^2 + solve(prior)
  pull <- crossprod(case$x, w * y) / sigma^2 + solve(prior, start)
  list(
    mean = as.double(solve(precision, pull)),
    covariance = unname(solve(precision)),
    log_lik = -sum(log(diag(chol))) - sum(z^2) / 2
  )
}

# Of a posterior from sums.
sums_given <- function(posterior, sigma) {
  k <- posterior$scale^2 / sigma^2
  spread <- k * posterior$share + posterior$rest
  z <- posterior$fit + posterior$pull / spread
  beta <- function(c) posterior$into_beta(c)
  root <- beta(posterior$basis) / rep(sqrt(spread), each = length(z))
  list(
    mean = drop(beta(posterior$origin + posterior$basis %*% z)),
    covariance = tcrossprod(root)
  )
}

test_that("sums of products do not cancel, and do not depend on cores", {
  for (n in c(1, 2, 700, 5000)) {
    k <- seq_len(n)
    # numbers that have no rounding, far from zero
    x <- cbind(1, 2^27 + (k * 7) %% 16, -2^30 + (k * 5) %% 8, k %% 2)
    y <- 2^26 + (k * 3) %% 32
    w <- c(1, 4, 0.25)[1 + k %% 3]
    o <- k %% 4
    model <- model_glm(x, y, "gaussian", weights = w, offset = o)
    found <- .Call(ffi_model_product_sums, model$pointer, 4L, 1L)
    z <- cbind(x, y - o)
    mean <- colSums(w * z) / sum(w)
    away <- sweep(z, 2, mean)
    expect_equal(found$mean, unname(mean), tolerance = 1e-15)
    expected <- unname(crossprod(away * sqrt(w)))
    expect_equal(found$sums, expected, tolerance = 1e-13)
    expect_identical(found$weight, sum(w))
    expect_identical(diag(found$sums)[[1]], 0)
    many <- .Call(ffi_model_product_sums, model$pointer, 4L, 2L)
    expect_identical(many, found)
  }
})

test_that("the law of sigma and of coefficients given it is the posterior's", {
  sigmas <- c(0.3, 1, 1.5, 4)
  for (n in c(5, 30, 400)) {
    for (p in c(1, 2, 8)) {
      for (weighted in c(TRUE, FALSE)) {
        case <- sums_case(n, p, weighted = weighted)
        means <- colMeans(case$x)
        means[[1]] <- 1
        root <- rbind(means, diag(p)[-1, , drop = FALSE])
        prior <- prior_normal(0.5, 0.8)
        intercept <- prior_normal(2, 3)
        model <- centred_model(case, prior, intercept)
        posterior <- sums_posterior(model, 1L)
        found <- posterior$log_density(log(sigmas))
        expected <- vapply(sigmas, function(sigma) {
          exact <- given_sigma(
            case,
            sigma,
            root,
            c(2, rep(0.5, p - 1)),
            c(3, rep(0.8, p - 1))
          )
          ours <- sums_given(posterior, sigma)
          expect_equal(ours$mean, exact$mean, tolerance = 1e-8)
          expect_equal(ours$covariance, exact$covariance, tolerance = 1e-8)
          exact$log_lik + log(sigma) - 0.7 * sigma
        }, 0)
        expect_equal(
          found - found[[2]],
          expected - expected[[2]],
          tolerance = 1e-8
        )
        # known
        known <- centred_model(case, prior, intercept, sigma = 1.5)
        known <- sums_posterior(known, 1L)
        ours <- sums_given(posterior, 1.5)
        expect_equal(sums_given(known, 1.5), ours, tolerance = 1e-8)
      }
    }
  }
})

test_that("a gamma prior of sigma is followed", {
  case <- sums_case(12, 2, weighted = FALSE)
  s <- log(c(0.3, 1, 1.5, 4))
  law <- function(prior_aux) {
    model <- model_glm(case$x, case$y, "gaussian", prior_aux = prior_aux)
    sums_posterior(model, 1L)$log_density(s)
  }
  more <- law(prior_gamma(6, 3)) - law(prior_exponential(3))
  expect_equal(more - more[[1]], 5 * (s - s[[1]]), tolerance = 1e-8)
})

test_that("the prior of an intercept that is not centred is kept", {
  case <- sums_case(40, 3)
  model <- sums_of(case, prior = prior_normal(c(-1, 0, 2), c(0.5, 1, 3)))
  posterior <- sums_posterior(model, 1L)
  exact <- given_sigma(case, 1.2, diag(3), c(-1, 0, 2), c(0.5, 1, 3))
  ours <- sums_given(posterior, 1.2)
  expect_equal(ours, exact[c("mean", "covariance")], tolerance = 1e-8)
  # and no column is constant
  case$x <- case$x[, -1]
  model <- sums_of(case, prior = prior_normal(0, c(1, 3)))
  posterior <- sums_posterior(model, 1L)
  exact <- given_sigma(case, 1.2, diag(2), c(0, 0), c(1, 3))
  ours <- sums_given(posterior, 1.2)
  expect_equal(ours, exact[c("mean", "covariance")], tolerance = 1e-8)
})

test_that("sigma's quantiles are those of its density", {
  models <- list(
    sums_of(sums_case(6, 3)),
    sums_of(sums_case(2000, 3)),
    # as many columns as rows: the density falls like sigma
    sums_of(sums_case(8, 8)),
    sums_of(sums_case(8, 20), prior = prior_normal(0, 1))
  )
  u <- c(1e-6, 1e-4, 0.01, 0.2, 0.5, 0.9, 0.999)
  for (model in models) {
    posterior <- sums_posterior(model, 1L)
    # an integral on a grid of its own
    ends <- posterior$quantile(c(1e-8, 1 - 1e-8))
    s <- seq(ends[[1]] - 12, ends[[2]] + 1, length.out = 3e5)
    density <- posterior$log_density(s)
    density <- exp(density - max(density))
    cdf <- cumsum(density) - density / 2
    cdf <- cdf / sum(density)
    found <- stats::approx(s, cdf, posterior$quantile(u))$y
    expect_lt(max(abs(found - u)), 2e-6)
  }
})

test_that("draws have the posterior's law, and are independent", {
  case <- sums_case(30, 3)
  prior <- prior_normal(0, c(3, 1, 1))
  model <- sums_of(case, prior = prior)
  posterior <- sums_posterior(model, 1L)
  fit <- draw_sums(model, iter = 6000, warmup = 1000)
  expect_s3_class(fit$kernel, "tall_kernel_independent")
  expect_identical(dim(fit$draws), c(5000L, 4L, 4L))
  draws <- posterior::as_draws_matrix(fit$draws)
  # given sigma, standard normals
  z <- vapply(seq_len(2000), function(i) {
    at <- sums_given(posterior, draws[[i, "sigma"]])
    away <- as.double(draws[i, 1:3]) - at$mean
    backsolve(chol(at$covariance), away, transpose = TRUE)
  }, numeric(3))
  for (j in 1:3) {
    expect_gt(stats::ks.test(z[j, ], "pnorm")$p.value, 1e-3)
  }
  expect_lt(max(abs(stats::cor(t(z)))[upper.tri(diag(3))]), 4 / sqrt(2000))
  u <- seq(0.1, 0.9, by = 0.1)
  share <- findInterval(log(draws[, "sigma"]), posterior$quantile(u))
  counts <- tabulate(share + 1, 10)
  expect_gt(stats::chisq.test(counts)$p.value, 1e-3)
  table <- summary(fit)$table
  expect_lt(max(abs(table$rhat - 1)), 0.005)
  expect_gt(min(table$ess_bulk), 0.9 * 20000)
})

test_that("flat priors give what lm() gives", {
  case <- sums_case(25, 4)
  frame <- data.frame(case$x[, -1], y = case$y, w = case$weights)
  frame$o <- case$offset
  fit <- tall_glm(
    y ~ X1 + X2 + X3 + offset(o),
    stats::setNames(frame, c("X1", "X2", "X3", "y", "w", "o")),
    weights = w,
    prior = NULL,
    prior_intercept = NULL,
    prior_aux = NULL,
    iter = 11000,
    warmup = 1000,
    seed = 1,
    refresh = 0
  )
  names(frame)[1:3] <- c("X1", "X2", "X3")
  least <- lm(y ~ X1 + X2 + X3, frame, weights = w, offset = o)
  # sigma's density is that of sqrt(RSS / chi^2_{n - p - 1})
  df <- 25 - 4 - 1
  rss <- sum(frame$w * residuals(least)^2)
  inverse <- rss / as.double(posterior::extract_variable(fit$draws, "sigma"))^2
  expect_gt(stats::ks.test(inverse, "pchisq", df)$p.value, 1e-3)
  error <- (coef(fit)[1:4] - coef(least)) / sqrt(diag(vcov(least)))
  expect_lt(max(abs(error)), 4.5 / sqrt(40000) * sqrt(21 / 18))
  ratio <- sqrt(diag(vcov(fit)) / diag(vcov(least)) * (df - 2) / 21)
  expect_lt(max(abs(ratio - 1)), 0.02)
})

test_that("units do not matter, nor how far columns are from zero", {
  flat <- function(formula, data, iter = 400) {
    tall_glm(
      formula,
      data,
      prior = NULL,
      prior_intercept = NULL,
      prior_aux = NULL,
      iter = iter,
      seed = 1,
      refresh = 0
    )
  }
  slopes <- function(fit) {
    draws <- posterior::as_draws_matrix(fit$draws)
    unclass(draws[, c("wt", "hp", "disp", "sigma")])
  }
  plain <- slopes(flat(mpg ~ wt + hp + disp, mtcars))
  for (unit in c(1e-6, 1e3, 1e6)) {
    data <- transform(
      mtcars,
      wt = wt * unit,
      hp = hp / unit,
      disp = disp + 1e8 * 62,
      mpg = 1e5 * mpg + 1e12
    )
    found <- slopes(flat(mpg ~ wt + hp + disp, data))
    back <- sweep(found, 2, 1e5 * c(1 / unit, unit, 1, 1), `/`)
    # the columns themselves are rounded at 1e-16 of 6e9, and of 1e12
    scale <- apply(plain, 2, stats::sd)
    away <- abs(sweep(back - plain, 2, scale, `/`))
    expect_lt(max(away), 1e-5)
  }
  alone <- flat(mpg ~ 1, transform(mtcars, mpg = 1e9 + mpg), iter = 4000)
  error <- coef(alone)[["(Intercept)"]] - 1e9 - mean(mtcars$mpg)
  expect_lt(abs(error), 4 * stats::sd(mtcars$mpg) / sqrt(32 * 8000) * 1.1)
})

test_that("more columns than rows are drawn as well as any", {
  case <- sums_case(20, 26, weighted = FALSE)
  model <- sums_of(
    case,
    prior = prior_normal(0, 0.7),
    prior_aux = prior_exponential(0.5)
  )
  fit <- expect_no_warning(draw_sums(model, iter = 4000))
  s <- seq(log(1e-7), log(60), by = 0.01)
  log_p <- vapply(s, function(s) {
    total <- 0.49 * tcrossprod(case$x) + diag(exp(2 * s), 20)
    root <- chol(total)
    z <- backsolve(root, case$y, transpose = TRUE)
    -sum(log(diag(root))) - sum(z^2) / 2 + s - 0.5 * exp(s)
  }, 0)
  w <- exp(log_p - max(log_p))
  cdf <- cumsum(w) / sum(w)
  log_sigma <- log(posterior::extract_variable_matrix(fit$draws, "sigma"))
  u <- stats::approx(s, cdf - w / sum(w) / 2, log_sigma)$y
  expect_gt(stats::ks.test(u, "punif")$p.value, 1e-3)
  expect_lt(max(abs(summary(fit)$table$rhat - 1)), 0.01)
  mean <- vapply(c(-3, 0, 1), function(s) {
    sums_given(sums_posterior(model, 1L), exp(s))$mean -
      given_sigma(case, exp(s), diag(26), numeric(26), rep(0.7, 26))$mean
  }, numeric(26))
  expect_lt(max(abs(mean)), 1e-6)
})

test_that("ranks of a Gaussian regression's parameters are uniform (SBC)", {
  n <- 12
  x <- cbind("(Intercept)" = 1, a = sin(1:n), b = 50 + cos(2 * (1:n)))
  mean <- c(1, colMeans(x)[-1])
  ranks <- vapply(seq_len(60), function(k) {
    set <- withr::with_seed(k, {
      slope <- stats::rnorm(2, c(0.5, -1), c(1, 2))
      intercept <- stats::rnorm(1, 2, 3) - sum(mean[-1] * slope)
      sigma <- stats::rexp(1, 0.7)
      w <- stats::runif(n, 0.5, 2)
      theta <- c(intercept, slope, sigma)
      mu <- drop(x %*% theta[1:3])
      list(y = stats::rnorm(n, mu, sigma / sqrt(w)), w = w, theta = theta)
    })
    case <- list(x = x, y = set$y, weights = set$w)
    prior <- prior_normal(c(0.5, -1), c(1, 2))
    model <- centred_model(case, prior, prior_normal(2, 3))
    fit <- draw_sums(model, iter = 39, warmup = 20, chains = 1, seed = k)
    colSums(sweep(matrix(fit$draws, 19), 2, set$theta, `<`))
  }, numeric(4))
  for (j in 1:4) {
    counts <- tabulate(ranks[j, ] %/% 4 + 1, 5)
    expect_gt(stats::chisq.test(counts)$p.value, 1e-3)
    z <- (mean(ranks[j, ]) - 9.5) / sqrt((20^2 - 1) / 12 / 60)
    expect_lt(abs(z), 3.5)
  }
})

test_that("draws depend on seed, chain and iteration alone", {
  model <- sums_of(sums_case(300, 3))
  of <- function(fit) unname(unclass(fit$draws)[, , ])
  whole <- draw_sums(model, iter = 1200, warmup = 200)
  expect_identical(of(draw_sums(model, iter = 1200, warmup = 200, cores = 2)),
                   of(whole))
  part <- draw_sums(model, iter = 700, warmup = 200)
  expect_identical(of(sg_resume(part, iter = 500, refresh = 0)), of(whole))
  thinned <- draw_sums(model, iter = 1200, warmup = 200, thin = 3)
  expect_identical(of(thinned), of(whole)[3 * (1:333), , ])
  uneven <- draw_sums(model, iter = 701, warmup = 200, thin = 3)
  expect_identical(of(sg_resume(uneven, iter = 499, refresh = 0)), of(thinned))
  fewer <- draw_sums(model, iter = 1200, warmup = 200, variables = "sigma")
  expect_identical(c(of(fewer)), c(of(whole)[, , 4]))
  expect_false(identical(of(draw_sums(model, seed = 2)), of(draw_sums(model))))
  expect_false(identical(of(whole)[, 1, ], of(whole)[, 2, ]))

  none <- draw_sums(
    model,
    iter = 1200,
    warmup = 200,
    keep = c("none", "covariance")
  )
  expect_null(none$draws)
  draws <- posterior::as_draws_matrix(whole$draws)
  expect_equal(fit_moments(none)$mean, unname(colMeans(draws)))
  expect_equal(unname(vcov(none)), unname(cov(draws)))
  longer <- sg_resume(none, iter = 300, refresh = 0)
  expect_identical(longer$moments[[1]]$n, 1300)
})

test_that("a fit by sums goes on from a file", {
  data <- data.frame(x = sin(1:50), y = cos(1:50) + sin(1:50))
  run <- function(...) {
    tall_glm(y ~ x, data, ..., chains = 2, seed = 1, refresh = 0)
  }
  for (prior in list(prior_normal(), prior_laplace(0, 0.1))) {
    whole <- run(prior = prior, iter = 400, warmup = 100)
    part <- run(prior = prior, iter = 250, warmup = 100)
    part <- unserialize(serialize(part, NULL))
    again <- sg_resume(part, iter = 150, refresh = 0)
    expect_identical(again$draws, whole$draws)
  }
})

test_that("gradients, log posterior and monitors are those of the rows", {
  case <- sums_case(60, 3)
  for (prior in list(prior_normal(0, 2), prior_flat())) {
    for (lambda in list(NULL, 20)) {
      model <- sums_of(case, prior = prior)
      fit <- draw_sums(
        model,
        iter = 60,
        warmup = 20,
        chains = 2,
        keep = c("draws", "gradients"),
        lambda = lambda,
        monitor = list(every = 7, a = function(theta) theta[["x2"]])
      )
      theta <- t(matrix(fit$unconstrained, 80))
      here <- model_evaluate(temper_model(model, lambda), theta)
      expect_equal(t(matrix(fit$gradients, 80)), here$gradient)
      expect_equal(as.double(fit$log_posterior), here$log_density)
      seen <- subset(fit$monitor, iteration == 42 & chain == 2)
      expect_identical(seen$value, fit$draws[[22, 2, 2]])
      expect_identical(nrow(fit$monitor), 16L)
    }
  }
})

test_that("a tempered likelihood's draws are those of the Gibbs posterior", {
  case <- sums_case(200, 2, weighted = FALSE)
  model <- sums_of(case, prior = prior_normal(0, 2), sigma = 2)
  fit <- draw_sums(model, lambda = 50, iter = 6000)
  # a quarter of each row's information: sigma is twice as large
  exact <- given_sigma(case, 4, diag(2), c(0, 0), c(2, 2))
  draws <- posterior::as_draws_matrix(fit$draws)
  z <- (colMeans(draws) - exact$mean) / sqrt(diag(exact$covariance) / 12000)
  expect_lt(max(abs(z)), 4)
  ratio <- diag(cov(draws)) / diag(exact$covariance)
  expect_lt(max(abs(ratio - 1)), 5 * sqrt(2 / 12000))
})

test_that("where the columns explain nearly all, the rest is still known", {
  case <- sums_case(50, 3, weighted = FALSE)
  line <- drop(case$x %*% c(5, -1, 2))
  for (noise in c(1e-4, 1e-8)) {
    e <- noise * residuals(lm(sin((1:50)^2) ~ case$x - 1))
    case$y <- line + e
    model <- sums_of(case, prior = prior_flat(), prior_aux = prior_flat())
    posterior <- sums_posterior(model, 1L)
    # the median of sqrt(RSS / chi^2)
    rss <- sum(residuals(lm(sin((1:50)^2) ~ case$x - 1))^2)
    median <- noise * sqrt(rss / stats::qchisq(0.5, 50 - 3 - 1))
    expect_lt(abs(posterior$quantile(0.5) - log(median)), 1e-3)
    away <- sums_given(posterior, median)
    error <- (away$mean - c(5, -1, 2)) / sqrt(diag(away$covariance))
    expect_lt(max(abs(error)), 1e-2 + 1e-13 / noise)
  }
})

test_that("other priors take steps on the sums, which have the rows' density", {
  case <- sums_case(80, 3)
  priors <- list(
    prior_laplace(0, c(1, 0.1, 2)),
    prior_uniform(-3, 5)
  )
  for (prior in priors) {
    for (sigma in list(NULL, 1.3)) {
      model <- sums_of(case, prior = prior, sigma = sigma)
      parts <- sums_parts(model, 1L)
      stand_in <- sums_model(model, parts$sums, parts$fit)
      theta <- withr::with_seed(1, {
        at <- c(parts$fit$beta, if (is.null(sigma)) 0.4)
        at + matrix(stats::rnorm(5 * length(at), 0, 0.3), length(at))
      })
      ours <- model_evaluate(stand_in, theta)
      rows <- model_evaluate(model, theta)
      expect_equal(ours$gradient, rows$gradient)
      expect_equal(diff(ours$log_density), diff(rows$log_density))
    }
  }
  # by quadrature of one coefficient
  case <- sums_case(15, 1, weighted = FALSE)
  run <- function(prior) {
    draw_sums(sums_of(case, prior = prior, sigma = 1.5), iter = 4000)
  }
  b <- seq(-6, 6, by = 1e-3)
  log_lik <- vapply(b, function(b) -sum((case$y - b)^2) / 4.5, 0)
  densities <- list(
    list(prior_laplace(0, 0.2), exp(log_lik - abs(b) / 0.2)),
    list(prior_uniform(0.8, 1.1), exp(log_lik) * (b > 0.8 & b < 1.1))
  )
  for (one in densities) {
    fit <- run(one[[1]])
    expect_s3_class(fit$kernel, "tall_kernel_mala")
    expect_equal(sum(fit$chains$passes), 0)
    w <- one[[2]] / sum(one[[2]])
    mean <- sum(w * b)
    sd <- sqrt(sum(w * (b - mean)^2))
    table <- summary(fit)$table
    expect_lt(abs(table$mean - mean) / table$mcse_mean, 4.5)
    expect_lt(abs(table$sd / sd - 1), 0.05)
  }
})

test_that("what comes after a fit knows that it is exact", {
  local_wide()
  data <- example_data(200)
  fit <- quick_glm(z ~ a + b, data, family = gaussian())
  expect_snapshot(
    {
      fit
      summary(fit)
    },
    transform = scrub
  )
  expect_identical(summary(fit)$table$sd_bias, numeric(4))
  expect_identical(glance(fit)$sd_bias, 0)
  expect_identical(glance(fit)$algorithm, "independent (exact)")
  expect_identical(fit$passes, 1)
  expect_snapshot(error = TRUE, {
    bias_check(fit)
    noise_tolerance(fit)
  })
  expect_lt(ksd(fit, max_draws = 400), ksd(fit, max_draws = 100) * 1.5)
  better <- zero_variance(
    quick_glm(
      z ~ a + b,
      data,
      family = gaussian(),
      keep = c("draws", "gradients")
    )
  )
  expect_identical(dim(better), c(4000L, 4L))
  expect_snapshot(
    quick_glm(
      z ~ a + b,
      data,
      family = gaussian(),
      prior = prior_laplace(0, 0.5)
    ),
    transform = scrub
  )
})
