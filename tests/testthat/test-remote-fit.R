# What a fit can do whose rows were passed over, against the same fit of rows in
# memory, given the same draws.

passed_data <- function(n = 4000) {
  withr::with_seed(3, {
    data <- data.frame(
      a = rnorm(n),
      b = runif(n, 10, 20),
      g = factor(sample(c("u", "v", "w"), n, TRUE)),
      o = rnorm(n) / 5,
      w = sample(0:3, n, TRUE),
      take = runif(n) < 0.9,
      exposure = runif(n, 1, 3)
    )
    eta <- -2 + 0.8 * data$a + 0.1 * data$b + 0.5 * (data$g == "v") + data$o
    data$y <- rbinom(n, 1, plogis(eta))
    data$count <- rpois(n, data$exposure * exp(0.2 * eta))
    data$z <- 3 * eta + rnorm(n, sd = 2)
    data$s <- rbinom(n, data$w, plogis(eta))
    data$f <- data$w - data$s
    data$share <- ifelse(data$w > 0, data$s / data$w, 0)
    data$a[sample(n, 40)] <- NA
    data$z[sample(n, 20)] <- NA
    data$w[[5]] <- NA
    data
  })
}

# Data of more rows are passed over.
local_rows <- function(rows, env = parent.frame()) {
  local_settings(look = list(rows = rows, of_stratum = 50), .frame = env)
}

# list(remote, memory): `code` makes a fit.
both_ways <- function(code) {
  code <- substitute(code)
  env <- parent.frame()
  run <- function(rows) {
    local_rows(rows)
    eval(code, env)
  }
  remote <- run(1000)
  memory <- run(1e9)
  expect_true(has_source(remote))
  expect_null(remote$rows$frame)
  expect_false(has_source(memory))
  # other random numbers
  memory[c("draws", "checked")] <- remote[c("draws", "checked")]
  list(remote = remote, memory = memory)
}

remote_cases <- local({
  made <- NULL
  function() {
    if (is.null(made)) {
      made <<- make_remote_cases()
    }
    made
  }
})

make_remote_cases <- function() {
  data <- passed_data()
  list(
    weighted = both_ways(here_glm(
      y ~ log(abs(a)) + b + g + offset(o),
      family = binomial(),
      weights = w,
      subset = take,
      na.action = na.exclude,
      iter = 200
    )),
    gaussian = both_ways(here_glm(
      z ~ a + b * g,
      weights = w,
      na.action = na.exclude,
      iter = 200
    )),
    poisson = both_ways(here_glm(
      count ~ a + g,
      family = poisson(),
      offset = log(exposure),
      iter = 200
    )),
    cbind = both_ways(here_glm(
      cbind(s, f) ~ a + g,
      family = binomial(),
      iter = 200
    )),
    proportion = both_ways(here_glm(
      share ~ a,
      family = binomial(),
      weights = w,
      na.action = "na.exclude",
      iter = 200
    ))
  )
}

# f(fit) of both fits of each case, or of some.
expect_both <- function(f, cases = names(remote_cases()), tolerance = 1e-8) {
  for (name in cases) {
    case <- remote_cases()[[name]]
    found <- f(case$remote)
    expected <- f(case$memory)
    expect_equal(
      found,
      expected,
      ignore_attr = TRUE,
      tolerance = tolerance,
      info = name
    )
  }
}

test_that("fitted values and residuals are made by passes", {
  expect_both(predict)
  expect_both(function(fit) predict(fit, se.fit = TRUE))
  expect_both(function(fit) predict(fit, type = "response", se.fit = TRUE))
  expect_both(function(fit) predict(fit, type = "response", draws = 7))
  expect_both(fitted)
  for (type in c("response", "pearson", "deviance")) {
    expect_both(function(fit) residuals(fit, type))
  }
  expect_both(deviance)
  expect_both(weights)
  expect_both(nobs)
  expect_both(df.residual)
  expect_both(sigma)
  # an offset that is given is one more
  offset <- seq_len(nobs(remote_cases()$poisson$remote)) / 1000
  expect_both(function(fit) predict(fit, offset = offset), "poisson")
})

test_that("rows that na.exclude left out are NA", {
  fit <- remote_cases()$weighted$remote
  data <- passed_data()
  data <- data[data$take, ]
  out <- is.na(data$a) | is.na(data$w) | data$w == 0
  expect_identical(is.na(predict(fit)), out)
  expect_identical(is.na(residuals(fit)), out)
  expect_false(anyNA(predict(remote_cases()$poisson$remote)))
})

test_that("blocks of any size give the same values", {
  fit <- remote_cases()$weighted$remote
  before <- predict(fit, type = "response")
  local_settings(block_rows = 333)
  expect_equal(predict(fit, type = "response"), before)
  expect_equal(
    model.frame(fit),
    model.frame(remote_cases()$weighted$memory)
  )
})

test_that("the model frame can be had", {
  for (case in remote_cases()) {
    expect_equal(model.frame(case$remote), model.frame(case$memory))
    expect_equal(model.matrix(case$remote), model.matrix(case$memory))
  }
  expect_both(augment)
  expect_both(formula)
  expect_both(function(fit) attr(terms(fit), "term.labels"))
  fit <- remote_cases()$gaussian$remote
  local_settings(large_matrix = 1000)
  expect_error(model.frame(fit), class = "tall_error_memory")
  expect_error(model.matrix(fit), class = "tall_error_memory")
  expect_error(augment(fit), class = "tall_error_memory")
})

test_that("matrices of draws and rows are those of rows in memory", {
  skip_if_not_installed("rstantools")
  expect_both(function(fit) rstantools::posterior_linpred(fit, draws = 9))
  expect_both(function(fit) rstantools::posterior_epred(fit, draws = 9))
  expect_both(function(fit) {
    rstantools::posterior_predict(fit, draws = 9, seed = 1)
  })
  expect_both(function(fit) {
    rstantools::predictive_error(fit, draws = 9, seed = 1)
  })
  expect_both(function(fit) rstantools::log_lik(fit, draws = 9))
  expect_both(function(fit) rstantools::bayes_R2(fit, draws = 9))
  # one block: the same random numbers
  expect_both(function(fit) {
    rstantools::predictive_interval(fit, draws = 50, seed = 1)
  })
  fit <- remote_cases()$gaussian$remote
  local_settings(large_matrix = 1e5)
  expect_error(
    rstantools::posterior_epred(fit),
    class = "tall_error_memory"
  )
  local_settings(block_rows = 400)
  expect_equal(
    rstantools::bayes_R2(fit, draws = 9),
    rstantools::bayes_R2(remote_cases()$gaussian$memory, draws = 9)
  )
})

test_that("loo takes its rows out of passes", {
  skip_if_not_installed("loo")
  skip_if_not_installed("rstantools")
  quiet_loo <- function(fit) suppressWarnings(loo::loo(fit, draws = 100))
  expect_both(function(fit) {
    found <- quiet_loo(fit)
    list(found$estimates, attr(found, "yhash"))
  }, c("weighted", "gaussian", "proportion"))
  expect_both(function(fit) {
    suppressWarnings(loo::waic(fit, draws = 100)$estimates)
  })
  expect_both(
    function(fit) {
      found <- suppressWarnings(loo::loo(fit, observations = NULL, draws = 100))
      found$estimates
    },
    "weighted"
  )
  expect_both(
    function(fit) suppressWarnings(rstantools::loo_pit(fit, 50, seed = 1)),
    c("gaussian", "cbind")
  )
  f_of <- function(fit) rstantools::log_lik(fit, pointwise = TRUE)
  expect_both(function(fit) {
    f <- f_of(fit)
    f(cbind(c(7, 2000, 3)), attr(f, "draws"))
  })
  expect_error(
    f_of(remote_cases()$poisson$remote)(cbind(5000), matrix(0, 30, 4)),
    class = "tall_error_source"
  )
})

test_that("loo passes over the rows a few times, not once an observation", {
  skip_if_not_installed("loo")
  data <- passed_data()
  passes <- 0
  stream <- tall_stream(function() {
    passes <<- passes + 1
    opener(data, rep(1000, 3))()
  })
  local_rows(1000)
  fit <- tall_glm(count ~ a, stream, poisson(), seed = 1, refresh = 0)
  passes <- 0
  first <- suppressWarnings(loo::loo(fit, observations = 30))
  expect_lt(passes, 5)
  passes <- 0
  again <- suppressWarnings(loo::loo(fit, observations = first))
  expect_lt(passes, 5)
  expect_equal(again$estimates, first$estimates)
  expect_error(
    loo::loo(fit, observations = 30, estimator = "hh_pps"),
    class = "tall_error_unsupported"
  )
})

test_that("posterior predictive checks show the same observations", {
  skip_if_not_installed("bayesplot")
  skip_if_not_installed("rstantools")
  shown <- function(...) {
    function(fit) {
      suppressWarnings(bayesplot::pp_check(fit, ..., seed = 1)$data)
    }
  }
  expect_both(shown(observations = 50))
  by <- shown("stat_grouped", group = "g", observations = 100)
  expect_both(by, "gaussian")
  group <- rep_len(c("i", "k"), nobs(remote_cases()$poisson$remote))
  by <- shown("stat_grouped", group = group, observations = 99)
  expect_both(by, "poisson")
  expect_both(shown("loo_pit_qq", observations = 50), "gaussian")
  expect_error(
    shown("stat_grouped", group = "k")(remote_cases()$poisson$remote),
    class = "tall_error_input"
  )
})

test_that("tables of a fit need no rows", {
  expect_both(tidy)
  expect_both(function(fit) glance(fit)[c("nobs", "pss", "rhat", "sigma")])
  fit <- remote_cases()$weighted$remote
  expect_output(print(fit), "observations")
  expect_s3_class(plot(fit), "ggplot")
  expect_identical(coef(fit), colMeans(as.matrix(fit)))
})

test_that("a data frame of many rows is passed over unasked", {
  data <- withr::with_seed(1, data.frame(x = rnorm(70000), y = rnorm(70000)))
  data$x[[70000]] <- NA
  fit <- here_glm(y ~ x, iter = 100, na.action = na.exclude)
  expect_true(has_source(fit))
  by_hand <- coef(fit)[["(Intercept)"]] + coef(fit)[["x"]] * data$x
  expect_equal(predict(fit), by_hand)
  expect_equal(residuals(fit), data$y - by_hand)
  expect_equal(predict(fit, data[1:3, ]), by_hand[1:3], ignore_attr = TRUE)
})

# ---- other sources -----------------------------------------------------------

test_that("predictions are for rows of any source", {
  new <- passed_data(700)
  new <- new[complete.cases(new) & new$w > 0, ]
  rownames(new) <- NULL
  stream <- tall_stream(opener(new, c(5, 100, 1, 300)))
  for (case in remote_cases()) {
    for (fit in case) {
      expected <- unname(predict(fit, new, type = "response"))
      expect_equal(predict(fit, stream, type = "response"), expected)
      found <- predict(fit, list(new[1:50, ], new[51:60, ]), type = "response")
      expect_equal(found, expected[1:60])
      skip_if_not_installed("rstantools")
      expect_equal(
        rstantools::posterior_epred(fit, stream, draws = 5),
        rstantools::posterior_epred(fit, new, draws = 5)
      )
      expect_equal(
        rstantools::log_lik(fit, stream, draws = 5),
        rstantools::log_lik(fit, new, draws = 5)
      )
      expect_equal(
        rstantools::bayes_R2(fit, stream, draws = 5),
        rstantools::bayes_R2(fit, new, draws = 5)
      )
      expect_identical(
        dim(rstantools::predictive_interval(fit, newdata = stream, seed = 1)),
        c(nrow(new), 2L)
      )
    }
  }
  # missing values are let through, as they are of a data frame
  new$a[[3]] <- NA
  fit <- remote_cases()$gaussian$remote
  found <- predict(fit, tall_stream(opener(new, 10)))
  expect_identical(which(is.na(found)), 3L)
  new$a <- NULL
  expect_error(
    predict(fit, tall_stream(opener(new, 10))),
    class = "tall_error_input"
  )
})

test_that("a matrix is a source, too", {
  data <- as.matrix(passed_data()[c("a", "b", "count")])
  local_rows(1000)
  fit <- tall_glm(count ~ a + b, data, poisson(), seed = 1, refresh = 0)
  expect_true(has_source(fit))
  x <- cbind(1, data[complete.cases(data), c("a", "b")])
  expect_equal(predict(fit), unname(drop(x %*% coef(fit))))
  expect_equal(predict(fit, data[1:3, ]), predict(fit)[1:3])
})

test_that("other rows than those of the fit are refused", {
  data <- passed_data()
  rows <- nrow(data)
  stream <- tall_stream(function() opener(data[seq_len(rows), ], 500)())
  local_rows(1000)
  fit <- tall_glm(count ~ a, stream, poisson(), seed = 1, refresh = 0)
  expect_length(predict(fit), nobs(fit))
  rows <- 3000
  expect_error(predict(fit), class = "tall_error_source")
  expect_error(residuals(fit), class = "tall_error_source")
  expect_error(sg_resume(fit, 100), class = "tall_error_source")
  data <- rbind(data, data[1:10, ])
  rows <- nrow(data)
  expect_error(predict(fit), class = "tall_error_source")
  data <- data[-(1:10), ]
  rows <- nrow(data)
  data$a <- rev(data$a) + 1
  expect_error(ksd(fit), class = "tall_error_source")
})

test_that("levels may differ from block to block", {
  data <- passed_data()
  data <- data[order(data$g), ]
  stream <- tall_stream(function() {
    reader <- opener(data, 1000)()
    list(
      next_block = function() {
        block <- reader$next_block()
        if (!is.null(block)) droplevels(block)
      },
      close = reader$close
    )
  })
  local_rows(1000)
  fit <- tall_glm(count ~ g, stream, poisson(), seed = 1, refresh = 0)
  x <- model.matrix(~g, data)
  expect_equal(predict(fit), unname(drop(x %*% coef(fit))))
  expect_equal(unname(model.matrix(fit)), unname(x), ignore_attr = TRUE)
})

# ---- the model and more draws ------------------------------------------------

test_that("gradients are those of all rows", {
  expect_both(ksd, c("weighted", "poisson"), 1e-6)
  expect_both(ksd, "gaussian", 1e-6)
  expect_both(
    function(fit) {
      suppressMessages(attr(zero_variance(fit, gradient = "full"), "estimates"))
    },
    c("gaussian", "cbind"),
    1e-6
  )
  fit <- remote_cases()$poisson$remote
  local_settings(rebuilt_bytes = 1e4)
  expect_error(ksd(fit), class = "tall_error_unsupported")
  # sums are enough
  expect_true(ksd(remote_cases()$gaussian$remote) > 0)
})

test_that("a fit goes on, also after it was in a file", {
  for (name in c("weighted", "gaussian")) {
    fit <- remote_cases()[[name]]$remote
    file <- withr::local_tempfile()
    saveRDS(fit, file)
    more <- sg_resume(fit, 100, refresh = 0)
    expect_identical(posterior::niterations(more$draws), 200L)
    expect_equal(
      unclass(more$draws)[1:100, , ],
      unclass(fit$draws)[1:100, , ],
      ignore_attr = TRUE
    )
    again <- sg_resume(readRDS(file), 100, refresh = 0)
    expect_identical(again$draws, more$draws)
    expect_equal(predict(readRDS(file)), predict(fit))
    expect_null(more$rows$frame)
    expect_length(predict(more), length(predict(fit)))
  }
  expect_error(
    sg_resume(fit, 10, model = example_model()),
    class = "tall_error_input"
  )
})

test_that("a fit that goes on has the posterior it had", {
  data <- passed_data()
  local_rows(1000)
  of <- list(
    tall_glm(
      z ~ a + g,
      data,
      prior = prior_laplace(0, 1),
      iter = 2000,
      seed = 1,
      refresh = 0
    ),
    tall_glm(
      y ~ a + g,
      data,
      binomial(),
      iter = 2000,
      seed = 1,
      refresh = 0
    )
  )
  for (fit in of) {
    more <- sg_resume(fit, 4000, refresh = 0)
    n <- posterior::niterations(fit$draws)
    added <- posterior::subset_draws(
      more$draws,
      iteration = seq(n + 1, posterior::niterations(more$draws))
    )
    old <- posterior::summarise_draws(fit$draws)
    new <- posterior::summarise_draws(added)
    error <- old$sd * sqrt(1 / old$ess_bulk + 1 / new$ess_bulk)
    expect_lt(max(abs(new$mean - old$mean) / error), 4.5)
    expect_lt(max(abs(log(new$sd / old$sd))), 0.2)
  }
})

test_that("a fit without its data says what it needs", {
  data <- passed_data()
  local_rows(1000)
  fit <- tall_glm(
    y ~ a,
    data,
    binomial(),
    iter = 200,
    seed = 1,
    refresh = 0,
    keep_data = FALSE
  )
  expect_null(fit$rows$source)
  for (f in list(predict, fitted, residuals, model.frame, weights, ksd)) {
    expect_error(f(fit), class = "tall_error_stale")
  }
  expect_error(sg_resume(fit, 10), class = "tall_error_stale")
  expect_length(predict(fit, data[1:3, ]), 3)
  # sums need no rows
  fit <- tall_glm(
    z ~ a,
    data,
    iter = 200,
    seed = 1,
    refresh = 0,
    keep_data = FALSE
  )
  more <- sg_resume(fit, 100, refresh = 0)
  expect_identical(posterior::niterations(more$draws), 200L)
})

test_that("a fit is made again by its call", {
  data <- passed_data()
  fit <- here_glm(y ~ a + g, family = binomial(), iter = 200)
  expect_identical(formula(update(fit, . ~ . - g)), y ~ a, ignore_attr = TRUE)
  local_rows(1000)
  fit <- here_glm(y ~ a + g, family = binomial(), iter = 200)
  smaller <- update(fit, . ~ . - g)
  expect_true(has_source(smaller))
  expect_identical(names(coef(smaller)), c("(Intercept)", "a"))
})

test_that("monitors watch held-out data frames", {
  data <- passed_data()
  held_out <- data[complete.cases(data), ][1:200, ]
  fit <- both_ways(here_glm(
    y ~ a + g,
    family = binomial(),
    monitor = list(loss = monitor_log_loss(held_out)),
    iter = 200
  ))
  found <- tail(fit$remote$monitor$value, 1)
  expect_equal(found, tail(fit$memory$monitor$value, 1), tolerance = 0.05)
})

# ---- a source that changes ---------------------------------------------------

# A stream that hands out other rows, and other blocks, from one opening on.
turncoat <- function(data, change, from) {
  opened <- 0
  tall_stream(function() {
    opened <<- opened + 1
    if (opened < from) opener(data, 500)() else opener(change(data), 700)()
  })
}

test_that("rows and types that change between passes are refused", {
  data <- passed_data()
  data$word <- as.character(data$g)
  changes <- list(
    fewer = function(d) d[-1, ],
    other = function(d) replace(d, "count", 1 + d$count),
    # the same values, of other rows
    rows = function(d) replace(d, "word", rev(d$word)),
    type = function(d) replace(d, "a", as.character(round(d$a))),
    kind = function(d) replace(d, "word", factor(d$word))
  )
  fit_of <- function(stream, family, ...) {
    tall_glm(count ~ a + word, stream, family, ..., seed = 1, refresh = 0)
  }
  # names, types, a look, and what follows it
  for (change in changes) {
    # in memory
    expect_error(
      fit_of(turncoat(data, change, 4), poisson()),
      "than it had at first|than it did at first",
      class = "tall_error_source"
    )
    local({
      local_rows(1000)
      for (from in 4:5) {
        error <- expect_error(
          fit_of(turncoat(data, change, from), poisson()),
          class = "tall_error_source"
        )
      }
      expect_error(
        fit_of(turncoat(data, change, 4), gaussian()),
        class = "tall_error_source"
      )
    })
  }
  local_rows(1000)
  error <- expect_error(
    fit_of(turncoat(data, changes$type, 3), gaussian()),
    "`?a`? had numbers, and has text",
    class = "tall_error_source"
  )
  expect_identical(error$column, "a")
  file <- tempfile(fileext = ".tall")
  expect_error(
    fit_of(
      turncoat(data, changes$rows, 4),
      poisson(),
      store = file,
      kernel = kernel_sgld(1e-6)
    ),
    "other values",
    class = "tall_error_source"
  )
  expect_false(file.exists(file))
  # shards of which some can change
  list <- list(data[1:1500, ], turncoat(data[1501:4000, ], identity, 9))
  expect_s3_class(fit_of(list, poisson())$rows$source, "tall_shards")
  sharp <- prior_laplace(0, 0.001)
  expect_s3_class(fit_of(list, poisson(), prior = sharp), "tall_fit")
  # its second shard is opened for the look, and for the pass
  list[[2]] <- turncoat(data[1501:4000, ], changes$other, 2)
  expect_error(fit_of(list, gaussian()), class = "tall_error_source")
  # blocks of other sizes, whole numbers as doubles: the same rows
  same <- turncoat(data, function(d) replace(d, "count", d$count + 0), 4)
  expect_s3_class(fit_of(same, poisson()), "tall_fit")
})
