# Monitors of networks on held-out data, and what loo asks of networks.

# Resolved by the front end already.
#' @export
check_held_out.tall_monitor_network <- function(monitor, model, arg) {
}

#' @export
evaluate_monitor.tall_monitor_network <- function(
  monitor,
  model,
  parameter,
  theta,
  state
) {
  network <- monitor$network
  rows <- monitor$rows
  y <- rows$y
  at <- function(parameter) network_draw(network, parameter)
  if (monitor$name == "rmse") {
    mu <- drop(predictor(network, rows, at(parameter), "response"))
    mu <- clip(mu, monitor$range)
    state <- add_to_mean(state, mu)
    error <- function(mu) sqrt(mean((mu - y)^2))
    return(list(draw = error(mu), ergodic = error(state$mean), state = state))
  }
  log_p <- function(parameter) drop(log_density(network, rows, at(parameter)))
  here <- log_p(parameter)
  if (monitor$name == "log_loss") {
    state <- add_to_mean(state, exp(here))
    ergodic <- -mean(log(state$mean))
    return(list(draw = -mean(here), ergodic = ergodic, state = state))
  }
  state <- add_to_mean(state, parameter)
  list(draw = mean(here), ergodic = mean(log_p(state$mean)), state = state)
}

# One draw of a network's coordinates, as choose_draws() has those of a fit.
network_draw <- function(network, parameter) {
  weights <- seq_len(network$n_coef)
  sigma <- if (!has_class_response(network) && has_aux(network$family)) {
    network$sigma %||%
      (network$scaling$y_scale * exp(parameter[[network$n_coef + 1]]))
  }
  list(theta = t(parameter[weights]), aux = sigma, weights = 1, cores = 1L)
}

# ---- leave-one-out -----------------------------------------------------------

# The mean of the weights is no network.
#' @export
loo_approximation.tall_nn <- function(fit) {
  list(loo_approximation = "lpd", loo_approximation_draws = 10)
}
