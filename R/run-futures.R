# Chains of a model that calls R, side by side: each is a future, which makes
# the model again where it runs and sends back plain R objects.

# Are chains of this model to run on the plan of the package future? Says so
# where `cores` asks for what it cannot have.
use_futures <- function(model, control) {
  if (!model_info(model)$main_thread || control$chains == 1) {
    return(FALSE)
  }
  has_plan <- has_workers()
  stays <- if (has_plan) staying_monitor(control$monitor)
  if (has_plan && is.null(stays)) {
    return(TRUE)
  }
  if (control$cores > 1 || has_plan) {
    inform_one_by_one(model, control, stays)
  }
  FALSE
}

inform_one_by_one <- function(model, control, stays) {
  workers <- min(control$cores, control$chains)
  cli::cli_inform(
    c(
      "Chains run one after another: {.code {model$label}()} calls functions of
       R, which runs in one thread.",
      i = if (!is.null(stays)) {
        "They cannot run as futures because {.code monitor${stays}} holds a
         model that cannot be sent to them."
      } else {
        "To run them side by side:
         {.code future::plan(\"multisession\", workers = {workers})}."
      }
    ),
    class = "tall_message_cores"
  )
}

# The name of the first monitor that holds a model of compiled code, or NULL.
staying_monitor <- function(monitor) {
  stays <- vapply(monitor$monitors, function(one) {
    holds_model(one) && !one$newdata$traits$runs_r
  }, TRUE)
  if (any(stays)) names(which(stays))[[1]]
}

holds_model <- function(monitor) {
  inherits(monitor, "tall_monitor") && inherits(monitor$newdata, "tall_model")
}

# As run_chains(), one future a chain. An interrupt asks the workers, through a
# file that they see if they are on this machine, to send what they have.
run_on_futures <- function(job, model) {
  # what travels is what the user gave: the limit is for what travels by
  # accident
  rlang::local_options(future.globals.maxSize = Inf)
  job$halt <- tempfile("halt")
  on.exit(unlink(job$halt))
  sizes <- job$sizes
  crew <- crew_of_chains(job, model, environment())
  tryCatch(
    crew$work(),
    interrupt = function(e) {
      file.create(job$halt)
      crew$work(patience = 10)
    }
  )
  results <- crew$results()
  for (result in results) {
    if (inherits(result, "error")) {
      stop(told_here(result))
    }
  }
  join_chains(cut_chains(results), sizes)
}

# As new_crew() has it.
crew_of_chains <- function(job, model, frame) {
  n_chain <- job$spec$n_chain
  found <- found_globals(
    Filter(is.function, c(model$functions, job$monitor$monitors))
  )
  # no random numbers are drawn, future may check that; making a tape draws some
  has_tape <- any(c("tape", "retape") %in% unlist(model$plan))
  seed <- if (has_tape) NULL else FALSE
  job$model <- pack_model(model)
  job["monitor"] <- list(pack_monitor(job$monitor))
  bar <- progress_bar(
    paste0(job$label, " (chains)"),
    n_chain,
    job$refresh > 0,
    frame
  )
  collected <- function(result) {
    if (isTRUE(result$interrupted)) {
      file.create(job$halt)
    }
    bar$add()
  }
  jobs <- lapply(seq_len(n_chain), function(chain) job_of_chain(job, chain))
  guard <- function(chain, expr) from_worker(chain, expr)
  new_crew(jobs, work_chain, found, seed, guard, collected)
}

# Errors of the chains come back as values; what is signalled is the worker's.
from_worker <- function(chain, expr) {
  tryCatch(expr, error = function(e) {
    abort_tall(
      "worker",
      c(
        "The worker of chain {chain} failed.",
        i = "See {.code future::plan()}; without a plan, chains run here, one
             after another."
      ),
      chain = chain,
      parent = e
    )
  })
}

# ---- what travels ------------------------------------------------------------

pack_model <- function(model) {
  list(
    parts = custom_parts(model),
    lambda = model$lambda,
    whitening = model$whitening
  )
}

unpack_model <- function(packed) {
  model <- rlang::inject(build_custom(!!!packed$parts))
  model["lambda"] <- list(packed$lambda)
  if (is.null(packed$whitening)) model else frame_model(model, packed$whitening)
}

pack_monitor <- function(monitor) {
  if (is.null(monitor)) {
    return(NULL)
  }
  monitor$monitors <- lapply(monitor$monitors, function(one) {
    if (holds_model(one)) {
      one$packed <- pack_model(one$newdata)
      one$newdata <- NULL
    }
    one
  })
  monitor
}

unpack_monitor <- function(monitor) {
  if (is.null(monitor)) {
    return(NULL)
  }
  monitor$monitors <- lapply(monitor$monitors, function(one) {
    if (inherits(one, "tall_monitor") && !is.null(one$packed)) {
      one$newdata <- unpack_model(one$packed)
    }
    one
  })
  monitor
}

job_of_chain <- function(job, chain) {
  spec <- job$spec
  n_dim <- length(spec$init) / spec$n_chain
  job$spec$init <- spec$init[(chain - 1) * n_dim + seq_len(n_dim)]
  job$spec$n_chain <- 1
  job$spec$n_first <- chain - 1
  job$saved <- job$saved[chain]
  job$monitor_state <- state_of_chain(job$monitor_state, job$monitor, chain)
  job$refresh <- 0
  job$cores <- 1
  job
}

# What a worker does; an error is a value of it.
work_chain <- function(job) {
  tryCatch(
    {
      job["monitor"] <- list(unpack_monitor(job$monitor))
      run_chains(job, unpack_model(job$model))
    },
    error = identity
  )
}

# ---- interrupts --------------------------------------------------------------

# Where one was interrupted: all chains as they stood at the last checkpoint
# that each of them has come to, those that had failed before it as they are.
cut_chains <- function(results) {
  report <- function(result) result$reports[[1]]
  is_well <- vapply(results, function(result) report(result)$status == 0, TRUE)
  interrupted <- vapply(results, function(result) result$interrupted, TRUE)
  if (!any(interrupted & is_well)) {
    return(results)
  }
  reached <- vapply(results[is_well], function(result) {
    max(vapply(result$checkpoints, function(point) point$step, 0))
  }, 0)
  lapply(results, function(result) {
    if (report(result)$status != 0 && report(result)$n_step <= min(reached)) {
      return(result)
    }
    at <- vapply(result$checkpoints, function(point) point$step, 0)
    point <- result$checkpoints[[match(min(reached), at)]]
    result$reports <- list(point$report)
    result["monitor"] <- list(point$monitor)
    result$errors <- result$halted <- list()
    result$interrupted <- TRUE
    result
  })
}

# ---- what comes back ---------------------------------------------------------

# As if run_chains() had run them all.
join_chains <- function(results, sizes) {
  n_chain <- length(results)
  all <- function(name) lapply(results, function(result) result[[name]])
  buffers <- make_buffers(sizes, 0)
  for (name in names(sizes$numbers)) {
    k <- sizes$numbers[[name]]
    if (!is.null(k)) {
      parts <- lapply(all("buffers"), function(b) b[[name]])
      parts <- array(unlist(parts), c(sizes$n_keep, k, n_chain))
      buffers[[name]] <- as.double(aperm(parts, c(1, 3, 2)))
    }
  }
  list(
    buffers = buffers,
    reports = unlist(all("reports"), recursive = FALSE),
    interrupted = any(unlist(all("interrupted"))),
    errors = unlist(all("errors"), recursive = FALSE),
    halted = unlist(all("halted"), recursive = FALSE),
    rejected = Reduce(`%||%`, all("rejected")),
    shared = sum(unlist(all("shared"))),
    monitor = join_monitors(all("monitor"))
  )
}

# In the order of time, then of chains, as monitor_recorder() has it.
join_monitors <- function(results) {
  if (is.null(results[[1]])) {
    return(NULL)
  }
  table <- do.call(rbind, lapply(results, function(result) result$table))
  if (!is.null(table)) {
    table <- table[order(table$iteration, table$chain), ]
    rownames(table) <- NULL
  }
  problems <- unlist(lapply(results, function(result) result$problems), FALSE)
  when <- vapply(problems, function(problem) problem$iteration, 0)
  problems <- problems[order(when)]
  list(
    table = table,
    problems = problems[!duplicated(names(problems))],
    state = unlist(lapply(results, function(result) result$state), FALSE)
  )
}
