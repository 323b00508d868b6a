# The laws of responses. What is tried of each stands here by the name of its
# tables; links come from the core's registry.

# values: of y, with `weight`, trials or precisions (NULL: 1 each); outside:
# values that y cannot have; all: of the support, as far as it has mass, or its
# range (the whole line) where y is continuous; aux: natural values of the
# auxiliary parameters; size: trials, or classes. Of rows of several columns
# values and outside are matrices, whole(y) the rows that are seen at y, and
# mean(eta) that of their law, where the tables have another; inflates: is the
# largest density one of other second predictors, too? rate: how fast
# what says of them changes in eta, 1 mostly.
conformance_responses <- function() {
  times <- list(
    values = rbind(
      c(1.2, 0, 1), c(0.4, 0.1, 1), c(2, 0, 0), c(1.1, 0.6, 0), c(0.7, 0, 2),
      c(0.6, 1.9, 3)
    ),
    weight = c(1, 2, 0.5, 1, 3, 1),
    outside = rbind(
      c(0, 0, 1), c(-1, 0, 0), c(1, 1, 1), c(1, -0.5, 1), c(1, 0.2, 2),
      c(1, 0.5, 3), c(1, 0, 4), c(NaN, 0, 1), c(1, NaN, 1), c(1, Inf, 3)
    ),
    whole = function(y) cbind(y, 0, 1),
    range = c(0, Inf)
  )
  outside_counts <- rbind(
    c(-1, 0, 1), c(0.5, 0, 0), c(NaN, 0, 1), c(Inf, 0, 0), c(1, 1, 1),
    c(1, 0, 4), c(1, 1, 3), c(3, 2, 3), c(1, 2.5, 3), c(1, Inf, 3)
  )
  time_case <- function(aux, mean) {
    utils::modifyList(times, list(aux = aux, mean = mean))
  }
  list(
    gaussian = list(
      values = c(-1.2, 0, 3),
      weight = c(1, 0.4, 2.5),
      outside = c(NaN, Inf),
      aux = 1.7
    ),
    binomial = list(
      values = c(0, 1, 0, 1, 0.25, 0.6),
      weight = c(1, 1, 3, 2, 4, 5),
      outside = c(-0.1, 1.1, NaN),
      size = 5,
      all = (0:5) / 5
    ),
    poisson = list(
      values = c(0, 1, 2, 7),
      weight = c(1, 1, 2, 0.5),
      outside = c(-1, 0.5, NaN),
      all = 0:400
    ),
    truncated_poisson = list(
      values = c(1, 2, 7),
      weight = c(1, 2, 0.5),
      outside = c(-1, 0, 1.5, NaN, Inf),
      all = 1:400
    ),
    truncated_neg_binomial = list(
      values = c(1, 2, 7, 40),
      weight = c(1, 2, 0.5, 1),
      outside = c(-1, 0, 1.5, NaN, Inf),
      all = 1:4000,
      aux = 1.7,
      mean = function(eta) exp(eta) / (1 - (1 + exp(eta) / 1.7)^-1.7)
    ),
    neg_binomial_2 = list(
      values = c(0, 1, 2, 7, 40),
      weight = c(1, 1, 2, 0.5, 1),
      outside = c(-1, 0.5, NaN, Inf),
      all = 0:4000,
      aux = 1.7
    ),
    Gamma = list(
      values = c(0.02, 0.7, 1, 5),
      weight = c(1, 1, 2, 0.5),
      outside = c(-1, 0, NaN, Inf),
      range = c(0, Inf),
      aux = 1.7
    ),
    student = list(
      values = c(-1.2, 0, 3),
      weight = c(1, 0.4, 2.5),
      outside = c(NaN, Inf),
      aux = c(1.7, 9)
    ),
    beta = list(
      values = c(0.02, 0.5, 0.9),
      weight = c(1, 2, 0.5),
      outside = c(-0.1, 0, 1, 1.1, NaN),
      range = c(0, 1),
      aux = 7
    ),
    weibull = time_case(c(1.7, 3), function(eta) {
      3 * exp(-eta / 1.7) * gamma(1 + 1 / 1.7)
    }),
    weibull_aft = c(rate = 1.7, time_case(1.7, function(eta) {
      exp(eta) * gamma(1 + 1 / 1.7)
    })),
    lognormal = time_case(0.4, function(eta) exp(eta + 0.08)),
    loglogistic = time_case(12, function(eta) {
      exp(eta) * (pi / 12) / sin(pi / 12)
    }),
    censored_gaussian = list(
      values = rbind(
        c(-1.2, 0, 1), c(3, 0, 1), c(0.3, 0, 0), c(1, 0, 2), c(-1, 0.8, 3),
        c(0.5, 0.5 + 1e-7, 3)
      ),
      weight = c(1, 0.4, 2.5, 1, 2, 1),
      outside = rbind(
        c(NaN, 0, 1), c(1, 0.5, 1), c(1, 1, 3), c(1, 0, -1), c(1, Inf, 3)
      ),
      whole = function(y) cbind(y, 0, 1),
      aux = 1.7
    ),
    gaussian_sigma = list(
      values = c(-1.2, 0, 3),
      outside = c(NaN, Inf)
    ),
    student_sigma = list(
      values = c(-1.2, 0, 3),
      outside = c(NaN, Inf),
      aux = 9
    ),
    censored_gaussian_sigma = list(
      values = rbind(
        c(-1.2, 0, 1), c(0.3, 0, 0), c(1, 0, 2), c(-1, 0.8, 3)
      ),
      outside = rbind(
        c(NaN, 0, 1), c(1, 0.5, 1), c(1, 1, 3), c(1, 0, -1), c(1, Inf, 3)
      ),
      whole = function(y) cbind(y, 0, 1)
    ),
    censored_student = list(
      values = rbind(
        c(-1.2, 0, 1), c(3, 0, 1), c(0.3, 0, 0), c(-4, 0, 0), c(1, 0, 2),
        c(-1, 0.8, 3), c(2, 30, 3), c(0.5, 0.5 + 1e-7, 3)
      ),
      weight = c(1, 0.4, 2.5, 1, 1, 2, 1, 1),
      outside = rbind(
        c(NaN, 0, 1), c(1, 0.5, 1), c(1, 1, 3), c(1, 0, -1), c(1, Inf, 3)
      ),
      whole = function(y) cbind(y, 0, 1),
      aux = c(1.7, 9)
    ),
    censored_student_sigma = list(
      values = rbind(
        c(-1.2, 0, 1), c(0.3, 0, 0), c(1, 0, 2), c(-1, 0.8, 3)
      ),
      outside = rbind(
        c(NaN, 0, 1), c(1, 0.5, 1), c(1, 1, 3), c(1, 0, -1), c(1, Inf, 3)
      ),
      whole = function(y) cbind(y, 0, 1),
      aux = 9
    ),
    censored_poisson = list(
      values = rbind(
        c(0, 0, 1), c(7, 0, 1), c(3, 0, 0), c(0, 0, 0), c(2, 0, 2), c(0, 0, 2),
        c(1, 6, 3), c(4, 5, 3), c(2, 90, 3)
      ),
      weight = c(1, 2, 0.5, 1, 3, 1, 1, 0.5, 1),
      outside = outside_counts,
      whole = function(y) cbind(y, 0, 1),
      all = 0:400
    ),
    censored_neg_binomial_2 = list(
      values = rbind(
        c(0, 0, 1), c(7, 0, 1), c(3, 0, 0), c(0, 0, 0), c(2, 0, 2), c(0, 0, 2),
        c(1, 6, 3), c(4, 5, 3), c(2, 90, 3)
      ),
      weight = c(1, 2, 0.5, 1, 3, 1, 1, 0.5, 1),
      outside = outside_counts,
      whole = function(y) cbind(y, 0, 1),
      all = 0:4000,
      aux = 1.7
    ),
    censored_neg_binomial_2_shape = list(
      values = rbind(
        c(0, 0, 1), c(7, 0, 1), c(3, 0, 0), c(2, 0, 2), c(1, 6, 3), c(2, 90, 3)
      ),
      outside = outside_counts,
      whole = function(y) cbind(y, 0, 1),
      all = 0:4000
    ),
    neg_binomial_2_shape = list(
      values = c(0, 1, 2, 7, 40),
      outside = c(-1, 0.5, NaN, Inf),
      all = 0:4000
    ),
    Gamma_shape = list(
      values = c(0.02, 0.7, 1, 5),
      outside = c(-1, 0, NaN, Inf),
      range = c(0, Inf)
    ),
    beta_phi = list(
      values = c(0.02, 0.5, 0.9),
      outside = c(-0.1, 0, 1, 1.1, NaN),
      range = c(0, 1)
    ),
    zero_inflated_poisson = list(
      values = c(0, 1, 2, 7),
      outside = c(-1, 0.5, NaN),
      all = 0:400,
      inflates = TRUE
    ),
    zero_inflated_negbinomial = list(
      values = c(0, 1, 2, 7, 40),
      outside = c(-1, 0.5, NaN, Inf),
      all = 0:4000,
      aux = 1.7,
      inflates = TRUE
    ),
    categorical = list(
      values = c(0, 1, 2),
      outside = c(-1, 0.5, 3, NaN),
      size = 3,
      all = 0:2
    )
  )
}

# A row of the registry with what is tried of it.
response_cases <- function() {
  known <- .Call(ffi_response_registry)
  entries <- conformance_responses()
  cases <- lapply(seq_along(known$name), function(k) {
    facts <- lapply(known, `[[`, k)
    facts$aux <- NULL # names; the values of the entry have the same
    entry <- entries[[facts$name]]
    c(list(place = k - 1), facts, entry)
  })
  names(cases) <- paste0(known$name, ", ", known$link)
  cases
}

response_columns <- c(
  log_density = 0L,
  score = 1L,
  curvature = 2L,
  aux_score = 3L,
  cross = 4L,
  aux_curvature = 5L
)

# several predictors a row, such as those of classes
has_predictors <- function(case) {
  case$n_predictor != 1
}

is_of_classes <- function(case) {
  case$n_predictor == 0
}

# A column at predictors eta (rows, or rows x classes). aux: NULL: the case's,
# known; otherwise the coordinates of sampled ones. Of several of these, or
# pairs of them, `column` is the one that is wanted.
response_at <- function(
  case,
  what,
  eta,
  y,
  weight = NULL,
  coordinate = NULL,
  column = 1
) {
  out <- .Call(
    ffi_response_evaluate,
    case$place,
    response_columns[[what]],
    as.double(eta),
    1L,
    as.double(y),
    if (!is.null(weight)) rep_len(as.double(weight), NROW(y)),
    coordinate %||% case$aux,
    !is.null(coordinate)
  )
  if (is.matrix(eta) && what == "score") {
    matrix(out, nrow(eta))
  } else {
    n <- NROW(y)
    out[(column - 1) * n + seq_len(n)]
  }
}

# Every value of the case at every predictor.
response_grid <- function(case, eta) {
  k <- seq_len(NROW(case$values))
  at <- expand.grid(eta = eta, k = k)
  at$y <- select_rows(case$values, at$k)
  at$weight <- (case$weight %||% rep(1, length(k)))[at$k]
  at
}

# Five points: an error of h^4 f''''' / 30, and of the rounding of f.
response_slope <- function(f, x, h = 2e-4) {
  (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h)
}

# f's derivative is g, but for the rounding of f. (How accurate tails are,
# tools/core-check tests against more digits.)
expect_slope <- function(f, g, x, label) {
  h <- 2e-4
  rounding <- 100 * .Machine$double.eps * (1 + abs(f(x))) / h
  off <- abs(response_slope(f, x, h) - g(x)) - 1e-6 * abs(g(x)) - rounding
  worst <- which.max(off)
  expect(
    all(off <= 0),
    paste0(
      label,
      ": ",
      format(g(x)[[worst]]),
      " is not the slope at ",
      format(x[[worst]])
    )
  )
}

law_response_slopes <- function(case) {
  at <- response_grid(case, c(seq(-40, 40, by = 0.5), -1e-3, 1e-4))
  column <- function(what) {
    function(eta) response_at(case, what, eta, at$y, at$weight)
  }
  expect_slope(column("log_density"), column("score"), at$eta, "score")
  negative <- function(eta) -column("score")(eta)
  expect_slope(negative, column("curvature"), at$eta, "curvature")
}

law_response_predictors <- function(case) {
  set.seed(1)
  n <- 60
  eta <- if (is_of_classes(case)) {
    matrix(rnorm(3 * n, sd = rep(c(0.5, 3, 20), n)), ncol = 3)
  } else {
    matrix(rnorm(2 * n, sd = rep(c(0.5, 1, 3), each = 20)), ncol = 2)
  }
  y <- select_rows(case$values, rep_len(seq_len(NROW(case$values)), n))
  weight <- rep_len(c(1, 2.5), n)
  score <- response_at(case, "score", eta, y, weight)
  for (k in seq_len(ncol(eta))) {
    f <- function(x) {
      moved <- replace(eta, cbind(seq_len(n), k), x)
      response_at(case, "log_density", moved, y, weight)
    }
    expect_slope(f, function(x) score[, k], eta[, k], paste("score", k))
    for (l in seq_len(ncol(eta))) {
      pair <- max(k, l) * (max(k, l) - 1) / 2 + min(k, l)
      bend <- response_at(case, "curvature", eta, y, weight, column = pair)
      slope <- function(x) {
        moved <- replace(eta, cbind(seq_len(n), k), x)
        -response_at(case, "score", moved, y, weight)[, l]
      }
      says <- paste("curvature", k, l)
      expect_slope(slope, function(x) bend, eta[, k], says)
    }
  }
}

# Two predictors, and a sampled parameter s: its slopes, and those in both.
law_response_two_aux <- function(case) {
  set.seed(2)
  n <- 40
  eta <- matrix(rnorm(2 * n), ncol = 2)
  y <- select_rows(case$values, rep_len(seq_len(NROW(case$values)), n))
  weight <- rep_len(c(1, 2.5), n)
  s <- rnorm(n)
  # a row at a time: coordinates are of draws
  column <- function(what, place = 1) {
    function(s) {
      vapply(seq_len(n), function(i) {
        at <- eta[i, , drop = FALSE]
        row <- select_rows(y, i)
        all <- response_at(case, what, at, row, weight[[i]], s[[i]], place)
        if (is.matrix(all)) all[1, place] else all
      }, 0)
    }
  }
  negative <- function(f) {
    force(f)
    function(s) -f(s)
  }
  expect_slope(column("log_density"), column("aux_score"), s, "score in s")
  for (k in 1:2) {
    expect_slope(
      negative(column("score", k)),
      column("cross", k),
      s,
      "curvature, eta and s"
    )
  }
  expect_slope(
    negative(column("aux_score")),
    column("aux_curvature"),
    s,
    "curvature in s"
  )
}

# What the log density falls short of, the second predictor given, or where its
# own counts, too, at any.
law_response_two_deviance <- function(case) {
  at <- response_grid(case, c(-2, -0.5, 1))
  y <- at$y
  falls <- function(second) {
    eta <- cbind(at$eta, second)
    law <- matrix(.Call(ffi_response_mean, case$place, eta, 2), ncol = 2)
    found <- .Call(
      ffi_response_deviance,
      case$place,
      y,
      law,
      at$weight,
      case$aux
    )
    expect_true(all(found >= 0))
    found + 2 * response_at(case, "log_density", eta, y, at$weight)
  }
  each <- lapply(c(-1, 0.3, 1), falls)
  for (most in each) {
    # the same at all first predictors
    expect_close(most, ave(most, at$k), "deviance", tolerance = 1e-9)
  }
  if (isTRUE(case$inflates)) {
    expect_close(each[[1]], each[[3]], "deviance", tolerance = 1e-9)
  }
  # and none is above it
  far <- seq(-20, 20, by = 0.05)
  above <- vapply(seq_len(NROW(y)), function(i) {
    eta <- cbind(far, if (isTRUE(case$inflates)) -40 else -1)
    rows <- select_rows(y, rep(i, length(far)))
    2 * max(response_at(case, "log_density", eta, rows, at$weight[[i]]))
  }, 0)
  expect_lt(max(above - each[[1]]), 1e-6)
  is_near <- !isTRUE(case$inflates) | first_column(y) > 0
  expect_lt(max((each[[1]] - above)[is_near]), 0.05 * max(1, abs(above)))
}

# Derivatives in the coordinates s of sampled auxiliary parameters, one by one.
law_response_aux <- function(case) {
  at <- response_grid(case, c(-30, -5, seq(-2, 2, by = 0.25), 5, 30))
  others <- c(0.4, 1.1)[seq_along(case$aux)]
  for (k in seq_along(case$aux)) {
    for (s in c(-2, -0.3, 0.8, if (k > 1) 7)) {
      law_response_aux_at(case, at, k, s, others)
    }
  }
}

law_response_aux_at <- function(case, at, k, s, others) {
  column <- function(what, place = 1) {
    function(s) {
      vapply(s, function(one) {
        where <- replace(others, k, one)
        response_at(case, what, at$eta, at$y, at$weight, where, place)
      }, numeric(nrow(at)))
    }
  }
  slope <- function(f, g, label) {
    rounding <- 100 * .Machine$double.eps * (1 + abs(f(s))) / 2e-4
    off <- abs(response_slope(f, s) - g(s)) - 1e-6 * abs(g(s)) - rounding
    expect_true(all(off <= 0), label = label)
  }
  negative <- function(f) {
    force(f)
    function(s) -f(s)
  }
  slope(column("log_density"), column("aux_score", k), "score in s")
  slope(negative(column("score")), column("cross", k), "curvature, eta and s")
  for (l in seq_along(others)) {
    pair <- max(k, l) * (max(k, l) - 1) / 2 + min(k, l)
    slope(
      negative(column("aux_score", l)),
      column("aux_curvature", pair),
      "curvature in s"
    )
  }
}

# Bounds over 10^4 random intervals are the suprema over them; of proportions,
# the sum of those of successes and failures, which may be more.
law_response_bounds <- function(case, n = 1e4, n_point = 81) {
  set.seed(2)
  k <- sample.int(NROW(case$values), n, replace = TRUE)
  y <- select_rows(case$values, k)
  weight <- (case$weight %||% rep(1, NROW(case$values)))[k]
  eta <- runif(n, -9, 9)
  reach <- runif(n)^2 * 6
  bound <- .Call(
    ffi_response_bounds,
    case$place,
    eta,
    reach,
    y,
    weight,
    case$aux
  )
  side <- seq(-1, 1, length.out = n_point)
  points <- function(f) {
    matrix(f(as.numeric(eta + outer(reach, side))), n)
  }
  curvature <- function(x) {
    weight <- rep_len(weight, length(x))
    again <- select_rows(y, rep_len(seq_len(n), length(x)))
    response_at(case, "curvature", x, again, weight)
  }
  third <- function(x) abs(response_slope(curvature, x))
  suprema <- list(curvature = points(curvature), third = points(third))
  for (what in names(suprema)) {
    if (is.null(bound[[what]])) {
      next
    }
    found <- do.call(pmax, as.data.frame(abs(suprema[[what]])))
    slack <- 1e-10 * weight + 1e-6 * found
    expect_true(all(bound[[what]] >= found - slack), label = what)
    # the points may miss a maximum between them by this much
    step <- (case$rate %||% 1) * 2 * reach / (n_point - 1)
    gap <- 2 * step^2 * pmax(found, 0.1 * weight)
    # an interval is a sum of two, too
    is_tight <- if (is.matrix(y)) {
      y[, 3] != 3
    } else {
      !case$name %in% "binomial" | y %in% c(0, 1)
    }
    expect_true(
      all((bound[[what]] <= found + slack + gap)[is_tight]),
      label = what
    )
  }
}

# Over all predictors, where that is bounded.
law_response_global <- function(case) {
  at <- response_grid(case, 0)
  reach <- rep(Inf, nrow(at))
  bound <- .Call(
    ffi_response_bounds,
    case$place,
    at$eta,
    reach,
    at$y,
    at$weight,
    case$aux
  )
  wide <- response_grid(case, seq(-60, 60, by = 0.01))
  found <- abs(response_at(case, "curvature", wide$eta, wide$y, wide$weight))
  most <- tapply(found, wide$k, max)[at$k]
  if (!is.null(bound$curvature)) {
    expect_true(all(bound$curvature >= most * (1 - 1e-9)))
    is_bounded <- is.finite(bound$curvature) &
      (case$name != "binomial" | first_column(at$y) %in% c(0, 1))
    # a limit may be far away
    expect_true(
      all(bound$curvature[is_bounded] <= most[is_bounded] * 1.001),
      label = "global bound"
    )
  }
}

# The density at values of y, with `weight` the trials.
response_density <- function(case, y, eta, weight = NULL) {
  if (has_predictors(case)) {
    eta <- matrix(rep(eta, each = length(y)), length(y))
  } else {
    eta <- rep(eta, length(y))
  }
  y <- if (is.null(case$whole)) y else case$whole(y)
  exp(response_at(case, "log_density", eta, y, weight))
}

response_points <- function(case) {
  if (case$n_predictor == 2) {
    list(c(0.3, -0.5), c(-0.4, 0.8), c(0.8, 0.1))
  } else if (has_predictors(case)) {
    list(c(0.3, -1, 2), c(0, 0, 0), c(-30, 2, 1))
  } else {
    as.list(c(-3, -0.4, 0, 0.8, 2))
  }
}

law_response_mass <- function(case) {
  trials <- if (!is.null(case$size) && !has_predictors(case)) case$size
  for (eta in response_points(case)) {
    if (is.null(case$all)) {
      f <- function(y) response_density(case, y, eta)
      range <- case$range %||% c(-Inf, Inf)
      moment <- function(g) {
        integrate(
          function(y) g(y) * f(y),
          range[[1]],
          range[[2]],
          rel.tol = 1e-9
        )$value
      }
    } else {
      p <- response_density(case, case$all, eta, trials)
      moment <- function(g) sum(g(case$all) * p)
    }
    expect_close(moment(function(y) 1 + 0 * y), 1, "mass", tolerance = 1e-9)
    if (!is_of_classes(case)) {
      mean <- .Call(ffi_response_mean, case$place, eta, length(eta))
      variance <- .Call(
        ffi_response_variance,
        case$place,
        mean,
        1,
        as.double(trials %||% 1),
        case$aux
      )
      own <- if (is.null(case$mean)) mean[[1]] else case$mean(eta)
      expect_close(moment(identity), own, "mean", tolerance = 1e-7)
      spread <- moment(function(y) (y - own)^2)
      expect_close(spread, variance, "variance", tolerance = 1e-7)
    }
  }
}

# Of n draws by the core and, if there is a family of it, by its entry in R.
law_response_draws <- function(case, families, n = 2e4) {
  trials <- if (!is.null(case$size) && !has_predictors(case)) case$size
  weight <- rep(as.double(trials %||% 1), n)
  for (eta in response_points(case)) {
    n_predictor <- length(eta)
    at <- matrix(rep(eta, each = n), n)
    mean <- .Call(ffi_response_mean, case$place, at, n_predictor)
    draws <- list()
    for (family in families) {
      set.seed(3)
      mu <- array(mean, c(n, 1, n_predictor))
      if (n_predictor == 1) {
        mu <- matrix(mu, n)
      }
      rows <- list(weight = NULL, trials = trials)
      # a draw of the auxiliary parameter for each of responses
      aux <- if (!is.null(case$aux)) drop(matrix(rep(case$aux, each = n), n))
      y <- as.numeric(family$draw(mu, aux, rows))
      draws[[family$name]] <- y / (trials %||% 1) - is_of_classes(case)
    }
    p <- mean[1, ]
    for (name in names(draws)) {
      y <- draws[[name]]
      expect_length(y, n)
      if (is_of_classes(case)) {
        share <- tabulate(y + 1, n_predictor) / n
        expect_true(all(abs(share - p) <= 5 * sqrt(p * (1 - p) / n) + 1e-12))
        next
      }
      variance <- .Call(
        ffi_response_variance,
        case$place,
        p,
        1,
        weight[[1]],
        case$aux
      )
      own <- if (is.null(case$mean)) p[[1]] else case$mean(eta)
      z <- (mean(y) - own) / sqrt(variance / n)
      square <- (y - own)^2
      z_square <- (mean(square) - variance) / (stats::sd(square) / sqrt(n))
      # a single trial at the margin has next to no spread to test
      expect_lt(abs(z), 5, label = paste(name, "mean"))
      expect_lt(abs(z_square), 6, label = paste(name, "variance"))
    }
  }
}

# Twice what the log density falls short of the largest there is.
law_response_deviance <- function(case) {
  at <- response_grid(case, c(-2, -0.5, 1))
  mean <- .Call(ffi_response_mean, case$place, at$eta, 1)
  found <- .Call(
    ffi_response_deviance,
    case$place,
    at$y,
    mean,
    at$weight,
    case$aux
  )
  # of a dispersion: the variance of a mean of 1
  scale <- if (case$is_dispersion) {
    .Call(ffi_response_variance, case$place, 1, 1, 1, case$aux)
  } else {
    1
  }
  log_density <- function(eta) {
    response_at(case, "log_density", eta, at$y, at$weight)
  }
  far <- seq(-45, 45, by = 0.05)
  most <- vapply(seq_len(nrow(at)), function(i) {
    f <- function(eta) {
      response_at(
        case,
        "log_density",
        eta,
        select_rows(at$y, rep(i, length(eta))),
        at$weight[[i]]
      )
    }
    start <- far[[which.max(f(far))]]
    optimize(f, start + c(-0.1, 0.1), maximum = TRUE, tol = 1e-10)$objective
  }, 0)
  expected <- 2 * scale * (most - log_density(at$eta))
  expect_close(found, expected, "deviance", tolerance = 1e-6)
}

law_response_support <- function(case) {
  join <- if (is.matrix(case$values)) rbind else c
  outside <- function(y, size = case$size %||% 0) {
    .Call(
      ffi_response_outside,
      case$place,
      as.double(y),
      as.double(size),
      0,
      NROW(y)
    )
  }
  seen <- if (!is.matrix(case$values)) case$all
  expect_identical(outside(seen %||% case$values), 0)
  for (k in seq_len(NROW(case$outside))) {
    bad <- select_rows(case$outside, k)
    first <- select_rows(case$values, 1)
    expect_identical(outside(join(first, bad)), 2)
  }
}

# What a database computes of a response is what the core computes, evaluated by
# R or by an engine. Log densities are alike up to constants, hence from a
# predictor to the next. Derivatives are differences of terms near
# weight (1 + y): the core's 1 - mu has the digits of 1.
law_response_sql <- function(case, recipe, evaluate) {
  eta <- c(-250, -37, -9.5, -1, -1e-9, 0, 0.4, 1.3, 8, 36, 250)
  at <- response_grid(case, eta)
  at$reach <- rep_len(c(0, 0.7, 2, 40), nrow(at))
  ours <- evaluate(recipe, at)
  theirs <- lapply(
    list(log_lik = "log_density", score = "score", curvature = "curvature"),
    function(what) response_at(case, what, at$eta, at$y, at$weight)
  )
  theirs$third <- .Call(
    ffi_response_bounds,
    case$place,
    at$eta,
    at$reach,
    at$y,
    at$weight,
    case$aux
  )$third
  terms <- at$weight * (1 + at$y)
  size <- abs(theirs$log_lik) + terms * (1 + abs(at$eta))
  scale <- lapply(theirs, function(x) abs(x) + terms)
  scale$log_lik <- size + c(size[-1], 0)
  is_last <- at$eta == eta[[length(eta)]]
  rises <- function(x) ifelse(is_last, 0, c(diff(x), 0))
  ours$log_lik <- rises(ours$log_lik)
  theirs$log_lik <- rises(theirs$log_lik)
  for (what in names(theirs)) {
    off <- abs(ours[[what]] - theirs[[what]]) / scale[[what]]
    expect_lte(max(off), 1e-12, label = what)
  }
}

# Of rows: as they are evaluated by R, and by the engine of a connection.
sql_in_r <- function(recipe, rows) {
  rows <- as.list(rows)
  for (step in c(recipe$steps, recipe$bound$steps)) {
    rows[names(step)] <- lapply(step, eval, rows)
  }
  own <- c(recipe[c("log_lik", "score", "curvature")], recipe$bound["third"])
  lapply(own, function(e) rows$weight * eval(e, rows))
}

sql_in <- function(con) {
  function(recipe, at) {
    at$row <- seq_len(nrow(at))
    table <- table_of(con, at, "grid")
    s <- list(weights = quote(weight))
    rows <- list(con = con, engine = sql_engine(con), keep = names(at))
    rows$sql <- sql_select(con, list(), table_query(as_source(table)),
      keep = names(at))
    rows <- add_steps(rows, c(recipe$steps, recipe$bound$steps))
    own <- c(recipe[c("log_lik", "score", "curvature")], recipe$bound["third"])
    rows <- add_columns(rows, lapply(own, translate_weighed, s = s, con = con))
    found <- run_sql(con, sql_select(con, list(), rows$sql,
      keep = c("row", names(own))))
    found[order(found$row), ]
  }
}

# The responses that a database takes are those that the core takes.
law_response_sql_support <- function(case, recipe) {
  is_bad <- function(y) eval(recipe$outside(TRUE), list(y = y))
  expect_false(any(is_bad(case$values)))
  # what is not finite is refused before
  expect_true(all(is_bad(Filter(is.finite, case$outside))))
}
