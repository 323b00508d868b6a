# Does memory grow with the rows where a store has them? The most that R's heap
# had in a whole call, of rows that come as a stream and are nowhere at once,
# with a file (`store =`) and brought to memory; each call in a process of its
# own.
#
#   Rscript bench/stores.R
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))
given <- commandArgs(trailingOnly = TRUE)

# Blocks of 20,000 rows, each made as it is asked for.
blocks <- function(n, make) {
  tall_stream(function() {
    at <- 0
    list(
      next_block = function() {
        if (at >= n) {
          return(NULL)
        }
        size <- min(20000, n - at)
        set.seed(at + 1)
        at <<- at + size
        make(size)
      },
      close = function() NULL
    )
  })
}

multilevel <- function(n, store) {
  effects <- rnorm(5000, 0, 0.5)
  data <- blocks(n, function(size) {
    g <- sample(5000, size, TRUE)
    x <- rnorm(size)
    y <- rbinom(size, 1, plogis(0.5 * x - 0.5 + effects[g]))
    data.frame(y = y, x = x, z = rnorm(size), g = paste0("g", g))
  })
  function() {
    tall_glmer(y ~ x + z + (1 | g), data, binomial(), store = store, iter = 20,
      warmup = 10, chains = 1, seed = 1, refresh = 0)
  }
}

network <- function(n, store) {
  data <- blocks(n, function(size) {
    x <- matrix(rnorm(20 * size), size, dimnames = list(NULL, paste0("x", 1:20)))
    data.frame(y = sin(x[, 1]) + x[, 2] + rnorm(size), x)
  })
  function() {
    tall_nn(y ~ ., data, hidden = 5, store = store, train_iter = 20, iter = 20,
      chains = 1, seed = 1, refresh = 0)
  }
}

ratings <- function(n, store) {
  data <- blocks(n, function(size) {
    data.frame(
      user = sample(2000, size, TRUE),
      item = sample(500, size, TRUE),
      rating = sample(5, size, TRUE)
    )
  })
  function() {
    tall_factorize(rating ~ user + item, data, rank = 2, store = store, iter = 20,
      chains = 1, seed = 1, refresh = 0)
  }
}

cases <- list(
  "tall_glmer(), 5,000 groups" = list(multilevel, c(4e5, 1.6e6)),
  "tall_nn(), 20 inputs" = list(network, c(1e5, 4e5)),
  "tall_factorize()" = list(ratings, c(5e5, 4e6))
)

if (length(given) == 3) {
  # one call: prints MB and CPU seconds
  suppressPackageStartupMessages(library(tallbayes))
  case <- cases[[as.integer(given[[1]])]]
  store <- if (given[[3]] == "store") tempfile(fileext = ".tall")
  call <- case[[1]](as.numeric(given[[2]]), store)
  invisible(gc(reset = TRUE))
  cpu <- sum(system.time(fit <- suppressMessages(call()))[1:2])
  cat("found", sum(gc()[, 6]), cpu, "\n")
  quit()
}

bench_start("stores", "Memory of rows in a file", "stores.R")
one <- function(...) {
  out <- system2(file.path(R.home("bin"), "Rscript"), c(script, ...), stdout = TRUE)
  as.numeric(strsplit(grep("^found", out, value = TRUE), " ")[[1]][2:3])
}
rows <- lapply(seq_along(cases), function(k) {
  do.call(rbind, lapply(cases[[k]][[2]], function(n) {
    store <- one(k, n, "store")
    memory <- one(k, n, "memory")
    data.frame(
      call = paste0("`", names(cases)[[k]], "`"),
      rows = format(n, big.mark = ",", scientific = FALSE),
      "MB, store" = fixed(store[[1]], 0),
      "MB, memory" = fixed(memory[[1]], 0),
      "CPU s, store" = fixed(store[[2]], 1),
      "CPU s, memory" = fixed(memory[[2]], 1),
      check.names = FALSE
    )
  }))
})
say(
  "The most that R's heap had in a whole call, MB (the package itself some 60), of rows ",
  "that come as a stream of blocks of 20,000, written to a file or brought to memory; few ",
  "draws. What a model has in memory of its own is not R's heap.\n"
)
say_table(do.call(rbind, rows))
