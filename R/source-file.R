# What is wrong with a file of rows.

# In the order of `enum tb_file_fault` in src/data/file.h. Each completes the
# path.
file_faults <- c(
  ok = "",
  unreadable = "cannot be read.",
  foreign = "is not a file that {.fn tall_store} wrote.",
  byte_order = "was written on a machine with another order of bytes.",
  version = "is of another version of the format.",
  damaged = "is damaged: its head is not what was written.",
  truncated = "is damaged: it ends before its rows do.",
  full = "does not fit: there is no space for it.",
  unwritable = "cannot be written.",
  memory = "cannot be mapped: there is not enough memory.",
  unsupported = "cannot be mapped: this system has no such way to read files.",
  altered = "is damaged: its rows are not those that were written.",
  exists = "is there already."
)

# out: what a door returned, an integer where there is a fault.
check_fault <- function(out, file) {
  if (!is.integer(out) || out == 0) {
    return(invisible())
  }
  is_absent <- names(file_faults)[[out + 1]] == "unreadable" &&
    !file.exists(file)
  fault <- if (is_absent) "does not exist." else file_faults[[out + 1]]
  abort_file(paste("{.path {file}}", fault), file)
}

abort_altered <- function(file) {
  abort_tall(
    "corrupt",
    c(
      "{.path {file}} is damaged: its rows are not those that were written.",
      i = "The disk lost them, or something else wrote to the file: write it
           anew with {.code tall_store(x, file, overwrite = TRUE)}."
    ),
    component = "rows",
    file = file
  )
}

abort_file <- function(message, file, .envir = parent.frame()) {
  abort_tall("data", message, file = file, .envir = .envir)
}
