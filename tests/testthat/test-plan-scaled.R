# Gaussian responses under priors with hyperparameters, from sums over the rows,
# wherever these lie.

shrunk_sizes <- function(n = 6000, seed = 3) {
  withr::with_seed(seed, {
    data <- data.frame(
      x = stats::rnorm(n),
      z = 1000 + 50 * stats::rexp(n),
      f = factor(sample(c("a", "b", "c"), n, TRUE, c(0.7, 0.29, 0.01))),
      w = stats::runif(n, 0.5, 2),
      o = stats::runif(n)
    )
    data$size <- 3 + 0.3 * data$x + data$o + stats::rnorm(n)
    data$x[c(5, n - 77)] <- NA
    data
  })
}

shrunk_fit <- function(data, prior = prior_ridge(), iter = 300, ...) {
  tall_glm(
    size ~ x + z + f + x:f + offset(o),
    data,
    stats::gaussian(),
    weights = w,
    prior = prior,
    iter = iter,
    warmup = 100,
    chains = 2,
    seed = 4,
    refresh = 0,
    ...
  )
}

shrinking <- list(
  ridge = prior_ridge(),
  horseshoe = prior_hs(),
  shares = prior_r2d2()
)

test_that("the mode from sums is that from rows", {
  data <- stats::na.omit(shrunk_sizes(800))
  x <- cbind(1, data$x, data$z, data$f == "b")
  for (sigma in list(NULL, 1.1)) {
    for (intercept in list(prior_normal(0, 5), prior_student(3, 0, 5))) {
      model <- model_glm(x, data$size, "gaussian", prior = prior_hs(),
        prior_intercept = intercept, sigma = sigma, weights = data$w,
        offset = data$o)
      sums <- sums_of_scaled(model, 1)
      ours <- scaled_mode_of_sums(model, sums)
      rows <- find_mode(model, refresh = 0)
      expect_equal(ours$estimate, rows$estimate, tolerance = 1e-5)
      expect_equal(ours$hessian, rows$hessian, tolerance = 1e-4)
      expect_identical(ours$given, rows$given)
      expect_identical(ours$passes, 0)
    }
  }
})

test_that("draws from sources are those of the same rows in memory", {
  skip_on_cran()
  data <- shrunk_sizes()
  for (sigma in list(NULL, 1)) {
    for (kind in names(shrinking)) {
      memory <- shrunk_fit(data, shrinking[[kind]], sigma = sigma)
      expect_identical(sum(memory$passes), 1)
      local({
        local_passes(1000, 512)
        fit <- shrunk_fit(stream_of(data, c(700, 13)), shrinking[[kind]],
          sigma = sigma)
        expect_false(is.null(fit$rows$source), label = kind)
        # the look and the sums
        expect_identical(sum(fit$passes), 2)
        expect_equal(
          unclass(fit$draws),
          unclass(memory$draws),
          tolerance = 1e-6,
          label = kind
        )
      })
    }
  }
})

test_that("no source, chunk or thread makes other draws", {
  skip_on_cran()
  data <- shrunk_sizes()
  local_passes(1000, 512)
  rows <- shrunk_fit(data)
  streamed <- shrunk_fit(stream_of(data, c(313, 1, 977)), cores = 2)
  expect_identical(streamed$draws, rows$draws)
  expect_near <- function(fit) {
    expect_equal(unclass(fit$draws), unclass(rows$draws), tolerance = 1e-6)
  }
  halves <- list(
    stream_of(data[1:2500, ], 700),
    stream_of(data[-(1:2500), ], 700)
  )
  expect_near(shrunk_fit(halves))
  skip_if_not_installed("nanoparquet")
  file <- withr::local_tempfile(fileext = ".parquet")
  nanoparquet::write_parquet(data, file)
  parquet <- shrunk_fit(tall_parquet(file))
  expect_identical(parquet$draws, rows$draws)
})

test_that("a database hands over sums", {
  data <- shrunk_sizes()
  data$f <- as.character(data$f)
  local_passes(1000, 512)
  rows <- shrunk_fit(data)
  for (engine in c("SQLite", "DuckDB")) {
    con <- if (engine == "SQLite") {
      local_sqlite()
    } else if (nzchar(Sys.getenv("TALLBAYES_DUCKDB_LIB"))) {
      local_duckdb()
    }
    if (is.null(con)) {
      next
    }
    fit <- shrunk_fit(table_of(con, data))
    expect_false(is.null(fit$rows$in_sql), label = engine)
    expect_equal(
      unclass(fit$draws),
      unclass(rows$draws),
      tolerance = 1e-5,
      label = engine
    )
    more <- sg_resume(fit, 50, refresh = 0)
    expect_equal(
      unclass(more$draws),
      unclass(shrunk_fit(data, iter = 350)$draws),
      tolerance = 1e-5,
      label = engine
    )
  }
})

test_that("a run on such sums goes on, also after it was saved", {
  data <- shrunk_sizes()
  local_passes(1000, 512)
  for (kind in c("ridge", "horseshoe")) {
    fit <- shrunk_fit(stream_of(data, 700), shrinking[[kind]], iter = 200)
    more <- sg_resume(unserialize(serialize(fit, NULL)), 100, refresh = 0)
    whole <- shrunk_fit(stream_of(data, 700), shrinking[[kind]])
    expect_identical(unclass(more$draws), unclass(whole$draws))
    # sums are kept
    expect_identical(sum(more$passes), sum(fit$passes))
  }
  fit <- shrunk_fit(data, prior_ridge(), iter = 200)
  more <- sg_resume(fit, 100, refresh = 0)
  expect_identical(unclass(more$draws), unclass(shrunk_fit(data)$draws))
})

test_that("what follows a fit on sums is as in memory", {
  data <- shrunk_sizes(2500)
  memory <- shrunk_fit(data)
  local_passes(1000, 512)
  fit <- shrunk_fit(stream_of(data, 700))
  new <- stats::na.omit(data)[1:20, ]
  expect_equal(
    predict(fit, new),
    predict(memory, new),
    tolerance = 1e-6
  )
  expect_equal(
    rstantools::posterior_linpred(fit, newdata = new),
    rstantools::posterior_linpred(memory, newdata = new),
    tolerance = 1e-6
  )
  expect_equal(
    rstantools::log_lik(fit, newdata = new),
    rstantools::log_lik(memory, newdata = new),
    tolerance = 1e-6
  )
  expect_match(utils::capture.output(summary(fit)), "^ridge_sd", all = FALSE)
  expect_equal(
    shrinkage(fit),
    shrinkage(memory),
    tolerance = 1e-6,
    ignore_attr = TRUE
  )
  expect_match(fit$plan, "^exact steps on sums over all rows")
})

test_that("columns that fit every response are told of", {
  data <- withr::with_seed(1, data.frame(x = stats::rnorm(40)))
  data$size <- 2 * data$x
  for (rows in list(data, stream_of(data, 7))) {
    expect_error(
      tall_glm(size ~ x, rows, stats::gaussian(), prior = prior_ridge(),
        refresh = 0),
      "fit the response exactly",
      class = "tall_error_improper"
    )
  }
})

test_that("improper posteriors are refused under such priors, too", {
  data <- withr::with_seed(1, data.frame(x = stats::rnorm(300)))
  data$y <- 0L
  for (prior in list(prior_hs(), prior_ridge(), prior_r2d2())) {
    for (family in list(stats::binomial(), stats::poisson())) {
      expect_error(
        tall_glm(y ~ x, data, family, prior = prior, prior_intercept = NULL,
          refresh = 0),
        "not proper",
        class = "tall_error_improper"
      )
    }
  }
})

test_that("hyperparameters have proper priors", {
  refused <- function(code, arg) {
    said <- paste0("`", arg, "` must be")
    expect_error(code, said, class = "tall_error_input")
  }
  refused(prior_ridge(df = 0), "df")
  refused(prior_ridge(scale = Inf), "scale")
  refused(prior_hs(global_df = 0), "global_df")
  refused(prior_hs(global_scale = Inf), "global_scale")
  refused(prior_hs(slab_scale = Inf), "slab_scale")
  refused(prior_hs(df = Inf), "df")
  refused(prior_r2d2(prec_R2 = Inf), "prec_R2")
  data <- data.frame(x = 1:30, y = rep(0:1, 15))
  for (prior in list(NULL, prior_flat())) {
    refused(
      tall_gam(y ~ s(x), data, stats::binomial(), prior_smooth = prior),
      "prior_smooth"
    )
  }
})
