# tall_glmer() of rows that passes write to a file, those of a group after each
# other: draws, effects and errors are those of the same rows in memory.

# Numbers that CSV files keep; rows 5, 77 and 300 lack a value.
stored_rows <- function(n = 900) {
  withr::local_seed(4)
  d <- data.frame(
    g = sample(paste0("h", 1:30), n, TRUE),
    h = sample(3L, n, TRUE),
    x = round(stats::rnorm(n), 3),
    f = sample(c("a", "b", "c"), n, TRUE),
    w = sample(1:4, n, TRUE) / 2,
    o = round(stats::rnorm(n) / 5, 2),
    s = sample(3L, n, TRUE)
  )
  u <- stats::setNames(stats::rnorm(30) / 2, paste0("h", 1:30))[d$g]
  d$y <- stats::rbinom(n, 1, stats::plogis(d$x + u))
  d$k <- stats::rbinom(n, 3, stats::plogis(d$x / 2 + u))
  d$z <- round(1 + d$x + u + stats::rnorm(n), 3)
  d$c <- stats::rpois(n, exp(d$h / 4 + u))
  d$x[c(5, 300)] <- NA
  d$g[[77]] <- NA
  d
}

local_small_look <- function(frame = parent.frame()) {
  look <- utils::modifyList(setting("look"), list(rows = 200, of_stratum = 10))
  local_settings(look = look, block_rows = 128, .frame = frame)
}

blocks_of <- function(d, n = 4) {
  at <- rep(seq_len(n), each = ceiling(nrow(d) / n))
  unname(split(d, at[seq_len(nrow(d))]))
}

# change(blocks, pass): what the stream gives in each pass.
stream_of <- function(d, change = function(blocks, pass) blocks) {
  pass <- 0
  tall_stream(function() {
    pass <<- pass + 1
    blocks <- change(blocks_of(d), pass)
    at <- 0
    function() {
      at <<- at + 1
      if (at <= length(blocks)) blocks[[at]]
    }
  })
}

new_file <- function(frame = parent.frame()) {
  withr::local_tempfile(fileext = ".tall", .local_envir = frame)
}

short <- function(..., chains = 1) {
  tall_glmer(..., iter = 60, chains = chains, seed = 1, refresh = 0)
}

plain_draws <- function(fit) {
  unclass(posterior::as_draws_array(fit))
}

expect_stored <- function(fit, file) {
  expect_s3_class(fit$rows, "tall_rows_grouped")
  expect_true(file.exists(file))
}

test_that("draws are those of the same rows in memory, wherever they lie", {
  local_small_look()
  d <- stored_rows(3000)
  con <- local_sqlite()
  DBI::dbWriteTable(con, "d", d)
  csv <- withr::local_tempfile(fileext = ".csv")
  utils::write.csv(d, csv, row.names = FALSE)
  parquet <- withr::local_tempfile(fileext = ".parquet")
  skip_if_not_installed("nanoparquet")
  nanoparquet::write_parquet(d, parquet)
  sources <- list(
    d,
    stream_of(d),
    csv,
    parquet,
    dplyr::tbl(con, "d"),
    blocks_of(d)
  )
  formula <- y ~ x + f + (1 | g)
  known <- short(formula, d, stats::binomial())
  # a fifth of it does not hold the rows
  local_settings(memory = 4.2e5)
  expect_error(
    short(formula, stream_of(d), stats::binomial()),
    class = "tall_error_memory"
  )
  for (source in sources) {
    file <- new_file()
    fit <- short(formula, source, stats::binomial(), store = file)
    expect_stored(fit, file)
    expect_identical(plain_draws(fit), plain_draws(known))
    expect_identical(fit$groups, known$groups)
    expect_identical(fit$n_missing, 3)
    expect_equal(nobs(fit), nobs(known))
    expect_identical(ranef(fit), ranef(known))
  }
})

test_that("weights, offsets, trials, slopes and subsets are those in memory", {
  local_small_look()
  d <- stored_rows()
  both <- function(...) {
    file <- new_file()
    fit <- short(..., data = stream_of(d), store = file)
    expect_stored(fit, file)
    known <- short(..., data = d)
    expect_equal(plain_draws(fit), plain_draws(known), tolerance = 1e-9)
    expect_identical(formula(fit), formula(known))
    list(fit, known)
  }
  # a Gaussian response is folded, and its prior looks at its spread
  both(z ~ x + f + (1 + x | g), weights = w, offset = o)
  both(z ~ x + (x || g), prior_covariance = prior_student(3, 0, 1, TRUE))
  logit <- stats::binomial()
  both(cbind(k, 3 - k) ~ x + (1 | g), family = logit, subset = s > 1)
  both(k / 3 ~ x + (1 | g), family = logit, weights = s * 0 + 3)
  # of several effects rows that say the same are merged
  merged <- both(
    c ~ h + offset(o * 0) + (1 + h | g),
    family = stats::poisson(),
    weights = w
  )
  expect_lt(merged_rows(merged[[1]]$model), 0.75 * 899)
  both(c ~ h + (0 + h | g:f), family = neg_binomial_2())
  both(y ~ x + (1 | g), family = logit, na.action = stats::na.exclude)
})

test_that("methods look at the rows of the source, and effects at the file", {
  local_small_look()
  d <- stored_rows()
  file <- new_file()
  known <- short(y ~ x + (1 | g), d, stats::binomial())
  fit <- short(y ~ x + (1 | g), stream_of(d), stats::binomial(), store = file)
  again <- unserialize(serialize(fit, NULL))
  for (own in list(fit, again)) {
    expect_identical(coef(own), coef(known))
    expect_equal(unname(fitted(own)), unname(fitted(known)))
    expect_equal(unname(residuals(own)), unname(residuals(known)))
    expect_equal(log_lik(own), log_lik(known))
    expect_identical(
      rstantools::prior_summary(own)$covariance,
      rstantools::prior_summary(known)$covariance
    )
  }
  # of some rows effects are those of all
  frame <- model.frame(known)
  held <- fit_of_rows(fit, c(3, 700))
  expect_identical(held$rows$frame$x, frame$x[c(3, 700)])
  expect_identical(ranef(held), ranef(known))
  expect_equal(
    kfold(again, K = 2, refresh = 0)$estimates,
    kfold(known, K = 2, refresh = 0)$estimates
  )
  expect_output(print(fit$rows), "lie by group in a file")
  light <- short(
    y ~ f + (1 | g),
    stream_of(d),
    stats::binomial(),
    store = new_file(),
    keep_data = FALSE
  )
  light <- unserialize(serialize(light, NULL))
  expect_error(ranef(light), class = "tall_error_stale")
})

test_that("rows that are few are in memory, and no file is made", {
  d <- stored_rows()
  file <- new_file()
  fit <- short(y ~ x + (1 | g), stream_of(d), stats::binomial(), store = file)
  expect_s3_class(fit$rows, "tall_rows_frame")
  expect_false(file.exists(file))
})

test_that("what a file was and is no more is told", {
  local_small_look()
  d <- stored_rows()
  file <- new_file()
  fit <- short(z ~ x + (1 | g), stream_of(d), store = file)
  fit <- unserialize(serialize(fit, NULL))
  bytes <- readBin(file, "raw", file.size(file))
  change <- function(at, value = as.raw(1)) {
    changed <- bytes
    changed[[at]] <- xor(changed[[at]], value)
    writeBin(changed, file)
    expect_error(ranef(fit), class = "tall_error")
  }
  expect_match(change(65536 + 8)$message, "is damaged")
  change(length(bytes))
  change(1)
  change(20)
  writeBin(bytes[seq_len(length(bytes) - 9)], file)
  expect_error(ranef(fit), class = "tall_error_data")
  writeBin(bytes[1:9], file)
  expect_error(ranef(fit), "is not a file")
  unlink(file)
  expect_error(ranef(fit), "does not exist")
  writeBin(bytes, file)
  expect_s3_class(ranef(fit), "tall_ranef")
})

test_that("a fit finds no effects in a file of other rows", {
  local_small_look()
  d <- stored_rows()
  file <- new_file()
  fit <- short(y ~ x + (1 | g), stream_of(d), stats::binomial(), store = file)
  fit <- unserialize(serialize(fit, NULL))
  unlink(file)
  other <- transform(d, y = 1L - y)
  short(y ~ x + (1 | g), stream_of(other), stats::binomial(), store = file)
  expect_error(ranef(fit), class = "tall_error_stale")
})

test_that("a file goes where the call that wrote it fails", {
  local_small_look()
  d <- stored_rows()
  file <- new_file()
  fails <- function(...) {
    expect_error(short(z ~ x + (1 | g), stream_of(d), ..., store = file),
      class = "tall_error")
    expect_false(file.exists(file))
  }
  fails(prior = prior_normal(0, c(1, 2, 3)))
  fails(kernel = kernel_smh())
  # that of another stays
  writeLines("mine", file)
  expect_error(short(z ~ x + (1 | g), stream_of(d), store = file))
  expect_identical(readLines(file), "mine")
})

test_that("a source that changes between the passes is an error, not a file", {
  local_small_look()
  d <- stored_rows()
  last <- NULL
  count <- function(blocks, pass) {
    last <<- pass
    blocks
  }
  short(z ~ x + f + (1 | g), stream_of(d, count), store = new_file())
  fails <- function(pass, change, ...) {
    folder <- withr::local_tempdir()
    stream <- stream_of(d, function(blocks, now) {
      if (now == last - pass) change(blocks) else blocks
    })
    file <- file.path(folder, "rows.tall")
    error <- expect_error(short(z ~ x + f + (1 | g), stream, store = file), ...)
    expect_identical(list.files(folder), character())
    error
  }
  new_group <- function(blocks) {
    blocks[[2]]$g[[1]] <- "new"
    blocks
  }
  # when they are counted, and when they are written
  fails(1, new_group, class = "tall_error_source")
  error <- fails(0, new_group, class = "tall_error_source")
  expect_identical(error$value, "new")
  fails(0, function(b) b[-1], class = "tall_error_source")
  fails(0, function(b) c(b, b[1]), class = "tall_error_source")
  # more rows behind a chunk that is full
  local_settings(chunk_rows = 256)
  d <- stats::na.omit(d)[seq_len(3 * 256), ]
  expect_identical(rows_of_width(3), 256)
  short(z ~ x + f + (1 | g), stream_of(d, count), store = new_file())
  fails(0, function(b) c(b, b[1]), class = "tall_error_source")
  fails(0, function(b) {
    b[[1]]$z[[1]] <- 9
    b
  }, class = "tall_error_source")
  fails(0, function(b) {
    b[[3]]$f[[9]] <- "d"
    b
  }, "new level", class = "tall_error_input")
})

test_that("bad input is told before the rows are written", {
  local_small_look()
  d <- stored_rows()
  fails <- function(formula, ..., data = d, class = "tall_error_input") {
    file <- new_file()
    expect_error(
      short(formula, stream_of(data), ..., store = file),
      class = class
    )
    expect_false(file.exists(file))
  }
  fails(z ~ x + (1 | hospital))
  fails(z ~ x + (1 | g) + (1 | h))
  fails(z ~ x + (1 | g), keep_effects = "draws")
  fails(z ~ x + (1 | one), data = transform(d, one = 1))
  fails(z ~ x + (1 | each), data = transform(d, each = seq_along(z)))
  fails(z ~ x + (1 + of_g | g), data = transform(d, of_g = match(g, sort(g))))
  fails(z ~ x + (1 + x + w + o | g), class = "tall_error_unsupported")
  fails(y ~ x + (1 | g), stats::poisson("sqrt"))
  there <- new_file()
  writeLines("mine", there)
  expect_error(
    short(z ~ x + (1 | g), stream_of(d), store = there),
    class = "tall_error_input"
  )
  expect_identical(readLines(there), "mine")
  expect_error(short(z ~ x + (1 | g), d, store = 3), class = "tall_error_input")
})

test_that("rows that memory does not hold are refused with what they take", {
  d <- stored_rows()
  local_settings(memory = 1e5)
  parquet <- withr::local_tempfile(fileext = ".parquet")
  skip_if_not_installed("nanoparquet")
  nanoparquet::write_parquet(d, parquet)
  one <- expect_error(
    short(z ~ x + (1 | g), parquet),
    class = "tall_error_memory"
  )
  told <- cli::ansi_strip(conditionMessage(one))
  expect_match(told, "All 900 rows take some")
  expect_match(told, "`store`")
  two <- expect_error(
    short(z ~ x + (1 | g) + (1 | h), parquet, kernel = kernel_gibbs()),
    class = "tall_error_memory"
  )
  expect_match(conditionMessage(two), "swept")
})

test_that("the spread of numbers in a file is that of the numbers", {
  file <- withr::local_tempfile()
  check <- function(y, most) {
    writeBin(y, file)
    sorted <- sort(y)
    for (k in unique(ceiling(c(0.01, 0.3, 0.5, 0.99, 1) * length(y)))) {
      expect_identical(filed_nth(file, k, identity, most), sorted[[k]])
    }
    expect_equal(filed_mad(file, length(y)), stats::mad(y), tolerance = 1e-14)
  }
  withr::local_seed(2)
  check(stats::rcauchy(5001), 10)
  check(stats::rnorm(400), 3)
  check(c(rep(2, 500), 1, 3, stats::rexp(100)), 5)
  check(round(stats::rnorm(1000)), 5)
  check(c(1, 2), 1)
  check(rep(7, 20), 1)
})

test_that("moments of chunks are those of all rows", {
  withr::local_seed(3)
  y <- stats::rnorm(100, 5)
  w <- stats::rexp(100)
  o <- stats::rnorm(100)
  spread <- new_spread(withr::local_tempdir())
  for (at in split(1:100, c(1, rep(2, 49), rep(3, 50)))) {
    spread$add(list(n = length(at), y = y[at], weights = w[at], offset = o[at]))
  }
  found <- spread$found()
  spread$close()
  expect_equal(found$units, response_units(y, w, o))
  expect_equal(found$spread, list(mad = stats::mad(y), sd = stats::sd(y)))
})
