# Densities without data: their moments, their noise, and what it does to
# kernels.

forms <- list(
  normal = model_density("normal", mean = c(1, -2), sd = c(0.5, 3)),
  skewed = model_density("skew-normal", shape = c(4, -20), scale = 2),
  student = model_density("student", df = c(3, 9), location = 1, scale = 0.5),
  mixture = model_density(
    "mixture",
    means = c(-2, 1),
    sds = c(0.5, 1),
    weights = c(1, 3),
    dim = 2
  )
)

# The density of coordinate j, the others at their start.
marginal_of <- function(model, j) {
  rest <- model$start
  function(x) {
    points <- matrix(rest, length(rest), length(x))
    points[j, ] <- x
    at <- model_evaluate(model, points)$log_density
    centre <- model_evaluate(model, rest)$log_density
    exp(at - centre)
  }
}

test_that("moments are integrals of the density", {
  for (form in names(forms)) {
    model <- forms[[form]]
    for (j in 1:2) {
      f <- marginal_of(model, j)
      at <- model$start[[j]]
      moment <- function(g) {
        whole <- function(x) f(x) * g(x)
        stats::integrate(whole, -Inf, at, rel.tol = 1e-9)$value +
          stats::integrate(whole, at, Inf, rel.tol = 1e-9)$value
      }
      total <- moment(function(x) 1 + 0 * x)
      mean <- moment(identity) / total
      variance <- moment(function(x) (x - mean)^2) / total
      expect_close(model$moments$mean[[j]], mean, paste(form, "mean"), 1e-6)
      expect_close(model$moments$sd[[j]]^2, variance, paste(form, "sd"), 1e-5)
    }
    expect_identical(unname(diag(vcov(model))), unname(model$moments$sd^2))
  }
})

test_that("chains start at draws from the density", {
  withr::local_seed(1)
  banana <- model_density("banana", curvature = c(0.5, 2), sd = c(1, 0.3))
  for (model in c(forms, list(banana = banana))) {
    z <- replicate(10000, model$traits$draw(stats::rnorm))
    square <- (z - model$moments$mean)^2
    for (j in seq_len(model$n_dim)) {
      # batches, whose means are near normal
      expect_mean(
        colMeans(matrix(z[j, ], 250)),
        model$moments$mean[[j]],
        "start"
      )
      if (model$density != "student") { # whose fourth moment may be infinite
        expect_mean(
          colMeans(matrix(square[j, ], 250)),
          model$moments$sd[[j]]^2,
          "spread of starts"
        )
      }
    }
  }
  starts <- replicate(20000, forms$student$traits$draw(stats::rnorm))
  median <- apply(starts, 1, mad)
  quartile <- stats::qt(0.75, c(3, 9)) * 0.5
  expect_equal(median, quartile * 1.4826, tolerance = 0.03)
})

test_that("moments that do not exist are not given", {
  moments <- model_density("student", df = c(0.5, 1.5, 3))$moments
  expect_equal(unname(moments$mean), c(NA, 0, 0))
  expect_equal(unname(moments$sd), c(NA, Inf, sqrt(3)))
})

test_that("the skew normal keeps its slope far in the tail", {
  # there log Phi(a z) is near -(a z)^2 / 2 - log(-a z): slope -z (1 + a^2)
  model <- model_density("skew-normal", shape = 50)
  z <- -c(0.19, 0.2, 0.21, 1, 40, 1e3, 1e8)
  out <- model_evaluate(model, z)
  expect_true(all(is.finite(out$log_density)))
  x <- 50 * z
  expect_close(
    out$log_density,
    log(2) + stats::dnorm(z, log = TRUE) + stats::pnorm(x, log.p = TRUE)
  )
  hazard <- exp(
    stats::dnorm(x[1:5], log = TRUE) - stats::pnorm(x[1:5], log.p = TRUE)
  )
  expect_close(out$gradient[1:5], 50 * hazard - z[1:5], "slope", 1e-9)
  # phi / Phi = -x - 1 / x + O(x^-3)
  far <- -50 * (x[6:7] + 1 / x[6:7]) - z[6:7]
  expect_close(out$gradient[6:7] / far, c(1, 1))
})

test_that("mixtures have a slope where all components underflow", {
  model <- model_density("mixture", means = c(-1, 1), sds = c(1, 2))
  at <- model_evaluate(model, c(-200, 200))
  # far out the wider component decides
  expect_close(drop(at$gradient), c(201, -199) / 4, "slope")
  expect_true(all(is.finite(at$log_density)))
})

# ---- noise -------------------------------------------------------------------

noisy <- function(law, scale, dim = 40) {
  model_density(
    "normal",
    dim = dim,
    gradient_noise = law,
    noise_scale = scale
  )
}

test_that("gradients carry the noise asked for, whatever it is", {
  truth <- list(
    normal = stats::pnorm,
    laplace = function(x) ifelse(x < 0, exp(x) / 2, 1 - exp(-x) / 2),
    cauchy = stats::pcauchy
  )
  cuts <- c(-Inf, -3, -1, -0.3, 0, 0.3, 1, 3, Inf)
  for (law in names(truth)) {
    fit <- sg_sample(
      noisy(law, 2),
      kernel_sgbd(0.1),
      iter = 800,
      warmup = 0,
      chains = 2,
      seed = 4,
      keep = c("draws", "gradients"),
      refresh = 0
    )
    noise <- unclass(fit$gradients) + unclass(fit$draws)
    counts <- table(cut(noise / 2, cuts))
    expect_frequencies(as.vector(counts), diff(truth[[law]](cuts)), law)
    reported <- c(normal = 2, laplace = 2 * sqrt(2), cauchy = 2)[[law]]
    expect_equal(noise_tolerance(fit)$tau, rep(reported, 40))
  }
})

test_that("noise is for chains alone", {
  model <- noisy("cauchy", 5, dim = 2)
  expect_close(model_evaluate(model, c(1, -3))$gradient, c(-1, 3))
  mode <- find_mode(model, init = c(3, 4))
  expect_close(mode$estimate, c(0, 0), tolerance = 1e-4)
  expect_error(
    sg_sample(model, kernel_mala(0.1), refresh = 0),
    class = "tall_error_unsupported"
  )
  # and a scale of zero is none
  fit <- sg_sample(noisy("normal", 0, 2), kernel_mala(1), seed = 1, refresh = 0)
  expect_gt(min(fit$chains$acceptance), 0.5)
})

test_that("runs are counted in gradients, and go on as if never stopped", {
  model <- noisy("laplace", 1, dim = 3)
  run <- function(iter) {
    sg_sample(
      model,
      kernel_sgbd(0.2, "corrected"),
      iter = iter,
      warmup = 20,
      chains = 2,
      seed = 3,
      refresh = 0
    )
  }
  whole <- run(80)
  expect_identical(whole$passes, 2 * 81)
  resumed <- sg_resume(run(50), iter = 30, refresh = 0)
  expect_identical(plain_draws(resumed), plain_draws(whole))
  local_wide()
  expect_snapshot(print(whole), transform = scrub)
})

# ---- stationary laws on N(0, 1) with injected noise --------------------------

# Coordinates are independent chains of the same law: one row each of mean
# squares.
mean_squares <- function(kernel, law, scale, iter = 22000, dim = 200) {
  fit <- sg_sample(
    noisy(law, scale, dim),
    kernel,
    iter = iter,
    warmup = 2000,
    thin = 10,
    chains = 1,
    seed = 8,
    refresh = 0
  )
  colMeans(plain_draws(fit)[, 1, ]^2)
}

test_that("Langevin: vanilla is inflated by the noise, corrected is not", {
  skip_on_cran()
  h <- 0.3
  euler <- 1 / (1 - h / 4)
  for (law in c("normal", "laplace")) {
    tau <- 1.5
    scale <- if (law == "laplace") tau / sqrt(2) else tau
    # x' = (1 - h/2) x + (h/2) e + sqrt(h) xi
    vanilla <- mean_squares(kernel_sgld(h), law, scale)
    expect_mean(vanilla, (1 + h * tau^2 / 4) * euler, paste("vanilla", law))
    corrected <- mean_squares(kernel_sgld(h, "corrected"), law, scale)
    expect_mean(corrected, euler, paste("corrected", law))
  }
})

# The stationary law of Barker dynamics on N(0, 1), without sampling:
# probabilities on a lattice of spacing sigma / 20, which resolves increments
# N(sigma, (sigma / 10)^2) to rounding, from the balance at each of its points
# but the middle one. `noise`: equally likely values of the gradient's.
barker_law <- function(
  sigma,
  noise = 0,
  tau = 0,
  variant = "vanilla",
  range = 7
) {
  spacing <- sigma / 20
  x <- seq(-round(range / spacing), round(range / spacing)) * spacing
  steps <- 10:30
  w <- steps * spacing
  share <- stats::dnorm(w, sigma, sigma / 10)
  share <- share / sum(share)
  up <- vapply(w, function(w) {
    rowMeans(outer(x, noise, function(x, e) {
      barker_probability(e - x, w, tau, variant, 1.702)
    }))
  }, x)
  n <- length(x)
  share <- rep(share, each = n)
  right <- share * up
  left <- share * (1 - up)
  flow <- Matrix::bandSparse(n, k = c(0, -steps, steps), diagonals = c(
    list(rep(-1, n)),
    lapply(seq_along(steps), function(k) right[seq_len(n - steps[[k]]), k]),
    lapply(seq_along(steps), function(k) left[-seq_len(steps[[k]]), k])
  ))
  middle <- (n + 1) / 2
  law <- rep(1, n)
  law[-middle] <- as.vector(Matrix::solve(
    flow[-middle, -middle],
    -flow[-middle, middle]
  ))
  list(x = x, probability = law / sum(law))
}

barker_sd <- function(...) {
  law <- barker_law(...)
  sqrt(sum(law$probability * law$x^2))
}

# n equally likely values of a law
middles <- function(quantile, n = 200) quantile((seq_len(n) - 0.5) / n)
normal_noise <- function(tau, n = 200) tau * middles(stats::qnorm, n)

test_that("Barker dynamics has the law of its transition probabilities", {
  skip_on_cran()
  cases <- list(
    list(sigma = 0.5, tau = 0, variant = "vanilla"),
    list(sigma = 0.5, tau = 2, variant = "vanilla"),
    list(sigma = 0.5, tau = 2, variant = "corrected"),
    list(sigma = 1, tau = 1, variant = "vanilla"),
    list(sigma = 1, tau = 1, variant = "corrected"),
    list(sigma = 0.5, tau = 2, variant = "extreme")
  )
  for (case in cases) {
    squares <- mean_squares(
      kernel_sgbd(case$sigma, case$variant),
      if (case$tau > 0) "normal" else "none",
      if (case$tau > 0) case$tau
    )
    noise <- if (case$tau > 0) normal_noise(case$tau) else 0
    sd <- barker_sd(case$sigma, noise, case$tau, case$variant)
    expect_mean(squares, sd^2, paste(unlist(case), collapse = " "))
  }
})

test_that("corrected Barker dynamics is that without noise, nearly", {
  skip_on_cran()
  for (sigma in c(0.3, 0.5, 1)) {
    exact <- barker_sd(sigma)
    excess <- function(tau, variant) {
      barker_sd(sigma, normal_noise(tau, 100), tau, variant) / exact - 1
    }
    expect_lt(abs(excess(0.5 / sigma, "corrected")), 0.015)
    expect_lt(abs(excess(1 / sigma, "corrected")), 0.035)
    # the noise alone would do more
    expect_gt(excess(1 / sigma, "vanilla"), 0.035)
  }
})

test_that("exact gradients: the bias of Barker dynamics is of order sigma^2", {
  skip_on_cran()
  bias <- vapply(c(0.8, 0.4, 0.2), barker_sd, 0) - 1
  expect_equal(bias[1:2] / bias[2:3], c(4, 4), tolerance = 0.05)
  expect_equal(bias[[3]] / 0.2^2, 0.131, tolerance = 0.01)
})

test_that("extreme: the variance tends to sigma tau / (4 phi(0))", {
  skip_on_cran()
  for (tau in c(2, 5)) {
    variance <- barker_sd(0.1, normal_noise(tau, 100), tau, "extreme")^2
    limit <- 0.1 * tau / (4 * stats::dnorm(0))
    expect_equal(variance, limit, tolerance = 0.03)
  }
})

# The share of draws above a value, coordinate by coordinate.
shares_above <- function(kernel, scale, q, iter = 22000, dim = 200) {
  fit <- sg_sample(
    noisy("cauchy", scale, dim),
    kernel,
    iter = iter,
    warmup = 2000,
    thin = 10,
    chains = 1,
    seed = 9,
    refresh = 0
  )
  colMeans(plain_draws(fit)[, 1, ] > q)
}

test_that("Cauchy noise breaks Langevin steps down, Barker's not", {
  skip_on_cran()
  sigma <- 0.5
  scale <- exp(1.5) - 1
  # sum_k (1 - h/2)^k (h/2) e is Cauchy(scale) for every h
  sd <- 1 / sqrt(1 - sigma^2 / 4)
  above <- function(q) {
    stats::integrate(function(u) {
      stats::dnorm(u, 0, sd) * stats::pcauchy(q - u, 0, scale, lower = FALSE)
    }, -8, 8)$value
  }
  langevin <- stats::uniroot(function(q) above(q) - 0.05, c(1, 100))$root
  expect_gt(langevin, 20) # against 1.645 of the target
  expect_mean(shares_above(kernel_sgld(sigma^2), scale, langevin), 0.05)

  noise <- scale * middles(stats::qcauchy, 500)
  law <- barker_law(sigma, noise, range = 12)
  up_to <- cumsum(law$probability)
  # the middle between two points of the lattice
  barker <- law$x[[which(up_to >= 0.95)[[1]]]] + sigma / 40
  expect_lt(barker, 2.5)
  shares <- shares_above(kernel_sgbd(sigma), scale, barker)
  expect_mean(shares, 1 - up_to[up_to >= 0.95][[1]])
})

# ---- bad input ---------------------------------------------------------------

test_that("bad input is refused in words", {
  expect_snapshot(model_density(), error = TRUE, cnd_class = TRUE)
  expect_snapshot(model_density("skew normal", shape = 1), error = TRUE)
  expect_snapshot(model_density("normal", 3), error = TRUE)
  expect_snapshot(model_density("normal", mu = 3), error = TRUE)
  expect_snapshot(model_density("normal", sd = 0), error = TRUE)
  expect_snapshot(model_density("normal", mean = NA_real_), error = TRUE)
  expect_snapshot(model_density("normal", mean = 1:3, sd = 1:2), error = TRUE)
  expect_snapshot(model_density("normal", sd = 1:3, dim = 2), error = TRUE)
  expect_snapshot(model_density("normal", dim = 0), error = TRUE)
  expect_snapshot(model_density("student"), error = TRUE)
  expect_snapshot(model_density("student", df = -1), error = TRUE)
  expect_snapshot(model_density("skew-normal"), error = TRUE)
  expect_snapshot(
    model_density("mixture", means = 1:2, sds = 1:3),
    error = TRUE
  )
  expect_snapshot(
    model_density("mixture", means = 1:2, weights = c(1, 0)),
    error = TRUE
  )
  expect_snapshot(model_density("banana", dim = 3), error = TRUE)
  expect_snapshot(model_density("banana", sd = 1), error = TRUE)
  expect_snapshot(
    model_density("normal", gradient_noise = "uniform", noise_scale = 1),
    error = TRUE
  )
  expect_snapshot(
    model_density("normal", gradient_noise = "cauchy"),
    error = TRUE
  )
  expect_snapshot(model_density("normal", noise_scale = 1), error = TRUE)
  expect_snapshot(
    model_density("normal", gradient_noise = "normal", noise_scale = -1),
    error = TRUE
  )
  expect_snapshot(
    model_density("normal", gradient_noise = "normal", noise_scale = 1:2),
    error = TRUE
  )
  model <- noisy("normal", 1, 2)
  run <- function(...) sg_sample(model, ..., refresh = 0)
  expect_snapshot(run(kernel_mala(1)), error = TRUE)
  expect_snapshot(run(kernel_sgld(1), gradient_cv()), error = TRUE)
  expect_snapshot(run(), error = TRUE)
  expect_snapshot(
    run(kernel_sgld(1), subsample = subsample_uniform(10)),
    error = TRUE
  )
})

test_that("densities print what they are", {
  expect_snapshot(print(forms$skewed))
  expect_snapshot(print(noisy("laplace", 2)))
})
