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

test_that("the sample is there on every machine", {
  local_no_data()
  sepsis <- tall_data("sepsis_sample")
  expect_s3_class(sepsis, "data.frame", exact = TRUE)
  expect_identical(dim(sepsis), c(5000L, 4L))
  expect_named(sepsis, names(sepsis_types))
  expect_false(anyNA(sepsis))
})

test_that("a missing file never turns into the sample", {
  folder <- local_no_data()
  e <- expect_error(tall_data("sepsis"), class = "tall_error_data")
  expect_identical(e$file, "sepsis.csv.xz")
  expect_identical(e$folders[[1]], folder)
  message <- gsub("\\s+", " ", conditionMessage(e))
  expect_match(message, "sepsis.csv.xz", fixed = TRUE)
  expect_match(message, "TALLBAYES_DATA", fixed = TRUE)
  expect_match(message, "doi:10.24432/C53C8N", fixed = TRUE)
  expect_match(message, "tall_data(\"sepsis_sample\")", fixed = TRUE)
})

test_that("the cache is searched after the folder", {
  folder <- local_no_data()
  set <- data_sets$sepsis
  expect_null(data_find(set))
  cache <- tools::R_user_dir("tallbayes", "cache")
  dir.create(cache, recursive = TRUE)
  file.create(file.path(cache, set$file))
  expect_identical(data_find(set), file.path(cache, set$file))
  file.create(file.path(folder, set$file))
  expect_identical(data_find(set), file.path(folder, set$file))
})

test_that("a file that is something else is refused in words", {
  folder <- local_no_data()
  path <- file.path(folder, "sepsis.csv.xz")
  refused <- function(data) {
    if (is.character(data)) {
      writeLines(data, path)
    } else {
      utils::write.csv(data, path, row.names = FALSE)
    }
    e <- expect_error(tall_data("sepsis"), class = "tall_error_data")
    gsub("\\s+", " ", conditionMessage(e))
  }
  sample <- tall_data("sepsis_sample")
  expect_match(refused(sample[1:3]), "cannot be read")
  expect_match(refused(sample[4:1]), "columns must be age_years, sex_0male")
  expect_match(refused(sample), "must have 110,204 rows, not 5,000")
  altered <- sample[rep_len(1:5000, 110204), ]
  expect_match(refused(altered), "checksum")
  expect_match(refused("not a table"), "cannot be read")
})

test_that("an unknown data set is refused in words", {
  expect_snapshot(tall_data("sepsi"), error = TRUE, cnd_class = TRUE)
  expect_snapshot(tall_data(1), error = TRUE)
})

test_that("the checksum is of values, names and types", {
  a <- data.frame(x = 1:3, y = c(0.1, 2, 1e-20))
  expect_identical(data_checksum(a), data_checksum(a[1:3, ]))
  b <- a
  b$y[[3]] <- 2e-20
  expect_false(data_checksum(a) == data_checksum(b))
  expect_false(data_checksum(a) == data_checksum(stats::setNames(a, 1:2)))
  b <- transform(a, x = as.double(x))
  expect_false(data_checksum(a) == data_checksum(b))
})

for (name in setdiff(names(data_sets), "sepsis_sample")) {
  test_that(paste("the full data set reads as its entry says:", name), {
    skip_without_data(name)
    data <- tall_data(name)
    expect_named(data, names(data_sets[[name]]$types))
    expect_false(anyNA(data))
  })
}

test_that("the sample is a part of the whole", {
  skip_without_data("sepsis")
  key <- function(data) table(do.call(paste, data))
  whole <- key(tall_data("sepsis"))
  part <- key(tall_data("sepsis_sample"))
  expect_true(all(names(part) %in% names(whole)))
  expect_true(all(part <= whole[names(part)]))
})
