# One pass over a source in the place of one over each of several parts of it.

# Of each job, which is list(pass, part, guard), list(value), or list(condition)
# where its visit failed: others go on. guard(code): what is to be done about
# warnings of the job's code.
pass_together <- function(source, jobs, refresh) {
  visits <- lapply(jobs, visit_part)
  request <- list(columns = unique(unlist(lapply(visits, `[[`, "columns"))))
  label <- jobs[[1]]$pass$label
  walk_source(source, request, label, refresh, function(block) {
    for (visit in visits) {
      visit$add(block)
    }
    !all(vapply(visits, function(visit) visit$has_failed(), TRUE))
  })
  lapply(visits, function(visit) visit$end())
}

# As visit_shard() is of the part, but that blocks are those of the source.
visit_part <- function(job) {
  pass <- job$pass
  columns <- asked_request(pass$args)$columns
  take <- part_taker(job$part)
  seen <- list(block = 0, n_row = 0)
  failed <- NULL
  own <- NULL
  # conditions that the fit knows what to do about
  fail <- function(cnd) failed <<- cnd
  attempt <- function(code) {
    if (is.null(failed)) {
      tryCatch(job$guard(code), error = fail, tall_too_many = fail)
    }
  }
  attempt(own <- pass$visit(pass$args, pass$first))
  add <- function(block) {
    block$columns <- block$columns[columns]
    block <- take(block)
    if (is.null(block)) {
      return()
    }
    seen$block <<- seen$block + 1
    block$block <- seen$block
    block$row <- seen$n_row + 1
    seen$n_row <<- seen$n_row + block$n
    own$add(block)
  }
  list(
    columns = columns,
    add = function(block) attempt(add(block)),
    has_failed = function() !is.null(failed),
    end = function() {
      value <- attempt(own$end(seen$n_row))
      if (is.null(failed)) list(value = value) else list(condition = failed)
    }
  )
}
