# Robust draws: laws against sandwich and survey, and formulas of one's own
# where these are missing.

robust_data <- function(n_cluster = 120, size = 15, seed = 1) {
  withr::with_seed(seed, {
    n <- n_cluster * size
    data <- data.frame(
      g = rep(paste0("c", seq_len(n_cluster)), each = size),
      x = rep(stats::rnorm(n_cluster), each = size),
      z = stats::rnorm(n),
      w = sample(1:4, n, TRUE)
    )
    u <- rep(stats::rnorm(n_cluster, 0, 0.6), each = size)
    eta <- 0.3 + 0.4 * data$x - 0.3 * data$z + u
    data$count <- stats::rpois(n, exp(eta))
    data$size <- eta + stats::rnorm(n) * exp(0.4 * data$z)
    data$trials <- sample(1:5, n, TRUE)
    data$hits <- stats::rbinom(n, data$trials, stats::plogis(eta))
    data$part <- stats::plogis(eta + stats::rnorm(n))
    data$time <- stats::rexp(n, exp(-eta))
    # clusters lie apart
    data[sample.int(n), ]
  })
}

# Its call is where the data are.
flat_glm <- function(formula, data, family, ...) {
  call <- match.call()
  call[[1]] <- quote(tall_glm)
  absent <- setdiff(c("prior", "prior_intercept"), names(call))
  call[absent] <- list(NULL)
  call[c("seed", "refresh")] <- c(1, 0)
  eval(call, parent.frame())
}

# What sums are of, at the draws' mean.
sums_of <- function(fit, cluster = NULL, counts = TRUE, at = NULL) {
  theta <- at %||% colMeans(fit_unconstrained(fit))
  by <- cluster_source(fit, cluster, NULL)
  robust_sums(fit, unname(theta), by, counts)
}

expect_near <- function(object, expected, tolerance = 1e-8) {
  expect_equal(unname(object), unname(expected), tolerance = tolerance)
}

# Each number, in units of the standard deviations.
expect_covariance <- function(object, expected, tolerance = 0.02) {
  sd <- sqrt(diag(expected))
  off <- (object - expected) / outer(sd, sd)
  expect_lt(max(abs(off)), tolerance)
}

# ---- the law of other packages -----------------------------------------------

test_that("covariances are those of sandwich", {
  skip_if_not_installed("sandwich")
  data <- robust_data()
  cases <- list(
    list(count ~ x + z, stats::poisson()),
    list(cbind(hits, trials - hits) ~ x + z, stats::binomial()),
    list(size ~ x + z, stats::gaussian(), prior_aux = NULL)
  )
  for (case in cases) {
    fit <- do.call(flat_glm, c(case[1], quote(data), case[-1]))
    other <- stats::glm(case[[1]], case[[2]], data)
    of <- function(...) vcov(robust_draws(fit, ...))
    for (type in c("HC0", "HC1")) {
      expect_covariance(
        of(type = type),
        sandwich::vcovHC(other, type = type)
      )
    }
    expect_covariance(
      of(~g, type = "HC0"),
      sandwich::vcovCL(other, ~g, type = "HC0", cadjust = FALSE)
    )
    expect_covariance(
      of(~g),
      sandwich::vcovCL(other, ~g, type = "HC1")
    )
  }
})

test_that("those of sampling weights are those of survey", {
  skip_if_not_installed("survey")
  data <- robust_data()
  of <- function(data, ...) {
    fit <- flat_glm(count ~ x + z, data, stats::poisson(), weights = w)
    vcov(robust_draws(fit, ..., weights = "sampling"))
  }
  other <- function(ids) {
    design <- survey::svydesign(ids, weights = ~w, data = data)
    vcov(survey::svyglm(count ~ x + z, design, family = stats::poisson()))
  }
  expect_covariance(of(data), other(~1))
  expect_covariance(of(data, ~g), other(~g))
  # whatever their sum is
  for (factor in c(1 / 50, 50)) {
    scaled <- transform(data, w = factor * w)
    expect_covariance(of(scaled, ~g), other(~g))
  }
})

# Rows in the order of the data, 8 strata of 15 clusters each.
stratified_data <- function() {
  data <- robust_data()
  data$s <- paste0("s", as.integer(sub("c", "", data$g)) %% 8)
  # what strata have in common is no error
  data$count <- data$count + 2 * (data$s %in% c("s1", "s2", "s3"))
  data
}

test_that("those of a stratified survey are those of survey", {
  skip_if_not_installed("survey")
  data <- stratified_data()
  fit <- flat_glm(count ~ x + z, data, stats::poisson(), weights = w)
  of <- function(...) vcov(robust_draws(fit, ..., weights = "sampling"))
  other <- function(ids, ...) {
    design <- survey::svydesign(ids, weights = ~w, data = data, ...)
    vcov(survey::svyglm(count ~ x + z, design, family = stats::poisson()))
  }
  clustered <- of(~g, strata = ~s)
  expect_covariance(clustered, other(~g, strata = ~s))
  expect_covariance(of(strata = ~s), other(~1, strata = ~s))
  # strata do matter
  without <- of(~g)
  expect_gt(without["(Intercept)", "(Intercept)"] / clustered[1, 1], 1.1)
  expect_covariance(of(data$g, strata = data$s), clustered, 1e-10)
  # in strata of two the factor is 2
  data$pair <- as.integer(factor(data$g)) %/% 2
  data <- data[data$pair > 0 & data$pair < 60, ]
  fit <- flat_glm(count ~ x + z, data, stats::poisson(), weights = w)
  pairs <- of(~g, strata = ~pair)
  expect_covariance(pairs, other(~g, strata = ~pair))
  expect_near(of(~g, type = "HC0", strata = ~pair), pairs / 2)
})

# ---- formulas ----------------------------------------------------------------

test_that("draws have the covariance of the formula, priors in it", {
  data <- robust_data(60, 5)
  scale <- c(0.5, 0.1, 0.02)
  fit <- quick_glm(
    count ~ x + z,
    data,
    stats::poisson(),
    prior = prior_normal(0, scale[-1]),
    prior_intercept = prior_normal(0, scale[[1]])
  )
  robust <- robust_draws(fit, ~g, type = "HC0")
  x <- stats::model.matrix(~ x + z, data)
  beta <- coef(fit)
  mu <- exp(drop(x %*% beta))
  h <- crossprod(x, mu * x)
  # the intercept's prior is that of the predictor at the covariates' means
  v <- colMeans(x)
  p <- diag(c(0, 1 / scale[-1]^2)) + tcrossprod(v) / scale[[1]]^2
  score <- rowsum((data$count - mu) * x, data$g)
  score <- sweep(score, 2, colMeans(score))
  wanted <- function(k) solve(h + p, t(solve(h + p, k)))
  expect_near(vcov(robust), wanted(crossprod(score) + p), 1e-7)
  expect_near(robust$robust$covariance, vcov(robust), 1e-7)
  # a narrow prior keeps its spread, as in no other of these
  bare <- wanted(crossprod(score))
  expect_gt(sqrt(vcov(robust)["z", "z"]), 0.8 * scale[[3]])
  expect_lt(sqrt(bare["z", "z"]), 0.6 * scale[[3]])
  # the means stay, and so do the chains
  expect_near(coef(robust), beta, 1e-10)
  expect_identical(dim(robust$draws), dim(fit$draws))
})

test_that("HC1 counts the coefficients that rows tell", {
  data <- robust_data()
  n <- nrow(data)
  of <- function(fit, ...) {
    found <- lapply(c("HC1", "HC0"), function(type) {
      robust_draws(fit, ..., type = type)$robust$covariance
    })
    found[[1]][2, 2] / found[[2]][2, 2]
  }
  fit <- flat_glm(count ~ x + z, data, stats::poisson())
  expect_near(of(fit), n / (n - 3))
  expect_near(of(fit, ~g), 120 / 119 * (n - 1) / (n - 3))
  # one of them is its prior's
  narrow <- prior_normal(0, c(1e3, 1e-5))
  fit <- flat_glm(count ~ x + z, data, stats::poisson(), prior = narrow)
  expect_near(of(fit), n / (n - 2), 1e-5)
})

test_that("curvatures are those of the log posterior", {
  data <- robust_data(40, 5)
  cases <- list(
    gaussian = list(size ~ x, stats::gaussian()),
    precisions = list(size ~ x, stats::gaussian(), weights = quote(w)),
    student = list(size ~ x, student()),
    known = list(size ~ x, student(df = 5)),
    trials = list(cbind(hits, trials - hits) ~ x, stats::binomial()),
    probit = list(I(hits > 1) ~ x, stats::binomial("probit")),
    counts = list(count ~ x, stats::poisson(), weights = quote(w)),
    negative = list(count ~ x, neg_binomial_2()),
    gamma = list(time ~ x, stats::Gamma("log")),
    beta = list(part ~ x, beta_regression()),
    tails = list(
      size ~ x,
      stats::gaussian(),
      prior = prior_student(0.5, 0.1, df = 4)
    ),
    aux = list(size ~ x, stats::gaussian(), prior_aux = prior_gamma(3, 2)),
    flat = list(size ~ x, stats::gaussian(), prior_aux = NULL)
  )
  for (label in names(cases)) {
    args <- c(cases[[label]][1], list(data = quote(data)), cases[[label]][-1])
    args <- c(args, seed = 1, refresh = 0, iter = 400)
    fit <- suppressWarnings(eval(as.call(c(quote(tall_glm), args))))
    theta <- unname(colMeans(fit_unconstrained(fit)))
    model <- fit_model(fit)
    h <- 1e-4
    slope <- vapply(seq_along(theta), FUN.VALUE = theta, function(k) {
      step <- replace(0 * theta, k, h)
      at <- rbind(theta + step, theta - step)
      diff(grad_log_prob(model, at))[1, ] / (2 * h)
    })
    sums <- sums_of(fit, at = theta)
    found <- sums$hessian + robust_prior(fit, theta)
    size <- sqrt(diag(found))
    off <- (found - slope) / outer(size, size)
    expect_lt(max(abs(off)), 1e-5, label = label)
  }
})

test_that("the root is symmetric, whatever the units", {
  withr::local_seed(1)
  from <- crossprod(matrix(stats::rnorm(60), 20))
  to <- crossprod(matrix(stats::rnorm(60), 20) %*% diag(c(1, 5, 20)))
  turn <- turn_between(from, to)
  expect_near(turn %*% from %*% t(turn), to)
  # the one of all such maps that is symmetric in the metric of `from`
  expect_near(turn %*% from, t(turn %*% from))
  expect_true(all(Re(eigen(turn)$values) > 0))
  expect_near(turn_between(from, from), diag(3))
  for (any in list(matrix(stats::rnorm(9), 3), diag(c(1e-8, 1, 1e8)))) {
    move <- function(v) any %*% v %*% t(any)
    found <- turn_between(move(from), move(to))
    expect_near(found %*% any, any %*% turn, 1e-6)
  }
})

test_that("units of columns are those of draws", {
  data <- robust_data()
  of <- function(data) {
    fit <- flat_glm(size ~ x + z, data, stats::gaussian(), prior_aux = NULL)
    as.matrix(robust_draws(fit, ~g))
  }
  scaled <- of(transform(data, z = 1e4 * z))
  scaled[, "z"] <- 1e4 * scaled[, "z"]
  expect_near(scaled, of(data), 1e-6)
})

test_that("draws of a model that is right stay nearly as they are", {
  withr::local_seed(1)
  data <- data.frame(x = stats::rnorm(20000), g = 1:2000)
  data$y <- stats::rpois(20000, exp(0.5 * data$x))
  fit <- quick_glm(y ~ x, data, stats::poisson())
  expect_lt(max(abs(robust_draws(fit)$robust$ratio - 1)), 0.04)
  expect_lt(max(abs(robust_draws(fit, ~g)$robust$ratio - 1)), 0.08)
})

# ---- weights -----------------------------------------------------------------

test_that("counts are rows that are there as often", {
  data <- robust_data(60, 10)
  rows <- data[rep(seq_len(nrow(data)), data$w), ]
  fit <- flat_glm(count ~ x + z, data, stats::poisson(), weights = w)
  long <- flat_glm(count ~ x + z, rows, stats::poisson())
  at <- coef(fit)
  expect_equal(sums_of(fit, at = at), sums_of(long, at = at))
  expect_equal(sums_of(fit, ~g, at = at), sums_of(long, ~g, at = at))
  # those of a survey are rows once
  sampled <- sums_of(fit, counts = FALSE, at = at)
  expect_identical(sampled$n_row, nrow(data) + 0)
  each <- sums_of(fit, seq_len(nrow(data)), at = at)
  expect_near(sampled$meat, each$meat)
})

test_that("a Gibbs posterior has its share of the scores", {
  data <- robust_data()
  fit <- flat_glm(count ~ x + z, data, stats::poisson())
  tempered <- flat_glm(count ~ x + z, data, stats::poisson(), lambda = 300)
  expect_covariance(
    vcov(robust_draws(tempered, ~g)),
    vcov(robust_draws(fit, ~g)),
    0.05
  )
  expect_near(
    robust_draws(tempered)$robust$ratio,
    robust_draws(fit)$robust$ratio * sqrt(300 / nrow(data)),
    0.05
  )
})

# ---- clusters ----------------------------------------------------------------

test_that("rows that are left out have no cluster", {
  data <- robust_data()
  data$z[c(2, 77)] <- NA
  data$w[c(5, 6)] <- 0
  left <- c(2, 5, 6, 77)
  formula <- count ~ x + log(exp(z))
  fit <- flat_glm(formula, data, stats::poisson(), weights = w)
  kept <- data[-left, ]
  whole <- flat_glm(formula, kept, stats::poisson(), weights = w)
  of <- function(fit, ...) robust_draws(fit, ...)$robust$covariance
  wanted <- of(whole, ~g)
  expect_near(of(fit, ~g), wanted)
  expect_near(of(fit, data$g), wanted)
  expect_near(of(fit, kept$g), wanted)
  expect_near(of(fit, factor(kept$g)), wanted)
  expect_near(of(fit, ~g, data = kept), wanted)
  expect_near(of(fit, ~ interaction(g, x)), wanted)
  part <- flat_glm(count ~ z, data, stats::poisson(), subset = x > 0)
  expect_near(
    of(part, ~g),
    of(flat_glm(count ~ z, data[data$x > 0, ], stats::poisson()), ~g)
  )
})

test_that("sources are read block by block, and clusters lie over them", {
  local_passes()
  data <- robust_data(400, 20)
  data$z[c(3, 4000)] <- NA
  formula <- count ~ x + z
  fit <- flat_glm(formula, data, stats::poisson(), weights = w)
  stream <- stream_of(data, c(700, 1300, 13))
  passed <- flat_glm(formula, stream, stats::poisson(), weights = w)
  expect_true(has_source(passed))
  at <- unname(coef(fit))
  for (cluster in list(NULL, ~g, data$g, data$g[!is.na(data$z)])) {
    for (counts in c(TRUE, FALSE)) {
      of <- function(fit) sums_of(fit, cluster, counts, at)
      expect_equal(of(passed), of(fit))
    }
  }
  expect_covariance(vcov(robust_draws(passed, ~g)), vcov(robust_draws(fit, ~g)))
  expect_error(robust_draws(passed, ~nowhere), class = "tall_error_input")
})

test_that("columns of a small table are read where they are", {
  data <- robust_data(60, 10)
  con <- local_sqlite()
  table <- table_of(con, data)
  fit <- flat_glm(count ~ x + z, table, stats::poisson())
  expect_near(
    robust_draws(fit, ~g)$robust$covariance,
    robust_draws(
      flat_glm(count ~ x + z, data, stats::poisson()),
      ~g
    )$robust$covariance
  )
})

test_that("sparse designs and matrices have the same sums", {
  data <- robust_data(60, 10)
  fit <- flat_glm(count ~ x + z, data, stats::poisson())
  thin <- flat_glm(count ~ x + z, data, stats::poisson(), sparse = TRUE)
  x <- stats::model.matrix(~ x + z, data)
  plain <- tall_glm.fit(
    x,
    data$count,
    stats::poisson(),
    prior = NULL,
    prior_intercept = NULL,
    seed = 1,
    refresh = 0
  )
  expect_error(robust_draws(plain, ~g), class = "tall_error_stale")
  expect_near(
    robust_draws(plain, ~g, data = data)$robust$covariance,
    robust_draws(plain, data$g)$robust$covariance
  )
  at <- unname(coef(fit))
  for (cluster in list(NULL, data$g)) {
    wanted <- sums_of(fit, cluster, at = at)
    expect_equal(sums_of(thin, cluster, at = at), wanted)
    expect_equal(sums_of(plain, cluster, at = at), wanted)
  }
})

test_that("clusters that are none are refused", {
  data <- robust_data(60, 10)
  fit <- flat_glm(count ~ x, data, stats::poisson())
  wrong <- list(
    1:3,
    replace(data$g, 4, NA),
    y ~ g,
    ~ g + x,
    ~g:x,
    ~nowhere,
    ~1,
    as.list(data$g),
    data["g"]
  )
  for (cluster in wrong) {
    expect_error(robust_draws(fit, cluster), class = "tall_error_input")
  }
  expect_snapshot(robust_draws(fit, replace(data$g, 4:5, NA)), error = TRUE)
  expect_snapshot(robust_draws(fit, ~ g + x), error = TRUE)
  # other data under the same name
  data <- data[rev(seq_len(nrow(data))), ]
  expect_error(robust_draws(fit, ~g), class = "tall_error_stale")
  rm(data)
  expect_error(robust_draws(fit, ~g), class = "tall_error_stale")
})

test_that("strata of a survey are read with the rows", {
  local_passes()
  data <- stratified_data()
  fit <- flat_glm(count ~ x + z, data, stats::poisson(), weights = w)
  at <- unname(colMeans(fit_unconstrained(fit)))
  of <- function(fit, cluster, strata = ~s) {
    robust_sums(
      fit,
      at,
      cluster_source(fit, cluster, NULL),
      counts = FALSE,
      strata = cluster_source(fit, strata, NULL, arg = "strata"),
      corrects = TRUE
    )
  }
  whole <- of(fit, ~g)
  expect_identical(whole[c("n_unit", "n_stratum")], list(
    n_unit = 120L,
    n_stratum = 8L
  ))
  rows <- of(fit, NULL)
  expect_identical(rows$n_stratum, 8L)
  # each row a cluster
  data$row <- seq_len(nrow(data))
  expect_near(of(fit, data$row)$meat, rows$meat)
  stream <- stream_of(data, c(700, 300, 13))
  streamed <- flat_glm(count ~ x + z, stream, stats::poisson(), weights = w)
  expect_near(of(streamed, ~g)$meat, whole$meat)
  expect_near(of(streamed, NULL)$meat, rows$meat)
  robust <- robust_draws(fit, ~g, weights = "sampling", strata = ~s)
  expect_identical(robust$robust$strata, 8L)
  expect_match(
    capture.output(print(robust)),
    "HC1, sampling weights, 120 clusters by g in 8 strata;",
    all = FALSE
  )
})

test_that("strata that are none are refused", {
  data <- stratified_data()
  fit <- flat_glm(count ~ x + z, data, stats::poisson())
  of <- function(...) robust_draws(fit, ..., weights = "sampling")
  expect_snapshot(error = TRUE, {
    robust_draws(fit, strata = ~s)
    of(~g, strata = ifelse(data$z > 0, "high", "low"))
    of(~g, strata = ifelse(data$g == "c7", "alone", data$s))
    of(strata = replace(data$s, 3, "alone"))
    of(strata = replace(data$s, 3, NA))
    of(strata = ~no)
  })
  few <- data[data$s == "s1" | data$g %in% c("c2", "c10"), ]
  fit <- flat_glm(count ~ x, few, stats::poisson())
  expect_warning(of(~g, strata = ~s), "17 clusters in 2 strata")
})

test_that("few clusters are told of, and too few refused", {
  data <- robust_data(20, 30)
  fit <- flat_glm(count ~ x, data, stats::poisson())
  expect_warning(robust_draws(fit, ~g), class = "tall_warning_clusters")
  expect_no_warning(robust_draws(fit))
  expect_snapshot(
    robust_draws(fit, rep(1:2, 300)),
    error = TRUE
  )
  few <- flat_glm(count ~ x, data, stats::poisson(), iter = 4, chains = 1)
  expect_error(robust_draws(few), class = "tall_error_unsupported") |>
    suppressWarnings()
})

# ---- what a robust fit is ----------------------------------------------------

test_that("it is said, and what is of a posterior refused", {
  data <- robust_data()
  fit <- flat_glm(count ~ x + z, data, stats::poisson())
  robust <- robust_draws(fit, ~g)
  expect_identical(class(robust), class(fit))
  expect_length(misshapen_parts(robust), 0)
  line <- "^Robust:  HC1, 120 clusters by g; sds 1[.].* to .* times the"
  expect_match(capture.output(print(robust)), line, all = FALSE)
  expect_match(capture.output(print(summary(robust))), line, all = FALSE)
  expect_false(any(grepl("Robust", capture.output(print(fit)))))
  sampled <- robust_draws(fit, weights = "sampling")
  expect_match(
    capture.output(print(sampled)),
    "HC1, sampling weights, 1,800 rows;",
    all = FALSE
  )
  refused <- list(
    function() sg_resume(robust, 10),
    function() loo::loo(robust),
    function() loo::waic(robust),
    function() loo::loo_subsample(robust),
    function() rstantools::loo_pit(robust),
    function() rstantools::log_lik(robust),
    function() bayesplot::log_posterior(robust),
    function() ksd(robust),
    function() fssd(robust),
    function() bias_check(robust),
    function() zero_variance(robust),
    function() robust_draws(robust)
  )
  for (f in refused) {
    cnd <- expect_error(f(), "robust", class = "tall_error_unsupported")
    expect_match(conditionMessage(cnd), "was given")
  }
})

test_that("what follows from draws follows", {
  data <- robust_data()
  fit <- flat_glm(size ~ x + z, data, stats::gaussian(), prior_aux = NULL)
  robust <- robust_draws(fit, ~g)
  ratio <- robust$robust$ratio
  expect_named(ratio, fit$variables)
  expect_near(fit_moments(robust)$sd[1:3], (ratio * fit_moments(fit)$sd)[1:3])
  wide <- function(fit) diff(confint(fit)["x", ])
  expect_near(wide(robust) / wide(fit), ratio["x"], 0.1)
  new <- data.frame(x = 1, z = 0)
  sd <- function(fit) predict(fit, new, se.fit = TRUE)$se.fit
  v <- c(1, 1, 0)
  expect_near(sd(robust), sqrt(drop(v %*% vcov(robust) %*% v)), 1e-3)
  # of sigma its logarithm is moved
  own <- function(fit) log(as.matrix(fit)[, "sigma"])
  expect_near(own(robust), fit_unconstrained(robust)[, "log_sigma"])
  expect_near(stats::sd(own(robust)), ratio["sigma"] * stats::sd(own(fit)))
  # from a file
  path <- withr::local_tempfile()
  saveRDS(robust, path)
  expect_output(print(readRDS(path)), "Robust:")
  expect_null(update(robust, seed = 2)$robust)
})

test_that("times to an event, with laws that have no sampled scale", {
  skip_if_not_installed("survival")
  data <- survival::veteran
  Surv <- survival::Surv
  fit <- tall_surv(
    Surv(time, status) ~ trt + karno,
    data,
    basehaz = "exp",
    seed = 1
  )
  robust <- robust_draws(fit, type = "HC0")
  x <- stats::model.matrix(~ trt + karno, data)
  unit <- known_values(fit$family)[["unit"]]
  mass <- data$time / unit * exp(drop(x %*% coef(fit)))
  p <- robust_prior(fit, coef(fit))
  bread <- solve(crossprod(x, mass * x) + p)
  score <- scale((data$status - mass) * x, scale = FALSE)
  expect_near(vcov(robust), bread %*% (crossprod(score) + p) %*% bread, 1e-6)
  pieces <- tall_surv(Surv(time, status) ~ trt, data, seed = 1, iter = 200)
  expect_error(robust_draws(pieces), class = "tall_error_unsupported") |>
    suppressWarnings()
})

test_that("fits that it is not for are refused", {
  data <- robust_data(60, 10)
  quiet <- function(code) suppressMessages(suppressWarnings(code))
  run <- list(seed = 1, refresh = 0, iter = 100, chains = 1)
  of <- function(f, ...) quiet(do.call(f, c(list(...), run)))
  fits <- list(
    of(tall_glm, size ~ x, data, prior = prior_hs()),
    of(tall_glm, size ~ x, data, prior_PD = TRUE),
    of(tall_glm, list(size ~ x, sigma ~ z), data),
    of(tall_gam, size ~ s(z), data),
    of(tall_glmer, size ~ x + (1 | g), data),
    of(tall_multinom, factor(trials) ~ x, data),
    of(tall_polr, ordered(trials) ~ x, data),
    of(tall_glm, count ~ x, data, hurdle_poisson()),
    of(sg_sample, example_model(), kernel_sgld(1e-3))
  )
  for (fit in fits) {
    expect_error(robust_draws(fit), class = "tall_error_unsupported")
  }
  none <- of(tall_glm, size ~ x, data, keep_data = FALSE)
  expect_error(robust_draws(none), class = "tall_error_stale")
  expect_error(robust_draws(1), class = "tall_error_input")
  fit <- of(tall_glm, size ~ x, data)
  expect_error(robust_draws(fit, type = "HC3"), class = "tall_error_input")
  expect_error(robust_draws(fit, weights = "w"), class = "tall_error_input")
})

test_that("draws stay within bounds, or there are none", {
  data <- robust_data()
  of <- function(lower, upper) {
    flat_glm(
      count ~ x + z,
      data,
      stats::poisson(),
      prior = prior_uniform(lower, upper)
    )
  }
  wide <- robust_draws(of(-9, 9), ~g)
  expect_true(all(abs(as.matrix(wide)) < 9))
  expect_error(
    robust_draws(of(-0.5, 0.45), ~g),
    class = "tall_error_unsupported"
  )
})

test_that("damaged fits are told", {
  data <- robust_data(60, 5)
  fit <- flat_glm(size ~ x, data, stats::gaussian(), iter = 40)
  path <- withr::local_tempfile()
  saveRDS(fit, path)
  fit <- readRDS(path)
  all <- damages(fit)
  use <- function(fit) robust_draws(fit, data$g)
  expect_survives(fit, use, share = 8, all = all)
  robust <- use(fit)
  use <- function(fit) capture.output(print(fit), print(summary(fit)))
  expect_survives(robust, use, share = 8)
})
