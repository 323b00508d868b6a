# Constants that terms take from the rows: the basis of poly(), knots of
# splines, what scale() subtracts and divides by. Of rows in memory they are
# those of all, as lm() and glm() have them, also where rows are passed over.

constants_data <- function(n = 6000) {
  withr::with_seed(4, {
    data <- data.frame(
      x = stats::rexp(n),
      z = stats::rnorm(n, 5),
      g = factor(sample(c("u", "v", "w"), n, TRUE)),
      w = stats::runif(n, 0.5, 2)
    )
    data$y <- data$x - 0.2 * data$x^2 + sin(data$z) + stats::rnorm(n)
    data$k <- stats::rpois(n, exp(0.2 * data$z - 0.1 * data$x))
    data$b <- stats::rbinom(n, 1, stats::plogis(data$x - 1))
    data$half <- data$z > 4.5
    # some are missing where x is not, which lm() does not leave out of poly()
    data$z[seq(7, n, by = 50)] <- NA
    data
  })
}

constants_fit <- function(formula, data, ...) {
  args <- list(
    formula, data, ..., prior = NULL, prior_intercept = NULL, prior_aux = NULL,
    seed = 1, refresh = 0
  )
  do.call(tall_glm, args)
}

settled_of <- function(fit) {
  as.list(attr(stats::terms(fit), "predvars"))[-1]
}

test_that("those of a data frame are lm()'s and glm()'s, of all rows", {
  skip_if_not_installed("splines")
  data <- constants_data()
  local_passes()
  formulas <- list(
    y ~ poly(x, 2),
    y ~ splines::ns(x, 3),
    y ~ splines::bs(x, df = 5),
    y ~ scale(x),
    y ~ poly(x, 2, raw = TRUE) + log(x),
    y ~ poly(log(x), 2) * g + scale(w, scale = FALSE),
    y ~ scale(z) + poly(x, 2)
  )
  for (formula in formulas) {
    fit <- constants_fit(formula, data)
    plain <- stats::lm(formula, data)
    # passed over
    expect_null(fit$rows$frame)
    expect_identical(settled_of(fit), settled_of(plain))
    s <- summary(plain)$coefficients
    # independent draws
    z <- (coef(fit) - s[, 1]) / (s[, 2] / sqrt(4000))
    expect_lt(max(abs(z)), 4.5)
    expect_identical(names(coef(fit)), names(stats::coef(plain)))
  }
  for (case in list(list(k ~ poly(x, 2), stats::poisson()),
                    list(b ~ splines::ns(x, 3) + g, stats::binomial()))) {
    fit <- constants_fit(case[[1]], data, family = case[[2]])
    plain <- stats::glm(case[[1]], case[[2]], data)
    expect_null(fit$rows$frame)
    expect_identical(settled_of(fit), settled_of(plain))
    s <- summary(plain)$coefficients
    # means are not modes; with another basis they were 15 sds apart
    expect_lt(max(abs((coef(fit) - s[, 1]) / s[, 2])), 0.3)
  }
})

test_that("predictions use them", {
  data <- constants_data()
  local_passes()
  fit <- constants_fit(y ~ poly(x, 2) + scale(w), data)
  plain <- stats::lm(y ~ poly(x, 2) + scale(w), data)
  new <- data[c(3, 900, 5000), ]
  near <- stats::predict(plain, new, se.fit = TRUE)
  for (rows in list(new, as_source(new))) {
    z <- (predict(fit, rows) - near$fit) / (near$se.fit / sqrt(4000))
    expect_lt(max(abs(z)), 4.5)
  }
  expect_equal(fitted(fit)[c(3, 900, 5000)], predict(fit, new),
    ignore_attr = TRUE)
  more <- sg_resume(fit, iter = 10)
  expect_identical(settled_of(more), settled_of(plain))
})

test_that("rows that do not count have their part in them, as in lm()", {
  data <- constants_data()
  local_passes()
  fit <- constants_fit(y ~ scale(x), data, subset = quote(half),
    weights = quote(w))
  plain <- stats::lm(y ~ scale(x), data, subset = half, weights = w)
  expect_null(fit$rows$frame)
  expect_identical(settled_of(fit), settled_of(plain))
  # of few rows, too
  local_passes(rows = 1e6)
  few <- constants_fit(y ~ scale(x), data, subset = quote(half),
    weights = quote(w))
  expect_false(is.null(few$rows$frame))
  expect_identical(settled_of(few), settled_of(plain))
})

test_that("rows without the variable are left out of them", {
  data <- constants_data()
  local_passes()
  fit <- constants_fit(y ~ poly(z, 2), data)
  plain <- stats::lm(y ~ poly(z, 2), data[!is.na(data$z), ])
  expect_null(fit$rows$frame)
  expect_identical(settled_of(fit), settled_of(plain))
})

test_that("an infinite value among them is refused in words", {
  data <- constants_data()
  data$x[[4000]] <- Inf
  local_passes()
  for (formula in list(y ~ scale(x), y ~ poly(x, 2))) {
    for (rows in list(data, as_source(data), list(data, data))) {
      expect_error(constants_fit(formula, rows), class = "tall_error_input")
    }
  }
})

test_that("matrices and lists of data frames are in memory, streams are not", {
  data <- constants_data()[c("x", "w", "y")]
  local_passes()
  formula <- y ~ poly(x, 2) + scale(w)
  whole <- constants_fit(formula, data)
  wide <- as.matrix(data)
  lists <- list(data[1:2500, ], wide[2501:6000, ])
  for (rows in list(as_source(data), wide, Matrix::Matrix(wide), lists)) {
    fit <- constants_fit(formula, rows)
    expect_false(is.null(fit$rows$source))
    expect_identical(settled_of(fit), settled_of(whole))
  }
  expect_identical(
    constants_fit(formula, wide)$draws,
    whole$draws
  )
  # a pilot's, with the ends of columns
  stream <- tall_stream(function() {
    at <- 0
    function() {
      if (at < 6000) {
        at <<- at + 1500
        data[seq(at - 1499, at), ]
      }
    }
  })
  store <- tall_store(wide, file = withr::local_tempfile(fileext = ".tall"))
  for (rows in list(stream, store, list(data, stream))) {
    fit <- constants_fit(y ~ poly(x, 2) + splines::ns(w, 3), rows)
    settled <- settled_of(fit)
    expect_lt(settled[[2]]$coefs$norm2[[2]], 2010)
    expect_identical(settled[[3]]$Boundary.knots, range(data$w))
  }
  told <- function(formula, data) {
    said <- character()
    withCallingHandlers(
      tall_glm(formula, data, seed = 1, iter = 50, refresh = 100),
      message = function(m) {
        said <<- c(said, conditionMessage(m))
        invokeRestart("muffleMessage")
      }
    )
    gsub("\\s+", " ", paste(said, collapse = " "))
  }
  expect_match(
    told(formula, stream),
    "A pilot of 2,000 rows, not all, has the constants of `poly(x, 2)` and
     `scale(w)`, and their coefficients refer to them." |>
      gsub(pattern = "\\s+", replacement = " "),
    fixed = TRUE
  )
  expect_match(told(y ~ scale(w), stream), "and its coefficients", fixed = TRUE)
  expect_no_match(told(y ~ log(w), stream), "constants", fixed = TRUE)
  expect_no_match(told(formula, data), "constants", fixed = TRUE)
})

test_that("what would not fit in memory is refused", {
  data <- constants_data()
  local_passes()
  local_settings(memory = 1e6)
  # x, two columns of poly() and what it makes of them: 10 numbers of each
  e <- expect_error(
    constants_fit(y ~ poly(x, 2), data),
    class = "tall_error_memory"
  )
  expect_identical(e$value, 8 * 6000 * 3 * 10)
  expect_match(conditionMessage(e), "poly(x, 2)", fixed = TRUE)
  expect_null(constants_fit(y ~ scale(x), data)$rows$frame)
  expect_match(conditionMessage(e), "tall_stream()", fixed = TRUE)
  stream <- tall_stream(function() {
    blocks <- split(data, rep(1:3, each = 2000))
    function() {
      block <- blocks[[1]]
      blocks <<- c(blocks[-1], list(NULL))
      block
    }
  })
  expect_s3_class(constants_fit(y ~ poly(x, 2), stream), "tall_glm")
  local_settings(memory = 2e6)
  expect_null(constants_fit(y ~ poly(x, 2), data)$rows$frame)
})

test_that("other front ends have those of all rows", {
  data <- constants_data()
  local_passes()
  plain <- stats::lm(y ~ poly(x, 2), data)
  run <- list(iter = 20, chains = 1, seed = 1, refresh = 0)
  data$kind <- cut(data$y, c(-Inf, 0, 1, Inf), c("low", "mid", "high"))
  fits <- suppressWarnings(list(
    do.call(tall_glmer, c(list(y ~ poly(x, 2) + (1 | g), data), run)),
    do.call(tall_multinom, c(list(kind ~ poly(x, 2), data), run)),
    do.call(tall_polr, c(list(
      ordered(kind, c("low", "mid", "high")) ~ poly(x, 2),
      data
    ), run))
  ))
  for (fit in fits) {
    predvars <- as.list(attr(fit$terms, "predvars"))
    is_poly <- vapply(predvars, rlang::is_call, TRUE, "poly")
    expect_identical(predvars[is_poly], settled_of(plain)[2])
  }
})
