# Fits that an earlier version of the package saved (see make-saved.R in
# tests/fixtures) print, have a summary and predict what they did; sg_resume()
# goes on or says in a sentence why it cannot.

saved_folder <- test_path("..", "fixtures")
skip_if_not(
  file.exists(file.path(saved_folder, "saved", "glm.rds")),
  "no saved fits"
)
for (file in c("golden-cases.R", "golden-verbs.R", "saved-cases.R")) {
  sys.source(file.path(saved_folder, file), environment())
}

test_that("there is a saved fit of every class", {
  saved <- list.files(file.path(saved_folder, "saved"), "[.]rds$")
  expect_setequal(sub("[.]rds$", "", saved), names(saved_cases()))
  classes <- lapply(saved, function(file) {
    class(readRDS(file.path(saved_folder, "saved", file))$fit)
  })
  known <- c("tall_fit", names(class_shapes))
  expect_setequal(intersect(unlist(classes), known), known)
})

for (name in names(saved_cases())) {
  test_that(paste("a saved fit is read:", name), {
    one <- readRDS(file.path(saved_folder, "saved", paste0(name, ".rds")))
    fit <- one$fit
    shown <- capture.output(print(fit))
    expect_match(shown, "^(Draws|Kept): ", all = FALSE)
    shown <- suppressWarnings(capture.output(print(summary(fit))))
    expect_gt(length(shown), 5)
    actual <- saved_predictions(fit)
    expect_identical(names(actual), names(one$predicted))
    for (verb in names(actual)) {
      expect_equal(
        actual[[verb]],
        one$predicted[[verb]],
        tolerance = 1e-10,
        info = verb
      )
    }
    expect_gt(posterior::ndraws(posterior::as_draws_array(fit)), 10)
    more <- tryCatch(
      suppressMessages(suppressWarnings(sg_resume(fit, 5, refresh = 0))),
      tall_error = identity
    )
    if (inherits(more, "tall_error")) {
      expect_s3_class(more, c("tall_error_stale", "tall_error_corrupt"))
      expect_gt(nchar(conditionMessage(more)), 20)
    } else {
      expect_identical(
        posterior::niterations(more$draws),
        posterior::niterations(fit$draws) + 5L
      )
    }
  })
}

test_that("what a saved fit cannot do any more is said", {
  for (name in c("glm", "glmer", "polr")) {
    file <- file.path(saved_folder, "saved", paste0(name, ".rds"))
    fit <- readRDS(file)$fit
    expect_error(residuals(fit), "earlier version", class = "tall_error_stale")
    expect_error(deviance(fit), "earlier version", class = "tall_error_stale")
    expect_error(
      prior_summary(fit),
      "earlier version",
      class = "tall_error_stale"
    )
  }
})
