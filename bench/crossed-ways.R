# Other ways than sweeps for several grouping factors, on lme4's InstEval: joint
# draws by conjugate gradients after each sweep; the same by sparse Cholesky
# factors (CHOLMOD, through Matrix); and, of a logistic model, Hamiltonian steps
# of all effects, whitened by such a factor at the mode. What a sweep costs is
# C's, and what Matrix does is CHOLMOD's: R adds little to either.
#
#   Rscript bench/crossed-ways.R
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))
library(Matrix)
library(tallbayes)

bench_start(
  "crossed-ways",
  "Several grouping factors: other ways",
  "crossed-ways.R"
)
data("InstEval", package = "lme4")
rows <- InstEval
rows$good <- as.integer(rows$y >= 4)
factors <- c("s", "d", "dept")
x <- model.matrix(~service, rows)
z <- lapply(factors, function(name) t(fac2sparse(rows[[name]])))
n_level <- vapply(z, ncol, 0L)
design <- cbind(Matrix(x, sparse = TRUE), do.call(cbind, z))
of <- rep(seq_along(factors), n_level)
own <- ncol(x) + seq_along(of)
names <- c(colnames(x), paste0("sd_", factors))

# Half Student's priors of standard deviations, as tall_glmer()'s; flat ones of
# coefficients, of which 73,421 rows tell all there is to tell.
log_prior <- function(sd) log(2) + dt(sd / 2.5, 3, log = TRUE)

# A standard deviation given effects whose squares sum to `square`: a slice of
# its logarithm.
draw_sd <- function(sd, square, n) {
  log_density <- function(l) {
    -n * l - square * exp(-2 * l) / 2 + log_prior(exp(l)) + l
  }
  at <- log(sd)
  level <- log_density(at) - rexp(1)
  low <- at - runif(1) * 0.2
  high <- low + 0.2
  while (log_density(low) > level) low <- low - 0.2
  while (log_density(high) > level) high <- high + 0.2
  repeat {
    new <- runif(1, low, high)
    if (log_density(new) > level) {
      return(exp(new))
    }
    if (new < at) low <- new else high <- new
  }
}

precision_of <- function(sd) c(rep(1e-8, ncol(x)), 1 / sd[of]^2)

# Draws of N(Q^-1 b, Q^-1): factor is that of Q.
draw_normal <- function(factor, b) {
  mean <- solve(factor, b, system = "A")
  xi <- solve(factor, rnorm(length(b)), system = "Lt")
  as.numeric(mean + solve(factor, xi, system = "Pt"))
}

# ---- sparse factors, normal rows ---------------------------------------------

by_cholmod <- function(n_draw, n_warmup) {
  products <- forceSymmetric(crossprod(design))
  right <- as.numeric(crossprod(design, rows$y))
  sd <- c(0.3, 0.5, 0.1)
  sigma <- 1.2
  factor <- Cholesky(
    products + Diagonal(x = precision_of(sd)),
    LDL = FALSE,
    super = TRUE
  )
  out <- matrix(0, n_draw, length(names), dimnames = list(NULL, names))
  for (t in seq_len(n_warmup + n_draw)) {
    q <- products / sigma^2 + Diagonal(x = precision_of(sd))
    factor <- update(factor, q)
    theta <- draw_normal(factor, right / sigma^2)
    squares <- tapply(theta[own]^2, of, sum)
    for (k in seq_along(sd)) {
      sd[[k]] <- draw_sd(sd[[k]], squares[[k]], n_level[[k]])
    }
    left <- sum((rows$y - as.numeric(design %*% theta))^2)
    sigma <- sqrt(left / rchisq(1, nrow(rows) - 1))
    if (t > n_warmup) {
      out[t - n_warmup, ] <- c(theta[seq_len(ncol(x))], sd)
    }
  }
  out
}

# ---- Hamiltonian steps, logistic rows ----------------------------------------

by_trajectories <- function(n_draw, n_warmup, step, n_step) {
  y <- rows$good
  sd <- c(0.6, 0.9, 0.2)
  theta <- numeric(ncol(design))
  for (t in 1:10) {
    p <- plogis(as.numeric(design %*% theta))
    q <- forceSymmetric(crossprod(sqrt(p * (1 - p)) * design)) +
      Diagonal(x = precision_of(sd))
    factor <- Cholesky(q, LDL = FALSE, super = TRUE)
    score <- as.numeric(crossprod(design, y - p)) - precision_of(sd) * theta
    theta <- theta + as.numeric(solve(factor, score, system = "A"))
  }
  # from a mode no trajectory is accepted
  theta <- theta + draw_normal(factor, numeric(length(theta)))
  log_density <- function(theta, eta) {
    sum(y * eta - log1p(exp(eta))) - sum(precision_of(sd) * theta^2) / 2
  }
  gradient <- function(theta, eta) {
    as.numeric(crossprod(design, y - plogis(eta))) - precision_of(sd) * theta
  }
  out <- matrix(0, n_draw, length(names), dimnames = list(NULL, names))
  n_accept <- 0
  for (t in seq_len(n_warmup + n_draw)) {
    # momentum p ~ N(0, Q), so that Q^-1 p is a velocity
    xi <- rnorm(length(theta))
    p <- as.numeric(solve(factor, as(factor, "sparseMatrix") %*% xi, "Pt"))
    velocity <- function(p) as.numeric(solve(factor, p, system = "A"))
    eta <- as.numeric(design %*% theta)
    before <- log_density(theta, eta) - sum(p * velocity(p)) / 2
    at <- theta
    own_step <- step * runif(1, 0.8, 1.2)
    p <- p + own_step / 2 * gradient(at, eta)
    for (l in seq_len(n_step)) {
      at <- at + own_step * velocity(p)
      eta <- as.numeric(design %*% at)
      p <- p + (if (l < n_step) own_step else own_step / 2) * gradient(at, eta)
    }
    after <- log_density(at, eta) - sum(p * velocity(p)) / 2
    if (log(runif(1)) < after - before) {
      theta <- at
      n_accept <- n_accept + 1
    }
    squares <- tapply(theta[own]^2, of, sum)
    for (k in seq_along(sd)) {
      sd[[k]] <- draw_sd(sd[[k]], squares[[k]], n_level[[k]])
    }
    if (t > n_warmup) {
      out[t - n_warmup, ] <- c(theta[seq_len(ncol(x))], sd)
    }
  }
  structure(out, acceptance = n_accept / (n_warmup + n_draw))
}

# ---- the table ---------------------------------------------------------------

by_sweeps <- function(family, joint, n_draw, n_warmup) {
  formula <- if (family == "gaussian") y ~ service else good ~ service
  formula <- update(formula, . ~ . + (1 | s) + (1 | d) + (1 | dept))
  fit <- suppressMessages(tall_glmer(
    formula,
    rows,
    family,
    kernel = kernel_gibbs("none", joint),
    iter = n_warmup + n_draw,
    warmup = n_warmup,
    chains = 1,
    seed = 1,
    refresh = 0
  ))
  out <- unclass(fit$draws)[, 1, ]
  out[, c(1, 2, grep("^sd_", colnames(out)))]
}

row_of <- function(name, code) {
  seconds <- cpu_seconds(draws <- code)
  ess <- apply(draws, 2, posterior::ess_basic)
  shown <- paste0(round(ess), " (", fixed(ess / seconds, 1), ")")
  cat(name, "\n")
  data.frame(
    way = name,
    draws = nrow(draws),
    `CPU s` = fixed(seconds, 0),
    rbind(stats::setNames(shown, names)),
    `mean of sd_s` = fixed(mean(draws[, 3]), 3),
    `of sd_d` = fixed(mean(draws[, 4]), 3),
    check.names = FALSE
  )
}

set.seed(1)
say(
  "Effective draws of one chain, and in brackets of a processor second, ",
  "warmup included.\n\n### Normal\n\n"
)
say_table(rbind(
  row_of("sweeps", by_sweeps("gaussian", FALSE, 2000, 200)),
  row_of("and conjugate gradients", by_sweeps("gaussian", TRUE, 1000, 200)),
  row_of("sparse Cholesky factors", by_cholmod(200, 50))
))
say("\n### Logistic\n\n")
say_table(rbind(
  row_of("sweeps", by_sweeps("binomial", FALSE, 2000, 200)),
  row_of("whitened Hamiltonian", by_trajectories(300, 100, 0.25, 6))
))
