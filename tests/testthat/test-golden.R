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
  expect_setequal(first(names(golden_models()), ", "), exported("^model_"))
})

for (family in names(golden_cases())) {
  test_that(paste("golden draws:", family), {
    path <- file.path(golden_folder, "golden", paste0(family, ".rds"))
    golden <- readRDS(path)
    is_here <- identical(golden$platform, golden_platform())
    cases <- golden_cases()[[family]]
    expect_setequal(names(golden$draws), names(cases))
    for (label in intersect(names(golden$draws), names(cases))) {
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
