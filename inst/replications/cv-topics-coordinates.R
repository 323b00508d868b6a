# Baker et al. (2019), section 5.3: topics in theta itself, as in the paper, against
# log theta: what control variates about a mode do there. Settings of ours: 4,000
# documents, 1,000 iterations, three seeds.
source(system.file("replications", "helpers.R", package = "tallbayes"))
source(replication_file("topics.R"))

# ---- topics-coordinates ----
set.seed(3)
docs <- train_docs[train_docs$doc %in% sample(11256, 4000), ]
coordinate_run <- function(coordinates, seed) {
  model <- model_lda(
    docs, 20,
    vocabulary = news$vocab$term, coordinates = coordinates
  )
  set.seed(seed)
  mode <- find_mode(
    model,
    max_iter = full(2000, 20), batch_size = 50, learning_rate = 0.1
  )
  at <- unname(mode$estimate)
  vapply(list(SGLD = gradient_simple(), "SGLD-CV" = gradient_cv(at)), function(gradient) {
    fit <- suppressWarnings(sg_sample(
      model,
      kernel_sgld(1.1 / 4000),
      gradient,
      subsample_uniform(50),
      iter = full(1000, 40), warmup = full(500, 20),
      chains = 1, seed = seed, init = at, keep = "none",
      monitor = list(every = full(100, 20), p = monitor_perplexity(test_docs))
    ))
    value <- fit$monitor$value[fit$monitor$statistic == "ergodic"]
    value[[length(value)]]
  }, 0)
}
coordinates <- once("cv-topics-coordinates", suppressWarnings(lapply(
  c(natural = "natural", mean = "mean"),
  function(coordinates) vapply(seq_len(full(3, 1)), function(s) coordinate_run(coordinates, s), numeric(2))
)))

# ---- topics-coordinates-verdict ----
loss_of <- function(x) with_error(x["SGLD-CV", ] - x["SGLD", ], 1)
verdict(
  "control variates in theta",
  mean(coordinates$mean["SGLD-CV", ] - coordinates$mean["SGLD", ]) > 0,
  "In theta control variates about a mode predict worse than plain gradients: the perplexity ",
  "of averages over draws is higher by ", loss_of(coordinates$mean), ", in log theta by ",
  loss_of(coordinates$natural), " (three seeds, standard errors)."
)
