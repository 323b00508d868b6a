# Data on which posteriors are far from normal in a few directions: levels with a
# handful of rows, a baseline without an event, separated indicators, priors with
# scales of their own. Read by references-awkward.R and awkward.R.
#
# Flights are those of the package nycflights13 (CRAN). A case is list(formula,
# data, family), `shrink` where its prior is a horseshoe.

flights_data <- function() {
  if (!requireNamespace("nycflights13", quietly = TRUE)) {
    stop("these cases need the data package nycflights13")
  }
  data <- as.data.frame(nycflights13::flights)
  data.frame(
    cancelled = as.numeric(is.na(data$dep_time)),
    late = as.numeric(data$arr_delay > 15),
    hour = data$hour,
    carrier = data$carrier,
    origin = data$origin,
    month = data$month,
    dest = data$dest,
    distance = data$distance
  )
}

awkward_cases <- list(
  # six destinations without a cancelled flight, ABQ (0 of 254) the baseline, and
  # six large ones
  baseline = function() {
    few <- c("ABQ", "ACK", "ANC", "EYW", "LEX", "SBN")
    many <- c("ATL", "BOS", "DEN", "LAX", "MIA", "ORD")
    data <- flights_data()[c("cancelled", "dest")]
    list(
      formula = cancelled ~ dest,
      data = data[data$dest %in% c(few, many), ]
    )
  },
  destinations = function() {
    list(
      formula = cancelled ~ dest,
      data = flights_data()[c("cancelled", "dest")]
    )
  },
  # January and February; SkyWest (OO) flew once
  `two-months` = function() {
    data <- flights_data()
    data <- data[data$month <= 2 & !is.na(data$late), ]
    list(
      formula = late ~ factor(hour) + carrier + origin + factor(month) + distance,
      data = data
    )
  },
  `all-flights` = function() {
    data <- flights_data()
    list(
      formula = late ~ hour + carrier + origin + factor(month) + dest,
      data = data[!is.na(data$late), ]
    )
  },
  # indicators of soils that (almost) never go with the class; no reference
  covertype = function() {
    data <- tall_data("covertype")
    data$y <- as.numeric(data$cover_type == 2)
    list(
      formula = stats::reformulate(names(data)[1:54], "y"),
      data = data[c(1:54, match("y", names(data)))],
      prior = prior_normal(0, 2.5, autoscale = FALSE)
    )
  },
  horseshoe = function() horseshoe_case(2000, 50),
  `horseshoe-tall` = function() horseshoe_case(1e5, 200)
)

# Ten of d coefficients are not 0.
horseshoe_case <- function(n, d) {
    set.seed(37)
    x <- matrix(rnorm(n * d), n)
    colnames(x) <- sprintf("x%03d", seq_len(d))
    beta <- c(
    1, -0.8, 0.5, -0.4, 0.3, -0.25, 0.2, -0.15, 0.1, 0.05,
    numeric(d - 10)
  )
    y <- as.numeric(runif(n) < plogis(-1 + drop(x %*% beta)))
    list(
      formula = stats::reformulate(colnames(x), "y"),
      data = data.frame(y, x),
      shrink = list(
        df = 1,
        global_df = 1,
        global_scale = 0.02,
        slab_df = 4,
        slab_scale = 2.5
      )
    )
}

# The default priors of tall_glm(), coded independently of it: N(0, 2.5 / sd) for
# a coefficient, N(0, 2.5) for the predictor where covariates are at their means.
# counts: how often each row of x is meant.
default_scales <- function(x, counts) {
  n <- sum(counts)
  means <- colSums(x * counts) / n
  sds <- sqrt(colSums(sweep(x, 2, means)^2 * counts) / (n - 1))
  list(at = means[-1], slope = 2.5 / sds[-1], intercept = 2.5)
}
