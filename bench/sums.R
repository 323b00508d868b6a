# Gaussian regressions from sums over their rows: what a whole default call
# costs beside least squares and one product of the same rows, and beside the
# recipe as it was before.
#
#   Rscript bench/sums.R [library of an older tallbayes]

source(file.path(
  dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))),
  "common.R"
))

older <- commandArgs(trailingOnly = TRUE)

bench_start("sums", "Gaussian regressions from sums")

# CPU seconds, the least of three: others use the machine, too.
cpu <- function(f, times = 3) {
  min(vapply(seq_len(times), function(k) {
    gc()
    t <- system.time(f())
    t[["user.self"]] + t[["sys.self"]]
  }, 0))
}

rows_of <- function(n, d) {
  set.seed(1)
  x <- cbind("(Intercept)" = 1, matrix(rnorm(n * (d - 1)), n))
  colnames(x)[-1] <- paste0("x", seq_len(d - 1))
  list(x = x, y = drop(x %*% seq(1, -1, length.out = d)) + rnorm(n))
}

# The same call by another library, in a process of its own.
old_seconds <- function(n, d, library) {
  code <- sprintf(
    "options(tallbayes.refresh = 0); library(tallbayes, lib.loc = '%s');
     set.seed(1); n <- %d; d <- %d;
     x <- cbind('(Intercept)' = 1, matrix(rnorm(n * (d - 1)), n));
     colnames(x)[-1] <- paste0('x', seq_len(d - 1));
     y <- drop(x %%*%% seq(1, -1, length.out = d)) + rnorm(n);
     t <- system.time(f <- tall_glm.fit(x, y, seed = 1, keep_data = FALSE));
     e <- min(summary(f)$table$ess_bulk);
     cat(t[['user.self']] + t[['sys.self']], e)",
    library,
    n,
    d
  )
  file <- tempfile(fileext = ".R")
  writeLines(code, file)
  out <- system2("Rscript", file, stdout = TRUE, stderr = FALSE)
  as.numeric(strsplit(utils::tail(out, 1), " ")[[1]])
}

table <- NULL
for (case in list(c(1e6, 20), c(1e5, 20), c(1e5, 100))) {
  n <- case[[1]]
  d <- case[[2]]
  rows <- rows_of(n, d)
  fit <- NULL
  call <- cpu(function() {
    fit <<- tall_glm.fit(rows$x, rows$y, seed = 1, keep_data = FALSE)
  })
  model <- model_glm(rows$x, rows$y, "gaussian")
  run <- cpu(function() sg_sample(model, seed = 1))
  product <- cpu(function() crossprod(rows$x))
  least <- cpu(function() lm.fit(rows$x, rows$y))
  ess <- min(summary(fit)$table$ess_bulk)
  before <- if (length(older) == 1) old_seconds(n, d, older) else c(NA, NA)
  shown <- function(x) formatC(x, format = "fg", digits = 3)
  table <- rbind(table, data.frame(
    N = format(n, big.mark = ",", scientific = FALSE),
    d = d,
    "call / crossprod" = shown(call / product),
    "sg_sample / crossprod" = shown(run / product),
    "call / lm.fit" = shown(call / least),
    "before / call" = shown(before[[1]] / call),
    "ESS a second, now / before" =
      shown((ess / call) / (before[[2]] / before[[1]])),
    check.names = FALSE
  ))
}

say(
  "Ratios of CPU seconds, one thread. call: `tall_glm.fit(x, y)` with its\n",
  "checks and its copy of the rows, 4 x 1,000 draws kept; sg_sample: the\n",
  "same without them, from a model that is there; before: the recipe of a\n",
  "library without sums. BLAS: ",
  extSoftVersion()[["BLAS"]],
  "\n"
)
say_table(table)
