# Chains that an error of a user's function stopped. How they stood before it is
# kept, so that they can go on from there once the function is mended.

# All chains that stopped can go on.
check_can_go_on <- function(fit) {
  stopped <- which(fit$chains$status != "ok")
  lost <- Filter(function(chain) !can_go_on(chain, fit$halted$segment), stopped)
  if (length(lost) > 0) {
    abort_tall(
      "unsupported",
      c(
        "Chain {lost[[1]]} stopped and cannot go on.",
        i = if (fit$chains$status[[lost[[1]]]] == "callback") {
          "Mend the function that failed and run again."
        } else {
          "Run again with a smaller step size."
        }
      ),
      chain = lost[[1]]
    )
  }
}

# The fit as if its last segment had not stopped any chain: those that it
# stopped are brought to where the others are, or to its end if there are none.
rejoin_chains <- function(fit, model) {
  plan <- resume_plan(fit, model)
  check_keeps_alike(fit, plan$model)
  segment <- fit$halted$segment
  is_well <- vapply(segment$reports, function(r) r$status == 0, TRUE)
  target <- segment$n_warmup + segment$n_sampling
  if (any(is_well)) {
    made <- vapply(segment$reports[is_well], function(r) r$n_step, 0)
    target <- min(made)
  }
  sizes <- buffer_sizes(plan$model, fit$control, plan, segment$n_keep)
  results <- lapply(seq_along(segment$reports), function(chain) {
    result <- segment_chain(segment, chain, sizes, fit$control)
    halt <- segment$halted[[as.character(chain)]]
    if (is.null(halt)) {
      return(result)
    }
    chain_to_target(result, halt, chain, target, plan, fit, sizes)
  })
  run <- join_chains(results, sizes)
  segment[names(run)] <- run
  segment$waiting <-
    which(vapply(results, function(result) isTRUE(result$waits), TRUE))
  segment$passes <- add_passes(segment$passes, plan$ledger$passes)
  whole <- fit$halted$fit
  whole$control <- fit$control
  whole$model <- plan$model
  whole$fingerprint <- plan$model$fingerprint
  whole <- add_segment(whole, segment, plan$model)
  whole$time <- fit$time
  whole$cpu <- fit$cpu
  warn_segment(whole, segment)
  whole
}

# A chain of a segment, as run_chains() would have returned it alone.
segment_chain <- function(segment, chain, sizes, control) {
  n_chain <- length(segment$reports)
  buffers <- lapply(names(sizes$numbers), function(name) {
    k <- sizes$numbers[[name]]
    if (!is.null(k)) {
      all <- array(segment$buffers[[name]], c(sizes$n_keep, n_chain, k))
      all[, chain, ]
    }
  })
  monitor <- segment$monitor
  list(
    buffers = stats::setNames(buffers, names(sizes$numbers)),
    reports = segment$reports[chain],
    interrupted = FALSE,
    shared = 0,
    monitor = if (!is.null(monitor)) {
      list(
        table = monitor$table[monitor$table$chain == chain, ],
        state = state_of_chain(monitor$state, control$monitor, chain)
      )
    }
  )
}

# The chain that stopped, from where it is known to have stood to step `target`
# of the segment. `result`: what segment_chain() has of it.
chain_to_target <- function(result, halt, chain, target, plan, fit, sizes) {
  before <- halt$report
  if (before$n_step == target) {
    result$reports <- list(before)
    return(result)
  }
  points <- segment_points(fit, plan, target)
  is_past <- points$step <= before$n_step
  left <- points[!is_past, ]
  left$step <- left$step - before$n_step
  rest <- run_rest(halt, chain, target, left, plan, fit)
  stopped <- result$reports[[1]]$status
  after <- merge_reports(before, rest$reports[[1]], fit$every_variable)
  result$reports <- list(after)
  result$buffers <- Map(
    function(old, new) append_rows(old, new, before$n_kept, sizes$n_keep),
    result$buffers,
    rest$buffers[names(result$buffers)]
  )
  if (!is.null(result$monitor)) {
    table <- result$monitor$table
    past <- table[table$iteration %in% points$iteration[is_past], ]
    result$monitor <- rest$monitor
    result$monitor$table <- rbind(past, rest$monitor$table)
  }
  result$halted <- lapply(rest$halted, function(again) {
    again$report <- merge_reports(before, again$report, fit$every_variable)
    again
  })
  result[c("interrupted", "errors")] <- rest[c("interrupted", "errors")]
  result["rejected"] <- list(rest$rejected)
  if (rest$interrupted && after$status == 0) {
    # not yet where the others are
    result$halted[[as.character(chain)]] <- list(
      report = after,
      monitor_state = rest$monitor$state
    )
    result$reports[[1]]$status <- stopped
    result$waits <- TRUE
  }
  result
}

# Where monitors are evaluated in the segment, until step `target` of it.
segment_points <- function(fit, plan, target) {
  n_warmup <- min(target, fit$halted$segment$n_warmup)
  stretch <- new_stretch(n_warmup, target - n_warmup)
  monitor_points(stretch, plan, fit$control, fit$progress)
}

# The segment of the chain alone, from the state that was kept. points: those
# that are left.
run_rest <- function(halt, chain, target, points, plan, fit) {
  segment <- fit$halted$segment
  step <- halt$report$n_step
  warmed <- min(step, segment$n_warmup)
  n_warmup <- min(target, segment$n_warmup) - warmed
  collected <- segment$n_phase +
    count_collected(plan$schedule, segment$n_before + warmed, step - warmed)
  control <- fit$control
  control$chains <- 1
  plan$init <- matrix(0, plan$model$n_dim, 1)
  run_segment(
    plan,
    control,
    new_stretch(n_warmup, target - step - n_warmup, points),
    new_standing(
      list(halt$report$saved),
      n_before = segment$n_before + step,
      n_phase = collected %% segment$n_every,
      monitor_state =
        state_of_chain(halt$monitor_state, control$monitor, chain),
      n_first = chain - 1
    ),
    label = paste("Chain", chain)
  )
}

# Of n_keep rows of a chain's buffer, those after the first n are the new ones.
append_rows <- function(old, new, n, n_keep) {
  if (is.null(old)) {
    return(NULL)
  }
  old <- matrix(old, n_keep)
  new <- matrix(new, ncol = ncol(old))
  rows <- seq_len(n_keep - n)
  old[n + rows, ] <- new[rows, ]
  old
}

# Of two stretches of a chain, one after the other: counts go on by themselves.
merge_reports <- function(before, after, variables) {
  out <- after
  out$n_step <- before$n_step + after$n_step
  out$n_kept <- before$n_kept + after$n_kept
  # sums about two origins, which add_bias() brings together
  out$bias <- c(bias_parts(before), bias_parts(after))
  if (!is.null(after$noise)) {
    out$noise <- before$noise + after$noise
  }
  if (!is.null(after$moments)) {
    moments <- combine_moments(list(), list(before), variables)
    moments <- combine_moments(moments, list(after), variables)[[1]]
    out$moments <- unlist(
      moments[c("n", "mean", "square", "product")],
      use.names = FALSE
    )
  }
  out
}
