# Topics of 20 Newsgroups, the setting of Baker et al. (2019, section 5.3): 20 topics,
# minibatches of 50 documents, perplexity of held-out halves of the test documents,
# against variational EM (topicmodels::LDA); SGLD with and without control variates
# as the number of documents grows.
#
#   TALLBAYES_DATA=folder Rscript bench/topics.R [file for the fit of topicmodels]
#
# With a file, variational EM runs once and is read from there afterwards.
source(file.path(
  dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))),
  "common.R"
))
args <- commandArgs(TRUE)
bench_start("topics", "Topics: 20 Newsgroups, 1,000 words, 20 topics")

news <- tall_data("newsgroups")
words <- news$vocab$term
train <- news$counts[news$counts$doc <= 11256, ]
test <- news$counts[news$counts$doc > 11256, ]
number <- function(x) formatC(x, digits = 1, format = "f")

# ---- against variational EM ----------------------------------------------------

fit_vem <- function() {
  x <- slam::simple_triplet_matrix(
    train$doc,
    train$word,
    train$count,
    dimnames = list(NULL, words)
  )
  time <- system.time(
    fit <- topicmodels::LDA(x, k = 20, method = "VEM", control = list(seed = 1))
  )
  list(time = time, fit = fit)
}
kept <- length(args) > 0 && file.exists(args[[1]])
vem <- if (kept) readRDS(args[[1]]) else fit_vem()
if (length(args) > 0 && !kept) {
  saveRDS(vem, args[[1]])
}

# Topics of any origin on the same halves, by the same Gibbs sampler.
score <- function(phi, alpha) {
  model <- list(vocabulary = words, n_topic = 20, alpha = alpha, beta = 1)
  halves <- tallbayes:::document_halves(test, model, 1, "test")
  p <- tallbayes:::completion_probabilities(halves, phi, 1)
  tallbayes:::completion_perplexity(halves, p)
}
# by the alpha it estimated, and by ours
theirs <- c(
  score(exp(vem$fit@beta), vem$fit@alpha),
  score(exp(vem$fit@beta), 0.1)
)

time <- system.time(
  fit <- tall_topics(train, 20, vocabulary = words, seed = 1)
)
ours <- perplexity(fit, test)
seconds <- c(vem$time[["user.self"]], time[["user.self"]])
say_table(data.frame(
  method = c(
    "variational EM, its alpha",
    "variational EM, alpha 0.1",
    "tall_topics(), defaults"
  ),
  perplexity = number(c(theirs, ours)),
  "processor time (s)" = number(seconds[c(1, 1, 2)]),
  check.names = FALSE
))
say(
  "Perplexity ", formatC(ours / min(theirs), digits = 3, format = "f"),
  " x that of variational EM (wanted: at most 1.05), in ",
  formatC(seconds[[2]] / seconds[[1]], digits = 2, format = "f"),
  " of its time. tall_topics() averages ",
  posterior::ndraws(fit$draws), " draws (perplexity() takes 20)",
  if (kept) "; variational EM was timed before", ".\n"
)

# ---- control variates ----------------------------------------------------------

say(
  "SGLD in log theta, h = 1.1 / N for all coordinates, 3,000 iterations from one mode,\n",
  "perplexity of 1,500 test documents averaged over the last 1,500 draws, medians of\n",
  "three seeds. Control variates about the mode, and about the mean of theta over the\n",
  "plain run. Variance: of minibatch gradients, by the run's report, those with control\n",
  "variates about the mode over plain ones; median over coordinates.\n"
)
set.seed(1)
few <- test[test$doc %in% sample(unique(test$doc), 1500), ]
order <- sample(11256)
compare <- function(n_doc, seed) {
  model <- model_lda(
    train[train$doc %in% order[seq_len(n_doc)], ],
    20,
    vocabulary = words
  )
  set.seed(seed)
  mode <- find_mode(model, max_iter = 3000, batch_size = 50, learning_rate = 0.1)
  at <- unname(mode$estimate)
  run <- function(gradient) {
    sg_sample(
      model,
      kernel_sgld(1.1 / n_doc),
      gradient,
      subsample_uniform(50),
      iter = 3000,
      warmup = 1500,
      thin = 30,
      chains = 1,
      seed = seed,
      init = at,
      keep = "none",
      monitor = list(every = 100, p = monitor_perplexity(few))
    )
  }
  last <- function(fit) {
    value <- fit$monitor$value[fit$monitor$statistic == "ergodic"]
    value[[length(value)]]
  }
  noise <- function(fit) fit$noise$variance / fit$noise$looks
  plain <- run(gradient_simple())
  inside <- log(unname(coef(plain)))
  at_mode <- run(gradient_cv(at))
  c(
    documents = n_doc,
    SGLD = last(plain),
    mode = last(at_mode),
    mean = last(run(gradient_cv(inside))),
    variance = stats::median(noise(at_mode) / noise(plain))
  )
}
grid <- expand.grid(n_doc = c(1000, 4000, 11256), seed = 1:3)
found <- as.data.frame(t(mapply(compare, grid$n_doc, grid$seed)))
middle <- aggregate(. ~ documents, found, stats::median)
say_table(data.frame(
  documents = format(middle$documents, big.mark = ","),
  SGLD = number(middle$SGLD),
  "CV, mode" = number(middle$mode),
  "CV, mean" = number(middle$mean),
  variance = formatC(middle$variance, digits = 2, format = "f"),
  check.names = FALSE
))
say(
  "Differences to plain SGLD over the seeds: ",
  paste(number(range(found$mode - found$SGLD)), collapse = " to "),
  " (about the mode), ",
  paste(number(range(found$mean - found$SGLD)), collapse = " to "),
  " (about the mean)."
)
