# Loss and gradient of a network against its gemms alone, and against PyTorch.
# See README.md.
#
#   Rscript bench/network.R [rounds]
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))
rounds <- if (length(commandArgs(TRUE)) > 0) as.integer(commandArgs(TRUE)[[1]]) else 9
compile_c("network.c", libs = "$(BLAS_LIBS) $(FLIBS)")
bench_start("network", "Loss and gradient of a network, N = 45,730, one core")

# Standard normal inputs and responses: the time does not depend on them.
n_data <- 45730
set.seed(1)
x <- matrix(rnorm(n_data * 50), n_data)
y <- rnorm(n_data)
passes <- 8 # a clock that ticks every 4 ms sees a pass of 25

python <- find_torch()
if (is.null(python)) {
  say("PyTorch is not installed: its columns are skipped.\n")
} else {
  say("PyTorch gets the rows 512 at a time, and all at once.\n")
}

torch <- function(widths, block) {
  files <- tempfile(c("x", "y"))
  writeBin(as.vector(t(x[, seq_len(widths[[1]])])), files[[1]])
  writeBin(y, files[[2]])
  block <- if (block == 0) n_data else block
  function() {
    as.numeric(system2(
      python,
      c(
        file.path(bench_folder(), "network_torch.py"), files,
        format(c(n_data, 3, block, widths), scientific = FALSE, trim = TRUE)
      ),
      stdout = TRUE
    ))
  }
}

measure <- function(widths, activation) {
  model <- model_network(
    x[, seq_len(widths[[1]]), drop = FALSE],
    y,
    layers = widths[-c(1, length(widths))],
    activation = activation,
    sigma = 1
  )
  theta <- tallbayes:::model_start(model)
  many <- matrix(theta, length(theta), passes)
  # the package's own choice of rows in a block
  per_row <- 8 * (2 * sum(widths[-1]) + length(widths) - 1)
  solo <- 2^18 %/% max(widths[-1] * (widths[-length(widths)] + 1)) %/% 8 * 8
  most <- if (solo >= 64) min(512, solo) else 512
  block <- max(16, min(most, 2^18 %/% per_row %/% 8 * 8))
  functions <- list(
    ours = function() {
      cpu_seconds(tallbayes:::model_evaluate(model, many)) / passes
    },
    gemms = function() {
      cpu_seconds(for (k in seq_len(passes)) {
        .Call("network_gemms", widths, n_data, block)
      }) / passes
    }
  )
  has_torch <- !is.null(python) && activation == "tanh"
  if (has_torch) {
    functions$torch <- torch(widths, 512)
    functions$torch_all <- torch(widths, 0)
  }
  seconds <- interleave(functions, rounds)
  gigaflop <- .Call("network_gemms", widths, n_data, block) / 1e9
  rate <- function(name) fixed(gigaflop / median(seconds[, name]), 1)
  versus <- function(name) {
    if (name %in% colnames(seconds)) times(ratio(seconds, name, "ours")) else "-"
  }
  data.frame(
    network = paste(widths, collapse = "-"),
    activation = activation,
    `gemms, GFlop/s` = rate("gemms"),
    `ours, GFlop/s` = rate("ours"),
    `ours / gemms` = fixed(ratio(seconds, "gemms", "ours")),
    `PyTorch, 512 rows` = versus("torch"),
    `PyTorch, all rows` = versus("torch_all"),
    check.names = FALSE
  )
}

cases <- list(
  list(c(10, 50, 50, 1), "tanh"),
  list(c(10, 50, 50, 1), "relu"),
  list(c(10, 50, 50, 1), "softplus"),
  list(c(1, 20, 1), "tanh"),
  list(c(50, 200, 200, 1), "tanh")
)
table <- do.call(rbind, lapply(cases, function(case) do.call(measure, case)))
say_table(table)
say(
  "GFlop/s count the gemms' operations only, in processor seconds; medians of ",
  rounds, " rounds. Wanted, for 10-50-50-1 with tanh: ours / gemms at least 0.5, ",
  "PyTorch (its time over ours) at least 1."
)
