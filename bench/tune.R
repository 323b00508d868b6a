# Tuning by successive halving on the sepsis data, at the settings of Mauri & Zanella
# (2024): step sizes chosen against those printed in the paper, and against every arm
# run in full.
#
#   TALLBAYES_DATA=<folder> Rscript bench/tune.R
source(file.path(
  dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))),
  "common.R"
))

data <- tall_data("sepsis")
set.seed(123)
train <- data[sample(nrow(data), as.integer(0.8 * nrow(data))), ]
x <- cbind(
  as.matrix(train[c("age_years", "sex_0male_1female", "episode_number")]),
  const = 1
)
model <- model_glm(
  x, train$hospital_outcome_1alive_0dead, "bernoulli", prior = prior_normal(0, 1)
)
mode <- find_mode(model)
sd <- sqrt(diag(vcov(mode)))
n <- 881
steps <- function(from, to) 10^seq(log10(from), log10(to), length.out = 10)
kernels <- list(
  SGLD = list(
    make = function(sigma) kernel_sgld(sigma^2), sigma = steps(1e-5, 5e-4),
    printed = 3.24e-4
  ),
  SGBD = list(
    make = function(sigma) kernel_sgbd(sigma), sigma = steps(1e-4, 5e-3),
    printed = 1.36e-3
  )
)
settings <- list(
  # started at the mode, scored by all draws, in the units of the parameters
  "as the paper" = list(
    metric = "fssd", covariance = NULL, points = 4000, init = mode$estimate,
    iterations = 20000, seeds = 1
  ),
  # the defaults of sg_tune()
  "default" = list(
    metric = "ksd", covariance = "mode", points = 100, init = NULL,
    iterations = 200000, seeds = 1:3
  )
)

choose <- function(kernel, setting, seed) {
  sg_tune(
    model, kernel$make, data.frame(sigma = kernel$sigma),
    metric = setting$metric, covariance = setting$covariance,
    points = setting$points, init = setting$init,
    budget = setting$iterations * n,
    gradient = gradient_simple(), subsample = subsample_uniform(n, replace = FALSE),
    seed = seed
  )$best$sigma
}

# Brute force: every arm in a run of 100,000 iterations, from a draw of the normal
# approximation; its error against that approximation, root mean square over means
# (in sds) and sds (relative).
error <- function(kernel, sigma) {
  fit <- sg_sample(
    model, kernel$make(sigma), gradient_simple(),
    subsample_uniform(n, replace = FALSE),
    iter = 1e5, warmup = 1e4, thin = 90, chains = 1, seed = 7
  )
  theta <- as.matrix(fit)
  off <- (colMeans(theta) - mode$estimate) / sd
  wide <- apply(theta, 2, stats::sd) / sd - 1
  sqrt(mean(c(off, wide)^2))
}

bench_start("tune", "Tuning by successive halving: sepsis, 10 step sizes")
say(
  "n = ", n, " of ", model$n_data, " rows, simple gradients, eta = 3. As the paper: ",
  "20,000 iterations for all arms together, FSSD at 100 locations in the units of the ",
  "parameters, all draws scored, from the mode. Default: KSD in posterior standard ",
  "deviations, 100 draws scored, from 3 sds off the mode in each principal direction; ",
  "200,000 iterations, 3 seeds. Brute force: the arm with the least error after 100,000 ",
  "iterations of its own.\n"
)
rows <- list()
errors <- list()
for (name in names(kernels)) {
  kernel <- kernels[[name]]
  error_of <- vapply(kernel$sigma, function(sigma) error(kernel, sigma), 0)
  best <- which.min(error_of)
  for (label in names(settings)) {
    setting <- settings[[label]]
    chosen <- vapply(setting$seeds, function(seed) choose(kernel, setting, seed), 0)
    at <- match(chosen, kernel$sigma)
    rows[[length(rows) + 1]] <- data.frame(
      kernel = name,
      setting = label,
      chosen = paste(unique(number(sort(chosen))), collapse = " "),
      printed = if (label == "default") "" else number(kernel$printed),
      error = paste(unique(number(error_of[at], 2)), collapse = " "),
      "brute force" = number(kernel$sigma[[best]]),
      "its error" = number(error_of[[best]], 2),
      check.names = FALSE
    )
  }
  errors[[name]] <- data.frame(
    kernel = name, sigma = number(kernel$sigma), error = number(error_of, 2)
  )
}
say_table(do.call(rbind, rows))
say("Error of every arm after 100,000 iterations:\n")
say_table(do.call(rbind, errors))
