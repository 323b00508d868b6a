# Cross-validation by fits again: against the same by hand, and against loo().

skip_if_not_installed("loo")

kfold_data <- function(n = 240, seed = 1) {
  withr::with_seed(seed, {
    data <- data.frame(
      x = stats::rnorm(n, 3, 2),
      z = stats::rnorm(n),
      h = factor(sample(letters[1:3], n, TRUE)),
      g = sample(paste0("g", 1:12), n, TRUE),
      w = sample(1:3, n, TRUE)
    )
    eta <- 0.3 * data$x - 1 + 0.5 * (data$h == "b")
    data$event <- stats::rbinom(n, 1, stats::plogis(eta))
    data$y <- eta + stats::rnorm(n)
    data$time <- stats::rexp(n, exp(eta))
    data$seen <- stats::rbinom(n, 1, 0.8)
    cuts <- c(-Inf, -1, 0.5, Inf)
    class <- cut(eta + stats::rlogis(n), cuts, c("a", "b", "c"))
    data$class <- class
    data$rank <- factor(class, ordered = TRUE)
    data
  })
}

# Densities of fold k under `fit`, which has not seen it.
expect_held <- function(found, k, fit, data, tolerance = 1.5e-8) {
  held <- found$folds == k
  expect_equal(
    found$pointwise[held, "elpd_kfold"],
    log_mean_density(fit, data[held, ]),
    tolerance = tolerance
  )
}

log_mean_density <- function(fit, newdata = NULL) {
  unname(log(colMeans(exp(rstantools::log_lik(fit, newdata = newdata)))))
}

# Log mean densities of each fold under its own fit, made by hand.
elpd_by_hand <- function(folds, data, refit) {
  out <- numeric(nrow(data))
  for (k in unique(folds)) {
    held <- folds == k
    fit <- refit(data[!held, ])
    out[held] <- log_mean_density(fit, data[held, ])
  }
  out
}

# Twice the standard error of the sum of the differences of pairs.
expect_as_loo <- function(kfold, fit) {
  loo <- suppressWarnings(loo::loo(fit, observations = NULL))
  off <- kfold$pointwise[, "elpd_kfold"] - loo$pointwise[, "elpd_loo"]
  expect_lt(abs(sum(off)), 3 * stats::sd(off) * sqrt(length(off)) + 1)
}

# ---- by hand -----------------------------------------------------------------

test_that("it is what fits to the other rows say, seed by seed", {
  data <- kfold_data()
  # priors that no rows change
  priors <- list(prior = prior_normal(0, 1), prior_intercept = NULL)
  cases <- list(
    list(event ~ x + h, family = stats::binomial()),
    list(y ~ poly(x, 2) + h, weights = quote(w), prior_aux = prior_gamma(2, 1)),
    list(event ~ x, family = stats::binomial(), lambda = 100)
  )
  for (case in cases) {
    call <- c(quote(tall_glm), case, priors, seed = 1, refresh = 0, iter = 300)
    fit_of <- function(data, ...) {
      own <- call
      own$data <- data
      own[names(list(...))] <- list(...)
      eval(as.call(own))
    }
    fit <- fit_of(data)
    found <- loo::kfold(fit, K = 3, save_fits = TRUE, refresh = 0)
    expect_s3_class(found, c("kfold", "loo"))
    expect_identical(attr(found, "K"), 3L)
    # a basis is that of all rows
    if ("poly(x, 2)1" %in% names(coef(fit))) {
      basis <- stats::poly(data$x, 2)
      data[c("p1", "p2")] <- list(basis[, 1], basis[, 2])
      call[[2]] <- y ~ p1 + p2 + h
    }
    wanted <- elpd_by_hand(found$folds, data, function(rows) {
      if (is.null(call$lambda)) {
        return(fit_of(rows))
      }
      # the same share of each row
      fit_of(rows, lambda = call$lambda * nrow(rows) / nrow(data))
    })
    expect_equal(found$pointwise[, "elpd_kfold"], wanted, tolerance = 1e-6)
    expect_equal(rowSums(found$pointwise[, 1:2]), log_mean_density(fit))
    expect_identical(
      vapply(found$fits, stats::nobs, 0),
      as.numeric(240 - table(found$folds))
    )
  }
})

test_that("sums and standard errors are those of the rows", {
  fit <- quick_glm(event ~ x, kfold_data(), iter = 300)
  found <- loo::kfold(fit, K = 2, refresh = 0)
  elpd <- found$pointwise[, "elpd_kfold"]
  expect_equal(found$estimates["elpd_kfold", "Estimate"], sum(elpd))
  expect_equal(
    found$estimates["elpd_kfold", "SE"],
    sqrt(240) * stats::sd(elpd)
  )
  expect_equal(
    unname(found$estimates["kfoldic", ]),
    unname(c(-2, 2) * found$estimates["elpd_kfold", ])
  )
  expect_output(print(found), "2-fold")
})

test_that("means of exponentials do not overflow", {
  x <- cbind(
    c(-1000, -1001, -999),
    c(0, 800, 1),
    c(-Inf, 0, 0),
    -Inf,
    c(1, 2, 4)
  )
  wanted <- c(
    -1000 + log(mean(exp(c(0, -1, 1)))),
    800 - log(3),
    log(2 / 3),
    -Inf,
    log(mean(exp(c(1, 2, 4))))
  )
  expect_equal(log_mean_exp(x), wanted)
})

# ---- every front end ---------------------------------------------------------

test_that("it agrees with loo(), and keeps the priors of the fit", {
  skip_if_not_installed("survival")
  data <- kfold_data()
  own <- list(data = data, seed = 1, refresh = 0, iter = 200)
  make <- function(front, ...) do.call(front, c(list(...), own))
  surv <- survival::Surv(time, seen) ~ x
  fits <- list(
    binomial = make(tall_glm, event ~ x + h, family = stats::binomial()),
    gaussian = make(tall_glm, y ~ x + h),
    gam = make(tall_gam, y ~ s(x)),
    polr = make(tall_polr, rank ~ x),
    multinom = make(tall_multinom, class ~ x),
    pieces = make(tall_surv, surv, pieces = 4),
    weibull = make(tall_surv, surv, basehaz = "weibull"),
    dpar = make(tall_glm, list(y ~ x, sigma ~ z))
  )
  for (name in names(fits)) {
    fit <- fits[[name]]
    found <- loo::kfold(fit, K = 2, save_fits = TRUE, refresh = 0)
    expect_as_loo(found, fit)
    part <- found$fits[[1]]
    expect_equal(part$prior, fit$prior, tolerance = 1e-12, info = name)
    expect_identical(part$family$pieces, fit$family$pieces, info = name)
    expect_identical(part$variables, fit$variables, info = name)
    expect_identical(NROW(stats::predict(part)), as.integer(stats::nobs(part)))
  }
})

test_that("groups whose effects are integrated out are left out whole", {
  data <- kfold_data()
  fit <- tall_glmer(
    event ~ x + (1 | g),
    data = data,
    family = stats::binomial(),
    seed = 1,
    refresh = 0,
    iter = 300
  )
  found <- loo::kfold(fit, K = 3, group = ~g, save_fits = TRUE, refresh = 0)
  expect_identical(nrow(found$pointwise), 12L)
  expect_as_loo(found, fit)
  # the marginal likelihood of a group by quadrature, at each draw of the fold
  at <- 5
  level <- fit$groups$levels[[at]]
  part <- found$fits[[found$folds[[at]]]]
  expect_false(level %in% part$groups$levels)
  rows <- data[data$g == level, ]
  draws <- as.matrix(part)
  nodes <- seq(-6, 6, by = 0.05)
  density <- apply(draws, 1, function(theta) {
    eta <- outer(
      theta[["(Intercept)"]] + theta[["x"]] * rows$x,
      theta[["sd_g__Intercept"]] * nodes,
      "+"
    )
    each <- colSums(stats::dbinom(rows$event, 1, stats::plogis(eta), TRUE))
    sum(exp(each) * stats::dnorm(nodes)) * 0.05
  })
  expect_equal(
    found$pointwise[[at, "elpd_kfold"]],
    log(mean(density)),
    tolerance = 1e-4
  )
  expect_error(
    loo::kfold(fit, group = ~h, refresh = 0),
    "integrated out",
    class = "tall_error_unsupported"
  )
})

test_that("effects that are sampled are those of the groups of held-out rows", {
  data <- kfold_data()
  data$k <- rep(1:8, 30)
  fit <- tall_glmer(
    y ~ x + (1 | g) + (1 | k),
    data = data,
    seed = 1,
    refresh = 0,
    iter = 300,
    keep_effects = "draws"
  )
  found <- loo::kfold(fit, K = 4, save_fits = TRUE, refresh = 0)
  expect_as_loo(found, fit)
  expect_held(found, 1, found$fits[[1]], data)
})

# ---- folds -------------------------------------------------------------------

test_that("folds are balanced, stratified or of whole groups", {
  data <- kfold_data()
  fit <- quick_glm(event ~ x, data, iter = 60)
  of <- function(...) make_folds(fit, 5, ..., seed = 1)$of
  expect_identical(as.integer(table(of(NULL, NULL))), rep(48L, 5))
  expect_identical(of(NULL, NULL), of("random", NULL))
  expect_false(identical(of(NULL, NULL), make_folds(fit, 5, NULL, NULL, 2)$of))
  counts <- table(of("stratified", ~h), data$h)
  expect_lte(max(apply(counts, 2, function(n) diff(range(n)))), 1)
  whole <- of(NULL, ~g)
  expect_identical(whole, of("grouped", "g"))
  expect_identical(whole, of("grouped", data$g))
  expect_true(all(rowSums(table(data$g, whole) > 0) == 1))
  expect_lte(diff(range(table(whole[!duplicated(data$g)]))), 1)
  # fewer groups than folds
  few <- make_folds(fit, 5, NULL, ~h, 1)
  expect_identical(few$K, 3L)
  by_loo <- loo::kfold_split_grouped(K = 3, x = data$g)
  expect_identical(make_folds(fit, 10, by_loo, NULL, 1)$K, 3L)
})

test_that("rows that the fit left out have no fold", {
  data <- kfold_data()
  data$x[c(3, 50)] <- NA
  fit <- quick_glm(event ~ x, data, iter = 60)
  folds <- rep(1:3, 80)
  expect_identical(
    make_folds(fit, 10, folds, NULL, 1)$of,
    make_folds(fit, 10, folds[-c(3, 50)], NULL, 1)$of
  )
  expect_identical(length(make_folds(fit, 4, NULL, ~g, 1)$of), 238L)
})

test_that("what cannot be split is refused", {
  data <- kfold_data()
  fit <- quick_glm(event ~ x, data, iter = 60)
  of <- function(...) loo::kfold(fit, ..., refresh = 0)
  expect_error(of(K = 1), "`K`", class = "tall_error_input")
  expect_error(of(K = 241), "`K`", class = "tall_error_input")
  expect_error(of(folds = "grouped"), "group", class = "tall_error_input")
  expect_error(of(folds = "loo"), "folds", class = "tall_error_input")
  expect_error(of(folds = 1:3), "folds", class = "tall_error_input")
  expect_error(of(folds = rep(1, 240)), "two folds", class = "tall_error_input")
  expect_error(of(group = ~nothing), "nothing", class = "tall_error_input")
  expect_error(of(group = rep(1, 240)), "`group`", class = "tall_error_input")
  expect_error(of(other = 1), "other", class = "tall_error_input")
  light <- quick_glm(event ~ x, data, iter = 60, keep_data = FALSE)
  expect_error(loo::kfold(light), class = "tall_error_stale")
})

test_that("an error of a fold names it", {
  data <- kfold_data(60)
  data$h <- factor(rep(c("a", "b"), c(58, 2)))
  fit <- quick_glm(
    event ~ h,
    data,
    iter = 60,
    prior = NULL,
    prior_intercept = NULL
  )
  folds <- rep(1:2, 30)
  folds[59:60] <- 2
  expect_error(loo::kfold(fit, folds = folds, refresh = 0), "fold 2")
})

test_that("results are compared with those of other fits", {
  data <- kfold_data()
  fit <- quick_glm(event ~ x, data, iter = 300)
  less <- quick_glm(event ~ 1, data, iter = 300)
  a <- loo::kfold(fit, K = 3, refresh = 0)
  b <- loo::kfold(less, K = 3, refresh = 0)
  expect_identical(a$folds, b$folds)
  table <- loo::loo_compare(a, b)
  off <- b$pointwise[, "elpd_kfold"] - a$pointwise[, "elpd_kfold"]
  expect_equal(table[2, "elpd_diff"], sum(off))
  expect_equal(table[2, "se_diff"], sqrt(240) * stats::sd(off))
  other <- quick_glm(event ~ x, data[-1, ], iter = 300)
  expect_error(
    loo::loo_compare(a, loo::kfold(other, K = 3, refresh = 0)),
    class = "tall_error_input"
  )
})

# ---- sources -----------------------------------------------------------------

test_that("rows that are passed over are left out of the passes", {
  local_passes(rows = 300)
  data <- kfold_data(900)
  data$x[17] <- NA
  stream <- stream_of(data, c(100, 40, 1))
  fit_of <- function(data, ...) {
    tall_glm(y ~ x + h, data, ..., seed = 1, refresh = 0, iter = 300)
  }
  fit <- fit_of(stream)
  expect_true(has_source(fit))
  by <- loo::kfold(fit, K = 3, group = ~g, save_fits = TRUE, refresh = 0)
  whole <- data[-17, ]
  expect_true(all(rowSums(table(whole$g, by$folds) > 0) == 1))
  expect_equal(by$fits[[2]]$prior, fit$prior)
  # draws from sums do not depend on where rows lie
  for (k in 1:3) {
    held <- by$folds == k
    own <- fit_of(
      whole[!held, ],
      prior = by$fits[[k]]$blueprint$priors$prior,
      prior_intercept = by$fits[[k]]$blueprint$priors$prior_intercept,
      prior_aux = by$fits[[k]]$blueprint$priors$prior_aux
    )
    expect_equal(own$prior, fit$prior)
    expect_held(by, k, own, whole)
  }
})

test_that("rows of shards are left out wherever they lie", {
  local_settings(block_rows = 10)
  data <- kfold_data(60)[c("x", "g")]
  shards <- as_source(list(data[1:25, ], data[26:60, ]))
  held <- c(3, 12, 24, 30, 51)
  fold <- replace(integer(60), held, 1L)
  found <- collect_source(source_part(shards, fold, 1))
  expect_equal(found, data[-held, ], ignore_attr = TRUE)
})

# With a call that can be evaluated again anywhere.
fit_again_to <- function(...) {
  args <- list(..., seed = 1, refresh = 0)
  if (is.null(args$family)) {
    args$family <- stats::binomial()
  }
  do.call(tall_glm, args)
}

# Passes over all rows of a stream of these, which are counted as they end.
ending_stream <- function(data, sizes) {
  count <- new.env()
  count$n <- 0
  own <- stream_of(data, sizes)
  source <- tall_stream(function() {
    next_block <- own$open()
    function() {
      block <- next_block()
      count$n <- count$n + is.null(block)
      block
    }
  })
  list(source = source, n = function() count$n)
}

# Those of fits, one for each fold, that read the source by themselves.
fits_apart <- function(fit, folds) {
  fold <- source_folds(fit, folds)
  lapply(seq_len(max(folds)), function(k) {
    part <- source_part(fit$rows$source, fold, k)
    call_again(fit, c(list(data = part), settled_arguments(fit)))
  })
}

test_that("all folds are fitted and scored in the passes of one fit", {
  local_passes(rows = 300)
  data <- kfold_data(1200)
  cases <- list(
    list(y ~ x + h, family = stats::gaussian(), K = 2),
    list(y ~ x + h, family = stats::gaussian(), K = 5),
    list(event ~ x + h, K = 3)
  )
  for (case in cases) {
    rows <- ending_stream(data, c(400, 241, 1))
    K <- case$K
    case$K <- NULL
    fit <- do.call(fit_again_to, c(case, list(data = rows$source, iter = 100)))
    start <- rows$n()
    found <- loo::kfold(fit, K = K, save_fits = TRUE, refresh = 0)
    n_pass <- rows$n() - start
    start <- rows$n()
    apart <- fits_apart(fit, found$folds)
    n_apart <- (rows$n() - start) / K
    # one for the densities; chance has it how often a fit draws rows
    expect_gte(n_pass, floor(n_apart) + 1)
    expect_lte(n_pass, ceiling(n_apart) + 2)
    if (!is.null(case$family)) {
      expect_identical(n_pass, 3)
    }
    for (k in seq_len(K)) {
      expect_identical(found$fits[[k]]$draws, apart[[k]]$draws)
      expect_held(found, k, apart[[k]], data, 1e-10)
    }
  }
})

test_that("parts of a source have rows left out, weights, trials and shards", {
  local_passes(rows = 300)
  data <- kfold_data(900)
  data$x[c(17, 500)] <- NA
  data$w[3] <- 0
  data$m <- data$event + data$w
  frames <- list(data[1:350, ], data[351:900, ])
  cases <- list(
    list(
      y ~ x + h,
      data = stream_of(data, c(370, 1)),
      family = stats::gaussian(),
      weights = quote(w)
    ),
    list(cbind(event, m - event) ~ x, data = frames),
    list(event ~ x, data = frames, subset = quote(z > -1))
  )
  for (case in cases) {
    fit <- do.call(fit_again_to, c(case, iter = 60), quote = TRUE)
    expect_true(has_source(fit))
    found <- loo::kfold(fit, K = 2, group = ~g, save_fits = TRUE, refresh = 0)
    expect_equal(rowSums(found$pointwise[, 1:2]), log_mean_density(fit))
    apart <- fits_apart(fit, found$folds)
    for (k in 1:2) {
      expect_identical(found$fits[[k]]$draws, apart[[k]]$draws)
      expect_identical(sum(found$folds != k), as.integer(apart[[k]]$n_data))
    }
  }
})

test_that("where memory is for few fits passes are made for these", {
  local_passes(rows = 300)
  rows <- ending_stream(kfold_data(900), 100)
  fit <- fit_again_to(event ~ x, rows$source, iter = 100)
  before <- rows$n()
  at_once <- loo::kfold(fit, K = 4, refresh = 0)
  local_settings(folds_bytes = 8 * 300 * (3 * 2 + 4 * 2) * 2)
  start <- rows$n()
  expect_equal(loo::kfold(fit, K = 4, refresh = 0), at_once)
  expect_identical(rows$n() - start, 2 * before + 1)
})

test_that("parts that are brought to memory are scored like others", {
  data <- kfold_data(300)
  fit <- fit_again_to(event ~ x + h, stream_of(data, 50), iter = 100)
  local_passes(rows = 250)
  source_fit <- fit_again_to(event ~ x + h, stream_of(data, 50), iter = 100)
  expect_false(has_source(fit))
  expect_true(has_source(source_fit))
  # 200 rows: the look has them all
  found <- loo::kfold(source_fit, K = 3, save_fits = TRUE, refresh = 0)
  for (k in 1:3) {
    own <- found$fits[[k]]
    expect_false(has_source(own))
    expect_held(found, k, own, data)
  }
})

test_that("what fails in a pass for all folds names the fold", {
  local_passes(rows = 300)
  data <- kfold_data(900)
  data$h <- factor(rep(c("a", "b"), c(890, 10)))
  fit <- fit_again_to(event ~ x + h, stream_of(data, 100), iter = 100)
  folds <- rep(1:3, 300)
  folds[891:900] <- 2
  expect_error(loo::kfold(fit, folds = folds, refresh = 0), "fold 2")
  # a part alone has a value that is none
  own <- kfold_data(900)
  source <- tall_stream(function() stream_of(own, 100)$open())
  fit <- fit_again_to(event ~ x, source, iter = 100)
  own$event[own$z > 1.9] <- 2
  folds <- ifelse(own$event == 2, 2L, 1L)
  expect_error(loo::kfold(fit, folds = folds, refresh = 0), "fold 1")
})

test_that("code that is begun again says once what it says", {
  data <- data.frame(x = 1:100)
  source <- stream_of(data, 30)
  fold <- rep(1:2, 50)
  parts <- lapply(1:2, function(k) source_part(source, fold, k, new_log()))
  visit <- function(args, first) {
    total <- args$from
    rows <- NULL
    list(
      add = function(block) {
        rows <<- c(rows, block$row)
        total <<- total + sum(block_frame(block)$x)
      },
      end = function(n_read) list(total = total, n = n_read, rows = rows)
    )
  }
  n_stage <- n_head <- 0
  made <- list()
  begin <- function(part) {
    rlang::warn("before")
    pass <- function(from) {
      args <- list(request = list(columns = "x"), from = from)
      each_shard(part, visit, args, 0, list(label = "", refresh = 0))[[1]]
    }
    in_log(part, "head", n_head <<- n_head + 1)
    first <- in_stage(part, {
      found <- pass(0)
      n_stage <<- n_stage + 1
      found
    })
    rlang::inform("between")
    c(first, pass(first$total))
  }
  ask <- list(names = c("a", "b"), refresh = 0)
  said <- character()
  withCallingHandlers(
    advance_fits(parts, 1:2, ask, begin, function(k, fit) made[[k]] <<- fit),
    condition = function(cnd) {
      if (inherits(cnd, c("warning", "message"))) {
        said <<- c(said, conditionMessage(cnd))
        rlang::cnd_muffle(cnd)
      }
    }
  )
  sums <- c(sum(data$x[fold != 1]), sum(data$x[fold != 2]))
  for (k in 1:2) {
    expect_equal(made[[k]][[1]], sums[[k]])
    expect_equal(made[[k]][[4]], 2 * sums[[k]])
    expect_equal(made[[k]]$n, 50)
    expect_equal(made[[k]]$rows, c(1, 16, 31, 46))
    # closed, it is read by itself
    expect_null(source_log(parts[[k]]))
  }
  expect_identical(c(n_stage, n_head), c(2, 2))
  said <- table(trimws(said))
  expect_identical(as.integer(said[c("before", "between")]), c(2L, 2L))
})

# ---- reloo -------------------------------------------------------------------

test_that("reloo() puts exact values in the place of approximations", {
  data <- kfold_data()
  data$y[[7]] <- 40
  fit <- quick_glm(
    y ~ x,
    data,
    stats::gaussian(),
    prior = prior_normal(0, 1),
    prior_intercept = NULL,
    prior_aux = prior_gamma(2, 1)
  )
  rough <- suppressWarnings(loo::loo(fit))
  exact <- reloo(fit, rough, k_threshold = 0.5, refresh = 0)
  bad <- which(rough$diagnostics$pareto_k > 0.5)
  expect_true(7 %in% bad)
  again <- quick_glm(
    y ~ x,
    data[-7, ],
    stats::gaussian(),
    prior = prior_normal(0, 1),
    prior_intercept = NULL,
    prior_aux = prior_gamma(2, 1)
  )
  density <- rstantools::log_lik(again, newdata = data[7, ])
  elpd <- log(mean(exp(density)))
  expect_equal(exact$pointwise[[7, "elpd_loo"]], elpd, tolerance = 1e-8)
  lpd <- log(mean(exp(rstantools::log_lik(fit)[, 7])))
  expect_equal(exact$pointwise[[7, "p_loo"]], lpd - elpd, tolerance = 1e-8)
  kept <- setdiff(seq_len(240), bad)
  expect_identical(exact$pointwise[kept, ], rough$pointwise[kept, ])
  expect_equal(
    exact$estimates[, "Estimate"],
    colSums(exact$pointwise[, rownames(exact$estimates)])
  )
  expect_lt(max(exact$diagnostics$pareto_k), 0.5)
  # nothing to do
  expect_identical(reloo(fit, rough, k_threshold = 10, refresh = 0), rough)
})

test_that("reloo() refuses subsamples and what is of another fit", {
  data <- kfold_data()
  fit <- quick_glm(event ~ x, data, iter = 60)
  some <- loo::loo_subsample(fit, observations = 100)
  expect_error(reloo(fit, some), class = "tall_error_unsupported")
  expect_error(reloo(fit, 1), "`loo`", class = "tall_error_input")
  expect_error(loo::loo(fit, reloo = TRUE), "reloo", class = "tall_error_input")
})
