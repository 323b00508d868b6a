# tall_glm() of formulas for two parameters of a response, `list(y ~ x, sigma ~
# z)`: of its mean and of a distributional parameter.

# Are there such formulas, or is the family one that has them always?
has_dpar <- function(formula, family) {
  is_list <- is.list(formula) && !is.object(formula) && length(formula) > 1
  of_brms <- inherits(formula, "brmsformula") && length(formula$pforms) > 0
  is_list || of_brms || !is.null(zero_inflated_name(family))
}

# front: the environment of tall_glm(), its arguments; idle: which of those that
# have no place here were given; has_aux: was prior_aux?
fit_dpar <- function(front, matched, caller, run, idle, has_aux) {
  check_idle_of_dpar(idle)
  name <- zero_inflated_name(front$family)
  base <- if (is.null(name)) {
    resolve_family(front$family)
  } else {
    new_family(find_response(name))
  }
  dpar <- dpar_of(front$formula, base)
  family <- with_second(censored_family(base, dpar$formulas$mu))
  priors <- dpar_priors_given(front, dpar$name, family, has_aux)
  asked <- ask_dpar(front, matched, caller, dpar)
  for (formula in dpar$formulas) {
    check_dot(formula, asked$has_data)
  }
  dpar <- dpar_terms(dpar, if (asked$has_data) names(asked$data))
  asked$matched$formula <- asked$formula <- joint_formula(dpar)
  own <- new_front(
    "dpar",
    "tall_dpar",
    asked,
    blueprint_dpar(family, priors, front$storage),
    request_dpar(family, dpar),
    front$keep_data,
    takes = c("weights", "offset")
  )
  fit_regression(own, run)
}

idle_of_dpar <- c(
  sigma = "A known {.field sigma} has no formula.",
  sparse = "Designs of two predictors are kept with their zeros.",
  prior_PD = "Draws from the prior are of one predictor.",
  monitor = "Monitors know one predictor.",
  store = "Two predictors are fitted in memory.",
  compress = "Columns can be rounded in models of one predictor."
)

check_idle_of_dpar <- function(idle) {
  if (any(idle)) {
    name <- names(idle)[idle][[1]]
    abort_tall(
      "unsupported",
      c(
        "{.arg {name}} has no place with formulas of two parameters, or zero
         inflation.",
        i = idle_of_dpar[[name]]
      ),
      argument = name
    )
  }
}

# The two formulas, see new_dpar(). base: the family without the second.
dpar_of <- function(formula, base) {
  second <- second_predictors[[base$name]]
  parts <- formulas_by_parameter(formula)
  other <- setdiff(names(parts), c("mu", second$name))
  if (length(other) > 0 || anyDuplicated(names(parts)) > 0) {
    abort_own_predictors(formula, other, base)
  }
  mu <- with_limits(parts$mu, "cens")
  if (length(mu) < 3) {
    abort_no_response()
  }
  own <- parts[[second$name]] %||%
    eval(call("~", 1), list2env(list(), parent = environment(mu)))
  check_terms(mu)
  check_terms(if (length(own) == 3) own[-2] else own)
  new_dpar(second$name, mu, own)
}

# The family with both predictors, and what is known of other parameters.
with_second <- function(base) {
  second <- second_predictors[[base$name]]
  if (second$entry == base$name) {
    return(base)
  }
  known <- known_values(base)
  if (!is.na(known[[1]])) {
    abort_input(
      "{.arg family} must not have a known {.field {second$name}}, of which
       {.arg formula} has a formula.",
      argument = "family",
      value = known[[1]]
    )
  }
  entry <- find_response(second$entry)
  aux <- if (length(known) > 1) unname(known[-1])
  new_family(entry, base$link, base$object %||% family_of(base), aux)
}

# What stats has of it.
family_of <- function(base) {
  entry <- find_response(base$name)
  if (!is.null(entry$family)) entry$family(base$link)
}

# Priors by what is predicted. A list by name has one of each.
dpar_priors_given <- function(front, name, family, has_aux) {
  names <- c("mu", name)
  aux <- response_aux(family)
  is_sampled <- is.na(known_values(family))
  if (has_aux && !any(is_sampled)) {
    abort_input(
      c(
        "{.arg prior_aux} has no place here: every parameter has a formula.",
        i = "{.arg prior} and {.arg prior_intercept} may be lists by the name of
             what is predicted, {.code list(mu = , {name} = )}."
      ),
      argument = "prior_aux"
    )
  }
  prior_aux <- list()
  if (has_aux) {
    prior_aux <- as_aux_prior(front$prior_aux, "prior_aux")
  }
  if (inherits(prior_aux, "tall_prior")) {
    prior_aux <- stats::setNames(list(prior_aux), aux[[1]])
  }
  list(
    prior = prior_of_each(front$prior, names, "prior"),
    prior_intercept = prior_of_each(
      front$prior_intercept,
      names,
      "prior_intercept"
    ),
    prior_aux = prior_aux
  )
}

prior_of_each <- function(prior, names, arg) {
  is_list <- is.list(prior) && !is.object(prior) && length(prior) > 0 &&
    all(rlang::names2(prior) %in% names)
  lapply(stats::setNames(nm = names), function(name) {
    one <- if (!is_list) {
      prior
    } else if (name %in% names(prior)) {
      prior[[name]]
    } else {
      prior_normal(0, 2.5, autoscale = TRUE)
    }
    one <- as_prior(one, arg = arg)
    if (is_mixture_prior(one)) {
      abort_tall(
        "unsupported",
        "{.arg {arg}} must be without hyperparameters where two parameters have
         formulas: {.code prior_{one$kind}()} learns scales.",
        argument = arg,
        value = one
      )
    }
    one
  })
}

# What the user typed, with rows of a source brought to memory.
ask_dpar <- function(front, matched, caller, dpar) {
  own <- list2env(list(
    formula = dpar$formulas$mu,
    na.action = front$na.action
  ))
  if ("data" %in% names(matched)) {
    own$data <- front$data
  }
  collect_asked(new_asked("tall_glm", matched, caller, own))
}

#' @export
front_reader.tall_front_dpar <- function(front, rows, read) {
  reader <- NextMethod()
  dpar <- front$request$dpar
  dpar$contrasts <- read$contrasts
  reader["contrasts"] <- list(NULL)
  reader$formula <- dpar$formulas$mu
  c(reader, list(dpar = unclass(dpar)), row_sources(
    front$blueprint$family,
    read$y,
    counts = NULL,
    weights = rows$call$weights,
    offset = rows$call$offset
  ))
}

#' @export
front_parts.tall_front_dpar <- function(front, ready, read, fit) {
  list(
    n_coef = ready$model$n_coef,
    width = ready$model$width,
    storage = ready$model$storage
  )
}
