# model_lda(): topics of documents, and what tall_topics() shares with it.

# Settings found for topic models; all numbers stand here, once.
topics_settings <- list(
  batch = 50,            # documents of a minibatch (Baker et al., section 5.3)
  epochs = 10,           # passes of the search for a mode
  min_train = 2000,      # its iterations, at least
  learning_rate = 0.1,   # of ADAM, at first
  sigma = 0.3,           # of SGBD, in posterior sds as if topics were known
  noise_smoothing = 0.01,
  few = 2000,            # documents that say how large topics are
  fold_sweeps = 20       # Gibbs sweeps for documents that are not of the data
)

#' Latent Dirichlet allocation
#'
#' The posterior of the topics of a collection of documents, for [sg_sample()].
#' [tall_topics()] does the rest.
#'
#' @param dtm (sparse matrix or data frame) The documents. A sparse matrix of
#'   package \pkg{Matrix}, a `simple_triplet_matrix` or `DocumentTermMatrix`
#'   (\pkg{slam}, \pkg{tm}) or a numeric matrix has a row for each document, a
#'   column for each word of the vocabulary, and counts. A data frame has the
#'   columns `doc`, `word` (numbers from 1, or strings) and `count`.
#' @param topics (whole number, at least 2) How many topics, \eqn{K}.
#' @param alpha (positive number) Dirichlet prior of the topic proportions of a
#'   document.
#' @param beta (positive number) Dirichlet prior of the word probabilities of a
#'   topic.
#' @param gibbs_sweeps (whole number) Gibbs sweeps over a document that a
#'   gradient averages, after half as many (rounded up) that it does not.
#' @param vocabulary (string vector or `NULL`) The words; `NULL`: names of the
#'   columns, or the words of the data frame.
#' @param coordinates (string) What chains move in: `"natural"`, \eqn{\log
#'   \theta_{kw}}{log theta_kw}, or `"mean"`, \eqn{\theta_{kw}}{theta_kw}
#'   reflected at zero. Variables are \eqn{\theta}{theta} in both.
#'
#' @details
#' Topic \eqn{k} has the word probabilities \eqn{\theta_{kw} / \sum_v
#' \theta_{kv}}{theta_kw / sum_v theta_kv} with \eqn{\theta_{kw} \sim
#' \mathrm{Gamma}(\beta, 1)}{theta_kw ~ Gamma(beta, 1)}. A row is a document
#' \eqn{d}; with its topic proportions summed out its gradient is \deqn{g_{d,kw}
#' = E_z\left[\frac{n_{dkw}}{\theta_{kw}} -
#' \frac{n_{dk\cdot}}{\theta_{k\cdot}}\right], \quad g_{0,kw} = \frac{\beta -
#' 1}{\theta_{kw}} - 1,}{g_dkw = E_z[n_dkw / theta_kw
#' - n_dk. / theta_k.], g_0kw = (beta - 1) / theta_kw - 1,} where
#' \eqn{n_{dkw}}{n_dkw} counts the tokens of word \eqn{w} with topic \eqn{k}.
#' These are gradients in \eqn{\theta}{theta}, the expanded mean of Patterson &
#' Teh (2013). In \eqn{\log\theta}{log theta}, their expanded natural
#' parameters, they are multiplied by \eqn{\theta_{kw}}{theta_kw}, and \eqn{g_0}
#' becomes \eqn{\beta - \theta_{kw}}{beta - theta_kw}. Patterson & Teh
#' precondition by \eqn{\theta}{theta}; like Baker et al. (2019, section 5.3)
#' the kernels here do not, but they take a step size for each coordinate.
#'
#' **Which coordinates.** In natural coordinates nothing is singular where a
#' word hardly belongs to a topic, and [gradient_cv()] takes most of the noise
#' out. Langevin kernels need care there: a document that says a rare word very
#' often can push its \eqn{\log\theta}{log theta} so far up that the next step
#' throws the chain out. [kernel_sgbd()] cannot be thrown out. In mean
#' coordinates frequent words move very slowly beside rare ones.
#'
#' **Gradients are biased.** \eqn{E_z} is the mean over a few sweeps of a Gibbs
#' sampler that begins anew at every visit, where mean-field counts of the
#' document's topics have settled. What its burn-in has not forgotten biases the
#' estimate, whatever the minibatch; more `gibbs_sweeps` lessen it.
#' What is averaged are conditional probabilities of the topics rather than
#' topics drawn (the same mean, less noise). With control variates the samplers
#' at \eqn{\theta}{theta} and at the reference use the same random numbers.
#'
#' **Reflection.** In mean coordinates chains run on
#' \eqn{\pi(|\theta|)}{pi(|theta|)}, which for a kernel with symmetric noise is
#' the same in distribution as taking the absolute value after every step.
#' Gradients change their sign with \eqn{\theta_{kw}}{theta_kw}, those at a
#' reference
#' point and in a table too: they are taken in the orthant where the chain is.
#'
#' The log likelihood of a document has no closed form: Metropolis kernels and
#' monitors that need it are refused. A SAGA table holds n_data x n_dim numbers,
#' as a document's gradient is no multiple of its row; [gradient_saga()] refuses
#' the memory of most collections.
#'
#' @return A `tall_model` with the variables `theta[k,word]`.
#' @section Conditions:
#' `tall_error_input` for counts that are not whole numbers of at least 0, fewer
#' than 2 topics, or words beyond the vocabulary. Documents without words are
#' dropped with a message.
#' @references
#' Patterson & Teh (2013). Stochastic gradient Riemannian Langevin dynamics on
#' the probability simplex. *NIPS*.
#'
#' Baker, Fearnhead, Fox & Nemeth (2019). Control variates for stochastic
#' gradient MCMC. *Statistics and Computing* 29, 599-615.
#' @examples
#' words <- data.frame(
#'   doc = c(1, 1, 2, 2, 3, 3),
#'   word = c("ball", "goal", "vote", "law", "ball", "goal"),
#'   count = c(3, 2, 4, 1, 1, 2)
#' )
#' model_lda(words, topics = 2)
#' @export
model_lda <- function(
  dtm,
  topics,
  alpha = 0.1,
  beta = 1,
  gibbs_sweeps = 2,
  vocabulary = NULL,
  coordinates = c("natural", "mean")
) {
  check_given(dtm)
  coordinates <- check_choice(coordinates, names(lda_coordinates))
  documents <- as_documents(dtm, vocabulary)
  build_lda(documents, topics, alpha, beta, gibbs_sweeps, coordinates)
}

# A number of theta in a run: twice named, and some thirty doubles of one chain.
topic_bytes <- 400

# theta -> the coordinates; the order is that of src/models/lda.c
lda_coordinates <- list(
  natural = list(prefix = "log_theta", from = log),
  mean = list(prefix = "signed_theta", from = identity)
)

# model_lda() from documents; the name of `topics` is the caller's.
build_lda <- function(
  documents,
  topics,
  alpha,
  beta,
  gibbs_sweeps,
  coordinates = "natural",
  arg_topics = "topics"
) {
  vocabulary <- documents$vocabulary
  most <- floor(.Machine$integer.max / length(vocabulary))
  k <- check_count(topics, min = 2, arg = arg_topics)
  check_count(k, max = most, arg = arg_topics)
  alpha <- check_number(alpha, positive = TRUE, arg = "alpha")
  beta <- check_number(beta, positive = TRUE, arg = "beta")
  sweeps <- check_count(
    gibbs_sweeps,
    most = count_limits$integer,
    arg = "gibbs_sweeps"
  )
  check_free(
    topic_bytes * k * length(vocabulary),
    "A model of {count_noun(k, 'topic')} of
     {count_noun(length(vocabulary), 'word')}",
    "Fewer topics take less, or fewer words: leave rare ones out.",
    argument = arg_topics
  )
  place <- paste0("[", seq_len(k), ",", rep(vocabulary, each = k), "]")
  share <- tabulate_words(documents) / sum(documents$count)
  new_model(
    "lda",
    c(
      documents[c("start", "word", "count")],
      list(
        shape = as.double(c(k, length(vocabulary))),
        alpha = alpha,
        beta = beta,
        burn = as.double(ceiling(sweeps / 2)),
        sweeps = as.double(sweeps),
        coordinates = match(coordinates, names(lda_coordinates)) - 1
      )
    ),
    variables = paste0("theta", place),
    coordinates = paste0(lda_coordinates[[coordinates]]$prefix, place),
    n_topic = k,
    vocabulary = vocabulary,
    alpha = alpha,
    beta = beta,
    gibbs_sweeps = sweeps,
    n_token = sum(documents$count),
    traits = model_traits(
      start = function() {
        lda_coordinates[[coordinates]]$from(topics_start(k, share, beta))
      },
      mode_method = "adam"
    ),
    label = "model_lda"
  )
}

# Every topic near the words' shares in all documents, with the prior's total.
topics_start <- function(k, share, beta) {
  n_word <- length(share)
  base <- beta * n_word * (0.9 * share + 0.1 / n_word)
  as.double(matrix(base, k, n_word, byrow = TRUE) *
    matrix(stats::rgamma(k * n_word, 2, 2), k))
}

# Tokens of each.
document_sizes <- function(documents) {
  doc <- rep(seq_len(length(documents$start) - 1), diff(documents$start))
  as.double(rowsum(documents$count, doc))
}

tabulate_words <- function(documents) {
  words <- factor(documents$word, seq_along(documents$vocabulary) - 1)
  as.double(tapply(documents$count, words, sum, default = 0))
}

# ---- documents ---------------------------------------------------------------

# list(start, word, count, vocabulary, names, kept): words from 0, as
# src/models/lda.c wants them; `kept`, which of the rows have words, `names`
# theirs.
as_documents <- function(
  dtm,
  vocabulary = NULL,
  says_dropped = TRUE,
  arg = caller_arg(dtm)
) {
  documents_of_cells(document_cells(dtm, vocabulary, arg), says_dropped, arg)
}

# The same of cells: list(doc, word, count, n_doc, vocabulary, names).
documents_of_cells <- function(cells, says_dropped, arg) {
  check_counts(cells$count, arg)
  used <- cells$count > 0
  n_doc <- cells$n_doc
  n_word <- length(cells$vocabulary)
  # one number for each cell, documents in order; twice the same cell: their sum
  key <- (cells$doc[used] - 1) * n_word + cells$word[used] - 1
  cell <- sort(unique(key))
  count <- as.double(rowsum(as.double(cells$count[used]), key, reorder = TRUE))
  doc <- cell %/% n_word + 1
  sizes <- tabulate(doc, n_doc)
  kept <- which(sizes > 0)
  if (length(kept) == 0) {
    abort_input(
      "{.arg {arg}} must have at least one document with words.",
      argument = arg
    )
  }
  n_empty <- n_doc - length(kept)
  if (says_dropped && n_empty > 0) {
    cli::cli_inform(
      "Dropped {format_count(n_empty)} {cli::qty(n_empty)}document{?s} without
       words, of {format_count(n_doc)}."
    )
  }
  list(
    start = c(0, cumsum(sizes[kept])),
    word = as.double(cell %% n_word),
    count = count,
    vocabulary = cells$vocabulary,
    names = cells$names[kept],
    kept = kept,
    n_doc = n_doc
  )
}

# list(doc, word, count, n_doc, vocabulary, names), cells in any order
document_cells <- function(dtm, vocabulary, arg) {
  cells <- if (inherits(dtm, "simple_triplet_matrix")) {
    size <- c(dtm$nrow, dtm$ncol)
    matrix_cells(dtm$i, dtm$j, dtm$v, size, dtm$dimnames)
  } else if (inherits(dtm, "sparseMatrix")) {
    found <- Matrix::mat2triplet(dtm)
    value <- found$x %||% rep(1, length(found$i))
    matrix_cells(found$i, found$j, value, dim(dtm), dimnames(dtm))
  } else if (is.matrix(dtm) && (is.numeric(dtm) || is.logical(dtm))) {
    at <- which(is.na(dtm) | dtm != 0, arr.ind = TRUE)
    matrix_cells(at[, 1], at[, 2], dtm[at], dim(dtm), dimnames(dtm))
  } else if (is.data.frame(dtm)) {
    frame_cells(dtm, vocabulary, arg)
  } else {
    abort_expected(
      dtm,
      "a sparse matrix, or a data frame with the columns doc, word and count",
      arg = arg
    )
  }
  n_word <- length(cells$vocabulary)
  if (!is.null(vocabulary) && !is.data.frame(dtm)) {
    check_size(vocabulary, n_word, arg = "vocabulary")
    cells$vocabulary <- as.character(vocabulary)
  }
  of <- if (is.null(vocabulary)) arg else "vocabulary"
  check_words(cells$vocabulary, of)
  cells
}

# Words that can name variables; `arg` has them.
check_words <- function(words, arg) {
  bad <- which(is.na(words) | duplicated(words))
  if (length(bad) > 0) {
    abort_input(
      "The words of {.arg {arg}} must not be missing and must differ: word
       {bad[[1]]} is {.val {words[[bad[[1]]]]}}.",
      argument = arg,
      index = bad[[1]],
      value = words[[bad[[1]]]]
    )
  }
}

matrix_cells <- function(i, j, value, dim, names) {
  words <- names[[2]]
  docs <- names[[1]]
  list(
    doc = as.double(i),
    word = as.double(j),
    count = as.double(value),
    n_doc = dim[[1]],
    vocabulary = words %||% numbered_words(dim[[2]], NULL),
    names = if (is.null(docs)) as.character(seq_len(dim[[1]])) else docs
  )
}

frame_cells <- function(dtm, vocabulary, arg) {
  check_cell_columns(names(dtm), arg)
  if (!is.numeric(dtm$count)) {
    arg <- paste0(arg, "$count")
    abort_expected(dtm$count, "numbers", arg = arg)
  }
  docs <- sort(unique(dtm$doc))
  doc <- match(dtm$doc, docs)
  check_cells_given(doc, paste0(arg, "$doc"))
  if (is.numeric(dtm$word) && !is.factor(dtm$word)) {
    word <- dtm$word
    check_word_numbers(word, vocabulary, paste0(arg, "$word"))
    vocabulary <- vocabulary %||%
      numbered_words(max(word), paste0(arg, "$word"))
  } else {
    given <- as.character(dtm$word)
    vocabulary <- vocabulary %||% sort(unique(given))
    word <- match(given, vocabulary)
    check_cells_given(word, paste0(arg, "$word"))
  }
  list(
    doc = as.double(doc),
    word = as.double(word),
    count = as.double(dtm$count),
    n_doc = length(docs),
    vocabulary = as.character(vocabulary),
    names = as.character(docs)
  )
}

cell_columns <- c("doc", "word", "count")

check_cell_columns <- function(names, arg) {
  check_columns_once(names, cell_columns, "the model", arg)
  absent <- setdiff(cell_columns, names)
  if (length(absent) > 0) {
    abort_input(
      "{.arg {arg}} must have the columns doc, word and count: {.val {absent}}
       {?is/are} missing.",
      argument = arg,
      value = names
    )
  }
}

# row: the number of the first, where they are rows of a source.
check_word_numbers <- function(word, vocabulary, arg, row = NULL) {
  most <- if (is.null(vocabulary)) Inf else length(vocabulary)
  bad <- which(is.na(word) | word < 1 | word != floor(word) | word > most)
  if (length(bad) == 0) {
    return(invisible())
  }
  must <- paste0(
    "number the words from 1",
    if (is.finite(most)) {
      paste0(" to ", most, ", the length of the vocabulary")
    }
  )
  at <- bad[[1]]
  where <- if (is.null(row)) value_place(word, at) else row_place(row, at)
  abort_value(word, at, must, arg, where)
}

# As many as the largest number of a word: what no document says is a word, too.
# Two topics of them are the least a model has.
# numbers: the column that has these, NULL: n is the columns of a matrix.
numbered_words <- function(n, numbers) {
  check_free(
    2 * topic_bytes * n,
    if (is.null(numbers)) {
      "A vocabulary of {format_count(n)} words, one for each column,"
    } else {
      "A vocabulary of {format_count(n)} words, the largest number in
       {.code {numbers}},"
    },
    if (is.null(numbers)) {
      "Leave out columns that have no words."
    } else {
      "Number the words from 1 on without gaps, as
       {.code as.integer(factor({numbers}))} does, or make them strings."
    },
    argument = numbers %||% "dtm"
  )
  as.character(seq_len(n))
}

check_cells_given <- function(place, arg) {
  bad <- which(is.na(place))
  if (length(bad) > 0) {
    abort_input(
      "{.arg {arg}} must not be missing and must be in the vocabulary: value
       {bad[[1]]} is not.",
      argument = arg,
      index = bad[[1]]
    )
  }
}

check_counts <- function(count, arg) {
  bad <- is.na(count) | count < 0 | count != floor(count) | count >= 2^31
  bad <- which(bad)
  if (length(bad) > 0) {
    abort_value(
      count,
      bad[[1]],
      "hold counts (whole numbers of at least 0)",
      arg,
      where = paste("nonzero cell", bad[[1]])
    )
  }
}

# Documents in the words of a model. Those it does not know are left out.
known_documents <- function(newdata, model, says_dropped, arg) {
  # also those that lack a column, which is said there
  if (is.data.frame(newdata) &&
    (is.numeric(newdata[["word"]]) ||
      !all(c("word", "count") %in% names(newdata)))) {
    return(as_documents(newdata, model$vocabulary, says_dropped, arg))
  }
  if (is.data.frame(newdata)) {
    known <- as.character(newdata$word) %in% model$vocabulary
    say_unknown(unique(as.character(newdata$word)[!known]))
    # their documents stay, empty if need be
    newdata$count[!known] <- 0
    newdata$word <- as.character(newdata$word)
    newdata$word[!known] <- model$vocabulary[[1]]
    return(as_documents(newdata, model$vocabulary, says_dropped, arg))
  }
  words <- dimnames(newdata)[[2]]
  if (is.null(words) || identical(as.character(words), model$vocabulary)) {
    n_word <- length(model$vocabulary)
    if (!identical(as.integer(dim(newdata)[[2]]), n_word)) {
      abort_input(
        "{.arg {arg}} must have a column for each of the {format_count(n_word)}
         words of the model, or names for its columns.",
        argument = arg,
        expected = n_word,
        value = dim(newdata)[[2]]
      )
    }
    return(as_documents(newdata, model$vocabulary, says_dropped, arg))
  }
  cells <- document_cells(newdata, NULL, arg)
  place <- match(cells$vocabulary, model$vocabulary)
  say_unknown(cells$vocabulary[is.na(place)])
  cells$word <- place[cells$word]
  unknown <- is.na(cells$word)
  frame <- data.frame(doc = cells$doc, word = cells$word, count = cells$count)
  frame$count[unknown] <- 0
  frame$word[unknown] <- 1
  # every document, whether words are left or not
  all <- data.frame(doc = seq_len(cells$n_doc), word = 1, count = 0)
  frame <- rbind(frame, all)
  out <- as_documents(frame, model$vocabulary, says_dropped, arg)
  out$names <- cells$names[out$kept]
  out
}

say_unknown <- function(words) {
  if (length(words) > 0) {
    cli::cli_inform(
      "Left out {format_count(length(words))} {cli::qty(words)}word{?s} that
       the model does not know."
    )
  }
}
