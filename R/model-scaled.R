# Models whose priors have hyperparameters: src/models/scaled.c puts them around
# a model whose own prior is flat in the coefficients that they are of. They are
# the last coordinates, and move by draws of their own given the coefficients
# before each step of a kernel.

# The same model with them; base$prior$mixture: see resolve_mixture().
scaled_model <- function(base) {
  mixture <- base$prior$mixture
  model <- base
  model$pointer <- scale_pointer(base$pointer, mixture)
  model$base <- base["pointer"]
  model$mixture <- mixture
  model$variables <- c(base$variables, mixture$names)
  model$coordinates <- c(base$coordinates, mixture$coordinates)
  model$prior <- append_hyper(base$prior)
  n <- length(mixture$names)
  if (!is.null(base$prior_functional)) {
    weights <- base$prior_functional$weights
    model$prior_functional$weights <- c(weights, numeric(n))
  }
  model$traits$start <- c(
    base$traits$start %||% numeric(base$n_dim),
    mixture$start
  )
  model$start <- model$traits$start
  model$traits$gibbs_every <- 1
  info <- model_info(model)
  model$n_dim <- info$n_dim
  model$fingerprint <- info$fingerprint
  model
}

# held: hyperparameters that stay where they are; moves: where and how much the
# log posterior bends, see with_moves().
scale_pointer <- function(pointer, mixture, held = NULL, moves = NULL) {
  out <- .Call(ffi_model_scale, pointer, c(mixture$params, moves), held)
  if (is.integer(out)) {
    abort_status(out)
  }
  out
}

# The model of all other parameters, hyperparameters held at phi, coordinates:
# their prior is normal there.
held_model <- function(model, phi) {
  n <- model$n_dim - n_hyper(model)
  own <- seq_len(n)
  out <- model
  out$pointer <- scale_pointer(model$base$pointer, model$mixture, phi)
  out[c("mixture", "base")] <- NULL
  out$is_held <- TRUE
  out$variables <- model$variables[own]
  out$coordinates <- model$coordinates[own]
  parts <- c("kind", "location", "scale", "shape")
  out$prior <- lapply(compact(model$prior[parts]), `[`, own)
  if (!is.null(model$prior_functional)) {
    out$prior_functional$weights <- model$prior_functional$weights[own]
  }
  out$traits$start <- model$traits$start[own]
  out$start <- out$traits$start
  out$traits["gibbs_every"] <- list(NULL)
  out$n_dim <- n
  out$fingerprint <- model_info(out)$fingerprint
  out$cache <- new.env(parent = emptyenv())
  out
}

# Steps of the hyperparameters' own draws given the coefficients: n_hyper x n.
draw_hyper <- function(model, beta, phi, n, seed = 1) {
  .Call(
    ffi_mixture_draw,
    model$mixture$params,
    as.double(beta),
    as.double(phi),
    as.double(n),
    as.double(seed)
  )
}

# The same model with proposals of its own: all but the hyperparameters from the
# normal law that they have given these where the log likelihood is quadratic
# about `mode`, of scaled_mode(), with new hyperparameters or those that there
# are, and steps along lines of auxiliary parameters. given: of given_sigma() or
# NULL.
with_moves <- function(model, mode, given = NULL) {
  n <- model$n_dim - n_hyper(model)
  own <- seq_len(n)
  theta <- unname(mode$estimate)
  covered <- model$mixture$at
  phi <- theta[-own]
  precision <- numeric(n)
  precision[covered] <- precision_at(model$mixture, phi)
  location <- numeric(n)
  location[covered] <- model$mixture$params$mixture_location
  moves <- list(
    move_center = theta[own],
    # the gradient of all at the mode is 0
    move_slope = precision * (theta[own] - location),
    move_hessian = as.double(-mode$hessian[own, own] - diag(precision, n)),
    move_lines = aux_lines(model, -mode$hessian[own, own])
  )
  model$pointer <- scale_pointer(
    model$base$pointer,
    model$mixture,
    moves = c(moves, given)
  )
  model
}

# Directions, one after the other, in which sampled auxiliary parameters move by
# about an sd: each alone, and with what rows see and no mixture covers where it
# is then expected. bend: minus the Hessian at the mode.
aux_lines <- function(model, bend) {
  free <- setdiff(seq_len(ncol(bend)), model$mixture$at)
  aux <- utils::tail(seq_len(ncol(bend)), model$traits$n_aux)
  if (length(aux) == 0) {
    return(numeric())
  }
  covariance <- chol2inv(chol(bend[free, free, drop = FALSE]))
  at <- match(aux, free)
  along <- covariance[, at, drop = FALSE]
  lines <- matrix(0, ncol(bend), 2 * length(aux))
  sd <- sqrt(diag(covariance)[at])
  lines[free, seq_along(aux)] <- along / rep(sd, each = length(free))
  lines[cbind(aux, length(aux) + seq_along(aux))] <- 1 / sqrt(diag(bend)[aux])
  as.double(lines)
}

# A held model whose prior in R's words is the normal one that it has at phi.
with_prior_at <- function(held, model, phi) {
  at <- model$mixture$at
  held$prior$kind[at] <- prior_kinds$normal$code
  held$prior$location[at] <- model$mixture$params$mixture_location
  held$prior$scale[at] <- 1 / sqrt(drop(precision_at(model$mixture, phi)))
  held
}
