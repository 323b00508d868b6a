# Has anything become slower? Steps and default calls of the regressions of
# exact.R with this version and one before, in processes of their own, in turn.
# See README.md.
#
#   Rscript bench/exact-before.R <library of the version before> [rounds] [number of a problem ...]

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))
source(file.path(dirname(script), "exact-problems.R"))
arguments <- commandArgs(TRUE)

# In a process of a version: CPU seconds of one round of a problem.
measure <- function(name) {
  p <- problems[[name]]()
  model <- build(p)
  mode <- find_mode(model)
  exact <- gradient_cv(mode, order = 2)
  eight <- subsample_uniform(min(8, nrow(p$x)))
  h <- 0.1 / max(eigen(-mode$hessian, symmetric = TRUE)$values)
  n_step <- if (nrow(p$x) >= 1e5 && ncol(p$x) >= 50) 2e4 else 2e5
  # made anew, since a model remembers its mode
  fresh <- build(p)
  whole <- cpu_seconds(fit <- sg_sample(fresh, cores = 1, seed = 1))
  c(
    smh = steps_seconds(model, n_step, kernel_smh(), exact)(),
    cv = steps_seconds(model, 2e5, kernel_sgld(h), gradient_cv(mode), eight)(),
    cv2 = steps_seconds(model, 2e5, kernel_sgld(h), exact, eight)(),
    whole = whole,
    ess = least_ess(fit),
    is_smh = as.numeric(fit$kernel$name == "smh")
  )
}

if (arguments[[1]] == "measure") {
  cat("measured", format(measure(arguments[[2]]), digits = 10), "\n")
  quit()
}

before <- arguments[[1]]
rounds <- if (length(arguments) > 1) as.integer(arguments[[2]]) else 3
wanted <- names(problems)
if (length(arguments) > 2) {
  wanted <- wanted[as.integer(arguments[-(1:2)])]
}

measured <- function(name, library) {
  path <- paste(c(library, Sys.getenv("R_LIBS")), collapse = ":")
  out <- system2(
    file.path(R.home("bin"), "Rscript"),
    c(script, "measure", shQuote(name)),
    stdout = TRUE,
    env = paste0("R_LIBS=", path)
  )
  line <- grep("^measured", out, value = TRUE)
  as.numeric(strsplit(line, " +")[[1]][-1])
}

bench_start(
  "exact-before",
  "Exact steps, this version over the one before",
  paste("exact-before.R <library>", paste(arguments[-1], collapse = " "))
)
rows <- lapply(wanted, function(name) {
  # in turn, each first in every other round
  pairs <- lapply(seq_len(rounds), function(round) {
    libraries <- list(now = NULL, then = before)
    if (round %% 2 == 0) {
      libraries <- rev(libraries)
    }
    lapply(libraries, function(library) measured(name, library))
  })
  of <- function(which, k) vapply(pairs, function(pair) pair[[which]][[k]], 0)
  change <- function(k) {
    times(stats::median(of("now", k)) / stats::median(of("then", k)))
  }
  microseconds <- function(k) number(1e6 * stats::median(of("now", k)))
  data.frame(
    problem = name,
    `exact step` = change(1),
    `its us` = microseconds(1),
    `CV-SGLD's` = change(2),
    `order 2's` = change(3),
    `default call` = change(4),
    `its CPU s` = number(stats::median(of("now", 4))),
    `its ESS a second` = times(
      stats::median(of("now", 5) / of("now", 4)) /
        stats::median(of("then", 5) / of("then", 4))
    ),
    `kernel` = if (all(of("now", 6) == of("then", 6))) "same" else "other",
    check.names = FALSE
  )
})
say(
  "CPU time of a step of `kernel_smh()`, and of `kernel_sgld()` with 8 uniform rows",
  " and\n`gradient_cv()` of order 1 and 2; of a whole default call, and its least",
  " effective size a\nsecond: this version over the one before, medians of ", rounds,
  " rounds in turn.\n"
)
say_table(do.call(rbind, rows))
