test_that("ADAM and SGD end near the mode, and say how near", {
  withr::local_seed(1)
  model <- example_model("gaussian", sigma = 2)
  exact <- find_mode(model)
  sd <- sqrt(diag(vcov(exact)))
  runs <- list(
    adam = list(learning_rate = 0.05, max_iter = 4000),
    sgd = list(learning_rate = 0.3 / model$n_data, max_iter = 4000)
  )
  for (method in names(runs)) {
    args <- c(list(model, method, batch_size = 50), runs[[method]])
    mode <- do.call(find_mode, args)
    expect_lt(max(abs(mode$estimate - exact$estimate) / sd), 1)
    # the distance that is reported is the distance there is: the model is
    # quadratic
    shift <- mode$estimate - exact$estimate
    distance <- sqrt(drop(shift %*% -exact$hessian %*% shift))
    expect_equal(mode$distance, distance, tolerance = 1e-6)
    expect_equal(mode$passes, 4000 * 50 / model$n_data + 2)
    expect_equal(nrow(mode$trace), 200)
    expect_gt(
      mean(tail(mode$trace$log_posterior, 20)),
      mode$trace$log_posterior[[1]]
    )
  }
})

test_that("control variates work about a mode that is not one", {
  withr::local_seed(2)
  model <- example_model()
  mode <- suppressWarnings(
    find_mode(model, "adam", batch_size = 50, max_iter = 50)
  )
  fit <- sg_sample(
    model,
    kernel_sgld(1e-3),
    gradient_cv(at = mode),
    iter = 1000,
    seed = 1,
    refresh = 0
  )
  # the estimates are those of the density, from wherever they are expanded
  exact <- sg_sample(
    model,
    kernel_sgld(1e-3),
    gradient_full(),
    iter = 1000,
    seed = 1,
    refresh = 0
  )
  sd <- apply(as.matrix(exact), 2, stats::sd)
  away <- colMeans(as.matrix(fit)) - colMeans(as.matrix(exact))
  expect_lt(max(abs(away) / sd), 0.2)
})

test_that("a search that runs away, or is cut short, is told", {
  withr::local_seed(3)
  model <- example_model("poisson")
  expect_error(
    find_mode(model, "sgd", learning_rate = 1e3, batch_size = 10),
    class = "tall_error_nonfinite"
  )
  expect_warning(
    find_mode(example_model(), "adam", max_iter = 2, batch_size = 10),
    class = "tall_warning_mode"
  )
})

test_that("bad input is refused", {
  model <- example_model()
  expect_refusals(
    "tall_error_input",
    find_mode(model, "adam", learning_rate = 0),
    find_mode(model, "adam", beta = c(0.9, 1)),
    find_mode(model, "adam", batch_size = 1.5),
    find_mode(model, "sgd", decay = -1)
  )
})

test_that("every search has a trace to plot", {
  skip_if_not_installed("ggplot2")
  withr::local_seed(4)
  for (method in c("newton", "lbfgs", "adam")) {
    mode <- suppressWarnings(
      find_mode(example_model(), method, batch_size = 50)
    )
    for (type in c("log_posterior", "gradient_norm")) {
      shown <- plot(mode, type)$data
      expect_identical(shown$passes, mode$trace$passes)
      expect_identical(shown$value, mode$trace[[type]])
    }
  }
})

test_that("refresh decides whether a search for a mode shows a bar", {
  # a bar that is made writes a line, whether or not it would be seen
  withr::local_options(cli.progress_handlers_only = "logger")
  withr::local_seed(5)
  x <- matrix(rnorm(60), 30)
  network <- function() {
    model_network(x, x[, 1] + rnorm(30, sd = 0.1), layers = 2)
  }
  run <- function(refresh) {
    list(
      find_mode = function() {
        find_mode(network(), max_iter = 20, refresh = refresh)
      },
      sg_sample = function() {
        sg_sample(
          network(),
          kernel_sgld(1e-6),
          gradient_cv(),
          subsample_uniform(10),
          iter = 4,
          chains = 1,
          seed = 1,
          refresh = refresh
        )
      },
      sg_tune = function() {
        sg_tune(
          network(),
          kernel_sgld(1e-6),
          list(step_size = c(1e-6, 1e-7)),
          budget = 1e5,
          gradient = gradient_simple(),
          subsample = subsample_uniform(10),
          seed = 1,
          refresh = refresh
        )
      },
      bias_check = function() {
        fit <- sg_sample(
          network(),
          kernel_sgld(1e-6),
          gradient_simple(),
          subsample_uniform(10),
          iter = 40,
          chains = 2,
          init = numeric(network()$n_dim),
          seed = 1,
          refresh = 0
        )
        bias_check(fit, iter = 20, seed = 1, refresh = refresh)
      },
      tall_topics = function() {
        counts <- matrix(1, 4, 3, dimnames = list(NULL, c("a", "b", "c")))
        tall_topics(
          counts,
          2,
          iter = 4,
          chains = 1,
          seed = 1,
          refresh = refresh
        )
      },
      tall_nn = function() {
        tall_nn(
          mpg ~ wt,
          mtcars,
          hidden = 2,
          train_iter = 20,
          iter = 4,
          chains = 1,
          seed = 1,
          refresh = refresh
        )
      },
      tall_factorize = function() {
        tall_factorize(
          rating ~ user + item,
          data.frame(user = c(1, 1, 2, 2), item = c(1, 2, 1, 2), rating = 1:4),
          rank = 1,
          kernel = kernel_sgld(1e-6),
          gradient = gradient_cv(),
          iter = 4,
          thin = 1,
          chains = 1,
          seed = 1,
          refresh = refresh
        )
      },
      tall_ica = function() {
        tall_ica(
          x,
          init = "identity",
          iter = 4,
          chains = 1,
          seed = 1,
          refresh = refresh
        )
      }
    )
  }
  lines <- function(f) {
    utils::capture.output(suppressWarnings(invisible(f())))
  }
  for (name in names(run(0))) {
    expect_identical(lines(run(0)[[name]]), character(), info = name)
  }
  # the option says it where there is no argument
  searched <- lines(function() {
    pseudo_variance(
      network(),
      numeric(10),
      gradient_cv(),
      subsample_uniform(10)
    )
  })
  expect_true(any(grepl("created", searched)))
  withr::local_options(tallbayes.refresh = 0)
  expect_identical(lines(run(0)$find_mode), character())
  for (name in names(run(1))) {
    made <- sum(grepl("created", lines(run(1)[[name]])))
    # a search and the chains, or one of them
    least <- if (name %in% c("sg_sample", "tall_nn")) 2 else 1
    expect_gte(made, least)
  }
})
