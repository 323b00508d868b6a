# Regressions by passes: the right posterior, the same for the same rows, and
# nothing in silence.

test_that("a posterior by passes is that of rows in memory", {
  data <- remote_data()
  formula <- y ~ x * f + log(z) + word + flag
  memory <- remote_fit(formula, data, iter = 6000)
  expect_null(memory$rows$source)
  local_passes()
  fit <- remote_fit(formula, data, iter = 6000)
  expect_s3_class(fit$rows$source, "tall_source_frame")
  expect_null(fit$rows$frame)
  expect_identical(fit$n_data, memory$n_data)
  expect_identical(fit$n_missing, 2)
  # a look, the mode, a draw, and what the chains looked at
  expect_gt(sum(fit$preparation), 3)
  expect_identical(posterior::variables(fit), posterior::variables(memory))
  expect_identical(fit$kernel$name, "smh")
  exact <- posterior::summarise_draws(memory, "mean", "sd")
  expect_posterior_near(fit, exact$mean, exact$sd, z = 6.4)
  # priors of the same scale, from all rows
  expect_equal(fit$prior, memory$prior, tolerance = 1e-12)
  expect_equal(fit$mode$estimate, memory$mode$estimate, tolerance = 1e-3)
})

test_that("Poisson, probit, cloglog and counts of trials take the same way", {
  data <- remote_data()
  data$n <- rep(1:4, length.out = nrow(data))
  data$hits <- withr::with_seed(2, {
    stats::rbinom(nrow(data), data$n, stats::plogis(-1 + 0.3 * data$w))
  })
  cases <- list(
    list(count ~ x + f + offset(log(w)), stats::poisson()),
    list(y ~ x + f, stats::binomial("probit")),
    list(y ~ x + f, stats::binomial("cloglog")),
    list(cbind(hits, n - hits) ~ x + w, stats::binomial())
  )
  memory <- lapply(cases, function(case) {
    remote_fit(case[[1]], data, case[[2]])
  })
  local_passes()
  for (k in seq_along(cases)) {
    fit <- remote_fit(cases[[k]][[1]], data, cases[[k]][[2]])
    expect_false(is.null(fit$rows$source))
    s <- posterior::summarise_draws(memory[[k]], "mean", "sd")
    expect_posterior_near(fit, s$mean, s$sd, z = 6.4)
  }
})

test_that("responses whose parameter is known take it, others do not", {
  data <- remote_data(20000)
  withr::with_seed(3, {
    mu <- exp(0.3 + 0.4 * data$w)
    data$days <- stats::rnbinom(nrow(data), size = 1.5, mu = mu)
    data$time <- stats::rgamma(nrow(data), 2.5, 2.5 / mu)
    data$far <- mu + 0.5 * stats::rt(nrow(data), 4)
  })
  known <- list(
    list(days ~ w + flag, neg_binomial_2(1.5), NULL),
    list(time ~ w + flag, gamma_regression(2.5), prior_student(3, 0, 2.5))
  )
  memory <- lapply(known, function(case) {
    remote_fit(case[[1]], data, case[[2]], prior = case[[3]])
  })
  local_passes()
  for (k in seq_along(known)) {
    case <- known[[k]]
    fit <- remote_fit(case[[1]], data, case[[2]], prior = case[[3]])
    expect_false(is.null(fit$rows$source))
    s <- posterior::summarise_draws(memory[[k]], "mean", "sd")
    expect_posterior_near(fit, s$mean, s$sd, z = 6.4)
    expect_equal(
      residuals(fit, "deviance"),
      residuals(memory[[k]], "deviance"),
      tolerance = 0.02,
      ignore_attr = TRUE
    )
    r2 <- lapply(list(fit, memory[[k]]), rstantools::bayes_R2, draws = 50)
    expect_equal(mean(r2[[1]]), mean(r2[[2]]), tolerance = 0.1)
  }
  for (family in list(neg_binomial_2(), student(4, 0.5))) {
    formula <- if (family$family == "student") far ~ w else days ~ w
    fit <- remote_fit(formula, data[1:5000, ], family, iter = 200)
    expect_null(fit$rows$source)
  }
})

test_that("a Gaussian posterior by one pass is that of rows in memory", {
  data <- remote_data()
  formula <- size ~ x * f + z
  memory <- remote_fit(formula, data, stats::gaussian(), weights = w)
  local_passes()
  fit <- remote_fit(formula, data, stats::gaussian(), weights = w)
  expect_false(is.null(fit$rows$source))
  # independent draws from the same law with the same numbers
  expect_equal(
    posterior::as_draws_matrix(fit),
    posterior::as_draws_matrix(memory),
    tolerance = 1e-6,
    ignore_attr = TRUE
  )
  # all but a trace of the response explained: rows are looked at again
  data$size <- 5 + 2 * data$w + 1e-7 * data$z
  near <- remote_fit(size ~ w, data, stats::gaussian())
  lm <- stats::lm(size ~ w, data)
  expect_equal(coef(near), stats::coef(lm), tolerance = 1e-6)
  expect_equal(stats::sigma(near), stats::sigma(lm), tolerance = 0.02)
})

test_that("draws are the same for the same rows, whatever their blocks", {
  data <- remote_data(20000)
  local_passes()
  formula <- y ~ x * f + log(z) + word + flag
  of <- function(data, ...) {
    fit <- remote_fit(formula, data, weights = NULL, iter = 600, ...)
    expect_false(is.null(fit$rows$source))
    posterior::as_draws_array(fit)
  }
  frame <- of(data)
  expect_identical(of(stream_of(data, c(7000, 1, 999))), frame)
  expect_identical(of(stream_of(data, 313)), frame)
  expect_identical(of(data, cores = 2), frame)
  local_settings(block_rows = 777)
  expect_identical(of(data), frame)
  skip_if_not_installed("nanoparquet")
  file <- withr::local_tempfile(fileext = ".parquet")
  nanoparquet::write_parquet(data, file)
  expect_identical(of(tall_parquet(file)), frame)
})

test_that("a small source is read at once", {
  data <- remote_data(500)
  fit <- remote_fit(y ~ x + f, stream_of(data, 99))
  expect_identical(
    posterior::as_draws_array(fit),
    posterior::as_draws_array(remote_fit(y ~ x + f, data))
  )
})

test_that("splines have their knots and bounds from all rows", {
  data <- remote_data(20000)
  data$z[[15000]] <- 1700
  local_passes()
  fit <- remote_fit(y ~ splines::ns(z, 3) + x, data)
  expect_false(is.null(fit$rows$source))
  new <- data.frame(z = c(1000, 1100, 1700), x = 0)
  glm <- stats::glm(
    y ~ splines::ns(z, Boundary.knots = range(z, na.rm = TRUE),
                    knots = attr(fit$terms, "predvars")[[3]]$knots) + x,
    stats::binomial(),
    data
  )
  expect_identical(
    attr(fit$terms, "predvars")[[3]]$Boundary.knots,
    range(data$z)
  )
  expect_equal(
    unname(predict(fit, new[1:2, ])),
    unname(stats::predict(glm, new[1:2, ])),
    tolerance = 0.05
  )
})

test_that("terms that depend on other rows are refused", {
  data <- remote_data(20000)
  local_passes()
  rows <- stream_of(data, 5000)
  expect_error(
    remote_fit(y ~ as.numeric(factor(round(w))), rows),
    class = "tall_error_input"
  )
  expect_snapshot(error = TRUE, remote_fit(y ~ cut(x, 3), rows))
  expect_error(
    remote_fit(y ~ I(x - mean(x, na.rm = TRUE)), rows),
    class = "tall_error_input"
  )
  # of rows in memory they are what they are for glm()
  fit <- remote_fit(y ~ I(w - mean(w)), data)
  expect_null(fit$rows$source)
  # contrasts are the factor's
  stats::contrasts(data$f) <- stats::contr.sum(3)
  fit <- remote_fit(y ~ f, data, iter = 200)
  expect_false(is.null(fit$rows$source))
  expect_identical(names(coef(fit)), c("(Intercept)", "f1", "f2"))
  # missing values that are filled are there
  fit <- remote_fit(size ~ ifelse(is.na(x), 0, x), data, stats::gaussian())
  expect_identical(fit$n_data, 20000)
  expect_identical(fit$n_missing, 0)
  weights <- rep(1, 1000)
  expect_error(
    remote_fit(y ~ w, stream_of(data, 1000), weights = weights),
    class = "tall_error_input"
  )
  fit <- remote_fit(y ~ I(w - mean(w)), data[1:1500, ])
  expect_s3_class(fit, "tall_glm")
})

test_that("what a source must not do is told", {
  data <- remote_data(20000)
  local_passes()
  # a stream of data frames
  opened <- 0
  shrinking <- tall_stream(function() {
    opened <<- opened + 1
    at <- 0
    last <- if (opened > 3) 19000 else 20000
    function() {
      rows <- seq_len(min(1000, last - at)) + at
      at <<- at + length(rows)
      if (length(rows) > 0) data[rows, ]
    }
  })
  expect_error(
    remote_fit(y ~ x + w, shrinking),
    class = "tall_error_source"
  )
  data$x[[3000]] <- Inf
  expect_snapshot(error = TRUE, remote_fit(y ~ x + w, stream_of(data, 5000)))
  data$x[[3000]] <- 0
  data$y[[12345]] <- 2L
  expect_snapshot(error = TRUE, remote_fit(y ~ x + w, stream_of(data, 5000)))
  data$y[[12345]] <- 1L
  expect_snapshot(
    error = TRUE,
    remote_fit(y ~ x + w, stream_of(data, 5000), na.action = na.fail)
  )
  expect_error(
    remote_fit(y ~ x + absent, data),
    class = "tall_error_input"
  )
  data$y <- NA
  expect_error(remote_fit(y ~ x, data), class = "tall_error_input")
})

test_that("subset, weights of 0 and na.action choose rows as in memory", {
  data <- remote_data(20000)
  data$w[1:100] <- 0
  memory <- remote_fit(y ~ x + f, data, weights = w, subset = z > 1010)
  local_passes()
  fit <- remote_fit(y ~ x + f, data, weights = w, subset = z > 1010)
  expect_false(is.null(fit$rows$source))
  expect_identical(fit$n_data, memory$n_data)
  s <- posterior::summarise_draws(memory, "mean", "sd")
  expect_posterior_near(fit, s$mean, s$sd, z = 6.4)
})

test_that("rows come to memory where exact steps do not pay", {
  data <- remote_data(20000)
  # separated under a wide prior: heavy tails
  rare <- withr::with_seed(1, sample(which(data$y == 1), 60))
  data$rare <- as.double(seq_len(20000) %in% rare)
  local_passes()
  fit <- suppressWarnings(remote_fit(
    y ~ x + rare,
    data,
    prior = prior_normal(0, 50),
    iter = 400
  ))
  expect_null(fit$rows$source)
  expect_false(is.null(fit$rows$frame))
  # an explicit kernel draws minibatches
  fit <- remote_fit(y ~ x, data, kernel = kernel_sgld(1e-5), iter = 200)
  expect_null(fit$rows$source)
})

test_that("a run goes on with rows of another pass, also after it was saved", {
  data <- remote_data(20000)
  local_passes()
  fit <- remote_fit(y ~ x + f, data, iter = 1000)
  more <- sg_resume(fit, 500, refresh = 0)
  expect_identical(dim(more$draws)[[1]], 1000L)
  expect_identical(more$draws[1:500, , ], fit$draws[1:500, , ])
  file <- withr::local_tempfile()
  saveRDS(fit, file)
  again <- sg_resume(readRDS(file), 500, refresh = 0)
  expect_identical(again$draws, more$draws)
  s <- posterior::summarise_draws(fit, "mean", "sd")
  expect_posterior_near(more, s$mean, s$sd, z = 6.4)
  formula <- y ~ x + f
  environment(formula) <- globalenv()
  without <- remote_fit(formula, data, iter = 1000, keep_data = FALSE)
  expect_error(sg_resume(without, 500), class = "tall_error_stale")
  expect_lt(length(serialize(without[-1], NULL)), 5e5)
})

test_that("a pass for a few steps draws rows enough for many", {
  control <- list(chains = 4)
  psi <- 1e-4
  phi <- 40
  rows <- function(n_step) n_step * drawn_share * phi * psi
  n_step <- enough_steps(psi, phi, 3, control)
  expect_gte(rows(n_step), 4 * least_ahead)
  # more are wanted: they are drawn for
  expect_identical(enough_steps(psi, phi, 1e7, control), 1e7)
  # there is none to draw, or nobody knows
  expect_identical(enough_steps(0, phi, 3, control), 3)
  expect_identical(enough_steps(NULL, phi, 3, control), 3)
})

test_that("the pilot says how many rows a pass will draw", {
  data <- remote_data()
  local_passes()
  seen <- looked_at(quote(tall_glm(y ~ x + w + f, data, binomial())))
  control <- check_control(1000, 500, 1, 4, 1, 1, "draws", 0)
  blueprint <- seen$front$blueprint
  model <- model_of_passes(blueprint, seen$rows, seen$pilot, control)
  drawn <- draw_rows(model, control, new_ledger())
  # rows of the pilot stand for others, by weights of some rows each
  expect_equal(model$remote$found$psi, drawn$total, tolerance = 0.3)
  # passes after the first know
  expect_identical(drawn$found$psi, drawn$total)
  # and one was enough
  expect_identical(model$remote$count$pass, drawn$draw$pass)
})

test_that("a source is read for its rows alone where no column is asked for", {
  data <- remote_data()
  local_passes()
  fit <- remote_fit(y ~ 1, data)
  memory <- stats::glm(y ~ 1, stats::binomial(), data)
  sd <- sqrt(vcov(memory)[[1]])
  expect_posterior_near(fit, coef(memory)[[1]], sd, z = 6.4)
  rows <- as_source(list(data["x"], data["x"]))
  expect_length(predict(fit, rows), 2 * nrow(data))
})

test_that("moments of columns are right wherever the first value is", {
  set.seed(1)
  n <- 5000
  x <- cbind(
    far = c(1e9, rnorm(n - 1)),
    away = 1e6 + rnorm(n),
    trend = seq_len(n) + rnorm(n),
    same = rep(3.1, n)
  )
  found <- .Call(ffi_column_moments, x, n)
  wanted <- apply(x, 2, function(v) sum((v - mean(v))^2))
  expect_equal(found$mean, unname(colMeans(x)), tolerance = 1e-13)
  expect_equal(found$square, unname(wanted), tolerance = 1e-9)
  # the first 100 rows, of which none is far from the others after the first
  some <- .Call(ffi_column_moments, x[, "away"], 100)
  expect_equal(some$square, 99 * var(x[1:100, "away"]), tolerance = 1e-9)
  after <- .Call(ffi_column_moments, x[-1, "far", drop = FALSE], n - 1)
  expect_equal(after$square, (n - 2) * var(x[-1, "far"]), tolerance = 1e-12)
})

test_that("a response that is a plain column is left where it is", {
  request_of <- function(data, ..., formula = y ~ x, family = binomial()) {
    new_request(formula, names(data), resolve_family(family), rlang::exprs(...))
  }
  d <- data.frame(y = rep(0:1, 5), x = rnorm(10), w = 2)
  block <- list(columns = as.list(d), first = 2, n = 6, row = 3)
  request <- request_of(d)
  plain <- pass_response(request, block, NULL)
  expect_identical(plain$y, list(values = d$y, first = 2))
  whole <- block_response(request, block, NULL)
  expect_identical(as.double(d$y[3:8]), as.double(whole$y))

  is_plain <- function(y, ..., formula = y ~ x, family = binomial()) {
    block$columns$y <- y
    request <- request_of(d, ..., formula = formula, family = family)
    !is.null(plain_response(request, block))
  }
  expect_true(is_plain(d$y == 1))
  # outside of the block, nothing counts
  expect_true(is_plain(replace(d$y, c(1, 2, 9, 10), c(NA, 2L, NA, 7L))))
  for (at in c(3, 8)) {
    expect_false(is_plain(replace(d$y, at, NA)))
    expect_false(is_plain(replace(d$y, at, 2L)))
  }
  expect_false(is_plain(factor(d$y)))
  expect_false(is_plain(d$y, weights = w))
  expect_false(is_plain(d$y, subset = x > 0))
  expect_false(is_plain(d$y, offset = w))
  expect_false(is_plain(d$y, formula = y ~ x + offset(w)))
  expect_false(is_plain(d$y, formula = I(1 - y) ~ x))
  expect_false(is_plain(d$y / 2))
  expect_true(is_plain(3L * d$y, family = poisson()))
  expect_false(is_plain(d$y / 2, family = poisson()))
})
