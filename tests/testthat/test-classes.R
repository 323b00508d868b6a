# tall_multinom(), tall_polr() and model_classes(). The laws of the model stand
# in test-conformance-model.R, by helper-classes.R.

class_frame <- function(n, seed = 1) {
  withr::with_seed(seed, {
    d <- data.frame(
      x = 50 + 10 * stats::rnorm(n),
      f = factor(sample(c("a", "b"), n, TRUE))
    )
    z <- (d$x - 50) / 10
    e <- exp(cbind(0, 0.5 * z - 0.5, -0.4 * z + (d$f == "b") - 2))
    u <- stats::runif(n) * rowSums(e)
    kind <- 1 + (u > e[, 1]) + (u > e[, 1] + e[, 2])
    d$kind <- c("red", "green", "blue")[kind]
    d$kind <- factor(d$kind, c("red", "green", "blue"))
    size <- 0.8 * z - 0.5 * (d$f == "b") + stats::rlogis(n)
    d$size <- cut(size, c(-Inf, -1, 1, 3, Inf), c("S", "M", "L", "XL"))
    d$size <- ordered(d$size)
    d$w <- stats::runif(n, 0.5, 2)
    d
  })
}

# Moments of natural parameters by importance sampling about the mode.
class_truth <- function(model) {
  importance_moments(
    function(theta) model_evaluate(model, theta)$log_density[[1]],
    as.double(search_mode(model, refresh = 0)$estimate),
    natural = function(theta) {
      apply(theta, 2, function(at) constrain_of(model, at))
    }
  )
}

# By the formulas of ?model_classes.
constrain_of <- function(model, theta) {
  center <- model$center
  p <- model$n_coef
  k <- length(model$response_levels) - 1
  if (model$method == "softmax") {
    b <- matrix(theta, p)
    b[1, ] <- b[1, ] - drop(center %*% b[-1, , drop = FALSE])
    return(as.vector(b))
  }
  cuts <- cumsum(c(theta[p + 1], exp(theta[p + seq_len(k)[-1]])))
  c(theta[seq_len(p)], cuts + sum(center * theta[seq_len(p)]))
}

model_with_center <- function(x, y, method, ...) {
  model <- model_classes(x, y, method, ...)
  own <- x[, colnames(x) != "(Intercept)", drop = FALSE]
  model$center <- unname(colMeans(own))
  model
}

test_that("posteriors are those of importance sampling", {
  skip_on_cran()
  d <- class_frame(6000)
  x <- stats::model.matrix(~ x + f, d)
  cases <- list(
    softmax = list(x = x, y = d$kind, formula = kind ~ x + f),
    logistic = list(x = x[, -1], y = d$size, formula = size ~ x + f),
    probit = list(x = x[, -1], y = d$size, formula = size ~ x + f)
  )
  for (method in names(cases)) {
    case <- cases[[method]]
    truth <- class_truth(model_with_center(case$x, case$y, method))
    fit <- if (method == "softmax") {
      tall_multinom(case$formula, d, seed = 1, refresh = 0)
    } else {
      tall_polr(case$formula, d, method = method, seed = 1, refresh = 0)
    }
    expect_identical(fit$kernel$name, "sgld")
    expect_moments(fit, truth)
  }
})

test_that("few rows are sampled exactly, and agree with importance sampling", {
  d <- class_frame(150, seed = 3)
  x <- stats::model.matrix(~ x + f, d)
  truth <- class_truth(model_with_center(x[, -1], d$size, "logistic"))
  fit <- tall_polr(size ~ x + f, d, seed = 1, refresh = 0)
  expect_identical(fit$kernel$name, "mala")
  expect_moments(fit, truth)
})

test_that("estimates are those of MASS::polr() and nnet::multinom()", {
  skip_if_not_installed("MASS")
  skip_if_not_installed("nnet")
  d <- class_frame(20000)
  fit <- tall_polr(
    size ~ x + f + offset(0.01 * x),
    d,
    weights = w,
    prior = NULL,
    prior_counts = NULL,
    seed = 1,
    refresh = 0
  )
  # not whole numbers
  theirs <- suppressWarnings(MASS::polr(
    size ~ x + f + offset(0.01 * x),
    d,
    weights = w
  ))
  s <- posterior::summarise_draws(fit, "mean", "sd", "ess_bulk")
  expect_identical(s$variable, c(names(coef(theirs)), names(theirs$zeta)))
  z <- (s$mean - c(coef(theirs), theirs$zeta)) / s$sd
  expect_lt(max(abs(z)), 0.1)
  fit <- tall_multinom(kind ~ x + f, d, prior = NULL, prior_intercept = NULL,
                       seed = 1, refresh = 0)
  theirs <- nnet::multinom(kind ~ x + f, d, trace = FALSE, reltol = 1e-12)
  s <- posterior::summarise_draws(fit, "mean", "sd")
  z <- (s$mean - as.vector(t(coef(theirs)))) / s$sd
  expect_lt(max(abs(z)), 0.1)
  expect_identical(
    s$variable,
    paste0(rep(c("green", "blue"), each = 3), ":", c("(Intercept)", "x", "fb"))
  )
})

test_that("ranks are uniform under the prior", {
  skip_on_cran()
  for (n in c(1000, 4000)) {
    problems <- sbc_class_problems(n)[c("softmax", "logistic")]
    for (problem in problems) {
      runs <- suppressWarnings(sbc_runs(problem, 60))
      p <- sbc_p_values(sbc_scores(runs))
      expect_gt(min(p), 5e-6)
      spoiled <- sbc_p_values(sbc_scores(runs, sbc_shift(0.5)))
      expect_lt(spoiled[["location"]], 5e-6)
    }
  }
})

test_that("methods agree with each other", {
  d <- class_frame(400)
  fit <- tall_multinom(kind ~ x + f, d, iter = 600, seed = 1, refresh = 0)
  new <- d[1:6, ]
  probs <- rstantools::posterior_epred(fit, newdata = new, draws = 50)
  expect_equal(dim(probs), c(50, 6, 3))
  expect_equal(apply(probs, 1:2, sum), matrix(1, 50, 6), ignore_attr = TRUE)
  mean <- predict(fit, new, type = "probs", draws = 50)
  expect_equal(mean, apply(probs, 2:3, mean), ignore_attr = TRUE)
  best <- predict(fit, new, draws = 50)
  expect_identical(as.integer(best), unname(max.col(mean)))
  log_p <- rstantools::log_lik(fit, newdata = new, draws = 50)
  kind <- rep(as.integer(new$kind), each = 50)
  at <- cbind(rep(1:50, 6), rep(1:6, each = 50), kind)
  expect_equal(as.vector(log_p), log(probs[at]))
  expect_equal(
    log_loss(fit, new, "draw"),
    -rowMeans(rstantools::log_lik(fit, newdata = new)),
    ignore_attr = TRUE
  )
  eta <- rstantools::posterior_linpred(fit, newdata = new, draws = 50)
  expect_equal(exp(eta[, , "blue"]), probs[, , "blue"] / probs[, , "red"])
  same <- new[rep(1, 400), ]
  y <- rstantools::posterior_predict(fit, newdata = same, seed = 1)
  shares <- tabulate(y, 3) / length(y)
  expect_equal(
    shares,
    unname(predict(fit, new[1, ], type = "probs")[1, ]),
    tolerance = 0.03
  )
  expect_equal(fitted(fit), predict(fit, d, type = "probs"), ignore_attr = TRUE)
  expect_equal(
    unname(residuals(fit)[1:3]),
    unname(1 - fitted(fit)[cbind(1:3, as.integer(d$kind[1:3]))])
  )
  found <- suppressWarnings(loo::loo(fit))
  expect_equal(found$estimates[["looic", 1]], -2 * sum(found$pointwise[, 1]))
  ordinal <- tall_polr(size ~ x + f, d, iter = 600, seed = 1, refresh = 0)
  expect_s3_class(predict(ordinal, new), "ordered")
  probs <- rstantools::posterior_epred(ordinal, newdata = new, draws = 20)
  eta <- rstantools::posterior_linpred(ordinal, newdata = new, draws = 20)
  cuts <- choose_draws(ordinal, 20)$theta[, 3:5]
  expect_equal(
    probs[, , 1] + probs[, , 2],
    stats::plogis(cuts[, 2] - eta),
    ignore_attr = TRUE
  )
  expect_identical(dim(sg_resume(ordinal, iter = 50)$draws)[[1]], 350L)
})

test_that("rows of streams, missing values and weights are taken", {
  d <- class_frame(500)
  d$x[c(3, 8)] <- NA
  fit <- tall_polr(size ~ x, d, weights = w, iter = 200, seed = 1, refresh = 0)
  expect_identical(fit$n_data, 498)
  streamed <- tall_polr(
    size ~ x,
    stream_of(d, 77),
    weights = w,
    iter = 200,
    seed = 1,
    refresh = 0
  )
  expect_identical(unclass(fit$draws), unclass(streamed$draws))
  file <- withr::local_tempfile()
  saveRDS(fit, file)
  expect_identical(
    sg_resume(readRDS(file), iter = 20)$draws,
    sg_resume(fit, iter = 20)$draws
  )
})

test_that("what is wrong is told", {
  d <- class_frame(100)
  expect_error(
    tall_multinom(kind ~ x, d, offset = x),
    "have a predictor each",
    class = "tall_error_input"
  )
  fit <- tall_multinom(kind ~ x, d, iter = 20, chains = 1, refresh = 0)
  expect_error(
    rstantools::bayes_R2(fit),
    "not for classes",
    class = "tall_error_unsupported"
  )
  expect_identical(
    predict(fit, d[1:3, ], type = "response"),
    predict(fit, d[1:3, ], type = "probs")
  )
  bad <- function(code) expect_error(code, class = "tall_error_input")
  bad(tall_polr(kind ~ x, d))
  bad(tall_polr(size ~ 1, d))
  bad(tall_multinom(kind ~ x, d[d$kind == "red", ]))
  bad(tall_polr(size ~ x, d, prior_counts = c(1, 2)))
  bad(tall_polr(size ~ x, d, prior_counts = -1))
  none <- factor(d$kind, c("red", "green", "blue", "no"))
  bad(model_classes(cbind(x = d$x), none))
  bad(model_classes(cbind("(Intercept)" = 1, x = d$x), d$size, "logistic"))
  short <- tall_polr(size ~ x, d, iter = 20, chains = 1)
  bad(predict(short, data.frame(f = "a")))
  expect_error(
    tall_multinom(kind ~ x + offset(x), d),
    class = "tall_error_unsupported"
  )
  expect_error(
    tall_multinom(kind ~ x, d, method = "probit"),
    class = "tall_error_input"
  )
  # classes that a subset leaves empty are no classes
  fit <- tall_multinom(
    kind ~ x,
    d,
    subset = kind != "red",
    iter = 20,
    chains = 1
  )
  expect_identical(fit$response_levels, c("green", "blue"))
})

test_that("separated classes without a prior are refused, by any threshold", {
  d <- class_frame(1000)
  z <- (d$x - 50) / 10
  d$kind <- factor(ifelse(z > 0, "up", ifelse(d$f == "a", "low", "mid")))
  d$size <- cut(z, c(-Inf, -1, 1, Inf), c("S", "M", "L"), ordered_result = TRUE)
  refused <- function(code, by) {
    e <- expect_error(code, class = "tall_error_improper")
    expect_true(by %in% e$columns)
  }
  refused(
    tall_multinom(kind ~ x, d, prior = NULL, prior_intercept = NULL, seed = 1),
    "up:x"
  )
  for (method in c("logistic", "probit")) {
    refused(
      tall_polr(
        size ~ x,
        d,
        method,
        prior = NULL,
        prior_counts = NULL,
        seed = 1
      ),
      "x"
    )
  }
  model <- model_classes(cbind(x = d$x), d$size, "logistic")
  expect_true(find_mode(model)$converged)
})

test_that("a class that a tenth of the rows hardly has does not mislead", {
  n <- 60000
  x <- withr::with_seed(3, cbind(1, z = stats::rnorm(n)))
  colnames(x)[[1]] <- "(Intercept)"
  y <- rep_len(c("a", "b"), n)
  # none of them in the rows that the search begins with
  first <- floor(seq(1, n, length.out = 6000))
  y[setdiff(seq(1000, n, by = 4999), first)] <- "c"
  expect_false("c" %in% y[first])
  model <- model_classes(x, factor(y), prior = NULL, prior_intercept = NULL)
  found <- find_mode(model)
  expect_true(found$converged)
  expect_equal(
    unname(found$variables[["c:(Intercept)"]]),
    log(sum(y == "c") / sum(y == "a")),
    tolerance = 0.1
  )
  rare <- find_mode(model_glm(x, as.double(y == "c"), prior = NULL))
  expect_true(rare$converged)
})

test_that("responses of two values, and numbers that are no classes", {
  d <- class_frame(200)
  d$is_large <- d$size > "M"
  d$from_0 <- as.integer(d$size) - 1
  d$gap <- c(1, 3, 4, 5)[d$size]
  few <- list(iter = 20, chains = 1, refresh = 0, seed = 1)
  run <- function(f, formula) rlang::exec(f, formula, d, !!!few)
  fit <- run(tall_polr, is_large ~ x)
  expect_identical(fit$response_levels, c("FALSE", "TRUE"))
  expect_identical(levels(predict(fit, d[1:2, ])), c("FALSE", "TRUE"))
  expect_length(log_loss(fit, d), 1)
  e <- expect_error(run(tall_multinom, from_0 ~ x), class = "tall_error_input")
  expect_match(conditionMessage(e), "numbers 1, 2, ... of classes")
  e <- expect_error(run(tall_polr, gap ~ x), class = "tall_error_input")
  expect_match(conditionMessage(e), "ordered(gap)", fixed = TRUE)
})

test_that("priors of classes are told apart", {
  d <- class_frame(200)
  few <- function(f, ...) f(..., iter = 20, chains = 1, refresh = 0, seed = 1)
  out <- few(tall_polr, size ~ x, d)
  out <- capture.output(print(rstantools::prior_summary(out)))
  expect_match(out, "dirichlet(counts = 1)", fixed = TRUE, all = FALSE)
  expect_no_match(out, "NA")
  out <- few(tall_multinom, kind ~ x, d)
  out <- capture.output(print(rstantools::prior_summary(out)))
  expect_match(out, "Intercept", all = FALSE)
})

test_that("data get the predictions of their rows", {
  d <- class_frame(200)
  d$x[7] <- NA
  fit <- tall_multinom(kind ~ x + f, d, iter = 200, seed = 1, refresh = 0,
                       na.action = stats::na.exclude)
  table <- augment(fit)
  expect_identical(nrow(table), 200L)
  probs <- predict(fit, type = "probs")
  expect_equal(table$.prob_blue, unname(probs[, "blue"]))
  expect_identical(table$.fitted, unname(predict(fit)))
  expect_true(is.na(table$.fitted[7]))
  expect_equal(table$.resid, unname(residuals(fit)))
  new <- augment(fit, newdata = d[1:3, ])
  expect_equal(new$.prob_red, unname(probs[1:3, "red"]))
  expect_false(".resid" %in% names(new))
  expect_error(augment(fit, d[1:3, ]), class = "tall_error_input")
})

test_that("pictures show shares of classes", {
  skip_if_not_installed("ggplot2")
  d <- class_frame(400)
  fit <- tall_polr(size ~ x + f, d, iter = 200, seed = 1, refresh = 0)
  new <- d[1:150, ]
  new$x[3] <- NA
  found <- plot(fit, "confusion", newdata = new)$data
  shown <- new[-3, ]
  counts <- table(shown$size, predict(fit, shown))
  expect_identical(found$n, as.vector(counts))
  expect_equal(found$share, as.vector(counts / rowSums(counts)))
  all <- plot(fit, "calibration", newdata = new)$data
  each <- plot(fit, "calibration", newdata = new, by_class = TRUE)$data
  expect_identical(levels(each$class), levels(d$size))
  probs <- predict(fit, shown, type = "probs")
  low <- probs <= 0.1
  came <- outer(as.integer(shown$size), seq_len(ncol(probs)), "==")
  expect_equal(all$nominal[[1]], mean(probs[low]))
  expect_equal(all$observed[[1]], mean(came[low]))
  expect_s3_class(plot(fit, "intervals"), "ggplot")
  expect_error(plot(fit, "confusing"), class = "tall_error_input")
})

test_that("rows of a source and long runs are told before they start", {
  d <- class_frame(300)
  local_settings(memory = 5e9)
  expect_message(
    tall_multinom(kind ~ x, as_source(d), iter = 100, seed = 1),
    "300 rows of `data` are now in memory"
  )
  local_settings(memory = 5000)
  expect_error(
    tall_multinom(kind ~ x, as_source(d), iter = 100, seed = 1),
    "tall_store",
    class = "tall_error_memory"
  )
  big <- list(n_data = 581012, n_dim = 330)
  run <- front_run(refresh = 1, .front = tall_multinom)
  quiet <- front_run(refresh = 0, .front = tall_multinom)
  expect_message(tell_class_cost(big, run), "330 parameters")
  expect_silent(tell_class_cost(big, quiet))
  small <- list(n_data = 581012, n_dim = 66)
  expect_silent(tell_class_cost(small, run))
})
