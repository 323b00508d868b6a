# Gaussian models whose priors have hyperparameters, from sums over their rows.

# Are sums over the rows enough, hyperparameters given?
has_scaled_sums <- function(model) {
  has_hyper(model) &&
    is_quadratic_response(model) &&
    has_sums(held_model(model, model$mixture$start))
}

# list(model, given, fit, passes): the model on sums over the rows, and what is
# normal given sigma, see given_sigma(); fit: of least squares.
sums_of_scaled <- function(model, cores) {
  phi <- model$mixture$start
  held <- held_model(model, phi)
  parts <- sums_parts(with_prior_at(held, model, phi), cores)
  base <- sums_model(held, parts$sums, parts$fit)
  base$prior$mixture <- model$mixture
  list(
    model = scaled_model(base),
    given = given_sigma(held, model, parts),
    fit = parts$fit,
    passes = parts$passes
  )
}

# The mode, see scaled_mode(), without a look at any row. NULL: the columns fit
# every response, and sums have lost what is left.
scaled_mode_of_sums <- function(model, sums) {
  if (model$traits$n_aux > 0 && sums$fit$rss == 0) {
    return(NULL)
  }
  mode <- search_mode(sums$model, refresh = 0, stands_in = TRUE)
  mode$passes <- 0
  mode$trace$passes <- 0
  mode$fingerprint <- model$fingerprint
  mode
}

is_ridge <- function(model) {
  all(vapply(model$mixture$parts, `[[`, "", "kind") == "ridge")
}

# What the core takes of a Gaussian model whose fixed priors are normal, given
# scales of their own where they have heavy tails, and whose mixtures are
# ridges, or any where the rows are few beside the columns, so that no curvature
# is near that of all the posterior; NULL of others. parts: of sums_parts().
given_sigma <- function(held, model, parts) {
  covered <- model$mixture$at
  fixed <- setdiff(seq_len(model$n_coef), covered)
  tails <- intersect(fixed, which(held$prior$kind %in% tail_codes()))
  is_normal <- prior_has_form(held$prior, "quadratic")[setdiff(fixed, tails)]
  if (!(is_ridge(model) || has_few_rows(model)) || !all(is_normal)) {
    return(NULL)
  }
  sums <- parts$sums
  # where the mixtures have their means: elsewhere the law given sigma leaves
  # out what the rows say of these, which depends on sigma
  center <- replace(
    parts$fit$beta,
    covered,
    model$mixture$params$mixture_location
  )
  away <- center - parts$fit$beta
  gram <- sums$gram + sums$weight * tcrossprod(sums$mean)
  cross <- sums$cross + sums$weight * sums$response * sums$mean
  left <- cross - drop(gram %*% parts$fit$beta)
  others <- held
  others$prior$kind[tails] <- prior_kinds$flat$code
  prior <- normal_prior(others)
  # of a known sigma all is in its unit
  unit <- if (model$traits$n_aux == 0) model$sigma^2 else 1
  c(
    list(
      given_center = as.double(center),
      given_pull = as.double(left - drop(gram %*% away)) / unit,
      given_prior = as.double(prior$gradient(center)),
      given_gram = as.double(gram) / unit,
      given_bend = as.double(prior$precision),
      given_rows = as.double(sums$n_row)
    ),
    if (length(tails) > 0) tail_params(held, tails)
  )
}

# Slices take more of each step than curvatures do, and mix where these say
# little.
has_few_rows <- function(model) {
  model$n_data < setting("recipe")$few_rows * model$n_coef
}

tail_codes <- function() {
  c(prior_kinds$student$code, prior_kinds$laplace$code)
}

# Fixed priors with heavy tails, at `tails`, as the core's mixtures: see
# src/priors/tails.h. Of each kind a block.
tail_params <- function(model, tails) {
  prior <- model$prior
  tails <- tails[order(match(prior$kind[tails], tail_codes()))]
  size <- tabulate(match(prior$kind[tails], tail_codes()), 2)
  of <- places_of_priors(model, model$n_coef)[tails, , drop = FALSE]
  shape <- prior$shape %||% numeric(length(prior$kind))
  list(
    tail_of = as.double(t(of)),
    # places in src/priors/registry-mixtures.c
    tail_mixture_kind = as.double(which(size > 0) - 1),
    tail_mixture_size = as.double(size[size > 0]),
    tail_mixture_argument = numeric(5 * sum(size > 0)),
    tail_mixture_at = as.double(seq_along(tails) - 1),
    tail_mixture_location = as.double(prior$location[tails]),
    tail_mixture_scale = as.double(prior$scale[tails]),
    tail_mixture_shape = as.double(shape[tails])
  )
}
