# The plan of a model that moves its own chains, and what runs with it.

plan_sweeps <- function(model, sampler, control) {
  kernel <- sampler$kernel %||% kernel_gibbs()
  if (!kernel_sweeps(kernel)) {
    abort_swept(model, paste0("kernel_", kernel$name), "kernel")
  }
  unused <- list(
    gradient = if (!is.null(sampler$gradient)) {
      paste0("gradient_", sampler$gradient$name)
    },
    subsample = if (!is.null(sampler$subsample)) {
      paste0("subsample_", sampler$subsample$name)
    },
    schedule = if (!schedule_is_constant(sampler$schedule)) {
      paste0("schedule_", sampler$schedule$name)
    }
  )
  unused <- compact(unused)
  if (likelihood_scale(model) != 1) {
    abort_tall(
      "unsupported",
      c(
        "{.fn kernel_gibbs} draws effects given the rows as they are:
         {.arg lambda} does not reach it.",
        i = "Leave {.arg lambda} out."
      ),
      argument = "lambda"
    )
  }
  if (length(unused) > 0) {
    abort_swept(model, unused[[1]], names(unused)[[1]])
  }
  if ("gradients" %in% control$keep) {
    abort_tall(
      "unsupported",
      c(
        "{.code {model$label}()} has no gradients that {.arg keep} could hold:
         {.fn kernel_gibbs} draws its effects.",
        i = "Leave {.val gradients} out."
      ),
      argument = "keep"
    )
  }
  new_plan(model, new_sampler(kernel, gradient_full()))
}

# The other way round.
check_sweeps <- function(kernel, model) {
  if (is.null(kernel) || !kernel_sweeps(kernel)) {
    return(invisible())
  }
  abort_tall(
    "unsupported",
    c(
      "{.fn kernel_gibbs} samples {.fn model_crossed}, whose effects it draws,
       and not {.code {model$label}()}.",
      i = "Leave {.arg kernel} out."
    ),
    argument = "kernel"
  )
}
