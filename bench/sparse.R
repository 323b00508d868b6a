# Sparse designs: memory and an iteration of covertype beside the dense store, and
# a factor of 10^5 levels in 10^6 rows. See README.md.
#
#   Rscript bench/sparse.R [rounds]
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))
source(file.path(dirname(script), "common.R"))
suppressPackageStartupMessages(library(Matrix))
rounds <- if (length(commandArgs(TRUE)) > 0) as.integer(commandArgs(TRUE)[[1]]) else 7
bench_start("sparse", "Sparse designs, one core")

cpu <- function(expr) sum(system.time(expr)[c("user.self", "sys.self")])
megabytes <- function(bytes) format(round(bytes / 1e6, 1))
# the most that this process has had in memory, in MB
peak <- function() {
  status <- readLines("/proc/self/status")
  as.numeric(gsub("[^0-9]", "", grep("VmHWM", status, value = TRUE))) / 1e3
}

# ---- 10^5 levels, first: the peak is that of the process ----------------------

n_level <- 1e5
n <- 1e6
set.seed(1)
g <- sample.int(n_level, n, TRUE)
effect <- rnorm(n_level)
y <- rbinom(n, 1, plogis(-0.5 + effect[g]))
x <- sparseMatrix(
  i = c(seq_len(n), seq_len(n)),
  j = c(rep(1L, n), g + 1L),
  x = 1,
  dimnames = list(NULL, c("(Intercept)", paste0("g", seq_len(n_level))))
)
rows <- list()
note <- function(what, seconds) {
  rows[[length(rows) + 1]] <<- data.frame(
    what,
    "CPU s" = format(round(seconds, 2)),
    "peak, MB" = format(round(peak())),
    check.names = FALSE
  )
}
note("design, made by Matrix", 0)
seconds <- cpu(model <- model_glm(x, y, prior = prior_normal(0, 1)))
note("model_glm()", seconds)
rm(x, g)
seconds <- cpu(mode <- find_mode(model))
note(
  paste0("find_mode(), L-BFGS, ", mode$iterations, " iterations"),
  seconds
)
kernels <- list(
  "SGLD-CV, 2,000 iterations of 1,000 rows" = kernel_sgld(2e-5),
  "SGBD-CV, 2,000 iterations of 1,000 rows" = kernel_sgbd(sigma = 0.005)
)
for (label in names(kernels)) {
  seconds <- cpu(sg_sample(
    model,
    kernels[[label]],
    gradient_cv(mode),
    subsample_uniform(1000),
    iter = 2000,
    chains = 1,
    variables = c("(Intercept)", "g1"),
    seed = 1
  ))
  note(label, seconds)
}
say("## 10^6 rows, a factor of 10^5 levels, logistic\n")
say_table(do.call(rbind, rows))
say(
  "Rows and responses in the core: ",
  megabytes(tallbayes:::model_info(model)$memory),
  " MB; dense they would be ",
  megabytes(8 * n * (n_level + 1)),
  " MB.\n"
)
rm(model)
invisible(gc())

# ---- covertype ----------------------------------------------------------------

data <- tall_data("covertype")
design <- as.matrix(cbind("(Intercept)" = 1, data[-ncol(data)]))
y <- as.numeric(data[[ncol(data)]] == 2)
numbers <- !apply(design, 2, function(v) all(v %in% 0:1))
design[, numbers] <- scale(design[, numbers])
columns <- as(design, "CsparseMatrix")
models <- list(dense = model_glm(design, y), sparse = model_glm(columns, y))
bytes <- vapply(models, function(m) tallbayes:::model_info(m)$memory, 0)
modes <- list()
seconds <- list(mode = list(), cv = list(), sgd = list())
for (round in seq_len(rounds)) {
  for (name in sample(names(models))) {
    model <- models[[name]]
    run <- function(kernel, rows, iter) {
      cpu(sg_sample(
        model,
        kernel,
        gradient_cv(modes[[name]]),
        subsample_uniform(rows),
        iter = iter,
        warmup = 0,
        thin = iter,
        chains = 1,
        init = modes[[name]]$estimate,
        seed = round
      ))
    }
    seconds$mode[[name]] <- c(
      seconds$mode[[name]],
      cpu(modes[[name]] <- find_mode(model))
    )
    # what is not iterations is taken off: twice as many, less once
    for (size in c(581, 5810)) {
      label <- paste("cv", size)
      iter <- round(2e6 / size)
      both <- run(kernel_sgld(1e-6), size, 4 * iter)
      once <- run(kernel_sgld(1e-6), size, iter)
      seconds[[label]][[name]] <- c(
        seconds[[label]][[name]],
        (both - once) / (3 * iter) * 1e6
      )
    }
  }
}
middle <- function(what, name) stats::median(seconds[[what]][[name]])
line <- function(what, label, digits = 2) {
  dense <- middle(what, "dense")
  sparse <- middle(what, "sparse")
  data.frame(
    what = label,
    dense = format(round(dense, digits)),
    sparse = format(round(sparse, digits)),
    ratio = format(round(sparse / dense, 2))
  )
}
gap <- max(abs(modes$sparse$estimate - modes$dense$estimate))
say("## Covertype, 581,012 rows x 55 columns, of which ",
    format(round(100 * length(columns@x) / length(design))),
    " percent are not zero\n")
say_table(rbind(
  data.frame(
    what = "rows and responses, MB",
    dense = megabytes(bytes[["dense"]]),
    sparse = megabytes(bytes[["sparse"]]),
    ratio = format(round(bytes[["sparse"]] / bytes[["dense"]], 3))
  ),
  line("mode", "find_mode(), CPU s"),
  line("cv 581", "iteration of SGLD-CV, 581 rows, us", 1),
  line("cv 5810", "iteration of SGLD-CV, 5,810 rows, us", 1)
))
say("Modes differ by at most ", format(gap, digits = 2), ".\n")
