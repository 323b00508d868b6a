# Networks by their formulas, in plain R, row by row.

# f of every row (n x outputs) and what went through: lists of (a, 1) and z.
plain_network <- function(x, theta, widths, activation) {
  phi <- switch(
    activation,
    tanh = tanh,
    relu = function(z) pmax(z, 0),
    softplus = function(z) ifelse(z > 30, z, log1p(exp(pmin(z, 30))))
  )
  a <- x
  inputs <- list()
  weights <- list()
  z <- list()
  n_layer <- length(widths) - 1
  for (l in seq_len(n_layer)) {
    shape <- c(widths[[l + 1]], widths[[l]] + 1)
    weights[[l]] <- matrix(theta[seq_len(prod(shape))], shape[[1]])
    theta <- theta[-seq_len(prod(shape))]
    inputs[[l]] <- cbind(a, 1)
    z[[l]] <- inputs[[l]] %*% t(weights[[l]])
    a <- if (l < n_layer) phi(z[[l]]) else z[[l]]
  }
  list(f = a, inputs = inputs, z = z, weights = weights)
}

# n x parameters, without log sigma: chain rule, one row after the other.
plain_row_gradients <- function(x, theta, widths, activation, error) {
  slope <- switch(
    activation,
    tanh = function(z) 1 - tanh(z)^2,
    relu = function(z) as.double(z > 0),
    softplus = stats::plogis
  )
  net <- plain_network(x, theta, widths, activation)
  d <- error(net$f)
  t(vapply(
    seq_len(nrow(x)),
    function(i) {
      delta <- d[i, ]
      out <- list()
      for (l in rev(seq_along(net$z))) {
        out[[l]] <- as.double(outer(delta, net$inputs[[l]][i, ]))
        if (l > 1) {
          w <- net$weights[[l]]
          back <- drop(crossprod(w[, -ncol(w), drop = FALSE], delta))
          delta <- back * slope(net$z[[l - 1]][i, ])
        }
      }
      unlist(out)
    },
    numeric(length(theta))
  ))
}

# sigma: a number, or NULL where it is sampled.
entry_network <- function(
  activation,
  likelihood,
  layers = c(4, 3),
  sigma = NULL,
  prior = prior_normal(0.1, 1.5, autoscale = TRUE),
  n_data = 23,
  n_input = 2,
  far = 0,
  seed = 21
) {
  withr::local_seed(seed)
  x <- as_single(matrix(stats::rnorm(n_data * n_input), n_data) + far)
  n_class <- 3
  y <- switch(
    likelihood,
    gaussian = stats::rnorm(n_data),
    bernoulli = stats::rbinom(n_data, 1, 0.5),
    categorical = rep_len(seq_len(n_class), n_data)
  )
  model <- model_network(
    x,
    y,
    layers,
    activation,
    likelihood,
    prior,
    sigma = if (is.null(sigma)) "sampled" else sigma,
    prior_aux = prior_exponential(2)
  )
  samples_sigma <- likelihood == "gaussian" && is.null(sigma)
  widths <- c(n_input, layers, if (likelihood == "categorical") n_class else 1)
  n_weight <- sum((widths[-length(widths)] + 1) * widths[-1])
  one_hot <- if (likelihood == "categorical") diag(n_class)[y, ]
  weights_of <- function(theta) theta[seq_len(n_weight)]
  sd_of <- function(theta) {
    if (samples_sigma) exp(theta[[n_weight + 1]]) else sigma
  }
  outputs <- function(theta) {
    plain_network(x, weights_of(theta), widths, activation)$f
  }
  list(
    name = "network",
    model = model,
    log_lik = function(theta) {
      f <- outputs(theta)
      switch(
        likelihood,
        gaussian = stats::dnorm(y, f[, 1], sd_of(theta), log = TRUE),
        bernoulli = stats::dbinom(y, 1, stats::plogis(f[, 1]), log = TRUE),
        categorical = f[cbind(seq_len(n_data), y)] - log(rowSums(exp(f)))
      )
    },
    log_prior = function(theta) {
      fan_in <- unlist(lapply(seq_along(widths)[-1], function(l) {
        c(
          rep(widths[[l - 1]], widths[[l]] * widths[[l - 1]]),
          rep(1, widths[[l]])
        )
      }))
      scaled <- prior
      if (prior$autoscale) {
        scaled$scale <- prior$scale / sqrt(fan_in)
      }
      s <- theta[n_weight + 1]
      aux <- if (samples_sigma) stats::dexp(exp(s), 2, log = TRUE) + s else 0
      prior_density(scaled, weights_of(theta)) + aux
    },
    row_gradient = function(theta) {
      error <- function(f) {
        switch(
          likelihood,
          gaussian = (y - f) / sd_of(theta)^2,
          bernoulli = y - stats::plogis(f),
          categorical = one_hot - exp(f) / rowSums(exp(f))
        )
      }
      g <- plain_row_gradients(x, weights_of(theta), widths, activation, error)
      if (samples_sigma) {
        e <- y - outputs(theta)[, 1]
        g <- cbind(g, e^2 / sd_of(theta)^2 - 1)
      }
      unname(g)
    },
    row_hessian = NULL,
    lipschitz = NULL,
    lipschitz_prior = NA,
    point = function() stats::runif(model$n_dim, -1, 1)
  )
}

network_entries <- function() {
  activations <- c("tanh", "relu", "softplus")
  likelihoods <- c("gaussian", "bernoulli", "categorical")
  cases <- expand.grid(
    a = activations,
    l = likelihoods,
    stringsAsFactors = FALSE
  )
  entries <- Map(entry_network, cases$a, cases$l)
  names(entries) <- paste("network,", cases$a, cases$l)
  # every activation and every likelihood once
  seeded <- c("relu gaussian", "tanh bernoulli", "softplus categorical")
  others <- setdiff(names(entries), paste("network,", seeded))
  entries[others] <- lapply(entries[others], seeds_are_anothers)
  c(
    entries,
    list(
      "network, known sigma" = entry_network(
        "tanh",
        "gaussian",
        sigma = 0.7,
        prior = prior_laplace(0, 0.8)
      ),
      "network, no hidden layer" = entry_network(
        "tanh",
        "categorical",
        layers = NULL,
        prior = prior_flat()
      ),
      # several blocks of rows, several chunks
      "network, many rows" = seeds_are_anothers(entry_network(
        "tanh",
        "gaussian",
        layers = 3,
        n_data = 9001,
        n_input = 1
      )),
      "network, wide" = seeds_are_anothers(entry_network(
        "softplus",
        "bernoulli",
        layers = c(1, 40, 2),
        n_data = 200,
        n_input = 13
      ))
    )
  )
}

# The law of seeds searches for several modes, of thousands of steps each.
seeds_are_anothers <- function(entry) c(entry, list(is_seeded = FALSE))

# A linear network, of which everything is known: weight, then bias.
target_network <- function(n_data = 60, seed = 4) {
  withr::local_seed(seed)
  x <- matrix(stats::rnorm(n_data))
  y <- 0.5 - x[, 1] + stats::rnorm(n_data)
  sigma <- 4
  scale <- c(1, 2)
  location <- c(0, 0.3)
  design <- cbind(x, 1)
  precision <- crossprod(design) / sigma^2 + diag(1 / scale^2)
  list(
    model = model_network(
      x,
      y,
      layers = NULL,
      prior = prior_normal(location, scale),
      sigma = sigma
    ),
    mean = drop(solve(
      precision,
      crossprod(design, y) / sigma^2 + location / scale^2
    )),
    precision = precision
  )
}
