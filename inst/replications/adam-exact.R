# Bieringer et al. (2023): is AdamMCMC exact? A normal, a banana and a mixture with known
# moments, with and without the factor C; and the second case of ?kernel_adam_mcmc. The
# paper has no numbers: settings are ours.
source(system.file("replications", "helpers.R", package = "tallbayes"))

# ---- toys ----
sds <- c(0.4188, 0.5604)
covariance <- outer(sds, sds) * matrix(c(1, 0.5, 0.5, 1), 2)
set.seed(1)
x <- scale(matrix(rnorm(40), 20), scale = FALSE)
normal <- model_gaussian(x, 20 * covariance, prior_covariance = diag(1e9, 2))
banana <- model_density("banana", curvature = 0.5, sd = c(1, 0.5))
mixture <- model_density(
  "mixture",
  dim = 2, means = c(-1, 1), sds = 0.6, weights = c(0.3, 0.7)
)

# Standard deviations, their Monte Carlo errors, and the acceptance rate.
run_toy <- function(model, ..., iter, beta = c(0.9, 0.99), momentum_sd = NULL) {
  exact <- !is.null(momentum_sd)
  kernel <- kernel_adam_mcmc(
    ...,
    sigma_direction = 1,
    beta = beta,
    exact = exact,
    momentum_sd = momentum_sd
  )
  fit <- sg_sample(
    model,
    kernel,
    iter = full(iter, 200) + 1000,
    warmup = 1000,
    thin = full(10, 1),
    chains = 40,
    init = c(0, 0),
    seed = 1
  )
  # chains are independent: their averages give the Monte Carlo error
  draws <- as.array(fit)
  middle <- colMeans(apply(draws, 2:3, mean))
  square <- apply(sweep(draws, 3, middle)^2, 2:3, mean)
  root <- sqrt(colMeans(square))
  c(root, apply(square, 2, sd) / sqrt(40) / (2 * root), mean(fit$chains$acceptance))
}
cases <- list(
  normal = list(normal, learning_rate = 0.05, sigma = 0.3, iter = 20000),
  banana = list(banana, learning_rate = 0.1, sigma = 0.5, iter = 2e5),
  mixture = list(mixture, learning_rate = 0.1, sigma = 0.5, iter = 50000)
)
momentum <- list(normal = c(0.3, 0.3), banana = c(2, 8), mixture = c(2, 8))
found <- once("adam-exact", do.call(rbind, lapply(names(cases), function(name) {
  rbind(
    do.call(run_toy, cases[[name]]),
    do.call(run_toy, c(cases[[name]], list(momentum_sd = momentum[[name]])))
  )
})))
sd_mixture <- sqrt(0.6^2 + 0.3 + 0.7 - (0.7 - 0.3)^2)
truth <- rbind(
  sds, sds,
  c(1, sqrt(0.5^2 + 0.5)), c(1, sqrt(0.5^2 + 0.5)),
  rep(sd_mixture, 2), rep(sd_mixture, 2)
)
toys <- data.frame(
  target = rep(names(cases), each = 2),
  C = c("left out", "exact"),
  `sd 1` = found[, 1],
  truth = truth[, 1],
  `sd 2` = found[, 2],
  truth = truth[, 2],
  `standard errors` = paste(signif(found[, 3], 1), signif(found[, 4], 1), sep = ", "),
  acceptance = found[, 5],
  check.names = FALSE
)
show_table(toys, digits = 4)

# ---- toys-verdict ----
# in standard errors, and in percent
off <- (found[, 1:2] - truth) / found[, 3:4]
short <- function(row) {
  paste(decimals(100 * (found[row, 1:2] / truth[row, ] - 1), 1), collapse = " and ")
}
error_of <- function(row) {
  paste(decimals(100 * found[row, 3:4] / truth[row, ], 1), collapse = " and ")
}
exact_rows <- c(2, 4, 6)
verdict(
  "exactness", all(abs(off[exact_rows, ]) < 4),
  "With C the standard deviations are within ", decimals(max(abs(off[exact_rows, ])), 1),
  " standard errors of the truth on all three targets. Without it they are off by ",
  short(1), " % on the normal (standard errors ", error_of(1), "), ", short(3),
  " % on the banana (", error_of(3), "; with C ", short(4), ", ", error_of(4), ") and ",
  short(5), " % on the mixture (", error_of(5), "; with C ", short(6), ", ", error_of(6), ")."
)

# ---- documented ----
documented <- once("adam-documented", run_toy(
  normal,
  learning_rate = 0.1, sigma = 0.3, iter = 20000, beta = c(0.9, 0.999)
))
# what it prints: C left out, exact, the second case; and what was found here
printed <- rbind(c(0.403, 0.540), c(0.420, 0.561), c(0.393, 0.530))
again <- rbind(found[1:2, ], documented)
verdict(
  "the figures of ?kernel_adam_mcmc",
  all(abs(again[, 1:2] - printed) < 4 * again[, 3:4] + 0.0005),
  "With gamma = 0.1 and beta_2 = 0.999, C left out, the standard deviations are ",
  decimals(documented[[1]], 3), " (", decimals(documented[[3]], 4), ") and ",
  decimals(documented[[2]], 3), " (", decimals(documented[[4]], 4), "); printed there: ",
  paste(decimals(printed[3, ], 3), collapse = " and "), ". With gamma = 0.05 and beta_2 = 0.99 they are, C left out and exact, ",
  paste(decimals(t(again[1:2, 1:2]), 3), collapse = ", "), "; printed there: ",
  paste(decimals(t(printed[1:2, ]), 3), collapse = ", "), "."
)
