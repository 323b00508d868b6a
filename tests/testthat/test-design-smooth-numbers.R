# Smooth terms of dates and times, and of cycles.

skip_if_not_installed("mgcv")

dated_rows <- function(n = 200) {
  withr::local_seed(1)
  d <- data.frame(
    day = as.Date("2020-01-01") + sample(0:364, n, TRUE),
    hour = stats::runif(n, 0, 24),
    f = factor(sample(c("a", "b"), n, TRUE))
  )
  d$time <- as.POSIXct(d$day, tz = "UTC") + 3600 * d$hour
  d$since <- d$day - as.Date("2020-01-01")
  d$y <- sin(as.numeric(d$day) / 50) + cos(2 * pi * d$hour / 24) +
    stats::rnorm(n, 0, 0.5)
  d
}

dated_fit <- function(formula, data = dated_rows(), ..., iter = 200) {
  tall_gam(formula, data, ..., iter = iter, seed = 1, refresh = 0)
}

blocks_of <- function(blocks) {
  tall_stream(function() {
    at <- 0
    function() {
      at <<- at + 1
      if (at <= length(blocks)) blocks[[at]]
    }
  })
}

test_that("dates, times and spans of time are numbers, and come back", {
  d <- dated_rows()
  for (name in c("day", "time", "since")) {
    d$number <- as.double(d[[name]])
    f <- stats::reformulate(sprintf("s(%s, k = 6)", name), "y")
    dated <- dated_fit(f, d)
    plain <- dated_fit(y ~ s(number, k = 6), d)
    expect_equal(
      unclass(posterior::as_draws_matrix(dated$draws)),
      unclass(posterior::as_draws_matrix(plain$draws)),
      ignore_attr = TRUE
    )
    new <- d[c(3, 9), ]
    expect_equal(predict(dated, new), predict(plain, new), tolerance = 1e-8)
    band <- conditional_smooths(dated, resolution = 20)[[1]]
    expect_s3_class(band[[name]], class(d[[name]])[[1]])
    expect_equal(
      range(as.double(band[[name]])),
      range(d$number)
    )
    slope <- conditional_smooths(dated, resolution = 20, derivative = TRUE)[[1]]
    expect_equal(
      slope$estimate__,
      conditional_smooths(plain, resolution = 20, derivative = TRUE)[[1]][[
        "estimate__"
      ]],
      tolerance = 1e-6
    )
    w <- expect_warning(
      predict(dated, transform(new, day = day + 900, time = time + 1e8,
                               since = since + 900)),
      class = "tall_warning_extrapolation"
    )
    if (name != "since") expect_match(conditionMessage(w), "202[23]-")
  }
  # in other units
  weeks <- d
  units(weeks$since) <- "weeks"
  expect_equal(predict(dated, weeks[1:5, ]), predict(dated, d[1:5, ]))
  # of several, and by levels
  joint <- dated_fit(y ~ t2(day, hour, k = 4) + s(day, by = f, k = 4), d)
  expect_s3_class(conditional_smooths(joint)[["t2(day,hour)"]]$day, "Date")
  effects <- conditional_effects(joint, c("day", "hour:day"), resolution = 5)
  expect_identical(range(effects$day$day), range(d$day))
  expect_s3_class(effects[["hour:day"]]$day, "Date")
})

test_that("a date is known as such, and nothing else is", {
  d <- dated_rows()
  dated <- dated_fit(y ~ s(day, k = 5), d)
  expect_snapshot(error = TRUE, {
    predict(dated, data.frame(day = 18300))
    predict(dated, data.frame(day = as.POSIXct("2020-03-01", tz = "UTC")))
    dated_fit(y ~ s(hour, by = day), d)
    dated_fit(y ~ s(day, bs = "re"), d)
    dated_fit(y ~ s(day, k = 5), d, knots = list(day = c(1, 4, 9, 20, 50)))
  })
  whole <- structure(list(1:2), class = "POSIXlt")
  expect_error(in_units_of(whole, NULL, "x"), class = "tall_error_input")
})

test_that("pictures of dates have them on their axes", {
  skip_if_not_installed("ggplot2")
  fit <- dated_fit(y ~ s(day, k = 5) + s(hour, k = 5) + s(since, k = 5))
  expect_message(
    picture <- plot(fit, "smooth", partial = 20),
    "Not in the same picture: \"s(hour)\" and \"s(since)\"",
    fixed = TRUE
  )
  drawn <- ggplot2::ggplot_build(picture)
  expect_s3_class(picture$data$x, "Date")
  expect_identical(nrow(drawn$data[[1]]), 20L)
  other <- plot(fit, "smooth", c("s(since)", "s(hour)"))
  expect_type(other$data$x, "double")
  one <- plot(fit, "smooth", "s(since)")
  expect_identical(one$labels$x, "since (days)")
})

test_that("rows of blocks are read as those of frames", {
  local_settings(look = list(rows = 100))
  d <- dated_rows(400)
  knots <- list(day = as.Date("2020-01-01") + c(0, 90, 180, 270, 365))
  f <- smooth_formula(y ~ s(day, k = 5) + s(since, k = 5), knots)
  run <- function(data) {
    tall_glm(f, data = data, iter = 20, chains = 1, seed = 1, refresh = 0)
  }
  weeks <- d
  units(weeks$since) <- "weeks"
  suppressMessages({
    one <- run(blocks_of(list(d)))
    two <- run(blocks_of(list(d[1:150, ], weeks[151:400, ])))
  })
  expect_equal(one$mode$estimate, two$mode$estimate, tolerance = 1e-6)
  numbers <- transform(d, day = as.double(day))
  e <- expect_error(
    suppressMessages(run(blocks_of(list(d[1:150, ], numbers[151:400, ])))),
    class = "tall_error"
  )
})

test_that("cyclic curves begin anew, and tell only where ends are a guess", {
  d <- dated_rows()
  f <- y ~ s(hour, bs = "cc", k = 8)
  known <- dated_fit(f, d, knots = list(hour = c(0, 24)))
  at <- data.frame(hour = c(1, 25, -23, 24.5, 0.5))
  expect_no_warning(p <- predict(known, at))
  expect_equal(p[[2]], p[[1]])
  expect_equal(p[[3]], p[[1]])
  expect_equal(p[[4]], p[[5]])
  # as mgcv has it
  beside <- mgcv::gam(f, data = d, knots = list(hour = c(0, 24)))
  q <- predict(beside, at)
  expect_equal(q[[2]], q[[1]])
  guessed <- dated_fit(f, d)
  expect_snapshot(p <- predict(guessed, data.frame(hour = 25)))
  # rows of the fit may lie in other cycles
  d$later <- d$hour + 24 * rep(0:1, 100)
  expect_no_warning(
    twice <- dated_fit(y ~ s(later, bs = "cc", k = 8), d,
                       knots = list(later = c(0, 24)))
  )
  expect_equal(
    unname(predict(twice, data.frame(later = c(1, 25)))),
    unname(predict(known, data.frame(hour = c(1, 1))))
  )
  # one margin of a surface
  surface <- dated_fit(
    y ~ t2(hour, later, bs = c("cc", "cr"), k = c(5, 4)),
    d,
    knots = list(hour = c(0, 24))
  )
  at <- data.frame(hour = c(1, 25), later = 10)
  expect_no_warning(p <- predict(surface, at))
  expect_equal(p[[1]], p[[2]])
  expect_warning(
    predict(surface, data.frame(hour = 1, later = 100)),
    class = "tall_warning_extrapolation"
  )
  days <- dated_fit(
    y ~ s(day, bs = "cc", k = 8),
    d,
    knots = list(day = as.Date(c("2020-01-01", "2021-01-01")))
  )
  year <- data.frame(day = as.Date(c("2020-02-01", "2021-02-01")))
  expect_no_warning(p <- predict(days, year))
  expect_equal(p[[1]], p[[2]])
})
