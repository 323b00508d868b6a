# Reference posteriors of responses with parameters beside their mean, in R's own
# densities: importance sampling about the mode in the coordinates that are
# sampled. Read by accuracy.R.

# density(y, eta, aux): log densities of rows, aux natural, one draw. lower: what
# each auxiliary parameter is above; log_prior(aux): their log density. The coefficients' priors are prior_normal(0, scale).
aux_problem <- function(
  x,
  y,
  family,
  density,
  prior_aux,
  log_prior,
  lower = 0,
  scale = 2.5
) {
  d <- ncol(x)
  model <- function() {
    model_glm(x, y, family, prior_normal(0, scale), prior_aux = prior_aux)
  }
  natural <- function(s) lower + exp(s)
  log_density <- function(theta) {
    beta <- theta[seq_len(d)]
    s <- theta[-seq_len(d)]
    value <- natural(s)
    sum(density(y, drop(x %*% beta), value)) -
      sum(beta^2) / (2 * scale^2) + log_prior(value) + sum(s)
  }
  list(
    x = x,
    y = y,
    family = family$family,
    fit = function(...) sg_sample(model(), ...),
    reference = function() {
      aux_reference(log_density, find_mode(model())$estimate, d, natural)
    }
  )
}

aux_reference <- function(log_density, start, d, natural, n = 1000, batches = 8) {
  set.seed(21)
  mode <- optim(
    start,
    function(theta) -log_density(theta),
    method = "BFGS",
    control = list(reltol = 1e-12, parscale = pmax(abs(start), 0.01))
  )
  covariance <- solve(optimHess(mode$par, function(theta) -log_density(theta)))
  p <- length(start)
  df <- 20
  runs <- replicate(batches, simplify = FALSE, {
    draws <- proposal_draws(n, p, df)
    theta <- mode$par + t(chol(covariance)) %*% t(draws$z)
    log_weight <- apply(theta, 2, log_density) - draws$log_density
    weight <- exp(log_weight - max(log_weight))
    weight <- weight / sum(weight)
    theta[-seq_len(d), ] <- natural(theta[-seq_len(d), , drop = FALSE])
    mean <- drop(theta %*% weight)
    list(
      mean = mean,
      sd = sqrt(drop((theta - mean)^2 %*% weight)),
      efficiency = 1 / (n * sum(weight^2))
    )
  })
  means <- sapply(runs, function(r) r$mean)
  sds <- sapply(runs, function(r) r$sd)
  sd <- rowMeans(sds)
  error <- function(x) apply(x, 1, stats::sd) / sqrt(batches)
  list(
    mean = rowMeans(means),
    sd = sd,
    error_mean = error(means) / sd,
    error_sd = error(sds) / sd,
    efficiency = mean(sapply(runs, function(r) r$efficiency)),
    draws = n * batches,
    how = "importance sampling"
  )
}

exponential_density <- function(rate) {
  function(aux) -rate * aux
}

response_problems <- list(
  # tokens of documents by newsgroup
  newsgroups_negbin = function() {
    data <- tall_data("newsgroups")
    group <- factor(data$docs$group)
    y <- as.numeric(tapply(data$counts$count, factor(
      data$counts$doc, data$docs$doc), sum))
    aux_problem(
      model.matrix(~group), y, neg_binomial_2(),
      function(y, eta, aux) dnbinom(y, size = aux, mu = exp(eta), log = TRUE),
      prior_exponential(1), exponential_density(1)
    )
  },
  # surfaces of proteins
  casp_gamma = function() {
    data <- tall_data("casp")
    x <- cbind("(Intercept)" = 1, scale(as.matrix(data[c("RMSD", "F3", "F6")])))
    aux_problem(
      x, data$F1 / 1000, gamma_regression(),
      function(y, eta, aux) dgamma(y, aux, aux / exp(eta), log = TRUE),
      prior_exponential(0.01), exponential_density(0.01)
    )
  },
  casp_beta = function() {
    data <- tall_data("casp")
    x <- cbind("(Intercept)" = 1, scale(as.matrix(data[c("RMSD", "F1", "F6")])))
    aux_problem(
      x, data$F3, beta_regression(),
      function(y, eta, aux) {
        p <- plogis(eta)
        dbeta(y, aux * p, aux * (1 - p), log = TRUE)
      },
      prior_exponential(0.001), exponential_density(0.001)
    )
  },
  # daily returns
  sp500_student = function() {
    r <- MASS::SP500
    x <- cbind("(Intercept)" = 1, before = r[-length(r)])
    aux_problem(
      x, r[-1], student(),
      function(y, eta, aux) {
        dt((y - eta) / aux[[1]], aux[[2]], log = TRUE) - log(aux[[1]])
      },
      list(sigma = prior_exponential(1), nu = prior_gamma(2, 0.1)),
      function(aux) -aux[[1]] + dgamma(aux[[2]], 2, 0.1, log = TRUE),
      lower = c(0, 1)
    )
  }
)
