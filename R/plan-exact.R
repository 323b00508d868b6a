# The recipe's exact draws from a few rows: kernel_smh(), where a pilot says
# that its steps are accepted, look at few rows and do not take too long.

# list(plan, seconds, pace_seconds, why_not): the plan of such draws, NULL where
# there is none; what the run will take, by count, which is the same everywhere,
# and by the pilot's pace, which is said; the reason why there is no plan.
# n_data: of all rows, where the model has some of them.
try_exact <- function(
  model,
  mode,
  control,
  ledger,
  n_data = model$n_data
) {
  if (!model_info(model)$has_remainders) {
    return(list(why_not = no_remainders(model)))
  }
  if (model$n_dim > setting("most_whitened")) {
    return(list(why_not = "exact steps are for fewer parameters"))
  }
  plan <- new_plan(
    model,
    new_sampler(kernel_smh(), gradient_cv(at = mode, order = 2)),
    mode = mode,
    ledger = ledger
  )
  report <- exact_pilot(plan, control)
  if (is.null(report)) {
    return(list(
      why_not = "an exact step has no normal distribution to propose from"
    ))
  }
  verdict <- judge_exact(model, report, control, function() {
    tail_shape(model, mode, control, ledger)
  }, n_data)
  if (is.null(verdict$why_not)) {
    verdict$plan <- settle_exact(plan, verdict)
  }
  verdict
}

# What a pilot's report says of exact steps: list(why_not), or list(share,
# steps, seconds, pace_seconds, rows, acceptance). tail(): tail_shape(). n_data:
# of all rows. share: of the acceptance that is asked of them, as much as is
# enough.
judge_exact <- function(
  model,
  report,
  control,
  tail,
  n_data = model$n_data,
  share = 1
) {
  s <- setting("recipe")
  acceptance <- report$n_accept / report$n_propose
  rows <- (report$n_row - report$n_full * model$n_data) / report$n_propose
  if (acceptance < share * s$exact_acceptance) {
    why_not <- "exact steps would be accepted with probability"
    return(list(why_not = paste(why_not, short(acceptance))))
  }
  if (share * rows > s$full_share * n_data) {
    why_not <- "an exact step would look at"
    return(list(why_not = paste(why_not, count_noun(round(rows), "row"))))
  }
  # where nearly all are accepted the posterior is near normal
  tail <- if (acceptance < s$exact_normal) tail() else 1
  if (tail < s$exact_tail) {
    return(list(why_not = "its tails are too heavy for exact steps"))
  }
  # a heavy tail is left by small steps, which are accepted more often
  is_even <- tail >= s$exact_even && acceptance >= s$exact_often
  share <- if (is_even) kernel_smh()$args$share else s$exact_share
  steps <- exact_steps(acceptance, tail, share)
  n_step <- control$warmup + (control$iter - control$warmup) * steps
  list(
    share = share,
    steps = steps,
    seconds = control$chains * n_step * exact_seconds(model$n_dim, rows),
    pace_seconds = control$chains * n_step * report$pace,
    rows = rows,
    acceptance = acceptance
  )
}

settle_exact <- function(plan, verdict) {
  plan$kernel <- kernel_smh(verdict$share)
  plan$steps <- verdict$steps
  plan$recipe <- list(
    size = verdict$rows,
    acceptance = verdict$acceptance,
    kappa = laplace_kappa(plan$model, plan$mode)
  )
  plan$why <- paste0(
    "exact steps: in a pilot they looked at ",
    short(verdict$rows),
    " rows each, and ",
    share_text(verdict$acceptance),
    " were accepted"
  )
  plan
}

no_remainders <- function(model) {
  if (model$traits$n_aux > 0) {
    paste0("its ", paste0("`", sampled_aux(model), "`", collapse = " and "),
      if (model$traits$n_aux > 1) " are" else " is", " sampled")
  } else if (model$traits$has_classes) {
    "the response has several classes"
  } else if (model$traits$has_several) {
    "its rows have several predictors"
  } else {
    "its rows have no bounds"
  }
}

short <- function(x) {
  format(signif(x, 2), digits = 2, scientific = FALSE, big.mark = ",")
}

# The report of a run of a few hundred steps, the same whatever the run's seed
# is, with `pace`, the seconds that a step took; NULL where it cannot be made.
exact_pilot <- function(plan, control) {
  s <- setting("recipe")
  pilot <- pilot_control(control, s$exact_pilot)
  tryCatch(
    {
      plan$init <- plan_init(plan, NULL, pilot)
      segment <- run_segment(plan, pilot, new_stretch(0, s$exact_pilot))
      report <- segment$reports[[1]]
      spend(plan$ledger, "recipe", report$n_row / plan$model$n_data)
      report$pace <- segment$pace
      if (status_name(report$status) == "ok") report
    },
    tall_error_singular = function(cnd) NULL,
    tall_error_nonfinite = function(cnd) NULL
  )
}

# Steps from one kept draw to the next. Most proposals are independent of where
# the chain is, a share keeps nine tenths of its place; out in a tail that is
# heavier than a normal one (see tail_shape()) fewer are accepted.
exact_steps <- function(
  acceptance,
  tail = 1,
  share = 0.1,
  least = setting("recipe")$exact_correlation
) {
  correlation <- 1 - acceptance * (1 - 0.9 * share)
  steps <- log(least) / log(correlation)
  excess <- exp((1 - tail) * tail_radius^2 / 2)
  max(1, ceiling(steps * max(1, excess / 2)))
}

# Seconds of a step, by count: a choice that was timed would not be the same on
# every machine. A row is fetched from memory, and what is left of it is found
# at both ends; a proposal takes two triangular products.
exact_seconds <- function(n_dim, rows) {
  4e-7 + 1e-9 * n_dim^2 + rows * (1e-7 + row_seconds(n_dim))
}

# ---- heavy tails -------------------------------------------------------------

# Posterior sds from the mode at which a tail is looked at.
tail_radius <- 3

# How much log density a step of `tail_radius` posterior sds loses, as a share
# of what a normal posterior would: the least along any parameter (the others
# following at their conditional means) or along the rows that matter most.
# Those that matter more than others are looked at one and all, of the others as
# many as tell what is left of their second-order expansions.
tail_shape <- function(model, mode, control, ledger) {
  s <- setting("recipe")
  covariance <- vcov(mode)
  cubic <- order_weights(model, mode, control)
  order <- order(cubic, decreasing = TRUE)
  n_heavy <- min(model$n_data, s$tail_heavy)
  heavy <- order[seq_len(n_heavy)]
  others <- order[-seq_len(n_heavy)]
  n_some <- min(length(others), s$tail_rows)
  some <- others[ceiling(seq_len(n_some) * length(others) / n_some)]
  spend(ledger, "recipe", 1 + 4 * (n_heavy + length(some)) / model$n_data)
  along <- tail_directions(model, mode, covariance, heavy)
  left <- prior_remainder(model, mode, along)
  left <- left + tail_remainder(model, mode, along, heavy)
  if (length(some) > 0) {
    share <- length(others) / length(some)
    left <- left + share * tail_remainder(model, mode, along, some)
  }
  min(1 + left / (tail_radius^2 / 2))
}

# Directions of length one sd, as columns.
tail_directions <- function(model, mode, covariance, heavy) {
  sd <- sqrt(diag(covariance))
  parameters <- covariance / rep(sd, each = length(sd))
  at <- as.double(mode$estimate)
  rows <- lapply(utils::head(heavy, setting("recipe")$heavy_rows), function(i) {
    g <- model_evaluate(model, at, "likelihood", index = i)$gradient
    v <- covariance %*% as.double(g)
    size <- sqrt(sum(as.double(g) * v))
    if (is.finite(size) && size > 0) v / size
  })
  cbind(parameters, do.call(cbind, rows))
}

# What the rows' negative log likelihood at r and at -r is more than its
# second-order expansion: directions x 2. Derivatives are differences.
tail_remainder <- function(model, mode, along, rows, step = 0.02) {
  at <- as.double(mode$estimate)
  r <- tail_radius
  points <- cbind(
    at,
    at + r * along,
    at - r * along,
    at + step * along,
    at - step * along
  )
  value <- -density_of_rows(model, points, rows)
  n <- ncol(along)
  here <- value[[1]]
  value <- matrix(value[-1] - here, n)
  slope <- (value[, 3] - value[, 4]) / (2 * step)
  bend <- (value[, 3] + value[, 4]) / step^2
  value[, 1:2] - cbind(r * slope, -r * slope) - bend * r^2 / 2
}

# The same of the prior, whose part in the normal law has its precision: nothing
# of a normal one, most of a Laplace prior whose kink is not near.
prior_remainder <- function(model, mode, along) {
  at <- as.double(mode$estimate)
  step <- tail_radius * along
  points <- cbind(at, at + step, at - step)
  prior <- model_evaluate(model, points, "prior", needs_finite = FALSE)
  value <- matrix(prior$log_density[[1]] - prior$log_density[-1], ncol(along))
  slope <- drop(crossprod(step, prior$gradient[, 1]))
  of <- diag(model$n_dim)
  functional <- model$prior_functional
  if (!is.null(functional)) {
    of[functional$at + 1, ] <- functional$weights
  }
  bend <- drop(prior_precision(model$prior) %*% (of %*% step)^2)
  value + cbind(slope, -slope) - bend / 2
}

density_of_rows <- function(model, points, rows) {
  model_evaluate(
    model,
    points,
    "likelihood",
    index = rows,
    needs_finite = FALSE
  )$log_density
}

# Says how long a run takes, if that is long.
tell_seconds <- function(seconds, control, most = 20) {
  if (seconds > most) {
    cli::cli_inform(c(
      i = "This will take about {format_seconds(seconds)} of one core.",
      i = "Fewer columns or a smaller {.arg iter} is faster."
    ))
  }
}
