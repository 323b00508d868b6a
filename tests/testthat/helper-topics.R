# Topic models: exact answers for documents so small that every assignment of
# topics to tokens can be written down.

# log p(document | theta), the topic proportions summed out: over all K^n
# assignments. words: a number for each token.
enumerated_log_lik <- function(theta, words, n_topic, alpha) {
  phi <- matrix(abs(theta), n_topic)
  phi <- phi / rowSums(phi)
  n <- length(words)
  grid <- as.matrix(expand.grid(rep(list(seq_len(n_topic)), n)))
  log_p <- apply(grid, 1, function(z) {
    tally <- tabulate(z, n_topic)
    sum(log(phi[cbind(z, words)])) +
      sum(lgamma(alpha + tally) - lgamma(alpha)) +
      lgamma(n_topic * alpha) - lgamma(n_topic * alpha + n)
  })
  max(log_p) + log(sum(exp(log_p - max(log_p))))
}

# Its gradient: E_z[n_kw / theta_kw - n_k. / theta_k.], times the sign of theta.
enumerated_gradient <- function(theta, words, n_topic, alpha) {
  n_word <- length(theta) / n_topic
  t <- matrix(abs(theta), n_topic)
  phi <- t / rowSums(t)
  grid <- as.matrix(expand.grid(rep(list(seq_len(n_topic)), length(words))))
  log_p <- apply(grid, 1, function(z) {
    sum(log(phi[cbind(z, words)])) + sum(lgamma(alpha + tabulate(z, n_topic)))
  })
  p <- exp(log_p - max(log_p))
  p <- p / sum(p)
  expected <- matrix(0, n_topic, n_word)
  for (row in seq_along(p)) {
    for (i in seq_along(words)) {
      at <- cbind(grid[row, i], words[[i]])
      expected[at] <- expected[at] + p[[row]]
    }
  }
  gradient <- expected / t - rowSums(expected) / rowSums(t)
  as.double(gradient * ifelse(theta < 0, -1, 1))
}

tiny_documents <- list(c(1, 1, 2, 4), c(3, 3, 3), c(2, 3, 4, 4, 1), 2)

tiny_frame <- function(documents = tiny_documents) {
  data.frame(
    doc = rep(seq_along(documents), lengths(documents)),
    word = unlist(documents),
    count = 1
  )
}

entry_lda <- function(
  beta = 1,
  n_topic = 2,
  alpha = 0.4,
  gibbs_sweeps = 20000
) {
  gradients <- function(theta) {
    t(vapply(
      tiny_documents,
      function(words) enumerated_gradient(theta, words, n_topic, alpha),
      numeric(length(theta))
    ))
  }
  model <- function(gibbs_sweeps) {
    model_lda(
      tiny_frame(),
      topics = n_topic,
      alpha = alpha,
      beta = beta,
      gibbs_sweeps = gibbs_sweeps
    )
  }
  list(
    name = "lda",
    # E_z is a mean over Gibbs sweeps: exact sums do not hold to rounding
    is_estimated = "its gradient is estimated by Gibbs sampling",
    model = model(gibbs_sweeps),
    runs = model(5),
    log_lik = function(theta) {
      vapply(
        tiny_documents,
        function(words) enumerated_log_lik(theta, words, n_topic, alpha),
        0
      )
    },
    log_prior = function(theta) {
      sum(stats::dgamma(abs(theta), beta, 1, log = TRUE))
    },
    row_gradient = gradients,
    lipschitz = NULL,
    lipschitz_prior = NA,
    point = function() {
      stats::rgamma(4 * n_topic, 2) * sample(c(-1, 1), 4 * n_topic, TRUE)
    }
  )
}
