# The mode of a model whose priors have hyperparameters. Together with them
# there is none: the density rises without end as a scale falls to 0 and takes
# its coefficients with it. What is found is the mode of the others given
# hyperparameters that the coefficients there make likely.

# find(held, from): the mode of a model without hyperparameters; from: a point
# near it, NULL: none is known.
scaled_mode <- function(model, find) {
  own <- seq_len(model$n_dim - n_hyper(model))
  phi <- model$mixture$start
  # where hyperparameters shrink little, then where they are likely
  first <- find(held_model(model, phi))
  draws <- draw_hyper(model, first$estimate, phi, 400)
  draws <- draws[, -(1:100), drop = FALSE]
  phi <- rowMeans(draws)
  sd <- apply(draws, 1, stats::sd)
  found <- find(held_model(model, phi), unname(as.double(first$estimate)))
  theta <- c(unname(found$estimate), phi)
  out <- found
  out$estimate <- stats::setNames(theta, model$coordinates)
  out$variables <- mode_variables(model, theta)
  out$fingerprint <- model$fingerprint
  out$passes <- first$passes + found$passes
  out$given <- model$mixture$coordinates
  # the spread of hyperparameters given the coefficients: kernels scale by it
  precision <- 1 / pmax(sd, 1e-3)^2
  out$hessian <- diag(c(numeric(length(own)), -precision), model$n_dim)
  out$hessian[own, own] <- found$hessian
  dimnames(out$hessian) <- list(model$coordinates, model$coordinates)
  out$chol <- diag(c(numeric(length(own)), sqrt(precision)), model$n_dim)
  out$chol[own, own] <- found$chol
  out
}
