# What is gained where alike rows of regressions in memory count as one?
#
#   Rscript bench/cells.R
#
# 3 x 10^5 rows of three factors, and of a factor and two columns that are
# rounded; two minutes.
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))
bench_start("cells", "Rows that are alike", "cells.R")

n <- 3e5
set.seed(1)
d <- data.frame(
  a = factor(sample(letters[1:6], n, TRUE)),
  b = factor(sample(LETTERS[1:8], n, TRUE)),
  g = factor(sample(10L, n, TRUE))
)
eta <- 0.3 * as.integer(d$a) - 0.2 * as.integer(d$b) +
  rnorm(10, 0, 0.3)[as.integer(d$g)]
d$y <- ordered(cut(eta + rlogis(n), c(-Inf, -1, 0.5, 1.5, Inf), labels = FALSE))
d$count <- rnbinom(n, size = 2, mu = exp(eta / 2))

run <- list(seed = 1, refresh = 0)
calls <- list(
  "tall_polr(y ~ a + b + g)" = quote(tall_polr(y ~ a + b + g, d)),
  "tall_multinom(y ~ a + b + g)" = quote(tall_multinom(y ~ a + b + g, d)),
  "tall_glm(count ~ a + b + g, neg_binomial_2())" =
    quote(tall_glm(count ~ a + b + g, d, neg_binomial_2())),
  "tall_glm(list(count ~ a + b, shape ~ g))" =
    quote(tall_glm(list(count ~ a + b, shape ~ g), d, neg_binomial_2()))
)

# of more rows than `least` alike ones count as one
took <- function(call, least) {
  before <- tallbayes:::put_settings(list(ties = list(least = least)))
  on.exit(tallbayes:::put_settings(before))
  gc()
  cpu <- sum(system.time(fit <- eval(as.call(c(as.list(call), run))))[1:2])
  list(cpu = cpu, fit = fit)
}

rows <- lapply(calls, function(call) {
  took(call, 2000)
  rounds <- lapply(1:3, function(k) {
    list(alike = took(call, 2000), all = took(call, 1e9))
  })
  cpu <- function(of) median(vapply(rounds, function(r) r[[of]]$cpu, 0))
  fits <- lapply(rounds[[1]], `[[`, "fit")
  moments <- lapply(fits, function(fit) {
    posterior::summarise_draws(fit, "mean", "sd")
  })
  data.frame(
    differ = format(fits$alike$n_differ, big.mark = ","),
    all = fixed(cpu("all"), 2),
    alike = fixed(cpu("alike"), 2),
    ratio = fixed(cpu("all") / cpu("alike"), 1),
    means = fixed(max(abs(moments$alike$mean - moments$all$mean) /
      moments$all$sd), 2),
    sds = fixed(100 * max(abs(moments$alike$sd / moments$all$sd - 1)), 1)
  )
})
say(
  "300,000 rows of three factors of 6, 8 and 10 levels, in memory; default calls, ",
  "CPU seconds of each whole, the median of three, in turn: with all rows, and with ",
  "alike ones counted as one. Beside: how far means of draws are apart, in standard ",
  "deviations, and standard deviations, in percent, at most, of 4,000 draws each.\n"
)
table <- cbind(call = paste0("`", names(calls), "`"), do.call(rbind, rows))
names(table) <- c(
  "call", "rows that differ", "all rows", "alike as one", "ratio", "means", "sds, %"
)
say_table(table)

# ---- columns that are rounded ------------------------------------------------

d$age <- rgamma(n, 20, 0.5)
d$income <- rlnorm(n, 7.5, 0.5)
eta <- 0.02 * d$age + 0.3 * log(d$income) - 3 + 0.1 * as.integer(d$a)
d$y <- ordered(cut(eta + rlogis(n), c(-Inf, -1, 0.5, 1.5, Inf), labels = FALSE))
d$count <- rnbinom(n, size = 2, mu = exp(eta / 2))
steps <- list(
  c(age = 1, income = 100),
  c(age = 2, income = 200),
  c(age = 5, income = 500)
)
calls <- list(
  "tall_polr(y ~ age + income + a)" = quote(tall_polr(y ~ age + income + a, d)),
  "tall_glm(count ~ age + income + a, neg_binomial_2())" =
    quote(tall_glm(count ~ age + income + a, d, neg_binomial_2()))
)
rows <- lapply(names(calls), function(name) {
  cases <- c(list("exact"), steps)
  cases <- lapply(cases, function(compress) {
    as.call(c(as.list(calls[[name]]), list(compress = compress)))
  })
  rounds <- lapply(1:3, function(k) lapply(cases, took, 2000))
  cpu <- vapply(seq_along(cases), function(k) {
    median(vapply(rounds, function(r) r[[k]]$cpu, 0))
  }, 0)
  fits <- lapply(rounds[[1]], `[[`, "fit")
  moments <- lapply(fits, function(fit) {
    posterior::summarise_draws(fit, "mean", "sd")
  })
  away <- function(m) max(abs(m$mean - moments[[1]]$mean) / moments[[1]]$sd)
  data.frame(
    call = paste0("`", name, "`"),
    steps = c("exact", vapply(steps, paste, "", collapse = ", ")),
    differ = vapply(fits, function(fit) {
      differ <- if (is.null(fit$n_differ)) n else fit$n_differ
      format(differ, big.mark = ",", scientific = FALSE)
    }, ""),
    cpu = fixed(cpu, 2),
    ratio = fixed(cpu[[1]] / cpu, 1),
    told = c("", vapply(fits[-1], function(fit) {
      fixed(max(abs(fit$compressed$shift)), 2)
    }, "")),
    away = c("", vapply(moments[-1], function(m) fixed(away(m), 2), ""))
  )
})
say(
  "\nThe same rows with an age (mean 40, sd 9) and an income (median 1,800), rounded to ",
  "such steps by `compress`: CPU seconds of the whole call, what the fit tells of how far ",
  "posterior means move by that, in sds, and how far they are from those of the rows as ",
  "they are (4,000 draws each: some 0.05).\n"
)
table <- do.call(rbind, rows)
names(table) <- c(
  "call", "steps of age, income", "rows that differ", "CPU s", "ratio", "told", "away"
)
say_table(table)
