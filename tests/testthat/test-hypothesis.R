# hypothesis(): brms' statements about parameters, against closed forms.

before <- options(tallbayes.refresh = 0)

# A Gaussian model with a known sigma is conjugate.
known <- local({
  made <- NULL
  function() {
    if (is.null(made)) {
      d <- withr::with_seed(1, {
        d <- data.frame(x = rnorm(60, 1), z = rnorm(60))
        d$y <- 1 + 0.3 * d$x + rnorm(60)
        d
      })
      fit <- tall_glm(
        y ~ x * z,
        d,
        prior = prior_normal(0.1, c(0.5, 0.7, 0.9)),
        prior_intercept = prior_normal(0.5, 2),
        sigma = 1,
        iter = 6000,
        warmup = 1000,
        seed = 1
      )
      made <<- list(data = d, fit = fit)
    }
    made
  }
})

# list(prior, posterior): c(mean, sd) of a'beta, from sums of squares.
conjugate <- function(a) {
  x <- model.matrix(~ x * z, known()$data)
  # the intercept's prior is of the predictor at the means
  of <- diag(4)
  of[1, -1] <- colMeans(x)[-1]
  precision <- diag(1 / c(2, 0.5, 0.7, 0.9)^2)
  location <- c(0.5, 0.1, 0.1, 0.1)
  prior <- crossprod(of, precision %*% of)
  mean <- solve(of, location)
  posterior <- prior + crossprod(x)
  centre <- solve(posterior, prior %*% mean + crossprod(x, known()$data$y))
  of_normal <- function(mean, precision) {
    c(sum(a * mean), sqrt(drop(a %*% solve(precision, a))))
  }
  list(prior = of_normal(mean, prior), posterior = of_normal(centre, posterior))
}

exact_ratio <- function(a, at = 0) {
  own <- conjugate(a)
  dnorm(at, own$posterior[[1]], own$posterior[[2]]) /
    dnorm(at, own$prior[[1]], own$prior[[2]])
}

test_that("point hypotheses have the ratio of Savage and Dickey", {
  fit <- known()$fit
  texts <- c(
    "x = 0", "Intercept = 0", "2 * (x - z) / 4 = 0.1", "x:z = -x + Intercept",
    "(Intercept) = 1 + sqrt(4) * z"
  )
  of <- list(
    c(0, 1, 0, 0), c(1, 0, 0, 0), c(0, 0.5, -0.5, 0), c(-1, 1, 0, 1),
    c(1, 0, -2, 0)
  )
  at <- c(0, 0, 0.1, 0, 1)
  out <- hypothesis(fit, texts)
  table <- out$hypothesis
  wanted <- mapply(exact_ratio, of, at)
  # as far as their errors say
  z <- log(table$Evid.Ratio / wanted) / out$error
  expect_true(all(abs(z) < 4))
  expect_true(all(out$error < 0.3))
  expect_equal(table$Post.Prob, table$Evid.Ratio / (1 + table$Evid.Ratio))
  own <- vapply(of, function(a) conjugate(a)$posterior, numeric(2))
  expect_lt(max(abs(table$Estimate + at - own[1, ]) / own[2, ]), 0.04)
  expect_equal(table$Est.Error, own[2, ], tolerance = 0.03)
  expect_equal(
    c(table$CI.Lower[[1]], table$CI.Upper[[1]]),
    quantile(as.matrix(fit)[, "x"], c(0.025, 0.975), names = FALSE)
  )
  # the prior density without the shift of the intercept is another
  expect_gt(abs(log(wanted[[2]] / exact_ratio(c(0, 1, 0, 0)))), 1)
})

test_that("the density at a point is right where posteriors are not normal", {
  sample <- list(share = rep(1 / 4000, 4000), is_weighted = FALSE, n_chain = 4)
  shapes <- list(
    list(r = function(n) rnorm(n), d = dnorm, at = c(-6, -3, 0, 1)),
    list(r = function(n) rgamma(n, 20), d = function(x) dgamma(x, 20),
      at = c(10, 15, 20, 32)),
    list(r = function(n) rt(n, 6), d = function(x) dt(x, 6), at = c(-3, 0, 1))
  )
  withr::with_seed(1, for (shape in shapes) {
    runs <- replicate(20, {
      psi <- shape$r(4000)
      vapply(shape$at, function(at) {
        found <- local_density(psi, at, sample)
        c(found$log - log(shape$d(at)), found$error)
      }, numeric(2))
    })
    off <- apply(runs[1, , ], 1, mean)
    spread <- apply(runs[1, , ], 1, sd)
    said <- apply(runs[2, , ], 1, mean)
    # errors are told, within those of a standard deviation of 20
    expect_true(all(abs(log(spread / said)) < 0.7))
    expect_true(all(abs(off) < pmax(0.2, 4 * spread / sqrt(20))))
    # near the middle the bias is small
    near <- which.max(shape$d(shape$at))
    expect_lt(abs(off[[near]]), 0.03)
  })
})

test_that("draws of a decaying step size count as much as their weights", {
  # of a normal proposal, weighted to another normal
  psi <- withr::with_seed(1, rnorm(20000, 0, 1.5))
  share <- dnorm(psi, 0.5) / dnorm(psi, 0, 1.5)
  sample <- list(share = share / sum(share), is_weighted = TRUE, n_chain = 1)
  found <- local_density(psi, 0, sample)
  expect_lt(abs(found$log - dnorm(0, 0.5, log = TRUE)), 4 * found$error)
  expect_lt(found$error, 0.05)
  side <- side_evidence(psi, sample)
  expect_equal(side$ratio, pnorm(0.5) / pnorm(-0.5), tolerance = 0.05)

  model <- model_glm(cbind(x = c(1, -1, 2)), c(1, 0, 1), family = "bernoulli")
  fit <- sg_sample(
    model, kernel_sgld(0.05), schedule = schedule_decay(), iter = 400, seed = 1
  )
  out <- hypothesis(fit, c("x > 0", "x = 1"))
  w <- as.numeric(weights(as_draws(fit)))
  x <- as.matrix(fit)[, "x"]
  w <- w / sum(w)
  expect_gt(diff(range(w)), 0)
  expect_equal(out$hypothesis$Estimate, sum(w * x) - 0:1)
  expect_equal(
    out$hypothesis$Evid.Ratio[[1]], sum(w[x > 0]) / sum(w[x < 0])
  )
  expect_equal(out$weights, w)
  ends <- summary(fit, probs = c(0.05, 0.95))$table[c("q5", "q95")]
  expect_equal(
    unlist(out$hypothesis[1, c("CI.Lower", "CI.Upper")]),
    unlist(ends), ignore_attr = TRUE
  )
})

test_that("one-sided hypotheses have the odds of their draws", {
  fit <- known()$fit
  draws <- as.matrix(fit)
  out <- hypothesis(
    fit,
    c(low = "x < 0.25", "exp(z) > 1", "x > -99", "x < -99", "`x:z` > z"),
    alpha = 0.1
  )
  table <- out$hypothesis
  x <- draws[, "x"] - 0.25
  expect_equal(table$Evid.Ratio[[1]], sum(x < 0) / sum(x > 0))
  expect_equal(table$CI.Lower[[1]], quantile(x, 0.1, names = FALSE))
  expect_equal(table$CI.Upper[[1]], quantile(x, 0.9, names = FALSE))
  expect_equal(table$Estimate[[2]], mean(exp(draws[, "z"]) - 1))
  expect_equal(table$Est.Error[[2]], sd(exp(draws[, "z"])))
  expect_identical(table$Evid.Ratio[3:4], c(Inf, 0))
  expect_identical(table$Post.Prob[3:4], c(1, 0))
  expect_identical(table$Star[3:4], c("*", ""))
  # of a probability of 0.92
  text <- paste("x <", format(quantile(draws[, "x"], 0.92), digits = 15))
  star <- function(alpha) hypothesis(fit, text, alpha = alpha)$hypothesis$Star
  expect_identical(c(star(0.1), star(0.05)), c("*", ""))
  expect_identical(table$Hypothesis[[1]], "low")
  expect_identical(table$Hypothesis[[2]], "(exp(z))-(1) > 0")
  expect_equal(out$samples$H5, unname(draws[, "x:z"] - draws[, "z"]))
  shown <- capture.output(print(out))
  expect_match(shown, "all 20,000 draws are on that side", all = FALSE)
  expect_match(shown, "below 1 / 20,000", all = FALSE)
  # the closed form of the odds, and of their error
  p <- pnorm(0.25, conjugate(c(0, 1, 0, 0))$posterior[[1]],
    conjugate(c(0, 1, 0, 0))$posterior[[2]])
  expect_lt(
    abs(log(table$Evid.Ratio[[1]] / (p / (1 - p)))), 4 * out$error[[1]]
  )
  expect_equal(
    out$error[[1]], 1 / sqrt(20000 * p * (1 - p)), tolerance = 0.2
  )
  # of equality, where 0 is on either side of the interval
  text <- paste("x =", c(-9, 9, format(median(draws[, "x"]), digits = 15)))
  expect_identical(hypothesis(fit, text)$hypothesis$Star, c("*", "*", ""))
  # of the more probable side it is the same
  up <- hypothesis(fit, "x > 0.25")
  expect_equal(up$hypothesis$Evid.Ratio, 1 / table$Evid.Ratio[[1]])
  expect_equal(up$error, out$error[[1]], tolerance = 1e-3)
  robust <- hypothesis(fit, "x > 0", robust = TRUE)$hypothesis
  expect_equal(robust$Estimate, median(draws[, "x"]))
  expect_equal(robust$Est.Error, mad(draws[, "x"]))
})

test_that("names need not be names of R", {
  variables <- c(
    "(Intercept)", "x", "x:z", "I(x^2)", "log(x)", "b:(Intercept)",
    "I(x > 2)TRUE", "sd_g__Intercept", "1|2"
  )
  draws <- matrix(seq_along(variables), 3, 9, byrow = TRUE)
  colnames(draws) <- variables
  value <- function(text) {
    hypothesis(draws, text)$samples$H1[[1]]
  }
  expect_identical(value("x:z = 0"), 3)
  expect_identical(value("x + x:z + I(x^2) = 0"), 9)
  expect_identical(value("log(x) + exp(0 * x) > 0"), 6)
  expect_identical(value("exp(Intercept) - `(Intercept)` = 1"), exp(1) - 2)
  expect_identical(value("b:Intercept = (Intercept)"), 5)
  expect_identical(value("I(x > 2)TRUE < 1"), 6)
  expect_identical(value("b_x = sd_g__Intercept^2"), -62)
  expect_identical(value("1|2 - 3 = pi"), 6 - pi)
  wrong <- function(text, message) {
    expect_error(hypothesis(draws, text), message, class = "tall_error_input")
  }
  wrong("q = 0", "is none")
  wrong("x:q = 0", "x:q")
  wrong("x == 0", "two sides")
  wrong("x", "two sides")
  wrong("x = ", "two sides")
  wrong("x = )", "what R can read")
  wrong("1 = 2", "about a parameter")
  wrong("log(x - 9) = 0", "finite")
  wrong("sum(x) = 0", "for each draw")
  wrong("stop(x) = 0", "failed")
  wrong(1, "strings")
  expect_error(hypothesis("a", "x = 0"), class = "tall_error_input")
})

test_that("a ratio that there is not says why", {
  d <- withr::with_seed(1, {
    data.frame(x = rnorm(100), y = rpois(100, 2), g = rep(1:10, 10))
  })
  d$o <- ordered(pmin(d$y, 2))
  why <- function(fit, text) {
    out <- hypothesis(fit, text)
    expect_true(all(is.na(out$hypothesis$Evid.Ratio)))
    expect_match(capture.output(print(out)), "No ratio of", all = FALSE)
    out$reason
  }
  expect_match(why(known()$fit, "x^2 = 0"), "linear")
  expect_match(why(known()$fit, "x = x"), "depend")
  flat <- tall_glm(y ~ x, d, poisson(), prior = NULL, iter = 200, seed = 1)
  expect_match(why(flat, "x = 0"), "not normal but flat")
  # what is of x alone is none of the intercept's
  some <- tall_glm(
    y ~ x, d, poisson(), prior_intercept = NULL, iter = 200, seed = 1
  )
  expect_match(why(some, "Intercept = 0"), "flat")
  expect_true(is.finite(hypothesis(some, "x = 0")$hypothesis$Evid.Ratio))
  groups <- tall_glmer(y ~ x + (1 | g), d, iter = 200, seed = 1)
  expect_match(why(groups, "sigma = 1"), "exponential")
  expect_identical(
    hypothesis(groups, "Intercept > 1", class = "sd", group = "g")$samples$H1,
    unname(as.matrix(groups)[, "sd_g__Intercept"]) - 1
  )
  classes <- tall_polr(o ~ x, d, iter = 200, seed = 1)
  expect_match(why(classes, "0|1 = 0"), "Dirichlet")
  expect_error(
    hypothesis(groups, "x = 0", scope = "coef"), class = "tall_error_input"
  )
  expect_error(hypothesis(groups, "x = 0", class = "cor"), "cor_")
})

test_that("centred intercepts of classes and of two formulas are told", {
  d <- withr::with_seed(1, data.frame(x = rnorm(80, 2)))
  d$k <- factor(rep(c("a", "b", "c", "c"), 20))
  d$y <- d$x + withr::with_seed(2, rnorm(80))
  of_prior <- function(fit, form) {
    normal_priors(fit)(c("(constant)" = 0, form))
  }
  x <- mean(d$x)
  fit <- tall_multinom(
    k ~ x, d, prior = prior_normal(0, 2), prior_intercept = prior_normal(1, 3),
    iter = 200, seed = 1
  )
  expect_equal(of_prior(fit, c("c:(Intercept)" = 1)), c(1, sqrt(9 + 4 * x^2)))
  expect_equal(
    of_prior(fit, c("c:(Intercept)" = 1, "c:x" = x, "b:x" = 1)),
    c(1, sqrt(9 + 4))
  )
  two <- tall_glm(
    list(y ~ 1, sigma ~ x), data = d, prior = prior_normal(0, 2),
    prior_intercept = prior_normal(1, 3), iter = 200, seed = 1
  )
  expect_equal(
    of_prior(two, c("sigma_(Intercept)" = 1, sigma_x = x))[[2]],
    two$prior$scale[[2]]
  )
})

test_that("draws and pictures of hypotheses are there", {
  fit <- known()$fit
  out <- hypothesis(fit, "x > 0")
  of_draws <- hypothesis(as_draws_df(fit), "x > 0")
  expect_equal(of_draws$hypothesis, out$hypothesis)
  expect_equal(
    hypothesis(as.data.frame(fit), c("x > 0", "x = 0"))$reason[[2]],
    "the priors of draws alone are not known"
  )
  skip_if_not_installed("bayesplot")
  expect_s3_class(plot(out), "ggplot")
})

options(before)
