test_that("(iter - warmup) / thin draws of each chain are kept, named", {
  fit <- quick_fit(iter = 100, warmup = 40, thin = 7, chains = 3)
  expect_identical(dim(fit$draws), c(8L, 3L, 3L))
  expect_identical(posterior::variables(fit$draws), c("(Intercept)", "a", "b"))
  expect_identical(fit$chains$draws, c(8, 8, 8))
  expect_identical(dim(quick_fit(chains = 1)$draws), c(30L, 1L, 3L))
  expect_identical(dim(quick_fit(iter = 10, warmup = 0)$draws)[[1]], 10L)
})

test_that("thinning keeps every so manyth draw of the same run", {
  model <- example_model()
  all <- quick_fit(model)
  thinned <- quick_fit(model, thin = 5)
  expect_identical(
    unname(unclass(thinned$draws)[, , "a"]),
    unname(unclass(all$draws)[seq(5, 30, by = 5), , "a"])
  )
})

test_that("warmup is where the draws begin, nothing else", {
  model <- example_model()
  all <- quick_fit(model, warmup = 0)
  later <- quick_fit(model, warmup = 50)
  expect_identical(
    unname(unclass(later$draws)[, , "a"]),
    unname(unclass(all$draws)[51:60, , "a"])
  )
})

test_that("set.seed() makes a run reproducible, and seed overrides it", {
  model <- example_model()
  set.seed(42)
  first <- quick_fit(model, seed = NULL)
  second <- quick_fit(model, seed = NULL)
  set.seed(42)
  again <- quick_fit(model, seed = NULL)
  expect_identical(again$draws, first$draws)
  expect_identical(again$seed, first$seed)
  expect_false(identical(second$draws, first$draws))

  set.seed(1)
  by_seed <- quick_fit(model, seed = 7)
  state <- .Random.seed
  set.seed(2)
  expect_identical(quick_fit(model, seed = 7)$draws, by_seed$draws)
  set.seed(1)
  expect_identical(.Random.seed, state) # a given seed leaves R's stream alone
  expect_false(identical(quick_fit(model, seed = 8)$draws, by_seed$draws))
  expect_false(identical(quick_fit(model, seed = -7)$draws, by_seed$draws))
  expect_identical(
    quick_fit(model, seed = first$seed)$draws,
    first$draws
  )
})

test_that("a fork of a process that has used threads uses one", {
  skip_on_os("windows")
  model <- example_model()
  x <- matrix(sin(1:600), 300)
  work <- function() {
    fit <- quick_fit(model, chains = 4, cores = 2)
    list(
      draws = fit$draws,
      hessian = find_mode(model, cores = 2)$hessian,
      weights = subsampling_weights(model, type = "leverage", cores = 2),
      ksd = ksd(x, -x, cores = 2),
      fssd = fssd(x, -x, seed = 1, cores = 2)
    )
  }
  here <- work()
  expect_identical(in_fork(work()), here)
  expect_identical(in_fork(in_fork(work())), here)
  fit <- quick_glm(cores = 2)
  expect_identical(
    in_fork(predict(fit, type = "response", cores = 2)),
    predict(fit, type = "response", cores = 2)
  )
})

test_that("draws do not depend on cores", {
  model <- example_model()
  one <- quick_fit(model, chains = 4, cores = 1)
  expect_identical(quick_fit(model, chains = 4, cores = 2)$draws, one$draws)
  expect_identical(quick_fit(model, chains = 4, cores = 9)$draws, one$draws)
  expect_identical(quick_fit(model, chains = 4, cores = 1e10)$draws, one$draws)
  # nor on the other chains
  expect_identical(
    unclass(quick_fit(model, chains = 2)$draws)[, , "b"],
    unclass(one$draws)[, 1:2, "b"]
  )
})

test_that("init is a point, a matrix, or found", {
  model <- example_model()
  start <- function(init, chains = 2) {
    sg_sample(
      model,
      kernel_sgld(1e-20),
      gradient = gradient_simple(),
      iter = 1,
      chains = chains,
      init = init,
      seed = 1,
      refresh = 0
    )$draws
  }
  one <- start(c(1, 2, 3))
  expect_equal(c(one), rep(c(1, 2, 3), each = 2), tolerance = 1e-6)
  each <- start(matrix(1:6, 3))
  expect_equal(c(each), c(1, 4, 2, 5, 3, 6), tolerance = 1e-6)
  found <- start(NULL, chains = 400)
  mode <- find_mode(model)
  z <- t(unclass(found)[1, , ]) - coef(mode)
  # 400 draws from the normal approximation: chi-squared with 1,200 degrees
  distance <- sum(forwardsolve(mode$chol, -mode$hessian %*% z)^2)
  expect_lt(abs(distance - 1200) / sqrt(2400), 5)
})

test_that("keep = \"gradients\" keeps the gradient at each draw", {
  model <- example_model()
  fit <- quick_fit(
    model,
    gradient = gradient_full(),
    keep = c("draws", "gradients")
  )
  expect_identical(dim(fit$gradients), dim(fit$draws))
  expect_identical(dimnames(fit$gradients)[[3]], fit$variables)
  theta <- as.matrix(fit)
  expected <- model_evaluate(model, t(theta))$gradient
  actual <- matrix(fit$gradients, ncol = 3)
  expect_equal(actual, t(expected), tolerance = 1e-10)
  expect_identical(
    quick_fit(model, keep = "gradients")$draws,
    quick_fit(model)$draws
  )
  expect_null(quick_fit(model)$gradients)
})

test_that("whitened gradients come back in the parameters", {
  local_way("order")
  model <- example_model(data = example_data(100)) # full gradients
  fit <- sg_sample(
    model,
    iter = 20,
    chains = 2,
    seed = 1,
    refresh = 0,
    keep = c("draws", "gradients")
  )
  expect_true(fit$is_whitened)
  expected <- model_evaluate(model, t(as.matrix(fit)))$gradient
  expect_equal(matrix(fit$gradients, ncol = 3), t(expected), tolerance = 1e-6)
})

test_that("`variables` keeps draws and gradients of some, of the same run", {
  d <- triplets()
  model <- model_pmf(d$user, d$item, d$rating, 2)
  run <- function(variables = NULL, iter = 20) {
    sg_sample(
      model,
      kernel_sgbd(0.05),
      iter = iter,
      warmup = 10,
      chains = 2,
      seed = 1,
      keep = c("draws", "gradients"),
      variables = variables,
      refresh = 0
    )
  }
  all <- run()
  some <- c("user[2,1]", "item_bias[3]", "lambda_user[1]")
  fit <- run(rev(some))
  expect_identical(posterior::variables(fit$draws), some)
  expect_identical(
    unname(plain_draws(fit)),
    unname(plain_draws(all)[, , some, drop = FALSE])
  )
  kept <- c("user[2,1]", "item_bias[3]", "log_lambda_user[1]")
  expect_identical(fit$gradients, all$gradients[, , kept, drop = FALSE])
  expect_identical(fit$unconstrained, all$unconstrained[, , kept, drop = FALSE])
  expect_identical(sg_resume(run(some, 15), 5, refresh = 0)$draws, fit$draws)
  expect_identical(coef(fit), coef(all)[some])
  # what needs whole states says so
  expect_snapshot(error = TRUE, ksd(fit))
  for (whole in list(
    function(fit) zero_variance(fit, gradient = "full"),
    fit_unconstrained
  )) {
    expect_error(whole(fit), class = "tall_error_unsupported")
  }
  expect_snapshot(error = TRUE, run("user[1,3]"))
  expect_snapshot(error = TRUE, run(1:3))
  expect_snapshot(
    error = TRUE,
    sg_sample(model, kernel_sgbd(0.05), variables = some, keep = "none")
  )
})

test_that("keep = \"none\" keeps means and standard deviations", {
  model <- example_model()
  all <- quick_fit(model)
  none <- quick_fit(model, keep = "none")
  expect_null(none$draws)
  expect_equal(coef(none), coef(all))
  draws <- as.matrix(all)
  expect_equal(summary(none)$table$sd, unname(apply(draws, 2, sd)))
  expect_identical(none$bias, all$bias)
})

test_that("an explicit kernel runs in the model's own coordinates", {
  fit <- quick_fit()
  expect_false(fit$is_whitened)
  expect_identical(fit$steps, 1)
  expect_s3_class(fit$gradient, "tall_gradient_cv")
  expect_identical(fit$subsample$args$weights, "hessian")
  expect_identical(fit$subsample$args$size, 32)
  fit <- sg_sample(example_model(), kernel_mala(0.01), iter = 10, refresh = 0)
  expect_s3_class(fit$gradient, "tall_gradient_full")
  expect_null(fit$subsample)
})

test_that("passes over the data are counted", {
  model <- example_model()
  fit <- quick_fit(
    model,
    gradient = gradient_simple(),
    subsample = subsample_uniform(30),
    iter = 100
  )
  # one minibatch at the start, one a step
  expect_equal(fit$chains$passes, rep(101 * 30 / 300, 2))
  full <- quick_fit(model, gradient = gradient_full(), iter = 100)
  expect_equal(full$chains$passes, c(101, 101))
})

test_that("refresh = 0 is silent", {
  expect_silent(quick_fit())
})

test_that("wrong classes in a slot are refused in words", {
  model <- example_model()
  kernel <- kernel_sgld(1e-3)
  expect_snapshot(sg_sample(), error = TRUE)
  expect_snapshot(sg_sample(1), error = TRUE, cnd_class = TRUE)
  expect_snapshot(sg_sample(model_glm), error = TRUE)
  expect_snapshot(sg_sample(model, "sgld"), error = TRUE)
  expect_snapshot(sg_sample(model, kernel_sgld), error = TRUE)
  expect_snapshot(sg_sample(model, kernel, kernel), error = TRUE)
  expect_snapshot(sg_sample(model, kernel, subsample = 100), error = TRUE)
  expect_snapshot(sg_sample(model, kernel, schedule = NULL), error = TRUE)
})

test_that("numbers of iterations and chains are refused in words", {
  model <- example_model()
  run <- function(...) sg_sample(model, kernel_sgld(1e-3), ...)
  expect_snapshot(run(iter = 100, warmup = 100), error = TRUE, cnd_class = TRUE)
  expect_snapshot(run(iter = 0), error = TRUE)
  expect_snapshot(run(iter = "many"), error = TRUE)
  expect_snapshot(run(warmup = -1), error = TRUE)
  expect_snapshot(run(thin = 0), error = TRUE)
  expect_snapshot(run(thin = 5000), error = TRUE)
  expect_snapshot(run(chains = 0), error = TRUE)
  expect_snapshot(run(chains = 1.5), error = TRUE)
  expect_snapshot(run(cores = 0), error = TRUE)
  expect_snapshot(run(refresh = -1), error = TRUE)
})

test_that("seeds are refused in words", {
  model <- example_model()
  run <- function(...) sg_sample(model, kernel_sgld(1e-3), ...)
  expect_snapshot(run(seed = "a"), error = TRUE)
  expect_snapshot(run(seed = NA), error = TRUE)
  expect_snapshot(run(seed = 1:2), error = TRUE)
  expect_snapshot(run(seed = 1e12), error = TRUE)
})

test_that("keep and init are refused in words", {
  model <- example_model()
  run <- function(...) sg_sample(model, kernel_sgld(1e-3), ...)
  expect_snapshot(run(keep = "drows"), error = TRUE)
  expect_snapshot(run(keep = c("none", "draws")), error = TRUE)
  expect_snapshot(run(keep = 1), error = TRUE)
  expect_snapshot(run(init = 1:2), error = TRUE)
  expect_snapshot(run(init = c(1, NA, 1)), error = TRUE)
  expect_snapshot(run(init = matrix(0, 3, 3)), error = TRUE)
  expect_snapshot(run(init = "random"), error = TRUE)
})

test_that("parts that cannot work together are refused in words", {
  model <- example_model()
  expect_snapshot(
    sg_sample(model, kernel_mala(0.1), gradient_saga()),
    error = TRUE,
    cnd_class = TRUE
  )
  expect_snapshot(
    sg_sample(model, kernel_mala(0.1), schedule = schedule_decay()),
    error = TRUE
  )
  expect_snapshot(
    sg_sample(
      model,
      kernel_sgld(0.1),
      gradient_full(),
      subsample_uniform(10)
    ),
    error = TRUE
  )
})

test_that("a step size that diverges is explained and the draws are kept", {
  model <- example_model("poisson")
  run <- function(...) {
    sg_sample(
      model,
      kernel_sgld(0.05),
      gradient = gradient_simple(),
      subsample = subsample_uniform(30),
      iter = 200,
      warmup = 0,
      chains = 2,
      seed = 1,
      init = coef(find_mode(model)),
      refresh = 0
    )
  }
  fit <- NULL
  w <- expect_warning(fit <- run(), class = "tall_warning_nonfinite")
  expect_s3_class(w, "tall_warning")
  expect_identical(w$chain, 1L)
  expect_true(w$coordinate %in% fit$variables)
  expect_gt(w$iteration, 1)
  expect_match(conditionMessage(w), "step size is too large")
  expect_true(all(fit$chains$status == "nonfinite"))
  expect_equal(fit$chains$draws[[1]], w$iteration - 1)
  expect_true(all(is.finite(unclass(fit$draws))))
  expect_error(sg_resume(fit, 10), class = "tall_error_unsupported")
})

test_that("one chain that stops leaves the others", {
  model <- example_model("poisson")
  mode <- coef(find_mode(model))
  start <- cbind(mode, mode + c(0, 0, 3), mode)
  fit <- NULL
  w <- expect_warning(
    fit <- sg_sample(
      model,
      kernel_sgld(1e-5),
      gradient = gradient_simple(),
      iter = 50,
      warmup = 0,
      chains = 3,
      init = start,
      seed = 1,
      refresh = 0
    ),
    class = "tall_warning_nonfinite"
  )
  expect_identical(w$chain, 2L)
  expect_identical(fit$chains$status, c("ok", "nonfinite", "ok"))
  expect_identical(dim(fit$draws), c(50L, 2L, 3L))
  expect_named(fit$stopped, "chain2")
  expect_identical(nrow(fit$stopped$chain2), as.integer(w$iteration - 1))
  expect_true(all(is.finite(fit$stopped$chain2)))
})

test_that("a chain that cannot start is an error in words", {
  model <- example_model("poisson")
  expect_snapshot(
    sg_sample(
      model,
      kernel_sgld(1e-3),
      gradient_simple(),
      init = c(1000, 0, 0),
      refresh = 0
    ),
    error = TRUE,
    cnd_class = TRUE
  )
  expect_error(
    sg_sample(
      model,
      kernel_mala(1e-3),
      init = cbind(c(0, 0, 0), c(1000, 0, 0)),
      chains = 2,
      refresh = 0
    ),
    class = "tall_error_nonfinite"
  )
})

test_that("messages of chains that stop read well", {
  model <- example_model("poisson")
  expect_snapshot(
    invisible(sg_sample(
      model,
      kernel_sgld(0.05),
      gradient = gradient_simple(),
      subsample = subsample_uniform(30),
      iter = 200,
      chains = 2,
      seed = 1,
      init = c(0, 0, 0),
      refresh = 0
    )),
    transform = function(lines) {
      sub("`[^`]+` became [^.]+", "`#` became #", scrub(lines))
    },
    cnd_class = TRUE
  )
})

test_that("Ctrl-C returns the draws so far with a warning; the run goes on", {
  skip_on_os("windows")
  skip_on_cran()
  started <- withr::local_tempfile()
  out <- run_child(
    function(started, lib) {
      .libPaths(c(lib, .libPaths()))
      x <- cbind(1, matrix(stats::rnorm(3e5), ncol = 3))
      model <- tallbayes::model_glm(x, stats::rbinom(1e5, 1, 0.5))
      kernel <- tallbayes::kernel_sgld(1e-6)
      caught <- NULL
      # when the warmup is over, however slow the machine is
      trace(
        "cli_progress_update",
        bquote(if (set > 60) file.create(.(started))),
        where = asNamespace("cli"),
        print = FALSE
      )
      fit <- withCallingHandlers(
        tallbayes::sg_sample(
          model,
          kernel,
          gradient = tallbayes::gradient_full(),
          iter = 1e6,
          warmup = 10,
          chains = 2,
          seed = 1,
          refresh = 1
        ),
        warning = function(w) {
          caught <<- w
          invokeRestart("muffleWarning")
        }
      )
      n <- posterior::niterations(fit$draws)
      more <- tallbayes::sg_resume(fit, iter = 20, refresh = 0)
      whole <- tallbayes::sg_sample(
        model,
        kernel,
        gradient = tallbayes::gradient_full(),
        iter = 10 + n + 20,
        warmup = 10,
        chains = 2,
        seed = 1,
        refresh = 0
      )
      list(
        class = class(caught),
        message = conditionMessage(caught),
        n = n,
        finite = all(is.finite(unclass(fit$draws))),
        status = fit$chains$status,
        same = all.equal(
          unclass(more$draws),
          unclass(whole$draws),
          tolerance = 0,
          check.attributes = FALSE
        )
      )
    },
    started,
    dirname(system.file(package = "tallbayes")),
    signal_when = started
  )
  expect_true("tall_warning_interrupted" %in% out$class)
  expect_match(out$message, "interrupted: [0-9,]+ draws? of each chain")
  expect_gt(out$n, 0)
  expect_lt(out$n, 1e6 - 10)
  expect_true(out$finite)
  expect_identical(out$status, c("ok", "ok"))
  expect_true(out$same)
})

# ---- passes over the data, counted by hand -----------------------------------

# N = 300 rows, 2 chains of 10 steps, and the gradient where each starts: 11
# estimates of each chain.
counted_fit <- function(gradient, subsample, kernel = kernel_sgld(1e-3), ...) {
  sg_sample(
    example_model(),
    kernel,
    gradient,
    subsample,
    iter = 10,
    warmup = 5,
    chains = 2,
    seed = 1,
    refresh = 0,
    ...
  )
}

expect_passes <- function(fit, chain, mode = 0, weights = 0, reference = 0) {
  # one Hessian at the start, of all these rows, where it is to say something
  # and no mode does
  has_start <- mode == 0 && !kernel_is_metropolis(fit$kernel)
  preparation <- c(mode, weights, reference, recipe = as.numeric(has_start))
  names(preparation) <- c("mode", "weights", "reference", "recipe")
  expect_equal(fit$chains$passes, rep(chain, 2))
  expect_equal(fit$preparation, preparation)
  expect_equal(fit$passes, 2 * chain + sum(preparation))
}

test_that("passes of control variates count mode, reference and weights", {
  mode <- find_mode(example_model())$passes
  # 30 of 300 rows, and a pass for the reference
  plain <- 11 * 0.1
  uniform <- subsample_uniform(30)
  expect_passes(
    counted_fit(gradient_cv(), uniform),
    plain,
    mode = mode,
    reference = 1
  )
  at <- c(0, 0.1, 0)
  fixed <- gradient_cv(at)
  expect_passes(
    counted_fit(fixed, uniform, init = at),
    plain,
    reference = 1
  )
  # weights at a point: its Hessian, and the weights themselves
  for (case in list(
    list("hessian", 2),
    list("leverage", 2),
    list("gradient", 1),
    list("lipschitz", 1),
    list("uniform", 0),
    list(1:300, 0)
  )) {
    fit <- counted_fit(fixed, subsample_weighted(30, case[[1]]), init = at)
    expect_passes(fit, plain, weights = case[[2]], reference = 1)
  }
  # at the mode the Hessian is there already
  expect_passes(
    counted_fit(gradient_cv(), subsample_weighted(30)),
    plain,
    mode = mode,
    weights = 1,
    reference = 1
  )
  expect_passes(
    counted_fit(gradient_simple(), uniform, init = at),
    plain
  )
})

test_that("passes of full gradients, SAGA and SVRG are counted", {
  at <- c(0, 0.1, 0)
  uniform <- subsample_uniform(30)
  expect_passes(counted_fit(gradient_full(), NULL, init = at), 11)
  # MALA: one evaluation at each proposal, and one where a chain starts
  expect_passes(
    counted_fit(NULL, NULL, kernel_mala(0.01), init = at),
    11
  )
  # a pass for the table
  expect_passes(counted_fit(gradient_saga(), uniform, init = at), 1 + 1.1)
  # estimates 1, 5 and 9 move the reference, the other 8 take a minibatch
  expect_passes(
    counted_fit(gradient_svrg(refresh = 4), uniform, init = at),
    3 + 8 * 0.1
  )
  # N / n = 10: estimates 1 and 11
  expect_passes(
    counted_fit(gradient_svrg(), uniform, init = at),
    2 + 9 * 0.1
  )
  # optimal weights look at all rows for each minibatch
  expect_passes(
    counted_fit(gradient_simple(), subsample_optimal(30), init = at),
    11 * 1.1
  )
})

test_that("passes of adaptive minibatches are counted, with a cap", {
  at <- c(0, 0.1, 0)
  # Hessian and weights at the point, and the Lipschitz constants
  fit <- suppressWarnings(counted_fit(
    gradient_cv(at),
    subsample_adaptive(1e-12, max_size = 60),
    init = at + 1
  ))
  expect_passes(fit, 11 * 0.2, weights = 3, reference = 1)
  fit <- suppressWarnings(counted_fit(
    gradient_cv(at),
    subsample_adaptive(1e-12, "uniform"),
    init = at + 1
  ))
  expect_passes(fit, 11, weights = 1, reference = 1)
})

test_that("a run that goes on makes its references and weights again", {
  fit <- counted_fit(gradient_cv(), subsample_weighted(30))
  mode <- fit$preparation[["mode"]]
  longer <- sg_resume(fit, 10, refresh = 0)
  expect_passes(longer, 2.1, mode = mode, weights = 2, reference = 2)
})

test_that("passes of the recipe are counted", {
  withr::local_seed(1)
  x <- cbind(1, stats::rnorm(4000))
  y <- stats::rbinom(4000, 1, 0.5)
  model <- model_glm(x, y, "bernoulli")
  run <- function() {
    sg_sample(
      model,
      iter = 20,
      warmup = 10,
      chains = 2,
      seed = 1,
      refresh = 0
    )
  }
  fit <- run()
  # all rows at the start, then a few
  rows <- fit$chains$rows_thinned * (10 + 10 * fit$steps)
  expect_equal(fit$chains$passes, 1 + rows / 4000)
  # a reference for the pilot and one for the run; the pilot's start and steps
  expect_equal(
    fit$preparation[-1],
    c(weights = 0, reference = 2, recipe = 1 + 400 * fit$recipe$size / 4000)
  )
  expect_equal(fit$preparation[["mode"]], fit$mode$passes)
  few <- fit$preparation[["recipe"]]
  local_way("minibatches")
  fit <- run()
  # 32 rows; 10 iterations of one step, 10 of 25, and the start
  expect_equal(fit$chains$passes, rep((10 + 10 * 25 + 1) * 32 / 4000, 2))
  # references for both pilots and one for the run; weights twice; a look for
  # awkward rows; the rows
  # whitened, then bounded; the pilots, the second of 2,050 steps and its start
  expect_equal(
    fit$preparation[-1],
    c(weights = 2, reference = 3, recipe = few + 3 + 2051 * 32 / 4000)
  )
  expect_equal(fit$preparation[["mode"]], fit$mode$passes)
})
