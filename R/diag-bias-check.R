# bias_check(): what half the step size makes of a fit.

#' Check a fit for step-size bias
#'
#' Runs the sampler of a fit again with half its step size and extrapolates: the
#' bias of posterior means and standard deviations that R-hat and effective
#' sample sizes cannot see.
#'
#' @param fit ([`tall_fit`][tall_fit]) The fit, from a kernel without Metropolis
#'   step.
#' @param iter (whole number or `NULL`) Iterations of each chain after warmup,
#'   each of twice as many steps; `NULL`: as many as the fit had.
#' @param seed (whole number or `NULL`) Seed of the second run; `NULL` takes one
#'   from R's generator.
#' @param model,cores,refresh As in [sg_resume()].
#'
#' @details An Euler step of size \eqn{h} biases expectations by \eqn{c h +
#' O(h^2)}, a Leimkuhler-Matthews step by \eqn{c h^2 + O(h^3)}. With \eqn{m_h}
#' the estimate at step size \eqn{h}, its bias is therefore about \eqn{2 (m_h -
#' m_{h/2})}{2 (m_h - m_(h/2))} or \eqn{\frac43 (m_h - m_{h/2})}{4/3 (m_h -
#' m_(h/2))}. Gradient noise adds a bias of the variance that is of first order
#' in \eqn{h} for both, so for Leimkuhler-Matthews the estimate for a standard
#' deviation is a lower bound where noise dominates; `sd_bias` in the summary
#' sees both parts. The standard errors come from the Monte Carlo error of both
#' runs: a bias below twice its standard error cannot be told from zero, and a
#' longer fit is needed to see it.
#'
#' @return An object of class `tall_bias_check`: a list with `table`, a data
#'   frame of `variable`, `mean_bias` (in posterior standard deviations),
#'   `mean_bias_se`, `sd_bias` (relative) and `sd_bias_se`; and `fit`, the
#'   second run.
#' @section Conditions: `tall_error_unsupported` for a fit by a Metropolis
#' kernel, or of independent exact draws, which have no such bias, or without
#' draws; `tall_error_stale` if the
#' model is gone.
#' @references
#' Vollmer, Zygalakis & Teh (2016). Exploration of the (non-)asymptotic bias and
#' variance of stochastic gradient Langevin dynamics. *Journal of Machine
#' Learning Research* 17(159), 1-48.
#'
#' Brosse, Durmus & Moulines (2018). The promises and pitfalls of stochastic
#' gradient Langevin dynamics. *NeurIPS*.
#' @examples
#' x <- cbind("(Intercept)" = 1, age = rnorm(1000))
#' y <- rbinom(1000, 1, plogis(0.5 + x[, "age"]))
#' model <- model_glm(x, y, family = "bernoulli")
#' fit <- sg_sample(model, kernel_sgld(0.001), iter = 1000, seed = 1)
#' bias_check(fit, seed = 2)
#' @export
bias_check <- function(
  fit,
  iter = NULL,
  seed = NULL,
  model = NULL,
  cores = getOption("mc.cores", 1L),
  refresh = getOption("tallbayes.refresh", 1)
) {
  check_spec(fit, "tall_fit", "sg_sample()")
  check_not_robust(fit, "bias_check")
  check_has_draws(fit)
  factor <- bias_factor(fit$kernel)
  if (!is.null(fit[["weights"]])) {
    abort_tall(
      "unsupported",
      c(
        "The step size of the fit decays, and its bias with it: there is no one
         step size to halve.",
        i = "Check a run with {.fn schedule_constant}."
      )
    )
  }
  control <- fit$control
  iter <- check_count(iter, most = count_limits$iter, allow_null = TRUE) %||%
    (control$iter - control$warmup)
  control$cores <- check_cores(cores)
  control$refresh <- check_number(refresh, min = 0)
  control$seed <- check_seed(seed) %||% sample.int(.Machine$integer.max, 1)
  control$iter <- control$warmup + iter
  control["monitor"] <- list(NULL)
  control$keep <- "draws"

  plan <- resume_plan(fit, model)
  plan$kernel$args$step_size <- plan$kernel$args$step_size / 2
  plan$steps <- 2 * plan$steps
  plan$init <- plan_init(plan, NULL, control)
  started <- proc.time()[["elapsed"]]
  segment <- run_segment(
    plan,
    control,
    new_stretch(2 * control$warmup, iter * plan$steps),
    label = "Half the step size",
    on_futures = use_futures(plan$model, control)
  )
  elapsed <- proc.time()[["elapsed"]] - started
  half <- new_fit(
    plan,
    control,
    segment,
    time = c(preparation = 0, sampling = elapsed)
  )
  warn_segment(half, segment)
  structure(
    list(
      table = bias_check_table(fit, half, factor),
      agreement = list(worst_rhat(fit), worst_rhat(half)),
      fit = half
    ),
    class = "tall_bias_check"
  )
}

# list(variable, rhat); NULL where no R-hat is known.
worst_rhat <- function(fit) {
  table <- agreement_table(fit)
  table <- table[is.finite(table$rhat), ]
  if (NROW(table) > 0) {
    at <- which.max(table$rhat)
    list(variable = table$variable[[at]], rhat = table$rhat[[at]])
  }
}

# Before any bias: chains that have not met differ by where they are.
print_runs_apart <- function(agreement) {
  runs <- c("the fit", "the run with half the step size")
  for (k in seq_along(agreement)) {
    worst <- agreement[[k]]
    if (isTRUE(worst$rhat > agreement_settings$rhat)) {
      cat(
        "Warning: the chains of ", runs[[k]], " do not agree: R-hat ",
        format(worst$rhat, digits = 3), " for ", worst$variable,
        ".\n  What follows is no bias then: run longer first.\n",
        sep = ""
      )
    }
  }
}

# With a bias of order h^k, that of the full step is 2^k / (2^k - 1) times the
# difference of the means.
bias_factor <- function(kernel) {
  if (kernel_is_independent(kernel)) {
    abort_tall(
      "unsupported",
      c(
        "The draws of the fit are independent and exact: there is no bias to
         check.",
        i = "What is left is chance, which {.field mcse_mean} in
             {.code summary(fit)} measures."
      )
    )
  }
  if (kernel_is_metropolis(kernel)) {
    abort_tall(
      "unsupported",
      c(
        "The fit is by {.code kernel_{kernel$name}()}, whose proposals are
         accepted or rejected: there is no step-size bias to check.",
        i = "R-hat and the effective sample size in {.code summary(fit)} say all
             there is to say."
      )
    )
  }
  order <- kernel_traits(kernel)$bias_order
  if (is.na(order)) {
    abort_tall(
      "unsupported",
      c(
        "The order of the bias of {.code kernel_{kernel$name}()} in its step
         size is not known: two runs cannot be extrapolated.",
        i = "Use {.fn kernel_sgld} or {.fn kernel_baoab}, or compare with
             {.fn kernel_mala}."
      )
    )
  }
  2^order / (2^order - 1)
}

bias_check_table <- function(fit, half, factor) {
  moments <- function(fit) {
    draws <- posterior::subset_draws(fit$draws, variable = fit$variables)
    as.data.frame(posterior::summarise_draws(
      draws,
      mean = mean,
      sd = stats::sd,
      mcse_mean = posterior::mcse_mean,
      mcse_sd = posterior::mcse_sd
    ))
  }
  a <- moments(fit)
  b <- moments(half)
  data.frame(
    variable = a$variable,
    mean_bias = factor * (a$mean - b$mean) / b$sd,
    mean_bias_se = factor * sqrt(a$mcse_mean^2 + b$mcse_mean^2) / b$sd,
    sd_bias = factor * (a$sd - b$sd) / b$sd,
    sd_bias_se = factor * sqrt(a$mcse_sd^2 + b$mcse_sd^2) / b$sd
  )
}

#' @export
print.tall_bias_check <- function(x, ...) {
  check_no_dots(...)
  print_runs_apart(x$agreement)
  cat("Bias of the fit, extrapolated from half its step size\n")
  cat("means in posterior sds, sds in percent (standard errors)\n\n")
  table <- x$table
  shown <- data.frame(
    mean = sprintf("%+.3f (%.3f)", table$mean_bias, table$mean_bias_se),
    sd = sprintf("%+.1f%% (%.1f)", 100 * table$sd_bias, 100 * table$sd_bias_se),
    row.names = table$variable
  )
  print(utils::head(shown, 30))
  if (nrow(shown) > 30) {
    cat("# ... with ", nrow(shown) - 30, " more variables\n", sep = "")
  }
  seen <- abs(table$mean_bias) > 2.5 * table$mean_bias_se |
    abs(table$sd_bias) > 2.5 * table$sd_bias_se
  seen <- table$variable[!is.na(seen) & seen]
  cat("\n")
  if (length(seen) == 0) {
    cat("No bias larger than its Monte Carlo error.\n")
  } else {
    cat("Beyond 2.5 standard errors: ", quote_columns(seen), ".\n", sep = "")
  }
  invisible(x)
}
