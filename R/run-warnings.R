# What is said of chains that did not reach their end.

# Say what went wrong in a segment whose draws are kept.
warn_segment <- function(fit, segment) {
  subsample_traits(fit$subsample)$warn(segment$buffers$size, fit$n_data)
  warn_monitor(segment$monitor$problems)
  if (!is.null(segment$rejected)) {
    warn_tall(
      "callback",
      c(
        "Proposals were rejected because a function of the model is not a number
         there.",
        i = "Where the density is zero, {.code -Inf} says so without a warning."
      ),
      parent = segment$rejected
    )
  }
  status <- vapply(segment$reports, function(r) r$status, 0)
  # what stopped those that wait to go on was said before
  failed <- setdiff(which(status != 0), segment$waiting)
  if (length(failed) > 0) {
    chain <- failed[[1]]
    report <- segment$reports[[chain]]
    never_moved <- report$n_step == 0
    signal <- if (all(status != 0) && never_moved) abort_status else warn_status
    error <- segment$errors[[as.character(chain)]]
    others <- if (length(failed) > 1) {
      paste0(
        length(failed),
        " of ",
        length(status),
        " chains stopped; the first is shown."
      )
    }
    signal(
      report$status,
      chain = chain,
      iteration = step_iteration(report$n_step + 1, segment, fit),
      at = report_place(report, fit$model),
      detail = others,
      parent = error,
      hint = if (can_go_on(chain, segment)) {
        "Mend it and go on with {.code sg_resume(fit)}; where the model was made
         again, it is its {.arg model}."
      }
    )
  }
  if (!segment$interrupted) {
    warn_waiting(segment$waiting_rows)
  }
  if (segment$interrupted) {
    kept <- if (is.null(fit$draws)) 0 else dim(fit$draws)[[1]]
    warn_tall(
      "interrupted",
      c(
        "The run was interrupted: {format_count(kept)} {cli::qty(kept)}draw{?s}
         of each chain {?was/were} made.",
        i = "Go on with {.code sg_resume(fit)}."
      )
    )
  }
}

# The iteration (counting from 1, warmup included) that a step belongs to.
step_iteration <- function(step, segment, fit) {
  sampled <- max(0, step - segment$n_warmup)
  before <- fit$progress$iterations_before
  if (sampled == 0) {
    return(before + step)
  }
  before + segment$n_warmup + ceiling(sampled / fit$steps)
}

# list(coordinate, value) at fault in a chain that stopped, NULL where there is
# none.
report_place <- function(report, model) {
  if (report$coordinate > model$n_dim) {
    return(new_place())
  }
  new_place(coordinate_name(model, report$coordinate), report$value)
}

coordinate_name <- function(model, index) {
  if (model_is_whitened(model)) {
    paste("whitened coordinate", index)
  } else {
    model$coordinates[[index]]
  }
}
