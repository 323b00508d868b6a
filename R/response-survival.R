# Times to an event, of which some are known to lie beyond, before or between
# limits: of tall_surv(), which reads them (R/design-limits.R). A row is (time,
# other, status): `other` the end of an interval, or else when the row entered.

response_weibull <- function() {
  survival_entry("weibull", function(p, mu, aux) {
    aux <- matrix(aux, ncol = 2)
    aux[, 2] * (-log1p(-p) / mu)^(1 / aux[, 1])
  })
}

response_weibull_aft <- function() {
  survival_entry("weibull_aft", function(p, mu, aux) {
    mu * (-log1p(-p))^(1 / as.numeric(aux))
  })
}

response_lognormal <- function() {
  survival_entry("lognormal", function(p, mu, aux) {
    mu * exp(as.numeric(aux) * stats::qnorm(p))
  }, is_concave = enters_on_time)
}

response_loglogistic <- function() {
  survival_entry("loglogistic", function(p, mu, aux) {
    mu * (p / (1 - p))^(1 / as.numeric(aux))
  }, is_concave = enters_on_time)
}

# quantile(p, mu, aux): of times, mu = e^eta draws x rows.
survival_entry <- function(
  name,
  quantile,
  is_concave = TRUE,
  table = name
) {
  response_entry(
    name = name,
    table = table,
    links = c(log = 30),
    must = "be a time above 0",
    draw = function(mu, aux, rows) {
      p <- if (is.null(rows$uniform)) {
        array(stats::runif(length(mu)), dim(mu) %||% length(mu))
      } else {
        t(rows$uniform)
      }
      quantile(p, mu, aux)
    },
    quantile = quantile,
    wrong = wrong_time,
    instead = "{.fn predict} has medians, restricted means and survival
               probabilities; {.fn posterior_survfit} curves; {.fn residuals}
               those of martingales; {.fn loo} compares models.",
    is_inner = TRUE,
    shows = function(y) y[, 3] != 0,
    is_concave = is_concave,
    separation = "mark{?s/} rows without an event",
    skewness = "few events among rows with %s do that"
  )
}

# A density given that a time is late is not log-concave of every law. y: (time,
# other, status)
enters_on_time <- function(y) {
  !any(y[, 2] > 0 & y[, 3] < 2)
}

# What such a row must, y = (time, other, status).
wrong_time <- function(y) {
  if (!is.finite(y[[1]]) || y[[1]] <= 0) {
    "be a time above 0"
  } else if (y[[3]] == 3) {
    paste0(
      "be before the end of its interval, which is ",
      format_number(y[[2]])
    )
  } else if (y[[2]] < 0) {
    paste0("have an entry of 0 or later, not ", format_number(y[[2]]))
  } else {
    paste0("be after the row's entry, which is ", format_number(y[[2]]))
  }
}

# Numbers of which some are known to lie beyond, below or between limits:
# `y | cens(status)` of a Gaussian or Student response.
response_censored_gaussian <- function() {
  response_entry(
    name = "censored_gaussian",
    table = "censored_gaussian",
    links = c(identity = Inf),
    must = "be finite",
    draw = function(mu, aux, rows) {
      sds <- residual_sds(aux, rows$weight, length(mu) / length(aux))
      mu + sds * stats::rnorm(length(mu))
    },
    wrong = wrong_limit,
    is_inner = TRUE,
    shows = function(y) y[, 3] != 1,
    has_units = TRUE,
    separation = "mark{?s/} rows that are all censored",
    skewness = "rows with %s that are mostly censored do that"
  )
}

response_censored_student <- function() {
  base <- response_student()
  response_entry(
    name = "censored_student",
    table = "censored_student",
    links = base$links,
    must = base$must,
    draw = base$draw,
    wrong = wrong_limit,
    is_inner = TRUE,
    aux_priors = base$aux_priors,
    aux_start = base$aux_start,
    shows = function(y) y[, 3] != 1,
    has_units = TRUE,
    is_concave = FALSE,
    separation = "mark{?s/} rows that are all censored",
    skewness = "rows with %s that are mostly censored do that"
  )
}

# The same of counts. base: the entry of those that are seen.
censored_counts <- function(base) {
  response_entry(
    name = paste0("censored_", base$name),
    table = paste0("censored_", base$table),
    links = base$links,
    must = base$must,
    draw = base$draw,
    wrong = wrong_count,
    is_inner = TRUE,
    shows = function(y) y[, 3] != 1,
    separation = "mark{?s/} rows that are all censored, or whose counts are 0",
    skewness = "rows with %s that are mostly censored do that"
  )
}

response_censored_poisson <- function() {
  censored_counts(response_poisson())
}

response_censored_neg_binomial_2 <- function() {
  censored_counts(response_neg_binomial_2())
}

wrong_count <- function(y) {
  is_count <- is.finite(y) & y >= 0 & y == floor(y)
  if (!is_count[[1]] || y[[3]] != 3) {
    "be a count"
  } else if (is_count[[2]]) {
    paste0("be below the end of its interval, which is ", format_number(y[[2]]))
  } else {
    paste0("have an interval to a count, not ", format_number(y[[2]]))
  }
}

wrong_limit <- function(y) {
  if (is.finite(y[[1]]) && y[[3]] == 3) {
    paste0("be below the end of its interval, which is ", format_number(y[[2]]))
  } else {
    "be finite"
  }
}
