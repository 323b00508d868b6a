# What the front ends share. Named arguments of a front end are its model's;
# those of the run come through `...`, with the names, defaults and meaning that
# they have in sg_sample(). The way is one:
#
#   run <- front_run(..., .front = tall_x)   the run's arguments, checked before
#                                            anything takes time
#   model <- front_model(build_x(), run)     from data, with the run's lambda
#   run$monitor <- ...                       in the terms of the data
#   fit <- sample_model(model, run)
#   front_fit(fit, run, "tall_x", match.call(), parts)

# The run, see new_run(). .defaults: other ones than sg_sample()'s, as language.
# .without: arguments that the front end sets itself, with a sentence why. Names
# start with a dot, since `...` may have any other.
front_run <- function(..., .front, .defaults = list(), .without = character()) {
  began <- clock()
  given <- dots_names(...)
  own <- setdiff(names(formals(.front)), "...")
  arguments <- formals(sg_sample)[run_argument_names()]
  known <- setdiff(names(arguments), c(own, names(.without)))
  if (any(given == "")) {
    check_no_dots(..., .ignore = list())
  }
  itself <- intersect(given, names(.without))
  if (length(itself) > 0) {
    name <- itself[[1]]
    abort_input(
      c("The argument {.arg {name}} is not used here.", i = .without[[name]]),
      argument = name
    )
  }
  check_no_foreign(..., .known = c(own, known))
  arguments[setdiff(names(arguments), known)] <- list(NULL)
  arguments[names(.defaults)] <- .defaults
  # promises: nothing is evaluated before it is checked
  at <- as.function(c(arguments, quote(environment())), envir = topenv())(...)
  control <- check_control(
    at$iter,
    at$warmup,
    at$thin,
    at$chains,
    at$cores,
    at$seed,
    at$keep,
    at$refresh
  )
  sampler <-
    check_sampler(at$kernel, at$gradient, at$subsample, at$schedule)
  new_run(
    sampler,
    control,
    at$init,
    at$lambda,
    at$variables,
    at$monitor,
    began
  )
}

# The model with the run's lambda.
front_model <- function(model, run) {
  temper_model(model, check_lambda(run$lambda, model))
}

# The fit as its front end hands it back: with its class, the call, and `parts`,
# what methods need of formula and data. Its time is that of the whole call.
front_fit <- function(fit, run, class, call, parts) {
  class(fit) <- whole_class(class)
  fit$call <- call
  fit[names(parts)] <- parts
  end_clock(seal_fit(finish_fit(fit)), run$began)
}

# Which rows did not count, for the fit. made: of make_frame().
left_out <- function(made) {
  list(na_action = attr(made$frame, "na.action"), n_missing = made$n_missing)
}
