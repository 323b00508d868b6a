# Averages over all rows: average_predictions(), average_comparisons(),
# average_slopes().

average_data <- function(n = 200, seed = 8) {
  withr::local_seed(seed)
  data <- data.frame(
    x = stats::rnorm(n),
    z = stats::runif(n, 1, 3),
    g = factor(rep_len(c("a", "b", "c"), n)),
    s = rep_len(c("p", "q"), n),
    l = rep_len(c(TRUE, FALSE, FALSE), n),
    k = rep_len(1:4, n),
    w = rep_len(c(1, 0.5), n)
  )
  eta <- -0.5 + 0.8 * data$x - 0.6 * (data$g == "b") + 0.4 * data$l
  data$y <- as.integer(stats::runif(n) < stats::plogis(eta))
  data$count <- stats::rpois(n, exp(0.3 * data$x + 0.2 * data$z))
  data
}

run_average <- function(formula, data, family = binomial(), ...) {
  tall_glm(
    formula,
    data,
    family,
    ...,
    iter = 300,
    chains = 2,
    seed = 1,
    refresh = 0
  )
}

draws_by_hand <- function(fit, data) {
  rstantools::posterior_epred(fit, newdata = data)
}

expect_draws <- function(average, draws, row = 1) {
  found <- posterior::draws_of(average$draws)[, row]
  expect_equal(unname(found), unname(draws), tolerance = 1e-6)
}

test_that("averages are those of rows times draws", {
  data <- average_data()
  fit <- run_average(y ~ x * g + log(z) + l + s, data)
  all <- draws_by_hand(fit, data)
  found <- average_predictions(fit)
  expect_draws(found, rowMeans(all))
  expect_equal(found$mean, mean(all))
  expect_equal(found$sd, stats::sd(rowMeans(all)))
  expect_equal(
    c(found$lower, found$upper),
    unname(stats::quantile(rowMeans(all), c(0.025, 0.975)))
  )
  # of groups, with weights
  found <- average_predictions(fit, by = ~ g + k, wts = "w", prob = 0.5)
  expect_identical(nrow(found), 12L)
  expect_identical(found$g, rep(c("a", "b", "c"), each = 4))
  own <- data$g == "b" & data$k == 3
  by_hand <- all[, own] %*% data$w[own] / sum(data$w[own])
  expect_draws(found, drop(by_hand), row = 7)
  # if variables were others
  found <- average_predictions(fit, list(x = c(-1, 2), g = c("a", "c")))
  expect_identical(found$x, c(-1, 2, -1, 2))
  expect_identical(found$g, c("a", "a", "c", "c"))
  there <- transform(data, x = 2, g = factor("c", levels(data$g)))
  expect_draws(found, rowMeans(draws_by_hand(fit, there)), row = 4)
  expect_identical(average_predictions(fit, "s")$s, c("p", "q"))
  # comparisons of all variables
  found <- average_comparisons(fit)
  expect_identical(found$variable, c("x", "g", "g", "z", "l", "s"))
  expect_identical(
    found$contrast,
    c("+1", "b - a", "c - a", "+1", "TRUE - FALSE", "q - p")
  )
  moved <- draws_by_hand(fit, transform(data, x = x + 1))
  expect_draws(found, rowMeans(moved - all))
  on <- rowMeans(draws_by_hand(fit, transform(data, l = TRUE)))
  off <- rowMeans(draws_by_hand(fit, transform(data, l = FALSE)))
  expect_draws(found, on - off, row = 5)
  compare <- function(comparison) {
    average_comparisons(
      fit,
      list(l = c(FALSE, TRUE)),
      comparison = comparison
    )
  }
  expect_draws(compare("ratio"), on / off)
  expect_draws(compare("lnratio"), log(on / off))
  expect_draws(compare("lnor"), stats::qlogis(on) - stats::qlogis(off))
  # slopes: of an interaction, of a transformed variable, of a column
  found <- average_slopes(fit, c("x", "z"))
  slope <- function(name, h = 1e-5) {
    high <- low <- data
    high[[name]] <- data[[name]] + h
    low[[name]] <- data[[name]] - h
    rowMeans(draws_by_hand(fit, high) - draws_by_hand(fit, low)) / (2 * h)
  }
  expect_draws(found, slope("x"))
  expect_draws(found, slope("z"), row = 2)
  plain <- run_average(y ~ x + z, data)
  theta <- as.matrix(plain)
  p <- draws_by_hand(plain, data)
  found <- average_slopes(plain)
  expect_identical(found$contrast, c("d/dx", "d/dz"))
  expect_draws(found, theta[, "x"] * rowMeans(p * (1 - p)))
  expect_draws(found, theta[, "z"] * rowMeans(p * (1 - p)), row = 2)
  # of the predictor it is the coefficient
  expect_draws(average_slopes(plain, "z", type = "link"), theta[, "z"])
  # other rows, fewer draws
  found <- average_predictions(fit, newdata = data[1:7, ], ndraws = 50)
  expect_identical(posterior::ndraws(found$draws), 50L)
  expect_equal(found$mean, mean(all[, 1:7]), tolerance = 0.05)
})

test_that("an expansion is as near as it says, or nearer", {
  data <- average_data(1000)
  fit <- run_average(y ~ x * g + z, data)
  asks <- list(
    function(...) average_predictions(fit, by = "g", ...),
    function(...) average_predictions(fit, list(x = c(-2, 3)), ...),
    function(...) average_slopes(fit, by = "k", wts = "w", ...),
    function(...) {
      average_comparisons(fit, list(x = c(0, 1)), comparison = "lnor", ...)
    },
    function(...) average_comparisons(fit, "g", comparison = "ratio", ...)
  )
  for (ask in asks) {
    exact <- ask(method = "exact")
    found <- ask(method = "expansion")
    labels <- setdiff(names(exact), c("draws", "mean", "sd", "lower", "upper"))
    expect_identical(as.list(found)[labels], as.list(exact)[labels])
    away <- posterior::draws_of(found$draws) - posterior::draws_of(exact$draws)
    error <- sqrt(colMeans(away^2)) / exact$sd
    told <- attr(found, "error")
    expect_length(told, nrow(found))
    # a normal error of that size is larger than 4 of them rarely
    expect_lt(max(error / pmax(told, 1e-8)), 4)
    expect_lt(max(error), 0.1)
    expect_gt(max(told), 0)
    expect_output(print(found), "By an expansion, with an error of")
    expect_output(print(exact), "Each draw at each row")
  }
  # what is left out is put back: without it errors are larger
  found <- average_predictions(fit, list(x = 3), method = "expansion")
  exact <- average_predictions(fit, list(x = 3), method = "exact")
  away <- posterior::draws_of(found$draws) - posterior::draws_of(exact$draws)
  expect_lt(sqrt(mean(away^2)) / exact$sd, 0.05)
  # rows that are all looked at leave nothing out
  few <- run_average(y ~ x, data[1:150, ])
  found <- average_slopes(few, method = "expansion")
  expect_equal(attr(found, "error"), 0)
  expect_equal(
    posterior::draws_of(found$draws),
    posterior::draws_of(average_slopes(few, method = "exact")$draws),
    tolerance = 1e-7
  )
  # chosen where numbers are many
  local_settings(average_exact = 1000)
  expect_false(is.null(attr(average_predictions(fit), "error")))
  expect_null(attr(average_predictions(fit, method = "exact"), "error"))
})

test_that("rows whose remainders are looked at are any of the group", {
  data <- average_data(1000)
  fit <- run_average(y ~ x * g + z, data)
  # the first would be unlike the others
  data <- data[order(data$x), ]
  data$size <- rep(c("few", "many"), c(100, 900))
  of <- function(...) average_predictions(fit, newdata = data, ...)
  found <- of(method = "expansion")
  exact <- of(method = "exact")
  away <- posterior::draws_of(found$draws) - posterior::draws_of(exact$draws)
  error <- sqrt(mean(away^2)) / exact$sd
  expect_lt(error, 4 * attr(found, "error"))
  # what is looked at whole is without an error, and a part of others is not
  error <- attr(of(by = "size", method = "expansion"), "error")
  expect_equal(error[[1]], 0)
  expect_gt(error[[2]], 0)
  # of each block they are others
  sample <- average_reservoir()
  number <- replicate(2, sample$choose(rep(1L, 50))[[1]]$u)
  expect_identical(anyDuplicated(as.vector(number)), 0L)
})

test_that("rows of a source are passed over", {
  data <- average_data(600)
  fit <- run_average(y ~ x + g, data)
  blocks <- stream_of(data, 200)
  # as of more rows than are brought to memory
  local_settings(look = list(rows = 100, of_stratum = 50))
  streamed <- tall_glm(
    y ~ x + g,
    blocks,
    binomial(),
    iter = 300,
    chains = 2,
    seed = 1,
    refresh = 0
  )
  expect_true(is_passed_over(streamed, NULL))
  for (method in c("exact", "expansion")) {
    for (ask in list(average_predictions, average_slopes)) {
      ours <- ask(streamed, by = "k", wts = "w", method = method)
      theirs <- ask(
        streamed,
        newdata = data,
        by = "k",
        wts = "w",
        method = method
      )
      expect_equal(
        posterior::draws_of(ours$draws),
        posterior::draws_of(theirs$draws),
        tolerance = 1e-6
      )
    }
  }
  expect_identical(
    average_comparisons(streamed, "g")$contrast,
    c("b - a", "c - a")
  )
  expect_equal(
    average_slopes(streamed, "x")$mean,
    average_slopes(fit, "x")$mean,
    tolerance = 0.1
  )
  expect_error(
    average_predictions(streamed, by = "nothing"),
    class = "tall_error_input"
  )
})

test_that("offsets, factors of numbers and sparse designs are kept", {
  data <- average_data(120)
  fit <- tall_glm(
    count ~ x + factor(k) + offset(log(z)),
    data,
    poisson(),
    offset = w,
    iter = 300,
    chains = 2,
    seed = 1,
    refresh = 0
  )
  all <- rstantools::posterior_epred(fit)
  expect_draws(average_predictions(fit), rowMeans(all))
  found <- average_comparisons(fit, "k")
  expect_identical(found$contrast, c("2 - 1", "3 - 1", "4 - 1"))
  there <- function(value) {
    rowMeans(draws_by_hand(fit, transform(data, k = value)))
  }
  expect_draws(found, there(3) - there(1), row = 2)
  expect_draws(
    average_slopes(fit, "x", method = "expansion"),
    as.matrix(fit)[, "x"] * rowMeans(all)
  )
  sparse <- run_average(y ~ x + g, data, sparse = TRUE)
  expect_draws(
    average_predictions(sparse, method = "expansion"),
    rowMeans(rstantools::posterior_epred(sparse))
  )
})

test_that("every regression has averages, of classes one each", {
  data <- average_data(150)
  run <- list(iter = 100, chains = 2, seed = 1, refresh = 0)
  fit <- do.call(
    tall_glmer,
    c(list(y ~ x + (1 | k), data, binomial()), run)
  )
  expect_draws(
    average_predictions(fit),
    rowMeans(rstantools::posterior_epred(fit))
  )
  found <- average_slopes(fit, "x", re_formula = NA)
  p <- rstantools::posterior_epred(fit, re_formula = NA)
  expect_draws(found, as.matrix(fit)[, "x"] * rowMeans(p * (1 - p)))
  expect_identical(average_predictions(fit, by = "k")$k, 1:4)
  expect_error(
    average_slopes(fit, "x", method = "expansion"),
    class = "tall_error_unsupported"
  )
  fit <- do.call(tall_multinom, c(list(g ~ x, data), run))
  found <- average_predictions(fit)
  all <- rstantools::posterior_epred(fit)
  expect_identical(found$class, c("a", "b", "c"))
  expect_draws(found, rowMeans(all[, , 2]), row = 2)
  data$o <- factor(data$k, ordered = TRUE)
  fit <- do.call(tall_polr, c(list(o ~ x, data), run))
  found <- average_comparisons(fit)
  expect_equal(sum(found$mean), 0)
  expect_identical(found$class, as.character(1:4))
  fit <- tall_gam(
    count ~ s(x, k = 5) + z,
    data,
    iter = 100,
    chains = 2,
    seed = 1,
    refresh = 0
  )
  found <- average_slopes(fit, method = "expansion")
  expect_identical(found$variable, c("x", "z"))
  expect_draws(found, as.matrix(fit)[, "z"], row = 2)
  fit <- do.call(
    tall_nn,
    c(list(count ~ x + z, data, hidden = 2, train_iter = 50), run)
  )
  expect_draws(
    average_predictions(fit),
    rowMeans(rstantools::posterior_epred(fit))
  )
})

test_that("rows with missing values are left out, and counted", {
  data <- average_data(90)
  fit <- run_average(y ~ x + g, data)
  some <- data[1:10, ]
  some$x[c(2, 5)] <- NA
  some$z[7] <- NA # which is of no account
  found <- average_predictions(fit, newdata = some)
  all <- draws_by_hand(fit, some[-c(2, 5), ])
  expect_draws(found, rowMeans(all))
  expect_output(print(found), "over 8 rows (2 left out", fixed = TRUE)
  expect_output(
    print(average_predictions(fit)),
    "over 90 rows, 300 draws",
    fixed = TRUE
  )
  # and dates stay dates
  data$day <- as.Date("2020-01-01") + data$k
  fit <- run_average(y ~ x + day, data)
  day <- as.Date("2020-01-03")
  expect_identical(average_predictions(fit, list(day = day))$day, day)
  found <- average_predictions(fit, by = "day")
  expect_identical(found$day, as.Date("2020-01-01") + 1:4)
})

test_that("of times to an event averages are those of predictions", {
  skip_if_not_installed("survival")
  d <- survival::veteran
  d$trt <- factor(d$trt)
  changed <- function(level) {
    transform(d, trt = factor(level, levels(d$trt)))
  }
  of <- function(fit, newdata, ...) {
    colMeans(as.matrix(predict(fit, newdata, ...)))
  }
  run <- function(formula, ...) {
    tall_surv(formula, d, ..., iter = 150, chains = 2, seed = 1, refresh = 0)
  }
  fit <- run(Surv(time, status) ~ trt + karno + strata(celltype))
  times <- c(30, 120)
  found <- average_comparisons(fit, "trt", times = times)
  high <- of(fit, changed("2"), type = "survival", times = times)
  low <- of(fit, changed("1"), type = "survival", times = times)
  expect_equal(found$mean, unname(high - low), tolerance = 1e-10)
  expect_identical(found$time, times)
  expect_equal(
    average_predictions(fit, type = "rmst", times = 100)$mean,
    of(fit, d, type = "rmst", times = 100),
    tolerance = 1e-10
  )
  expect_equal(
    average_predictions(fit, type = "median", by = "trt")$mean[[2]],
    of(fit, d[d$trt == "2", ], type = "median"),
    tolerance = 1e-10
  )
  # a slope, by the coefficient, is a difference
  slope <- average_slopes(fit, "karno", times = 60)
  moved <- function(by) {
    data <- transform(d, karno = karno + by)
    of(fit, data, type = "survival", times = 60)
  }
  expect_equal(
    slope$mean,
    (moved(0.01) - moved(-0.01)) / 0.02,
    tolerance = 1e-5
  )
  expect_null(average_slopes(fit, "karno", type = "link")$time)

  frail <- run(Surv(time, status) ~ karno + (1 | celltype), "weibull")
  found <- average_predictions(frail, times = 50, re_formula = NA)
  expect_equal(
    found$mean,
    of(frail, d, type = "survival", times = 50, re_formula = NA),
    tolerance = 1e-10
  )
  expect_refusals(
    "tall_error_input",
    average_predictions(fit),
    average_predictions(fit, type = "response", times = 1),
    average_predictions(fit, type = "link", times = 1),
    average_predictions(fit, type = "median", times = 1),
    average_predictions(fit, times = -1),
    average_predictions(fit, times = 1, dpar = "sigma"),
    average_predictions(fit, times = 1, by = "time")
  )
  expect_refusals(
    "tall_error_unsupported",
    average_predictions(fit, type = "median", method = "expansion"),
    average_predictions(frail, times = 1, method = "expansion")
  )
})

test_that("averages of formulas of two parameters are of either", {
  data <- average_data(80)
  fit <- run_average(list(count ~ x, sigma ~ x + g), data, gaussian())
  means <- function(data, ...) rowMeans(posterior_epred(fit, data, ...))
  expect_draws(average_predictions(fit), means(data))
  found <- average_comparisons(fit, "g", dpar = "sigma")
  with_level <- function(level) {
    means(transform(data, g = level), dpar = "sigma")
  }
  for (level in c("b", "c")) {
    expect_draws(
      found[startsWith(found$contrast, level), ],
      with_level(level) - with_level("a")
    )
  }
  # x is in both
  found <- average_slopes(fit, "x", dpar = "sigma")
  moved <- function(by) means(transform(data, x = x + by), dpar = "sigma")
  expect_draws(found, (moved(5e-4) - moved(-5e-4)) / 1e-3)
  expect_refusals(
    "tall_error_input",
    average_slopes(fit, dpar = "shape"),
    average_slopes(fit, times = 3)
  )
})

test_that("averages that cannot be had are told", {
  data <- average_data(60)
  data$below <- -1
  data$none <- 0
  data$some <- as.numeric(data$g == "a")
  fit <- run_average(y ~ x + g, data)
  expect_refusals(
    "tall_error_input",
    average_slopes(fit, "nothing"),
    average_predictions(fit, "x"),
    average_predictions(fit, list(x = "a")),
    average_predictions(fit, list(g = "z")),
    average_predictions(fit, list(1)),
    average_comparisons(fit, list(x = 1:3)),
    average_comparisons(fit, list(g = "a")),
    average_comparisons(fit, comparison = "odds"),
    average_predictions(fit, by = "nothing"),
    average_predictions(fit, by = 3),
    average_predictions(fit, wts = "nothing"),
    average_predictions(fit, newdata = data[0, ]),
    average_predictions(fit, newdata = data["x"]),
    average_predictions(fit, prob = 2),
    average_predictions(fit, list(x = 1), by = "x"),
    average_slopes(fit, "x", by = "mean"),
    average_slopes(fit, character()),
    average_predictions(fit, wts = "below"),
    average_predictions(fit, wts = "none"),
    average_predictions(fit, wts = "some", by = "g"),
    average_predictions(stats::lm(y ~ x, data))
  )
  expect_refusals(
    "tall_error_unsupported",
    average_slopes(tall_glm.fit(
      cbind(x = data$x),
      data$y,
      "bernoulli",
      iter = 20,
      seed = 1,
      refresh = 0
    ))
  )
  many <- data.frame(x = 0, g = "a", id = seq_len(1001))
  expect_error(
    average_predictions(fit, newdata = many, by = "id"),
    class = "tall_error_input"
  )
})
