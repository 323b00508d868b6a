# emmeans of ordered and unordered classes, and of groups: of the draws
# themselves, and near what it says of MASS::polr() and nnet::multinom().

skip_if_not_installed("emmeans")

before <- options(tallbayes.refresh = 0)

marginal_data <- withr::with_seed(1, {
  d <- data.frame(x = rnorm(600), f = factor(rep(c("a", "b", "c"), 200)))
  d$shift <- 0.3
  eta <- 0.8 * d$x + c(0, 0.7, -0.5)[d$f] + d$shift
  d$o <- cut(eta + rlogis(600), c(-Inf, -1, 0.5, Inf), c("lo", "mid", "hi"))
  d$o <- as.ordered(d$o)
  d
})

marginal_fits <- local({
  made <- NULL
  function() {
    if (is.null(made)) {
      d <- marginal_data
      made <<- list(
        polr = tall_polr(
          o ~ x + f, d, prior = NULL, prior_counts = NULL, iter = 1000,
          seed = 1
        ),
        probit = tall_polr(
          o ~ x + f + offset(shift), d, method = "probit", iter = 400, seed = 1
        ),
        multinom = tall_multinom(
          o ~ x + f, d, prior = NULL, prior_intercept = NULL, iter = 1000,
          seed = 1
        )
      )
    }
    made
  }
})

new_rows <- data.frame(
  x = mean(marginal_data$x), f = c("a", "b", "c"), shift = 0.3
)

draws_of_means <- function(means) {
  unname(as.matrix(coda::as.mcmc(means)))
}

# levels of f by classes, slowest
test_that("ordered classes have means of every kind", {
  d <- marginal_data
  for (name in c("polr", "probit")) {
    fit <- marginal_fits()[[name]]
    probs <- rstantools::posterior_epred(fit, newdata = new_rows)
    means <- function(mode, by, ...) {
      draws_of_means(emmeans::emmeans(fit, by, mode = mode, data = d, ...))
    }
    n <- nrow(probs)
    expect_close(means("prob", ~ f | o), matrix(probs, n))
    below <- probs[, , 1:2]
    below[, , 2] <- below[, , 1] + below[, , 2]
    expect_close(means("cum.prob", ~ f | cut), matrix(below, n))
    expect_close(means("exc.prob", ~ f | cut), 1 - matrix(below, n))
    class <- probs[, , 1] + 2 * probs[, , 2] + 3 * probs[, , 3]
    expect_close(means("mean.class", ~f), unname(class))
    eta <- rstantools::posterior_linpred(fit, newdata = new_rows)
    cuts <- as.matrix(fit)[, c("lo|mid", "mid|hi")]
    expect_close(means("latent", ~f), unname(eta - rowMeans(cuts)))
    expect_close(
      means("latent", ~f, rescale = c(2, 3)),
      unname(2 + 3 * (eta - rowMeans(cuts)))
    )
    wanted <- cbind(cuts[, 1] - eta, cuts[, 2] - eta)
    expect_close(means("linear.predictor", ~ f | cut), unname(wanted))
  }
})

test_that("ordered classes have nearly the means of polr()", {
  fit <- marginal_fits()$polr
  theirs <- MASS::polr(o ~ x + f, marginal_data, Hess = TRUE)
  for (mode in c("latent", "prob", "mean.class", "cum.prob", "exc.prob")) {
    by <- switch(
      mode, prob = ~ f | o, cum.prob = , exc.prob = ~ f | cut, ~f
    )
    ours <- emmeans::emmeans(fit, by, mode = mode)
    wanted <- emmeans::emmeans(theirs, by, mode = mode)
    expect_identical(as.data.frame(ours)$f, as.data.frame(wanted)$f)
    shown <- as.data.frame(wanted)
    value <- shown[[intersect(names(shown), c("emmean", "prob", "mean.class",
      "cumprob", "cum.prob", "exc.prob", "cumprob", "excprob"))]]
    off <- colMeans(draws_of_means(ours)) - value
    expect_lt(max(abs(off) / shown$SE), 0.25)
    expect_equal(
      apply(draws_of_means(ours), 2, sd), shown$SE, tolerance = 0.15
    )
  }
  # averages over a factor are averages of probabilities
  both <- tall_polr(o ~ x * f, marginal_data, iter = 400, seed = 1)
  means <- emmeans::emmeans(both, ~o, mode = "prob", data = marginal_data)
  probs <- rstantools::posterior_epred(both, newdata = new_rows)
  expect_close(draws_of_means(means), unname(apply(probs, c(1, 3), mean)))
})

test_that("unordered classes have nearly the means of multinom()", {
  fit <- marginal_fits()$multinom
  theirs <- nnet::multinom(o ~ x + f, marginal_data, trace = FALSE)
  probs <- rstantools::posterior_epred(fit, newdata = new_rows)
  ours <- emmeans::emmeans(fit, ~ f | o)
  expect_close(draws_of_means(ours), matrix(probs, nrow(probs)))
  wanted <- as.data.frame(emmeans::emmeans(theirs, ~ f | o))
  shown <- as.data.frame(ours)
  expect_identical(as.character(shown$o), as.character(wanted$o))
  expect_lt(max(abs(shown$prob - wanted$prob) / wanted$SE), 0.25)
  latent <- emmeans::emmeans(fit, ~ f | o, mode = "latent")
  wanted <- as.data.frame(emmeans::emmeans(theirs, ~ f | o, mode = "latent"))
  off <- colMeans(draws_of_means(latent)) - wanted$emmean
  expect_lt(max(abs(off) / wanted$SE), 0.25)
  # differences of probabilities
  pairs <- emmeans::contrast(ours, "pairwise")
  expect_close(
    draws_of_means(pairs)[, 1], unname(probs[, 1, 1] - probs[, 2, 1])
  )
  expect_error(
    emm_basis.tall_classes(fit, NULL, NULL, NULL, mode = "cum.prob"),
    "mode", class = "tall_error_input"
  )
})

test_that("offsets that are arguments are in probabilities", {
  d <- marginal_data
  fit <- tall_polr(o ~ f, d, offset = shift, iter = 400, seed = 1)
  means <- emmeans::emmeans(fit, ~ f | o, mode = "prob", data = d)
  plain <- as.matrix(fit)
  eta <- cbind(0, plain[, c("fb", "fc")]) + 0.3
  expect_close(
    draws_of_means(means)[, 1:3], unname(plogis(plain[, "lo|mid"] - eta))
  )
})

options(before)
