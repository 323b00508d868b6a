# tall_glm() of rows that are passed over, wherever they lie: a look, a design,
# the mode, and a model whose plan is plan_remote()'s.

#' @section Rows that are passed over: More than 65,536 rows, and those of a
#' source, are read block by block and never all in memory: one look finds
#' levels, missing values and a pilot of 65,536 rows, with at least 100 of every
#' level and outcome; Newton steps that the pilot corrects (after Jordan, Lee &
#' Yang, 2019) find the mode, mostly in one pass; and one more draws some ten
#' thousand rows, from which the steps of [kernel_smh()] are exact. A Gaussian
#' response takes one pass after the look, for sums. Draws are the same for the
#' same rows and `seed`, whatever the source, its blocks and `cores`, with these
#' exceptions: shards of a list differ by rounding, and those of streams take
#' another pilot; a database that computes the passes draws rows by random
#' numbers of its own, so that draws of other responses than Gaussian ones
#' differ by Monte Carlo error from those of the same rows elsewhere, and from
#' call to call (see [as_source()]). [sg_resume()] makes another pass. Terms
#' that depend on other rows than their own (`cut(x, 3)`, `x - mean(x)`) are
#' refused; variables that are not in `data` must be single values.
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
#' Where that does not serve (a `kernel`, `lambda`, `sparse` or `storage`, a
#' prior with bounds, gradients that are kept, more than 1,000 columns, a
#' posterior that exact steps do not suit) all rows are brought to memory, and a
#' message says why where it was not asked for. Of data beyond memory the design
#' goes to the file `store`, which models map; response, weights and offset
#' stay in memory, 8 bytes a row each.
#' @name tall_glm
#' @rdname tall_glm
NULL

# list(fit, digest) of rows that are passed over, wherever they lie. fit: NULL
# where they must be in memory; digest: what they must have there, if a look has
# found it.
glm_of_source <- function(source, settings, asked, run) {
  specs <- settings$specs
  action <- known_na_action(settings$na.action)
  is_formula <- inherits(settings$formula, "formula")
  suits <- is_formula && !is.null(action) && suits_passes(
    run,
    settings$family,
    specs,
    settings$storage,
    settings$sparse
  )
  if (!suits) {
    return(list())
  }
  request <- glm_request(source, settings, asked, action)
  build <- function(of, known) {
    build_glm(
      of$x,
      of$y,
      settings$family,
      specs$prior,
      specs$prior_intercept,
      of$weights,
      of$offset,
      settings$sigma,
      specs$prior_aux,
      centers = TRUE,
      arg_y = request$response_name,
      known = known
    )
  }
  needs <- digest <- NULL
  end <- source_hold(source)
  on.exit(end())
  started <- proc.time()[["elapsed"]]
  fit <- tryCatch(
    {
      found <- remote_glm(source, request, asked$matched, build, run$control)
      digest <- found$digest
      if (is.null(found$model)) {
        return(list(digest = digest))
      }
      from <- frame_source(
        found$made,
        settings$formula,
        settings$family,
        found$parts,
        found$made$frame
      )
      from$columns <- request$columns
      passed <- proc.time()[["elapsed"]] - started
      sample_glm(found$model, from, settings, run)
    },
    tall_needs_rows = function(cnd) {
      needs <<- cnd$why
      NULL
    },
    # what needs all rows at once is had where they are in memory, and what is
    # wrong is told there
    tall_error_input = function(cnd) {
      if (!inherits(source, "tall_source_frame")) {
        rlang::cnd_signal(cnd)
      }
      NULL
    }
  )
  end()
  if (is.null(fit)) {
    tell_rows_needed(needs, source, settings$store, run$control)
    return(list(digest = digest))
  }
  fit <- keep_remote(fit, fit$model, fit$keeps)
  fit$keeps <- NULL
  fit$time[["preparation"]] <- fit$time[["preparation"]] + passed
  fit <- front_fit(fit, "tall_glm", asked$written, list(
    n_missing = found$n_missing,
    source = if (settings$keep_data) source,
    request = request
  ))
  list(fit = fit)
}

# What tall_glm()'s arguments ask of a source's rows.
glm_request <- function(source, settings, asked, action) {
  home <- environment(settings$formula)
  columns <- source_names(source)
  matched <- place_arguments(asked$matched, columns, home, asked$caller)
  new_request(
    settings$formula,
    columns,
    settings$family,
    as.list(matched)[placed_arguments],
    fails = action == "na.fail",
    pads = action == "na.exclude"
  )
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

# Can passes serve this run? They find the default posterior of a response with
# exact draws or sums; else rows must be where any can be had.
suits_passes <- function(run, family, priors, storage, sparse) {
  asks_more <- c(
    !vapply(run[c("kernel", "gradient", "subsample", "init")], is.null, TRUE),
    !is.null(run$lambda),
    !schedule_is_constant(run$schedule),
    "gradients" %in% run$control$keep,
    storage != "double",
    !isFALSE(sparse)
  )
  !any(asks_more) && passes_know(family) && !any(have_bounds(priors))
}

have_bounds <- function(priors) {
  vapply(
    priors,
    function(prior) {
      inherits(prior, "tall_prior") &&
        prior_kinds[[prior$kind]]$form == "bounded"
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

# With so many rows memory that nobody uses is given back before they are passed
# over.
gc_rows <- 2e6

# list(model, made, parts, n_missing, digest): made and parts as make_frame()
# and frame_parts() give them, of the pilot; model: with `remote`. Without one:
# see read_design(), or there are too many columns, or passes find no mode.
remote_glm <- function(source, request, matched, build, control) {
  read <- read_design(source, request, matched, control)
  digest <- read$look$digest
  if (is.null(read$rows) || ncol(read$parts$x) > most_whitened) {
    return(list(digest = digest))
  }
  rows <- read$rows
  pilot <- read$pilot
  parts <- read$parts
  look <- read$look
  rm(read)
  weights <- pilot$stands * (parts$weights %||% 1)
  rows$in_sql <- settle_sql(look$in_sql, rows$design, parts, weights)
  if (is.null(rows$in_sql) && !is.null(look$in_sql)) {
    tell_streamed("the design is no SQL", control$refresh)
  }
  own <- list(
    x = parts$x,
    y = parts$y,
    weights = weights,
    offset = parts$offset
  )
  build_of <- function(known, of = own) {
    colnames(of$x) <- colnames(parts$x)
    build(of, known)
  }
  n_missing <- look$n_missing
  made <- pilot[c("frame", "call")]
  # a database has them elsewhere
  is_large <- isTRUE(look$n_read > gc_rows)
  rm(look, pilot, weights)
  if (is_large) {
    gc() # takes as long as a pass over few rows
  }
  model <- if (find_response(request$family)$is_quadratic) {
    remote_sums(rows, build_of, control)
  } else {
    remote_draws(rows, build_of, control)
  }
  if (is.null(model)) {
    return(list(digest = digest))
  }
  # rows to make the model with again
  model$remote$some <- leading_rows(own, ncol(parts$x))
  list(
    model = model,
    made = made,
    parts = parts,
    n_missing = model$remote$n_missing %||% n_missing,
    digest = digest
  )
}

remote_draws <- function(rows, build_of, control) {
  found <- tryCatch(
    remote_mode(rows, list(build = build_of), control),
    tall_error_improper = function(cnd) NULL,
    tall_error_mode = function(cnd) NULL,
    tall_error_singular = function(cnd) NULL
  )
  if (is.null(found)) {
    return(NULL)
  }
  found$psi <- psi_of_pilot(found$model, found, control)
  as_remote(found$model, rows, build_of, found, found$sums, found$n_missing)
}

remote_sums <- function(rows, build_of, control) {
  sums <- products_of(rows, control)
  model <- build_of(sums$facts)
  model <- as_remote(model, rows, build_of, sums, sums, sums$n_missing)
  model$remote$products <- sums
  model$remote$residuals <- function(beta) {
    residuals_of(rows, beta, control)
  }
  model
}

as_remote <- function(model, rows, build_of, found, sums, n_missing) {
  model$n_data <- found$facts$n_row
  place <- response_facts(model$family)$place
  numbers <- c(place, unlist(found$facts), unlist(model$prior))
  model$fingerprint <- .Call(ffi_hash, numbers)
  count <- new.env(parent = emptyenv())
  count$pass <- 0
  model$remote <- list(
    rows = rows,
    build = build_of,
    found = found,
    n_missing = n_missing,
    count = count
  )
  model
}

leading_rows <- function(of, n) {
  n <- min(n, nrow(of$x))
  list(
    x = of$x[seq_len(n), , drop = FALSE],
    y = of$y[seq_len(n)],
    weights = of$weights[seq_len(n)],
    offset = of$offset[seq_len(n)]
  )
}

# ---- going on ----------------------------------------------------------------

#' @export
remote_plan.tall_glm <- function(fit, n_step) {
  is_prior <- isTRUE(fit$prior_PD)
  if (!has_source(fit) && is.null(fit$remote$products) && !is_prior) {
    abort_tall(
      "stale",
      c(
        "The fit did not keep its source, and new draws need another pass over
         the rows.",
        i = "Fit with {.code keep_data = TRUE} to keep what opens it."
      ),
      argument = "fit"
    )
  }
  model <- revive_remote(fit, fit$source, build_of_fit(fit))
  control <- fit$control
  plan <- if (is_prior) {
    plan_prior(model, control)
  } else if (is.null(model$remote$products)) {
    resume_drawn(model, control, n_step)
  } else {
    resume_sums(model, fit)
  }
  plan$kernel <- fit$kernel
  plan$steps <- fit$steps
  plan$escape <- fit$escape
  plan$mode <- fit$mode
  plan$recipe <- fit$recipe
  plan$init <- matrix(0, model$n_dim, control$chains)
  plan$start_chol <- fit$start_chol
  plan
}

# Of a Gaussian response: sums that were kept, in the coordinates of the chains.
resume_sums <- function(model, fit) {
  ledger <- new_ledger()
  cores <- fit$control$cores
  model <- with_residuals(model, fit)
  plan <- new_plan(model, sampler_of(fit), ledger = ledger)
  if (kernel_is_independent(fit$kernel)) {
    plan$sums <- sums_posterior(model, cores)
  } else {
    parts <- sums_parts(model, cores)
    stand_in <- sums_model(model, parts$sums, parts$fit)
    plan$stand_in <- frame_model(stand_in, fit$stand_in, FALSE)
  }
  plan
}

# Residuals are looked at where sums have lost them to rounding: another pass.
with_residuals <- function(model, fit) {
  model$remote$residuals <- function(beta) {
    check_has_data(fit)
    residuals_of(model$remote$rows, beta, fit$control)
  }
  model
}

build_of_fit <- function(fit) {
  specs <- fit$prior_specs
  function(of, known) {
    colnames(of$x) <- fit$every_variable[seq_len(fit$n_coef)]
    build_glm(
      of$x,
      of$y,
      fit$family,
      specs$prior,
      specs$prior_intercept,
      of$weights,
      of$offset,
      fit$sigma,
      specs$prior_aux,
      centers = TRUE,
      known = known
    )
  }
}

# ---- the model made again ----------------------------------------------------

# The most bytes of rows that are brought to memory unasked.
most_rebuilt <- 1e9

# The model of a fit whose rows were passed over: from sums of a Gaussian
# response, else with all rows, in memory. NULL: the fit kept no source.
rebuild_remote <- function(fit) {
  kept <- fit$remote
  build <- build_of_fit(fit)
  if (!is.null(kept$products)) {
    model <- revive_remote(fit, fit$source, build)
    model <- with_residuals(model, fit)
    parts <- sums_parts(model, fit$control$cores)
    model <- sums_model(model, parts$sums, parts$fit)
  } else if (has_source(fit)) {
    check_rebuilt_size(fit)
    whole <- fit_of_rows(fit)
    parts <- frame_parts(whole$frame, fit$family)
    check_same_rows_as(fit, parts)
    model <- build(parts, kept$found$facts)
  } else {
    return(NULL)
  }
  model$fingerprint <- fit$fingerprint
  model
}

check_rebuilt_size <- function(fit) {
  size <- 8 * fit$n_data * (fit$n_coef + length(fit$columns) + 2)
  if (size <= most_rebuilt) {
    return(invisible())
  }
  shown <- format(structure(size, class = "object_size"), units = "auto")
  abort_tall(
    "unsupported",
    c(
      "Gradients at the draws need the rows of the fit in memory, and they take
       {shown}.",
      i = "Write the design matrix to a file for {.fn tall_store}, make the
           model of it by {.fn model_glm} and give that as {.arg model} or
           {.arg gradient}."
    ),
    argument = "model",
    value = size,
    expected = most_rebuilt
  )
}

# The means of the columns are those that the passes found.
check_same_rows_as <- function(fit, parts) {
  facts <- fit$remote$found$facts
  away <- abs(colMeans(parts$x) - facts$mean)
  if (any(away > 1e-8 * (abs(facts$mean) + facts$sd))) {
    abort_tall(
      "source",
      c(
        "The fit's data have other values than they had.",
        x = "The mean of {.field {colnames(parts$x)[[which.max(away)]]}} is
             another."
      ),
      argument = "data"
    )
  }
}
