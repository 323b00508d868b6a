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

# A message for each offence of a file; what lintr cannot do is one, too.
offences <- function(file) {
  tryCatch(
    {
      found <- as.data.frame(lintr::lint(file, linters = setting("linters")))
      if (nrow(found) > 0) {
        paste0(file, ":", found$line_number, ": ", found$message)
      } else {
        character()
      }
    },
    error = function(e) paste0(file, ":1: ", conditionMessage(e))
  )
}

# The large ones first: they take some 4 ms a line, two minutes for all of them.
files <- files[order(-file.size(files))]
found <- parallel::mclapply(
  files,
  offences,
  mc.cores = if (.Platform$OS.type == "windows") 1 else 2,
  mc.preschedule = FALSE
)
# a worker that was killed has no messages
is_lost <- !vapply(found, is.character, TRUE) |
  vapply(found, inherits, TRUE, "try-error")
found[is_lost] <- paste0(files[is_lost], ":1: lintr did not end")

writeLines(as.character(unlist(found[order(files)])))
n_failed <- sum(lengths(found) > 0)
cat(length(files) - n_failed, "passed,", n_failed, "failed\n")
quit(status = if (n_failed > 0) 1 else 0)
