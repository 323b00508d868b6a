skip_if_not_installed("mgcv")

gam_rows <- function(n = 400, seed = 1) {
  withr::local_seed(seed)
  d <- data.frame(
    x = stats::runif(n),
    z = stats::rnorm(n),
    f = factor(sample(c("a", "b"), n, TRUE)),
    g = factor(sample(1:8, n, TRUE))
  )
  d$eta <- sin(6 * d$x) + 0.3 * (d$f == "b") +
    stats::rnorm(8, 0, 0.5)[as.integer(d$g)]
  d$y <- d$eta + stats::rnorm(n)
  d$late <- stats::rbinom(n, 1, stats::plogis(d$eta))
  d
}

draws_of_one <- function(fit, name) {
  posterior::extract_variable_matrix(posterior::as_draws_array(fit), name)
}

# fits that several tests look at
gaussian_gam <- local({
  fit <- NULL
  function() {
    fit <<- fit %||% tall_gam(
      y ~ f + s(x, k = 6) + s(z, k = 5),
      gam_rows(),
      prior = prior_normal(0, 2),
      prior_intercept = prior_flat(),
      prior_smooth = prior_exponential(1),
      prior_aux = prior_exponential(1),
      seed = 1,
      refresh = 0
    )
    fit
  }
})

logit_gam <- local({
  fit <- NULL
  function() {
    fit <<- fit %||% tall_gam(
      late ~ f + s(x, k = 6) + s(g, bs = "re"),
      gam_rows(),
      binomial(),
      seed = 1,
      refresh = 0
    )
    fit
  }
})

test_that("a Gaussian model is that of quadrature", {
  fit <- gaussian_gam()
  x <- model.matrix(fit)
  layout <- gam_layout(fit)
  of <- integer(ncol(x))
  of[layout$columns$at] <- layout$columns$block
  expect_identical(tabulate(of), c(4L, 3L))
  grid <- smooth_grid(
    x,
    gam_rows()$y,
    of,
    prior_sd = ifelse(colnames(x) == "(Intercept)", Inf, 2),
    law = function(s) -s,
    law_sigma = function(s) -s,
    n = 45,
    low = -13
  )
  for (k in 1:2) {
    name <- paste0("smooth_sd[", layout$blocks$scale[[k]], "]")
    s <- log(draws_of_one(fit, name))
    expect_moment(s, grid_mean(grid, grid$phi[, k]), name)
    expect_moment(s^2, grid_mean(grid, grid$phi[, k]^2), name)
    expect_gt(posterior::ess_mean(s), 1000)
  }
  s <- log(draws_of_one(fit, "sigma"))
  mean <- grid_mean(grid, grid$phi[, 3])
  expect_moment(s, mean, "sigma")
  # about its mean, which says as much of its spread as there is
  expect_moment((s - mean)^2, grid_mean(grid, (grid$phi[, 3] - mean)^2))
  for (j in c(1, 3, 8, 11)) {
    b <- draws_of_one(fit, colnames(x)[[j]])
    expect_moment(b, grid_mean(grid, grid$beta[, j]), colnames(x)[[j]])
    second <- grid_mean(grid, grid$beta[, j]^2 + grid$variance[, j])
    expect_moment(b^2, second, colnames(x)[[j]])
  }
})

test_that("a logistic model has the draws of importance sampling", {
  fit <- logit_gam()
  expect_identical(fit$kernel$name, "smh")
  ours <- fit$unconstrained
  other <- weighted_moments(fit_model(fit), ours)
  expect_moments_near(moments_at(ours), other)
})

test_that("effective degrees of freedom are those of the trace", {
  fit <- gaussian_gam()
  x <- model.matrix(fit)
  layout <- gam_layout(fit)
  names <- smooth_sd_names(layout)
  all <- unclass(draws_matrix(fit))
  at <- unique(round(seq(1, nrow(all), length.out = 200)))
  edf <- vapply(at, FUN.VALUE = numeric(2), function(k) {
    sds <- all[k, names]
    precision <- c(0, 1 / 4, rep(1 / 4, 9))
    block <- integer(11)
    block[layout$columns$at] <- layout$columns$block
    precision[block > 0] <- 1 / sds[block]^2
    h <- crossprod(x) / all[[k, "sigma"]]^2
    free <- diag(solve(h + diag(precision), h))
    tapply(free[layout$columns$at], layout$columns$variable, sum)[
      c("s(x)", "s(z)")
    ]
  })
  table <- smooth_table(fit)
  expect_equal(table$edf, unname(rowMeans(edf)), tolerance = 1e-6)
  expect_identical(table$size, c(5L, 4L))
  sd <- all[, names[[1]]]
  expect_equal(table$sd[[1]], mean(sd))
  expect_equal(table$sd_upper[[1]], stats::quantile(sd, 0.95, names = FALSE))
})

test_that("curves are those of mgcv within its own error", {
  d <- gam_rows(3000, seed = 2)
  fit <- tall_gam(late ~ f + s(x) + s(z), d, binomial(), seed = 1, refresh = 0)
  theirs <- mgcv::bam(late ~ f + s(x) + s(z), stats::binomial(), d)
  grid <- conditional_smooths(fit)[["s(x)"]]
  new <- data.frame(x = grid$x, z = 0, f = "a")
  of <- stats::predict(theirs, new, type = "terms", se.fit = TRUE)
  away <- (grid$estimate__ - of$fit[, "s(x)"]) / of$se.fit[, "s(x)"]
  expect_lt(max(abs(away)), 0.3)
  expect_lt(max(abs(log(grid$se__ / of$se.fit[, "s(x)"]))), 0.15)
  edf <- summary(theirs)$s.table[, "edf"]
  expect_lt(abs(smooth_table(fit)$edf[[1]] - edf[[1]]), 0.5)
  # of z no curve at all: there theirs is a straight line, ours may be one
  table <- smooth_table(fit)
  expect_lt(table$edf_lower[table$smooth == "s(z)"], 1.5)
})

test_that("terms add up to the predictor, and are those of draws", {
  fit <- logit_gam()
  d <- gam_rows()[1:20, ]
  terms <- predict(fit, d, type = "terms", se.fit = TRUE)
  expect_identical(colnames(terms$fit), c("f", "s(x)", "s(g)"))
  expect_equal(
    rowSums(terms$fit) + attr(terms$fit, "constant"),
    predict(fit, d)
  )
  of <- posterior_smooths(fit, "s(x, k = 6)", d)
  expect_identical(dim(of), c(4000L, 20L))
  expect_equal(unname(terms$fit[, "s(x)"]), unname(colMeans(of)))
  sd <- sqrt(colMeans(of^2) - colMeans(of)^2)
  expect_equal(unname(terms$se.fit[, "s(x)"]), unname(sd))
  expect_equal(
    unname(posterior_smooths(fit, "s(x)")[, 1:20]),
    unname(of),
    tolerance = 1e-8
  )
  expect_equal(
    predict(fit, d, terms = "s(g)")[, 1],
    predict(fit, d, type = "terms")[, "s(g)"]
  )
  # the linear predictor is their sum, draw by draw
  eta <- rstantools::posterior_linpred(fit, newdata = d)
  rest <- of + posterior_smooths(fit, "s(g)", d)
  all <- unclass(draws_matrix(fit))
  own <- all[, "(Intercept)"] + outer(all[, "fb"], as.double(d$f == "b"))
  expect_equal(unname(eta), unname(own + rest), tolerance = 1e-8)
})

test_that("bands are quantiles of draws, and derivatives slopes", {
  fit <- gaussian_gam()
  bands <- conditional_smooths(fit, prob = 0.8, resolution = 41)
  expect_named(bands, c("s(x)", "s(z)"))
  band <- bands[["s(x)"]]
  draws <- posterior_smooths(fit, "s(x)", data.frame(x = band$x))
  expect_equal(band$estimate__, unname(colMeans(draws)))
  q <- apply(draws, 2, stats::quantile, c(0.1, 0.9), names = FALSE)
  expect_equal(cbind(band$lower__, band$upper__), unname(t(q)))
  slope <- conditional_smooths(fit, "s(x)", 0.8, 41, derivative = TRUE)[[1]]
  h <- 1e-5
  near <- function(h) posterior_smooths(fit, "s(x)", data.frame(x = 0.4 + h))
  exact <- (near(h) - near(-h)) / (2 * h)
  found <- stats::spline(slope$x, slope$estimate__, xout = 0.4)$y
  expect_equal(found, mean(exact), tolerance = 0.01)
})

test_that("effects hold others, and groups at 0", {
  fit <- logit_gam()
  effects <- conditional_effects(fit, ndraws = 500)
  expect_named(effects, c("f", "x"))
  d <- data.frame(x = effects$x$x, f = "a", g = "1")
  terms <- posterior_smooths(fit, "s(x)", d, ndraws = 500)
  chosen <- choose_draws(fit, 500)$theta
  p <- stats::plogis(chosen[, 1] + terms)
  expect_equal(effects$x$estimate__, unname(colMeans(p)), tolerance = 1e-6)
  some <- conditional_effects(fit, "x:f", list(g = "2"), resolution = 5)
  expect_identical(nrow(some[[1]]), 10L)
  of_group <- conditional_effects(fit, "g", method = "posterior_linpred")$g
  expect_identical(nrow(of_group), 8L)
  expect_gt(stats::sd(of_group$estimate__), 0.1)
  # of others than additive models, too
  plain <- tall_glm(y ~ x + f, gam_rows(), seed = 1, iter = 500, refresh = 0)
  line <- conditional_effects(plain, "x")$x
  expect_equal(
    line$estimate__,
    unname(predict(plain, data.frame(x = line$x, f = "a"))),
    tolerance = 1e-3
  )
})

test_that("pictures have what is told", {
  skip_if_not_installed("ggplot2")
  fit <- logit_gam()
  expect_message(
    picture <- plot(fit, "smooth", partial = 50),
    "Not in the same picture"
  )
  expect_s3_class(picture, "ggplot")
  band <- conditional_smooths(fit, "s(x)")[[1]]
  expect_equal(picture$data$estimate__, band$estimate__)
  drawn <- ggplot2::ggplot_build(picture)
  expect_identical(nrow(drawn$data[[1]]), 50L)
  levels <- plot(fit, "smooth", "s(g)")
  expect_identical(nrow(levels$data), 8L)
  expect_s3_class(plot(fit, "trace", variables = "fb"), "ggplot")
  pictures <- plot(conditional_effects(fit, c("x", "f")))
  expect_named(pictures, c("x", "f"))
  expect_s3_class(pictures$f, "ggplot")
})

test_that("fits print their terms", {
  fit <- gaussian_gam()
  without_times <- function(x) x[!grepl("^Time", x)]
  expect_snapshot(print(fit), transform = without_times)
  expect_snapshot(rstantools::prior_summary(fit))
  shown <- utils::capture.output(print(summary(fit)))
  expect_true(any(grepl("Smooth terms", shown)))
  expect_false(any(grepl("s(x).1", shown, fixed = TRUE)))
  all <- utils::capture.output(print(fit, n = Inf))
  expect_true(any(grepl("s(x).1", all, fixed = TRUE)))
  expect_snapshot(print(conditional_smooths(fit)))
})

test_that("runs go on, and loo looks at rows", {
  d <- gam_rows()
  for (family in list(gaussian(), binomial())) {
    d$w <- if (family$family == "gaussian") d$y else d$late
    run <- function(n) {
      tall_gam(w ~ s(x, k = 5), d, family, iter = 100 + n, warmup = 100,
               seed = 3, refresh = 0)
    }
    expect_equal(
      posterior::as_draws_array(sg_resume(run(60), 40)),
      posterior::as_draws_array(run(100)),
      ignore_attr = TRUE
    )
  }
  skip_if_not_installed("loo")
  flat <- tall_glm(late ~ f, d, binomial(), seed = 1, refresh = 0)
  with_curve <- suppressWarnings(loo::loo(logit_gam()))
  flat <- suppressWarnings(loo::loo(flat))
  expect_gt(
    with_curve$estimates["elpd_loo", 1] - flat$estimates["elpd_loo", 1],
    10
  )
})

test_that("all responses are taken", {
  d <- gam_rows(300)
  mu <- exp(d$eta / 2)
  withr::local_seed(5)
  responses <- list(
    list(poisson(), stats::rpois(300, mu)),
    list(Gamma("log"), stats::rgamma(300, 5, 5 / mu)),
    list(neg_binomial_2(), stats::rnbinom(300, 4, mu = mu)),
    list(student(), d$eta + stats::rt(300, 4)),
    list(beta_regression(), stats::rbeta(300, 1 + mu, 2)),
    list(binomial("probit"), d$late)
  )
  for (one in responses) {
    d$w <- one[[2]]
    fit <- suppressWarnings(tall_gam(
      w ~ s(x, k = 5),
      d,
      one[[1]],
      iter = 600,
      chains = 2,
      seed = 1,
      refresh = 0
    ))
    curve <- conditional_smooths(fit)[[1]]
    expect_gt(stats::cor(curve$estimate__, sin(6 * curve$x)), 0.7)
    expect_true(all(is.finite(smooth_table(fit)$edf)))
  }
})

test_that("sources and data frames give the same draws", {
  d <- gam_rows(200)
  run <- function(data) {
    fit <- tall_gam(y ~ s(x, k = 5), data, iter = 100, seed = 1, refresh = 0)
    posterior::as_draws_array(fit)
  }
  expect_equal(run(list(d[1:80, ], d[81:200, ])), run(d))
})

test_that("a term by a factor has a curve for each level", {
  d <- gam_rows()
  fit <- tall_gam(
    y ~ f + s(x, by = f, k = 5),
    d,
    iter = 400,
    seed = 1,
    refresh = 0
  )
  expect_identical(smooth_table(fit)$smooth, c("s(x):fa", "s(x):fb"))
  band <- conditional_smooths(fit)[["s(x):f"]]
  expect_identical(nrow(band), 200L)
  skip_if_not_installed("ggplot2")
  expect_identical(levels(plot(fit, "smooth")$data$group), c("a", "b"))
})

test_that("what cannot be had is refused", {
  d <- gam_rows(50)
  expect_snapshot(tall_gam(y ~ te(x, z), d), error = TRUE)
  expect_snapshot(tall_gam(y ~ s(x), d, prior_smooth = NULL), error = TRUE)
  fit <- logit_gam()
  expect_snapshot(posterior_smooths(fit, "s(q)"), error = TRUE)
  expect_snapshot(posterior_smooths(fit, "s(x)", d["z"]), error = TRUE)
  expect_snapshot(predict(fit, d, "link", terms = "s(x)"), error = TRUE)
  expect_snapshot(predict(fit, d, terms = "q"), error = TRUE)
  expect_snapshot(conditional_effects(fit, "q"), error = TRUE)
  expect_snapshot(conditional_effects(fit, "x", list(f = "z")), error = TRUE)
  expect_snapshot(
    conditional_smooths(fit, "s(g)", derivative = TRUE),
    error = TRUE
  )
  plain <- tall_gam(y ~ x, d, iter = 100, seed = 1, refresh = 0)
  expect_snapshot(smooth_table(plain), error = TRUE)
  expect_snapshot(tall_gam(y ~ s(x), d, select = TRUE), error = TRUE)
  expect_snapshot(
    tall_gam(y ~ x, d, prior_smooth = prior_exponential()),
    error = TRUE
  )
})

test_that("a formula is shown as it was written", {
  d <- gam_rows(100)
  formula <- y ~ s(x, k = 4) + (1 | g)
  fit <- tall_gam(formula, d, iter = 100, seed = 1, refresh = 0)
  expect_identical(formula(fit), formula)
  shown <- utils::capture.output(print(fit))
  expect_identical(shown[[1]], "Formula: y ~ s(x, k = 4) + (1 | g)")
  again <- update(fit, . ~ . - s(x, k = 4) + z)
  expect_equal(formula(again), y ~ (1 | g) + z)
  expect_identical(smooth_table(again)$smooth, "s(g)")
})

test_that("a term may have one column", {
  d <- gam_rows(100)
  fit <- tall_gam(y ~ s(z, bs = "re"), d, iter = 400, seed = 1, refresh = 0)
  slope <- stats::coef(stats::lm(y ~ z, d))[["z"]]
  expect_identical(names(coef(fit)), c("(Intercept)", "s(z).1"))
  se <- sqrt(vcov(fit)[2, 2])
  expect_lt(abs(coef(fit)[[2]] - slope), 0.5 * se)
})

test_that("numbers are levels where a formula says so", {
  d <- gam_rows(200)
  d$n <- c(2, 5, 9)[1 + seq_len(200) %% 3]
  d$y <- d$y + d$n / 5
  d$h <- factor(d$n)
  run <- function(formula) {
    tall_gam(formula, d, iter = 200, seed = 1, refresh = 0)
  }
  # as lme4 has bars
  fit <- run(y ~ s(x, k = 4) + (1 | n))
  expect_equal(
    unname(coef(fit)),
    unname(coef(run(y ~ s(x, k = 4) + (1 | h))))
  )
  expect_identical(names(coef(fit))[[7]], "s(n).9")
  expect_equal(predict(fit, d[1:3, ]), head(fitted(fit), 3))
  expect_error(predict(fit, transform(d[1, ], n = 3)), "new level")
  expect_identical(levels(conditional_effects(fit, "n")$n$n), c("2", "5", "9"))
  slopes <- run(y ~ (1 + z || n))
  expect_identical(smooth_table(slopes)$smooth, c("s(n)", "s(n,z)"))
  # of factor(), whose values between levels are none
  fit <- run(y ~ poly(z, 2) + factor(n) + s(x, k = 4))
  parts <- predict(fit, d[1:9, ], type = "terms")
  expect_identical(colnames(parts), c("poly(z, 2)", "factor(n)", "s(x)"))
  expect_equal(
    rowSums(parts) + attr(parts, "constant"),
    unname(predict(fit, d[1:9, ])),
    ignore_attr = TRUE
  )
  effects <- conditional_effects(fit)
  expect_identical(as.character(effects$n$n), c("2", "5", "9"))
  plain <- tall_glm(y ~ x + factor(n), d, seed = 1, refresh = 0)
  expect_identical(nrow(conditional_effects(plain)$n), 3L)
})

test_that("an ordered factor has differences from its first level", {
  d <- gam_rows()
  d$f <- factor(d$f, c("b", "a"), ordered = TRUE)
  fit <- tall_gam(
    y ~ f + s(x, k = 5) + s(x, by = f, k = 5),
    d,
    seed = 1,
    refresh = 0
  )
  expect_identical(smooth_table(fit)$smooth, c("s(x)", "s(x):fa"))
  expect_equal(predict(fit, d[1:5, ]), head(fitted(fit), 5))
  off <- posterior_smooths(fit, "s(x):f", data.frame(x = 0.3, f = c("b", "a")))
  expect_true(all(off[, 1] == 0) && all(off[, 2] != 0))
  band <- conditional_smooths(fit, "s(x):f")[[1]]
  expect_identical(as.character(unique(band$f)), "a")
  other <- mgcv::gam(
    y ~ f + s(x, k = 5) + s(x, by = f, k = 5),
    data = d,
    method = "REML"
  )
  off <- predict(fit) - predict(other)
  expect_lt(sqrt(mean((off / predict(other, se.fit = TRUE)$se.fit)^2)), 0.3)
})

test_that("augment() has the data, and effects an offset that was given", {
  d <- gam_rows(100)
  d$e <- rep(c(1, 2), 50)
  d$n <- rep(c(0, 1, 3, 1, 6), 20)
  d$x[[3]] <- NA
  fit <- tall_gam(
    n ~ s(x, k = 4),
    d,
    poisson(),
    offset = log(e),
    iter = 100,
    seed = 1,
    refresh = 0
  )
  found <- generics::augment(fit)
  expect_true(all(c("n", "x", ".fitted", ".resid") %in% names(found)))
  expect_identical(found$x, d$x[-3])
  one <- conditional_effects(fit, "x", list(e = 1))$x
  two <- conditional_effects(fit, "x", list(e = 2))$x
  expect_equal(two$estimate__, 2 * one$estimate__)
  expect_equal(
    conditional_effects(fit, "x")$x$estimate__,
    mean(d$e) * one$estimate__
  )
})

test_that("the intercept's prior is of effects of 0, as in rstanarm", {
  d <- data.frame(g = rep(c("a", "b", "c"), c(12, 6, 2)))
  withr::local_seed(3)
  d$y <- 5 + c(a = 1, b = 0, c = -1)[d$g] + stats::rnorm(20)
  fit <- tall_gam(
    y ~ (1 | g),
    d,
    prior_intercept = prior_normal(0, 1),
    prior_smooth = prior_exponential(1),
    sigma = 1,
    seed = 1,
    refresh = 0
  )
  x <- model.matrix(fit)
  grid <- smooth_grid(
    x,
    d$y,
    of = c(0, 1, 1, 1),
    prior_sd = c(1, NA, NA, NA),
    law = function(s) -s,
    n = 200,
    low = -9,
    high = 4
  )
  for (j in 1:4) {
    b <- draws_of_one(fit, colnames(x)[[j]])
    expect_moment(b, grid_mean(grid, grid$beta[, j]), colnames(x)[[j]])
  }
  s <- log(draws_of_one(fit, "smooth_sd[s(g)1]"))
  expect_moment(s, grid_mean(grid, grid$phi[, 1]), "log sd")
})

test_that("groups are in their own order in pictures", {
  skip_if_not_installed("ggplot2")
  d <- gam_rows()
  d$o <- factor(d$f, c("b", "a"), ordered = FALSE)
  d$k <- d$g
  levels(d$k) <- c(2, 10, 1, 3:7)
  fit <- tall_gam(
    y ~ o + s(x, k = 4, by = o) + s(z, k, k = 4, bs = "fs"),
    d,
    iter = 200,
    seed = 1,
    refresh = 0
  )
  effect <- plot(conditional_effects(fit, "o"))
  expect_identical(levels(effect$data$group), c("b", "a"))
  lines <- plot(conditional_effects(fit, "x:z"))
  numbers <- as.double(levels(lines$data$group))
  expect_identical(numbers, sort(numbers))
  expect_identical(lines$labels$colour, "z")
  expect_identical(
    levels(plot(fit, "smooth", "s(z,k)")$data$group),
    levels(d$k)
  )
  expect_identical(plot(fit, "smooth", "s(x):o")$labels$fill, "o")
})

test_that("long names and terms are printed in the width there is", {
  withr::local_options(width = 80)
  d <- gam_rows(100)
  fit <- tall_gam(
    y ~ s(z, k = 4) +
      poly(x + as.numeric(f) / 1e+09, degree = 4, raw = FALSE, simple = TRUE),
    d,
    iter = 100,
    seed = 1,
    refresh = 0
  )
  shown <- utils::capture.output(print(fit))
  expect_lte(max(nchar(shown)), 80)
  expect_length(grep("^poly\\(.*[.]{3}.*\\)[1-4] ", shown), 4)
  shown <- utils::capture.output(print(summary(fit)))
  expect_lte(max(nchar(shown)), 80)
  # in two parts
  expect_length(grep("^poly\\(.*[.]{3}.*\\)[1-4] ", shown), 8)
  expect_identical(shorten(c("abc", strrep("x", 30)), 24), c("abc", paste0(
    strrep("x", 11), "...", strrep("x", 10)
  )))
  # those that would be the same are as they are
  table <- data.frame(mean = 1:2, row.names = paste0(
    strrep("a", 60), 1:2, strrep("b", 60)
  ))
  expect_output(print_table(table, 3), strrep("a", 60))
  shown <- utils::capture.output(print(terms(fit)))
  expect_lt(length(shown), 60)
  expect_true(any(grepl("smooth = ...", shown, fixed = TRUE)))
  expect_s3_class(terms(fit), "terms")
  expect_equal(dim(stats::model.frame(terms(fit), d)), c(100L, 3L))
})
