# How long do several grouping factors take beside lme4's maxima, what do they
# leave, and does the cost of a sweep grow with the rows alone?
#
#   Rscript bench/crossed.R [insteval] [growth] [levels] [joint] [seeds] [exact]
#     [references] [normal] [profile] [millions] [movielens]
#
# insteval: lme4's InstEval, 73,421 ratings by 2,972 students of 1,128 lecturers
# in 14 departments, normal and logistic, beside lmer() and glmer(nAGQ = 0).
# growth: seconds of a sweep from 10^5 rows to 2.5 10^7; 10 minutes. levels: few
# levels in all, as columns, beside sweeps and lme4; 10 minutes. joint: workers who
# seldom change firms, with joint draws of all effects and without; 5 minutes.
# seeds: the worst of 20, with a slope and nested groups; 6 minutes. exact: small
# standard deviations of logistic rows beside importance sampling; 3 minutes.
# references: lme4's grouseticks and VerbAgg beside rstanarm; 12 minutes. normal:
# likewise Penicillin and cake; 2 minutes. profile: lmer()'s profile of InstEval;
# 6 minutes. millions: 10^7 levels; 2 minutes. movielens: 25 million ratings of the
# shape of MovieLens-25M, simulated, and memory; 20 minutes.
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))

args <- commandArgs(TRUE)
wanted <- if (length(args) > 0) args else "insteval"

resident <- function(name) {
  status <- readLines("/proc/self/status")
  line <- grep(name, status, value = TRUE)
  as.numeric(gsub("[^0-9]", "", line)) / 1024
}
big <- function(x) format(x, big.mark = ",", scientific = FALSE)

# those that take long have results of their own
alone <- c(
  growth = "crossed-growth",
  movielens = "crossed-large",
  levels = "crossed-levels",
  joint = "crossed-joint",
  seeds = "crossed-seeds",
  exact = "crossed-exact",
  references = "crossed-references",
  normal = "crossed-normal",
  profile = "crossed-profile",
  millions = "crossed-millions"
)
own <- alone[intersect(names(alone), wanted)]
bench_start(
  if (length(own) > 0) own[[1]] else "crossed",
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
  rows <- c(1e5, 1e6, 5e6, 2.5e7)
  out <- lapply(rows, function(n) {
    d <- ratings(n, round(n / 150), round(n / 400))
    seconds <- vapply(c("y", "good"), FUN.VALUE = 0, function(name) {
      # some seconds of either: a few sweeps of few rows take no time that one
      # could measure
      n_sweep <- max(10, ceiling((if (name == "y") 1.5e8 else 3e7) / n))
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
      stats::median(vapply(1:3, FUN.VALUE = 0, function(k) {
        few <- run(6)
        (run(6 + n_sweep) - few) / n_sweep
      }))
    })
    invisible(gc())
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

# ---- levels ------------------------------------------------------------------

if ("levels" %in% wanted) {
  say("\n### Few levels\n\n")
  cases <- list(
    list(rows = 2e5, levels = c(60, 25), family = gaussian()),
    list(rows = 1e7, levels = c(60, 25), family = gaussian()),
    list(rows = 1e6, levels = c(60, 25), family = binomial()),
    list(rows = 3e6, levels = c(20, 6), family = binomial()),
    list(rows = 1e7, levels = c(60, 25), family = binomial())
  )
  out <- lapply(cases, function(case) {
    set.seed(1)
    n <- case$rows
    effects <- lapply(case$levels, function(j) 0.5 * rnorm(j))
    d <- data.frame(
      a = sample(case$levels[[1]], n, TRUE),
      b = sample(case$levels[[2]], n, TRUE),
      x = rnorm(n)
    )
    eta <- d$x / 2 - 1 + effects[[1]][d$a] + effects[[2]][d$b]
    is_normal <- case$family$family == "gaussian"
    d$y <- if (is_normal) eta + rnorm(n) else rbinom(n, 1, plogis(eta))
    rm(eta)
    formula <- y ~ x + (1 | a) + (1 | b)
    call <- function(...) {
      tall_glmer(formula, d, case$family, seed = 1, refresh = 0, ...)
    }
    seconds <- cpu_seconds(fit <- call())
    of <- posterior::summarise_draws(fit$draws, "rhat", "ess_bulk")
    of <- lapply(of[-1], as.double)
    # sweeps all take the same: 4 chains of 2,000
    swept <- function(iter) {
      cpu_seconds(call(
        kernel = kernel_gibbs("none"),
        iter = iter,
        warmup = 1,
        chains = 1,
        thin = 2
      ))
    }
    few <- swept(3)
    sweep <- (swept(23) - few) / 20
    maximum <- if (n <= 1e6) {
      fixed(cpu_seconds(suppressWarnings(if (is_normal) {
        lme4::lmer(formula, d)
      } else {
        lme4::glmer(formula, d, binomial(), nAGQ = 0)
      })), 0)
    } else {
      ""
    }
    data.frame(
      rows = big(n),
      levels = paste(case$levels, collapse = " + "),
      family = case$family$family,
      `CPU s` = fixed(seconds, 0),
      `rows a step` = if (fit$kernel$name == "smh") {
        fixed(mean(fit$sizes), 0)
      } else {
        if (fit$kernel$name == "gibbs") "all" else "sums"
      },
      `ESS bulk, least` = round(min(of$ess_bulk)),
      `R-hat, worst` = fixed(max(of$rhat), 3),
      `8,000 sweeps, s` = fixed(8000 * sweep, 0),
      lme4 = maximum,
      check.names = FALSE
    )
  })
  say(
    "Of 4,000 draws. What 8,000 sweeps would take is reckoned from 20; lme4: ",
    "lmer(), glmer(nAGQ = 0).\n\n"
  )
  say_table(do.call(rbind, out))
}

# ---- joint -------------------------------------------------------------------

# Wages of workers of a firm's twenty, a share of whose years are elsewhere: at
# the next firm, so that firms are a ring.
job_rows <- function(n_worker, moves) {
  set.seed(1)
  worker <- rep(seq_len(n_worker), each = 10)
  firm <- (worker - 1) %/% 20 + 1
  n_firm <- max(firm)
  is_moved <- runif(length(worker)) < moves
  firm[is_moved] <- firm[is_moved] %% n_firm + 1
  data.frame(
    worker,
    firm,
    wage = rnorm(n_worker)[worker] + rnorm(n_firm)[firm] + rnorm(length(worker))
  )
}

if ("joint" %in% wanted) {
  say("\n### Workers and firms\n\n")
  cases <- list(c(2000, 0.05), c(20000, 0.05), c(20000, 0.01))
  out <- lapply(cases, function(case) {
    d <- job_rows(case[[1]], case[[2]])
    # of firms' effects
    of <- function(joint) {
      fit <- suppressMessages(tall_glmer(
        wage ~ 1 + (1 | worker) + (1 | firm),
        d,
        kernel = kernel_gibbs("draws", joint),
        iter = 600,
        warmup = 100,
        chains = 2,
        # one sweep a draw, in both
        thin = 2,
        seed = 1,
        refresh = 0
      ))
      n <- nrow(fit$effects)
      firms <- seq(n - max(d$firm) + 1, n, length.out = 100)
      found <- posterior::summarise_draws(
        fit$effect_draws[, , round(firms)],
        "ess_bulk"
      )
      draws <- posterior::summarise_draws(fit$draws, "ess_bulk")
      list(
        cpu = fit$cpu,
        firms = min(as.double(found$ess_bulk)),
        parameters = min(as.double(draws$ess_bulk)),
        mixing = fit$recipe$mixing
      )
    }
    with <- of(TRUE)
    without <- of(FALSE)
    data.frame(
      rows = big(nrow(d)),
      levels = paste(big(case[[1]]), "+", big(max(d$firm))),
      moved = paste0(100 * case[[2]], " %"),
      foretold = fixed(with$mixing, 3),
      `sweeps, CPU s` = fixed(without$cpu, 0),
      `firms, least ESS` = round(without$firms),
      `parameters` = round(without$parameters),
      `joint, CPU s` = fixed(with$cpu, 0),
      `firms` = round(with$firms),
      `parameters ` = round(with$parameters),
      `firms, ratio per CPU s` = fixed(
        with$firms / with$cpu * without$cpu / without$firms,
        1
      ),
      check.names = FALSE
    )
  })
  say(
    "Every second of 1,000 sweeps after warmup is a draw. Firms: least of a ",
    "hundred.\n\n"
  )
  say_table(do.call(rbind, out))
}

# ---- seeds -------------------------------------------------------------------

# 2,000 rows: 100 groups with a slope, 15 with three others in each.
seeded_rows <- function(seed) {
  set.seed(seed)
  n <- 2000
  d <- data.frame(
    s = sample(100, n, TRUE),
    b = sample(15, n, TRUE),
    c = sample(3, n, TRUE),
    x = rnorm(n)
  )
  eta <- d$x / 2 + rnorm(100)[d$s] + 0.3 * rnorm(15)[d$b] +
    0.3 * rnorm(45)[3 * (d$b - 1) + d$c]
  d$gaussian <- eta + rnorm(n)
  d$binomial <- rbinom(n, 1, plogis(eta))
  d$poisson <- rpois(n, exp(eta))
  d
}

if ("seeds" %in% wanted) {
  say("\n### 20 seeds\n\n")
  families <- c("gaussian", "binomial", "poisson")
  out <- lapply(families, function(family) {
    found <- vapply(1:20, FUN.VALUE = numeric(3), function(seed) {
      formula <- stats::reformulate(
        c("x", "(1 + x | s)", "(1 | b / c)"),
        family
      )
      fit <- tall_glmer(formula, seeded_rows(seed), family, seed = seed)
      of <- posterior::summarise_draws(fit$draws, "rhat", "ess_bulk")
      c(max(of$rhat), min(of$ess_bulk), fit$cpu)
    })
    data.frame(
      family = family,
      `R-hat, worst` = fixed(max(found[1, ]), 3),
      `ESS bulk, least` = round(min(found[2, ])),
      median = round(median(found[2, ])),
      `CPU s` = fixed(median(found[3, ]), 1),
      check.names = FALSE
    )
  })
  say("Of 4,000 draws, over all parameters and seeds.\n\n")
  say_table(do.call(rbind, out))
}

# ---- small standard deviations -----------------------------------------------

# The data sets of bench/sbc.R near, crossed and logistic. Their 100 rows say so
# little that the posterior is near enough to the prior to weigh draws of the
# latter.

from_prior <- function(columns, y, n_draw) {
  m <- 1e4
  parts <- lapply(seq_len(n_draw / m), function(k) {
    theta <- cbind(
      matrix(rnorm(2 * m, 0, 0.7), m),
      matrix(abs(rnorm(2 * m, 0, 0.15)), m),
      2 * rbeta(m, 0.5, 0.5) - 1,
      abs(rnorm(m, 0, 0.15))
    )
    first <- matrix(rnorm(12 * m), m)
    second <- matrix(rnorm(12 * m), m)
    slope <- theta[, 5] * first + sqrt(1 - theta[, 5]^2) * second
    outer <- matrix(rnorm(6 * m), m) * theta[, 6]
    x <- columns$x[, 2]
    eta <- theta[, 1] + tcrossprod(theta[, 2], x) +
      (theta[, 3] * first)[, columns$inner] +
      (theta[, 4] * slope)[, columns$inner] * rep(x, each = m) +
      outer[, columns$outer]
    signs <- rep(2 * y - 1, each = m)
    list(
      theta = theta,
      log_lik = rowSums(plogis(eta * signs, log.p = TRUE))
    )
  })
  log_lik <- unlist(lapply(parts, `[[`, "log_lik"))
  weight <- exp(log_lik - max(log_lik))
  list(
    theta = do.call(rbind, lapply(parts, `[[`, "theta")),
    weight = weight / sum(weight)
  )
}

if ("exact" %in% wanted) {
  say("\n## Small standard deviations\n")
  source(file.path(dirname(script), "..", "tests", "testthat", "helper-crossed.R"))
  problem <- sbc_near_problem(FALSE, FALSE)
  of_seed <- function(seed) {
    set.seed(seed)
    columns <- problem$columns()
    eta <- near_predictor(columns, problem$draw())
    y <- rbinom(length(eta), 1, plogis(eta))
    groups <- list(
      inner = list(group = columns$inner, z = columns$x),
      outer = columns$outer
    )
    model <- model_crossed(
      columns$x,
      y,
      groups,
      "bernoulli",
      prior = prior_normal(0, 0.7),
      prior_covariance = near_prior
    )
    fit <- sg_sample(
      model,
      iter = 60000,
      warmup = 1000,
      thin = 5,
      chains = 2,
      seed = seed,
      refresh = 0
    )
    found <- posterior::summarise_draws(fit$draws, "mean", "sd", "mcse_mean")
    exact <- from_prior(columns, y, 4e5)
    mean <- colSums(exact$weight * exact$theta)
    away <- exact$theta - rep(mean, each = nrow(exact$theta))
    sd <- sqrt(colSums(exact$weight * away^2))
    error <- sqrt(colSums(exact$weight^2 * away^2) + found$mcse_mean^2)
    data.frame(
      parameter = found$variable,
      off = (found$mean - mean) / sd,
      z = (found$mean - mean) / error,
      sd = found$sd / sd,
      ess = 1 / sum(exact$weight^2)
    )
  }
  all <- do.call(rbind, lapply(1:16, of_seed))
  say(
    "100 logistic rows, ", length(unique(all$parameter)), " parameters, of 16 data ",
    "sets: posterior means of 24,000 draws less those of 400,000 draws from the ",
    "prior, weighed by the likelihood (", round(min(all$ess)), " effective or ",
    "more), in posterior sds, averaged over data sets with a standard error; the ",
    "mean square of differences in Monte Carlo errors, which is 1 on average; the ",
    "largest of these; and the ratio of sds.\n"
  )
  rows <- split(all, factor(all$parameter, unique(all$parameter)))
  say_table(do.call(rbind, lapply(rows, function(one) {
    data.frame(
      parameter = one$parameter[[1]],
      off = fixed(mean(one$off), 4),
      `+-` = fixed(sd(one$off) / sqrt(nrow(one)), 4),
      `mean square` = fixed(mean(one$z^2)),
      largest = fixed(max(abs(one$z))),
      `sd ratio` = fixed(mean(one$sd), 3),
      check.names = FALSE
    )
  })))
}

# ---- references --------------------------------------------------------------

# Means and sds of stan_glmer()'s coefficients, sds (in the order of `factors`)
# and sigma, and effective draws.
of_stan <- function(fit, n_coef, factors) {
  m <- as.matrix(fit)
  # lme4 writes b:a for a/b, and orders factors by their levels
  sorted <- function(x) {
    vapply(strsplit(x, ":"), function(p) paste(sort(p), collapse = ":"), "")
  }
  at <- grep("^Sigma", colnames(m))
  names <- sub("^Sigma\\[(.*):\\(Inter.*", "\\1", colnames(m)[at])
  at <- at[match(sorted(factors), sorted(names))]
  values <- cbind(
    m[, seq_len(n_coef)],
    sqrt(m[, at, drop = FALSE]),
    if ("sigma" %in% colnames(m)) m[, "sigma"]
  )
  chains <- function(x) matrix(x, ncol = length(fit$stanfit@sim$samples))
  list(
    mean = colMeans(values),
    sd = apply(values, 2, sd),
    ess = apply(values, 2, function(x) posterior::ess_bulk(chains(x)))
  )
}

# Priors of standard deviations are rstanarm's: exponential, where the response
# is normal in the unit of sigma. Such a one we do not have: draws of exponential
# priors in the unit of lme4's sigma are weighted by the ratio of the two.
prior_weights <- function(fit, sigma) {
  draws <- posterior::as_draws_matrix(fit$draws)
  own <- unclass(draws[, "sigma"])[, 1]
  sds <- unclass(draws[, grep("^sd_", colnames(draws))])
  log_w <- -rowSums(sds) * (1 / own - 1 / sigma) - ncol(sds) * log(own)
  w <- exp(log_w - max(log_w))
  w / sum(w)
}

references <- function(case) {
  is_normal <- case[[4]]$family == "gaussian"
  sigma <- if (is_normal) stats::sigma(lme4::lmer(case[[2]], case[[3]])) else 1
  ours <- cpu_seconds(
    fit <- tall_glmer(
      case[[2]],
      case[[3]],
      case[[4]],
      prior_covariance = prior_exponential(1 / sigma),
      iter = 5000,
      seed = 1
    )
  )
  theirs <- cpu_seconds(
    stan <- suppressWarnings(rstanarm::stan_glmer(
      case[[2]],
      case[[3]],
      case[[4]],
      iter = 2500,
      warmup = 500,
      adapt_delta = case$adapt_delta,
      seed = 1,
      refresh = 0,
      cores = 1
    ))
  )
  found <- posterior::summarise_draws(fit$draws, "ess_bulk")
  n <- posterior::ndraws(fit$draws)
  w <- if (is_normal) prior_weights(fit, sigma) else rep(1 / n, n)
  share <- 1 / (n * sum(w^2))
  draws <- unclass(posterior::as_draws_matrix(fit$draws))
  mean <- colSums(draws * w)
  sd <- sqrt(colSums(draws^2 * w) - mean^2)
  other <- of_stan(stan, fit$n_coef, names(fit$factors))
  error <- sqrt(
    sd^2 / (share * as.numeric(found$ess_bulk)) + other$sd^2 / other$ess
  )
  np <- bayesplot::nuts_params(stan)
  say(
    "\n### ", case[[1]], "\n\n", fixed(ours, 1), " processor seconds, ",
    "rstanarm ", fixed(theirs, 1), " with ",
    sum(np$Value[np$Parameter == "divergent__"]), " divergent transitions of ",
    "8,000 (`adapt_delta` ", case$adapt_delta, ").",
    if (is_normal) {
      paste0(" Weights of the prior leave ", percent(share), " of our draws.")
    },
    "\n\n"
  )
  say_table(data.frame(
    ` ` = found$variable,
    mean = fixed(mean, 4),
    sd = fixed(sd, 4),
    rstanarm = fixed(other$mean, 4),
    `its sd` = fixed(other$sd, 4),
    `difference, Monte Carlo errors` = fixed((mean - other$mean) / error, 1),
    check.names = FALSE
  ))
}

if (any(c("references", "normal") %in% wanted)) {
  for (name in c("Penicillin", "cake", "grouseticks", "VerbAgg")) {
    data(list = name, package = "lme4")
  }
  cake$temp <- as.numeric(as.character(cake$temperature))
  VerbAgg$yes <- as.integer(VerbAgg$r2 == "Y")
  cases <- list(
    list(
      "grouseticks",
      TICKS ~ YEAR + cHEIGHT + (1 | BROOD) + (1 | LOCATION),
      grouseticks,
      poisson(),
      adapt_delta = 0.99
    ),
    list(
      "VerbAgg",
      yes ~ Anger + Gender + btype + situ + (1 | id) + (1 | item),
      VerbAgg,
      binomial(),
      adapt_delta = 0.95
    ),
    list(
      "Penicillin",
      diameter ~ 1 + (1 | plate) + (1 | sample),
      Penicillin,
      gaussian(),
      adapt_delta = 0.99
    ),
    list(
      "cake",
      angle ~ recipe + temp + (1 | recipe:replicate) + (1 | replicate),
      cake,
      gaussian(),
      adapt_delta = 0.95
    )
  )
  say(
    "\nThe same priors, those of rstanarm's default: standard deviations are ",
    "exponential, of a normal\nresponse in the unit of sigma.\n"
  )
  for (case in if ("normal" %in% wanted) cases[3:4] else cases[1:2]) {
    references(case)
  }
}

# ---- profile -----------------------------------------------------------------

if ("profile" %in% wanted) {
  data("InstEval", package = "lme4")
  formula <- y ~ service + (1 | s) + (1 | d) + (1 | dept)
  fit <- tall_glmer(
    formula,
    InstEval,
    keep_effects = "none",
    seed = 1,
    refresh = 0
  )
  ours <- posterior_interval(fit, prob = 0.9)[3:6, ]
  m <- lme4::lmer(formula, InstEval, REML = FALSE)
  seconds <- cpu_seconds(p <- profile(m, which = 1:4, signames = FALSE))
  theirs <- confint(p, level = 0.9)
  say(
    "\nInstEval, normal: 90 % intervals, of draws and of the profile of the ",
    "likelihood, ", fixed(seconds, 0), " processor seconds.\n\n"
  )
  say_table(data.frame(
    ` ` = rownames(ours),
    `5 %` = fixed(ours[, 1], 4),
    `95 %` = fixed(ours[, 2], 4),
    `profile, 5 %` = fixed(theirs[, 1], 4),
    `95 % ` = fixed(theirs[, 2], 4),
    check.names = FALSE
  ))
  cells <- nrow(unique(InstEval[c("s", "d", "dept", "service")]))
  say("\nCells that differ: ", big(cells), " of ", big(nrow(InstEval)), ".\n")
}

# ---- ten million levels ------------------------------------------------------

if ("millions" %in% wanted) {
  set.seed(1)
  n <- 2e7
  d <- data.frame(a = rep(seq_len(n / 2), each = 2), b = sample(100L, n, TRUE))
  d$y <- rnorm(n) + rnorm(100)[d$b]
  seconds <- cpu_seconds(fit <- tall_glmer(
    y ~ 1 + (1 | a) + (1 | b),
    d,
    iter = 4,
    warmup = 2,
    chains = 1,
    seed = 1,
    refresh = 0
  ))
  say(
    "\n", big(n), " rows of ", big(n / 2), " + 100 levels: ", fixed(seconds, 0),
    " processor seconds for four sweeps and all before, and ",
    fixed(resident("VmHWM") / 1024, 1), " GB at most.\n"
  )
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
