# Priors of rstanarm and brms, taken at their word.

# What users gave as a prior: NULL is flat. `frame` is that of the function
# that has the argument `arg`; what they typed there may be a prior of
# rstanarm's or brms' that no function here makes.
as_prior <- function(prior, arg = caller_arg(prior), frame = caller_env()) {
  typed <- eval(call("substitute", as.name(arg)), frame)
  prior <- tryCatch(prior, error = function(e) {
    check_foreign_prior(typed, arg, parent = e)
    rlang::cnd_signal(e)
  })
  if (is.null(prior)) {
    return(prior_flat())
  }
  if (!inherits(prior, "tall_prior")) {
    check_foreign_prior(prior, arg)
  }
  check_spec(prior, "tall_prior", "prior_*()", allow_null = TRUE, arg = arg)
}

# The same of parameters of a response: one prior, or a list of them by name.
as_aux_prior <- function(prior, arg = caller_arg(prior), frame = caller_env()) {
  is_list <- tryCatch(
    # those of rstanarm are lists, too
    is.list(prior) && !is.object(prior) && length(prior) > 0 &&
      !"dist" %in% names(prior),
    error = function(e) FALSE
  )
  if (!is_list) {
    force(arg)
    return(as_prior(prior, arg = arg, frame = frame))
  }
  if (!rlang::is_named(prior) || anyDuplicated(names(prior)) > 0) {
    abort_input(
      c(
        "{.arg {arg}} must be a prior, or a list of priors with the names of
         parameters.",
        i = "For instance {.code list(sigma = prior_exponential(), nu =
             prior_gamma(2, 0.1))}."
      ),
      argument = arg,
      value = prior
    )
  }
  for (name in names(prior)) {
    prior[[name]] <- as_prior_of(prior[[name]], arg, name)
  }
  prior
}

as_prior_of <- function(one, arg, name) {
  if (is.null(one)) {
    return(prior_flat())
  }
  check_spec(one, "tall_prior", "prior_*()", arg = paste0(arg, "$", name))
}

# rstanarm's and brms' names of densities, and ours; "": there is none.
prior_twins <- c(
  normal = "prior_normal",
  laplace = "prior_laplace",
  double_exponential = "prior_laplace",
  exponential = "prior_exponential",
  uniform = "prior_uniform",
  flat = "prior_flat",
  t = "",
  student_t = "prior_student",
  cauchy = "prior_student",
  lasso = "",
  hs = "prior_hs",
  hs_plus = "",
  horseshoe = "prior_hs",
  R2D2 = "prior_r2d2",
  R2 = "",
  product_normal = "",
  decov = "",
  lkj = "",
  gamma = "",
  inv_gamma = "",
  lognormal = "",
  dirichlet = ""
)

# An error that names our twin, if x is a prior of another package: what
# rstanarm::normal() or brms::prior() return, a string as brms takes it, or an
# expression that could not be evaluated.
check_foreign_prior <- function(x, arg, parent = NULL) {
  found <- if (inherits(x, "brmsprior")) {
    brms_twins(x)
  } else if (is.list(x) && rlang::is_string(x$dist)) {
    list(rstanarm_twin(x))
  } else if (rlang::is_string(x)) {
    list(tryCatch(call_twin(str2lang(x)), error = function(e) NULL))
  } else if (is.call(x) || is.symbol(x)) {
    list(call_twin(x))
  }
  found <- Filter(Negate(is.null), found)
  if (length(found) == 0) {
    return(invisible())
  }
  seen <- vapply(found, function(one) one$seen, "")
  ours <- vapply(found, function(one) one$ours, "")
  hints <- ifelse(
    ours == "",
    paste0(
      "There is no `",
      seen,
      "` here: there are `prior_normal()`, `prior_student()`, ",
      "`prior_laplace()`, `prior_uniform()`, `prior_hs()`, `prior_ridge()`, ",
      "`prior_r2d2()` and `prior_flat()`, and ",
      "`model_custom()` takes any."
    ),
    paste0("For `", seen, "` write `", ours, "`.")
  )
  abort_input(
    c(
      "{.arg {arg}} must be made by {.code prior_*()} of tallbayes or
       {.code NULL}, not as in rstanarm or brms.",
      stats::setNames(escape_cli(hints), rep("i", length(hints)))
    ),
    argument = arg,
    expected = "made by `prior_*()` or NULL",
    value = x,
    parent = parent
  )
}

# list(seen, ours): what was given, and what to write for it, or "". NULL for
# what is no prior.
call_twin <- function(x) {
  if (is.symbol(x)) {
    x <- as.call(list(x))
  }
  head <- if (is.call(x)) x[[1]]
  if (rlang::is_call(head, c("::", ":::"))) {
    head <- head[[3]]
  }
  name <- if (is.symbol(head)) as.character(head) else ""
  if (name %in% c("prior", "prior_string", "set_prior") && length(x) > 1) {
    inner <- x[[2]]
    inner <- if (rlang::is_string(inner)) str2lang(inner) else inner
    return(call_twin(inner))
  }
  if (!name %in% names(prior_twins)) {
    return(NULL)
  }
  x[[1]] <- as.name(name)
  seen <- deparse1(x)
  ours <- prior_twins[[name]]
  if (name %in% names(shrinking_twins)) {
    ours <- shrinking_twins[[name]](as.list(x)[-1])
  } else if (ours != "") {
    x[[1]] <- as.name(ours)
    if (name == "cauchy") {
      x <- as.call(c(x[[1]], df = 1, as.list(x)[-1]))
    }
    # brms calls them so
    known <- c(nu = "df", mu = "location", sigma = "scale")
    is_known <- names(x) %in% names(known)
    names(x)[is_known] <- known[names(x)[is_known]]
    ours <- deparse1(x)
  }
  list(seen = seen, ours = ours)
}

# What to write for priors whose arguments are others than ours, from those that
# were given: "" where that cannot be read.
shrinking_twins <- list(
  hs = function(given) {
    twin_call("prior_hs", given, alist(
      df = 1,
      global_df = 1,
      global_scale = 0.01,
      slab_df = 4,
      slab_scale = 2.5
    ))
  },
  horseshoe = function(given) {
    ratio <- given$par_ratio
    if (!is.null(ratio)) {
      # brms divides by the root of the number of rows
      given$scale_global <- call("/", ratio, quote(sqrt(nrow(data))))
    }
    # of brms, in its order, with its defaults
    twin_call(
      "prior_hs",
      given,
      alist(
        df = 1,
        scale_global = 1,
        df_global = 1,
        scale_slab = 2,
        df_slab = 4,
        par_ratio = NULL,
        autoscale = TRUE,
        main = FALSE
      ),
      c(
        df = "df",
        df_global = "global_df",
        scale_global = "global_scale",
        df_slab = "slab_df",
        scale_slab = "slab_scale"
      )
    )
  },
  R2D2 = function(given) {
    twin_call(
      "prior_r2d2",
      given,
      alist(
        mean_R2 = 0.5,
        prec_R2 = 2,
        cons_D2 = 0.5,
        autoscale = TRUE,
        main = FALSE
      ),
      c(mean_R2 = "mean_R2", prec_R2 = "prec_R2", cons_D2 = "cons_D2")
    )
  }
)

# The text of a call of `ours` with the arguments of theirs, whose formals and
# defaults are `known`, all written out; renamed: theirs to ours.
twin_call <- function(
  ours,
  given,
  known,
  renamed = stats::setNames(nm = names(known))
) {
  theirs <- as.function(c(known, list(NULL)))
  matched <- tryCatch(
    as.list(match.call(theirs, as.call(c(quote(f), given)))),
    error = function(e) NULL
  )
  if (is.null(matched)) {
    return("")
  }
  values <- known
  values[names(matched)[-1]] <- matched[-1]
  values <- values[names(renamed)]
  names(values) <- renamed
  deparse1(as.call(c(as.name(ours), values)))
}

rstanarm_twin <- function(x) {
  name <- x$dist
  if (name == "hs") {
    own <- c("df", "global_df", "global_scale", "slab_df", "slab_scale")
    return(call_twin(as.call(c(as.name("hs"), x[own]))))
  }
  arguments <- if (name == "exponential") {
    list(rate = 1 / (x$scale %||% 1))
  } else {
    list(x$location %||% 0, x$scale %||% 2.5)
  }
  # the constructors that were called, not what rstanarm makes of them
  if (name == "t" && identical(as.double(x$df), 1)) {
    name <- "cauchy"
  } else if (name == "t") {
    name <- "student_t"
    arguments <- c(list(x$df), arguments)
  }
  if (isTRUE(x$autoscale)) {
    arguments$autoscale <- TRUE
  }
  twin <- call_twin(as.call(c(as.name(name), arguments)))
  twin %||% list(seen = name, ours = "")
}

# A row for each prior, of which the class says what it is a prior of.
brms_twins <- function(x) {
  argument <- c(b = "prior", Intercept = "prior_intercept", sigma = "prior_aux")
  class <- x$class %||% rep("b", nrow(x))
  lapply(seq_len(nrow(x)), function(k) {
    text <- x$prior[[k]]
    twin <- if (text == "") {
      list(seen = "(flat)", ours = "prior_flat()")
    } else {
      tryCatch(call_twin(str2lang(text)), error = function(e) NULL)
    }
    twin <- twin %||% list(seen = text, ours = "")
    if (twin$ours != "" && class[[k]] %in% names(argument)) {
      twin$ours <- paste(argument[[class[[k]]]], "=", twin$ours)
    }
    twin
  })
}
