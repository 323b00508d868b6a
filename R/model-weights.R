# Unnormalised weights of a model's rows, from the core.

# Types that need the Hessian's Cholesky factor.
chol_types <- c("leverage", "robust", "cubic", "hessian")

# As in `enum tb_weight_type`.
weight_codes <- c(
  gradient = 0L,
  hessian = 1L,
  lipschitz = 2L,
  leverage = 3L,
  robust = 4L,
  cubic = 5L
)

# What users may ask for; "uniform" needs no model.
weight_types <- c(
  "leverage",
  "robust",
  "cubic",
  "hessian",
  "gradient",
  "lipschitz",
  "uniform"
)

# The types of weights that a model has which has no Lipschitz constants.
weights_left <- function(model) {
  if (model_info(model)$has_curvature) {
    "{.val leverage} or {.val hessian}"
  } else {
    "{.val gradient}"
  }
}

# Unnormalised, from the core.
model_weights <- function(
  model,
  type,
  theta,
  chol,
  cores,
  hint = paste0("Use weights of type ", weights_left(model), ".")
) {
  out <- .Call(
    ffi_model_weights,
    model$pointer,
    weight_codes[[type]],
    theta,
    chol,
    cores
  )
  if (is.integer(out)) {
    if (type == "lipschitz" && status_name(out) == "unsupported") {
      family <- if (!is.null(model$family)) {
        paste0(
          " of family \"",
          model$family$name,
          "\"",
          if (model$traits$n_aux > 0) {
            paste0(
              " with a sampled `",
              paste(sampled_aux(model), collapse = "`, `"),
              "`"
            )
          }
        )
      }
      abort_tall(
        "unsupported",
        c(
          "{.code {model$label}()}{family} has no global Lipschitz constants.",
          i = hint
        )
      )
    }
    if (type %in% chol_types) {
      check_has_hessian(model)
    }
    if (status_name(out) == "unsupported") {
      abort_tall(
        "unsupported",
        c(
          "{.code {model$label}()} has no weights of type {.val {type}}: how
           much the curvature of a row can change is not known.",
          i = hint
        ),
        argument = "type"
      )
    }
    abort_status(out)
  }
  # in units of the posterior's curvature, which a Gibbs posterior scales
  if (type == "robust") likelihood_scale(model) * out else out
}
