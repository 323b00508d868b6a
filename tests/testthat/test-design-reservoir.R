# The sample that a look keeps.

# All candidates of rows, block by block: list(rows, weights, look). Candidates
# are pruned where there are more than `most`.
sample_rows <- function(
  strata,
  sizes,
  k,
  k_stratum,
  seed,
  keep = NULL,
  most = Inf
) {
  n <- length(strata[[1]])
  look <- new_look(k, k_stratum, seed)
  rows <- double()
  first <- 0
  for (size in rep_len(sizes, n)) {
    if (first == n) {
      break
    }
    size <- min(size, n - first)
    at <- first + seq_len(size)
    found <- look_add(
      look,
      first + 1,
      size,
      # whole vectors and slices
      if (size %% 2 == 0) {
        lapply(strata, function(code) list(values = code, first = first))
      } else {
        lapply(strata, `[`, at)
      },
      if (!is.null(keep)) keep[at]
    )
    rows <- c(rows, first + found)
    if (length(rows) > most) {
      rows <- rows[look_weights(look, rows, lapply(strata, `[`, rows))$keep]
    }
    first <- first + size
  }
  found <- look_weights(look, rows, lapply(strata, `[`, rows))
  list(rows = rows[found$keep], weights = found$weights, look = look)
}

set.seed(42)
n <- 5000
big <- sample(4L, n, TRUE, c(0.5, 0.4, 0.09, 0.01))
small <- replace(rep(1L, n), c(17, 2000, 4999), 2:4)
small[100:200] <- NA
value <- rnorm(n, big)

test_that("a sample is the same whatever the blocks", {
  strata <- list(big, small)
  one <- sample_rows(strata, n, 300, 50, 7)
  for (sizes in list(1, 7, c(1000, 1, 64))) {
    other <- sample_rows(strata, sizes, 300, 50, 7, most = 900)
    expect_identical(other$rows, one$rows)
    expect_identical(other$weights, one$weights)
  }
  expect_false(identical(sample_rows(strata, n, 300, 50, 8)$rows, one$rows))
})

test_that("thresholds are those of sorted uniforms", {
  strata <- list(big, small)
  keep <- runif(n) < 0.8
  made <- sample_rows(strata, 512, 300, 50, 7, keep = keep)
  u <- replace(hash_uniforms(7, "pilot", 0, n), !keep, NA)
  threshold <- function(u, k) c(sort(u), rep(1, k + 1))[[k + 1]]
  most <- rep(threshold(u, 300), n)
  for (codes in strata) {
    for (code in unique(codes[!is.na(codes)])) {
      rows <- which(codes == code)
      most[rows] <- pmax(most[rows], threshold(u[rows], 50))
    }
  }
  wanted <- which(u < most)
  expect_identical(made$rows, as.double(wanted))
  expect_equal(made$weights, 1 / most[wanted], tolerance = 1e-14)
  counts <- look_counts(made$look)
  expect_identical(counts$n, sum(keep) + 0)
  expect_identical(counts$strata[[1]], tabulate(big[keep], 4) + 0)
  expect_identical(
    counts$strata[[2]],
    tabulate(small[keep & !is.na(small)], 4) + 0
  )
})

test_that("few rows all stay, and of many as many as asked for", {
  all <- sample_rows(list(big), 100, n, 1, 1)
  expect_identical(all$rows, as.double(seq_len(n)))
  expect_identical(all$weights, rep(1, n))
  only <- sample_rows(list(rep(NA_integer_, n)), 100, 300, 50, 1)
  expect_length(only$rows, 300)
  expect_length(unique(only$weights), 1)
  two <- sample_rows(list(big, small), 100, 300, 50, 1)
  expect_true(all(c(17, 2000, 4999) %in% two$rows))
  expect_identical(two$weights[two$rows %in% c(17, 2000, 4999)], rep(1, 3))
  kept <- tabulate(big[two$rows], 4)
  expect_true(all(kept >= pmin(50, tabulate(big, 4))))
  # without strata
  look <- new_look(10, 5, 1)
  rows <- look_add(look, 1, 1000)
  expect_identical(sum(look_weights(look, rows)$keep) + 0, 10)
  expect_identical(look_counts(look), list(n = 1000, strata = list()))
})

test_that("weighted sums are unbiased", {
  strata <- list(big, small)
  sums <- function(weights, rows) {
    by <- function(x, codes) {
      vapply(seq_len(4), function(k) sum(x[codes[rows] %in% k]), 1)
    }
    own <- value[rows] * weights
    c(sum(weights), sum(own), by(weights, big), by(own, big), by(own, small))
  }
  found <- vapply(
    seq_len(400),
    function(seed) {
      one <- sample_rows(strata, n, 100, 20, seed)
      sums(one$weights, one$rows)
    },
    double(14)
  )
  truth <- sums(rep(1, n), seq_len(n))
  sd <- apply(found, 1, sd)
  exact <- sd == 0
  # the three rows that are alone in their strata
  expect_identical(which(exact), 12:14)
  expect_equal(found[exact, 1], truth[exact])
  z <- (rowMeans(found) - truth)[!exact] / (sd[!exact] / sqrt(400))
  # 11 of them, two sides: 1e-3 altogether
  expect_lt(max(abs(z)), qnorm(1 - 1e-3 / 22))
})
