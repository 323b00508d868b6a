# Installs the packages that are missing. From the root of the package:
#   Rscript tools/setup.R          what `make install` needs (Imports)
#   Rscript tools/setup.R demo     and the plots
#   Rscript tools/setup.R test     and everything that the tests use
#   Rscript tools/setup.R lint     only what `make lint` uses
#   Rscript tools/setup.R site     only what `make site` and site-check use
#   Rscript tools/setup.R beside   what `make test-beside` uses, too
# Several may be given at a time.
# On Debian and Ubuntu, as root, ready-built packages are used where they are
# recent enough; anything else comes from the CRAN mirror that R is set to use.
# There, OpenBLAS becomes R's BLAS where R has but the reference BLAS.

# Packages of a field of DESCRIPTION: the version wanted ("0": any), by name.
wanted <- function(field) {
  versions_in(read.dcf("DESCRIPTION", field)[[1]])
}

versions_in <- function(text) {
  entries <- strsplit(text, ",")[[1]]
  entries <- trimws(gsub("\\s+", " ", entries))
  entries <- entries[!grepl("^R( |$)", entries)]
  version <- ifelse(
    grepl(">=", entries),
    sub(".*>= *([^)]*)\\).*", "\\1", entries),
    "0"
  )
  stats::setNames(trimws(version), sub(" *\\(.*", "", entries))
}

is_there <- function(name, version) {
  tryCatch(
    utils::packageVersion(name) >= version,
    error = function(e) FALSE
  )
}

missing_of <- function(packages) {
  ok <- mapply(is_there, names(packages), packages)
  packages[!ok]
}

# The first library that can be written to; R_LIBS_USER is made if need be.
writable_library <- function() {
  user <- strsplit(Sys.getenv("R_LIBS_USER"), .Platform$path.sep)[[1]]
  library <- .libPaths()[[1]]
  if (file.access(library, 2) != 0 && length(user) > 0) {
    library <- path.expand(user[[1]])
    dir.create(library, recursive = TRUE, showWarnings = FALSE)
    .libPaths(c(library, .libPaths()))
  }
  library
}

# Debian's packages are for Debian's R, so another R leaves them alone.
can_use_apt <- function() {
  nzchar(Sys.which("apt-get")) &&
    identical(Sys.info()[["effective_user"]], "root") &&
    startsWith(R.home(), "/usr/lib/R")
}

apt <- function(...) {
  Sys.setenv(DEBIAN_FRONTEND = "noninteractive")
  options <- c("-y", "-q", "-o", "DPkg::Lock::Timeout=600")
  system2("apt-get", c(options, ...), stdout = FALSE, stdin = "/dev/null")
}

# The list of packages, once.
apt_update <- local({
  is_new <- FALSE
  function() {
    if (!is_new) {
      apt("update")
      is_new <<- TRUE
    }
  }
})

install_by_apt <- function(names) {
  if (length(names) == 0) {
    return(invisible())
  }
  apt_update()
  debs <- paste0("r-cran-", tolower(names))
  known <- vapply(
    debs,
    function(deb) {
      shown <- suppressWarnings(
        system2("apt-cache", c("show", deb), stdout = TRUE, stderr = FALSE)
      )
      length(shown) > 0
    },
    TRUE
  )
  if (any(known)) {
    apt("install", "--no-install-recommends", debs[known])
  }
}

choose_mirror <- function() {
  if (getOption("repos")[["CRAN"]] == "@CRAN@") {
    utils::chooseCRANmirror(graphics = FALSE, ind = 1)
  }
}

# What packages of CRAN need that is not there yet.
dependencies_of <- function(names) {
  needed <- tools::package_dependencies(
    names,
    db = utils::available.packages(),
    recursive = TRUE
  )
  setdiff(unique(unlist(needed)), rownames(utils::installed.packages()))
}

install_from_cran <- function(names, library = writable_library(), ...) {
  # compilers on all cores
  Sys.setenv(
    MAKEFLAGS = paste0("-j", max(1, parallel::detectCores(), na.rm = TRUE))
  )
  utils::install.packages(names, lib = library, quiet = TRUE, ...)
}

# Automatic differentiation, which the package can do without: its tests are
# skipped then. It is written in C++17, which R before 4.3 does not ask for by
# itself, and needs a newer TMB than Debian 12 has.
install_rtmb <- function(version) {
  if (is_there("RTMB", version)) {
    return(invisible())
  }
  cat("Installing RTMB (CRAN; some minutes)\n")
  makevars <- tempfile("Makevars")
  own <- tools::makevars_user()
  writeLines(
    c(
      unlist(lapply(own, readLines)),
      if (getRversion() < "4.3") "CXX = $(CXX17) $(CXX17STD)",
      # without debugging symbols it takes little more than half the time
      "CXXFLAGS += -g0"
    ),
    makevars
  )
  Sys.setenv(R_MAKEVARS_USER = makevars)
  on.exit(Sys.unsetenv("R_MAKEVARS_USER"))
  try({
    choose_mirror()
    if (can_use_apt()) {
      install_by_apt(dependencies_of("RTMB"))
    }
    known <- utils::available.packages()["RTMB", c("Imports", "LinkingTo")]
    needs <- versions_in(paste(known, collapse = ", "))
    install_from_cran(c(names(missing_of(needs)), "RTMB"))
  })
  if (!is_there("RTMB", version)) {
    cat("RTMB is not there: tests of automatic differentiation are skipped.\n")
  }
}

# A server that tests start and stop, and what talks to it. RPostgres is built
# against PostgreSQL's library; the tests are skipped without either.
install_postgres <- function() {
  has_server <- length(Sys.glob("/usr/lib/postgresql/*/bin/initdb")) > 0 ||
    nzchar(Sys.which("initdb"))
  has_client <- is_there("RPostgres", "0")
  if (has_server && has_client) {
    return(invisible())
  }
  try({
    if (can_use_apt()) {
      cat("Installing PostgreSQL (Debian packages)\n")
      apt_update()
      apt(
        "install",
        "--no-install-recommends",
        if (!has_server) "postgresql",
        "libpq-dev"
      )
    }
    if (!has_client) {
      choose_mirror()
      if (can_use_apt()) {
        install_by_apt(c("RPostgres", dependencies_of("RPostgres")))
      }
      if (!is_there("RPostgres", "0")) {
        install_from_cran("RPostgres")
      }
    }
  })
  if (!is_there("RPostgres", "0")) {
    cat("RPostgres is not there: tests of PostgreSQL are skipped.\n")
  }
}

# ---- BLAS --------------------------------------------------------------------

# Debian's OpenBLAS with threads of its own, of which we use one. Measured on
# two cores with version 0.3.21 against the reference BLAS: crossprod() of
# 100,000 x 100 takes a twelfth, an exact iteration on a network a fourth, one
# of 50 rows six tenths of the time. Of Debian's three variants
#
#   -pthread  is right and as fast, in our threads and after a fork;
#   -openmp   waits by spinning: with two threads on two busy cores ten Cholesky
#             factors of a 600 x 600 matrix took 31 s instead of 0.3 s;
#   -serial   is built without locks: of 30,000 products that four threads asked
#             for at a time, 10 were wrong.
openblas <- "libopenblas0-pthread"

# "reference", "serial" or "fine", by the file that R has loaded; of a BLAS that
# R does not name nothing is said.
blas_kind <- function(file) {
  if (grepl("openblas-serial", file, fixed = TRUE)) {
    "serial"
  } else if (grepl("/blas/libblas[.]so|/libRblas[.]|librefblas", file)) {
    "reference"
  } else {
    "fine"
  }
}

# In another process: this one goes on with the BLAS that it has loaded.
blas_of_next_r <- function() {
  code <- "cat(extSoftVersion()[[\"BLAS\"]])"
  file <- suppressWarnings(system2(
    file.path(R.home("bin"), "Rscript"),
    c("--vanilla", "-e", shQuote(code)),
    stdout = TRUE,
    stderr = FALSE
  ))
  paste(file, collapse = "")
}

# Nothing depends on it: what cannot be had is said.
set_up_blas <- function() {
  kind <- blas_kind(extSoftVersion()[["BLAS"]])
  if (kind == "fine") {
    return(invisible())
  }
  what <- c(
    reference = "the reference BLAS, which is slow",
    serial = "OpenBLAS without locks, which is wrong in threads"
  )[[kind]]
  cat("R's BLAS is ", what, ".\n", sep = "")
  if (can_use_apt()) {
    cat("Installing", openblas, "(Debian package)\n")
    apt_update()
    apt("install", "--no-install-recommends", openblas)
    file <- blas_of_next_r()
    if (blas_kind(file) == "fine") {
      cat("R's BLAS is now ", file, ".\n", sep = "")
      return(invisible())
    }
    cat(
      "It still is. To choose another:",
      "update-alternatives --get-selections | grep blas, then --config.\n"
    )
  } else {
    cat(
      "An optimised one, such as", openblas,
      "of Debian, has to be installed by hand.\n"
    )
  }
}

# ---- clang-format ------------------------------------------------------------

# Other versions format otherwise, so it is this one or none (tools/lint.sh).
clang_format <- "clang-format-14"

has_clang_format <- function() {
  for (name in c(clang_format, "clang-format")) {
    if (nzchar(Sys.which(name))) {
      version <- system2(name, "--version", stdout = TRUE)
      if (any(grepl("version 14[.]", version))) {
        return(TRUE)
      }
    }
  }
  FALSE
}

set_up_clang_format <- function() {
  if (has_clang_format()) {
    return(invisible())
  }
  if (can_use_apt()) {
    cat("Installing", clang_format, "(Debian package)\n")
    apt_update()
    apt("install", "--no-install-recommends", clang_format)
  }
  if (!has_clang_format()) {
    cat(clang_format, "is not there: the format of the C is not checked.\n")
  }
}

# ---- the site ----------------------------------------------------------------

# pkgdown has dark colours from 2.1 on, and needs newer packages than Debian 12
# has. They have a library of their own, where tests do not see them.
site_library <- function() {
  file.path(tools::R_user_dir("tallbayes", "cache"), "site-library")
}

# What needs not be compiled, and what the rest is compiled with.
site_debs <- c(
  "r-cran-openssl",
  "r-cran-systemfonts",
  "r-cran-textshaping",
  "r-cran-whisker",
  "r-cran-xml2",
  "libcurl4-openssl-dev",
  "libfreetype-dev",
  "libjpeg-dev",
  "libpng-dev",
  "libtiff-dev"
)

use_library <- function(library) {
  dir.create(library, recursive = TRUE, showWarnings = FALSE)
  .libPaths(c(library, .libPaths()))
  library
}

# Packages of CRAN that need not be fast.
install_aside <- function(names, library) {
  cat("Installing", names, "(CRAN; some minutes)\n")
  makevars <- tempfile("Makevars")
  flags <- c("CFLAGS", "CXXFLAGS", "CXX11FLAGS", "CXX14FLAGS", "CXX17FLAGS")
  writeLines(paste(flags, "= -O0 -g0 -fPIC"), makevars)
  Sys.setenv(R_MAKEVARS_USER = makevars)
  on.exit(Sys.unsetenv("R_MAKEVARS_USER"))
  choose_mirror()
  install_from_cran(
    names,
    library,
    INSTALL_opts = c("--no-docs", "--no-byte-compile", "--no-test-load")
  )
}

# parsnip and tidybayes need newer packages than Debian 12 has, too, some of
# which pkgdown has brought; others, such as ggplot2, the site must not see.
# Tests can do without: they are skipped.
beside_library <- function() {
  file.path(tools::R_user_dir("tallbayes", "cache"), "beside-library")
}

set_up_beside <- function() {
  use_library(site_library())
  library <- use_library(beside_library())
  # the last is what parsnip wants of censored regressions
  wanted <- c(parsnip = "0", tidybayes = "0", prodlim = "0")
  absent <- names(missing_of(wanted))
  if (length(absent) > 0) {
    try({
      if (can_use_apt()) {
        needs <- c("globals", "prettyunits", "purrr", "tidyr", "prodlim")
        install_by_apt(needs)
      }
      absent <- names(missing_of(wanted))
      if (length(absent) > 0) {
        install_aside(absent, library)
      }
    })
  }
  absent <- names(missing_of(wanted))
  if (length(absent) > 0) {
    cat("Not there, tests are skipped:", absent, "\n")
  }
}

set_up_site <- function() {
  library <- use_library(site_library())
  has_browser <- any(nzchar(Sys.which(c("chromium", "chromium-browser"))))
  has_pkgdown <- is_there("pkgdown", "2.1.0")
  if (can_use_apt() && !(has_browser && has_pkgdown)) {
    cat("Installing chromium and what pkgdown needs (Debian packages)\n")
    apt_update()
    apt(
      "install",
      "--no-install-recommends",
      c(if (!has_browser) "chromium", if (!has_pkgdown) site_debs)
    )
  }
  if (!has_pkgdown) {
    install_aside("pkgdown", library)
  }
  if (!is_there("pkgdown", "2.1.0")) {
    cat("pkgdown (>= 2.1.0) could not be installed; please do so by hand.\n")
    quit(status = 1)
  }
}

# ---- all of it ---------------------------------------------------------------

# Those that have functions of their own here, or that neither Debian 12 nor
# some seconds of compiling give. Tests can do without: they are skipped.
own_way <- c(
  "RTMB",
  "RPostgres",
  "marginaleffects",
  "parsnip",
  "projpred",
  "tidybayes"
)

# Packages with the versions that are needed at least.
packages_for <- function(goal) {
  suggested <- wanted("Suggests")
  switch(
    goal,
    lint = c(lintr = "3.0.0"),
    demo = c(wanted("Imports"), suggested[c("bayesplot", "ggplot2")]),
    test = c(wanted("Imports"), suggested[setdiff(names(suggested), own_way)]),
    wanted("Imports")
  )
}

set_up <- function(goal) {
  if (goal == "site") {
    return(set_up_site())
  }
  if (goal == "beside") {
    return(set_up_beside())
  }
  packages <- packages_for(goal)
  # for tools/vignettes.R, which can do without
  optional <- if (goal %in% c("install", "demo")) c(markdown = "1.3")

  if (goal == "lint") {
    set_up_clang_format()
  } else {
    set_up_blas()
  }
  invisible(writable_library())
  absent <- missing_of(c(packages, optional))
  if (length(absent) > 0 && can_use_apt()) {
    cat("Installing", names(absent), "(Debian packages)\n")
    install_by_apt(names(absent))
    absent <- missing_of(absent)
  }
  if (length(absent) > 0) {
    choose_mirror()
    if (can_use_apt()) {
      # what they need need not be compiled
      install_by_apt(dependencies_of(names(absent)))
    }
    cat("Installing", names(absent), "(CRAN)\n")
    install_from_cran(names(absent))
    absent <- missing_of(absent)
  }
  absent <- absent[setdiff(names(absent), names(optional))]
  if (length(absent) > 0) {
    cat(
      "Could not install ",
      paste0(names(absent), " (>= ", absent, ")", collapse = ", "),
      "; please install by hand and try again.\n",
      sep = ""
    )
    quit(status = 1)
  }
  if (goal == "test") {
    install_rtmb(wanted("Suggests")[["RTMB"]])
    install_postgres()
  }
}

# source()d by a test for the functions above
if (sys.nframe() == 0) {
  goals <- commandArgs(trailingOnly = TRUE)
  for (goal in if (length(goals) > 0) goals else "install") {
    set_up(goal)
  }
}
