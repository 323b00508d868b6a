# Files of rows in folders, whose names may say what columns all rows of a file
# have: key=value.

# The files that a path stands for, normalised; their names are their paths
# within it, "" of a file by itself. noun: what they are called.
files_in <- function(path, pattern, noun) {
  if (!file.exists(path)) {
    abort_file("{.path {path}} does not exist.", path)
  }
  if (!dir.exists(path)) {
    return(stats::setNames(normalizePath(path), ""))
  }
  within <- sort(list.files(path, pattern, recursive = TRUE))
  within <- within[!grepl("(^|/)[_.]", within)]
  if (length(within) == 0) {
    abort_file(
      "There are no files {.file {noun}} in {.path {path}}.",
      path
    )
  }
  stats::setNames(normalizePath(file.path(path, within)), within)
}

# A data frame with a row for each file: what its folders say. within: paths of
# the files in the folder that was given.
folder_keys <- function(paths, within) {
  folders <- strsplit(dirname(within), "/", fixed = TRUE)
  parts <- lapply(folders, function(folder) {
    folder <- folder[grepl("^[^=]+=", folder)]
    value <- utils::URLdecode(sub("^[^=]+=", "", folder))
    stats::setNames(value, sub("=.*", "", folder))
  })
  keys <- names(parts[[1]])
  for (k in seq_along(parts)) {
    if (!identical(names(parts[[k]]), keys) || anyDuplicated(keys)) {
      abort_keys(paths[[k]], names(parts[[k]]), keys)
    }
  }
  of_key <- lapply(stats::setNames(nm = keys), function(key) {
    value <- vapply(parts, `[[`, "", key)
    value[value == "__HIVE_DEFAULT_PARTITION__"] <- NA
    type <- text_type(value)
    if (is.na(type)) value else text_values(value, type)
  })
  frame_of(of_key, length(paths))
}

abort_keys <- function(path, found, wanted) {
  shown <- function(keys) {
    if (length(keys) == 0) "none" else paste(keys, collapse = ", ")
  }
  abort_file(
    c(
      "Folders of all files must have the same keys, each once.",
      x = "{.path {path}} has {shown(found)}, the first file {shown(wanted)}.",
      i = "Give folders with the same keys, or the paths of files."
    ),
    path
  )
}

# known: columns of the file.
check_new_keys <- function(keys, known, path) {
  twice <- intersect(names(keys), known)
  if (length(twice) > 0) {
    abort_file(
      "{.path {path}} has the column {.field {twice[[1]]}}, which its folder
       has, too.",
      path
    )
  }
}
