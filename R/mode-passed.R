# The model of rows that are passed over (spec section 12): what passes find of
# all of them, and how models are made of some.

# With so many rows memory that nobody uses is given back before they are passed
# over.
gc_rows <- 2e6

# A model of the pilot's rows (see rows_of_pilot()), under the prior of all,
# with `remote`: see new_remote(). NULL: passes find no mode, and `trail` has
# what they found, see remote_mode(). start: what is known of it from the pilot,
# see plan_of_look().
model_of_passes <- function(
  blueprint,
  rows,
  pilot,
  control,
  start = NULL,
  trail = new.env()
) {
  # a database has them elsewhere
  if (rows$n_row > gc_rows && is.null(rows$in_sql)) {
    gc() # takes as long as a pass over few rows
  }
  if (find_response(rows$family)$is_quadratic) {
    model_by_sums(blueprint, rows, pilot, control)
  } else {
    model_by_mode(blueprint, rows, pilot, control, start, trail)
  }
}

model_by_mode <- function(blueprint, rows, pilot, control, start, trail) {
  found <- tryCatch(
    remote_mode(blueprint, rows, pilot, control, start$theta, trail),
    tall_error_improper = function(cnd) NULL,
    tall_error_mode = function(cnd) NULL,
    tall_error_singular = function(cnd) NULL
  )
  if (is.null(found)) {
    return(NULL)
  }
  rows$met <- NULL # it was the first pass
  found$psi <- psi_of_pilot(found$model, found, control)
  found$steps <- start$steps
  # why exact steps from rows drawn ahead do not pay; NULL: they do
  found[c("why_not", "stands")] <- start[c("why_not", "stands")]
  remote <- new_remote(blueprint, rows, pilot, found)
  as_remote(found$model, remote, found$facts)
}

# The sum of the bounds over all rows, from the pilot's, each with the number of
# rows that it stands for.
psi_of_pilot <- function(model, found, control) {
  bounds_of_pilot(model, found, control, 0)$total
}

# phi_bar: 0, for their sum alone; Inf, for all that are not 0, as `psi`.
bounds_of_pilot <- function(model, found, control, phi_bar) {
  none <- list(radius = remote_radius(model$n_dim), phi_bar = phi_bar, rate = 0,
    scale = 1, seed = 1, pass = 0, first = 0)
  chunk_draw(model$pointer, found$theta, found$chol, control$cores, none)
}

# Of a normal posterior e^-24 is further out.
remote_radius <- function(n_dim) {
  sqrt(n_dim) + 7
}

# Of a Gaussian response sums are enough.
model_by_sums <- function(blueprint, rows, pilot, control) {
  sums <- products_of(rows, control)
  pilot$facts <- sums$facts
  remote <- new_remote(blueprint, rows, pilot, sums, sums, control)
  as_remote(build_model(blueprint, pilot), remote, sums$facts)
}

# What a model has of the rows that it is the model of: how they are read, the
# blueprint by which models of some are made, what passes found; some: as many
# as columns, of the pilot; products: sums of a Gaussian response; control: by
# which residuals are looked at. `count$pass` of passes are done.
new_remote <- function(
  blueprint,
  rows,
  pilot,
  found,
  products = NULL,
  control = NULL,
  pass = 0
) {
  count <- new.env(parent = emptyenv())
  count$pass <- pass
  n <- min(ncol(pilot$x), nrow(pilot$x))
  structure(
    list(
      blueprint = blueprint,
      rows = rows,
      some = rows_at(pilot, seq_len(n)),
      found = found,
      n_missing = found$n_missing,
      products = products,
      control = control,
      count = count
    ),
    class = "tall_remote"
  )
}

as_remote <- function(model, remote, facts) {
  model$n_data <- facts$n_row
  place <- response_facts(model$family)$place
  numbers <- c(place, unlist(facts), unlist(model$prior))
  model$fingerprint <- .Call(ffi_hash, numbers)
  model$remote <- remote
  model
}

# Of rows x, y, weights, offset that a pass drew, under the prior of all rows.
model_of_some <- function(remote, of) {
  some <- rows_drawn(remote$rows, of, remote$found$facts)
  build_model(remote$blueprint, some)
}
