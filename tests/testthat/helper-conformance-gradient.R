# The laws of a gradient estimator, by enumerating every minibatch of a small
# data set: no Monte Carlo. test-conformance-gradient.R applies them to every
# entry of conformance_gradients(), under every way of drawing in
# enumerations(), on every model of enumeration_models().

# make: at (a point) -> the spec. has_reference: equals the full gradient there.
# keeps_state: what it subtracts depends on the estimates before. order: 2 where
# it subtracts the derivative at the reference too. refuses: models it has none
# for.
conformance_gradients <- function() {
  list(
    simple = list(
      name = "simple",
      make = function(at) gradient_simple(),
      uses_rows = TRUE,
      has_reference = FALSE
    ),
    cv = list(
      name = "cv",
      make = function(at) gradient_cv(at),
      uses_rows = TRUE,
      has_reference = TRUE
    ),
    cv2 = list(
      name = "cv2",
      make = function(at) gradient_cv(at, order = 2),
      uses_rows = TRUE,
      has_reference = TRUE,
      order = 2,
      refuses = c("lda", "lda, even")
    ),
    saga = list(
      name = "saga",
      make = function(at) gradient_saga(at),
      uses_rows = TRUE,
      has_reference = FALSE,
      keeps_state = TRUE
    ),
    svrg = list(
      name = "svrg",
      make = function(at) gradient_svrg(refresh = 4),
      uses_rows = TRUE,
      has_reference = FALSE,
      keeps_state = TRUE
    ),
    full = list(
      name = "full",
      make = function(at) gradient_full(),
      uses_rows = FALSE,
      has_reference = TRUE
    )
  )
}

enumeration_models <- function() {
  models <- list(
    bernoulli = entry_glm(
      "bernoulli",
      prior = prior_laplace(0, 0.5),
      weighted = TRUE,
      n_data = 5,
      n_dim = 2
    )$model,
    poisson = entry_glm(
      "poisson",
      prior = prior_normal(0.5, 0.7),
      shifted = TRUE,
      n_data = 5,
      n_dim = 2
    )$model,
    sigma = entry_sigma(prior_exponential(1), n_data = 5, n_dim = 1)$model,
    gaussian = entry_gaussian(n_data = 5, n_dim = 2)$model,
    network = entry_network(
      "tanh",
      "gaussian",
      layers = 2,
      n_data = 5,
      n_input = 1
    )$model
  )
  # whole tables, and rows that share a user or an item
  models$bpmf <- entry_factors("bpmf", n_data = 5, rank = 1)$model
  models$pmf <- entry_factors("pmf", n_data = 5, rank = 2)$model
  models$lda <- one_token_model("natural")
  # the point away and the reference are in different orthants
  models$`lda, even` <- one_token_model("mean")
  center <- c(0.2, -0.1)
  chol <- matrix(c(2, 1, 0, 0.5), 2)
  models$whitened <- whitened_twin(models$poisson, center, chol, FALSE)
  # log sigma stays apart
  chol[2, 1] <- 0
  models$`sigma, whitened` <- whitened_twin(models$sigma, center, chol, FALSE)
  models$scaled <- whitened_twin(models$bernoulli, center, chol, TRUE)
  models
}

# Every minibatch of n of the N rows: a list of index, multiplier and
# probability, and the factor of the noise variance.
enumerations <- function(n_data) {
  tuples <- function(n) {
    as.matrix(expand.grid(rep(list(seq_len(n_data)), n)))
  }
  weighted <- function(n, p) {
    index <- tuples(n)
    list(
      index = index,
      multiplier = matrix(1 / (n * p[index]), ncol = n),
      probability = apply(matrix(p[index], ncol = n), 1, prod),
      finite = 1,
      selection = p
    )
  }
  without <- function(n) {
    index <- t(utils::combn(n_data, n))
    list(
      index = index,
      multiplier = matrix(n_data / n, nrow(index), n),
      probability = rep(1 / nrow(index), nrow(index)),
      finite = 1 - n / n_data
    )
  }
  # pairs of the other rows
  with_always <- function(weights, always) {
    p <- replace(weights, always, 0) / sum(weights[-always])
    drawn <- setdiff(seq_len(n_data), always)
    index <- as.matrix(expand.grid(drawn, drawn))
    list(
      index = index,
      multiplier = matrix(1 / (2 * p[index]), ncol = 2),
      probability = apply(matrix(p[index], ncol = 2), 1, prod),
      finite = 1,
      selection = p,
      always = always
    )
  }
  uneven <- seq_len(n_data)^2
  list(
    "one row" = weighted(1, rep(1 / n_data, n_data)),
    "with replacement" = weighted(2, rep(1 / n_data, n_data)),
    "without replacement" = without(3),
    "weighted" = weighted(2, uneven / sum(uneven)),
    "weighted, rows in each" = with_always(uneven, c(2, n_data))
  )
}

# A kernel that stays where it is, to rounding: R refuses a step of zero, for
# which there is tools/core-check.
kernel_still <- function(kernel = kernel_sgld(1)) {
  size <- intersect(c("step_size", "sigma"), names(kernel$args))
  kernel$args[[size]] <- 1e-300
  kernel
}

test_control <- function(
  iter = 1,
  warmup = 0,
  chains = 1,
  keep = c("draws", "gradients"),
  seed = 1
) {
  list(
    iter = iter,
    warmup = warmup,
    thin = 1,
    chains = chains,
    cores = 1,
    seed = seed,
    keep = keep,
    refresh = 0
  )
}

# The estimate at theta (parameters) from one minibatch of `scheme`, and its
# reported variance s_j^2 (sampler coordinates; NA: none).
estimate_once <- function(model, gradient, scheme, theta, seed = 1) {
  plan <- new_plan(model, new_sampler(kernel_still(), gradient, scheme))
  plan$init <- .Call(ffi_model_to_sampler, model$pointer, as.double(theta))
  segment <- run_segment(
    plan,
    test_control(seed = seed),
    new_stretch(0, 1),
    noise_every = 1
  )
  noise <- segment$reports[[1]]$noise
  buffers <- segment$buffers
  list(
    theta = if (is.null(buffers$unconstrained)) {
      buffers$draw
    } else {
      buffers$unconstrained
    },
    gradient = segment$buffers$gradient,
    variance = if (noise[[1]] == 1) {
      noise[1 + seq_len(model$n_dim)]
    } else {
      rep(NA, model$n_dim)
    }
  )
}

# The gradient in the parameters, where the recorder reports it.
full_gradient <- function(model, theta) {
  phi <- .Call(ffi_model_to_sampler, model$pointer, as.double(theta))
  g <- drop(model_evaluate(model, phi)$gradient)
  to_parameter_gradient(model, g)
}

to_parameter_gradient <- function(model, g) {
  if (model_is_whitened(model)) drop(model$whitening$chol %*% g) else g
}

to_sampler_gradient <- function(model, g) {
  if (model_is_whitened(model)) {
    drop(forwardsolve(model$whitening$chol, g))
  } else {
    g
  }
}

# Estimate (sampler coordinates) and variance of every minibatch: matrices with
# a row for each.
enumerate <- function(model, gradient, all, theta) {
  one <- lapply(seq_len(nrow(all$index)), function(k) {
    scheme <- subsample_fixed(
      all$index[k, ],
      all$multiplier[k, ],
      all$finite,
      all$always
    )
    estimate_once(model, gradient, scheme, theta)
  })
  list(
    gradient = t(vapply(
      one,
      function(o) to_sampler_gradient(model, o$gradient),
      numeric(model$n_dim)
    )),
    variance = t(vapply(one, function(o) o$variance, numeric(model$n_dim))),
    moved = any(vapply(one, function(o) max(abs(o$theta - theta)), 0) > 1e-12)
  )
}

# V = E||g-hat - g||^2 by the formulas of ?pseudo_variance, from a_i (n_data x
# n_dim).
pseudo_variance_of <- function(a, all) {
  n <- ncol(all$index)
  if (!is.null(all$always)) {
    # what is always there has no part in it
    a <- a[-all$always, , drop = FALSE]
    all$selection <- all$selection[-all$always]
  }
  n_data <- nrow(a)
  if (is.null(all$selection)) {
    centred <- sweep(a, 2, colMeans(a))
    n_data^2 / n * (1 - n / n_data) / (n_data - 1) * sum(centred^2)
  } else {
    (sum(rowSums(a^2) / all$selection) - sum(colSums(a)^2)) / n
  }
}

# g_i(theta) of every row, sampler coordinates.
row_gradients <- function(model, theta) {
  phi <- .Call(ffi_model_to_sampler, model$pointer, as.double(theta))
  t(vapply(
    seq_len(model$n_data),
    function(i) {
      drop(model_evaluate(model, phi, "likelihood", index = i)$gradient)
    },
    numeric(model$n_dim)
  ))
}

# What an estimator subtracts of each row, and adds up over all of them
# beforehand: g_i(at) and, of order 2, H_i (theta - at), by a difference of
# fourth order.
control_variates <- function(entry, model, at, theta) {
  out <- row_gradients(model, at)
  if (!identical(entry$order, 2)) {
    return(out)
  }
  e <- 1e-3
  along <- function(k) row_gradients(model, at + k * e * (theta - at))
  out + (8 * (along(1) - along(-1)) - (along(2) - along(-2))) / (12 * e)
}

# H_i delta of models whose rows have no predictor is a difference as well, of
# second order.
gradient_tolerance <- function(entry, model) {
  by_differences <- !model_info(model)$has_predictors
  if (identical(entry$order, 2) && by_differences) 1e-5 else 1e-10
}

# Two points of any dimension: a reference, and somewhere else.
point_at <- function(model) rep_len(c(0.4, -0.3), model$n_dim)
point_away <- function(model) rep_len(c(-0.6, 0.9), model$n_dim)

# What an estimator remembers of a point: if the model is even, in theta's
# orthant.
fold_point <- function(model, at, theta) {
  if (model_info(model)$is_even) sign(theta) * abs(at) else at
}

law_unbiased <- function(entry, model, all) {
  at <- point_at(model)
  theta <- point_away(model)
  spec <- entry$make(at)
  found <- enumerate(model, spec, all, theta)
  expect_false(found$moved)
  g <- to_sampler_gradient(model, full_gradient(model, theta))
  mean <- colSums(found$gradient * all$probability)
  tolerance <- gradient_tolerance(entry, model)
  share <- if (tolerance > 1e-9) 10 else 1
  expect_close(mean, g, "mean of the estimate", tolerance / share)

  error <- sweep(found$gradient, 2, g)
  truth <- colSums(error^2 * all$probability)
  a <- row_gradients(model, theta)
  if (entry$has_reference) {
    folded <- fold_point(model, at, theta)
    a <- a - control_variates(entry, model, folded, theta)
  }
  expected <- pseudo_variance_of(a, all)
  expect_close(sum(truth), expected, "pseudo-variance", tolerance)
  if (ncol(all$index) == 1) {
    expect_true(all(is.na(found$variance)))
  } else {
    reported <- colSums(found$variance * all$probability)
    expect_close(reported, truth, "mean of the reported variance", tolerance)
  }
}

law_centred <- function(entry, model) {
  at <- point_at(model)
  theta <- fold_point(model, at, point_away(model))
  g <- full_gradient(model, theta)
  schemes <- list(
    subsample_uniform(1),
    subsample_uniform(3),
    subsample_uniform(2, replace = FALSE),
    subsample_weighted(3, c(1, 2, 3, 4, 50))
  )
  for (scheme in schemes) {
    for (seed in 1:3) {
      found <- estimate_once(model, entry$make(at), scheme, theta, seed)
      expect_close(found$gradient, g, "estimate at the reference point")
      expect_true(all(is.na(found$variance) | found$variance < 1e-12))
    }
  }
}

law_exact <- function(entry, model) {
  theta <- point_away(model)
  found <- estimate_once(model, entry$make(theta), NULL, theta)
  expect_close(found$gradient, full_gradient(model, theta), "full gradient")
  expect_identical(found$variance, numeric(model$n_dim))
}

# The estimate and its variance from the rows that a scheme draws: the second
# minibatch of the stream, after that at the starting point.
#   s_j^2 = f sum_i (u_ij - mean u_j)^2 n/(n-1), u_i = c_i a_i,
# f = 1 with replacement, 1 - n/N without (src/gradients/gradient.h).
law_drawn <- function(entry, scheme, model) {
  at <- rep(0.2, model$n_dim)
  theta <- seq(-0.5, 1, length.out = model$n_dim)
  spec <- entry$make(at)
  found <- estimate_once(model, spec, scheme$spec, theta, seed = 8)
  seed <- core_seed(list(seed = 8))
  drawn <- draw_batches(model, scheme$spec, 2, seed, spec)
  index <- drawn$index[, 2]
  multiplier <- drawn$multiplier[, 2]
  n <- length(index)
  a <- row_gradients(model, theta)
  base <- model_evaluate(model, theta, "prior")$gradient
  if (entry$has_reference) {
    known <- control_variates(entry, model, at, theta)
    a <- a - known
    base <- base + colSums(known)
  }
  u <- multiplier * a[index, , drop = FALSE]
  certain <- colSums(a[scheme$always, , drop = FALSE])
  expect_close(found$gradient, base + certain + colSums(u), "estimate")
  if (n > 1) {
    finite <- if (scheme$repeats) 1 else 1 - n / model$n_data
    s2 <- finite * n * apply(u, 2, stats::var)
    expect_close(found$variance, s2, "reported variance")
  }
}

# ---- estimators that keep a state --------------------------------------------

keeps_state <- function(entry) isTRUE(entry$keeps_state)

# A chain that has moved for a while: where it is and its saved bytes. After the
# start and 9 steps a reference that moves every 4 estimates has stayed behind.
moved_state <- function(model, gradient) {
  sampler <- new_sampler(kernel_sgld(0.05), gradient, subsample_uniform(3))
  plan <- new_plan(model, sampler)
  plan$init <- .Call(ffi_model_to_sampler, model$pointer, point_at(model))
  segment <-
    run_segment(plan, test_control(9), new_stretch(0, 9), noise_every = 1)
  report <- segment$reports[[1]]
  list(phi = report$theta, saved = list(report$saved))
}

# The estimate that a saved chain makes next, where it is.
estimate_next <- function(model, gradient, scheme, state) {
  plan <- new_plan(model, new_sampler(kernel_still(), gradient, scheme))
  plan$init <- state$phi
  segment <- run_segment(
    plan,
    test_control(),
    new_stretch(0, 1),
    new_standing(state$saved),
    noise_every = 1
  )
  noise <- segment$reports[[1]]$noise
  list(
    gradient = to_sampler_gradient(model, drop(segment$buffers$gradient)),
    variance = if (noise[[1]] == 1) {
      noise[1 + seq_len(model$n_dim)]
    } else {
      rep(NA, model$n_dim)
    }
  )
}

# Unbiased given the table: over every minibatch, duplicates included.
law_unbiased_given_state <- function(entry, model, all) {
  gradient <- entry$make(NULL)
  state <- moved_state(model, gradient)
  found <- lapply(seq_len(nrow(all$index)), function(k) {
    scheme <- subsample_fixed(
      all$index[k, ],
      all$multiplier[k, ],
      all$finite,
      all$always
    )
    estimate_next(model, gradient, scheme, state)
  })
  estimates <- t(vapply(found, function(o) o$gradient, numeric(model$n_dim)))
  variances <- t(vapply(found, function(o) o$variance, numeric(model$n_dim)))
  g <- drop(model_evaluate(model, state$phi)$gradient)
  expect_close(
    colSums(estimates * all$probability),
    g,
    "mean of the estimate given the table"
  )
  truth <- colSums(sweep(estimates, 2, g)^2 * all$probability)
  # a model whose rows all have the same curvature has a_i that do not differ
  if (model$name != "gaussian" || entry$name != "svrg") {
    expect_gt(sum(truth), 1e-8)
  }
  if (ncol(all$index) > 1) {
    expect_close(
      colSums(variances * all$probability),
      truth,
      "mean of the reported variance given the table"
    )
  }
}

# SAGA and SVRG written in R: the estimates along a path.
#   g: theta -> n_data x n_dim; points: a row for each estimate; drawn: index
#   and multiplier of the minibatches, columns.
path_of <- list(
  saga = function(g, prior, points, drawn) {
    table <- g(points[1, ])
    t(vapply(seq_len(nrow(points)), function(t) {
      now <- g(points[t, ])
      rows <- drawn$index[, t]
      change <- drawn$multiplier[, t] * (now - table)[rows, , drop = FALSE]
      out <- prior(points[t, ]) + colSums(table) + colSums(change)
      table[rows, ] <<- now[rows, ]
      out
    }, numeric(ncol(points))))
  },
  svrg = function(g, prior, points, drawn, refresh = 4) {
    at <- points[1, ]
    used <- 0
    t(vapply(seq_len(nrow(points)), function(t) {
      now <- g(points[t, ])
      if ((t - 1) %% refresh == 0) {
        at <<- points[t, ]
        return(prior(points[t, ]) + colSums(now))
      }
      used <<- used + 1
      rows <- drawn$index[, used]
      table <- g(at)
      change <- drawn$multiplier[, used] * (now - table)[rows, , drop = FALSE]
      prior(points[t, ]) + colSums(table) + colSums(change)
    }, numeric(ncol(points))))
  }
)

# Every estimate along a chain, from the rows that its stream draws; passes too.
law_path <- function(entry, model, scheme, n = 60) {
  init <- seq(0.5, -0.5, length.out = model$n_dim)
  gradient <- entry$make(NULL)
  fit <- sg_sample(
    model,
    kernel_sgld(0.02),
    gradient,
    scheme,
    iter = n,
    warmup = 0,
    chains = 1,
    seed = 4,
    init = init,
    keep = c("draws", "gradients"),
    refresh = 0
  )
  draws <- fit$unconstrained %||% plain_draws(fit)
  points <- rbind(init, matrix(draws, n))
  side <- 1
  if (model_info(model)$is_even) {
    side <- sign(points)
    expect_gt(sum(diff(side) != 0), 0) # crosses zero
    points <- abs(points)
  }
  drawn <- draw_batches(
    model,
    scheme,
    n + 1,
    core_seed(list(seed = 4)),
    gradient
  )
  expected <- path_of[[entry$name]](
    function(theta) row_gradients(model, theta),
    function(theta) drop(model_evaluate(model, theta, "prior")$gradient),
    points,
    drawn
  )
  expected <- (side * expected)[-1, ]
  expect_close(matrix(fit$gradients, n), expected, "estimates on the path")
  size <- nrow(drawn$index)
  n_data <- model$n_data
  rows <- switch(
    entry$name,
    saga = n_data + (n + 1) * size,
    svrg = {
      moves <- sum((seq_len(n + 1) - 1) %% 4 == 0)
      moves * n_data + (n + 1 - moves) * size
    }
  )
  expect_equal(fit$chains$passes, rows / n_data)
}
