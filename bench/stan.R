# Effective draws per second against Stan's NUTS. See README.md.
#
#   Rscript bench/stan.R [NUTS iterations]
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))
iter <- if (length(commandArgs(TRUE)) > 0) as.integer(commandArgs(TRUE)[[1]]) else 600
bench_start("stan", "Effective draws per second: logistic, N = 100,000, d = 20, one core")
if (!requireNamespace("rstan", quietly = TRUE)) {
  say("rstan is not installed: skipped.")
  quit()
}

n_data <- 1e5
d <- 20
set.seed(1)
x <- matrix(rnorm(n_data * d), n_data)
y <- as.integer(runif(n_data) < plogis(x %*% seq(-0.5, 0.5, length.out = d)))

code <- "
data {
  int<lower=0> N;
  int<lower=1> D;
  matrix[N, D] x;
  int<lower=0, upper=1> y[N];
}
parameters {
  vector[D] beta;
}
model {
  beta ~ normal(0, 2.5);
  y ~ bernoulli_logit_glm(x, 0, beta);
}"
# Debian keeps Boost's headers outside of the package BH
if (!nzchar(system.file("include", package = "BH")) && dir.exists("/usr/include/boost")) {
  rstan::rstan_options(boost_lib = "/usr/include")
}
compiled <- rstan::stan_model(model_code = code)

least_ess <- function(draws) {
  draws <- posterior::as_draws_array(draws)
  draws <- posterior::subset_draws(draws, variable = setdiff(posterior::variables(draws), "lp__"))
  each <- posterior::summarise_draws(draws, "ess_bulk", "ess_tail")
  min(each$ess_bulk, each$ess_tail)
}

ours <- function(seed, ...) {
  # from the matrix to the draws: model, mode, bounds, pilot, chains
  seconds <- system.time(
    fit <- sg_sample(
      model_glm(x, y, "bernoulli", prior_normal(0, 2.5)), ..., seed = seed
    )
  )
  ess <- least_ess(fit$draws)
  wall <- seconds[["elapsed"]]
  cpu <- sum(seconds[c("user.self", "sys.self")])
  list(
    fit = fit, ess = ess, wall = wall, cpu = cpu,
    rate = ess / wall, cpu_rate = ess / cpu
  )
}

nuts <- function() {
  seconds <- system.time(
    fit <- rstan::sampling(
      compiled, list(N = n_data, D = d, x = x, y = y),
      chains = 1, iter = iter, refresh = 0, seed = 1
    )
  )
  ess <- least_ess(as.array(fit))
  wall <- seconds[["elapsed"]]
  cpu <- sum(seconds[c("user.self", "sys.self")])
  list(
    fit = fit, ess = ess, wall = wall, cpu = cpu,
    rate = ess / wall, cpu_rate = ess / cpu
  )
}

long <- function(seed) ours(seed, iter = 11000, warmup = 1000)
before <- lapply(1:5, ours)
long_before <- lapply(1:3, long)
stan <- nuts()
runs <- c(before, lapply(6:10, ours))
long_runs <- c(long_before, lapply(4:6, long))
middle <- function(runs, what) median(sapply(runs, function(r) r[[what]]))
row <- function(name, runs) {
  data.frame(
    sampler = name,
    "least ESS" = round(middle(runs, "ess")),
    seconds = number(middle(runs, "wall")),
    "ESS / s" = number(middle(runs, "rate")),
    "CPU s" = number(middle(runs, "cpu")),
    "ESS / CPU s" = number(middle(runs, "cpu_rate")),
    check.names = FALSE
  )
}

say("Least of bulk and tail ESS over the parameters, per second of the whole call\n(warm-up and preprocessing included; Stan's compilation not). Calls of tallbayes\n(4 chains on one core), half of them before and half after one NUTS chain;\nmedians of ten default calls and of six with iter = 11000, warmup = 1000.\n")
say_table(rbind(
  row("tallbayes, default", runs),
  row("tallbayes, 4 x 10,000 draws", long_runs),
  row(paste0("NUTS, ", iter, " iterations"), list(stan))
))
gains <- function(name, runs, target) {
  gain <- middle(runs, "cpu_rate") / stan$cpu_rate
  say(
    "- ", name, ", CPU seconds: ", times(gain, 0), " (", target,
    " wanted): ", yes_no(gain >= target), "; wall time ",
    times(middle(runs, "rate") / stan$rate, 0), "."
  )
}
gains("default", runs, 600)
gains("4 x 10,000 draws", long_runs, 2000)
say("\nThe plan: ", runs[[1]]$fit$plan, ".\n")

# that both sampled the same posterior
a <- posterior::as_draws_matrix(runs[[1]]$fit$draws)
b <- as.matrix(stan$fit)[, seq_len(d)]
difference <- (colMeans(a) - colMeans(b)) / apply(b, 2, sd)
say("Largest difference of means: ", fixed(max(abs(difference))), " posterior sds.")
