# Regressions whose rows are passed over, on data that are small.

# Fewer rows than these are looked at one and all: so a look is one.
local_passes <- function(rows = 2000, chunk = 1024, env = parent.frame()) {
  local_settings(
    look = list(rows = rows),
    # however large a part of so few rows is drawn
    recipe = list(full_share = 2),
    chunk_rows = chunk,
    .frame = env
  )
}

# A rare level, missing values, a column far from its scale.
remote_data <- function(n = 40000, seed = 1) {
  withr::with_seed(seed, {
    data <- data.frame(
      x = stats::rnorm(n),
      z = 1000 + 50 * stats::rexp(n),
      f = factor(sample(c("a", "b", "c"), n, TRUE, c(0.7, 0.297, 0.003))),
      word = sample(c("no", "yes"), n, TRUE),
      flag = stats::runif(n) < 0.3,
      w = stats::runif(n, 0.5, 2)
    )
    eta <- -1 + 0.5 * data$x - 0.004 * (data$z - 1050) +
      0.4 * (data$f == "b") + 0.3 * data$flag
    data$y <- stats::rbinom(n, 1, stats::plogis(eta))
    data$count <- stats::rpois(n, exp(eta))
    data$size <- 3 + 2 * data$x + data$w + stats::rnorm(n)
    data$x[c(5, n - 77)] <- NA
    data
  })
}

# The same rows as a stream of blocks of these sizes, over and over.
stream_of <- function(data, sizes) {
  tall_stream(function() {
    at <- 0
    turn <- 0
    function() {
      if (at >= nrow(data)) {
        return(NULL)
      }
      turn <<- turn + 1
      size <- sizes[[(turn - 1) %% length(sizes) + 1]]
      rows <- seq(at + 1, length.out = min(size, nrow(data) - at))
      at <<- at + length(rows)
      data[rows, , drop = FALSE]
    }
  })
}

# How often a stream of these rows was opened: by how it began, and after.
counted_stream <- function(data) {
  count <- new.env()
  count$n <- 0
  own <- stream_of(data, c(700, 13))
  open <- own$open
  source <- tall_stream(function() {
    count$n <- count$n + 1
    open()
  })
  list(source = source, n = function() count$n)
}

remote_fit <- function(formula, data, family = stats::binomial(), ...) {
  call <- match.call()
  call[[1]] <- quote(tall_glm)
  call$family <- family
  call[c("seed", "refresh")] <- c(1, 0)
  eval(call, parent.frame())
}

# Sds between the means of draws and their sds, of two fits or of a fit and
# known values.
expect_posterior_near <- function(fit, mean, sd, z = 4.5) {
  s <- posterior::summarise_draws(fit, "mean", "sd", "ess_bulk", "ess_tail")
  expect_true(all(abs(s$mean - mean) < z * s$sd / sqrt(s$ess_bulk)))
  expect_true(all(abs(log(s$sd / sd)) < z / sqrt(2 * s$ess_bulk) * 1.5))
}
