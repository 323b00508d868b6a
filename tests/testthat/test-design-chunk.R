# Rows of a design from blocks of columns: the same as model.matrix() of all.

set.seed(41)
n_row <- 333
columns <- list(
  y = rnorm(n_row),
  x = rnorm(n_row),
  z = runif(n_row),
  k = rpois(n_row, 3),
  f = factor(sample(letters[1:5], n_row, TRUE)),
  g = sample(c("u", "v", "w"), n_row, TRUE),
  l = runif(n_row) < 0.5,
  o = factor(sample(1:4, n_row, TRUE), ordered = TRUE),
  day = as.Date("2020-01-01") + seq_len(n_row),
  lag = as.difftime(runif(n_row), units = "hours"),
  m = matrix(rnorm(2 * n_row), n_row, dimnames = list(NULL, c("a", "b"))),
  count = matrix(rpois(2 * n_row, 4), n_row)
)
data <- structure(columns, row.names = seq_len(n_row), class = "data.frame")

formulas <- list(
  y ~ 1,
  y ~ x,
  y ~ x + k + l,
  ~ x + f,
  y ~ 0 + x + f,
  y ~ f + 0,
  y ~ l - 1,
  y ~ x * f * g,
  y ~ f:g,
  y ~ 0 + f:g,
  y ~ x:f - 1,
  y ~ x:f,
  y ~ l:x + o,
  y ~ x:k:z + x:z,
  y ~ o * l,
  y ~ day + lag,
  y ~ m + count:g,
  y ~ m:count,
  y ~ poly(x, 3) * l,
  y ~ I(x^2) + log(k + 1) + scale(z) + I(k > 2),
  y ~ splines::ns(x, 4) + factor(k > 3) + offset(z),
  y ~ cut(x, c(-9, 0, 9)) + g,
  y ~ x + offset(log(z)) + f
)

# blocks of whole columns, or of slices
blocks_of <- function(columns, size, whole) {
  n <- NROW(columns[[1]])
  lapply(seq(0, n - 1, by = size), function(first) {
    block <- list(
      columns = columns,
      first = first,
      n = min(size, n - first),
      row = first + 1
    )
    if (!whole) {
      block$columns <- lapply(columns, slice_rows, first, block$n)
      block$first <- 0
    }
    block
  })
}

# All complete rows, through chunks: list(x, y, n_missing).
rows_by_chunks <- function(
  design,
  blocks,
  size,
  env = globalenv(),
  keep = NULL,
  has_y = FALSE,
  ...
) {
  chunk <- new_chunk(design, size, ..., n_y = as.numeric(has_y))
  out <- list(x = NULL, y = NULL, weights = NULL, offset = NULL, n_missing = 0)
  take <- function(chunk, out) {
    rows <- seq_len(chunk$fill)
    out$x <- rbind(out$x, chunk$x[rows, , drop = FALSE])
    for (name in c("y", "weights", "offset")) {
      out[[name]] <- c(out[[name]], chunk[[name]][rows])
    }
    chunk$fill <- 0
    out
  }
  for (block in blocks) {
    values <- block_values(design, block, env)
    target <- function(name) {
      if (!is.null(chunk[[name]])) {
        list(values = block$columns[[name]], first = block$first)
      }
    }
    from <- 0
    while (from < block$n) {
      done <- fill_chunk(
        chunk,
        design,
        values,
        y = target("y"),
        weights = target("weights"),
        offset = target("offset"),
        keep = if (!is.null(keep)) keep[block$row - 1 + seq_len(block$n)],
        from = from
      )
      from <- done$from
      out$n_missing <- out$n_missing + done$n_missing
      if (chunk$fill == size) {
        out <- take(chunk, out)
      }
    }
  }
  take(chunk, out)
}

expect_rows <- function(design, blocks, size, wanted, label) {
  made <- rows_by_chunks(design, blocks, size)$x
  wanted <- unname(wanted)
  attr(wanted, "assign") <- attr(wanted, "contrasts") <- NULL
  expect_identical(dim(made), dim(wanted), info = label)
  scale <- pmax(abs(wanted), 1e-300)
  expect_lt(max(0, abs(made - wanted) / scale), 1e-10, label = label)
}

test_that("every kind of term is written as model.matrix() has it", {
  for (formula in formulas) {
    label <- deparse1(formula)
    frame <- model.frame(formula, data)
    wanted <- model.matrix(formula, frame)
    design <- compile_design(frame)
    expect_false(is.null(design$program), info = label)
    expect_identical(design$columns, colnames(wanted), info = label)
    for (size in c(1, 7, 1000)) {
      for (whole in c(TRUE, FALSE)) {
        blocks <- blocks_of(columns, size, whole)
        expect_rows(design, blocks, c(50, 1000)[[1 + whole]], wanted, label)
      }
    }
  }
})

test_that("without a program model.matrix() writes the blocks", {
  for (formula in formulas) {
    label <- deparse1(formula)
    frame <- model.frame(formula, data)
    design <- compile_design(frame)
    design$program <- NULL
    blocks <- blocks_of(columns, 40, TRUE)
    expect_rows(design, blocks, 50, model.matrix(formula, frame), label)
  }
})

test_that("contrasts are those asked for", {
  asked <- list(
    list(f = "contr.sum", g = "contr.helmert"),
    list(f = contr.poly(5), o = "contr.treatment"),
    list(f = contr.sum(5)[, 1:2], l = "contr.sum")
  )
  for (contrasts in asked) {
    frame <- model.frame(y ~ f * x + g + o + l, data)
    wanted <- model.matrix(y ~ f * x + g + o + l, frame, contrasts)
    design <- compile_design(frame, contrasts)
    expect_false(is.null(design$program))
    expect_identical(design$columns, colnames(wanted))
    expect_rows(design, blocks_of(columns, 100, TRUE), 64, wanted, "contrasts")
  }
  own <- columns
  own$g <- factor(own$g)
  contrasts(own$f, 2) <- contr.helmert(5)
  frame <- model.frame(~ C(g, sum) + f, as.data.frame(own[c("f", "g")]))
  design <- compile_design(frame)
  wanted <- model.matrix(~ C(g, sum) + f, frame)
  expect_rows(design, blocks_of(own, 100, FALSE), 64, wanted, "own contrasts")
  withr::local_options(contrasts = c("contr.sum", "contr.poly"))
  frame <- model.frame(y ~ f * g, data)
  wanted <- model.matrix(y ~ f * g, frame)
  design <- compile_design(frame)
  withr::local_options(contrasts = c("contr.treatment", "contr.poly"))
  expect_rows(design, blocks_of(columns, 9, TRUE), 64, wanted, "options")
})

test_that("rows that lack a value are passed over and counted", {
  holes <- columns
  at <- list(x = 3, k = 4, f = 5:9, g = 10, l = 300, z = 333)
  for (name in names(at)) {
    holes[[name]][at[[name]]] <- NA
  }
  holes$x[20] <- NaN
  holes$m[30, 2] <- NA
  holes$count[31, 1] <- NA
  holes$y[40] <- NA
  formula <- y ~ x + k + f * z + g + l + m + count
  whole <- structure(holes, row.names = seq_len(n_row), class = "data.frame")
  frame <- model.frame(formula, whole)
  wanted <- model.matrix(formula, frame)
  design <- compile_design(frame)
  for (size in c(1, 7, 1000)) {
    blocks <- blocks_of(holes, size, size == 7)
    made <- rows_by_chunks(design, blocks, 20, has_y = TRUE)
    expect_equal(made$x, unname(wanted), ignore_attr = TRUE)
    expect_identical(made$y, as.double(model.response(frame)))
    expect_identical(made$n_missing, n_row - nrow(frame) + 0)
  }
  # without a program as with one
  design$program <- NULL
  made <- rows_by_chunks(design, blocks_of(holes, 50, TRUE), 20, has_y = TRUE)
  expect_equal(made$x, unname(wanted), ignore_attr = TRUE)
  expect_identical(made$n_missing, n_row - nrow(frame) + 0)
})

test_that("targets come along, and rows that are not kept are left out", {
  more <- c(columns, list(weights = columns$k, offset = columns$z))
  more$weights[17] <- NA
  keep <- rep_len(c(TRUE, FALSE, NA, TRUE), n_row)
  design <- compile_design(model.frame(y ~ x + f, data))
  wanted <- model.matrix(y ~ x + f, data)
  rows <- setdiff(which(keep), 17)
  for (size in c(1, 7, 1000)) {
    made <- rows_by_chunks(
      design,
      blocks_of(more, size, TRUE),
      13,
      keep = keep,
      has_y = TRUE,
      has_weights = TRUE,
      has_offset = TRUE
    )
    expect_equal(made$x, wanted[rows, ], ignore_attr = TRUE)
    expect_identical(made$y, columns$y[rows])
    expect_identical(made$weights, as.double(columns$k[rows]))
    expect_identical(made$offset, columns$z[rows])
    expect_identical(made$n_missing, 1)
  }
  # a factor as response
  chunk <- new_chunk(design, n_row)
  values <- block_values(design, blocks_of(columns, n_row, TRUE)[[1]])
  y <- list(values = columns$o, first = 0, table = c(0, 1, 1, 5))
  fill_chunk(chunk, design, values, y = y)
  expect_identical(chunk$y, c(0, 1, 1, 5)[columns$o])
})

test_that("levels are told by their names", {
  design <- compile_design(model.frame(y ~ f * l + g, data))
  wanted <- model.matrix(y ~ f * l + g, data)
  other <- columns
  other$f <- factor(columns$f, c("unused", rev(levels(columns$f)), "none"))
  other$g <- factor(columns$g, c("w", "u", "v"))
  expect_rows(design, blocks_of(other, 100, TRUE), 64, wanted, "levels")
  other$f <- as.character(columns$f)
  expect_rows(design, blocks_of(other, 100, FALSE), 64, wanted, "text")
  # levels that no row of the look has
  unused <- data
  unused$f <- factor(data$f, c(levels(data$f), "unused"))
  design <- compile_design(model.frame(y ~ f, unused))
  wanted <- model.matrix(y ~ f, unused)
  expect_rows(design, blocks_of(columns, 100, TRUE), 64, wanted, "unused")
  # one logical value
  one <- data
  one$l <- TRUE
  design <- compile_design(model.frame(y ~ l, one))
  wanted <- model.matrix(y ~ l, data)
  expect_rows(design, blocks_of(columns, 100, TRUE), 64, wanted, "logical")
})

test_that("unknown levels and infinite numbers name their row and variable", {
  refuse <- function(columns, formula = y ~ f + g + log(z) + x + m, ...) {
    design <- compile_design(model.frame(formula, data))
    for (program in c(TRUE, FALSE)) {
      if (!program) {
        design$program <- NULL
      }
      error <- expect_error(
        rows_by_chunks(design, blocks_of(columns, 50, program), 33, ...),
        class = "tall_error_input"
      )
    }
    expect_match(conditionMessage(error), "row 123", fixed = TRUE)
    error
  }
  bad <- columns
  bad$g[123] <- "unheard"
  error <- refuse(bad)
  expect_identical(error$argument, "g")
  expect_identical(error$value, "unheard")
  bad <- columns
  bad$f <- factor(replace(as.character(columns$f), 123, "new"))
  expect_identical(refuse(bad)$argument, "f")
  # not where the row is left out for another reason, or not wanted
  design <- compile_design(model.frame(y ~ f + x, data))
  bad$x[123] <- NA
  made <- rows_by_chunks(design, blocks_of(bad, 50, TRUE), 33)
  expect_identical(nrow(made$x) + 0, n_row - 1)
  bad$x[123] <- 1
  keep <- seq_len(n_row) != 123
  made <- rows_by_chunks(design, blocks_of(bad, 50, TRUE), 33, keep = keep)
  expect_identical(made$n_missing, 0)
  bad <- columns
  bad$z[123] <- 0
  expect_identical(refuse(bad)$argument, "log(z)")
  bad <- columns
  bad$x[123] <- -Inf
  expect_identical(refuse(bad)$value, -Inf)
  bad <- columns
  bad$m[123, 2] <- Inf
  refuse(bad)
  bad <- columns
  bad$y[123] <- Inf
  expect_identical(refuse(bad, has_y = TRUE)$argument, "y")
})

test_that("a column of another kind is refused", {
  design <- compile_design(model.frame(y ~ x + l + m + f, data))
  wrong <- list(
    x = columns$g,
    l = columns$k,
    m = columns$m[, 1],
    x = columns$m,
    x = columns$f
  )
  for (k in seq_along(wrong)) {
    other <- columns
    other[[names(wrong)[[k]]]] <- wrong[[k]]
    error <- expect_error(
      block_values(design, blocks_of(other, 50, TRUE)[[1]], globalenv()),
      class = "tall_error_input"
    )
    expect_identical(error$argument, names(wrong)[[k]])
  }
  # integers for numbers, and another unit of time
  other <- columns
  other$x <- seq_len(n_row)
  other$lag <- columns$lag
  units(other$lag) <- "mins"
  design <- compile_design(model.frame(y ~ x + lag, data))
  frame <- data
  frame$x <- other$x
  wanted <- model.matrix(y ~ x + lag, frame)
  expect_rows(design, blocks_of(other, 50, TRUE), 40, wanted, "units")
  error <- expect_error(
    block_values(
      compile_design(model.frame(y ~ I(x + 0), data)),
      list(columns = list(), first = 0, n = 7),
      list2env(list(x = 1:3))
    ),
    class = "tall_error_input"
  )
  expect_match(conditionMessage(error), "3 for 7 rows", fixed = TRUE)
})

test_that("terms that look at other rows are found", {
  alone <- ~ x + log(z) + poly(x, 2) + scale(k) + f + l + splines::bs(z, 4) +
    cut(x, c(-9, 0, 9)) + factor(g) + I(m[, 1]) + I(day > day[[1]] - 1e9)
  frame <- model.frame(alone, data)
  found <- row_dependent(
    attr(frame, "terms"),
    columns,
    globalenv()
  )
  # the last reads a row, to no effect
  expect_identical(found, character())
  others <- ~ cut(x, 3) + I(x - mean(x)) + rank(z) + x + I(cumsum(k)) +
    jitter(z) + I(z / max(z)) + f
  frame <- model.frame(others, data)
  before <- .Random.seed
  found <- row_dependent(
    attr(frame, "terms"),
    columns,
    globalenv()
  )
  expect_identical(
    found,
    c(
      "cut(x, 3)",
      "I(x - mean(x))",
      "rank(z)",
      "I(cumsum(k))",
      "jitter(z)",
      "I(z/max(z))"
    )
  )
  expect_identical(before, .Random.seed)
})
