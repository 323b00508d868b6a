# Passes over shards: one after the other, or a worker of the package future for
# each. A shard is passed over as if there were no other, and what was made of
# each is merged in their order: the same numbers, whoever makes them.

# What a visit makes of each shard of a source, in their order; errors have the
# field `shard`. `visit(args, first)` begins one: list(add, end), of which
# add(block) is told each block and end(n_read) has what is made of all.
# args: list(rows or request, ...), which is all that workers are sent, `cores`
# of it 1 there; first: a number for each shard; show: list(label, refresh).
# tells: say so where workers could have been used?
each_shard <- function(source, visit, args, first, show, tells = FALSE) {
  log <- source_log(source)
  if (!is.null(log)) {
    pass <- list(visit = visit, args = args, first = first[[1]])
    return(list(log$pass(c(pass, label = show$label))))
  }
  shards <- source_shards(source)
  n_shard <- length(shards)
  if (n_shard == 1) {
    return(list(visit_shard(shards[[1]], visit, args, first[[1]], show)))
  }
  jobs <- lapply(seq_len(n_shard), function(k) {
    list(shard = shards[[k]], first = first[[k]], number = k)
  })
  if (use_workers(shards, tells)) {
    return(shards_on_workers(jobs, visit, args, show))
  }
  lapply(jobs, function(job) {
    show$label <- paste0(show$label, ", shard ", job$number, " of ", n_shard)
    in_shard(
      job$number,
      n_shard,
      visit_shard(job$shard, visit, args, job$first, show)
    )
  })
}

visit_shard <- function(shard, visit, args, first, show) {
  own <- visit(args, first)
  request <- asked_request(args)
  n_read <- walk_source(shard, request, show$label, show$refresh, own$add)
  own$end(n_read)
}

asked_request <- function(args) {
  args$request %||% args$rows$request
}

use_workers <- function(shards, tells) {
  if (!has_workers()) {
    return(FALSE)
  }
  stays <- which(!vapply(shards, can_travel, TRUE))
  first <- if (length(stays) > 0) shards[[stays[[1]]]]
  if (tells && inherits(first, "tall_stream")) {
    cli::cli_inform(
      c(
        "Shards are passed over one after another: what opens shard
         {stays[[1]]} holds a connection or a pointer, which cannot be sent to
         workers.",
        i = "{.fn open} must make it anew each time."
      ),
      class = "tall_message_cores"
    )
  }
  length(stays) == 0
}

# ---- workers -----------------------------------------------------------------

# An error or an interrupt asks the workers, through a file that they see if
# they are on this machine, to stop.
shards_on_workers <- function(jobs, visit, args, show) {
  # what travels is what the user gave: the limit is for what travels by
  # accident
  rlang::local_options(future.globals.maxSize = Inf)
  halt <- tempfile("halt")
  n_shard <- length(jobs)
  crew <- crew_of_shards(jobs, visit, args, show, halt, environment())
  is_done <- FALSE
  on.exit({
    if (!is_done) {
      file.create(halt)
      tryCatch(
        crew$work(patience = 10),
        interrupt = function(e) NULL,
        error = function(e) NULL
      )
    }
    unlink(halt)
  })
  crew$work()
  is_done <- TRUE
  results <- crew$results()
  for (k in seq_len(n_shard)) {
    if (inherits(results[[k]]$condition, "error")) {
      abort_shard(told_here(results[[k]]$condition), k, n_shard)
    }
  }
  for (result in results) {
    if (!is.null(result$condition)) {
      rlang::cnd_signal(result$condition)
    }
  }
  if (any(vapply(results, function(result) isTRUE(result$interrupted), TRUE))) {
    rlang::interrupt()
  }
  lapply(results, `[[`, "value")
}

# As new_crew() has it.
crew_of_shards <- function(jobs, visit, args, show, halt, frame) {
  own <- list(visit = visit, args = pack_args(args), halt = halt)
  opens <- lapply(jobs, function(job) job$shard$open)
  request <- asked_request(args)
  found <- found_globals(Filter(
    is.function,
    c(opens, request_functions(request, own$args$env))
  ))
  bar <- progress_bar(
    paste0(show$label, " (shards)"),
    length(jobs),
    show$refresh > 0,
    frame
  )
  collected <- function(result) {
    if (is.null(result$value)) {
      file.create(halt)
    }
    bar$add()
  }
  guard <- function(number, expr) from_shard_worker(number, expr)
  jobs <- lapply(jobs, c, own)
  # no `seed`: a stream may simulate its rows, and that they are the same in
  # every pass is looked at
  new_crew(jobs, work_shard, found, NULL, guard, collected)
}

# What a worker does: list(value), list(condition) or list(interrupted).
work_shard <- function(job) {
  if (file.exists(job$halt)) {
    return(list(interrupted = TRUE))
  }
  args <- job$args
  args$cores <- 1
  shard <- halting_source(job$shard, job$halt)
  tryCatch(
    list(value = visit_shard(
      shard,
      job$visit,
      args,
      job$first,
      list(refresh = 0)
    )),
    error = function(e) list(condition = e),
    tall_too_many = function(cnd) list(condition = cnd),
    interrupt = function(cnd) list(interrupted = TRUE)
  )
}

# ---- what travels ------------------------------------------------------------

# The same, where the environment of the formula has nothing but what the
# formula uses: data may lie there.
pack_args <- function(args) {
  request <- asked_request(args)
  env <- slim_env(request)
  args$env <- env
  request$env <- env
  environment(request$formula) <- env
  attr(request$terms, ".Environment") <- env
  if (is.null(args$rows)) {
    args$request <- request
  } else {
    args$rows$request <- request
    attr(args$rows$design$terms, ".Environment") <- env
  }
  args
}

# As functions, of which columns are arguments.
request_functions <- function(request, env) {
  columns <- stats::setNames(nm = request$columns)
  arguments <- lapply(columns, function(name) rlang::missing_arg())
  lapply(request_expressions(request), function(expression) {
    rlang::new_function(arguments, expression, env)
  })
}

slim_env <- function(request) {
  used <- unlist(lapply(request_expressions(request), all.names))
  own <- own_values(setdiff(used, request$columns), request$env)
  list2env(own, parent = topenv(request$env))
}
