# How far are the posterior means and standard deviations of regressions with
# classes from the exact ones, and what do they cost beside others' maxima? See
# README.md.
#
#   Rscript bench/classes.R [case ...]
source(file.path(
  dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))),
  "common.R"
))
source(file.path(bench_folder(), "moments.R"))
compile_c(
  "reference.c",
  # R puts its own -O2 behind these
  "-march=native -ffast-math -ftree-vectorize -fvect-cost-model=dynamic",
  "$(BLAS_LIBS) $(FLIBS) -lm"
)

# A case: fit(...), a call as a user would write it; reference(fit), the moments of
# its variables; long, the length of the long run, where it is another; others, what
# is timed beside it: CPU seconds and log-likelihood. References see columns
# that are standardised, where the priors of ?model_classes are normal(0, 2.5) of
# all coefficients.

# ---- unordered ---------------------------------------------------------------

softmax_log_lik <- function(x, class, theta) {
  .Call("softmax_many", x, class, theta)
}

# The same in R, of one point.
softmax_in_r <- function(x, class, theta) {
  eta <- cbind(0, x %*% matrix(theta, ncol(x)))
  sum(eta[cbind(seq_along(class), class + 1)]) - sum(log(rowSums(exp(eta))))
}

softmax_hessian <- function(x, theta) {
  d <- ncol(x)
  p <- exp(cbind(0, x %*% matrix(theta, d)))
  p <- (p / rowSums(p))[, -1]
  k <- ncol(p)
  out <- matrix(0, d * k, d * k)
  for (a in seq_len(k)) {
    for (b in seq_len(a)) {
      at <- list((a - 1) * d + seq_len(d), (b - 1) * d + seq_len(d))
      block <- crossprod(x, x * (p[, a] * ((a == b) - p[, b])))
      out[at[[1]], at[[2]]] <- block
      out[at[[2]], at[[1]]] <- t(block)
    }
  }
  out
}

# Natural coefficients from those of standardised columns, and back.
softmax_turn <- function(scaled, d, k) {
  mean <- attr(scaled, "scaled:center")
  sd <- attr(scaled, "scaled:scale")
  one <- diag(c(1, 1 / sd))
  one[1, -1] <- -mean / sd
  kronecker(diag(k), one)
}

multinom_reference <- function(columns, y, fit) {
  set.seed(22)
  scaled <- scale(as.matrix(columns))
  x <- cbind(1, scaled)
  class <- as.integer(y) - 1L
  k <- nlevels(y) - 1
  turn <- softmax_turn(scaled, ncol(x), k)
  mode <- drop(solve(turn, colMeans(posterior::as_draws_matrix(fit$draws))))
  # Newton's, from the means of the draws
  log_density <- function(theta) {
    softmax_log_lik(x, class, theta) - colSums(theta^2) / (2 * 2.5^2)
  }
  by_r <- softmax_in_r(x, class, mode)
  stopifnot(abs(softmax_log_lik(x, class, cbind(mode)) - by_r) < 1e-9 * abs(by_r))
  for (step in 1:3) {
    hessian <- softmax_hessian(x, mode) + diag(length(mode)) / 2.5^2
    p <- exp(cbind(0, x %*% matrix(mode, ncol(x))))
    residual <- outer(class, 0:k, "==") - p / rowSums(p)
    gradient <- as.vector(crossprod(x, residual[, -1])) - mode / 2.5^2
    mode <- mode + solve(hessian, gradient)
  }
  moments_about(
    log_density,
    mode,
    solve(hessian),
    natural = function(theta) turn %*% theta,
    df = 30 + 3 * length(mode)
  )
}

# ---- ordered -----------------------------------------------------------------

# P(y <= k) = F(c_k - x'b): counts of cells, of standardised columns.
polr_reference <- function(x, y, count, cdf, density, scaling, fit) {
  set.seed(23)
  d <- ncol(x)
  k <- nlevels(y) - 1
  class <- as.integer(y)
  cuts <- function(theta) {
    rbind(theta[d + 1, ], exp(theta[-seq_len(d + 1), , drop = FALSE]))
  }
  log_density <- function(theta) {
    apply(theta, 2, function(at) {
      gaps <- at[-seq_len(d + 1)]
      cut <- cumsum(c(at[[d + 1]], exp(gaps)))
      ends <- c(-Inf, cut, Inf)
      eta <- drop(x %*% at[seq_len(d)])
      share <- cdf(ends[class + 1] - eta) - cdf(ends[class] - eta)
      # a Dirichlet prior of counts 1 is flat in the shares of the classes
      sum(count * log(share)) - sum(at[seq_len(d)]^2) / (2 * 2.5^2) +
        sum(log(density(cut))) + sum(gaps)
    })
  }
  natural <- function(theta) {
    beta <- theta[seq_len(d), , drop = FALSE] / scaling$sd
    cut <- apply(cuts(theta), 2, cumsum)
    rbind(beta, cut + rep(colSums(beta * scaling$mean), each = k))
  }
  mean <- colMeans(posterior::as_draws_matrix(fit$draws))
  cut <- mean[-seq_len(d)] - sum(mean[seq_len(d)] * scaling$mean)
  start <- c(mean[seq_len(d)] * scaling$sd, cut[[1]], log(diff(cut)))
  minus <- function(theta) -log_density(cbind(theta))
  mode <- optim(start, minus, method = "BFGS", control = list(reltol = 1e-12))
  hessian <- optimHess(mode$par, minus)
  moments_about(log_density, mode$par, solve(hessian), natural)
}

# Columns standardised, and by what.
standardise <- function(columns) {
  x <- scale(as.matrix(columns))
  list(
    x = x,
    mean = attr(x, "scaled:center"),
    sd = attr(x, "scaled:scale")
  )
}

# ---- cases -------------------------------------------------------------------

covertype_case <- function(every, with_time = FALSE) {
  data <- tall_data("covertype")
  data <- data[seq(1, nrow(data), by = every), ]
  data <- data.frame(data[1:10], cover = factor(data$cover_type))
  list(
    n = nrow(data),
    fit = function(...) tall_multinom(cover ~ ., data, ...),
    reference = function(fit) multinom_reference(data[1:10], data$cover, fit),
    # 12,000 draws: the Monte Carlo error of a mean is 0.01 sds
    long = list(iter = 3500, warmup = 500),
    others = if (with_time) {
      list(
        "nnet::multinom()" = function() {
          data[1:10] <- scale(data[1:10])
          seconds <- cpu_seconds(
            fit <- nnet::multinom(cover ~ ., data, trace = FALSE, maxit = 1000)
          )
          c(seconds, as.numeric(logLik(fit)))
        },
        "PyTorch, L-BFGS" = function() {
          torch_maximum(cbind(1, scale(as.matrix(data[1:10]))), data$cover)
        }
      )
    }
  )
}

# CPU seconds and log-likelihood, NA where there is no PyTorch.
torch_maximum <- function(x, y) {
  python <- find_torch()
  if (is.null(python)) {
    return(c(NA, NA))
  }
  files <- replicate(2, tempfile())
  on.exit(unlink(files))
  writeBin(as.vector(t(x)), files[[1]])
  writeBin(as.double(as.integer(y) - 1), files[[2]])
  script <- file.path(bench_folder(), "classes_torch.py")
  line <- system2(
    python,
    c(script, files, nrow(x), ncol(x), nlevels(y)),
    stdout = TRUE
  )
  as.numeric(strsplit(line, " ")[[1]])
}

cases <- list(
  # 66 parameters; time beside another's
  covertype = function() covertype_case(1, with_time = TRUE),
  # every fourth row: a posterior that is less normal
  covertype_quarter = function() covertype_case(4),
  # episodes of patients, in cells of the same age, sex and outcome
  sepsis_logistic = function() {
    data <- tall_data("sepsis")
    names(data) <- c("age", "sex", "episode", "alive")
    data$episode <- ordered(data$episode)
    s <- standardise(data[c("age", "sex", "alive")])
    cells <- aggregate(list(count = rep(1, nrow(data))), data, sum)
    x <- as.matrix(cells[c("age", "sex", "alive")])
    x <- sweep(sweep(x, 2, s$mean), 2, s$sd, "/")
    list(
      n = nrow(data),
      fit = function(...) tall_polr(episode ~ age + sex + alive, data, ...),
      reference = function(fit) {
        polr_reference(x, cells$episode, cells$count, plogis, dlogis, s, fit)
      }
    )
  },
  # proteins in five classes of as many
  casp_probit = function() {
    data <- tall_data("casp")
    cuts <- quantile(data$RMSD, 0:5 / 5)
    data$class <- cut(data$RMSD, cuts, include.lowest = TRUE, ordered_result = TRUE)
    data$RMSD <- NULL
    s <- standardise(data[paste0("F", 1:9)])
    list(
      n = nrow(data),
      fit = function(...) tall_polr(class ~ ., data, method = "probit", ...),
      reference = function(fit) {
        polr_reference(s$x, data$class, 1, pnorm, dnorm, s, fit)
      }
    )
  }
)

# ---- run ---------------------------------------------------------------------

run_case <- function(name) {
  case <- cases[[name]]()
  length <- if (is.null(case$long)) {
    list(iter = 11000, warmup = 1000)
  } else {
    case$long
  }
  long_seconds <- elapsed(
    long <- do.call(case$fit, c(length, list(seed = 99, refresh = 0)))
  )
  cat(name, ": long run took", fixed(long_seconds, 0), "s\n")
  seconds <- cpu_seconds(default <- case$fit(seed = 1, refresh = 0))
  others <- lapply(case$others, function(other) other())
  cat(name, ": others done\n")
  reference_seconds <- elapsed(reference <- case$reference(long))
  cat(name, ": reference done in", fixed(reference_seconds, 0), "s\n")
  list(
    name = name,
    n = case$n,
    d = length(reference$mean),
    reference = reference,
    long = compare(long, reference),
    default = compare(default, reference),
    ess_long = smallest_ess(long),
    ess = smallest_ess(default),
    seconds = seconds,
    long_seconds = long_seconds,
    others = others,
    n_draw = posterior::ndraws(long$draws),
    plan = long$plan,
    variables = long$variables
  )
}

arguments <- commandArgs(TRUE)
chosen <- if (length(arguments) > 0) arguments else names(cases)
bench_start(
  paste0("classes", if (length(arguments) > 0) "-part"),
  "Regressions with classes",
  paste(c("classes.R", arguments), collapse = " ")
)
results <- lapply(chosen, run_case)
each <- function(f) say_table(do.call(rbind, lapply(results, f)))

say("Reference posteriors. Error: standard error of the reference itself, worst\nparameter, in posterior sds and relative to the sd. Efficiency: ESS / draws.\n")
each(function(r) {
  data.frame(
    case = r$name,
    N = format(r$n, big.mark = ","),
    parameters = r$d,
    draws = format(r$reference$draws, big.mark = ","),
    efficiency = fixed(r$reference$efficiency),
    "error of mean" = fixed(max(r$reference$error_mean), 4),
    "error of sd" = percent(max(r$reference$error_sd), 2),
    check.names = FALSE
  )
})

say("Systematic bias: long runs. Means in posterior sds, sds relative. MC: the Monte\nCarlo error of one mean (sds: 0.7 times that). Targets 0.05 and 5 %.\n")
each(function(r) {
  describe(
    r$name, "long", r$d, r$long, 0.05, 0.05,
    draws = format(r$n_draw, big.mark = ","),
    MC = fixed(1 / sqrt(r$ess_long), 4),
    seconds = fixed(r$long_seconds, 1)
  )
})

say("Default call. Targets 0.1 and 8 %. Seconds: CPU, of the whole call.\n")
each(function(r) {
  describe(
    r$name, "default", r$d, r$default, 0.1, 0.08,
    "least ESS" = round(r$ess),
    seconds = fixed(r$seconds, 1)
  )
})

timed <- Filter(function(r) length(r$others) > 0, results)
if (length(timed) > 0) {
  say("CPU seconds of the default call beside those of others, which give the maximum of\nthe likelihood alone, with columns standardised; their log-likelihood says how far\nthey came. Each was called once.\n")
  say_table(do.call(rbind, lapply(timed, function(r) {
    seconds <- vapply(r$others, function(one) one[[1]], 0)
    value <- vapply(r$others, function(one) one[[2]], 0)
    none <- is.na(seconds)
    data.frame(
      case = r$name,
      other = names(r$others),
      "tall_multinom, s" = fixed(r$seconds, 1),
      "other, s" = ifelse(none, "not installed", fixed(seconds, 1)),
      "tall_multinom / other" = ifelse(none, "", fixed(r$seconds / seconds)),
      "log-likelihood" = ifelse(none, "", fixed(value, 1)),
      check.names = FALSE
    )
  })))
}

say("What the recipe chose, and the worst parameters of the long runs.\n")
each(function(r) data.frame(case = r$name, plan = r$plan))
each(function(r) {
  at <- head(order(-pmax(abs(r$long$mean), abs(r$long$sd))), 3)
  data.frame(
    case = r$name,
    parameter = gsub("|", "\\|", r$variables[at], fixed = TRUE),
    mean = fixed(r$long$mean[at], 3),
    sd = percent(r$long$sd[at]),
    check.names = FALSE
  )
})
