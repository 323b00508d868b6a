# The rows of a regression, wherever they lie: what can be asked of them.

rows_data <- function(n = 700) {
  withr::with_seed(4, {
    data <- data.frame(
      x = rnorm(n, 2),
      g = factor(sample(c("u", "v", "w"), n, TRUE)),
      w = sample(1:3, n, TRUE) / 2,
      o = rnorm(n) / 5
    )
    data$y <- rbinom(n, 1, plogis(data$x - 2 + data$o))
    data$z <- data$x + rnorm(n)
    data
  })
}

# Of the same call each member: list(frame, matrix, memory, passes, store).
rows_members <- function(formula, family, data = rows_data()) {
  local_settings(look = list(rows = 100, of_stratum = 20))
  made <- make_frame(
    quote(f(formula = formula, data = data, weights = w, offset = o)),
    formula,
    data,
    c("formula", "data", "weights", "offset"),
    stats::na.omit,
    environment()
  )
  frame <- rows_frame(made, request_glm(family))
  read <- whole_rows(frame)
  request <- new_request(
    formula,
    names(data),
    family,
    list(weights = quote(w), offset = quote(o))
  )
  matched <- quote(f(formula = formula, data = data, weights = w, offset = o))
  passes <- read_design(rows_of_source(as_source(data), request), matched, 0)
  file <- withr::local_tempfile(.local_envir = parent.frame())
  x <- read$x
  writer <- new_store_writer(file, "double", arg = "store")
  writer$add(x)
  writer$finish()
  values <- list(x = x, y = read$y, weights = data$w, offset = data$o)
  list(
    frame = frame,
    matrix = rows_matrix(values, family),
    memory = read,
    passes = passes$rows,
    store = rows_store(passes$rows, open_store(file))
  )
}

values_of <- function(rows) {
  x <- rows$x
  list(
    x = unname(if (is_store(x)) x[seq_len(nrow(x)), ] else x),
    y = as.double(rows$y),
    weights = as.double(rows$weights),
    offset = as.double(rows$offset)
  )
}

test_that("every member has the same rows", {
  members <- rows_members(y ~ x * g, resolve_family("binomial"))
  for (name in names(members)) {
    rows <- members[[name]]
    expect_s3_class(rows, "tall_rows")
    all <- whole_rows(rows)
    expect_s3_class(all, "tall_rows_memory")
    expect_equal(values_of(all), values_of(members$memory), info = name)
  }
})

test_that("chunks have all rows, in their order", {
  members <- rows_members(y ~ x + g, resolve_family("binomial"))
  whole <- values_of(members$memory)
  local_settings(chunk_rows = 100)
  for (name in names(members)) {
    parts <- list()
    seen <- each_chunk(members[[name]], function(chunk, n, first) {
      at <- seq_len(n)
      expect_identical(first, 100 * length(parts))
      parts[[length(parts) + 1]] <<- cbind(
        chunk$x[at, , drop = FALSE],
        chunk$y[at],
        chunk$weights[at],
        chunk$offset[at]
      )
    })
    expect_equal(seen$n_row, 700)
    expect_length(parts, 7)
    found <- unname(do.call(rbind, parts))
    expect_equal(found, unname(do.call(cbind, whole)), info = name)
  }
})

test_that("sums are those of all rows, whichever member", {
  theta <- c(-1, 0.4, 0.2, -0.1)
  control <- list(refresh = 0, cores = 1)
  members <- rows_members(y ~ x + g, resolve_family("binomial"))
  x <- members$memory$x
  data <- rows_data()
  mu <- plogis(drop(x %*% theta) + data$o)
  for (name in setdiff(names(members), "store")) {
    rows <- members[[name]]
    rows <- if (is.null(rows$family)) whole_rows(rows) else rows
    sums <- sums_at(rows, theta, control)
    gradient <- drop(crossprod(x, data$w * (data$y - mu)))
    hessian <- crossprod(x, data$w * mu * (1 - mu) * x)
    expect_equal(sums$gradient, unname(gradient), info = name)
    expect_equal(sums$hessian, unname(hessian), info = name)
    expect_equal(sums$facts$mean, unname(colMeans(x)), info = name)
    expect_equal(sums$facts$n_row, 700, info = name)
  }
})

test_that("products and residuals are those of all rows, too", {
  control <- list(refresh = 0, cores = 1)
  members <- rows_members(z ~ x + g, resolve_family("gaussian"))
  x <- members$memory$x
  data <- rows_data()
  beta <- c(0.1, 0.9, 0, 0.2)
  r <- data$z - drop(x %*% beta) - data$o
  for (name in c("memory", "passes")) {
    rows <- members[[name]]
    products <- products_of(rows, control)
    expect_equal(products$weight, sum(data$w), info = name)
    response <- stats::weighted.mean(data$z - data$o, data$w)
    expect_equal(products$mean[[5]], response, info = name)
    found <- residuals_of(rows, beta, control)
    expect_equal(found$rss, sum(data$w * r^2), info = name)
    gradient <- unname(drop(crossprod(x, data$w * r)))
    expect_equal(unname(found$gradient), gradient, info = name)
  }
})

test_that("rows of another data frame are read as these were", {
  members <- rows_members(y ~ x * g, resolve_family("binomial"))
  # one of the levels alone
  other <- rows_data()[c(5, 9, 1), ]
  other <- other[rep(which.min(other$x), 2), ]
  row <- match(rownames(other)[[1]], rownames(rows_data()))
  for (name in c("frame", "passes", "store")) {
    new <- values_of(whole_rows(new_rows(members[[name]], other)))
    expect_equal(
      new$x,
      unname(members$memory$x[c(row, row), ]),
      info = name
    )
    expect_equal(new$y, as.double(other$y), info = name)
    expect_equal(new$weights, other$w, info = name)
    expect_equal(new$offset, other$o, info = name)
  }
  values <- list(x = members$memory$x[3:4, ], y = other$y)
  new <- whole_rows(new_rows(members$matrix, values))
  expect_identical(new$x, values$x)
})

test_that("rows are drawn by their numbers, whichever member has them", {
  members <- rows_members(y ~ x + g, resolve_family("binomial"))
  control <- list(refresh = 0, cores = 1)
  theta <- c(-1, 0.4, 0.2, -0.1)
  memory <- members$memory
  found <- list(
    theta = theta,
    chol = t(chol(sums_at(memory, theta, control)$hessian)),
    passes = 1
  )
  draw <- list(radius = 9, phi_bar = 20, rate = 4000, scale = 1, seed = 1,
    pass = 1, first = 0)
  a <- take_rows_ahead(memory, found, draw, control)
  b <- take_rows_ahead(members$passes, found, draw, control)
  expect_gt(sum(a$count), 20)
  expect_equal(unname(a$x), unname(b$x))
  expect_identical(a$count, b$count)
  expect_equal(a$total, b$total)
})

test_that("rows in memory need no look", {
  members <- rows_members(y ~ x, resolve_family("binomial"))
  expect_true(look(members$memory)$is_whole)
  expect_true(look(members$frame)$is_whole)
  # of so few all are kept
  expect_true(look(members$passes)$is_whole)
})

test_that("rows that a fit did not keep are told", {
  members <- rows_members(y ~ x, resolve_family("binomial"))
  gone <- without_source(members$passes)
  expect_s3_class(gone, "tall_rows_passes")
  expect_error(
    sums_at(gone, c(0, 0), list(refresh = 0, cores = 1)),
    "did not keep its data",
    class = "tall_error_stale"
  )
})

test_that("what only all rows at once can do is left to those at hand", {
  local_settings(look = list(rows = 100, of_stratum = 20))
  data <- rows_data()
  run <- function(data, ...) {
    tall_glm(..., data = data, iter = 60, chains = 1, seed = 1, refresh = 0)
  }
  # ranks and a subset by numbers
  frame <- suppressWarnings(run(data, z ~ rank(x), subset = 1:600))
  expect_null(frame$rows$source)
  expect_identical(nobs(frame), 600)
  shards <- list(data[1:350, ], data[351:700, ])
  expect_error(run(shards, z ~ rank(x)), "depends on other rows")
  beside <- rnorm(700)
  fit <- suppressWarnings(run(data, z ~ x + beside))
  expect_identical(names(coef(fit)), c("(Intercept)", "x", "beside"))
})

test_that("a pilot's rows stand for others, and some of them for themselves", {
  local_short_look(200)
  data <- rows_data()
  found <- looked_at(quote(tall_glm(y ~ x + g, data, binomial())))
  pilot <- found$pilot
  expect_s3_class(pilot, c("tall_rows_pilot", "tall_rows_memory"))
  expect_false(pilot$is_alike)
  expect_length(pilot$stands, nrow(pilot$x))
  expect_output(print(pilot), "stand for others")
  some <- rows_at(pilot, 3:5)
  expect_identical(class(some), c("tall_rows_memory", "tall_rows"))
  expect_setequal(names(some), setdiff(names(pilot), c(
    "stands", "is_alike", "is_every", "within"
  )))
  expect_identical(some$x, pilot$x[3:5, ])
  expect_identical(some$y, pilot$y[3:5])
})
