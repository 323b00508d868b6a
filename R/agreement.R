# Do the chains agree, and are there draws enough? Said in one line where a fit
# is printed, because summaries of chains that do not agree mean little.

agreement_settings <- list(
  rhat = 1.05,   # more: chains are in different places
  ess = 100,     # effective draws of each chain
  most = 50      # variables that print() looks at; summary() looks at all
)

# R-hat and bulk effective sample size of variables, evenly spaced where they
# are many; NULL where these say nothing: draws with weights, or hardly any.
agreement_table <- function(fit) {
  if (is.null(fit$draws) || !is.null(fit[["weights"]]) ||
    posterior::niterations(fit$draws) < 4) {
    return(NULL)
  }
  n <- length(fit$variables)
  at <- unique(round(seq(1, n, length.out = agreement_settings$most)))
  draws <- unclass(fit$draws)[, , fit$variables[at], drop = FALSE]
  each <- function(f) apply(draws, 3, function(x) suppressWarnings(f(x)))
  data.frame(
    variable = fit$variables[at],
    rhat = each(posterior::rhat),
    ess_bulk = each(posterior::ess_bulk)
  )
}

# Chains whose draws are kept.
n_alive <- function(fit) {
  alive <- sum(fit$chains$status == "ok")
  if (alive > 0) alive else nrow(fit$chains)
}

# table: as agreement_table() has it, or that of a summary.
print_agreement_note <- function(table, n_chain) {
  # a variable that is the same in all draws has neither
  table <- table[is.finite(table$rhat) & is.finite(table$ess_bulk), ]
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
      ". Run longer.\n",
      sep = ""
    )
  } else if (table$ess_bulk[[fewest]] < agreement_settings$ess * n_chain) {
    cat(
      "Warning: few effective draws, ",
      format_count(floor(table$ess_bulk[[fewest]])),
      " for ",
      table$variable[[fewest]],
      ". Run longer.\n",
      sep = ""
    )
  }
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
