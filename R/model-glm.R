# model_glm(): regressions, and what tall_glm() shares with it.

#' Generalised linear models
#'
#' The posterior of the coefficients of a generalised linear model, from a
#' design matrix. [tall_glm()] builds one from a formula.
#'
#' @param x (numeric matrix, n_data x n_dim, a sparse one of \pkg{Matrix}, or
#'   [tall_store()]) The covariates. Columns are used as they are: none is
#'   added, centred or scaled. A matrix is copied once, row by row, into memory
#'   that the chains share; the rows of a store stay in their file.
#' @param y (numeric vector of n_data values) The response: any number
#'   (`"gaussian"`), 0 or 1 (`"bernoulli"`), a proportion in \[0, 1\] with the
#'   number of trials in `weights` (`"binomial"`; their product is the number of
#'   successes and must be whole), a count (`"poisson"`, `"neg_binomial_2"`,
#'   above 0 `"truncated_poisson"`), a positive number (`"Gamma"`), or a number
#'   between 0 and 1 (`"beta"`).
#' @param family (string or family object) `"gaussian"`, `"bernoulli"`,
#'   `"binomial"` or `"poisson"`, with their canonical links, or
#'   [stats::gaussian()], [stats::binomial()], [stats::poisson()]; binomial
#'   families may have the links `"logit"`, `"probit"` and `"cloglog"`. Others:
#'   [neg_binomial_2()], `stats::Gamma("log")`, [student()],
#'   [beta_regression()], [truncated_poisson()].
#' @param prior (`tall_prior` or `NULL`) The [prior][priors] of every
#'   coefficient; `NULL`: flat.
#' @param prior_intercept (`tall_prior` or `NULL`) The prior of a column named
#'   `(Intercept)`; `NULL`: flat. If it is not given, `prior` is that of this
#'   column, too.
#' @param weights (positive numeric vector of n_data values, or `NULL`)
#'   Observation weights: they multiply the log likelihood, or for `"gaussian"`
#'   and `"student"` divide the variance \eqn{\sigma^2}{sigma^2}, so that
#'   \eqn{\sigma}{sigma} is the standard deviation of a row of weight 1; trials
#'   for `"binomial"`.
#' @param offset (numeric vector of n_data values, or `NULL`) Added to the
#'   linear predictor.
#' @param sigma (positive number or `NULL`) The residual standard deviation for
#'   `"gaussian"`, or the scale for `"student"`, if it is known; `NULL`: it is a
#'   parameter, `sigma`.
#' @param prior_aux (`tall_prior` or `NULL`) The prior of `sigma`, or of what
#'   other responses have beside their mean ([response-families]):
#'   [prior_exponential()] or [prior_flat()]; `NULL`: flat.
#' @param blocks (vector with an element for each column, or `NULL`) Which
#'   coefficients share a standard deviation that is a parameter, as those of a
#'   smooth term do: numbers of blocks, 0 for a column in none, or names of
#'   blocks, `""` for a column in none. See [prior_smooth].
#' @param prior_smooth (`tall_prior`) The prior of the standard deviation of
#'   each block, see [prior_smooth].
#' @param storage (string) How rows are kept: `"double"`, or `"float"`, in half
#'   the memory, see the section *Single precision*. Those of a store are as
#'   their file has them.
#'
#' @details The gradient of an observation is \eqn{g_i(\theta) = r_i x_i} with
#' the scalar \eqn{r_i} the derivative of its log likelihood in the linear
#' predictor: \eqn{r_i = w_i (y_i - \mu_i) / \phi}{r_i = w_i (y_i - mu_i) /
#' phi} for canonical links, \eqn{\phi = \sigma^2}{phi = sigma^2} for
#' `"gaussian"` and 1 otherwise. Curvatures are the observed ones, which for
#' `"probit"` and `"cloglog"` are not those that [glm()]'s standard errors are
#' made of, and are never negative.
#' A `sigma` that is a parameter is sampled as its logarithm, with the Jacobian
#' in the prior, and reported as the last variable. Memory: 8 bytes for each
#' value of `x`, rows padded to 64 bytes where that costs at most 3 percent, and
#' 8 bytes a row for each of response, stored scalar, weights and offset.
#'
#' A sparse `x` (`dgCMatrix`, or what \pkg{Matrix} can make one of) is never
#' made dense: 12 bytes for each number that is not zero and 8 bytes a row, and
#' time in proportion to the former for gradients, modes, weights and log
#' likelihoods. Its rows cannot be rewritten in whitened coordinates, where they
#' would not be sparse: the recipe goes there and back in every step, at
#' \eqn{O(d^2)}. With more than 1,001 columns no \eqn{d \times d}{d x d} matrix
#' is made: modes are sought by L-BFGS, the recipe adjusts the scales alone,
#' rows have no leverages, and a Gaussian response is sampled as others are;
#' [gradient_cv()] with `order = 2` and [kernel_smh()] refuse more than 4,000.
#'
#' A model lives outside R's memory. It is lost when the R object is saved and
#' read again; using it then is an error of class `tall_error_stale`.
#'
#' @section Single precision:
#' With `storage = "float"` covariates are rounded to 24 binary digits, about
#' seven decimal ones, and take 4 bytes each; all sums are formed in double
#' precision from the rounded numbers, which are the model's data: mode, Hessian
#' and draws are those of them. A minibatch costs as long as its rows take to
#' arrive from memory, so that its time falls almost as its size does. Standard
#' deviations change by less than a millionth of themselves where a column's
#' spread is no small part of its size; centre columns, such as years or times,
#' of which that is not so.
#'
#' @return A `tall_model` for [sg_sample()] and [find_mode()].
#' @section Conditions:
#' `tall_error_input` names the argument and value at fault: missing or infinite
#' values, a response outside the family's range, lengths that differ,
#' `prior_smooth` without `blocks`.
#' @examples
#' x <- cbind("(Intercept)" = 1, age = rnorm(500))
#' y <- rbinom(500, 1, plogis(0.5 + x[, "age"]))
#' model <- model_glm(x, y, family = "bernoulli")
#' model
#' @export
model_glm <- function(
  x,
  y,
  family = "bernoulli",
  prior = prior_normal(0, 2.5),
  prior_intercept,
  weights = NULL,
  offset = NULL,
  sigma = NULL,
  prior_aux = prior_exponential(autoscale = TRUE),
  storage = c("double", "float"),
  blocks = NULL,
  prior_smooth = prior_exponential(autoscale = TRUE)
) {
  check_given(x)
  prior <- as_prior(prior)
  prior_aux <- as_aux_prior(prior_aux)
  intercept <- if (!missing(prior_intercept)) as_prior(prior_intercept)
  # other faults are found below
  is_vector <- !missing(y) && is_plain_numeric(y) &&
    (is.null(weights) || is_plain_numeric(weights)) &&
    length(weights) %in% c(0, length(y))
  if (is_vector) {
    known <- resolve_family(family)
    check_successes(y, weights, known, "y")
  }
  check_given(y)
  priors <- list(
    prior = prior,
    prior_intercept = intercept,
    prior_aux = prior_aux
  )
  if (!is.null(blocks)) {
    priors$prior_smooth <- as_prior_smooth(prior_smooth)
  } else if (!missing(prior_smooth)) {
    abort_input(
      c(
        "{.arg prior_smooth} is of the standard deviations of {.arg blocks},
         which there are none of.",
        i = "{.arg blocks} says which columns have one in common."
      ),
      argument = "prior_smooth",
      value = prior_smooth
    )
  }
  blueprint <- blueprint_glm(
    resolve_family(family),
    priors,
    sigma,
    storage,
    centers = FALSE,
    blocks = read_blocks(blocks)
  )
  build_model(blueprint, rows_memory(x, y, weights, offset))
}

#' @export
build_model.tall_blueprint_glm <- function(blueprint, rows) {
  rows <- whole_rows(rows)
  pieces <- blueprint$family$pieces
  read <- read_regression(
    blueprint,
    rows,
    check_no_aux,
    takes_mixture = TRUE,
    more = pieces$names
  )
  x <- read$rows$x
  store <- store_of(blueprint$storage, x)
  facts <- read$facts
  is_sampled <- read$is_sampled
  n_aux <- sum(is_sampled)
  resolved <- read$prior
  functional <- if (blueprint$centers) {
    of <- blueprint$blocks$of %||% integer(ncol(x))
    n_more <- n_aux + length(pieces$names)
    is_covariate <- of[seq_len(ncol(x))] == 0
    center_functional(x, n_more, rows$facts$mean, is_covariate)
  }
  model <- new_model(
    if (is.null(pieces)) "glm" else "pieces",
    c(core_rows(read$rows), core_pieces(blueprint$family), list(
      response = facts$place,
      aux = if (length(is_sampled) > 0) unname(read$known_aux),
      prior_kind = core_kinds(resolved),
      prior_location = resolved$location,
      prior_scale = resolved$scale,
      prior_shape = resolved$shape,
      prior_at = functional$at,
      prior_functional = functional$weights
    )),
    variables = c(read$coefficients, facts$aux[is_sampled]),
    coordinates = c(read$coefficients, facts$coordinate[is_sampled]),
    n_coef = ncol(x),
    family = blueprint$family,
    prior = resolved,
    prior_functional = functional,
    sigma = read$sigma,
    traits = model_traits(
      start = if (n_aux > 0) {
        entry <- find_response(blueprint$family)
        starts <- aux_starts(entry, facts, read$units)
        c(numeric(ncol(x)), starts[is_sampled])
      },
      n_aux = n_aux,
      has_columns = TRUE
    ),
    label = "model_glm",
    store = store
  )
  if (is.null(resolved$mixture)) model else scaled_model(model)
}

# What regressions of one response are read from alike: rows that have been
# checked, what is known of the response's parameters, and priors of the
# coefficients and of those that are sampled. check_names(columns, aux): of
# variables. takes_mixture: of prior_resolve().
read_regression <- function(
  blueprint,
  rows,
  check_names,
  takes_mixture = FALSE,
  more = NULL
) {
  family <- blueprint$family
  facts <- response_facts(family)
  known <- rows$facts
  rows <- check_glm_rows(rows, family)
  x <- rows$x
  sigma <- check_number(
    blueprint$sigma,
    positive = TRUE,
    allow_null = TRUE,
    arg = "sigma"
  )
  known_aux <- known_values(family, check_sigma_of(family, sigma))
  is_sampled <- is.na(known_aux)
  coefficients <- c(column_names(x), more)
  check_names(coefficients, facts$aux[is_sampled])
  units <- if (find_response(family)$has_units) {
    known$units %||% response_units(rows$y, rows$weights, rows$offset)
  }
  priors <- blueprint$priors
  prior <- prior_resolve(
    priors$prior,
    priors$prior_intercept,
    names = coefficients,
    n_dim = length(coefficients),
    column_sd = function() {
      c(known$sd %||% column_sds(x), rep(1, length(more)))
    },
    units = units,
    takes_mixture = takes_mixture,
    smooth = smooth_blocks(
      blueprint$blocks,
      priors$prior_smooth,
      length(coefficients)
    )
  )
  check_no_hyper(coefficients, prior$mixture$names)
  if (any(is_sampled)) {
    prior <- append_aux(
      prior,
      aux_priors(priors$prior_aux, family, facts$aux[is_sampled]),
      units$aux_sd %||% 1,
      facts$lower[is_sampled]
    )
  }
  list(
    rows = rows,
    facts = facts,
    sigma = sigma,
    known_aux = known_aux,
    is_sampled = is_sampled,
    coefficients = coefficients,
    units = units,
    prior = prior
  )
}

# A known sigma is of responses in units; others have theirs in the family.
check_sigma_of <- function(family, sigma) {
  aux <- response_aux(family)
  if (is.null(sigma) || length(aux) == 0) {
    return(sigma)
  }
  has_units <- find_response(family)$has_units
  if (!has_units || !is.na(known_values(family)[[1]])) {
    abort_input(
      if (has_units) {
        "{.arg sigma} must be given once, but {.arg family} has it, too."
      } else {
        c(
          "{.arg sigma} must be {.code NULL} for family {.val {family$name}},
           which has none.",
          i = "A known {.field {aux[[1]]}} is an argument of the family."
        )
      },
      argument = "sigma",
      value = sigma
    )
  }
  sigma
}

# Where searches for each auxiliary parameter begin, in its coordinate.
aux_starts <- function(entry, facts, units) {
  natural <- rep(1, length(facts$aux))
  natural[[1]] <- units$aux_sd %||% 1
  at <- match(names(entry$aux_start), facts$aux)
  natural[at] <- entry$aux_start
  log(natural - facts$lower)
}

# Draws have unique names, and some are those of parameters of the response.
check_no_aux <- function(coefficients, aux) {
  aux <- intersect(aux, coefficients)
  if (length(aux) > 0) {
    aux <- aux[[1]]
    abort_input(
      c(
        "No column may be named {.val {aux}}: that is a parameter of the
         response.",
        i = "Rename it, or write {.code I({aux})} in a formula."
      ),
      argument = "x",
      value = aux
    )
  }
}

check_no_hyper <- function(coefficients, hyper) {
  hyper <- intersect(hyper, coefficients)
  if (length(hyper) > 0) {
    abort_input(
      "No column may be named {.val {hyper[[1]]}}: that is a hyperparameter of
       the prior.",
      argument = "x",
      value = hyper[[1]]
    )
  }
}

# What the core takes of each row: list(x, y, weights, offset).
check_glm_rows <- function(rows, family) {
  x <- rows$x
  if (!is.null(rows$file)) {
    # they were checked as they were read
    return(list(x = x))
  }
  x <- if (is_store(x)) {
    check_store(x, arg = "x")
  } else if (is_looked(x)) {
    x
  } else {
    check_design(x, arg = "x")
  }
  y <- check_response(rows$y, family, rows$name)
  check_same_rows(x, y, arg = "x", arg_y = rows$name)
  weights <- check_numeric_vector(
    rows$weights,
    size = nrow(x),
    positive = TRUE,
    allow_null = TRUE,
    most = most_of_data,
    arg = "weights"
  )
  offset <- check_numeric_vector(
    rows$offset,
    size = nrow(x),
    allow_null = TRUE,
    most = most_of_data,
    arg = "offset"
  )
  list(x = x, y = y, weights = weights, offset = offset)
}

# The same as the core knows it: a sparse matrix is its columns.
core_rows <- function(rows) {
  if (is_store(rows$x)) {
    return(rows[names(rows) != "x"]) # they come from the file
  }
  if (is_sparse(rows$x)) {
    names(rows)[names(rows) == "x"] <- "columns"
  }
  rows
}

# Mean and standard deviation of what the coefficients of a Gaussian model are
# to explain, and `aux_sd`: that of a row of weight 1, which sigma is. Weights
# are precisions: it grows with their root, as sigma does.
response_units <- function(y, weights, offset) {
  y <- first_column(y)
  if (!is.null(offset)) {
    y <- y - offset
  }
  sd <- response_sd(y)
  out <- list(mean = mean(y), sd = sd, aux_sd = sd)
  if (!is.null(weights)) {
    largest <- max(weights)
    share <- weights / largest
    centre <- sum(share * y) / sum(share)
    square <- sum(share * (y - centre)^2) / max(1, length(y) - 1)
    square <- if (square > 0) square else mean(share)
    out$aux_sd <- sqrt(largest * square)
  }
  out
}

# The predictor at the mean of the covariates: 1 for the intercept, column means
# elsewhere; `at` counts from 0. NULL without an intercept. is_covariate: those
# of blocks, such as effects of groups, have mean 0 in the prior, and are at it.
center_functional <- function(x, n_aux, mean = NULL, is_covariate = TRUE) {
  at <- which(colnames(x) == "(Intercept)")
  if (length(at) != 1) {
    return(NULL)
  }
  weights <- mean %||% if (knows_moments(x)) x$mean else design_means(x)
  weights <- weights * is_covariate
  weights[[at]] <- 1
  list(at = at - 1, weights = unname(c(weights, numeric(n_aux))))
}

# A file's are those found when it was written.
column_sds <- function(x) {
  if (knows_moments(x)) x$sd else design_sds(x)
}

knows_moments <- function(x) {
  is_store(x) || is_looked(x)
}
