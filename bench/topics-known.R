# Topics that are known: 300 documents of 60 words from three topics, and what
# tall_topics() makes of them with more and more Gibbs sweeps in a gradient; the cost
# of an iteration on 20 Newsgroups with and without control variates.
#
#   TALLBAYES_DATA=folder Rscript bench/topics-known.R
source(file.path(
  dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))),
  "common.R"
))
bench_start("topics-known", "Topics that are known, and the cost of an iteration")
number <- function(x, digits) formatC(x, digits = digits, format = "f")

# ---- accuracy --------------------------------------------------------------------

set.seed(1)
share_of <- function(n, shape) {
  x <- matrix(rgamma(n * length(shape), rep(shape, each = n)) + 1e-9, n)
  x / rowSums(x)
}
truth <- share_of(3, rep(0.1, 40))
proportions <- share_of(300, rep(0.3, 3))
dtm <- t(apply(proportions %*% truth, 1, function(p) rmultinom(1, 60, p)))
colnames(dtm) <- paste0("w", 1:40)

# the truth on the halves that perplexity() takes
model <- list(vocabulary = colnames(dtm), n_topic = 3, alpha = 0.3, beta = 1)
halves <- tallbayes:::document_halves(dtm, model, 1, "dtm")
best <- tallbayes:::completion_perplexity(
  halves,
  tallbayes:::completion_probabilities(halves, truth, 1)
)
say(
  "300 documents of 60 words, 3 topics of 40 words, proportions from\n",
  "Dirichlet(0.3); 20,000 iterations. The true topics have the perplexity ",
  number(best, 3), ".\n"
)
compare <- function(alpha, sweeps) {
  time <- system.time(
    fit <- tall_topics(
      dtm,
      k = 3,
      alpha = alpha,
      gibbs_sweeps = sweeps,
      iter = 20000,
      seed = 1
    )
  )
  found <- topic_terms(fit)
  place <- max.col(found$mean %*% t(truth))
  error <- abs(found$mean - truth[place, ])
  data.frame(
    alpha = alpha,
    sweeps = sweeps,
    perplexity = number(perplexity(fit, dtm), 3),
    "largest error" = number(max(error), 3),
    "mean error" = number(mean(error), 4),
    "worst R-hat" = number(max(summary(fit)$topics$rhat), 2),
    seconds = number(time[["user.self"]], 1),
    check.names = FALSE
  )
}
grid <- expand.grid(sweeps = c(2, 5, 10), alpha = c(0.1, 0.3))
say_table(do.call(rbind, Map(compare, grid$alpha, grid$sweeps)))

# ---- cost ------------------------------------------------------------------------

news <- tall_data("newsgroups")
model <- model_lda(
  news$counts[news$counts$doc <= 11256, ],
  20,
  vocabulary = news$vocab$term
)
at <- log(rgamma(20000, 2, 2))
seconds <- function(gradient, iter, seed) {
  system.time(sg_sample(
    model,
    kernel_sgld(1e-5),
    gradient,
    subsample_uniform(50),
    iter = iter,
    warmup = 10,
    chains = 1,
    seed = seed,
    init = at,
    keep = "none"
  ))[["user.self"]]
}
cost <- function(gradient) {
  rounds <- vapply(1:5, function(seed) {
    seconds(gradient, 2500, seed) - seconds(gradient, 500, seed)
  }, 0)
  median(rounds) / 2000
}
plain <- cost(gradient_simple())
cv <- cost(gradient_cv(at))
say(
  "\n20 Newsgroups, 20 topics, 50 documents, 2 sweeps: an iteration of SGLD takes ",
  number(1e3 * plain, 2), " ms with plain gradients, ", number(1e3 * cv, 2),
  " ms with control variates (", number(cv / plain, 2),
  " x; medians of 5, processor time)."
)
