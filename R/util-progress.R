# Progress bars.

# list(add, set, done): $add(n) and $set(n) say how much is done by now, $done()
# that all is; a bar ends with its frame, too. They do nothing where none is to
# be seen.
# total: NA where it is not known.
# An interrupt while cli draws a bar for the first time would leave it half
# made, and closing it would then be an error in place of what the run has: an
# interrupt waits until cli is done.
progress_bar <- function(
  label = NULL,
  total = NA,
  shows = TRUE,
  frame = caller_env(),
  type = "iterator"
) {
  if (!shows) {
    nothing <- function(...) invisible()
    return(list(add = nothing, set = nothing, done = nothing))
  }
  bar <- suspendInterrupts(
    cli::cli_progress_bar(label, total = total, type = type, .envir = frame)
  )
  update <- function(...) {
    suspendInterrupts(cli::cli_progress_update(..., id = bar, .envir = frame))
  }
  list(
    add = function(n = 1) update(inc = n),
    set = function(n) update(set = n),
    done = function() {
      suspendInterrupts(cli::cli_progress_done(id = bar, .envir = frame))
    }
  )
}
