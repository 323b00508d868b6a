# Priors of blocks of coefficients with a standard deviation each, which is a
# parameter: those of smooth terms. In the core each is a ridge
# (src/priors/mixture-ridge.c) of its own.

#' Priors of the standard deviations of smooth terms
#'
#' The coefficients of a smooth term that its penalty is about, those of a block
#' of [model_glm()] in general, are normal with a standard deviation of their
#' own, a parameter of the model: the smoothing parameter of penalised
#' regression, with its posterior.
#'
#' @details With \eqn{u} the coefficients of block \eqn{k}, and \eqn{s_j = 1},
#' \deqn{u_j \sim N(0, \sigma_k^2), \qquad \sigma_k \sim p.}{
#' u_j ~ N(0, sigma_k^2), sigma_k ~ p.}
#' `prior_smooth`, the same for all blocks, is one of
#'
#' * `prior_exponential(rate)`: \eqn{\sigma_k}{sigma_k} is exponential with mean
#'   `1 / rate`. The default, with rate 1;
#' * `prior_normal(0, scale)`: half normal;
#' * `prior_student(df, 0, scale)`: half Student t; `df = 1` is half Cauchy.
#'
#' With `autoscale = TRUE`, the default's, \eqn{\sigma_k}{sigma_k} is in units
#' of the response's standard deviation in a Gaussian model; elsewhere that
#' changes nothing.
#'
#' [tall_gam()] scales the columns of each smooth term such that
#' \eqn{\sigma_k}{sigma_k} is the curve's prior standard deviation: the root of
#' the mean, over the rows, of the variance of its penalised part,
#' \eqn{\frac1N \sum_i \mathrm{var}(z_i^\top u) = \sigma_k^2}{(1/N) sum_i
#' var(z_i' u) = sigma_k^2}. An exponential prior of mean 1 then says of a
#' logistic regression that a curve departs from its unpenalised part, such as a
#' straight line, by about a unit of log odds, whatever the basis. The
#' `prior_smooth` of rstanarm's `stan_gamm4()` is that of the standard deviation
#' of the coefficients of mgcv's basis as it comes, whose columns are on another
#' scale for each kind of basis: the same number means something else there. Of
#' group-level terms, `s(g, bs = "re")`, it is the standard deviation of the
#' effects. Draws are called `smooth_sd[s(x)1]`, the number that of the term's
#' penalty, as in rstanarm.
#'
#' No row sees these parameters: they cost no data, see [prior_hs()]. Where the
#' data say that a curve is a straight line, the posterior of its
#' \eqn{\sigma_k}{sigma_k} is near 0, and proper as its prior is; flat ones are
#' refused.
#'
#' @section Conditions: `tall_error_input` for a prior that is none of these, a
#'   location other than 0, or one that names coefficients.
#' @references
#' Gelman (2006). Prior distributions for variance parameters in hierarchical
#' models. *Bayesian Analysis* 1, 515-534.
#'
#' Simpson, Rue, Riebler, Martins & Sorbye (2017). Penalising model component
#' complexity: a principled, practical approach to constructing priors.
#' *Statistical Science* 32, 1-28.
#'
#' Wood (2017). *Generalized Additive Models: An Introduction with R*. CRC.
#' @seealso [prior_ridge()] for one standard deviation of all coefficients
#' @examples
#' # a step of ten, as a random walk: sums of the first rows of an identity
#' x <- seq(0, 1, length.out = 400)
#' z <- outer(x, seq(0.1, 0.9, by = 0.1), ">") / 2
#' y <- rbinom(400, 1, plogis(2 * sin(6 * x)))
#' model <- model_glm(
#'   cbind("(Intercept)" = 1, walk = z),
#'   y,
#'   blocks = c("", rep("walk", 9)),
#'   prior_smooth = prior_student(3, 0, 1)
#' )
#' fit <- sg_sample(model, iter = 1000, seed = 1, refresh = 0)
#' summary(fit, variables = "smooth_sd[walk]")
#' @name prior_smooth
NULL

# prior, frame: of as_prior(); flat ones, which NULL is, have no posterior here.
as_prior_smooth <- function(
  prior,
  arg = caller_arg(prior),
  frame = caller_env()
) {
  prior <- as_prior(prior, arg, frame)
  if (!prior$kind %in% c("exponential", "normal", "student")) {
    abort_input(
      c(
        "{.arg {arg}} must be {.code prior_exponential()},
         {.code prior_normal()} or {.code prior_student()}, not
         {.code prior_{prior$kind}()}.",
        i = "It is the prior of the standard deviation of a smooth term, which
             must be proper."
      ),
      argument = arg,
      value = prior
    )
  }
  if (prior$kind != "exponential") {
    is_half <- length(prior$location) == 1 && prior$location == 0 &&
      length(prior$scale) == 1 && is.null(names(prior$scale))
    if (!is_half) {
      abort_input(
        "{.arg {arg}} must have location 0 and one scale: it is cut off at 0,
         and that of every smooth term.",
        argument = arg,
        value = prior
      )
    }
  }
  prior
}

# Blocks as a list: `of`, the number of each column's block, 0 for none, and
# `names` of the blocks. x: as model_glm() has it.
read_blocks <- function(x, arg = caller_arg(x)) {
  if (is.null(x)) {
    return(NULL)
  }
  if (is.factor(x)) {
    x <- as.character(x)
  }
  is_number <- is_plain_numeric(x) && !anyNA(x) && all(x >= 0 & x == floor(x))
  if (!is_number && !(is.character(x) && !anyNA(x))) {
    abort_expected(x, "whole numbers from 0 on, or strings", arg = arg)
  }
  none <- if (is_number) 0 else ""
  names <- setdiff(if (is_number) sort(unique(x)) else unique(x), none)
  if (length(names) == 0) {
    return(NULL)
  }
  list(
    of = ifelse(x == none, 0L, match(x, names)),
    names = as.character(names)
  )
}

# What prior_resolve() takes of them: columns of each block, and the prior.
smooth_blocks <- function(blocks, prior, n_dim) {
  if (is.null(blocks)) {
    return(NULL)
  }
  check_size(blocks$of, n_dim, arg = "blocks")
  list(
    at = lapply(seq_along(blocks$names), function(k) which(blocks$of == k)),
    names = blocks$names,
    prior = prior
  )
}

# Each block as a ridge of its own, after what is resolved already.
resolve_blocks <- function(out, smooth, response_sd, names = NULL) {
  made <- lapply(seq_along(smooth$at), function(k) {
    at <- smooth$at[[k]]
    prior <- block_prior(smooth$prior, smooth$names[[k]], response_sd)
    out$location[at] <- 0
    out$scale[at] <- 1
    resolve_mixture(prior, out, at, names)
  })
  at <- unlist(smooth$at)
  out$kind[at] <- prior_kinds$ridge$code
  out$mixture <- bind_mixtures(c(list(out$mixture), made))
  out
}

# prior: of all blocks, or a list of them by their names.
block_prior <- function(prior, name, response_sd) {
  if (!is.object(prior)) {
    prior <- prior[[name]]
  }
  unit <- if (prior$autoscale) response_sd else 1
  is_exponential <- prior$kind == "exponential"
  list(
    kind = "ridge",
    df = if (prior$kind == "student") prior$df else Inf,
    scale = unit * if (is_exponential) 1 / prior$rate else prior$scale,
    is_exponential = is_exponential,
    called = paste0("smooth_sd[", name, "]"),
    given = "prior_smooth"
  )
}

# Several of resolve_mixture() as one.
bind_mixtures <- function(mixtures) {
  mixtures <- compact(mixtures)
  join <- function(name) unlist(lapply(mixtures, `[[`, name))
  params <- names(mixtures[[1]]$params)
  list(
    kind = mixtures[[1]]$kind,
    given = mixtures[[1]]$given,
    parts = do.call(c, lapply(mixtures, `[[`, "parts")),
    at = join("at"),
    names = join("names"),
    coordinates = join("coordinates"),
    start = join("start"),
    params = lapply(stats::setNames(nm = params), function(name) {
      unlist(lapply(mixtures, function(x) x$params[[name]]))
    })
  )
}
