# Binomial responses with other links than the logit, from front to end. The
# laws of each response are in test-conformance-response.R.

links <- c("probit", "cloglog")

linked_data <- function(link, n = 400) {
  withr::local_seed(4)
  data <- data.frame(a = rnorm(n), b = runif(n, -1, 2))
  data$n <- rep_len(c(1, 4, 9), n)
  eta <- -0.4 + 0.8 * data$a - 0.5 * data$b
  mu <- binomial(link)$linkinv(eta)
  data$y <- rbinom(n, 1, mu)
  data$k <- rbinom(n, data$n, mu)
  data
}

for (link in links) {
  test_that(paste(link, "with flat priors has the mode that glm() has"), {
    data <- linked_data(link)
    x <- model.matrix(~ a + b, data)
    ours <- find_mode(model_glm(x, data$y, binomial(link), prior = NULL))
    control <- list(epsilon = 1e-14, maxit = 100)
    theirs <- glm(y ~ a + b, binomial(link), data, control = control)
    expect_equal(ours$estimate, coef(theirs), tolerance = 1e-6)

    # proportions of trials, with an offset
    ours <- find_mode(model_glm(
      x,
      data$k / data$n,
      binomial(link),
      prior = NULL,
      weights = data$n,
      offset = 0.1 * data$b^2
    ))
    theirs <- glm(
      cbind(k, n - k) ~ a + b + offset(0.1 * b^2),
      binomial(link),
      data,
      control = control
    )
    expect_equal(ours$estimate, coef(theirs), tolerance = 1e-6)
  })

  test_that(paste(link, "has the posterior of quadrature"), {
    data <- linked_data(link)[1:60, ]
    fit <- tall_glm(
      cbind(k, n - k) ~ a,
      data,
      binomial(link),
      prior = prior_normal(0, 1),
      prior_intercept = prior_normal(0, 1),
      iter = 3000,
      seed = 1,
      refresh = 0
    )
    # the intercept's prior is on the predictor at the mean of a
    at <- mean(data$a)
    grid <- expand.grid(
      coef(fit)[[1]] + seq(-6, 6, length.out = 90) * sqrt(vcov(fit)[1, 1]),
      coef(fit)[[2]] + seq(-6, 6, length.out = 90) * sqrt(vcov(fit)[2, 2])
    )
    log_p <- apply(grid, 1, function(beta) {
      mu <- binomial(link)$linkinv(beta[[1]] + beta[[2]] * data$a)
      sum(dbinom(data$k, data$n, mu, log = TRUE)) +
        dnorm(beta[[1]] + beta[[2]] * at, 0, 1, log = TRUE) +
        dnorm(beta[[2]], 0, 1, log = TRUE)
    })
    p <- exp(log_p - max(log_p))
    p <- p / sum(p)
    for (j in 1:2) {
      mean <- sum(p * grid[[j]])
      sd <- sqrt(sum(p * (grid[[j]] - mean)^2))
      draws <- fit$draws[, , j]
      off <- abs(mean(draws) - mean)
      expect_lt(off, 5 * posterior::mcse_mean(matrix(draws, ncol = 4)))
      off <- abs(stats::sd(draws) - sd)
      expect_lt(off, 5 * posterior::mcse_sd(matrix(draws, ncol = 4)))
    }
  })

  test_that(paste(link, "is what its methods are made of"), {
    data <- linked_data(link)
    data$w <- rep_len(c(0.5, 1, 2), nrow(data))
    fit <- tall_glm(
      cbind(k, n - k) ~ a + b,
      data,
      binomial(link),
      weights = w,
      iter = 60,
      chains = 2,
      seed = 2,
      refresh = 0
    )
    expect_identical(family(fit), binomial(link))
    theta <- unname(as.matrix(fit))
    eta <- theta %*% t(model.matrix(~ a + b, data))
    mu <- binomial(link)$linkinv(eta)
    expect_equal(unname(rstantools::posterior_epred(fit)), unname(mu))
    expect_equal(unname(rstantools::posterior_linpred(fit)), unname(eta))
    expect_equal(unname(predict(fit, type = "response")), unname(colMeans(mu)))
    each <- function(x) rep(x, each = nrow(mu))
    log_lik <- each(data$w) *
      dbinom(each(data$k), each(data$n), mu, log = TRUE)
    dim(log_lik) <- dim(mu)
    expect_equal(unname(rstantools::log_lik(fit)), log_lik)
    drawn <- rstantools::posterior_predict(fit, seed = 3)
    z <- (colMeans(drawn) - data$n * colMeans(mu)) /
      sqrt(data$n * colMeans(mu * (1 - mu)) / nrow(mu))
    expect_lt(max(abs(z)), 5)
    m <- unname(colMeans(mu))
    y <- data$k / data$n
    expect_equal(
      unname(residuals(fit, "pearson")),
      (y - m) * sqrt(data$w * data$n / (m * (1 - m)))
    )
    deviance <- binomial()$dev.resids(y, m, data$w * data$n)
    expect_equal(unname(residuals(fit, "deviance"))^2, deviance)
    spread <- apply(mu * each(data$n), 1, var)
    noise <- rowMeans(mu * (1 - mu) * each(data$n))
    r2 <- rstantools::bayes_R2(fit)
    expect_equal(unname(r2), unname(spread / (spread + noise)))

    again <- update(fit, . ~ . - b)
    expect_identical(family(again)$link, link)
  })

  test_that(paste(link, "runs with estimators and weights of rows"), {
    data <- linked_data(link)
    model <- model_glm(model.matrix(~ a + b, data), data$y, binomial(link))
    expect_output(print(model), paste0("binomial (", link, ")"), fixed = TRUE)
    for (gradient in list(gradient_cv(), gradient_saga(), gradient_full())) {
      fit <- sg_sample(
        model,
        kernel_sgld(1e-4),
        gradient,
        if (gradient$name != "full") subsample_uniform(20),
        iter = 50,
        chains = 1,
        seed = 1,
        refresh = 0
      )
      expect_true(all(is.finite(fit$draws)))
    }
    for (type in c("hessian", "leverage", "robust", "gradient")) {
      expect_equal(sum(subsampling_weights(model, type = type)), 1)
    }
    if (link == "probit") {
      w <- subsampling_weights(model, type = "lipschitz", defensive = 0)
      norms <- rowSums(model.matrix(~ a + b, data)^2)
      expect_equal(w, unname(norms / sum(norms)))
    } else {
      expect_error(
        subsampling_weights(model, type = "lipschitz"),
        class = "tall_error_unsupported"
      )
    }
  })

  test_that(paste(link, "tells a likelihood that rises without end"), {
    x <- cbind("(Intercept)" = 1, a = c(-3:-1, 1:3))
    y <- as.numeric(x[, "a"] > 0)
    expect_error(
      find_mode(model_glm(x, y, binomial(link), prior = NULL)),
      class = "tall_error_improper"
    )
  })
}

test_that("held-out data are read with the link of the fit", {
  data <- linked_data("probit")
  monitor <- monitor_log_loss(data[301:400, ])
  fit <- tall_glm(
    y ~ a,
    data[1:300, ],
    binomial("probit"),
    iter = 60,
    chains = 1,
    seed = 1,
    monitor = list(every = 20, loss = monitor),
    refresh = 0
  )
  held_out <- data[301:400, ]
  mu <- pnorm(as.matrix(fit) %*% rbind(1, held_out$a))
  y <- rep(held_out$y, each = nrow(mu))
  p <- matrix(dbinom(y, 1, mu), nrow(mu))
  seen <- fit$monitor
  last <- seen$value[seen$iteration == 60 & seen$statistic == "draw"]
  expect_equal(last, -mean(log(p[nrow(p), ])))
  loss <- log_loss(fit, held_out)
  expect_equal(unname(loss), -mean(log(colMeans(p))))
})

test_that("whole responses are the doubles they are, to the bit", {
  x <- withr::with_seed(1, cbind(1, rnorm(200)))
  run <- function(model) {
    fit <- sg_sample(
      model,
      kernel_sgld(1e-4),
      gradient_cv(),
      subsample_uniform(20),
      iter = 50,
      chains = 1,
      seed = 1,
      refresh = 0
    )
    plain_draws(fit)
  }
  # beta ones are between 0 and 1
  for (name in setdiff(regression_responses(), "beta")) {
    family <- if (name == "student") student(4) else name
    y <- switch(
      name,
      poisson = 0:4,
      neg_binomial_2 = c(0L, 0L, 1L, 9L),
      Gamma = 1:5,
      truncated_poisson = 1:5,
      0:1
    )
    y <- rep_len(y, 200)
    real <- model_glm(x, as.double(y), family)
    draws <- run(real)
    # names and dimensions are not part of them
    kinds <- list(y, stats::setNames(y, seq_along(y)), array(y))
    if (max(y) == 1) {
      kinds <- c(kinds, list(y == 1))
    }
    for (kind in kinds) {
      whole <- model_glm(x, kind, family)
      expect_identical(whole$fingerprint, real$fingerprint)
      expect_identical(whole$prior, real$prior)
      expect_identical(run(whole), draws)
    }
  }
})

test_that("whole responses are checked as doubles are", {
  x <- cbind(rep(1, 200))
  y <- rep_len(0:1, 200)
  # beyond the first of the blocks in which they are looked at
  for (bad in c(2L, -1L, NA)) {
    at <- function(y) {
      error <- expect_error(model_glm(x, y), class = "tall_error_input")
      expect_equal(error$index, 150)
      conditionMessage(error)
    }
    whole <- replace(y, 150, bad)
    expect_identical(at(whole), at(as.double(whole)))
  }
  flags <- replace(y == 1, 150, NA)
  expect_error(model_glm(x, flags), "be finite, but value 150 is NA")
  expect_error(model_glm(x, -y, "poisson"), "value 2 is -1")
  expect_error(model_glm(x, factor(y)), class = "tall_error_input")
})
