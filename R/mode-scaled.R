# The mode of a model whose priors have hyperparameters. Together with them
# there is none: the density rises without end as a scale falls to 0 and takes
# its coefficients with it. What is found is the mode of the others given
# hyperparameters that the coefficients there make likely.

# find(held, init, is_near): the mode of a model without hyperparameters, whose
# prior is in R's words, too, from init, NULL: the model's own start.
# theta: where all start, hyperparameters last; NULL: where these shrink little.
# is_near: near the mode, hyperparameters likely, as passes leave it.
scaled_mode <- function(model, find, theta = NULL, is_near = FALSE) {
  own <- seq_len(model$n_dim - n_hyper(model))
  near <- if (is_near) {
    list(beta = theta[own], phi = theta[-own], passes = 0)
  } else {
    phi <- theta[-own] %||% model$mixture$start
    held <- with_prior_at(held_model(model, phi), model, phi)
    first <- find(held, theta[own], FALSE)
    list(beta = first$estimate, phi = phi, passes = first$passes)
  }
  draws <- draw_hyper(model, near$beta, near$phi, 400)
  draws <- draws[, -(1:100), drop = FALSE]
  # those that the coefficients there make likely
  phi <- if (is_near) near$phi else rowMeans(draws)
  sd <- apply(draws, 1, stats::sd)
  held <- with_prior_at(held_model(model, phi), model, phi)
  found <- find(held, unname(as.double(near$beta)), TRUE)
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
