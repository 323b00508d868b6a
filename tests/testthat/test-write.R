# Predictions and draws that are written to files and tables block by block.

written_data <- function(n = 90, seed = 4) {
  withr::with_seed(seed, {
    data <- data.frame(
      x = stats::rnorm(n),
      g = factor(sample(c("u", "v", "w"), n, TRUE)),
      h = sample(1:6, n, TRUE)
    )
    data$count <- stats::rpois(n, exp(0.4 * data$x + 0.3 * (data$g == "v")))
    data$z <- data$x + stats::rnorm(n)
    data$class <- cut(data$z, c(-Inf, -0.6, 0.6, Inf), c("lo", "mid", "hi"))
    data$x[c(1, 5, 40, 41, n)] <- NA
    data
  })
}

run_written <- function(
  formula = count ~ x + g,
  data = written_data(),
  family = stats::poisson(),
  ...
) {
  tall_glm(
    formula, data, family, ...,
    iter = 40, chains = 2, seed = 1, refresh = 0
  )
}

# The same for several tests.
fit_written <- local({
  fit <- NULL
  function() {
    if (is.null(fit)) fit <<- run_written()
    fit
  }
})

# Blocks of some rows.
local_small_blocks <- function(frame = parent.frame()) {
  local_settings(
    written_numbers = 600,
    block_rows = 16,
    block_least = 8,
    .frame = frame
  )
  withr::local_options(tallbayes.refresh = 0, .local_envir = frame)
}

read_written <- function(written) {
  switch(
    written$format,
    parquet = as.data.frame(nanoparquet::read_parquet(written$to)),
    folder = {
      parts <- list.files(written$to, full.names = TRUE)
      as.data.frame(do.call(rbind, lapply(parts, nanoparquet::read_parquet)))
    },
    csv = utils::read.csv(written$to, stringsAsFactors = FALSE),
    table = DBI::dbReadTable(written$to[[1]], written$to[[2]])
  )
}

# Draws x rows of what was written.
matrix_of_written <- function(frame) {
  if (!is.null(frame$value)) {
    n_row <- max(frame$.row)
    expect_identical(frame$.row, rep(seq_len(n_row), each = max(frame$.draw)))
    n_draw <- max(frame$.draw)
    expect_identical(frame$.draw, rep(seq_len(n_draw), n_row))
    return(matrix(as.double(frame$value), max(frame$.draw)))
  }
  expect_identical(frame$.row, seq_len(nrow(frame)))
  own <- startsWith(names(frame), "draw_")
  expect_identical(names(frame)[own], paste0("draw_", seq_len(sum(own))))
  expect_identical(names(frame)[!own], ".row")
  unname(t(as.matrix(frame[own]))) + 0
}

plain_matrix <- function(draws) {
  matrix(as.double(draws), nrow(draws))
}

# A function of the package is another one until the frame ends.
local_swap <- function(name, value, frame = parent.frame()) {
  put <- function(value) {
    space <- asNamespace("tallbayes")
    unlockBinding(name, space)
    assign(name, value, space)
    lockBinding(name, space)
  }
  own <- get(name, asNamespace("tallbayes"))
  withr::defer(put(own), frame)
  put(value)
}

places <- function(con, dir) {
  list(
    parquet = file.path(dir, "draws.parquet"),
    folder = paste0(file.path(dir, "draws"), "/"),
    csv = file.path(dir, "draws.csv"),
    packed = file.path(dir, "draws.csv.gz"),
    table = list(con, "draws")
  )
}

test_that("blocks of rows have the draws that all at once have", {
  known <- conformance_responses()
  for (name in setdiff(names(response_entries()), "categorical")) {
    set.seed(1)
    entry <- find_response(name)
    aux <- known[[entry$table]]$aux
    shape <- c(7, 12)
    if (grepl("_(sigma|shape|phi)$", name) || grepl("^zero", name)) {
      shape <- c(shape, 2)
    }
    mu <- array(stats::runif(prod(shape), 0.2, 0.8), shape)
    mu <- mu + grepl("^truncated", name)
    mu[2 + 7 * 2 + if (length(shape) == 3) c(0, 84) else 0] <- NA
    spread <- seq(0.8, 1.2, length.out = 7)
    if (length(aux) > 0) aux <- drop(outer(spread, aux))
    rows <- list(weight = rep(1:3, 4), trials = if (name == "binomial") {
      rep(1:4, 3)
    })
    drawn <- function(at) {
      own <- if (length(shape) == 3) {
        mu[, at, , drop = FALSE]
      } else {
        mu[, at, drop = FALSE]
      }
      part <- lapply(rows, function(x) if (!is.null(x)) x[at])
      as.double(suppressWarnings(entry$draw(own, aux, part)))
    }
    whole <- with_seed(3, drawn(1:12))
    blocks <- with_seed(3, c(drawn(1:5), drawn(6), drawn(7:12)))
    expect_identical(blocks, whole, label = name)
  }
})

test_that("files and tables have the draws of the matrices", {
  skip_if_not_installed("nanoparquet")
  skip_if_not_installed("rstantools")
  con <- local_sqlite()
  dir <- withr::local_tempdir()
  data <- written_data()
  fit <- fit_written()
  local_small_blocks()
  drawn <- rstantools::posterior_predict(fit, data, ndraws = 30, seed = 2)
  expect_true(anyNA(drawn))
  for (to in places(con, dir)) {
    written <- rstantools::posterior_predict(
      fit, data, ndraws = 30, seed = 2, to = to
    )
    expect_s3_class(written, "tall_written")
    expect_equal(c(written$n_row, written$n_draw), c(90, 30))
    frame <- read_written(written)
    expect_identical(names(frame), written$columns)
    expect_identical(matrix_of_written(frame), plain_matrix(drawn))
  }
  # R's generator goes on
  to <- file.path(dir, "next.parquet")
  set.seed(8)
  drawn <- rstantools::posterior_predict(fit, ndraws = 30)
  after <- stats::runif(1)
  set.seed(8)
  written <- rstantools::posterior_predict(fit, ndraws = 30, to = to)
  expect_identical(stats::runif(1), after)
  expect_identical(matrix_of_written(read_written(written)),
    plain_matrix(drawn))
  # expected ones, of the fit's own rows
  to <- file.path(dir, "mean.csv")
  written <- rstantools::posterior_epred(fit, to = to)
  found <- matrix_of_written(read_written(written))
  expect_equal(found, plain_matrix(rstantools::posterior_epred(fit)),
    tolerance = 1e-14)
  to <- list(con, DBI::Id(table = "link"))
  written <- rstantools::posterior_linpred(fit, newdata = data, to = to)
  expect_equal(
    matrix_of_written(read_written(written)),
    plain_matrix(rstantools::posterior_linpred(fit, newdata = data))
  )
})

test_that("a block is in memory, and each row is passed over once", {
  skip_if_not_installed("nanoparquet")
  skip_if_not_installed("rstantools")
  dir <- withr::local_tempdir()
  data <- written_data()
  fit <- fit_written()
  local_small_blocks()
  n_opened <- n_read <- 0
  stream <- tall_stream(function() {
    n_opened <<- n_opened + 1
    at <- 0
    function() {
      if (at >= 90) {
        return(NULL)
      }
      at <<- at + 30
      n_read <<- n_read + 30
      data[at - 29:0, ]
    }
  })
  to <- paste0(dir, "/draws/")
  n_opened <- n_read <- 0
  sizes <- NULL
  own <- response_draws
  local_swap("response_draws", function(fit, rows, draws) {
    out <- own(fit, rows, draws)
    sizes <<- c(sizes, length(out))
    out
  })
  written <- rstantools::posterior_predict(fit, stream, seed = 2, to = to)
  expect_lte(max(sizes), 600)
  expect_identical(sum(sizes), 90L * 40L)
  expect_gt(length(sizes), 5)
  # names of columns are looked up in the first block
  expect_lte(n_read, 90 + 30 * (n_opened - 1))
  files <- list.files(dir, recursive = TRUE)
  expect_length(files, length(sizes))
  sizes <- NULL
  drawn <- plain_matrix(rstantools::posterior_predict(fit, data, seed = 2))
  expect_identical(matrix_of_written(read_written(written)), drawn)
  # row groups of a file
  to <- file.path(dir, "draws.parquet")
  written <- rstantools::posterior_predict(fit, data, seed = 2, to = to)
  groups <- nanoparquet::read_parquet_metadata(to)$row_groups
  expect_lte(max(groups$num_rows), 600 / 40)
})

test_that("sources are read and written block by block", {
  skip_if_not_installed("nanoparquet")
  skip_if_not_installed("rstantools")
  con <- local_sqlite()
  dir <- withr::local_tempdir()
  data <- written_data()
  fit <- fit_written()
  drawn <- plain_matrix(rstantools::posterior_predict(fit, data, seed = 2))
  local_small_blocks()
  # of a table, to the same connection
  table <- table_of(con, as_sqlite(data))
  written <- rstantools::posterior_predict(
    fit, table, seed = 2, to = list(con, "draws")
  )
  expect_identical(matrix_of_written(read_written(written)), drawn)
  written <- predict(fit, table, se.fit = TRUE, to = list(con, "means"))
  found <- predict(fit, data, se.fit = TRUE)
  frame <- read_written(written)
  expect_identical(names(frame), c(".row", "fit", "se.fit"))
  expect_equal(frame$fit, unname(found$fit))
  expect_equal(frame$se.fit, unname(found$se.fit))
  expect_true(all(c("rows", "draws", "means") %in% DBI::dbListTables(con)))
  # of files
  path <- file.path(dir, "rows.parquet")
  nanoparquet::write_parquet(data, path)
  written <- rstantools::posterior_predict(
    fit, tall_parquet(path), seed = 2, to = file.path(dir, "draws.parquet")
  )
  expect_identical(matrix_of_written(read_written(written)), drawn)
  # the fit's own rows, without those that are missing
  own <- run_written(data = tall_parquet(path), na.action = stats::na.exclude)
  written <- rstantools::posterior_predict(
    own, seed = 2, to = file.path(dir, "own.parquet")
  )
  expect_equal(written$n_row, 85)
  expect_identical(
    matrix_of_written(read_written(written)),
    plain_matrix(rstantools::posterior_predict(own, seed = 2))
  )
  # and with them
  written <- predict(own, to = file.path(dir, "own.csv"))
  expect_equal(written$n_row, 90)
  expect_equal(
    read_written(written)$fit,
    unname(predict(own)),
    tolerance = 1e-14
  )
})

test_that("predictions are those that are returned", {
  con <- local_sqlite()
  dir <- withr::local_tempdir()
  data <- written_data()
  fit <- run_written(data = data, na.action = stats::na.exclude)
  local_small_blocks()
  bounds <- list(
    list(interval = "prediction", type = "response", seed = 3, se.fit = TRUE),
    list(interval = "confidence", level = 0.5)
  )
  for (args in bounds) {
    for (new in list(NULL, data)) {
      args$newdata <- new
      found <- do.call(predict, c(list(fit), args))
      to <- list(to = tempfile(fileext = ".csv", tmpdir = dir))
      frame <- read_written(do.call(predict, c(list(fit), args, to)))
      expect_identical(frame$.row, 1:90)
      sd <- if (is.list(found)) found$se.fit
      found <- if (is.list(found)) found$fit else found
      for (name in colnames(found)) {
        expect_equal(frame[[name]], unname(found[, name]), tolerance = 1e-12)
      }
      expect_equal(frame$se.fit, if (!is.null(sd)) unname(sd))
    }
  }
  # rows that were left out at the end are there
  expect_true(is.na(frame$fit[[90]]))
  omitted <- fit_written()
  frame <- read_written(predict(omitted, to = list(con, "kept")))
  expect_equal(frame$fit, unname(predict(omitted)))
  expect_identical(frame$.row, 1:85)
})

test_that("classes have a line or a column each", {
  skip_if_not_installed("nanoparquet")
  skip_if_not_installed("rstantools")
  con <- local_sqlite()
  dir <- withr::local_tempdir()
  data <- written_data()
  fit <- tall_multinom(
    class ~ x, data, iter = 60, chains = 1, seed = 1, refresh = 0
  )
  local_small_blocks()
  levels <- c("lo", "mid", "hi")
  to <- file.path(dir, "class.parquet")
  frame <- read_written(predict(fit, data, to = to))
  expect_identical(frame$fit, unname(predict(fit, data)))
  frame <- read_written(predict(fit, data, to = list(con, "class")))
  expect_identical(frame$fit, as.character(predict(fit, data)))
  to <- file.path(dir, "probs.parquet")
  frame <- read_written(predict(fit, data, "probs", se.fit = TRUE, to = to))
  found <- predict(fit, data, "probs", se.fit = TRUE)
  expect_equal(unname(as.matrix(frame[paste0("fit.", levels)])),
    unname(found$fit))
  expect_equal(unname(as.matrix(frame[paste0("se.fit.", levels)])),
    unname(found$se.fit))
  found <- unname(rstantools::posterior_epred(fit, data))
  written <- rstantools::posterior_epred(fit, data, to = list(con, "p"))
  frame <- read_written(written)
  expect_identical(frame$.category, rep(rep(levels, each = 30), 90))
  expect_identical(frame$.row, rep(1:90, each = 90))
  expect_equal(frame$value, as.double(aperm(found, c(1, 3, 2))))
  to <- file.path(dir, "p.parquet")
  frame <- read_written(rstantools::posterior_epred(fit, data, to = to))
  expect_identical(frame$.category, rep(levels, 90))
  expect_equal(frame$draw_7, as.double(t(found[7, , ])))
  to <- file.path(dir, "drawn.parquet")
  written <- rstantools::posterior_predict(fit, data, seed = 2, to = to)
  expect_identical(written$levels, levels)
  expect_identical(
    matrix_of_written(read_written(written)),
    plain_matrix(rstantools::posterior_predict(fit, data, seed = 2))
  )
})

test_that("effects of groups are the same in all blocks", {
  skip_if_not_installed("nanoparquet")
  skip_if_not_installed("rstantools")
  dir <- withr::local_tempdir()
  data <- written_data()
  fit <- tall_glmer(
    count ~ x + (1 | h), data, stats::poisson(),
    iter = 60, chains = 1, seed = 1, refresh = 0
  )
  local_small_blocks()
  new <- data
  new$h[c(3, 50, 80)] <- c(11, 12, 11)
  drawn <- rstantools::posterior_predict(
    fit, new, seed = 2, allow_new_levels = TRUE
  )
  written <- rstantools::posterior_predict(
    fit, new, seed = 2, allow_new_levels = TRUE,
    to = file.path(dir, "new.parquet")
  )
  expect_identical(matrix_of_written(read_written(written)),
    plain_matrix(drawn))
  stream <- list(data[1:50, ], data[51:90, ])
  written <- rstantools::posterior_predict(
    fit, stream, seed = 2, to = file.path(dir, "known.parquet")
  )
  expect_identical(
    matrix_of_written(read_written(written)),
    plain_matrix(rstantools::posterior_predict(fit, data, seed = 2))
  )
  to <- file.path(dir, "both.csv")
  predict(fit, data, "response", interval = "confidence", draws = 20, to = to)
  found <- predict(fit, data, "response", interval = "confidence", draws = 20)
  expect_equal(
    as.matrix(utils::read.csv(to)[c("fit", "lwr", "upr")]),
    unname(found),
    ignore_attr = TRUE,
    tolerance = 1e-12
  )
  expect_error(
    rstantools::posterior_predict(
      fit, stream, allow_new_levels = TRUE, to = file.path(dir, "no.csv")
    ),
    class = "tall_error_unsupported"
  )
  expect_false(file.exists(file.path(dir, "no.csv")))
})

test_that("other fits write, too", {
  skip_if_not_installed("nanoparquet")
  skip_if_not_installed("rstantools")
  skip_if_not_installed("survival")
  dir <- withr::local_tempdir()
  file <- function() tempfile(tmpdir = dir, fileext = ".parquet")
  data <- written_data()
  local_small_blocks()
  # two predictors
  fit <- tall_glm(
    list(z ~ x, sigma ~ g), data,
    iter = 60, chains = 1, seed = 1, refresh = 0
  )
  written <- rstantools::posterior_epred(fit, data, dpar = "sigma", to = file())
  found <- rstantools::posterior_epred(fit, data, dpar = "sigma")
  expect_equal(matrix_of_written(read_written(written)), plain_matrix(found))
  written <- rstantools::posterior_predict(fit, data, seed = 2, to = file())
  # products of matrices are rounded otherwise in other blocks
  expect_equal(
    matrix_of_written(read_written(written)),
    plain_matrix(rstantools::posterior_predict(fit, data, seed = 2)),
    tolerance = 1e-13
  )
  # hazards of strata
  data$time <- exp(0.3 * data$z) * 2
  fit <- tall_surv(
    Surv(time, h > 2) ~ x + strata(g), data,
    iter = 60, chains = 1, seed = 1, refresh = 0
  )
  new <- data[stats::complete.cases(data), ]
  written <- rstantools::posterior_predict(fit, new, seed = 2, to = file())
  expect_identical(
    matrix_of_written(read_written(written)),
    plain_matrix(rstantools::posterior_predict(fit, new, seed = 2))
  )
  times <- c(1, 2)
  written <- predict(fit, new, "survival", times, se.fit = TRUE, to = file())
  found <- predict(fit, new, "survival", times, se.fit = TRUE)
  frame <- read_written(written)
  expect_equal(frame$fit.2, unname(found$fit[, "2"]))
  expect_equal(frame$se.fit.1, unname(found$se.fit[, "1"]))
  # networks
  fit <- tall_nn(
    z ~ x, new,
    hidden = 2, train_iter = 20, iter = 40, chains = 1, seed = 1, refresh = 0
  )
  frame <- read_written(predict(fit, new, to = file()))
  expect_equal(frame[-1], predict(fit, new), ignore_attr = TRUE)
  frame <- read_written(predict(fit, new, type = "response", to = file()))
  expect_equal(frame$fit, unname(predict(fit, new, type = "response")))
})

test_that("what cannot be written to is refused before anything is made", {
  skip_if_not_installed("nanoparquet")
  con <- local_sqlite()
  dir <- withr::local_tempdir()
  data <- written_data()
  fit <- fit_written()
  refused <- function(to, ..., class = "tall_error_input") {
    error <- expect_error(predict(fit, data, to = to, ...), class = class)
    conditionMessage(error)
  }
  expect_match(refused("draws.xlsx"), "parquet")
  refused(file.path(dir, "draws"))
  refused(7)
  refused(c("a.csv", "b.csv"))
  refused(data)
  expect_match(refused(file.path(dir, "none", "a.csv")), "none")
  refused(list(con))
  expect_match(refused(list("con", "name")), "connection")
  refused(list(con, ""))
  refused(list(con, 3))
  refused(file.path(dir, "a.csv"), overwrite = NA)
  closed <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
  DBI::dbDisconnect(closed)
  expect_match(refused(list(closed, "name")), "closed")
  expect_error(
    predict(fit, data[0, ], to = file.path(dir, "a.csv")),
    class = "tall_error_input"
  )
  expect_length(list.files(dir, all.files = TRUE, no.. = TRUE), 0)
  expect_error(
    check_writes_with("tallbayes.none", "Files are written"),
    class = "tall_error_unsupported"
  )
})

test_that("what is there is replaced where that is said", {
  skip_if_not_installed("nanoparquet")
  con <- local_sqlite()
  dir <- withr::local_tempdir()
  data <- written_data()
  fit <- fit_written()
  local_small_blocks()
  for (to in places(con, dir)) {
    written <- predict(fit, data, to = to)
    error <- expect_error(predict(fit, data, to = to),
      class = "tall_error_input")
    expect_match(conditionMessage(error), "overwrite")
    predict(fit, data[1:7, ], to = to, overwrite = TRUE)
    expect_identical(read_written(written)$.row, 1:7)
  }
  # folders of one's own are kept
  writeLines("mine", file.path(dir, "draws", "mine.txt"))
  expect_error(
    predict(fit, data, to = places(con, dir)$folder, overwrite = TRUE),
    class = "tall_error_input"
  )
  dir.create(file.path(dir, "own.csv"))
  expect_error(
    predict(fit, data, to = file.path(dir, "own.csv"), overwrite = TRUE),
    class = "tall_error_input"
  )
  expect_error(
    predict(fit, data, to = file.path(dir, "draws.csv/"), overwrite = TRUE),
    class = "tall_error_input"
  )
})

test_that("what fails midway leaves nothing, and what was there", {
  skip_if_not_installed("nanoparquet")
  skip_if_not_installed("rstantools")
  con <- local_sqlite()
  dir <- withr::local_tempdir()
  data <- written_data()
  fit <- fit_written()
  local_small_blocks()
  failing <- tall_stream(function() {
    at <- 0
    function() {
      at <<- at + 30
      if (at > 60) stop("gone")
      data[at - 29:0, ]
    }
  })
  odd <- data
  odd$g <- as.character(odd$g)
  odd$g[[70]] <- "new"
  odd <- list(odd[1:60, ], odd[61:90, ])
  for (to in places(con, dir)) {
    for (new in list(failing, odd)) {
      expect_error(
        rstantools::posterior_predict(fit, new, to = to),
        class = "tall_error"
      )
    }
  }
  expect_length(list.files(dir, all.files = TRUE, no.. = TRUE), 0)
  expect_length(DBI::dbListTables(con), 0)
  # while a block is written, of rows in memory
  own <- written_draws
  n <- 0
  local_swap("written_draws", function(...) {
    n <<- n + 1
    if (n > 3) stop("full") else own(...)
  })
  DBI::dbWriteTable(con, "draws", data["x"])
  for (to in places(con, dir)) {
    n <- 0
    expect_error(
      rstantools::posterior_predict(fit, data, to = to, overwrite = TRUE),
      "full"
    )
  }
  expect_length(list.files(dir, all.files = TRUE, no.. = TRUE), 0)
  expect_identical(DBI::dbReadTable(con, "draws")$x, data$x)
  # in a transaction of the user's, which goes on
  DBI::dbBegin(con)
  DBI::dbWriteTable(con, "mine", data["h"])
  n <- 0
  expect_error(
    rstantools::posterior_predict(fit, data, to = list(con, "other")),
    "full"
  )
  expect_identical(sort(DBI::dbListTables(con)), c("draws", "mine"))
  n <- -1000
  rstantools::posterior_predict(fit, data, to = list(con, "other"))
  DBI::dbCommit(con)
  expect_setequal(DBI::dbListTables(con), c("draws", "mine", "other"))
})

test_that("what was written says what it is", {
  con <- local_sqlite()
  dir <- withr::local_tempdir()
  fit <- fit_written()
  local_small_blocks()
  withr::local_dir(dir)
  shown <- capture.output(print(predict(fit, to = "means.csv")))
  expect_identical(shown, c(
    "<tall_written> Predictions of 85 rows",
    "in means.csv, text",
    "columns: .row, fit"
  ))
  written <- rstantools::posterior_predict(fit, to = "draws.csv")
  expect_output(print(written), "40 draws of 85 rows")
  expect_output(print(written), "draw_1, draw_2, ..., draw_40")
  written <- rstantools::posterior_predict(fit, to = list(con, "draws"))
  expect_output(print(written), "the table draws")
})
