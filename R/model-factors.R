# model_bpmf() and model_pmf(): factorisation of ratings, and what
# tall_factorize() shares with them.

#' Bayesian matrix factorisation
#'
#' The posterior of a factorisation of ratings, from (user, item, rating)
#' triplets. [tall_factorize()] builds one from a formula, samples it and
#' predicts.
#'
#' @param user,item (n_data ids) Who rated what: positive whole numbers, which
#'   are row numbers (1 to the largest; a number without ratings has factors
#'   that only the prior knows), or factors or strings, whose levels are the
#'   rows.
#' @param rating (numeric vector of n_data values) The ratings. The mean of all
#'   ratings is subtracted. A pair may come more than once: each rating counts.
#' @param rank (whole number) K, the number of factors.
#' @param alpha (positive number) The precision of a rating about its mean.
#' @param mu0 (number) The prior mean of the factors' means.
#' @param a0,b0 (positive numbers) Shape and rate of the gamma prior of the
#'   precisions of the factors.
#' @param init (string) Where chains start. `"default"`: factors (and biases)
#'   from \eqn{N(0, 0.1^2)}, means 0 and precisions 1. `"authors"`: what the
#'   papers' programs do. `model_bpmf()`: \eqn{\log \lambda_U \sim
#'   N(-0.1, 1)}{log lambda_U ~ N(-0.1, 1)}, \eqn{\log \lambda_V \sim
#'   N(-0.1, 0.1^2)}{log lambda_V ~ N(-0.1, 0.1^2)}, means from \eqn{N(0, 1)}
#'   and factors from \eqn{N(\mu, I)}{N(mu, I)}; `model_pmf()`: factors 0.35,
#'   biases 0.05, precisions 2.
#' @param gibbs_every (whole number or `NULL`) Draw the precisions from their
#'   exact conditional distribution every so many iterations, besides what the
#'   kernel makes of them; `NULL`: leave them to the kernel.
#'
#' @details With \eqn{m} the mean of the ratings, `model_bpmf()` (Mauri &
#' Zanella, 2024, section 4.3; after Salakhutdinov & Mnih, 2008, with diagonal
#' precisions) has \deqn{R_{ij} \sim N(m + U_i^T V_j, 1 / \alpha), \quad U_i
#' \sim N(\mu_U, \Lambda_U^{-1}), \quad \mu_U \sim N(\mu_0,
#' \Lambda_U^{-1})}{R_ij ~ N(m + U_i' V_j, 1 / alpha), U_i ~ N(mu_U, 1 /
#' lambda_U), mu_U ~ N(mu_0, 1 / lambda_U)} and the same for \eqn{V};
#' `model_pmf()` (Baker, Fearnhead, Fox & Nemeth, 2019, section 5.2) has biases
#' and no means, \deqn{R_{ij} \sim N(m + U_i^T V_j + a_i + b_j, 1 / \alpha),
#' \quad (U_i, a_i) \sim N(0, \Lambda_U^{-1}), \quad (V_j, b_j) \sim N(0,
#' \Lambda_V^{-1}).}{R_ij ~ N(m + U_i' V_j + a_i + b_j, 1 / alpha), (U_i, a_i) ~
#' N(0, 1 / lambda_U), (V_j, b_j) ~ N(0, 1 / lambda_V).} In both \eqn{\Lambda}
#' is the diagonal of \eqn{\lambda_k \sim \mathrm{Gamma}(a_0, b_0)}{lambda_k ~
#' Gamma(a0, b0)}, sampled as its logarithm.
#'
#' The variables are called `user[i,k]`, `item[j,k]`, `mu_user[k]`,
#' `lambda_user[k]` and so on, `user_bias[i]` and `item_bias[j]` where there are
#' biases, with `i` and `j` the numbers or levels given. Single factors mean
#' little: a rotation of both sides changes them and not the ratings.
#'
#' A rating's gradient touches two rows: a minibatch costs what its ratings
#' cost, and an iteration little more than drawing its noise. [gradient_saga()]
#' stores \eqn{2 K} numbers a rating (\eqn{2 K + 2} with biases). The default is
#' [gradient_simple()] with a hundredth of the ratings; [gradient_cv()] looks
#' for a mode first, one of many. A Gibbs draw of the precisions is exact; it
#' uses another minibatch for the gradient where it leads.
#'
#' The paper on control variates has `b0 = 300`. The default of `model_pmf()` is
#' that of `model_bpmf()`: about the mean of the ratings, 300 is a prior of
#' factors far too large, and on MovieLens 100k averaged predictions have an
#' rMSE of 1.035 with it, 0.950 with 5. The paper's program departs from this
#' model (ratings are not centred, the prior acts on the last factor only, and
#' the gamma distribution is given a scale where its comments say rate).
#'
#' @return A `tall_model` for [sg_sample()] and [find_mode()].
#' @section Conditions: `tall_error_input` names the argument and value at
#' fault: a missing rating, ids that are neither positive whole numbers nor
#' factors, a rank of 0. `tall_warning_ratings` where `rank` is larger than both
#' dimensions.
#' @references Baker, Fearnhead, Fox & Nemeth (2019). Control variates for
#' stochastic gradient MCMC. *Statistics and Computing* 29, 599-615.
#'
#' Mauri & Zanella (2024). Robust approximate sampling via stochastic gradient
#' Barker dynamics. *AISTATS*.
#'
#' Salakhutdinov & Mnih (2008). Bayesian probabilistic matrix factorization
#' using Markov chain Monte Carlo. *ICML*.
#' @seealso [tall_factorize()]
#' @examples
#' user <- rep(1:30, each = 10)
#' item <- rep(1:20, 15)
#' rating <- 3 + sin(user) * cos(item) + rnorm(300, sd = 0.3)
#' model <- model_bpmf(user, item, rating, rank = 2)
#' model
#' fit <- sg_sample(model, kernel_sgbd(0.02), iter = 500, chains = 2, seed = 1)
#'
#' # one scale for all factors
#' model_pmf(user, item, rating, rank = 2)
#' @name model_factors
NULL

#' @rdname model_factors
#' @export
model_bpmf <- function(
  user,
  item,
  rating,
  rank = 20,
  alpha = 3,
  mu0 = 0,
  a0 = 1,
  b0 = 5,
  init = c("default", "authors"),
  gibbs_every = NULL
) {
  blueprint <-
    factors_blueprint("bpmf", rank, alpha, mu0, a0, b0, init, gibbs_every)
  build_factors(blueprint, check_ratings(user, item, rating))
}

#' @rdname model_factors
#' @export
model_pmf <- function(
  user,
  item,
  rating,
  rank = 20,
  alpha = 3,
  a0 = 1,
  b0 = 5,
  init = c("default", "authors"),
  gibbs_every = NULL
) {
  blueprint <-
    factors_blueprint("pmf", rank, alpha, 0, a0, b0, init, gibbs_every)
  build_factors(blueprint, check_ratings(user, item, rating))
}

# n: of users and of items.
warn_rank <- function(rank, n) {
  if (rank <= max(n)) {
    return(invisible())
  }
  warn_tall(
    "ratings",
    c(
      "{.arg rank} is {format_count(rank)}, more than there are users,
       {format_count(n[[1]])}, or items, {format_count(n[[2]])}.",
      i = "No matrix of these sizes has a rank above {format_count(min(n))}:
           more factors cost time and add nothing."
    )
  )
}

# What a factorisation is before it has ratings, checked: all that a model is
# built from besides them.
factors_blueprint <- function(
  name,
  rank,
  alpha,
  mu0,
  a0,
  b0,
  init,
  gibbs_every
) {
  blueprint <- list(
    name = name,
    rank = check_count(rank, arg = "rank"),
    alpha = check_number(alpha, positive = TRUE, arg = "alpha"),
    a0 = check_number(a0, positive = TRUE, arg = "a0"),
    b0 = check_number(b0, positive = TRUE, arg = "b0"),
    mu0 = check_number(mu0, arg = "mu0"),
    init = check_choice(init, c("default", "authors"), arg = "init"),
    gibbs_every = check_count(
      gibbs_every,
      allow_null = TRUE,
      arg = "gibbs_every"
    )
  )
  structure(blueprint, class = "tall_factors_blueprint")
}

# The model of a blueprint and of ratings, list(user, item, rating) or those of
# ratings_of() in a file, that are known to be good.
build_factors <- function(blueprint, ratings) {
  name <- blueprint$name
  rank <- blueprint$rank
  n <- c(ratings$user$n, ratings$item$n)
  check_n_dim(sum(n) * rank, rank)
  warn_rank(rank, n)
  shape <- c(
    n_user = n[[1]],
    n_item = n[[2]],
    rank = rank,
    bias = name == "pmf"
  )
  names <- factor_names(name, ratings, rank)
  draw <- factor_start(name, shape, blueprint$init)
  rows <- rating_rows(ratings)
  center <- rows$center
  new_model(
    name,
    c(rows$core, list(
      n_user = n[[1]],
      n_item = n[[2]],
      rank = rank,
      center = center,
      alpha = blueprint$alpha,
      mu0 = blueprint$mu0,
      a0 = blueprint$a0,
      b0 = blueprint$b0,
      gibbs_every = blueprint$gibbs_every %||% 0
    )),
    variables = c(names$rows, names$lambda),
    coordinates = c(names$rows, paste0("log_", names$lambda)),
    shape = shape,
    ids = list(user = ratings$user$labels, item = ratings$item$labels),
    rated = list(
      user = tabulate(rated_ids(ratings$user), n[[1]]) > 0,
      item = tabulate(rated_ids(ratings$item), n[[2]]) > 0
    ),
    center = center,
    alpha = blueprint$alpha,
    rating_range = rows$range,
    traits = model_traits(
      start = function() draw(stats::rnorm),
      draw = draw,
      # a mode is one of many, and a search for it an iteration of its own
      gradient = "simple",
      batch = max(32, ceiling(rows$n / 100)),
      gibbs_every = blueprint$gibbs_every
    ),
    label = paste0("model_", name),
    store = rows$store
  )
}

# list(core, n, center, range, store): what the core takes, which may be a file,
# and what is known of all ratings.
rating_rows <- function(ratings) {
  file <- ratings$store
  if (is.null(file)) {
    return(list(
      core = list(
        user = ratings$user$index,
        item = ratings$item$index,
        rating = ratings$rating
      ),
      n = length(ratings$rating),
      center = mean(ratings$rating),
      range = range(ratings$rating),
      store = list(type = "dense", read_only = FALSE)
    ))
  }
  check_store(file, arg = "fit$data$ratings$store")
  known <- ratings[c("center", "range")]
  c(list(core = list(), n = nrow(file)), known, list(
    store = mapped_store("double", file)
  ))
}

# ---- parameters --------------------------------------------------------------

# As they stand in theta: list(rows and means, lambda).
factor_names <- function(name, ratings, rank) {
  has_bias <- name == "pmf"
  factors <- seq_len(rank)
  rows <- function(side) {
    id <- ratings[[side]]$labels %||% seq_len(ratings[[side]]$n)
    numbers <- format(id, scientific = FALSE, trim = TRUE)
    id <- if (is.numeric(id)) numbers else id
    n <- length(id)
    out <- matrix(
      paste0(side, "[", rep(id, each = rank), ",", rep(factors, n), "]"),
      rank
    )
    as.vector(
      if (has_bias) rbind(out, paste0(side, "_bias[", id, "]")) else out
    )
  }
  each <- function(what) {
    unlist(lapply(c("user", "item"), function(side) {
      c(
        paste0(what, "_", side, "[", factors, "]"),
        if (has_bias) paste0(what, "_", side, "_bias")
      )
    }))
  }
  list(
    rows = c(rows("user"), rows("item"), if (!has_bias) each("mu")),
    lambda = each("lambda")
  )
}

# Starting points: normals (n -> n standard normals) -> theta.
factor_start <- function(name, shape, init) {
  rank <- shape[["rank"]]
  n <- shape[c("n_user", "n_item")]
  width <- rank + shape[["bias"]]
  if (init == "default") {
    tail <- if (name == "bpmf") 4 * rank else 2 * width
    return(function(normals) c(0.1 * normals(sum(n) * width), numeric(tail)))
  }
  if (name == "pmf") {
    theta <- c(rep(c(rep(0.35, rank), 0.05), sum(n)), rep(log(2), 2 * width))
    return(function(normals) theta)
  }
  function(normals) {
    z <- normals((sum(n) + 4) * rank)
    take <- function(k) {
      out <- z[seq_len(k)]
      z <<- z[-seq_len(k)]
      out
    }
    mean <- matrix(take(2 * rank), rank)
    log_lambda <- c(-0.1 + take(rank), -0.1 + 0.1 * take(rank))
    rows <- take(sum(n) * rank) +
      c(rep(mean[, 1], n[[1]]), rep(mean[, 2], n[[2]]))
    c(rows, mean, log_lambda)
  }
}

# U_i' V_j (+ a_i + b_j) of pairs (row numbers) at the columns of theta: pairs x
# draws. Add the center.
factor_means <- function(shape, theta, user, item) {
  .Call(
    ffi_factors_map,
    as.double(shape),
    theta,
    as.double(user),
    as.double(item)
  )
}

#' @export
print.tall_model_bpmf <- function(x, ...) {
  check_no_dots(...)
  print_factors(x)
}

#' @export
print.tall_model_pmf <- function(x, ...) {
  check_no_dots(...)
  print_factors(x)
}

print_factors <- function(x) {
  cat("<tall_model> ", x$label, "()\n", sep = "")
  cat("  ", ratings_text(x), "\n", sep = "")
  cat(
    "  rank ",
    format_count(x$shape[["rank"]]),
    ", alpha ",
    format_number(x$alpha),
    ": ",
    count_noun(x$n_dim, "parameter"),
    if (!is.null(x$gibbs_every)) {
      paste0(", precisions by Gibbs every ", x$gibbs_every)
    },
    "\n",
    sep = ""
  )
  if (!model_is_alive(x)) {
    cat("  its data are lost (read back from a file)\n")
  }
  invisible(x)
}

# "80,000 ratings (1 to 5, mean 3.53) of 1,682 items by 943 users"
ratings_text <- function(x) {
  paste0(
    count_noun(x$n_data, "rating"),
    " (",
    format_number(x$rating_range[[1]]),
    " to ",
    format_number(x$rating_range[[2]]),
    ", mean ",
    format(x$center, digits = 3),
    ") of ",
    count_noun(x$shape[["n_item"]], "item"),
    " by ",
    count_noun(x$shape[["n_user"]], "user")
  )
}
