# Work for the workers of the package future: jobs, one after the other, as many
# at a time as there are workers.

has_workers <- function() {
  rlang::is_installed("future") &&
    !inherits(future::plan("next"), c("sequential", "uniprocess"))
}

# $work() until all jobs have come back, at most `patience` seconds; $results()
#
# jobs: list; do(job): a function of this package, which a worker calls; found:
# as found_globals() has it; guard(number, expr): evaluates expr, and says of
# which job an error is; collected(result): is called as one comes back.
new_crew <- function(jobs, do, found, seed, guard, collected) {
  n_job <- length(jobs)
  n_worker <- future::nbrOfWorkers()
  futures <- results <- vector("list", n_job)
  is_running <- function(number) {
    !is.null(futures[[number]]) && is.null(results[[number]])
  }
  send <- function(number) {
    work <- list(.tall_work = do, .tall_job = jobs[[number]])
    futures[[number]] <<- future::future(
      quote(.tall_work(.tall_job)),
      substitute = FALSE,
      globals = c(found$globals, work),
      packages = found$packages,
      seed = seed
    )
  }
  collect <- function(number) {
    # a worker tells which packages it loads
    results[[number]] <<- suppressPackageStartupMessages(
      future::value(futures[[number]])
    )
    collected(results[[number]])
  }
  look <- function() {
    for (number in seq_len(n_job)) {
      running <- sum(vapply(seq_len(n_job), is_running, TRUE))
      guard(number, {
        if (is.null(futures[[number]]) && running < n_worker) {
          send(number)
        }
        if (is_running(number) && future::resolved(futures[[number]])) {
          collect(number)
        }
      })
    }
    any(vapply(results, is.null, TRUE))
  }
  # what is short is not waited for long
  work <- function(patience = Inf) {
    started <- proc.time()[["elapsed"]]
    pause <- 0.005
    while (look()) {
      if (proc.time()[["elapsed"]] - started > patience) {
        rlang::interrupt()
      }
      Sys.sleep(pause)
      pause <- min(1.2 * pause, 0.05)
    }
  }
  list(work = work, results = function() results)
}

# list(globals, packages): what functions find in the workspace and in packages.
# What they find in their own environments travels with them.
found_globals <- function(functions) {
  names(functions) <- paste0(".tall_", seq_along(functions))
  found <- future::getGlobalsAndPackages(
    as.call(c(quote(list), lapply(names(functions), as.name))),
    envir = list2env(functions, parent = globalenv())
  )
  globals <- found$globals
  here <- vapply(names(globals), function(name) {
    identical(globals[[name]], get0(name, globalenv()))
  }, TRUE)
  list(globals = unclass(globals)[here], packages = found$packages)
}

# The values that names have in an environment and those it is in, below the
# workspace or a package.
own_values <- function(names, env) {
  top <- topenv(env)
  out <- list()
  for (name in unique(names)) {
    at <- env
    while (!identical(at, top) && !identical(at, emptyenv())) {
      if (exists(name, at, inherits = FALSE)) {
        out[name] <- list(get(name, at, inherits = FALSE))
        break
      }
      at <- parent.env(at)
    }
  }
  out
}

# Does a function use a connection, or something else of this process?
uses_pointer <- function(f, known = character()) {
  if (is.primitive(f)) {
    return(FALSE)
  }
  names <- unique(c(all.names(body(f)), unlist(lapply(formals(f), all.names))))
  values <- own_values(setdiff(names, known), environment(f))
  for (value in values) {
    uses <- if (is.function(value)) {
      uses_pointer(value, union(known, names))
    } else {
      holds_pointer(value)
    }
    if (uses) {
      return(TRUE)
    }
  }
  FALSE
}

holds_pointer <- function(x) {
  found <- FALSE
  serialize(x, NULL, refhook = function(reference) {
    if (typeof(reference) %in% c("externalptr", "weakref")) {
      found <<- TRUE
    }
    NULL
  })
  found
}
