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
  if (!is.null(split$trans.U)) {
    x <- x %*% split$trans.U
  }
  x <- x * rep(split$trans.D, each = nrow(x))
  lapply(
    split(seq_len(ncol(x)), split$pen.ind),
    function(at) x[, at, drop = FALSE]
  )
}

# The same space with the same penalty, up to its scale.
expect_same_blocks <- function(ours, theirs, tolerance) {
  for (k in seq_along(theirs)) {
    a <- tcrossprod(ours[[k]])
    b <- tcrossprod(theirs[[k]])
    expect_equal(a / sum(diag(a)), b / sum(diag(b)), tolerance = tolerance)
  }
}

blocks_of_smooth <- function(smooth, new) {
  x <- smooth_values(smooth, new)
  lapply(split(seq_len(ncol(x)), smooth$columns$block), function(at) {
    x[, at, drop = FALSE]
  })
}

test_that("columns are those of smoothCon(), smooth2random(), PredictMat()", {
  d <- smooth_data()
  new <- smooth_data(50, seed = 2)
  new$x <- new$x * 1.3
  knots <- list(x = seq(-1, 3, length.out = 9))
  specs <- list(
    list(y ~ s(x, k = 9), mgcv::s(x, k = 9), knots),
    list(y ~ s(x, k = 6, bs = "ts"), mgcv::s(x, k = 6, bs = "ts"), knots),
    list(y ~ s(x, k = 9, bs = "cr"), mgcv::s(x, k = 9, bs = "cr"), knots),
    list(y ~ s(x, bs = "cs"), mgcv::s(x, bs = "cs"), NULL),
    list(y ~ s(x, bs = "cc"), mgcv::s(x, bs = "cc"), NULL),
    list(y ~ s(x, bs = "ps"), mgcv::s(x, bs = "ps"), NULL),
    list(y ~ s(x, bs = "bs"), mgcv::s(x, bs = "bs"), NULL),
    list(y ~ s(x, bs = "cp"), mgcv::s(x, bs = "cp"), NULL),
    list(y ~ t2(x, z), mgcv::t2(x, z), NULL),
    list(y ~ t2(x, z, k = c(4, 6)), mgcv::t2(x, z, k = c(4, 6)), NULL),
    list(y ~ s(g, bs = "re"), mgcv::s(g, bs = "re"), NULL),
    list(y ~ s(g, z, bs = "re"), mgcv::s(g, z, bs = "re"), NULL),
    list(
      y ~ s(x, g, k = 5, bs = "fs", xt = list(bs = "cr")),
      mgcv::s(x, g, k = 5, bs = "fs", xt = list(bs = "cr")),
      NULL
    ),
    list(y ~ s(x, by = z, bs = "cr"), mgcv::s(x, by = z, bs = "cr"), NULL)
  )
  for (spec in specs) {
    # centred over the same rows: a basis of knots alone has others
    own <- one_smooth(spec[[1]], d)
    theirs <- by_mgcv(
      spec[[2]],
      d,
      new,
      if (!is.null(spec[[3]])) list(x = unique_knots(own, d$x))
    )
    expect_same_blocks(blocks_of_smooth(own, new), theirs, 1e-9)
  }
})
