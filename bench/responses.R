# Reference posteriors of responses with parameters beside their mean, in R's own
# densities: importance sampling about the mode in the coordinates that are
# sampled. Read by accuracy.R.

# density(y, eta, aux): log densities of rows, aux natural, one draw. lower: what
# each auxiliary parameter is above; log_prior(aux): their log density. The
# coefficients' priors are prior_normal(0, scale).
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

# From the mode and the Hessian by differences.
aux_reference <- function(log_density, start, d, natural) {
  set.seed(21)
  mode <- optim(
    start,
    function(theta) -log_density(theta),
    method = "BFGS",
    control = list(reltol = 1e-12, parscale = pmax(abs(start), 0.01))
  )
  hessian <- optimHess(mode$par, function(theta) -log_density(theta))
  moments_about(
    function(theta) apply(theta, 2, log_density),
    mode$par,
    solve(hessian),
    natural = function(theta) {
      theta[-seq_len(d), ] <- natural(theta[-seq_len(d), , drop = FALSE])
      theta
    }
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
