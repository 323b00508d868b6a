data <- example_data()

fast <- function(...) {
  tall_glm(..., data = data, iter = 40, chains = 2, seed = 1, refresh = 0)
}

# The posterior under a wide prior is near the maximum likelihood estimate: this
# is about which model was fitted, not about how well.
expect_like_glm <- function(fit, reference, sds = 0.5) {
  coefficients <- stats::coef(reference)
  actual <- coef(fit)[names(coefficients)]
  sd <- sqrt(diag(stats::vcov(reference)))
  testthat::expect_named(actual, names(coefficients))
  testthat::expect_lt(max(abs(actual - coefficients) / sd), sds)
}

wide <- prior_normal(0, 100)
fitted_glm <- function(formula, family, ...) {
  tall_glm(
    formula,
    data,
    family,
    prior = wide,
    prior_intercept = wide,
    iter = 400,
    chains = 2,
    seed = 1,
    refresh = 0,
    ...
  )
}

test_that("each family fits the model that glm() fits", {
  fit <- fitted_glm(y ~ a + b, binomial())
  expect_like_glm(fit, glm(y ~ a + b, binomial(), data))
  fit <- fitted_glm(count ~ a + b, poisson)
  expect_like_glm(fit, glm(count ~ a + b, poisson, data))
  fit <- fitted_glm(z ~ a + b, "gaussian")
  reference <- lm(z ~ a + b, data)
  expect_like_glm(fit, reference)
  expect_lt(abs(sigma(fit) / sigma(reference) - 1), 0.05)
  fit <- fitted_glm(z ~ a + b, gaussian(), sigma = 2)
  expect_like_glm(fit, reference)
  expect_identical(fit$variables, c("(Intercept)", "a", "b"))
})

test_that("formulas mean what they mean to glm()", {
  fit <- fitted_glm(y ~ a * g + log(b), binomial())
  expect_like_glm(fit, glm(y ~ a * g + log(b), binomial(), data))
  fit <- fitted_glm(y ~ 0 + g + poly(a, 2), binomial())
  expect_like_glm(fit, glm(y ~ 0 + g + poly(a, 2), binomial(), data))
})

test_that("offsets and weights enter as in glm()", {
  reference <- glm(
    count ~ a + offset(log(exposure)),
    poisson(),
    data,
    weights = w
  )
  in_formula <- tall_glm(
    count ~ a + offset(log(exposure)),
    data,
    poisson(),
    prior = wide,
    prior_intercept = wide,
    weights = w,
    iter = 400,
    chains = 2,
    seed = 1,
    refresh = 0
  )
  expect_like_glm(in_formula, reference)
  as_argument <- tall_glm(
    count ~ a,
    data,
    poisson(),
    prior = wide,
    prior_intercept = wide,
    weights = w,
    offset = log(exposure),
    iter = 400,
    chains = 2,
    seed = 1,
    refresh = 0
  )
  expect_equal(coef(as_argument), coef(in_formula))
})

test_that("subset and na.action select rows", {
  missing <- data
  missing$a[3:5] <- NA
  missing$y[9] <- NA
  fit <- tall_glm(
    y ~ a,
    missing,
    binomial(),
    subset = b > 12,
    iter = 20,
    refresh = 0
  )
  reference <- glm(y ~ a, binomial(), missing, subset = b > 12)
  expect_equal(nobs(fit), nobs(reference))
  expect_identical(
    names(fit$na_action),
    names(reference$na.action)
  )
  excluded <- tall_glm(
    y ~ a,
    missing,
    binomial(),
    na.action = na.exclude,
    iter = 20,
    refresh = 0
  )
  expect_identical(nobs(excluded), 296)
  expect_error(
    tall_glm(y ~ a, missing, binomial(), na.action = na.fail, refresh = 0),
    class = "tall_error_input"
  )
})

test_that("binary responses come in every form", {
  data$logical <- data$y == 1
  data$factor <- factor(data$y, 0:1, c("alive", "dead"))
  zero_one <- tall_glm(
    y ~ a,
    data,
    binomial(),
    iter = 20,
    seed = 1,
    refresh = 0
  )
  for (formula in list(logical ~ a, factor ~ a, cbind(y, 1 - y) ~ a)) {
    other <- tall_glm(
      formula,
      data,
      binomial(),
      iter = 20,
      seed = 1,
      refresh = 0
    )
    expect_equal(coef(other), coef(zero_one), tolerance = 1e-8)
  }
  data$dead <- rev(levels(data$factor))[2 - data$y]
  reversed <- tall_glm(
    factor(dead, c("dead", "alive")) ~ a,
    data,
    binomial(),
    iter = 20,
    seed = 1,
    refresh = 0
  )
  expect_identical(reversed$response_levels, c("dead", "alive"))
})

test_that("data may be left out, as variables of the formula's environment", {
  outcome <- data$y
  age <- data$a
  fit <- tall_glm(outcome ~ age, family = binomial(), iter = 20, refresh = 0)
  expect_identical(fit$variables, c("(Intercept)", "age"))
})

test_that("a fit knows its formula, family and data", {
  fit <- fast(y ~ a + g, family = binomial())
  classes <- c("tall_glm", "tall_regression", "tall_fit")
  expect_s3_class(fit, classes, exact = TRUE)
  expect_identical(formula(fit), y ~ a + g)
  expect_s3_class(family(fit), "family")
  expect_identical(family(fit)$link, "logit")
  expect_identical(nobs(fit), 300)
  expect_identical(fit$variables, c("(Intercept)", "a", "gv", "gw"))
  expect_identical(fit$call[[1]], quote(tall_glm))
})

test_that("the default priors scale with the columns", {
  fit <- fast(y ~ a + b, family = binomial())
  sds <- c(sd(data$a), sd(data$b))
  expect_equal(fit$prior$scale, c(2.5, 2.5 / sds))
  fit <- fast(z ~ a + b, family = gaussian())
  expect_equal(fit$prior$scale, c(2.5, 2.5 / sds, 1) * sd(data$z))
})

test_that("the prior of the intercept is at the covariates' means", {
  # far from zero on the scale of b, where it would otherwise pull
  data$far <- data$b + 1000
  run <- function(formula) {
    tall_glm(
      formula,
      data,
      binomial(),
      prior_intercept = prior_normal(0, 0.3),
      iter = 20,
      seed = 1,
      refresh = 0
    )$mode$estimate
  }
  near <- run(y ~ b)
  far <- run(y ~ far)
  expect_equal(far[["far"]], near[["b"]], tolerance = 1e-5)
  expect_equal(
    far[["(Intercept)"]],
    near[["(Intercept)"]] - 1000 * near[["b"]],
    tolerance = 1e-5
  )
})

test_that("all arguments of sg_sample() pass", {
  fit <- fast(
    y ~ a,
    family = binomial(),
    kernel = kernel_sgld(1e-3),
    gradient = gradient_simple(),
    subsample = subsample_uniform(20),
    schedule = schedule_decay(1, 1, 0.1),
    warmup = 10,
    thin = 3,
    keep = c("draws", "gradients")
  )
  expect_identical(posterior::niterations(fit$draws), 10L)
  expect_identical(fit$gradient$name, "simple")
  expect_identical(dim(fit$gradients), c(10L, 2L, 2L))
  expect_identical(fit$seed, 1)
})

test_that("predictions are averages over the draws", {
  fit <- fast(y ~ a * g + offset(exposure / 10), family = binomial())
  new <- example_data(20, seed = 9)
  x <- model.matrix(~ a * g, new)
  eta <- x %*% t(as.matrix(fit)) + new$exposure / 10
  expect_equal(predict(fit, new), rowMeans(eta))
  expect_equal(predict(fit, new, "response"), rowMeans(plogis(eta)))
  with_se <- predict(fit, new, type = "response", se.fit = TRUE)
  expect_named(with_se, c("fit", "se.fit"))
  deviation <- plogis(eta) - rowMeans(plogis(eta))
  expect_equal(unname(with_se$se.fit), unname(sqrt(rowMeans(deviation^2))))
  expect_equal(predict(fit, new, draws = ncol(eta)), rowMeans(eta))
  one <- predict(fit, new, draws = 1)
  expect_lt(min(apply(abs(eta - one), 2, max)), 1e-10)
  expect_equal(predict(fit), predict(fit, data))
})

test_that("predictions do not depend on the blocks they are made in", {
  fit <- fast(y ~ a, family = binomial())
  many <- data.frame(a = seq(-3, 3, length.out = 250000))
  some <- seq(1, 250000, by = 24999)
  expect_equal(
    unname(predict(fit, many)[some]),
    unname(predict(fit, many[some, , drop = FALSE]))
  )
})

test_that("predictions take factors by name and missing values through", {
  fit <- fast(y ~ a + g, family = binomial())
  new <- data.frame(a = c(0, 1, NA), g = c("w", "u", "v"))
  out <- predict(fit, new)
  expect_equal(
    out[[1]],
    coef(fit)[["(Intercept)"]] + coef(fit)[["gw"]]
  )
  expect_identical(is.na(unname(out)), c(FALSE, FALSE, TRUE))
  only <- data.frame(a = 1, g = factor("v"))
  expect_length(predict(fit, only), 1)
})

test_that("a Gaussian fit predicts without sigma", {
  fit <- fast(z ~ a, family = gaussian())
  expect_equal(
    unname(predict(fit, data.frame(a = 2))),
    sum(coef(fit)[c("(Intercept)", "a")] * c(1, 2))
  )
})

test_that("an offset given as an argument can be given again", {
  fit <- tall_glm(
    count ~ a,
    data,
    poisson(),
    offset = log(exposure),
    iter = 40,
    seed = 1,
    refresh = 0
  )
  new <- data[1:3, ]
  base <- predict(fit, new) - log(new$exposure)
  expect_equal(predict(fit, new, offset = 1), base + 1)
  expect_equal(predict(fit, new, offset = 1:3), base + 1:3)
})

test_that("predictions are refused in words", {
  fit <- fast(y ~ a + g, family = binomial(), keep_data = FALSE)
  expect_snapshot(predict(fit), error = TRUE, cnd_class = TRUE)
  expect_snapshot(predict(fit, 1), error = TRUE)
  expect_snapshot(predict(fit, data["a"]), error = TRUE)
  expect_snapshot(predict(fit, data["w"]), error = TRUE)
  expect_snapshot(predict(fit, data.frame(a = 1, g = "zz")), error = TRUE)
  expect_snapshot(predict(fit, data, type = "prob"), error = TRUE)
  expect_snapshot(predict(fit, data, draws = 0), error = TRUE)
  expect_snapshot(predict(fit, data, offset = 1:3), error = TRUE)
  expect_snapshot(predict(fit, data, se.fit = NA), error = TRUE)
})

test_that("formulas that cannot be used are refused in words", {
  expect_snapshot(tall_glm("y ~ a", data), error = TRUE, cnd_class = TRUE)
  expect_snapshot(tall_glm(), error = TRUE)
  expect_snapshot(tall_glm(~a, data, binomial()), error = TRUE)
  expect_snapshot(tall_glm(y ~ 0, data, binomial()), error = TRUE)
  expect_snapshot(tall_glm(y ~ nope, data, binomial()), error = TRUE)
  expect_snapshot(tall_glm(y ~ a, as.matrix(data["a"])), error = TRUE)
  data$one <- factor("x")
  expect_snapshot(tall_glm(y ~ a + one, data, binomial()), error = TRUE)
  expect_snapshot(tall_glm(y ~ a, data[0, ], binomial()), error = TRUE)
})

test_that("missing and infinite values name their variable", {
  data$a[5] <- NA
  data$b[6] <- Inf
  data$g[7] <- NA
  expect_snapshot(
    tall_glm(y ~ a, data, binomial(), na.action = na.pass),
    error = TRUE,
    cnd_class = TRUE
  )
  # the row is that of `data`, although one before it was left out
  expect_snapshot(tall_glm(y ~ a + b, data, binomial()), error = TRUE)
  expect_snapshot(
    tall_glm(y ~ g, data, binomial(), na.action = na.pass),
    error = TRUE
  )
  data$y[8] <- NA
  expect_snapshot(
    tall_glm(y ~ w, data, binomial(), na.action = na.pass),
    error = TRUE
  )
  expect_snapshot(
    tall_glm(w == 1 ~ 1, data, binomial(), weights = a, na.action = na.pass),
    error = TRUE
  )
  expect_snapshot(
    tall_glm(w == 1 ~ 1, data, binomial(), offset = b),
    error = TRUE
  )
})

test_that("responses that do not fit the family are refused in words", {
  expect_snapshot(tall_glm(a ~ b, data, binomial()), error = TRUE)
  expect_snapshot(tall_glm(a ~ b, data, poisson()), error = TRUE)
  expect_snapshot(tall_glm(g ~ b, data, binomial()), error = TRUE)
  expect_snapshot(tall_glm(g ~ b, data, gaussian()), error = TRUE)
  expect_snapshot(tall_glm(cbind(w, y, w) ~ b, data, binomial()), error = TRUE)
  expect_snapshot(tall_glm(cbind(a, w) ~ b, data, binomial()), error = TRUE)
  expect_snapshot(tall_glm(as.character(g) ~ b, data, binomial()), error = TRUE)
})

test_that("weights and offsets are refused in words", {
  expect_snapshot(
    tall_glm(y ~ a, data, binomial(), weights = w - 2),
    error = TRUE
  )
  expect_snapshot(
    tall_glm(y ~ a, data, binomial(), weights = 1:3),
    error = TRUE
  )
  expect_snapshot(tall_glm(y ~ a, data, binomial(), offset = 1:3), error = TRUE)
})

test_that("weights may be 0, not negative, and the message says so", {
  data <- example_data(n = 60)
  data$w <- rep(c(2, 0, 1), 20)
  data$w[[50]] <- -3
  data$a[1:9] <- NA
  # rows as the data number them, the trials of counts not multiplied in
  expect_snapshot(error = TRUE, {
    tall_glm(y ~ a, data, binomial(), weights = w)
    tall_glm(cbind(y, 2 - y) ~ a, data, binomial(), weights = w)
    tall_glm(y ~ a, data, binomial(), weights = as.character(w))
    tall_glm(y ~ a, data, binomial(), weights = 1 / a, na.action = na.pass)
  })
  x <- cbind(1, seq_len(60))
  expect_snapshot(error = TRUE, {
    tall_glm.fit(x, data$y, binomial(), weights = data$w)
    model_glm(x, data$y, weights = data$w)
    model_glm(x, data$y, weights = data$w + 3)
  })
  fit <- tall_glm(
    y ~ b,
    data[1:48, ],
    binomial(),
    weights = w,
    iter = 20,
    chains = 1,
    seed = 1,
    refresh = 0
  )
  expect_identical(nobs(fit), 32)
  expect_snapshot(rstantools::log_lik(fit, newdata = data), error = TRUE)
})

test_that("other arguments are refused in tall_glm()'s name", {
  expect_snapshot(tall_glm(y ~ a, data, "binomal"), error = TRUE)
  expect_snapshot(tall_glm(y ~ a, data, binomial("cauchit")), error = TRUE)
  expect_snapshot(tall_glm(y ~ a, data, binomial(), prior = 1), error = TRUE)
  expect_snapshot(
    tall_glm(y ~ a, data, binomial(), prior = prior_normal(0, 1:4)),
    error = TRUE
  )
  expect_snapshot(
    tall_glm(y ~ a, data, binomial(), iter = 10, warmup = 10),
    error = TRUE
  )
  expect_snapshot(
    tall_glm(y ~ a, data, binomial(), gradient = gradient_cv()),
    error = TRUE
  )
  expect_snapshot(tall_glm(y ~ a, data, binomial(), seed = "a"), error = TRUE)
  expect_snapshot(
    tall_glm(y ~ a, data, binomial(), keep_data = NA),
    error = TRUE
  )
})

test_that("improper posteriors are refused in tall_glm()'s name", {
  flat <- prior_flat()
  expect_snapshot(
    tall_glm(y ~ a + I(2 * a), data, binomial(), prior = flat),
    error = TRUE,
    cnd_class = TRUE
  )
  data$split <- data$y
  expect_snapshot(
    tall_glm(y ~ a + split, data, binomial(), prior = flat),
    error = TRUE
  )
})

test_that("designs made by blocks of rows are model.matrix()'s", {
  withr::local_seed(4)
  n <- 47
  data <- data.frame(
    y = rnorm(n),
    a = rnorm(n),
    b = runif(n),
    # most levels are absent from most blocks
    g = factor(rep(letters[1:6], length.out = n), levels = letters[6:1]),
    o = factor(sort(rep(1:4, length.out = n)), ordered = TRUE),
    text = sort(rep(c("u", "v", "w"), length.out = n)),
    flag = seq_len(n) > 40,
    e = runif(n)
  )
  data$pair <- cbind(data$a, data$b^2)
  rownames(data) <- paste0("row", seq_len(n))
  contrasts(data$g) <- stats::contr.sum(6)
  data$a[c(3, 40)] <- NA
  for (formula in list(
    y ~ .,
    y ~ g * a + o,
    y ~ text:b + flag,
    y ~ poly(b, 3) + splines::ns(e, df = 4) + scale(b),
    y ~ pair + I(b^2) + offset(e) - 1,
    y ~ g:o - 1,
    y ~ 1,
    y ~ b + (b > 0.5) + cut(e, 3)
  )) {
    frame <- stats::model.frame(formula, data)
    terms <- attr(frame, "terms")
    whole <- stats::model.matrix(terms, frame)
    for (size in c(1, 5 * length(frame), 1e6)) {
      made <- design_matrix(terms, frame, size = size)
      expect_identical(made$contrasts, attr(whole, "contrasts"))
      expect_identical(dimnames(made$x), list(NULL, colnames(whole)))
      expect_identical(unname(made$x), matrix(as.vector(whole), nrow(whole)))
    }
  }
})

test_that("frames without missing values are the same without a copy", {
  data <- data.frame(y = 1:4 + 0, a = c(1, 2, 3, 5), m = c(1, NA, 3, 4))
  for (action in list(stats::na.omit, stats::na.exclude, "na.omit")) {
    for (formula in c(y ~ a, y ~ a + m)) {
      expect_identical(
        stats::model.frame(formula, data, na.action = spare_copy(action)),
        stats::model.frame(formula, data, na.action = action)
      )
    }
  }
  own <- function(object) object[-1, ]
  expect_identical(spare_copy(own), own)
  expect_error(
    stats::model.frame(y ~ m, data, na.action = spare_copy(stats::na.fail)),
    "missing values"
  )
})

test_that("rows of weight 0 are left out", {
  data <- example_data(n = 60)
  data$w <- rep(c(2, 0, 1), 20)
  data$a[[4]] <- NA
  fit <- function(...) {
    tall_glm(y ~ a, ..., weights = w, family = binomial(), iter = 400, seed = 1)
  }
  all <- fit(data)
  some <- fit(data[data$w > 0, ])
  expect_identical(all$draws, some$draws)
  expect_identical(nobs(all), 39)
  reference <- stats::glm(y ~ a, binomial(), data, weights = w)
  expect_identical(nobs(all), nobs(reference) + 0)
  expect_identical(names(fitted(all)), names(fitted(some)))
  # na.exclude has NA for them
  padded <- residuals(fit(data, na.action = stats::na.exclude))
  expect_length(padded, 60)
  left_out <- sort(c(4L, which(data$w == 0)))
  expect_identical(unname(which(is.na(padded))), left_out)
  expect_equal(padded[!is.na(padded)], residuals(all))

  x <- cbind("(Intercept)" = 1, a = seq(-1, 1, length.out = 60))
  matrix_fit <- function(rows, y = data$y) {
    tall_glm.fit(
      x[rows, ],
      if (is.matrix(y)) y[rows, ] else y[rows],
      binomial(),
      weights = data$w[rows],
      offset = seq_len(60)[rows] / 60,
      seed = 1,
      refresh = 0
    )
  }
  counts <- cbind(data$y, 1 - data$y)
  for (y in list(data$y, factor(data$y), counts)) {
    expect_identical(
      matrix_fit(1:60, y)$draws,
      matrix_fit(which(data$w > 0), y)$draws
    )
  }
  expect_snapshot(error = TRUE, {
    tall_glm(y ~ a, data, binomial(), weights = 0 * w)
    tall_glm.fit(x, data$y, binomial(), weights = 0 * data$w)
  })
})

test_that("rows without trials are left out, as glm() does", {
  data <- example_data(n = 60)
  data$wins <- 2 * data$y
  data$losses <- 3 - data$wins
  data[c(5, 6, 40), c("wins", "losses")] <- 0
  data$w <- rep(c(1, 2, 0), 20)
  fit <- function(data, ...) {
    tall_glm(
      cbind(wins, losses) ~ a,
      data,
      family = binomial(),
      ...,
      iter = 400,
      seed = 1
    )
  }
  some <- fit(data[data$wins + data$losses > 0, ])
  all <- fit(data)
  expect_identical(all$draws, some$draws)
  expect_identical(nobs(all), 57)
  reference <- glm(cbind(wins, losses) ~ a, binomial(), data)
  expect_identical(nobs(all), nobs(reference) + 0)
  padded <- fitted(fit(data, na.action = stats::na.exclude))
  expect_identical(unname(which(is.na(padded))), c(5L, 6L, 40L))
  # row 6 has neither weight nor trials
  weighted <- tall_glm(
    cbind(wins, losses) ~ a,
    data,
    family = binomial(),
    weights = w,
    iter = 100,
    seed = 1
  )
  expect_identical(nobs(weighted), 38)

  x <- cbind("(Intercept)" = 1, a = data$a)
  counts <- cbind(data$wins, data$losses)
  matrix_fit <- function(rows, ...) {
    tall_glm.fit(x[rows, ], counts[rows, ], binomial(), ..., seed = 1)
  }
  expect_identical(matrix_fit(1:60)$draws, matrix_fit(-c(5, 6, 40))$draws)
  none <- 0 * counts
  expect_error(tall_glm.fit(x, none, binomial()), "at least one trial")
  expect_error(
    tall_glm(cbind(0 * wins, 0 * losses) ~ a, data, family = binomial()),
    "at least one trial"
  )
})

test_that("group-level terms are refused", {
  data <- transform(example_data(n = 60), g = rep(1:3, 20))
  expect_snapshot(error = TRUE, tall_glm(y ~ a + (1 | g), data, binomial()))
  for (formula in list(y ~ (a | g), y ~ a:b + (1 + a || g), y ~ 1 | g)) {
    expect_error(
      tall_glm(formula, data, binomial()),
      class = "tall_error_unsupported"
    )
    expect_error(tall_nn(formula, data), class = "tall_error_unsupported")
  }
  # R's own `or`
  or <- tall_glm(y ~ I(a > 0 | b > 0), data, binomial(), iter = 4, refresh = 0)
  expect_identical(or$variables[[2]], "I(a > 0 | b > 0)TRUE")
})

test_that("a column is not taken for the residual standard deviation", {
  data <- transform(example_data(100), sigma = a)
  for (fit in list(
    function(...) quick_glm(y ~ sigma, data, gaussian(), ...),
    function(...) tall_glm.fit(cbind(sigma = data$a), data$y, ...)
  )) {
    error <- expect_error(fit(), class = "tall_error_input")
    expect_match(conditionMessage(error), "I(sigma)", fixed = TRUE)
    known <- fit(sigma = 1, iter = 20)
    expect_identical(known$variables[[known$n_coef]], "sigma")
  }
  inner <- quick_glm(y ~ I(sigma), data, gaussian(), iter = 20)
  expect_identical(inner$variables, c("(Intercept)", "I(sigma)", "sigma"))
  logistic <- quick_glm(y ~ sigma, data, iter = 20)
  expect_identical(logistic$variables, c("(Intercept)", "sigma"))
})

test_that("successes are whole numbers", {
  data <- data.frame(share = c(0.33, 0.5, 0.25, 0), n = c(10, 4, 4, 3), x = 1:4)
  by_trials <- quote(tall_glm(share ~ x, data, binomial(), weights = n))
  expect_snapshot(
    tall_glm(share ~ x, data, binomial(), weights = n),
    error = TRUE,
    cnd_class = TRUE
  )
  expect_snapshot(tall_glm(share ~ x, data, binomial()), error = TRUE)
  x <- cbind(1, data$x)
  calls <- list(
    share = by_trials,
    y = quote(tall_glm.fit(x, data$share, binomial(), weights = data$n)),
    y = quote(tall_glm.fit(x, data$share, binomial())),
    y = quote(model_glm(x, data$share, "binomial", weights = data$n)),
    y = quote(model_glm(x, data$share, "binomial"))
  )
  for (k in seq_along(calls)) {
    e <- expect_error(eval(calls[[k]]), class = "tall_error_input")
    expect_identical(e$argument, names(calls)[[k]])
  }
  # trials, too
  data$share[[1]] <- 0.4
  data$n[[1]] <- 2.5
  expect_snapshot(
    tall_glm(share ~ x, data, binomial(), weights = n),
    error = TRUE
  )
  # a row of the data, where others were left out
  data$n <- c(0, 4, 5, 3)
  expect_error(eval(by_trials), "row 3", class = "tall_error_input")
  # rounded as glm() lets pass
  data$share <- c(0.3, 0.5, 0.25, 0.3333)
  data$n <- c(10, 4, 4, 3)
  rounded <- here_glm(share ~ x, family = binomial(), weights = n, iter = 20)
  expect_s3_class(rounded, "tall_glm")
  # weights of 0 and 1 need not be whole, nor times trials
  data$y <- c(0, 1, 0, 1)
  for (formula in c(y ~ x, cbind(y, 2 - y) ~ x)) {
    weighted <- tall_glm(
      formula,
      data,
      family = binomial(),
      weights = c(0.5, 1.5, 2, 1),
      iter = 20,
      chains = 1,
      seed = 1,
      refresh = 0
    )
    expect_s3_class(weighted, "tall_glm")
  }
})

test_that("arguments of other packages are named with what does their work", {
  data <- example_data(60)
  foreign <- c(
    "QR", "adapt_delta", "control", "algorithm", "mean_PPD",
    "contrasts", "backend"
  )
  for (name in foreign) {
    given <- stats::setNames(list(TRUE), name)
    calls <- list(
      function() do.call(tall_glm, c(list(y ~ a, data, binomial()), given)),
      function() do.call(tall_nn, c(list(z ~ a, data), given)),
      function() do.call(sg_sample, c(list(example_model()), given)),
      function() {
        do.call(
          tall_glm.fit,
          c(list(cbind(1, data$a), data$y, binomial()), given)
        )
      }
    )
    for (f in calls) {
      e <- expect_error(f(), class = "tall_error_input")
      expect_identical(e$argument, name)
      expect_length(e$body, 1)
    }
  }
  expect_snapshot(tall_glm(y ~ a, data, binomial(), QR = TRUE), error = TRUE)
  expect_snapshot(tall_glm(y ~ a, data, binomial(), itr = 5), error = TRUE)
  fit <- quick_glm(y ~ a, data, iter = 20, chains = 1)
  expect_error(
    update(fit, adapt_delta = 0.9),
    "NUTS",
    class = "tall_error_input"
  )
})

test_that("a design that memory does not hold is refused by its widest term", {
  local_settings(memory = 1e6)
  data <- data.frame(
    y = rnorm(2000),
    x = rnorm(2000),
    id = as.character(1:2000),
    g = factor(rep(1:10, 200))
  )
  fit <- tall_glm(y ~ x * g, data, iter = 100, refresh = 0)
  expect_s3_class(fit, "tall_fit")
  error <- expect_error(
    tall_glm(y ~ x + g:id, data, refresh = 0),
    "`g:id` has 20,000 columns",
    class = "tall_error_memory"
  )
  expect_identical(error$argument, "formula")
  # wherever a design is made
  data$id <- factor(data$id)
  data$k <- factor(rep(1:4, 500), ordered = TRUE)
  for (fit in list(
    function() tall_glm(y ~ id, data, sparse = FALSE, refresh = 0),
    function() tall_multinom(k ~ id, data, refresh = 0),
    function() tall_polr(k ~ id, data, refresh = 0),
    function() tall_nn(y ~ id, data, refresh = 0),
    function() tall_glmer(y ~ id + (1 | g), data, refresh = 0),
    function() tall_glmer(y ~ x + (id | g), data, refresh = 0)
  )) {
    error <- expect_error(fit(), "32 MB", class = "tall_error_memory")
    expect_match(conditionMessage(error), "`id` has 1,999 columns")
  }
  # crossed factors have few contrasts; names that are not syntactic
  bits <- expand.grid(rep(list(c("n", "y")), 9))
  names(bits) <- c(letters[1:8], "a b")
  bits$y <- sin(1:512)
  frame <- stats::model.frame(y ~ a * b * c * d * e * f * g * h * `a b`, bits)
  terms <- attr(frame, "terms")
  expect_identical(
    sum(design_width(terms, frame)),
    ncol(stats::model.matrix(terms, frame)) - 1
  )
})
