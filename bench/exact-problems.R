# Eight regressions for exact.R and exact-before.R.

made <- function(seed, n, beta, draw) {
  set.seed(seed)
  d <- length(beta)
  x <- cbind(1, matrix(rnorm(n * (d - 1)), n))
  list(x = x, y = draw(drop(x %*% beta)))
}
bernoulli <- function(eta) as.numeric(runif(length(eta)) < plogis(eta))
poisson_counts <- function(eta) rpois(length(eta), exp(eta))

# `was`: acceptance, thinned rows a step and effective draws a second of the
# prototypes, where the data are theirs
problems <- list(
  "sepsis, logistic" = function() {
    data <- tall_data("sepsis")
    list(
      x = cbind(1, as.matrix(data[c(
        "age_years",
        "sex_0male_1female",
        "episode_number"
      )])),
      y = data$hospital_outcome_1alive_0dead,
      was = c(0.977, 0.4, 7.8e6)
    )
  },
  "CASP, logistic" = function() {
    data <- tall_data("casp")
    list(
      x = cbind(1, as.matrix(data[-1])),
      y = as.numeric(data$RMSD > median(data$RMSD)),
      was = c(0.944, 8.9, 0.88e6)
    )
  },
  "N = 1e5, d = 20, logistic" = function() {
    beta <- withr::with_seed(2, rnorm(20) / sqrt(20))
    c(made(1, 1e5, beta, bernoulli), list(was = c(0.959, 7.1, 0.45e6)))
  },
  "N = 5e4, d = 9, Poisson" = function() {
    beta <- c(0.3, 0.4, -0.4, 0.2, -0.2, 0.1, -0.1, 0.3, 0)
    c(made(4, 5e4, beta, poisson_counts), list(family = "poisson"))
  },
  "300 events in 1e5, d = 6" = function() {
    beta <- c(-6.6, 0.8, -0.5, 0.3, 0.5, 0)
    c(made(3, 1e5, beta, bernoulli), list(was = c(0.80, 19, 0.25e6)))
  },
  "N = 300, d = 10, logistic" = function() {
    beta <- withr::with_seed(2, rnorm(10) / sqrt(10))
    c(made(1, 300, beta, bernoulli), list(was = c(0.72, 19, 0.24e6)))
  },
  "N = 1e5, d = 50, logistic" = function() {
    beta <- withr::with_seed(2, rnorm(50) / sqrt(50))
    made(1, 1e5, beta, bernoulli)
  },
  "N = 1e6, d = 100, logistic" = function() {
    beta <- withr::with_seed(2, rnorm(100) / 10)
    made(1, 1e6, beta, bernoulli)
  }
)

build <- function(p) {
  model_glm(
    p$x,
    p$y,
    family = if (is.null(p$family)) "bernoulli" else p$family,
    prior = prior_normal(0, 2.5)
  )
}

# Seconds of `n` steps: a long run less a short one.
steps_seconds <- function(model, n, ...) {
  run <- function(iter) {
    cpu_seconds(sg_sample(
      model, ...,
      iter = iter, warmup = 0, thin = iter, chains = 1, cores = 1, seed = 1
    ))
  }
  function() {
    short <- run(1000)
    (run(n + 1000) - short) / n
  }
}

least_ess <- function(fit) {
  min(posterior::summarise_draws(fit$draws, "ess_bulk", "ess_mean")[-1])
}
