# Fits again of rows that are passed over, and what they say of the rows that
# each was made without. Fits do not know of each other: each is begun again
# after every pass, and finds what passes before have found in its log (see
# new_log()). So the passes of all are made together, one for each that one fit
# alone makes, and one more takes the densities of all rows.

# As cross_fits() has it. begin(data): a fit again.
cross_source <- function(fit, ask, bar, begin) {
  rlang::local_options(tallbayes.refresh = ask$refresh)
  scores <- fits <- vector("list", length(ask$names))
  done <- function(k, own) {
    scores[[k]] <<- new_score(own, fit, ask)
    if (ask$saves) {
      fits[[k]] <<- own
    }
    bar$add()
  }
  make_fits(fit, ask, begin, done)
  c(score_rows(fit, scores, ask), list(fits = fits))
}

# begin(data): a fit; done(k, fit): what is made of the one without fold k.
make_fits <- function(fit, ask, begin, done) {
  source <- fit$rows$source
  fold <- source_folds(fit, ask$of)
  n_fold <- length(ask$names)
  if (inherits(source, "tall_source_frame")) {
    # in memory a pass reads nothing, and one part of them at a time is enough
    for (k in seq_len(n_fold)) {
      in_fold(
        ask$names[[k]],
        done(k, begin(source_part(source, fold, k))),
        split_hint
      )
    }
    return(invisible())
  }
  parts <- lapply(seq_len(n_fold), function(k) {
    source_part(source, fold, k, new_log())
  })
  size <- fits_together(fit)
  for (first in seq(1, n_fold, by = size)) {
    at <- seq(first, min(n_fold, first + size - 1))
    advance_fits(parts, at, ask, begin, done)
  }
}

# How many fits have their passes together: each keeps a pilot, and rows that a
# pass drew.
fits_together <- function(fit) {
  width <- 3 * length(fit$columns) + 4 * fit$n_coef
  bytes <- 8 * width * setting("look")$rows
  max(1, floor(setting("folds_bytes") / bytes))
}

# The fits of the parts `at`, pass by pass.
advance_fits <- function(parts, at, ask, begin, done) {
  source <- parts[[1]]$source
  while (length(at) > 0) {
    passes <- lapply(at, function(k) {
      name <- ask$names[[k]]
      in_fold(name, advance_fit(parts[[k]], begin, function(own) {
        done(k, own)
      }), split_hint)
    })
    wants <- !vapply(passes, is.null, TRUE)
    at <- at[wants]
    jobs <- Map(function(k, pass) {
      guard <- function(code) name_warnings(ask$names[[k]], code)
      list(pass = pass, part = parts[[k]], guard = guard)
    }, at, passes[wants])
    if (length(jobs) > 0) {
      found <- pass_together(source, jobs, ask$refresh)
      Map(function(k, one) do.call(parts[[k]]$log$add, one), at, found)
    }
  }
}

# The pass that the fit of a part wants, beyond what its log has; NULL: it is
# done.
advance_fit <- function(part, begin, done) {
  log <- part$log
  log$begin()
  # what was said before
  hush <- function(restart) {
    function(cnd) if (log$is_behind()) invokeRestart(restart)
  }
  own <- tryCatch(
    withCallingHandlers(
      begin(part),
      warning = hush("muffleWarning"),
      message = hush("muffleMessage")
    ),
    tall_pass = function(cnd) structure(cnd$pass, class = "tall_wanted")
  )
  if (inherits(own, "tall_wanted")) {
    return(own)
  }
  log$close()
  done(own)
  NULL
}

# ---- folds and densities -----------------------------------------------------

# The fold of each row of the source, 0 of those that the fit left out. of: of
# its observations.
source_folds <- function(fit, of) {
  number <- source_numbers(fit)
  if (is.null(number)) {
    return(of)
  }
  out <- integer(max(number))
  out[number] <- of
  out
}

# Numbers of observations in the source; NULL: every row is one.
source_numbers <- function(fit) {
  size <- source_size(fit$rows$source)
  request <- fit$rows$request
  beside <- request[c("subset", "weights")]
  is_every <- if (is.na(size)) {
    isTRUE(fit$n_missing == 0) && is.null(fit$trial_source) &&
      all(vapply(beside, is.null, TRUE))
  } else {
    size == fit$n_data
  }
  if (!is_every) {
    gather_rows(fit, pads = FALSE, f = function(block) {
      list(value = block$number[block$keep])
    })$value
  }
}

# score(block): log mean densities of the rows of a block of `fit` under `own`.
new_score <- function(own, fit, ask) {
  chosen <- choose_draws(own, ask$draws, resample = TRUE)
  # some have all their rows in memory
  own$model <- NULL
  own$rows <- list(request = fit$rows$request)
  asked <- ask_rows(own, newdata = NULL, needs = "responses")
  function(block) held_scores(own, block_of_rows(asked, chosen, block), chosen)
}

# One pass: of each row `elpd`, under the fit without its fold, NA where it has
# none; `lpd`, under the fit, where that is asked for; and its response.
score_rows <- function(fit, scores, ask) {
  whole <- if (ask$whole) new_score(fit, fit, ask)
  gather_rows(fit, pads = FALSE, f = function(block) {
    fold <- ask$of[block$rows]
    elpd <- rep(NA_real_, length(fold))
    for (k in sort(unique(fold[fold > 0]))) {
      here <- which(fold == k)
      part <- block_part(block, here)
      elpd[here] <- in_fold(ask$names[[k]], scores[[k]](part), split_hint)
    }
    list(
      elpd = elpd,
      lpd = if (!is.null(whole)) whole(block),
      response = split_own(fit, block$own)$y
    )
  })
}

# Some rows of a block of each_newdata().
block_part <- function(block, at) {
  block$data <- frame_rows_at(block$data, at)
  block$rows <- block$rows[at]
  block$own <- lapply(
    block$own[c("y", "weights", "trials")],
    function(x) if (!is.null(x)) select_rows(x, at)
  )
  block
}
