# Do intervals of robust draws cover what they say, where those of the posterior do
# not? Rows that vary more than the model says, or in clusters, or were sampled
# unequally, over and over.
#
#   Rscript bench/robust.R [replications]
#
# The estimand is the slope that a fit of endless rows would find. The coverage of
# 400 replications has a standard error of 1.1 % at 95 %.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))

given <- commandArgs(TRUE)
n_rep <- if (length(given) > 0) as.integer(given[[1]]) else 400
bench_start("robust", "Coverage of robust draws")

in_clusters <- function(n, size, of) {
  g <- rep(seq_len(n), each = size)
  x <- rnorm(n)[g]
  data.frame(g, x, y = of(x, rnorm(n)[g]))
}

# What each case draws, fits, and knows: a slope by the log link, or an identity, is
# that of rows without what they have in common; of others it is found in many rows.
cases <- list(
  "counts, overdispersed" = list(
    draw = function() {
      x <- rnorm(1000)
      data.frame(x, y = rnbinom(1000, size = 1, mu = exp(0.5 + 0.5 * x)))
    },
    family = poisson(),
    truth = 0.5
  ),
  "Gaussian, unequal variances" = list(
    draw = function() {
      x <- rnorm(1000)
      data.frame(x, y = 0.5 * x + rnorm(1000) * exp(0.5 * x))
    },
    family = gaussian(),
    truth = 0.5
  ),
  "counts, 200 clusters of 25" = list(
    draw = function() {
      in_clusters(200, 25, function(x, u) rpois(5000, exp(0.5 * x + 0.4 * u)))
    },
    family = poisson(),
    truth = 0.5,
    cluster = ~g
  ),
  "binary, 200 clusters of 25" = list(
    draw = function() {
      of <- function(x, u) rbinom(5000, 1, plogis(-1 + 0.5 * x + 0.7 * u))
      in_clusters(200, 25, of)
    },
    family = binomial(),
    truth = NA,
    probability = function(x, u) plogis(-1 + 0.5 * x + 0.7 * u),
    cluster = ~g
  ),
  "binary, 40 clusters, 2 % are 1" = list(
    draw = function() {
      of <- function(x, u) rbinom(2000, 1, plogis(-4.5 + 0.5 * x + 0.7 * u))
      in_clusters(40, 50, of)
    },
    family = binomial(),
    truth = NA,
    probability = function(x, u) plogis(-4.5 + 0.5 * x + 0.7 * u),
    cluster = ~g
  ),
  "binary, sampled unequally" = list(
    # of a large population in which x^2 counts, too
    draw = function() {
      x <- rnorm(40000)
      y <- rbinom(40000, 1, plogis(-1 + 0.5 * x + 0.2 * x^2))
      share <- 0.01 * exp(0.5 * x + y)
      taken <- runif(40000) < share
      data.frame(x, y, w = 1 / share)[taken, ]
    },
    family = binomial(),
    truth = NA,
    probability = function(x, u) plogis(-1 + 0.5 * x + 0.2 * x^2),
    weights = "sampling"
  )
)

truth_of <- function(case) {
  if (!is.na(case$truth)) {
    return(case$truth)
  }
  at <- qnorm(ppoints(800))
  grid <- expand.grid(x = at, u = at)
  p <- tapply(case$probability(grid$x, grid$u), grid$x, mean)
  x <- cbind(1, as.numeric(names(p)))
  coef(glm.fit(x, as.numeric(p), family = quasibinomial()))[[2]]
}

one <- function(case, seed, truth) {
  set.seed(seed)
  data <- case$draw()
  call <- quote(tall_glm(y ~ x, data, case$family, iter = 1000, seed = 1))
  if (!is.null(case$weights)) {
    call$weights <- quote(w)
  }
  fit <- suppressWarnings(eval(call))
  robust <- suppressWarnings(robust_draws(
    fit,
    case$cluster,
    weights = if (is.null(case$weights)) "counts" else case$weights
  ))
  of <- function(fit) {
    ends <- quantile(as.matrix(fit)[, "x"], c(0.025, 0.975))
    c(ends[[1]] < truth && truth < ends[[2]], diff(ends))
  }
  c(of(fit), of(robust))
}

rows <- lapply(names(cases), function(name) {
  truth <- truth_of(cases[[name]])
  seconds <- cpu_seconds(found <- vapply(
    seq_len(n_rep),
    one,
    numeric(4),
    case = cases[[name]],
    truth = truth
  ))
  mean <- rowMeans(found)
  data.frame(
    rows = name,
    truth = fixed(truth, 3),
    `95 %, posterior` = percent(mean[[1]]),
    `95 %, robust` = percent(mean[[3]]),
    `width, robust / posterior` = fixed(mean[[4]] / mean[[2]]),
    `CPU ms a fit` = fixed(1000 * seconds / n_rep, 0),
    check.names = FALSE
  )
})
say_table(do.call(rbind, rows))
say(
  "\n", n_rep, " replications each. Of 40 clusters with few outcomes robust intervals fall\n",
  "short, too: `tall_glmer()` models the clusters."
)
