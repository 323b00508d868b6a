# Rows that come in batches: the fit to which they are appended is that of all
# of them.

# Rows of a few columns, two of which are factors in data frames and text in
# files.
batch_data <- function(n, seed = 1) {
  withr::with_seed(seed, {
    data <- data.frame(
      x = stats::rnorm(n),
      g = factor(sample(c("u", "v", "w"), n, TRUE)),
      k = sample(6, n, TRUE),
      o = stats::rnorm(n) / 5,
      w = sample(3, n, TRUE)
    )
    eta <- -0.5 + 0.8 * data$x + 0.5 * (data$g == "v") + data$o
    data$y <- stats::rbinom(n, 1, stats::plogis(eta))
    data$z <- 20 + 3 * eta + stats::rnorm(n)
    data$count <- stats::rpois(n, exp(0.1 * data$k + 0.3 * (data$g == "w")))
    data
  })
}

# So many rows each.
batches_in <- function(data, sizes) {
  unname(split(data, rep(seq_along(sizes), sizes)))
}

silent <- function(...) tall_glm(..., seed = 1, refresh = 0)
append_to <- function(...) tall_append(..., refresh = 0)
retract_from <- function(...) tall_retract(..., refresh = 0)

# list(mean, sums, weight) of products, as numbers.
totals_of <- function(fit) unlist(fit$rows$products)

test_that("sums of a Gaussian response are those of all rows", {
  local_passes()
  data <- batch_data(9000)
  of <- batches_in(data, c(5000, 2500, 1500))
  fit <- function(rows) silent(z ~ x + g + offset(o), rows, weights = w)
  whole <- fit(data)
  grown <- append_to(append_to(fit(of[[1]]), of[[2]]), of[[3]])
  expect_equal(totals_of(grown), totals_of(whole), tolerance = 1e-11)
  expect_equal(grown$draws, whole$draws, tolerance = 1e-9)
  expect_equal(grown$prior$scale, whole$prior$scale, tolerance = 1e-11)
  expect_identical(stats::nobs(grown), stats::nobs(whole))
  # a look, sums, and no pass over the 7,500
  expect_equal(grown$passes, 2 * 1500 / 9000)

  # and back, whichever of them goes
  back <- retract_from(grown, of[[1]])
  later <- fit(rbind(of[[2]], of[[3]]))
  expect_equal(totals_of(back), totals_of(later), tolerance = 1e-9)
  expect_equal(back$draws, later$draws, tolerance = 1e-7)
  expect_identical(back$batches$rows, c(5000, 2500, 1500, -5000))
  some <- data[seq(1, 9000, by = 7), ]
  left <- retract_from(grown, some)
  others <- fit(data[-seq(1, 9000, by = 7), ])
  expect_equal(totals_of(left), totals_of(others), tolerance = 1e-9)
  expect_identical(left$batches$rows[[4]], -as.double(nrow(some)))
  expect_match(utils::capture.output(print(left))[[3]], "3 batches, 1 taken")
})

test_that("hyperparameters of a Gaussian response need no other rows", {
  local_passes()
  data <- batch_data(6000)
  of <- batches_in(data, c(5000, 1000))
  fit <- function(rows) {
    silent(z ~ x + g, rows, prior = prior_ridge(), iter = 1000)
  }
  grown <- append_to(fit(of[[1]]), of[[2]])
  whole <- fit(data)
  expect_equal(totals_of(grown), totals_of(whole), tolerance = 1e-11)
  expect_lt(grown$passes, 1)
  expect_same_posterior(grown, whole)
})

test_that("rows that are alike are counted on, and off", {
  local_passes()
  data <- batch_data(9000)
  of <- batches_in(data, c(5000, 4000))
  fit <- function(rows) silent(count ~ k + g, rows, family = poisson())
  first <- fit(of[[1]])
  grown <- append_to(first, of[[2]])
  whole <- fit(data)
  # the same kinds, each as often, in whatever order
  kinds_of <- function(fit) {
    tied <- fit$passed$tied$tied
    out <- cbind(tied$x, tied$y, tied$count)
    out[do.call(order, as.data.frame(out)), ]
  }
  expect_identical(kinds_of(grown), kinds_of(whole))
  expect_same_posterior(grown, whole)
  expect_lt(grown$preparation[["recipe"]], 1)
  back <- retract_from(grown, of[[2]])
  expect_identical(kinds_of(back), kinds_of(first))
  expect_same_posterior(back, first)
  expect_error(
    retract_from(back, of[[2]]),
    "must be among those of the fit",
    class = "tall_error_input"
  )
})

# The law of the kept rows: with those of the batch they are what one pass over
# all rows draws.
test_that("rows drawn of batches make the posterior of all rows", {
  local_passes(1000, 512)
  data <- batch_data(6500)
  of <- batches_in(data, c(4000, 1500, 1000))
  fit <- function(rows, iter = 2000) {
    silent(y ~ x + g + offset(o), rows, family = binomial(), iter = iter)
  }
  # which last for a shorter run
  first <- fit(as_source(of[[1]]), iter = 8000)
  expect_true(is_remote_fit(first))
  grown <- append_to(append_to(first, of[[2]], iter = 1000), of[[3]])
  expect_identical(grown$passed$found$theta, first$passed$found$theta)
  expect_true(all(grown$passed$drawn$batch %in% 0:2))
  whole <- fit(as_source(data), iter = 6000)
  expect_same_posterior(grown, whole)
  # sums at the first point, of all rows
  theta <- grown$passed$found$theta
  x <- stats::model.matrix(~ x + g, data)
  p <- stats::plogis(drop(x %*% theta) + data$o)
  kept <- grown$passed$drawn$sums
  expect_equal(kept$gradient, unname(drop(crossprod(x, data$y - p))))
  expect_equal(kept$hessian, unname(crossprod(x, p * (1 - p) * x)))
  # of each batch so many as their bounds say, give or take four Poisson sds
  drawn <- grown$passed$drawn
  totals <- vapply(of, FUN.VALUE = 0, function(rows) {
    rows <- new_rows(grown$rows, rows)
    rows$n_row <- 4000
    sum_of_bounds(rows, list(), grown$passed$found, drawn)
  })
  expect_equal(sum(totals), drawn$total)
  for (k in 1:3) {
    mean <- drawn$draw$rate * totals[[k]]
    n <- sum(drawn$count[drawn$batch == k - 1])
    expect_lt(abs(n - mean), 4 * sqrt(mean))
  }
  # a batch goes with its rows
  back <- retract_from(grown, of[[2]])
  others <- fit(as_source(rbind(of[[1]], of[[3]])), iter = 6000)
  expect_same_posterior(back, others)
  expect_equal(back$batches$rows, c(4000, 1000))
  expect_setequal(back$passed$drawn$batch, 0:1)
  # no row is looked at twice: where they do not last, and nothing opens the
  # others, chains end
  closed <- first
  closed$rows["source"] <- list(NULL)
  expect_warning(
    short <- append_to(closed, of[[3]], iter = 20000),
    "another pass over the data failed",
    class = "tall_warning"
  )
  expect_lt(max(short$chains$draws), 10000)
  # others do not
  expect_error(
    retract_from(grown, of[[1]][1:50, ]),
    "keeps nothing from which",
    class = "tall_error_unsupported"
  )
})

test_that("all rows are expanded anew where the posterior has moved", {
  local_passes(300, 128)
  data <- batch_data(1600)
  of <- batches_in(data, c(1000, 600))
  other <- transform(of[[2]], y = 1 - y)
  fit <- function(rows, ...) {
    silent(y ~ x + g, rows, family = binomial(), ...)
  }
  first <- fit(as_source(of[[1]]))
  moved <- append_to(first, other)
  expect_false(identical(moved$passed$found$theta, first$passed$found$theta))
  expect_gt(moved$passes, 2)
  expect_same_posterior(
    moved,
    fit(as_source(rbind(of[[1]], other)), iter = 6000)
  )

  # rows that nothing opens
  first$rows["source"] <- list(NULL)
  expect_error(append_to(first, other), class = "tall_error_stale")
  whole <- append_to(first, other, data = rbind(of[[1]], other))
  expect_same_posterior(whole, moved)
})

test_that("a fit that keeps no rows is made again", {
  local_passes(300, 128)
  data <- batch_data(1600)
  of <- batches_in(data, c(1000, 600))
  fit <- function(rows, ...) {
    silent(y ~ x + g, rows, family = binomial(), ...)
  }
  bare <- fit(as_source(of[[1]]), keep_data = FALSE)
  expect_null(bare$passed$drawn)
  expect_error(append_to(bare, of[[2]]), class = "tall_error_stale")
  expect_message(
    whole <- tall_append(bare, of[[2]], data = data, refresh = 1),
    "made again, of all rows"
  )
  expect_identical(whole$draws, fit(data)$draws)
  local_settings(kept_bytes = 100)
  expect_null(fit(as_source(of[[1]]))$passed$drawn)
})

test_that("fits in memory are made again of both", {
  data <- batch_data(900)
  of <- batches_in(data, c(600, 300))
  same <- function(make) {
    grown <- append_to(make(of[[1]]), of[[2]])
    whole <- make(data)
    expect_identical(grown$draws, whole$draws)
    expect_equal(grown$batches$rows[[2]], 300)
    expect_identical(grown$call, make(of[[1]])$call)
    grown
  }
  few <- list(iter = 300, seed = 1, refresh = 0)
  call <- function(f, ...) do.call(f, c(list(...), few))
  same(function(d) call(tall_glm, y ~ x + g, d, binomial()))
  same(function(d) {
    call(tall_glm, y ~ x, d, binomial(), subset = quote(k > 2))
  })
  same(function(d) call(tall_polr, ordered(k) ~ x, d))
  # with pieces of the hazard of its own
  if (requireNamespace("survival", quietly = TRUE)) {
    same(function(d) call(tall_surv, survival::Surv(exp(x), y) ~ g, d))
  }
  # text that comes as a factor, and the other way round
  data$o <- ordered(data$k)
  of[[1]] <- transform(of[[1]], o = ordered(k, 1:6))
  of[[2]] <- transform(of[[2]], o = as.character(k))
  same(function(d) call(tall_polr, o ~ x, d))
  data$g <- as.character(data$g)
  of[[1]]$g <- as.character(of[[1]]$g)
  same(function(d) call(tall_glm, y ~ g, d, binomial()))
  same(function(d) call(tall_glmer, z ~ x + (1 | k), d))
  # again and again, where the frame has not the columns themselves
  formula <- z ~ I(x^2)
  thrice <- append_to(append_to(call(tall_glm, formula, of[[1]][1:300, ]),
    of[[1]][301:600, ]), of[[2]])
  expect_identical(thrice$draws, call(tall_glm, formula, data)$draws)
  fit <- call(tall_glm, y ~ x + g, of[[1]], binomial())
  back <- retract_from(append_to(fit, of[[2]]), of[[2]], data = of[[1]])
  expect_identical(back$draws, fit$draws)
  expect_error(
    retract_from(fit, of[[1]][1:5, ]),
    class = "tall_error_unsupported"
  )
})

test_that("what opens the rows afterwards must be these rows", {
  local_passes(300, 128)
  data <- batch_data(1500)
  of <- batches_in(data, c(1000, 300, 200))
  # whole numbers, as files keep them
  of <- lapply(of, transform, x = round(8 * x) / 8)
  path <- function(rows) {
    file <- withr::local_tempfile(fileext = ".csv", .local_envir = env)
    utils::write.csv(rows[c("x", "g", "y")], file, row.names = FALSE)
    file
  }
  env <- environment()
  fit <- silent(y ~ x + g, path(of[[1]]), family = binomial())
  both <- append_to(fit, path(of[[2]]))
  # batches have files of their own, or one has all
  again <- sg_resume(both, iter = 100)
  expect_equal(dim(again$draws)[[1]], 1100)
  one <- append_to(fit, path(of[[2]]), data = path(rbind(of[[1]], of[[2]])))
  again <- sg_resume(one, iter = 100)
  expect_equal(again$draws[1:1000, , ], one$draws[, , ], ignore_attr = TRUE)
  expect_length(fitted(one), 1300)
  expect_error(
    {
      wrong <- append_to(fit, path(of[[2]]), data = path(do.call(rbind, of)))
      sg_resume(wrong, iter = 100)
    },
    class = "tall_error_source"
  )
  # what stays is known, too
  back <- retract_from(one, path(of[[2]]), data = path(of[[1]]))
  expect_equal(stats::nobs(sg_resume(back, iter = 100)), 1000)
  expect_error(
    {
      wrong <- retract_from(one, path(of[[2]]), data = path(of[[3]]))
      sg_resume(wrong, iter = 100)
    },
    class = "tall_error_source"
  )
  # the first batch is known by its digest, as it was read from a file
  expect_error(append_to(both, path(of[[1]])), "batch 1, of 1,000 rows")
  expect_error(append_to(both, path(of[[2]])), "batch 2, of 300 rows")
})

test_that("a table of a database grows", {
  skip_if_not_installed("RSQLite")
  skip_if_not_installed("dbplyr")
  local_passes(300, 128)
  data <- transform(batch_data(5500), g = as.character(g))
  of <- batches_in(data, c(4000, 1500))
  con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
  withr::defer(DBI::dbDisconnect(con))
  DBI::dbWriteTable(con, "visits", of[[1]])
  visits <- dplyr::tbl(con, "visits")
  fit <- silent(y ~ x + g, visits, family = binomial(), iter = 6000)
  expect_s3_class(fit$rows, "tall_rows_database")
  DBI::dbWriteTable(con, "visits", of[[2]], append = TRUE)
  grown <- append_to(fit, of[[2]], data = visits, iter = 1000)
  whole <- silent(y ~ x + g, visits, family = binomial(), iter = 6000)
  expect_same_posterior(grown, whole)
  expect_identical(grown$passed$found$theta, fit$passed$found$theta)
  expect_equal(stats::nobs(sg_resume(grown, iter = 100)), 5500)
})

test_that("batches that cannot be appended are refused", {
  local_passes(300, 128)
  data <- batch_data(1500)
  of <- batches_in(data, c(1000, 500))
  fit <- silent(y ~ x + g, as_source(of[[1]]), family = binomial())
  small <- silent(y ~ x + g, of[[1]][1:200, ], family = binomial())
  level <- transform(of[[2]], g = factor("new"))
  text <- transform(of[[2]], x = as.character(x))
  for (own in list(fit, small)) {
    expect_error(append_to(own, level), "new", class = "tall_error_input")
    expect_error(append_to(own, text), "x", class = "tall_error_input")
    expect_error(
      append_to(own, of[[2]]["y"]),
      "must have the columns",
      class = "tall_error_input"
    )
    expect_error(
      append_to(own, of[[2]][0, ]),
      "at least one row",
      class = "tall_error_input"
    )
    expect_error(append_to(own, NULL), "`rows` must be a data frame")
    expect_error(append_to(own, of[[2]], data = 5), "`data` must be a data")
    expect_error(append_to(own), "rows", class = "tall_error_input")
    expect_error(
      append_to(own, of[[2]], chain = 2),
      "chains",
      class = "tall_error_input"
    )
  }
  expect_error(
    append_to(fit, transform(of[[2]], x = NA_real_)),
    "at least one row that counts",
    class = "tall_error_input"
  )
  expect_error(
    retract_from(fit, data),
    "fewer than the fit has",
    class = "tall_error_input"
  )
  robust <- robust_draws(small)
  expect_error(append_to(robust, of[[2]]), class = "tall_error_unsupported")
  prior <- silent(y ~ x, of[[1]], family = binomial(), prior_PD = TRUE)
  expect_error(append_to(prior, of[[2]]), class = "tall_error_unsupported")
  matrix <- tall_glm.fit(cbind(a = data$x), data$y, binomial(), seed = 1,
    refresh = 0)
  expect_error(append_to(matrix, data), class = "tall_error_unsupported")
  grown <- append_to(fit, of[[2]], iter = 400, chains = 2)
  expect_equal(dim(grown$draws)[1:2], c(200, 2))
  expect_error(
    stats::update(grown, iter = 200),
    "Give `data`",
    class = "tall_error_stale"
  )
  again <- stats::update(grown, data = data, iter = 200)
  expect_equal(stats::nobs(again), 1500)
})

test_that("damaged fits are told", {
  local_passes(300, 128)
  data <- batch_data(900)
  of <- batches_in(data, c(700, 200))
  path <- withr::local_tempfile()
  cases <- list(
    silent(z ~ x, as_source(of[[1]]), iter = 40),
    silent(y ~ x, as_source(of[[1]]), family = binomial(), iter = 40)
  )
  for (fit in cases) {
    saveRDS(fit, path)
    fit <- readRDS(path)
    use <- function(fit) append_to(fit, of[[2]])
    expect_survives(fit, use, share = 25)
    fit$passed$pass <- fit$passed$pass + 1
    expect_error(use(fit), "passed", class = "tall_error_corrupt")
  }
})
