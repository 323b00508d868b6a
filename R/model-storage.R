# How models keep their rows: what users call it, and the type of store by which
# the core knows it.
storage_types <- c(double = "dense", float = "float")

# What new_model() takes: list(type, read_only, storage, file). x: the rows, or
# the tall_store() that has them.
store_of <- function(storage, x, arg = "x") {
  storage <- check_choice(storage, names(storage_types), arg = "storage")
  if (is_sparse(x)) {
    return(store_of_sparse(storage, arg))
  }
  if (is_store(x)) {
    return(mapped_store(storage, x))
  }
  if (storage == "float" && max(max(x), -min(x)) > largest_float) {
    bad <- which(abs(x) > largest_float)[[1]]
    must <- "be within single precision (\u00b1 3.4e38)"
    abort_value(x, bad, must, arg = arg)
  }
  list(
    type = storage_types[[storage]],
    read_only = FALSE,
    storage = storage
  )
}

store_of_sparse <- function(storage, arg) {
  if (storage != "double") {
    abort_tall(
      "unsupported",
      c(
        "A sparse matrix is kept in double precision, not as {.val {storage}}.",
        i = "Leave {.arg storage} out, or use {.code as.matrix({arg})}."
      ),
      argument = "storage"
    )
  }
  list(type = "sparse", read_only = FALSE, storage = storage)
}

# Rows stay in their file as they are.
mapped_store <- function(storage, x) {
  if (storage == "float" && x$type != "float") {
    abort_input(
      c(
        "The rows of the file {.path {x$file}} are doubles: {.arg storage}
         cannot be {.val float}.",
        i = "{.code tall_store(x, file, type = \"float\")} writes such a file."
      ),
      argument = "storage",
      value = storage
    )
  }
  check_rows(x)
  list(
    type = if (x$type == "float") "mapped-float" else "mapped",
    read_only = TRUE,
    storage = x$type,
    file = x$file
  )
}
