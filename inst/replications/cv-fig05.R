# Baker et al. (2019), Figure 5: topics, documents varied. Differs: 20 Newsgroups instead
# of Wikipedia (1,000 to 11,256 documents instead of 10,000 to 81,538), chains in
# log theta, 1,500 iterations instead of 20,000, two seeds instead of five, SAGA 300
# iterations of one seed. Theirs: 20 topics, alpha = beta = 1, 50 documents a minibatch.
source(system.file("replications", "helpers.R", package = "tallbayes"))
source(replication_file("topics.R"))

# ---- topics-size ----
set.seed(2)
order <- sample(11256)
sizes <- c(1000, 4000, 11256)
perplexity_of <- function(n_doc, seed) {
  model <- model_lda(
    train_docs[train_docs$doc %in% order[seq_len(n_doc)], ],
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
  estimators <- list("SGLD" = gradient_simple(), "SGLD-CV" = gradient_cv(at))
  if (seed == 1) {
    estimators$SAGA <- gradient_saga()
  }
  do.call(rbind, lapply(names(estimators), function(method) {
    iter <- full(if (method == "SAGA") 300 else 1500, 40)
    fit <- sg_sample(
      model,
      kernel_sgld(1.1 / n_doc),
      estimators[[method]],
      subsample_uniform(50),
      iter = iter,
      warmup = iter / 4,
      chains = 1,
      seed = seed,
      init = at,
      keep = "none",
      monitor = list(every = full(100, 20), perplexity = monitor_perplexity(test_docs))
    )
    cbind(fit$monitor, method = method, documents = n_doc, seed = seed)
  }))
}
curves <- once("cv-fig05", suppressWarnings(do.call(rbind, lapply(
  seq_len(full(2, 1)),
  function(seed) do.call(rbind, lapply(full(sizes, 1000), perplexity_of, seed = seed))
))))

# ---- topics-figure ----
shown <- curves[curves$statistic == "draw", ]
shown$documents <- factor(shown$documents, sizes, paste(plain(sizes, 5), "documents"))
print(
  ggplot(shown, aes(
    iteration, value,
    colour = method, linetype = method, group = interaction(method, seed)
  )) +
    geom_line(linewidth = 0.5) +
    facet_wrap(~documents, scales = "free_y") +
    scale_methods(breaks = c("SGLD", "SAGA", "SGLD-CV")) +
    scale_linetype_manual(
      values = c("SGLD" = "solid", "SAGA" = "11", "SGLD-CV" = "41"),
      breaks = c("SGLD", "SAGA", "SGLD-CV"), name = NULL
    ) +
    labs(y = "perplexity of held-out halves")
)

# ---- topics-verdict ----
late <- curves[curves$iteration > full(500, 0) & curves$method != "SAGA", ]
late <- late[late$statistic == "draw", ]
single <- tapply(late$value, list(late$documents, late$seed, late$method), mean)
average <- curves[curves$statistic == "ergodic" & curves$method != "SAGA", ]
average <- average[average$iteration == max(average$iteration), ]
average <- tapply(average$value, list(average$documents, average$seed, average$method), mean)
# SGLD less SGLD-CV, each seed on its own
lead_single <- single[, , "SGLD", drop = FALSE] - single[, , "SGLD-CV", drop = FALSE]
lead_average <- average[, , "SGLD", drop = FALSE] - average[, , "SGLD-CV", drop = FALSE]
each_size <- function(lead) {
  paste(apply(matrix(lead, dim(lead)[[1]]), 1, with_error, 2), collapse = ", ")
}
lead_mean <- apply(lead_single, 1, mean)
saga <- curves[curves$method == "SAGA" & curves$statistic == "draw", ]
beside <- merge(
  saga, curves[curves$method == "SGLD" & curves$statistic == "draw", ],
  by = c("documents", "seed", "iteration")
)
saga_gap <- tapply(beside$value.x - beside$value.y, beside$documents, mean)
verdict(
  "Figure 5",
  if (all(lead_mean > 0) && all(diff(lead_mean) > 0)) TRUE else if (any(lead_mean > 0)) "in part" else FALSE,
  "SGLD's perplexity less that of SGLD-CV, of single draws at 1,000, 4,000 and 11,256 ",
  "documents: ", each_size(lead_single), "; of averages over draws: ", each_size(lead_average),
  " (two seeds, standard errors). SAGA less SGLD over its 300 iterations: ",
  paste(decimals(saga_gap, 1), collapse = ", "), "."
)
