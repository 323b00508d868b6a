# Small data sets, models and fits for tests of behaviour.

example_data <- function(n = 300, seed = 1) {
  withr::with_seed(seed, {
    data <- data.frame(
      a = stats::rnorm(n),
      b = stats::runif(n, 10, 20),
      g = factor(sample(c("u", "v", "w"), n, TRUE)),
      exposure = stats::runif(n, 1, 3),
      w = sample(1:3, n, TRUE)
    )
    eta <- -2 + 0.8 * data$a + 0.1 * data$b + 0.5 * (data$g == "v")
    data$y <- stats::rbinom(n, 1, stats::plogis(eta))
    data$count <- stats::rpois(n, data$exposure * exp(0.2 * eta))
    data$z <- 3 * eta + stats::rnorm(n, sd = 2)
    data
  })
}

example_matrix <- function(data = example_data()) {
  cbind("(Intercept)" = 1, a = data$a, b = data$b - 15)
}

example_model <- function(family = "bernoulli", ..., data = example_data()) {
  y <- switch(family, poisson = data$count, gaussian = data$z, data$y)
  model_glm(example_matrix(data), y, family = family, ...)
}

# A short run of an explicit kernel: what it samples does not matter.
quick_fit <- function(
  model = example_model(),
  ...,
  iter = 60,
  chains = 2,
  seed = 1
) {
  sg_sample(
    model,
    kernel_sgld(1e-3),
    iter = iter,
    chains = chains,
    seed = seed,
    refresh = 0,
    ...
  )
}

quick_glm <- function(
  formula = y ~ a + b,
  data = example_data(),
  family = stats::binomial(),
  ...,
  seed = 1
) {
  tall_glm(formula, data, family, ..., seed = seed, refresh = 0)
}

# What of(seed) returns depends on its seed alone, and R's generator stays as it
# was, whatever its state and kind are.
expect_seeded <- function(of) {
  withr::local_preserve_seed()
  run <- function(state, seed, kind = "Mersenne-Twister") {
    set.seed(state, kind = kind)
    before <- .Random.seed
    value <- suppressWarnings(of(seed), classes = "tall_warning")
    testthat::expect_identical(.Random.seed, before)
    value
  }
  first <- run(10, 1)
  testthat::expect_false(identical(run(11, 2), first))
  testthat::expect_identical(run(12, 1, "L'Ecuyer-CMRG"), first)
}

# Printed output without its numbers, which are not what a snapshot is for.
scrub <- function(lines) {
  lines <- gsub("[-+]?[0-9][0-9,]*([.][0-9]+)?(e[-+]?[0-9]+)?", "#", lines)
  gsub(" +", " ", sub("^Time: .*", "Time: #", lines))
}

# Prints for a snapshot: where lines break hangs on their numbers. That they
# stay within the width is told by test-shown.R.
local_wide <- function(frame = parent.frame()) {
  withr::local_options(width = 200, .local_envir = frame)
}

# The value of `code` in a fork of this process, which must finish in time.
in_fork <- function(code, seconds = 180) {
  job <- parallel::mcparallel(code)
  found <- parallel::mccollect(job, wait = FALSE, timeout = seconds)
  if (is.null(found)) {
    tools::pskill(job$pid, tools::SIGKILL)
    stop("The fork did not finish.")
  }
  found[[1]]
}

# What `code(...)` returns in an R process of its own, which is interrupted (as
# by Ctrl-C) a moment after the file `signal_when` exists.
run_child <- function(code, ..., signal_when) {
  folder <- withr::local_tempdir()
  file <- function(name) file.path(folder, name)
  saveRDS(list(code = code, args = list(...)), file("task.rds"))
  writeLines(
    c(
      sprintf("setwd(\"%s\")", folder),
      "writeLines(as.character(Sys.getpid()), \"pid\")",
      "task <- readRDS(\"task.rds\")",
      "out <- tryCatch(do.call(task$code, task$args), error = identity)",
      "saveRDS(out, \"part.rds\")",
      "file.rename(\"part.rds\", \"out.rds\")"
    ),
    file("task.R")
  )
  wait_for <- function(path, seconds) {
    wait_until(function() file.exists(path), seconds)
  }
  system2(
    file.path(R.home("bin"), "Rscript"),
    c("--vanilla", shQuote(file("task.R"))),
    stdout = file("stdout"),
    stderr = file("stderr"),
    wait = FALSE
  )
  if (!wait_for(signal_when, 180)) {
    stop(paste(readLines(file("stderr")), collapse = "\n"))
  }
  pid <- as.integer(readLines(file("pid")))
  withr::defer(tools::pskill(pid, tools::SIGKILL))
  Sys.sleep(0.7)
  tools::pskill(pid, tools::SIGINT)
  if (!wait_for(file("out.rds"), 180)) {
    stop("The child did not finish.")
  }
  readRDS(file("out.rds"))
}

# Calls that are all refused by an error of this class.
expect_refusals <- function(class, ...) {
  calls <- rlang::enquos(...)
  for (call in calls) {
    expect_error(
      rlang::eval_tidy(call),
      class = class,
      label = rlang::as_label(call)
    )
  }
}

# Waits for what another process does, no longer than it must; was it done?
wait_until <- function(is_done, seconds) {
  end <- Sys.time() + seconds
  while (!is_done() && Sys.time() < end) {
    Sys.sleep(0.02)
  }
  is_done()
}
