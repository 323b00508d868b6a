# tall_fit: what a run leaves. Draws, the specs that made them, how each chain
# went, and what is needed to go on.

#' Fits
#'
#' What [sg_sample()] and [tall_glm()] return.
#'
#' @details
#' A `tall_fit` is a list with, among others,
#'
#' * `draws`: a [posterior::draws_array] of iterations x chains x variables, on
#'   the natural scale (`NULL` with `keep = "none"`); with a decaying schedule
#'   its draws carry weights. Chains that stopped early are not in it but in
#'   `stopped`, a list of matrices.
#' * `unconstrained`: the draws of the parameters as they were sampled
#'   (`log_sigma`), where the model has a map from these to `draws`, which
#'   `has_map` (flag) says;
#' * `gradients`: an array of the same shape, the estimated gradient of the log
#'   posterior with respect to the parameters as sampled, at each draw, when it
#'   was kept.
#' * `kernel`, `gradient`, `subsample`, `schedule`: the specs that made it;
#'   `recipe`: what the recipe found; `plan`: what it chose and why, in a line,
#'   where that is more than its usual way.
#' * `chains`: a data frame with a row for each chain: `status`, `draws`,
#'   `acceptance`, `passes` over the data, `step_size`, `escaped` draws; for
#'   Metropolis kernels the share of proposals `outside` the bounds of the prior
#'   (or the ball in which rows were drawn ahead, see [kernel_smh()]) and the
#'   number that were `nonfinite` (no finite log posterior or gradient);
#'   for [kernel_smh()] the rows of a step, `rows_thinned` and `rows_always`.
#' * `n_data` (number): observations; `n_differ`: those that differ, where rows
#'   in memory that are alike count as one (see [tall_polr()]), else `NULL`;
#' * `robust`: what [robust_draws()] moved the draws by, `NULL` where they are
#'   the posterior's.
#' * `batches`: a data frame with a row for each batch of rows, `NULL` where all
#'   came at once (see [tall_append()]).
#' * `lambda`: the inverse temperature of a Gibbs posterior, `NULL` for Bayes.
#' * `bias`: a data frame with the estimated relative bias of each posterior sd
#'   and its standard error (see [summary.tall_fit()]).
#' * `quadrature`: where effects of groups are integrated out by nodes, their
#'   number and the `error` that they leave (see [summary.tall_fit()]);
#' * `monitor`: a data frame, see [monitors];
#' * `mode` (`NULL` where none was needed), `seed`;
#' * `time` (two numbers): seconds of the `preparation` of the chains and of the
#'   `sampling` with all that follows: together those from the call to its
#'   return. `cpu` (number): seconds that processors worked meanwhile, in this
#'   process and in those that it started, not in workers of \pkg{future} or in
#'   databases;
#' * `passes` (number): passes over the data, of all chains and of what came
#'   before them, which `preparation` (named numeric vector) breaks down:
#'   finding the `mode` (whether this run or the user found it), subsampling
#'   `weights` and Lipschitz constants, the gradients at the `reference` of
#'   control variates, and what the `recipe` looked at (without a recipe, the
#'   rows at the start that turn the bias estimate). A row counts each time it
#'   is fetched for a density, gradient, Hessian or weight, an awkward row of
#'   [kernel_smh()] at each look of its proposals, too; the tables of
#'   [gradient_saga()], the moves of [gradient_svrg()]'s reference and the
#'   gradient where a chain starts are part of `chains$passes`. Monitors and the
#'   measure of a `quadrature` are not counted.
#' * `seal`: a fingerprint of each of the others, by which [sg_resume()] sees
#'   that what the chains go on from is as it was made.
#'
#' The methods of \pkg{posterior} work on it: `posterior::as_draws(fit)`,
#' `posterior::summarise_draws(fit)`.
#'
#' @name tall_fit
#' @aliases tall_fit
#' @seealso [summary.tall_fit()], [plot.tall_fit()], [sg_resume()]
NULL

new_fit <- function(plan, control, segment, time, progress = NULL) {
  model <- plan$model
  if (is.null(progress)) {
    progress <- list(
      warmup_done = 0,
      sampled = 0,
      collected = 0,
      iterations_before = 0
    )
  }
  fit <- structure(
    list(
      draws = NULL,
      gradients = NULL,
      stopped = list(),
      model = model,
      model_label = model$label,
      family = model$family,
      prior = model$prior,
      variables = recorded(model$variables, control),
      every_variable = model$variables,
      coordinates = model$coordinates,
      has_map = model_has_map(model),
      variable_of = model$variable_of,
      n_data = n_all_rows(model),
      # of a model whose alike rows count as one
      n_differ = if (!is.null(model$n_all)) model$n_data,
      fingerprint = model$fingerprint,
      lambda = model$lambda,
      whitening = model$whitening,
      is_whitened = model_is_whitened(model),
      kernel = plan$kernel,
      gradient = light_gradient(plan$gradient),
      subsample = subsample_traits(plan$subsample)$light,
      schedule = plan$schedule,
      steps = plan$steps,
      escape = plan$escape,
      recipe = plan$recipe,
      plan = plan$why,
      # the frame of the model that chains moved on
      stand_in = plan$stand_in$whitening,
      mode = plan$mode,
      start_chol = plan$start_chol,
      control = control,
      seed = control$seed,
      time = time,
      progress = progress,
      monitor = NULL,
      monitor_state = list(),
      noise = NULL,
      bias_blocks = list(),
      moments = list(),
      preparation = new_ledger()$passes
    ),
    class = "tall_fit"
  )
  add_segment(keep_model(fit, plan), segment, model)
}

# Of the names of all variables (coordinates), those whose draws are kept.
recorded <- function(names, control) {
  if (is.null(control$record)) names else names[control$record]
}

# Append what a segment made.
add_segment <- function(fit, segment, model) {
  fit$halted <- NULL
  earlier <- fit
  reports <- segment$reports
  status <- vapply(reports, function(r) r$status, 0)
  kept <- vapply(reports, function(r) r$n_kept, 0)
  fit <- add_draws(fit, segment, status, kept)
  fit <- add_effects(fit, model, segment, alive_chains(status))
  fit$saved <- lapply(reports, function(r) r$saved)
  fit$bias_blocks <- add_bias(fit, reports)
  if ("none" %in% fit$control$keep) {
    fit$moments <- combine_moments(fit$moments, reports, fit$every_variable)
  }
  if (!is.null(segment$monitor)) {
    fit$monitor <- rbind(fit$monitor, segment$monitor$table)
    fit$monitor_state <- segment$monitor$state
  }
  fit$chains <- chain_table(fit, segment, status, kept)
  fit$preparation <- add_passes(fit$preparation, segment$passes)
  fit$passes <- sum(fit$chains$passes) + sum(fit$preparation)
  fit["bias"] <- list(bias_table(fit))
  fit["noise"] <- list(add_noise(fit$noise, reports, fit$coordinates))
  fit["step_sizes"] <- list(adapted_steps(reports, fit$coordinates))
  # where the chains stand, for sg_resume()
  n_step <- if (any(status == 0)) {
    min(vapply(reports[status == 0], function(r) r$n_step, 0))
  } else {
    min(vapply(reports, function(r) r$n_step, 0))
  }
  warmed <- min(n_step, segment$n_warmup)
  before <- fit$progress$warmup_done + fit$progress$sampled
  fit$progress$collected <- fit$progress$collected +
    count_collected(fit$schedule, before + warmed, n_step - warmed)
  fit$progress$warmup_done <- fit$progress$warmup_done + warmed
  fit$progress$sampled <- fit$progress$sampled + (n_step - warmed)
  fit$halted <- keep_halted(earlier, segment)
  fit
}

# What sg_resume() needs to bring the chains of a segment back; NULL where none
# can be. fit: before the segment.
keep_halted <- function(fit, segment) {
  if (length(segment$halted) > 0) {
    # errors and warnings have been signalled
    said <- c("errors", "rejected", "seconds")
    list(fit = fit, segment = segment[setdiff(names(segment), said)])
  }
}

can_go_on <- function(chain, segment) {
  as.character(chain) %in% names(segment$halted)
}

# A run that goes on makes weights and references again, but uses the same mode.
add_passes <- function(before, after) {
  after[["mode"]] <- max(0, after[["mode"]] - before[["mode"]])
  before + after
}

# ---- draws -------------------------------------------------------------------

add_draws <- function(fit, segment, status, kept) {
  buffers <- segment$buffers
  n_chain <- length(kept)
  alive <- alive_chains(status)
  n <- min(kept[alive])
  shape <- function(x, k) array(x, c(segment$n_keep, n_chain, k))
  cut <- function(x, k) shape(x, k)[seq_len(n), alive, , drop = FALSE]
  earlier <- unclass(fit$draws)
  fit <- keep_chains(fit, alive)
  fit$sizes <- bind_arrays(fit$sizes, cut(buffers$size, 1))
  if (is.null(buffers$draw)) {
    return(fit)
  }
  names <- fit$variables
  all <- shape(buffers$draw, length(names))
  for (chain in setdiff(seq_len(n_chain), alive)) {
    rows <- seq_len(kept[[chain]])
    partial <- matrix(all[rows, chain, ], length(rows), length(names))
    colnames(partial) <- names
    before <- if (!is.null(earlier)) matrix_of_chain(earlier, chain, names)
    fit$stopped[[paste0("chain", chain)]] <- rbind(before, partial)
  }
  draws <- cut(buffers$draw, length(names))
  dimnames(draws) <- list(NULL, NULL, names)
  fit$draws <- bind_draws(fit$draws, draws)
  coordinates <- recorded(fit$coordinates, fit$control)
  if (!is.null(buffers$unconstrained)) {
    unconstrained <- cut(buffers$unconstrained, length(coordinates))
    dimnames(unconstrained) <- list(NULL, NULL, coordinates)
    fit$unconstrained <- bind_arrays(fit$unconstrained, unconstrained)
  }
  if (!is.null(buffers$gradient)) {
    gradients <- cut(buffers$gradient, length(coordinates))
    dimnames(gradients) <- list(NULL, NULL, coordinates)
    fit$gradients <- bind_arrays(fit$gradients, gradients)
  }
  if (!is.null(buffers$log_posterior)) {
    fit$log_posterior <- bind_arrays(
      fit$log_posterior,
      cut(buffers$log_posterior, 1)
    )
  }
  if (!is.null(buffers$weight)) {
    fit[["weights"]] <- bind_arrays(fit[["weights"]], cut(buffers$weight, 1))
    fit$draws <- posterior::weight_draws(
      posterior::subset_draws(fit$draws, variable = names),
      as.numeric(fit[["weights"]])
    )
  }
  fit
}

# With `effects`, a data frame with a row for each, over all sweeps after warmup
# of the chains that are alive, and `effect_draws`, as the kernel was asked for
# them.
add_effects <- function(fit, model, segment, alive) {
  if (!model$traits$is_swept ||
    identical(fit$kernel$args$keep_effects, "none")) {
    return(fit)
  }
  names <- effect_names(model)
  fit$effects <- effect_summary(segment$reports[alive], names)
  kept <- kept_places(fit$kernel, model$groups)
  draws <- effect_array(segment, alive, names[kept])
  if (!is.null(draws)) {
    fit$effect_draws <- bind_draws(fit$effect_draws, draws)
  }
  fit
}

# Those that go on; all, where all were stopped.
alive_chains <- function(status) {
  if (any(status == 0)) which(status == 0) else seq_along(status)
}

# Draws of the chains that go on; all of them, where none was stopped.
keep_chains <- function(fit, chains) {
  parts <- c(
    "draws",
    "effect_draws",
    "unconstrained",
    "gradients",
    "sizes",
    "log_posterior",
    "weights"
  )
  for (name in intersect(parts, names(fit))) {
    if (!is.null(fit[[name]]) && ncol(fit[[name]]) > length(chains)) {
      fit[[name]] <- unclass(fit[[name]])[, chains, , drop = FALSE]
    }
  }
  fit
}

matrix_of_chain <- function(draws, chain, names) {
  out <- draws[, chain, names, drop = FALSE]
  matrix(out, nrow(out), dimnames = list(NULL, names))
}

bind_draws <- function(before, after) {
  names <- dimnames(after)[[3]]
  if (!is.null(before)) {
    after <- bind_arrays(unclass(before)[, , names, drop = FALSE], after)
  }
  dimnames(after) <- list(NULL, NULL, names)
  posterior::as_draws_array(after)
}

# Arrays of iterations x chains x variables, one after the other.
bind_arrays <- function(before, after) {
  if (is.null(before)) {
    return(after)
  }
  shape <- dim(after)
  shape[[1]] <- dim(before)[[1]] + dim(after)[[1]]
  out <- array(NA_real_, shape)
  rows <- seq_len(dim(before)[[1]])
  out[rows, , ] <- before
  out[dim(before)[[1]] + seq_len(dim(after)[[1]]), , ] <- after
  dimnames(out) <- dimnames(after)
  out
}

# Gradient noise seen along the run, in the sampler's coordinates: sums over the
# looks at it, of its variance and of the probability that a proposal was beyond
# what the kernel tolerates.
add_noise <- function(before, reports, coordinates) {
  d <- length(coordinates)
  for (report in Filter(function(r) !is.null(r$noise), reports)) {
    sums <- report$noise
    here <- list(
      looks = sums[[1]],
      variance = stats::setNames(sums[1 + seq_len(d)], coordinates),
      beyond = stats::setNames(sums[1 + d + seq_len(d)], coordinates)
    )
    before <- if (is.null(before)) here else Map(`+`, before, here)
  }
  before
}

# Step sizes that were adapted one by one, chains x coordinates; else NULL.
adapted_steps <- function(reports, coordinates) {
  steps <- do.call(rbind, lapply(reports, function(r) r$steps))
  if (!is.null(steps)) {
    dimnames(steps) <- list(NULL, coordinates)
  }
  steps
}

# Running moments (Chan, Golub & LeVeque 1983), chain by chain.
combine_moments <- function(before, reports, variables) {
  k <- length(variables)
  after <- lapply(reports, function(r) {
    product <- r$moments[-seq_len(1 + 2 * k)]
    list(
      n = r$moments[[1]],
      mean = r$moments[1 + seq_len(k)],
      square = r$moments[1 + k + seq_len(k)],
      product = if (length(product) > 0) {
        matrix(product, k, dimnames = list(variables, variables))
      }
    )
  })
  if (length(before) == 0) {
    return(after)
  }
  Map(merge_moments, before, after)
}

merge_moments <- function(a, b) {
  n <- a$n + b$n
  if (n == 0) {
    return(a)
  }
  shift <- b$mean - a$mean
  list(
    n = n,
    mean = a$mean + shift * b$n / n,
    square = a$square + b$square + shift^2 * a$n * b$n / n,
    product = if (!is.null(a$product)) {
      a$product + b$product + tcrossprod(shift) * a$n * b$n / n
    }
  )
}

# What a kind of fit does with its draws once they are there.
finish_fit <- function(fit) {
  UseMethod("finish_fit")
}

#' @export
finish_fit.default <- function(fit) {
  fit
}
