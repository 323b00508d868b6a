# bayestestR's verbs, against the same of a data frame of the draws.

skip_if_not_installed("bayestestR")

before <- options(tallbayes.refresh = 0)

described <- local({
  made <- NULL
  function() {
    if (is.null(made)) {
      d <- withr::with_seed(1, {
        d <- data.frame(x = rnorm(100), g = rep(1:10, 10))
        d$y <- 0.2 * d$x + rnorm(100)
        d$n <- rpois(100, 2)
        d
      })
      d$o <- ordered(pmin(d$n, 3))
      d$b <- d$y > 0
      run <- function(front, formula, ...) {
        front(formula, d, ..., iter = 400, seed = 1)
      }
      made <<- list(
        data = d,
        glm = run(tall_glm, y ~ x, prior = prior_normal(0, 1)),
        binary = run(tall_glm, b ~ x, family = binomial()),
        probit = run(tall_glm, b ~ x, family = binomial("probit")),
        count = run(tall_glm, n ~ x, family = poisson()),
        glmer = run(tall_glmer, y ~ x + (1 | g)),
        polr = run(tall_polr, o ~ x),
        multinom = run(tall_multinom, o ~ x),
        gam = run(tall_gam, y ~ s(x))
      )
    }
    made
  }
})

of_draws <- function(fit, names = NULL) {
  draws <- as.data.frame(as.matrix(fit), optional = TRUE)
  if (is.null(names)) draws else draws[names]
}

test_that("verbs are those of the draws", {
  fits <- described()
  ns <- asNamespace("bayestestR")
  verbs <- c(
    "hdi", "eti", "ci", "p_direction", "p_map", "map_estimate",
    "point_estimate"
  )
  own <- list(
    glm = c("(Intercept)", "x"),
    glmer = c("(Intercept)", "x"),
    polr = c("x", "0|1", "1|2", "2|3"),
    multinom = fits$multinom$variables
  )
  for (name in names(own)) {
    for (verb in verbs) {
      f <- ns[[verb]]
      expect_equal(
        as.data.frame(f(fits[[name]])),
        as.data.frame(f(of_draws(fits[[name]], own[[name]]))),
        ignore_attr = TRUE
      )
    }
  }
  expect_identical(
    bayestestR::eti(fits$glm, component = "all", ci = 0.5)$CI_low,
    bayestestR::eti(of_draws(fits$glm), ci = 0.5)$CI_low
  )
  expect_identical(
    bayestestR::hdi(fits$glmer, effects = "random")$Parameter,
    "sd_g__Intercept"
  )
  expect_identical(
    bayestestR::hdi(fits$glm, component = "auxiliary")$Parameter, "sigma"
  )
  expect_identical(
    bayestestR::eti(fits$glm, parameters = "^x")$Parameter, "x"
  )
  expect_error(
    bayestestR::eti(fits$glm, parameters = "q"), class = "tall_error_input"
  )
})

test_that("the region of equivalence is that of the response", {
  fits <- described()
  d <- fits$data
  expect_equal(
    bayestestR::rope_range(fits$glm), bayestestR::rope_range(lm(y ~ x, d))
  )
  expect_equal(
    bayestestR::rope_range(fits$binary),
    bayestestR::rope_range(glm(b ~ x, binomial(), d))
  )
  expect_equal(
    bayestestR::rope_range(fits$probit),
    bayestestR::rope_range(glm(b ~ x, binomial("probit"), d))
  )
  expect_equal(
    bayestestR::rope_range(fits$polr),
    bayestestR::rope_range(MASS::polr(o ~ x, d, Hess = TRUE))
  )
  expect_equal(bayestestR::rope_range(fits$count), c(-0.1, 0.1))
  logs <- tall_glm(log(n + 1) ~ x, d, iter = 200, seed = 1)
  expect_equal(bayestestR::rope_range(logs), c(-0.01, 0.01))
  range <- 0.1 * sd(d$y) * c(-1, 1)
  draws <- of_draws(fits$glm, c("(Intercept)", "x"))
  rope <- bayestestR::rope(fits$glm)
  expect_equal(rope, bayestestR::rope(draws, range = range), ignore_attr = TRUE)
  # by hand, within the central 95%
  x <- draws$x
  ends <- quantile(x, c(0.025, 0.975))
  inside <- x[x >= ends[[1]] & x <= ends[[2]]]
  expect_equal(
    rope$ROPE_Percentage[[2]], mean(abs(inside) <= range[[2]]),
    tolerance = 0.02
  )
  for (verb in c("p_rope", "equivalence_test")) {
    f <- asNamespace("bayestestR")[[verb]]
    expect_equal(
      as.data.frame(f(fits$glm)), as.data.frame(f(draws, range = range)),
      ignore_attr = TRUE
    )
  }
  expect_equal(
    bayestestR::rope(fits$glm, range = c(-1, 0.5))$ROPE_high, c(0.5, 0.5)
  )
  expect_error(
    bayestestR::rope(fits$glm, range = "a"), class = "tall_error_input"
  )
})

test_that("posteriors are described", {
  fit <- described()$glm
  out <- bayestestR::describe_posterior(
    fit, test = c("pd", "rope", "bf"), priors = TRUE
  )
  draws <- of_draws(fit, c("(Intercept)", "x"))
  range <- bayestestR::rope_range(fit)
  theirs <- bayestestR::describe_posterior(draws, rope_range = range)
  expect_equal(
    as.data.frame(out)[names(theirs)], as.data.frame(theirs),
    ignore_attr = TRUE
  )
  table <- as.data.frame(summarise_draws(fit, "rhat", "ess_bulk"))
  expect_equal(out$Rhat, as.double(table$rhat[1:2]))
  expect_equal(out$ESS, as.double(table$ess_bulk[1:2]))
  expect_identical(out$Prior_Distribution, c("normal", "normal"))
  expect_identical(out$Prior_Scale[[2]], 1)
  expect_equal(
    out$log_BF, bayestestR::bayesfactor_parameters(fit)$log_BF
  )
  expect_match(capture.output(print(out)), "Rhat", all = FALSE)
  for (name in c("gam", "glmer", "polr", "multinom")) {
    table <- bayestestR::describe_posterior(described()[[name]])
    expect_true(all(is.finite(table$ROPE_Percentage)))
  }
  network <- tall_nn(y ~ x, described()$data, hidden = 3, iter = 60, seed = 1)
  expect_error(
    bayestestR::hdi(network), "hidden", class = "tall_error_unsupported"
  )
})

test_that("Bayes factors are those of normal densities", {
  d <- described()$data
  fit <- tall_glm(
    y ~ 0 + x, d, prior = prior_normal(0.1, 0.5), sigma = 1, iter = 6000,
    seed = 1
  )
  precision <- 1 / 0.5^2 + sum(d$x^2)
  after <- c((0.1 / 0.5^2 + sum(d$x * d$y)) / precision, 1 / sqrt(precision))
  ratio <- function(null, f = dnorm) {
    f(null, 0.1, 0.5) / f(null, after[[1]], after[[2]])
  }
  bf <- function(...) bayestestR::bayesfactor_parameters(fit, ...)$log_BF
  expect_lt(abs(bf() - log(ratio(0))), 0.05)
  expect_lt(abs(bf(null = 0.2) - log(ratio(0.2))), 0.05)
  above <- function(...) pnorm(..., lower.tail = FALSE)
  expect_lt(abs(
    bf(direction = ">") - log(ratio(0) / ratio(0, above))
  ), 0.05)
  expect_lt(abs(
    bf(direction = "left") - log(ratio(0) / ratio(0, pnorm))
  ), 0.15)
  # an interval: posterior odds over prior odds of what is outside
  odds <- function(mean, sd) {
    inside <- diff(pnorm(c(-0.1, 0.2), mean, sd))
    above <- 1 - pnorm(0.2, mean, sd)
    c((1 - inside) / inside, above / inside)
  }
  wanted <- log(odds(after[[1]], after[[2]]) / odds(0.1, 0.5))
  expect_lt(abs(bf(null = c(-0.1, 0.2)) - wanted[[1]]), 0.1)
  expect_lt(abs(bf(null = c(-0.1, 0.2), direction = 1) - wanted[[2]]), 0.1)
  out <- bayestestR::bayesfactor_parameters(fit)
  expect_match(capture.output(print(out)), "Savage-Dickey", all = FALSE)
  # the same, upside down
  expect_equal(
    log(hypothesis(fit, "x = 0")$hypothesis$Evid.Ratio), -out$log_BF
  )
  fits <- described()
  expect_error(
    bayestestR::bayesfactor_parameters(fits$polr), "Dirichlet",
    class = "tall_error_unsupported"
  )
  expect_length(
    bayestestR::bayesfactor_parameters(fits$polr, parameters = "x")$log_BF, 1
  )
  expect_error(
    bayestestR::bayesfactor_parameters(fits$glm, component = "all"),
    "exponential", class = "tall_error_unsupported"
  )
  expect_error(bf(direction = "up"), class = "tall_error_input")
})

test_that("insight tells of classes, priors and the algorithm", {
  fits <- described()
  d <- fits$data
  facts <- c("is_ordinal", "is_multinomial", "is_logit", "is_binomial",
    "link_function", "family", "n_obs")
  polr <- MASS::polr(o ~ x, d, Hess = TRUE)
  expect_equal(
    insight::model_info(fits$polr)[facts],
    insight::model_info(polr)[facts]
  )
  multinom <- nnet::multinom(o ~ x, d, trace = FALSE)
  expect_equal(
    insight::model_info(fits$multinom)[facts],
    insight::model_info(multinom)[facts]
  )
  expect_true(insight::model_info(fits$polr)$is_bayesian)
  priors <- insight::get_priors(fits$glm)
  expect_identical(priors$Parameter, c("(Intercept)", "x", "sigma"))
  expect_identical(priors$Distribution[[3]], "exponential")
  expect_false(
    "sd_g__Intercept" %in% insight::get_priors(fits$glmer)$Parameter
  )
  expect_equal(
    insight::find_algorithm(fits$glm)[1:3],
    list(algorithm = "sampling", chains = 4, iterations = 400),
    ignore_attr = TRUE
  )
})

options(before)
