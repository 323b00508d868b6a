# A sparse design has the posterior of the dense one. Stores are held to it in
# test-conformance-store.R; here a design comes from the package Matrix, with
# zeros, empty rows and empty columns.

sparse_design <- function(n = 300, seed = 1) {
  withr::local_seed(seed)
  data <- data.frame(
    z = stats::rnorm(n, 5),
    g = factor(sample(letters[1:8], n, TRUE)),
    h = factor(sample(5, n, TRUE))
  )
  x <- Matrix::sparse.model.matrix(~ z + g + h, data)
  list(
    data = data,
    sparse = x,
    dense = as.matrix(x),
    binary = stats::rbinom(n, 1, stats::plogis(data$z - 5)),
    number = data$z + stats::rnorm(n),
    weights = stats::runif(n, 0.5, 2),
    offset = stats::rnorm(n) / 5
  )
}

pair_of <- function(design, family, ...) {
  y <- if (identical(family, "gaussian")) design$number else design$binary
  lapply(design[c("sparse", "dense")], function(x) {
    model_glm(
      x,
      y,
      family,
      prior_normal(0, 2.5, autoscale = TRUE),
      weights = design$weights,
      offset = design$offset,
      ...
    )
  })
}

families <- c("gaussian", "poisson", "bernoulli")

test_that("priors, modes and Hessians are those of the dense design", {
  design <- sparse_design()
  for (family in families) {
    models <- pair_of(design, family)
    expect_equal(models$sparse$prior, models$dense$prior, tolerance = 1e-12)
    modes <- lapply(models, find_mode)
    expect_equal(modes$sparse$estimate, modes$dense$estimate, tolerance = 1e-8)
    expect_equal(modes$sparse$hessian, modes$dense$hessian, tolerance = 1e-8)
    expect_identical(modes$sparse$method, modes$dense$method)
  }
})

test_that("weights and Lipschitz constants are those of the dense design", {
  design <- sparse_design()
  ask <- function(model, type) {
    at <- rep(0.1, model$n_dim)
    tryCatch(
      subsampling_weights(model, at, type),
      tall_error_unsupported = function(e) "unsupported"
    )
  }
  for (family in families) {
    models <- pair_of(design, family)
    for (type in setdiff(weight_types, "uniform")) {
      expect_equal(
        ask(models$sparse, type),
        ask(models$dense, type),
        tolerance = 1e-9
      )
    }
  }
  models <- pair_of(design, "bernoulli")
  expect_equal(
    lipschitz(models$sparse),
    lipschitz(models$dense),
    tolerance = 1e-12
  )
})

test_that("Newton, L-BFGS and the diagonal agree", {
  design <- sparse_design()
  models <- pair_of(design, "gaussian")
  mode <- find_mode(models$sparse)
  again <- find_mode(models$sparse, "lbfgs")
  expect_equal(again$estimate, mode$estimate, tolerance = 1e-3)
  for (model in models) {
    expect_equal(
      curvature_diagonal(model, mode$estimate),
      unname(diag(curvature(model, mode$estimate)$hessian)),
      tolerance = 1e-10
    )
  }
})

# In turns: a third of all, with every pair of members.
test_that("every kernel x estimator x scheme draws what it draws dense", {
  design <- sparse_design(60)
  models <- pair_of(design, "bernoulli")
  at <- as.double(find_mode(models$dense)$estimate)
  uneven <- rep(1:3, 20)
  schemes <- list(
    subsample_uniform(7),
    subsample_uniform(7, replace = FALSE),
    subsample_weighted(7, uneven),
    subsample_weighted(7, "leverage"),
    subsample_optimal(7),
    subsample_adaptive(5, uneven, min_size = 7),
    NULL
  )
  run <- function(model, kernel, gradient, scheme) {
    tryCatch(
      unclass(suppressWarnings(sg_sample(
        model,
        kernel$make(0.01),
        gradient$make(at),
        scheme,
        iter = 12,
        warmup = 2,
        chains = 1,
        seed = 1,
        init = at,
        refresh = 0
      ))$draws),
      tall_error_unsupported = function(e) "unsupported"
    )
  }
  n_run <- 0
  key <- function(e) paste(e$name, e$variant, e$integrator)
  kernels <- conformance_kernels()
  kernels <- kernels[!duplicated(vapply(kernels, key, ""))]
  gradients <- conformance_gradients()
  all <- expand.grid(
    kernel = seq_along(kernels),
    gradient = seq_along(gradients),
    scheme = seq_along(schemes)
  )
  # all rows leave nothing to a scheme
  is_full <- vapply(gradients, function(e) !e$uses_rows, TRUE)[all$gradient]
  is_alone <- is_full & all$scheme == length(schemes)
  all <- all[rowSums(all) %% 3 == 0 | is_alone, ]
  for (k in seq_len(nrow(all))) {
    kernel <- kernels[[all$kernel[[k]]]]
    gradient <- gradients[[all$gradient[[k]]]]
    scheme <- schemes[[all$scheme[[k]]]]
    found <- lapply(models, run, kernel, gradient, scheme)
    expect_equal(found$sparse, found$dense, tolerance = 1e-8)
    n_run <- n_run + is.numeric(found$sparse)
  }
  expect_gt(n_run, 150)
})

expect_same_moments <- function(fits) {
  sd <- apply(as.matrix(fits$dense), 2, stats::sd)
  gap <- colMeans(as.matrix(fits$sparse)) - colMeans(as.matrix(fits$dense))
  expect_lt(max(abs(gap / sd)), 0.15)
  ratio <- apply(as.matrix(fits$sparse), 2, stats::sd) / sd
  expect_lt(max(abs(log(ratio))), 0.1)
}

test_that("the recipe is exact from a few rows, as with dense ones", {
  skip_on_cran()
  design <- sparse_design(4000)
  models <- pair_of(design, "bernoulli")
  fits <- lapply(models, sg_sample, seed = 1, refresh = 0)
  expect_identical(fits$sparse$kernel$name, fits$dense$kernel$name)
  expect_false(model_is_whitened(fits$sparse$model))
  expect_same_moments(fits)
})

test_that("where it is not, it samples behind a frame, with weighted rows", {
  skip_on_cran()
  local_way("order")
  design <- sparse_design(4000)
  fits <- lapply(pair_of(design, "bernoulli"), sg_sample, seed = 1, refresh = 0)
  expect_true(model_is_whitened(fits$sparse$model))
  expect_false(model_info(fits$sparse$model)$has_whiten)
  expect_true(model_info(fits$dense$model)$has_whiten)
  expect_identical(fits$sparse$subsample$name, "weighted")
  expect_same_moments(fits)
})

test_that("behind a frame weights and densities are those of rewritten rows", {
  models <- pair_of(sparse_design(), "bernoulli")
  mode <- find_mode(models$dense)
  white <- lapply(models, whiten_model, mode, in_place = FALSE)
  expect_false(model_info(white$sparse)$has_whiten)
  expect_true(model_info(white$dense)$has_whiten)
  origin <- numeric(length(mode$estimate))
  for (type in c("robust", "leverage", "cubic")) {
    found <- lapply(white, model_weights, type, origin, NULL, 1)
    expect_equal(found$sparse, found$dense, tolerance = 1e-8)
  }
  points <- matrix(seq(-1, 1, len = 5 * length(origin)), length(origin))
  found <- lapply(white, density_at, points)
  expect_equal(
    found$sparse - found$sparse[[1]],
    found$dense - found$dense[[1]],
    tolerance = 1e-9
  )
  expect_equal(
    model_evaluate(white$sparse, points)$gradient,
    model_evaluate(white$dense, points)$gradient,
    tolerance = 1e-8
  )
})

test_that("a Gaussian response is drawn from sums over sparse rows", {
  design <- sparse_design()
  models <- pair_of(design, "gaussian")
  fits <- lapply(models, sg_sample, iter = 50, seed = 1, refresh = 0)
  expect_equal(
    unclass(fits$sparse$draws),
    unclass(fits$dense$draws),
    tolerance = 1e-6
  )
})

test_that("what Matrix calls sparse is taken, whatever its class", {
  withr::local_seed(3)
  x <- Matrix::rsparsematrix(12, 12, 0.3)
  square <- list(
    dgC = x,
    dgT = methods::as(x, "TsparseMatrix"),
    dgR = methods::as(x, "RsparseMatrix"),
    lgC = x != 0,
    ngC = methods::as(x != 0, "nMatrix"),
    dsC = Matrix::forceSymmetric(x),
    dtC = Matrix::triu(x),
    ddi = Matrix::Diagonal(12),
    ddi_values = Matrix::Diagonal(x = 1:12),
    permutation = methods::as(sample(12), "pMatrix"),
    zeros = Matrix::Matrix(0, 12, 12, sparse = TRUE)
  )
  y <- stats::rbinom(12, 1, 0.5)
  for (label in names(square)) {
    expect_true(is_sparse(square[[label]]), label = label)
    sparse <- model_glm(square[[label]], y)
    dense <- model_glm(1 * as.matrix(square[[label]]), y)
    theta <- seq(-1, 1, len = 12)
    expect_equal(
      model_evaluate(sparse, theta),
      model_evaluate(dense, theta),
      tolerance = 1e-12,
      label = label
    )
  }
  # places named twice count twice
  twice <- Matrix::sparseMatrix(
    i = c(1, 1, 2), j = c(1, 1, 2), x = 1:3, repr = "T"
  )
  expect_equal(
    model_evaluate(model_glm(twice, 0:1), c(1, 1)),
    model_evaluate(model_glm(as.matrix(twice), 0:1), c(1, 1))
  )
})

test_that("one row, one column, empty rows: nothing is special", {
  one <- function(n, p, values) {
    Matrix::sparseMatrix(
      i = seq_along(values), j = rep(1, length(values)), x = values,
      dims = c(n, p)
    )
  }
  for (x in list(one(1, 1, 2), one(1, 3, 2), one(9, 1, 1:3), one(9, 2, 1:4))) {
    y <- rep_len(c(1, 0), nrow(x))
    models <- list(model_glm(x, y), model_glm(as.matrix(x), y))
    modes <- lapply(models, find_mode)
    expect_equal(modes[[1]]$estimate, modes[[2]]$estimate, tolerance = 1e-8)
    drawn <- lapply(models, function(model) {
      fit <- sg_sample(
        model,
        kernel_sgld(0.1),
        subsample = subsample_uniform(1),
        iter = 20,
        chains = 1,
        seed = 1,
        refresh = 0
      )
      unclass(fit$draws)
    })
    expect_equal(drawn[[1]], drawn[[2]], tolerance = 1e-10)
  }
})

test_that("memory is that of what is not zero", {
  n <- 20000
  x <- Matrix::sparseMatrix(i = seq_len(n), j = rep_len(1:50, n), x = 1)
  bytes <- model_info(model_glm(x, rep_len(0:1, n)))$memory
  # a number, its column and where the row begins; response and scalar
  expect_lt(bytes, n * (8 + 8 + 8 + 16) + 1000)
})

# ---- many columns ------------------------------------------------------------

wide_design <- function(n = 4000, n_col = 1100, seed = 4) {
  withr::local_seed(seed)
  g <- c(seq_len(n_col - 1), sample(n_col - 1, n - n_col + 1, TRUE))
  x <- Matrix::sparseMatrix(
    i = c(seq_len(n), seq_len(n)),
    j = c(rep(1, n), g + 1),
    x = 1,
    dimnames = list(NULL, c("(Intercept)", paste0("g", seq_len(n_col - 1))))
  )
  list(x = x, y = stats::rbinom(n, 1, 0.4), number = stats::rnorm(n) + g %% 3)
}

test_that("with many columns no Hessian is made, and the mode is the same", {
  skip_on_cran()
  design <- wide_design()
  model <- model_glm(design$x, design$y, prior = prior_normal(0, 1))
  expect_false(model_info(model)$has_curvature)
  mode <- find_mode(model)
  expect_identical(mode$method, "lbfgs")
  expect_true(mode$converged)
  expect_null(mode$hessian)
  dense <- model_glm(as.matrix(design$x), design$y, prior = prior_normal(0, 1))
  exact <- find_mode(dense)
  expect_equal(mode$estimate, exact$estimate, tolerance = 1e-3)
  expect_equal(mode$scale, 1 / sqrt(-diag(exact$hessian)), tolerance = 1e-3)
  expect_snapshot(find_mode(model, "newton"), error = TRUE)
  expect_snapshot(subsampling_weights(model, mode), error = TRUE)
  white <- whiten_model(model, mode, in_place = TRUE)
  expect_true(white$whitening$is_diagonal)
  expect_true(model_info(white)$is_framed)
  fit <- sg_sample(
    model,
    kernel_sgbd(0.1),
    gradient_cv(mode),
    iter = 20,
    chains = 2,
    variables = "g7",
    seed = 1,
    refresh = 0
  )
  expect_true(all(is.finite(as.matrix(fit))))
})

test_that("with many columns sigma is sampled as it is of others", {
  skip_on_cran()
  design <- wide_design()
  prior <- prior_normal(0, 1)
  model <- model_glm(design$x, design$number, "gaussian", prior)
  expect_false(has_sums(model))
  dense <- model_glm(as.matrix(design$x), design$number, "gaussian", prior)
  expect_equal(
    find_mode(model)$estimate,
    find_mode(dense)$estimate,
    tolerance = 1e-3
  )
})

test_that("order 2 and kernel_smh() go to 1,000 columns and an intercept", {
  skip_on_cran()
  design <- wide_design(3000, 1001)
  model <- model_glm(design$x, design$y, prior = prior_normal(0, 1))
  mode <- find_mode(model)
  expect_identical(mode$method, "newton")
  run <- function(...) {
    sg_sample(
      model,
      ...,
      iter = 4,
      warmup = 2,
      chains = 1,
      seed = 1,
      init = mode$estimate,
      refresh = 0
    )
  }
  fit <- run(kernel_sgld(1e-3), gradient_cv(mode, order = 2))
  expect_true(all(is.finite(as.matrix(fit))))
  fit <- run(kernel_smh(), gradient_cv(mode, order = 2))
  expect_true(all(is.finite(as.matrix(fit))))
  x <- Matrix::sparseMatrix(i = 1:4001, j = 1:4001, x = 1)
  model <- model_glm(x, rep_len(0:1, 4001))
  expect_error(
    sg_sample(model, kernel_smh(), chains = 1, init = numeric(4001)),
    "does not fit",
    class = "tall_error_unsupported"
  )
})

# ---- bad input ---------------------------------------------------------------

test_that("numbers that are not finite are named by their place", {
  design <- sparse_design(20)
  for (bad in c(NA, NaN, Inf)) {
    x <- design$sparse
    x@x[[25]] <- bad
    at <- which(!is.finite(as.matrix(x)), arr.ind = TRUE)
    said <- expect_error(
      model_glm(x, design$binary),
      class = "tall_error_input"
    )
    expect_match(
      conditionMessage(said),
      paste0("row ", at[[1]], ", column ", at[[2]], " "),
      fixed = TRUE
    )
  }
  logical <- design$sparse != 0
  logical@x[[3]] <- NA
  expect_error(model_glm(logical, design$binary), class = "tall_error_input")
  expect_snapshot(
    {
      x <- design$sparse
      x@x[[25]] <- NA
      model_glm(x, design$binary)
    },
    error = TRUE
  )
})

test_that("more numbers than integers can count are refused", {
  design <- sparse_design(20)
  # numbers that R knows without having them
  design$sparse@x <- as.double(seq_len(2^31 + 5))
  expect_snapshot(model_glm(design$sparse, design$binary), error = TRUE)
  expect_error(
    model_glm(design$sparse, design$binary),
    class = "tall_error_input"
  )
})

test_that("empty matrices and other lengths are refused", {
  y <- c(0, 1, 1)
  empty <- Matrix::sparseMatrix(i = 1, j = 1, x = 1, dims = c(3, 2))
  for (x in list(empty[, 0], empty[0, ], empty[1:2, ])) {
    expect_error(model_glm(x, y), class = "tall_error_input")
  }
})

test_that("empty columns under a flat prior are named", {
  design <- sparse_design()
  x <- cbind(design$sparse, none = 0)
  model <- model_glm(x, design$binary, prior = NULL)
  said <- expect_error(find_mode(model), class = "tall_error_improper")
  expect_identical(said$columns, "none")
  expect_s3_class(
    find_mode(model_glm(x, design$binary, prior = prior_normal())),
    "tall_mode"
  )
  wide <- wide_design()
  x <- cbind(wide$x, none = 0)
  model <- model_glm(x, wide$number, "gaussian", prior = NULL, sigma = 1)
  said <- expect_error(
    suppressWarnings(find_mode(model)),
    class = "tall_error_improper"
  )
  expect_identical(said$columns, "none")
})

test_that("levels with one outcome alone are named, however many", {
  skip_on_cran()
  wide <- wide_design()
  wide$y[wide$x[, "g5"] == 1] <- 1
  flat <- model_glm(wide$x, wide$y, prior = NULL)
  said <- expect_error(
    suppressWarnings(find_mode(flat, max_iter = 500)),
    class = "tall_error_improper"
  )
  expect_true("g5" %in% said$columns)
})

test_that("models with other rows refuse a sparse matrix", {
  x <- sparse_design(20)$sparse
  for (make in list(model_gaussian, model_ica)) {
    said <- expect_error(make(x), class = "tall_error_input")
    expect_match(conditionMessage(said), "as.matrix()", fixed = TRUE)
  }
})

test_that("data are recognised whether sparse or not", {
  design <- sparse_design(20)
  made <- lapply(design[c("sparse", "dense")], model_glm, design$binary)
  expect_identical(made$sparse$fingerprint, made$dense$fingerprint)
})

test_that("a sparse matrix is kept in double precision alone", {
  design <- sparse_design(20)
  expect_error(
    model_glm(design$sparse, design$binary, storage = "float"),
    class = "tall_error_unsupported"
  )
})

test_that("columns that were altered are not read", {
  x <- methods::as(sparse_design(20)$sparse, "dgCMatrix")
  y <- rep_len(0:1, 20)
  broken <- list(
    rows = function(x) `slot<-`(x, "i", FALSE, value = x@i + 1000L),
    order = function(x) `slot<-`(x, "i", FALSE, value = rev(x@i)),
    starts = function(x) `slot<-`(x, "p", FALSE, value = rev(x@p)),
    short = function(x) `slot<-`(x, "i", FALSE, value = x@i[-1]),
    shape = function(x) `slot<-`(x, "Dim", FALSE, value = c(20L, 500L))
  )
  for (break_it in broken) {
    params <- list(columns = break_it(x), y = as.double(y))
    expect_error(
      .Call(
        ffi_model_create,
        "glm",
        params,
        list(type = "sparse", read_only = FALSE)
      ),
      class = "tall_error_corrupt"
    )
  }
})
