# Tables of multilevel fits for programs, as broom.mixed has them.

#' @rdname tidy-tall_fit
#' @method tidy tall_glmer
#' @export
tidy.tall_glmer <- function(
  x,
  effects = "fixed",
  conf.int = FALSE,
  conf.level = 0.95,
  exponentiate = FALSE,
  ...
) {
  if ("ran_vals" %in% effects) {
    abort_input(
      c(
        "{.arg effects} has {.val ran_vals}: effects of groups are no parameters
         here.",
        i = "{.fn ranef} has their means, with standard deviations as attribute
             {.code \"sd\"}."
      ),
      argument = "effects",
      value = effects
    )
  }
  check_known(effects, c("fixed", "ran_pars", "auxiliary"), "effect")
  own <- x$n_coef + seq_along(x$variables[-seq_len(x$n_coef)])
  is_sigma <- x$variables %in% response_aux(x$family)
  groups <- x$variables[setdiff(own, which(is_sigma))]
  # each variable as a coefficient, and then what is asked for
  plain <- x
  class(plain) <- setdiff(class(x), "tall_glmer")
  plain$n_coef <- length(x$variables) - sum(is_sigma)
  out <- tidy.tall_fit(
    plain,
    c("fixed", "auxiliary"),
    conf.int,
    conf.level,
    exponentiate,
    ...
  )
  effect <- ifelse(
    out$term %in% groups,
    "ran_pars",
    ifelse(out$term %in% x$variables[is_sigma], "auxiliary", "fixed")
  )
  if (exponentiate && "ran_pars" %in% effects) {
    abort_input(
      "{.arg exponentiate} is for coefficients: leave {.val ran_pars} out of
       {.arg effects}.",
      argument = "exponentiate",
      value = TRUE
    )
  }
  out <- out[effect %in% effects, ]
  out$effect <- effect[effect %in% effects]
  out[c("effect", setdiff(names(out), "effect"))]
}
