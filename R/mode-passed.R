# The model of rows that are passed over (see ?tall_glm): what passes find of
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
  } else if (!is.null(start$phi)) {
    model_by_scales(blueprint, rows, pilot, control, start)
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

# Of a prior with hyperparameters the mode tells nothing: one pass takes the
# sums where the look's surrogate has its mean, and brings the rows that are
# awkward there.
model_by_scales <- function(blueprint, rows, pilot, control, start) {
  found <- c(start, list(passes = 0, distance = 0))
  if (is_tied(rows)) {
    found[c("facts", "n_missing")] <- list(rows$facts, rows$n_missing)
  } else {
    taken <- if (is.null(start$cut)) {
      sums_met(rows, start$theta, control, 1)
    } else {
      draw <- list(
        radius = remote_radius(length(start$theta)),
        phi_bar = 1 / start$cut,
        rate = 0,
        scale = 1,
        seed = 1,
        pass = 0,
        first = 0
      )
      take_rows_ahead(rows, found, draw, control)
    }
    found$sums <- taken$sums %||% taken[c("log_lik", "gradient", "hessian")]
    found$taken <- taken
    found[c("facts", "n_missing")] <- taken[c("facts", "n_missing")]
    found$passes <- 1
  }
  rows$met <- NULL
  pilot$facts <- found$facts
  remote <- new_remote(blueprint, rows, pilot, found)
  as_remote(build_model(blueprint, pilot), remote, found$facts)
}

# The sum of the bounds over all rows, from the pilot's, each with the number of
# rows that it stands for.
psi_of_pilot <- function(model, found, control) {
  bounds_of_pilot(model, found, control, 0)$total
}

# phi_bar: 0, for their sum alone; Inf, for all that are not 0, as `psi`.
bounds_of_pilot <- function(model, found, control, phi_bar) {
  radius <- found$radius %||% remote_radius(n_seen(model))
  none <- list(radius = radius, phi_bar = phi_bar, rate = 0,
    scale = 1, seed = 1, pass = 0, first = 0)
  pointer <- rows_pointer(model)
  chunk_draw(pointer, found$theta, found$chol, control$cores, none)
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
  prior <- model$prior
  prior$mixture <- prior$mixture$params
  facts$total <- NULL
  numbers <- c(place, unlist(facts), unlist(prior))
  model$fingerprint <- .Call(ffi_hash, numbers)
  model$remote <- remote
  model
}

# Of rows x, y, weights, offset that a pass drew, under the prior of all rows.
model_of_some <- function(remote, of) {
  some <- rows_drawn(remote$rows, of, remote$found$facts)
  build_model(remote$blueprint, some)
}
