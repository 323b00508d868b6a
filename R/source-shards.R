# Shards: where their rows stand among all, which of them workers can read, and
# how their errors are told.

# Rows before each shard, by which its own are numbered. Where only a pass can
# tell how many rows a shard has, each has numbers of its own and some to spare.
shard_offsets <- function(shards) {
  sizes <- vapply(shards, source_size, 0)
  if (anyNA(sizes)) {
    (seq_along(shards) - 1) * 2^36
  } else {
    cumsum(sizes) - sizes
  }
}

# Can a worker read it? Rows in memory stay where they are.
can_travel <- function(shard) {
  if (inherits(shard, "tall_source_rounded")) {
    return(can_travel(shard$source))
  }
  inherits(shard, c("tall_parquet", "tall_csv")) ||
    inherits(shard, c("tall_stream", "tall_table")) &&
      is.function(shard$open) && !uses_pointer(shard$open)
}

# A source that is interrupted as soon as there is a file `halt`.
halting_source <- function(source, halt) {
  out <- list(source = source, halt = halt)
  structure(out, class = c("tall_source_halting", "tall_source"))
}

#' @export
source_open.tall_source_halting <- function(source, columns = NULL) {
  reader <- source_open(source$source, columns)
  next_block <- reader$next_block
  reader$next_block <- function() {
    if (file.exists(source$halt)) {
      rlang::interrupt()
    }
    next_block()
  }
  reader
}

# ---- what fails --------------------------------------------------------------

# The error of a shard, whose rows are numbered from its own first.
abort_shard <- function(error, number, n_shard) {
  error$shard <- number
  if (inherits(error, "tall_error")) {
    where <- cli::format_inline("This was in shard {number} of {n_shard}.")
    error$body <- c(error$body, i = where)
  }
  stop(error)
}

# Code whose errors are those of a shard, where there is more than one.
in_shard <- function(number, n_shard, code) {
  if (n_shard == 1) {
    return(code)
  }
  tryCatch(code, error = function(e) abort_shard(e, number, n_shard))
}

from_shard_worker <- function(number, expr) {
  tryCatch(expr, error = function(e) {
    abort_tall(
      "worker",
      c(
        "The worker of shard {number} failed.",
        i = "See {.code future::plan()}; without a plan, shards are passed over
             here, one after another."
      ),
      shard = number,
      parent = e
    )
  })
}
