# Draws which room of R/ uses which, and fails where an arrow points upwards.
#
#   Rscript tools/layers.R          the arrows, the offences and their number
#   Rscript tools/layers.R files    and the arrows between files
#
# A file's room is its prefix (design: prefix is room). A function may use those
# of its own room and of the rooms below; what is above is reached by dispatch
# (a generic stands below, its methods above) or handed in. No file may be
# longer than 500 lines, and no name be defined twice.

# From the ground up.
rooms <- c(
  "util",
  "source",
  "response",
  "prior",
  "design",
  "rows",
  "model",
  "schedule",
  "kernel",
  "gradient",
  "subsample",
  "mode",
  "run",
  "plan",
  "fit",
  "diag",
  "tune",
  "front",
  "tallbayes"
)
longest <- 500

room_of <- function(file) {
  sub("[-.].*", "", file)
}

# What a file defines at top level: its values, by name; expressions without a
# name are kept as "<file>".
read_file <- function(path) {
  out <- list()
  for (expression in parse(path)) {
    is_named <- rlang::is_call(expression, c("<-", "="), n = 2) &&
      is.name(expression[[2]])
    name <- if (is_named) as.character(expression[[2]]) else "<file>"
    value <- if (is_named) expression[[3]] else expression
    out <- c(out, stats::setNames(list(value), name))
  }
  out
}

# Free names of an expression, local variables left out.
free_names <- function(value) {
  f <- eval(call("function", NULL, call("{", value)), baseenv())
  codetools::findGlobals(f)
}

if (!dir.exists("R")) {
  stop("Run this from the root of the package.")
}
files <- list.files("R", pattern = "[.]R$")
parts <- lapply(file.path("R", files), read_file)
home <- rep(files, lengths(parts))
names(home) <- unlist(lapply(parts, names))
twice <- setdiff(names(home)[duplicated(names(home))], "<file>")
arrows <- do.call(rbind, lapply(seq_along(files), function(k) {
  do.call(rbind, lapply(names(parts[[k]]), function(name) {
    used <- intersect(free_names(parts[[k]][[name]]), names(home))
    data.frame(
      file = rep(files[[k]], length(used)),
      name = rep(name, length(used)),
      used = used,
      used_file = unname(home[used])
    )
  }))
}))
arrows <- arrows[arrows$file != arrows$used_file, ]
from <- factor(room_of(arrows$file), rooms)
to <- factor(room_of(arrows$used_file), rooms)

failed <- 0
report <- function(...) {
  failed <<- failed + 1
  cat("not ok ", ..., "\n", sep = "")
}

cat("How many functions of the room on top a room on the left uses:\n\n")
print(unclass(table(from, to)), zero.print = ".")
if ("files" %in% commandArgs(TRUE)) {
  pairs <- unique(arrows[order(from, arrows$file, to), c("file", "used_file")])
  cat("\n", sprintf("%s -> %s\n", pairs$file, pairs$used_file), sep = "")
}
cat("\n")

unknown <- setdiff(room_of(files), c(rooms, "zzz"))
for (room in unknown) {
  report("no room is called ", room)
}
# the one in the file that is read last would be both
for (name in twice) {
  where <- paste0("R/", home[names(home) == name], collapse = " and ")
  report(name, " is defined in ", where)
}
upward <- arrows[which(as.integer(from) < as.integer(to)), ]
upward <- upward[order(upward$file, upward$used_file, upward$used), ]
for (k in seq_len(nrow(upward))) {
  at <- upward[k, ]
  of <- paste0(" of R/", at$used_file)
  report("R/", at$file, ": ", at$name, " uses ", at$used, of)
}
for (file in files) {
  n <- length(readLines(file.path("R", file)))
  if (n > longest) {
    report("R/", file, " has ", n, " lines, more than ", longest)
  }
}
cat(length(files), " passed, ", failed, " failed\n", sep = "")
quit(status = failed > 0)
