# tall_retract(): a fit without rows that were deleted.

#' @rdname tall_append
#' @export
tall_retract <- function(fit, rows, ..., data = NULL) {
  began <- clock()
  check_growing(fit, "tall_retract")
  run <- run_of_batch(fit, list(...), began)
  check_given(rows)
  batch <- read_batch(fit, rows, run$control)
  batches <- batches_of(fit)
  at <- match(batch$entry$digest, batches$digest)
  source <- source_without(fit, at, data)
  out <- from_known(retract_known(fit, batch, at, source, run))
  if (is.null(out)) {
    if (is.null(data)) {
      abort_needs_data()
    }
    out <- fit_again(fit, data, list(...), run$control)
  }
  shards <- if (is.null(data) && !is.na(at)) shards_of(fit)[-at]
  end_batch(out, fit, batches_without(batches, batch, at), shards)
}

# What opens the rows that stay; NULL: nothing. at: which batch goes, NA: some
# rows of any.
source_without <- function(fit, at, data) {
  if (!is.null(data)) {
    return(data_source(data))
  }
  shards <- shards_of(fit)
  if (is.null(fit$rows$source) || is.na(at) || length(shards) < 2) {
    return(NULL)
  }
  stay <- rep(seq_along(shards), shards) != at
  new_shards(source_shards(fit$rows$source)[stay])
}

batches_without <- function(batches, batch, at) {
  if (!is.na(at)) {
    batches <- batches[-at, ]
    rownames(batches) <- NULL
    return(batches)
  }
  rbind(batches, data.frame(
    rows = -batch$entry$rows,
    digest = batch$entry$digest
  ))
}

abort_needs_data <- function() {
  abort_tall(
    "unsupported",
    c(
      "The fit keeps nothing from which {.arg rows} could be taken away.",
      i = "Give {.arg data} what opens the rows that stay, and the fit is made
           again of these."
    ),
    argument = "data"
  )
}

# As append_known() has it.
retract_known <- function(fit, batch, at, source, run) {
  way <- way_of_batch(fit)
  if (way == "again") {
    return(NULL)
  }
  if (batch$digest$n >= fit_rows_read(fit)) {
    abort_input(
      "{.arg rows} must be fewer than the fit has, {format_count(fit$n_data)},
       not {format_count(batch$digest$n)}.",
      argument = "rows",
      value = batch$digest$n
    )
  }
  shrink <- switch(way,
    sums = shrunk_by_sums,
    tied = shrunk_by_ties,
    drawn = shrunk_by_draws
  )
  model <- shrink(fit, batch, at, source, run$control)
  if (!is.null(model)) {
    out <- fit_changed(fit, model, run)
    spent_of_batch(out, way, 2 * batch$digest$n / out$n_data)
  }
}

rows_that_stay <- function(fit, batch, source) {
  rows <- rows_of_others(fit, source)
  if (!is.null(rows$digest)) {
    rows$digest <- unmerge_digest(rows$digest, batch$digest)
  }
  rows$n_row <- fit$rows$n_row - batch$digest$n
  rows
}

shrunk_by_sums <- function(fit, batch, at, source, control) {
  gone <- products_of(batch$rows, control)
  kept <- fit$rows$products
  sums <- c(unmerge_products(kept, gone), list(
    facts = known_without(fit$rows$facts, gone$facts),
    n_missing = (fit$n_missing %||% 0) - gone$n_missing
  ))
  model_of_sums(fit, rows_that_stay(fit, batch, source), sums, control)
}

# What merge_products() made of b and what is left.
unmerge_products <- function(all, b) {
  weight <- all$weight - b$weight
  mean <- (all$weight * all$mean - b$weight * b$mean) / weight
  sums <- all$sums - b$sums -
    tcrossprod(b$mean - mean) * (weight / all$weight * b$weight)
  list(mean = mean, sums = (sums + t(sums)) / 2, weight = weight)
}

# The same of facts. The largest weight stays, as nobody knows the next one.
known_without <- function(all, gone) {
  facts_of(unmerge_facts(all$total, gone$total))
}

unmerge_facts <- function(all, b) {
  n <- all$n - b$n
  mean <- (all$n * all$mean - b$n * b$mean) / n
  square <- all$square - b$square - (b$mean - mean)^2 * n * b$n / all$n
  out <- list(n = n, mean = mean, square = pmax(0, square))
  if (!is.null(all$weighted)) {
    u <- all$weighted
    v <- b$weighted
    w <- u[[2]] - v[[2]]
    centre <- (u[[2]] * u[[3]] - v[[2]] * v[[3]]) / w
    left <- u[[4]] - v[[4]] - (v[[3]] - centre)^2 * w * v[[2]] / u[[2]]
    out$weighted <- c(u[[1]], w, centre, max(0, left))
  }
  out
}

shrunk_by_ties <- function(fit, batch, at, source, control) {
  kept <- fit$passed$tied
  ties <- tie_rows(batch$rows, control)
  gone <- unweigh_ties(ties$tied, fit$rows)
  gone$count <- -gone$count
  left <- join_ties(list(unweigh_ties(kept$tied, fit$rows), gone))
  if (any(left$count < 0)) {
    abort_input(
      c(
        "{.arg rows} must be among those of the fit.",
        x = "It has fewer of {count_noun(sum(left$count < 0), 'kind')} of rows."
      ),
      argument = "rows",
      value = sum(left$count < 0)
    )
  }
  stay <- which(left$count > 0)
  tied <- weigh_ties(lapply(left, select_rows, stay))
  rows <- rows_that_stay(fit, batch, source)
  rows <- rows_tied(
    rows,
    tied,
    facts_of_ties(tied, rows),
    kept$n_missing - ties$n_missing
  )
  model_of_ties_at(fit, rows, control)
}

# Rows that were drawn go with the batch that they came with. The rest is as if
# a pass had drawn it: nothing of it depends on that batch.
shrunk_by_draws <- function(fit, batch, at, source, control) {
  if (is.na(at) || at == 1) {
    return(NULL)
  }
  passed <- fit$passed
  found <- passed$found
  gone <- sums_at(batch$rows, found$theta, control)
  drawn <- passed$drawn
  from <- drawn$batch == at - 1
  drawn$total <- drawn$total - sum_of_bounds(batch$rows, gone, found, drawn)
  drawn$sums <- Map(`-`, drawn$sums, gone[names(drawn$sums)])
  stay <- which(!from)
  drawn[drawn_names] <- lapply(drawn[drawn_names], function(value) {
    if (!is.null(value)) select_rows(value, stay)
  })
  # later batches move up
  drawn$batch <- drawn$batch - (drawn$batch > at - 1)
  facts <- known_without(fit$rows$facts, gone$facts)
  kept <- list(
    theta = found$theta,
    chol = found$chol,
    facts = facts,
    drawn = drawn,
    pass = passed$pass + 1,
    steps = fit$steps,
    n_batch = max(drawn$batch)
  )
  rows <- rows_that_stay(fit, batch, source)
  rows <- rows_grown(rows, NULL, source, kept)
  found$facts <- facts
  found$n_missing <- (fit$n_missing %||% 0) - gone$n_missing
  found$passes <- 0
  model_of_draws(fit, rows, found, control)
}

# Of a batch, those that are looked at always aside.
sum_of_bounds <- function(rows, gone, found, drawn) {
  draw <- c(drawn$draw, list(seed = 1, pass = 0, first = 0))
  draw$rate <- 0
  found$facts <- shards_alone(gone$facts)
  take_rows_ahead(rows, found, draw, list(cores = 1, refresh = 0))$total
}
