# How long does a logistic random intercept take on 10^6 rows in 10^4 groups,
# against lme4::glmer(nAGQ = 1), which has no posterior, and one pass of the log
# likelihood? Prints ratios of one run.
#
#   Rscript bench/groups.R [rows] [groups]

library(tallbayes)

args <- as.numeric(commandArgs(TRUE))
n_row <- if (length(args) > 0) args[[1]] else 1e6
n_group <- if (length(args) > 1) args[[2]] else 1e4

set.seed(1)
d <- data.frame(
  g = sample(n_group, n_row, TRUE),
  x = rnorm(n_row)
)
d$y <- rbinom(n_row, 1, plogis(0.3 + 0.5 * d$x + rnorm(n_group)[d$g]))

ours <- system.time(
  fit <- tall_glmer(y ~ x + (1 | g), d, binomial(), seed = 1, refresh = 0)
)[["elapsed"]]
print(fit)

model <- model_groups(cbind("(Intercept)" = 1, x = d$x), d$y, d$g, nodes = 9)
theta <- c(fixef(fit), log(0.98))
pass <- system.time(
  tallbayes:::row_log_lik(model, theta)
)[["elapsed"]]
cat(sprintf("whole call: %.1f passes of the log likelihood\n", ours / pass))

if (requireNamespace("lme4", quietly = TRUE)) {
  theirs <- system.time(
    ml <- lme4::glmer(y ~ x + (1 | g), d, binomial(), nAGQ = 1)
  )[["elapsed"]]
  print(lme4::fixef(ml))
  print(lme4::VarCorr(ml))
  cat(sprintf("lme4::glmer(nAGQ = 1) / tall_glmer(): %.1f\n", theirs / ours))
} else {
  cat("lme4 is not installed: no ratio to it\n")
}
