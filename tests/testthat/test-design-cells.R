# Sums over cells, against those over rows.

# Rows of a design with factors, numbers, both and their products; and how they
# are read in SQL, of which only names are needed.
cell_problem <- function(formula, n = 500) {
  data <- withr::with_seed(4, data.frame(
    x = rnorm(n, 1e4, 3),
    z = rexp(n),
    a = sample(letters[1:4], n, TRUE),
    b = sample(c("u", "v", "w"), n, TRUE),
    y = rnorm(n, 50),
    weight = runif(n)
  ))
  design <- compile_design(stats::model.frame(formula, data))
  variables <- lapply(design$variables, function(v) list(kind = v$kind))
  names(variables) <- vapply(design$variables, `[[`, "", "name")
  s <- list(variables = variables)
  x <- stats::model.matrix(formula, data)
  pilot <- list(x = x[1:50, ], y = data$y[1:50], weights = rep(2, 50))
  cells <- cells_of_design(s, design, pilot)
  number <- function(a) {
    names <- names(variables)[cells$parts[[a]]]
    Reduce(`*`, data[names], rep(1, n)) - cells$centre[[a]]
  }
  u <- vapply(seq_along(cells$parts)[-1], number, numeric(n))
  levels <- names(variables)[cells$factors]
  codes <- Map(match, data[levels], cells$levels)
  names(codes) <- names(cells$levels)
  list(data = data, x = x, cells = cells, u = cbind(rep(1, n), u),
    codes = codes)
}

cell_formulas <- list(
  y ~ x,
  y ~ a,
  y ~ x + a + b,
  y ~ 0 + a + x:b,
  y ~ a * b * x + z:x,
  y ~ a:b
)

test_that("sums over cells are sums over rows", {
  for (formula in cell_formulas) {
    p <- cell_problem(formula)
    n <- nrow(p$x)
    cell <- if (length(p$codes) > 0) {
      as.integer(interaction(p$codes, drop = TRUE))
    } else {
      rep(1L, n)
    }
    first <- match(seq_len(max(cell)), cell)
    f <- values_by_cell(p$cells, max(cell), lapply(p$codes, `[`, first))
    sum_by <- function(columns) unname(rowsum(columns, cell))
    pairs <- pairs_of_parts(ncol(p$u))
    w <- p$data$weight
    products <- sum_by(w * p$u[, pairs[, 1]] * p$u[, pairs[, 2]])
    shift <- p$cells$shift[seq_len(ncol(p$x))]
    for (origin in list(numeric(ncol(p$x)), shift)) {
      x <- sweep(p$x, 2, origin)
      pieces <- columns_in_parts(p$cells, f, origin)
      near <- function(found, wanted) {
        size <- outer(sqrt(colSums(w * x^2)), sqrt(colSums(w * x^2)))
        size <- if (is.matrix(wanted)) size else sqrt(diag(size) * sum(w))
        expect_lt(max(abs(found - wanted) / (size + 1e-300)), 1e-12)
      }
      near(sums_of_columns(pieces, sum_by(w * p$u)), colSums(w * x))
      near(products_of_columns(pieces, products), crossprod(x, w * x))
      squares <- squares_of_columns(pieces, products)
      expect_equal(squares, unname(colSums(w * x^2)), tolerance = 1e-12)
    }
  }
})

test_that("numbers by levels are those of the columns", {
  for (formula in cell_formulas) {
    p <- cell_problem(formula)
    d <- ncol(p$x)
    value <- function(terms) {
      parts <- lapply(terms, function(term) {
        at <- rep(1, nrow(p$x))
        step <- 1
        for (k in as.character(term$factors)) {
          at <- at + (p$codes[[k]] - 1) * step
          step <- step * length(p$cells$levels[[k]])
        }
        u <- p$u[, term$parts, drop = FALSE]
        apply(u, 1, prod) * term$table[1, at]
      })
      Reduce(`+`, parts)
    }
    theta <- seq(1, 2, length.out = d) * 1e-3
    eta <- value(terms_by_levels(p$cells, rbind(theta)))
    expect_equal(eta, unname(drop(p$x %*% theta)), tolerance = 1e-12)
    # of columns far from zero none of the digits are lost
    w <- chol(solve(crossprod(sweep(p$x, 2, 0)) + diag(1e-3, d)))
    square <- value(square_by_levels(p$cells, w))
    wanted <- unname(rowSums(tcrossprod(p$x, w)^2))
    expect_equal(square, wanted, tolerance = 1e-7)
  }
})

test_that("sums that no factor needs can be asked for by themselves", {
  con <- local_sqlite()
  local_short_look(500)
  local_settings(cell_numbers = 1)
  rows <- table_rows()
  table <- table_of(con, rows)
  calls <- alist(
    tall_glm(y ~ x + word + wait + factor(k):w, data, binomial()),
    tall_glm(y ~ x + wait, data, binomial(), weights = w),
    tall_glm(z ~ x + word + wait, data, weights = w)
  )
  for (call in calls) {
    call$refresh <- 0
    eval(bquote(expect_same_passes(.(call), table, rows)))
  }
})

test_that("queries grow with levels and not with pairs of columns", {
  con <- local_sqlite()
  local_short_look(500)
  rows <- withr::with_seed(2, data.frame(
    y = rnorm(4000),
    a = sample(100, 4000, TRUE),
    b = sample(50, 4000, TRUE),
    x = rnorm(4000) # so that rows are not of few kinds
  ))
  seen <- character()
  table_of(con, rows)
  told <- watched(con, function(sql) {
    seen <<- c(seen, sql)
    sql
  })
  table <- dplyr::tbl(told, "rows")
  fit <- tall_glm(y ~ factor(a) + factor(b) + x, table, refresh = 0)
  expect_identical(length(fit$variables), 151L)
  expect_true(any(is_pass_query(seen)))
  expect_lt(max(nchar(seen)), 1e4)
  expect_equal(
    unname(coef(tall_glm(y ~ factor(a) + factor(b) + x, rows, refresh = 0))),
    unname(coef(fit)),
    tolerance = 0.05
  )
})

test_that("ranges are asked for where the first rows may be of few kinds", {
  con <- local_sqlite()
  local_short_look(500)
  rows <- withr::with_seed(2, data.frame(
    y = rbinom(4000, 1, 0.4),
    a = sample(5, 4000, TRUE),
    x = rnorm(4000)
  ))
  table_of(con, rows)
  n_ranges <- function(formula) {
    seen <- character()
    told <- watched(con, function(sql) {
      seen <<- c(seen, sql)
      sql
    })
    table <- dplyr::tbl(told, "rows")
    tall_glm(formula, table, binomial(), refresh = 0, iter = 100, seed = 1)
    sum(grepl("low1", seen))
  }
  expect_identical(n_ranges(y ~ a), 1L)
  expect_identical(n_ranges(y ~ a + x), 0L)
})
