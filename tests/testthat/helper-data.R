# Most data sets are not part of the package: without them a test says so.
skip_without_data <- function(name) {
  set <- data_sets[[name]]
  if (anyNA(data_find(set))) {
    file <- set$tables[[1]]$file
    testthat::skip(paste(file, "is not on this machine (TALLBAYES_DATA)"))
  }
}

# Read once for all tests of a file.
full_data <- local({
  read <- list()
  function(name) {
    skip_without_data(name)
    if (is.null(read[[name]])) {
      read[[name]] <<- tall_data(name)
    }
    read[[name]]
  }
})

# A folder with nothing in it stands for a fresh machine.
local_no_data <- function(env = parent.frame()) {
  folder <- withr::local_tempdir(.local_envir = env)
  withr::local_envvar(
    TALLBAYES_DATA = folder,
    R_USER_CACHE_DIR = file.path(folder, "cache"),
    .local_envir = env
  )
  folder
}

# A registry entry of the same layout for a few made-up rows: `set`, `data`.
small_set <- function(name, n_row = 20) {
  set <- data_sets[[name]]
  make_table <- function(table) {
    make_column <- function(j) {
      i <- seq_len(n_row)
      switch(
        table$types[[j]],
        integer = as.integer(1000 * abs(sin(i * j))),
        numeric = round(1000 * sin(i * j), 3),
        character = paste("word", i)
      )
    }
    data <- lapply(seq_along(table$types), make_column)
    names(data) <- names(table$types)
    data <- as.data.frame(data)
    if (length(table$na) > 0) {
      data[[11]][c(2, 5)] <- NA
    }
    data
  }
  data <- lapply(set$tables, make_table)
  for (i in seq_along(data)) {
    set$tables[[i]]$n_row <- n_row
    set$tables[[i]]$checksum <- data_checksum(data[[i]])
  }
  list(set = set, data = if (length(data) == 1) data[[1]] else data)
}

# The text of a table, as raw. `header`: are the names of the columns in it?
table_bytes <- function(data, table, header = table$header, quote = FALSE) {
  rows <- utils::capture.output(utils::write.table(
    data,
    sep = table$sep,
    quote = FALSE,
    row.names = FALSE,
    col.names = FALSE,
    na = c(table$na, "NA")[[1]]
  ))
  names <- if (quote) paste0("\"", names(data), "\"") else names(data)
  lines <- c(if (header) paste(names, collapse = table$sep), rows)
  charToRaw(paste0(lines, "\n", collapse = ""))
}

write_xz <- function(bytes, path) {
  writeBin(memCompress(bytes, "xz"), path)
  path
}

gzip_bytes <- function(bytes) {
  path <- withr::local_tempfile()
  con <- gzfile(path, "wb")
  writeBin(bytes, con)
  close(con)
  readBin(path, raw(), file.size(path))
}

# A zip archive of a named list of raw vectors. A gzip file is the deflated
# bytes between a header of 10 bytes and a trailer of CRC and size, which is all
# that a zip archive wants to know, so that no other program is needed.
zip_bytes <- function(files) {
  little <- function(x, size) writeBin(as.integer(x), raw(), size, "little")
  body <- raw()
  index <- raw()
  for (name in names(files)) {
    packed <- gzip_bytes(files[[name]])
    n <- length(packed)
    common <- c(
      little(c(20, 0, 8, 0, 33), 2),
      packed[n - 7:4],
      little(c(n - 18, length(files[[name]])), 4),
      little(c(nchar(name), 0), 2)
    )
    index <- c(
      index,
      charToRaw("PK\001\002"),
      little(20, 2),
      common,
      little(c(0, 0, 0), 2),
      little(c(0, length(body)), 4),
      charToRaw(name)
    )
    body <- c(
      body,
      charToRaw("PK\003\004"),
      common,
      charToRaw(name),
      packed[11:(n - 8)]
    )
  }
  end <- c(
    charToRaw("PK\005\006"),
    little(c(0, 0, length(files), length(files)), 2),
    little(c(length(index), length(body)), 4),
    little(0, 2)
  )
  c(body, index, end)
}

# The archive of a source as its publisher lays it out, with the files beside
# the table that a reader could take for it.
archive_bytes <- function(name, data, table) {
  other <- charToRaw("1,2\n3,4\n")
  zip <- function(...) zip_bytes(list(...))
  plain <- table_bytes(data, table, header = FALSE)
  switch(
    name,
    casp = zip(CASP.csv = table_bytes(data, table, quote = TRUE)),
    covertype = zip(
      covtype.info = other,
      covtype.data.gz = gzip_bytes(plain),
      old_covtype.info = other
    ),
    arrhythmia = zip(
      Index = other,
      arrhythmia.data = plain,
      arrhythmia.names = other
    ),
    movielens = zip(
      "ml-100k/" = raw(),
      "ml-100k/README" = other,
      "ml-100k/u.data" = plain,
      "ml-100k/u1.base" = other
    )
  )
}

# Put the archive of a small set into `folder` and let its URL begin with
# `base`, which is that folder if nothing else is said.
serve_archive <- function(name, small, folder, base = file_url(folder)) {
  archive <- small$set$archive
  bytes <- archive_bytes(name, small$data, small$set$tables[[1]])
  writeBin(bytes, file.path(folder, archive$file))
  small$set$archive$url <- paste0(base, "/", archive$file)
  small$set
}

file_url <- function(path) {
  path <- normalizePath(path, winslash = "/")
  paste0("file://", if (!startsWith(path, "/")) "/", path)
}

# The address of a web server of the files in `folder`.
local_server <- function(folder, env = parent.frame()) {
  withr::local_envvar(no_proxy = "127.0.0.1", .local_envir = env)
  told <- withr::local_tempfile()
  script <- testthat::test_path("fixtures", "data-server.R")
  system2(
    file.path(R.home("bin"), "Rscript"),
    shQuote(c("--vanilla", normalizePath(script), folder, told)),
    wait = FALSE,
    stdout = FALSE,
    stderr = FALSE
  )
  wait_until(function() file.exists(told), 30)
  base <- paste0("http://127.0.0.1:", readLines(told))
  quit <- function() {
    try(suppressWarnings(curlGetHeaders(paste0(base, "/quit"))), silent = TRUE)
  }
  withr::defer(quit(), envir = env)
  base
}

# A condition's message, however it was wrapped.
one_line <- function(e) {
  gsub("\\s+", " ", conditionMessage(e))
}
