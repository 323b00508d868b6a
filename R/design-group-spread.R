# The spread of a response whose rows are passed over: moments as chunks come,
# and the median of its distances from its median, for which it is written to a
# file, 8 bytes a row.

# add(chunk), found(): list(units, spread), as response_units() and
# covariance_params() have them of a response in memory; close() in any case.
# folder: where the file is meanwhile.
new_spread <- function(folder) {
  path <- tempfile("responses-", folder)
  file <- file(path, "wb")
  is_open <- TRUE
  moments <- NULL
  weighted <- NULL
  close <- function() {
    if (is_open) {
      close.connection(file)
    }
    is_open <<- FALSE
    unlink(path)
  }
  add <- function(chunk) {
    y <- first_column(chunk$y)
    writeBin(y, file)
    part <- cbind(y, y - (chunk$offset %||% 0))
    moments <<- join_moments(moments, list(
      n = chunk$n,
      mean = colMeans(part),
      sd = design_sds(part)
    ))
    if (!is.null(chunk$weights)) {
      weighted <<- join_weighted(weighted, part[, 2], chunk$weights)
    }
  }
  found <- function() {
    close.connection(file)
    is_open <<- FALSE
    if (!identical(file.size(path), 8 * as.double(moments$n))) {
      abort_file(paste("{.path {folder}}", file_faults[["full"]]), folder)
    }
    sd <- ifelse(moments$n > 1 & moments$sd > 0, moments$sd, 1)
    list(
      units = list(
        mean = moments$mean[[2]],
        sd = sd[[2]],
        aux_sd = weighted_sd(weighted, moments$n) %||% sd[[2]]
      ),
      spread = list(mad = filed_mad(path, moments$n), sd = sd[[1]])
    )
  }
  list(add = add, found = found, close = close)
}

# Sums of weights, means by weight and squares about these.
join_weighted <- function(a, y, weights) {
  total <- sum(weights)
  mean <- sum(weights * y) / total
  b <- list(total = total, mean = mean, square = sum(weights * (y - mean)^2))
  if (is.null(a)) {
    return(b)
  }
  all <- a$total + b$total
  away <- b$mean - a$mean
  list(
    total = all,
    mean = a$mean + away * b$total / all,
    square = a$square + b$square + away^2 * a$total * b$total / all
  )
}

# As response_units() has it; NULL: no weights.
weighted_sd <- function(weighted, n) {
  if (is.null(weighted)) {
    return(NULL)
  }
  square <- weighted$square / max(1, n - 1)
  sqrt(if (square > 0) square else weighted$total / n)
}

# ---- numbers in a file -------------------------------------------------------

# stats::mad() of the n doubles of a file.
filed_mad <- function(path, n) {
  centre <- filed_median(path, n, identity)
  1.4826 * filed_median(path, n, function(y) abs(y - centre))
}

filed_median <- function(path, n, f) {
  low <- filed_nth(path, (n + 1) %/% 2, f)
  if (n %% 2 == 1) low else mean(c(low, filed_nth(path, n / 2 + 1, f)))
}

# The k-th smallest of f(numbers): those that may be it are counted in bins, of
# which one is looked into, until they are few, or all the same.
filed_nth <- function(path, k, f, most = 2^20) {
  within <- c(-Inf, Inf)
  repeat {
    here <- filed_range(path, f, within)
    if (here$n <= most || here$least == here$most) {
      break
    }
    breaks <- seq(here$least, here$most, length.out = 4097)
    counts <- numeric(4096)
    each_filed(path, f, within, function(y) {
      at <- findInterval(y, breaks, rightmost.closed = TRUE)
      counts <<- counts + tabulate(at, 4096)
    })
    bin <- which(cumsum(counts) >= k)[[1]]
    k <- k - sum(counts[seq_len(bin - 1)])
    # the last bin has its end
    within <- c(breaks[[bin]], if (bin == 4096) Inf else breaks[[bin + 1]])
    within[[2]] <- min(within[[2]], here$end)
  }
  if (here$least == here$most) {
    return(here$least)
  }
  few <- list()
  each_filed(path, f, within, function(y) few[[length(few) + 1]] <<- y)
  sort(unlist(few), partial = k)[[k]]
}

filed_range <- function(path, f, within) {
  out <- list(n = 0, least = Inf, most = -Inf, end = within[[2]])
  each_filed(path, f, within, function(y) {
    out$n <<- out$n + length(y)
    out$least <<- min(out$least, y)
    out$most <<- max(out$most, y)
  })
  out
}

# do(numbers) of f(numbers of the file), a million at a time: those from the
# first of `within` on that are below the second.
each_filed <- function(path, f, within, do) {
  file <- file(path, "rb")
  on.exit(close(file))
  while (length(y <- readBin(file, "double", 2^20)) > 0) {
    y <- f(y)
    do(y[y >= within[[1]] & y < within[[2]]])
  }
}
