# What a user of other packages writes, and what is printed.

refused <- function(code, text) {
  e <- expect_error(code, class = "tall_error")
  said <- gsub("[[:space:]]+", " ", conditionMessage(e))
  for (part in text) {
    expect_match(said, part, fixed = TRUE)
  }
}

test_that("terms of mgcv and brms are told what to write", {
  d <- mtcars
  refused(tall_glm(mpg ~ s(wt), data = d), "splines::ns(wt, df = 4)")
  refused(tall_glm(mpg ~ te(wt, hp, k = 3), data = d), "splines::ns(hp")
  refused(tall_nn(mpg ~ mgcv::s(wt), d), "smooth terms")
  refused(tall_glm(mpg ~ mo(gear), data = d), "factor(gear, ordered = FALSE)")
  refused(tall_glmer(mpg ~ wt + (1 | gr(cyl)), data = d), "(1 | cyl)")
  refused(tall_glm(am | trials(1) ~ wt, d, binomial()), "0 or 1")
  refused(
    tall_glm(am | trials(gear) ~ wt, d, binomial()),
    "cbind(am, gear - am)"
  )
  refused(tall_nn(mpg | cens(am) ~ wt, data = d), "`tall_glm()`")
  refused(tall_glm(survival::Surv(mpg, am) ~ wt, data = d), "offset(log")
  refused(tall_glm(Surv(mpg, am) ~ wt, data = d), "`tall_surv()`")
  refused(tall_glm(Surv(wt, mpg, am) ~ 1, data = d), "mpg - wt")
  refused(tall_glm(mvbind(mpg, am) ~ wt, data = d), "one model for each")
})

test_that("functions and responses of a user's own are no foreign terms", {
  s <- function(x) x^2
  expect_null(check_terms(mpg ~ s(wt)))
  expect_null(check_terms(am | vs ~ wt))
  expect_null(check_terms(mpg ~ poly(wt, 2) * hp))
})

test_that("it is said which rows are none", {
  d <- mtcars
  refused(tall_glm(mpg ~ wt, data = d, subset = wt > 100), "`subset` must")
  refused(tall_glm(mpg ~ wt, data = d[0, ]), "at least one row")
  d$wt <- NA_real_
  refused(tall_glm(mpg ~ wt, data = d), "32 rows lack a value")
})

test_that("arguments of other packages lead to ours", {
  refused(tall_nn(am ~ wt, mtcars, family = "binomial"), "response decides")
  refused(tall_polr(gear ~ wt, mtcars), c("1 to 5", "ordered(gear)"))
  expect_null(did_you_mean("foo", "freqpoly_grouped"))
  expect_match(did_you_mean("wgt", "weight"), "weight")
})

test_that("a summary is a table, and a fit is no model", {
  fit <- tall_glm(mpg ~ wt, data = mtcars, seed = 1, iter = 200, refresh = 0)
  found <- summary(fit)
  expect_identical(as.data.frame(found), found$table)
  expect_identical(found["wt", "mean"], found$table$mean[[2]])
  expect_identical(names(found[, "mean"]), fit$variables)
  expect_identical(found["digits"], list(digits = found$digits))
  shown <- capture.output(print(found))
  expect_false(any(grepl("sd_bias", shown)))
  expect_true(any(grepl("seed 1$", shown)))
  expect_true(any(grepl("1 pass over the data.", shown, fixed = TRUE)))
  refused(log_prob(fit, coef(fit)), "fit$model")
  refused(log_prob(fit$model, 1), c("3 values", "`log_sigma`"))
})

test_that("not all is everything", {
  expect_identical(rate_text(0.9999), ">0.99")
  expect_identical(rate_text(1), "1")
  expect_identical(rate_text(0.574), "0.57")
  expect_identical(share_text(0.996), "more than 99%")
  expect_identical(share_text(0.57), "57%")
})

test_that("a missing label of a group makes a prediction missing", {
  d <- data.frame(herd = rep(1:12, each = 5), x = sin(1:60))
  d$y <- d$x + cos(3 * 1:60)
  fit <- tall_glmer(
    y ~ x + (1 | herd), data = d, seed = 1, iter = 300, refresh = 0
  )
  new <- data.frame(x = c(0, 0, 1), herd = c(NA, 1, 99))
  every <- predict(fit, new, allow_new_levels = TRUE)
  expect_identical(unname(is.na(every)), c(TRUE, FALSE, FALSE))
  others <- predict(fit, new[2:3, ], allow_new_levels = TRUE)
  expect_equal(every[2:3], others)
  expect_identical(unname(predict(fit, new[1, ])), NA_real_)
  refused(predict(fit, new), "\"99\" of herd")
  table <- as.data.frame(VarCorr(fit))
  expect_named(table, c("grp", "var1", "var2", "vcov", "sdcor"))
  expect_equal(table$vcov[[1]], mean(as.matrix(fit)[, 3]^2))
  expect_identical(table$grp, c("herd", "Residual"))
})

test_that("a formula may have thousands of terms", {
  names <- sprintf("x%d", 1:5000)
  f <- stats::reformulate(names, "y")
  expect_identical(
    vapply(formula_terms(f[[3]]), as.character, ""),
    names
  )
  expect_null(check_terms(f))
  expect_error(
    check_terms(stats::reformulate(c(names, "(1 | g)"), "y")),
    class = "tall_error_unsupported"
  )
})

test_that("what bf() makes is the formula in it, or told what it is not", {
  bf <- function(formula, pforms = list(), class = "brmsformula") {
    structure(list(formula = formula, pforms = pforms), class = class)
  }
  data <- data.frame(y = rep(1:3, 20), x = 1:4, g = rep(1:6, each = 10))
  quick <- function(front, formula) {
    front(formula, data, poisson(), iter = 20, chains = 1, seed = 1)
  }
  wrapped <- bf(y ~ x)
  for (formula in list(wrapped, list(y ~ x))) {
    fit <- quick(tall_glm, formula)
    expect_identical(fit$draws, quick(tall_glm, y ~ x)$draws)
    expect_identical(formula(fit), y ~ x, ignore_formula_env = TRUE)
    expect_identical(stats::predict(fit, data), stats::predict(fit))
    expect_length(stats::coef(stats::update(fit, . ~ . + g)), 3)
  }
  fit <- quick(tall_glmer, bf(y ~ x + (1 | g)))
  expect_identical(fit$draws, quick(tall_glmer, y ~ x + (1 | g))$draws)
  own <- list(sigma = sigma ~ x)
  two <- tall_glm(bf(y ~ x, own), data, iter = 20, chains = 1, seed = 1)
  expect_identical(two$dpar$name, "sigma")
  refused(tall_glm(bf(y ~ x, own), data, poisson()), "`sigma`")
  refused(tall_glmer(bf(y ~ x + (1 | g), own), data), "`sigma`")
  refused(tall_gam(list(y ~ x, zi ~ x), data), c("`zi`", "hurdle"))
  refused(tall_nn(list(y ~ x, ~x), data), "other parameters")
  several <- bf(y ~ x, class = "mvbrmsformula")
  refused(tall_glm(several, data), "one model for each")
  curved <- bf(structure(y ~ x, nl = TRUE))
  refused(tall_glm(curved, data), "linear in the coefficients")
})
