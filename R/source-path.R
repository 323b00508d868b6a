# A path in the place of rows: which files it stands for, and who reads them.

#' @export
as_source.character <- function(x, ...) {
  check_no_dots(...)
  if (length(x) == 0 || anyNA(x)) {
    abort_no_source(x)
  }
  kinds <- vapply(x, kind_of_path, "")
  if (anyNA(kinds) || length(unique(kinds)) > 1) {
    abort_no_source(x)
  }
  switch(kinds[[1]], parquet = tall_parquet(x), csv = tall_csv(x))
}

# "parquet" or "csv", by the end of a name, or of those in a folder; NA:
# neither.
kind_of_path <- function(path) {
  names <- if (dir.exists(path)) dir(path, recursive = TRUE) else path
  if (any(grepl("[.]parquet$", names))) {
    "parquet"
  } else if (any(grepl(csv_pattern, names))) {
    "csv"
  } else {
    NA_character_
  }
}
