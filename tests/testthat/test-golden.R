# The draws of every kernel, estimator, scheme, schedule and model for a seed,
# as they were when tests/fixtures/make-golden.R was last run: the same to the
# last digit on the same machine with the same BLAS, elsewhere within 1e-8
# standard deviations, or 1e-5 where a search for a mode comes before, which
# ends at a gradient that is small, not zero.

golden_folder <- test_path("..", "fixtures")
skip_if_not(
  file.exists(file.path(golden_folder, "golden", "kernels.rds")),
  "no golden draws"
)
sys.source(file.path(golden_folder, "golden-cases.R"), environment())
sys.source(file.path(golden_folder, "golden-verbs.R"), environment())

read_golden <- function(family) {
  readRDS(file.path(golden_folder, "golden", paste0(family, ".rds")))
}

# Was it made on such a machine as this? label: of a case, which may have been
# made alone; NULL: all of them.
made_here <- function(golden, label = NULL) {
  own <- golden$platforms[intersect(label, names(golden$platforms))]
  made <- c(own, list(golden$platform))
  identical(made[[1]], golden_platform())
}

expect_golden <- function(actual, expected, is_here, label, tolerance) {
  if (is.null(actual) || is.null(expected)) {
    return(invisible()) # needs a compiler
  }
  if (is_here || is.character(expected) || is.character(actual)) {
    same <- identical(actual, expected)
    expect(same, paste0(label, ": not the draws that it was"))
    return(invisible())
  }
  expect_identical(dim(actual), dim(expected), info = label)
  unit <- apply(expected, 3, stats::sd)
  # a variable that did not move: its own size
  unit <- ifelse(unit > 0, unit, pmax(abs(expected[1, 1, ]), 1))
  distance <- max(abs(sweep(actual - expected, 3, unit, `/`)))
  expect(
    isTRUE(distance < tolerance),
    paste0(label, ": off by ", format(distance, digits = 2), " sds")
  )
}

test_that("every member has golden draws", {
  exported <- function(prefix) {
    names <- grep(prefix, getNamespaceExports("tallbayes"), value = TRUE)
    sub(prefix, "", names)
  }
  first <- function(labels, sep) {
    unique(sub(paste0("(", sep, ").*"), "", labels))
  }
  cases <- golden_cases()
  expect_setequal(first(names(golden_kernels()), ", "), exported("^kernel_"))
  expect_setequal(names(golden_gradients()), exported("^gradient_"))
  expect_setequal(
    first(names(golden_subsamples()), ", "),
    exported("^subsample_")
  )
  expect_setequal(
    first(names(cases$schedules), " \\| "),
    exported("^schedule_")
  )
  # of the package performance, and no model
  expect_setequal(
    first(names(golden_models()), ", "),
    setdiff(exported("^model_"), "performance")
  )
})

for (family in names(golden_cases())) {
  test_that(paste("golden draws:", family), {
    golden <- read_golden(family)
    cases <- golden_cases()[[family]]
    expect_setequal(names(golden$draws), names(cases))
    for (label in intersect(names(golden$draws), names(cases))) {
      is_here <- made_here(golden, label)
      fit <- suppressMessages(suppressWarnings(cases[[label]]()))
      expect_golden(
        golden_draws(fit),
        golden$draws[[label]],
        is_here,
        paste(family, label),
        tolerance = if (family == "recipe") 1e-5 else 1e-8
      )
    }
  })
}

# ---- front ends and verbs ----------------------------------------------------

# Numbers of one verb: the same, or within the tolerance of the largest. Where a
# search for a mode comes before, as in all of these, that of recipes.
expect_verb <- function(actual, expected, is_here, label, tolerance = 1e-5) {
  if (is_here || is.character(expected) || is.character(actual)) {
    expect(
      identical(actual, expected),
      paste0(label, ": not what it was")
    )
    return(invisible())
  }
  expect(
    isTRUE(all.equal(actual, expected, tolerance = tolerance)),
    paste0(label, ": off by more than ", tolerance)
  )
}

# Fits whose chains go other ways after a rounding error: a step that is
# accepted here is not there. Of another processor nothing of them can be told
# by digits.
parting <- "nn, classes"

for (family in names(verb_cases())) {
  test_that(paste("golden verbs:", family), {
    skip_on_cran()
    golden <- read_golden(family)
    cases <- verb_cases()[[family]]
    expect_setequal(names(golden$draws), names(cases))
    kept <- intersect(names(golden$draws), names(cases))
    for (label in kept) {
      is_here <- made_here(golden, label)
      if (!is_here && label %in% parting) {
        next
      }
      fit <- suppressMessages(suppressWarnings(cases[[label]]()))
      expected <- golden$draws[[label]]
      if (is.null(fit) || is.null(expected)) {
        next # needs a package that is not here
      }
      actual <- verb_values(fit, verbs_of(family, label))
      expected <- expected[names(expected) != "loo" | "loo" %in% names(actual)]
      is_same <- is_here && !startsWith(label, "table")
      expect_setequal(names(actual), names(expected))
      for (verb in intersect(names(actual), names(expected))) {
        expect_verb(
          actual[[verb]],
          expected[[verb]],
          is_same,
          paste(family, label, verb, sep = " | ")
        )
      }
    }
  })
}

test_that("golden numbers are compared to the last digit", {
  here <- vapply(
    c(names(golden_cases()), names(verb_cases())),
    function(family) {
      made_here(read_golden(family))
    },
    TRUE
  )
  elsewhere <- names(here)[!here]
  skip_if(
    length(elsewhere) > 0,
    paste(
      "of another processor or BLAS, so compared within a tolerance (and not",
      "at all:", paste0(toString(parting), "):"),
      paste(elsewhere, collapse = ", ")
    )
  )
  expect_true(all(here))
})
