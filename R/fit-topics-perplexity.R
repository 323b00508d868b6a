# Perplexity of topic models: of fits, and of chains while they run.

#' Perplexity of held-out documents
#'
#' How well topics predict words of documents they have not seen: the perplexity
#' of one half of each document given the other half (document completion).
#'
#' @param fit (`tall_topics`) A fit of [tall_topics()].
#' @param newdata (as `dtm` of [tall_topics()]) Held-out documents. Those with
#'   fewer than two words are left out.
#' @param draws (whole number) Average over that many draws of the topics,
#'   evenly spaced.
#' @param seed (whole number) Seed of the halves and of the Gibbs samplers.
#'
#' @details
#' The tokens of a document are split at random. From the first half (rounded
#' up) come the topic proportions, \eqn{\hat\eta_d}{eta_d}, by Gibbs sampling
#' with the topics of one draw; the second half is scored:
#' \deqn{\exp\left(-\frac1{|T|} \sum_{(d,w) \in T} \log \frac1S \sum_s \sum_k
#' \hat\eta^{(s)}_{dk} \phi^{(s)}_{kw}\right)}{exp(-mean log mean_s sum_k eta_dk
#' phi_kw)} over the tokens \eqn{T} of second halves and the draws \eqn{s}. Less
#' is better; a model that knows nothing has the size of the vocabulary.
#'
#' @return A number.
#' @section Conditions:
#' `tall_error_input` for documents that cannot be used;
#' `tall_error_unsupported` for a fit without draws.
#' @references
#' Wallach, Murray, Salakhutdinov & Mimno (2009). Evaluation methods for topic
#' models. *ICML*.
#' @seealso [monitor_perplexity()] during a run.
#' @examples
#' dtm <- matrix(rpois(1000, 1), 100, dimnames = list(NULL, letters[1:10]))
#' fit <- tall_topics(dtm, k = 2, train_iter = 200, iter = 200, seed = 1)
#' perplexity(fit, dtm)
#'
#' # during a run
#' watched <- list(every = 100, p = monitor_perplexity(dtm[1:20, ]))
#' fit <- tall_topics(dtm, k = 2, iter = 200, monitor = watched, seed = 1)
#' tail(fit$monitor, 2)
#' @export
perplexity <- function(fit, newdata, draws = 20, seed = 1) {
  check_spec(fit, "tall_topics", "tall_topics()")
  check_given(newdata)
  check_count(seed, min = 0)
  theta <- topics_draws(fit, check_draws_most(fit, draws))
  halves <- document_halves(newdata, fit, seed, "newdata")
  sum <- 0
  for (draw in seq_len(nrow(theta))) {
    sum <- sum + completion_probabilities(halves, theta[draw, ], seed)
  }
  completion_perplexity(halves, sum / nrow(theta))
}

# list(model, doc, word, count): a model of first halves, and the cells of the
# second.
document_halves <- function(newdata, model, seed, arg) {
  documents <- known_documents(newdata, model, FALSE, arg)
  n_doc <- length(documents$start) - 1
  doc <- rep(seq_len(n_doc), diff(documents$start))
  token <- rep(seq_along(doc), documents$count)
  lot <- with_seed(seed, stats::runif(length(token)))
  token <- token[order(doc[token], lot)]
  size <- tabulate(doc[token], n_doc)
  rank <- sequence(size)
  is_first <- rank <= ceiling(size / 2)[doc[token]]
  first <- tabulate(token[is_first], length(doc))
  second <- tabulate(token[!is_first], length(doc))
  usable <- which(tabulate(doc[second > 0], n_doc) > 0)
  if (length(usable) == 0) {
    abort_input(
      "{.arg {arg}} must have at least one document of two or more words.",
      argument = arg
    )
  }
  keep <- doc %in% usable
  given <- data.frame(
    doc = match(doc[keep], usable),
    word = documents$word[keep] + 1,
    count = first[keep]
  )
  scored <- second > 0
  list(
    model = folding_model(model, as_documents(given, documents$vocabulary)),
    doc = match(doc[scored], usable),
    word = documents$word[scored] + 1,
    count = second[scored]
  )
}

# sum_k eta_dk phi_kw of every cell of the second halves
completion_probabilities <- function(halves, theta, seed) {
  phi <- word_probabilities(theta, halves$model$n_topic)
  eta <- topic_proportions(halves$model, theta, seed)
  colSums(eta[, halves$doc] * phi[, halves$word])
}

completion_perplexity <- function(halves, probability) {
  exp(-sum(halves$count * log(probability)) / sum(halves$count))
}

#' @rdname perplexity
#' @details
#' `monitor_perplexity()` watches it during a run: for the draw at an iteration,
#' and with probabilities averaged over the draws since the end of warmup. See
#' [monitors].
#' @export
monitor_perplexity <- function(newdata, seed = 1) {
  check_given(newdata)
  structure(
    list(
      name = "perplexity",
      newdata = newdata,
      seed = check_count(seed, min = 0),
      cache = new.env(parent = emptyenv())
    ),
    class = c("tall_monitor_perplexity", "tall_monitor")
  )
}

#' @export
check_held_out.tall_monitor_perplexity <- function(monitor, model, arg) {
  if (model$name != "lda") {
    abort_tall(
      "unsupported",
      c(
        "{.fn monitor_perplexity} is for topic models, not for
         {.code {model$label}()}.",
        i = "Use {.fn monitor_log_lik}, or a function of the parameters."
      ),
      argument = arg
    )
  }
  monitor$cache$halves <-
    document_halves(monitor$newdata, model, monitor$seed, arg)
}

#' @export
evaluate_monitor.tall_monitor_perplexity <- function(
  monitor,
  model,
  parameter,
  theta,
  state
) {
  halves <- monitor$cache$halves
  p <- completion_probabilities(halves, theta, monitor$seed)
  state <- add_to_mean(state, p)
  list(
    draw = completion_perplexity(halves, p),
    ergodic = completion_perplexity(halves, state$mean),
    state = state
  )
}
