schedules <- conformance_schedules()

test_that("every registered schedule has an entry", {
  expect_covered("schedule", unique(vapply(schedules, function(e) e$name, "")))
})

scheduled_run <- function(entry, ...) {
  model <- target_normal(c(1, 2))
  sg_sample(
    model,
    kernel_sgld(0.1),
    gradient_simple(),
    subsample_uniform(10),
    entry$spec,
    chains = 2,
    seed = 1,
    init = c(0, 0),
    refresh = 0,
    ...
  )
}

for (label in names(schedules)) {
  entry <- schedules[[label]]
  says <- function(law) paste0(label, ": ", law)

  test_that(says("draws carry the step's factor as weight"), {
    fit <- scheduled_run(entry, iter = 90, warmup = 30, thin = 4)
    # the draw after every fourth sampling step that counts; steps count from 0
    kept_after <- function(iter) {
      t <- 30:(iter - 1)
      if (!is.null(entry$explores)) {
        t <- t[!entry$explores(t)]
      }
      t[seq(4, length(t), by = 4)]
    }
    longer <- sg_resume(fit, iter = 40, refresh = 0)
    t <- kept_after(90)
    expect_identical(dim(fit$draws)[[1]], length(t))
    expect_identical(dim(longer$draws)[[1]], length(kept_after(130)))
    if (!entry$is_weighted) {
      expect_null(fit$weights)
      return(invisible())
    }
    for (chain in 1:2) {
      expect_close(fit$weights[, chain, 1], entry$factor(t), "weights")
    }
    weights <- weights(fit$draws, normalize = FALSE)
    expect_close(weights, rep(entry$factor(t), 2), "weights of the draws")
    t <- kept_after(130)
    expect_close(longer$weights[, 2, 1], entry$factor(t), "weights, resumed")
  })

  test_that(says("summaries are weighted averages"), {
    fit <- scheduled_run(entry, iter = 300, warmup = 100)
    if (!is.null(entry$explores)) {
      return(invisible(expect_false(entry$is_weighted)))
    }
    w <- rep(if (entry$is_weighted) entry$factor(100:299) else rep(1, 200), 2)
    w <- w / sum(w)
    x <- matrix(plain_draws(fit), 400)
    mean <- colSums(x * w)
    expect_close(coef(fit), mean, "coef")
    expect_close(summary(fit)$table$mean, mean, "summary")
    sd <- sqrt(colSums(sweep(x, 2, mean)^2 * w) / (1 - sum(w^2)))
    if (entry$is_weighted) {
      expect_close(sqrt(diag(vcov(fit))), sd, "vcov")
    }
    unweighted <- colMeans(x)
    expect_identical(
      max(abs(mean - unweighted)) < 1e-12,
      !entry$is_weighted
    )
  })
}
