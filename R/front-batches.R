# Batches of rows that come to a fit, or leave it: what is asked of them, and
# what a fit says of those that it holds.

# f: the function's name.
check_growing <- function(fit, f) {
  check_not_robust(fit, f)
  why <- if (!inherits(fit, "tall_regression")) {
    "fits of regressions"
  } else if (inherits(fit, "tall_nn")) {
    "fits but of networks, which are trained anew"
  } else if (isTRUE(fit$prior_PD)) {
    "draws of a posterior: rows have no part in those of the prior"
  } else if (!is.null(fit$lambda)) {
    "Bayesian posteriors: of a Gibbs posterior {.arg lambda} would change"
  } else if (!is.null(fit$compressed)) {
    "rows as they are: what rounding new ones did would not be known"
  }
  if (!is.null(why)) {
    abort_tall(
      "unsupported",
      paste0("{.fn ", f, "} is for ", why, "."),
      argument = "fit"
    )
  }
  check_has_formula(fit, f)
  # what is kept of earlier rows decides what comes out
  altered <- altered_components(fit, "passed")
  if (length(altered) > 0) {
    abort_corrupt("`fit`", altered)
  }
}

growing_arguments <- c(
  "iter", "warmup", "thin", "chains", "cores", "seed", "refresh"
)

# The run of the fit, but for what was given.
run_of_batch <- function(fit, given, began) {
  check_dots_known(given, growing_arguments)
  run <- run_again(fit, run_changes(given))
  run$began <- began
  kept <- fit$control$record
  if (!is.null(kept)) {
    run$variables <- fit$every_variable[kept]
  }
  run
}

# As sg_sample() has it half of other iterations are warmup.
run_changes <- function(given) {
  if (!is.null(given$iter) && is.null(given$warmup)) {
    given$warmup <- floor(given$iter / 2)
  }
  given$refresh <- given$refresh %||% getOption("tallbayes.refresh", 1)
  given
}

# A batch, read as the fit's rows were: list(source, rows, digest, entry), rows
# being NULL where these are no pass's. Its one pass takes the digest.
read_batch <- function(fit, rows, control) {
  source <- data_source(rows, "rows")
  columns <- fit$columns
  check_columns_there(columns, source_names(source))
  is_passed <- is_remote_fit(fit)
  known <- if (is_passed) fit$rows$digest
  digest <- new_digest(columns, known$kinds)
  add <- function(block) {
    digest$add(block)
    TRUE
  }
  request <- list(columns = columns)
  walk_source(source, request, "Reading rows", control$refresh, add)
  found <- digest$found()
  if (found$n == 0) {
    abort_input(
      "{.arg rows} must have at least one row.",
      argument = "rows",
      value = 0
    )
  }
  own <- if (is_passed) new_rows(fit$rows, source)
  if (is_passed) {
    own$n_row <- found$n
  }
  list(
    source = source,
    rows = own,
    digest = found,
    entry = batch_entry(found)
  )
}

check_columns_there <- function(columns, names) {
  absent <- setdiff(columns, names)
  if (length(absent) > 0) {
    abort_missing_columns(absent, arg = "rows")
  }
}

batch_entry <- function(digest) {
  data.frame(
    rows = as.double(digest$n),
    digest = paste(format(as.hexmode(digest$sum %/% 2^16), width = 4),
      format(as.hexmode(digest$sum %% 2^16), width = 4),
      sep = "", collapse = ""
    )
  )
}

# What a fit holds; the first batch has no digest where its rows were in memory.
batches_of <- function(fit) {
  if (!is.null(fit$batches)) {
    return(fit$batches)
  }
  known <- if (is_remote_fit(fit)) fit$rows$digest
  if (is.null(known)) {
    return(data.frame(
      rows = fit_rows_read(fit),
      digest = NA_character_
    ))
  }
  batch_entry(known)
}

# Rows that its first call read, those left out included.
fit_rows_read <- function(fit) {
  as.double(fit$n_rows %||% fit$n_data) + (fit$n_missing %||% 0)
}

check_new_batch <- function(fit, batch) {
  held <- match(batch$entry$digest, batches_of(fit)$digest)
  if (!is.na(held)) {
    abort_input(
      c(
        "{.arg rows} must be new: the fit holds them already.",
        x = "They are its batch {held}, of
             {count_noun(batch$digest$n, 'row')}.",
        i = "New rows with the values of earlier ones can come in one batch with
             others."
      ),
      argument = "rows",
      value = batch$entry$digest
    )
  }
}

# "sums", "tied" or "drawn": what the fit keeps that a batch is added to;
# "again": nothing that does.
way_of_batch <- function(fit) {
  passed <- fit$passed
  has_totals <- !is.null(fit$rows$facts$total)
  if (!is_remote_fit(fit) || !has_totals) {
    "again"
  } else if (!is.null(fit$rows$products)) {
    "sums"
  } else if (is_scaled_fit(fit)) {
    "again"
  } else if (!is.null(passed$tied)) {
    "tied"
  } else if (!is.null(passed$drawn)) {
    "drawn"
  } else {
    "again"
  }
}

# Of a prior with hyperparameters, whose rows are expanded elsewhere.
is_scaled_fit <- function(fit) {
  !is.null(fit$passed$found$phi)
}

# Its call is that of the first fit. shards: of the source, those of each batch;
# NULL: nobody knows.
end_batch <- function(fit, before, batches, shards = NULL) {
  fit$call <- before$call
  fit$batches <- batches
  fit["batch_shards"] <- list(shards)
  seal_fit(finish_fit(fit))
}

# Shards of the fit's source by batch.
shards_of <- function(fit) {
  if (is.null(fit$batches)) {
    n_shards(fit$rows$source)
  } else {
    fit$batch_shards
  }
}

n_shards <- function(source) {
  if (!is.null(source)) length(source_shards(source))
}
