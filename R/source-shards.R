# Shards: where their rows stand among all, and which of them workers can read.

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
