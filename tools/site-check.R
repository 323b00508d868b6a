# Looks at the site in docs/ (tools/site.R): every link inside the site leads
# somewhere; a browser shows every page without an error, loads nothing from
# elsewhere, and no page is wider than a screen of 400 or 1,400 pixels; search
# and dark colours work. The last line counts what was looked at.
#   Rscript tools/site-check.R [folder for pictures]

local_library <- file.path(
  tools::R_user_dir("tallbayes", "cache"),
  "site-library"
)
.libPaths(c(if (dir.exists(local_library)) local_library, .libPaths()))
source("tools/browser.R")

n_passed <- 0
n_failed <- 0
tell <- function(ok, ...) {
  if (ok) {
    n_passed <<- n_passed + 1
  } else {
    n_failed <<- n_failed + 1
    cat(..., "\n", sep = "")
  }
}

site <- normalizePath("docs", mustWork = TRUE)
pages <- list.files(site, "[.]html$", recursive = TRUE)

# ---- links -------------------------------------------------------------------

read_page <- function(page) {
  html <- xml2::read_html(file.path(site, page))
  get <- function(xpath) xml2::xml_text(xml2::xml_find_all(html, xpath))
  list(
    links = unique(c(get("//a/@href"), get("//img/@src"), get("//link/@href"),
      get("//script/@src"))),
    ids = c(get("//@id"), get("//a/@name")),
    has_alt = length(get("//main//img[not(@alt)]")) == 0
  )
}

is_elsewhere <- function(link) grepl("^([a-z]+:|//)", link)

# What is loaded with a page, not what a reader may follow.
loads_from_elsewhere <- function(page) {
  html <- xml2::read_html(file.path(site, page))
  found <- xml2::xml_find_all(
    html,
    "//script/@src | //img/@src | //link[@rel='stylesheet']/@href"
  )
  any(grepl("^(https?:)?//", xml2::xml_text(found)))
}

# Where a link of a page leads to: a path inside the site and an id.
target_of <- function(page, link) {
  link <- sub("[?][^#]*", "", link)
  id <- if (grepl("#", link)) sub("^[^#]*#", "", link) else ""
  path <- utils::URLdecode(sub("#.*", "", link))
  if (!nzchar(path)) {
    return(list(path = page, id = id))
  }
  if (!startsWith(path, "/")) {
    path <- file.path(dirname(page), path)
  }
  parts <- character()
  for (part in strsplit(path, "/")[[1]]) {
    if (part == "..") {
      parts <- utils::head(parts, -1)
    } else if (!part %in% c("", ".")) {
      parts <- c(parts, part)
    }
  }
  path <- paste(parts, collapse = "/")
  if (dir.exists(file.path(site, path))) {
    path <- sub("^/", "", paste0(path, "/index.html"))
  }
  list(path = path, id = id)
}

check_links <- function() {
  read <- lapply(stats::setNames(nm = pages), read_page)
  for (page in pages) {
    tell(!loads_from_elsewhere(page), page, ": loads from elsewhere")
    tell(read[[page]]$has_alt, page, ": a picture without words")
    for (link in read[[page]]$links[!is_elsewhere(read[[page]]$links)]) {
      target <- target_of(page, link)
      is_there <- file.exists(file.path(site, target$path))
      has_id <- !nzchar(target$id) || !target$path %in% pages ||
        utils::URLdecode(target$id) %in% read[[target$path]]$ids
      tell(is_there && has_id, page, ": a link to nothing, ", link)
    }
  }
}

# ---- what a browser shows ----------------------------------------------------

address_of <- function(page) {
  paste0("file://", utils::URLencode(file.path(site, page)))
}

set_width <- function(browser, width) {
  browser_call(
    browser,
    "Emulation.setDeviceMetricsOverride",
    width = width,
    height = 900,
    deviceScaleFactor = 1,
    mobile = width < 600
  )
}

is_remote <- function(url) !grepl("^(file|data|blob|about):", url)

# Errors that a page has told: exceptions, its console, what it could not load.
errors_of <- function(events) {
  unlist(lapply(events, function(event) {
    p <- event$params
    switch(
      event$method,
      Runtime.exceptionThrown = p$exceptionDetails$exception$description,
      Runtime.consoleAPICalled = if (p$type == "error") {
        paste("console:", p$args[[1]]$value)
      },
      Log.entryAdded = if (p$entry$level == "error") {
        paste(p$entry$text, p$entry$url)
      },
      Network.requestWillBeSent = if (is_remote(p$request$url)) {
        paste("loads", p$request$url)
      },
      NULL
    )
  }))
}

# The names of what is wider than the screen.
too_wide <- "(() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return '';
  const wide = [...document.querySelectorAll('body *')].filter((e) =>
    e.getBoundingClientRect().right > width + 1);
  const last = wide.filter((e) => !wide.some((f) => f !== e && e.contains(f)));
  return document.documentElement.scrollWidth + ' pixels: ' + last.slice(0, 3)
    .map((e) => e.outerHTML.slice(0, 120)).join(' | ');
})()"

picture <- function(browser, path) {
  shot <- browser_call(browser, "Page.captureScreenshot", format = "png")
  writeBin(jsonlite::base64_dec(shot$data), path)
}

look_at <- function(browser, page, pictures) {
  set_width(browser, 1400)
  browser_open(browser, address_of(page))
  for (width in c(1400, 400)) {
    set_width(browser, width)
    wide <- browser_value(browser, too_wide)
    tell(!nzchar(wide), page, " at ", width, ": ", wide)
    if (!is.na(pictures)) {
      name <- sprintf("%s-%d.png", gsub("/", "-", page), width)
      picture(browser, file.path(pictures, name))
    }
  }
  errors <- errors_of(browser$events)
  tell(length(errors) == 0, page, ": ", paste(errors, collapse = "; "))
}

# Type a word, and go where the first entry leads.
check_search <- function(browser, pictures) {
  set_width(browser, 1400)
  browser_open(browser, address_of("index.html"))
  found <- browser_value(browser, "(async () => {
    const input = document.querySelector('#search-input');
    input.focus();
    for (let k = 0; k < 200 && input.classList.contains('loading'); k++)
      await new Promise((go) => setTimeout(go, 50));
    await new Promise((go) => setTimeout(go, 200));
    input.value = 'tall_glm';
    input.dispatchEvent(new Event('input', {bubbles: true}));
    await new Promise((go) => setTimeout(go, 200));
    return [...document.querySelectorAll('.search-result')]
      .map((e) => e.textContent).join(' | ');
  })()")
  tell(grepl("tall_glm", found), "the search finds nothing: ", found)
  if (!is.na(pictures)) {
    picture(browser, file.path(pictures, "search.png"))
  }
}

check_dark <- function(browser, pictures) {
  colour <- function(theme) {
    browser_open(browser, address_of("index.html"))
    browser_value(browser, sprintf(
      "document.querySelector('[data-bs-theme-value=%s]').click();
       getComputedStyle(document.body).backgroundColor",
      theme
    ))
  }
  dark <- colour("dark")
  if (!is.na(pictures)) {
    picture(browser, file.path(pictures, "dark.png"))
  }
  light <- colour("light")
  tell(!identical(dark, light), "dark and light are the same: ", dark)
}

check_in_browser <- function(pictures) {
  if (is.na(browser_program())) {
    cat("There is no browser (Debian: chromium): pages are not looked at.\n")
    return(invisible())
  }
  browser <- start_browser()
  on.exit(stop_browser(browser))
  for (page in pages) {
    look_at(browser, page, pictures)
  }
  check_search(browser, pictures)
  check_dark(browser, pictures)
}

pictures <- c(commandArgs(trailingOnly = TRUE), NA)[[1]]
if (!is.na(pictures)) {
  dir.create(pictures, showWarnings = FALSE, recursive = TRUE)
}
check_links()
check_in_browser(pictures)
cat(sprintf("%d passed, %d failed\n", n_passed, n_failed))
quit(status = if (n_failed > 0) 1 else 0)
