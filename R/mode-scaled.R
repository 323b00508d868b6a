# The mode of a model whose priors have hyperparameters. Together with them
# there is none: the density rises without end as a scale falls to 0 and takes
# its coefficients with it. What is found is the mode of the others given
# hyperparameters that the coefficients there make likely.

# find(held, init): the mode of a model without hyperparameters, whose prior is
# in R's words, too; init: near it, NULL: nothing is known.
# theta: near that of all, hyperparameters that are likely last, as passes leave
# it; NULL: nothing is known.
scaled_mode <- function(model, find, theta = NULL) {
  own <- seq_len(model$n_dim - n_hyper(model))
  near <- if (is.null(theta)) {
    # where hyperparameters shrink little
    phi <- model$mixture$start
    first <- find(with_prior_at(held_model(model, phi), model, phi), NULL)
    list(beta = first$estimate, phi = phi, passes = first$passes)
  } else {
    list(beta = theta[own], phi = theta[-own], passes = 0)
  }
  draws <- draw_hyper(model, near$beta, near$phi, 400)
  draws <- draws[, -(1:100), drop = FALSE]
  # those that the coefficients there make likely
  phi <- if (is.null(theta)) rowMeans(draws) else near$phi
  sd <- apply(draws, 1, stats::sd)
  held <- with_prior_at(held_model(model, phi), model, phi)
  found <- find(held, unname(as.double(near$beta)))
  theta <- c(unname(found$estimate), phi)
  out <- found
  out$estimate <- stats::setNames(theta, model$coordinates)
  out$variables <- mode_variables(model, theta)
  out$fingerprint <- model$fingerprint
  out$passes <- near$passes + found$passes
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
