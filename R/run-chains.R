# The chains of a segment, in threads: started, advanced, and how they stood.

# The chains of a job, in threads. Their numbers begin after spec$n_first.
run_chains <- function(job, model) {
  spec <- job$spec
  buffers <- make_buffers(job$sizes, spec$n_chain)
  take_errors(model) # of other runs
  take_errors(model, "undefined")
  free <- free_memory()
  run <- .Call(
    ffi_run_create,
    model$pointer,
    c(spec, list(bytes_most = if (is.na(free)) Inf else free)),
    buffers,
    job$saved,
    as.integer(job$cores)
  )
  if (is.integer(run)) {
    if (status_name(run) == "argument" && !is.null(job$saved)) {
      abort_corrupt("`fit`", "saved")
    }
    pass_interrupt(run)
    check_run_fits(run, free, spec, model)
    abort_status(run)
  }
  on.exit(.Call(ffi_run_destroy, run))
  if (is.null(job$saved)) {
    check_started(.Call(ffi_run_status, run), model, spec$n_first)
  }
  monitor <- if (!is.null(job$monitor)) {
    monitor_recorder(job$monitor, model, job$monitor_state, spec$n_first)
  }
  checkpoints <- checkpoint_recorder(job, run, monitor)
  stops <- list(
    step = sort(unique(c(job$points$step, checkpoints$step))),
    at = function(step) {
      due <- match(step, job$points$step)
      if (!is.na(due)) {
        monitor$at(
          job$points$iteration[[due]],
          job$points$is_warmup[[due]],
          .Call(ffi_run_position, run)
        )
      }
      if (step %in% checkpoints$step) {
        checkpoints$at(step)
      }
    }
  )
  keeper <- halt_recorder(run, model, monitor, spec$n_first)
  started <- proc.time()[["elapsed"]]
  outcome <- advance_run(run, job, stops, keeper, model)
  reports <- .Call(ffi_run_report, run)
  waits <- vapply(reports, is_waiting, TRUE)
  list(
    seconds = proc.time()[["elapsed"]] - started,
    buffers = buffers,
    # chains that wait are where they are, and can go on
    reports = lapply(reports, function(report) {
      if (is_waiting(report)) replace(report, "status", 0) else report
    }),
    waiting_rows = if (any(waits)) {
      list(chains = spec$n_first + which(waits), reason = outcome$reason)
    },
    interrupted = outcome$interrupted,
    errors = outcome$errors,
    halted = keeper$result(),
    rejected = outcome$rejected,
    pace = outcome$pace,
    shared = .Call(ffi_run_progress, run)$n_shared,
    monitor = if (!is.null(monitor)) monitor$result(),
    checkpoints = checkpoints$result()
  )
}

# failed: what ffi_run_create() returned instead of a run.
check_run_fits <- function(failed, free, spec, model) {
  bytes <- attr(failed, "bytes")
  if (status_name(failed) != "memory" || !isTRUE(bytes > free)) {
    return(invisible())
  }
  chains <- spec$n_chain
  abort_tall(
    "memory",
    c(
      "The {cli::qty(chains)}chain{?s} take{?s/} {format_bytes(bytes)}, and
       memory has {format_bytes(free)}.",
      x = "{count_noun(chains, 'chain')} of {count_noun(model$n_dim,
           'parameter')}, each with a minibatch and its scratch.",
      i = "Fewer {.arg chains} or parameters, or smaller minibatches, take
           less."
    ),
    bytes = bytes,
    value = bytes,
    expected = free
  )
}

# Every chain has a gradient where it starts. found: what ffi_run_status() says.
check_started <- function(found, model, n_first) {
  failed <- which(found$status != 0)
  if (length(failed) == 0) {
    return(invisible())
  }
  report <- lapply(found, function(x) x[[failed[[1]]]])
  chain <- n_first + failed[[1]]
  pass_interrupt(report$status)
  if (status_name(report$status) != "nonfinite") {
    abort_status(report$status, chain = chain)
  }
  name <- coordinate_name(model, report$coordinate)
  abort_tall(
    "nonfinite",
    c(
      "Chain {chain} cannot start: the log posterior or its gradient is not
       finite there.",
      x = "The largest coordinate of the starting point is
           {.code {name}} = {format_number(report$value)}.",
      i = "Give {.arg init} closer to the mode, or leave it out."
    ),
    status = "nonfinite",
    chain = chain,
    iteration = 0,
    coordinate = name,
    value = report$value,
    parent = last_undefined(model)
  )
}

# A worker keeps how its chain stood at a few steps, which are the same in all
# workers, so that after an interrupt all chains can be cut to the same length.
# $step, $at(step), $result(), a list of list(step, report, monitor)
checkpoint_recorder <- function(job, run, monitor, most = 20, bytes = 2e7) {
  kept <- list()
  at <- function(step) {
    kept[[length(kept) + 1]] <<- list(
      step = step,
      report = .Call(ffi_run_report, run)[[1]],
      monitor = if (!is.null(monitor)) monitor$result()
    )
  }
  step <- NULL
  if (!is.null(job$halt)) {
    at(0)
    total <- job$spec$n_warmup + job$spec$n_sampling
    size <- as.double(utils::object.size(kept))
    n <- max(1, min(most, floor(bytes / size)))
    step <- unique(ceiling(total * seq_len(n) / n))
  }
  list(step = step, at = at, result = function() kept)
}

# How the chains of a model in R stand, now and then: $look() before a slice,
# $catch(chains) after one in which these stopped. $result() is a list named by
# the chains that stopped, of list(report, monitor_state).
halt_recorder <- function(run, model, monitor, n_first) {
  seen <- NULL
  seen_at <- cost <- 0
  halted <- list()
  look <- function() {
    now <- proc.time()[["elapsed"]]
    # the states may be large: no more than a twentieth of the time
    if (!is.null(seen) && now - seen_at < 20 * cost) {
      return(invisible())
    }
    seen <<- list(
      reports = .Call(ffi_run_report, run),
      monitor_state = if (!is.null(monitor)) monitor$state()
    )
    seen_at <<- proc.time()[["elapsed"]]
    cost <<- seen_at - now
  }
  catch <- function(chains) {
    for (chain in chains) {
      halted[[chain]] <<- list(
        report = seen$reports[[as.integer(chain) - n_first]],
        monitor_state = seen$monitor_state
      )
    }
  }
  # only a user's function stops a chain that way
  pass <- function(...) NULL
  can_halt <- model$traits$runs_r
  list(
    look = if (can_halt) look else pass,
    catch = if (can_halt) catch else pass,
    result = function() halted
  )
}
