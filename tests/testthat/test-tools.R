# What a checkout has and a source package has not.

tool <- function(name) {
  path <- test_path("..", "..", "tools", name)
  testthat::skip_if_not(file.exists(path), "tools/ is not part of the package")
  env <- new.env(parent = globalenv())
  sys.source(path, env)
  env
}

test_that("vignettes are found in a package installed from a checkout", {
  skip_if_not_installed("markdown")
  tools <- tool("vignettes.R")
  root <- withr::local_tempdir()
  dir.create(file.path(root, "Meta"))
  withr::local_dir(test_path("..", ".."))
  expect_output(tools$add_vignettes(root), "getting-started")
  index <- readRDS(file.path(root, "Meta", "vignette.rds"))
  sources <- list.files("vignettes", "[.]Rmd$")
  expect_identical(index$File, sources)
  title <- index$Title[sources == "getting-started.Rmd"]
  expect_identical(title, "Getting started")
  for (page in file.path(root, "doc", index$PDF)) {
    html <- readLines(page, encoding = "UTF-8")
    expect_match(html, "<title>", all = FALSE)
    # no options of chunks are left, no links to pictures that are not there
    expect_no_match(html, "```|opts_chunk|src=\"figures/")
  }
})

test_that("a slow BLAS and one that is wrong in threads are known", {
  tools <- tool("setup.R")
  folder <- "/usr/lib/x86_64-linux-gnu/"
  kinds <- c(
    "blas/libblas.so.3.11.0" = "reference",
    "openblas-serial/libblas.so.3" = "serial",
    "openblas-pthread/libblas.so.3" = "fine",
    "openblas-pthread/libopenblasp-r0.3.21.so" = "fine",
    "libmkl_rt.so" = "fine"
  )
  for (file in names(kinds)) {
    expect_identical(tools$blas_kind(paste0(folder, file)), kinds[[file]])
  }
  expect_identical(tools$blas_kind("/usr/lib/R/lib/libRblas.so"), "reference")
  expect_identical(tools$blas_kind(""), "fine")
})

# The expressions of R in vignette("add-a-member"). Its C is compiled and tested
# by `make -C tools/core-check guide`.
guide_code <- function() {
  page <- test_path("..", "..", "vignettes", "add-a-member.Rmd")
  skip_if_not(file.exists(page), "vignettes/ is not beside the tests")
  lines <- readLines(page)
  inside <- FALSE
  code <- character()
  for (line in lines) {
    if (startsWith(line, "```")) {
      inside <- line == "```{r}"
    } else if (inside) {
      code <- c(code, line)
    }
  }
  parse(text = code, keep.source = TRUE)
}

# An environment with the functions among them.
guide_functions <- function(code) {
  made <- new.env(parent = asNamespace("tallbayes"))
  is_function <- vapply(code, function(e) {
    identical(e[[1]], quote(`<-`)) && identical(e[[3]][[1]], quote(`function`))
  }, TRUE)
  for (expression in code[is_function]) {
    eval(expression, made)
  }
  made
}

# Methods of generics of the package, until the frame ends.
local_methods <- function(made, frame = parent.frame()) {
  package <- asNamespace("tallbayes")
  table <- package[[".__S3MethodsTable__."]]
  methods <- guide_methods(made)
  for (method in methods) {
    generic <- sub("[.]tall_.*", "", method)
    registerS3method(
      generic,
      substring(method, nchar(generic) + 2),
      made[[method]],
      package
    )
  }
  withr::defer(rm(list = methods, envir = table), frame)
}

guide_methods <- function(made) {
  grep("[.]tall_", ls(made), value = TRUE)
}

test_that("the R of vignette(\"add-a-member\") fits the package", {
  code <- guide_code()
  # functions are made, entries of conformance tests are only read
  made <- guide_functions(code)
  expect_s3_class(made$response_geometric(), "tall_response")
  expect_s3_class(made$kernel_tula(0.1), "tall_kernel_tula")
  expect_s3_class(made$subsample_recent(4, 2), "tall_subsample_recent")
  expect_s3_class(made$schedule_halving(40), "tall_schedule_halving")
  # methods are of generics that there are, and take what these hand on
  methods <- guide_methods(made)
  expect_gt(length(methods), 3)
  for (method in methods) {
    generic <- get(sub("[.]tall_.*", "", method), asNamespace("tallbayes"))
    expect_identical(
      names(formals(made[[method]])),
      names(formals(generic)),
      label = method
    )
  }
  # functions that are called are there; in tests, or yours, are the others
  parts <- utils::getParseData(code)
  called <- unique(parts$text[parts$token == "SYMBOL_FUNCTION_CALL"])
  is_there <- vapply(called, exists, TRUE, envir = made, mode = "function")
  expect_setequal(
    called[!is_there],
    c(
      "momentum",
      "gradient_mine",
      "entry",
      "model_mine",
      "mixed_rows",
      "is_string",
      "local_tempfile",
      "expect_source"
    )
  )
})

test_that("the source of vignette(\"add-a-member\") obeys the laws", {
  code <- guide_code()
  made <- guide_functions(code)
  local_methods(made)
  entry <- Filter(function(e) {
    identical(e[[1]], quote(test_that)) && e[[2]] == "text of fixed width"
  }, as.list(code))
  expect_length(entry, 1)
  laws <- new.env(parent = environment())
  laws$tall_fwf <- made$tall_fwf
  eval(entry[[1]][[3]], laws)
  of <- function(rows) {
    file <- withr::local_tempfile(.local_envir = parent.frame())
    text <- lapply(rows, function(x) ifelse(is.na(x), "", as.character(x)))
    writeLines(do.call(paste0, lapply(text, formatC, width = 9)), file)
    types <- vapply(rows, function(column) class(column)[[1]], "")
    made$tall_fwf(file, rep(9, length(types)), types)
  }
  # in several blocks, whose factors have their own levels
  made$block_rows <- 4
  rows <- mixed_rows()
  rows$group <- as.character(rows$group)
  expect_source(of(rows), rows)
  # and fits as any other
  rows <- source_rows(200)
  draws <- function(data) {
    tall_glm(x ~ k, data = data, seed = 1, refresh = 0)$draws
  }
  expect_identical(draws(of(rows)), draws(tall_stream(opener(rows, 4))))
})

test_that("the front end of vignette(\"add-a-member\") fits as tall_glm()", {
  tall_logit <- guide_functions(guide_code())$tall_logit
  rows <- withr::with_seed(3, data.frame(x = rnorm(400), z = rnorm(400)))
  rows$y <- withr::with_seed(4, rbinom(400, 1, plogis(rows$x)))
  prior <- prior_student(4, 0, 2.5, autoscale = TRUE)
  for (data in list(rows, tall_stream(opener(rows, 150)))) {
    fit <- tall_logit(y ~ x + z, data = data, seed = 1, refresh = 0)
    same <- tall_glm(
      y ~ x + z,
      data = data,
      family = binomial(),
      prior = prior,
      prior_intercept = prior,
      seed = 1,
      refresh = 0
    )
    expect_s3_class(fit, c("tall_logit", "tall_glm", "tall_fit"), exact = FALSE)
    expect_identical(fit$draws, same$draws)
    new <- rows[1:5, ]
    expect_identical(predict(fit, new), predict(same, new))
    expect_identical(as.list(fit$call)[[1]], quote(tall_logit))
    again <- update(fit, . ~ x, seed = 1, refresh = 0)
    expect_identical(formula(again), y ~ x, ignore_formula_env = TRUE)
  }
  expect_error(
    tall_logit(y ~ x, data = rows, lamda = 1),
    class = "tall_error_input"
  )
})

test_that("files that vignette(\"add-a-member\") names are there", {
  root <- test_path("..", "..")
  page <- file.path(root, "vignettes", "add-a-member.Rmd")
  skip_if_not(file.exists(page), "vignettes/ is not beside the tests")
  text <- paste(readLines(page), collapse = "\n")
  named <- regmatches(
    text,
    gregexpr("\\b(R|src|tests|tools)/[A-Za-z0-9_./*<>-]*", text)
  )[[1]]
  named <- unique(sub("[.]$", "", named))
  expect_gt(length(named), 20)
  # of the examples
  new <- "(geometric|tula|columns|source-fwf|front-logit)[.][cR]$|<name>"
  named <- grep(new, named, invert = TRUE, value = TRUE)
  is_there <- lengths(lapply(file.path(root, named), Sys.glob)) > 0
  expect_identical(named[!is_there], character())
})

# The house of these files, each a text.
house_of <- function(tools, ...) {
  folder <- withr::local_tempdir(.local_envir = parent.frame())
  files <- list(...)
  for (name in names(files)) {
    writeLines(files[[name]], file.path(folder, name))
  }
  tools$read_house(folder)
}

test_that("uses of other rooms are seen, however they are made", {
  tools <- tool("layers.R")
  below <- "down <- function(x) UP"
  above <- c(
    "up <- function() 1",
    "print.up <- function(x, ...) x",
    "up_default <- 3"
  )
  uses <- c(
    "up()",
    "lapply(x, up)",
    "lapply(x, \"up\")",
    "do.call(\"up\", list())",
    "list(f = up)",
    "tallbayes::up()",
    "rlang::exec(\"up\")",
    "print.up(x)",
    "{ up <- up(); up }",
    "function(y = up_default) y"
  )
  for (use in uses) {
    files <- list("util-a.R" = sub("UP", use, below), "fit-b.R" = above)
    house <- do.call(house_of, c(list(tools), files))
    expect_length(tools$upward_arrows(house), 1)
    expect_match(tools$upward_arrows(house), "^R/util-a.R: down uses [a-z._]+ ")
  }
  # its own variables and what it is given
  for (none in c("{ up <- x + 1; up }", "lapply(x, function(up) up())")) {
    files <- list("util-a.R" = sub("UP", none, below), "fit-b.R" = above)
    house <- do.call(house_of, c(list(tools), files))
    expect_identical(tools$upward_arrows(house), character())
  }
})

test_that("a generic may stand below its methods, and not above", {
  tools <- tool("layers.R")
  generic <- c(
    "reach <- function(x) UseMethod(\"reach\")",
    "f <- function(x) reach(x)"
  )
  method <- "reach.far <- function(x) 1"
  house <- house_of(tools, "util-a.R" = generic, "fit-b.R" = method)
  expect_identical(tools$upward_arrows(house), character())
  house <- house_of(tools, "util-a.R" = method, "fit-b.R" = generic)
  expect_identical(
    tools$upward_arrows(house),
    "R/util-a.R: reach.far uses reach of R/fit-b.R"
  )
})

test_that("circles of files are told by their shortest way", {
  tools <- tool("layers.R")
  house <- house_of(
    tools,
    "util-a.R" = c("a <- function() b()", "a2 <- function() c()"),
    "util-b.R" = "b <- function() c()",
    "util-c.R" = "c <- function() a()",
    "util-d.R" = "d <- function() a()",
    "fit-e.R" = "e <- function() f()",
    "fit-f.R" = "f <- list(e)"
  )
  circles <- tools$file_circles(house)
  expect_length(circles, 2)
  expect_match(circles[[1]], "^3 files .* R/util-a.R R/util-b.R R/util-c.R\n")
  expect_match(circles[[1]], "a2 uses c of R/util-c.R")
  expect_no_match(circles[[1]], "b uses c")
  expect_match(circles[[2]], "R/fit-f.R: f uses e of R/fit-e.R", fixed = TRUE)
})

test_that("long files, wide functions and doubles are told", {
  tools <- tool("layers.R")
  wide <- "function(a, b, c, d, e, f, g, h, i) 1"
  house <- house_of(
    tools,
    "util-a.R" = c(paste("wide <-", wide), paste("shown <-", wide)),
    "fit-b.R" = c(
      paste("print.far <-", wide),
      paste("reach.far <-", wide),
      "reach <- function(x) UseMethod(\"reach\")"
    ),
    "attic.R" = c("wide <- 1", character(500))
  )
  expect_identical(tools$unknown_rooms(house), "no room is called attic")
  expect_match(tools$defined_twice(house), "^wide is defined in R/attic.R and")
  expect_match(tools$long_files(house), "^R/attic.R has 501 lines")
  space <- withr::local_tempfile()
  writeLines(
    c("export(shown)", "S3method(print,far)", "S3method(reach,far)"),
    space
  )
  told <- tools$wide_functions(house, tools$exports_of(space, house))
  expect_match(told, "^R/fit-b.R: reach.far has 9 arguments", all = FALSE)
  expect_match(told, ": wide has", all = FALSE)
  expect_length(told, 2)
})

test_that("the picture has the uses of a room, and of those below", {
  tools <- tool("layers.R")
  house <- house_of(
    tools,
    "util-a.R" = "a <- 1",
    "util-b.R" = "b <- a",
    "fit-c.R" = c("c <- list(a, b)", "d <- a")
  )
  picture <- tools$draw_house(house)
  expect_identical(picture[[1]], " 2 fit       1   3   .")
  expect_identical(picture[[2]], " 1 util      2   1")
  page <- c("before", tools$markers[[1]], "old", tools$markers[[2]], "after")
  drawn <- tools$with_picture(page, picture)
  expect_true(all(picture %in% drawn))
  expect_false("old" %in% drawn)
  expect_identical(tools$with_picture(drawn, picture), drawn)
})

test_that("CONTRIBUTING.md has the order of the rooms", {
  tools <- tool("layers.R")
  root <- test_path("..", "..")
  page <- paste(readLines(file.path(root, "CONTRIBUTING.md")), collapse = " ")
  of_r <- setdiff(names(tools$rooms), c("tallbayes", "zzz"))
  of_c <- readLines(file.path(root, "tools", "core-check", "rooms"))
  for (order in list(of_r, of_c)) {
    order <- paste0("From the ground up: ", toString(order), ".")
    expect_match(page, order, fixed = TRUE)
  }
})

test_that("every file of R/ has tests, by its name or as the table says", {
  tools <- tool("tests.R")
  found <- tools$read_files(test_path("..", ".."))
  expect_gt(length(found$files), 100)
  made <- tools$tests_of(found$files, found$tests)
  expect_identical(names(made)[lengths(made) == 0], character())
  expect_identical(tools$stale_tests(found$files, found$tests), character())
  expect_identical(
    tools$tests_of(
      c("diag-ksd.R", "fit-loo.R", "fit-nn-plot.R", "prior-lkj.R", "zz-none.R"),
      c("ksd", "loo-compare", "nn", "priors")
    ),
    list(
      "diag-ksd.R" = "ksd",
      "fit-loo.R" = "loo-compare",
      "fit-nn-plot.R" = "nn",
      "prior-lkj.R" = "priors",
      "zz-none.R" = character()
    )
  )
})
