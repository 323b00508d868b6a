# The plan for a kernel that was given: what runs with what, and defaults.

# The estimator of a Metropolis kernel, or the reason why there is none.
metropolis_gradient <- function(kernel, gradient, subsample) {
  if (is.null(gradient)) {
    gradient <- if (kernel_uses_loss(kernel)) gradient_cv() else gradient_full()
  }
  name <- paste0("kernel_", kernel$name)
  if (gradient_is_full(gradient)) {
    check_has_minibatch(kernel, name)
  } else {
    check_minibatch_gradient(kernel, name, gradient, subsample)
  }
  gradient
}

# Does no step draw some of the rows as its user said? Of the recipe nobody has.
sees_all_rows <- function(run) {
  kernel <- run$kernel
  if (is.null(kernel) || !is.null(run$gradient)) {
    return(is.null(kernel) || gradient_is_full(run$gradient))
  }
  kernel_is_metropolis(kernel) &&
    !kernel_is_factorised(kernel) &&
    !kernel_uses_loss(kernel) &&
    is.null(run$subsample)
}

check_has_minibatch <- function(kernel, name) {
  if (kernel_uses_loss(kernel)) {
    abort_tall(
      "unsupported",
      c(
        "{.code {name}(ratio = \"minibatch\")} needs minibatches, which
         {.fn gradient_full} has none of.",
        i = "Use {.code ratio = \"full\"}, or {.fn gradient_cv}."
      )
    )
  }
}

check_minibatch_gradient <- function(kernel, name, gradient, subsample) {
  given <- paste0("gradient_", gradient$name)
  if (kernel_info(kernel)$needs_full_gradient) {
    reason <- if (isTRUE(kernel$args$exact)) {
      "{.code {name}(exact = TRUE)} needs the exact gradient, which the
       distribution of its momenta is centred at"
    } else {
      "{.fn {name}} needs the exact gradient in every step of a trajectory"
    }
    abort_tall(
      "unsupported",
      c(
        paste0(reason, "; {.fn {given}} does not give it."),
        i = "Use {.fn gradient_full}; {.fn kernel_mala} and {.fn kernel_barker}
             are exact with minibatch gradients, too."
      )
    )
  }
  if (gradient_info(gradient)$has_memory) {
    abort_tall(
      "unsupported",
      c(
        "{.fn {name}} cannot use {.fn {given}}, whose estimate depends on where
         the chain has been.",
        i = "Use {.fn gradient_full}, {.fn gradient_simple} or
             {.fn gradient_cv}."
      )
    )
  }
  if (kernel_uses_loss(kernel) && !is.null(subsample) &&
    subsample_info(subsample)$looks_at_state) {
    abort_tall(
      "unsupported",
      c(
        "{.code {name}(ratio = \"minibatch\")} compares two points on one
         minibatch, and {.code subsample_{subsample$name}()} draws others at
         each.",
        i = "Use {.fn subsample_uniform} or {.fn subsample_weighted}."
      )
    )
  }
}

# A momentum that was drawn for one theta is not the law's for the theta that a
# Gibbs draw leaves.
check_gibbs <- function(kernel, model) {
  if (is.null(model$traits$gibbs_every) || !isTRUE(kernel$args$exact)) {
    return(invisible())
  }
  abort_tall(
    "unsupported",
    c(
      "{.code kernel_{kernel$name}(exact = TRUE)} cannot be exact where
       {.fn {model$label}} draws some parameters itself.",
      i = if (has_hyper(model)) {
        "Use {.fn kernel_smh} or {.fn kernel_hmc}."
      } else {
        "Make the model with {.code gibbs_every = NULL}."
      }
    ),
    argument = if (has_hyper(model)) "kernel" else "gibbs_every"
  )
}

# Hyperparameters that are nearly 0 leave their coefficients no room, which
# steps that nobody accepts or rejects do not see.
check_hyper <- function(kernel, model) {
  if (!has_hyper(model) || kernel_is_metropolis(kernel)) {
    return(invisible())
  }
  abort_tall(
    "unsupported",
    c(
      "{.code kernel_{kernel$name}()} cannot sample under
       {.code {model$mixture$given}}: without a Metropolis step it is
       thrown out where a scale is nearly 0.",
      i = if (model_info(model)$has_remainders) {
        "Use {.fn kernel_smh}, which proposes by them exactly, {.fn kernel_hmc}
         or {.fn kernel_mala}, or leave {.arg kernel} out."
      } else {
        "Use {.fn kernel_hmc} or {.fn kernel_mala}, or leave {.arg kernel} out;
         {.fn kernel_smh} is for responses without a parameter that is sampled."
      }
    ),
    argument = "kernel"
  )
}

# A kernel as given, in the model's own coordinates.
plan_explicit <- function(model, sampler, control) {
  kernel <- sampler$kernel
  gradient <- sampler$gradient
  subsample <- sampler$subsample
  check_hyper(kernel, model)
  check_gibbs(kernel, model)
  check_schedule(kernel, sampler$schedule)
  check_collected(sampler$schedule, control)
  if (kernel_is_metropolis(kernel)) {
    check_has_density(kernel, model)
    gradient <- if (kernel_is_factorised(kernel)) {
      factorised_gradient(kernel, gradient, subsample, model)
    } else {
      metropolis_gradient(kernel, gradient, subsample)
    }
  }
  if (is.null(gradient)) {
    gradient <- if (!model_has_rows(model)) {
      gradient_full()
    } else {
      constructor_of("gradient", model$traits$gradient)()
    }
  }
  if (!model_has_rows(model)) {
    check_rowless(model, gradient, subsample)
  }
  if (kernel_is_metropolis(kernel) && model_is_noisy(model)) {
    abort_tall(
      "unsupported",
      c(
        "{.code kernel_{kernel$name}()} needs exact gradients, and those of this
         {.fn model_density} have noise.",
        i = "Make the model with {.code gradient_noise = \"none\"}."
      )
    )
  }
  if (gradient_is_full(gradient)) {
    if (!is.null(subsample)) {
      abort_tall(
        "unsupported",
        c(
          "{.fn gradient_full} uses all rows: {.arg subsample} has no use.",
          i = "Leave {.arg subsample} out, or use {.fn gradient_cv}."
        )
      )
    }
  } else if (is.null(subsample) && !kernel_is_factorised(kernel)) {
    subsample <- default_subsample(model)
  }
  check_noise(model, kernel, gradient, subsample)
  plan <- new_plan(
    model,
    new_sampler(kernel, gradient, subsample, sampler$schedule),
    mode = if (inherits(gradient$args$at, "tall_mode")) gradient$args$at
  )
  if (has_hyper(model) && kernel_is_factorised(kernel)) {
    plan <- with_scales(plan, control)
  }
  plan
}

# What a kernel wants to know of the gradient noise, minibatches must show.
check_noise <- function(
  model,
  kernel,
  gradient,
  subsample,
  info = gradient_info(gradient)
) {
  if (!kernel_info(kernel)$uses_variance || gradient_is_full(gradient)) {
    return(invisible())
  }
  option <- kernel_traits(kernel)$noise_option
  if (!info$has_variance) {
    abort_tall(
      "unsupported",
      c(
        "{.code kernel_{kernel$name}({option$given})} needs the variance of the
         gradient noise, which {.code gradient_{gradient$name}()} does not
         report.",
        i = "Use {.fn gradient_cv}, or {.code {option$instead}}."
      ),
      argument = "gradient"
    )
  }
  largest <- subsample_traits(subsample)$largest(model$n_data)
  if (largest > 1) {
    return(invisible())
  }
  abort_tall(
    "unsupported",
    c(
      "{.code kernel_{kernel$name}({option$given})} needs the variance of the
       gradient noise, which a minibatch of one row does not show.",
      i = "Take minibatches of at least 2 rows, or {.code {option$instead}}."
    ),
    argument = "subsample",
    expected = 2,
    value = largest
  )
}

# Minibatches are drawn from rows, which this model does not have.
check_rowless <- function(model, gradient, subsample) {
  arg <- if (!gradient_is_full(gradient)) {
    "gradient"
  } else if (!is.null(subsample)) {
    "subsample"
  }
  if (!is.null(arg)) {
    abort_tall(
      "unsupported",
      c(
        "{.code {model$label}()} has no rows to draw minibatches from.",
        i = "Leave {.arg {arg}} out: the gradient is {.fn gradient_full}'s."
      )
    )
  }
}

default_size <- function(model) {
  batch <- model$traits$batch
  if (!is.null(batch)) {
    return(min(model$n_data, batch))
  }
  min(model$n_data, max(32, ceiling(2.5 * (model$n_dim - 1))))
}

default_subsample <- function(model) {
  info <- model_info(model)
  if (info$has_weights && info$has_curvature) {
    subsample_weighted(default_size(model), "hessian")
  } else {
    subsample_uniform(default_size(model))
  }
}

# The estimator of such a kernel, or the reason why there is none.
factorised_gradient <- function(kernel, gradient, subsample, model) {
  name <- paste0("kernel_", kernel$name)
  check_has_remainders(model, name)
  if (!is.null(kernel$args$proposal)) {
    check_proposal_model(kernel$args$proposal, model)
  }
  if (!is.null(gradient) && gradient_order(gradient) != 2) {
    abort_tall(
      "unsupported",
      c(
        "{.fn {name}} takes {.code gradient_cv(order = 2)}, whose expansions its
         test is made of, not {.code gradient_{gradient$name}()}.",
        i = "Leave {.arg gradient} out."
      ),
      argument = "gradient"
    )
  }
  if (!is.null(subsample)) {
    abort_tall(
      "unsupported",
      c(
        "{.fn {name}} draws its rows itself: {.arg subsample} has no use.",
        i = "Leave {.arg subsample} out, or use {.fn kernel_sgld} with
             {.code gradient_cv(order = 2)}."
      ),
      argument = "subsample"
    )
  }
  gradient %||% gradient_cv(order = 2)
}

check_has_remainders <- function(model, name) {
  info <- model_info(model)
  if (info$has_remainders) {
    return(invisible())
  }
  other <- if (info$has_predictors) {
    "{.fn kernel_sgld} with {.code gradient_cv(order = 2)}, or"
  } else if (!model_has_rows(model) || has_hyper(model)) {
    "{.fn kernel_hmc} or"
  } else {
    "{.fn kernel_sgld} with {.fn gradient_cv}, or"
  }
  reason <- if (!info$has_predictors && !has_hyper(model)) {
    "its rows do not act through one linear predictor each"
  } else if (model$traits$n_aux > 0) {
    paste0(
      "its `",
      sampled_aux(model)[[1]],
      "` is sampled, and the bounds of rows hold for a known one"
    )
  } else {
    paste0(
      "the third derivative of a response of family \"",
      family_name(model$family),
      "\" has no bound"
    )
  }
  abort_tall(
    "unsupported",
    c(
      "{.fn {name}} cannot sample this {.fn {model$label}}: {reason}.",
      i = paste("Use", other, "{.fn kernel_mala}.")
    ),
    argument = "kernel"
  )
}
