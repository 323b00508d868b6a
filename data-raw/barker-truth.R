# Posterior means and standard deviations of the two logistic regressions of the
# vignette on Barker dynamics, prior N(0, I), by exact samplers. From the root of
# the package, with it installed and the full data at hand (see ?tall_data):
#
#   Rscript data-raw/barker-truth.R
#
# Sepsis: importance sampling from a t with 8 degrees of freedom at the mode. The
# likelihood of 88,163 rows makes long chains dear, and the posterior is near normal.
# Arrhythmia: MALA, four long chains. Errors are Monte Carlo standard errors.
library(tallbayes)
source(file.path("inst", "replications", "barker.R"))
options(tallbayes.refresh = 0)

sepsis <- barker_sepsis()
model <- model_glm(sepsis$x, sepsis$y, prior = prior_normal(0, 1))
mode <- find_mode(model)
n <- 20000
df <- 8
set.seed(1)
z <- matrix(rnorm(4 * n), 4) / rep(sqrt(rchisq(n, df) / df), each = 4)
theta <- mode$estimate + t(chol(vcov(mode))) %*% z
log_proposal <- -(df + 4) / 2 * log1p(colSums(z^2) / df)
log_posterior <- tallbayes:::model_evaluate(model, theta)$log_density
weight <- exp(log_posterior - log_proposal - max(log_posterior - log_proposal))
weight <- weight / sum(weight)
cat("sepsis: effective sample size", round(1 / sum(weight^2)), "of", n, "\n")
mean <- drop(theta %*% weight)
shift <- theta - mean
sd <- sqrt(drop(shift^2 %*% weight))
truth <- data.frame(
  data = "sepsis",
  variable = colnames(sepsis$x),
  mean = mean,
  sd = sd,
  mean_error = sqrt(drop(shift^2 %*% weight^2)),
  sd_error = sqrt(drop((shift^2 - sd^2)^2 %*% weight^2)) / (2 * sd)
)

arrhythmia <- barker_arrhythmia()
model <- model_glm(arrhythmia$x, arrhythmia$y, prior = prior_normal(0, 1))
fit <- sg_sample(
  model,
  kernel_mala(0.02, adapt = TRUE),
  iter = 450000,
  warmup = 50000,
  thin = 200,
  chains = 4,
  cores = 2,
  seed = 1
)
print(fit)
draws <- posterior::as_draws_array(fit)
summary <- posterior::summarise_draws(
  draws, "mean", "sd", "mcse_mean", "mcse_sd", "rhat", "ess_bulk"
)
cat("arrhythmia: R-hat", max(summary$rhat), ", ESS", min(summary$ess_bulk), "\n")
truth <- rbind(truth, data.frame(
  data = "arrhythmia",
  variable = summary$variable,
  mean = summary$mean,
  sd = summary$sd,
  mean_error = summary$mcse_mean,
  sd_error = summary$mcse_sd
))
numbers <- vapply(truth, is.numeric, TRUE)
truth[numbers] <- lapply(truth[numbers], signif, 6)
write.csv(truth, file.path("inst", "replications", "barker-truth.csv"), row.names = FALSE)
