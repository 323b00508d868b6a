# A PostgreSQL server of the tests' own: on loopback, run by an ordinary user,
# stopped when the tests end.

postgres_place <- new.env()

# list(dir, port, stop()); NULL: there is no PostgreSQL.
start_postgres <- function() {
  bin <- postgres_bin()
  if (is.null(bin)) {
    return(NULL)
  }
  # a socket's path is short
  dir <- tempfile("pg", "/tmp")
  dir.create(dir)
  run <- postgres_runner(dir)
  if (is.null(run)) {
    return(NULL)
  }
  port <- free_port()
  data <- file.path(dir, "data")
  tool <- function(name) file.path(bin, name)
  status <- run(tool("initdb"), "-D", data, "-A", "trust", "-U", "tester",
    "-E", "UTF8", "--locale=C", "-N")
  if (status == 0) {
    options <- sprintf("-c listen_addresses=127.0.0.1 -c fsync=off -p %d -k %s",
      port, dir)
    status <- run(tool("pg_ctl"), "-D", data, "-w", "-o", options,
      "-l", file.path(dir, "log"), "start")
  }
  if (status != 0) {
    unlink(dir, recursive = TRUE)
    return(NULL)
  }
  list(
    port = port,
    stop = function() {
      run(tool("pg_ctl"), "-D", data, "-m", "immediate", "-w", "stop")
      unlink(dir, recursive = TRUE)
    }
  )
}

postgres_bin <- function() {
  known <- c(
    Sys.glob("/usr/lib/postgresql/*/bin"),
    dirname(Sys.which("initdb"))
  )
  has <- file.exists(file.path(known, "initdb")) &
    file.exists(file.path(known, "pg_ctl"))
  if (any(has)) rev(known[has])[[1]]
}

# initdb refuses root, who becomes another user.
postgres_runner <- function(dir) {
  is_root <- identical(Sys.info()[["effective_user"]], "root")
  if (is_root && (!nzchar(Sys.which("runuser")) ||
    system2("id", "postgres", stdout = FALSE, stderr = FALSE) != 0)) {
    return(NULL)
  }
  if (is_root) {
    system2("chown", c("postgres", dir))
  }
  function(...) {
    args <- shQuote(c(...))
    before <- setwd(dir)
    on.exit(setwd(before))
    if (is_root) {
      system2("runuser", c("-u", "postgres", "--", args), stdout = FALSE,
        stderr = FALSE)
    } else {
      system2(args[[1]], args[-1], stdout = FALSE, stderr = FALSE)
    }
  }
}

free_port <- function() {
  for (port in sample(20000:60000, 50)) {
    socket <- tryCatch(serverSocket(port), error = function(e) NULL)
    if (!is.null(socket)) {
      close(socket)
      return(port)
    }
  }
}

# A connection to a server that lasts until the end of the tests. `which`:
# another server for each number.
local_postgres <- function(which = 1, frame = parent.frame()) {
  skip_on_cran()
  skip_if_not_installed("dbplyr")
  suppressWarnings(skip_if_not_installed("RPostgres"))
  name <- paste0("server", which)
  if (is.null(postgres_place[[name]])) {
    server <- start_postgres()
    if (is.null(server)) {
      skip("no PostgreSQL server can be started")
    }
    postgres_place[[name]] <- server
    withr::defer(
      {
        server$stop()
        rm(list = name, envir = postgres_place)
      },
      testthat::teardown_env()
    )
  }
  # its packages ask the system for the time zone
  con <- suppressWarnings(DBI::dbConnect(
    RPostgres::Postgres(),
    host = "127.0.0.1",
    port = postgres_place[[name]]$port,
    user = "tester",
    dbname = "postgres"
  ))
  withr::defer(if (DBI::dbIsValid(con)) DBI::dbDisconnect(con), frame)
  con
}
