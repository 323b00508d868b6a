# A run that draws independently from a posterior found from sums: what
# run_segment() hands back, without chains that move.
#
# Iteration i of a chain, counted from 1 with warmup, is column i of blocks of
# `n` whose normals have a stream of their own. So a draw depends on seed, chain
# and iteration alone: not on cores, on what is kept, or on where a run was
# interrupted and went on.

draws_in_block <- 256

sums_segment <- function(plan, control, stretch, from) {
  posterior <- plan$sums
  model <- posterior$stand_in
  n_every <- control$thin
  n_keep <- floor((from$n_phase + stretch$n_sampling) / n_every)
  # iterations whose draws are kept
  sampled <- seq_len(n_keep) * n_every - from$n_phase
  first <- from$n_before + stretch$n_warmup
  sizes <- buffer_sizes(model, control, plan, n_keep)
  buffers <- make_buffers(sizes, control$chains)
  monitor <- if (!is.null(control$monitor)) {
    monitor_recorder(control$monitor, plan$model, from$monitor_state)
  }
  started <- proc.time()[["elapsed"]]
  reports <- list()
  for (chain in seq_len(control$chains)) {
    kept <- chain_draws(posterior, control, chain, first + sampled)
    for (name in names(kept$values)) {
      x <- buffers[[name]]
      buffers[name] <- list(NULL) # filled in place
      k <- length(x) / n_keep / control$chains
      dim(x) <- c(n_keep, control$chains, k)
      x[, chain, ] <- kept$values[[name]]
      buffers[[name]] <- as.vector(x)
    }
    reports[[chain]] <- independent_report(
      stretch$n_warmup + stretch$n_sampling,
      n_keep,
      from$n_before,
      kept$moments
    )
  }
  if (!is.null(monitor)) {
    points <- monitor_points(stretch, plan, control, from)
    watch_draws(monitor, posterior, control, points)
  }
  list(
    buffers = buffers,
    reports = reports,
    interrupted = FALSE,
    errors = list(),
    halted = list(),
    rejected = NULL,
    monitor = if (!is.null(monitor)) monitor$result(),
    seconds = proc.time()[["elapsed"]] - started,
    n_warmup = stretch$n_warmup,
    n_sampling = stretch$n_sampling,
    n_phase = from$n_phase,
    n_every = n_every,
    passes = plan$ledger$passes,
    n_before = from$n_before,
    n_keep = n_keep
  )
}

# f(iterations, their places) of one block of iterations after the other.
by_block <- function(iterations, f) {
  block <- (iterations - 1) %/% draws_in_block
  at <- 1
  while (at <= length(iterations)) {
    last <- findInterval(block[[at]], block)
    f(iterations[at:last], at:last)
    at <- last + 1
  }
}

# Parameters as sampled, n_dim x iterations, all of one block.
draw_iterations <- function(posterior, control, chain, iterations) {
  p <- length(posterior$share)
  n_row <- p + max(1, posterior$stand_in$traits$n_aux)
  block <- (iterations[[1]] - 1) %/% draws_in_block
  seed <- core_seed(control)
  normal <- .Call(ffi_rng_block, seed, chain - 1, block, n_row * draws_in_block)
  normal <- matrix(normal, n_row)
  # the whole block, whatever is wanted of it: products of matrices of another
  # shape may round otherwise
  s <- if (!is.null(posterior$quantile)) {
    posterior$quantile(stats::pnorm(normal[-seq_len(p), ]))
  }
  # no rows, no share
  k <- if (is.null(s) || all(posterior$share == 0)) {
    rep(1, draws_in_block)
  } else {
    posterior$scale^2 * exp(-2 * s)
  }
  spread <- outer(posterior$share, k) + posterior$rest
  noise <- posterior$turn %*% normal[seq_len(p), , drop = FALSE]
  z <- posterior$fit + posterior$pull / spread + noise / sqrt(spread)
  beta <- posterior$into_beta(posterior$origin + posterior$basis %*% z)
  theta <- rbind(beta, s, deparse.level = 0)
  if (!is.null(posterior$complete)) {
    theta <- posterior$complete(theta, block_seed(seed, chain, block))
  }
  wanted <- iterations - block * draws_in_block
  theta[, wanted, drop = FALSE]
}

# Of what a block of a chain draws beside its normals: by a block that no run
# comes to.
block_seed <- function(seed, chain, block) {
  normal <- .Call(ffi_rng_block, seed, chain - 1, 2^40 + block, 2)
  sum(floor(stats::pnorm(normal) * 2^26) * c(2^26, 1))
}

natural_of <- function(model, theta) {
  if (has_hyper(model)) {
    return(model_variables(model, theta))
  }
  if (model$traits$n_aux > 0) {
    at <- aux_coordinates(model)
    theta[at, ] <- aux_lower(model) + exp(theta[at, ])
  }
  theta
}

# list(values, moments) of a chain: draws x variables of what is kept, by the
# names of the buffers, or running moments.
chain_draws <- function(posterior, control, chain, iterations) {
  model <- posterior$stand_in
  blocks <- list()
  moments <- NULL
  by_block(iterations, function(at, places) {
    theta <- draw_iterations(posterior, control, chain, at)
    if ("none" %in% control$keep) {
      natural <- natural_of(model, theta)
      moments <<- block_moments(moments, natural, control$keep)
    } else {
      blocks[[length(blocks) + 1]] <<- theta
    }
  })
  size <- list(size = numeric(length(iterations)))
  if ("none" %in% control$keep) {
    return(list(values = size, moments = moments))
  }
  theta <- do.call(cbind, blocks)
  which <- control$record %||% seq_len(model$n_dim)
  part <- function(x) t(x[which, , drop = FALSE])
  parts <- if (is.null(posterior$complete)) "posterior" else "prior"
  here <- model_evaluate(model, theta, parts)
  values <- list(
    draw = part(natural_of(model, theta)),
    log_posterior = here$log_density,
    unconstrained = if (model_has_map(model)) part(theta),
    gradient = if ("gradients" %in% control$keep) part(here$gradient)
  )
  list(values = c(size, Filter(function(x) !is.null(x), values)))
}

block_moments <- function(before, natural, keep) {
  mean <- rowMeans(natural)
  away <- natural - mean
  here <- list(
    n = ncol(natural),
    mean = mean,
    square = rowSums(away^2),
    product = if ("covariance" %in% keep) tcrossprod(away)
  )
  if (is.null(before)) here else merge_moments(before, here)
}

# What ffi_run_report() says of a chain. `saved`: where the draws go on.
independent_report <- function(n_step, n_keep, n_before, moments) {
  c(
    list(
      status = 0,
      n_kept = n_keep,
      n_step = n_step,
      saved = as.double(n_before + n_step),
      step_size = NA_real_
    ),
    vapply(
      c(
        "n_propose",
        "n_accept",
        "n_row",
        "n_full",
        "n_always",
        "n_escape",
        "n_outside",
        "n_nonfinite"
      ),
      function(name) 0,
      0
    ),
    if (!is.null(moments)) {
      list(moments = c(
        moments$n,
        moments$mean,
        moments$square,
        as.double(moments$product)
      ))
    }
  )
}

# Monitors at the iterations where they are due.
watch_draws <- function(monitor, posterior, control, points) {
  model <- posterior$stand_in
  by_block(points$iteration, function(iterations, rows) {
    chains <- lapply(seq_len(control$chains), function(chain) {
      draw_iterations(posterior, control, chain, iterations)
    })
    for (k in seq_along(iterations)) {
      theta <- vapply(chains, function(x) x[, k], numeric(model$n_dim))
      theta <- matrix(theta, model$n_dim)
      monitor$at(
        iterations[[k]],
        points$is_warmup[[rows[[k]]]],
        list(
          alive = rep(TRUE, control$chains),
          parameter = theta,
          variable = natural_of(model, theta)
        )
      )
    }
  })
}
