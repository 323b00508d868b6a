# Additive models of rows that are passed over, wherever they lie.

skip_if_not_installed("mgcv")

passed_rows <- function(n = 12000, seed = 1) {
  withr::with_seed(seed, {
    d <- data.frame(
      x = stats::runif(n),
      z = stats::rnorm(n),
      hour = as.double(sample(0:23, n, TRUE)),
      f = sample(c("a", "b", "c"), n, TRUE),
      g = sample(1:8, n, TRUE)
    )
    eta <- sin(6 * d$x) + 0.3 * (d$f == "b") - 0.5 +
      stats::rnorm(8, 0, 0.4)[d$g]
    d$late <- stats::rbinom(n, 1, stats::plogis(eta))
    d$count <- stats::rpois(n, exp(eta / 2))
    d$size <- eta + stats::rnorm(n)
    d$x[[7]] <- NA
    d
  })
}

knots_of_rows <- list(
  x = seq(0, 1, length.out = 6),
  z = seq(-4.5, 4.5, length.out = 9),
  hour = seq(0, 24, length.out = 8)
)

passed_gam <- function(
  data,
  formula = late ~ f + s(x, k = 6) + (1 | g),
  family = stats::binomial(),
  knots = knots_of_rows["x"],
  iter = 400,
  seed = 1,
  refresh = 0,
  ...
) {
  tall_gam(formula, data, family, knots = knots, iter = iter, seed = seed,
    refresh = refresh, ...)
}

# Curves, and logarithms of scales, of two fits by their Monte Carlo error; not
# further apart than `most` sds.
expect_same_curves <- function(a, b, at, most = Inf) {
  of <- function(fit) {
    eta <- rstantools::posterior_linpred(fit, newdata = at)
    scales <- posterior::as_draws_array(fit)
    scales <- scales[, , grepl("^smooth_sd", posterior::variables(scales))]
    chains <- posterior::nchains(scales)
    eta <- array(eta, c(nrow(eta) / chains, chains, ncol(eta)))
    s <- apply(eta, 3, function(x) {
      c(mean(x), stats::sd(x), posterior::mcse_mean(x))
    })
    more <- apply(unclass(scales), 3, function(x) {
      c(mean(log(x)), stats::sd(log(x)), posterior::mcse_mean(log(x)))
    })
    cbind(s, more)
  }
  a <- of(a)
  b <- of(b)
  away <- abs(a[1, ] - b[1, ])
  expect_lt(max(away / sqrt(a[3, ]^2 + b[3, ]^2)), if (most < Inf) Inf else 4.5)
  expect_lt(max(away / b[2, ]), most)
  expect_lt(max(abs(log(a[2, ] / b[2, ]))), 0.25)
}

# A fit that several tests look at.
streamed_gam <- local({
  fit <- NULL
  function() {
    local_passes(2000, 1024)
    fit <<- fit %||% passed_gam(
      stream_of(passed_rows(), c(700, 13)),
      late ~ f + s(x, k = 6) + s(z, k = 5) + (1 | g),
      knots = NULL,
      iter = 1000
    )
    fit
  }
})

test_that("posteriors by passes are those of rows in memory", {
  d <- passed_rows()
  at <- d[c(1:6, 8:20), ]
  cases <- list(
    list(late ~ f + s(x, k = 6) + s(z, k = 5) + (1 | g), stats::binomial()),
    list(count ~ s(x, by = f, k = 6) + s(hour, bs = "cc", k = 8),
      stats::poisson())
  )
  run <- function(case, data, seed) {
    knots <- knots_of_rows[intersect(names(knots_of_rows), all.vars(case[[1]]))]
    passed_gam(data, case[[1]], case[[2]], knots, 1000, seed)
  }
  memory <- lapply(cases, run, d, 2)
  expect_null(memory[[1]]$rows$source)
  local_passes(2000, 1024)
  for (k in seq_along(cases)) {
    fit <- run(cases[[k]], stream_of(d, c(700, 13)), 1)
    expect_false(is.null(fit$rows$source))
    expect_match(fit$plan, "whatever the hyperparameters")
    expect_lt(mean(fit$chains$rows_thinned), fit$n_data / 4)
    expect_same_curves(fit, memory[[k]], at)
  }
})

test_that("draws are the same from every source, knots given", {
  d <- passed_rows()
  local_passes(2000, 1024)
  fit <- passed_gam(d)
  expect_s3_class(fit$rows$source, "tall_source_frame")
  of <- function(data, ...) passed_gam(data, ...)$draws
  expect_identical(of(stream_of(d, c(999, 1))), fit$draws)
  expect_identical(of(d, cores = 2), fit$draws)
  # sums of shards are added in another order
  expect_equal(of(list(d[1:5000, ], d[5001:12000, ])), fit$draws)
  if (requireNamespace("nanoparquet", quietly = TRUE)) {
    file <- withr::local_tempfile(fileext = ".parquet")
    nanoparquet::write_parquet(d, file)
    expect_identical(of(tall_parquet(file)), fit$draws)
  }
  con <- local_sqlite()
  table <- as_source(table_of(con, d), in_database = FALSE)
  expect_identical(of(table), fit$draws)
})

test_that("knots of a pilot have the curves of those of all rows", {
  fit <- streamed_gam()
  range <- terms_smooths(fit$terms)[["s(z)"]]$range$z
  # the ends are those of all rows
  expect_identical(range, range(passed_rows()$z))
  local_passes(2000, 1024)
  other <- passed_gam(
    passed_rows(),
    late ~ f + s(x, k = 6) + s(z, k = 5) + (1 | g),
    knots = NULL,
    iter = 4000,
    seed = 2
  )
  longer <- sg_resume(fit, iter = 1500, refresh = 0)
  a <- conditional_smooths(longer, "s(x)", resolution = 20)[[1]]
  b <- conditional_smooths(other, "s(x)", resolution = 20)[[1]]
  # but for constants: each is centred over the rows that its basis is made of
  gap <- a$estimate__ - b$estimate__
  expect_lt(max(abs(gap - mean(gap)) / b$se__), 0.15)
  expect_identical(posterior::niterations(longer$draws), 2000L)
})

test_that("all that follows a fit is there", {
  fit <- streamed_gam()
  d <- passed_rows()
  new <- d[1:5, ]
  p <- predict(fit, new, type = "response")
  expect_identical(is.na(unname(p)), is.na(new$x))
  terms <- predict(fit, new, type = "terms")
  expect_identical(colnames(terms), c("f", "s(x)", "s(z)", "s(g)"))
  curve <- posterior_smooths(fit, "s(x)", data.frame(x = c(0.2, 0.7)))
  expect_gt(mean(curve[, 1]), mean(curve[, 2]) + 1)
  table <- smooth_table(fit)
  expect_true(all(table$edf > 0 & table$edf < table$size))
  shown <- utils::capture.output(print(summary(fit)))
  expect_true(any(grepl("Smooth terms", shown)))
  # what others are held at is known from the pilot
  effects <- conditional_effects(fit, c("x", "g"))
  expect_equal(range(effects$x$x), range(d$x, na.rm = TRUE))
  expect_identical(levels(effects$g$g), as.character(1:8))
  expect_equal(fit$sketch$centre$z, mean(d$z), tolerance = 0.1)
  # those of the pilot, of 12,000 rows
  expect_lte(nrow(fit$sketch$some), 2000)
  expect_warning(
    predict(fit, transform(new, z = 9)),
    class = "tall_warning_extrapolation"
  )
  expect_error(
    predict(fit, transform(new, g = 12)),
    "new level",
    class = "tall_error_input"
  )
  skip_if_not_installed("ggplot2")
  picture <- plot(fit, "smooth", "s(x)", partial = 50)
  drawn <- ggplot2::ggplot_build(picture)
  expect_identical(nrow(drawn$data[[1]]), 50L)
})

test_that("Gaussian responses are drawn from sums of one pass", {
  d <- passed_rows()
  formula <- size ~ f + s(x, k = 6) + (1 | g)
  memory <- passed_gam(d, formula, stats::gaussian(), iter = 1000, seed = 2)
  local_passes(2000, 1024)
  fit <- passed_gam(stream_of(d, 999), formula, stats::gaussian(), iter = 1000)
  expect_false(is.null(fit$rows$source))
  expect_lt(fit$passes, 4)
  expect_same_curves(fit, memory, d[1:6, ])
  con <- local_sqlite()
  theirs <- passed_gam(table_of(con, d), formula, stats::gaussian(),
    iter = 1000)
  expect_s3_class(theirs$rows$in_sql, "tall_sql")
  expect_same_curves(theirs, memory, d[1:6, ])
  expect_equal(smooth_table(fit)$edf, smooth_table(memory)$edf, tolerance = 0.1)
  more <- sg_resume(fit, iter = 100, refresh = 0)
  expect_identical(posterior::niterations(more$draws), 600L)
})

# ---- databases ---------------------------------------------------------------

given_knots_gam <- local({
  fit <- NULL
  function() {
    fit <<- fit %||% passed_gam(passed_rows(), iter = 1000, seed = 2)
    fit
  }
})

# As the call of tall_gam() would read them.
look_at_gam <- function(formula, data, knots = NULL) {
  formula <- smooth_formula(formula, knots)
  call <- as.call(list(quote(tall_glm), formula, data, stats::binomial()))
  looked_at(call)$rows
}

for (engine in sql_engines) {
  test_that(paste("smooth terms are SQL:", engine), {
    con <- local_engine(engine)
    d <- passed_rows()
    table <- table_of(con, d)
    local_passes(2000, 1024)
    formulas <- list(
      late ~ f + s(x, k = 6) + s(z, k = 9, bs = "cr") + (1 | g),
      late ~ f + s(x, k = 6, by = f) + s(hour, k = 8, bs = "cc"),
      late ~ x + s(x, by = z, k = 5) + s(z, f, bs = "fs", k = 4) +
        s(f, z, bs = "re")
    )
    for (formula in formulas) {
      used <- intersect(names(knots_of_rows), all.vars(formula))
      theirs <- look_at_gam(formula, table, knots_of_rows[used])
      ours <- look_at_gam(formula, as_source(d), knots_of_rows[used])
      expect_s3_class(theirs$in_sql, "tall_sql")
      expect_identical(theirs$design$columns, ours$design$columns)
      control <- list(refresh = 0, cores = 1)
      theta <- seq(0.2, -0.2, length.out = length(ours$design$columns))
      a <- sums_at(theirs, theta, control)
      b <- sums_at(ours, theta, control)
      near <- function(a, b) expect_lt(max(abs(a - b) / (1 + abs(b))), 1e-9)
      near(a$log_lik, b$log_lik)
      near(a$gradient, b$gradient)
      near(a$hessian, b$hessian)
      near(unlist(a$facts), unlist(b$facts))
    }
    # so many steps that another pass draws rows for them
    fit <- passed_gam(table, iter = 1100)
    expect_gt(fit$passes, 10)
    expect_s3_class(fit$rows$in_sql, "tall_sql")
    expect_same_curves(fit, given_knots_gam(), d[1:6, ])
    made <- dplyr::collect(dplyr::arrange(
      generics::augment(fit, newdata = table, type.predict = "link"), x
    ))
    expect_equal(
      made$.fitted,
      unname(predict(fit, as.data.frame(made), type = "link"))
    )
    more <- sg_resume(fit, iter = 100, refresh = 0)
    expect_identical(posterior::niterations(more$draws), 650L)
    expect_identical(nrow(smooth_table(fit)), 2L)
  })
}

test_that("ends of numbers in a database are those of all rows", {
  con <- local_sqlite()
  d <- passed_rows()
  d$z[[9]] <- 40
  d$z[[7]] <- 99 # without x
  local_passes(2000, 1024)
  rows <- look_at_gam(late ~ s(log(x + 1), k = 5) + s(z, k = 5),
    table_of(con, d))
  smooths <- terms_smooths(rows$design$terms)
  expect_identical(smooths[["s(z)"]]$range$z, range(d$z[-7]))
  own <- smooths[["s(log(x + 1))"]]$range[[1]]
  expect_equal(own, range(log(d$x + 1), na.rm = TRUE))
})

test_that("few kinds of rows are counted by the database", {
  con <- local_sqlite()
  d <- passed_rows()
  local_passes(2000, 1024)
  formula <- late ~ f + s(hour, k = 6)
  fit <- passed_gam(table_of(con, d), formula, knots = NULL, iter = 1000)
  expect_match(fit$plan, "alike ones count as one, 1[0-9]{2} rows differ$")
  other <- passed_gam(d, formula, knots = NULL, iter = 1000, seed = 2)
  expect_same_curves(fit, other, d[1:6, ])
})

test_that("what is no table of cubics is streamed, which is told", {
  con <- local_sqlite()
  d <- passed_rows()
  local_passes(2000, 1024)
  expect_message(
    fit <- passed_gam(table_of(con, d), late ~ t2(x, z, k = 4), knots = NULL,
      iter = 100, refresh = 1),
    "streamed: `t2\\(x,z\\)` is no table of cubics"
  )
  expect_null(fit$rows$in_sql)
  expect_false(is.null(fit$rows$source))
  expect_match(fit$plan, "whatever the hyperparameters")
})

# ---- what is told ------------------------------------------------------------

test_that("rows beyond the knots are told, and a by that is missing left out", {
  d <- passed_rows(6000)
  local_passes(2000, 1024)
  # only its last block
  late <- d
  late$x[5990:6000] <- 1.5
  expect_warning(
    fit <- passed_gam(stream_of(late, 999), iter = 100),
    class = "tall_warning_extrapolation"
  )
  # straight on, as mgcv has it
  smooth <- terms_smooths(fit$terms)[["s(x)"]]
  at <- smooth_values(smooth, list(x = c(1, 1.25, 1.5)))
  expect_equal(at[2, ], (at[1, ] + at[3, ]) / 2)
  without <- d
  without$z[c(3, 5999)] <- NA
  run <- function(data) {
    passed_gam(stream_of(data, 999), late ~ s(x, by = z, k = 6), iter = 100)
  }
  fit <- run(without)
  expect_identical(fit$n_data, 5997)
  expect_identical(fit$n_missing, 3)
})

test_that("a stream that changes is refused", {
  d <- passed_rows(6000)
  local_passes(2000, 1024)
  turn <- 0
  source <- tall_stream(function() {
    turn <<- turn + 1
    own <- d
    if (turn > 3) {
      own$x[5990:6000] <- 1.5
    }
    function() {
      block <- own
      own <<- NULL
      block
    }
  })
  expect_error(passed_gam(source, iter = 100), class = "tall_error_source")
})

test_that("curves of a source's own knots are those of the data frame", {
  data <- withr::with_seed(1, {
    n <- 1e5
    data <- data.frame(x = stats::rexp(n), z = stats::rnorm(n))
    eta <- sin(3 * data$x) + 0.3 * data$z^2 - 1
    data$y <- stats::rbinom(n, 1, stats::plogis(eta))
    data
  })
  fit <- function(data, seed) {
    tall_gam(
      y ~ s(x, k = 12) + s(z, k = 8),
      data,
      stats::binomial(),
      seed = seed,
      refresh = 0
    )
  }
  frame <- fit(data, 1)
  blocks <- fit(split(data, rep(1:10, each = 1e4)), 2)
  for (name in c("x", "z")) {
    ends <- stats::quantile(data[[name]], c(0.005, 0.995))
    grid <- data.frame(x = 1, z = 0)[rep(1, 50), ]
    grid[[name]] <- seq(ends[[1]], ends[[2]], length.out = 50)
    curve <- function(fit) {
      posterior_smooths(fit, paste0("s(", name, ")"), newdata = grid)
    }
    of <- curve(frame)
    gap <- (colMeans(of) - colMeans(curve(blocks))) / apply(of, 2, stats::sd)
    expect_lt(max(abs(gap)), 0.1)
  }
})

test_that("dates of a database are streamed, and told", {
  skip_if_not_installed("RSQLite")
  skip_if_not_installed("dbplyr")
  start <- as.Date("2024-01-01")
  data <- withr::with_seed(2, {
    data <- data.frame(day = start + sample(0:365, 3000, TRUE))
    eta <- sin(as.numeric(data$day - start) / 58)
    data$y <- stats::rbinom(3000, 1, stats::plogis(eta))
    data
  })
  knots <- list(day = start + seq(0, 365, length.out = 8))
  con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:", extended_types = TRUE)
  withr::defer(DBI::dbDisconnect(con))
  DBI::dbWriteTable(con, "data", data)
  fit <- function(data, refresh = 0) {
    tall_gam(
      y ~ s(day, k = 8, bs = "cr"),
      data,
      stats::binomial(),
      knots = knots,
      seed = 1,
      refresh = refresh
    )
  }
  frame <- fit(data)
  local_passes(1000, 512)
  expect_message(
    table <- fit(dplyr::tbl(con, "data"), refresh = 1),
    "are streamed: `day` is not a number"
  )
  grid <- data.frame(day = start + seq(0, 360, by = 20))
  of <- posterior_smooths(frame, "s(day)", newdata = grid)
  gap <- colMeans(of) -
    colMeans(posterior_smooths(table, "s(day)", newdata = grid))
  expect_lt(max(abs(gap / apply(of, 2, stats::sd))), 0.1)
  expect_equal(
    predict(table, dplyr::tbl(con, "data")),
    unname(predict(table, data)),
    tolerance = 1e-8
  )
})
