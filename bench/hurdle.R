# What does a hurdle model of 659,404 counts cost, and is it right?
#
#   Rscript bench/hurdle.R
#
# Counts with more zeros than Poisson ones, twelve columns and a factor of 20
# levels in both predictors; coefficients beside those that made them, and
# beside glmmTMB on a tenth of the rows, where it is installed. 3 minutes.
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))
bench_start("hurdle", "A hurdle model of many counts")

set.seed(1)
n <- 659404
x <- matrix(rnorm(10 * n), n, dimnames = list(NULL, paste0("x", 1:10)))
d <- data.frame(x, g = factor(sample(20, n, TRUE)))
beta <- c(0.5, round(rnorm(10, 0, 0.15), 2))
gamma <- c(0.8, round(rnorm(10, 0, 0.3), 2))
b <- rnorm(20, 0, 0.2)
eta <- drop(cbind(1, x) %*% beta) + (b - b[[1]])[d$g]
h <- plogis(drop(cbind(1, x) %*% gamma))
rate <- exp(eta)
above <- pmax(qpois(runif(n, exp(-rate), 1), rate), 1)
d$y <- ifelse(runif(n) < h, 0, above)
terms <- paste(c(colnames(x), "g"), collapse = " + ")
formula <- list(as.formula(paste("y ~", terms)), as.formula(paste("hu ~", terms)))


cpu <- function(code) sum(system.time(code)[c(1, 2, 4, 5)])
seconds <- replicate(3, cpu(fit <<- tall_glm(formula, d, hurdle_poisson(), seed = 1)))
say(format(n, big.mark = ","), " rows, ", round(100 * mean(d$y == 0)), " % zeros, 60 coefficients; CPU s, median of three: ", format(round(median(seconds), 1)), "\n")
ess <- posterior::summarise_draws(posterior::as_draws(fit), "rhat", "ess_bulk")
say("R-hat up to ", format(round(max(as.numeric(ess$rhat)), 3), nsmall = 3), ", effective draws from ", round(min(as.numeric(ess$ess_bulk))), " of 4,000. Rows a step: ", signif(mean(fit$counts$sizes), 2), " of counts, ", signif(mean(fit$zeros$sizes), 2), " of zeros.\n")
at <- c(colnames(x), paste0("hu_", colnames(x)))
z <- (coef(fit)[at] - c(beta[-1], gamma[-1])) / sqrt(diag(vcov(fit)))[at]
say("Twenty coefficients beside those that made the data: the sum of squared z is ", format(round(sum(z^2), 1)), ", the largest ", format(round(max(abs(z)), 1)), ".\n")

if (requireNamespace("glmmTMB", quietly = TRUE)) {
  some <- d[seq_len(n / 10), ]
  theirs <- cpu(
    other <- glmmTMB::glmmTMB(formula[[1]], some,
      ziformula = as.formula(paste("~", terms)), family = glmmTMB::truncated_poisson())
  )
  ours <- cpu(tall_glm(formula, some, hurdle_poisson(), seed = 1))
  say("A tenth of the rows: glmmTMB ", round(theirs, 1), " CPU s, here ", round(ours, 1), ".\n")
} else {
  say("glmmTMB is not installed.\n")
}
