# Kernels that users of a front end gave. One that accepts or rejects moves in
# coordinates in which the posterior is about round, as the recipe's do: with
# one step size for all coordinates it would hardly move where these have very
# different scales.

# The plan of a kernel that was given, in whitened coordinates where they help.
# Groups have the nodes that their quadrature needs, whatever the kernel.
plan_front <- function(plan, init, control, in_place) {
  whitens <- takes_whitening(plan)
  if (!whitens && !plan$model$traits$is_grouped) {
    return(plan)
  }
  found <- tryCatch(
    front_mode(plan, control),
    # from an `init`, chains can do without one
    tall_error = function(cnd) if (is.null(init)) rlang::cnd_signal(cnd)
  )
  if (is.null(found) && whitens) {
    plan$why <- "the kernel as given, in the parameters, since there is no mode"
  }
  if (is.null(found)) {
    return(plan)
  }
  plan["recipe"] <- list(found$recipe)
  plan$model <- found$model
  if (!whitens) {
    return(plan)
  }
  plan$mode <- found$mode
  plan$model <- whiten_model(plan$model, plan$mode, in_place)
  spend(plan$ledger, "recipe", 1) # the rows are written anew
  plan$steps <- front_steps(plan)
  plan$why <- paste0(
    "the kernel as given, in coordinates whitened at the mode",
    if (plan$steps > 1) paste0(", ", plan$steps, " steps an iteration")
  )
  tell_slow_front(plan, control)
  plan
}

# Of an iteration after warmup. A kernel whose step the run finds is the
# recipe's, whose draws are nearly independent; a trajectory is many steps
# already.
front_steps <- function(plan) {
  kernel <- plan$kernel
  if (lacks_step(kernel) && is.null(kernel$args$steps)) {
    mala_steps(plan$model$n_dim)
  } else {
    1
  }
}

tell_slow_front <- function(plan, control) {
  if (!gradient_is_full(plan$gradient)) {
    return(invisible())
  }
  if (plan$model$traits$is_grouped) {
    tell_slow_groups(plan, control, given = TRUE)
  } else {
    tell_slow(plan, control, given = TRUE)
  }
}

# Proposals of exact steps are those of the mode's normal law already, and where
# each coordinate has a size of its own the user has scaled them.
takes_whitening <- function(plan) {
  kernel <- plan$kernel
  info <- model_info(plan$model)
  kernel_is_metropolis(kernel) &&
    !kernel_is_factorised(kernel) &&
    length(kernel$args$sigma) <= 1 &&
    (info$has_curvature || info$has_diagonal || has_hyper(plan$model))
}

# list(model, mode, recipe): of groups, with the nodes that their quadrature
# needs.
front_mode <- function(plan, control) {
  model <- plan$model
  if (model$traits$is_grouped) {
    found <- groups_at_mode(model, control, plan$ledger)
    return(list(
      model = found$model,
      mode = found$mode,
      recipe = list(nodes = found$nodes)
    ))
  }
  if (is.null(plan$mode$chol) && is.null(plan$mode$scale)) {
    plan["mode"] <- list(NULL)
  }
  list(model = model, mode = plan_mode(plan, control), recipe = NULL)
}
