# tall_glm() of rows that are passed over, wherever they lie: a look, a design,
# the mode, and a model whose plan is plan_remote()'s.

#' @section Rows that are passed over: More than 65,536 rows, and those of a
#' source, are read block by block and never all in memory: one look finds
#' levels, missing values and a pilot of 65,536 rows, with at least 100 of every
#' level and outcome; Newton steps that the pilot corrects (after Jordan, Lee &
#' Yang, 2019) find the mode, mostly in one pass; and one more draws some ten
#' thousand rows, from which the steps of [kernel_smh()] are exact. A Gaussian
#' response takes one pass after the look, for sums, also where its prior has
#' hyperparameters. Draws are the same for the same rows and `seed`, whatever
#' the source, its blocks and `cores`, with these exceptions: shards of a list
#' differ by rounding, and those of streams take another pilot; a database that
#' computes the passes draws rows by random numbers of its own, so that draws of
#' other responses than Gaussian ones differ by Monte Carlo error from those of
#' the same rows elsewhere, and from call to call (see [as_source()]).
#' [sg_resume()] makes another pass. Terms that depend on other rows than their
#' own (`cut(x, 3)`, `x - mean(x)`) are refused; variables that are not in
#' `data` must be single values.
#'
#' `poly()`, splines, `scale()` and others of which [stats::makepredictcall()]
#' knows take constants from the rows: bases, knots, centres. Of rows in memory
#' (data frames, matrices, lists of such) they are those of all rows, as
#' [stats::lm()] and [stats::glm()] have them; while they are found, a term at a
#' time, its columns and what is made of them are in memory, some 30 numbers a
#' row for `poly(x, 2)` and 8 for `scale(x)`, and where that does not fit the
#' term is refused. Of other sources they are those of the pilot and the ends of
#' the columns: the coefficients, and their draws, refer to these.
#'
#' Rows that are alike count as one: where the pilot tells that few combinations
#' of values have all rows, as of factors and whole numbers, one pass finds
#' these combinations and how many rows have each, and all else looks at them.
#' What a run does is decided from the look, and no pass over the rows is made
#' in vain: where all rows contradict the pilot, and must be brought to memory,
#' the search for the mode goes on from where passes found it. Passes that come
#' before are counted in the fit's `passes`, the look and the bringing included.
#'
#' Where exact steps do not suit a posterior because of a few awkward rows (see
#' [sg_sample()]), those that differ are in memory if alike ones count as one,
#' and no other rows are needed. Otherwise all rows are brought to memory, but
#' of a design that takes more than a gigabyte: then a pass brings the awkward
#' rows alone, one takes the sums where the surrogate is expanded, and one draws
#' the other rows. A fit keeps the awkward rows, for [sg_resume()].
#'
#' Of a prior with hyperparameters, such as [prior_hs()], rows are expanded
#' where the surrogate of them has its mean (see [proposals]): a pass takes the
#' sums where that of the pilot has it and brings the awkward rows, another one
#' takes them anew where all rows tell of a mean farther off, and the last draws
#' rows, within a ball that the surrogate's chain measures.
#'
#' Where that does not serve (a `kernel`, `lambda`, `sparse` or `storage`, a
#' prior with bounds, gradients that are kept, more than 1,001 columns, a
#' posterior that exact steps do not suit) all rows are brought to memory, and a
#' message says why where it was not asked for. Of data beyond memory the design
#' goes to the file `store`, which models map; response, weights and offset stay
#' in memory, 8 bytes a row each.
#' @name tall_glm
#' @rdname tall_glm
NULL

# list(fit, digest, start, reading, why, family) of rows that are passed over,
# wherever they lie. fit: NULL where all must be at hand; digest: what they must
# have then, if a look has found it; start: what passes leave, see
# start_of_passes(): `spent` has all that there were; reading: what the look
# found, for a store; why: that all must be at hand, NULL where nobody says;
# family: what the look made of the response, which `start` is of.
fit_in_passes <- function(front, source, run) {
  if (!suits_passes(front, run)) {
    return(list())
  }
  needs <- NULL
  digest <- NULL
  start <- NULL
  is_looked_at <- FALSE
  kept <- NULL
  family <- NULL
  trail <- new.env()
  fit <- held_open(source, unless_at_hand(source, tryCatch(
    {
      reading <- in_stage(source, read_source(front, source, run))
      is_looked_at <- TRUE
      kept <- if (!is.null(front$store)) reading
      digest <- reading$look$digest
      needs <- reading$look$why
      if (has_passes(reading)) {
        reader <- pilot_reader(front, reading)
        front <- settle_reading(front, reading, reader$terms)
        reading$rows$family <- family <- front$blueprint$family
        n_missing <- reading$look$n_missing
        pilot <- rows_of_pilot(reading)
        rows <- settle_database(reading, pilot, run$control$refresh)
        reading <- NULL # passes and run do without the rest
        at <- in_stage(
          source,
          plan_of_look(front$blueprint, rows, pilot, run$control)
        )
        rows <- settle_ties(rows, pilot, run$control, at$theta)
        if (is_tied(rows)) {
          pilot <- whole_rows(rows)
        }
        model <-
          model_of_passes(front$blueprint, rows, pilot, run$control, at, trail)
        pilot <- NULL
        if (is.null(model)) {
          need_rows(NULL, ledger_of_trail(trail))
        }
        n_missing <- model$remote$n_missing %||% n_missing
        fit_of_source(front, rows, model, reader, run, n_missing)
      }
    },
    tall_needs_rows = function(cnd) {
      needs <<- cnd$why
      start <<- cnd$start
      NULL
    }
  )))
  if (is.null(fit)) {
    tell_rows_needed(needs, source, front$store, run$control)
    if (is.null(start) && is_looked_at) {
      start <- start_of_passes(ledger_of_trail(trail))
    }
  }
  list(
    fit = fit,
    digest = digest,
    start = start,
    reading = kept,
    why = needs,
    family = family
  )
}

# A look, and passes that found no mode.
ledger_of_trail <- function(trail) {
  ledger <- new_ledger()
  spend(ledger, "recipe", 1)
  spend(ledger, "mode", trail$passes %||% 0)
  ledger$theta <- trail$theta
  ledger
}

# Is there a pilot, of not too many columns?
has_passes <- function(reading) {
  !is.null(reading$rows) && ncol(reading$parts$x) <= setting("most_whitened")
}

# Code that reads a source again and again, which stays as it is meanwhile.
held_open <- function(source, code) {
  end <- source_hold(source)
  on.exit(end())
  code
}

# NULL where code asks of blocks what only all rows at once can have, and these
# are there already; of other sources that is an error.
unless_at_hand <- function(source, code) {
  if (inherits(source, "tall_source_frame")) {
    tryCatch(code, tall_not_in_blocks = function(cnd) NULL)
  } else {
    code
  }
}

# What a look finds of a source, as read_design() has it.
read_source <- function(front, source, run) {
  request <- source_request(front, source)
  rows <- rows_of_source(source, request)
  if (has_rows_beside(request, source_size(source))) {
    not_in_blocks()
  }
  read_design(rows, front$asked$matched, run$control$refresh)
}

# What tall_glm()'s arguments ask of a source's rows.
source_request <- function(front, source) {
  asked <- front$asked
  columns <- source_names(source)
  matched <- place_arguments(
    asked$matched,
    columns,
    environment(asked$formula),
    asked$caller
  )
  action <- known_na_action(asked$na.action)
  new_request(
    asked$formula,
    columns,
    front$blueprint$family,
    as.list(matched)[placed_arguments],
    fails = action == "na.fail",
    pads = action == "na.exclude"
  )
}

# settle_front() of what a look found; the sketch of a source's data is that of
# the pilot.
settle_reading <- function(front, reading, terms) {
  front$pilot <- reading$pilot[c("data", "counts")]
  columns <- reading$rows$design$columns
  front <- settle_front(front, terms, columns)
  weight <- reading$pilot$stands * (reading$parts$weights %||% 1)
  settle_response(front, reading$parts$y, weight, columns, reading$pilot$frame)
}

# How rows of new data are read as those of a pilot were.
pilot_reader <- function(front, reading) {
  pilot <- list(
    frame = reading$pilot$frame,
    call = reading$pilot$call,
    columns = reading$rows$request$columns
  )
  front_reader(front, pilot, reading$parts)
}

# The run of a model of such rows, and the fit.
fit_of_source <- function(
  front,
  rows,
  model,
  reader,
  run,
  n_missing,
  spent = NULL
) {
  ready <- front_ready(front, model, NULL, reader, run)
  fit <- spent_before(sample_ready(front, ready), spent)
  gradients <- rounded_in_passes(front, rows, front$blueprint$sigma, run)
  fit$compressed <- compressed_by(front, fit, gradients)
  parts <- front_parts(front, ready, NULL, fit)
  parts$n_missing <- n_missing
  end_regression(fit, run, front, rows, c(reader, parts))
}

# Those of a data frame are there already.
tell_rows_needed <- function(why, source, store, control) {
  is_there <- inherits(source, "tall_source_frame") && is.null(store)
  if (control$refresh > 0 && !is_there && !is.null(why)) {
    cli::cli_inform(c(
      i = "All rows are {if (is.null(store)) 'brought to memory' else 'needed'}:
           {why}."
    ))
  }
}

# Can rows be read in blocks? Others than formulas are refused later.
suits_blocks <- function(asked) {
  inherits(asked$formula, "formula") &&
    !is.null(known_na_action(asked$na.action))
}

# Can passes serve this run? They find the default posterior of a response with
# exact draws or sums; else rows must be where any can be had.
suits_passes <- function(front, run) {
  blueprint <- front$blueprint
  asks_more <- c(
    !vapply(run[c("kernel", "gradient", "subsample", "init")], is.null, TRUE),
    !is.null(run$lambda),
    !schedule_is_constant(run$schedule),
    "gradients" %in% run$control$keep,
    blueprint$storage != "double",
    !isFALSE(front$request$sparse)
  )
  suits_blocks(front$asked) && !any(asks_more) &&
    passes_know(blueprint$family) &&
    !any(are_bounded(blueprint$priors))
}

are_bounded <- function(priors) {
  vapply(
    priors,
    function(prior) {
      inherits(prior, "tall_prior") &&
        identical(prior_kinds[[prior$kind]]$form, "bounded")
    },
    TRUE
  )
}

# A row of a pilot stands for others by its weight, which must be no precision.
passes_know <- function(family) {
  facts <- response_facts(family)
  is_known <- !has_aux(family) ||
    !anyNA(known_values(family)) && !facts$is_precision
  find_response(family)$is_quadratic || (facts$has_third_bound && is_known)
}

# The name of an na.action that passes know; NULL: another.
known_na_action <- function(na.action) {
  for (name in c("na.omit", "na.exclude", "na.fail")) {
    if (identical(na.action, name) ||
      identical(na.action, getExportedValue("stats", name))) {
      return(name)
    }
  }
  NULL
}
