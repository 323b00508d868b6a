# Exact steps from a few rows: acceptance, rows and time of a step, effective draws
# a second beside those of the recipe before them. See README.md.
#
#   Rscript bench/exact.R [rounds]
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
source(file.path(dirname(script), "exact-problems.R"))
source(file.path(dirname(script), "recipe-1.R"))
rounds <- if (length(commandArgs(TRUE)) > 0) as.integer(commandArgs(TRUE)[[1]]) else 5
bench_start("exact", "Exact steps from a few rows, one core")

# Seconds of a draw of a recipe, likewise.
draw_seconds <- function(model, n, recipe) {
  run <- function(iter) {
    cpu_seconds(recipe(model, iter, warmup = 200, chains = 1))
  }
  function() {
    short <- run(300)
    (run(n + 300) - short) / n
  }
}

# The default without exact steps: control variates of order 2, where it takes
# them.
order_2 <- function(model, iter, ...) {
  put <- tallbayes:::put_settings
  before <- put(list(recipe = list(exact_acceptance = 2, awkward_acceptance = 2)))
  on.exit(put(before))
  sg_sample(model, iter = iter, ..., cores = 1, seed = 1)
}

rows <- list()
for (name in names(problems)) {
  p <- problems[[name]]()
  model <- build(p)
  mode <- find_mode(model)
  exact <- gradient_cv(mode, order = 2)
  eight <- subsample_uniform(min(8, nrow(p$x)))
  h <- 0.1 / max(eigen(-mode$hessian, symmetric = TRUE)$values)
  fit <- sg_sample(
    model, kernel_smh(), exact,
    iter = 41000, warmup = 1000, chains = 1, cores = 1, seed = 1
  )
  ess <- least_ess(fit) / 40000
  recipe <- recipe_1(model, iter = 2200, warmup = 200, chains = 1)
  recipe_ess <- least_ess(recipe) / 2000
  second <- order_2(model, iter = 2200, warmup = 200, chains = 1)
  takes_second <- identical(second$gradient$args$order, 2)
  second_ess <- least_ess(second) / 2000
  n_step <- if (nrow(p$x) >= 1e5 && ncol(p$x) >= 50) 2e4 else 2e5
  is_large <- length(p$x) > 5e7
  seconds <- interleave(
    list(
      smh = steps_seconds(model, n_step, kernel_smh(), exact),
      cv = steps_seconds(model, 2e5, kernel_sgld(h), gradient_cv(mode), eight),
      cv2 = steps_seconds(model, 2e5, kernel_sgld(h), exact, eight),
      recipe = draw_seconds(model, if (is_large) 4000 else 2000, recipe_1),
      second = draw_seconds(model, 2e4, order_2)
    ),
    if (is_large) 1 else rounds
  )
  was <- if (is.null(p$was)) c(NA, NA, NA) else p$was
  dash <- function(x, text) ifelse(is.na(x), "-", text)
  rows[[name]] <- data.frame(
    problem = name,
    acceptance = fixed(fit$chains$acceptance, 3),
    `prototype's` = dash(was[[1]], fixed(was[[1]], 3)),
    thinned = fixed(fit$chains$rows_thinned, 1),
    `its` = dash(was[[2]], fixed(was[[2]], 1)),
    always = fixed(fit$chains$rows_always, 1),
    `ESS a step` = fixed(ess),
    `step / CV-SGLD's, 8 rows` = times(ratio(seconds, "smh", "cv")),
    `order 2 / order 1, 8 rows` = times(ratio(seconds, "cv2", "cv")),
    `ESS a second / recipe 1's` = times(
      ess / recipe_ess * ratio(seconds, "recipe", "smh"),
      0
    ),
    `the same, order 2` = if (takes_second) {
      times(
        second_ess / recipe_ess * ratio(seconds, "recipe", "second"),
        0
      )
    } else {
      "-"
    },
    check.names = FALSE
  )
}
say("A step of `kernel_smh()`, beside the figures of prototypes in plain R and",
  " C, and a step\nof `kernel_sgld()` with `gradient_cv()` and 8 uniform rows; the",
  " least effective size of all\nparameters a second of sampling, beside the",
  " recipe before,\n`bench/recipe-1.R`; and that of its steps with control",
  " variates of order 2, where it\nwould take them without exact ones.\n")
say_table(do.call(rbind, rows))
