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
#'   (`log_sigma`), where these differ from `draws`;
#' * `gradients`: an array of the same shape, the estimated gradient of the log
#'   posterior with respect to the parameters as sampled, at each draw, when it
#'   was kept.
#' * `kernel`, `gradient`, `subsample`, `schedule`: the specs that made it;
#'   `recipe`: what the recipe found.
#' * `chains`: a data frame with a row for each chain: `status`, `draws`,
#'   `acceptance`, `passes` over the data, `step_size`, `escaped` draws; for
#'   Metropolis kernels the share of proposals `outside` the bounds of the prior
#'   and the number that were `nonfinite` (no finite log posterior or gradient).
#' * `lambda`: the inverse temperature of a Gibbs posterior, `NULL` for Bayes.
#' * `bias`: a data frame with the estimated relative bias of each posterior sd
#'   and its standard error (see [summary.tall_fit()]).
#' * `monitor`: a data frame, see [monitors];
#' * `mode`, `seed`, `time` (seconds);
#' * `passes` (number): passes over the data, of all chains and of what came
#'   before them, which `preparation` (named numeric vector) breaks down:
#'   finding the `mode` (whether this run or the user found it), subsampling
#'   `weights` and Lipschitz constants, the gradients at the `reference` of
#'   control variates, and what the `recipe` looked at (without a recipe, the
#'   rows at the start that turn the bias estimate). A row counts each time it
#'   is fetched for a density, gradient, Hessian or weight; the tables of
#'   [gradient_saga()], the moves of [gradient_svrg()]'s reference and the
#'   gradient where a chain starts are part of `chains$passes`. Monitors are not
#'   counted.
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
      variable_of = model$variable_of,
      n_data = model$n_data,
      fingerprint = model$fingerprint,
      lambda = model$lambda,
      whitening = model$whitening,
      is_whitened = model_is_whitened(model),
      kernel = plan$kernel,
      gradient = plan$gradient,
      subsample = light_subsample(plan$subsample),
      schedule = plan$schedule,
      steps = plan$steps,
      escape = plan$escape,
      recipe = plan$recipe,
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
  add_segment(fit, segment)
}

# Of the names of all variables (coordinates), those whose draws are kept.
recorded <- function(names, control) {
  if (is.null(control$record)) names else names[control$record]
}

# Append what a segment made.
add_segment <- function(fit, segment) {
  fit$halted <- NULL
  earlier <- fit
  reports <- segment$reports
  status <- vapply(reports, function(r) r$status, 0)
  kept <- vapply(reports, function(r) r$n_kept, 0)
  fit <- add_draws(fit, segment, status, kept)
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

# A run that goes on makes weights and references again, but uses the same mode.
add_passes <- function(before, after) {
  after[["mode"]] <- max(0, after[["mode"]] - before[["mode"]])
  before + after
}

# ---- draws -------------------------------------------------------------------

add_draws <- function(fit, segment, status, kept) {
  buffers <- segment$buffers
  n_chain <- length(kept)
  alive <- if (any(status == 0)) which(status == 0) else seq_len(n_chain)
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

# Draws of the chains that go on; all of them, where none was stopped.
keep_chains <- function(fit, chains) {
  parts <- c(
    "draws",
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

# ---- how the chains went -----------------------------------------------------

chain_table <- function(fit, segment, status, kept) {
  reports <- segment$reports
  field <- function(name) vapply(reports, function(r) r[[name]], 0)
  before <- fit$chains
  proposed <- field("n_propose")
  data.frame(
    chain = seq_along(reports),
    status = vapply(status, status_name, ""),
    draws = kept + if (is.null(before)) 0 else before$draws,
    acceptance = ifelse(proposed > 0, field("n_accept") / proposed, NA),
    # without rows: evaluations of the gradient
    passes = if (fit$n_data > 0) {
      field("n_row") / fit$n_data
    } else {
      field("n_full")
    },
    step_size = field("step_size"),
    escaped = field("n_escape"),
    outside = ifelse(proposed > 0, field("n_outside") / proposed, NA),
    nonfinite = field("n_nonfinite")
  )
}

# ---- bias of the standard deviations (spec section 7) -----------------------

# What is kept of each chain, NULL of one that has nothing: by blocks the number
# of terms, `count`, and the means `gradient` of g_j and `product` of (theta_j -
# mean_j) g_j (blocks x n_dim), with the chain's `mean` over all its segments.
add_bias <- function(fit, reports) {
  d <- length(fit$coordinates)
  lapply(seq_along(reports), function(chain) {
    kept <- if (length(fit$bias_blocks) > 0) fit$bias_blocks[[chain]]
    parts <- lapply(bias_parts(reports[[chain]]), bias_part, d)
    Reduce(merge_bias, parts, kept)
  })
}

# The bias sums of a report: of one stretch, of several (see merge_reports()),
# or of none.
bias_parts <- function(report) {
  if (is.double(report$bias)) {
    list(list(sums = report$bias, origin = report$bias_origin))
  } else {
    report$bias
  }
}

# One stretch, centred at its own mean.
bias_part <- function(part, d) {
  sums <- matrix(part$sums, 1 + 3 * d)
  sums <- sums[, sums[1, ] > 0, drop = FALSE]
  count <- sums[1, ]
  if (length(count) == 0) {
    return(NULL)
  }
  away <- rowSums(sums[1 + seq_len(d), , drop = FALSE]) / sum(count)
  gradient <- sums[1 + d + seq_len(d), , drop = FALSE]
  product <- sums[1 + 2 * d + seq_len(d), , drop = FALSE]
  list(
    count = count,
    mean = part$origin + away,
    gradient = t(gradient) / count,
    product = t(product - away * gradient) / count
  )
}

# Two stretches of a chain, centred at the mean of both, and in as many blocks
# as one has, of about as many terms: short ones would depend on each other.
merge_bias <- function(a, b) {
  if (is.null(a) || is.null(b)) {
    return(a %||% b)
  }
  share <- sum(b$count) / (sum(a$count) + sum(b$count))
  mean <- a$mean + share * (b$mean - a$mean)
  about <- function(x) {
    x$product - x$gradient * rep(mean - x$mean, each = nrow(x$gradient))
  }
  count <- c(a$count, b$count)
  block <- ceiling(bias_blocks * cumsum(count) / sum(count) - 1e-9)
  total <- as.double(rowsum(count, block))
  mean_of <- function(x) unname(rowsum(x * count, block)) / total
  list(
    count = total,
    mean = mean,
    gradient = mean_of(rbind(a$gradient, b$gradient)),
    product = mean_of(rbind(about(a), about(b)))
  )
}

# Under the posterior E[(theta_j - mean) g_j] = -1. With step-size bias and
# gradient noise it is -(1 + b), b the relative bias of the variance, to first
# order; the sd's is sqrt(1 + b) - 1. Blind to bias of the mean, and of no use
# where the recipe found the posterior far from normal: a few draws from where
# it falls steeply would make up the expectation.
bias_table <- function(fit) {
  blocks <- Filter(function(b) length(b$count) > 0, fit$bias_blocks)
  if (length(blocks) == 0) {
    return(NULL)
  }
  count <- unlist(lapply(blocks, function(b) b$count))
  product <- do.call(rbind, lapply(blocks, function(b) b$product))
  share <- count / sum(count)
  mean <- colSums(product * share)
  residual <- sweep(product, 2, mean)
  se <- sqrt(colSums(residual^2 * share) / max(1, length(count) - 1))
  ratio <- sqrt(pmax(-mean, 0))
  # the shares of a simplex have no coordinates of their own
  at <- fit$variable_of %||% seq_along(ratio)
  table <- data.frame(
    variable = fit$every_variable[at],
    sd_bias = ratio - 1,
    sd_bias_se = se / (2 * pmax(ratio, 0.5))
  )
  table[table$variable %in% fit$recipe$far, c("sd_bias", "sd_bias_se")] <- NA
  table <- table[!is.na(at), ]
  if (nrow(table) > 0) table
}

# ---- going on ----------------------------------------------------------------

#' Go on with a run
#'
#' Continues every chain as if it had never stopped: the draws are those a
#' longer run would have given.
#'
#' @param fit ([`tall_fit`][tall_fit]) A fit, also one that was interrupted, or
#'   saved and read again.
#' @param iter (whole number or `NULL`) Iterations to add. `NULL`: those an
#'   interrupted run still lacks.
#' @param model (`tall_model` or `NULL`) The model, needed when the fit comes
#'   from a file and did not keep its data: the same one, made again. After an
#'   error of one of its functions, the [model_custom()] that was mended.
#' @param cores,refresh As in [sg_sample()].
#'
#' @section Chains that an error stopped: Chains of a [model_custom()] that an
#' error of one of its functions stopped, or a value of it that was not a
#' number, go on from where they stood before it. Mend what was wrong: something
#' that the function finds in the workspace, or the function or the data
#' themselves, with a new `model` of as many observations and the same
#' parameters. The chains that stopped are brought to where the others are, or,
#' if all had stopped, to the end of what the run was asked for; then `iter` is
#' added. If what was mended does not change any value that the chains had seen,
#' the draws are those of a run without the error.
#'
#' Chains that stopped for another reason, such as a step size that is too
#' large, cannot go on.
#'
#' @return The fit with the new draws after the old ones.
#' @section Conditions: `tall_error_stale` if the model is gone and none is
#' given; `tall_error_input` if the given model has other data;
#' `tall_error_corrupt` if what the chains go on from is not as it was made:
#' altered by hand, read from a damaged file, or made by another version;
#' `tall_error_unsupported` if a chain had stopped for a reason that would stop
#' it again.
#' @examples
#' x <- cbind("(Intercept)" = 1, age = rnorm(1000))
#' y <- rbinom(1000, 1, plogis(0.5 + x[, "age"]))
#' model <- model_glm(x, y, family = "bernoulli")
#' fit <- sg_sample(model, kernel_sgld(0.001), iter = 500, seed = 1)
#' fit <- sg_resume(fit, iter = 500)
#' @export
sg_resume <- function(
  fit,
  iter = NULL,
  model = NULL,
  cores = getOption("mc.cores", 1L),
  refresh = getOption("tallbayes.refresh", 1)
) {
  check_spec(fit, "tall_fit", "sg_sample()")
  check_sealed(fit)
  iter <- check_count(iter, most = count_limits$iter, allow_null = TRUE)
  fit$control$cores <- check_cores(cores)
  fit$control$refresh <- check_number(refresh, min = 0)
  call <- rlang::current_env()
  check_can_go_on(fit, call)
  if (!is.null(fit$halted)) {
    fit <- rejoin_chains(fit, model, call)
    is_done <- is.null(iter) && steps_left(fit) == 0
    if (!is.null(fit$halted) || is_done) {
      return(seal_fit(finish_fit(fit)))
    }
  }
  work <- remaining_steps(fit, iter)
  plan <- resume_plan(fit, model)
  n_every <- fit$control$thin * fit$steps
  started <- proc.time()[["elapsed"]]
  segment <- run_segment(
    plan,
    fit$control,
    n_warmup = work$n_warmup,
    n_sampling = work$n_sampling,
    n_phase = fit$progress$collected %% n_every,
    n_before = fit$progress$warmup_done + fit$progress$sampled,
    saved = fit$saved,
    monitor_state = fit$monitor_state,
    iterations_before = fit$progress$warmup_done +
      floor(fit$progress$sampled / fit$steps),
    on_futures = use_futures(plan$model, fit$control)
  )
  fit$model <- plan$model
  fit$progress$iterations_before <-
    fit$progress$warmup_done + floor(fit$progress$sampled / fit$steps)
  fit$control$iter <- max(
    fit$control$iter,
    fit$progress$iterations_before +
      work$n_warmup +
      ceiling(work$n_sampling / fit$steps)
  )
  fit <- add_segment(fit, segment)
  fit$time[["sampling"]] <-
    fit$time[["sampling"]] + proc.time()[["elapsed"]] - started
  warn_segment(fit, segment, rlang::current_env())
  seal_fit(finish_fit(fit))
}

# Of the iterations that the run was asked for.
steps_left <- function(fit) {
  control <- fit$control
  total <- control$warmup + (control$iter - control$warmup) * fit$steps
  max(0, total - fit$progress$warmup_done - fit$progress$sampled)
}

# Steps still to make for `iter` more iterations, or for those that are missing.
remaining_steps <- function(fit, iter, call = caller_env()) {
  control <- fit$control
  warmup_left <- control$warmup - fit$progress$warmup_done
  if (is.null(iter)) {
    if (steps_left(fit) == 0) {
      abort_input(
        "{.arg iter} must be given: this run made all its
         {format_count(control$iter)} iterations.",
        argument = "iter",
        call = call
      )
    }
    return(list(
      n_warmup = warmup_left,
      n_sampling = steps_left(fit) - warmup_left
    ))
  }
  n_warmup <- min(iter, warmup_left)
  list(n_warmup = n_warmup, n_sampling = (iter - n_warmup) * fit$steps)
}

resume_plan <- function(fit, model, call = caller_env()) {
  if (is.null(model)) {
    model <- fit_model(fit, call)
  } else {
    check_model(model, call = call)
    is_same <- identical(model$fingerprint, fit$fingerprint)
    if (!is_same && !is_mended(model, fit)) {
      abort_input(
        c(
          "{.arg model} must be the one that made the fit, not one with other
           data or another prior.",
          x = if (model$n_data != fit$n_data ||
            model$n_dim != length(fit$coordinates)) {
            "The fit has {count_noun(fit$n_data, 'observation')} and
             {count_noun(length(fit$coordinates), 'parameter')}, the model has
             {count_noun(model$n_data, 'observation')} and
             {count_noun(model$n_dim, 'parameter')}."
          }
        ),
        argument = "model",
        call = call
      )
    }
  }
  ledger <- new_ledger()
  model <- temper_model(model, fit$lambda)
  if (fit$is_whitened && !model_is_whitened(model)) {
    model <- whiten_model(model, fit$mode, in_place = FALSE, call = call)
    spend(ledger, "recipe", 1)
  }
  plan <- new_plan(
    model,
    fit$kernel,
    fit$gradient,
    fit$subsample,
    fit$schedule,
    mode = fit$mode,
    steps = fit$steps,
    escape = fit$escape,
    recipe = fit$recipe,
    ledger = ledger
  )
  plan$init <- matrix(0, model$n_dim, fit$control$chains)
  plan$start_chol <- fit$start_chol
  plan
}

# The model of a fit: still alive, or made again from the data it kept.
fit_model <- function(fit, call) {
  if (inherits(fit$model, "tall_model") && model_is_alive(fit$model)) {
    check_whole_model(fit$model, "fit$model", call)
    check_fits_model(fit, fit$model, "model", call)
    return(fit$model)
  }
  rebuilt <- rebuild_model(fit)
  if (is.null(rebuilt)) {
    abort_tall(
      "stale",
      c(
        "The fit has lost its model, as it does in a file.",
        i = if (inherits(fit, keep_data_classes)) {
          "A fit that was made with {.code keep_data = TRUE} can go on."
        } else {
          "Make the model again with {.code {fit$model_label}()} and give it
           as {.arg model}."
        }
      ),
      argument = "model",
      call = call
    )
  }
  check_fits_model(fit, rebuilt, "data", call)
  rebuilt
}

# A model is the one of the fit, and not of data that took their place.
check_fits_model <- function(fit, model, component, call) {
  if (!identical(model$fingerprint, fit$fingerprint)) {
    abort_corrupt("`fit`", component, call = call)
  }
}

# Fits whose front end has the argument keep_data.
keep_data_classes <- c("tall_glm", "tall_nn", "tall_ica", "tall_factorize")

# NULL where the fit did not keep its data.
rebuild_model <- function(fit) {
  UseMethod("rebuild_model")
}

#' @export
rebuild_model.default <- function(fit) {
  NULL
}
