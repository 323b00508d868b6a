# The law of `...`: a method of a fit uses an argument, or refuses it in words
# that name it. It goes through every method that is registered.

fit_classes <- c(
  "tall_fit", "tall_glm", "tall_nn", "tall_factorize", "tall_ica",
  "tall_topics", "tall_mode", "tall_tune", "tall_summary", "tall_nn_summary",
  "summary.tall_factorize", "tall_topics_summary", "tall_prior_summary",
  "tall_bias_check", "tall_noise_tolerance", "summary.tall_tune"
)

# Those with `...`: generic, class and the function.
registered_methods <- function() {
  table <- getNamespaceInfo("tallbayes", "S3methods")
  table <- table[table[, 2] %in% fit_classes, , drop = FALSE]
  name <- ifelse(
    is.na(table[, 3]),
    paste(table[, 1], table[, 2], sep = "."),
    table[, 3]
  )
  methods <- lapply(name, get, envir = asNamespace("tallbayes"))
  has_dots <- vapply(methods, function(f) "..." %in% names(formals(f)), TRUE)
  Map(
    function(generic, class, f) list(generic = generic, class = class, f = f),
    table[has_dots, 1],
    table[has_dots, 2],
    methods[has_dots]
  )
}

# An object of each class.
objects_of_classes <- function() {
  data <- example_data(60)
  nn <- tall_nn(
    z ~ a,
    data,
    hidden = 2,
    train_iter = 20,
    iter = 40,
    chains = 1,
    seed = 1,
    refresh = 0
  )
  x <- withr::with_seed(1, matrix(stats::rpois(200, 1), 20))
  colnames(x) <- letters[1:10]
  # what they warn of does not matter here
  quiet <- function(code) suppressWarnings(suppressMessages(code))
  topics <- quiet(
    tall_topics(x, k = 2, train_iter = 20, iter = 20, seed = 1, refresh = 0)
  )
  ratings <- data.frame(
    user = rep(1:5, 6),
    item = rep(1:6, each = 5),
    rating = rep(1:3, 10)
  )
  factors <- quiet(tall_factorize(
    rating ~ user + item,
    ratings,
    rank = 1,
    iter = 20,
    chains = 1,
    seed = 1,
    refresh = 0
  ))
  glm <- quick_glm(y ~ a, data, iter = 20, chains = 1)
  plain <- quick_fit(iter = 40)
  model <- example_model()
  tuned <- quiet(sg_tune(
    model,
    kernel_sgld,
    list(step_size = c(1e-3, 1e-2)),
    budget = 2e4,
    seed = 1,
    refresh = 0
  ))
  list(
    tall_fit = plain,
    tall_glm = glm,
    tall_regression = glm,
    tall_nn = nn,
    tall_topics = topics,
    tall_factorize = factors,
    tall_mode = find_mode(model),
    tall_tune = tuned,
    tall_summary = quiet(summary(plain)),
    tall_nn_summary = summary(nn),
    tall_topics_summary = summary(topics),
    summary.tall_factorize = summary(factors),
    summary.tall_tune = summary(tuned),
    tall_prior_summary = prior_summary.tall_fit(glm),
    tall_noise_tolerance = noise_tolerance(quick_fit(
      model_glm(example_matrix(), example_data()$y),
      iter = 60
    ))
  )
}

test_that("every method of a fit uses or refuses what comes with `...`", {
  for (package in c("bayesplot", "loo", "rstantools", "coda", "ggplot2")) {
    skip_if_not_installed(package)
  }
  objects <- objects_of_classes()
  # of the run itself, not called by users
  inside <- c(
    "finish_fit",
    "rebuild_model",
    "design_of",
    "model_design",
    "predictor",
    "predicted_names",
    "predictor_moments",
    "join_draws",
    "log_density",
    "read_response",
    "held_out_monitor"
  )
  # refused as a whole
  inside <- c(inside, "loo_compare")
  # called by emmeans, insight, parameters and marginaleffects with all that
  # these were called with
  others <- c(
    "emm_basis",
    "recover_data",
    "find_parameters",
    "get_parameters",
    "get_data",
    "model_info",
    "model_parameters",
    "get_coef",
    "get_predict",
    "get_vcov",
    "get_refmodel",
    "get_priors",
    "find_algorithm"
  )
  # handed on to bayestestR, which does not look at it
  others <- c(others, described_verbs, "rope_range", "bayesfactor_parameters")
  inside <- c(inside, others)
  methods <- Filter(
    function(m) !m$generic %in% inside && m$class %in% names(objects),
    registered_methods()
  )
  expect_gt(length(methods), 110)
  needed <- list(
    predict.tall_fit = list(fun = function(theta, newdata) 0),
    predict.tall_topics = list(newdata = matrix(1, 1, 10)),
    extractAIC.tall_fit = list(scale = 0),
    update.tall_regression = list(formula. = . ~ .)
  )
  for (m in methods) {
    label <- paste(m$generic, m$class, sep = ".")
    object <- objects[[m$class]]
    method <- m$f
    # by symbols: a condition would show what it was called with
    call <- as.call(c(
      list(quote(method), quote(object)),
      needed[[label]],
      list(no_such_argument = 1)
    ))
    error <- tryCatch(utils::capture.output(eval(call)), error = identity)
    expect(
      inherits(error, "tall_error_unsupported") ||
        (inherits(error, "tall_error_input") &&
          grepl("no_such_argument", conditionMessage(error))),
      paste0(
        label,
        if (inherits(error, "error")) {
          paste0(" failed with: ", conditionMessage(error))
        } else {
          " does not refuse an unknown argument."
        }
      )
    )
  }
})

test_that("arguments in `...` may have the names of the check's own", {
  expect_error(
    coef(quick_fit(), call = 3),
    "`call` is not used",
    class = "tall_error_input"
  )
})

test_that("arguments that other packages hand on are let through", {
  skip_if_not_installed("rstantools")
  fit <- quick_glm(iter = 20, chains = 1)
  new <- example_data(5)
  predictions <- list(
    stats::predict,
    rstantools::posterior_epred,
    rstantools::posterior_linpred,
    rstantools::log_lik,
    rstantools::predictive_interval
  )
  for (f in predictions) {
    plain <- f(fit, newdata = new)
    for (nothing in list(NULL, NA)) {
      # the seed is of predictive_interval() alone
      if (!identical(f, rstantools::predictive_interval)) {
        expect_identical(f(fit, newdata = new, re_formula = nothing), plain)
        expect_identical(f(fit, newdata = new, re.form = nothing), plain)
      }
    }
    expect_error(
      f(fit, newdata = new, re_formula = ~1),
      class = "tall_error_input"
    )
  }
  expect_snapshot(
    rstantools::posterior_epred(fit, re_formula = ~1),
    error = TRUE
  )
  # stats' as.formula() and step(), car's linearHypothesis()
  expect_identical(
    stats::as.formula(fit),
    formula(fit),
    ignore_formula_env = TRUE
  )
  expect_identical(nobs(fit, use.fallback = TRUE), nobs(fit))
  expect_identical(vcov(fit, complete = FALSE), vcov(fit))
  # data.frame() hands on stringsAsFactors
  expect_identical(dim(data.frame(fit)), c(10L, 3L))
})

# Packages that are not suggested: by hand where they are there.
from <- function(package, name) {
  skip_if_not_installed(package)
  getExportedValue(package, name)
}

test_that("tidybayes takes a fit", {
  skip_if_not_installed("rstantools")
  fit <- quick_glm(iter = 40, chains = 2)
  new <- example_data(3)
  expect_identical(nrow(from("tidybayes", "add_epred_draws")(new, fit)), 120L)
  some <- from("tidybayes", "add_linpred_draws")(new, fit, ndraws = 5)
  expect_identical(nrow(some), 15L)
  some <- from(
    "tidybayes",
    "add_predicted_draws"
  )(new, fit, ndraws = 5, seed = 1)
  expect_identical(nrow(some), 15L)
})

test_that("what modelsummary hands on is let through", {
  fit <- quick_glm(iter = 40, chains = 2)
  expect_identical(tidy(fit, vcov = NULL, coef_rename = TRUE), tidy(fit))
  expect_identical(glance(fit, vcov_type = NULL, gof_map = NULL), glance(fit))
  expect_error(tidy(fit, vcov = "HC1"), class = "tall_error_input")
  skip_if_not_installed("broom")
  table <- from("modelsummary", "modelsummary")(fit, output = "data.frame")
  expect_true(all(c("estimates", "gof") %in% table$part))
  expect_true(all(c("(Intercept)", "a", "b") %in% table$term))
})
