# Is a basis large enough, and can the data tell a term from others?

skip_if_not_installed("mgcv")

check_rows <- function(n = 500, seed = 1) {
  withr::local_seed(seed)
  d <- data.frame(
    x = stats::runif(n),
    z = stats::runif(n),
    f = factor(sample(c("a", "b"), n, TRUE))
  )
  d$near <- d$x + stats::rnorm(n, 0, 0.01)
  d$wave <- sin(20 * d$x) + stats::rnorm(n, 0, 0.5)
  d$y <- sin(5 * d$x) + stats::rnorm(n, 0, 0.5)
  d$late <- stats::rbinom(n, 1, stats::plogis(2 * sin(20 * d$x)))
  d
}

check_fit <- function(formula, data = check_rows(), ..., iter = 300) {
  tall_gam(formula, data, ..., iter = iter, seed = 1, refresh = 0)
}

test_that("shares of terms in others are those of mgcv", {
  d <- check_rows()
  m <- mgcv::gam(y ~ s(x, k = 6) + s(z, k = 5) + s(near, k = 4), data = d)
  x <- stats::model.matrix(m)
  parts <- list(1, 2:6, 7:10, 11:13)
  found <- vapply(parts, FUN.VALUE = c(estimate = 1, worst = 1), function(own) {
    shared_part(crossprod(x), own, setdiff(seq_len(ncol(x)), own))
  })
  wanted <- mgcv::concurvity(m)[c("estimate", "worst"), ]
  expect_equal(unname(found), unname(wanted), tolerance = 1e-6)
  # columns that follow from others do not count twice
  twice <- crossprod(x[, c(2:6, 2:4, 11:13)])
  expect_equal(
    shared_part(twice, 9:11, 1:8),
    shared_part(twice, 9:11, 1:5),
    tolerance = 1e-6
  )
  expect_equal(shared_part(twice, 1:3, 6:8)[["worst"]], 1, tolerance = 1e-6)
})

test_that("a line beside a curve that has it is told before the run", {
  d <- check_rows()
  expect_snapshot(fit <- check_fit(y ~ x + s(x, k = 5), d))
  expect_warning(
    check_fit(y ~ f + x + s(x, k = 5, by = f), d),
    class = "tall_warning_concurvity"
  )
  told <- expect_warning(check_fit(y ~ x + s(x, k = 5, bs = "ps"), d))
  expect_identical(told$term, "x")
  expect_identical(told$other, "s(x)")
  # each has what the other lacks
  expect_no_warning(check_fit(y ~ z + s(x, k = 5), d))
  expect_no_warning(check_fit(y ~ x + s(x, k = 5, bs = "cc"), d))
  # a group's effects are drawn to 0
  d$of_group <- as.integer(d$f)
  expect_no_warning(check_fit(y ~ of_group + s(x, k = 5) + (1 | f), d))
})

test_that("terms that can stand in for each other are told after the run", {
  d <- check_rows()
  expect_snapshot(fit <- check_fit(y ~ s(x, k = 5) + s(near, k = 5), d))
  expect_gt(min(smooth_table(fit)$concurvity), 0.95)
  expect_snapshot(
    fit <- check_fit(y ~ f + s(x, k = 5) + s(x, k = 5, by = f), d)
  )
  expect_snapshot(fit <- check_fit(y ~ s(x, k = 5) + t2(x, z, k = 4), d))
  expect_snapshot(fit <- check_fit(y ~ log(x + 0.1) + s(x, k = 8), d))
  expect_no_warning(fit <- check_fit(y ~ s(x, k = 5) + s(z, k = 5) + f, d))
  expect_lt(max(smooth_table(fit)$concurvity), 0.2)
  d$o <- ordered(d$f)
  expect_no_warning(check_fit(y ~ o + s(x, k = 5) + s(x, k = 5, by = o), d))
  expect_no_warning(
    fit <- check_fit(y ~ s(x, k = 5) + s(x, f, k = 5, bs = "fs"), d)
  )
  expect_identical(is.na(smooth_table(fit)$concurvity), c(FALSE, TRUE))
})

test_that("neighbours' residuals are compared as mgcv does, over all orders", {
  d <- check_rows()
  flat <- mgcv::gam(wave ~ s(x, k = 5), data = d)
  joint <- mgcv::gam(wave ~ s(x, z, k = 5), data = d)
  for (m in list(flat, joint)) {
    x <- as.list(d[m$smooth[[1]]$term])
    wanted <- withr::with_seed(1, mgcv::k.check(m))
    found <- neighbour_test(stats::residuals(m), x, 1)
    # units of surfaces differ
    close <- if (length(x) == 1) 0.01 else 0.05
    expect_equal(found[[1]], wanted[[1, "k-index"]], tolerance = close)
    expect_lt(found[[2]], 1e-6)
  }
  # the mean and variance over orders
  withr::local_seed(2)
  left <- stats::rexp(60)
  for (x in list(d["x"], d[c("x", "z")])) {
    x <- lapply(x, utils::head, 60)
    found <- replicate(2000, neighbour_test(sample(left), x, 1))
    scores <- stats::qnorm(found[2, ])
    expect_lt(abs(mean(found[1, ]) - 1) / stats::sd(found[1, ]), 4 / sqrt(2000))
    expect_lt(abs(mean(scores)), 4 / sqrt(2000))
    expect_lt(abs(stats::sd(scores) - 1), 0.08)
    expect_lt(mean(found[2, ] < 0.05), 0.05 + 4 * sqrt(0.05 * 0.95 / 2000))
  }
})

test_that("neighbours that are tied are in no order of the data", {
  # residuals that go with the row, as in a time series: no matter of the curve
  n <- 1000
  left <- sin(seq_len(n) / 20)
  x <- list(rep(1:10, each = n / 10))
  expect_gt(neighbour_test(left[order(rank(sin(seq_len(n))))], x, 1)[[2]], 0.01)
  pairs <- neighbours(x, rep(1, n))
  gap <- abs(pairs[, 1] - pairs[, 2])[x[[1]][pairs[, 1]] == x[[1]][pairs[, 2]]]
  expect_gt(stats::median(gap), 10)
  # and within one level
  code <- rep(1:2, n / 2)
  pairs <- neighbours(list(stats::runif(n)), code)
  expect_identical(code[pairs[, 1]], code[pairs[, 2]])
  expect_identical(nrow(pairs), as.integer(n - 2))
})

test_that("a basis that is too small is told, and a large one is not", {
  for (family in list(gaussian(), binomial())) {
    d <- check_rows(1000)
    if (family$family == "binomial") d$wave <- d$late
    small <- check_fit(wave ~ s(x, k = 4), d, family)
    table <- smooth_table(small)
    expect_true(table$is_small)
    expect_lt(table$k_index, 0.9)
    expect_lt(table$p_value, 0.001)
    expect_output(print(small), "fit it again with a larger k")
    large <- check_fit(wave ~ s(x, k = 20), d, family)
    table <- smooth_table(large)
    expect_false(table$is_small)
    expect_gt(table$p_value, 0.01)
    expect_false(any(grepl("larger k", utils::capture.output(print(large)))))
  }
  shown <- utils::capture.output(print(small))
  at <- grep("s(x) uses", shown, fixed = TRUE)
  expect_snapshot(cat(shown[at + 0:1], sep = "\n"))
  # of each level its own rows; of effects of levels there is no order
  d <- check_rows(1000)
  d$mixed <- ifelse(d$f == "a", d$wave, d$y)
  fit <- check_fit(mixed ~ f + s(x, by = f, k = 4) + s(f, bs = "re"), d)
  table <- smooth_table(fit)
  expect_identical(table$is_small, c(TRUE, FALSE, FALSE))
  expect_lt(table$p_value[[1]], 0.001)
  expect_gt(table$p_value[[2]], 0.01)
  expect_identical(table$p_value[[3]], NA_real_)
  # without rows the columns decide alone
  gone <- check_fit(wave ~ s(x, k = 4), d, keep_data = FALSE)
  table <- smooth_table(gone)
  expect_identical(table$k_index, NA_real_)
  expect_true(table$is_small)
  expect_output(print(gone), "uses 2.[0-9]+ of its 3 columns: fit it again")
})

test_that("few false alarms, and no draw of the generator", {
  # of binary responses, too, where deviance residuals have 20 %
  p <- vapply(1:400, FUN.VALUE = 1, function(seed) {
    withr::local_seed(seed)
    x <- stats::runif(400)
    mu <- stats::plogis(2 * sin(20 * x) - 1)
    y <- stats::rbinom(400, 1, mu)
    neighbour_test((y - mu) / sqrt(mu * (1 - mu)), list(x), 1)[[2]]
  })
  expect_lt(mean(p < 0.05), 0.05 + 4 * sqrt(0.05 * 0.95 / 400))
  p <- vapply(1:40, FUN.VALUE = 1, function(seed) {
    fit <- check_fit(y ~ s(x, k = 8), check_rows(300, seed), iter = 200)
    smooth_table(fit, ndraws = 5)$p_value
  })
  # 5 % of 40, with 4 standard errors
  expect_lte(sum(p < 0.05), 2 + 4 * sqrt(40 * 0.05 * 0.95))
  fit <- check_fit(y ~ s(x, k = 8), check_rows(300))
  withr::local_seed(1)
  before <- .Random.seed
  smooth_table(fit)
  expect_identical(.Random.seed, before)
})

test_that("residuals are weighted as the fit's", {
  d <- check_rows(400)
  d$w <- rep(c(1, 4), 200)
  fit <- tall_gam(
    wave ~ s(x, k = 4),
    d,
    weights = w,
    iter = 300,
    seed = 1,
    refresh = 0
  )
  found <- sample_residuals(fit, fit$sketch$some)
  wanted <- residuals(fit, "pearson")
  expect_equal(unname(found), unname(wanted), tolerance = 1e-8)
  expect_lt(smooth_table(fit)$p_value, 0.001)
})

test_that("many rows of a surface have neighbours, too", {
  withr::local_seed(1)
  x <- list(stats::runif(5000), stats::runif(5000))
  found <- neighbour_test(stats::rnorm(5000), x, 1)
  expect_lt(abs(stats::qnorm(found[[2]])), 4)
  left <- sin(6 * x[[1]]) + stats::rnorm(5000, 0, 0.5)
  expect_lt(neighbour_test(left, x, 1)[[2]], 1e-6)
  # where nearly each row is of a level of its own there is nothing to compare
  expect_identical(neighbour_test(left, x, 1:5000), c(NA_real_, NA_real_))
})

test_that("a line in a curve is told once where passes are given up", {
  local_settings(look = list(rows = 500))
  d <- check_rows(2000)
  d$late <- 2 * d$z
  told <- 0
  withCallingHandlers(
    tryCatch(
      check_fit(late ~ z + s(z, k = 5), d),
      tall_error_improper = function(e) NULL
    ),
    tall_warning_concurvity = function(w) {
      told <<- told + 1
      rlang::cnd_muffle(w)
    }
  )
  expect_identical(told, 1)
})
