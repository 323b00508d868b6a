toy_ratings <- function(n = 300, n_user = 15, n_item = 12, seed = 4) {
  withr::local_seed(seed)
  d <- data.frame(
    user = c(seq_len(n_user), sample(n_user, n - n_user, TRUE)),
    item = c(seq_len(n_item), sample(n_item, n - n_item, TRUE))
  )
  d$rating <- 3 + 2 * sin(d$user) * cos(d$item) + stats::rnorm(n, sd = 0.3)
  d
}

ratings <- toy_ratings()
train <- ratings[1:250, ]
test <- ratings[251:300, ]

toy_fit <- function(
  ...,
  data = train,
  newdata = test,
  rank = 2,
  iter = 400,
  chains = 2
) {
  tall_factorize(
    rating ~ user + item,
    data,
    rank = rank,
    newdata = newdata,
    ...,
    iter = iter,
    chains = chains,
    seed = 1,
    refresh = 0
  )
}

test_that("a fit that was read from a file goes on", {
  # names, and a user of whom only the pairs to predict know
  named <- transform(train, user = paste0("u", user))
  pairs <- transform(test, user = paste0("u", user))
  pairs$user[[1]] <- "nobody"
  fits <- suppressWarnings(
    list(
      toy_fit(data = named, newdata = pairs, alpha = 2),
      toy_fit(model = "pmf", init = "authors", kernel = kernel_sgld(1e-4)),
      toy_fit(keep = "none", rank = 20)
    ),
    classes = "tall_warning_ratings"
  )
  for (fit in fits) {
    read <- unserialize(serialize(fit, NULL))
    expect_silent(again <- sg_resume(read, 100, refresh = 0))
    alive <- sg_resume(fit, 100, refresh = 0)
    expect_identical(again$draws, alive$draws)
    expect_identical(predict(again), predict(alive))
  }
  light <- toy_fit(keep_data = FALSE)
  expect_null(light$data)
  expect_error(
    sg_resume(unserialize(serialize(light, NULL)), 100),
    "keep_data",
    class = "tall_error_stale"
  )
})

# The draws' own predictions: pairs x draws, from every parameter.
predictions_of <- function(fit, pairs) {
  theta <- matrix(fit$unconstrained, ncol = dim(fit$unconstrained)[[3]])
  fit$center + factor_means(fit$shape, t(theta), pairs$user, pairs$item)
}

test_that("predictions are averages over the draws, clipped one by one", {
  for (model in c("bpmf", "pmf")) {
    fit <- toy_fit(
      model = model,
      variables = NULL,
      thin = 1,
      every = 1,
      clip = c(2, 4)
    )
    each <- predictions_of(fit, test)
    clipped <- pmin(pmax(each, 2), 4)
    found <- predict(fit)
    expect_identical(found[1:2], data.frame(test[1:2], row.names = NULL))
    expect_close(found$mean, rowMeans(clipped))
    expect_gt(sum(clipped != each), 0)
    # each chain has a mean of its own until they are put together
    expect_close(found$sd, apply(clipped, 1, sd))
    plain <- predict(fit, clip = FALSE, interval = TRUE, level = 0.8)
    expect_close(plain$mean, rowMeans(each))
    expect_close(plain$sd, apply(each, 1, sd))
    half <- qnorm(0.9) * sqrt(apply(each, 1, var) + 1 / 3)
    expect_close(plain$upper, rowMeans(each) + half)
    expect_close(plain$lower, rowMeans(each) - half)
    # the same pairs as other ones, from the draws that were kept
    expect_close(predict(fit, test)$mean, found$mean)
    expect_close(predict(fit, test)$sd, found$sd)
    # and the errors along the run
    table <- fit$monitor
    last <- function(statistic, chain) {
      at <- table$statistic == statistic & table$chain == chain
      utils::tail(table$value[at], 1)
    }
    n <- ncol(each) / 2
    rmse <- function(x) sqrt(mean((test$rating - x)^2))
    expect_close(last("draw", 2), rmse(clipped[, 2 * n]))
    expect_close(last("ergodic", 2), rmse(rowMeans(clipped[, n + seq_len(n)])))
    expect_identical(table$iteration[1:2], c(1, 1))
  }
})

test_that("predictions need no draws, and go on when the run does", {
  fit <- toy_fit(keep = "none", every = 5)
  expect_null(fit$draws)
  expect_null(fit$monitor_state[[1]]$states)
  expect_identical(predict(fit), predict(toy_fit(snapshots = 0, every = 5)))
  longer <- sg_resume(toy_fit(), 200, refresh = 0)
  expect_s3_class(longer, "tall_factorize")
  whole <- toy_fit(iter = 600, warmup = 200)
  expect_identical(predict(longer), predict(whole))
  expect_identical(predict(longer, test), predict(whole, test))
  expect_identical(longer$monitor, whole$monitor)
  expect_error(predict(fit, test), class = "tall_error_unsupported")
  expect_error(
    predict(toy_fit(newdata = NULL)),
    class = "tall_error_unsupported"
  )
})

test_that("what is recorded is what was asked for", {
  all <- toy_fit(variables = NULL)
  hyper <- toy_fit(snapshots = 0)
  expect_length(hyper$variables, 8)
  expect_identical(
    plain_draws(hyper),
    plain_draws(all)[, , hyper$variables, drop = FALSE]
  )
  last <- utils::tail(all$coordinates, 8)
  expect_identical(
    hyper$unconstrained,
    all$unconstrained[, , last, drop = FALSE]
  )
  expect_identical(names(coef(hyper)), hyper$variables)
  expect_identical(hyper$bias, all$bias)
  expect_close(coef(toy_fit(keep = "none"))[hyper$variables], coef(hyper))
})

test_that("states are few, evenly spread, and the last ones", {
  states <- NULL
  for (k in 1:103) {
    states <- add_snapshot(states, k, 8)
    expect_lte(length(states$kept), 8)
  }
  kept <- unlist(states$kept)
  expect_equal(unique(diff(kept)), states$every)
  expect_gte(length(kept), 4)
  expect_lt(103 - max(kept), states$every)
  expect_null(add_snapshot(NULL, 1, 0))
  fit <- toy_fit(snapshots = 10, every = 1)
  n <- vapply(fit$monitor_state, function(s) length(s$states$kept), 1L)
  expect_true(all(n >= 3 & n <= 5))
})

test_that("users and items without ratings are those of the prior", {
  # during the run: rows of theta
  expect_warning(
    fit <- toy_fit(newdata = data.frame(user = c(1, 17), item = 1)),
    class = "tall_warning_ratings"
  )
  expect_identical(fit$shape[["n_user"]], 17)
  expect_false("rmse" %in% fit$monitor$monitor)
  expect_length(predict(fit)$mean, 2)
  # later: drawn at each state
  fit <- toy_fit(variables = NULL, newdata = NULL, iter = 2000)
  pairs <- data.frame(user = c(1, 40, 40), item = c(2, 2, 30))
  withr::local_seed(1)
  found <- suppressWarnings(predict(fit, pairs, clip = FALSE))
  expect_warning(predict(fit, pairs), "1 user and 1 item")
  # E[U] = mu at each draw: the mean of mu' V_2, and of mu_user' mu_item
  draws <- as.matrix(fit)
  columns <- function(what) draws[, paste0(what, c("1]", "2]"))]
  mu <- columns("mu_user[")
  expected <- fit$center + cbind(
    rowSums(mu * columns("item[2,")),
    rowSums(mu * columns("mu_item["))
  )
  se <- found$sd[2:3] / sqrt(nrow(draws))
  expect_lt(max(abs(found$mean[2:3] - colMeans(expected)) / se), 5)
  spread <- rowSums(columns("item[2,")^2 / columns("lambda_user["))
  sd <- sqrt(mean(spread) + var(expected[, 1]))
  expect_lt(abs(found$sd[[2]] / sd - 1), 0.3)
})

test_that("ids may be strings and factors", {
  named <- function(d) {
    data.frame(
      who = paste0("u", d$user),
      what = factor(letters[d$item]),
      stars = d$rating
    )
  }
  fit <- tall_factorize(
    stars ~ who + what,
    named(train),
    rank = 2,
    newdata = named(test),
    iter = 200,
    chains = 1,
    seed = 1,
    refresh = 0
  )
  found <- predict(fit)
  expect_named(found, c("who", "what", "mean", "sd"))
  expect_identical(found$who, paste0("u", test$user))
  expect_warning(
    again <- predict(fit, data.frame(who = c("u3", "new"), what = "a")),
    class = "tall_warning_ratings"
  )
  expect_identical(again$who, c("u3", "new"))
})

test_that("it finds what is there to be found", {
  fit <- toy_fit(iter = 4000, alpha = 10)
  errors <- held_out_errors(fit)
  best <- errors$ergodic[errors$chain == "all"]
  # the noise has a standard deviation of 0.3, the ratings one of about 1
  expect_lt(best, 0.45)
  expect_gt(fit$baseline, 2 * best)
  found <- predict(fit, interval = TRUE)
  inside <- mean(test$rating >= found$lower & test$rating <= found$upper)
  expect_gt(inside, 0.75)
})

test_that("prints say what was fitted and how well", {
  fit <- toy_fit()
  lines <- capture.output(print(fit))
  expect_match(lines, "250 ratings", all = FALSE)
  expect_match(lines, "BPMF of rank 2, alpha 3; 62 parameters", all = FALSE)
  expect_match(lines, "for averaged predictions", all = FALSE)
  lines <- capture.output(print(summary(fit)))
  expect_match(lines, "R-hat", all = FALSE)
  expect_match(lines, "ergodic", all = FALSE)
  expect_match(lines, "Kept: +[0-9]+ draws of", all = FALSE)
  lines <- capture.output(
    print(summary(toy_fit(newdata = NULL, keep = "none")))
  )
  expect_match(lines, "running means", all = FALSE)
  expect_s3_class(plot(fit, "monitor"), "ggplot")
})

test_that("what cannot be fitted is refused in words", {
  run <- function(formula = rating ~ user + item, data = train, ...) {
    tall_factorize(formula, data, rank = 2, ..., iter = 20, refresh = 0)
  }
  expect_snapshot(error = TRUE, run(rating ~ user))
  expect_snapshot(error = TRUE, run(rating ~ user * item))
  expect_snapshot(error = TRUE, run("rating"))
  expect_snapshot(error = TRUE, run(data = 1))
  expect_snapshot(error = TRUE, run(rating ~ user + film))
  expect_snapshot(error = TRUE, run(newdata = train["user"]))
  holes <- train
  holes$rating[[5]] <- NA
  expect_snapshot(error = TRUE, run(data = holes))
  expect_snapshot(error = TRUE, run(newdata = holes))
  expect_snapshot(error = TRUE, run(alhpa = 3))
  expect_snapshot(error = TRUE, run(clip = c(5, 1)))
  expect_snapshot(error = TRUE, run(monitor = list(every = 5)))
  expect_snapshot(error = TRUE, run(newdata = data.frame(user = "a", item = 1)))
  fit <- toy_fit(iter = 20)
  expect_snapshot(error = TRUE, predict(fit, clip = c(2, 4)))
})

test_that("a seed is all that is random, the reference of cv included", {
  expect_seeded(function(seed) {
    fit <- tall_factorize(
      rating ~ user + item,
      train,
      rank = 2,
      newdata = test,
      gradient = gradient_cv(),
      iter = 40,
      thin = 1,
      chains = 1,
      seed = seed,
      refresh = 0
    )
    fit[c("draws", "monitor")]
  })
})

test_that("rating, user and item are three different things", {
  data <- data.frame(r = rnorm(20), u = rep(1:5, 4), i = rep(1:4, each = 5))
  refused <- function(formula, what) {
    e <- expect_error(
      tall_factorize(formula, data, rank = 2),
      "must name three different things",
      class = "tall_error_input"
    )
    expect_identical(e$argument, "formula")
    expect_match(conditionMessage(e), what, fixed = TRUE)
  }
  refused(r ~ u + u, "`u` is both user and item")
  refused(u ~ u + i, "`u` is both rating and user")
  refused(i ~ u + i, "`i` is both rating and item")
})
