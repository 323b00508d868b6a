# Smooth terms in the design: mgcv is the oracle.

skip_if_not_installed("mgcv")

smooth_data <- function(n = 400, seed = 1) {
  set.seed(seed)
  data.frame(
    y = rnorm(n),
    x = runif(n, -1, 3),
    z = rnorm(n),
    w = rexp(n),
    g = factor(sample(c("a", "b", "d"), n, TRUE)),
    h = sample(c("u", "v"), n, TRUE)
  )
}

frame_of_smooths <- function(formula, data, knots = NULL) {
  formula <- smooth_formula(formula, knots)
  stats::model.frame(formula, data)
}

one_smooth <- function(formula, data, knots = NULL) {
  terms_smooths(attr(frame_of_smooths(formula, data, knots), "terms"))[[1]]
}

# mgcv's own columns at new values, by smoothCon(), smooth2random(), and
# PredictMat(): list(random by penalty, fixed).
by_mgcv <- function(spec, data, new, knots = NULL) {
  object <- mgcv::smoothCon(
    spec,
    data,
    knots = knots,
    absorb.cons = TRUE,
    modCon = 3
  )[[1]]
  split <- mgcv::smooth2random(object, "", type = 2)
  x <- mgcv::PredictMat(object, new)
  if (split$fixed) {
    return(list("0" = x))
  }
  if (!is.null(split$trans.U)) {
    x <- x %*% split$trans.U
  }
  x <- x * rep(split$trans.D, each = nrow(x))
  lapply(
    split(seq_len(ncol(x)), split$pen.ind),
    function(at) x[, at, drop = FALSE]
  )
}

# The same space; of what is penalised, with the same penalty, up to its scale.
expect_same_blocks <- function(ours, theirs, tolerance) {
  expect_identical(names(ours), names(theirs))
  for (k in names(theirs)) {
    law <- function(x) {
      v <- tcrossprod(if (k == "0") qr.Q(qr(x)) else x)
      v / sum(diag(v))
    }
    difference <- law(ours[[k]]) - law(theirs[[k]])
    expect_lt(max(abs(difference)), tolerance)
  }
}

blocks_of_smooth <- function(smooth, new) {
  x <- smooth_values(smooth, new)
  lapply(split(seq_len(ncol(x)), smooth$columns$block), function(at) {
    x[, at, drop = FALSE]
  })
}

# tp takes every value where mgcv is given none: knots are given to both
knots_of <- function(smooth) {
  object <- smooth$basis$object
  if (!is.null(object$Xu)) {
    list(x = as.vector(object$Xu) + as.vector(object$shift))
  }
}

test_that("columns are those of smoothCon(), smooth2random(), PredictMat()", {
  d <- smooth_data()
  new <- smooth_data(50, seed = 2)
  new$x <- new$x * 1.3
  specs <- list(
    list(y ~ s(x, k = 9), mgcv::s(x, k = 9)),
    list(y ~ s(x, k = 6, bs = "ts"), mgcv::s(x, k = 6, bs = "ts")),
    list(y ~ s(x, k = 9, bs = "cr"), mgcv::s(x, k = 9, bs = "cr")),
    list(y ~ s(x, bs = "cs"), mgcv::s(x, bs = "cs")),
    list(y ~ s(x, bs = "cc"), mgcv::s(x, bs = "cc")),
    list(y ~ s(x, bs = "ps"), mgcv::s(x, bs = "ps")),
    list(y ~ s(x, bs = "bs"), mgcv::s(x, bs = "bs")),
    list(y ~ s(x, bs = "cp"), mgcv::s(x, bs = "cp")),
    list(y ~ s(x, bs = "cr", fx = TRUE), mgcv::s(x, bs = "cr", fx = TRUE)),
    list(y ~ t2(x, z), mgcv::t2(x, z)),
    list(y ~ t2(x, z, k = c(4, 6)), mgcv::t2(x, z, k = c(4, 6))),
    list(y ~ s(g, bs = "re"), mgcv::s(g, bs = "re")),
    list(y ~ s(g, z, bs = "re"), mgcv::s(g, z, bs = "re")),
    list(
      y ~ s(x, g, k = 5, bs = "fs", xt = list(bs = "cr")),
      mgcv::s(x, g, k = 5, bs = "fs", xt = list(bs = "cr"))
    ),
    list(y ~ s(x, by = z, bs = "cr"), mgcv::s(x, by = z, bs = "cr"))
  )
  for (spec in specs) {
    own <- one_smooth(spec[[1]], d)
    theirs <- by_mgcv(spec[[2]], d, new, knots_of(own))
    expect_same_blocks(blocks_of_smooth(own, new), theirs, 1e-12)
  }
  # a curve for each level is mgcv's of that level
  own <- one_smooth(y ~ s(x, by = g, bs = "cr"), d)
  theirs <- mgcv::smoothCon(
    mgcv::s(x, by = g, bs = "cr"),
    d,
    absorb.cons = TRUE
  )
  x <- smooth_values(own, new)
  for (k in 1:3) {
    a <- x[, own$columns$smooth == paste0("s(x):g", c("a", "b", "d")[[k]])]
    b <- mgcv::PredictMat(theirs[[k]], new)
    expect_lt(max(abs(qr.resid(qr(b), a))), 1e-10)
    expect_identical(rowSums(a != 0) > 0, rowSums(b != 0) > 0)
  }
})

test_that("sd of a curve is that of its coefficients; the rest varies by 1", {
  d <- smooth_data(6000)
  f <- y ~ s(x) + s(z, bs = "ps", by = w) + t2(x, z) + s(g, bs = "re") +
    s(x, g, bs = "fs", k = 5) + s(w, bs = "cr", by = h)
  f <- smooth_formula(f)
  terms <- attr(stats::model.frame(f, d), "terms")
  for (smooth in terms_smooths(terms)) {
    x <- smooth_values(smooth, d)
    if (identical(smooth$by, "w")) {
      x <- x / d$w
    }
    n <- if (identical(smooth$by, "h")) sum(d$h == "u") else nrow(d)
    for (k in smooth$blocks$block) {
      own <- smooth$columns$block == k
      rows <- rowSums(x[, own, drop = FALSE] != 0) > 0
      variance <- mean(rowSums(x[rows, own, drop = FALSE]^2))
      expect_equal(variance, 1, tolerance = 0.05)
    }
    for (j in which(smooth$columns$kind == "fixed")) {
      expect_equal(mean(x[x[, j] != 0, j]^2), 1, tolerance = 0.05)
    }
  }
})

# ---- tables ------------------------------------------------------------------

test_that("tables of cubics are PredictMat() to 1e-10, outside of knots, too", {
  d <- smooth_data(3000)
  d$x <- round(100 * d$x) / 7
  ends <- range(d$x)
  new <- data.frame(x = seq(ends[[1]] - 60, ends[[2]] + 60, length.out = 4001))
  for (bs in c("tp", "ts", "cr", "cs", "cc", "ps", "bs", "cp")) {
    f <- eval(bquote(y ~ s(x, bs = .(bs), k = 12)))
    own <- one_smooth(f, d)
    expect_false(is.null(own$basis$cubics), label = bs)
    wanted <- mgcv_basis(own$basis, list(new$x))
    made <- cubic_columns(own$basis$cubics, new$x)
    expect_lt(max(abs(made - wanted) / pmax(1, abs(wanted))), 1e-10)
    expect_identical(
      is.na(own$basis$cubics$period),
      !bs %in% c("cc", "cp"),
      label = bs
    )
  }
})

test_that("what is no piecewise cubic is no table, and all the same", {
  d <- smooth_data()
  new <- smooth_data(60, seed = 3)
  for (f in list(
    y ~ s(x, bs = "bs", m = c(4, 2)),
    y ~ s(x, m = 3),
    y ~ s(x, bs = "gp")
  )) {
    own <- one_smooth(f, d)
    expect_null(own$basis$cubics)
    made <- smooth_values(own, new)
    expect_equal(
      unname(made),
      mgcv_basis(own$basis, list(new$x))[, own$columns$basis],
      tolerance = 1e-14
    )
  }
  # a table that is not the basis is found out
  own <- one_smooth(y ~ s(x, bs = "cr"), d)$basis
  expect_true(cubics_agree(own$cubics, own, 1e-10))
  own$cubics$coefficients[[30]] <- own$cubics$coefficients[[30]] + 1e-8
  expect_false(cubics_agree(own$cubics, own, 1e-10))
})

# ---- designs -----------------------------------------------------------------

test_that("C makes the columns of model.matrix() of blocks", {
  d <- smooth_data(500)
  d$i <- rpois(500, 20)
  d$x[c(3, 90)] <- NA
  d$g[c(7, 91)] <- NA
  f <- smooth_formula(y ~ w + s(x, k = 8) + s(i, bs = "cc", by = g) +
    s(log(w), bs = "cr", by = z) + t2(x, z) + (1 | g) + (0 + z | h) +
    s(x, g, bs = "fs", k = 4) + s(g, h, bs = "re"))
  frame <- stats::model.frame(f, d)
  design <- compile_design(frame)
  expect_false(is.null(design$program))
  x <- design_matrix(attr(frame, "terms"), frame)$x
  expect_identical(colnames(x), design$columns)
  is_made <- vapply(design$variables, function(v) is_in_table(v$smooth), TRUE)
  expect_equal(sum(is_made), 7)
  made <- NULL
  for (first in c(0, 200, 400)) {
    n <- min(200, 500 - first)
    block <- list(columns = as.list(d), first = first, n = n, row = first + 1)
    values <- block_values(design, block, environment(f))
    chunk <- new_chunk(design, 300, n_y = 0)
    fill_chunk(chunk, design, values)
    made <- rbind(made, chunk$x[seq_len(chunk$fill), ])
  }
  expect_equal(unname(made), unname(x), tolerance = 1e-12)
  # new rows
  new <- smooth_data(20, seed = 5)
  new$i <- 20:39
  terms <- stats::delete.response(attr(frame, "terms"))
  again <- source_design(
    list(contrasts = NULL),
    terms,
    stats::model.frame(terms, rbind(d[11:20, ], new[, names(d)]))
  )
  rows <- match(as.character(11:20), rownames(frame))
  expect_equal(unname(again[1:10, ]), unname(x[rows, ]), tolerance = 1e-12)
})

test_that("a row that cannot be is named, with the column it is of", {
  d <- smooth_data(300)
  f <- smooth_formula(y ~ s(x, by = g, k = 5) + s(h, bs = "re"))
  frame <- stats::model.frame(f, d)
  design <- compile_design(frame)
  fill <- function(data) {
    block <- list(columns = as.list(data), first = 0, n = 300, row = 1001)
    values <- block_values(design, block, environment(f))
    fill_chunk(new_chunk(design, 300, n_y = 0), design, values)
  }
  bad <- d
  bad$h[[8]] <- "new"
  e <- expect_error(fill(bad), class = "tall_error_input")
  expect_identical(e$argument, "h")
  expect_identical(e$value, "new")
  expect_match(conditionMessage(e), "row 1,008")
  bad <- d
  bad$x[[9]] <- Inf
  e <- expect_error(fill(bad), class = "tall_error_input")
  expect_identical(e$argument, "x")
})

test_that("blocks and columns are where the layout says", {
  d <- smooth_data()
  f <- smooth_formula(y ~ w + s(x, by = h, k = 6) + t2(x, z) + (1 | g))
  frame <- stats::model.frame(f, d)
  x <- design_matrix(attr(frame, "terms"), frame)$x
  layout <- smooth_layout(attr(frame, "terms"), colnames(x))
  expect_identical(
    layout$blocks$scale,
    c("s(x):hu1", "s(x):hv1", "t2(x,z)1", "t2(x,z)2", "t2(x,z)3", "s(g)1")
  )
  expect_identical(layout$blocks$size, c(4L, 4L, 9L, 6L, 6L, 3L))
  expect_identical(layout$columns$name, colnames(x)[layout$columns$at])
  expect_identical(tabulate(layout$columns$block, 6), layout$blocks$size)
  expect_identical(
    setdiff(colnames(x), layout$columns$name),
    c("(Intercept)", "w")
  )
  expect_true(all(c("s(g).a", "s(x):hv.5", "t2(x,z).24") %in% colnames(x)))
  none <- smooth_layout(stats::terms(y ~ x), "x")
  expect_null(none$blocks)
})

# ---- sources -----------------------------------------------------------------

# The design of all rows of a source, as passes read it.
passed_design <- function(data, formula, knots = NULL) {
  formula <- smooth_formula(formula, knots)
  source <- as_source(data)
  family <- resolve_family(stats::gaussian())
  request <- new_request(formula, source_names(source), family)
  rows <- rows_of_source(source, request)
  call <- bquote(f(.(formula), data = data))
  found <- read_design(rows, as.call(list(quote(f), formula = formula)), 0)
  x <- NULL
  gather_design(found$rows, function(part) x <<- rbind(x, part + 0), list(
    refresh = 0
  ))
  colnames(x) <- found$rows$design$columns
  list(x = x, terms = found$rows$design$terms)
}

stream_of <- function(blocks) {
  tall_stream(function() {
    k <- 0
    function() {
      k <<- k + 1
      if (k <= length(blocks)) blocks[[k]]
    }
  })
}

test_that("the design is the same from all sources, with knots given", {
  local_settings(look = list(rows = 400))
  d <- smooth_data(1500)
  d$h <- factor(d$h)
  knots <- list(x = seq(-1, 3, length.out = 8), z = c(-6, -1, 0, 1, 6))
  f <- y ~ s(x, k = 8) + s(z, k = 5, bs = "cr", by = h) + (1 | g)
  whole <- passed_design(d, f, knots)
  parts <- split(d, rep(1:3, each = 500))
  streamed <- passed_design(stream_of(parts), f, knots)
  expect_identical(streamed$x, whole$x)
  other <- one_smooth(y ~ s(x, k = 8), smooth_data(50, seed = 9), knots["x"])
  expect_identical(other$basis, terms_smooths(whole$terms)[[1]]$basis)
  skip_if_not_installed("RSQLite")
  skip_if_not_installed("dbplyr")
  con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
  withr::defer(DBI::dbDisconnect(con))
  text <- transform(d, g = as.character(g), h = as.character(h))
  DBI::dbWriteTable(con, "d", text)
  stored <- passed_design(dplyr::tbl(con, "d"), f, knots)
  expect_equal(stored$x, whole$x, tolerance = 1e-12)
})

test_that("without knots the pilot's weights make it nearly that of all rows", {
  local_settings(look = list(rows = 400))
  d <- smooth_data(4000)
  # a rare level that goes with x, of which the pilot has more
  d$g <- factor(ifelse(d$x > 2.9, "rare", "often"))
  whole <- passed_design(d, y ~ s(x) + g)
  streamed <- passed_design(stream_of(list(d)), y ~ s(x) + g)
  mean_of <- function(found) colMeans(found$x[, paste0("s(x).", 1:9)])
  expect_lt(max(abs(mean_of(whole))), 0.02)
  expect_lt(max(abs(mean_of(streamed))), 0.1)
  range <- function(found) terms_smooths(found$terms)[[1]]$range$x
  expect_identical(range(streamed), c(min(d$x), max(d$x)))
  expect_identical(range(whole), c(min(d$x), max(d$x)))
})

# ---- what is refused ---------------------------------------------------------

test_that("terms that are not fitted are told what to write", {
  told <- function(formula, text, class = "tall_error_unsupported") {
    e <- expect_error(smooth_formula(formula), class = class)
    said <- gsub("[[:space:]]+", " ", conditionMessage(e))
    expect_match(said, text, fixed = TRUE)
  }
  told(y ~ te(x, z), "`t2(x, z)`")
  told(y ~ s(x) + ti(x, z), "leave `s(x)` and `s(z)` out")
  told(y ~ gp(x), "`s(x, bs = \"gp\")`")
  told(y ~ mo(x), "factor(x, ordered = FALSE)")
  told(y ~ s(x, bs = "ad"), "`s(x, k = 30)`")
  told(y ~ s(x, g, bs = "sz"), "bs = \"fs\"")
  told(y ~ s(x, sp = 1), "`prior_smooth`")
  told(y ~ s(x, id = 1), "scales of its own")
  told(y ~ s(x):z, "`s(x, by = z)`")
  told(y ~ log(1 + s(x)), "inside of another function", "tall_error_input")
  told(y ~ s(x) * z, "`s(x, by = z)`")
  told(y ~ . + s(x), "write the columns out")
  told(y ~ (1 + z | g), "(1 + z || g)")
  told(y ~ (1 | g / h), "nested")
  told(y ~ mgcv::s(x), "by its name alone", "tall_error_input")
  told(y ~ s(x) + s(x, k = 5), "twice", "tall_error_input")
  told(y ~ s(x, k = 1), "at least 2", "tall_error_input")
  told(y ~ s(x, k = nowhere), "cannot be evaluated", "tall_error_input")
  told(y ~ s(k = 3), "a variable", "tall_error_input")
  told(y ~ s(x, bs = "none"), "no basis \"none\"", "tall_error_input")
  told(~ s(x), "a response", "tall_error_input")
  told(1, "a formula", "tall_error_input")
})

test_that("data that a smooth cannot be made of are refused by name", {
  d <- smooth_data(200)
  d$few <- rep(1:4, 50)
  d$one <- 7
  d$m <- cbind(d$x, d$z)
  refused <- function(formula, argument, value, knots = NULL) {
    f <- smooth_formula(formula, knots)
    e <- expect_error(stats::model.frame(f, d), class = "tall_error_input")
    expect_identical(e$argument, argument)
    expect_equal(e$value, value)
  }
  refused(y ~ s(few), "k", 10)
  refused(y ~ s(few, k = 5), "k", 5)
  refused(y ~ t2(x, few, k = 6), "k", 6)
  refused(y ~ s(g), "g", d$g)
  refused(y ~ s(h), "h", d$h)
  refused(y ~ t2(x, g), "g", d$g)
  refused(y ~ s(one, k = 3), "one", 7)
  refused(y ~ s(x, by = one), "one", 7)
  refused(y ~ s(m), "m", d$m)
  # two values are too few for a curve, however small k is
  d$two <- rep(c(FALSE, TRUE), 100)
  refused(y ~ s(two), "two", 2)
  refused(y ~ s(two, k = 2), "two", 2)
  refused(y ~ t2(x, two), "two", 2)
  d$i64 <- structure(d$x, class = "integer64")
  refused(y ~ s(i64), "i64", d$i64)
  refused(y ~ s(x, bs = "fs"), "formula", "x")
  d$z[[5]] <- Inf
  refused(y ~ s(z), "z", Inf)
})

test_that("knots are checked", {
  bad <- function(knots, argument) {
    e <- expect_error(
      smooth_formula(y ~ s(x), knots),
      class = "tall_error_input"
    )
    expect_identical(e$argument, argument)
  }
  bad(list(1:3), "knots")
  bad(list(x = "a"), "knots$x")
  bad(list(x = c(1, NA)), "knots$x")
  bad(list(x = c(1, 1)), "knots")
  bad(list(x = 1:10, z = 1:10), "knots")
  # those that mgcv cannot have
  f <- smooth_formula(y ~ s(x, bs = "cr", k = 5), list(x = 1:9))
  e <- expect_error(
    stats::model.frame(f, smooth_data()),
    class = "tall_error_input"
  )
  expect_identical(e$value, "s(x)")
})

test_that("rows beyond knots that were given are told", {
  d <- smooth_data(100)
  f <- smooth_formula(y ~ s(x, k = 5), list(x = seq(-0.5, 3, length.out = 8)))
  run <- function(data) {
    tall_glm(f, data = data, iter = 20, chains = 1, seed = 1, refresh = 0)
  }
  w <- expect_warning(run(d), class = "tall_warning_extrapolation")
  expect_match(conditionMessage(w), "the knots from")
  expect_no_warning(run(d[d$x > -0.5, ]))
  local_settings(look = list(rows = 50))
  expect_warning(run(d), class = "tall_warning_extrapolation")
})

test_that("what a term takes of other rows is refused in blocks", {
  local_settings(look = list(rows = 100))
  d <- smooth_data(400)
  e <- expect_error(
    passed_design(stream_of(list(d)), y ~ s(rank(x), k = 5)),
    class = "tall_error_input"
  )
  expect_match(conditionMessage(e), "depends on other rows")
})

test_that("rows that lack a by-variable are left out, or refused", {
  d <- smooth_data(200)
  d$z[c(4, 9)] <- NA
  d$g[[5]] <- NA
  f <- smooth_formula(y ~ s(x, by = z) + s(x, by = g, k = 4))
  frame <- stats::model.frame(f, d)
  expect_identical(as.vector(attr(frame, "na.action")), c(4L, 5L, 9L))
  expect_error(stats::model.frame(f, d, na.action = stats::na.fail))
})

test_that("new levels and values out of range are told in predict()", {
  d <- smooth_data(300)
  f <- smooth_formula(y ~ s(x, k = 5) + (1 | g))
  fit <- tall_glm(f, data = d, iter = 20, chains = 1, seed = 1, refresh = 0)
  e <- expect_error(
    predict(fit, transform(d[1:3, ], g = "other")),
    class = "tall_error_input"
  )
  expect_identical(e[c("argument", "value")], list(
    argument = "g",
    value = "other"
  ))
  w <- expect_warning(
    predict(fit, transform(d[1:3, ], x = c(0, 5, 9))),
    class = "tall_warning_extrapolation"
  )
  said <- gsub("[[:space:]]+", " ", conditionMessage(w))
  expect_match(said, "in 2 rows")
  expect_match(said, "Row 2 has x = 5")
  expect_no_warning(predict(fit, d[1:3, ]))
})

test_that("skewed variables and rare values have tables, too", {
  set.seed(1)
  d <- data.frame(y = 0, x = rexp(1e4)^2, n = rpois(1e4, 0.5))
  for (f in list(y ~ s(x), y ~ s(x, bs = "cr"), y ~ s(n, k = 4))) {
    own <- one_smooth(f, d)
    expect_false(is.null(own$basis$cubics))
    x <- as.double(d[[own$term]])
    expect_lt(
      max(abs(cubic_columns(own$basis$cubics, x) -
        mgcv_basis(own$basis, list(x)))),
      1e-10 * max(x)
    )
  }
})

test_that("few distinct values are all knots, of many there are some", {
  some <- getFromNamespace("some_values", "tallbayes")
  expect_identical(some(rep(364:1, 3), 150), 1:364)
  expect_length(some(1:1000, 150), 150)
  expect_identical(range(some(1:1000, 150)), c(1L, 1000L))
})
