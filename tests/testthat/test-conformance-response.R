cases <- response_cases()

# entries in R of a table of the core
entries_of <- function(case) {
  entries <- lapply(response_entries(), function(make) make())
  Filter(
    function(e) e$table == case$name && case$link %in% names(e$links),
    entries
  )
}

# what databases compute of each, where it is more than products
sql_recipes_of <- function(case) {
  recipes <- lapply(entries_of(case), function(entry) {
    recipe <- entry$sql[[case$link]]
    if (is.function(recipe)) recipe(case$aux) else recipe
  })
  unique(Filter(function(recipe) !is.null(recipe$log_lik), recipes))
}

test_that("core and R have the same responses, and each is tried", {
  known <- .Call(ffi_response_registry)
  expect_setequal(unique(known$name), names(conformance_responses()))
  in_core <- paste(known$name, known$link)
  expect_identical(anyDuplicated(in_core), 0L)
  in_r <- unlist(lapply(response_entries(), function(make) {
    entry <- make()
    paste(entry$table, names(entry$links))
  }))
  expect_setequal(in_r, in_core)
  for (name in names(response_entries())) {
    entry <- find_response(name)
    expect_identical(entry$name, name)
    for (link in names(entry$links)) {
      family <- new_family(entry, link)
      expect_identical(family$object$link %||% link, link)
      if (is.function(entry$family)) {
        expect_s3_class(family$object, "family")
        expect_identical(family$object$link, link)
      }
    }
  }
})

for (label in names(cases)) {
  case <- cases[[label]]
  says <- function(law) paste0(label, ": ", law)

  test_that(says("the density sums to 1, mean and variance are its own"), {
    law_response_mass(case)
  })

  test_that(says("draws have that mean and variance"), {
    law_response_draws(case, entries_of(case))
  })

  test_that(says("impossible responses are found"), {
    law_response_support(case)
  })

  if (has_predictors(case)) {
    test_that(says("score and curvature are slopes in each predictor"), {
      law_response_predictors(case)
    })
    if (case$n_predictor == 2) {
      test_that(says("the deviance is what the log density falls short of"), {
        law_response_two_deviance(case)
      })
    }
    if (case$n_predictor == 2 && length(case$aux) > 0) {
      test_that(says("its auxiliary parameter has slopes, too"), {
        law_response_two_aux(case)
      })
    }
    next
  }

  test_that(says("score and curvature are slopes"), {
    law_response_slopes(case)
  })

  test_that(says("bounds are suprema over intervals"), {
    expect_true(case$has_bound || !case$has_third_bound)
    law_response_bounds(case)
    law_response_global(case)
  })

  test_that(says("the deviance is what the log density falls short of"), {
    law_response_deviance(case)
  })

  for (recipe in sql_recipes_of(case)) {
    test_that(says("what databases compute is what the core does"), {
      law_response_sql_support(case, recipe)
      law_response_sql(case, recipe, sql_in_r)
    })

    for (engine in sql_engines) {
      test_that(says(paste("the same by the arithmetic of", engine)), {
        con <- local_engine(engine)
        law_response_sql(case, recipe, sql_in(con))
      })
    }
  }

  if (length(case$aux) > 0) {
    test_that(says("its auxiliary parameters have slopes, too"), {
      law_response_aux(case)
    })
  }
}

test_that("what is no response, or no link of it, is refused", {
  expect_error(find_response("gauss"), class = "tall_error_unsupported")
  broken <- list(name = "binomial", link = "cauchit")
  expect_error(response_facts(broken), class = "tall_error_unsupported")
  x <- cbind(a = c(1, 2, 3))
  expect_refusals(
    "tall_error_input",
    model_glm(x, c(0, 1, 1), stats::binomial("cauchit")),
    model_glm(x, c(0, 1, 2), "categorical"),
    model_network(x, c(0, 1, 2), likelihood = "poisson")
  )
  # a place without a response, and predictors that it has not
  expect_error(
    .Call(ffi_response_mean, 99, 0, 1),
    class = "tall_error_corrupt"
  )
  expect_error(
    .Call(ffi_response_mean, 0, c(0, 1), 2),
    class = "tall_error_corrupt"
  )
  classes <- cases[["categorical, softmax"]]$place
  expect_error(
    .Call(ffi_response_variance, classes, c(0.5, 0.5), 1, NULL, NULL),
    class = "tall_error_corrupt"
  )
})
