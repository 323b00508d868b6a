# What a user typed, see new_asked(), of other data than these.

# What a user asked, of other data, such as the rows of a source in memory.
ask_of <- function(asked, data) {
  asked$data <- data
  asked$matched$data <- data
  asked
}

# Of the rows of a source that are brought to memory; wanted: of
# wanted_columns(), NULL: all; more: of collect_source().
collect_asked <- function(asked, ..., wanted = NULL) {
  data <- asked$data
  if (is.data.frame(data) || !is_source_like(data)) {
    return(asked)
  }
  source <- data_source(data)
  columns <- columns_in_use(source, wanted, environment(asked$formula))
  ask_of(asked, collect_source(source, ..., columns = columns))
}

# Those columns of a source that are wanted; NULL: all, as rows are counted by
# columns, and an error names all of them where one is wanted that is not there.
columns_in_use <- function(source, wanted, home) {
  names <- if (!is.null(wanted)) names_without_pass(source)
  columns <- intersect(names, wanted)
  others <- setdiff(wanted, names)
  all_there <- all(vapply(others, exists, NA, envir = home))
  if (length(columns) > 0 && all_there) columns
}

# Names that a call's formula and other arguments use, columns among them; NULL:
# all columns, for which a `.` stands, or what a caller's dots have. takes:
# arguments that make a frame, beside the formula.
wanted_columns <- function(asked, takes) {
  own <- as.list(asked$matched)[
    intersect(names(asked$matched), c(takes, "subset"))
  ]
  used <- unlist(lapply(c(list(asked$formula, asked$shown), own), all.vars))
  if (!any(grepl("^[.]([.][0-9]+)?$", used))) unique(used)
}
