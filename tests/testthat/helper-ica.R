# Mixtures of logistic sources.

ica_data <- function(n = 1500, k = 3, seed = 4) {
  withr::local_seed(seed)
  s <- matrix(stats::rlogis(n * k), n)
  a <- diag(k) + matrix(stats::runif(k * k, -0.5, 0.5), k)
  list(s = s, a = a, x = as_single(s %*% t(a)))
}

entry_ica <- function(n = 300, k = 2, far = 0) {
  data <- ica_data(n, k)
  x <- as_single(data$x + far)
  prior_sd <- 0.8
  responses <- function(theta) -tanh(x %*% t(matrix(theta, k)) / 2)
  list(
    name = "ica",
    model = model_ica(x, prior_sd),
    # of the sources: the search starts at the identity
    runs = model_ica(x %*% t(solve(data$a)), prior_sd),
    log_lik = function(theta) {
      w <- matrix(theta, k)
      rowSums(stats::dlogis(x %*% t(w), log = TRUE)) +
        determinant(w)$modulus[[1]]
    },
    log_prior = function(theta) {
      sum(stats::dnorm(theta, 0, prior_sd, log = TRUE))
    },
    row_gradient = function(theta) {
      r <- responses(theta)
      r[, rep(seq_len(k), k)] * x[, rep(seq_len(k), each = k)]
    },
    row_hessian = function(theta) {
      slope <- (1 - responses(theta)^2) / 2
      lapply(seq_len(n), function(i) {
        kronecker(tcrossprod(x[i, ]), diag(slope[i, ], k))
      })
    },
    lipschitz = NULL,
    lipschitz_prior = NA,
    blocks = NULL,
    # near the truth minus the Hessian is positive definite
    point = function() as.double(solve(data$a)) + stats::rnorm(k * k) / 20
  )
}
