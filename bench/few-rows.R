# Gaussian responses with about as many columns as rows under priors that learn
# their scales: do chains mix? See README.md.
#
#   Rscript bench/few-rows.R [seeds] [columns] [prior ...]
#
# Of 60 rows; columns: numbers with commas between them. Each seed has data of its
# own; the prior of the intercept is Student's.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))

n_row <- 60

priors <- list(ridge = prior_ridge(), horseshoe = prior_hs(), r2d2 = prior_r2d2())

fit_of <- function(p, prior, seed) {
  set.seed(100 + seed)
  x <- matrix(rnorm(n_row * p), n_row, dimnames = list(NULL, paste0("x", seq_len(p))))
  y <- 1 + drop(x[, 1:3] %*% c(2, -1, 0.5)) + rnorm(n_row)
  suppressWarnings(tall_glm(
    y ~ .,
    data.frame(x, y = y),
    gaussian(),
    prior = priors[[prior]],
    prior_intercept = prior_student(3, 0, 2.5),
    prior_aux = prior_exponential(1),
    seed = seed
  ))
}

row_of <- function(p, prior, n_seed) {
  found <- vapply(seq_len(n_seed), function(seed) {
    seconds <- cpu_seconds(fit <- fit_of(p, prior, seed))
    at <- fit$unconstrained
    c(
      rhat = max(apply(at, 3, posterior::rhat)),
      ess = min(apply(at, 3, posterior::ess_bulk)),
      tail = min(apply(at, 3, posterior::ess_tail)),
      seconds = seconds
    )
  }, numeric(4))
  data.frame(
    prior = prior,
    columns = p,
    seeds = n_seed,
    `R-hat` = fixed(max(found["rhat", ]), 3),
    `over 1.01` = fixed(sum(found["rhat", ] > 1.01), 0),
    `ESS bulk` = fixed(min(found["ess", ]), 0),
    tail = fixed(min(found["tail", ]), 0),
    `CPU s` = fixed(median(found["seconds", ]), 1),
    check.names = FALSE
  )
}

arguments <- commandArgs(TRUE)
n_seed <- if (length(arguments) > 0) as.integer(arguments[[1]]) else 20
columns <- if (length(arguments) > 1) arguments[[2]] else "55,58,59,60,61"
columns <- as.integer(strsplit(columns, ",")[[1]])
wanted <- if (length(arguments) > 2) arguments[-(1:2)] else names(priors)
bench_start(
  paste(c("few-rows", arguments[-1]), collapse = "-"),
  "About as many columns as rows under learnt scales",
  paste("few-rows.R", paste(arguments, collapse = " "))
)
rows <- list()
for (prior in wanted) {
  for (p in columns) {
    rows <- c(rows, list(row_of(p, prior, n_seed)))
    cat(unlist(rows[[length(rows)]]), "\n")
  }
}
say_table(do.call(rbind, rows))
say(
  "\nR-hat, ESS: the worst of all parameters and of all seeds, 4 x 1,000 draws, of\n",
  "hyperparameters on their unconstrained coordinates; over 1.01: so many seeds. CPU\n",
  "s: the median."
)
