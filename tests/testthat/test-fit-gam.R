# What is asked of a fit of tall_gam() after it: of sources, under priors that
# are not normal, without smooth terms.

skip_if_not_installed("mgcv")

few_rows <- function(n = 300) {
  withr::with_seed(2, {
    d <- data.frame(
      x = stats::runif(n),
      z = stats::rnorm(n),
      f = factor(sample(c("a", "b"), n, TRUE))
    )
    d$y <- sin(6 * d$x) + 3 * (d$f == "b") + stats::rnorm(n)
    d
  })
}

few_gam <- function(formula, data = few_rows(), ..., iter = 200) {
  tall_gam(formula, data, ..., iter = iter, seed = 1, refresh = 0)
}

# without the names of rows, which sources do not have
unnamed_rows <- function(x) {
  rownames(x) <- NULL
  x
}

test_that("terms of sources are those of data frames", {
  fit <- few_gam(y ~ f + s(x, k = 5))
  new <- few_rows()[1:12, ]
  new$x[[3]] <- NA
  new$f[[7]] <- NA
  sources <- list(
    # one block has a missing row alone
    blocks = list(new[1:2, ], new[3, ], new[4:12, ]),
    stream = stream_of(new, c(5, 1))
  )
  for (source in sources) {
    whole <- predict(fit, new, type = "terms")
    found <- predict(fit, source, type = "terms")
    expect_identical(dimnames(found), list(NULL, c("f", "s(x)")))
    expect_identical(unname(is.na(found[, "s(x)"])), 1:12 == 3)
    expect_equal(found, unnamed_rows(whole))
    expect_type(attr(found, "constant"), "double")
    found <- predict(fit, source, terms = "s(x)", se.fit = TRUE)
    whole <- predict(fit, new, terms = "s(x)", se.fit = TRUE)
    expect_equal(found, lapply(whole, unnamed_rows))
  }
})

test_that("terms of own rows that are passed over have those left out as NA", {
  local_settings(look = list(rows = 1000))
  data <- few_rows(3000)
  # a whole block of the pass, and some
  data$x[c(2, 1001:1600)] <- NA
  fit <- few_gam(y ~ f + x, stream_of(data, 300), na.action = na.exclude)
  expect_true(has_source(fit))
  local_settings(block_rows = 300)
  found <- predict(fit, type = "terms", se.fit = TRUE)
  expect_identical(dim(found$fit), c(3000L, 2L))
  expect_identical(unname(is.na(found$fit[, "x"])), is.na(data$x))
  there <- !is.na(data$x)
  whole <- predict(fit, data[there, ], type = "terms", se.fit = TRUE)
  for (name in c("fit", "se.fit")) {
    ours <- found[[name]][there, ]
    expect_equal(ours, whole[[name]], ignore_attr = TRUE)
  }
})

test_that("terms are had without smooth ones, of none and of no rows", {
  d <- few_rows()
  fit <- few_gam(y ~ f * x)
  terms <- predict(fit, d, type = "terms")
  expect_identical(colnames(terms), c("f", "x", "f:x"))
  expect_equal(rowSums(terms) + attr(terms, "constant"), predict(fit, d))
  none <- predict(few_gam(y ~ 1), d, type = "terms", se.fit = TRUE)
  expect_identical(dim(none$fit), c(nrow(d), 0L))
  expect_identical(dim(none$se.fit), c(nrow(d), 0L))
  for (fit in list(fit, few_gam(y ~ f + s(x, k = 4)))) {
    empty <- predict(fit, d[0, ], type = "terms", se.fit = TRUE)
    whole <- predict(fit, d, type = "terms", se.fit = TRUE)
    expect_identical(dim(empty$fit), c(0L, ncol(whole$fit)))
    expect_identical(colnames(empty$se.fit), colnames(whole$se.fit))
    expect_equal(attr(empty$fit, "constant"), attr(whole$fit, "constant"))
  }
})

test_that("degrees of freedom take priors as they bend where they are", {
  # far in the tails of their priors, which bend up there
  fit <- few_gam(
    y ~ f + s(x, k = 6),
    prior = prior_student(3, 0, 0.1),
    prior_intercept = prior_student(2, 4, 0.5),
    iter = 1000
  )
  x <- model.matrix(fit)
  draws <- unclass(draws_matrix(fit))
  at <- unique(round(seq(1, nrow(draws), length.out = 200)))
  # of the normal with the slope of the Student prior
  bend <- function(value, df, location, scale) {
    u <- (value - location) / scale
    (df + 1) / ((df + u^2) * scale^2)
  }
  # the intercept's prior is of the predictor at the mean of f
  centre <- c(1, mean(x[, "fb"]), 0, 0, 0, 0, 0)
  edf <- vapply(at, FUN.VALUE = 0, function(k) {
    beta <- draws[k, seq_along(centre)]
    precision <- c(
      0,
      bend(beta[[2]], 3, 0, 0.1),
      rep(1 / draws[[k, "smooth_sd[s(x)1]"]]^2, 4),
      bend(beta[[7]], 3, 0, 0.1)
    )
    p <- diag(precision) +
      bend(sum(centre * beta), 2, 4, 0.5) * tcrossprod(centre)
    h <- crossprod(x) / draws[[k, "sigma"]]^2
    sum(diag(solve(h + p, h))[-(1:2)])
  })
  expect_equal(smooth_table(fit)$edf, mean(edf), tolerance = 1e-6)
})

test_that("a wide prior takes no degrees of freedom, whatever its kind", {
  of <- function(prior) {
    smooth_table(few_gam(
      y ~ f + s(x, k = 6),
      prior = prior,
      prior_intercept = prior,
      prior_smooth = prior_normal(0, 1),
      iter = 1500
    ))
  }
  wide <- of(prior_normal(0, 100))
  for (prior in list(prior_student(3, 0, 100), prior_laplace(0, 100))) {
    # 0.01 of the spread of draws, whose error is some 0.03 of it
    expect_lt(abs(of(prior)$edf - wide$edf), 0.1)
  }
})

test_that("a term whose degrees of freedom are not known is not small", {
  fit <- few_gam(y ~ s(x, k = 4))
  fit$mode$hessian <- -1e6 * fit$mode$hessian
  found <- smooth_table(fit)
  expect_true(is.na(found$edf))
  expect_false(found$is_small)
})

test_that("emmeans has marginal means of a factor beside smooth terms", {
  skip_if_not_installed("emmeans")
  fit <- few_gam(y ~ f + s(x, k = 5) + s(z, k = 4))
  grid <- emmeans::emmeans(fit, ~f, data = few_rows())
  new <- data.frame(f = c("a", "b"), x = mean(few_rows()$x))
  new$z <- mean(few_rows()$z)
  theirs <- do.call(rbind, unclass(coda::as.mcmc(grid)))
  expect_equal(unname(colMeans(theirs)), unname(predict(fit, new)))
  # along a curve, and of a curve for each level
  fit <- few_gam(y ~ f + s(x, by = f, k = 4))
  at <- c(0.1, 0.8)
  grid <- emmeans::emmeans(
    fit,
    ~ f | x,
    at = list(x = at),
    data = few_rows()
  )
  theirs <- do.call(rbind, unclass(coda::as.mcmc(grid)))
  new <- expand.grid(f = c("a", "b"), x = at)
  expect_equal(unname(colMeans(theirs)), unname(predict(fit, new)))
})

test_that("a fit without smooth terms is drawn as others are", {
  skip_if_not_installed("ggplot2")
  skip_if_not_installed("bayesplot")
  fit <- few_gam(y ~ f)
  expect_equal(plot(fit)$labels, plot(fit, "trace")$labels)
  expect_error(plot(fit, "smooth"), class = "tall_error_unsupported")
})

test_that("partial residuals need rows", {
  skip_if_not_installed("ggplot2")
  fit <- few_gam(y ~ f + s(x, k = 4), keep_data = FALSE)
  expect_s3_class(plot(fit), "ggplot")
  expect_error(plot(fit, partial = 30), class = "tall_error_stale")
})

test_that("what mgcv says of a term is a warning of ours", {
  expect_warning(
    few_gam(y ~ s(x, k = 2)),
    class = "tall_warning_smooth",
    regexp = "s\\(x\\).*increased to minimum"
  )
  expect_warning(
    few_gam(y ~ t2(x, z, k = 2)),
    class = "tall_warning_smooth",
    regexp = "reset to default"
  )
})

test_that("fits of other front ends have no smooth terms", {
  fit <- tall_glm(y ~ f, few_rows(), iter = 50, seed = 1, refresh = 0)
  class <- "tall_error_unsupported"
  expect_error(smooth_table(fit), class = class)
  expect_error(posterior_smooths(fit, "s(x)"), class = class)
  expect_error(conditional_smooths(fit), class = class)
})

test_that("terms print without what is settled of smooth ones", {
  fit <- few_gam(y ~ f + s(x, k = 5))
  terms <- terms(fit)
  expect_lt(length(capture.output(print(terms))), 40)
  expect_match(capture.output(print(terms)), "smooth = ...", all = FALSE)
  # and are used as others
  frame <- model.frame(terms, few_rows()[1:3, ])
  expect_equal(
    model.matrix(delete.response(terms), frame),
    model.matrix(fit)[1:3, ],
    ignore_attr = TRUE
  )
  expect_s3_class(terms(few_gam(y ~ f)), c("terms", "formula"), exact = TRUE)
})

test_that("effects of groups that are smooth terms are not left out unasked", {
  d <- few_rows()
  fit <- few_gam(y ~ x + (1 | f))
  expect_error(
    predict(fit, d, re_formula = NA),
    class = "tall_error_unsupported"
  )
  expect_identical(predict(fit, d, re_formula = NULL), predict(fit, d))
  expect_snapshot(error = TRUE, {
    predict(fit, d, re.form = NA)
    ranef(fit)
    predict(fit, d, exclude = "s(f)")
    plot(fit, select = 1)
    few_gam(y ~ s(as.numeric(x > 0.5)))
  })
})

test_that("what R says of a value is said once", {
  fit <- few_gam(y ~ s(log(x), k = 4))
  said <- 0
  withCallingHandlers(
    predict(fit, data.frame(x = -1)),
    warning = function(w) {
      said <<- said + 1
      rlang::cnd_muffle(w)
    }
  )
  expect_identical(said, 1)
})

test_that("a surface has a basis along each of its variables", {
  fit <- few_gam(y ~ t2(x, z, bs = c("cr", "cc"), k = 4))
  expect_output(print(fit), "Smooth terms")
  # a factor by is no effect of groups
  d <- few_rows()
  fit <- few_gam(y ~ f + t2(x, z, by = f, bs = c("cr", "cr"), k = 4), d)
  expect_no_warning({
    eta <- rstantools::posterior_linpred(fit, newdata = d, re_formula = NA)
    effects <- conditional_effects(fit, "x:z")
    expect_error(ranef(fit), class = "tall_error_unsupported")
  })
  expect_equal(colMeans(eta), predict(fit, d), ignore_attr = TRUE)
})

test_that("at a bound degrees of freedom take the likelihood's curvature", {
  d <- few_rows()
  d$x <- 3 * d$x
  d$y <- d$y + 2 * d$x
  fit <- few_gam(y ~ x + s(z, k = 5), d, prior = prior_uniform(-0.5, 0.5))
  expect_identical(fit$mode$at_bound, "x")
  found <- likelihood_information(fit)
  wanted <- crossprod(model.matrix(fit)) / found$sigma^2
  expect_equal(found$hessian, unname(wanted), tolerance = 1e-6)
  # without scales that are learnt, whose model is whitened
  d$late <- as.integer(d$x + d$z > 1)
  uniform <- prior_uniform(-0.3, 0.3)
  fit <- few_gam(late ~ x + s(z, k = 5, fx = TRUE), d, binomial(), uniform)
  expect_true("x" %in% fit$mode$at_bound)
  x <- model.matrix(fit)
  mu <- stats::plogis(drop(x %*% fit$mode$estimate))
  found <- likelihood_information(fit)
  wanted <- crossprod(x, mu * (1 - mu) * x)
  expect_equal(found$hessian, unname(wanted), tolerance = 1e-6)
  # and where the intercept's prior is of the predictor at the means
  fit <- few_gam(y ~ x + s(z, k = 5), d, prior_intercept = prior_uniform(5, 6))
  expect_identical(fit$mode$at_bound, "(Intercept)")
  found <- likelihood_information(fit)
  wanted <- crossprod(model.matrix(fit)) / found$sigma^2
  expect_equal(found$hessian, unname(wanted), tolerance = 1e-6)
})

test_that("draws whose degrees of freedom are not known are left out", {
  found <- summed_draws(cbind(c(1, NA, 3), NA, c(0, 2, 4)), c(0, 1))
  expect_identical(found, rbind(c(2, 1, 3), NA, c(2, 0, 4)))
})
