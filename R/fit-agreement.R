# Do the chains agree, and are there draws enough? Said in one line where a fit
# is printed, because summaries of chains that do not agree mean little.

agreement_settings <- list(
  rhat = 1.05,   # more: chains are in different places
  ess = 100,     # effective draws of each chain
  stuck = 0.01,  # acceptance rate: below it a chain hardly moves
  most = 50      # variables that print() looks at; summary() looks at all
)

# R-hat and bulk effective sample size of variables, evenly spaced where they
# are many; NULL where hardly any draws say anything. Draws with weights, and
# moments without draws, have no effective size.
agreement_table <- function(fit) {
  n <- length(fit$variables)
  at <- unique(round(seq(1, n, length.out = agreement_settings$most)))
  if (is.null(fit$draws)) {
    return(agreement_without_ess(fit$variables[at], moment_rhat(fit)[at]))
  }
  if (posterior::niterations(fit$draws) < 4) {
    return(NULL)
  }
  if (!is.null(fit[["weights"]])) {
    return(agreement_without_ess(
      fit$variables[at],
      weighted_rhat(fit, fit$variables[at])
    ))
  }
  draws <- unclass(fit$draws)[, , fit$variables[at], drop = FALSE]
  each <- function(f) apply(draws, 3, function(x) suppressWarnings(f(x)))
  data.frame(
    variable = fit$variables[at],
    rhat = each(posterior::rhat),
    ess_bulk = each(posterior::ess_bulk)
  )
}

agreement_without_ess <- function(variables, rhat) {
  if (length(rhat) > 0) {
    data.frame(variable = variables, rhat = unname(rhat), ess_bulk = NA_real_)
  }
}

# R-hat as Gelman & Rubin (1992) have it, from means and variances of stretches
# (stretches x variables), each of n draws.
rhat_of_moments <- function(mean, variance, n) {
  within <- colMeans(variance)
  between <- apply(mean, 2, stats::var)
  out <- sqrt((n - 1) / n + between / within)
  out[!is.finite(out)] <- NA_real_
  out
}

# From the running moments of chains that kept no draws. NULL with one chain.
moment_rhat <- function(fit) {
  moments <- alive_moments(fit)
  if (length(moments) < 2) {
    return(NULL)
  }
  n <- vapply(moments, function(m) m$n, 0)
  if (min(n) < 4) {
    return(NULL)
  }
  rows <- function(f) do.call(rbind, lapply(moments, f))
  rhat_of_moments(
    rows(function(m) m$mean),
    rows(function(m) m$square / (m$n - 1)),
    mean(n)
  )
}

# Of draws with weights: halves of the chains, halves by weight.
weighted_rhat <- function(fit, variables = fit$variables) {
  draws <- unclass(fit$draws)[, , variables, drop = FALSE]
  weights <- matrix(fit[["weights"]], dim(draws)[[1]])
  mean <- variance <- NULL
  n <- NULL
  for (chain in seq_len(ncol(weights))) {
    past <- cumsum(weights[, chain]) / sum(weights[, chain])
    for (half in list(past <= 0.5, past > 0.5)) {
      w <- weights[half, chain]
      if (length(w) < 2) {
        return(rep(NA_real_, length(variables)))
      }
      w <- w / sum(w)
      x <- matrix(draws[half, chain, ], length(w))
      centre <- colSums(x * w)
      mean <- rbind(mean, centre)
      square <- colSums(sweep(x, 2, centre)^2 * w)
      variance <- rbind(variance, square / (1 - sum(w^2)))
      n <- c(n, 1 / sum(w^2))
    }
  }
  rhat_of_moments(mean, variance, mean(n))
}

# Chains whose draws are kept.
n_alive <- function(fit) {
  length(which_alive(fit$chains$status))
}

# Those that ran to the end; all, where none did.
which_alive <- function(status) {
  alive <- which(status == "ok")
  if (length(alive) > 0) alive else seq_along(status)
}

# Of the chains that are kept, which ones hardly ever had a proposal accepted.
stuck_chains <- function(fit) {
  alive <- which_alive(fit$chains$status)
  rate <- fit$chains$acceptance[alive]
  alive[!is.na(rate) & rate < agreement_settings$stuck]
}

print_stuck_note <- function(fit) {
  stuck <- stuck_chains(fit)
  if (length(stuck) == 0) {
    return(invisible())
  }
  n <- n_alive(fit)
  rate <- max(fit$chains$acceptance[stuck])
  cat(
    "Warning: ",
    if (rate == 0) "no proposal" else "hardly any proposal",
    " of ",
    if (length(stuck) == n) {
      if (n == 1) "the chain" else "the chains"
    } else {
      paste(length(stuck), "of", n, "chains")
    },
    " was accepted: ",
    if (length(stuck) == 1) "it stands" else "they stand",
    " where ",
    if (length(stuck) == 1) "it" else "they",
    " began, and more iterations will not help.\n  ",
    stuck_remedy(fit, stuck),
    "\n",
    sep = ""
  )
}

stuck_remedy <- function(fit, stuck) {
  scale <- intersect(c("step_size", "sigma"), names(fit$kernel$args))
  adapts <- isTRUE(fit$kernel$args$adapt)
  nonfinite <- mean(fit$chains$nonfinite[stuck]) > 0
  # what the recipe chose has a size
  if (is.null(fit$recipe$size) && length(scale) > 0) {
    paste0(
      "Take a smaller `",
      scale[[1]],
      "`",
      if (adapts) ", a longer warmup" else ", or `adapt = TRUE`",
      if (nonfinite) ", or an `init` where the posterior is smoother",
      "."
    )
  } else {
    "Give an `init`, or a `kernel` with a small step and `adapt = TRUE`."
  }
}

# table: as agreement_table() has it, or that of a summary.
print_agreement_note <- function(table, n_chain, fit = NULL) {
  # it has been said why, and what to do
  if (length(stuck_chains(fit)) > 0) {
    return(invisible())
  }
  # a variable that is the same in all draws has no R-hat
  table <- table[is.finite(table$rhat), ]
  if (NROW(table) == 0) {
    return(invisible())
  }
  worst <- which.max(table$rhat)
  fewest <- which.min(table$ess_bulk)
  if (table$rhat[[worst]] > agreement_settings$rhat) {
    cat(
      "Warning: the chains do not agree: R-hat up to ",
      format(table$rhat[[worst]], digits = 3),
      " for ",
      table$variable[[worst]],
      longer_remedy(fit),
      sep = ""
    )
  } else if (length(fewest) > 0 &&
    table$ess_bulk[[fewest]] < agreement_settings$ess * n_chain) {
    cat(
      "Warning: few effective draws, ",
      format_count(floor(table$ess_bulk[[fewest]])),
      " for ",
      table$variable[[fewest]],
      longer_remedy(fit),
      sep = ""
    )
  }
}

# With one step size for coordinates of very different scales a chain hardly
# moves, and running longer takes very long; the recipe and the front ends scale
# them.
longer_remedy <- function(fit) {
  scales <- c("model_glm", "model_classes", "model_groups")
  is_unscaled <- !is.null(fit) &&
    fit$model_label %in% scales &&
    inherits(fit$kernel, "tall_metropolis") &&
    !fit$is_whitened &&
    is.null(fit$stand_in)
  if (is_unscaled) {
    ". Run longer,\n  or leave `kernel` out: the recipe scales coordinates.\n"
  } else {
    ". Run longer.\n"
  }
}

# Do the draws lack spread because they are few, or because the chains have not
# met? The sd about a chain's own mean is too small by 1 / (2 n) of it, n the
# chain's effective draws, and by what R-hat says. NA where that does not
# explain the bias, but the run is too short to tell. table: agreement of all
# variables; at: in it, those with these biases.
is_short_run <- function(value, table, at, n_chain) {
  if (is.null(table$rhat)) {
    return(NA)
  }
  most <- function(x) if (any(is.finite(x))) max(x[is.finite(x)]) else NA
  few <- n_chain / (2 * (table$ess_bulk %||% NA_real_))
  apart <- table$rhat - 1
  share <- pmax(few, apart, na.rm = TRUE)[at]
  is_long <- most(apart) < agreement_settings$rhat - 1 &&
    most(c(few, 0)) < 1 / (2 * agreement_settings$ess)
  ifelse(share > abs(value) / 4, TRUE, if (is_long) FALSE else NA)
}

# Of a network's predictions, at some rows of the data: `checked` as
# nn_checked() has it.
print_prediction_note <- function(checked) {
  rhat <- checked$rhat[is.finite(checked$rhat)]
  apart <- mean(rhat > agreement_settings$rhat)
  if (length(rhat) == 0 || apart < 0.1) {
    return(invisible())
  }
  cat(
    "Warning: the chains predict differently at ",
    percent(apart, ""),
    " of the rows: R-hat up to ",
    format(max(rhat), digits = 3),
    ".\n  Their spread is part of the epistemic sd, see ?summary.tall_nn.\n",
    sep = ""
  )
}

# As of draws, chains that stopped are left out.
alive_moments <- function(fit) {
  fit$moments[which_alive(fit$chains$status)]
}
