# Control variates of order 2: gradient_cv(order = 2), src/gradients/cv2.c.

check_cv_order <- function(order, arg = "order", call = caller_env()) {
  check_count(order, arg = arg, call = call)
  if (!order %in% 1:2) {
    abort_expected(order, "1 or 2", arg = arg, call = call)
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
check_has_order <- function(model, call = caller_env()) {
  info <- model_info(model)
  reason <- if (model$n_dim > order_limits$n_dim) {
    "a matrix of its {format_count(model$n_dim)} parameters does not fit"
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
      argument = "order",
      call = call
    )
  }
}

compile_order <- function(spec, context, call) {
  check_has_order(context$model, call)
  member(
    "cv2",
    list(
      at = context$to_sampler(context$reference(spec, call)),
      scale = likelihood_scale(context$model),
      # what exact proposals are tested by, too
      factorised = if (kernel_is_factorised(context$kernel)) 1
    )
  )
}
