# Bayesian matrix factorisation of MovieLens 100k (split u1), 52,580 parameters: time
# of an iteration against its random numbers alone and against a plain R program of
# the same steps, error on the test ratings, and memory. See README.md.
#
#   TALLBAYES_DATA=folder Rscript bench/ratings.R [rounds]
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "common.R"))
source_folder <- normalizePath(file.path(bench_folder(), "..", "src"))
compile_c("draws.c", flags = paste0("-O2 -I", source_folder))
rounds <- if (length(commandArgs(TRUE)) > 0) as.integer(commandArgs(TRUE)[[1]]) else 7
bench_start("ratings", "Matrix factorisation: MovieLens 100k, one core")

all <- tall_data("movielens")[c("user", "item", "rating")]
test <- all[1:20000, ]
train <- all[20001:100000, ]
rank <- 20
sigma <- sqrt(5e-4)
size <- 800
model <- model_bpmf(train$user, train$item, train$rating, rank)

sample_ratings <- function(iter, of = model, n = size) {
  sg_sample(
    of,
    kernel_sgbd(sigma),
    gradient_simple(),
    subsample_uniform(n, replace = FALSE),
    iter = iter,
    warmup = iter / 2,
    thin = 10,
    chains = 1,
    seed = 1,
    keep = "none"
  )
}
# ---- memory ----
# First: memory that earlier runs gave back would be used again, and not be seen.

status <- function(field) {
  line <- grep(paste0("^", field, ":"), readLines("/proc/self/status"), value = TRUE)
  1024 * as.numeric(gsub("[^0-9]", "", line))
}
peak <- function(expr) {
  for (k in 1:3) gc(FALSE, full = TRUE)
  cat("5", file = "/proc/self/clear_refs") # resets the high-water mark
  before <- status("VmRSS")
  force(expr)
  status("VmHWM") - before
}
has_peak <- file.exists("/proc/self/clear_refs")
if (has_peak) {
  # everything is loaded and compiled before
  few <- train[train$user < 30 & train$item < 30, ]
  sample_ratings(20, model_bpmf(few$user, few$item, few$rating, 2), 30)
  bytes <- peak(sample_ratings(200))
  data <- sum(vapply(train, function(x) as.numeric(object.size(x)), 0))
  state <- length(sample_ratings(20)$saved[[1]])
}

# ---- time of an iteration ----

ours <- function(few = 20, many = 1020) {
  start <- cpu_seconds(sample_ratings(few))
  (cpu_seconds(sample_ratings(many)) - start) / (many - few)
}

# The steps of Mauri & Zanella's program, as R is commonly written: a data frame
# of the minibatch, its predictions row by row, then for each user and each item in
# it the sum over that user's (item's) ratings; prior gradients of whole matrices;
# one Barker step for each block of parameters.
plain <- local({
  ratings <- data.frame(
    user = train$user,
    item = train$item,
    value = train$rating - mean(train$rating)
  )
  n_data <- nrow(ratings)
  alpha <- 3
  barker <- function(x, gradient) {
    w <- rnorm(length(x), sigma, 0.1 * sigma)
    p <- 1 / (1 + exp(-gradient * w))
    x + w * (2 * (runif(length(x)) < p) - 1)
  }
  side <- function(batch, rows, other, mine, theirs, mu, log_lambda) {
    gradient <- -exp(log_lambda) * (rows - mu)
    ids <- sort(unique(batch[[mine]]))
    found <- vapply(ids, function(id) {
      of_id <- batch[batch[[mine]] == id, ]
      drop(alpha * other[, of_id[[theirs]], drop = FALSE] %*% of_id$residual)
    }, numeric(rank))
    gradient[, ids] <- gradient[, ids] + n_data / size * found
    gradient
  }
  means <- function(rows, mu, log_lambda) exp(log_lambda) * (rowSums(rows - mu) - mu)
  precisions <- function(rows, mu, log_lambda) {
    (ncol(rows) + 1) / 2 + 1 -
      exp(log_lambda) * (5 + mu^2 / 2 + rowSums((rows - mu)^2) / 2)
  }
  theta <- list(
    user = matrix(rnorm(rank * 943, sd = 0.1), rank),
    item = matrix(rnorm(rank * 1682, sd = 0.1), rank),
    mu_user = numeric(rank), mu_item = numeric(rank),
    lambda_user = numeric(rank), lambda_item = numeric(rank)
  )
  function(iter = 10) {
    cpu_seconds(for (t in seq_len(iter)) {
      batch <- ratings[sample(n_data, size), ]
      mean <- apply(batch, 1, function(row) {
        sum(theta$user[, row[[1]]] * theta$item[, row[[2]]])
      })
      batch$residual <- batch$value - mean
      gradient <- with(theta, list(
        user = side(batch, user, item, "user", "item", mu_user, lambda_user),
        item = side(batch, item, user, "item", "user", mu_item, lambda_item),
        mu_user = means(user, mu_user, lambda_user),
        mu_item = means(item, mu_item, lambda_item),
        lambda_user = precisions(user, mu_user, lambda_user),
        lambda_item = precisions(item, mu_item, lambda_item)
      ))
      theta <<- Map(barker, theta, gradient)
    }) / iter
  }
})
draws <- function(rounds = 300) {
  model$n_dim * .Call("draws_time", rounds * model$n_dim / 256, TRUE)
}

# The authors' own functions, where SGBD_PROGRAM names a folder with a clone of
# https://github.com/maurilorenzo/sgbd.
authors <- function() NA_real_
if (nzchar(Sys.getenv("SGBD_PROGRAM"))) {
  theirs <- new.env()
  for (file in c("utils.R", "probabilistic_matrix_factorization/bpmf_setup.R")) {
    lines <- readLines(file.path(Sys.getenv("SGBD_PROGRAM"), file), warn = FALSE)
    eval(parse(text = lines[!grepl("^(source|library)", lines)]), theirs)
  }
  authors <- function(iter = 4) {
    ratings <- data.frame(
      uid = train$user,
      iid = train$item,
      R = train$rating - mean(train$rating)
    )
    theta <- list(
      lambda_U = rnorm(rank), lambda_V = rnorm(rank),
      mu_U = rnorm(rank), mu_V = rnorm(rank),
      U = matrix(rnorm(rank * 943, sd = 0.1), rank),
      V = matrix(rnorm(rank * 1682, sd = 0.1), rank)
    )
    hyper <- list(alpha = 3, alpha_0 = 1, beta = 5, mu_0 = 0, N = 943, M = 1682)
    cpu_seconds(for (t in seq_len(iter)) {
      batch <- ratings[sample(nrow(ratings), size), ]
      gradient <- theirs$compute_grad_bpmf(batch, theta, hyper, nrow(ratings))
      theta <- theirs$update_bpmf(theta, gradient, sigma, kernel = theirs$r_barker)
    }) / iter
  }
}

seconds <- interleave(
  list(ours = ours, draws = draws, plain = plain, authors = authors),
  rounds
)
ms <- function(name) number(1000 * median(seconds[, name]))
say("n = 800, v-SGBD; medians of ", rounds, " rounds, processor time.\n")
say_table(data.frame(
  what = c(
    "an iteration of ours",
    "52,580 normals and 52,580 uniforms",
    "an iteration of the plain R program",
    "an iteration of the authors' program"
  ),
  milliseconds = c(ms("ours"), ms("draws"), ms("plain"), ms("authors"))
))
over_draws <- ratio(seconds, "ours", "draws")
over_authors <- ratio(seconds, "authors", "ours")
say_table(data.frame(
  ratio = c("ours / draws", "authors' program / ours", "plain R / ours"),
  wanted = c("at most 2.5", "at least 250", ""),
  measured = c(
    fixed(over_draws),
    number(over_authors),
    number(ratio(seconds, "plain", "ours"))
  ),
  met = c(
    yes_no(over_draws <= 2.5),
    if (is.na(over_authors)) "-" else yes_no(over_authors >= 250),
    ""
  )
))

# ---- error ----

fits <- lapply(c(default = "default", authors = "authors"), function(init) {
  suppressWarnings(tall_factorize(
    rating ~ user + item,
    train,
    rank,
    newdata = test,
    init = init,
    chains = 1,
    seed = 1,
    keep = "none"
  ))
})
rmse <- function(fit) {
  last <- fit$monitor[fit$monitor$iteration == 5000, ]
  fixed(last$value[last$statistic == "ergodic"], 3)
}
say("Error on u1.test of the averaged predictions after 5,000 iterations (wanted, from")
say("the default start: at most 0.98).\n")
say_table(data.frame(
  start = c("default", "authors'"),
  rMSE = vapply(fits, rmse, "")
))

# ---- what was measured of memory ----

if (has_peak) {
  say("Peak of `sg_sample(keep = \"none\")`, one chain, over what there was before the")
  say("run. The state is what a chain saves: position, gradient, kernel.\n")
  say_table(data.frame(
    what = c("data in R", "state of a chain", "peak", "peak / (data + state)"),
    size = c(
      paste(fixed(c(data, state, bytes) / 2^20, 2), "MiB"),
      fixed(bytes / (data + state))
    ),
    wanted = c("", "", "", "below 5")
  ))
}
