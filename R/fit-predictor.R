# What a draw of the parameters says of a row: the linear predictor or the
# expected response. One generic, a method for each class of fits; everything
# that is done with a fit is written over it and the response's table.

# Draws x rows, with several predictors or classes draws x rows x these (see
# predicted_names()). rows: a block, see ask_rows(); draws: of choose_draws();
# scale: "link" or "response", the inverse link.
predictor <- function(fit, rows, draws, scale) {
  UseMethod("predictor")
}

# The C core takes the inverse link while predictors are in the cache.
#' @export
predictor.tall_glm <- function(fit, rows, draws, scale) {
  x <- rows$x
  if (!is_sparse(x)) {
    storage.mode(x) <- "double"
  }
  offset <- if (anyNA(rows$offset) || any(rows$offset != 0)) {
    as.double(rows$offset)
  }
  place <- if (scale == "response") response_facts(fit$family)$place
  cores <- as.integer(draws$cores)
  .Call(ffi_link_product, draws$theta, x, offset, place, cores)
}

# Names of what predictors of a row are of; NULL: there is one number a row.
predicted_names <- function(fit, scale) {
  UseMethod("predicted_names")
}

#' @export
predicted_names.tall_regression <- function(fit, scale) {
  NULL
}

# What predictors and densities need of a fit, without what is as long as its
# data or draws.
light_fit <- function(fit) {
  own <- c(
    "family",
    "sigma",
    "n_coef",
    "variables",
    "response_levels",
    "method",
    "likelihood",
    "widths",
    "activation",
    "scaling",
    "groups",
    "dpar"
  )
  structure(unclass(fit)[intersect(own, names(fit))], class = class(fit))
}

# ---- means and standard deviations -------------------------------------------

# list(fit, se.fit) over the draws: of each row a number, or a row of a matrix
# with a column for each of predicted_names().
predictor_moments <- function(fit, rows, draws, scale, with_sd) {
  UseMethod("predictor_moments")
}

# Blocks small enough to stay in the cache.
#' @export
predictor_moments.tall_regression <- function(
  fit,
  rows,
  draws,
  scale,
  with_sd
) {
  names <- predicted_names(fit, scale)
  n <- nrow(rows$x)
  n_draw <- nrow(draws$theta)
  size <- max(1, length(names))
  mean <- sd <- matrix(0, n, size, dimnames = list(NULL, names))
  each_block(n, n_draw * size, size = 2^18, function(at) {
    value <- predictor(fit, some_rows(rows, at), draws, scale)
    value <- matrix(value, n_draw)
    centre <- drop(crossprod(value, draws$weights))
    mean[at, ] <<- centre
    if (with_sd) {
      square <- (value - rep(centre, each = n_draw))^2
      sd[at, ] <<- sqrt(drop(crossprod(square, draws$weights)))
    }
  })
  out <- if (with_sd) list(fit = mean, se.fit = sd) else list(fit = mean)
  if (is.null(names)) lapply(out, drop_column) else out
}

drop_column <- function(x) x[, 1]

# The linear predictor is linear: its moments are those of theta.
#' @export
predictor_moments.tall_glm <- function(fit, rows, draws, scale, with_sd) {
  if (scale == "response" && fit$family$link != "identity") {
    return(NextMethod())
  }
  centre <- colSums(draws$theta * draws$weights)
  if (is_sparse(rows$x)) {
    return(sparse_moments(fit, rows, draws, centre, with_sd))
  }
  out <- list(fit = drop(rows$x %*% centre) + rows$offset)
  if (with_sd) {
    root <- sqrt(draws$weights) * sweep(draws$theta, 2, centre)
    covariance <- crossprod(root)
    out$se.fit <- sqrt(pmax(rowSums((rows$x %*% covariance) * rows$x), 0))
  }
  out
}

# Draw by draw: a product with the covariance would have no zeros.
sparse_moments <- function(fit, rows, draws, centre, with_sd) {
  of_theta <- function(theta, at = seq_len(nrow(rows$x)), offset = 0) {
    part <- list(x = design_rows(rows$x, at), offset = offset)
    draws$theta <- theta
    predictor(fit, part, draws, "link")
  }
  out <- list(fit = drop(of_theta(t(centre), offset = rows$offset)))
  if (with_sd) {
    root <- sqrt(draws$weights) * sweep(draws$theta, 2, centre)
    n <- nrow(rows$x)
    out$se.fit <- numeric(n)
    each_block(n, nrow(root), size = 2^18, function(at) {
      out$se.fit[at] <<- sqrt(colSums(of_theta(root, at)^2))
    })
  }
  out
}

# How many draws to take where the user does not say: all of them where moments
# follow from those of theta; else as far as they are affordable.
usual_draws <- function(fit, n, scale, most = setting("large_matrix")) {
  is_linear <- inherits(fit, "tall_glm") &&
    (scale == "link" || fit$family$link == "identity")
  if (!is_linear) affordable_draws(fit, n, most)
}

# What the law of the responses of these rows has in the places of predictors,
# draws x rows, or x these: entries draw from it.
response_law <- function(fit, rows, draws) {
  UseMethod("response_law")
}

#' @export
response_law.tall_regression <- function(fit, rows, draws) {
  predictor(fit, rows, draws, "response")
}

# ---- draws -------------------------------------------------------------------

# Responses of these rows, draws x rows, column by column; classes count from 1.
# Blocks of rows, one after the other, have the draws of all rows at once.
response_draws <- function(fit, rows, draws) {
  if (has_strata(fit$family)) {
    # of each stratum at a time
    shape <- c(nrow(draws$theta), nrow(rows$x))
    rows$uniform <- t(matrix(stats::runif(prod(shape)), shape[[1]]))
  }
  over_strata(fit, rows, draws, draw_responses)
}

draw_responses <- function(fit, rows, draws) {
  mu <- response_law(fit, rows, draws)
  shape <- dim(mu)[1:2]
  is_missing <- is.na(if (length(dim(mu)) == 3) mu[, , 1] else mu)
  entry <- if (has_class_response(fit)) "categorical" else fit$family
  draw <- function() find_response(entry)$draw(mu, draws$aux, rows)
  # a missing covariate has been let through: its predictions are missing
  if (!any(is_missing)) {
    return(matrix(draw(), shape[[1]]))
  }
  out <- matrix(suppressWarnings(draw()), shape[[1]])
  out[is_missing] <- NA
  out
}

# Dimnames of draws x rows (x classes). They are assigned where the array was
# made: as an argument it would be copied.
draw_names <- function(rows, more = NULL) {
  names <- rownames(rows$x) %||% as.character(seq_len(nrow(rows$x)))
  c(list(NULL, names), if (!is.null(more)) list(more))
}

# Log densities of the responses of these rows, draws x rows.
log_density <- function(fit, rows, draws) {
  UseMethod("log_density")
}

#' @export
log_density.tall_regression <- function(fit, rows, draws) {
  over_strata(fit, rows, draws, row_log_density)
}

row_log_density <- function(fit, rows, draws) {
  eta <- predictor(fit, rows, draws, "link")
  is_precision <- has_precisions(fit$family)
  out <- response_log_density(
    fit$family,
    eta,
    rows$y,
    if (is_precision) rows$weight else rows$trials,
    draws$aux
  )
  if (!is_precision && any(rows$weight != 1)) {
    out <- rep(rows$weight, each = nrow(eta)) * out
  }
  out
}

# ---- strata ------------------------------------------------------------------

# f(fit, rows, draws), draws x rows, where rows of a stratum have a family of
# their own: of the rows of each, with this family and its auxiliary parameters.
over_strata <- function(fit, rows, draws, f) {
  if (!has_strata(fit$family)) {
    return(f(fit, rows, draws))
  }
  of <- row_strata(fit$family$pieces, rows$x)
  out <- matrix(NA_real_, nrow(draws$theta), nrow(rows$x))
  for (s in unique(of)) {
    at <- which(of == s)
    own <- fit_of_stratum(fit, draws, s)
    out[, at] <- f(own$fit, some_rows(rows, at), own$draws)
  }
  out
}

fit_of_stratum <- function(fit, draws, s) {
  own <- stratum_pieces(fit$family$pieces, s)
  draws$aux <- draws$aux[, own, drop = FALSE]
  fit$family <- stratum_family(fit$family, s)
  list(fit = fit, draws = draws)
}
