# Chains in slices: buffers, progress, interrupts.

# What is kept of a chain: the sizes of the vectors that the core writes to,
# NULL where nothing is kept.
buffer_sizes <- function(model, control, plan, n_keep) {
  keeps_draws <- "draws" %in% control$keep
  info <- model_info(model)
  which <- control$record
  n_variable <- if (is.null(which)) info$n_natural else length(which)
  n_dim <- if (is.null(which)) info$n_dim else length(which)
  effects <- if (model$traits$is_swept) kept_places(plan$kernel, model$groups)
  list(
    n_keep = as.double(n_keep),
    which = if (!is.null(which)) as.double(which),
    effects = if (!is.null(effects)) as.double(effects),
    numbers = list(
      draw = if (keeps_draws) n_variable,
      unconstrained = if (keeps_draws && info$has_map) n_dim,
      gradient = if ("gradients" %in% control$keep) n_dim,
      size = 1,
      weight = if (schedule_traits(plan$schedule)$is_weighted) 1,
      log_posterior = if (kernel_has_density(plan$kernel)) 1,
      effect = if (!is.null(effects)) length(effects)
    )
  )
}

make_buffers <- function(sizes, n_chain) {
  n <- sizes$n_keep * n_chain
  all <- n * sum(unlist(sizes$numbers))
  vectors <- with_room(8 * all, {
    lapply(sizes$numbers, function(k) if (!is.null(k)) rep(NA_real_, n * k))
  })
  c(sizes[c("n_keep", "which", "effects")], vectors)
}

# What does nothing but allocate the memory of a run's draws. A system may
# promise what it does not have.
with_room <- function(bytes, expr) {
  refuse <- function(e = NULL) {
    abort_tall(
      "memory",
      c(
        "There is not enough memory for the draws: they take
         {format_bytes(bytes)}.",
        i = "Keep fewer with {.arg thin} or {.arg variables}, or none with
             {.code keep = \"none\"}."
      ),
      bytes = bytes,
      parent = e
    )
  }
  if (isTRUE(bytes > free_memory())) {
    refuse()
  }
  tryCatch(expr, error = refuse)
}

# Advance in slices of 0.15 s, with a progress bar; a slice ends early where a
# stop is due. list(interrupted, errors, rejected, reason, pace): was it, by the
# user or by the file job$halt; the errors of a user's functions that stopped
# chains, named by them; the first that had proposals rejected; why chains wait
# for rows drawn ahead, see row_supply(); seconds of a processor that a step of
# a chain takes.
advance_run <- function(run, job, stops, keeper, model) {
  n_step <- 1 # nobody knows yet how long one takes
  outcome <- 0L
  made <- 0
  due <- 1
  total <- .Call(ffi_run_progress, run)$total
  bar <- progress_bar(job$label, total, job$refresh > 0)
  interrupted <- FALSE
  pace <- NULL
  stepped <- .Call(ffi_run_progress, run)$done
  supply <- row_supply(run, job)
  errors <- list()
  rejected <- NULL
  tryCatch(
    while (outcome == 0L) {
      left <- stops$step[due] - made
      is_known <- length(left) == 1 && !is.na(left)
      slice <- if (is_known) min(n_step, left) else n_step
      keeper$look()
      before <- clock()
      # an error of a user's function is caught by the core, which stops its
      # chain; the handler keeps R from printing it
      outcome <- tryCatch(
        .Call(ffi_run_advance, run, slice, as.integer(job$cores)),
        tall_error_callback = identity
      )
      took <- clock_since(before)
      done <- .Call(ffi_run_progress, run)$done
      pace <- pace_of(took$cpu, done - stepped, pace)
      stepped <- done
      outcome <- supply$fill(outcome, identical(slice, left))
      found <- sort_errors(names(errors), run, model, job$spec$n_first)
      keeper$catch(names(found$errors))
      errors <- c(errors, found$errors)
      rejected <- rejected %||% found$rejected
      made <- made + slice
      if (identical(slice, left)) {
        stops$at(stops$step[[due]])
        due <- due + 1
      }
      bar$set(done)
      if (slice == n_step) {
        n_step <- setting("slice_steps")(n_step, took$elapsed)
      }
      if (outcome == 0L && !is.null(job$halt) && file.exists(job$halt)) {
        interrupted <- TRUE
        break
      }
    },
    interrupt = function(condition) interrupted <<- TRUE
  )
  bar$done()
  list(
    interrupted = interrupted || outcome == 2L,
    errors = errors,
    rejected = rejected,
    reason = supply$reason(),
    pace = pace$seconds
  )
}

# list(seconds, steps): of a step, by the largest slice. What chains make once,
# and what is in the cache after a while, is in the first.
pace_of <- function(seconds, n_step, before) {
  if (n_step < (before$steps %||% 0)) {
    return(before)
  }
  list(seconds = seconds / n_step, steps = n_step)
}

# Those of a slice. Each stopped a chain in it, in their order, except those of
# a Metropolis kernel, for which a density that is not a number is one of zero.
sort_errors <- function(stopped, run, model, n_first) {
  errors <- list()
  rejected <- NULL
  for (kind in c("errors", "undefined")) {
    new <- take_errors(model, kind)
    if (length(new) > 0) {
      status <- if (kind == "errors") "callback" else "nonfinite"
      chains <- as.character(n_first + chains_with(run, status))
      chains <- setdiff(chains, stopped)
      if (length(chains) == length(new)) {
        errors[chains] <- new
      } else if (kind == "undefined") {
        rejected <- new[[1]]
      }
    }
  }
  list(errors = errors, rejected = rejected)
}
