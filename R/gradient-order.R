# Control variates of order 2: gradient_cv(order = 2), src/gradients/cv2.c.

check_cv_order <- function(order, arg = "order") {
  check_count(order, arg = arg)
  if (!order %in% 1:2) {
    abort_expected(order, "1 or 2", arg = arg)
  }
  as.double(order)
}

gradient_order <- function(gradient) {
  if (inherits(gradient, "tall_gradient_cv")) {
    gradient$args$order %||% 1
  } else {
    0
  }
}

# More parameters: H would not fit. As TB_EXPANSION_MOST in
# src/passes/expansion.h.
order_limits <- list(n_dim = 4000)

# Can the model's gradients be expanded? The reason why not, or NULL.
check_has_order <- function(model, is_factorised = FALSE) {
  info <- model_info(model)
  n_coef <- model$n_dim - n_hyper(model)
  if (has_hyper(model) && !is_factorised) {
    abort_no_hyper_order(model)
  }
  reason <- if (n_coef > order_limits$n_dim) {
    "a matrix of its {format_count(n_coef)} parameters does not fit"
  } else if (has_hyper(model)) {
    NULL # expanded is what its rows see
  } else if (info$random) {
    "its gradients are simulated, and have no derivatives"
  }
  if (!is.null(reason)) {
    abort_tall(
      "unsupported",
      c(
        paste0(
          "{.code gradient_cv(order = 2)} cannot expand
           {.code {model$label}()}: ",
          reason,
          "."
        ),
        i = "Use {.code gradient_cv()}."
      ),
      argument = "order"
    )
  }
}

abort_no_hyper_order <- function(model) {
  abort_tall(
    "unsupported",
    c(
      "{.code gradient_cv(order = 2)} cannot expand the hyperparameters of
       {.code {model$mixture$given}}.",
      i = "Use {.fn kernel_smh}, which expands what rows see, or
           {.code gradient_cv()}."
    ),
    argument = "order"
  )
}

compile_order <- function(spec, context) {
  is_factorised <- kernel_is_factorised(context$kernel)
  check_has_order(context$model, is_factorised)
  member(
    "cv2",
    c(
      list(
        at = context$to_sampler(context$reference(spec)),
        scale = likelihood_scale(context$model),
        # what exact proposals are tested by, too
        factorised = if (is_factorised) 1
      ),
      surrogate_params(
        context$kernel,
        spec$surrogate,
        context$n_data,
        context$n_dim - n_hyper(context$model)
      ),
      ahead_params(spec$ahead)
    )
  )
}

# ---- rows drawn ahead --------------------------------------------------------

# What a fit keeps of it: rows belong to a run.
light_gradient <- function(gradient) {
  gradient["ahead"] <- NULL
  gradient
}

is_ahead <- function(gradient) {
  !is.null(gradient$ahead)
}

ahead_params <- function(ahead) {
  if (is.null(ahead)) {
    return(NULL)
  }
  list(
    total = ahead$gradient,
    hessian = ahead$hessian,
    ahead_chol = ahead$chol,
    ahead_radius = ahead$radius,
    ahead_total = ahead$total,
    ahead_always = as.double(ahead$always) - 1,
    ahead_rows = as.double(ahead$rows) - 1,
    ahead_psi = ahead$psi
  )
}

# What needs rows that are not there: gradients of draws, other kernels,
# whitened coordinates.
check_ahead <- function(plan, control) {
  if (!is_ahead(plan$gradient)) {
    return(invisible())
  }
  refuse <- function(message, hint, argument) {
    abort_tall("unsupported", c(message, i = hint), argument = argument)
  }
  if ("gradients" %in% control$keep) {
    refuse(
      "{.arg keep} cannot have {.val gradients} where a run holds a few rows of
       the data: each takes all of them.",
      "Keep {.val draws}, or use a model that holds all rows.",
      "keep"
    )
  }
  if (!kernel_is_factorised(plan$kernel)) {
    refuse(
      "{.fn kernel_{plan$kernel$name}} cannot use rows that were drawn ahead.",
      "Use {.fn kernel_smh}.",
      "kernel"
    )
  }
  if (model_is_whitened(plan$model)) {
    refuse(
      "Rows that were drawn ahead cannot be in whitened coordinates.",
      NULL,
      "model"
    )
  }
}
