# tall_topics(): the front end for topics of documents. Looks for a mode,
# samples around the mean of a first run.

#' Topic models for large collections of documents
#'
#' Finds the topics of documents and how sure one can be of them.
#'
#' @inheritParams model_lda
#' @param dtm (sparse matrix, data frame or [source][tall_source]) The
#'   documents, as in [model_lda()]; or a source whose rows have the columns
#'   `doc`, `word` and `count`: paths of CSV or Parquet files, a
#'   [tall_stream()], a lazy table, or a list of such. See *Documents of a
#'   source*.
#' @param k (whole number, at least 2) How many topics.
#' @param newdata (as `dtm`, or `NULL`) Held-out documents: their
#'   [perplexity][perplexity()] is watched during the run.
#' @param train_iter (whole number or `NULL`) Iterations of ADAM that look for a
#'   mode. `NULL`: 10 passes over the documents, and at least 2,000. 0: chains
#'   start, and control variates refer to, topics drawn at random.
#' @param ... The run: arguments of [sg_sample()] but `model`, `init` and
#'   `variables`, with the same defaults except for these: `iter = 10000`,
#'   `thin` keeps 100 draws, `chains = 1`; `kernel`, `gradient` and `subsample`,
#'   in the coordinates \eqn{\log\theta}{log theta}: [kernel_sgbd()],
#'   [gradient_cv()] and 50 documents; see Details. Others are refused.
#'
#' @details
#' The model is that of [model_lda()]. Topics have no order: another search
#' numbers them otherwise. All chains of a fit start near one mode, so topic 3
#' is the same topic in all of them as long as none crosses to another mode,
#' which in practice takes longer than any run; that chains agree says nothing
#' about other modes. Do not compare topic numbers of two fits: match them by
#' their words.
#'
#' **The default run.** Chains move in \eqn{x = \log\theta}{x = log theta} by
#' [kernel_sgbd()], the corrected variant with adapting steps. Were the topics
#' of all words known, \eqn{\theta_{kw}}{theta_kw} would have a Gamma
#' distribution of shape \eqn{s_{kw} = \theta_{kw} (1 + n_k /
#' \theta_{k\cdot})}{s_kw = theta_kw
#' (1 + n_k / theta_k.)}, for \eqn{n_k}{n_k} words of topic \eqn{k}; steps begin
#' at \eqn{0.3 / \sqrt{s_{kw}}}{0.3 / sqrt(s_kw)}, and chains at draws from
#' these distributions. ADAM finds a mode, a first run from there the mean of
#' \eqn{\theta}{theta}, and control variates refer to this mean. The first run
#' is as long as the search; both count as preparation.
#'
#' Barker dynamics, because a single document that says one rare word very often
#' gives gradients by which long Langevin steps can be thrown out in
#' \eqn{\log\theta}{log theta}.
#'
#' **Convergence.** Perplexity settles long before single probabilities do: look
#' at R-hat, which is printed, and take a larger `iter` where it matters. On 20
#' Newsgroups (11,256 documents, 20 topics) the default leaves R-hat of the top
#' words below 1.15 for most topics and at 2 for some; with ten times as many
#' iterations it is below 1.1 for nearly all.
#'
#' @section Documents of a source: One pass reads the rows block by block and
#' numbers documents and words as it meets them, in any order: a document's rows
#' need not follow one another. No data frame of all rows is made; what the pass
#' leaves in memory are 16 bytes a row, some 75 while documents are put together
#' from them, and 8 in the model, which has its documents in memory: there is no
#' `store`. A hundred million rows take 8 GB for a while, and 0.8 GB in the
#' model. A fit keeps no documents. Draws are to the bit those that the same
#' rows in a data frame have. A table of a database needs no order, as documents
#' and words are sorted by their names.
#'
#' @return A [`tall_fit`][tall_fit] of class `c("tall_topics", "tall_fit")`. See
#'   [top_terms()], [predict()][predict.tall_topics] for the topics of
#'   documents, [perplexity()], and `fit$monitor`.
#' @section Conditions:
#' Those of [model_lda()] and [sg_sample()]; `tall_error_source` for a source
#' that fails or has no rows, `tall_error_memory` where its rows do not fit in
#' memory.
#' @inherit model_lda references
#' @examples
#' # two topics of ten words each, a hundred documents
#' topic <- rbind(rep(c(0.18, 0.02), each = 5), rep(c(0.02, 0.18), each = 5))
#' share <- runif(100)
#' dtm <- t(sapply(share, function(s) {
#'   rmultinom(1, 40, s * topic[1, ] + (1 - s) * topic[2, ])
#' }))
#' colnames(dtm) <- letters[1:10]
#' fit <- tall_topics(dtm, k = 2, train_iter = 500, iter = 400, seed = 1)
#' fit
#' head(predict(fit, dtm))
#' @export
tall_topics <- function(
  dtm,
  k,
  alpha = 0.1,
  beta = 1,
  gibbs_sweeps = 2,
  newdata = NULL,
  vocabulary = NULL,
  train_iter = NULL,
  ...
) {
  run <- front_run(
    ...,
    .front = tall_topics,
    .defaults = topics_run_defaults,
    .without = c(
      variables = "Topics are looked at as wholes.",
      init = "Chains start where the search ends.",
      store = "Documents stay in memory: 8 bytes for each word that one has."
    )
  )
  check_given(dtm)
  check_given(k)
  train_iter <- check_count(train_iter, min = 0, allow_null = TRUE)
  documents <- documents_of(dtm, vocabulary, run$control$refresh)
  model <- build_lda(documents, k, alpha, beta, gibbs_sweeps, arg_topics = "k")
  if (!is.null(newdata)) {
    # before the search; what is left out is said when the run begins
    suppressMessages(document_halves(newdata, model, 1, "newdata"))
    run$monitor <- c(
      run$monitor,
      list(perplexity = monitor_perplexity(newdata))
    )
    every <- max(1, floor(run$control$iter / 40))
    run$monitor$every <- run$monitor$every %||% every
  }
  model <- front_model(model, run)
  given <- run[c("kernel", "gradient", "subsample")]
  plan <- with_seed(
    run$control$seed,
    topics_plan(model, documents, train_iter, given, run$control)
  )
  run[names(plan)] <- plan
  fit <- sample_model(model, run)
  written <- written_call(match.call(), "tall_topics", parent.frame())
  front_fit(fit, run, "tall_topics", written, list(
    n_topic = model$n_topic,
    vocabulary = model$vocabulary,
    priors = c(alpha = alpha, beta = beta),
    n_token = model$n_token
  ))
}

# One long chain, since topics of several cannot be compared; draws are large.
topics_run_defaults <- alist(
  iter = 10000,
  thin = max(1, floor((iter - warmup) / 100)),
  chains = 1
)

# What sg_sample() needs: starting points and the parts that were not given.
topics_plan <- function(model, documents, train_iter, given, control) {
  s <- topics_settings
  refresh <- control$refresh
  train_iter <- train_iter %||% default_train_iter(model, s)
  at <- topics_mode(model, train_iter, control$cores, refresh)
  shape <- topic_shapes(model, documents, at)
  gradient <- given$gradient
  subsample <- given$subsample
  if (is.null(subsample) && !gradient_is_full(gradient)) {
    subsample <- subsample_uniform(min(s$batch, model$n_data))
  }
  if (is.null(gradient)) {
    if (train_iter > 1) {
      at <- topics_mean(model, at, shape, subsample, train_iter, refresh)
    }
    gradient <- gradient_cv(at)
  }
  list(
    kernel = given$kernel %||% topics_kernel(shape, gradient, subsample),
    gradient = gradient,
    subsample = subsample,
    init = replicate(control$chains, draw_topics(at, shape))
  )
}

# The mode, as log theta, with the totals that it has exactly.
topics_mode <- function(model, train_iter, cores, refresh) {
  at <- model_start(model)
  if (train_iter > 0) {
    s <- topics_settings
    label <- if (refresh > 0) "Searching"
    at <- train_mode(model, at, train_iter, s, cores, label)$estimate
  }
  total <- rowSums(matrix(exp(at), model$n_topic))
  as.double(at - log(total / (model$beta * length(model$vocabulary))))
}

# log of the mean of theta over the second half of a first run from the mode.
topics_mean <- function(model, mode, shape, subsample, iter, refresh) {
  gradient <- gradient_cv(mode)
  first <- sg_sample(
    model,
    topics_kernel(shape, gradient, subsample),
    gradient,
    subsample,
    iter = iter,
    chains = 1,
    seed = sample.int(.Machine$integer.max, 1),
    init = draw_topics(mode, shape),
    keep = "none",
    refresh = refresh
  )
  log(unname(stats::coef(first)))
}

# Barker dynamics: no burst of noise, of a document that says one word a hundred
# times, can throw it out; in log theta one would throw Langevin dynamics out.
topics_kernel <- function(shape, gradient, subsample) {
  s <- topics_settings
  sigma <- s$sigma / sqrt(shape)
  size <- subsample$args$size
  if (gradient_is_full(gradient) || identical(size, 1)) {
    return(kernel_sgbd(sigma))
  }
  kernel_sgbd(
    sigma,
    variant = "corrected",
    noise_smoothing = s$noise_smoothing,
    adaptive = TRUE
  )
}

sample_documents <- function(documents, most) {
  n <- length(documents$start) - 1
  kept <- if (n > most) sort(sample.int(n, most)) else seq_len(n)
  size <- diff(documents$start)[kept]
  cell <- sequence(size, documents$start[kept] + 1)
  documents$start <- c(0, cumsum(size))
  documents$word <- documents$word[cell]
  documents$count <- documents$count[cell]
  documents
}

# Given the topics of all tokens and theta_k., theta_kw has the distribution
# Gamma(beta + n_kw, 1 + n_k / theta_k.): these shapes, which at a mode in
# log theta are the rate times theta_kw.
topic_shapes <- function(model, documents, mode) {
  few <- sample_documents(documents, topics_settings$few)
  theta <- exp(mode)
  share <- topic_proportions(folding_model(model, few), theta, seed = 1)
  n_topic <- drop(share %*% document_sizes(few))
  n_topic <- n_topic * model$n_token / sum(n_topic)
  theta * (1 + n_topic / rowSums(matrix(theta, model$n_topic)))
}

# From the posterior as if these topics were known. With a small beta words are
# so rare in a topic that no double holds it: a chain starts from the least one.
draw_topics <- function(center, shape) {
  share <- stats::rgamma(length(shape), shape)
  share[share == 0] <- .Machine$double.xmin
  center + log(share) - log(shape)
}
