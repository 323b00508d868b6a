# Times with a hazard in pieces, by hand.

# Log likelihoods of rows, row by row and piece by piece; stay: what a row is at
# risk in each piece.
pieces_by_hand <- function(cuts, alpha, eta, entry, time, seen) {
  stay <- stay_in_pieces(cuts, entry, time)
  vapply(seq_along(time), function(i) {
    own <- sum(c(0, cuts) < time[[i]])
    seen[[i]] * (alpha[[own]] + eta[[i]]) -
      sum(stay[i, ] * exp(alpha + eta[[i]]))
  }, 0)
}

# How long each row is at risk in each piece.
stay_in_pieces <- function(cuts, entry, time) {
  begin <- c(0, cuts)
  end <- c(cuts, Inf)
  outer(seq_along(time), seq_along(begin), function(i, k) {
    pmax(pmin(time[i], end[k]) - pmax(entry[i], begin[k]), 0)
  })
}

# The model's laws, of rows of which some enter late, and one at a cut.
pieces_entries <- function() {
  list(
    "pieces" = entry_pieces(),
    "pieces, weighted" = entry_pieces(weighted = TRUE, shifted = TRUE)
  )
}

entry_pieces <- function(weighted = FALSE, shifted = FALSE, n = 23) {
  withr::local_seed(12)
  cuts <- c(0.4, 1)
  x <- as_single(matrix(stats::rnorm(2 * n), n) / 2)
  time <- as_single(stats::rexp(n)) + 0.05
  time[[2]] <- 0.4
  entry <- ifelse(seq_len(n) %% 3 == 0, 0.6 * time, 0)
  seen <- as.double(seq_len(n) %% 2)
  w <- if (weighted) stats::runif(n, 0.5, 2) else rep(1, n)
  offset <- if (shifted) stats::rnorm(n) / 3 else numeric(n)
  y <- cbind(time, entry, seen)
  family <- settle_pieces(pieces_family(cuts), y)
  basis <- family$pieces$basis
  prior <- prior_normal(c(0.2, 0, 0, 0), c(2, 1, 0.5, 0.5))
  blueprint <- blueprint_glm(
    family,
    list(prior = prior, prior_aux = prior_flat()),
    centers = FALSE
  )
  rows <- rows_memory(
    x,
    y,
    if (weighted) w,
    if (shifted) offset,
    "y"
  )
  stay <- stay_in_pieces(cuts, entry, time)
  own <- outer(findInterval(time, cuts, left.open = TRUE) + 1, 1:3, "==")
  at <- function(theta) {
    alpha <- drop(basis %*% theta[3:4])
    eta <- drop(x %*% theta[1:2]) + offset
    list(
      alpha = alpha,
      eta = eta,
      # expected events of each row and piece
      mu = stay * exp(eta + rep(alpha, each = n))
    )
  }
  list(
    name = "pieces",
    model = build_model(blueprint, rows),
    log_lik = function(theta) {
      p <- at(theta)
      w * pieces_by_hand(cuts, p$alpha, p$eta, entry, time, seen)
    },
    log_prior = function(theta) prior_density(prior, theta),
    row_gradient = function(theta) {
      mu <- at(theta)$mu
      w * cbind((seen - rowSums(mu)) * x, (seen * own - mu) %*% basis)
    },
    row_hessian = function(theta) {
      mu <- at(theta)$mu
      lapply(seq_len(n), function(i) {
        # columns of each piece
        z <- rbind(matrix(x[i, ], 2, 3), t(basis))
        w[[i]] * z %*% (mu[i, ] * t(z))
      })
    },
    lipschitz = NULL,
    lipschitz_prior = 4,
    point = function() stats::runif(4, -1, 1)
  )
}
