# Topic models: the gradient against enumeration, documents of every kind, and
# what tall_topics() makes of documents whose topics are known.

test_that("the enumerated gradient is that of the enumerated density", {
  withr::local_seed(1)
  entries <- list(
    entry_lda(),
    entry_lda(n_topic = 3),
    entry_lda(coordinates = "mean")
  )
  for (entry in entries) {
    theta <- entry$point()
    for (row in seq_along(tiny_documents)) {
      f <- function(t) entry$log_lik(t)[[row]]
      g <- entry$row_gradient(theta)[row, ]
      expect_derivative(g, central_difference(f, theta), 1 + max(abs(g)), "row")
    }
  }
})

# Independent estimates of the same numbers, a row each, against the truth.
expect_estimates <- function(estimates, truth, label) {
  for (j in seq_along(truth)) {
    expect_mean(estimates[, j], truth[[j]], paste(label, "coordinate", j))
  }
}

# The gradient as a chain sees it, n times at one place: estimates are
# independent, as every visit of a document begins anew.
chain_gradients <- function(model, theta, gradient, scheme, n) {
  plan <- new_plan(model, new_sampler(kernel_still(), gradient, scheme))
  plan$init <- matrix(theta)
  segment <-
    run_segment(plan, test_control(n), new_stretch(0, n), noise_every = 1)
  noise <- segment$reports[[1]]$noise
  list(
    gradient = matrix(segment$buffers$gradient, n),
    variance = noise[1 + seq_along(theta)] / noise[[1]]
  )
}

full_gradients <- function(model, theta, n = 40) {
  chain_gradients(model, theta, gradient_full(), NULL, n)$gradient
}

test_that("the gradient is that of the marginal posterior", {
  withr::local_seed(2)
  entries <- list(
    entry_lda(gibbs_sweeps = 300),
    entry_lda(beta = 0.6, n_topic = 3, gibbs_sweeps = 300),
    entry_lda(beta = 0.6, gibbs_sweeps = 300, coordinates = "mean")
  )
  for (entry in entries) {
    theta <- entry$point()
    prior <- central_difference(entry$log_prior, theta)
    truth <- prior + colSums(entry$row_gradient(theta))
    found <- full_gradients(entry$model, theta)
    expect_estimates(found, truth, "gradient")
    expect_lt(max(apply(found, 2, sd)), 0.5)
  }
})

test_that("gradients of rows, with multipliers, are those of their documents", {
  withr::local_seed(3)
  entry <- entry_lda()
  theta <- entry$point()
  for (index in list(1, 2, 3, 4, c(3, 1, 3))) {
    found <- model_evaluate(entry$model, theta, "likelihood", index, 2.5)
    truth <- 2.5 * colSums(entry$row_gradient(theta)[index, , drop = FALSE])
    # 20,000 sweeps: errors of about 1 percent of a sweep's sd
    expect_close(found$gradient, truth, "rows", tolerance = 0.02)
    expect_true(is.na(found$log_density))
  }
})

test_that("the even extension: theta and its reflections are one posterior", {
  withr::local_seed(4)
  entry <- entry_lda(gibbs_sweeps = 5, coordinates = "mean")
  model <- entry$model
  expect_true(model_info(model)$is_even)
  expect_false(model_info(entry_lda()$model)$is_even)
  theta <- abs(entry$point())
  sign <- rep(c(1, -1), length.out = length(theta))
  for (parts in c("prior", "likelihood", "posterior")) {
    at <- model_evaluate(model, theta, parts)
    mirrored <- model_evaluate(model, sign * theta, parts)
    expect_equal(mirrored$gradient, sign * at$gradient)
    expect_identical(mirrored$log_density, at$log_density)
  }
})

test_that("a few sweeps bias the gradient, more of them less", {
  withr::local_seed(5)
  # a document that Gibbs sampling leaves slowly: topics apart, alpha small
  document <- list(rep(1:2, c(6, 5)))
  theta <- c(9, 1, 1, 9)
  truth <- theta * enumerated_gradient(theta, document[[1]], 2, 0.05)
  bias <- function(sweeps) {
    documents <- tiny_frame(document)
    model <- model_lda(documents, 2, alpha = 0.05, gibbs_sweeps = sweeps)
    found <- colMeans(full_gradients(model, log(theta), n = 4000))
    sqrt(sum((found - (1 - theta) - truth)^2))
  }
  few <- bias(1)
  many <- bias(100)
  expect_lt(many, few / 3)
})

test_that("two sweeps are enough for documents of forty words", {
  withr::local_seed(15)
  data <- known_topics(40)
  x <- log(100 * as.double(data$topic))
  mean_gradient <- function(sweeps, n) {
    model <- model_lda(data$dtm, 3, alpha = 0.1, gibbs_sweeps = sweeps)
    colMeans(full_gradients(model, x, n = n))
  }
  truth <- mean_gradient(300, 40)
  bias <- mean_gradient(2, 400) - truth
  # 0.05; 0.13 when samplers began empty, with one token after the other
  expect_lt(sqrt(sum(bias^2) / sum(truth^2)), 0.07)
})

test_that("control variates: exact at the reference, elsewhere unbiased", {
  withr::local_seed(6)
  entry <- entry_lda(gibbs_sweeps = 200, coordinates = "mean")
  at <- entry$point()
  theta <- at * stats::runif(length(at), 0.7, 1.4)
  theta[[2]] <- -theta[[2]]
  model <- entry$model
  estimates <- function(theta) {
    scheme <- subsample_uniform(2)
    chain_gradients(model, theta, gradient_cv(at), scheme, 400)$gradient
  }
  here <- estimates(at)
  expect_lt(max(apply(here, 2, sd)), 1e-12)
  prior <- central_difference(entry$log_prior, at)
  truth <- prior + colSums(entry$row_gradient(at))
  # the long run at the reference has 2,000 sweeps: relative error 2 percent
  expect_close(here[1, ], truth, "at the reference", tolerance = 0.03)
  found <- estimates(theta)
  prior <- central_difference(entry$log_prior, theta)
  truth <- prior + colSums(entry$row_gradient(theta))
  noise <- apply(found, 2, sd) / 20
  expect_true(all(abs(colMeans(found) - truth) < 5 * noise + 0.05))
})

test_that("the reported variance is that of the documents drawn", {
  withr::local_seed(7)
  cases <- expand.grid(
    coordinates = c("mean", "natural"),
    has_reference = c(FALSE, TRUE),
    stringsAsFactors = FALSE
  )
  for (k in seq_len(nrow(cases))) {
    coordinates <- cases$coordinates[[k]]
    from <- if (coordinates == "natural") function(x) log(abs(x)) else identity
    model <- entry_lda(gibbs_sweeps = 5, coordinates = coordinates)$model
    theta <- from(c(1, 2, -3, 4, 2, -1, 1, 3))
    at <- from(c(2, -1, 3, 3, -2, 2, 1, 1))
    has <- cases$has_reference[[k]]
    gradient <- if (has) gradient_cv(at) else gradient_simple()
    scheme <- subsample_uniform(2, replace = FALSE)
    found <- chain_gradients(model, theta, gradient, scheme, 4000)
    # given the documents the estimate has Gibbs noise besides: more, never less
    # and without replacement the report has it in part
    ratio <- apply(found$gradient, 2, stats::var) / found$variance
    expect_true(all(ratio > 0.8 & ratio < 2))
  }
})

# ---- documents ---------------------------------------------------------------

words_matrix <- function() {
  rbind(
    d1 = c(ball = 2, goal = 0, vote = 1),
    d2 = c(0, 3, 0),
    d3 = c(0, 0, 1)
  )
}

test_that("documents may come in any form", {
  dense <- words_matrix()
  at <- which(dense > 0, arr.ind = TRUE)
  frame <- data.frame(
    doc = rownames(dense)[at[, 1]],
    word = colnames(dense)[at[, 2]],
    count = dense[at]
  )
  numbers <- data.frame(doc = at[, 1], word = at[, 2], count = dense[at])
  forms <- list(
    dense,
    Matrix::Matrix(dense, sparse = TRUE),
    methods::as(Matrix::Matrix(dense, sparse = TRUE), "TsparseMatrix"),
    frame[rev(seq_len(nrow(frame))), ]
  )
  wanted <- as_documents(dense)
  expect_identical(wanted$start, c(0, 2, 3, 4))
  expect_identical(wanted$word, c(0, 2, 1, 2))
  expect_identical(wanted$count, c(2, 1, 3, 1))
  for (form in forms) {
    expect_identical(as_documents(form, colnames(dense)), wanted)
  }
  expect_identical(as_documents(numbers, colnames(dense))[1:4], wanted[1:4])
  # a cell that comes twice counts twice
  twice <- as_documents(rbind(frame, frame), colnames(dense))
  expect_identical(twice$count, 2 * wanted$count)
  skip_if_not_installed("slam")
  triplet <- slam::as.simple_triplet_matrix(dense)
  expect_identical(as_documents(triplet), wanted)
})

test_that("documents without words are dropped with a message", {
  dense <- rbind(words_matrix(), d4 = 0)
  expect_message(model <- model_lda(dense, 2), "Dropped 1 document without")
  dense <- rbind(dense, d5 = 0)
  expect_message(model_lda(dense, 2), "Dropped 2 documents without")
  expect_equal(model$n_data, 3)
})

test_that("bad input is refused", {
  dense <- words_matrix()
  expect_input <- function(code) expect_error(code, class = "tall_error_input")
  expect_snapshot(error = TRUE, {
    model_lda(-dense, 2)
    model_lda(dense / 2, 2)
    model_lda(dense, 1)
    tall_topics(dense, k = 1)
    model_lda(data.frame(doc = 1, word = 3, count = 1), 2, vocabulary = "a")
  })
  expect_input(model_lda(replace(dense, 2, NA), 2))
  expect_input(model_lda(0 * dense, 2))
  expect_input(model_lda("text", 2))
  expect_input(model_lda(data.frame(doc = 1, word = 1), 2))
  expect_input(model_lda(data.frame(doc = 1, word = 0, count = 1), 2))
  expect_input(model_lda(data.frame(doc = NA, word = 1, count = 1), 2))
  expect_input(model_lda(dense, 2, vocabulary = "one"))
  expect_input(model_lda(dense, 2, vocabulary = c("a", NA, "b")))
  expect_input(model_lda(dense, 2, vocabulary = c("a", "b", "a")))
  expect_input(model_lda(dense[, c(1, 1, 2)], 2))
  expect_input(model_lda(dense, 1e9))
  expect_input(model_lda(dense, 2, coordinates = "root"))
  # before the search for a mode
  error <- expect_input(tall_topics(dense, 2, newdata = "text"))
  expect_match(conditionMessage(error), "newdata")
  expect_input(tall_topics(dense, 2, iter = 0))
  expect_input(tall_topics(dense, 2, iter = "many"))
  expect_input(tall_topics(dense, 2, foo = 1))
  expect_input(tall_topics(dense, 2, variables = "theta[1,ball]"))
  said <- testthat::capture_messages(tall_topics(
    dense,
    2,
    newdata = cbind(dense, zebra = 1),
    train_iter = 1,
    iter = 2,
    refresh = 0
  ))
  expect_length(grep("Left out 1 word that", said), 1)
  expect_input(model_lda(dense, 2, alpha = 0))
  expect_input(model_lda(dense, 2, beta = -1))
  expect_input(model_lda(dense, 2, gibbs_sweeps = 0))
  expect_input(model_lda(dense, 2, gibbs_sweeps = 1e12))
  model <- model_lda(dense, 2)
  expect_error(
    sg_sample(model, kernel_mala(0.1), refresh = 0),
    class = "tall_error_unsupported"
  )
  expect_error(sg_sample(model, refresh = 0), class = "tall_error_unsupported")
})

# ---- tall_topics() -----------------------------------------------------------

test_that("topics that are known are found, and those of documents", {
  skip_on_cran()
  data <- known_topics(400)
  test <- known_topics(100, seed = 2)
  fit <- tall_topics(
    data$dtm,
    k = 3,
    alpha = 0.2,
    newdata = test$dtm,
    train_iter = 800,
    iter = 1000,
    seed = 1,
    refresh = 0
  )
  moments <- topic_terms(fit)
  place <- max.col(moments$mean %*% t(data$topic))
  expect_setequal(place, 1:3)
  # 5,300 tokens a topic: sd of a probability about 0.006
  expect_lt(max(abs(moments$mean - data$topic[place, ])), 0.04)
  found <- predict(fit, test$dtm)
  expect_equal(rowSums(found), rep(1, 100), ignore_attr = TRUE)
  # 40 words: a proportion's sd is at most 0.08
  expect_lt(mean(abs(found - test$eta[, place])), 0.06)
  # the truth is the best there is
  p <- test$eta %*% data$topic
  best <- exp(-sum(test$dtm * log(p)) / sum(test$dtm))
  ours <- perplexity(fit, test$dtm)
  expect_gt(ours, best)
  expect_lt(ours, 1.12 * best)
  watched <- fit$monitor[fit$monitor$statistic == "ergodic", "value"]
  expect_equal(watched[[length(watched)]], ours, tolerance = 0.02)
  # of few words, all
  expect_identical(nrow(top_terms(fit, 1e3)), 36L)
  top <- top_terms(fit, 4)
  sets <- tapply(top$term, top$topic, function(t) paste(sort(t), collapse = ""))
  expect_setequal(sets, c("abcd", "efgh", "ijkl"))
  expect_output(print(fit), "most probable words")
  expect_output(print(summary(fit)), "Topics have no order")
})

test_that("plot() shows top terms with intervals of their probabilities", {
  skip_if_not_installed("ggplot2")
  data <- known_topics(60)
  fit <- quick_topics(data, chains = 2)
  shown <- plot(fit, topics = c(1, 3), n = 2, prob = 0.8)
  expect_s3_class(shown, "ggplot")
  expect_identical(shown$data$topic, c(1L, 1L, 3L, 3L))
  theta <- unclass(posterior::as_draws_matrix(fit$draws))
  all <- theta[, paste0("theta[3,", letters[1:12], "]")]
  word <- shown$data$term[[4]]
  p <- all[, paste0("theta[3,", word, "]")] / rowSums(all)
  found <- unlist(shown$data[4, c("low", "mean", "high")])
  wanted <- c(quantile(p, 0.1), mean(p), quantile(p, 0.9))
  expect_equal(found, wanted, ignore_attr = TRUE)
  built <- ggplot2::ggplot_build(shown)
  expect_identical(nrow(built$layout$layout), 2L)
  expect_error(plot(fit, topics = 4), class = "tall_error_input")
  expect_error(plot(fit, topics = "1"), class = "tall_error_input")
  skip_if_not_installed("bayesplot")
  expect_message(expect_s3_class(plot(fit, "trace"), "ggplot"), "first 8")
})

test_that("new documents are matched by their words", {
  data <- known_topics(60)
  fit <- quick_topics(data)
  new <- data$dtm[1:5, ]
  wanted <- predict(fit, new)
  expect_identical(predict(fit, new[, 12:1]), wanted)
  stranger <- cbind(new, zebra = 3)
  expect_message(found <- predict(fit, stranger), "does not")
  expect_identical(found, wanted)
  empty <- rbind(new, 0)
  expect_equal(unname(predict(fit, empty)[6, ]), rep(1 / 3, 3))
  expect_identical(unname(predict(fit, empty)[1:5, ]), unname(wanted))
  expect_refusals(
    "tall_error_input",
    predict(fit, unname(new)[, 1:4]),
    perplexity(fit, new * 0),
    top_terms(1),
    perplexity(fit, new, seed = "a"),
    predict(fit, new, seed = -1)
  )
  frame <- data.frame(doc = 1, word = "a")
  expect_error(perplexity(fit, frame), class = "tall_error_input")
  expect_error(predict(fit, data.frame(x = 1)), class = "tall_error_input")
  model <- example_model()
  expect_error(
    sg_sample(
      model,
      kernel_sgld(0.01),
      iter = 10,
      refresh = 0,
      monitor = list(p = monitor_perplexity(new))
    ),
    class = "tall_error_unsupported"
  )
})

test_that("runs do not depend on slices, cores or resuming", {
  data <- known_topics(50)
  model <- model_lda(data$dtm, 3, coordinates = "mean")
  start <- rep(c(1, 2, 3), 12)
  run <- function(iter, cores = 1) {
    sg_sample(
      model,
      kernel_sgld(0.1),
      gradient_simple(),
      subsample_uniform(5),
      iter = iter,
      warmup = 0,
      chains = 2,
      cores = cores,
      seed = 3,
      init = start,
      refresh = 0
    )
  }
  whole <- run(40)
  expect_identical(run(40, cores = 2)$draws, whole$draws)
  parts <- sg_resume(run(25), iter = 15, refresh = 0)
  expect_identical(parts$draws, whole$draws)
  expect_true(all(whole$draws >= 0))
  expect_true(any(whole$unconstrained < 0))
})

test_that("SAGA runs where its table fits, and is refused where it does not", {
  data <- known_topics(50)
  model <- model_lda(data$dtm, 3)
  run <- function(limit) {
    sg_sample(
      model,
      kernel_sgld(1e-3),
      gradient_saga(memory_limit = limit),
      subsample_uniform(5),
      iter = 10,
      chains = 1,
      init = rep(1:3, 12),
      refresh = 0
    )
  }
  expect_s3_class(run(1e6), "tall_fit")
  expect_error(run(1e4), class = "tall_error_unsupported")
})

test_that("words and topics that memory does not hold are refused before", {
  local_settings(memory = 1e8)
  words <- data.frame(
    doc = c(1, 1, 2, 2),
    word = c(1, 5, 2, 1e9),
    count = c(2, 3, 2, 1)
  )
  e <- expect_error(model_lda(words, 2), class = "tall_error_memory")
  expect_match(one_line(e), "1,000,000,000 words", fixed = TRUE)
  expect_match(one_line(e), "800 GB", fixed = TRUE)
  expect_match(one_line(e), "as.integer(factor(dtm$word))", fixed = TRUE)
  # what it says works
  words$word <- as.integer(factor(words$word))
  expect_s3_class(model_lda(words, 2), "tall_model")
  e <- expect_error(tall_topics(words, 1e6), class = "tall_error_memory")
  expect_match(one_line(e), "1,000,000 topics of 4 words", fixed = TRUE)
  expect_identical(e$argument, "k")
  skip_if_not_installed("slam")
  wide <- slam::simple_triplet_matrix(c(1, 2), c(1, 1e7), c(1, 1), 2, 1e7)
  e <- expect_error(model_lda(wide, 2), class = "tall_error_memory")
  expect_match(one_line(e), "one for each column", fixed = TRUE)
  model <- model_lda(words, 2)
  local_settings(memory = 31)
  expect_error(
    topic_proportions(model, rep(1, 8), 1),
    "matrix of 2 topics of 2 documents takes 32 B",
    class = "tall_error_memory"
  )
})

# Seconds that `what` went on after Ctrl-C; NA: it was not interrupted.
seconds_after_interrupt <- function(what) {
  started <- withr::local_tempfile()
  run_child(
    function(what, started, library) {
      library(tallbayes, lib.loc = library)
      inside <- asNamespace("tallbayes")
      words <- expand.grid(doc = 1:50, word = 1:20)
      words$count <- 100
      model <- model_lda(words, 5000)
      theta <- numeric(1e5)
      writeLines("", started)
      begun <- proc.time()[["elapsed"]]
      is_stopped <- FALSE
      withCallingHandlers(
        tryCatch(
          switch(
            what,
            run = sg_sample(
              model,
              kernel_sgld(1e-6),
              gradient_simple(),
              subsample_uniform(50, replace = FALSE),
              iter = 100,
              chains = 1,
              seed = 1,
              init = theta,
              refresh = 0
            ),
            evaluate = inside$model_evaluate(model, theta),
            fold = inside$topic_proportions(model, exp(theta), 1)
          ),
          interrupt = function(c) is_stopped <<- TRUE,
          tall_error_interrupted = function(c) is_stopped <<- TRUE
        ),
        tall_warning_interrupted = function(c) is_stopped <<- TRUE
      )
      if (is_stopped) proc.time()[["elapsed"]] - begun else NA
    },
    what,
    started,
    dirname(system.file(package = "tallbayes")),
    signal_when = started
  )
}

test_that("very many topics can be interrupted in the middle of a step", {
  skip_on_cran()
  skip_on_os("windows")
  # 100,000 tokens and 5,000 topics: 2e9 products a step, ten times as many of a
  # gradient without noise
  for (what in c("run", "evaluate", "fold")) {
    expect_lt(seconds_after_interrupt(what), 4)
  }
})

test_that("words that no double holds in a topic do not keep chains from it", {
  withr::local_seed(3)
  counts <- matrix(rpois(10 * 400, 0.05), 10)
  start <- draw_topics(numeric(4000), rep(1e-3, 4000))
  expect_true(all(is.finite(start)))
  expect_lt(min(start), -700)
  fit <- suppressWarnings(tall_topics(
    counts, 3,
    beta = 0.01, iter = 6, train_iter = 40, chains = 1, seed = 1, refresh = 0
  ))
  expect_true(all(is.finite(unclass(fit$draws))))
})
