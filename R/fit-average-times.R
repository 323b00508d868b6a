# Averages of times to an event as functions of few predictors, see
# R/fit-average-functions.R.
#
# Where hazards are proportional, H(t) = exp(eta + zeta(t)): all that a draw
# says of the hazard is zeta(t), the log of the cumulative hazard of a row with
# eta = 0, in each stratum, or the log of the hazard. Restricted means are sums
# over some t. Of other laws the log of their parameter is a second predictor.

#' @export
expansion_of.tall_surv <- function(fit, request) {
  # frailties are integrated out
  is_linear <- inherits(fit, "tall_glm")
  type <- request$type
  if (!is_linear || type == "median" && has_pieces(fit$family)) {
    return(NULL)
  }
  if (type == "link") {
    return(expansion_of.tall_glm(fit, request))
  }
  if (type == "risk") {
    out <- expansion_of.tall_glm(fit, list(type = "link"))
    out$parts <- list(expanded_part(1, function(eta) exp(eta[[1]])))
    return(out)
  }
  if (type != "median" && is_hazard_model(fit)) {
    hazard_expansion(fit, type, request$at)
  } else {
    law_expansion(fit, type, request$at)
  }
}

law_expansion <- function(fit, type, at) {
  p <- fit$n_coef
  n_aux <- sum(is.na(known_aux(fit)))
  list(
    theta = function(draws) cbind(draws$theta, log_aux_draws(fit, draws)),
    columns = c(list(seq_len(p)), as.list(p + seq_len(n_aux))),
    blocks = function(rows) {
      c(list(row_block(rows$x, rows$offset)), constant_blocks(rows, n_aux))
    },
    parts = lapply(at, function(time) {
      expanded_part(seq_len(1 + n_aux), function(eta) {
        aux <- aux_at(fit, eta[-1])
        one <- matrix(eta[[1]], 1)
        as.numeric(predicted_times(fit$family, one, aux, type, time))
      })
    })
  )
}

hazard_expansion <- function(fit, type, at) {
  p <- fit$n_coef
  family <- fit$family
  n_stratum <- max(1, length(family$pieces$n_cut))
  nodes <- lapply(at, time_nodes, type = type)
  n_node <- lengths(lapply(nodes, `[[`, "time"))
  last <- cumsum(n_node)
  g <- if (type %in% c("survival", "rmst")) function(u) exp(-exp(u)) else exp
  list(
    theta = function(draws) {
      zeta <- lapply(nodes, function(own) {
        lapply(own$time, log_hazards_at, fit = fit, draws = draws, type = type)
      })
      do.call(cbind, c(list(draws$theta), unlist(zeta, recursive = FALSE)))
    },
    columns = c(
      list(seq_len(p)),
      lapply(seq_len(sum(n_node)), function(q) {
        p + (q - 1) * n_stratum + seq_len(n_stratum)
      })
    ),
    blocks = function(rows) {
      own <- row_block(stratum_design(family, rows$x))
      c(list(row_block(rows$x, rows$offset)), rep(list(own), sum(n_node)))
    },
    parts = lapply(seq_along(at), function(k) {
      weight <- nodes[[k]]$weight
      list(
        of = c(1, 1 + last[[k]] - n_node[[k]] + seq_len(n_node[[k]])),
        slopes = function(eta) sum_slopes(g, weight, eta),
        pairs = sum_pairs(n_node[[k]])
      )
    })
  )
}

# Times whose values are summed, with their weights. A restricted mean needs
# fewer than that of a row does, as what the sum leaves out is looked at in some
# rows.
time_nodes <- function(time, type) {
  if (type != "rmst") {
    return(list(time = time, weight = 1))
  }
  rule <- legendre_rule(16)
  list(
    time = time * rule$at^2,
    weight = time * rule$weight * 2 * rule$at
  )
}

# zeta(t), draws x strata.
log_hazards_at <- function(time, fit, draws, type) {
  type <- if (type == "hazard") "hazard" else "cumhaz"
  eta <- matrix(0, nrow(draws$theta), 1)
  of <- function(family, aux) {
    log(predicted_times(family, eta, aux, type, time))
  }
  n_stratum <- length(fit$family$pieces$n_cut)
  if (n_stratum == 0) {
    return(of(fit$family, draws$aux))
  }
  do.call(cbind, lapply(seq_len(n_stratum), function(s) {
    own <- fit_of_stratum(fit, draws, s)
    of(own$fit$family, own$draws$aux)
  }))
}

# Which stratum each row is in, rows x strata.
stratum_design <- function(family, x) {
  if (!has_strata(family)) {
    return(matrix(1, nrow(x), 1))
  }
  of <- row_strata(family$pieces, x)
  1 * outer(of, seq_along(family$pieces$n_cut), `==`)
}
