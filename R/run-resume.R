# Runs that go on: sg_resume().

#' Go on with a run
#'
#' Continues every chain as if it had never stopped: the draws are those a
#' longer run would have given. Of independent draws (see *The recipe* of
#' [sg_sample()]) it adds more.
#'
#' @param fit ([`tall_fit`][tall_fit]) A fit, also one that was interrupted, or
#'   saved and read again.
#' @param iter (whole number or `NULL`) Iterations to add. `NULL`: those an
#'   interrupted run still lacks.
#' @param model (`tall_model` or `NULL`) The model, needed when the fit comes
#'   from a file and did not keep its data: the same one, made again. After an
#'   error of one of its functions, the [model_custom()] that was mended.
#' @param cores,refresh As in [sg_sample()].
#'
#' @section Chains that an error stopped: Chains of a [model_custom()] that an
#' error of one of its functions stopped, or a value of it that was not a
#' number, go on from where they stood before it. Mend what was wrong: something
#' that the function finds in the workspace, or the function or the data
#' themselves, with a new `model` of as many observations and the same
#' parameters. The chains that stopped are brought to where the others are, or,
#' if all had stopped, to the end of what the run was asked for; then `iter` is
#' added. If what was mended does not change any value that the chains had seen,
#' the draws are those of a run without the error.
#'
#' Chains that stopped for another reason, such as a step size that is too
#' large, cannot go on.
#'
#' @section Rows in a source: A fit of [tall_glm()] that read its rows by passes
#' over a source makes another pass and draws rows for the new iterations;
#' independent draws, and steps on sums, need none.
#'
#' @return The fit with the new draws after the old ones.
#' @section Conditions: `tall_error_stale` if the model, or the source, is gone
#' and no model is given; `tall_error_source` if the source has other rows;
#' `tall_error_input` if the given model has other data; `tall_error_corrupt` if
#' what the chains go on from is not as it was made: altered by hand, read from
#' a damaged file, or made by another version; `tall_error_unsupported` if a
#' chain had stopped for a reason that would stop it again.
#' @examples
#' x <- cbind("(Intercept)" = 1, age = rnorm(1000))
#' y <- rbinom(1000, 1, plogis(0.5 + x[, "age"]))
#' model <- model_glm(x, y, family = "bernoulli")
#' fit <- sg_sample(model, kernel_sgld(0.001), iter = 500, seed = 1)
#' fit <- sg_resume(fit, iter = 500)
#' @export
sg_resume <- function(
  fit,
  iter = NULL,
  model = NULL,
  cores = getOption("mc.cores", 1L),
  refresh = getOption("tallbayes.refresh", 1)
) {
  began <- clock()
  check_spec(fit, "tall_fit", "sg_sample()")
  check_sealed(fit)
  check_not_robust(fit, "sg_resume")
  iter <- check_count(iter, most = count_limits$iter, allow_null = TRUE)
  if (!is.null(fit$engine)) {
    return(resume_engine(fit, iter, cores, refresh))
  }
  fit$control$cores <- check_cores(cores)
  fit$control$refresh <- check_number(refresh, min = 0)
  check_can_go_on(fit)
  if (!is.null(fit$halted)) {
    fit <- rejoin_chains(fit, model)
    is_done <- is.null(iter) && steps_left(fit) == 0
    if (!is.null(fit$halted) || is_done) {
      return(add_clock(seal_fit(finish_fit(fit)), began))
    }
  }
  work <- remaining_steps(fit, iter)
  n_step <- (work$n_warmup + work$n_sampling) * fit$control$chains
  plan <- resume_plan(fit, model, n_step)
  check_keeps_alike(fit, plan$model)
  from <- fit_standing(fit)
  segment <- run_segment(
    plan,
    fit$control,
    work,
    from,
    on_futures = use_futures(plan$model, fit$control)
  )
  fit <- keep_model(fit, plan)
  fit$progress$iterations_before <- from$iterations_before
  fit$control$iter <- max(
    fit$control$iter,
    fit$progress$iterations_before +
      work$n_warmup +
      ceiling(work$n_sampling / fit$steps)
  )
  fit <- add_segment(fit, segment, plan$model)
  fit <- add_quadrature(fit, plan$model, segment)
  warn_segment(fit, segment)
  warn_quadrature(fit, plan$model)
  add_clock(seal_fit(finish_fit(fit)), began)
}

# Of a fit that is a view of another, see R/fit-levels.R.
resume_engine <- function(fit, iter, cores, refresh) {
  engine <- fit$engine
  if (!is.null(fit$rows$source)) {
    engine["rows"] <- list(fit$rows)
  }
  engine <- sg_resume(engine, iter, cores = cores, refresh = refresh)
  seal_fit(see_engine(fit, engine))
}

# The fit with what follows of that.
see_engine <- function(fit, engine) {
  UseMethod("see_engine")
}

# Where the chains of a fit stand.
fit_standing <- function(fit) {
  done <- fit$progress
  new_standing(
    fit$saved,
    n_before = done$warmup_done + done$sampled,
    n_phase = done$collected %% (fit$control$thin * fit$steps),
    iterations_before = done$warmup_done + floor(done$sampled / fit$steps),
    monitor_state = fit$monitor_state
  )
}

# Of the iterations that the run was asked for.
steps_left <- function(fit) {
  control <- fit$control
  total <- control$warmup + (control$iter - control$warmup) * fit$steps
  max(0, total - fit$progress$warmup_done - fit$progress$sampled)
}

# The stretch still to make for `iter` more iterations, or for those that are
# missing.
remaining_steps <- function(fit, iter) {
  control <- fit$control
  warmup_left <- control$warmup - fit$progress$warmup_done
  if (is.null(iter)) {
    if (steps_left(fit) == 0) {
      abort_input(
        "{.arg iter} must be given: this run made all its
         {format_count(control$iter)} iterations.",
        argument = "iter"
      )
    }
    return(new_stretch(warmup_left, steps_left(fit) - warmup_left))
  }
  n_warmup <- min(iter, warmup_left)
  new_stretch(n_warmup, (iter - n_warmup) * fit$steps)
}
