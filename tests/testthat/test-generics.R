# Generics of other packages that the package exports.

handed_on <- list(
  rstantools = c(
    "posterior_linpred",
    "posterior_epred",
    "posterior_predict",
    "predictive_error",
    "predictive_interval",
    "posterior_interval",
    "log_lik",
    "bayes_R2",
    "prior_summary"
  ),
  loo = c("loo", "waic", "loo_compare"),
  bayesplot = "pp_check"
)

test_that("generics dispatch as their home packages have them", {
  for (package in names(handed_on)) {
    skip_if_not_installed(package)
    for (name in handed_on[[package]]) {
      ours <- getExportedValue("tallbayes", name)
      theirs <- getExportedValue(package, name)
      first <- names(formals(theirs))[[1]]
      expect_identical(names(formals(ours)), c(first, "..."), info = name)
      # a class that only their generic knows
      method <- function(...) list(name, list(...)[-1])
      registerS3method(name, "of_test", method, asNamespace(package))
      object <- structure(list(), class = "of_test")
      expect_identical(ours(object, 1, b = 2), list(name, list(1, b = 2)))
      same <- function(...) ours(...)
      expect_identical(same(object, b = 2), list(name, list(b = 2)))
      expect_identical(lapply(list(object), ours), list(list(name, list())))
    }
  }
})

test_that("what was written for an argument is seen", {
  skip_if_not_installed("loo")
  bernoulli_fit <- method_cases()$bernoulli$fit
  ours <- suppressWarnings(loo(bernoulli_fit))
  theirs <- suppressWarnings(loo::loo(bernoulli_fit))
  expect_identical(ours, theirs)
})

test_that("a package that is missing is asked for", {
  verb <- function(x, ...) tallbayes:::hand_on("notthere", "verb")
  expect_error(
    verb(1),
    "notthere.*`verb\\(\\)`",
    class = "rlib_error_package_not_found"
  )
})

test_that("generics of imported packages are exported as they are", {
  for (name in c("as_draws_df", "as_draws_array", "summarise_draws")) {
    expect_identical(
      getExportedValue("tallbayes", name),
      getExportedValue("posterior", name)
    )
  }
})

test_that("ngrps() is lme4's or ours, whichever is attached last", {
  skip_if_not_installed("lme4")
  d <- data.frame(g = rep(1:6, each = 10), y = sin(1:60))
  fit <- tall_glmer(y ~ 1 + (1 | g), d, iter = 200, seed = 1, refresh = 0)
  theirs <- suppressMessages(lme4::lmer(y ~ 1 + (1 | g), d))
  expect_identical(lme4::ngrps(fit), c(g = 6L))
  expect_equal(ngrps(theirs), c(g = 6))
  plain <- tall_glm(y ~ 1, d, seed = 1, refresh = 0)
  expect_error(ngrps(plain), class = "tall_error_unsupported")
  expect_error(lme4::ngrps(plain), class = "tall_error_unsupported")
  expect_error(ngrps(1), "not the number 1", class = "tall_error_unsupported")
  # the others are the same function in both
  for (name in c("fixef", "ranef", "VarCorr")) {
    expect_identical(
      getExportedValue("tallbayes", name),
      getExportedValue("lme4", name)
    )
  }
})
