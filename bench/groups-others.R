# What do rstanarm, glmmTMB and lme4 say of the same groups, and in what time? On
# data of their size: means and intervals side by side. See README.md.
#
#   Rscript bench/groups-others.R
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "common.R"))
bench_start("groups-others", "Groups: beside rstanarm, glmmTMB and lme4")

interval <- function(draws) {
  q <- apply(draws, 2, quantile, c(0.05, 0.95))
  paste0(fixed(colMeans(draws)), " [", fixed(q[1, ]), ", ", fixed(q[2, ]), "]")
}
normal_interval <- function(mean, se) {
  at <- qnorm(0.95) * se
  paste0(fixed(mean), " [", fixed(mean - at), ", ", fixed(mean + at), "]")
}

# fits: by name, each a function of nothing that returns what fixed effects and
# sds it finds, with 90 percent intervals where it has them.
compare <- function(title, rows, fits) {
  found <- lapply(fits, function(f) {
    out <- NULL
    seconds <- cpu_seconds(out <- suppressWarnings(suppressMessages(f())))
    list(value = out, seconds = seconds)
  })
  table <- data.frame(c(rows, "processor seconds"))
  names(table) <- " "
  for (name in names(found)) {
    table[[name]] <- c(found[[name]]$value, fixed(found[[name]]$seconds, 1))
  }
  say(title, "\n")
  say_table(table)
}

ours <- function(formula, data, ...) {
  function() {
    fit <- tall_glmer(formula, data, ..., seed = 1)
    interval(as.matrix(fit))
  }
}

stan <- function(f, formula, data, n_sd, ...) {
  function() {
    fit <- f(formula, data, ..., refresh = 0, seed = 1, chains = 4, cores = 1)
    draws <- as.matrix(fit)
    n_coef <- length(lme4::fixef(fit))
    group <- grep("^Sigma\\[", colnames(draws), value = TRUE)
    sigma <- draws[, group, drop = FALSE]
    covariance <- if (n_sd == 2) {
      cbind(
        sqrt(sigma[, c(1, 3)]),
        sigma[, 2] / sqrt(sigma[, 1] * sigma[, 3])
      )
    } else {
      sqrt(sigma)
    }
    aux <- intersect("sigma", colnames(draws))
    interval(cbind(draws[, seq_len(n_coef)], covariance, draws[, aux]))
  }
}

tmb <- function(formula, data, ...) {
  function() {
    fit <- glmmTMB::glmmTMB(formula, data, ...)
    table <- summary(fit)$coefficients$cond
    block <- glmmTMB::VarCorr(fit)$cond[[1]]
    sd <- attr(block, "stddev")
    cor <- attr(block, "correlation")
    residual <- attr(glmmTMB::VarCorr(fit)$cond, "sc")
    has_sigma <- family(fit)$family == "gaussian"
    c(
      normal_interval(table[, 1], table[, 2]),
      fixed(c(sd, cor[lower.tri(cor)], if (has_sigma) residual))
    )
  }
}

lme <- function(f, formula, data, ...) {
  function() {
    fit <- f(formula, data, ...)
    table <- summary(fit)$coefficients
    block <- lme4::VarCorr(fit)[[1]]
    cor <- attr(block, "correlation")
    has_sigma <- inherits(fit, "lmerMod")
    c(
      normal_interval(table[, 1], table[, 2]),
      fixed(c(
        attr(block, "stddev"), cor[lower.tri(cor)], if (has_sigma) sigma(fit)
      ))
    )
  }
}

say(
  "Posterior means, or estimates, with 90 percent intervals where there are any;",
  " rstanarm ", format(packageVersion("rstanarm")), ",\nglmmTMB ",
  format(packageVersion("glmmTMB")), ", lme4 ", format(packageVersion("lme4")),
  ". Each with its own default priors, 4,000 draws. glmmTMB and\nlme4 maximise.\n"
)

data(sleepstudy, package = "lme4")
sleep <- Reaction ~ Days + (Days | Subject)
compare(
  "`sleepstudy`, 180 rows, 18 groups: intercept and slope, Gaussian.",
  c("(Intercept)", "Days", "sd(Intercept)", "sd(Days)", "cor", "sigma"),
  list(
    tall_glmer = ours(sleep, sleepstudy),
    rstanarm = stan(rstanarm::stan_glmer, sleep, sleepstudy, 2),
    glmmTMB = tmb(sleep, sleepstudy),
    lme4 = lme(lme4::lmer, sleep, sleepstudy, REML = FALSE)
  )
)

set.seed(1)
n_group <- 100
d <- data.frame(g = factor(rep(seq_len(n_group), each = 10)), x = rnorm(1000))
d$y <- rbinom(1000, 1, plogis(0.3 + 0.5 * d$x + rnorm(n_group)[d$g]))
binary <- y ~ x + (1 | g)
compare(
  "Simulated, 1,000 rows, 100 groups: a logistic intercept; 0.3, 0.5 and 1 are true.",
  c("(Intercept)", "x", "sd(Intercept)"),
  list(
    tall_glmer = ours(binary, d, family = binomial()),
    rstanarm = stan(rstanarm::stan_glmer, binary, d, 1, family = binomial()),
    glmmTMB = tmb(binary, d, family = binomial()),
    lme4 = lme(lme4::glmer, binary, d, family = binomial(), nAGQ = 9)
  )
)
