# Time of a step of Barker dynamics. See README.md.
#
#   Rscript bench/barker.R [rounds]
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "common.R"))
rounds <- if (length(commandArgs(TRUE)) > 0) as.integer(commandArgs(TRUE)[[1]]) else 9
source_folder <- normalizePath(file.path(bench_folder(), "..", "src"))
compile_c("draws.c", flags = paste0("-O2 -I", source_folder))
bench_start("barker", "Time of a step of Barker dynamics, one core")

# Seconds of an iteration: a long run less a short one.
ours <- function(target, kernel, start, iters, ..., thin = 10) {
  run <- function(iter) {
    cpu_seconds(sg_sample(
      target, kernel, ...,
      iter = iter, warmup = 0, thin = thin, chains = 1, cores = 1, seed = 1,
      init = start
    ))
  }
  function() (run(iters[[2]]) - run(iters[[1]])) / diff(iters)
}

# A row of a table of ratios.
verdict <- function(label, value, limit, at_least) {
  data.frame(
    ratio = label,
    wanted = paste(if (at_least) "at least" else "at most", limit),
    measured = number(value),
    met = yes_no(if (at_least) value >= limit else value <= limit)
  )
}

# ---- against a plain R loop, sepsis ------------------------------------------

sepsis <- tall_data("sepsis")
names(sepsis) <- c("age", "sex", "episode", "y")
set.seed(123)
train <- sepsis[sample(nrow(sepsis), as.integer(0.8 * nrow(sepsis))), ]
train$const <- 1
covariates <- c("age", "sex", "episode", "const")
n_data <- nrow(train)
n <- floor(0.01 * n_data)
model <- model_glm(as.matrix(train[covariates]), train$y, prior = prior_normal(0, 1))
mode <- find_mode(model)
sigma <- 7.5e-4

# As a statistician would write it, and as the authors of the method did: the
# minibatch is a data frame, and apply() walks over its rows for the gradient of
# each observation.
gradient_of <- function(data, theta) {
  if (is.data.frame(data)) {
    x <- as.matrix(data[, names(data) != "y"])
    y <- data$y
    return(drop(t(x) %*% (y - 1 / (1 + exp(-x %*% theta)))))
  }
  x <- data[names(data) != "y"]
  x * (data[["y"]] - 1 / (1 + exp(-sum(x * theta))))
}
plain <- function(corrected, iter) {
  table <- train[c(covariates, "y")]
  function() {
    theta <- mode$estimate
    draws <- matrix(NA_real_, iter, 4)
    tau <- rep(0, 4)
    cpu_seconds(for (t in seq_len(iter)) {
      batch <- table[sample(n_data, n), ]
      if (corrected) {
        rows <- t(apply(batch, 1, gradient_of, theta = theta))
        gradient <- n_data / n * colSums(rows) - theta
        spread <- n_data / sqrt(n) * sqrt((n_data - n) / n_data) * apply(rows, 2, sd)
        tau <- 0.9 * tau + 0.1 * spread
        noise <- tau / (1 - 0.9^t)
      } else {
        gradient <- n_data / n * gradient_of(batch, theta) - theta
      }
      z <- rnorm(4, sigma, 0.1 * sigma)
      if (corrected) {
        room <- 1.702^2 - noise^2 * z^2
        scale <- ifelse(room > 0, 1.702 / sqrt(pmax(room, 0)), Inf)
        p <- 1 / (1 + exp(-z * gradient * scale))
      } else {
        p <- 1 / (1 + exp(-z * gradient))
      }
      theta <- theta + z * ifelse(runif(4) < p, 1, -1)
      draws[t, ] <- theta
    }) / iter
  }
}

batches <- subsample_uniform(n, replace = FALSE)
tabular <- interleave(
  list(
    vanilla = ours(
      model, kernel_sgbd(sigma), mode$estimate, c(1e3, 2e4),
      gradient = gradient_simple(), subsample = batches
    ),
    corrected = ours(
      model, kernel_sgbd(sigma, "corrected"), mode$estimate, c(1e3, 2e4),
      gradient = gradient_simple(), subsample = batches
    ),
    plain_vanilla = plain(FALSE, 1000),
    plain_corrected = plain(TRUE, 60)
  ),
  rounds
)
say(
  "Sepsis, N = ", format(n_data, big.mark = ","), ", d = 4, n = ", n,
  " without replacement; medians of ", rounds,
  "\ninterleaved rounds, processor seconds.\n"
)
micro <- function(name) number(1e6 * median(tabular[, name]))
say_table(data.frame(
  variant = c("vanilla", "corrected"),
  "microseconds, ours" = c(micro("vanilla"), micro("corrected")),
  "microseconds, plain R" = c(micro("plain_vanilla"), micro("plain_corrected")),
  check.names = FALSE
))
say("")
say_table(rbind(
  verdict("plain R / ours, vanilla", ratio(tabular, "plain_vanilla", "vanilla"), 40, TRUE),
  verdict("plain R / ours, corrected", ratio(tabular, "plain_corrected", "corrected"), 800, TRUE),
  verdict("corrected / vanilla", ratio(tabular, "corrected", "vanilla"), 1.4, FALSE)
))

# ---- the step alone, d = 100,000 ---------------------------------------------

d <- 1e5
cheap <- model_density("normal", dim = d)
step <- function(kernel) {
  one <- ours(cheap, kernel, numeric(d), c(100, 600), keep = "none", thin = 100)
  function() one() / d
}
alone <- interleave(
  list(
    norm = function() .Call("draws_time", 40000, FALSE),
    draws = function() .Call("draws_time", 40000, TRUE),
    sgld = step(kernel_sgld(0.01)),
    vanilla = step(kernel_sgbd(0.1)),
    normal = step(kernel_sgbd(0.1, noise = "normal")),
    corrected = step(kernel_sgbd(0.1, "corrected")),
    extreme = step(kernel_sgbd(0.1, "extreme")),
    coordinatewise = step(kernel_sgbd(rep(0.1, d)))
  ),
  rounds
)
say(
  "\n## The step alone\n\n`model_density(\"normal\", dim = 1e5)`: a gradient of one ",
  "multiplication. Everything is\nincluded: gradient, checks, diagnostics.\n"
)
say_table(data.frame(
  what = c(
    "one normal", "one normal, one uniform", "SGLD", "SGBD", "SGBD, normal increments",
    "SGBD, corrected", "SGBD, extreme", "SGBD, a sigma for each coordinate"
  ),
  "ns per coordinate" = number(1e9 * apply(alone, 2, median)),
  check.names = FALSE
))
say("")
say_table(rbind(
  verdict("SGBD / SGLD", ratio(alone, "vanilla", "sgld"), 2, FALSE),
  verdict(
    "SGBD without the gradient / one normal and one uniform",
    median((alone[, "vanilla"] - alone[, "sgld"] + alone[, "norm"]) / alone[, "draws"]),
    1.8,
    FALSE
  )
))
say(
  "\nWithout the gradient: less what SGLD takes beyond its one normal, which is the gradient,\n",
  "the checks of the state and an update. With them the second ratio is ",
  number(ratio(alone, "vanilla", "draws")), "."
)
