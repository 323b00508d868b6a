# Topic models: exact answers for documents so small that every assignment of
# topics to tokens can be written down.

# Coordinates x -> theta, and d theta / dx.
lda_maps <- list(
  natural = list(theta = exp, slope = exp),
  mean = list(theta = abs, slope = function(x) ifelse(x < 0, -1, 1))
)

# log p(document | theta), the topic proportions summed out: over all K^n
# assignments. words: a number for each token.
enumerated_log_lik <- function(theta, words, n_topic, alpha) {
  phi <- matrix(theta, n_topic)
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

# Its gradient in theta: E_z[n_kw / theta_kw - n_k. / theta_k.].
enumerated_gradient <- function(theta, words, n_topic, alpha) {
  n_word <- length(theta) / n_topic
  t <- matrix(theta, n_topic)
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
  as.double(expected / t - rowSums(expected) / rowSums(t))
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
  gibbs_sweeps = 20000,
  coordinates = "natural"
) {
  map <- lda_maps[[coordinates]]
  gradients <- function(x) {
    t(vapply(
      tiny_documents,
      function(words) {
        map$slope(x) * enumerated_gradient(map$theta(x), words, n_topic, alpha)
      },
      numeric(length(x))
    ))
  }
  model <- function(gibbs_sweeps) {
    model_lda(
      tiny_frame(),
      topics = n_topic,
      alpha = alpha,
      beta = beta,
      gibbs_sweeps = gibbs_sweeps,
      coordinates = coordinates
    )
  }
  list(
    name = "lda",
    # E_z is a mean over Gibbs sweeps: exact sums do not hold to rounding
    is_estimated = "its gradient is estimated by Gibbs sampling",
    model = model(gibbs_sweeps),
    runs = model(5),
    log_lik = function(x) {
      vapply(
        tiny_documents,
        function(words) enumerated_log_lik(map$theta(x), words, n_topic, alpha),
        0
      )
    },
    log_prior = function(x) {
      sum(stats::dgamma(map$theta(x), beta, 1, log = TRUE)) +
        if (coordinates == "natural") sum(x) else 0
    },
    row_gradient = gradients,
    natural = map$theta,
    lipschitz = NULL,
    lipschitz_prior = NA,
    point = function() {
      theta <- stats::rgamma(4 * n_topic, 2)
      if (coordinates == "natural") {
        return(log(theta))
      }
      theta * sample(c(-1, 1), 4 * n_topic, TRUE)
    }
  )
}

# Documents of one token each: P(z = k | w) needs no sampler, sums are exact.
one_token_model <- function(coordinates, beta = 1) {
  model_lda(
    data.frame(doc = 1:5, word = c(1, 2, 3, 1, 2), count = 1),
    topics = 2,
    alpha = 0.4,
    beta = beta,
    coordinates = coordinates
  )
}

# Three topics of four words each.
known_topics <- function(n_doc, seed = 1) {
  withr::local_seed(seed)
  topic <- kronecker(diag(3), matrix(0.22, 1, 4)) + 0.01
  topic <- topic / rowSums(topic)
  eta <- matrix(stats::rgamma(3 * n_doc, 0.2), n_doc)
  eta <- eta / rowSums(eta)
  dtm <- t(apply(eta %*% topic, 1, function(p) stats::rmultinom(1, 40, p)))
  dimnames(dtm) <- list(NULL, letters[1:12])
  list(dtm = dtm, eta = eta, topic = topic)
}

# A fit of these, too short to be right.
quick_topics <- function(data, ...) {
  tall_topics(
    data$dtm,
    k = 3,
    train_iter = 100,
    iter = 40,
    seed = 1,
    refresh = 0,
    ...
  )
}
