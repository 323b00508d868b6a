# Predictions for lazy tables: streamed, or made by the database.

test_that("standard deviations of responses are those of the draws", {
  con <- local_sqlite()
  rows <- table_rows()
  table <- table_of(con, rows)
  fit <- tall_glm(y ~ x + word, rows, binomial(), seed = 1)
  made <- dplyr::collect(
    augment(fit, newdata = table, type.predict = "response", se_fit = TRUE)
  )
  by_r <- predict(fit, rows, type = "response", se.fit = TRUE)
  there <- !is.na(by_r$fit)
  s <- predict(fit, rows, se.fit = TRUE)$se.fit[there]
  # the second derivative is 0.1 at the most
  away <- abs(made$.fitted - by_r$fit)[there]
  expect_lt(max(away / (0.05 * s^2 + 1e-3 * s)), 2)
  expect_lt(max(abs(made$.se.fit / by_r$se.fit - 1)[there]), 0.1)
})

test_that("levels that are new are NULL, and what SQL cannot say is refused", {
  con <- local_sqlite()
  rows <- table_rows()
  rows$on <- rows$on == 1
  fit <- tall_glm(z ~ word + x, rows, seed = 1)
  rows$word[1:3] <- "'; --"
  table <- table_of(con, rows)
  made <- dplyr::collect(augment(fit, newdata = table))
  expect_identical(
    which(is.na(made$.fitted)),
    which(is.na(rows$x) | is.na(rows$word) | rows$word == "'; --")
  )
  expect_error(predict(fit, table), class = "tall_error_input")
  bent <- tall_glm(z ~ splines::ns(wait, 3), rows, seed = 1)
  expect_error(
    augment(bent, newdata = table),
    class = "tall_error_unsupported"
  )
  expect_length(predict(bent, table), nrow(rows))
  for (link in c("probit", "cloglog")) {
    own <- tall_glm(y ~ wait, rows, binomial(link), iter = 200, seed = 1)
    made <- dplyr::collect(
      augment(own, newdata = table, type.predict = "response")
    )
    linear <- predict(own, rows)
    expect_equal(
      made$.fitted,
      stats::make.link(link)$linkinv(unname(linear)),
      tolerance = 1e-8
    )
  }
  expect_error(
    augment(fit, newdata = dplyr::mutate(table, .fitted = 1)),
    class = "tall_error_input"
  )
  expect_error(
    augment(fit, newdata = dplyr::select(table, -x)),
    class = "tall_error_input"
  )
})

test_that("draws of responses take tables", {
  skip_if_not_installed("rstantools")
  con <- local_sqlite()
  rows <- table_rows(300)
  rows <- rows[stats::complete.cases(rows), ]
  table <- table_of(con, rows)
  fit <- tall_glm(y ~ x + word, rows, binomial(), seed = 1)
  expect_equal(
    rstantools::posterior_epred(fit, table, ndraws = 20),
    rstantools::posterior_epred(fit, rows, ndraws = 20),
    ignore_attr = TRUE
  )
  set.seed(2)
  by_r <- rstantools::posterior_predict(fit, rows, ndraws = 20)
  set.seed(2)
  streamed <- rstantools::posterior_predict(fit, table, ndraws = 20)
  expect_equal(streamed, by_r, ignore_attr = TRUE)
})
