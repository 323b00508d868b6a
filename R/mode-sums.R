# Gaussian regressions from sums over their rows. Weighted means and centred
# sums of products are all that the likelihood needs (src/models/sums.c), and
# with normal or flat priors they give the posterior itself: log sigma has a
# density of one dimension, and given it the coefficients are normal.
#
# Coordinates: beta = J c, where c is centred: the coefficient of a constant
# column is that of the predictor at the means of the others. In c = c_0 + T z
# about the fit of least squares, likelihood and prior are both diagonal,
#   T' G T / s^2 = diag(share), T' Lambda T = diag(rest), share + rest = 1,
# with G the sums of products of centred columns, Lambda the prior's precision
# and s^2 the scale of the response: given sigma, with k = s^2 / sigma^2,
#   z ~ N(z_0 + pull / (k share + rest), 1 / (k share + rest)).

sums_settings <- list(
  no_share = 1e-13,   # of the likelihood in a direction: rounding
  refined = 1e-5,     # of the response unexplained: rows are looked at again
  drop = 40,          # log density at the ends of sigma's grid
  low = 80,           # how far below the response's scale log sigma can be
  n_grid = 4000
)

# Can all that its posterior needs be had from sums? Gaussian response, identity
# link, rows as they were given.
has_sums <- function(model) {
  model$traits$has_columns &&
    find_response(model$family)$is_quadratic &&
    model_info(model)$has_curvature &&
    !model_is_whitened(model) &&
    !model_info(model)$is_framed
}

# And can it be drawn from?
has_normal_coefficients <- function(model) {
  all(prior_has_form(model$prior, "quadratic")[seq_len(model$n_coef)])
}

# list(mean, gram, cross, square, weight, response, n_row): of x, S; of x and y
# less offset, b and q; the mean of the latter. A Gibbs posterior's are those of
# as many more rows. One pass.
product_sums <- function(model, cores) {
  p <- model$n_coef
  found <- model$remote$products
  if (is.null(found)) {
    found <- .Call(ffi_model_product_sums, model$pointer, p, as.integer(cores))
    abort_status(found$status)
  }
  check_sums(found, model)
  own <- seq_len(p)
  scale <- likelihood_scale(model)
  list(
    mean = found$mean[own],
    response = found$mean[[p + 1]],
    gram = scale * found$sums[own, own, drop = FALSE],
    cross = scale * found$sums[own, p + 1],
    square = scale * found$sums[p + 1, p + 1],
    weight = scale * found$weight,
    n_row = scale * model$n_data
  )
}

# The look may have them.
passes_of_products <- function(model) {
  if (is_summed(model$remote$rows)) 0 else 1
}

# Numbers that are fine each by itself may have sums that are not.
check_sums <- function(found, model) {
  p <- model$n_coef
  of_column <- c(model$coordinates[seq_len(p)], "the response")
  bad <- which(!is.finite(found$mean) | !is.finite(diag(found$sums)))
  if (length(bad) > 0) {
    where <- of_column[[bad[[1]]]]
    abort_tall(
      "nonfinite",
      c(
        "Sums of squares over the rows are not finite.",
        x = "Values of {where} are too large.",
        i = "Look for rows that are wrong, or measure in larger units."
      ),
      coordinate = where
    )
  }
}

# The same of centred columns: gram, cross and square about `origin`, and
# into_beta(c). Without a constant column nothing is centred.
center_sums <- function(sums) {
  p <- length(sums$mean)
  level <- which(
    diag(sums$gram) <= 1e-33 * sums$mean^2 * sums$weight & sums$mean != 0
  )
  if (length(level) == 0) {
    mean <- sums$mean
    return(list(
      gram = sums$gram + sums$weight * tcrossprod(mean),
      cross = sums$cross + sums$weight * sums$response * mean,
      square = sums$square + sums$weight * sums$response^2,
      origin = numeric(p),
      into_beta = function(c) c,
      # of functionals, or of gradients, in beta
      from_beta = function(a) a
    ))
  }
  at <- level[[1]]
  ratio <- sums$mean / sums$mean[[at]]
  ratio[[at]] <- 0
  gram <- sums$gram
  gram[at, ] <- gram[, at] <- 0
  gram[at, at] <- sums$weight * sums$mean[[at]]^2
  list(
    gram = gram,
    cross = replace(sums$cross, at, 0),
    square = sums$square,
    origin = replace(numeric(p), at, sums$response / sums$mean[[at]]),
    into_beta = function(c) {
      c[at, ] <- c[at, ] - drop(crossprod(c, ratio))
      c
    },
    from_beta = function(a) a - tcrossprod(a[, at], ratio)
  )
}

# The prior of coefficients as a normal or flat one, of the same mean and
# variance where it is another: rows of `root` are what it is on over its sd,
# `target` their means, less what they are at the origin.
normal_root <- function(model, centred) {
  p <- model$n_coef
  own <- seq_len(p)
  prior <- model$prior
  of <- diag(p)
  functional <- model$prior_functional
  if (!is.null(functional)) {
    of[functional$at + 1, ] <- functional$weights[own]
  }
  precision <- prior_precision(prior)[own]
  is_proper <- precision > 0
  of <- of[is_proper, , drop = FALSE]
  sd <- 1 / sqrt(precision[is_proper])
  away <- prior$location[own][is_proper] - drop(of %*% centred$origin)
  list(root = centred$from_beta(of) / sd, target = away / sd)
}

# The posterior, or an error that says why it is not proper. What is needed to
# draw: share, rest, turn, pull, fit (z_0), basis (T), origin (c_0), into_beta,
# scale (s), log_density(log sigma); and stand_in, the model without its rows.
sums_posterior <- function(model, cores) {
  parts <- sums_parts(model, cores)
  prior <- parts$prior
  basis <- parts$basis
  fit <- parts$fit
  sums <- parts$sums
  pull <- drop(crossprod(
    prior$root %*% basis$basis,
    prior$target - drop(prior$root %*% (basis$basis %*% fit$z))
  ))
  pull[basis$rest == 0] <- 0
  posterior <- c(
    basis,
    list(
      pull = pull,
      fit = fit$z,
      origin = parts$centred$origin,
      into_beta = parts$centred$into_beta,
      scale = sqrt(parts$square),
      stand_in = sums_model(model, sums, fit),
      passes = parts$passes
    )
  )
  if (model$traits$n_aux > 0 && isTRUE(model$prior_only)) {
    posterior$quantile <- prior_quantile(model)
  } else if (model$traits$n_aux > 0) {
    posterior$log_density <- sigma_density(model, posterior, fit$rss, sums)
    check_sigma_law(model, posterior, fit$rss, sums)
    posterior$quantile <- sigma_quantile(posterior)
  }
  posterior
}

# What it is made of, for any prior: sums, centred sums, the prior, the scale's
# square, the basis, the fit of least squares and the passes over the rows.
sums_parts <- function(model, cores) {
  sums <- product_sums(model, cores)
  centred <- center_sums(sums)
  prior <- normal_root(model, centred)
  square <- sums_scale(model, sums, centred)
  basis <- sums_basis(model, centred$gram / square, prior$root)
  fit <- sums_fit(model, sums, centred, basis, square)
  list(
    sums = sums,
    centred = centred,
    prior = prior,
    square = square,
    basis = basis,
    fit = fit,
    passes = passes_of_products(model) + fit$passes
  )
}

# Of the response; its variance where sigma is a parameter.
sums_scale <- function(model, sums, centred) {
  if (model$traits$n_aux == 0) {
    return(model$sigma^2)
  }
  square <- if (sums$n_row > 0) centred$square / sums$n_row else 0
  if (square > 0) square else exp(2 * model_start(model)[[model$n_dim]])
}

# list(basis, turn, share, rest) of G / s^2 and of the prior.
sums_basis <- function(model, gram, root) {
  p <- ncol(gram)
  own <- seq_len(p)
  precision <- gram + crossprod(root)
  scale <- 1 / sqrt(diag(precision))
  scale[!is.finite(scale)] <- 1
  total <- diag(model$n_dim)
  total[own, own] <- scale * precision * rep(scale, each = p)
  chol <- lower_chol(total, model)[own, own, drop = FALSE]
  half <- forwardsolve(chol, scale * gram * rep(scale, each = p))
  half <- forwardsolve(chol, t(half))
  values <- eigen((half + t(half)) / 2, symmetric = TRUE)
  basis <- scale * backsolve(t(chol), values$vectors)
  share <- pmax(values$values, 0)
  # no more directions than rows
  share[share < sums_settings$no_share | own > model$n_data] <- 0
  # from the root: exact however small
  rest <- colSums((root %*% basis)^2)
  norm <- share + rest
  list(
    basis = basis * rep(1 / sqrt(norm), each = p),
    # eigenvectors of equal values are any: normals are turned by them, so that
    # draws do not depend on which
    turn = t(values$vectors),
    share = share / norm,
    rest = rest / norm
  )
}

# Least squares in the directions that the rows tell of: list(z, beta, rss,
# passes). Where the columns explain nearly all of the response its sum of
# squares has lost the rest to rounding: then residuals are looked at.
sums_fit <- function(model, sums, centred, basis, square) {
  told <- basis$share > 0
  solve_in <- function(g) {
    z <- drop(crossprod(basis$basis, g)) / square / basis$share
    replace(z, !told, 0)
  }
  z <- solve_in(centred$cross)
  into_beta <- function(z) {
    c <- centred$origin + basis$basis %*% z
    drop(centred$into_beta(c))
  }
  rss <- max(0, centred$square - square * sum(basis$share * z^2))
  noise <- if (model$traits$n_aux > 0) rss else model$sigma^2 * sums$n_row
  is_rough <- min(rss, noise) < sums_settings$refined * centred$square
  passes <- 0
  for (k in seq_len(if (is_rough) 3 else 0)) {
    here <- residual_sums(model, into_beta(z), rss, sums)
    rss <- here$rss
    passes <- passes + 1
    if (k < 3) {
      g <- centred$from_beta(matrix(here$gradient, 1))
      z <- z + solve_in(drop(g))
    }
  }
  # of numbers of the response's size nothing smaller can be told
  size <- sums$square + sums$weight * sums$response^2
  if (rss <= sigma_settings$rounding^2 * size || sum(told) >= model$n_data) {
    rss <- 0
  }
  list(z = z, beta = into_beta(z), rss = rss, passes = passes)
}

# list(rss, gradient = X'W r) at beta, from the rows. The slope in log sigma is
# RSS / sigma^2 less the number of rows: sigma is put where both are alike.
residual_sums <- function(model, beta, rss, sums) {
  if (!is.null(model$remote)) {
    remote <- model$remote
    return(residuals_of(remote$rows, beta, remote$control))
  }
  if (model$traits$n_aux == 0) {
    here <- model_evaluate(model, beta, "likelihood")
    variance <- model$sigma^2
    return(list(
      rss = -2 * variance * here$log_density,
      gradient = variance * drop(here$gradient)
    ))
  }
  p <- length(beta)
  floor <- sigma_settings$rounding^2 *
    (sums$square + sums$weight * sums$response^2)
  s <- log(max(rss, floor, 1e-300) / sums$n_row) / 2
  for (attempt in 1:3) {
    here <- model_evaluate(model, c(beta, s), "likelihood")
    found <- exp(2 * s) * (here$gradient[[p + 1]] + sums$n_row)
    gradient <- exp(2 * s) * here$gradient[seq_len(p)]
    if (found >= 1e-4 * exp(2 * s) * sums$n_row || found <= floor) {
      break
    }
    s <- log(max(found, floor) / sums$n_row) / 2
  }
  list(rss = max(0, found), gradient = gradient)
}

# The model without its rows: density and gradients cost no pass.
sums_model <- function(model, sums, fit) {
  params <- c(
    list(
      gram = as.double(sums$gram),
      mean = sums$mean,
      origin = fit$beta,
      n_row = sums$n_row,
      weight = sums$weight,
      rest = fit$rss,
      sigma = model$sigma,
      lower = if (model$traits$n_aux > 0) aux_lower(model)
    ),
    list(
      prior_kind = core_kinds(model$prior),
      prior_location = model$prior$location,
      prior_shape = model$prior$shape,
      prior_scale = model$prior$scale,
      prior_at = model$prior_functional$at,
      prior_functional = model$prior_functional$weights
    )
  )
  new_model(
    "sums",
    Filter(function(value) !is.null(value), params),
    variables = model$variables,
    coordinates = model$coordinates,
    n_coef = model$n_coef,
    family = model$family,
    prior = model$prior,
    prior_functional = model$prior_functional,
    traits = model_traits(n_aux = model$traits$n_aux),
    label = model$label
  )
}

# ---- log sigma ---------------------------------------------------------------

# Up to a constant, with the coefficients integrated out; of many at once.
sigma_density <- function(model, posterior, rss, sums) {
  share <- posterior$share
  rest <- posterior$rest
  told <- share > 0
  # what the prior costs where it pulls against the rows
  cost <- ifelse(told & rest > 0, share * posterior$pull^2 / rest, 0)[told]
  share <- share[told]
  rest <- rest[told]
  function(s) {
    k <- posterior$scale^2 * exp(-2 * s)
    spread <- outer(k, share) + rep(rest, each = length(k))
    -sums$n_row * s - rss * exp(-2 * s) / 2 -
      drop((k / spread) %*% cost) / 2 -
      rowSums(log(spread)) / 2 +
      aux_density(model, s)
  }
}

# Is it a density? Towards 0 it is as sigma to the power of `falls`; far out it
# must fall, too.
check_sigma_law <- function(model, posterior, rss, sums) {
  falls <- sum(posterior$share > 0) - sums$n_row + 1
  if (rss == 0 && falls < 0.05) {
    abort_exact_fit()
  }
  far <- log(posterior$scale) + log(sigma_settings$high)
  slope <- diff(posterior$log_density(c(far, far + 1)))
  if (slope > -0.05) {
    abort_endless_sigma()
  }
}

# Its quantile function, for log sigma: a grid where the density is not
# negligible, finest where there is most of it, with Simpson's rule between its
# points. Within them the density is a straight line.
sigma_quantile <- function(posterior) {
  s <- sums_settings
  centre <- log(posterior$scale)
  f <- posterior$log_density
  grid <- seq(centre - s$low, centre + s$low / 2, length.out = s$n_grid)
  # until the peak is resolved
  for (attempt in 1:30) {
    value <- f(grid)
    near <- which(value > max(value) - s$drop)
    ends <- c(max(1, min(near) - 1), min(length(grid), max(near) + 1))
    if (length(near) > s$n_grid / 4) {
      break
    }
    grid <- seq(grid[[ends[[1]]]], grid[[ends[[2]]]], length.out = s$n_grid)
  }
  grid <- seq(grid[[ends[[1]]]], grid[[ends[[2]]]], length.out = s$n_grid + 1)
  law <- sigma_law(f, grid)
  # half of the points by mass
  mixed <- law$cdf / 2 + seq(0, 0.5, length.out = length(grid))
  at <- seq(0, 1, length.out = length(grid))
  law <- sigma_law(f, stats::approx(mixed, grid, at, ties = "ordered")$y)
  function(u) invert_law(law, u)
}

# The quantile function of the prior of what is sampled beside the coefficients,
# as coordinates: u has a row for each, or is a vector for one. Exponential
# priors are of what is above the bound, gamma ones are cut off there.
prior_quantile <- function(model) {
  at <- aux_coordinates(model)
  prior <- model$prior
  is_gamma <- prior$kind[at] == prior_kinds$gamma$code
  shape <- ifelse(is_gamma, (prior$shape %||% rep(1, model$n_dim))[at], 1)
  scale <- prior$scale[at]
  lower <- ifelse(is_gamma, aux_lower(model), 0)
  below <- stats::pgamma(lower, shape, scale = scale)
  function(u) {
    u <- below + (1 - below) * u
    value <- stats::qgamma(u, shape, scale = scale) - lower
    log(pmax(value, 1e-150))
  }
}

# list(grid, density, cdf)
sigma_law <- function(f, grid) {
  n <- length(grid)
  width <- diff(grid)
  ends <- f(grid)
  top <- max(ends)
  density <- exp(ends - top)
  middle <- exp(f(grid[-n] + width / 2) - top)
  mass <- width * (density[-n] + 4 * middle + density[-1]) / 6
  cdf <- c(0, cumsum(mass))
  list(
    grid = grid,
    width = width,
    # between two points, so that the line has the mass of its interval
    from = density[-n],
    to = density[-1],
    cdf = cdf / cdf[[n]]
  )
}

invert_law <- function(law, u) {
  at <- findInterval(u, law$cdf, rightmost.closed = TRUE, all.inside = TRUE)
  low <- law$cdf[at]
  share <- (u - low) / pmax(law$cdf[at + 1] - low, 1e-300)
  share <- pmin(pmax(share, 0), 1)
  from <- law$from[at]
  to <- law$to[at]
  # t with (from t + (to - from) t^2 / 2) = share (from + to) / 2
  root <- sqrt(pmax(from^2 + share * (to^2 - from^2), 0))
  t <- share * (from + to) / pmax(from + root, 1e-300)
  law$grid[at] + law$width[at] * t
}
