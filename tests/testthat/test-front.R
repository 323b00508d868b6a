# One vocabulary: what the front ends take through `...` is sg_sample()'s.

front_data <- function(n = 300) {
  withr::local_seed(1)
  data <- data.frame(a = rnorm(n), b = rnorm(n))
  data$y <- rbinom(n, 1, plogis(0.3 + 0.5 * data$a))
  data$z <- data$a + rnorm(n)
  data
}

front_fits <- function(...) {
  data <- front_data()
  list(
    tall_glm = function(...) tall_glm(y ~ a + b, data, binomial(), ...),
    tall_glm.fit = function(...) {
      x <- cbind("(Intercept)" = 1, a = data$a, b = data$b)
      tall_glm.fit(x, data$y, binomial(), ...)
    },
    tall_nn = function(...) {
      tall_nn(z ~ a + b, data, hidden = 2, train_iter = 5, ...)
    },
    tall_ica = function(...) {
      tall_ica(as.matrix(data[c("a", "b")]), init = "identity", ...)
    },
    tall_topics = function(...) {
      dtm <- matrix(rep(1:3, 20), 10, dimnames = list(NULL, letters[1:6]))
      tall_topics(dtm, 2, train_iter = 5, ...)
    },
    tall_factorize = function(...) {
      ratings <- expand.grid(user = 1:6, item = 1:5)
      ratings$rating <- 1 + (ratings$user * ratings$item) %% 5
      tall_factorize(rating ~ user + item, ratings, rank = 2, ...)
    }
  )
}

test_that("every front end takes the arguments of sg_sample() through `...`", {
  fits <- front_fits()
  for (name in names(fits)) {
    fit <- suppressWarnings(fits[[name]](
      iter = 12,
      warmup = 4,
      thin = 2,
      chains = 2,
      cores = 1,
      seed = 3,
      keep = "none",
      refresh = 0
    ))
    own <- sub("[.]fit$", "", name)
    is_regression <- own %in% c("tall_glm", "tall_glmer", "tall_nn")
    own <- c(own, if (is_regression) "tall_regression", "tall_fit")
    expect_s3_class(fit, own, exact = TRUE)
    expect_identical(fit$control$iter, 12, info = name)
    expect_identical(fit$control$chains, 2, info = name)
    expect_null(fit$draws, info = name)
    expect_identical(as.character(fit$call[[1]]), name)
    expect_error(fits[[name]](itr = 12), class = "tall_error_input")
    expect_error(fits[[name]](iter = "many"), class = "tall_error_input")
    expect_error(fits[[name]](kernel = 1), class = "tall_error_input")
    expect_error(fits[[name]](lambda = -1), class = "tall_error_input")
    expect_error(fits[[name]](adapt_delta = 0.9), class = "tall_error_input")
  }
})

test_that("what a front end sets itself is refused with the reason", {
  fits <- front_fits()
  expect_snapshot(error = TRUE, {
    fits$tall_nn(init = 0)
    fits$tall_ica(variables = "W[1,1]")
    fits$tall_topics(init = 0)
  })
})

test_that("lambda makes a Gibbs posterior, which goes on from a file", {
  data <- front_data()
  fit <- function(...) {
    tall_glm(z ~ a + b, data, sigma = 1, prior = NULL, prior_intercept = NULL,
      seed = 1, refresh = 0, iter = 1500, ...)
  }
  cold <- fit()
  warm <- fit(lambda = 75)
  expect_identical(warm$lambda, 75)
  # flat priors: the same mean, four times the variance
  ratio <- diag(vcov(warm)) / diag(vcov(cold))
  expect_lt(max(abs(ratio - 4)), 5 * 4 * sqrt(4 / 3000))
  expect_lt(
    max(abs(coef(warm) - coef(cold)) / sqrt(diag(vcov(warm)))),
    5 * sqrt(1.25 / 3000)
  )
  file <- withr::local_tempfile()
  saveRDS(warm, file)
  longer <- sg_resume(readRDS(file), 100, refresh = 0)
  alive <- sg_resume(warm, 100, refresh = 0)
  expect_identical(longer$draws, alive$draws)
})

test_that("variables keeps some of the draws, and what needs all says so", {
  data <- front_data()
  fit <- tall_glm(
    z ~ a + b,
    data,
    seed = 1,
    refresh = 0,
    iter = 40,
    variables = c("b", "sigma")
  )
  expect_identical(posterior::variables(fit$draws), c("b", "sigma"))
  expect_named(coef(fit), "b")
  expect_identical(dimnames(vcov(fit)), list("b", "b"))
  expect_output(print(summary(fit)), "sigma")
  expect_error(predict(fit, data), class = "tall_error_unsupported")
  expect_error(rmse(fit, data), class = "tall_error_unsupported")
  expect_error(
    rstantools::posterior_predict(fit),
    class = "tall_error_unsupported"
  )
})

test_that("a front end has fields that are declared, and no others", {
  asked <- structure(list(), class = "tall_asked")
  front <- new_front("glm", "tall_glm", asked, list(), list(), TRUE)
  expect_identical(unclass(front)[names(front_fields)], front_fields)
  own <- new_front(
    "glm",
    "tall_glm",
    asked,
    list(),
    list(),
    TRUE,
    whitens = FALSE,
    store = NULL
  )
  expect_false(own$whitens)
  expect_named(own, names(front))
  expect_error(
    new_front("glm", "tall_glm", asked, list(), list(), TRUE, whiten = FALSE),
    "whiten"
  )
})

test_that("of a source that is brought to memory come the columns in use", {
  # more than the first block, which is shown as a whole
  n <- 3000
  data <- withr::with_seed(1, data.frame(
    x = stats::rnorm(n),
    w = sample(3, n, TRUE),
    g = sample(9, n, TRUE),
    y = stats::rbinom(n, 1, 0.4),
    # which cannot be read as what it is said to be
    extra = c(seq_len(n - 1), "none")
  ))
  file <- withr::local_tempfile(fileext = ".csv")
  utils::write.csv(data, file, row.names = FALSE)
  source <- tall_csv(file, types = c(extra = "numeric"))
  expect_error(collect_source(source), "extra", class = "tall_error_source")
  fit <- function(f, ...) {
    f(..., family = binomial(), iter = 200, seed = 1, refresh = 0)
  }
  of_source <- fit(tall_glmer, y ~ log(w) + x + (1 | g), source)
  of_frame <- fit(tall_glmer, y ~ log(w) + x + (1 | g), data)
  expect_equal(of_source$draws, of_frame$draws)
  few <- tall_glm(
    y ~ x,
    source,
    binomial(),
    subset = w > 1,
    iter = 200,
    seed = 1,
    refresh = 0
  )
  expect_equal(stats::nobs(few), sum(data$w > 1))
  # a dot stands for all of them
  expect_error(fit(tall_glm, y ~ ., source), class = "tall_error_source")
})
