# A store only keeps rows: whatever its type, and whether its rows can be
# rewritten or must stay, models in it obey their laws and runs have the draws
# that they have with dense rows.

# One of each model that has a store and can have its rows kept as they are.
stored_entries <- function() {
  prior <- prior_normal(0, 2)
  list(
    "glm, 17 columns" = entry_glm("bernoulli", prior, n_data = 70, n_dim = 17),
    "glm, one column" = entry_glm("poisson", prior, shifted = TRUE, n_dim = 1),
    "glm, sampled sigma" = entry_sigma(prior_exponential(2)),
    ica = entry_ica(),
    network = entry_network("tanh", "gaussian")
  )
}

drawn_of <- function(model, gradient, at) {
  fit <- sg_sample(
    model,
    kernel_sgld(1e-4),
    gradient(at),
    subsample_uniform(11),
    iter = 40,
    warmup = 0,
    chains = 1,
    seed = 1,
    init = at,
    refresh = 0
  )
  unclass(fit$draws)
}

dense <- stored_entries()

# of models, in helper-conformance-model.R
laws <- list(
  gradients = law_gradient,
  Hessians = law_curvature,
  "sums over rows" = law_rows,
  "log likelihoods" = law_log_lik,
  "log likelihoods at many points" = law_log_lik_many,
  weights = law_weights,
  whitened = function(entry) law_whitened(entry, FALSE, rounding(type)),
  scaled = function(entry) law_whitened(entry, TRUE, rounding(type))
)

# Of rows that are written; those of the entries need none.
rounding <- function(type) {
  if (type == "float") 2^-24 else 0
}

for (type in registered("store")) {
  for (read_only in c(FALSE, TRUE)) {
    entries <- made_in(type, read_only, stored_entries)
    for (label in names(entries)) {
      entry <- entries[[label]]
      says <- function(law) {
        stays <- if (read_only) ", read-only"
        paste0(type, stays, ": ", label, ": ", law)
      }
      withr::local_seed(100)

      for (law in names(laws)) {
        test_that(says(law), {
          laws[[law]](entry)
        })
      }

      test_that(says("draws are those with dense rows"), {
        model <- dense[[label]]$model
        expect_identical(entry$model$fingerprint, model$fingerprint)
        at <- entry$point()
        for (gradient in list(function(at) gradient_simple(), gradient_cv)) {
          expect_equal(
            drawn_of(entry$model, gradient, at),
            drawn_of(model, gradient, at),
            tolerance = 1e-10
          )
        }
      })
    }
  }
}

test_that("a model that keeps other rows than it is given says so", {
  make <- function() entry_gaussian()$model
  for (type in registered("store")) {
    said <- expect_error(
      made_in(type, TRUE, make),
      class = "tall_error_unsupported"
    )
    expect_match(conditionMessage(said), "`model_gaussian()`", fixed = TRUE)
    expect_match(conditionMessage(said), "read-only", fixed = TRUE)
    expect_match(conditionMessage(said), type, fixed = TRUE)
  }
})

test_that("compiled code of users sees rows with their zeros alone", {
  make <- function() native_entries()
  said <- expect_error(
    made_in("sparse", FALSE, make),
    class = "tall_error_unsupported"
  )
  expect_match(conditionMessage(said), "`model_native()`", fixed = TRUE)
  expect_match(conditionMessage(said), "sparse", fixed = TRUE)
})
