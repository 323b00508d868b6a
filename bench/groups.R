# How long does a logistic random intercept take on 10^6 rows in 10^4 groups,
# against lme4::glmer(nAGQ = 1), which has no posterior, and one pass of the log
# likelihood? And what memory? Ratios of processor seconds of one run.
#
#   Rscript bench/groups.R [rows] [groups] [lme4]
#
# lme4 runs if "lme4" is said, and with up to 2e6 rows; see README.md.
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
# what is freed goes back at once: the data's own remains are not of the fit
environment_of_run <- list(
  MALLOC_MMAP_THRESHOLD_ = "131072",
  MALLOC_TRIM_THRESHOLD_ = "131072"
)
source(file.path(dirname(script), "one-core.R"))

args <- commandArgs(TRUE)
n_row <- if (length(args) > 0) as.numeric(args[[1]]) else 1e6
n_group <- if (length(args) > 1) as.numeric(args[[2]]) else 1e4
with_lme4 <- "lme4" %in% args || length(args) == 0

resident <- function(name) {
  status <- readLines("/proc/self/status")
  line <- grep(name, status, value = TRUE)
  as.numeric(gsub("[^0-9]", "", line)) / 1024
}
big <- function(x) format(x, big.mark = ",", scientific = FALSE)

bench_start(
  if (n_row > 1e6) "groups-large" else "groups",
  "Groups: a logistic random intercept",
  paste(c("groups.R", args), collapse = " ")
)
set.seed(1)
d <- data.frame(
  g = sample(n_group, n_row, TRUE),
  x = rnorm(n_row)
)
effect <- rnorm(n_group)
d$y <- 0L
# by parts, so that the peak is that of the fit
for (part in split(seq_len(n_row), ceiling(seq_len(n_row) / 1e6))) {
  eta <- 0.3 + 0.5 * d$x[part] + effect[d$g[part]]
  d$y[part] <- rbinom(length(part), 1, plogis(eta))
}
invisible(gc())
before <- resident("VmRSS")

ours <- cpu_seconds(
  fit <- tall_glmer(y ~ x + (1 | g), d, binomial(), seed = 1)
)
peak <- resident("VmHWM") - before

x <- cbind("(Intercept)" = 1, x = d$x)
model <- model_groups(x, d$y, d$g, nodes = fit$nodes)
at <- c(fixef(fit), log(VarCorr(fit)$g$sd[[1]]))
pass <- median(replicate(3, cpu_seconds(tallbayes:::row_log_lik(model, at))))
rows <- n_row * 8 * 3 / 2^20
held <- tallbayes:::model_info(model)$memory / 2^20

say(
  big(n_row), " rows in ", big(n_group), " groups: ", fixed(ours, 1),
  " processor seconds, ", fixed(ours / pass, 1),
  " times\none pass of the log likelihood (",
  fixed(pass), " s, ", fit$nodes, " nodes). The rows are ",
  round(rows),
  " MB of numbers, two\ncovariates and a response; the model holds ",
  round(held), " MB, and the call took ", round(peak),
  " MB beyond\nthe data frame at its peak, ", fixed(peak / rows),
  " times the rows (1.5 wanted). ", fit$plan, ".\n"
)
table <- data.frame(
  ` ` = fit$variables,
  mean = fixed(colMeans(as.matrix(fit)), 3),
  sd = fixed(apply(as.matrix(fit), 2, sd), 5),
  true = c("0.3", "0.5", "1"),
  check.names = FALSE
)
if (with_lme4 && n_row <= 2e6) {
  rm(model, x)
  theirs <- cpu_seconds(
    ml <- lme4::glmer(y ~ x + (1 | g), d, binomial(), nAGQ = 1)
  )
  table$`lme4::glmer()` <-
    fixed(c(lme4::fixef(ml), attr(lme4::VarCorr(ml)$g, "stddev")), 3)
}
say_table(table)
if (with_lme4 && n_row <= 2e6) {
  say(
    "Processor seconds, lme4 ", format(packageVersion("lme4")),
    ": lme4::glmer(nAGQ = 1) / tall_glmer(): ", fixed(theirs / ours, 1), "\n"
  )
}
