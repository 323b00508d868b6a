# Fits of tall_topics(): words of topics, topics of documents, pictures,
# printing.

# draws x (n_topic x n_word), |theta|
topics_draws <- function(fit, draws = NULL) {
  check_has_draws(fit)
  all <- draws_matrix(fit)
  if (!is.null(draws)) {
    rows <- floor((seq_len(draws) - 0.5) * nrow(all) / draws) + 1
    all <- all[rows, , drop = FALSE]
  }
  unclass(all)
}

# K x W
word_probabilities <- function(theta, n_topic) {
  theta <- matrix(theta, n_topic)
  theta / rowSums(theta)
}

#' Words of topics
#'
#' The most probable words of every topic, with their posterior means and
#' standard deviations.
#'
#' @param fit (`tall_topics`) A fit of [tall_topics()].
#' @param n (whole number) How many words of each topic, at most.
#'
#' @return `top_terms()`: a data frame with `n` rows for each topic and the
#'   columns `topic`, `term`, `mean`, `sd` (of the word's probability in the
#'   topic). `topic_terms()`: a list of two matrices, `mean` and `sd`, topics x
#'   words.
#' @section Conditions:
#' `tall_error_input` if `fit` is not from [tall_topics()];
#' `tall_error_unsupported` for a fit without draws.
#' @examples
#' dtm <- matrix(rpois(1000, 1), 100, dimnames = list(NULL, letters[1:10]))
#' fit <- tall_topics(dtm, k = 2, train_iter = 200, iter = 200, seed = 1)
#' top_terms(fit, 3)
#' round(topic_terms(fit)$mean, 2)
#' @export
top_terms <- function(fit, n = 10) {
  check_spec(fit, "tall_topics", "tall_topics()")
  n <- min(check_count(n), length(fit$vocabulary))
  moments <- topic_terms(fit)
  rows <- lapply(seq_len(fit$n_topic), function(k) {
    at <- order(moments$mean[k, ], decreasing = TRUE)[seq_len(n)]
    data.frame(
      topic = k,
      term = fit$vocabulary[at],
      mean = unname(moments$mean[k, at]),
      sd = unname(moments$sd[k, at])
    )
  })
  do.call(rbind, rows)
}

#' @rdname top_terms
#' @export
topic_terms <- function(fit) {
  check_spec(fit, "tall_topics", "tall_topics()")
  theta <- topics_draws(fit)
  n <- nrow(theta)
  sum <- square <- 0
  for (draw in seq_len(n)) {
    phi <- word_probabilities(theta[draw, ], fit$n_topic)
    sum <- sum + phi
    square <- square + phi^2
  }
  mean <- sum / n
  variance <- pmax(0, square / n - mean^2) * n / max(1, n - 1)
  names <- list(paste0("topic", seq_len(fit$n_topic)), fit$vocabulary)
  dim(variance) <- dim(mean)
  dimnames(mean) <- dimnames(variance) <- names
  list(mean = mean, sd = sqrt(variance))
}

#' Topics of documents
#'
#' @param object (`tall_topics`) The fit, from [tall_topics()].
#' @param newdata (as `dtm` of [tall_topics()]) Documents. Columns with names
#'   are matched by them; words that the model does not know are left out.
#' @param draws (whole number) Average over that many draws of the topics,
#'   evenly spaced.
#' @param seed (whole number) Seed of the Gibbs samplers.
#' @param ... Unused.
#'
#' @return A matrix with a row for each document and a column for each topic:
#'   the posterior means of the document's topic proportions, which sum to 1. A
#'   document without (known) words has the prior's, all equal.
#' @section Conditions:
#' `tall_error_input` for documents that cannot be used;
#' `tall_error_unsupported` for a fit without draws.
#' @examples
#' dtm <- matrix(rpois(1000, 1), 100, dimnames = list(NULL, letters[1:10]))
#' fit <- tall_topics(dtm, k = 2, train_iter = 200, iter = 200, seed = 1)
#' predict(fit, dtm[1:3, ])
#' @export
predict.tall_topics <- function(object, newdata, draws = 10, seed = 1, ...) {
  check_no_dots(...)
  check_given(newdata)
  check_count(seed, min = 0)
  theta <- topics_draws(object, check_draws_most(object, draws))
  documents <- known_documents(newdata, object, FALSE, "newdata")
  model <- folding_model(object, documents)
  sum <- 0
  for (draw in seq_len(nrow(theta))) {
    sum <- sum + topic_proportions(model, theta[draw, ], seed)
  }
  out <- matrix(1 / object$n_topic, documents$n_doc, object$n_topic)
  out[documents$kept, ] <- t(sum / nrow(theta))
  names <- rep("", documents$n_doc)
  names[documents$kept] <- documents$names
  dimnames(out) <- list(names, paste0("topic", seq_len(object$n_topic)))
  out
}

# At most those there are.
check_draws_most <- function(fit, draws) {
  check_has_draws(fit)
  draws <- check_count(draws, arg = "draws")
  min(draws, posterior::ndraws(fit$draws))
}

# A model of other documents with the words, topics and priors of a model or
# fit.
folding_model <- function(model, documents) {
  priors <- model$priors %||% c(alpha = model$alpha, beta = model$beta)
  build_lda(
    documents,
    model$n_topic,
    priors[["alpha"]],
    priors[["beta"]],
    gibbs_sweeps = 1
  )
}

# K x documents
topic_proportions <- function(model, theta, seed) {
  sweeps <- topics_settings$fold_sweeps
  check_free(
    8 * model$n_topic * model$n_data,
    "The matrix of {model$n_topic} topics of
     {count_noun(model$n_data, 'document')}",
    "Fewer documents at a time, or fewer topics, take less."
  )
  out <- .Call(
    ffi_topics_proportions,
    model$pointer,
    as.double(theta),
    ceiling(sweeps / 2),
    sweeps,
    as.double(seed)
  )
  if (is.integer(out)) {
    pass_interrupt(out)
    abort_status(out)
  }
  out
}

# ---- pictures ----------------------------------------------------------------

#' Plot topics
#'
#' @param x (`tall_topics`) The fit, from [tall_topics()].
#' @param type (string) `"terms"`: the most probable words of topics, with
#'   posterior means and intervals of their probabilities. Or any type of
#'   [plot.tall_fit()].
#' @param topics (whole numbers or `NULL`) Which topics; `NULL`: the first 12.
#' @param n (whole number) How many words of each topic, at most.
#' @param prob (number between 0 and 1) Probability of the intervals.
#' @param ... Passed on to [plot.tall_fit()].
#'
#' @return A ggplot object.
#' @section Conditions:
#' `tall_error_input` for topics that the fit does not have;
#' `tall_error_unsupported` for a fit without draws.
#' @examplesIf requireNamespace("ggplot2", quietly = TRUE)
#' dtm <- matrix(rpois(1000, 1), 100, dimnames = list(NULL, letters[1:10]))
#' fit <- tall_topics(dtm, k = 2, train_iter = 200, iter = 200, seed = 1)
#' plot(fit, n = 3)
#' @export
plot.tall_topics <- function(
  x,
  type = c("terms", "trace", "dens", "intervals", "noise", "size", "monitor"),
  topics = NULL,
  n = 6,
  prob = 0.9,
  ...
) {
  type <- check_plot_type(type, c("terms", own_plots))
  if (type != "terms") {
    return(NextMethod())
  }
  check_no_dots(...)
  prob <- check_prob(prob)
  if (is.null(topics)) {
    topics <- seq_len(min(12, x$n_topic))
    if (x$n_topic > 12) {
      cli::cli_inform(
        "Showing the first 12 of {x$n_topic} topics; choose with
         {.arg topics}."
      )
    }
  }
  ok <- is.numeric(topics) && length(topics) > 0 &&
    all(topics %in% seq_len(x$n_topic))
  if (!ok) {
    expected <- paste("whole numbers from 1 to", x$n_topic)
    abort_expected(topics, expected, arg = "topics")
  }
  rlang::check_installed("ggplot2", "to plot a fit")
  top <- top_terms(x, n)
  plot_terms(term_intervals(x, top[top$topic %in% topics, ], prob), prob)
}

# top, with quantiles of the words' probabilities
term_intervals <- function(fit, top, prob) {
  theta <- topics_draws(fit)
  word <- match(top$term, fit$vocabulary)
  for (topic in unique(top$topic)) {
    at <- seq(topic, by = fit$n_topic, length.out = length(fit$vocabulary))
    rows <- which(top$topic == topic)
    p <- theta[, at[word[rows]], drop = FALSE] /
      rowSums(theta[, at, drop = FALSE])
    side <- (1 - prob) / 2
    range <- apply(p, 2, stats::quantile, c(side, 1 - side), names = FALSE)
    top$low[rows] <- range[1, ]
    top$high[rows] <- range[2, ]
  }
  top
}

plot_terms <- function(top, prob) {
  # a word may be in several topics, at another place in each
  top$place <- factor(seq_len(nrow(top)), rev(seq_len(nrow(top))))
  panel <- paste("topic", top$topic)
  top$panel <- factor(panel, unique(panel))
  ggplot2::ggplot(
    top,
    ggplot2::aes(
      .data[["mean"]],
      .data[["place"]],
      xmin = .data[["low"]],
      xmax = .data[["high"]]
    )
  ) +
    ggplot2::geom_pointrange(colour = "steelblue", size = 0.25) +
    ggplot2::facet_wrap(ggplot2::vars(.data[["panel"]]), scales = "free_y") +
    ggplot2::scale_y_discrete(labels = function(at) top$term[as.integer(at)]) +
    ggplot2::expand_limits(x = 0) +
    ggplot2::labs(
      x = paste0(
        "probability of the word in the topic (",
        format_number(100 * prob), " % intervals)"
      ),
      y = NULL
    )
}

# ---- printing ----------------------------------------------------------------

#' @export
print.tall_topics <- function(x, digits = 3, ...) {
  check_no_dots(...)
  print_topics_header(x)
  if (is.null(x$draws)) {
    cat("No draws were kept: topics cannot be shown.\n")
  } else {
    print_topics_table(summary(x, n = 7)$topics, digits)
  }
  print_perplexity(x)
  print_footer(x, brief = TRUE)
  invisible(x)
}

#' Summarise topics
#'
#' @param object (`tall_topics`) The fit, from [tall_topics()].
#' @param n (whole number) How many words of each topic, at most.
#' @param x (`tall_topics_summary`) A summary.
#' @param digits (whole number) Digits to print.
#' @param ... Unused.
#'
#' @details
#' How much a topic is used in documents is what
#' [predict()][predict.tall_topics] says. `rhat` and `ess` are the worst
#' of the probabilities of the topic's `n` first words.
#'
#' @return A list of class `tall_topics_summary` with `topics`, a data frame of
#'   `topic`, `terms`, `ess`, `rhat`.
#' @examples
#' dtm <- matrix(rpois(1000, 1), 100, dimnames = list(NULL, letters[1:10]))
#' fit <- tall_topics(dtm, k = 2, train_iter = 200, iter = 200, seed = 1)
#' summary(fit, n = 3)
#' @export
summary.tall_topics <- function(object, n = 7, ...) {
  check_no_dots(...)
  check_has_draws(object)
  n <- min(check_count(n), length(object$vocabulary))
  top <- top_terms(object, n)
  worst <- topic_diagnostics(object, top)
  terms <- tapply(top$term, top$topic, paste, collapse = " ")
  structure(
    list(
      topics = data.frame(
        topic = seq_len(object$n_topic),
        terms = as.character(terms),
        ess = worst$ess,
        rhat = worst$rhat
      ),
      fit = object[setdiff(
        names(object),
        c("draws", "unconstrained", "gradients", "saved", "model")
      )]
    ),
    class = "tall_topics_summary"
  )
}

# The worst R-hat and effective sample size of the probabilities of top terms.
topic_diagnostics <- function(fit, top) {
  theta <- unclass(fit$draws)
  shape <- dim(theta)[1:2]
  k <- fit$n_topic
  found <- vapply(seq_len(k), function(topic) {
    at <- seq(topic, by = k, length.out = length(fit$vocabulary))
    total <- rowSums(theta[, , at, drop = FALSE], dims = 2)
    words <- at[match(top$term[top$topic == topic], fit$vocabulary)]
    values <- vapply(words, function(word) {
      p <- matrix(theta[, , word], shape[[1]]) / total
      c(posterior::ess_bulk(p), posterior::rhat(p))
    }, numeric(2))
    c(min(values[1, ]), max(values[2, ]))
  }, numeric(2))
  list(ess = found[1, ], rhat = found[2, ])
}

#' @rdname summary.tall_topics
#' @export
print.tall_topics_summary <- function(x, digits = 3, ...) {
  check_no_dots(...)
  print_topics_header(x$fit)
  print_topics_table(x$topics, digits)
  print_perplexity(x$fit)
  cat(
    "ess, rhat: the worst of the words shown. Topics have no order, and\n",
    "other modes may have other topics: neither number can see that.\n",
    sep = ""
  )
  print_footer(x$fit, brief = TRUE)
  invisible(x)
}

print_topics_header <- function(fit) {
  cat(
    "Topics:  ", fit$n_topic,
    ", of ", count_noun(length(fit$vocabulary), "word"),
    "; ", count_noun(fit$n_token, "token"), " in ",
    count_noun(fit$n_data, "document"), "\n",
    sep = ""
  )
  cat(
    "Priors:  alpha ", format_number(fit$priors[["alpha"]]),
    " (topics of a document), beta ", format_number(fit$priors[["beta"]]),
    " (words of a topic)\n",
    sep = ""
  )
  n_draws <- sum(fit$chains$draws)
  cat("Draws:   ", format_count(n_draws), " from ",
    count_noun(nrow(fit$chains), "chain"), "\n",
    sep = ""
  )
  cat("Sampler: ", sampler_text(fit), "\n\n", sep = "")
}

print_topics_table <- function(topics, digits) {
  room <- max(20, getOption("width") - 24)
  topics$terms <- formatC(substr(topics$terms, 1, room), flag = "-", width = -1)
  topics$ess <- round(topics$ess)
  topics$rhat <- round(topics$rhat, digits)
  names(topics)[[2]] <- "most probable words"
  print(topics, row.names = FALSE, right = FALSE)
}

print_perplexity <- function(fit) {
  table <- fit$monitor
  table <- table[table$statistic == "ergodic" & table$monitor == "perplexity", ]
  if (!is.null(table) && nrow(table) > 0) {
    value <- mean(table$value[table$iteration == max(table$iteration)])
    cat(
      "\nPerplexity of held-out halves of documents: ",
      format(value, digits = 4),
      " (knowing nothing: ", format_count(length(fit$vocabulary)), ")\n",
      sep = ""
    )
  }
}
