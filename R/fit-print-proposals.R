# What print() says of proposals that are accepted or rejected.

# The acceptance rates of chains, where they are not that of the header for all.
print_rates <- function(rates) {
  known <- rates[!is.na(rates)]
  if (length(known) < 2 || max(known) - min(known) < 0.1) {
    return(invisible())
  }
  shown <- vapply(rates, rate_text, "")
  more <- length(shown) > 10
  cat(
    "Acceptance by chain: ",
    paste(utils::head(shown, 10), collapse = ", "),
    if (more) paste(", ... with", length(shown) - 10, "more"),
    ".\n",
    sep = ""
  )
}

# What became of the proposals, and whether the law is the posterior's.
print_metropolis_note <- function(fit) {
  if (!kernel_is_metropolis(fit$kernel)) {
    return(invisible())
  }
  chains <- fit$chains
  print_rates(chains$acceptance)
  print_factorised_note(fit)
  outside <- mean(chains$outside)
  if (!is.na(outside) && outside > 0) {
    cat(
      format(100 * outside, digits = 2),
      "% of the proposals were outside ",
      if (is_remote_fit(fit)) {
        # such priors have no bounds
        paste0(
          "the ball in which a pass bounded\n",
          "  rows, and refused: draws are those of the posterior within it"
        )
      } else {
        "the bounds of the prior"
      },
      ".\n",
      sep = ""
    )
  }
  nonfinite <- sum(chains$nonfinite)
  if (nonfinite > 0) {
    cat(
      count_noun(nonfinite, "proposal"),
      " had no finite log posterior and ",
      if (nonfinite == 1) "was" else "were",
      " rejected.\n",
      sep = ""
    )
  }
  print_stuck_note(fit)
  if (!kernel_is_exact(fit$kernel)) {
    cat("Approximate: ", approximate_reason(fit$kernel), ".\n", sep = "")
  }
}
