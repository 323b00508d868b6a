# One pass over rows with two outcomes: how probable events were, and how many
# came. Rows are counted in bins of the predicted log odds, so that nothing is
# as long as the data.
#
# A pass is a list:
#   bin      of each bin n, events, p and logit: the weight of its rows, that of
#            their events, and sums of predicted probabilities and log odds
#   exact    the same of each row, NULL: there were too many
#   of_draw  bins x draws: sums of the probabilities of each draw
#   brier, auc   list(mean, draws): of the mean predictions, and of each draw's
#   auc_error    what bins may have the former off by
#   n_row, n_missing

# Bins of log odds between -+ the end.
logit_end <- 18
logit_bins <- 3600

# More rows than these are known by bins alone.
exact_rows <- 1e5

# Draws of which each is looked at by itself.
most_looked <- 200

probability_pass <- function(asked, n_draw) {
  fit <- asked$fit
  chosen <- choose_draws(fit, n_draw, resample = TRUE)
  n_draw <- nrow(chosen$theta)
  looked <- unique(round(seq(1, n_draw, length.out = min(n_draw, most_looked))))
  sums <- new_probability_sums(length(looked))
  over_rows(asked, chosen, pads = FALSE, f = function(rows) {
    each_block(nrow(rows$x), n_draw, size = 2^20, f = function(at) {
      some <- some_rows(rows, at)
      sums$add(some, predictor(fit, some, chosen, "response"), looked)
    })
    NULL
  })
  sums$found()
}

new_probability_sums <- function(n_look) {
  bin <- matrix(0, logit_bins, 4)
  colnames(bin) <- c("n", "events", "p", "logit")
  of_draw <- matrix(0, logit_bins, n_look)
  ranked <- list(n = 0 * of_draw, events = 0 * of_draw)
  square <- 0
  squares <- numeric(n_look)
  n_seen <- n_missing <- 0
  exact <- list()
  keeps <- TRUE
  list(
    add = function(rows, p, looked) {
      n <- rows$trials * rows$weight
      events <- rows$count * rows$weight
      mean <- colMeans(p)
      ok <- which(!is.na(mean) & !is.na(events) & n > 0)
      n_seen <<- n_seen + length(mean)
      n_missing <<- n_missing + length(mean) - length(ok)
      if (length(ok) == 0) {
        return(NULL)
      }
      n <- n[ok]
      events <- events[ok]
      mean <- mean[ok]
      p <- p[looked, ok, drop = FALSE]
      logit <- clipped_logit(mean)
      code <- logit_bin(logit)
      own <- cbind(n = n, events = events, p = n * mean, logit = n * logit)
      bin <<- add_at(bin, code, own)
      of_draw <<- add_at(of_draw, code, n * t(p))
      square <<- square + sum(brier_sums(mean, n, events))
      each <- nrow(p)
      terms <- brier_sums(p, rep(n, each = each), rep(events, each = each))
      squares <<- squares + rowSums(terms)
      ranked <<- add_ranked(ranked, p, n, events)
      if (keeps) {
        exact[[length(exact) + 1]] <<- cbind(own, mean = mean)
        if (n_seen > exact_rows) {
          keeps <<- FALSE
          exact <<- list()
        }
      }
    },
    found = function() {
      total <- sum(bin[, "n"])
      rank <- of_ranks(bin[, "events"], bin[, "n"])
      exact <- if (keeps) do.call(rbind, exact)
      by_draw <- vapply(seq_len(n_look), FUN.VALUE = 0, function(k) {
        of_ranks(ranked$events[, k], ranked$n[, k])$auc
      })
      list(
        bin = as.data.frame(bin),
        exact = if (!is.null(exact)) by_score(exact),
        of_draw = of_draw,
        brier = list(mean = square / total, draws = squares / total),
        auc = list(mean = rank$auc, draws = by_draw),
        auc_error = rank$error,
        n_row = n_seen - n_missing,
        n_missing = n_missing
      )
    }
  )
}

clipped_logit <- function(p) {
  pmax(pmin(stats::qlogis(p), logit_end), -logit_end)
}

logit_bin <- function(logit) {
  width <- 2 * logit_end / logit_bins
  pmax(ceiling((logit + logit_end) / width), 1)
}

# Rows of `more` added to the rows `at` of x, of which some may be the same.
add_at <- function(x, at, more) {
  sums <- rowsum(more, at)
  where <- as.integer(rownames(sums))
  x[where, ] <- x[where, ] + sums
  x
}

# Squares of 0 or 1 less the probability, of each trial.
brier_sums <- function(p, n, events) {
  events * (1 - p)^2 + (n - events) * p^2
}

# Weights by bins of each draw's own predictions. p: draws x rows.
add_ranked <- function(ranked, p, n, events) {
  n_draw <- nrow(p)
  code <- logit_bin(clipped_logit(p)) + logit_bins * (seq_len(n_draw) - 1)
  size <- logit_bins * n_draw
  is_plain <- all(n == 1)
  came <- rep(events > 0, each = n_draw)
  if (is_plain) {
    ranked$n <- ranked$n + tabulate(code, size)
    ranked$events <- ranked$events + tabulate(code[came], size)
    return(ranked)
  }
  both <- cbind(rep(n, each = n_draw), rep(events, each = n_draw))
  sums <- rowsum(both, as.vector(code))
  where <- as.integer(rownames(sums))
  ranked$n[where] <- ranked$n[where] + sums[, 1]
  ranked$events[where] <- ranked$events[where] + sums[, 2]
  ranked
}

# Of weights in the order of predictions: list(auc, error), the probability that
# an event was predicted more probable than a row without one, ties counting a
# half, and what ties may have it off by if they are none.
of_ranks <- function(events, n) {
  others <- n - events
  pairs <- sum(events) * sum(others)
  below <- cumsum(others) - others
  list(
    auc = sum(events * (below + others / 2)) / pairs,
    error = sum(events * others) / 2 / pairs
  )
}

# Rows with the same prediction are one; in their order.
by_score <- function(exact) {
  score <- exact[, "mean"]
  known <- sort(unique(score))
  sums <- rowsum(exact[, c("n", "events", "p", "logit")], match(score, known))
  out <- as.data.frame(sums[order(as.integer(rownames(sums))), , drop = FALSE])
  cbind(out, score = known)
}
