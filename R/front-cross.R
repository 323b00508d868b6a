# What fits without some of the observations say of these: what kfold() and
# reloo() are made of.
#
#   cross <- cross_fits(fit, cores)
#   cross(ask, bar)
#
# is list(elpd, lpd, response, fits): of each observation the log mean density
# under the fit without its fold, NA where it has none, and, if asked for, under
# the fit; the observations' responses, NULL where they are at hand; the fits
# again, if asked for. The bar is told each fit that is made.
#
# of: of each observation the number of its fold, 0: it is never left out;
# names: of the folds, as errors say them; draws: how many of each fit, NULL:
# all; whole: under the fit, too? saves: keep the fits?
new_crossing <- function(of, names, draws, whole, saves, refresh) {
  list(
    of = of,
    names = names,
    draws = draws,
    whole = whole,
    saves = saves,
    refresh = refresh
  )
}

cross_fits <- function(fit, cores) {
  check_refitted(fit)
  fit$control$cores <- cores
  # of groups whose effects are integrated out some are left out in memory
  if (has_source(fit) && is.null(fit$groups)) {
    priors <- settled_arguments(fit)
    begin <- function(data) call_again(fit, c(list(data = data), priors))
    return(function(ask, bar) cross_source(fit, ask, bar, begin))
  }
  again <- refitter(fit)
  function(ask, bar) cross_one_by_one(fit, again, ask, bar)
}

cross_one_by_one <- function(fit, again, ask, bar) {
  fits <- vector("list", length(ask$names))
  elpd <- rep(NA_real_, fit$n_data)
  for (k in seq_along(ask$names)) {
    held <- which(ask$of == k)
    name <- ask$names[[k]]
    own <- in_fold(name, again$refit(held), split_hint)
    elpd[held] <-
      in_fold(name, again$score(own, held, ask$draws), split_hint)
    if (ask$saves) {
      fits[[k]] <- own
    }
    bar$add()
  }
  lpd <- if (ask$whole) again$score(fit, seq_len(fit$n_data), ask$draws)
  list(elpd = elpd, lpd = lpd, fits = fits)
}
