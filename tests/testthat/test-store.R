# tall_store(): rows in a file.

skip_on_os("windows")

stored_rows <- function(n = 2000, seed = 3) {
  withr::local_seed(seed)
  x <- cbind("(Intercept)" = 1, a = stats::rnorm(n), b = stats::rexp(n))
  list(x = x, y = stats::rbinom(n, 1, stats::plogis(x %*% c(-1, 1, 0.5))))
}

local_path <- function(env = parent.frame()) {
  withr::local_tempfile(fileext = ".tall", .local_envir = env)
}

# Bytes of a file from `at` on (counted from 0) are others.
put_bytes <- function(path, at, bytes) {
  all <- readBin(path, raw(), file.size(path))
  all[at + seq_along(bytes)] <- as.raw(bytes)
  writeBin(all, path)
}

expect_file_error <- function(code, path, says) {
  e <- expect_error(code, class = "tall_error_data")
  expect_identical(e$file, path)
  message <- one_line(e)
  expect_match(message, basename(path), fixed = TRUE)
  expect_match(message, says, fixed = TRUE)
}

test_that("rows come back as they were written, however they came", {
  x <- stored_rows()$x
  first <- tall_store(x, local_path())
  expect_s3_class(first, "tall_store")
  expect_identical(dim(first), dim(x))
  expect_identical(nrow(first), nrow(x))
  expect_identical(colnames(first), colnames(x))
  expect_identical(as.matrix(first), x)
  expect_identical(first[c(5, 2, 2000), ], x[c(5, 2, 2000), ])
  expect_identical(first[-(1:1990), "b"], x[-(1:1990), "b"])
  expect_identical(first[3, 2:3, drop = FALSE], x[3, 2:3, drop = FALSE])
  expect_identical(tall_store(file = first$file), first)
  parts <- list(x[1:7, ], as.data.frame(x[8:1999, ]), x[2000, , drop = FALSE])
  at <- 0
  for (given in list(
    as.data.frame(x),
    parts,
    function() {
      at <<- at + 1
      if (at <= length(parts)) parts[[at]]
    }
  )) {
    store <- tall_store(given, local_path(), block = 100)
    expect_identical(store$hash, first$hash)
    expect_identical(as.matrix(store), x)
  }
  plain <- tall_store(matrix(1:6, 3), local_path())
  expect_null(colnames(plain))
  expect_identical(plain[, ], matrix(as.double(1:6), 3))
})

test_that("means and standard deviations stand in the file", {
  x <- stored_rows()$x
  x[, "b"] <- x[, "b"] + 1e6
  store <- tall_store(x, local_path())
  expect_equal(store$mean, unname(colMeans(x)), tolerance = 1e-14)
  expect_equal(store$sd, unname(apply(x, 2, stats::sd)), tolerance = 1e-9)
})

test_that("names may have any letters", {
  x <- matrix(1:4 / 2, 2, dimnames = list(NULL, c("gr\u00f6\u00dfe", "")))
  store <- tall_store(x, local_path())
  expect_identical(colnames(store), colnames(x))
})

test_that("a store prints its shape and place", {
  store <- tall_store(stored_rows()$x, local_path())
  says <- "<tall_store> 2,000 rows, 3 columns"
  expect_output(print(store), says, fixed = TRUE)
  expect_output(print(store), store$file, fixed = TRUE)
  unlink(store$file)
  expect_output(print(store), "(not there)", fixed = TRUE)
})

test_that("draws are to the bit those of rows in memory", {
  rows <- stored_rows()
  run <- function(model, kernel, ...) {
    fit <- sg_sample(
      model,
      kernel,
      ...,
      iter = 50,
      warmup = 10,
      chains = 2,
      seed = 1,
      refresh = 0
    )
    plain_draws(fit)
  }
  for (type in c("double", "float")) {
    store <- tall_store(rows$x, local_path(), type = type)
    mapped <- model_glm(store, rows$y)
    dense <- model_glm(rows$x, rows$y, storage = type)
    expect_identical(mapped$fingerprint, dense$fingerprint)
    expect_false(model_info(mapped)$has_whiten)
    expect_identical(find_mode(mapped), find_mode(dense))
    for (part in list(
      list(kernel_sgld(1e-4)),
      list(kernel_sgld(1e-4), gradient_simple(), subsample_uniform(20)),
      list(kernel_mala(1e-3)),
      list(kernel_smh())
    )) {
      expect_identical(
        do.call(run, c(list(mapped), part)),
        do.call(run, c(list(dense), part))
      )
    }
  }
})

test_that("fits of a file are those of the matrix, and go on from a file", {
  rows <- stored_rows(4000)
  store <- tall_store(rows$x, local_path())
  fit <- function(x, y, ...) {
    tall_glm.fit(x, y, ..., iter = 400, chains = 2, seed = 1, refresh = 0)
  }
  mapped <- fit(store, rows$y, binomial())
  dense <- fit(rows$x, rows$y, binomial())
  # the same posterior by other minibatches: a frame has no rows' weights
  expect_equal(mapped$mode$estimate, dense$mode$estimate, tolerance = 1e-9)
  distance <- coef(mapped) - coef(dense)
  expect_lt(max(abs(distance) / sqrt(diag(vcov(dense)))), 0.25)
  new <- rows$x[1:5, ]
  expect_equal(
    predict(mapped, new),
    predict(dense, new),
    tolerance = 0.1
  )
  # products of other numbers of rows may round otherwise
  expect_equal(
    predict(mapped)[1:5],
    unname(predict(mapped, new)),
    tolerance = 1e-13,
    ignore_attr = TRUE
  )
  expect_identical(model.matrix(mapped), rows$x)
  path <- withr::local_tempfile()
  saveRDS(mapped, path)
  expect_lt(file.size(path), 8 * length(rows$x))
  again <- sg_resume(readRDS(path), 20)
  expect_identical(plain_draws(again), plain_draws(sg_resume(mapped, 20)))

  # exact where sums are enough
  y <- drop(rows$x %*% c(1, 2, 3)) + rows$y
  expect_equal(
    plain_draws(fit(store, y)),
    plain_draws(fit(rows$x, y)),
    tolerance = 1e-8
  )
})

test_that("a fit whose file is gone or another one says so", {
  rows <- stored_rows()
  store <- tall_store(rows$x, local_path())
  fit <- tall_glm.fit(
    store,
    rows$y,
    binomial(),
    iter = 20,
    chains = 1,
    seed = 1,
    refresh = 0
  )
  path <- withr::local_tempfile()
  saveRDS(fit, path)
  other <- rows$x
  other[7, 2] <- 0
  tall_store(other, store$file, overwrite = TRUE)
  # what has the old file mapped goes on with it
  expect_no_error(sg_resume(fit, 5))
  saved <- readRDS(path)
  expect_file_error(sg_resume(saved, 5), store$file, "other rows than it had")
  expect_file_error(model_glm(store, rows$y), store$file, "other rows")
  unlink(store$file)
  expect_file_error(sg_resume(saved, 5), store$file, "does not exist")
  expect_file_error(store[1, ], store$file, "does not exist")
})

test_that("files that are no whole files of rows are refused", {
  x <- stored_rows(300)$x
  path <- file.path(withr::local_tempdir(), "rows.tall")
  broken <- function(...) {
    tall_store(x, path, overwrite = TRUE)
    put_bytes(path, ...)
  }
  says <- function(what) expect_file_error(tall_store(file = path), path, what)
  says("does not exist")
  writeLines(rep("no file of rows", 100), path)
  says("is not a file that")
  broken(8, 1:4)
  says("another order of bytes")
  broken(12, 9)
  says("another version")
  broken(24, 9)
  says("damaged")
  broken(90, 255)
  says("damaged")
  tall_store(x, path, overwrite = TRUE)
  bytes <- readBin(path, raw(), file.size(path))
  for (n in c(20, 100, length(bytes) - 1)) {
    writeBin(bytes[seq_len(n)], path)
    says("ends before its rows do")
  }
  writeBin(raw(0), path)
  says("is not a file that")
})

test_that("every byte of the rows is told before a model has them", {
  x <- stored_rows(300)$x
  y <- rep(0:1, 150)
  wide <- cbind(x, matrix(rnorm(300 * 60) + 5, 300)) # 63 of 64 numbers a row
  told <- 0
  for (of in list(
    list(x = x, type = "double"),
    list(x = x, type = "float"),
    list(x = wide, type = "double")
  )) {
    store <- tall_store(of$x, local_path(), type = of$type)
    path <- store$file
    bytes <- readBin(path, raw(), file.size(path))
    first <- 65536
    at <- withr::with_seed(1, sample(seq(first, length(bytes) - 1), 20))
    if (ncol(of$x) == 63) {
      at[[1]] <- first + 8 * 63 + 6 # of what fills a row up
    }
    for (k in at) {
      put_bytes(path, k, as.integer(xor(bytes[k + 1], as.raw(1))))
      e <- expect_error(model_glm(store, y), class = "tall_error_corrupt")
      expect_identical(e$file, path)
      expect_match(one_line(e), basename(path), fixed = TRUE)
      told <- told + 1
      writeBin(bytes, path)
    }
    expect_s3_class(model_glm(store, y), "tall_model")
  }
  expect_identical(told, 60)
})

test_that("who reads all rows of a damaged file is told its name", {
  x <- stored_rows(300)$x
  store <- tall_store(x, local_path())
  expect_s3_class(model_glm(store, rep(0:1, 150)), "tall_model")
  # NaN, and a number that is huge: of the last row
  size <- file.size(store$file)
  for (bytes in list(rep(255, 8), c(1, 1, 1, 1, 1, 1, 0xe0, 0x7f))) {
    put_bytes(store$file, size - 8, bytes)
    for (read in list(
      function() model_glm(store, rep(0:1, 150)),
      function() model_classes(store, rep(1:3, 100)),
      function() tall_glm.fit(store, rep(0:1, 150), binomial()),
      function() tall_glm(a ~ b, data = store, refresh = 0),
      function() as.matrix(store)
    )) {
      e <- expect_error(read(), class = "tall_error_corrupt")
      expect_identical(e$file, store$file)
    }
    expect_identical(store[1:2, ], x[1:2, ])
  }
})

test_that("a file that stays as it is is compared once", {
  x <- stored_rows(300)$x
  store <- tall_store(x, local_path())
  seen <- function() exists(store$file, stores_checked)
  as.matrix(store)
  expect_false(seen()) # what is written next may have the same times
  local_settings(store_settles = -1)
  as.matrix(store)
  expect_true(seen())
  put_bytes(store$file, file.size(store$file) - 1, 77)
  # as if that had left the times as they were
  stores_checked[[store$file]][[3]] <- file_times(store$file)
  expect_false(identical(as.matrix(store), x)) # as far as the times tell
  Sys.setFileTime(store$file, Sys.time() - 100)
  expect_error(as.matrix(store), class = "tall_error_corrupt")
})

test_that("no file is replaced that came while rows were written", {
  x <- stored_rows(300)$x
  folder <- withr::local_tempdir()
  path <- file.path(folder, "rows.tall")
  n <- 0
  comes <- function() {
    n <<- n + 1
    if (n == 2) writeLines("mine", path)
    if (n < 3) x
  }
  e <- expect_error(tall_store(comes, path), class = "tall_error_input")
  expect_match(one_line(e), "came while rows were written", fixed = TRUE)
  expect_identical(readLines(path), "mine")
  expect_identical(list.files(folder), "rows.tall")
  n <- 0
  store <- tall_store(comes, path, overwrite = TRUE)
  expect_identical(as.matrix(store), rbind(x, x))
  expect_identical(list.files(folder), "rows.tall")
})

test_that("what a killed writer left goes with the next one, and no more", {
  skip_on_cran()
  skip_if_not(file.exists("/proc/locks"), "how long a process has run")
  x <- stored_rows(300)$x
  folder <- withr::local_tempdir()
  left <- function() list.files(folder, "^writing-")
  child <- parallel::mcparallel({
    n <- 0
    tall_store(
      function() {
        n <<- n + 1
        if (n > 1) Sys.sleep(60)
        x
      },
      file.path(folder, "never.tall")
    )
  })
  withr::defer(tools::pskill(child$pid, tools::SIGKILL))
  wait_until(function() length(left()) > 0, 10)
  being_written <- left()
  expect_length(being_written, 1)
  # a file that is whole is a user's, whatever its name
  whole <- tall_store(x, file.path(folder, "writing-0123456789.tall"))
  inner <- function() {
    tall_store(x, file.path(folder, "inner.tall"), overwrite = TRUE)
    n <<- n + 1
    if (n < 3) x
  }
  n <- 0
  outer <- tall_store(inner, file.path(folder, "outer.tall"))
  expect_identical(as.matrix(outer), rbind(x, x))
  expect_setequal(left(), c(being_written, basename(whole$file)))
  tools::pskill(child$pid, tools::SIGKILL)
  suppressWarnings(parallel::mccollect(child)) # which says so
  expect_setequal(left(), c(being_written, basename(whole$file)))
  tall_store(x, file.path(folder, "next.tall"))
  expect_identical(left(), basename(whole$file))
  expect_identical(as.matrix(whole), x)
})

test_that("nothing is left of what cannot be written", {
  x <- stored_rows(300)$x
  folder <- withr::local_tempdir()
  path <- file.path(folder, "rows.tall")
  refuse <- function(..., class = "tall_error_input") {
    e <- expect_error(tall_store(...), class = class)
    expect_length(list.files(folder), 0)
    one_line(e)
  }
  bad <- x
  bad[250, 2] <- NA
  expect_match(refuse(bad, path), "row 250, column 2 (`a`)", fixed = TRUE)
  blocks <- list(as.data.frame(x), as.data.frame(bad))
  expect_match(refuse(blocks, path, block = 100), "row 550, column 2")
  bad[250, 2] <- 1e39
  blocks <- list(as.data.frame(x), as.data.frame(bad))
  said <- refuse(blocks, path, type = "float")
  expect_match(said, "row 550, column 2 (`a`) is 1e+39", fixed = TRUE)
  expect_match(refuse(list(x, x[, -1]), path), "blocks of 3 columns")
  expect_match(refuse(data.frame(a = "b"), path), "numbers")
  expect_match(refuse(function() NULL, path), "at least one row|not none")
  expect_error(refuse(function() stop("gone"), path), "gone")
  expect_match(refuse(x, path, type = "half"), "\"double\" or \"float\"")
  expect_match(refuse(x, 3), "`file`")
  said <- refuse(x, file.path(folder, "no", "rows"), class = "tall_error_data")
  expect_match(said, "no folder")
})

test_that("a file is only replaced when that is asked for", {
  x <- stored_rows(300)$x
  store <- tall_store(x, local_path())
  refused <- expect_error(tall_store(-x, store$file), "already")
  expect_s3_class(refused, "tall_error_input")
  expect_identical(as.matrix(store), x)
  expect_error(
    tall_store(function() stop("gone"), store$file, overwrite = TRUE),
    "gone"
  )
  expect_identical(as.matrix(store), x)
  tall_store(-x, store$file, overwrite = TRUE)
  expect_identical(as.matrix(tall_store(file = store$file)), -x)
})

test_that("a full disk is told before anything is written", {
  x <- stored_rows(300)$x
  path <- file.path(withr::local_tempdir(), "rows.tall")
  blocks <- list(next_block = function() x)
  expect_file_error(
    write_store(blocks, new_store_writer(path, "double", 2^50)),
    path,
    "there is no space for it"
  )
})

test_that("the shape of a file must be that of the response", {
  rows <- stored_rows(300)
  store <- tall_store(rows$x, local_path())
  expect_error(
    model_glm(store, rows$y[-1]),
    "`x` has 300 rows but `y` has 299",
    class = "tall_error_input"
  )
  expect_error(
    tall_glm.fit(store, rows$y[-1], binomial(), refresh = 0),
    "`x` has 300 rows but `y` has 299",
    class = "tall_error_input"
  )
  expect_error(
    tall_glm.fit(store, rows$y, binomial(), weights = rep(0:1, 150)),
    "rows of a file cannot be left out",
    class = "tall_error_input"
  )
  expect_error(
    model_glm(store, rows$y, storage = "float"),
    "doubles",
    class = "tall_error_input"
  )
  expect_error(model_ica(store), class = "tall_error_input")
  expect_error(model_network(store, rows$y), class = "tall_error_input")
  expect_error(store[1], "x[i, j]", fixed = TRUE, class = "tall_error_input")
  expect_error(store[301, ], class = "tall_error_input")
  expect_error(store[, "c"], class = "tall_error_input")
  store$file <- 3
  expect_error(model_glm(store, rows$y), class = "tall_error_corrupt")
})

test_that("several processes map one file", {
  skip_on_cran()
  rows <- stored_rows()
  store <- tall_store(rows$x, local_path())
  draw <- function(...) {
    fit <- sg_sample(
      model_glm(store, rows$y),
      kernel_sgld(1e-4),
      iter = 20,
      chains = 1,
      seed = 1,
      refresh = 0
    )
    plain_draws(fit)
  }
  together <- parallel::mclapply(1:2, draw, mc.cores = 2)
  expect_identical(together, list(draw(), draw()))
})
