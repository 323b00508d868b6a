# How long do several grouping factors take beside lme4's maxima, what do they
# leave, and does the cost of a sweep grow with the rows alone?
#
#   Rscript bench/crossed.R [insteval] [growth] [movielens]
#
# insteval: lme4's InstEval, 73,421 ratings by 2,972 students of 1,128 lecturers
# in 14 departments, normal and logistic, beside lmer() and glmer(nAGQ = 0).
# growth: seconds of a sweep from 10^5 rows to 10^7. movielens: 25 million
# ratings of the shape of MovieLens-25M, simulated, and memory; 20 minutes.
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))

args <- commandArgs(TRUE)
wanted <- if (length(args) > 0) args else c("insteval", "growth")

resident <- function(name) {
  status <- readLines("/proc/self/status")
  line <- grep(name, status, value = TRUE)
  as.numeric(gsub("[^0-9]", "", line)) / 1024
}
big <- function(x) format(x, big.mark = ",", scientific = FALSE)

bench_start(
  if ("movielens" %in% wanted) "crossed-large" else "crossed",
  "Several grouping factors",
  paste(c("crossed.R", args), collapse = " ")
)

effective <- function(fit) {
  as.numeric(posterior::summarise_draws(fit$draws, "ess_bulk")$ess_bulk)
}

# Posterior means and sds beside what another program estimates, and effective
# draws.
table_of <- function(fit, other) {
  found <- posterior::summarise_draws(
    fit$draws,
    "mean",
    "sd",
    "rhat",
    "ess_bulk",
    "ess_tail"
  )
  out <- data.frame(
    ` ` = found$variable,
    mean = fixed(as.numeric(found$mean), 4),
    sd = fixed(as.numeric(found$sd), 4),
    `R-hat` = fixed(as.numeric(found$rhat), 3),
    `ESS bulk` = round(as.numeric(found$ess_bulk)),
    tail = round(as.numeric(found$ess_tail)),
    check.names = FALSE
  )
  if (!is.null(other)) {
    out$lme4 <- fixed(other, 4)
  }
  out
}

# ---- InstEval ----------------------------------------------------------------

if ("insteval" %in% wanted) {
  data("InstEval", package = "lme4")
  d <- InstEval
  d$good <- as.integer(d$y >= 4)
  cases <- list(
    list(
      title = "normal",
      formula = y ~ service + (1 | s) + (1 | d) + (1 | dept),
      family = gaussian(),
      iter = 2000,
      other = "lmer()",
      fit = function(formula) lme4::lmer(formula, d)
    ),
    list(
      title = "logistic",
      formula = good ~ service + (1 | s) + (1 | d) + (1 | dept),
      family = binomial(),
      iter = 1400,
      other = "glmer(nAGQ = 0)",
      fit = function(formula) {
        lme4::glmer(formula, d, binomial(), nAGQ = 0)
      }
    )
  )
  for (case in cases) {
    ours <- cpu_seconds(
      fit <- tall_glmer(
        case$formula,
        d,
        case$family,
        iter = case$iter,
        keep_effects = "summary",
        seed = 1,
        refresh = 0
      )
    )
    theirs <- cpu_seconds(ml <- case$fit(case$formula))
    sds <- as.data.frame(lme4::VarCorr(ml))
    estimates <- c(
      lme4::fixef(ml),
      sds$sdcor[match(names(fit$factors), sds$grp)],
      if (case$title == "normal") stats::sigma(ml)
    )
    ess <- effective(fit)
    say(
      "\n### InstEval, ", case$title, "\n\n",
      big(nrow(d)), " rows. ", fixed(ours, 1), " processor seconds for ",
      big(posterior::ndraws(fit$draws)), " draws, of which ",
      round(min(ess)), " count at least; ", case$other, " ",
      fixed(theirs, 1), ", that is ", fixed(ours / theirs, 2),
      " times. In effective draws a processor\nsecond: ",
      round(min(ess) / ours), " of the slowest parameter. R-hat of the effects ",
      "up to ", fixed(max(fit$effects$rhat), 3), ".\n"
    )
    say_table(table_of(fit, estimates))
  }
}

# ---- growth ------------------------------------------------------------------

# n ratings by `users` of `items`, of Zipf's law.
ratings <- function(n, users, items) {
  set.seed(1)
  zipf <- function(m) 1 / (10 + seq_len(m))^0.8
  d <- data.frame(
    user = sample(users, n, TRUE, zipf(users)),
    item = sample(items, n, TRUE, zipf(items))
  )
  u <- 0.4 * rnorm(users)
  v <- 0.5 * rnorm(items)
  d$y <- 3.5 + u[d$user] + v[d$item] + 0.85 * rnorm(n)
  d$good <- as.integer(d$y > 3.5)
  d
}

if ("growth" %in% wanted) {
  say("\n### A sweep by rows\n\n")
  rows <- c(1e5, 1e6, 1e7)
  out <- lapply(rows, function(n) {
    d <- ratings(n, round(n / 150), round(n / 400))
    seconds <- vapply(c("y", "good"), FUN.VALUE = 0, function(name) {
      x <- cbind("(Intercept)" = rep(1, n))
      model <- model_crossed(
        x,
        d[[name]],
        list(user = d$user, item = d$item),
        if (name == "y") "gaussian" else "bernoulli"
      )
      # what the start takes is not of the sweeps
      run <- function(iter) {
        cpu_seconds(sg_sample(
          model,
          kernel_gibbs("none"),
          iter = iter,
          warmup = 5,
          chains = 1,
          seed = 1,
          refresh = 0
        ))
      }
      few <- run(6)
      (run(26) - few) / 20
    })
    data.frame(
      rows = big(n),
      levels = paste(big(round(n / 150)), "+", big(round(n / 400))),
      `normal, ns a row` = fixed(1e9 * seconds[["y"]] / n, 1),
      `logistic, ns a row` = fixed(1e9 * seconds[["good"]] / n, 1),
      check.names = FALSE
    )
  })
  say_table(do.call(rbind, out))
}

# ---- MovieLens ---------------------------------------------------------------

if ("movielens" %in% wanted) {
  d <- ratings(25e6, 162e3, 59e3)
  d$good <- NULL
  invisible(gc())
  before <- resident("VmRSS")
  seconds <- cpu_seconds(
    fit <- tall_glmer(
      y ~ 1 + (1 | user) + (1 | item),
      d,
      iter = 500,
      warmup = 100,
      chains = 1,
      keep_effects = "summary",
      seed = 1,
      refresh = 0
    )
  )
  peak <- resident("VmHWM") - before
  ess <- effective(fit)
  say(
    "\n### MovieLens-25M's shape\n\n",
    big(nrow(d)), " rows, ", paste(big(ngrps(fit)), collapse = " + "),
    " levels: ", fixed(seconds / 60, 1), " minutes of one core for ",
    posterior::ndraws(fit$draws), " draws, of which ", round(min(ess)),
    " count at\nleast. ", round(peak), " MB beyond the data frame at the peak. ",
    "(MixedModels.jl is said to take up to two\nhours and 20 GB for a maximum ",
    "on MovieLens-25M itself.)\n"
  )
  say_table(table_of(fit, NULL))
}
