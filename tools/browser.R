# A browser without a window, driven by the DevTools protocol through two pipes:
# messages in JSON, each ended by a zero byte. A browser is an environment:
#
#   commands, answers   the pipes
#   folder              theirs, and the browser's own files
#   pending             bytes of a message that has not come as a whole
#   events              what the page has told
#   n_sent, session     the number of the last command; where commands go
#   timeout             seconds that an answer may take

browser_program <- function() {
  known <- Sys.which(c("chromium", "chromium-browser", "google-chrome"))
  c(known[nzchar(known)], NA)[[1]]
}

browser_options <- c(
  "--headless=new",
  "--remote-debugging-pipe",
  # root, as in a container, has no sandbox
  "--no-sandbox",
  "--disable-gpu",
  "--disable-dev-shm-usage",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-extensions",
  "--no-first-run",
  "--hide-scrollbars",
  # the index of the search is a file beside the pages
  "--allow-file-access-from-files"
)

start_browser <- function(program = browser_program(), timeout = 120) {
  browser <- new.env()
  browser$timeout <- timeout
  browser$pending <- raw()
  browser$events <- list()
  browser$n_sent <- 0
  browser$folder <- tempfile("browser")
  dir.create(browser$folder)
  path <- function(name) shQuote(file.path(browser$folder, name))
  system2("mkfifo", c(path("in"), path("out")))
  browser$answers <- fifo(file.path(browser$folder, "out"), "rb", FALSE)
  command <- paste(
    c(
      "exec",
      shQuote(program),
      browser_options,
      paste0("--user-data-dir=", path("profile")),
      "about:blank",
      paste0("3<", path("in")),
      paste0("4>", path("out")),
      paste0(">", path("log"), " 2>&1")
    ),
    collapse = " "
  )
  system(command, wait = FALSE)
  # waits for the browser
  browser$commands <- fifo(file.path(browser$folder, "in"), "wb", TRUE)
  target <- browser_call(browser, "Target.createTarget", url = "about:blank")
  browser$session <- browser_call(
    browser,
    "Target.attachToTarget",
    targetId = target$targetId,
    flatten = TRUE
  )$sessionId
  for (domain in c("Page", "Runtime", "Log", "Network")) {
    browser_call(browser, paste0(domain, ".enable"))
  }
  browser
}

stop_browser <- function(browser) {
  browser$session <- NULL
  try(browser_call(browser, "Browser.close"), silent = TRUE)
  close(browser$commands)
  close(browser$answers)
  unlink(browser$folder, recursive = TRUE)
}

# All whole messages that have come.
receive <- function(browser) {
  # where there is nothing yet, R calls it an error
  bytes <- tryCatch(
    readBin(browser$answers, "raw", 65536),
    error = function(e) raw()
  )
  if (length(bytes) == 0) {
    Sys.sleep(0.005)
    return(list())
  }
  all <- c(browser$pending, bytes)
  ends <- which(all == as.raw(0))
  starts <- c(1, ends + 1)
  browser$pending <- all[seq_along(all) >= starts[[length(starts)]]]
  texts <- Map(
    function(from, to) rawToChar(all[from:to]),
    starts[seq_along(ends)],
    ends - 1
  )
  lapply(texts, jsonlite::fromJSON, simplifyVector = FALSE)
}

# Wait for a message of which `found` is true; events are kept.
wait_for <- function(browser, found, what) {
  until <- Sys.time() + browser$timeout
  result <- NULL
  while (is.null(result)) {
    if (Sys.time() > until) {
      stop("The browser does not answer: ", what)
    }
    for (message in receive(browser)) {
      if (!is.null(message$method)) {
        browser$events <- c(browser$events, list(message))
      }
      if (is.null(result) && found(message)) {
        result <- message
      }
    }
  }
  result
}

# Send a command; its result.
browser_call <- function(browser, method, ...) {
  browser$n_sent <- browser$n_sent + 1L
  id <- browser$n_sent
  message <- list(id = id, method = method)
  message$params <- if (...length() > 0) list(...)
  message$sessionId <- browser$session
  text <- jsonlite::toJSON(message, auto_unbox = TRUE, digits = NA)
  writeBin(c(charToRaw(text), as.raw(0)), browser$commands)
  answer <- wait_for(browser, function(m) isTRUE(m$id == id), method)
  if (!is.null(answer$error)) {
    stop(method, ": ", answer$error$message)
  }
  answer$result
}

# Go to an address and wait until all of it is there.
browser_open <- function(browser, url) {
  browser$events <- list()
  browser_call(browser, "Page.navigate", url = url)
  is_loaded <- function(message) {
    identical(message$method, "Page.loadEventFired")
  }
  if (!any(vapply(browser$events, is_loaded, TRUE))) {
    wait_for(browser, is_loaded, url)
  }
  invisible()
}

# The value of an expression of JavaScript, which may be a promise.
browser_value <- function(browser, expression) {
  answer <- browser_call(
    browser,
    "Runtime.evaluate",
    expression = expression,
    returnByValue = TRUE,
    awaitPromise = TRUE
  )
  if (!is.null(answer$exceptionDetails)) {
    stop(answer$exceptionDetails$exception$description)
  }
  answer$result$value
}
