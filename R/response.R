# Responses: how one observation depends on its linear predictor. The functions
# that are evaluated for many rows stand in src/responses/, a table for each
# response and link; what only R asks stands in an entry, R/response-<name>.R.
# Whoever needs to know something of a response asks for a trait of its entry or
# for a function below, and names none.
#
# A new response: src/responses/<name>.c and its line in registry.c and
# Makevars; R/response-<name>.R and its line in `response_entries`; NEWS. The
# conformance tests go through both registries.

# Every entry, by the name that users write. One that has a parameter besides,
# which no one samples, takes it as its argument.
response_entries <- function() {
  list(
    gaussian = response_gaussian,
    bernoulli = response_bernoulli,
    binomial = response_binomial,
    poisson = response_poisson,
    neg_binomial_2 = response_neg_binomial_2,
    Gamma = response_gamma,
    student = response_student,
    beta = response_beta,
    categorical = response_categorical,
    truncated_poisson = response_truncated_poisson,
    weibull = response_weibull,
    weibull_aft = response_weibull_aft,
    lognormal = response_lognormal,
    loglogistic = response_loglogistic,
    censored_gaussian = response_censored_gaussian,
    truncated_neg_binomial = response_truncated_neg_binomial,
    gaussian_sigma = response_gaussian_sigma,
    student_sigma = response_student_sigma,
    neg_binomial_2_shape = response_neg_binomial_2_shape,
    Gamma_shape = response_gamma_shape,
    beta_phi = response_beta_phi,
    zero_inflated_poisson = response_zero_inflated_poisson,
    zero_inflated_negbinomial = response_zero_inflated_negbinomial,
    censored_gaussian_sigma = response_censored_gaussian_sigma,
    censored_poisson = response_censored_poisson,
    censored_neg_binomial_2 = response_censored_neg_binomial_2,
    censored_neg_binomial_2_shape = response_censored_neg_binomial_2_shape,
    censored_student = response_censored_student,
    censored_student_sigma = response_censored_student_sigma
  )
}

# ---- finding -----------------------------------------------------------------

# The entry of a name, or of a family, list(name, link, ...).
find_response <- function(name) {
  if (is.list(name) && has_pieces(name)) {
    return(response_piecewise(name$pieces))
  }
  name <- if (is.list(name)) name$name else name
  entry <- if (rlang::is_string(name)) response_entries()[[name]]
  if (is.null(entry)) {
    abort_tall(
      "unsupported",
      "There is no response {.val {name}} in this version of the package.",
      value = name
    )
  }
  # models of chunks ask again and again
  made <- entries_made[[name]]
  if (is.null(made) || !identical(made$by, entry)) {
    made <- list(by = entry, entry = entry())
    assign(name, made, entries_made)
  }
  made$entry
}

# Entries by name, and what made each.
entries_made <- new.env(parent = emptyenv())

# What the core says of a family: list(place, name, link, aux, coordinate,
# lower, n_y, n_predictor (0: as many as classes), is_precision, is_dispersion,
# has_bound, has_third_bound).
# aux, coordinate, lower: of each auxiliary parameter; none: of length 0.
response_facts <- function(family) {
  known <- .Call(ffi_response_registry)
  entry <- find_response(family)
  at <- which(known$name == entry$table & known$link == family$link)
  if (length(at) != 1) {
    abort_tall(
      "unsupported",
      "There is no link {.val {family$link}} for {.val {family$name}} in this
       version of the package.",
      value = family$link
    )
  }
  c(list(place = at - 1), lapply(known, `[[`, at))
}

# The names of a family's auxiliary parameters; none: of length 0.
response_aux <- function(family) {
  response_facts(family)$aux
}

has_aux <- function(family) {
  length(response_aux(family)) > 0
}

# Known natural values of a family's auxiliary parameters, NA of those that are
# sampled. sigma: of the first, as an argument (NULL: none).
known_values <- function(family, sigma = NULL) {
  names <- response_aux(family)
  out <- as.double(family$aux %||% rep(NA, length(names)))
  if (!is.null(sigma) && length(out) > 0) {
    out[[1]] <- sigma
  }
  stats::setNames(out, names)
}

# Natural values of all of them, draws x parameters, from those of the sampled
# ones, or of all: a vector of draws, or a matrix. NULL: 1 each.
aux_matrix <- function(family, aux, n_draw) {
  if (has_pieces(family)) {
    return(aux)
  }
  known <- known_values(family)
  n <- length(known)
  if (n == 0) {
    return(NULL)
  }
  out <- matrix(rep(known, each = n_draw), n_draw)
  if (is.null(aux)) {
    return(replace(out, is.na(out), 1))
  }
  is_sampled <- is.na(known)
  n_given <- length(aux) / n_draw
  at <- if (n_given == sum(is_sampled)) which(is_sampled) else seq_len(n)
  out[, at] <- as.double(aux)
  out
}

# Weights are precisions, rather than counts?
has_precisions <- function(family) {
  response_facts(family)$is_precision
}

has_classes <- function(family) {
  response_facts(family)$n_predictor == 0
}

has_trials <- function(family) {
  find_response(family)$has_trials
}

# Is the log density of these rows concave in the predictor? y: NULL: of any.
is_log_concave <- function(family, y = NULL) {
  own <- find_response(family)$is_concave
  if (is.function(own)) !is.null(y) && own(y) else own
}

# Has a row several columns, limits among them?
has_limits <- function(family) {
  response_facts(family)$n_y > 1
}

# list(name, link, object) of an entry; object: NULL where there is none. Of
# some also `aux`, what is known of auxiliary parameters, NA of those that are
# sampled.
new_family <- function(
  entry,
  link = names(entry$links)[[1]],
  object = if (!is.null(entry$family)) entry$family(link),
  aux = NULL
) {
  out <- list(name = entry$name, link = link, object = object)
  out$aux <- aux
  out
}

# What users call it: of an entry with a second predictor that of the first.
family_name <- function(family) {
  for (name in names(second_predictors)) {
    if (identical(second_predictors[[name]]$entry, family$name)) {
      return(name)
    }
  }
  family$name
}

# One that a front end hands to another as `family`.
inner_family <- function(entry) {
  structure(new_family(entry), class = "tall_inner_family")
}

# Names of the responses that users ask of regressions, with one predictor a
# row; and that networks have.
regression_responses <- function() {
  has_one <- function(entry) {
    made <- entry()
    !made$is_inner && response_facts(new_family(made))$n_predictor == 1
  }
  names(Filter(has_one, response_entries()))
}

network_responses <- function() {
  is_there <- function(entry) !is.null(entry()$network)
  names(Filter(is_there, response_entries()))
}

# list(name, link, object) from a string, function or family object
resolve_family <- function(family) {
  if (inherits(family, "tall_inner_family")) {
    return(unclass(family))
  }
  if (is.function(family)) {
    family <- tryCatch(family(), error = function(e) family)
  }
  check_not_quasi(family)
  check_not_data(family)
  check_not_inflated(family)
  known <- regression_responses()
  if (rlang::is_string(family)) {
    family <- known_as(family)
  }
  if (!inherits(family, "family")) {
    name <- check_choice(family, known, arg = "family")
    return(new_family(find_response(name)))
  }
  name <- known_as(family$family)
  if (!name %in% known) {
    abort_input(
      c(
        "{.arg family} must be one of {quote_all(known, last = 'or')}, not
         {.val {name}}.",
        i = "Others can be written with {.fn model_custom}."
      ),
      argument = "family",
      expected = known,
      value = name
    )
  }
  entry <- find_response(name)
  links <- names(entry$links)
  if (!family$link %in% links) {
    abort_input(
      c(
        "{.arg family} must have the link {quote_all(links, last = 'or')}, not
         {.val {family$link}}.",
        i = "Links there are: {known_links()}. Others can be written with
             {.fn model_custom}."
      ),
      argument = "family",
      expected = links,
      value = family$link
    )
  }
  is_ours <- inherits(family, "tall_family")
  if (is_ours) {
    new_family(entry, family$link, family, family$aux)
  } else {
    new_family(entry, family$link, aux = theta_of(family))
  }
}

# Of front ends that have one predictor a row.
check_not_inflated <- function(family) {
  name <- zero_inflated_name(family)
  if (!is.null(name)) {
    abort_tall(
      "unsupported",
      c(
        "{.arg family} must have one predictor, and {.fn {name}} has two.",
        i = "{.fn tall_glm} fits it."
      ),
      argument = "family",
      value = name
    )
  }
}

# Ours for the name of a response, where another package calls it something
# else; MASS's has its parameter in it.
known_as <- function(name) {
  plain <- sub("\\(.*$", "", name)
  for (ours in names(response_entries())) {
    if (plain %in% response_entries()[[ours]]()$aliases) {
      return(ours)
    }
  }
  name
}

# The size that MASS::negative.binomial() was given.
theta_of <- function(family) {
  if (is.function(family$variance)) {
    theta <- get0(".Theta", environment(family$variance), inherits = FALSE)
    if (is_number(theta) && theta > 0) as.double(theta)
  }
}

# "identity (gaussian), logit, probit or cloglog (bernoulli, binomial)"
known_links <- function() {
  links <- vapply(regression_responses(), function(name) {
    links <- names(find_response(name)$links)
    n <- length(links)
    if (n == 1) {
      return(links)
    }
    paste(paste(links[-n], collapse = ", "), "or", links[[n]])
  }, "")
  names <- vapply(unique(links), function(link) {
    paste(names(links)[links == link], collapse = ", ")
  }, "")
  paste0(names(names), " (", names, ")", collapse = ", ")
}

# y may be long: integers and logicals, of which no mean is taken in R, go to
# the core as they are.
check_response <- function(y, family, arg) {
  check_given(y, arg = arg)
  entry <- find_response(family)
  n_y <- response_facts(family)$n_y
  if (n_y > 1) {
    check_matrix(y, n_col = n_y, arg = arg)
  } else if (is.logical(y) && !is.object(y)) {
    check_size(y, arg = arg)
    check_finite(y, arg = arg)
  } else {
    check_numbers_of(y, most = most_of_data, arg = arg)
  }
  if (entry$has_units || n_y > 1) {
    y <- as_double_values(y)
  }
  bad <- first_outside(y, family)
  if (bad > 0) {
    abort_outside(y, bad, family, arg)
  }
  unname(y)
}

# A row has what the family cannot have. where: its place, NULL: the value's.
abort_outside <- function(y, at, family, arg, where = NULL) {
  entry <- find_response(family)
  must <- paste0(entry$must, " for family \"", entry$name, "\"")
  if (is.matrix(y)) {
    must <- entry$wrong(y[at, ])
    where <- where %||% paste("row", format_count(at))
    y <- y[, 1]
  }
  where <- where %||% value_place(y, at)
  abort_value(y, at, must, arg = arg, where = where, hint = entry$advice)
}

# The first value of y, any numbers or logical, that is no response of the
# family, of n after `first`; 0: none. size: trials or classes, 0 where they are
# not known.
first_outside <- function(
  y,
  family,
  size = find_response(family)$size,
  first = 0,
  n = NROW(y)
) {
  .Call(ffi_response_outside, response_facts(family)$place, y, size, first, n)
}

# What a database computes of a family; NULL: nothing. An entry's may be a
# function of the values of auxiliary parameters, which are then all known:
# digamma functions are not in SQL.
sql_recipe <- function(family) {
  recipe <- find_response(family)$sql[[family$link]]
  if (!is.function(recipe)) {
    return(recipe)
  }
  known <- known_values(family)
  if (!anyNA(known)) recipe(unname(known))
}

#' @export
print.tall_family <- function(x, ...) {
  check_no_dots(...)
  cat("<tall_family> ", x$family, " (", x$link, ")\n", sep = "")
  known <- known_values(list(name = x$family, link = x$link, aux = x$aux))
  for (name in names(known)[!is.na(known)]) {
    cat(name, ": ", format_number(known[[name]]), "\n", sep = "")
  }
  invisible(x)
}
