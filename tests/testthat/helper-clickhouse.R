# Two ClickHouse servers of the tests' own, on loopback, that know each other:
# they run as this user, and end with the tests.

clickhouse_place <- new.env()

start_clickhouse <- function() {
  server <- Sys.which("clickhouse-server")
  if (!nzchar(server)) {
    return(NULL)
  }
  dir <- tempfile("clickhouse", "/tmp")
  ports <- vapply(1:6, function(k) free_port(), 1L)
  pids <- vapply(1:2, function(k) {
    own <- file.path(dir, k)
    dir.create(own, recursive = TRUE)
    writeLines(clickhouse_config(own, ports[3 * k - 2:0], ports[c(1, 4)]),
      file.path(own, "config.xml"))
    writeLines(clickhouse_users, file.path(own, "users.xml"))
    command <- paste("cd", shQuote(own), "; nohup", shQuote(server),
      "--config-file=config.xml > out 2>&1 & echo $!")
    as.integer(system(command, intern = TRUE))
  }, 1L)
  stop <- function() {
    tools::pskill(pids, tools::SIGKILL)
    unlink(dir, recursive = TRUE)
  }
  for (port in ports[c(1, 4)]) {
    if (!waits_for_port(port)) {
      stop()
      return(NULL)
    }
  }
  list(ports = ports[c(1, 4)], stop = stop)
}

waits_for_port <- function(port) {
  for (i in 1:100) {
    socket <- suppressWarnings(tryCatch(
      socketConnection("127.0.0.1", port, timeout = 1),
      error = function(e) NULL
    ))
    if (!is.null(socket)) {
      close(socket)
      return(TRUE)
    }
    Sys.sleep(0.1)
  }
  FALSE
}

# own: TCP, HTTP and what servers say to each other; all: the servers.
clickhouse_config <- function(dir, own, all) {
  in_dir <- function(name) file.path(dir, name)
  c(
    "<?xml version=\"1.0\"?>",
    "<yandex>",
    "<logger><level>error</level>",
    sprintf("<log>%s</log><errorlog>%s</errorlog></logger>", in_dir("log"),
      in_dir("err")),
    sprintf("<tcp_port>%d</tcp_port><http_port>%d</http_port>", own[[1]],
      own[[2]]),
    sprintf("<interserver_http_port>%d</interserver_http_port>", own[[3]]),
    "<listen_host>127.0.0.1</listen_host>",
    "<mark_cache_size>10000000</mark_cache_size>",
    sprintf("<path>%s/</path><tmp_path>%s/</tmp_path>", in_dir("data"),
      in_dir("tmp")),
    "<users_config>users.xml</users_config>",
    "<default_profile>default</default_profile>",
    "<default_database>default</default_database>",
    "<mlock_executable>false</mlock_executable>",
    "<remote_servers><both>",
    sprintf("<shard><replica><host>127.0.0.1</host><port>%d</port></replica>
      </shard>", all),
    "</both></remote_servers>",
    "</yandex>"
  )
}

clickhouse_users <- c(
  "<?xml version=\"1.0\"?>",
  "<yandex><profiles><default></default></profiles>",
  "<users><default><password></password><networks><ip>127.0.0.1</ip>",
  "</networks><profile>default</profile><quota>default</quota></default>",
  "</users><quotas><default></default></quotas></yandex>"
)

# Functions that connect to each of the two servers. RClickhouse is in a library
# of its own (TALLBAYES_CLICKHOUSE_LIB) or wherever it is installed.
local_clickhouse <- function(frame = parent.frame()) {
  skip_on_cran()
  skip_if_not_installed("dbplyr")
  library <- Sys.getenv("TALLBAYES_CLICKHOUSE_LIB")
  paths <- c(if (nzchar(library)) library, .libPaths())
  withr::local_libpaths(paths, .local_envir = frame)
  if (!requireNamespace("RClickhouse", quietly = TRUE)) {
    skip("RClickhouse is not on this machine (TALLBAYES_CLICKHOUSE_LIB)")
  }
  if (is.null(clickhouse_place$server)) {
    clickhouse_place$server <- start_clickhouse()
    if (is.null(clickhouse_place$server)) {
      skip("no ClickHouse server can be started")
    }
    withr::defer(
      {
        clickhouse_place$server$stop()
        rm(server, envir = clickhouse_place)
      },
      testthat::teardown_env()
    )
  }
  lapply(clickhouse_place$server$ports, function(port) {
    rlang::new_function(list(), quote({
      .libPaths(paths)
      driver <- getExportedValue("RClickhouse", "clickhouse")()
      DBI::dbConnect(driver, host = "127.0.0.1", port = port)
    }), list2env(list(port = port, paths = paths), parent = globalenv()))
  })
}
