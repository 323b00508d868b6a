# One fit for each kind of response, offset and weights, made once. Each comes
# with its density: density(y, mu, sigma) of what posterior_predict() draws.
method_cases <- local({
  made <- NULL
  function() {
    if (is.null(made)) {
      made <<- make_method_cases()
    }
    made
  }
})

make_method_cases <- function() {
  data <- example_data(60)
  data$trials <- data$w + 2L
  data$wins <- withr::with_seed(
    2,
    stats::rbinom(60, data$trials, stats::plogis(data$a))
  )
  data$losses <- data$trials - data$wins
  data$share <- data$wins / data$trials
  data$shift <- data$a / 3
  binary <- function(y, mu, sigma) stats::dbinom(y, 1, mu, log = TRUE)
  counts <- function(y, mu, sigma) {
    stats::dbinom(y, rep(data$trials, each = nrow(mu)), mu, log = TRUE)
  }
  list(
    bernoulli = list(
      fit = here_glm(y ~ a + g, family = "bernoulli", iter = 200),
      y = data$y,
      density = binary
    ),
    weighted = list(
      fit = here_glm(
        y ~ a + offset(shift),
        family = binomial(),
        weights = w,
        iter = 200
      ),
      y = data$y,
      density = binary,
      weight = data$w
    ),
    cbind = list(
      fit = here_glm(
        cbind(wins, losses) ~ a + b,
        family = binomial(),
        iter = 200
      ),
      y = data$wins,
      density = counts
    ),
    proportion = list(
      fit = here_glm(
        share ~ a,
        family = binomial(),
        weights = trials,
        iter = 200
      ),
      y = data$wins,
      density = counts
    ),
    poisson = list(
      fit = here_glm(
        count ~ a,
        family = poisson(),
        offset = log(exposure),
        iter = 200
      ),
      y = data$count,
      density = function(y, mu, sigma) stats::dpois(y, mu, log = TRUE)
    ),
    gaussian = list(
      fit = here_glm(z ~ a + poly(b, 2), iter = 200),
      y = data$z,
      density = function(y, mu, sigma) stats::dnorm(y, mu, sigma, log = TRUE)
    ),
    known = list(
      fit = here_glm(z ~ a, sigma = 2, weights = w, iter = 200),
      y = data$z,
      density = function(y, mu, sigma) {
        sd <- sigma / sqrt(rep(data$w, each = nrow(mu)))
        stats::dnorm(y, mu, sd, log = TRUE)
      }
    )
  )
}

# tall_glm() on the `data` of the calling function, its arguments unevaluated.
here_glm <- function(...) {
  call <- match.call(expand.dots = TRUE)
  call[[1]] <- quote(tall_glm)
  call$data <- quote(data)
  call$seed <- 1
  call$refresh <- 0
  eval(call, parent.frame())
}

# Draws x rows, the plain way.
direct_linear <- function(fit, x = model.matrix(fit)) {
  theta <- as.matrix(fit)[, seq_len(ncol(x))]
  offset <- stats::model.offset(model.frame(fit))
  theta %*% t(x) + rep(offset %||% 0, each = nrow(theta))
}

direct_mean <- function(fit) {
  fit$family$object$linkinv(direct_linear(fit))
}

direct_sigma <- function(fit) {
  if (!is.null(fit$sigma)) {
    rep(fit$sigma, posterior::ndraws(fit$draws))
  } else if (fit$family$name == "gaussian") {
    as.matrix(fit)[, "sigma"]
  }
}

no_names <- function(x) {
  dimnames(x) <- NULL
  x
}

# A run with decaying step sizes: its draws carry weights.
decayed_fit <- function() {
  data <- example_data()
  fit <- tall_glm(
    y ~ a,
    data,
    binomial(),
    kernel = kernel_sgld(1e-3),
    schedule = schedule_decay(),
    iter = 200,
    seed = 1,
    refresh = 0
  )
  stopifnot(!is.null(fit$weights))
  fit
}
