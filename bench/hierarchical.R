# A hierarchical model that a user writes by hand, in its non-centred form, on a
# table of few factors; and a response of classes on one factor, some levels of
# which have one class alone. See README.md.
#
#   Rscript bench/hierarchical.R [seeds]
#
# InstEval is a data set of the package lme4, flights one of nycflights13: a
# part whose data are not there says so.
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))
seeds <- if (length(commandArgs(TRUE)) > 0) as.integer(commandArgs(TRUE)[[1]]) else 10
bench_start("hierarchical", "Posteriors far from normal, on tables of few factors")

# A data set of a package, or of a file INSTEVAL=, FLIGHTS= names; NULL:
# neither.
data_of <- function(name, package) {
  file <- Sys.getenv(toupper(name))
  if (nzchar(file)) {
    return(as.data.frame(readRDS(file)))
  }
  if (requireNamespace(package, quietly = TRUE)) {
    return(as.data.frame(getExportedValue(package, name)))
  }
  say(package, " is not installed: no ", name, ".\n")
  NULL
}

prior <- function(theta) {
  sum(dnorm(theta$beta, 0, 2.5, log = TRUE)) +
    dnorm(theta$tau, 0, 1, log = TRUE) +
    sum(dnorm(theta$z, log = TRUE))
}
init <- list(beta = numeric(3), tau = 1, z = numeric(14))
positive <- list(tau = "positive")

# One model as three users write it.
ways <- list(
  "a factor picks z" = function(d) {
    model_custom(
      function(theta, batch) {
        eta <- theta$beta[1] + theta$beta[2] * batch$service +
          theta$beta[3] * batch$studage + theta$tau * theta$z[batch$dept]
        batch$y * eta - log1p(exp(eta))
      },
      prior,
      d,
      init,
      transform = positive
    )
  },
  "matrix, dbinom(plogis())" = function(d) {
    model_custom(
      function(theta, batch) {
        eta <- drop(batch$x %*% theta$beta) + (theta$tau * theta$z)[batch$g]
        dbinom(batch$y, 1, plogis(eta), log = TRUE)
      },
      prior,
      list(
        y = as.integer(d$y),
        x = cbind(1, d$service, d$studage),
        g = as.integer(d$dept)
      ),
      init,
      transform = positive
    )
  },
  "dummies, ifelse() on y" = function(d) {
    model_custom(
      function(theta, batch) {
        eta <- drop(batch$x %*% theta$beta) +
          drop(batch$dummy %*% (theta$tau * theta$z))
        ifelse(batch$y == 1, plogis(eta, log.p = TRUE), plogis(-eta, log.p = TRUE))
      },
      prior,
      list(
        y = as.integer(d$y),
        x = cbind(1, d$service, d$studage),
        dummy = stats::model.matrix(~ 0 + dept, d)
      ),
      init,
      transform = positive
    )
  }
)

# CPU seconds, largest R-hat, least effective draws of a run.
judge <- function(run) {
  seconds <- cpu_seconds(fit <- suppressWarnings(suppressMessages(run())))
  table <- posterior::summarise_draws(fit$draws)
  list(
    seconds = seconds,
    rhat = max(table$rhat),
    ess = min(table$ess_bulk),
    tail = min(table$ess_tail)
  )
}
worst_of <- function(found, what, by) by(vapply(found, function(x) x[[what]], 0))

flights <- data_of("flights", "nycflights13")
if (!is.null(flights)) {
  set.seed(1)
  d <- flights[sample(nrow(flights), 20000), c("origin", "carrier")]
  say(
    "## tall_multinom(origin ~ carrier), flights\n\n",
    "20,000 rows, 32 parameters; of carriers that fly from one or two airports\n",
    "alone the likelihood has no end. The worst of ", seeds, " seeds;\n",
    "/ multinom(): in times of `nnet::multinom()`, which has one point, in the same\n",
    "run.\n"
  )
  nnet <- cpu_seconds(
    nnet::multinom(origin ~ carrier, d, trace = FALSE, maxit = 500)
  )
  found <- lapply(seq_len(seeds), function(seed) {
    judge(function() tall_multinom(origin ~ carrier, d, seed = seed))
  })
  seconds <- worst_of(found, "seconds", max)
  say_table(data.frame(
    "CPU s" = number(seconds),
    "/ multinom()" = number(seconds / nnet),
    "R-hat" = fixed(worst_of(found, "rhat", max), 4),
    "ESS" = fixed(worst_of(found, "ess", min), 0),
    "tail ESS" = fixed(worst_of(found, "tail", min), 0),
    "wanted (20 s)" = yes_no(seconds <= 20),
    check.names = FALSE
  ))
}

insteval <- data_of("InstEval", "lme4")
if (!is.null(insteval)) {
  d <- data.frame(
    y = as.double(insteval$y >= 4),
    service = as.double(insteval$service == "1"),
    studage = as.numeric(insteval$studage),
    dept = insteval$dept
  )
  say(
    "## Non-centred logistic model, InstEval\n\n",
    "73,421 rows, 14 departments, 18 parameters, `sg_sample(model)`: 4,000 draws\n",
    "of 4 chains. The worst of ", seeds, " seeds. CPU of all from the model to the\n",
    "draws; / gradient: in evaluations of the log posterior and its gradient over\n",
    "all rows, in the same run.\n"
  )
  rows <- lapply(names(ways), function(way) {
    model <- ways[[way]](d)
    start <- model$start
    look <- function() tallbayes:::model_evaluate(model, start)
    look()
    gradient <- cpu_seconds(for (k in 1:20) look()) / 20
    found <- lapply(seq_len(seeds), function(seed) {
      # whose mode nobody has looked for
      judge(function() sg_sample(ways[[way]](d), seed = seed))
    })
    seconds <- worst_of(found, "seconds", max)
    message(way, ": ", number(seconds), " s")
    data.frame(
      "log_lik" = way,
      "CPU s" = number(seconds),
      "/ gradient" = number(seconds / gradient),
      "R-hat" = fixed(worst_of(found, "rhat", max), 4),
      "ESS" = fixed(worst_of(found, "ess", min), 0),
      "tail ESS" = fixed(worst_of(found, "tail", min), 0),
      "wanted (60 s, 1.01)" = yes_no(
        seconds <= 60 && worst_of(found, "rhat", max) <= 1.01
      ),
      check.names = FALSE
    )
  })
  say_table(do.call(rbind, rows))
}
