# Streams of random numbers. Statistics of n draws have standard errors of
# order 1 / sqrt(n); bounds are 5 of them, tests reject below p_least.

normals <- function(n, seed = 1, chain = 0L, purpose = 1L) {
  .Call(ffi_rng_norm, seed, chain, purpose, n)
}

integers <- function(n, size, seed = 1, chain = 0L, purpose = 0L) {
  .Call(ffi_rng_index, seed, chain, purpose, n, size)
}

n <- 1e6
z <- normals(n)

test_that("normals have the moments of the normal distribution", {
  # E z^k and Var z^k = E z^2k - (E z^k)^2
  moment <- function(k) if (k %% 2 == 1) 0 else prod(seq(1, k - 1, 2))
  for (k in 1:6) {
    se <- sqrt((moment(2 * k) - moment(k)^2) / n)
    expect_lt(abs(mean(z^k) - moment(k)), 5 * se)
  }
})

test_that("normals follow the normal distribution function", {
  p <- suppressWarnings(ks.test(z, "pnorm"))$p.value
  expect_gt(p, p_least)
  cells <- tabulate(ceiling(pnorm(z) * 1000), 1000)
  expect_frequencies(cells, rep(1 / 1000, 1000), "quantiles")
})

test_that("normals have the tails of the normal distribution", {
  # 3.65 is the edge beyond which the ziggurat draws from the tail itself
  for (bound in c(2, 3, 3.5, 3.65, 4, 4.5)) {
    for (side in c(-1, 1)) {
      p <- binom.test(sum(side * z > bound), n, pnorm(-bound))$p.value
      expect_gt(p, p_least)
    }
  }
  expect_true(all(is.finite(z)))
  tail <- pnorm(-abs(normals(1e7)))
  tail <- tail[tail < pnorm(-3.66)] / pnorm(-3.66)
  expect_gt(suppressWarnings(ks.test(tail, "punif"))$p.value, p_least)
})

test_that("neighbouring normals are independent", {
  for (lag in c(1, 2, 3, 10)) {
    a <- z[-seq_len(lag)]
    b <- z[seq_len(n - lag)]
    expect_lt(abs(mean(a * b)), 5 / sqrt(n))
    # Var z^2 = 2
    expect_lt(abs(mean((a^2 - 1) * (b^2 - 1))), 5 * 2 / sqrt(n))
  }
})

test_that("integers are uniform, whatever their number", {
  for (size in c(2, 3, 7, 10, 256, 1000)) {
    drawn <- integers(2e5, size)
    expect_true(all(drawn %in% seq_len(size)))
    counts <- tabulate(drawn, size)
    expect_frequencies(counts, rep(1 / size, size), paste("1 to", size))
  }
  expect_true(all(integers(10, 1) == 1))
})

test_that("integers are uniform over large ranges", {
  size <- 3 * 2^50
  drawn <- integers(2e5, size)
  expect_true(all(drawn >= 1 & drawn <= size & drawn == round(drawn)))
  cells <- tabulate(ceiling(drawn / size * 100), 100)
  expect_frequencies(cells, rep(0.01, 100), "hundredths")
})

test_that("streams of chains, purposes and seeds are uncorrelated", {
  n <- 5e4
  keys <- expand.grid(seed = c(1, 2, 2^31 + 1), chain = 0:3, purpose = 0:4)
  streams <- vapply(
    seq_len(nrow(keys)),
    function(k) {
      normals(n, keys$seed[[k]], keys$chain[[k]], keys$purpose[[k]])
    },
    numeric(n)
  )
  # the largest of 1770 correlations, each N(0, 1/n)
  bound <- -qnorm(p_least / 2) / sqrt(n)
  for (lag in 0:1) {
    shifted <- streams[c(seq_len(n)[-seq_len(lag + 1)], seq_len(lag + 1)), ]
    against <- if (lag == 0) streams else shifted
    r <- cor(streams, against)
    r2 <- cor(streams^2, against^2)
    if (lag == 0) {
      diag(r) <- diag(r2) <- 0
    }
    expect_lt(max(abs(r)), bound)
    expect_lt(max(abs(r2)), bound * 1.2)
  }
})

test_that("a stream is its seed, chain and purpose, and nothing else", {
  expect_identical(normals(100), z[1:100])
  expect_false(identical(normals(5, seed = 2), z[1:5]))
  expect_false(identical(normals(5, chain = 1L), z[1:5]))
  expect_false(identical(normals(5, purpose = 2L), z[1:5]))
})
