# Everything that a fit can do works for every response that regressions have,
# whatever the rows come from.

# Responses to eta, of any entry: its own draws.
verb_frame <- function(name, n = 160) {
  entry <- find_response(name)
  family <- new_family(entry)
  withr::with_seed(7, {
    frame <- data.frame(a = stats::rnorm(n), b = stats::runif(n, -1, 1))
    eta <- matrix(0.3 + 0.3 * frame$a - 0.2 * frame$b, 1)
    # five degrees of freedom, so that there are variances
    aux <- c(1.5, 5)[seq_along(response_aux(family))]
    if (length(aux) > 1) {
      aux <- matrix(aux, 1)
    }
    rows <- list(weight = NULL, trials = if (name == "binomial") rep(3, n))
    y <- as.numeric(entry$draw(response_mean(family, eta), aux, rows))
  })
  frame$y <- if (name == "binomial") y / 3 else y
  frame$w <- if (name == "binomial") 3 else rep_len(1:2, n)
  frame
}

expect_verbs <- function(fit, frame, label) {
  n <- nrow(frame)
  n_draw <- posterior::ndraws(fit$draws)
  finite <- function(x, size) {
    expect_length(x, size)
    expect_true(all(is.finite(x)), label = label)
  }
  finite(predict(fit), n)
  finite(predict(fit, frame[1:3, ], type = "response"), 3)
  finite(fitted(fit), n)
  for (type in c("response", "pearson", "deviance")) {
    finite(residuals(fit, type = type), n)
  }
  finite(rstantools::posterior_linpred(fit), n * n_draw)
  finite(rstantools::posterior_epred(fit), n * n_draw)
  finite(rstantools::posterior_predict(fit, seed = 1), n * n_draw)
  finite(rstantools::log_lik(fit), n * n_draw)
  expect_s3_class(bayesplot::pp_check(fit, seed = 1), "ggplot")
  expect_s3_class(
    bayesplot::pp_check(fit, type = "stat", stat = "mean", seed = 1),
    "ggplot"
  )
  loo <- suppressWarnings(loo::loo(fit))
  expect_true(is.finite(loo$estimates["elpd_loo", "Estimate"]), label = label)
  if ("nu" %in% fit$variables && any(as.matrix(fit)[, "nu"] <= 2)) {
    # of no finite variance
    expect_error(rstantools::bayes_R2(fit), class = "tall_error_unsupported")
  } else {
    finite(suppressWarnings(rstantools::bayes_R2(fit)), n_draw)
  }
  expect_identical(tidy(fit, c("fixed", "auxiliary"))$term, fit$variables)
  finite(coef(fit), 3)
  expect_output(print(fit), "Family")
  expect_output(print(summary(fit)), "rhat")
}

# weights and offset: names of columns
verb_fit <- function(data, family, ...) {
  given <- list(
    y ~ a + b,
    data = data,
    family = family,
    seed = 1,
    iter = 150,
    chains = 2,
    refresh = 0
  )
  suppressMessages(suppressWarnings(do.call(tall_glm, c(given, ...))))
}

for (name in regression_responses()) {
  test_that(paste("every verb works, with weights and an offset:", name), {
    skip_if_not_installed("loo")
    skip_if_not_installed("bayesplot")
    frame <- verb_frame(name)
    frame$shift <- frame$a / 7
    fit <- verb_fit(
      frame,
      name,
      list(
        weights = quote(w),
        offset = quote(shift),
        monitor = list(held = monitor_log_lik(frame[1:20, ]))
      )
    )
    expect_verbs(fit, frame, name)
    expect_true(all(is.finite(fit$monitor$draw)))
  })

  test_that(paste("rows may come from a stream or a file, or be sparse:", name), {
    skip_on_cran()
    frame <- verb_frame(name)
    fit <- function(data, sparse = FALSE) {
      weights <- if (name == "binomial") list(weights = quote(w))
      verb_fit(data, name, c(weights, list(sparse = sparse)))
    }
    here <- fit(frame)
    expect_rows <- function(fit) {
      expect_equal(coef(fit), coef(here), tolerance = 0.2, label = name)
      finite <- is.finite(fitted(fit))
      expect_length(finite, nrow(frame))
      expect_true(all(finite))
    }
    expect_rows(fit(as_source(frame)))
    if (.Platform$OS.type != "windows") {
      file <- withr::local_tempfile(fileext = ".tall")
      expect_rows(fit(tall_store(as.matrix(frame), file)))
    }
    sparse <- fit(frame, sparse = TRUE)
    expect_equal(coef(sparse), coef(here), tolerance = 0.2, label = name)
  })
}
