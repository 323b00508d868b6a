# Strata of tall_surv() with hazards of their own, in pieces.

strata_data <- function(n = 400, seed = 6) {
  withr::local_seed(seed)
  data <- data.frame(
    a = stats::rnorm(n),
    g = rep_len(c("v", "u", "w", "u"), n),
    h = rep_len(c(TRUE, FALSE, FALSE), n)
  )
  shape <- c(u = 0.6, v = 1, w = 1.8)[data$g]
  event <- (stats::rexp(n) / exp(0.6 * data$a))^(1 / shape)
  last <- stats::runif(n, 0.2, 3)
  data$entry <- ifelse(stats::runif(n) < 0.3, stats::runif(n, 0, 0.1), 0)
  data$time <- pmax(pmin(event, last), data$entry + 0.01)
  data$seen <- event <= last
  data$w <- rep_len(c(1, 2, 1), n)
  data
}

run_strata <- function(formula, data, ..., iter = 500, chains = 2, seed = 1) {
  tall_surv(
    formula,
    data,
    ...,
    iter = iter,
    chains = chains,
    seed = seed,
    refresh = 0
  )
}

# The log density of each row, from the rows that survSplit() makes: those of a
# piece have a constant hazard. rate(g, from): of the piece that begins there.
split_log_lik <- function(data, cuts, eta, rate) {
  data$row <- seq_len(nrow(data))
  data$eta <- eta
  out <- numeric(nrow(data))
  Surv <- survival::Surv
  for (g in names(cuts)) {
    own <- data[data$g == g, ]
    own <- survival::survSplit(
      Surv(entry, time, seen) ~ .,
      own,
      cut = cuts[[g]]
    )
    log_rate <- log(rate(g, findInterval(own$entry, cuts[[g]]) + 1))
    value <- own$seen * (log_rate + own$eta) -
      (own$time - own$entry) * exp(log_rate + own$eta)
    of <- factor(own$row, data$row)
    out <- out + as.vector(tapply(value, of, sum, default = 0))
  }
  out
}

test_that("rows have the hazard of their stratum", {
  skip_if_not_installed("survival")
  data <- strata_data(120)
  fit <- run_strata(
    Surv(entry, time, seen) ~ a + strata(g) + a:h,
    data,
    weights = w,
    iter = 20
  )
  pieces <- fit$family$pieces
  expect_identical(pieces$strata, c("u", "v", "w"))
  columns <- fit$variables[seq_along(pieces$stratum)]
  expect_identical(columns[pieces$stratum > 0], c("strata(g)v", "strata(g)w"))
  expect_equal(n_pieces(pieces), nrow(pieces$basis))
  expect_true(all(pieces$n_cut > 0))
  own <- split(pieces$cuts, rep(pieces$strata, pieces$n_cut))
  at <- split(
    seq_len(n_pieces(pieces)),
    rep(pieces$strata, pieces$n_cut + 1)
  )
  # of the core, at any place
  model <- build_model(fit$blueprint, whole_rows(fit$rows))
  x <- stats::model.matrix(~ a + g + a:h, data)
  d <- ncol(x)
  theta <- c(
    -0.3, 0.5, 0.2, -0.4, 0.1,
    sin(seq_len(ncol(pieces$basis))),
    log(0.7)
  )
  log_lik_at <- function(theta) {
    alpha <- drop(pieces$basis %*% theta[d + seq_len(ncol(pieces$basis))])
    eta <- drop(x %*% theta[seq_len(d)])
    split_log_lik(data, own, eta, function(g, k) exp(alpha[at[[g]][k]]))
  }
  expect_equal(
    model_evaluate(model, theta, "likelihood")$log_density,
    sum(data$w * log_lik_at(theta)),
    tolerance = 1e-12
  )
  # of draws, as loo() has them
  expect_equal(
    unname(rstantools::log_lik(fit)[3, ]),
    unname(data$w * log_lik_at(as.matrix(fit)[3, ]))
  )
  # predictions are of the row's stratum, new rows or not
  new <- data.frame(a = 0.5, g = c("w", "u"), h = TRUE)
  theta <- as.matrix(fit)
  alpha <- tcrossprod(theta[, pieces$names], pieces$basis)
  for (k in 1:2) {
    g <- new$g[[k]]
    eta <- theta[, 1] + 0.5 * (theta[, 2] + theta[, "a:hTRUE"]) +
      if (g == "w") theta[, "strata(g)w"] else 0
    hazard <- rowSums(
      exp(alpha[, at[[g]]]) *
        rep(diff(pmin(c(0, own[[g]], Inf), 0.4)), each = nrow(theta))
    )
    expect_equal(
      unname(predict(fit, new[k, ], type = "survival", times = 0.4)),
      mean(exp(-exp(eta) * hazard))
    )
  }
  both <- predict(fit, new, type = "survival", times = 0.4)
  expect_equal(
    unname(both[[2]]),
    unname(predict(fit, new[2, ], type = "survival", times = 0.4))
  )
  # quantiles and restricted means are those of its curve
  half <- posterior_survfit(
    fit,
    new,
    times = c(0.2, 0.7),
    return_matrix = TRUE,
    ndraws = 20
  )
  expect_identical(dim(half[[1]]), c(20L, 2L))
  each <- lapply(1:2, function(k) {
    posterior_survfit(
      fit,
      new[k, ],
      times = c(0.2, 0.7),
      return_matrix = TRUE,
      ndraws = 20
    )
  })
  expect_equal(half[[2]][, 2], each[[2]][[2]][, 1])
  expect_error(
    predict(fit, data.frame(a = 0, g = "z", h = TRUE), type = "risk"),
    class = "tall_error_input"
  )
})

test_that("draws of times are those of strata", {
  data <- strata_data(300)
  fit <- run_strata(Surv(time, seen) ~ a + strata(g), data, iter = 400)
  new <- data.frame(a = 0, g = rep(c("u", "w"), each = 500))
  yrep <- rstantools::posterior_predict(fit, new, seed = 3, draws = 40)
  s <- predict(fit, new[c(1, 501), ], type = "survival", times = 0.5)
  for (k in 1:2) {
    share <- rowMeans(yrep[, (k - 1) * 500 + 1:500] > 0.5)
    error <- sqrt(0.25 / 500 + stats::var(share)) / sqrt(40)
    expect_lt(abs(mean(share) - s[[k]]), 4 * error)
  }
})

test_that("coefficients are those of a stratified Cox model", {
  skip_if_not_installed("survival")
  data <- strata_data(1200)
  fit <- run_strata(
    Surv(entry, time, seen) ~ a + h + strata(g),
    data,
    prior = NULL,
    pieces = 15,
    iter = 1500
  )
  expect_output(print(fit), "of 3 strata", fixed = TRUE)
  expect_output(print(fit), "Exact: no step size", fixed = TRUE)
  # coxph() knows it by this name alone
  strata <- survival::strata
  cox <- survival::coxph(
    survival::Surv(entry, time, seen) ~ a + h + strata(g),
    data,
    ties = "breslow"
  )
  sd <- sqrt(diag(stats::vcov(cox)))
  away <- (coef(fit)[c("a", "hTRUE")] - stats::coef(cox)) / sd
  expect_lt(max(abs(away)), 0.15)
  ratio <- sqrt(diag(stats::vcov(fit)))[c("a", "hTRUE")] / sd
  expect_lt(max(abs(log(ratio))), 0.1)
  # so are curves
  new <- data.frame(a = 0, h = TRUE, g = c("u", "v", "w"))
  s <- predict(fit, new, type = "survival", times = c(0.2, 0.5, 1))
  curves <- summary(survival::survfit(cox, new), times = c(0.2, 0.5, 1))
  expect_lt(max(abs(t(s) - matrix(curves$surv, 3))), 0.03)
  # pairs are of a stratum, and its events
  own <- survival::concordance(fit)
  eta <- predict(fit, type = "link")
  theirs <- survival::concordance(
    survival::Surv(entry, time, seen) ~ eta + strata(g),
    data,
    reverse = TRUE
  )
  expect_equal(own$concordance, theirs$concordance)
  # a level of each stretch and stratum
  check <- ph_check(fit)
  expect_identical(check$term, c("a", "hTRUE"))
  cox$call$data <- data
  zph <- survival::cox.zph(cox, "log", terms = FALSE)$table[1:2, "p"]
  p <- 2 * stats::pnorm(-abs(check$change / check$sd))
  expect_lt(max(abs(stats::qnorm(p / 2) - stats::qnorm(zph / 2))), 0.35)
})

test_that("rows of a source have the same strata", {
  data <- strata_data(600)
  fit <- run_strata(Surv(time, seen) ~ a + strata(g), data)
  blocks <- stream_of(data, 200)
  streamed <- run_strata(Surv(time, seen) ~ a + strata(g), blocks)
  expect_identical(streamed$family$pieces$n_cut, fit$family$pieces$n_cut)
  expect_equal(streamed$family$pieces$stratum, c(0, 0, 1, 2))
  expect_equal(coef(streamed), coef(fit), tolerance = 0.3)
  file <- withr::local_tempfile(fileext = ".tall")
  stored <- run_strata(
    Surv(time, seen) ~ a + strata(g),
    data,
    storage = "float",
    store = file
  )
  expect_equal(coef(stored), coef(fit), tolerance = 0.05)
  expect_equal(
    predict(stored, data[1:3, ], type = "median"),
    predict(fit, data[1:3, ], type = "median"),
    tolerance = 0.1
  )
})

test_that("strata are read as survival reads them", {
  data <- strata_data(200)
  read <- function(...) limit_readers$strata(...)
  expect_identical(read(c("b", "a", NA)), c("b", "a", NA))
  expect_identical(read(c(2, 10)), c("2", "10"))
  expect_identical(
    read(factor(c("b", "a"), ordered = TRUE)),
    factor(c("b", "a"))
  )
  expect_identical(read(c("b", NA), c(TRUE, FALSE)), c("b, TRUE", NA))
  # an ordered factor has a column for each level, too
  data$o <- factor(data$g, c("w", "u", "v"), ordered = TRUE)
  fit <- run_strata(Surv(time, seen) ~ a + strata(o), data, iter = 20)
  expect_identical(fit$family$pieces$strata, c("w", "u", "v"))
  fit <- run_strata(
    Surv(time, seen) ~ 0 + a + survival::strata(g, h),
    data,
    iter = 20
  )
  expect_length(fit$family$pieces$strata, 6)
  expect_identical(sum(fit$family$pieces$stratum > 0), 5L)
  # cuts of the user's are those of each
  fit <- run_strata(
    Surv(time, seen) ~ a + strata(h),
    data,
    pieces = c(0.5, 1),
    iter = 20
  )
  expect_identical(fit$family$pieces$cuts, c(0.5, 1, 0.5, 1))
  # without events there is one piece, and the prior of its level
  data$seen[data$g == "w"] <- FALSE
  fit <- run_strata(Surv(time, seen) ~ a + strata(g), data)
  expect_equal(fit$family$pieces$n_cut[[3]], 0)
  expect_lt(coef(fit)[["strata(g)w"]], -1)
  expect_true(all(is.finite(
    predict(fit, data[1:9, ], type = "survival", times = 0.5)
  )))
  # a smooth term beside them
  curve <- run_strata(Surv(time, seen) ~ s(a, k = 5) + strata(h), data)
  expect_s3_class(curve, "tall_gam")
  expect_true("strata(h)TRUE" %in% curve$variables)
})

test_that("strata that cannot be had are told", {
  data <- strata_data(100)
  data$many <- seq_len(100)
  ask <- function(formula, ...) {
    run_strata(formula, data, ..., iter = 10, warmup = 5)
  }
  expect_refusals(
    "tall_error_input",
    ask(Surv(time, seen) ~ a + strata(g) + strata(h)),
    ask(Surv(time, seen) ~ a + strata(g, shortlabel = TRUE)),
    ask(Surv(time, seen) ~ a + strata()),
    ask(Surv(time, seen) ~ g + strata(g)),
    ask(Surv(time, seen) ~ h + strata(g, h))
  )
  expect_refusals(
    "tall_error_unsupported",
    ask(Surv(time, seen) ~ a:strata(g)),
    ask(Surv(time, seen) ~ a + strata(g), basehaz = "weibull")
  )
  withr::with_options(
    list(contrasts = c("contr.sum", "contr.poly")),
    expect_error(
      ask(Surv(time, seen) ~ a + strata(g)),
      class = "tall_error_unsupported"
    )
  )
})

test_that("pieces are fewer where strata are many, and two somewhere", {
  expect_identical(pieces_for_strata(c(1e4, 100, 5)), c(25, 10, 1))
  expect_identical(pieces_for_strata(c(3, 9, 5)), c(1, 2, 1))
  expect_identical(pieces_for_strata(c(100, 15)), c(10, 1))
  many <- pieces_for_strata(rep(1e4, 100))
  expect_lte(sum(many), most_stratum_pieces)
  expect_true(all(many == 2))
})

test_that("summaries have ratios of hazards, or of times", {
  data <- strata_data(200)
  fit <- run_strata(Surv(time, seen) ~ a + h + strata(g), data)
  found <- summary(fit, probs = c(0.1, 0.9))$ratios
  expect_identical(found$what, "Hazard ratios")
  # levels are none
  expect_identical(rownames(found$table), c("a", "hTRUE"))
  expect_named(found$table, c("q10", "q90"))
  expect_equal(
    unname(unlist(found$table["a", ])),
    unname(exp(stats::quantile(as.matrix(fit)[, "a"], c(0.1, 0.9))))
  )
  expect_output(print(summary(fit)), "Hazard ratios\n.*q50", perl = TRUE)
  # of what was asked for
  expect_identical(
    rownames(summary(fit, pars = c("a", "strata(g)v"))$ratios$table),
    "a"
  )
  aft <- run_strata(Surv(time, seen) ~ a, data, basehaz = "lognormal")
  expect_output(print(summary(aft)), "Ratios of times", fixed = TRUE)
  none <- run_strata(Surv(time, seen) ~ 1, data, iter = 20)
  expect_null(summary(none)$ratios)
})

test_that("rows that count more make more pairs", {
  skip_if_not_installed("survival")
  data <- strata_data(150)
  for (formula in list(
    Surv(time, seen) ~ a + h,
    Surv(time, seen) ~ a + strata(g)
  )) {
    fit <- run_strata(formula, data, weights = w, iter = 100)
    twice <- run_strata(formula, data[rep(1:150, data$w), ], iter = 20)
    parts <- c("cuts", "basis", "n_cut")
    expect_equal(fit$family$pieces[parts], twice$family$pieces[parts])
    twice$draws <- fit$draws
    expect_equal(
      survival::concordance(fit)$concordance,
      survival::concordance(twice)$concordance
    )
  }
})
