# The laws of a subsampling scheme; test-conformance-subsample.R applies them to
# every entry of conformance_subsamples(). An entry has
#
#   name         the registered member
#   spec         the scheme
#   size         rows of a minibatch of subsample_model()
#   probability  p_i, selection probabilities of each draw
#   repeats      may a row come twice?
#   always       rows of every minibatch, which are not drawn

subsample_model <- function() {
  entry_glm("bernoulli", prior = prior_normal(0, 1), n_data = 8)$model
}

conformance_subsamples <- function(model = subsample_model()) {
  n_data <- model$n_data
  even <- rep(1 / n_data, n_data)
  uneven <- c(1, 1, 2, 3, 5, 8, 13, 0.01)
  mode <- find_mode(model)
  entry <- function(
    name,
    spec,
    size,
    probability,
    repeats,
    always = integer()
  ) {
    list(
      name = name,
      spec = spec,
      size = size,
      probability = probability,
      repeats = repeats,
      always = always
    )
  }
  without <- function(weights, rows) {
    weights[rows] <- 0
    weights / sum(weights)
  }
  list(
    "uniform" = entry("uniform", subsample_uniform(5), 5, even, TRUE),
    "uniform, one row" = entry("uniform", subsample_uniform(1), 1, even, TRUE),
    "uniform, larger than the data" =
      entry("uniform", subsample_uniform(20), 20, even, TRUE),
    "uniform, a fraction" =
      entry("uniform", subsample_uniform(0.3), 2, even, TRUE),
    "without replacement" =
      entry("uniform", subsample_uniform(3, FALSE), 3, even, FALSE),
    "without replacement, most rows" =
      entry("uniform", subsample_uniform(7, FALSE), 7, even, FALSE),
    "without replacement, all rows" =
      entry("uniform", subsample_uniform(8, FALSE), 8, even, FALSE),
    "without replacement, a fraction" =
      entry("uniform", subsample_uniform(0.5, FALSE), 4, even, FALSE),
    "weighted" = entry(
      "weighted",
      subsample_weighted(4, uneven),
      4,
      uneven / sum(uneven),
      TRUE
    ),
    "weighted, more than are fetched ahead" = entry(
      "weighted",
      subsample_weighted(33, 1e-300 * uneven),
      33,
      uneven / sum(uneven),
      TRUE
    ),
    "weighted by leverage" = entry(
      "weighted",
      subsample_weighted(0.5, "leverage"),
      4,
      subsampling_weights(model, mode, "leverage"),
      TRUE
    ),
    # 4 * 130 > 149; without it 4 * 8 > 19, 4 * 5 > 11, 4 * 2 > 6, 4 * 1 = 4
    "weighted, rows that come often in each" = entry(
      "weighted",
      subsample_weighted(4, c(1, 1, 2, 1, 5, 8, 130, 1), always = TRUE),
      4,
      without(rep(1, 8), c(3, 5:7)),
      TRUE,
      always = c(3L, 5:7)
    ),
    "weighted, given rows in each" = entry(
      "weighted",
      subsample_weighted(3, uneven, always = c(8, 2)),
      3,
      without(uneven, c(2, 8)),
      TRUE,
      always = c(2L, 8L)
    ),
    "optimal" = entry(
      "optimal",
      subsample_optimal(4),
      4,
      {
        norm <- sqrt(rowSums(row_gradients(model, numeric(model$n_dim))^2))
        norm / sum(norm)
      },
      TRUE
    ),
    "adaptive" = entry(
      "adaptive",
      adaptive_for(model, mode, "uniform", even, 4),
      4,
      even,
      TRUE
    ),
    "adaptive, weighted" = entry(
      "adaptive",
      adaptive_for(model, mode, uneven, uneven / sum(uneven), 5),
      5,
      uneven / sum(uneven),
      TRUE
    ),
    "fixed" = entry(
      "fixed",
      subsample_fixed(c(3, 1, 3), c(2, 8 / 3, 2)),
      3,
      NULL,
      TRUE
    )
  )
}

# The scheme that takes `size` rows at 0, and never more.
adaptive_for <- function(model, mode, weights, p, size) {
  bound <- sum(lipschitz(model)[-1]^2 / p) * sum(coef(mode)^2)
  subsample_adaptive(bound / (size - 0.5), weights, max_size = size)
}

# Minibatches as matrices, a column each.
draw_batches <- function(
  model,
  spec,
  n,
  seed = 1,
  gradient = if (inherits(spec, "tall_subsample_adaptive")) {
    gradient_cv()
  } else {
    gradient_simple()
  }
) {
  control <- test_control()
  plan <- new_plan(model, new_sampler(kernel_sgld(1), gradient, spec))
  scheme <- compile_spec(spec, run_context(plan, control))
  .Call(
    ffi_subsample_draw,
    model$pointer,
    scheme,
    numeric(model$n_dim),
    seed,
    n
  )
}

law_indices <- function(entry, model) {
  drawn <- draw_batches(model, entry$spec, 500)
  expect_identical(dim(drawn$index), c(as.integer(entry$size), 500L))
  expect_true(all(drawn$index %in% seq_len(model$n_data)))
  if (!entry$repeats) {
    expect_false(any(apply(drawn$index, 2, anyDuplicated) > 0))
  }
  again <- draw_batches(model, entry$spec, 500)
  expect_identical(drawn, again)
  other <- draw_batches(model, entry$spec, 500, seed = 2)
  is_random <- entry$repeats || entry$size < model$n_data
  expect_identical(identical(drawn, other), !is_random)
}

law_multipliers <- function(entry, model) {
  drawn <- draw_batches(model, entry$spec, 200)
  p <- entry$probability
  expect_close(
    drawn$multiplier,
    1 / (entry$size * p[drawn$index]),
    "multipliers",
    tolerance = 1e-12
  )
}

law_frequencies <- function(entry, model, n = 40000) {
  if (!entry$repeats && entry$size == model$n_data) {
    drawn <- draw_batches(model, entry$spec, 10)
    expect_identical(drawn$index, matrix(as.double(1:8), 8, 10))
    return(invisible())
  }
  drawn <- draw_batches(model, entry$spec, n)
  # positions of a minibatch are exchangeable: each alone follows p
  if (entry$repeats) {
    for (k in seq_len(min(entry$size, 3))) {
      counts <- tabulate(drawn$index[k, ], model$n_data)
      can <- entry$probability > 0
      expect_identical(which(!can), entry$always)
      expect_true(all(counts[!can] == 0))
      expect_frequencies(counts[can], entry$probability[can], "rows drawn")
    }
    pairs <- if (entry$size > 1) {
      table(
        factor(drawn$index[1, ], seq_len(model$n_data)),
        factor(drawn$index[2, ], seq_len(model$n_data))
      )
    }
    if (!is.null(pairs)) {
      joint <- outer(entry$probability, entry$probability)
      # a cell expected a few times only has no chi-square law
      rare <- n * joint < 10
      expect_frequencies(
        c(pairs[!rare], sum(pairs[rare])),
        c(joint[!rare], max(sum(joint[rare]), 1e-300)),
        "pairs drawn"
      )
    }
  } else {
    # every subset is equally likely
    subsets <- utils::combn(model$n_data, entry$size)
    # a subset is the sum of its rows' powers of two
    keys <- colSums(2^subsets)
    counts <- tabulate(match(colSums(2^drawn$index), keys), length(keys))
    expect_identical(sum(counts), as.integer(n))
    expect_frequencies(counts, rep(1 / length(keys), length(keys)), "subsets")
  }
}

# E sum_{k: i_k = i} c_k = 1 for every row, so that sums over a minibatch are
# unbiased, and the multipliers total N.
law_total <- function(entry, model, n = 20000) {
  drawn <- draw_batches(model, entry$spec, n)
  blocks <- 40
  block_means <- function(multiplier) {
    colMeans(matrix(colSums(multiplier), ncol = blocks))
  }
  if (length(entry$always) == 0 && diff(range(entry$probability)) == 0) {
    expect_close(colSums(drawn$multiplier), rep(model$n_data, n), "total")
  } else {
    total <- block_means(drawn$multiplier)
    left <- model$n_data - length(entry$always)
    expect_mean(total, left, "total of the multipliers")
  }
  often <- which(n * entry$size * entry$probability > 5000)
  for (i in often) {
    part <- block_means(drawn$multiplier * (drawn$index == i))
    if (stats::sd(part) == 0) {
      expect_close(part, rep(1, blocks), "share of a row")
    } else {
      expect_mean(part, 1, paste("share of row", i))
    }
  }
}
