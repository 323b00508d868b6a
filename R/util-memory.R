# What the system has left, looked at before much is asked for.

# Before so much is asked for that the system ends R without a word. what: who
# takes it, as a cli message; hint: what takes less.
check_free <- function(bytes, what, hint, ..., .envir = parent.frame()) {
  free <- free_memory()
  if (is.na(free) || bytes <= free) {
    return(invisible())
  }
  take <- paste0(
    " takes ", format_bytes(bytes), ", and memory has ", format_bytes(free), "."
  )
  abort_tall(
    "memory",
    c(paste0(what, take), i = hint),
    ...,
    bytes = bytes,
    value = bytes,
    expected = free,
    .envir = .envir
  )
}

# In bytes; NA: the system does not say.
free_memory <- function() {
  free <- setting("memory")
  if (!is.na(free)) {
    return(free)
  }
  free <- tryCatch(
    grep("^MemAvailable:", readLines("/proc/meminfo"), value = TRUE),
    error = function(e) character(),
    warning = function(w) character()
  )
  if (length(free) != 1) {
    return(NA_real_)
  }
  1024 * as.double(gsub("[^0-9]", "", free))
}

# "1.2 GB"; of 1,000,000,000 bytes
format_bytes <- function(bytes) {
  trimws(format(structure(bytes, class = "object_size"), "auto", "SI"))
}
