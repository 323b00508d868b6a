# Fits again, without some of the observations, and what they say of these: what
# cross-validation is made of.
#
#   again <- refitter(fit)
#   again$refit(held)            the fit without observations `held`
#   again$score(fit, at, draws)  log mean densities of observations `at`
#
# A model is made of the fit's blueprint and the rows that stay, which know the
# facts of all rows: priors, columns and levels are those of the fit. Where rows
# are passed over, or effects of groups are sampled, the fit's call is evaluated
# again, with other data.

refitter <- function(fit) {
  if (inherits(fit, "tall_crossed")) {
    crossed_refitter(fit)
  } else if (!is.null(fit$groups)) {
    group_refitter(fit)
  } else {
    row_refitter(fit)
  }
}

check_refitted <- function(fit) {
  check_not_robust(fit, "kfold")
  check_has_draws(fit)
  check_has_all(fit)
  why <- if (!inherits(fit, "tall_regression")) {
    "fits but of regressions"
  } else if (inherits(fit, "tall_nn")) {
    "networks, which would be trained again for each fold"
  } else if (isTRUE(fit$prior_PD)) {
    "draws from the prior, which no row has a part in"
  } else if (is_store(fit$rows$x)) {
    "a design in a file, of which no rows can be left out"
  } else if (any(vapply(table_sources(fit), `[[`, TRUE, "in_database"))) {
    "rows of a database, which computes the sums over all of them"
  }
  if (is.null(why)) {
    return(check_has_data(fit))
  }
  abort_tall(
    "unsupported",
    c(
      paste0("Cross-validation does not refit ", why, "."),
      i = if (has_source(fit)) {
        "{.code update(fit, data = as_source(data, in_database = FALSE))} is of
         rows that R reads, which must have an order."
      } else if (inherits(fit, "tall_nn")) {
        "{.code loo(fit)} needs no other fit, and {.code update(fit, data = )}
         fits to some of the rows."
      }
    ),
    argument = "x"
  )
}

table_sources <- function(fit) {
  shards <- if (has_source(fit)) source_shards(fit$rows$source)
  Filter(function(source) inherits(source, "tall_table"), shards)
}

# ---- rows in memory ----------------------------------------------------------

row_refitter <- function(fit) {
  run <- run_again(fit)
  rows <- whole_rows(fit$rows)
  known <- facts_of_rows(rows, fit)
  rows["facts"] <- list(known)
  fit$blueprint <- settled_blueprint(fit)
  asked <- asked_rows(ask_rows(fit, needs = "responses"))
  list(
    refit = function(held) {
      keep <- setdiff(seq_len(fit$n_data), held)
      fit_part(fit, rows_at(rows, keep), run, keep)
    },
    score = function(fit, at, draws) {
      chosen <- choose_draws(fit, draws, resample = TRUE)
      held_scores(fit, some_rows(asked, at), chosen)
    }
  )
}

# Log densities of these rows, averaged over draws.
held_scores <- function(fit, rows, chosen) {
  out <- numeric(nrow(rows$x))
  each_density(fit, rows, chosen, function(at, value) {
    out[at] <<- log_mean_exp(value)
  })
  out
}

# Of columns, about their first numbers where these are not far from others.
log_mean_exp <- function(x) {
  n <- nrow(x)
  out <- x[1, ] + log(colMeans(exp(x - rep(x[1, ], each = n))))
  bad <- which(!is.finite(out))
  if (length(bad) > 0) {
    x <- x[, bad, drop = FALSE]
    top <- apply(x, 2, max)
    top[top == -Inf] <- 0
    out[bad] <- top + log(colMeans(exp(x - rep(top, each = n))))
  }
  out
}

# As build_model() looks for them in rows that do not know them; NULL of rows
# whose models do not ask.
facts_of_rows <- function(rows, fit) {
  ask <- c("tall_blueprint_glm", "tall_blueprint_groups")
  if (!inherits(fit$blueprint, ask)) {
    return(NULL)
  }
  has_units <- find_response(fit$family)$has_units
  list(
    mean = if (knows_moments(rows$x)) rows$x$mean else design_means(rows$x),
    sd = column_sds(rows$x),
    units = if (has_units) response_units(rows$y, rows$weights, rows$offset)
  )
}

# The run that made the fit; changes: arguments that are others.
run_again <- function(fit, changes = list(refresh = 0)) {
  home <- environment(fit$formula) %||% globalenv()
  names <- c("kernel", "gradient", "subsample", "schedule")
  given <- as.list(fit$call)[intersect(names(fit$call), names)]
  given <- lapply(given, eval, home)
  control <- fit$control[names(formals(check_control))]
  control$keep <- "draws"
  control[names(changes)] <- changes
  do.call(front_run, c(given, control, list(.front = tall_glm)))
}

# A fit to these rows, `keep` among the fit's observations, with all else as the
# fit has it. A Gibbs posterior has the same share of each row.
fit_part <- function(fit, rows, run, keep) {
  if (!is.null(fit$call$lambda)) {
    run$lambda <- fit$lambda * length(keep) / fit$n_data
  }
  run$began <- clock()
  model <- front_model(build_model(fit$blueprint, rows), run)
  new <- sample_model(model, run, in_place = FALSE, whitens = TRUE)
  old <- unclass(fit)[setdiff(names(fit), c(names(new), "seal", "checked"))]
  old$rows <- kept_part(fit, keep)
  old["na_action"] <- list(NULL)
  old$n_missing <- 0
  class <- setdiff(class(fit), c("tall_regression", "tall_fit"))
  front_fit(new, run, class, fit$call, old)
}

# The rows of such a fit.
kept_part <- function(fit, keep) {
  rows <- fit$rows
  if (is.null(rows$frame)) {
    return(rows_to_keep(rows_at(whole_rows(rows), keep), TRUE))
  }
  rows$frame <- frame_part(all_frame(rows), keep)
  rows[c("index", "row")] <- NULL
  rows
}

# ---- priors ------------------------------------------------------------------

# The blueprint whose priors are those of the fit, where the model does not ask
# its rows for their facts.
settled_blueprint <- function(fit) {
  blueprint <- fit$blueprint
  if (inherits(blueprint, "tall_blueprint_classes")) {
    blueprint$priors <- settle_classes(fit)
  } else if (inherits(blueprint, "tall_blueprint_dpar")) {
    blueprint$priors <- settle_dpar(fit)
  }
  blueprint
}

# prior: with the locations and scales that it has in `resolved`, of
# prior_resolve(), for the coordinates `at`, whatever rows it meets.
settle_prior <- function(prior, resolved, at) {
  if (is.null(prior) || !isTRUE(prior$autoscale) || length(at) == 0) {
    return(prior)
  }
  if (prior_kinds[[prior$kind]]$is_of_scales) {
    prior$rate <- 1 / resolved$scale[at]
  } else if (is.null(prior_kinds[[prior$kind]]$mixture)) {
    prior$location <- resolved$location[at]
    prior$scale <- resolved$scale[at]
  } else {
    return(prior)
  }
  prior$autoscale <- FALSE
  prior
}

# Of a fit with one predictor; smooth: columns with scales of their own.
settle_one <- function(priors, resolved, names, smooth = integer()) {
  own <- seq_along(names)
  is_alone <- !is.null(priors$prior_intercept)
  intercept <- if (is_alone) which(names == "(Intercept)")
  others <- setdiff(own, c(intercept, smooth))
  priors$prior <- settle_prior(priors$prior, resolved, others)
  priors["prior_intercept"] <-
    list(settle_prior(priors$prior_intercept, resolved, intercept))
  if (inherits(priors$prior_aux, "tall_prior")) {
    aux <- setdiff(seq_along(resolved$kind), own)
    priors$prior_aux <- settle_prior(priors$prior_aux, resolved, aux[seq_len(
      min(1, length(aux))
    )])
  }
  priors
}

settle_classes <- function(fit) {
  settle_one(fit$blueprint$priors, fit$prior, fit$design_columns)
}

# Each predictor by itself.
settle_dpar <- function(fit) {
  priors <- fit$blueprint$priors
  width <- fit$model$width %||% lengths(fit$dpar$columns)
  places <- dpar_places(width, fit$every_variable[seq_len(fit$n_coef)])
  for (k in seq_along(places)) {
    at <- places[[k]]$at
    resolved <- lapply(fit$prior[c("kind", "location", "scale")], `[`, at)
    one <- settle_one(
      list(
        prior = priors$prior[[k]],
        prior_intercept = priors$prior_intercept[[k]]
      ),
      resolved,
      places[[k]]$names
    )
    priors$prior[k] <- list(one$prior)
    priors$prior_intercept[k] <- list(one$prior_intercept)
  }
  priors
}

# Arguments of the front end of a fit with one predictor, those that rows would
# change.
settled_arguments <- function(fit) {
  priors <- fit$blueprint$priors
  smooth <- which(fit$blueprint$blocks$of > 0)
  names <- fit$every_variable[seq_len(fit$n_coef)]
  settled <- settle_one(priors, fit$prior, names, smooth)
  scale <- fit$rows$facts$units$sd
  if (isTRUE(priors$prior_smooth$autoscale) && !is.null(scale)) {
    settled$prior_smooth <- scale_smooth(priors$prior_smooth, scale)
  }
  is_same <- function(name) identical(settled[[name]], priors[[name]])
  settled[!vapply(names(settled), is_same, TRUE)]
}

# In units of the response.
scale_smooth <- function(prior, unit) {
  if (prior$kind == "exponential") {
    prior$rate <- prior$rate / unit
  } else {
    prior$scale <- prior$scale * unit
  }
  prior$autoscale <- FALSE
  prior
}

# ---- groups that are integrated out ------------------------------------------

# Observations are groups.
group_refitter <- function(fit) {
  fit <- fit_of_rows(fit)
  fit["grouped"] <- NULL
  run <- run_again(fit)
  rows <- whole_rows(fit$rows)
  of <- as.integer(rows$groups$group)
  known <- facts_of_rows(rows, fit)
  request <- fit$rows$request
  part <- function(groups) {
    frame <- frame_part(fit$rows$frame, which(of %in% groups))
    out <- read_frame(request, frame)
    out["facts"] <- list(known)
    out
  }
  list(
    refit = function(held) {
      keep <- setdiff(seq_len(fit$n_data), held)
      rows <- part(keep)
      rows$x$mean <- known$mean
      out <- fit_part(fit, rows, run, keep)
      out$rows$frame <- frame_part(fit$rows$frame, which(of %in% keep))
      out$n_rows <- sum(of %in% keep)
      out$groups <- out$model$groups %||% out$groups
      out
    },
    score = function(fit, at, draws) {
      model <- build_model(fit$blueprint, part(at))
      group_scores(fit, model, draws)[rank(at)]
    }
  )
}

group_scores <- function(fit, model, draws) {
  theta <- fit_unconstrained(fit)
  rows <- choose_rows(fit, draws, resample = TRUE)$rows
  if (!is.null(rows)) {
    theta <- theta[rows, , drop = FALSE]
  }
  out <- numeric(model$n_data)
  each_block(model$n_data, nrow(theta), size = 2^20, function(at) {
    out[at] <<- log_mean_exp(model_log_lik(model, theta, at))
  })
  out
}

# ---- the call again ----------------------------------------------------------

# changes: arguments; NULL takes one out.
call_again <- function(fit, changes) {
  own <- list(
    seed = fit$control$seed,
    cores = fit$control$cores,
    refresh = 0
  )
  changes <- c(changes, own[setdiff(names(own), names(changes))])
  home <- new.env(parent = environment(fit$formula) %||% globalenv())
  do.call(update.tall_regression, c(list(fit), changes), envir = home)
}

# The columns that the fit was made of, where the call finds them. hint: what to
# do where it does not.
data_of_call <- function(fit, hint) {
  missing <- function(names) abort_missing_columns(names, arg = "data")
  data_as_it_was(fit, fit$columns, NULL, missing, hint)
}

# Effects that are sampled: a held-out row is given the effects of its groups,
# those of groups that are left out whole are drawn.
crossed_refitter <- function(fit) {
  check_has_effect_draws(fit)
  data <- data_of_call(
    fit,
    "{.fn kfold} fits to some of them, and looks where the fit was made."
  )
  list(
    refit = function(held) {
      call_again(fit, list(data = data[-held, , drop = FALSE], subset = NULL))
    },
    score = function(fit, at, draws) {
      chosen <- choose_draws(fit, draws, resample = TRUE)
      groups <- group_request(fit, allow_new_levels = TRUE)
      asked <- ask_rows(
        fit,
        data[at, , drop = FALSE],
        groups = groups,
        needs = "responses"
      )
      held_scores(fit, asked_rows(asked, chosen), chosen)
    }
  )
}

# ---- by name ----------------------------------------------------------------

# Errors and warnings of code say of which fit again they are.
in_fold <- function(name, code, hint = NULL) {
  tryCatch(
    name_warnings(name, code),
    error = function(e) {
      kind <- sub("^tall_error_", "", class(e)[[1]])
      is_own <- inherits(e, "tall_error")
      abort_tall(
        if (is_own) kind else "data",
        c(
          paste0("The fit without ", name, " could not be made."),
          i = hint
        ),
        parent = e
      )
    }
  )
}

name_warnings <- function(name, code) {
  withCallingHandlers(code, tall_warning = function(w) {
    kind <- sub("^tall_warning_", "", class(w)[[1]])
    # held-out rows are out of the range of others
    if (kind != "extrapolation") {
      said <- escape_cli(conditionMessage(w))
      warn_tall(kind, c(paste0("A warning of ", name, "."), x = said))
    }
    invokeRestart("muffleWarning")
  })
}

split_hint <- "Where a level has rows in one fold alone, {.code folds =
               \"stratified\"} by it spreads them."
