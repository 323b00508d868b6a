# Functions of other packages: what has a meaning for a posterior is there,
# other things are refused with what does their work.

# of this file alone: others run in the same process
before <- options(tallbayes.refresh = 0)

test_that("simulate() has the draws of posterior_predict()", {
  skip_if_not_installed("rstantools")
  fit <- tall_glm(mpg ~ wt, mtcars, iter = 200, seed = 1)
  out <- simulate(fit, 3, seed = 2)
  draws <- rstantools::posterior_predict(fit, ndraws = 3, seed = 2)
  expect_identical(dim(out), c(32L, 3L))
  expect_named(out, c("sim_1", "sim_2", "sim_3"))
  expect_identical(rownames(out), rownames(mtcars))
  expect_identical(unname(t(as.matrix(out))), unname(draws))
  expect_identical(nrow(simulate(fit, newdata = mtcars[1:2, ])), 2L)
  expect_error(simulate(fit, 1e6), "`nsim`", class = "tall_error_input")
  classes <- tall_multinom(Species ~ 1, iris, iter = 200, seed = 1)
  out <- simulate(classes, 2, seed = 1)
  expect_identical(levels(out$sim_2), levels(iris$Species))
  gears <- tall_polr(ordered(gear) ~ wt, mtcars, iter = 200, seed = 1)
  expect_s3_class(simulate(gears, seed = 1)$sim_1, "ordered")
})

test_that("what a posterior does not have says what there is", {
  fit <- tall_glm(mpg ~ wt, mtcars, iter = 200, seed = 1)
  refused <- c(
    "add1",
    "alias",
    "anova",
    "cooks.distance",
    "dfbeta",
    "dfbetas",
    "drop1",
    "dummy.coef",
    "effects",
    "hatvalues",
    "influence",
    "model.tables",
    "profile",
    "proj",
    "rstandard",
    "rstudent",
    "se.contrast",
    "step",
    "TukeyHSD"
  )
  for (name in refused) {
    f <- getExportedValue("stats", name)
    e <- expect_error(f(fit), class = "tall_error_unsupported", info = name)
    expect_true("i" %in% names(e$body), info = name)
    if (name != "step") {
      expect_match(e$message, paste0("`", name, "()`"), fixed = TRUE)
      method <- getS3method(name, "tall_fit")
      expect_identical(formals(method), formals(f), info = name)
    }
  }
  skip_if_not_installed("loo")
  expect_error(
    loo::loo_moment_match(fit),
    "kfold",
    class = "tall_error_unsupported"
  )
})

test_that("arguments of other programs are refused with what does their work", {
  d <- transform(mtcars, g = rep(1:8, 4))
  say <- function(code, what) {
    expect_error(code, what, class = "tall_error_input")
  }
  say(tall_glmer(mpg ~ (1 | g), d, REML = FALSE), "posterior")
  say(tall_glmer(am ~ (1 | g), d, binomial(), nAGQ = 0), "quadrature")
  say(tall_multinom(gear ~ 1, d, Hess = TRUE), "vcov")
  say(tall_multinom(gear ~ 1, d, trace = FALSE), "refresh")
  say(tall_nn(mpg ~ wt, d, size = 3), "hidden")
  say(tall_glm(mpg ~ wt, d, burnin = 100), "warmup")
  fit <- tall_glmer(mpg ~ (1 | g), d, iter = 200, seed = 1)
  say(predict(fit, allow.new.levels = TRUE), "allow_new_levels")
  say(predict(fit, nsamples = 10), "ndraws")
  say(predict(fit, summary = FALSE), "posterior_epred")
  say(generics::tidy(fit, effects = "ran_vals"), "ranef")
  say(update(fit, REML = TRUE), "posterior")
})

options(before)
