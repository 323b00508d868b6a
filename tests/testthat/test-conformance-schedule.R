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
    # the draw after sampling step k thin; steps count from 0
    t <- 30 + 4 * seq_len(15) - 1
    if (entry$name == "constant") {
      expect_null(fit$weights)
      return(invisible())
    }
    for (chain in 1:2) {
      expect_close(fit$weights[, chain, 1], entry$factor(t), "weights")
    }
    weights <- weights(fit$draws, normalize = FALSE)
    expect_close(weights, rep(entry$factor(t), 2), "weights of the draws")
    longer <- sg_resume(fit, iter = 40, refresh = 0)
    t <- 30 + 4 * seq_len(25) - 1
    expect_close(longer$weights[, 2, 1], entry$factor(t), "weights, resumed")
  })

  test_that(says("summaries are weighted averages"), {
    fit <- scheduled_run(entry, iter = 300, warmup = 100)
    w <- rep(entry$factor(100:299), 2)
    w <- w / sum(w)
    x <- matrix(plain_draws(fit), 400)
    mean <- colSums(x * w)
    expect_close(coef(fit), mean, "coef")
    expect_close(summary(fit)$table$mean, mean, "summary")
    sd <- sqrt(colSums(sweep(x, 2, mean)^2 * w) / (1 - sum(w^2)))
    if (entry$name != "constant") {
      expect_close(sqrt(diag(vcov(fit))), sd, "vcov")
    }
    unweighted <- colMeans(x)
    expect_identical(
      max(abs(mean - unweighted)) < 1e-12,
      entry$name == "constant"
    )
  })
}
