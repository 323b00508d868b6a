# Evaluates `code` where cli's function begins, as long as `env` lasts.
local_trace <- function(name, code, env = parent.frame()) {
  space <- asNamespace("cli")
  suppressMessages(trace(name, code, where = space, print = FALSE))
  withr::defer(suppressMessages(untrace(name, where = space)), env)
}

test_that("an interrupt waits until a progress bar is drawn", {
  skip_on_os("windows")
  skip_on_cran()
  drawn <- character()
  interrupt <- function(name) {
    tools::pskill(Sys.getpid(), tools::SIGINT)
    # not Sys.sleep(), which sees interrupts that are suspended
    for (i in seq_len(1e5)) {
      i
    }
    drawn <<- c(drawn, name)
  }
  interrupted <- function(code) {
    tryCatch(
      {
        code
        # where what waited comes at the latest, on a busy machine after a while
        for (k in seq_len(40)) {
          Sys.sleep(0.05)
        }
        FALSE
      },
      interrupt = function(condition) TRUE
    )
  }
  draw <- function(name, code) {
    local_trace(paste0("cli_progress_", name), bquote(.(interrupt)(.(name))))
    expect_true(interrupted(code))
  }
  draw("bar", progress_bar("Rows", 10))
  # a frame has one bar
  bar <- progress_bar("Rows", 10)
  draw("update", bar$set(1))
  draw("done", bar$done())
  expect_identical(drawn, c("bar", "update", "done"))
})

test_that("a bar counts, and can be left out", {
  seen <- list()
  note <- function(...) seen[[length(seen) + 1]] <<- list(...)
  local_trace("cli_progress_update", bquote(.(note)(inc, set)))
  local_trace("cli_progress_bar", bquote(.(note)(name, total)))
  bar <- progress_bar("Rows", 10)
  bar$add(3)
  bar$set(5)
  bar$done()
  expect_identical(seen, list(list("Rows", 10), list(3, NULL), list(NULL, 5)))
  none <- progress_bar("Rows", 10, shows = FALSE)
  none$add()
  none$set(2)
  none$done()
  expect_length(seen, 3)
})
