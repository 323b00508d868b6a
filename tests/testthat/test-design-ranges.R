# The ends of columns.

test_that("ends of blocks are those of all values", {
  set.seed(43)
  n <- 200
  keep <- runif(n) < 0.7
  values <- list(
    double = replace(rnorm(n), c(1, 50, 120, 130), c(NA, Inf, -Inf, NaN)),
    integer = replace(rpois(n, 40), c(3, 77), NA),
    logical = replace(runif(n) < 0.5, 9, NA),
    missing = rep(NA_real_, n)
  )
  for (x in values) {
    for (kept in list(NULL, keep)) {
      for (size in c(1, 7, n)) {
        found <- NULL
        for (first in seq(0, n - 1, by = size)) {
          m <- min(size, n - first)
          part <- if (!is.null(kept)) kept[first + seq_len(m)]
          block <- column_ranges(x, first, m, part)
          found <- merge_ranges(found, block, first + 1)
        }
        seen <- as.double(x)
        seen[!(kept %||% TRUE)] <- NA
        n_missing <- sum(is.na(x) & (kept %||% TRUE))
        bad <- which(is.infinite(seen))
        seen[is.infinite(seen)] <- NA
        ends <- c(which.min(seen), which.max(seen))[1:2]
        expect_identical(found$min, seen[ends[[1]]])
        expect_identical(found$max, seen[ends[[2]]])
        expect_identical(found$min_row, as.double(ends[[1]]))
        expect_identical(found$max_row, as.double(ends[[2]]))
        expect_identical(found$n_missing, as.double(n_missing))
        expect_identical(found$bad_row, as.double(bad[1]))
      }
    }
  }
})
