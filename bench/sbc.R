# Are the posteriors of the default right? Simulation-based calibration, with more
# replications than the tests have time for. See README.md.
#
#   Rscript bench/sbc.R [replications] [responses | classes] [rows]
#   Rscript bench/sbc.R [replications] groups [name]
#   Rscript bench/sbc.R [replications] crossed | near
#
# With "responses" those of section 13 alone, each with its parameter beside the
# mean; with "classes" regressions with classes. Both of `rows` rows: 1000, or
# 20000 where the recipe is another. With "groups" multilevel regressions, those
# whose name has what comes after it ("slope"). With "crossed" those of several
# grouping factors, with "near" of two of them, whose standard deviations are
# near 0 and correlations near -1 and 1.
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
source(file.path(dirname(script), "moments.R"))
source(file.path(dirname(script), "sbc-exact.R"))
source(file.path(dirname(script), "..", "tests", "testthat", "helper-sbc.R"))
n_rep <- if (length(commandArgs(TRUE)) > 0) as.integer(commandArgs(TRUE)[[1]]) else 400
of_responses <- "responses" %in% commandArgs(TRUE)
of_classes <- "classes" %in% commandArgs(TRUE)
of_groups <- "groups" %in% commandArgs(TRUE)
of_near <- "near" %in% commandArgs(TRUE)
of_crossed <- of_near || "crossed" %in% commandArgs(TRUE)
of_part <- c(commandArgs(TRUE)[-(1:2)], if (of_groups) "intercept" else 1000)[[1]]
n_rows <- if (!of_groups && !of_crossed) as.integer(of_part)
start_part <- function(part, title) {
  bench_start(
    paste(c("sbc", part, n_rows), collapse = "-"),
    paste("Simulation-based calibration of", title),
    paste(c("sbc.R", n_rep, part, if (!of_crossed) of_part), collapse = " ")
  )
}
if (of_responses) {
  start_part("responses", "responses")
} else if (of_classes) {
  start_part("classes", "regressions with classes")
} else if (of_groups) {
  start_part("groups", "multilevel regressions")
} else if (of_crossed) {
  start_part(
    if (of_near) "near" else "crossed",
    "several grouping factors"
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
  row_of_runs(name, suppressWarnings(sbc_runs(problem, n_rep, sample)))
}

row_of_runs <- function(name, runs) {
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

# How the scores differ from those that the posterior itself has on the same data
# sets.
beside_exact <- function(name, problem, scores) {
  exact <- exact_scores(problem, exact_densities[[name]], n_rep)
  off <- scores - exact$scores
  # parameters of one replication share their draws
  each <- -colMeans(off)
  error <- sd(each) / sqrt(n_rep)
  data.frame(
    problem = name,
    `exact, sds` = fixed(-mean(exact$scores)),
    `draws - exact` = fixed(mean(each), 3),
    `+-` = fixed(error, 3),
    p = fixed(2 * pnorm(-abs(mean(each) / error)), 3),
    `worst parameter` = fixed(max(abs(rowMeans(off))), 3),
    efficiency = fixed(exact$efficiency),
    check.names = FALSE
  )
}

say_rows <- function(rows) say_table(do.call(rbind, rows))

# Of each problem its row, and its scores.
scores_of <- function(problems) {
  lapply(stats::setNames(nm = names(problems)), function(name) {
    runs <- suppressWarnings(sbc_runs(problems[[name]], n_rep))
    scores <- sbc_scores(runs)
    cat(name, "sampled\n")
    list(row = row_of_runs(name, runs), scores = scores)
  })
}

if (of_responses) {
  say(
    n_rep, " replications of each response, N = ", n_rows, ", four coefficients",
    " and what is beside\nthe mean, with fixed priors; columns as in",
    " `results/sbc.md`.\n"
  )
  problems <- sbc_aux_problems(n_rows)
  each <- scores_of(problems)
  say_rows(lapply(each, function(one) one$row))
  # densities in R of more rows take too long
  if (n_rows <= 2000) {
    say(
      "Scores by importance sampling on the same data sets, without a sampler:",
      " how far those\ndiffer from 0 is chance of the data sets. How far the",
      " draws' scores differ from them is\nthe sampler's. Efficiency: the least",
      " of any data set.\n"
    )
    say_rows(lapply(names(problems), function(name) {
      beside_exact(name, problems[[name]], each[[name]]$scores)
    }))
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
  for (name in grep(of_part, wanted, value = TRUE)) {
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

if (of_crossed) {
  here <- file.path(dirname(script), "..", "tests", "testthat")
  source(file.path(here, "helper-crossed.R"))
  n_draw <- 31
  say(
    if (of_near) {
      paste0(
        "100 rows of 12 students or lecturers, with a slope, crossed with 6",
        " others or nested in 4\ndepartments; "
      )
    } else {
      paste0(
        "200 rows of 12 students, with a slope, and 8 lecturers in 3",
        " departments; "
      )
    },
    n_draw, " draws of one\nchain, nearly independent, with fixed priors:",
    " normal(0, 0.7) of two coefficients, half\nnormal(0, ",
    if (of_near) "0.15) of standard deviations, LKJ(0.5)" else {
      "0.7) of standard deviations, LKJ(2)"
    },
    " of the correlation, exponential(1) of sigma.\nColumns as",
    " in `results/sbc.md`.\n"
  )
  parameters <- if (of_near) {
    c(
      "(Intercept)", "x", "sd(inner)", "sd(inner, x)", "correlation",
      "sd(outer)", "sigma"
    )
  } else {
    c(
      "(Intercept)", "x", "sd(student)", "sd(student's x)", "correlation",
      "sd(lecturer)", "sd(department)", "sigma"
    )
  }
  # large counts hold their predictors for thousands of sweeps
  problems <- if (of_near) {
    sbc_near_problems()
  } else {
    sbc_crossed_problems()[c("gaussian", "logistic")]
  }
  for (name in names(problems)) {
    problem <- problems[[name]]
    runs <- sbc_runs(problem, n_rep, sbc_crossed_sample, n_draw)
    scores <- sbc_scores(runs)
    kernel <- runs[[1]]$kernel
    say("\n### ", name, ", ", n_rep, " replications\n\n")
    say_rows(c(
      list(row_of_scores("all", scores, kernel, n_draw)),
      lapply(seq_len(nrow(scores)), function(j) {
        row_of_scores(parameters[[j]], scores[j, ], kernel, n_draw)
      })
    ))
  }
  quit(save = "no")
}

if (of_classes) {
  say(
    n_rep, " replications of regressions with three classes and three columns,",
    " N = ", n_rows, ",\nwith fixed priors: eight coefficients, or three and two",
    " thresholds; columns as in\n`results/sbc.md`.\n"
  )
  say_rows(lapply(scores_of(sbc_class_problems(n_rows)), function(one) one$row))
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
