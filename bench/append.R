# What does a fit to which rows are appended cost, beside a new fit to all of
# them, and is its posterior theirs?
#
#   Rscript bench/append.R [rows] [sbc]
#
# rows: 100,000 rows to 10^7 in Parquet files, of a Gaussian, a binomial and, of
# alike rows, a Poisson response; 5 minutes. sbc: simulation-based calibration
# of fits that grew three times, 3 times 400 data sets; 12 minutes.
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))

args <- commandArgs(TRUE)
wanted <- if (length(args) > 0) args else "rows"
bench_start(
  if ("sbc" %in% wanted) "append-sbc" else "append",
  "Rows that arrive later",
  paste(c("append.R", args), collapse = " ")
)
cpu <- function(code) sum(system.time(code)[c(1, 2, 4, 5)])
big <- function(x) format(x, big.mark = ",", scientific = FALSE)

make <- function(n) {
  data <- data.frame(
    x1 = rnorm(n),
    x2 = rexp(n),
    x3 = runif(n),
    age = sample(18:95, n, TRUE),
    ward = sample(c("north", "south", "surgery"), n, TRUE)
  )
  eta <- -3 + 0.5 * data$x1 - 0.3 * data$x2 + 0.02 * data$age +
    0.4 * (data$ward == "south")
  data$event <- rbinom(n, 1, plogis(eta))
  data$cost <- 10 * eta + rnorm(n)
  data$count <- rpois(n, exp(-1 + 0.01 * data$age))
  data
}

if ("rows" %in% wanted) {
  set.seed(1)
  folder <- tempfile()
  dir.create(folder)
  n_file <- 20
  for (k in seq_len(n_file)) {
    file <- file.path(folder, sprintf("%02d.parquet", k))
    nanoparquet::write_parquet(make(5e5), file)
  }
  batch <- make(1e5)
  file <- file.path(folder, "new.parquet")
  cases <- list(
    Gaussian = list(cost ~ x1 + x2 + x3 + age + ward, gaussian()),
    binomial = list(event ~ x1 + x2 + x3 + age + ward, binomial()),
    "Poisson, alike rows" = list(count ~ age + ward, poisson())
  )
  out <- lapply(names(cases), function(name) {
    case <- cases[[name]]
    fit_all <- function(...) {
      source <- tall_parquet(folder)
      tall_glm(case[[1]], source, case[[2]], seed = 1, refresh = 0, ...)
    }
    unlink(file)
    fit <- fit_all()
    appended <- replicate(3, cpu(
      grown <<- tall_append(fit, batch, refresh = 0)
    ))
    nanoparquet::write_parquet(batch, file)
    again <- replicate(3, cpu(whole <<- fit_all()))
    apart <- abs(coef(grown) - coef(whole)) / sqrt(diag(vcov(whole)))
    data.frame(
      response = name,
      `new fit, CPU s` = fixed(median(again), 2),
      `appended, CPU s` = fixed(median(appended), 2),
      times = fixed(median(again) / median(appended), 0),
      `passes, new fit` = fixed(whole$passes, 2),
      appended = fixed(grown$passes, 2),
      `apart, sds` = format(max(apart), digits = 2),
      check.names = FALSE
    )
  })
  say(
    "10^7 rows in Parquet files and 100,000 new ones in memory; medians of ",
    "three.\n"
  )
  say_table(do.call(rbind, out))
}

# Data from the prior, in four batches: ranks of the true coefficients among
# independent draws of the fit that grew are uniform.
ranks_of_sets <- function(seed, n_set, sizes, n_draw) {
  set.seed(seed)
  n <- sum(sizes)
  lapply(seq_len(n_set), function(k) {
    theta <- rnorm(3)
    # an intercept with a prior of its own is that at the covariates' means
    d <- data.frame(one = 1, x = rnorm(n), z = rexp(n))
    d$y <- rbinom(n, 1, plogis(theta[[1]] + theta[[2]] * d$x +
      theta[[3]] * d$z))
    of <- split(d, rep(seq_along(sizes), sizes))
    fit <- tall_glm(
      y ~ 0 + one + x + z,
      as_source(of[[1]]),
      binomial(),
      prior = prior_normal(0, 1),
      seed = k,
      refresh = 0,
      iter = 4000
    )
    at <- fit$passed$found$theta
    for (batch in of[-1]) {
      fit <- tall_append(fit, batch, iter = 500, refresh = 0)
    }
    draws <- posterior::as_draws_matrix(fit$draws)
    draws <- draws[round(seq(1, nrow(draws), length.out = n_draw)), ]
    list(
      rank = colSums(draws < rep(theta, each = n_draw)),
      stayed = identical(at, fit$passed$found$theta)
    )
  })
}

if ("sbc" %in% wanted) {
  tallbayes:::put_settings(list(
    look = list(rows = 100),
    recipe = list(full_share = 50),
    chunk_rows = 256
  ))
  n_set <- 400
  sizes <- c(500, 100, 100, 100)
  n_draw <- 99
  bins <- seq(-0.5, n_draw + 0.5, length.out = 21)
  out <- lapply(1:3, function(seed) {
    found <- ranks_of_sets(seed, n_set, sizes, n_draw)
    ranks <- do.call(rbind, lapply(found, `[[`, "rank"))
    p <- apply(ranks, 2, function(rank) {
      chisq.test(table(cut(rank, bins)))$p.value
    })
    stayed <- sum(vapply(found, `[[`, TRUE, "stayed"))
    data.frame(
      seed = seed,
      stayed = stayed,
      intercept = fixed(p[[1]], 3),
      x = fixed(p[[2]], 3),
      z = fixed(p[[3]], 3)
    )
  })
  say(
    n_set, " data sets of ", big(sum(sizes)), " rows in ", length(sizes),
    " batches, thrice; in `stayed` of them rows of all batches were expanded ",
    "at the first fit's point. p of uniform ranks.\n"
  )
  say_table(do.call(rbind, out))
}
