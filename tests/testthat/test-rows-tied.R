# Rows that are alike count as one, whatever source hands them out; and what a
# run reads, once a look has told what it will do.

alike_data <- function(n = 12000, seed = 5) {
  withr::with_seed(seed, {
    data <- data.frame(
      hour = sample(5:23, n, TRUE),
      f = factor(sample(letters[1:4], n, TRUE, c(0.6, 0.3, 0.09, 0.01))),
      month = sample(12L, n, TRUE),
      w = sample(0:2, n, TRUE),
      z = stats::rnorm(n)
    )
    eta <- -2 + 0.1 * data$hour + 0.5 * (data$f == "b")
    data$y <- stats::rbinom(n, 1, stats::plogis(eta))
    data$k <- stats::rbinom(n, 2, stats::plogis(eta))
    data$left <- 2 - data$k
    data$count <- stats::rpois(n, exp(eta / 2))
    data$hour[c(3, n - 1)] <- NA
    data
  })
}

local_ties <- function(env = parent.frame()) {
  local_passes(1000, 512, env)
}

test_that("alike rows are found, in the order in which they are met", {
  withr::local_seed(1)
  x <- matrix(sample(c(-1, 0, 0.5), 3000, TRUE), 1000)
  y <- sample(c(0, 1), 1000, TRUE)
  # of 1000 rows 900 count
  own <- seq_len(900)
  found <- tie_part(list(x = x, y = y), 900)
  key <- do.call(paste, c(as.data.frame(x), list(y)))[own]
  first <- which(!duplicated(key))
  expect_identical(found$x, x[first, ])
  expect_identical(found$y, y[first])
  expect_identical(found$count, as.double(table(key)[key[first]]))
  expect_null(found$weights)
  # parts are joined as if they were one
  half <- function(rows) {
    tie_part(list(x = x[rows, ], y = y[rows]), length(rows))
  }
  joined <- join_ties(list(half(1:450), NULL, half(451:900)))
  expect_identical(joined, found)
  expect_identical(tie_part(list(x = x, y = y), 0)$count, numeric())
})

test_that("sums of tied rows are those of all", {
  local_ties()
  data <- alike_data()
  source <- as_source(data)
  calls <- alist(
    tall_glm(y ~ hour + f + factor(month), source, binomial()),
    tall_glm(y ~ hour, source, binomial("probit"), weights = w),
    tall_glm(cbind(k, left) ~ f + offset(hour / 9), source, binomial()),
    tall_glm(count ~ f * hour, source, poisson(), offset = log(month))
  )
  control <- list(refresh = 0, cores = 1)
  for (call in calls) {
    rows <- rows_of_call(call)
    tied <- tie_rows(rows, control)
    expect_s3_class(tied, "tall_rows_tied")
    expect_lt(length(tied$tied$count), nrow(data) / 2)
    d <- length(rows$design$columns)
    theta <- seq(0.1, -0.1, length.out = d)
    a <- sums_at(tied, theta, control)
    b <- sums_at(rows, theta, control)
    expect_equal(a[c("log_lik", "gradient", "hessian")],
      b[c("log_lik", "gradient", "hessian")], tolerance = 1e-10)
    expect_identical(a[c("facts", "n_missing")], b[c("facts", "n_missing")])
    # a database, which has but the kinds
    of_kinds <- facts_of_ties(tied$tied, rows)
    expect_equal(of_kinds, a$facts, tolerance = 1e-12)
    # a fit keeps none of them
    kept <- kept_of_rows(tied)
    expect_null(kept$tied)
    expect_s3_class(kept, "tall_rows_passes")
  }
})

test_that("pilots tell whether rows are alike", {
  withr::local_seed(2)
  n <- 4000
  of <- function(x) list(x = cbind(1, x), y = rep(0:1, n / 2))
  stands <- rep(10, n)
  look <- list(n_row = 10 * n)
  few <- tie_pilot(of(sample(30, n, TRUE)), stands, look)
  expect_identical(sum(few$count), 10 * n)
  expect_null(tie_pilot(of(stats::rnorm(n)), stands, look))
  # alike ones here and there: those that were not met may all differ
  expect_null(tie_pilot(of(sample(1e4, n, TRUE)), stands, look))
  # of every kind there is none that was not met
  every <- tie_pilot(of(stats::rnorm(n)), stands, c(look, is_every = TRUE))
  expect_length(every$count, n)
})

test_that("the posterior of tied rows is that of all, from every source", {
  local_ties()
  data <- alike_data()
  formula <- y ~ hour + f
  of <- function(data, ...) remote_fit(formula, data, ...)
  fit <- of(data)
  expect_match(fit$plan, "alike ones count as one, [0-9,]+ rows differ")
  expect_equal(nobs(fit), nrow(data) - 2)
  expect_identical(fit$n_missing, 2)
  expect_false(is.null(fit$rows$source))
  glm <- stats::glm(formula, stats::binomial(), data)
  off <- (colMeans(as.matrix(fit)) - coef(glm)) / sqrt(diag(vcov(glm)))
  # the prior and the skewness are next to nothing
  expect_lt(max(abs(off)), 0.3)
  memory <- local({
    local_passes(1e9)
    of(data)
  })
  expect_null(memory$rows$source)
  expect_same_posterior(fit, memory)
  expect_identical(of(stream_of(data, c(999, 1)))$draws, fit$draws)
  expect_identical(of(data, cores = 2)$draws, fit$draws)
  # what comes after goes back to the source
  expect_equal(predict(fit, data[1:5, ]), unname(predict(memory, data[1:5, ])),
    tolerance = 0.05, ignore_attr = TRUE)
  expect_length(fitted(fit), nrow(data) - 2)
})

test_that("fits of tied rows go on", {
  local_ties()
  data <- alike_data()
  fit <- remote_fit(y ~ hour + f, data, iter = 400)
  more <- sg_resume(fit, 300, refresh = 0)
  expect_identical(posterior::niterations(more$draws), 500L)
  expect_identical(more$draws[1:200, , ], fit$draws[1:200, , ])
  expect_lt(max(posterior::summarise_draws(more$draws, "rhat")$rhat), 1.05)
  without <- remote_fit(y ~ hour + f, data, iter = 400, keep_data = FALSE)
  expect_error(sg_resume(without, 100), class = "tall_error_stale")
})

# ---- passes ------------------------------------------------------------------

test_that("no pass is thrown away", {
  data <- alike_data()
  local_ties()
  # names and types of columns
  own <- counted_stream(data)
  source_names(own$source)
  source_head(own$source)
  head <- own$n()
  # rows that are alike: the look, and a pass that ties them
  own <- counted_stream(data)
  fit <- remote_fit(y ~ hour + f, own$source)
  expect_identical(own$n() - head, 2)
  expect_match(fit$plan, "alike")
  # a posterior near normal: the look, sums, draws
  own <- counted_stream(data)
  fit <- remote_fit(y ~ z, own$source)
  expect_false(is.null(fit$rows$source))
  expect_identical(own$n() - head, 3)
  # sums are enough: the look, sums
  own <- counted_stream(data)
  fit <- remote_fit(z ~ hour + f, own$source, family = stats::gaussian())
  expect_identical(own$n() - head, 2)
  # steps that look at many rows: the look, and all rows at once
  local_settings(recipe = list(full_share = 1e-6))
  local_settings(chunk_rows = 10)
  own <- counted_stream(data)
  expect_message(
    fit <- tall_glm(y ~ z, own$source, binomial(), seed = 1, iter = 200,
      refresh = 1),
    "All rows are brought to memory"
  )
  expect_null(fit$rows$source)
  expect_identical(own$n() - head, 2)
})

test_that("a pass that meets more kinds than was thought is one for sums", {
  local_ties()
  data <- alike_data()
  plain <- remote_fit(y ~ hour + z, data)
  # a pilot that tells of few, of rows that all differ
  local_fault("tie_pilot", function(of, stands, look) {
    tie_part(of, nrow(of$x), stands)
  })
  local_fault("most_ties", function() 3000)
  own <- counted_stream(data)
  source_names(own$source)
  source_head(own$source)
  head <- own$n()
  own <- counted_stream(data)
  fit <- remote_fit(y ~ hour + z, own$source)
  # the look, sums, draws
  expect_identical(own$n() - head, 3)
  expect_false(grepl("alike", fit$plan))
  expect_false(is.null(fit$rows$facts))
  expect_equal(fit$rows$facts, plain$rows$facts, tolerance = 1e-12)
  expect_identical(fit$n_missing, 2)
  expect_null(fit$rows$met)
  expect_same_posterior(fit, plain)
  # in memory, and of shards of which one gives up
  expect_identical(remote_fit(y ~ hour + z, data)$draws, fit$draws)
  shards <- list(data[1:1500, ], data[-(1:1500), ])
  expect_same_posterior(remote_fit(y ~ hour + z, shards), plain)
})

test_that("a pass that draws more rows than was thought gives some up", {
  local_ties()
  data <- alike_data()
  formula <- y ~ z + f
  control <- check_control(1000, 500, 1, 4, 1, 1, "draws", 0)
  seen <- looked_at(quote(tall_glm(formula, as_source(data), binomial())))
  blueprint <- seen$front$blueprint
  model <- model_of_passes(blueprint, seen$rows, seen$pilot, control)
  found <- model$remote$found
  draw <- list(radius = 9, phi_bar = 50, rate = 4000 / found$psi, scale = 1,
    seed = 1, pass = 1, first = 0)
  whole <- take_rows_ahead(seen$rows, found, draw, control)
  expect_identical(whole$rate, draw$rate)
  # so many rows at most are thought of, in chunks of as many
  local_settings(chunk_rows = 200, recipe = list(full_share = 0))
  taken <- take_rows_ahead(seen$rows, found, draw, control)
  expect_lt(taken$rate, draw$rate)
  expect_identical(log2(draw$rate / taken$rate) %% 1, 0)
  expect_lte(length(taken$count), 400)
  expect_equal(taken$total, whole$total)
  expected <- taken$rate * taken$total
  expect_lt(abs(sum(taken$count) - expected), 5 * sqrt(expected))
  # the same rows by the same odds
  mean_of <- function(of) sum(of$count * of$x[, 2]) / sum(of$count)
  error <- stats::sd(whole$x[, 2]) / sqrt(sum(taken$count))
  expect_lt(abs(mean_of(taken) - mean_of(whole)), 5 * error)
  # draws go down as Poisson ones of half the mean
  part <- list(x = matrix(0, 5000, 1), y = numeric(5000), count = rep(8, 5000),
    psi = rep(1, 5000), number = seq_len(5000))
  draw <- list(seed = 1, pass = 1, rate = 1)
  half <- halve_drawn(part, draw, 0.5)
  expect_lt(abs(sum(half$count) / 20000 - 1), 0.05)
  expect_identical(half, halve_drawn(part, draw, 0.5))
  other <- halve_drawn(part, draw, 0.25)
  expect_false(identical(half$count, other$count))
  part$count[] <- 0
  expect_identical(halve_drawn(part, draw, 0.5)$count, part$count)
})

# ---- databases ---------------------------------------------------------------

# The query that counts kinds groups by columns as they are.
by_kinds <- "GROUP BY .c1"

test_that("a database counts its kinds of rows once", {
  con <- local_sqlite()
  local_ties()
  data <- as_sqlite(alike_data())
  data$w[[7]] <- NA
  table_of(con, data)
  asked <- new.env()
  table <- dplyr::tbl(
    watched(
      con,
      function(sql) {
        asked$kinds <- asked$kinds + grepl(by_kinds, sql)
        sql
      },
      function(rows) {
        asked$most <- max(asked$most, nrow(rows))
        rows
      }
    ),
    "rows"
  )
  cases <- list(
    list(y ~ hour + f + factor(month), binomial(), NULL),
    list(cbind(k, left) ~ f, binomial(), NULL),
    list(count ~ hour + f, poisson(), quote(w)),
    list(y ~ hour + f, binomial("logit"), NULL)
  )
  for (case in cases) {
    of <- function(data) {
      eval(bquote(tall_glm(.(case[[1]]), data, .(case[[2]]),
        weights = .(case[[3]]), seed = 1, refresh = 0)))
    }
    asked$kinds <- asked$most <- 0
    theirs <- of(table)
    ours <- of(data)
    expect_identical(asked$kinds, 1)
    expect_lt(asked$most, nrow(data) / 4)
    expect_match(theirs$plan, "alike")
    expect_identical(nobs(theirs), nobs(ours))
    expect_identical(theirs$n_missing, ours$n_missing)
    expect_equal(theirs$rows$facts, ours$rows$facts)
    expect_same_posterior(theirs, ours)
    expect_identical(of(table)$draws, theirs$draws)
    more <- sg_resume(theirs, 100, refresh = 0)
    expect_identical(posterior::niterations(more$draws), 1100L)
  }
})

test_that("a database is not asked for kinds of rows without end", {
  con <- local_sqlite()
  local_ties()
  data <- as_sqlite(alike_data())
  data <- data[order(data$hour, data$z), ]
  data$half <- data$z / 2
  table_of(con, data)
  asked <- new.env()
  table <- dplyr::tbl(
    watched(
      con,
      function(sql) {
        asked$all <- asked$all + grepl("GROUP BY .v1.*LIMIT 301$", sql)
        asked$some <- asked$some + grepl("LIMIT 600", sql)
        sql
      },
      function(rows) {
        # but for the look's pilot and the rows that are drawn
        if (ncol(rows) == 3) asked$most <- max(asked$most, nrow(rows))
        rows
      }
    ),
    "rows"
  )
  of <- function(formula) {
    asked$some <- asked$all <- asked$most <- 0
    remote_fit(formula, table)
  }
  plain <- of(y ~ half)
  expect_identical(c(asked$some, asked$all), c(0, 0))
  # a pilot that tells of few, of rows that all differ
  local_fault("tie_pilot", function(of, stands, look) {
    tie_part(of, nrow(of$x), stands)
  })
  local_fault("most_ties", function() 300)
  fit <- of(y ~ half)
  expect_identical(c(asked$some, asked$all), c(1, 0))
  expect_false(grepl("alike", fit$plan))
  expect_same_posterior(fit, plain)
  expect_equal(fit$preparation[["recipe"]], plain$preparation[["recipe"]],
    tolerance = 0.1)
  # the first rows of the table are alike, the others are not
  data$half <- ifelse(seq_len(nrow(data)) <= 1000, 0, data$half)
  table_of(con, data)
  fit <- of(y ~ half)
  expect_identical(c(asked$some, asked$all), c(1, 1))
  expect_identical(asked$most, 301)
  expect_false(grepl("alike", fit$plan))
  # which is a pass that is told
  expect_gt(
    fit$preparation[["recipe"]],
    plain$preparation[["recipe"]] + 0.9
  )
  # as many as there may be
  data$half <- data$hour / 2
  table_of(con, data)
  expect_match(of(y ~ half)$plan, "alike")
  expect_identical(c(asked$some, asked$all), c(1, 1))
})

test_that("kinds are not counted where they may be many", {
  con <- local_sqlite()
  local_ties()
  data <- as_sqlite(alike_data())
  data$far <- data$hour * 1e5
  data$half <- data$hour / 2
  table_of(con, data)
  asked <- 0
  table <- dplyr::tbl(
    watched(con, function(sql) {
      asked <<- asked + grepl(by_kinds, sql)
      sql
    }),
    "rows"
  )
  remote_fit(y ~ hour + f, table)
  expect_identical(asked, 1)
  asked <- 0
  calls <- alist(
    y ~ z, y ~ far, y ~ half, y ~ log(hour), y ~ hour + I(month^2)
  )
  for (formula in calls) {
    fit <- remote_fit(eval(formula), table)
    expect_identical(asked, 0)
  }
  # rows that differ in few ways all the same are grouped once it is seen
  expect_match(remote_fit(y ~ half + f, table)$plan, "alike")
  expect_match(remote_fit(y ~ log(hour), table)$plan, "alike")
})

test_that("kinds that may not be are told by R", {
  con <- local_sqlite()
  local_ties()
  data <- as_sqlite(alike_data())
  bad <- data
  bad$y[[9]] <- 2
  expect_error(
    remote_fit(y ~ hour + f, table_of(con, bad)),
    class = "tall_error_input"
  )
  error <- expect_error(
    remote_fit(y ~ hour + f, table_of(con, data), na.action = "na.fail"),
    class = "tall_error_input"
  )
  expect_identical(error$value, 2)
})

# ---- too many levels ---------------------------------------------------------

local_few_levels <- function(env = parent.frame()) {
  local_settings(look = list(levels = 20), .frame = env)
}

test_that("factors of many levels are said with their number", {
  local_ties()
  local_few_levels()
  data <- alike_data(4000)
  data$id <- sprintf("id%d", seq_len(4000) %% 30)
  told <- function(data, formula = y ~ id) {
    expect_message(
      fit <- tall_glm(formula, data, binomial(), seed = 1, iter = 100),
      "`id` has (30|more than 20) levels"
    )
    expect_null(fit$rows$source)
  }
  told(stream_of(data, 500))
  con <- local_sqlite()
  table <- table_of(con, as_sqlite(data))
  told(table)
  told(table, y ~ id + z)
  # more combinations than are fetched
  local_settings(most_groups = 50)
  told(table, y ~ id + z)
})

test_that("a design of too many levels is refused before rows are brought", {
  con <- local_sqlite()
  local_ties()
  local_few_levels()
  local_settings(memory = 1e5)
  data <- alike_data(4000)
  data$id <- sprintf("id%d", seq_len(4000) %% 30)
  table_of(con, as_sqlite(data))
  sent <- 0
  telling <- watched(con, sent = function(sql) {
    sent <<- sent + startsWith(sql, "SELECT")
    sql
  })
  table <- dplyr::tbl(telling, "rows")
  error <- expect_error(
    remote_fit(y ~ id + z, table),
    class = "tall_error_memory"
  )
  expect_match(conditionMessage(error), "`id` has 30 levels", fixed = TRUE)
  expect_identical(sent, 0)
  # which is how they are brought
  expect_error(remote_fit(y ~ rank(z), table), class = "tall_error")
  expect_gt(sent, 0)
})

test_that("a hundred thousand levels are told with their number", {
  con <- local_sqlite()
  local_settings(memory = 1e9)
  n <- 1.2e5
  data <- withr::with_seed(1, data.frame(
    id = sprintf("id%d", seq_len(n) %% 1e5),
    y = stats::rbinom(n, 1, 0.5),
    z = stats::rnorm(n)
  ))
  table <- table_of(con, data)
  local_fault("collect_source", function(...) stop("brought"))
  for (case in list(
    list(y ~ id, binomial()),
    list(y ~ id + z, binomial()),
    list(z ~ id, gaussian())
  )) {
    error <- expect_error(
      remote_fit(case[[1]], table, case[[2]]),
      class = "tall_error_memory"
    )
    message <- conditionMessage(error)
    expect_match(message, "`id` has 100,000 levels", fixed = TRUE)
    expect_match(message, "120,000 rows", fixed = TRUE)
  }
})

test_that("that kinds are few is known before they are counted", {
  of <- function(low, high, off = 0, levels = 1) {
    data.frame(n = 1, low1 = low, high1 = high, off1 = off, levels1 = levels)
  }
  expect_true(has_few_kinds(of(0, 23, levels = 1000)))
  expect_false(has_few_kinds(of(0, 23, levels = 1e5)))
  expect_false(has_few_kinds(of(0, 23, off = 0.5)))
  expect_false(has_few_kinds(of(0, 5000)))
  expect_true(has_few_kinds(of(NA, NA)))
  # groups of levels
  many <- of(0, 23)[rep(1, 5e4), -5]
  expect_false(has_few_kinds(many))
  expect_true(has_few_kinds(many[1:4e4, ]))
  # no number
  expect_true(has_few_kinds(data.frame(n = 5, levels1 = 3, levels2 = 4)))
})
