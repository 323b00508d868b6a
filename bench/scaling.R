# How do iterations, preprocessing and chains scale? See README.md.
#
#   Rscript bench/scaling.R [largest N]
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "common.R"))
largest <- if (length(commandArgs(TRUE)) > 0) as.numeric(commandArgs(TRUE)[[1]]) else 1e7
compile_c("gather.c")
bench_start("scaling", "Scaling: logistic, d = 20, minibatches of 500 rows")

d <- 20
n <- 500
rounds <- 7
step_size <- 1e-10
sizes <- 10^(4:floor(log10(largest)))

make_data <- function(n_data) {
  set.seed(1)
  x <- matrix(rnorm(n_data * d), n_data)
  theta <- seq(-0.5, 0.5, length.out = d)
  list(x = x, y = as.double(runif(n_data) < plogis(x %*% theta)))
}

run <- function(model, mode, gradient, iter, clock = cpu_seconds, chains = 1,
                cores = 1) {
  clock(sg_sample(
    model, kernel_sgld(step_size), gradient = gradient,
    subsample = subsample_uniform(n), iter = iter, warmup = 0, thin = 100,
    chains = chains, cores = cores, seed = 1, init = mode$estimate
  ))
}

# A long run less a short one: the pass at the start drops out.
per_iteration <- function(model, mode, gradient) {
  function() {
    short <- run(model, mode, gradient, 1000)
    (run(model, mode, gradient, 11000) - short) / 10000
  }
}

# Elapsed seconds, and those of the processor, which a busy machine disturbs less.
both_clocks <- function(expr) {
  seconds <- system.time(expr, gcFirst = TRUE)
  c(wall = seconds[["elapsed"]], cpu = sum(seconds[c("user.self", "sys.self")]))
}

# the first call loads and compiles R code
warm <- make_data(1e4)
invisible(sg_sample(model_glm(warm$x, warm$y), iter = 2, warmup = 1, chains = 1))

rows <- lapply(sizes, function(n_data) {
  data <- make_data(n_data)
  building <- both_clocks(
    model <- model_glm(data$x, data$y, "bernoulli", prior_normal(0, 2.5))
  )
  # what the recipe does before it samples: mode, whitened rows, weights, pilot
  preparing <- both_clocks(
    fit <- sg_sample(model, iter = 2, warmup = 1, chains = 1, cores = 1, seed = 1)
  )
  mode <- fit$mode
  rm(fit, data)
  gc(FALSE)
  invisible(.Call("gather_create", n_data, d))
  aheads <- c(4, 8, 12, 16, 24)
  tried <- sapply(rep(aheads, 3), function(a) .Call("gather_time", 2e6, a, FALSE))
  ahead <- aheads[[which.min(apply(matrix(tried, length(aheads)), 1, median))]]
  seconds <- interleave(
    list(
      gather = function() n * .Call("gather_time", 4e6, ahead, FALSE),
      gather_obs = function() n * .Call("gather_time", 4e6, ahead, TRUE),
      simple = per_iteration(model, mode, gradient_simple()),
      cv = per_iteration(model, mode, gradient_cv(at = mode))
    ),
    rounds
  )
  invisible(.Call("gather_free"))
  cat("N =", n_data, "\n")
  chains <- if (n_data == 1e6) {
    both <- interleave(
      list(
        one = function() run(model, mode, gradient_simple(), 20000, elapsed, 2, 1),
        two = function() run(model, mode, gradient_simple(), 20000, elapsed, 2, 2)
      ),
      rounds
    )
    ratio(both, "one", "two")
  }
  list(
    n_data = n_data, building = building, preparing = preparing,
    seconds = seconds, chains = chains
  )
})

say("Iterations, processor seconds. Gather: the loop that only fetches the rows. Against\nN = 10^6: the time over that at a million rows.\n")
middle <- function(r, what) median(r$seconds[, what])
million <- Filter(function(r) r$n_data == 1e6, rows)[[1]]
say_table(do.call(rbind, lapply(rows, function(r) {
  data.frame(
    N = format(r$n_data, big.mark = ",", scientific = FALSE),
    "simple / gather" = fixed(ratio(r$seconds, "simple", "gather")),
    "CV / gather" = fixed(ratio(r$seconds, "cv", "gather")),
    "simple / gather with responses" = fixed(ratio(r$seconds, "simple", "gather_obs")),
    "simple / N = 10^6" = fixed(middle(r, "simple") / middle(million, "simple")),
    "CV / N = 10^6" = fixed(middle(r, "cv") / middle(million, "cv")),
    "gather / N = 10^6" = fixed(middle(r, "gather") / middle(million, "gather")),
    check.names = FALSE
  )
})))
last <- rows[[length(rows)]]
if (last$n_data > 1e6) {
  worst <- max(sapply(c("simple", "cv"), function(w) middle(last, w) / middle(million, w)))
  say("Flat from 10^6 rows on, target <= 1.5: ", fixed(worst), ", ", yes_no(worst <= 1.5), ".\n")
}

say("Preprocessing. Building: model_glm(). Preparing: the recipe's mode, whitened\nrows, weights and pilot. Against the size before: 10 is linear. CPU seconds are\nthose of all threads.\n")
growth <- function(what, clock) {
  v <- sapply(rows, function(r) r[[what]][[clock]])
  c("-", fixed(v[-1] / v[-length(v)], 1))
}
spent <- function(what, clock) number(sapply(rows, function(r) r[[what]][[clock]]))
for (what in c("building", "preparing")) {
  table <- data.frame(
    N = sapply(rows, function(r) format(r$n_data, big.mark = ",", scientific = FALSE)),
    spent(what, "wall"),
    growth(what, "wall"),
    spent(what, "cpu"),
    growth(what, "cpu")
  )
  names(table) <- c(
    "N", paste0(what, ", s"), "against before", "CPU s", "against before "
  )
  say_table(table)
}
speedup <- million$chains
say(
  "Two chains, two cores against one core, N = 10^6, target >= 1.6: ",
  times(speedup), ", ", yes_no(speedup >= 1.6), "."
)
