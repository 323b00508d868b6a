# The recipe's Langevin steps with control variates of order 2: where exact
# steps do not pay, and the posterior is near normal.

can_expand <- function(model) {
  info <- model_info(model)
  info$has_predictors &&
    (info$has_whiten || model$traits$has_several) &&
    n_all_rows(model) > setting("recipe")$small_data &&
    model$n_dim <= setting("most_whitened")
}

# Rows of a minibatch whose noise adds 1 percent to a variance at step size h:
# cubic weights w_i = K_i ||x~_i||^3 leave n tau^2 of about 1.5 (sum w_i)^2 / d.
order_size <- function(cubic, n_dim, step_size) {
  s <- setting("recipe")
  share <- step_size / (4 - step_size) / s$order_noise
  max(s$order_size, ceiling(share * 1.5 * sum(cubic)^2 / n_dim))
}

# K_i ||x~_i||^3 of every row about the mode, in the model's own coordinates or
# in whitened ones.
order_weights <- function(model, mode, control) {
  is_white <- model_is_whitened(model)
  weights <- model_weights(
    model,
    "cubic",
    if (is_white) numeric(model$n_dim) else as.double(mode$estimate),
    if (!is_white) mode$chol,
    control$cores
  )
  likelihood_scale(model) * weights
}

# Seconds of a run by such steps, by count as exact_seconds() has them; Inf
# where there are none.
order_seconds <- function(model, mode, control, ledger) {
  if (!can_expand(model)) {
    return(Inf)
  }
  s <- setting("recipe")
  spend(ledger, "weights", 1)
  cubic <- order_weights(model, mode, control)
  size <- order_size(cubic, model$n_dim, s$order_step)
  n_step <- control$warmup +
    (control$iter - control$warmup) * steps_of_draw(s$order_step)
  a_step <- 3e-7 + 1e-8 * model$n_dim + size * row_seconds(model$n_dim)
  control$chains * n_step * a_step
}

# The plan, NULL where its pilot finds steps that are safe only if as small as
# those of order 1, or minibatches of a large part of the rows. cubic: weights,
# where they are known.
plan_order <- function(model, mode, recipe, control, ledger, cubic = NULL) {
  s <- setting("recipe")
  if (is.null(cubic)) {
    spend(ledger, "weights", 1)
    cubic <- order_weights(model, mode, control)
  }
  weights <- mix_weights(cubic, "cubic")
  step_size <- s$order_step
  size <- order_size(cubic, model$n_dim, step_size)
  repeat {
    if (step_size < 2 * s$step_size) {
      return(NULL)
    }
    plan <- order_plan(model, mode, weights, size, step_size, recipe, ledger)
    always <- plan$recipe$always
    if (size + length(always) >= s$full_share * model$n_data) {
      return(NULL)
    }
    found <- order_pilot(plan, control)
    if (!found$is_safe) {
      step_size <- step_size / 2
    } else if (found$noise_share > 1.1 * s$order_noise) {
      # more than all rows would not be a number of rows
      size <- min(
        model$n_data,
        ceiling(size * found$noise_share / s$order_noise)
      )
    } else {
      plan$recipe$noise_share <- found$noise_share
      return(plan)
    }
  }
}

order_plan <- function(
  model,
  mode,
  weights,
  size,
  step_size,
  recipe,
  ledger
) {
  always <- certain_rows(weights, size)
  recipe[c("size", "step_size")] <- list(size, step_size)
  recipe["always"] <- list(always)
  sampler <- new_sampler(
    kernel_sgld(
      step_size,
      variant = "corrected",
      integrator = "leimkuhler-matthews"
    ),
    gradient_cv(at = mode, order = 2),
    recipe_scheme(size, weights, always, "cubic")
  )
  plan <- new_plan(
    model,
    sampler,
    mode = mode,
    steps = steps_of_draw(step_size),
    escape = setting("recipe")$escape(model$n_dim),
    recipe = recipe,
    ledger = ledger
  )
  plan$why <- paste(
    "Langevin steps with control variates of order 2 on",
    count_noun(size + length(always), "row")
  )
  plan
}

# list(is_safe, noise_share): is the variance of every parameter within 4
# percent as far as can be told, and was no draw far out? The share of a
# variance that is the noise of the gradient, in the worst coordinate.
order_pilot <- function(plan, control) {
  s <- setting("recipe")
  d <- plan$model$n_dim
  plan$steps <- 1
  plan$init <- matrix(0, d, 1)
  report <- run_segment(
    plan,
    pilot_control(control, s$pilot_steps),
    new_stretch(50, s$pilot_steps),
    noise_every = 1
  )$reports[[1]]
  spend(plan$ledger, "recipe", report$n_row / plan$model$n_data)
  h <- plan$recipe$step_size
  tau2 <- report$noise[1 + seq_len(d)] / report$noise[[1]]
  bias <- report_bias(report, d)
  is_safe <- status_name(report$status) == "ok" &&
    report$n_escape == 0 &&
    isTRUE(all(abs(bias$value) - 2 * bias$se <= s$order_bias)) &&
    all(is.finite(tau2))
  list(is_safe = is_safe, noise_share = h / (4 - h) * max(tau2))
}
