# Data sets: found on disk or downloaded, read and checked.

# The data frame of a set of one table, the named list of those of more.
data_get <- function(name, set, download) {
  paths <- data_find(set)
  tables <- if (!anyNA(paths)) {
    Map(function(path, table) data_load(path, table, set), paths, set$tables)
  } else if (download && !is.null(set$archive)) {
    list(data_download(name, set))
  } else {
    abort_no_data(name, set, paths)
  }
  if (is.null(names(set$tables))) {
    tables[[1]]
  } else {
    stats::setNames(tables, names(set$tables))
  }
}

# The folders searched, first match wins; then what comes with the package.
data_folders <- function() {
  given <- Sys.getenv("TALLBAYES_DATA")
  c(if (nzchar(given)) given, data_cache())
}

data_cache <- function() {
  tools::R_user_dir("tallbayes", "cache")
}

# For each table the path of its file or of the archive, NA if there is neither.
data_find <- function(set) {
  shipped <- system.file("extdata", package = "tallbayes")
  folders <- c(data_folders(), if (isTRUE(set$bundled)) shipped)
  find_one <- function(table) {
    files <- c(table$file, set$archive$file)
    paths <- file.path(rep(folders, each = length(files)), files)
    paths <- paths[file.exists(paths) & !dir.exists(paths)]
    c(paths, NA_character_)[[1]]
  }
  vapply(set$tables, find_one, "", USE.NAMES = FALSE)
}

# Everything happens in R's temporary folder, which goes with the session; the
# cache sees only an archive that is complete and was found to be right.
data_download <- function(name, set) {
  url <- set$archive$url
  if (!is.null(set$terms)) {
    cli::cli_inform(set$terms)
  }
  cli::cli_inform("Downloading {.val {name}} from {.url {url}}.")
  folder <- tempfile("tall-download-")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  path <- file.path(folder, set$archive$file)
  refuse <- function(e) {
    abort_tall(
      "data",
      c(
        "The download of {.val {name}} failed.",
        x = "{.url {url}} did not arrive in full; nothing of it was kept.",
        i = "Try again, or put {.file {set$archive$file}} into
             {.file {data_cache()}}."
      ),
      parent = e,
      file = url,
      call = quote(tall_data())
    )
  }
  tryCatch(fetch_file(url, path), error = refuse, warning = refuse)
  data <- data_load(path, set$tables[[1]], set, shown = url)
  data_keep(path)
  data
}

# In pieces, for the sake of the progress bar. libcurl is what notices a
# transfer that ends too early. R's limit of 60 seconds for the whole transfer
# is too short for a slow line.
fetch_file <- function(url, path) {
  old <- options(timeout = max(1800, getOption("timeout")))
  on.exit(options(old))
  total <- if (cli::is_dynamic_tty()) remote_size(url) else NA
  from <- url(url, "rb", method = "libcurl")
  on.exit(close(from), add = TRUE)
  to <- file(path, "wb")
  on.exit(close(to), add = TRUE)
  bar <- progress_bar(
    total = total,
    shows = getOption("tallbayes.refresh", 1) > 0,
    type = "download"
  )
  repeat {
    piece <- readBin(from, raw(), 2^16)
    if (length(piece) == 0) {
      break
    }
    writeBin(piece, to)
    bar$add(length(piece))
  }
  bar$done()
}

# In bytes, NA if the server does not say.
remote_size <- function(url) {
  headers <- tryCatch(
    curlGetHeaders(url, timeout = 20L),
    error = function(e) character(),
    warning = function(e) character()
  )
  pattern <- "^content-length: *([0-9]+)\\s*$"
  sizes <- grep(pattern, headers, ignore.case = TRUE, value = TRUE)
  if (length(sizes) == 0) {
    return(NA_real_)
  }
  as.numeric(sub(pattern, "\\1", sizes[[length(sizes)]], ignore.case = TRUE))
}

# Into the cache by a copy next to the target and a rename, which is all or
# nothing.
data_keep <- function(path) {
  cache <- data_cache()
  dir.create(cache, recursive = TRUE, showWarnings = FALSE)
  part <- tempfile("part-", cache)
  on.exit(unlink(part))
  target <- file.path(cache, basename(path))
  kept <- suppressWarnings(file.copy(path, part) && file.rename(part, target))
  if (!kept) {
    abort_tall(
      "data",
      c(
        "{.file {basename(path)}} cannot be written to {.file {cache}}.",
        i = "The environment variable {.envvar R_USER_CACHE_DIR} can name
             another place for caches."
      ),
      file = target,
      call = quote(tall_data())
    )
  }
  invisible(target)
}

# ---- read and check --------------------------------------------------------

# `path`: the file of the table, or the archive. `shown` is its name in errors.
data_load <- function(path, table, set, shown = path) {
  header <- table$header
  file <- path
  if (identical(basename(path), set$archive$file)) {
    folder <- tempfile("tall-archive-")
    on.exit(unlink(folder, recursive = TRUE))
    member <- set$archive$member
    file <- data_reading(archive_member(path, member, folder), shown, set)
    if (is.null(file)) {
      expected <- paste("an archive that holds", member)
      data_refuse(shown, set, expected, "one without it")
    }
    header <- set$archive$header
  }
  columns <- data_reading(table_columns(file, table, header), shown, set)
  check_columns(columns, names(table$types), header, shown, set)
  data <- data_reading(table_rows(file, table, header), shown, set)
  if (nrow(data) != table$n_row) {
    rows <- c(count_noun(table$n_row, "row"), count_noun(nrow(data), "row"))
    data_refuse(shown, set, rows[[1]], rows[[2]])
  }
  checksum <- data_checksum(data)
  if (checksum != table$checksum) {
    expected <- paste("content with the checksum", table$checksum)
    data_refuse(shown, set, expected, checksum)
  }
  data
}

# Names in a file with a header, else only their number can be compared.
check_columns <- function(columns, wanted, header, shown, set) {
  sizes <- c(length(wanted), length(columns))
  if (sizes[[1]] != sizes[[2]]) {
    sizes <- vapply(sizes, count_noun, "", "column")
    data_refuse(shown, set, sizes[[1]], sizes[[2]])
  }
  wrong <- if (header) which(columns != wanted)
  if (length(wrong) > 0) {
    first <- wrong[[1]]
    expected <- paste0("`", wanted[[first]], "` as column ", first)
    data_refuse(shown, set, expected, paste0("`", columns[[first]], "`"))
  }
}

# Names of the columns, or the fields of the first row.
table_columns <- function(path, table, header) {
  con <- file(path, "rt")
  on.exit(close(con))
  first <- readLines(con, 1, warn = FALSE)
  quote <- if (header) "\"" else ""
  scan(text = first, what = "", sep = table$sep, quote = quote, quiet = TRUE)
}

# scan() is what read.csv() ends in, without the copies made on the way.
# file() reads gzip and xz, whatever the name.
table_rows <- function(path, table, header) {
  con <- file(path, "rt")
  on.exit(close(con))
  columns <- scan(
    con,
    what = lapply(table$types, vector, length = 0),
    sep = table$sep,
    quote = "",
    skip = if (header) 1 else 0,
    na.strings = table$na,
    multi.line = FALSE,
    quiet = TRUE
  )
  structure(
    columns,
    class = "data.frame",
    row.names = .set_row_names(length(columns[[1]]))
  )
}

# Extracts the file of that name, in whatever folder of the archive. NULL if
# there is none.
archive_member <- function(path, member, folder) {
  entries <- utils::unzip(path, list = TRUE)$Name
  found <- entries[basename(entries) == member]
  if (length(found) == 0) {
    return(NULL)
  }
  utils::unzip(path, found[[1]], exdir = folder, junkpaths = TRUE)
  file.path(folder, member)
}

# What goes wrong in `expr`, warnings included, means that the file is damaged
# or something else.
data_reading <- function(expr, shown, set) {
  refuse <- function(e) {
    abort_tall(
      "data",
      c(
        "{.file {shown}} cannot be read as {.val {set$title}}.",
        i = data_hint(shown)
      ),
      parent = e,
      file = shown,
      expected = set$title,
      found = conditionMessage(e),
      call = quote(tall_data())
    )
  }
  tryCatch(expr, error = refuse, warning = refuse)
}

data_refuse <- function(shown, set, expected, found) {
  abort_tall(
    "data",
    c(
      "{.file {shown}} is not {.val {set$title}}.",
      x = "Expected {expected}, found {found}.",
      i = data_hint(shown),
      i = "The original is at {set$source}."
    ),
    file = shown,
    expected = expected,
    found = found,
    call = quote(tall_data())
  )
}

data_hint <- function(shown) {
  if (grepl("^[a-z]+://", shown)) {
    "Nothing of the download was kept."
  } else {
    "It may be damaged, cut off or altered: delete or replace it."
  }
}

# MD5 of the parsed values, so that it does not depend on how a file was
# packed: of the MD5s of the columns, integers as four little-endian bytes,
# other numbers as text of 12 digits, which every platform reads alike.
data_checksum <- function(data) {
  file <- tempfile()
  on.exit(unlink(file))
  column_sum <- function(x) {
    if (is.integer(x)) {
      writeBin(x, file, endian = "little")
    } else {
      text <- if (is.character(x)) enc2utf8(x) else sprintf("%.12g", x)
      writeBin(charToRaw(paste(text, collapse = "\n")), file)
    }
    unname(tools::md5sum(file))
  }
  sums <- vapply(data, column_sum, "")
  writeBin(charToRaw(paste(c(names(data), sums), collapse = "\n")), file)
  unname(tools::md5sum(file))
}

# ---- not there -------------------------------------------------------------

abort_no_data <- function(name, set, paths) {
  folders <- data_folders()
  files <- vapply(set$tables, function(table) table$file, "", USE.NAMES = FALSE)
  files <- files[is.na(paths)]
  archive <- set$archive
  how <- if (is.null(archive)) {
    "It cannot be downloaded: there is no public archive of it."
  } else {
    "{.code tall_data(\"{name}\", download = TRUE)} downloads it from
     {.url {archive$url}}."
  }
  put <- if (is.null(archive)) {
    "Put {cli::qty(length(files))}{?it/them} there: {set$title}, {set$source}
     ({set$licence})."
  } else {
    "Or put {.or {.file {c(files, archive$file)}}} there: {set$title},
     {set$source} ({set$licence})."
  }
  given <- Sys.getenv("TALLBAYES_DATA")
  where <- if (!nzchar(given)) {
    "The environment variable {.envvar TALLBAYES_DATA} can name another
     folder."
  } else if (dir.exists(given)) {
    "The first folder is that of the environment variable
     {.envvar TALLBAYES_DATA}."
  } else {
    "The environment variable {.envvar TALLBAYES_DATA} names the first folder,
     which does not exist."
  }
  abort_tall(
    "data",
    c(
      "The data set {.val {name}} is not on this machine.",
      x = "There is no file {.or {.file {files}}} in {.or {.file {folders}}}.",
      i = how,
      i = put,
      i = where
    ),
    file = files,
    folders = folders,
    call = quote(tall_data())
  )
}
