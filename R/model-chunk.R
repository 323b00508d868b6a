# Chunks of rows, as sequential passes see them: each is a model of the core for
# as long as its rows are there. They have been checked where they came from.

# A generalised linear model with a flat prior of the first n rows of `x`
# (double matrix), `y`, `weights` and `offset` (double vectors, or NULL), which
# may be longer; a `y` of several columns is a matrix of n rows. family: from
# resolve_family(); auxiliary parameters are `aux`, the family's where they are
# known, else 1. An external pointer.
chunk_model <- function(
  x,
  n,
  y,
  weights,
  offset,
  family,
  aux = known_values(family)
) {
  pointer <- .Call(
    ffi_chunk_model,
    x,
    n,
    y,
    weights,
    offset,
    response_facts(family)$place,
    if (length(aux) > 0) unname(replace(aux, is.na(aux), 1)),
    core_pieces(family)
  )
  if (is.integer(pointer)) {
    abort_status(pointer)
  }
  pointer
}

# Sums of the likelihood over the rows of a chunk at theta: list(log_lik,
# gradient, hessian, largest), the Hessian with the sign of -H, `largest` the
# largest |eta|. What is not finite is handed back as it is.
chunk_sums <- function(chunk, theta, cores = 1) {
  take_chunk(.Call(ffi_chunk_sums, chunk, theta, cores))
}

# The same, and rows drawn ahead for scalable Metropolis-Hastings: `total`, the
# sum of psi over the rows that are thinned, and `rows` (from 1, in order),
# `count` (0: one to be looked at always) and `psi` of those that were drawn.
#
# chol: lower L of psi_i = scale K_i ||L^-1 x_i||^3 / 6. draw: list(radius,
# phi_bar, rate, scale, seed, pass, first); rows with phi_bar psi > 1 are looked
# at always, and with `wide` those whose ||L^-1 x_i|| is as large; others are
# drawn Poisson(rate psi) times, by a hash of seed, pass and the row's number,
# which is `first` (from 0) for the first row of the chunk.
chunk_draw <- function(chunk, theta, chol, cores = 1, draw) {
  draw$purpose <- hash_purposes[["draw"]]
  draw$wide <- draw$wide %||% 0
  take_chunk(
    .Call(ffi_chunk_draw, chunk, theta, chol, lapply(draw, as.double), cores)
  )
}

take_chunk <- function(out) {
  if (status_name(out$status) != "ok") {
    abort_status(out$status)
  }
  out[names(out) != "status"]
}
