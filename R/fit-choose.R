# Which draws predictions are made of, and how many numbers may be made unasked.

# The number of draws asked for, as `draws` or as `ndraws`; NULL: all.
check_draws <- function(fit, draws, ndraws = NULL) {
  check_has_draws(fit)
  arg <- "draws"
  if (!is.null(ndraws)) {
    if (!is.null(draws)) {
      abort_input(
        "{.arg draws} and {.arg ndraws} are the same argument: give one.",
        argument = "ndraws",
        value = ndraws
      )
    }
    draws <- ndraws
    arg <- "ndraws"
  }
  available <- posterior::ndraws(fit$draws)
  check_count(draws, max = available, allow_null = TRUE, arg = arg)
}

# All draws where that costs less than a second, 400 where it costs more. n_row:
# NA of rows that were not counted.
affordable_draws <- function(
  fit,
  n_row,
  most = setting("large_matrix"),
  least = 400
) {
  available <- posterior::ndraws(fit$draws)
  wanted <- max(least, if (is.na(n_row)) 0 else floor(most / max(1, n_row)))
  if (wanted < available) wanted
}

# Evenly spaced draws, a record: theta, draws x coefficients; aux, natural
# auxiliary parameters of the response (see aux_draws()); weights, whose sum is
# 1; rows, which of all draws (NULL: all); cores, threads to evaluate them with.
# Draws of a decaying schedule carry weights; with resample = TRUE they are
# repeated instead, in proportion.
choose_draws <- function(fit, draws = NULL, resample = FALSE, cores = 1L) {
  check_has_all(fit)
  all <- draws_matrix(fit)
  chosen <- choose_rows(fit, draws, resample)
  if (!is.null(chosen$rows)) {
    all <- all[chosen$rows, , drop = FALSE]
  }
  coefficients <- seq_len(fit$n_coef)
  out <- list(
    theta = unname(all[, coefficients, drop = FALSE]),
    aux = aux_draws(fit, all),
    weights = chosen$weights / sum(chosen$weights),
    rows = chosen$rows,
    cores = cores
  )
  structure(out, class = "tall_chosen_draws")
}

# list(rows, weights): which of all draws, NULL for all.
choose_rows <- function(fit, draws = NULL, resample = FALSE) {
  n <- posterior::ndraws(fit$draws)
  weights <- if (!is.null(fit[["weights"]])) as.numeric(fit[["weights"]])
  if (resample && !is.null(weights)) {
    wanted <- if (is.null(draws)) n else draws
    at <- (seq_len(wanted) - 0.5) / wanted
    rows <- pmin(n, findInterval(at, cumsum(weights) / sum(weights)) + 1)
    weights <- NULL
  } else if (is.null(draws)) {
    rows <- NULL
  } else {
    rows <- floor((seq_len(draws) - 0.5) * n / draws) + 1
    weights <- weights[rows]
  }
  if (is.null(weights)) {
    weights <- rep(1, if (is.null(rows)) n else length(rows))
  }
  list(rows = rows, weights = weights)
}

# Values of the response's auxiliary parameters in each of these draws, a matrix
# with the names of its columns: a vector of one, a matrix of several; NULL
# without any.
aux_draws <- function(fit, draws) {
  if (has_pieces(fit$family)) {
    return(log_hazards(fit$family$pieces, draws))
  }
  known <- known_aux(fit)
  if (length(known) == 0) {
    return(NULL)
  }
  out <- matrix(rep(unname(known), each = nrow(draws)), nrow(draws))
  at <- is.na(known)
  out[, at] <- draws[, names(known)[at]]
  if (ncol(out) == 1) out[, 1] else out
}

# Their posterior means, or their known values; NULL without any.
mean_aux <- function(fit) {
  known <- known_aux(fit)
  at <- is.na(known)
  known[at] <- coef.tall_fit(fit)[names(known)[at]]
  if (length(known) > 0) unname(known)
}

# Known values of those parameters by name, NA of those that are sampled.
known_aux <- function(fit) {
  if (has_pieces(fit$family)) {
    names <- paste0("log_hazard.", seq_len(n_pieces(fit$family$pieces)))
    return(stats::setNames(rep(NA_real_, length(names)), names))
  }
  if (!has_class_response(fit)) known_values(fit$family, fit$sigma)
}

# ---- how much may be asked for -----------------------------------------------

# Matrices that nobody asked for are refused; those of newdata are asked for.
check_matrix_size <- function(fit, n_row, draws, newdata) {
  n_draw <- if (is.null(draws)) posterior::ndraws(fit$draws) else draws
  if (!is.null(newdata) || n_row * n_draw <= setting("large_matrix")) {
    return(invisible())
  }
  fits <- floor(setting("large_matrix") / n_row)
  size <- structure(8 * n_row * n_draw, class = "object_size")
  abort_tall(
    "memory",
    c(
      "{count_noun(n_row, 'row')} x {count_noun(n_draw, 'draw')} are
       {format_count(n_row * n_draw)} numbers
       ({format(size, units = 'auto')}).",
      i = if (fits >= 1) {
        "Give {.arg newdata}, or at most {.code draws = {fits}}."
      } else {
        "Give {.arg newdata}."
      }
    ),
    argument = "draws",
    value = n_row * n_draw,
    expected = setting("large_matrix")
  )
}

# One of several classes?
has_class_response <- function(fit) {
  inherits(fit, "tall_classes") || has_classes(fit$family)
}
