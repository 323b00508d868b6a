# Chunks of rows: sums and rows drawn ahead. What the bounds are used for is in
# test-kernel-smh.R.

# list(x, y, weights, offset, family) of n rows
chunk_case <- function(name, n = 300, seed = 1) {
  withr::local_seed(seed)
  x <- cbind(1, rnorm(n), rexp(n))
  eta <- drop(x %*% c(-0.5, 0.6, 0.2))
  link <- switch(name, probit = "probit", cloglog = "cloglog", "logit")
  out <- list(
    x = x,
    y = as.double(rbinom(n, 1, plogis(eta))),
    family = stats::binomial(link)
  )
  if (name == "poisson") {
    out$y <- as.double(rpois(n, exp(eta)))
    out$family <- stats::poisson()
  }
  if (name == "trials") {
    out$weights <- as.double(sample(1:9, n, TRUE))
    out$y <- rbinom(n, out$weights, plogis(eta)) / out$weights
    out$model_family <- "binomial"
  }
  if (name %in% c("offset", "poisson")) {
    out$offset <- rnorm(n)
    out$weights <- 0.5 + runif(n)
  }
  out
}
chunk_cases <- c("logit", "probit", "cloglog", "poisson", "trials", "offset")
chunk_theta <- c(-0.3, 0.4, 0.1)

chunk_of <- function(case, rows = seq_along(case$y), n = length(rows)) {
  chunk_model(
    case$x[rows, , drop = FALSE],
    n,
    case$y[rows],
    case$weights[rows],
    case$offset[rows],
    resolve_family(case$family)
  )
}

chunk_chol <- function(case) {
  t(chol(chunk_sums(chunk_of(case), chunk_theta)$hessian))
}

draw_args <- function(...) {
  out <- list(
    radius = sqrt(3) + 7,
    phi_bar = 16,
    rate = 100,
    scale = 1,
    seed = 7,
    pass = 1,
    first = 0
  )
  utils::modifyList(out, list(...))
}

test_that("sums are those of a model with these rows", {
  for (name in chunk_cases) {
    case <- chunk_case(name)
    model <- model_glm(
      case$x[1:250, ],
      case$y[1:250],
      family = case$model_family %||% case$family,
      prior = prior_flat(),
      weights = case$weights[1:250],
      offset = case$offset[1:250]
    )
    # more rows than are counted
    sums <- chunk_sums(chunk_of(case, 1:300, 250), chunk_theta)
    there <- curvature(model, chunk_theta)
    expect_close(sums$log_lik, there$log_posterior, name, 1e-12)
    expect_close(sums$gradient, drop(there$gradient), name, 1e-10)
    expect_close(sums$hessian, there$hessian, name, 1e-10)
    offset <- case$offset[1:250] %||% 0
    eta <- drop(case$x[1:250, ] %*% chunk_theta) + offset
    expect_close(sums$largest, max(abs(eta)), name, 1e-12)
  }
})

test_that("known parameters of a response are those of its family", {
  case <- chunk_case("logit")
  case$y <- withr::with_seed(2, stats::rexp(300))
  case$family <- student(3, 0.5)
  model <- model_glm(case$x, case$y, case$family, prior_flat())
  sums <- chunk_sums(chunk_of(case), chunk_theta)
  there <- curvature(model, chunk_theta)
  expect_close(sums$log_lik, there$log_posterior, "student", 1e-12)
  expect_close(sums$hessian, there$hessian, "student", 1e-10)
})

test_that("threads change nothing, and parts of many rows add up", {
  case <- chunk_case("offset", n = 9001)
  chunk <- chunk_of(case)
  chol <- chunk_chol(case)
  one <- chunk_draw(chunk, chunk_theta, chol, 1, draw_args(rate = 1e4))
  two <- chunk_draw(chunk, chunk_theta, chol, 2, draw_args(rate = 1e4))
  expect_identical(one, two)
  sums <- chunk_sums(chunk, chunk_theta, 2)
  expect_identical(one[names(sums)], sums)
  some <- lapply(list(1:5000, 5001:9001), function(rows) {
    chunk_sums(chunk_of(case, rows), chunk_theta)
  })
  for (name in c("log_lik", "gradient", "hessian")) {
    both <- some[[1]][[name]] + some[[2]][[name]]
    expect_close(sums[[name]], both, name, 1e-10)
  }
})

test_that("psi bounds what rows are beyond their second order", {
  withr::local_seed(3)
  for (name in chunk_cases) {
    case <- chunk_case(name, n = 40)
    chol <- chunk_chol(case)
    # every row is one to be looked at
    args <- draw_args(phi_bar = Inf)
    psi <- chunk_draw(chunk_of(case), chunk_theta, chol, 1, args)
    expect_identical(psi$rows, as.double(1:40))
    expect_identical(psi$count, numeric(40))
    row_sums <- function(i, theta) {
      chunk_sums(chunk_of(case, i), theta)
    }
    largest <- 0
    for (length in c(0.5, 3, sqrt(3) + 6.99)) {
      z <- rnorm(3)
      delta <- backsolve(t(chol), z / sqrt(sum(z^2)) * length)
      for (i in 1:40) {
        here <- row_sums(i, chunk_theta)
        there <- row_sums(i, chunk_theta + delta)
        bent <- drop(delta %*% here$hessian %*% delta)
        e <- here$log_lik + sum(here$gradient * delta) - bent / 2 -
          there$log_lik
        largest <- max(largest, abs(e) / length^3 / psi$psi[[i]])
      }
    }
    expect_lt(largest, 1 + 1e-6)
    expect_gt(largest, 0.02)
  }
})

test_that("rows are thinned by their bounds, and the rest is added up", {
  case <- chunk_case("logit")
  chol <- chunk_chol(case)
  draw <- function(...) {
    chunk_draw(chunk_of(case), chunk_theta, chol, 1, draw_args(...))
  }
  psi <- draw(phi_bar = Inf)$psi
  phi_bar <- 1 / median(psi)
  drawn <- draw(phi_bar = phi_bar)
  always <- phi_bar * psi > 1
  expect_identical(drawn$rows[drawn$count == 0], as.double(which(always)))
  expect_close(drawn$total, sum(psi[!always]), "total", 1e-12)
  expect_identical(drawn$psi, psi[drawn$rows])
  expect_equal(draw(scale = 3, phi_bar = Inf)$psi, 3 * psi)
  # no draws without a rate
  expect_identical(
    draw(phi_bar = phi_bar, rate = 0)$rows,
    as.double(which(always))
  )
})

test_that("numbers of draws have the law of Poisson", {
  n_seed <- 3000
  case <- chunk_case("logit", n = 60)
  chunk <- chunk_of(case)
  chol <- chunk_chol(case)
  draw <- function(seed, ...) {
    chunk_draw(chunk, chunk_theta, chol, 1, draw_args(seed = seed, ...))
  }
  psi <- draw(1, phi_bar = Inf)$psi
  # the largest mean is 40
  rate <- 40 / max(psi)
  counts <- vapply(seq_len(n_seed), function(seed) {
    drawn <- draw(seed, phi_bar = 0, rate = rate)
    replace(numeric(60), drawn$rows, drawn$count)
  }, numeric(60))
  mean <- rate * psi
  z <- (rowMeans(counts) - mean) / sqrt(mean / n_seed)
  expect_gt(pchisq(sum(z^2), 60, lower.tail = FALSE), 1e-4)
  expect_gt(pchisq(sum(z^2), 60), 1e-4)
  # the whole law, of each row by itself
  statistic <- 0
  df <- 0
  for (i in seq_len(60)) {
    at <- unique(qpois(seq(0.02, 0.98, length.out = 12), mean[[i]]))
    expected <- n_seed * diff(c(0, ppois(at, mean[[i]]), 1))
    bin <- findInterval(counts[i, ], at + 0.5) + 1
    keep <- expected > 3
    seen <- tabulate(bin, length(expected))
    statistic <- statistic + sum(((seen - expected)^2 / expected)[keep])
    df <- df + sum(keep) - all(keep)
  }
  expect_gt(pchisq(statistic, df, lower.tail = FALSE), 1e-4)
  # rows, and passes, have nothing to do with each other
  centred <- (counts - mean) / sqrt(mean)
  r <- cor(t(centred))
  expect_lt(max(abs(r[upper.tri(r)])), 5.5 / sqrt(n_seed))
  again <- vapply(seq_len(n_seed), function(seed) {
    drawn <- draw(seed, phi_bar = 0, rate = rate, pass = 2)
    replace(numeric(60), drawn$rows, drawn$count)
  }, numeric(60))
  r <- cor(c(centred), c((again - mean) / sqrt(mean)))
  expect_lt(abs(r), 5 / sqrt(60 * n_seed))
})

test_that("the same rows are drawn whatever the chunks", {
  case <- chunk_case("poisson", n = 1000)
  chol <- chunk_chol(case)
  draw <- function(rows, ...) {
    args <- draw_args(rate = 2000, first = rows[[1]] - 1, ...)
    out <- chunk_draw(chunk_of(case, rows), chunk_theta, chol, 1, args)
    list(out$rows + rows[[1]] - 1, out$count, out$psi)
  }
  whole <- draw(1:1000)
  expect_gt(length(whole[[1]]), 50)
  parts <- lapply(list(1:1, 2:400, 401:999, 1000:1000), draw)
  for (k in 1:3) {
    joined <- unlist(lapply(parts, `[[`, k))
    expect_equal(joined, whole[[k]], tolerance = 1e-14)
  }
  expect_false(identical(draw(1:1000, pass = 2)[[1]], whole[[1]]))
  expect_false(identical(draw(1:1000, seed = 8)[[1]], whole[[1]]))
})

test_that("hashed uniforms are uniform, and found again by their number", {
  u <- hash_uniforms(5, "pilot", 0, 20000)
  expect_gt(ks.test(u, "punif")$p.value, 1e-4)
  expect_identical(hash_uniforms(5, "pilot", 1234, 10), u[1234 + 1:10])
  others <- list(
    hash_uniforms(5, "shuffle", 0, 20000),
    hash_uniforms(6, "pilot", 0, 20000),
    c(u[-1], u[[1]])
  )
  for (other in others) {
    expect_lt(abs(cor(u, other)), 5 / sqrt(20000))
  }
  expect_error(hash_uniforms(5, "pilot", -1, 3), class = "tall_error_corrupt")
})

test_that("a chunk that is not one is told", {
  case <- chunk_case("logit", n = 10)
  expect_error(chunk_of(case, 1:10, 11), class = "tall_error_corrupt")
  expect_error(chunk_of(case, 1:10, 0), class = "tall_error_corrupt")
  case$weights <- rep(1, 5)
  expect_error(chunk_of(case, 1:5, 6), class = "tall_error_corrupt")
})

test_that("what doors hand out is safe from the garbage collector", {
  # of sizes at which a list that nobody holds is taken for another vector
  for (d in c(6, 12)) {
    x <- matrix(seq(-1, 1, length.out = 20 * d), 20)
    chunk <- chunk_model(
      x,
      20,
      rep_len(0:1, 20) + 0,
      NULL,
      NULL,
      resolve_family(stats::binomial())
    )
    draw <- c(radius = 3, phi_bar = 1, rate = 1, scale = 1, seed = 1, pass = 1)
    draw <- as.list(c(draw, first = 0, purpose = 1, wide = 0))
    theta <- numeric(d)
    chol <- diag(d)
    tortured <- function(is_tortured) {
      gctorture2(as.integer(is_tortured))
      on.exit(gctorture2(0L))
      list(
        .Call(ffi_chunk_sums, chunk, theta, 1),
        .Call(ffi_chunk_draw, chunk, theta, chol, draw, 1)
      )
    }
    expect_identical(tortured(TRUE), tortured(FALSE))
  }
})
