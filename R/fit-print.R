# Printing a fit: what ran, whether it can be trusted, estimates.

#' @rdname summary.tall_fit
#' @export
print.tall_fit <- function(
  x,
  digits = 3,
  pars = NULL,
  variables = pars,
  regex_pars = NULL,
  n = NULL,
  ...
) {
  check_no_dots(...)
  digits <- check_digits(digits)
  chosen <- select_variables(x$variables, variables, regex_pars)
  n <- check_shown(n, if (is.null(chosen)) 10 else Inf)
  n_draws <- if (!is.null(x$draws)) posterior::ndraws(x$draws)
  print_header(x, n_draws)
  table <- data.frame(fit_moments(x), row.names = x$variables)
  if (!is.null(chosen)) {
    table <- table[chosen, , drop = FALSE]
  }
  table <- without_bases(x, table, !is.null(chosen) || identical(n, Inf))
  at <- first_rows(rownames(table), n, auxiliary_variables(x))
  shown <- signif(table[at, , drop = FALSE], digits + 1)
  print_estimates(x, shown, digits, is_chosen = !is.null(chosen))
  print_more(nrow(table) - length(at))
  agreement <- agreement_table(x)
  print_footer(x, brief = TRUE, agreement)
  cat_within_width(print_agreement_note(agreement, n_alive(x), x))
  invisible(x)
}

# Multilevel fits have a block for each kind of parameter, additive ones one
# for smooth terms.
print_estimates <- function(fit, table, digits, is_chosen) {
  if (has_smooths(fit) && !is_chosen) {
    print_smooth_estimates(fit, table, digits)
  } else if (!has_groups(fit) || is_chosen) {
    print_table(table, digits)
  } else {
    print_grouped_estimates(fit, table, digits)
  }
}

# How many variables to print; NULL: as many as is usual.
check_shown <- function(n, usual) {
  if (is.null(n)) {
    return(usual)
  }
  if (identical(n, Inf)) n else check_count(n, arg = "n")
}

# The first n, but auxiliary ones, which come last, are not cut off, except
# scales of single coefficients, such as hs_local[x].
first_rows <- function(variables, n, auxiliary) {
  if (length(variables) <= n) {
    return(seq_along(variables))
  }
  is_last <- variables %in% auxiliary & !grepl("[", variables, fixed = TRUE)
  last <- utils::head(which(is_last), n)
  c(utils::head(setdiff(seq_along(variables), last), n - length(last)), last)
}

print_more <- function(n, what = "variable") {
  if (n > 0) {
    more <- count_noun(n, paste("more", what))
    cat("# ... with ", more, " (n = Inf shows all)\n", sep = "")
  }
}

# A line of the header, or as many as the console's width takes.
cat_field <- function(label, text) {
  if (length(text) == 0) {
    return(invisible())
  }
  indent <- strrep(" ", nchar(label))
  lines <- strwrap(text, getOption("width") - nchar(label) + 1)
  cat(paste0(c(label, rep(indent, length(lines) - 1)), lines, "\n"), sep = "")
}

# What `code` prints, its lines no longer than the console's width.
cat_within_width <- function(code) {
  lines <- utils::capture.output(code)
  width <- getOption("width")
  for (line in lines) {
    if (nchar(line, "width") > width) {
      indent <- nchar(sub("[^ ].*$", "", line))
      line <- strwrap(line, width + 1, indent = indent, exdent = 2)
    }
    cat(paste0(line, "\n"), sep = "")
  }
}

print_header <- function(fit, n_draws) {
  cat_field("Formula: ", formula_text(fit))
  cat(family_text(fit))
  if (fit$n_data > 0) {
    cat("Data:    ", data_text(fit), "\n", sep = "")
  } else {
    cat("Target:  ", density_text(fit$model), "\n", sep = "")
  }
  if (!is.null(fit$lambda)) {
    cat(
      "Target:  Gibbs posterior, lambda = ",
      format_number(fit$lambda),
      " (Bayes: ",
      format_count(fit$n_data),
      ")\n",
      sep = ""
    )
  }
  # with none that ran to its end, all are kept
  drawn <- if (is.null(n_draws)) {
    "none kept"
  } else {
    paste(format_count(n_draws), "from", count_noun(n_alive(fit), "chain"))
  }
  seed <- format(fit$seed, scientific = FALSE)
  cat("Draws:   ", drawn, "; seed ", seed, "\n", sep = "")
  cat_field("Rounded: ", compressed_text(fit$compressed))
  cat_field("Robust:  ", robust_text(fit$robust))
  cat_field("Sampler: ", sampler_text(fit))
  if (!is.null(fit$plan)) {
    cat_field("Plan:    ", fit$plan)
  }
  cat("\n")
}

# NULL: no family.
family_text <- function(fit) {
  if (!is.null(fit$basehaz)) {
    return(hazard_text(fit))
  }
  family <- shown_family(fit)
  if (inherits(fit, "tall_classes")) {
    facts <- class_methods[[fit$method]]
    name <- if (facts$is_ordered) "cumulative" else "multinomial"
    family <- list(name = name, link = facts$link)
  }
  if (!is.null(family)) {
    paste0("Family:  ", family$name, " (", family$link, ")\n")
  }
}

# The law of times, and the unit that an intercept refers to, or the number of
# pieces.
hazard_text <- function(fit) {
  unit <- known_values(fit$family)["unit"]
  is_hazard <- !is.na(unit)
  paste0(
    "Family:  ",
    fit$basehaz,
    if (is_hazard) " (proportional hazards)" else " (accelerated failure time)",
    if (has_pieces(fit$family)) {
      paste0(", ", pieces_text(fit$family))
    } else if (is_hazard) {
      paste0(", times in units of ", format_number(unit[[1]]))
    },
    "\n"
  )
}

# Of models whose rows are groups, both; of several factors their levels, too.
data_text <- function(fit) {
  rows <- if (is_crossed(fit)) {
    levels <- lengths(lapply(fit_factors(fit), `[[`, "levels"))
    paste0(
      count_noun(fit$n_data, "observation"),
      " in ",
      paste(
        c(
          paste(count_noun(levels[[1]], "group"), "of", names(levels)[[1]]),
          paste(format_count(levels[-1]), "of", names(levels)[-1])
        ),
        collapse = ", "
      )
    )
  } else if (is.null(fit$groups)) {
    count_noun(fit$n_data, "observation")
  } else {
    paste0(
      count_noun(fit$n_rows, "observation"),
      " in ",
      count_noun(fit$n_data, "group"),
      " of ",
      fit$groups$name
    )
  }
  paste0(c(rows, batches_text(fit), left_out_text(fit)), collapse = "; ")
}

# Of a fit to which rows were appended; NULL: of another.
batches_text <- function(fit) {
  n <- fit$batches$rows
  if (length(n) > 0) {
    came <- count_noun(sum(n > 0), "batch", "batches")
    gone <- sum(n < 0)
    paste0(c(
      came,
      if (gone > 0) paste(format_count(gone), "taken away")
    ), collapse = ", ")
  }
}

# What became of other rows; NULL: there were none.
left_out_text <- function(fit) {
  n_missing <- fit$n_missing %||% 0
  # rows of a source that do not count are not numbered
  n_weightless <- max(0, length(fit$na_action) - n_missing)
  c(
    if (n_missing > 0) {
      paste(format_count(n_missing), "left out for missing values")
    },
    if (n_weightless > 0) {
      paste(format_count(n_weightless), "left out of weight 0 or no trials")
    }
  )
}

# What ran, in one line.
sampler_text <- function(fit) {
  if (kernel_is_independent(fit$kernel)) {
    return(kernel_traits(fit$kernel)$text)
  }
  rows <- if (gradient_is_full(fit$gradient) || length(fit$sizes) == 0) {
    NULL
  } else {
    mean(fit$sizes, na.rm = TRUE)
  }
  if (kernel_sweeps(fit$kernel)) {
    # normal responses have nothing to accept
    rates <- fit$chains$acceptance
    exactness <- if (all(is.na(rates))) {
      paste0(" (", exact_text(fit), ")")
    } else {
      metropolis_text(fit, exact_text(fit))
    }
    return(paste0(kernel_traits(fit$kernel)$text, exactness))
  }
  if (kernel_is_factorised(fit$kernel)) {
    return(paste0(
      kernel_traits(fit$kernel)$text,
      metropolis_text(fit, exact_text(fit)),
      ", ",
      format(rows, digits = 2),
      " rows a step"
    ))
  }
  varies <- !is.null(rows) && min(fit$sizes) < max(fit$sizes)
  paste0(
    kernel_traits(fit$kernel)$text,
    metropolis_text(fit, exact_text(fit)),
    ", ",
    gradient_traits(fit$gradient)$text,
    if (!is.null(rows)) {
      paste0(
        ", minibatches of ",
        if (varies) "on average ",
        count_noun(round(rows), if (is.null(fit$groups)) "row" else "group")
      )
    },
    if (fit$is_whitened || !is.null(fit$stand_in)) ", whitened"
  )
}

print_footer <- function(fit, brief = FALSE, agreement = NULL) {
  cat_within_width({
    cat("\n")
    print_time(fit)
    print_stopped(fit)
    print_metropolis_note(fit)
    print_bias_note(fit, brief, agreement)
    print_noise_note(fit)
  })
}

print_time <- function(fit) {
  cat(
    "Time: ",
    format(sum(fit$time), digits = 2),
    " s (preparation ",
    format(fit$time[["preparation"]], digits = 2),
    " s)",
    if (!is.null(fit$cpu)) {
      paste0(", CPU ", format(fit$cpu, digits = 2), " s")
    },
    "; ",
    passes_text(fit),
    ".\n",
    sep = ""
  )
}

# "1 pass over the data", "40,017 gradients"; parts of a pass where there are
# few.
passes_text <- function(fit) {
  n <- fit$passes
  shown <- if (isTRUE(n < 100)) {
    format(n, digits = 3)
  } else {
    format_count(round(n))
  }
  is_one <- shown == "1"
  if (fit$n_data > 0) {
    paste(shown, if (is_one) "pass" else "passes", "over the data")
  } else {
    paste(shown, if (is_one) "gradient" else "gradients")
  }
}

print_stopped <- function(fit) {
  stopped <- fit$chains$status != "ok"
  if (any(stopped)) {
    cat(
      sum(stopped),
      " of ",
      length(stopped),
      " chains stopped early",
      if (!all(stopped)) " and are left out",
      ".\n",
      sep = ""
    )
  }
}

# What gradient noise does to the kernel, and kernels that sample something
# else.
print_noise_note <- function(fit) {
  if (kernel_is_extreme(fit$kernel)) {
    cat("Warning: the extreme variant does not sample the posterior.\n")
    return(invisible())
  }
  if (!is.null(fit$noise) && fit$noise$looks > 0) {
    beyond <- mean(fit$noise$beyond / fit$noise$looks)
    if (beyond > 0.01) {
      cat("Warning: ", noise_advice(beyond, fit$gradient), "\n", sep = "")
    }
  }
}

# On what R-hat cannot see. Too much spread is the step size's doing; too little
# is that of a chain which has not been everywhere yet, and which a smaller step
# would make worse, or of a kernel that samples a law too narrow.
print_bias_note <- function(fit, brief, agreement = NULL) {
  if (kernel_is_exact(fit$kernel)) {
    if (length(stuck_chains(fit)) > 0) {
      return(invisible()) # what has not moved says nothing, exactly or not
    }
    cat(exact_note(fit), sep = "\n")
    return(invisible())
  }
  bias <- fit$bias
  cat(bias_left_out(bias))
  bias <- bias[is.finite(bias$sd_bias) & is.finite(bias$sd_bias_se), ]
  if (NROW(bias) == 0) {
    return(invisible())
  }
  at <- match(bias$variable, agreement$variable)
  is_short <- is_short_run(bias$sd_bias, agreement, at, n_alive(fit))
  cat(
    bias_note(
      bias$sd_bias,
      bias$sd_bias_se,
      bias$variable,
      is_short,
      gradient_traits(fit$gradient)$remedies
    ),
    sep = "\n"
  )
  if (!brief) {
    cat(
      "sd_bias: relative bias of sd (standard error), see ?summary.tall_fit.\n"
    )
  }
}

exact_note <- function(fit) {
  if (kernel_is_independent(fit$kernel)) {
    return("Exact: the draws are independent, and nothing biases them.")
  }
  found <- fit$quadrature
  if (is.null(found)) {
    return("Exact: no step size or minibatch biases the draws.")
  }
  c(
    paste(
      "Exact but for the quadrature: no step size or minibatch biases the",
      "draws."
    ),
    if (is.na(found$error)) {
      paste0(
        "  Its error was not measured: ",
        if (is.null(whole_draws(fit))) {
          "no draws of all parameters were kept."
        } else {
          "the run was interrupted."
        }
      )
    } else if (found$error > quadrature_settings$told) {
      paste0(
        "Warning: by the quadrature posterior means may be off by ",
        error_words(found$error),
        " of their sds."
      )
    }
  )
}

# A line on the variables of which the next one does not speak.
bias_left_out <- function(bias) {
  left <- bias$variable[is.na(bias$sd_bias)]
  if (length(left) == 0) {
    return(NULL)
  }
  shown <- utils::head(left, 3)
  if (length(left) > 4) {
    shown <- c(shown, paste(length(left) - 3, "more"))
  } else {
    shown <- left
  }
  paste0(
    "The bias of the posterior sd is not estimated for ",
    cli::format_inline("{shown}"),
    ": far from normal, see ?sg_sample.\n"
  )
}

# What matters, and what can be told: 5 percent and three standard errors, and a
# standard error of a quarter. is_short: is the run too short for the spread to
# be seen, where that is known? remedies: as gradient_traits() has them.
bias_note <- function(
  value,
  se,
  variable,
  is_short = NA,
  remedies = gradient_traits(NULL)$remedies
) {
  told <- abs(value) > 0.05 & abs(value) > 3 * se
  is_short <- rep_len(is_short, length(value))
  line <- function(text, at) {
    paste0(text, bias_text(value[[at]], se[[at]]), " for ", variable[[at]], ".")
  }
  wide <- narrow <- NULL
  most <- which(told & value > 0)
  if (length(most) > 0) {
    most <- most[[which.max(value[most])]]
    wide <- c(
      line("Warning: the posterior sds are biased, by up to ", most),
      "  A smaller step size or larger minibatches lessen it."
    )
  }
  least <- which(told & value < 0)
  if (length(least) > 0) {
    least <- least[[which.min(value[least])]]
    narrow <- c(
      line("Warning: draws have less spread than the posterior, by ", least),
      narrow_reason(is_short[[least]], remedies)
    )
  }
  if (length(wide) > 0 || length(narrow) > 0) {
    # the larger one first: neither hides the other
    is_wider <- length(narrow) == 0 ||
      (length(wide) > 0 && value[[most]] >= -value[[least]])
    return(if (is_wider) c(wide, narrow) else c(narrow, wide))
  }
  clear <- which(se <= 0.25)
  if (length(clear) == 0) {
    return("The run is too short to tell the bias of the posterior sds.")
  }
  at <- clear[[which.max(abs(value[clear]))]]
  paste0(
    "Estimated bias of the posterior sds: at most ",
    bias_text(value[[at]], se[[at]]),
    " for ",
    variable[[at]],
    "."
  )
}

# Why draws have too little spread, and what to do.
narrow_reason <- function(is_short, remedies) {
  if (is.na(is_short)) {
    c(
      "  Run longer first; what then stays is the kernel's own:",
      paste0("  take ", remedies, ".")
    )
  } else if (is_short) {
    "  The run is too short for its step size: run longer or take larger steps."
  } else {
    c(
      "  It is the kernel's own, and running longer does not mend it:",
      paste0("  take ", remedies, ".")
    )
  }
}
