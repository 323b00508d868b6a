# Everything that is done with a fit is written over predictor(): for one fit of
# each class, that is what it says by hand, and every verb what it makes of it.

predictor_data <- local({
  n <- 120
  u <- ((seq_len(n) * 0.618034) %% 1)
  v <- ((seq_len(n) * 0.414214) %% 1)
  data <- data.frame(a = 2 * u - 1, g = factor(letters[1 + floor(6 * v)]))
  data$z <- data$a + stats::qnorm(0.01 + 0.98 * v)
  data$y <- as.double(((seq_len(n) * 0.754878) %% 1) < stats::plogis(data$a))
  data$n <- stats::qpois(v, exp(0.5 * data$a))
  data$k <- cut(data$z, c(-Inf, -0.5, 0.8, Inf), c("low", "mid", "top"))
  data$ordered <- as.ordered(data$k)
  data
})

predictor_run <- function(f, formula, ...) {
  f(
    formula,
    predictor_data,
    ...,
    iter = 60,
    warmup = 20,
    chains = 2,
    seed = 3,
    refresh = 0
  )
}

# By class: a fit, and what its predictor and expected response are by hand,
# draws x rows (x classes), at rows `x` of two columns with an offset of 0.
predictor_cases <- function() {
  cases <- list(
    glm = predictor_run(tall_glm, n ~ a, family = stats::poisson()),
    gaussian = predictor_run(tall_glm, z ~ a),
    glmer = predictor_run(tall_glmer, y ~ a + (1 | g), family = "bernoulli"),
    polr = predictor_run(tall_polr, ordered ~ a),
    multinom = predictor_run(tall_multinom, k ~ a),
    nn = predictor_run(tall_nn, z ~ a, hidden = 2, train_iter = 30),
    "nn, classes" = predictor_run(tall_nn, k ~ a, hidden = 2, train_iter = 30)
  )
  suppressMessages(suppressWarnings(cases))
}
predictor_fits <- suppressMessages(suppressWarnings(predictor_cases()))
predictor_new <- predictor_data[c(2, 30, 71, 72, 118), ]

# rstantools' generics by name, for packages that are there
draws_of_verb <- function(verb, fit, ...) {
  f <- getExportedValue("rstantools", verb)
  f(fit, newdata = predictor_new, ...)
}

softmax_by_hand <- function(eta) {
  out <- exp(eta)
  out / as.vector(apply(out, 1:2, sum))
}

test_that("predictors are what they are by hand", {
  skip_if_not_installed("rstantools")
  new <- predictor_new
  eta_of <- function(fit, at = 1:2) {
    tcrossprod(as.matrix(fit)[, at], cbind(1, new$a))
  }
  fits <- predictor_fits
  for (name in c("glm", "gaussian")) {
    eta <- unname(draws_of_verb("posterior_linpred", fits[[name]]))
    expect_equal(eta, unname(eta_of(fits[[name]])), tolerance = 1e-14)
  }
  effects <- ranef(fits$glmer, summary = FALSE)[, , 1]
  own <- effects[, as.character(new$g)]
  eta <- draws_of_verb("posterior_linpred", fits$glmer)
  expect_equal(unname(eta), unname(eta_of(fits$glmer) + own))
  population <- draws_of_verb("posterior_linpred", fits$glmer, re_formula = NA)
  expect_equal(unname(population), unname(eta_of(fits$glmer)))

  draws <- as.matrix(fits$polr)
  p <- draws_of_verb("posterior_epred", fits$polr)
  below <- stats::plogis(draws[, 2] - tcrossprod(draws[, 1], new$a))
  expect_equal(unname(p[, , 1]), unname(below))
  upper <- 1 - stats::plogis(draws[, 3] - tcrossprod(draws[, 1], new$a))
  expect_equal(unname(p[, , 3]), unname(upper))

  eta <- draws_of_verb("posterior_linpred", fits$multinom)
  expect_identical(dimnames(eta)[[3]], c("mid", "top"))
  expect_equal(unname(eta[, , 2]), unname(eta_of(fits$multinom, 3:4)))
  whole <- array(0, dim(eta) + c(0, 0, 1))
  whole[, , -1] <- eta
  p <- draws_of_verb("posterior_epred", fits$multinom)
  expect_equal(unname(p), softmax_by_hand(whole))

  w <- as.matrix(fits$nn)
  s <- fits$nn$scaling
  x <- (new$a - s$x_center) / s$x_scale
  one <- function(k) {
    f <- network_outputs(fits$nn, w[k, seq_len(fits$nn$n_coef), drop = FALSE],
      matrix(x))
    s$y_center + s$y_scale * drop(f)
  }
  eta <- draws_of_verb("posterior_linpred", fits$nn)
  expect_equal(unname(eta[17, ]), unname(one(17)))
})

test_that("moments, classes and errors are those of the draws", {
  skip_if_not_installed("rstantools")
  sd_of <- function(x) sqrt(mean((x - mean(x))^2))
  for (name in names(predictor_fits)) {
    fit <- predictor_fits[[name]]
    for (type in c("link", "response")) {
      kind <- c(link = "linpred", response = "epred")[[type]]
      verb <- paste0("posterior_", kind)
      values <- draws_of_verb(verb, fit)
      found <- predict(fit, predictor_new, type = type, se.fit = TRUE)
      at <- seq_along(dim(values))[-1]
      expect_equal(
        unname(found$fit),
        unname(apply(values, at, mean)),
        info = paste(name, type)
      )
      expect_equal(
        unname(found$se.fit),
        unname(apply(values, at, sd_of)),
        info = paste(name, type)
      )
    }
    response <- predict(fit, type = "response")
    expect_equal(fitted(fit), response, info = name)
    residual <- residuals(fit)
    expect_identical(names(residual), rownames(predictor_data))
    if (is.matrix(response)) {
      came <- as.integer(predictor_data$k)
      expect_equal(
        unname(residual),
        1 - unname(response[cbind(seq_along(came), came)])
      )
      classes <- c("low", "mid", "top")
      best <- classes[max.col(response, "first")]
      table <- augment(fit)
      expect_identical(as.character(table$.fitted), best)
      expect_equal(table$.prob_mid, unname(response[, "mid"]))
    } else {
      y <- model.frame(fit)[[1]]
      expect_equal(unname(residual), unname(y - response), info = name)
      expect_equal(unname(augment(fit)$.fitted), unname(predict(
        fit,
        type = "link"
      )))
      expect_equal(deviance(fit), sum(residuals(fit, "deviance")^2))
    }
  }
})

test_that("responses are drawn from what is expected", {
  skip_if_not_installed("rstantools")
  for (name in names(predictor_fits)) {
    fit <- predictor_fits[[name]]
    many <- replicate(40, simplify = FALSE, {
      out <- draws_of_verb("posterior_predict", fit)
      if (length(dim(predict(fit, predictor_new, "response"))) == 2) {
        expect_identical(attr(out, "levels"), c("low", "mid", "top"))
        out <- (out == 2) + 0 # the probability of the second
      }
      out
    })
    values <- do.call(rbind, many)
    expected <- predict(fit, predictor_new, type = "response")
    expected <- if (is.matrix(expected)) expected[, "mid"] else expected
    error <- apply(values, 2, stats::sd) / sqrt(nrow(values))
    z <- (colMeans(values) - expected) / error
    expect_lt(max(abs(z)), 4.5, label = name) # 35 of them: 1 in 4,000
  }
})

test_that("log likelihoods and losses are those of the draws", {
  skip_if_not_installed("rstantools")
  rows <- cbind(rep(1:80, 5), rep(1:5, each = 80))
  y <- as.integer(predictor_new$k)
  for (name in c("polr", "multinom", "nn, classes")) {
    fit <- predictor_fits[[name]]
    p <- draws_of_verb("posterior_epred", fit)
    by_hand <- matrix(log(p[cbind(rows, rep(y, each = 80))]), 80)
    found <- draws_of_verb("log_lik", fit)
    expect_equal(unname(found), by_hand, info = name)
    expect_equal(
      log_loss(fit, predictor_new),
      -mean(log(colMeans(exp(by_hand))))
    )
    f <- draws_of_verb("log_lik", fit, pointwise = TRUE)
    one <- f(attr(f, "data")[4, , drop = FALSE], attr(f, "draws"))
    expect_equal(c(one), by_hand[, 4])
  }
  for (name in c("glm", "gaussian", "nn")) {
    fit <- predictor_fits[[name]]
    mu <- draws_of_verb("posterior_epred", fit)
    y <- predictor_new[[if (name == "glm") "n" else "z"]]
    each <- rep(y, each = 80)
    by_hand <- if (name == "glm") {
      stats::dpois(each, mu, log = TRUE)
    } else {
      stats::dnorm(each, mu, as.matrix(fit)[, "sigma"], log = TRUE)
    }
    by_hand <- matrix(by_hand, 80)
    found <- draws_of_verb("log_lik", fit)
    expect_equal(unname(found), by_hand, info = name)
    expect_equal(
      log_loss(fit, predictor_new, "draw"),
      -rowMeans(by_hand),
      info = name
    )
    expect_equal(rmse(fit, predictor_new), sqrt(mean((colMeans(mu) - y)^2)))
  }
})

test_that("a front end is a constructor, a predictor and a response", {
  skip_if_not_installed("rstantools")
  # counts whose mean is the square of a line
  method <- function(fit, rows, draws, scale) {
    eta <- tcrossprod(draws$theta, rows$x)
    if (scale == "response") eta^2 else eta
  }
  space <- asNamespace("tallbayes")
  registerS3method("predictor", "tall_squares", method, space)
  fit <- predictor_fits$glm
  class(fit) <- c("tall_squares", "tall_regression", "tall_fit")
  line <- tcrossprod(as.matrix(fit)[, 1:2], cbind(1, predictor_new$a))
  mean <- colMeans(line^2)
  expect_equal(unname(predict(fit, predictor_new)), unname(colMeans(line)))
  expect_equal(
    unname(predict(fit, predictor_new, "response")),
    unname(mean)
  )
  epred <- draws_of_verb("posterior_epred", fit)
  expect_equal(unname(epred), unname(line^2))
  expect_equal(rmse(fit, predictor_new), sqrt(mean((mean - predictor_new$n)^2)))
  yrep <- draws_of_verb("posterior_predict", fit, seed = 1)
  expect_identical(dim(yrep), c(80L, 5L))
  expect_true(all(yrep == round(yrep)))
  r2 <- rstantools::bayes_R2(fit)
  expect_true(all(r2 > 0 & r2 < 1))
  interval <- predict(fit, predictor_new, "response", interval = "confidence")
  expect_true(all(interval[, "lwr"] <= interval[, "upr"]))
  whole <- tcrossprod(as.matrix(fit)[, 1:2], cbind(1, predictor_data$a))
  residual <- predictor_data$n - colMeans(whole^2)
  expect_equal(unname(residuals(fit)), residual)
  expect_equal(augment(fit, type.residuals = "response")$.resid, residual)
})

test_that("what has no meaning for classes says so", {
  for (name in c("polr", "nn, classes")) {
    fit <- predictor_fits[[name]]
    verbs <- list(
      function() rstantools::bayes_R2(fit),
      function() rstantools::predictive_error(fit),
      function() rstantools::predictive_interval(fit),
      function() predict(fit, type = "link", interval = "confidence"),
      function() residuals(fit, "pearson"),
      function() deviance(fit),
      function() rmse(fit, predictor_new),
      function() family(fit)
    )
    for (verb in verbs) {
      expect_error(verb(), "classes", class = "tall_error_unsupported")
    }
  }
})

test_that("arguments that a model does not have are refused", {
  skip_if_not_installed("rstantools")
  nn <- predictor_fits$nn
  expect_error(predict(nn, offset = 1), class = "tall_error_input")
  expect_error(
    rstantools::posterior_predict(nn, trials = 2),
    "takes no trials",
    class = "tall_error_input"
  )
  expect_error(
    rstantools::posterior_predict(predictor_fits$polr, weights = 2),
    "precisions",
    class = "tall_error_input"
  )
  expect_error(
    predict(predictor_fits$glm, re_formula = ~ (1 | g)),
    "no group-level terms",
    class = "tall_error_input"
  )
  expect_identical(
    predict(predictor_fits$glm, re_formula = NA),
    predict(predictor_fits$glm)
  )
  expect_error(
    predict(predictor_fits$glm, type = "class"),
    class = "tall_error_input"
  )
  expect_error(
    predict(predictor_fits$glmer, transform(predictor_new, g = "none")),
    class = "tall_error_input"
  )
})
