# What nodes leave of the exactness of runs that integrate groups' effects out
# by them: measured, said, and against the integrals themselves.

# groups that are all but alike, so that few nodes do not do
alike_groups <- function() {
  withr::local_seed(8)
  d <- data.frame(g = rep(1:30, each = 8))
  d$y <- rep(stats::rbinom(30, 1, 0.4), each = 8)
  d
}

# and others
other_groups <- function() {
  withr::local_seed(9)
  d <- data.frame(g = rep(1:24, each = 6), x = stats::rnorm(144))
  d$y <- stats::rbinom(144, 1, stats::plogis(d$x + stats::rnorm(24)[d$g]))
  d
}

short_mala <- function(model, ..., step_size = 0.5) {
  sg_sample(
    model,
    kernel_mala(step_size),
    gradient_full(),
    iter = 100, warmup = 50, chains = 2, seed = 1, refresh = 0, ...
  )
}

test_that("the error that is measured is that against the integrals", {
  withr::local_seed(7)
  d <- alike_groups()
  eta <- function(b) rep(b, nrow(d))
  law <- function(eta) stats::plogis((2 * d$y - 1) * eta, log.p = TRUE)
  theta <- cbind(stats::rnorm(100, -1, 1), stats::rnorm(100, 1.5, 0.5))
  whole <- apply(theta, 1, function(t) {
    sum(integrate_groups(d$g, law, eta(t[[1]]), exp(t[[2]])))
  })
  x <- cbind("(Intercept)" = rep(1, nrow(d)))
  for (nodes in c(7, 9, 25, 60)) {
    model <- model_groups(x, d$y, d$g, nodes = nodes)
    difference <- whole - colSums(row_log_lik(model, t(theta)))
    w <- exp(difference - max(difference))
    found <- measure_quadrature(model, theta, nodes)
    expect_identical(get_nodes(model), nodes)
    expect_gt(found$compared, 1.6 * nodes)
    # more than it is, by the sampling error of 57 to 100 draws that is added,
    # by those draws' own, and by what the other nodes still leave
    ratio <- found$error / max(1e-6, stats::sd(w) / mean(w))
    expect_gt(ratio, 0.9)
    expect_lt(ratio, 2)
  }
})

test_that("nodes that more or fewer are compared with are far from them", {
  expect_identical(compared_nodes(9, 1), 15)
  expect_identical(compared_nodes(15, 1), 25)
  expect_identical(compared_nodes(201, 1), 401)
  expect_identical(compared_nodes(401, 1), 201)
  expect_identical(compared_nodes(41, 2), 101)
  expect_identical(compared_nodes(25, 3), 15)
  expect_identical(compared_nodes(1, 1), 9)
  expect_identical(weight_error(c(1, NaN)), Inf)
  expect_identical(weight_error(rep(-1e5, 50)), 1e-6)
})

test_that("what is said exact of a quadrature is so but for that", {
  local_wide()
  d <- other_groups()
  fit <- tall_glmer(
    y ~ x + (1 | g), d, stats::binomial(),
    iter = 400, chains = 2, seed = 1, refresh = 0
  )
  found <- fit$quadrature
  expect_identical(found$nodes, 9)
  expect_gt(found$error, 0)
  expect_lt(found$error, 0.02)
  said <- paste0(
    "MALA (exact but for the quadrature, error <= ",
    error_digit(found$error),
    " sd with 9 nodes), acceptance"
  )
  table <- summary(fit)
  for (out in list(capture.output(print(fit)), capture.output(print(table)))) {
    expect_match(out, said, fixed = TRUE, all = FALSE)
    expect_match(out, "^Exact but for the quadrature: ", all = FALSE)
    expect_no_match(out, "MALA (exact)", fixed = TRUE)
    expect_no_match(out, "^Exact: ")
    expect_no_match(out, "exact steps")
  }
  expect_match(fit$plan, "^Metropolis-adjusted steps on all groups")
  expect_match(capture.output(print(table)), "<=0[.][0-9]%", all = FALSE)
  bias <- table$table$sd_bias
  expect_true(all(bias > 0 & bias < 2 * found$error))
  expect_match(generics::glance(fit)$algorithm, "exact but for quadrature")
  more <- sg_resume(fit, 100)
  expect_identical(more$quadrature$nodes, 9)
  expect_false(identical(more$quadrature$error, found$error))
  # rounded up
  expect_identical(error_digit(0.00111), "0.002")
  expect_identical(error_digit(0.002), "0.002")
})

test_that("normal responses are exact, and have no error of it", {
  d <- other_groups()
  fit <- tall_glmer(
    x ~ 1 + (1 | g), d,
    iter = 100, chains = 2, seed = 1, refresh = 0
  )
  expect_null(fit$quadrature)
  out <- capture.output(print(fit))
  expect_match(out, "MALA (exact), acceptance", fixed = TRUE, all = FALSE)
  expect_match(fit$plan, "^exact steps on all groups")
  expect_true(all(summary(fit)$table$sd_bias == 0))
})

test_that("an error that was not measured is not said to be small", {
  local_wide()
  d <- other_groups()
  x <- cbind("(Intercept)" = 1, x = d$x)
  model <- model_groups(x, d$y, d$g, x, nodes = 7)
  none <- short_mala(model, keep = "none", step_size = 0.1)
  expect_identical(none$quadrature$error, NA_real_)
  out <- capture.output(print(none))
  expect_match(out, "error not measured with 7 x 7 nodes", all = FALSE)
  expect_match(out, "no draws of all parameters were kept", all = FALSE)
  expect_true(all(is.na(summary(none)$table$sd_bias)))
  expect_no_error(capture.output(print(summary(none))))
  # other kernels have other errors
  fit <- sg_sample(
    model, kernel_sgld(1e-4),
    iter = 20, chains = 1, seed = 1, refresh = 0
  )
  expect_identical(fit$quadrature$error, NA_real_)
  expect_no_match(capture.output(print(fit)), "quadrature")
})

test_that("nodes of a run with a kernel that do not do are warned of", {
  d <- alike_groups()
  x <- cbind("(Intercept)" = rep(1, nrow(d)))
  run <- function(...) {
    sg_sample(
      model_groups(x, d$y, d$g),
      iter = 400, chains = 2, seed = 1, refresh = 0, ...
    )
  }
  conditions <- character()
  withCallingHandlers(
    fit <- run(kernel = kernel_mala()),
    warning = function(condition) {
      conditions <<- c(conditions, class(condition))
      if (inherits(condition, "tall_warning_nodes")) {
        expect_match(conditionMessage(condition), "Leave `kernel` out")
      }
      invokeRestart("muffleWarning")
    }
  )
  expect_true("tall_warning_nodes" %in% conditions)
  expect_gt(fit$quadrature$error, 0.1)
  expect_output(print(fit), "Warning: by the quadrature posterior means may be")
  # what the warning names, and a front end with that kernel
  front <- suppressWarnings(tall_glmer(
    y ~ 1 + (1 | g), d, stats::binomial(),
    kernel = kernel_mala(), iter = 400, chains = 2, seed = 1, refresh = 0
  ))
  for (fit in list(run(), front)) {
    expect_lt(fit$quadrature$error, 0.1)
    expect_gt(fit$quadrature$nodes, 41)
  }
})

test_that("runs on one model begin alike, and go on with their nodes", {
  d <- alike_groups()
  x <- cbind("(Intercept)" = rep(1, nrow(d)))
  model <- model_groups(x, d$y, d$g)
  first <- suppressWarnings(short_mala(model))
  other <- sg_sample(model, iter = 40, chains = 1, seed = 1, refresh = 0)
  expect_gt(other$quadrature$nodes, 41)
  again <- suppressWarnings(short_mala(model))
  expect_identical(as.array(again), as.array(first))
  expect_identical(again$quadrature, first$quadrature)
  more <- sg_resume(other, 20, refresh = 0)
  expect_identical(more$quadrature$nodes, other$quadrature$nodes)
})

test_that("nodes of a fit that was altered are told", {
  d <- other_groups()
  x <- cbind("(Intercept)" = 1, x = d$x)
  fit <- short_mala(model_groups(x, d$y, d$g))
  for (nodes in list(1e9, NaN, -1, "a", NULL)) {
    bad <- fit
    bad$quadrature["nodes"] <- list(nodes)
    expect_error(ksd(bad), class = "tall_error_corrupt")
    expect_error(sg_resume(bad, 10), class = "tall_error_corrupt")
  }
})
