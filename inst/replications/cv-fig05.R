# Baker et al. (2019), Figure 5: topics, documents varied. Their 20 topics, alpha = beta
# = 1, 50 documents a minibatch, 20,000 iterations; five seeds. Differs: 20 Newsgroups
# instead of Wikipedia (1,000 to 11,256 documents instead of 10,000 to 81,538); chains in
# log theta that all start at a mode found by 2,000 steps (theirs: 20,000); SAGA, whose
# table takes 5 GB, one seed.
source(system.file("replications", "helpers.R", package = "tallbayes"))
source(replication_file("topics.R"))

# ---- topics-size ----
set.seed(2)
order <- sample(11256)
# Perplexity along a chain: of single draws, and of averages from iteration 2,000 on.
topics_chain <- function(documents, seed, method, iter) {
  model <- model_lda(
    train_docs[train_docs$doc %in% order[seq_len(documents)], ],
    topics = 20,
    alpha = 1,
    vocabulary = news$vocab$term
  )
  set.seed(seed)
  mode <- find_mode(
    model,
    max_iter = full(2000, 20),
    batch_size = 50,
    learning_rate = 0.1
  )
  at <- unname(mode$estimate)
  fit <- sg_sample(
    model,
    kernel_sgld(1.1 / documents),
    switch(method,
      "SGLD" = gradient_simple(),
      "SGLD-CV" = gradient_cv(at),
      "SAGA" = gradient_saga()
    ),
    subsample_uniform(50),
    iter = iter,
    warmup = min(2000, iter / 2),
    chains = 1,
    seed = seed,
    init = at,
    keep = "none",
    monitor = list(every = full(250, 20), perplexity = monitor_perplexity(test_docs))
  )
  cbind(fit$monitor, documents = documents, seed = seed, method = method)
}
sizes <- full(c(1000, 4000, 11256), c(500, 1000))
plan_5 <- expand.grid(
  documents = sizes, method = c("SGLD", "SGLD-CV", "SAGA"), seed = seq_len(full(5, 2)),
  iter = full(20000, 40), stringsAsFactors = FALSE
)
plan_5 <- plan_5[plan_5$method != "SAGA" | plan_5$seed == 1, ]
curves <- do.call(rbind, Map(
  function(documents, seed, method, iter) {
    once(
      paste("cv-fig05", documents, seed, method, iter),
      suppressWarnings(topics_chain(documents, seed, method, iter))
    )
  },
  plan_5$documents, plan_5$seed, plan_5$method, plan_5$iter
))

# ---- topics-figure ----
# one seed: the levels of modes differ more than methods do
shown <- curves[curves$statistic == "draw" & curves$seed == 1, ]
shown$panel <- factor(paste(plain(shown$documents, 5), "documents"))
shown$panel <- stats::reorder(shown$panel, shown$documents)
topic_methods <- c("SGLD", "SAGA", "SGLD-CV")
print(
  ggplot(shown, aes(iteration, value, colour = method, linetype = method)) +
    geom_line(linewidth = 0.6) +
    facet_wrap(~panel, scales = "free_y") +
    scale_x_continuous(labels = function(x) paste0(x / 1000, "k")) +
    scale_methods(breaks = topic_methods) +
    scale_linetype_manual(
      values = c("SGLD" = "solid", "SAGA" = "11", "SGLD-CV" = "solid"),
      breaks = topic_methods, name = NULL
    ) +
    labs(y = "perplexity of held-out halves")
)

# ---- topics-verdict ----
# By documents, seed and method: single draws after the first 2,000 iterations, and
# averages over them at the end.
late <- curves[curves$iteration > full(2000, 0) & curves$method != "SAGA", ]
by_seed <- function(data, what) {
  tapply(data$value, data[c("documents", "seed", "method")], what)
}
single <- by_seed(late[late$statistic == "draw", ], mean)
average <- late[late$statistic == "ergodic", ]
average <- by_seed(average[average$iteration == max(average$iteration), ], identity)
# SGLD less SGLD-CV, each seed on its own
leads <- lapply(list(single = single, average = average), function(x) {
  matrix(x[, , "SGLD"] - x[, , "SGLD-CV"], nrow(x))
})
each_size <- function(lead) paste(apply(lead, 1, with_error, 2), collapse = ", ")
grows <- stats::cor(as.vector(leads$single), rep(seq_along(sizes), ncol(leads$single))) > 0
# SAGA and SGLD at the same iterations of the same seed
beside <- merge(
  curves[curves$method == "SAGA" & curves$statistic == "draw", ],
  curves[curves$method == "SGLD" & curves$statistic == "draw", ],
  by = c("documents", "seed", "iteration")
)
saga <- tapply(beside$value.x - beside$value.y, beside$documents, mean)
verdict(
  "Figure 5",
  if (all(above_zero(leads$single)) && all(above_zero(leads$average)) && grows) {
    TRUE
  } else if (any(above_zero(leads$single))) {
    "in part"
  } else {
    FALSE
  },
  "SGLD's perplexity less that of SGLD-CV, of single draws at ",
  several(sizes, 5), " documents: ", each_size(leads$single),
  "; of averages over draws: ", each_size(leads$average), " (", ncol(leads$single),
  " seeds, standard errors). SAGA less SGLD over its ", plain(max(beside$iteration), 4),
  " iterations (one seed): ", paste(decimals(saga, 1), collapse = ", "), "."
)

# ---- topics-table ----
show_table(
  do.call(rbind, lapply(names(leads), function(what) {
    ends <- row_intervals(leads[[what]])
    values <- list(single = single, average = average)[[what]]
    data.frame(
      perplexity = c(single = "of single draws", average = "of averages")[[what]],
      documents = plain(sizes, 5),
      SGLD = apply(values[, , "SGLD"], 1, with_error, 1),
      "SGLD-CV" = apply(values[, , "SGLD-CV"], 1, with_error, 1),
      difference = decimals(rowMeans(leads[[what]])),
      "95 % interval" = paste(decimals(ends[1, ]), "to", decimals(ends[2, ])),
      check.names = FALSE
    )
  })),
  caption = "Means over seeds (standard errors), after the first 2,000 iterations.",
  align = "r"
)
