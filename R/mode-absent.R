# Log posteriors without a mode, or without curvature where the search for one
# ended, of models that have no columns: what is said of them is what was seen.
# Of regressions: mode-separation.R, mode-gaussian.R.

# What a search returns. Where it failed, scales are looked at that the log
# posterior of a user's own model may rise with for ever; models of the package
# are known.
seek_peak <- function(search, model, start, cores) {
  if (!model$traits$is_users) {
    return(search)
  }
  found <- tryCatch(
    search,
    tall_error_mode = identity,
    tall_error_nonfinite = identity
  )
  failed <- inherits(found, "error")
  if (failed || !found$converged) {
    rise <- endless_rise(model, start, cores)
    if (!is.null(rise)) {
      abort_endless_rise(model, rise)
    }
  }
  if (failed) {
    rlang::cnd_signal(found)
  }
  found
}

# Of the logarithms of positive parameters, at most `most` of them, the first
# along which the profile of the log posterior rises without end: list(at,
# values, heights). Steps of 3 are factors of 20; where a density has a mode its
# profile falls in the end, or no longer rises.
endless_rise <- function(model, start, cores, most = 10, step = 3) {
  scales <- grep("^log_", model$coordinates)
  for (at in utils::head(scales, most)) {
    for (direction in c(-1, 1)) {
      values <- start[[at]] + direction * step * 1:3
      heights <- profile_heights(model, start, at, values, cores)
      rises <- diff(heights)
      goes_on <- length(rises) == 2 && all(is.finite(rises)) &&
        rises[[2]] > 0.1 * step && rises[[2]] > 0.5 * rises[[1]]
      if (goes_on) {
        return(list(at = at, values = values, heights = heights))
      }
    }
  }
  NULL
}

# The largest log posterior with coordinate `at` fixed, for each of the values;
# NULL where a search fails, fewer once it no longer rises.
profile_heights <- function(model, start, at, values, cores) {
  heights <- NULL
  theta <- start
  unit <- rep(1, length(theta) - 1)
  for (value in values) {
    theta[[at]] <- value
    whole <- function(u) replace(theta, -at, u)
    last <- NULL
    evaluate <- function(u) {
      if (!identical(last$u, u)) {
        here <- model_evaluate(model, whole(u), needs_finite = FALSE)
        last <<- list(
          u = u,
          log_density = here$log_density,
          gradient = drop(here$gradient)[-at]
        )
      }
      last
    }
    found <- tryCatch(
      lbfgs_maximise(evaluate, theta[-at], NULL, 50, unit),
      error = function(e) NULL
    )
    if (is.null(found) || !is.finite(found$value)) {
      return(NULL)
    }
    theta <- whole(found$par)
    if (length(heights) > 0 && -found$value <= utils::tail(heights, 1)) {
      return(heights)
    }
    heights <- c(heights, -found$value)
  }
  heights
}

abort_endless_rise <- function(model, rise) {
  name <- sub("^log_", "", model$coordinates[[rise$at]])
  falls <- rise$values[[2]] < rise$values[[1]]
  values <- vapply(exp(rise$values), format, "", digits = 2)
  heights <- formatC(rise$heights, digits = 1, format = "f")
  seen <- paste0(
    heights[[1]], " with `", name, "` at ", values[[1]], ", ",
    heights[[2]], " at ", values[[2]], " and ",
    heights[[3]], " at ", values[[3]]
  )
  effect <- paste0(name, " * z")
  abort_tall(
    "mode",
    c(
      "The log posterior has no mode: it rises without end as {.code {name}}
       {if (falls) 'falls to 0' else 'grows'}.",
      x = "The best values of the other parameters make it {seen}.",
      i = if (falls) {
        "The posterior may be proper all the same: the scale of the effects in a
         hierarchical model does this, which draws of it show as a funnel. Write
         the non-centred form: effects {.code {effect}} about their mean, whose
         {.code z} are the parameters, with standard normal prior."
      } else {
        "The posterior is proper only if its mass falls all the same: check the
         prior of {.code {name}}."
      },
      i = "Without a mode there is no recipe; an exact {.arg kernel} such as
           {.code kernel_hmc(step_size, steps, adapt = TRUE)} runs from an
           {.arg init}."
    ),
    coordinate = model$coordinates[[rise$at]],
    heights = rise$heights
  )
}
