# Regressions by passes: CPU and elapsed time over a plain loop for X'WX of the
# same rows, memory beyond the data, and how time grows with the rows. See
# README.md.
#
#   Rscript bench/sources.R [rows [rounds [stream rows]]]
#   Rscript bench/sources.R large|stream|glm [rows]
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))
arguments <- commandArgs(TRUE)
part <- c(intersect(arguments, c("large", "large-one", "stream", "glm")), "usual")[[1]]
arguments <- as.numeric(setdiff(arguments, part))
n_data <- if (length(arguments) > 0) arguments[[1]] else 1e7
rounds <- if (length(arguments) > 1) arguments[[2]] else 3
n_stream <- if (length(arguments) > 2) arguments[[3]] else 1e8
if (part == "usual") {
  compile_c("weighted.c")
}

make_data <- function(n) {
  set.seed(1)
  d <- as.data.frame(lapply(
    stats::setNames(nm = paste0("x", 1:6)),
    function(name) stats::rnorm(n)
  ))
  d$f <- factor(sample(letters[1:8], n, TRUE))
  d$y <- stats::rbinom(n, 1, stats::plogis(-2 + 0.5 * d$x1 - 0.3 * d$x2 + 0.4 * (d$f == "b")))
  d
}
formula <- y ~ x1 + x2 + x3 + x4 + x5 + x6 + f
cpu <- function(time) sum(time[c("user.self", "sys.self")])
loop <- function(d) {
  out <- matrix(0, 14, 14)
  numbers <- unname(as.list(d[1:6]))
  system.time(.Call("weighted_factor", numbers, unclass(d$f), out))
}
status <- function(what) {
  lines <- readLines("/proc/self/status")
  as.numeric(gsub("[^0-9]", "", grep(what, lines, value = TRUE))) / 1024
}
big <- function(n) format(n, big.mark = ",", scientific = FALSE)


# What the parts that take long found stays below what a usual run finds.
part_titles <- c(
  large = "## 100,000,000 rows in memory",
  stream = "## A stream of 1,000,000,000 rows",
  glm = "## Beside glm()"
)
results_path <- file.path(bench_folder(), "results", "sources.md")
sections_kept <- function() {
  lines <- if (file.exists(results_path)) readLines(results_path)
  starts <- which(startsWith(lines, "## "))
  sections <- Map(function(a, b) lines[a:b], starts, c(starts[-1] - 1, length(lines))[seq_along(starts)])
  list(
    usual = lines[seq_len(c(starts - 1, length(lines))[[1]])],
    sections = stats::setNames(sections, lines[starts])
  )
}
start_part <- function(part) {
  kept <- sections_kept()
  others <- unlist(kept$sections[setdiff(names(kept$sections), part_titles[[part]])], use.names = FALSE)
  bench_log$path <- results_path
  bench_log$lines <- c(kept$usual, others)
  say(part_titles[[part]], "\n")
  say("`Rscript bench/sources.R ", part, "`, ", format(Sys.Date()), "; ", machine(), "\n")
}
resident_from_here <- function() {
  invisible(gc())
  writeLines("5", "/proc/self/clear_refs")
  status("VmRSS")
}

# ---- 10^8 rows in memory -----------------------------------------------------------

if (part %in% c("large", "large-one")) {
  n_large <- c(arguments, 1e8)[[1]]
  make_wide <- function(n) {
    set.seed(1)
    d <- lapply(stats::setNames(nm = paste0("x", 1:10)), function(name) stats::runif(n))
    # by pieces, for what R makes on the way to all of it would be three columns more
    d$y <- integer(n)
    for (first in seq(1, n, by = 1e6)) {
      at <- seq(first, min(first + 1e6 - 1, n))
      d$y[at] <- as.integer(stats::rlogis(length(at)) < -1 + d$x1[at] - 0.5 * d$x2[at])
    }
    # no copy, as as.data.frame() makes one
    structure(d, class = "data.frame", row.names = .set_row_names(n))
  }
  # in a process of its own, which has nothing to give back
  measure <- function(n) {
    invisible(tall_glm(y ~ ., make_wide(7e4), binomial(), seed = 1))
    before <- resident_from_here()
    d <- make_wide(n)
    size <- as.numeric(utils::object.size(d)) / 2^20
    invisible(resident_from_here())
    time <- system.time(fit <- tall_glm(y ~ ., d, binomial(), seed = 1))
    peak <- status("VmHWM") - before - size
    truth <- c(-1, 1, -0.5, numeric(8))
    table <- posterior::summarise_draws(fit$draws, "mean", "sd")
    off <- max(abs(table$mean - truth) / table$sd)
    cat("FOUND", cpu(time), time[["elapsed"]], peak, size / 1024, off, "\n")
  }
  run <- function(n) {
    lines <- system2(
      file.path(R.home("bin"), "Rscript"),
      c(script, "large-one", format(n, scientific = FALSE)),
      stdout = TRUE
    )
    found <- strsplit(grep("^FOUND", lines, value = TRUE), " ")[[1]][2:6]
    as.list(stats::setNames(as.numeric(found), c("cpu", "elapsed", "peak", "size", "off")))
  }
  if (part == "large-one") {
    measure(n_large)
    quit()
  }
  start_part(part)
  small <- run(n_large / 10)
  large <- run(n_large)
  say(
    "Logistic regression on ten numbers of a data frame, ", number(small$size), " and ", number(large$size), " GB,\n",
    "default call, one core:\n"
  )
  say_table(data.frame(
    rows = c(big(n_large / 10), big(n_large)),
    "CPU seconds" = fixed(c(small$cpu, large$cpu), 1),
    elapsed = fixed(c(small$elapsed, large$elapsed), 1),
    "peak beyond the data" = paste(round(c(small$peak, large$peak)), "MB"),
    "worst mean off the truth" = paste(number(c(small$off, large$off), 2), "sds"),
    check.names = FALSE
  ))
  say(
    "Elapsed over that of a tenth of the rows: ",
    number(large$elapsed / small$elapsed), " (at most 11); CPU: ",
    number(large$cpu / small$cpu), ".\n"
  )
  quit()
}

# ---- a stream of 10^9 rows ---------------------------------------------------------

# A million random numbers for each column, of which a block takes a stretch that
# begins anywhere, another for each column, stretched and shifted by as much as
# its number says: rows that differ, the same at each opening, for some
# nanoseconds each.
cheap_stream <- function(n, size = 1e5, n_base = 2^20) {
  set.seed(2)
  base <- lapply(1:5, function(k) stats::runif(n_base + size))
  noise <- stats::rlogis(n_base + size)
  tall_stream(function() {
    at <- 0
    function() {
      own <- min(size, n - at)
      if (own <= 0) {
        return(NULL)
      }
      block <- at / size
      at <<- at + own
      set.seed(block)
      first <- floor(stats::runif(6) * n_base)
      scale <- stats::runif(5, 0.8, 1.2)
      shift <- stats::runif(5, -0.1, 0.1)
      rows <- seq_len(own)
      x <- lapply(1:5, function(k) shift[[k]] + scale[[k]] * base[[k]][first[[k]] + rows])
      y <- as.integer(noise[first[[6]] + rows] < -1 + x[[1]] - 0.5 * x[[2]])
      names(x) <- paste0("x", 1:5)
      x$y <- y
      structure(x, class = "data.frame", row.names = .set_row_names(own))
    }
  })
}

if (part == "stream") {
  n_stream <- c(arguments, 1e9)[[1]]
  n_small <- min(1e7, n_stream / 10)
  invisible(tall_glm(y ~ ., cheap_stream(2e5), binomial(), seed = 1))
  run <- function(n) {
    invisible(resident_from_here())
    time <- system.time(fit <- tall_glm(y ~ ., cheap_stream(n), binomial(), seed = 1))
    list(time = time, peak = status("VmHWM"), plan = fit$plan, passes = fit$passes)
  }
  start_part(part)
  small <- lapply(1:3, function(k) run(n_small))
  small <- small[[order(vapply(small, function(x) cpu(x$time), 0))[[2]]]]
  large <- run(n_stream)
  nanoseconds <- function(found, n, f) round(1e9 * f(found$time) / n)
  say(
    "Logistic regression on five numbers, made block by block as they are read, default call,\n",
    "one core (", large$plan, "); the few rows: the middle of three calls:\n"
  )
  wall <- function(time) time[["elapsed"]]
  say_table(data.frame(
    rows = c(big(n_small), big(n_stream)),
    "CPU ns a row" = c(nanoseconds(small, n_small, cpu), nanoseconds(large, n_stream, cpu)),
    "elapsed seconds" = fixed(c(wall(small$time), wall(large$time)), 1),
    "resident, at most" = paste(round(c(small$peak, large$peak)), "MB"),
    check.names = FALSE
  ))
  say(
    "CPU time a row over that of the few: ",
    number(cpu(large$time) / n_stream / (cpu(small$time) / n_small)), " (at most 1.2); elapsed: ",
    number(wall(large$time) / n_stream / (wall(small$time) / n_small)),
    ". Resident: at most 1,024 MB asked for.\n"
  )
  quit()
}

# ---- glm() of the same rows ---------------------------------------------------------

if (part == "glm") {
  d <- make_data(n_data <- c(arguments, 1e7)[[1]])
  invisible(tall_glm(formula, d[1:7e4, ], binomial(), seed = 1))
  start_part(part)
  call_with <- function(cores) {
    lapply(1:3, function(k) {
      system.time(tall_glm(formula, d, binomial(), seed = k, cores = cores))
    })
  }
  ours <- call_with(1)
  ours2 <- call_with(2)
  invisible(gc())
  theirs <- system.time(stats::glm(formula, stats::binomial(), d))
  over <- function(times, f) number(f(theirs) / stats::median(vapply(times, f, 0)))
  elapsed_of <- function(time) time[["elapsed"]]
  say(
    "The data of the first table, ", big(n_data), " rows: one call of `glm()` over the median of\n",
    "three of `tall_glm()` takes ", over(ours2, elapsed_of), " times the elapsed time of two cores (15 asked),\n",
    over(ours, elapsed_of), " times that of one, and ", over(ours, cpu), " times the CPU seconds of one.\n"
  )
  quit()
}

kept <- unlist(sections_kept()$sections, use.names = FALSE)
bench_start("sources", paste0("Regressions by passes: N = ", big(n_data)))

# ---- a data frame -----------------------------------------------------------------

d <- make_data(n_data)
invisible(tall_glm(formula, d[1:7e4, ], binomial(), seed = 1)) # what loads on first use
ours <- ours2 <- plain <- list()
invisible(gc())
before <- status("VmRSS")
writeLines("5", "/proc/self/clear_refs")
for (k in seq_len(rounds)) {
  plain[[k]] <- loop(d)
  ours[[k]] <- system.time(fit <- tall_glm(formula, d, binomial(), seed = k))
  if (k == 1) {
    peak <- status("VmHWM") - before
  }
  ours2[[k]] <- system.time(tall_glm(formula, d, binomial(), seed = k, cores = 2))
}
middle <- function(times, f) stats::median(vapply(times, f, 0))
elapsed_of <- function(time) time[["elapsed"]]
say(
  "Logistic regression of ", big(n_data), " rows, six numbers and a factor of eight levels (14\n",
  "columns), default call of 4 x 2,000 iterations (", fit$plan, "), over a\n",
  "plain single-thread loop for X'WX (weighted.c); medians of ", rounds, ":\n"
)
say_table(data.frame(
  what = c("CPU seconds, one core", "elapsed, one core", "CPU seconds, two cores", "elapsed, two cores"),
  ratio = number(c(
    middle(ours, cpu) / middle(plain, cpu),
    middle(ours, elapsed_of) / middle(plain, elapsed_of),
    middle(ours2, cpu) / middle(plain, cpu),
    middle(ours2, elapsed_of) / middle(plain, elapsed_of)
  )),
  asked = c("16", "", "", "10")
))
say("Peak beyond the data (resident, of a call on one core): ", round(peak), " MB; asked for: 300.\n")

some <- d[seq_len(min(n_data, 1e6)), ]
both <- lapply(seq_len(rounds), function(k) {
  c(
    glm = system.time(stats::glm(formula, stats::binomial(), some))[["elapsed"]],
    ours = system.time(tall_glm(formula, some, binomial(), seed = k))[["elapsed"]]
  )
})
ratio <- stats::median(vapply(both, function(x) x[["ours"]] / x[["glm"]], 0))
say("Elapsed over `glm()` at N = ", big(nrow(some)), ": 1/", number(1 / ratio), " (part `glm` asks for 1/15 at 10^7).\n")

# ---- a stream ----------------------------------------------------------------------

rm(d, some, fit)
invisible(gc())
simulated <- function(n) {
  tall_stream(function() {
    at <- 0
    function() {
      size <- min(1e5, n - at)
      if (size <= 0) {
        return(NULL)
      }
      set.seed(at / 1e5)
      x <- matrix(stats::runif(5 * size), size)
      at <<- at + size
      y <- as.integer(stats::runif(size) < stats::plogis(-1 + x[, 1] - 0.5 * x[, 2]))
      data.frame(x, y)
    }
  })
}
stream_time <- function(n) {
  system.time(tall_glm(y ~ X1 + X2 + X3 + X4 + X5, simulated(n), binomial(), seed = 1))
}
small <- stream_time(n_stream / 10)
writeLines("5", "/proc/self/clear_refs")
large <- stream_time(n_stream)
say(
  "A stream of ", big(n_stream), " x 5 simulated rows: at most ", round(status("VmHWM")),
  " MB resident (asked for: 1 GB);\ntime per row over that of ", big(n_stream / 10), " rows: ",
  number(cpu(large) / cpu(small) / 10), " (1.2).\n"
)

if (!is.null(kept)) {
  say(paste(kept, collapse = "\n"))
}
