# Gaussian models whose priors have hyperparameters, from sums over their rows.

# list(model, given, passes): the model on sums over the rows, and of few
# hyperparameters what is normal given sigma; NULL where sums are not enough.
sums_of_scaled <- function(model, mode, cores) {
  own <- model$n_dim - n_hyper(model)
  held <- held_model(model, unname(mode$estimate)[-seq_len(own)])
  if (!has_sums(held)) {
    return(NULL)
  }
  phi <- unname(mode$estimate)[-seq_len(own)]
  parts <- sums_parts(with_prior_at(held, model, phi), cores)
  base <- sums_model(held, parts$sums, parts$fit)
  base$prior$mixture <- model$mixture
  list(
    model = scaled_model(base),
    given = given_sigma(held, model, parts),
    passes = parts$passes
  )
}

# The same, whose prior in R's words is the normal one that it has at phi.
with_prior_at <- function(held, model, phi) {
  at <- model$mixture$at
  held$prior$kind[at] <- prior_kinds$normal$code
  held$prior$location[at] <- model$mixture$params$mixture_location
  held$prior$scale[at] <- 1 / sqrt(drop(precision_at(model$mixture, phi)))
  held
}

# What the core takes of a Gaussian model whose sigma is sampled, with a ridge
# for each block and else normal priors; NULL of others. parts: of sums_parts().
given_sigma <- function(held, model, parts) {
  kinds <- vapply(model$mixture$parts, `[[`, "", "kind")
  covered <- model$mixture$at
  is_other <- setdiff(seq_len(model$n_coef), covered)
  is_normal <- prior_has_form(held$prior, "quadratic")[is_other]
  if (model$traits$n_aux != 1 || !all(kinds == "ridge") || !all(is_normal)) {
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
  prior <- normal_prior(held)
  list(
    given_center = as.double(center),
    given_pull = as.double(left - drop(gram %*% away)),
    given_prior = as.double(prior$gradient(center)),
    given_gram = as.double(gram),
    given_bend = as.double(prior$precision),
    given_rows = as.double(sums$n_row)
  )
}
