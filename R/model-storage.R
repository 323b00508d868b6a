# How models keep their rows: what users call it, and the type of store by which
# the core knows it.
storage_types <- c(double = "dense", float = "float")

# The largest number that is one in single precision.
largest_float <- (2 - 2^-23) * 2^127

# What new_model() takes: list(type, read_only, storage). x: the rows.
store_of <- function(storage, x, arg = "x", call = caller_env()) {
  storage <- check_choice(
    storage,
    names(storage_types),
    arg = "storage",
    call = call
  )
  if (is_sparse(x)) {
    return(store_of_sparse(storage, arg, call))
  }
  if (storage == "float" && max(max(x), -min(x)) > largest_float) {
    bad <- which(abs(x) > largest_float)[[1]]
    must <- "be within single precision (\u00b1 3.4e38)"
    abort_value(x, bad, must, arg = arg, call = call)
  }
  list(
    type = storage_types[[storage]],
    read_only = FALSE,
    storage = storage
  )
}

store_of_sparse <- function(storage, arg, call) {
  if (storage != "double") {
    abort_tall(
      "unsupported",
      c(
        "A sparse matrix is kept in double precision, not as {.val {storage}}.",
        i = "Leave {.arg storage} out, or use {.code as.matrix({arg})}."
      ),
      argument = "storage",
      call = call
    )
  }
  list(type = "sparse", read_only = FALSE, storage = storage)
}
