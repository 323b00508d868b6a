# Checks every R file by lintr, as .lintr asks for; the last line counts files.
#   Rscript tools/lint.R [file ...]     called by tools/lint.sh

settings <- read.dcf(".lintr")
setting <- function(name) {
  eval(parse(text = settings[, name]), asNamespace("lintr"))
}

given <- commandArgs(trailingOnly = TRUE)
files <- if (length(given) > 0) {
  given
} else {
  list.files(
    c("R", "tests", "inst", "tools", "vignettes"),
    "[.](R|Rmd)$",
    recursive = TRUE,
    full.names = TRUE
  )
}
for (folder in setting("exclusions")) {
  files <- files[!startsWith(files, paste0(folder, "/"))]
}

linters <- setting("linters")
simple <- linters[names(linters) != "cyclocomp_linter"]
most_complex <- 20 # that of cyclocomp_linter() in .lintr

branches <- c("IF", "FOR", "WHILE", "REPEAT", "BREAK", "NEXT", "AND2", "OR2",
              "FUNCTION")

# Lines of the expressions of a file that are more complex than that. To count
# paths of all takes half of lintr's time: those with few branches have few.
complex_lines <- function(file) {
  code <- parse(file, keep.source = TRUE)
  if (length(code) == 0) {
    return(integer())
  }
  data <- utils::getParseData(code)
  refs <- attr(code, "srcref")
  ends <- vapply(refs, function(ref) ref[[3]], 0)
  at <- findInterval(
    data$line1[data$token %in% branches],
    ends,
    left.open = TRUE
  ) + 1
  many <- which(2 * tabulate(at, length(code)) + 4 >= most_complex)
  is_complex <- vapply(many, function(k) {
    # loops outside functions cannot be counted
    tryCatch(
      cyclocomp::cyclocomp(code[[k]]) > most_complex,
      error = function(e) FALSE
    )
  }, TRUE)
  vapply(refs[many[is_complex]], function(ref) ref[[1]], 0)
}

# A message for each offence of a file; what lintr cannot do is one, too.
offences <- function(file) {
  tryCatch(
    {
      is_code <- grepl("[.]R$", file)
      found <- lintr::lint(file, linters = if (is_code) simple else linters)
      found <- as.data.frame(found)
      lines <- if (is_code) complex_lines(file)
      c(
        sprintf("%s:%s: %s", file, found$line_number, found$message),
        sprintf("%s:%s: it has more than %s paths", file, lines, most_complex)
      )
    },
    error = function(e) paste0(file, ":1: ", conditionMessage(e))
  )
}

# In one process: forked ones take more time in all, and a process for each file
# would load all of lintr each time.
found <- lapply(files, offences)

writeLines(as.character(unlist(found)))
n_failed <- sum(lengths(found) > 0)
cat(length(files) - n_failed, "passed,", n_failed, "failed\n")
quit(status = if (n_failed > 0) 1 else 0)
