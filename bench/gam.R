# Additive models of tall data against mgcv::bam(discrete = TRUE), which estimates
# the smoothing parameters and gives no posterior of them: CPU seconds of both in one
# run, and how far apart their curves are.

here <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(here), "common.R"))
stopifnot(requireNamespace("mgcv", quietly = TRUE))

arguments <- commandArgs(TRUE)
n_row <- if (length(arguments) > 0) as.numeric(arguments[[1]]) else 1e6

bench_start("gam", "Smooth terms of a logistic regression")
say(
  "Four curves of k = 10, ", format(n_row, big.mark = ",", scientific = FALSE), " rows: a sine, a parabola, ",
  "a straight line and nothing. 4,000 draws of all coefficients and of the four ",
  "standard deviations, which bam() estimates.\n"
)

set.seed(1)
d <- data.frame(a = runif(n_row), b = runif(n_row), c = rnorm(n_row), e = runif(n_row))
d$y <- rbinom(n_row, 1, plogis(-1 + sin(6 * d$a) + 4 * (d$b - 0.5)^2 + 0.3 * d$c))
formula <- y ~ s(a, k = 10) + s(b, k = 10) + s(c, k = 10) + s(e, k = 10)

cpu <- function(code) {
  gc()
  before <- proc.time()
  value <- force(code)
  used <- proc.time() - before
  list(value = value, cpu = sum(used[c("user.self", "sys.self")]))
}

theirs <- cpu(mgcv::bam(formula, binomial(), d, discrete = TRUE))
ours <- cpu(tall_gam(formula, d, binomial(), seed = 1))
fit <- ours$value
draws <- posterior::summarise_draws(fit, "rhat", "ess_bulk")

say_table(data.frame(
  what = c("`bam(discrete = TRUE)`", "`tall_gam()`", "ratio"),
  `CPU s` = c(
    format(theirs$cpu, digits = 3),
    format(ours$cpu, digits = 3),
    format(ours$cpu / theirs$cpu, digits = 3)
  ),
  check.names = FALSE
))
say(
  "Preparation ", format(fit$time[["preparation"]], digits = 2), " s, sampling ",
  format(fit$time[["sampling"]], digits = 2), " s elapsed; ",
  format(fit$passes, digits = 3), " passes; acceptance ",
  format(mean(fit$chains$acceptance), digits = 2), "; least bulk effective draws ",
  round(as.double(min(draws$ess_bulk))), " of ", posterior::ndraws(fit$draws), ", worst R-hat ",
  format(as.double(max(draws$rhat)), digits = 4), ".\n"
)

# Curves x points, centred over the inner ones: what is left of curves and of their
# sds is no matter of the intercept, in theirs and in ours.
centred <- function(curves, inner) curves - rowMeans(curves[, inner, drop = FALSE])
curve_of_bam <- function(model, new, label, inner) {
  x <- predict(model, new, type = "lpmatrix", discrete = FALSE)
  x[, !startsWith(colnames(x), label)] <- 0
  x <- t(centred(t(x), inner))
  list(mean = drop(x %*% coef(model)), sd = sqrt(rowSums((x %*% vcov(model)) * x)))
}

grids <- conditional_smooths(fit)
table <- smooth_table(fit)
edf <- summary(theirs$value)$s.table[, "edf"]
rows <- lapply(c("a", "b", "c", "e"), function(name) {
  label <- paste0("s(", name, ")")
  grid <- grids[[label]]
  new <- data.frame(a = 0.5, b = 0.5, c = 0, e = 0.5)[rep(1, nrow(grid)), ]
  new[[name]] <- grid[[name]]
  inner <- new[[name]] > quantile(d[[name]], 0.005) &
    new[[name]] < quantile(d[[name]], 0.995)
  of <- curve_of_bam(theirs$value, new, label, inner)
  draws <- centred(posterior_smooths(fit, label, new), inner)
  away <- abs(colMeans(draws) - of$mean) / of$sd
  data.frame(
    curve = label,
    `edf, ours` = format(table$edf[table$smooth == label], digits = 3),
    `edf, bam` = format(edf[[label]], digits = 3),
    `difference in sd, mean` = format(mean(away[inner]), digits = 2),
    `largest` = format(max(away[inner]), digits = 2),
    `ratio of sds` = format(mean((apply(draws, 2, sd) / of$sd)[inner]), digits = 3),
    check.names = FALSE
  )
})
say(
  "Curves and their sds, both centred over the points compared, between the 0.5 % and 99.5 % quantiles of their ",
  "variable. Where there is none, `e`, bam() takes a straight line, and its sds are ",
  "given that; ours allow for others.\n"
)
say_table(do.call(rbind, rows))
