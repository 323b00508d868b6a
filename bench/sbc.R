# Are the posteriors of the default right? Simulation-based calibration, with more
# replications than the tests have time for. See README.md.
#
#   Rscript bench/sbc.R [replications] [responses|groups [name]]
#
# With "responses" those of section 13 alone, each with its parameter beside the
# mean, at two numbers of rows; with "groups" multilevel regressions, all or those
# whose name has what comes after it ("slope").
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
if (Sys.getenv("TALLBAYES_BENCH_CHILD") == "") {
  # BLAS reads its number of threads when it is loaded
  Sys.setenv(
    TALLBAYES_BENCH_CHILD = "1",
    OPENBLAS_NUM_THREADS = "1",
    OMP_NUM_THREADS = "1"
  )
  status <- system2(
    file.path(R.home("bin"), "Rscript"), c(script, commandArgs(TRUE))
  )
  quit(status = status)
}
source(file.path(dirname(script), "common.R"))
source(file.path(dirname(script), "recipe-1.R"))
source(file.path(dirname(script), "..", "tests", "testthat", "helper-sbc.R"))
n_rep <- if (length(commandArgs(TRUE)) > 0) as.integer(commandArgs(TRUE)[[1]]) else 400
of_responses <- "responses" %in% commandArgs(TRUE)
of_groups <- "groups" %in% commandArgs(TRUE)
group_problem <- c(commandArgs(TRUE)[-(1:2)], "intercept")[[1]]
if (of_responses) {
  bench_start("sbc-responses", "Simulation-based calibration of responses")
} else if (of_groups) {
  bench_start(
    "sbc-groups",
    "Simulation-based calibration of multilevel regressions",
    paste("sbc.R", paste(commandArgs(TRUE), collapse = " "))
  )
} else {
  bench_start("sbc", "Simulation-based calibration of the default")
}

# Ranks in 16 bins, all parameters together.
bins_p_value <- function(scores, n_draw) {
  ranks <- round(pnorm(scores) * (n_draw + 1) - 0.5)
  counts <- tabulate(ranks %/% ((n_draw + 1) / 16) + 1, 16)
  suppressWarnings(chisq.test(counts))$p.value
}

row_of <- function(name, sample = sbc_sample) {
  row_of_problem(name, sbc_problems()[[name]], sample)
}

row_of_problem <- function(name, problem, sample = sbc_sample) {
  runs <- suppressWarnings(sbc_runs(problem, n_rep, sample))
  kernels <- table(vapply(runs, function(run) run$kernel, ""))
  row_of_scores(name, sbc_scores(runs), if (length(kernels) == 1) {
    names(kernels)
  } else {
    paste(names(kernels), kernels, collapse = ", ")
  })
}

row_of_scores <- function(name, scores, kernel, n_draw = sbc_draws) {
  p <- sbc_p_values(scores, n_draw)
  # an sd that is off by b turns the scores' into 1 / (1 + b)
  at <- qnorm((seq_len(n_draw + 1) - 0.5) / (n_draw + 1))
  ratio <- sqrt(mean(at^2) / mean(scores^2))
  data.frame(
    problem = name,
    kernel = kernel,
    `mean, sds` = fixed(-mean(scores)),
    `+-` = fixed(sqrt(mean(at^2) / length(scores))),
    `sd` = percent(ratio - 1),
    `+- ` = percent(sqrt(0.5 / length(scores))),
    `p, mean` = fixed(p[["location"]], 3),
    `p, sd` = fixed(p[["spread"]], 3),
    `p, bins` = fixed(bins_p_value(scores, n_draw), 3),
    check.names = FALSE
  )
}

if (of_responses) {
  say(
    n_rep, " replications of each response, four coefficients and what is beside",
    " the mean,\nwith fixed priors; columns as in `results/sbc.txt`.\n"
  )
  for (n in c(1000, 20000)) {
    say("N = ", format(n, big.mark = ","), ".\n")
    problems <- sbc_aux_problems(n)
    rows <- lapply(names(problems), function(name) {
      row <- row_of_problem(name, problems[[name]])
      cat(name, n, "done\n")
      row
    })
    say_table(do.call(rbind, rows))
  }
  quit(save = "no")
}

if (of_groups) {
  say(
    "200 groups of 10 rows, ", sbc_group_draws, " draws of one chain, with fixed",
    " priors: normal(0, 0.5) of\ntwo coefficients, half normal(0, 1) of standard",
    " deviations, LKJ(1) of the correlation.\nColumns as in `results/sbc.md`; the",
    " kernel is what the default took.\n"
  )
  parameters <- c(
    "(Intercept)", "slope", "sd(Intercept)", "sd(slope)", "correlation"
  )
  table_of <- function(runs) {
    scores <- sbc_scores(runs)
    kernels <- vapply(runs, function(run) run$kernel, "")
    counts <- table(kernels)
    row <- function(name, own, kernel) {
      row_of_scores(name, own, kernel, sbc_group_draws)
    }
    rows <- c(
      list(row("all", scores, paste(names(counts), counts, collapse = ", "))),
      lapply(seq_len(nrow(scores)), function(j) {
        row(parameters[[j]], scores[j, ], "both")
      }),
      lapply(names(counts), function(kernel) {
        row("all of this kernel", scores[, kernels == kernel], kernel)
      })
    )
    do.call(rbind, rows)
  }
  wanted <- c("intercept, logistic", "intercept and slope, logistic")
  for (name in grep(group_problem, wanted, value = TRUE)) {
    before <- bench_log$lines
    runs <- list()
    # they take long: what is done is kept
    for (seeds in split(seq_len(n_rep), (seq_len(n_rep) - 1) %/% 50)) {
      runs <- c(runs, suppressWarnings(sbc_runs(
        sbc_group_problems()[[name]],
        sample = sbc_group_sample,
        n_draw = sbc_group_draws,
        seeds = seeds
      )))
      bench_log$lines <- before
      say(name, ", ", length(runs), " replications.\n")
      say_table(table_of(runs))
    }
  }
  quit(save = "no")
}

say(
  n_rep, " replications, N = ", sbc_n, ", four parameters, ", sbc_draws,
  " draws of one chain. Parameters are drawn\nfrom their prior, data from them;",
  " the rank of each parameter among the draws of its\nposterior is uniform. As",
  " normal scores: how far the draws' mean is off, in posterior sds,\nand their",
  " sd, with standard errors; two-sided p values of both, and of ranks in 16",
  " bins.\n"
)
say("The default.\n")
say_table(do.call(rbind, lapply(names(sbc_problems()), row_of)))

say("The recipe before (`bench/recipe-1.R`), whose noise widens by up to 2 %.\n")
before <- function(model, seed, iter, warmup) {
  recipe_1(model, iter, warmup, chains = 1, seed = seed)
}
say_table(do.call(rbind, lapply(names(sbc_problems()), row_of, before)))
