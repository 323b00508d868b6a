# Proposals of kernel_smh(): one constructor for each member of
# src/proposals/registry.c, and the mixture of several.

# Places in src/proposals/registry.c.
proposal_places <- c(
  independent = 0,
  autoregressive = 1,
  hmc = 2,
  slice = 3,
  scales = 4,
  marginal = 5,
  block = 6
)

#' Proposals of exact steps
#'
#' How [kernel_smh()] proposes: by steps of a chain on a *surrogate* of the
#' posterior, which costs no look at the data. Any of these, or a mixture, leads
#' to the same posterior, exactly; they differ in how soon.
#'
#' @param stay (number in \[0, 1)) The share \eqn{\alpha}{alpha} of its place
#'   that a chain keeps.
#' @param step_size (positive number or `NULL`) The size of a leap, in posterior
#'   standard deviations. `NULL`: \eqn{1.2 d^{-1/4}}{1.2 d^(-1/4)}.
#' @param leaps (whole number or `NULL`) Leaps of a trajectory. `NULL`: as many
#'   as a quarter of an orbit takes, \eqn{\pi/2}{pi/2} over `step_size`.
#' @param width (positive number) The width of the first interval about the
#'   chain from which a slice steps out: in the units of the coordinate, in
#'   `proposal_marginal()` those of the logarithms of the scales.
#' @param rounds (whole number) `proposal_scales()`: how often coefficients and
#'   hyperparameters are drawn in turn for a proposal. `proposal_marginal()`:
#'   how many slices of hyperparameters are.
#' @param coordinates (vector of whole numbers or `NULL`) The numbers of the
#'   coordinates that are sliced. `NULL`: all.
#' @param ... (proposals) What the mixture is of, 8 at most.
#' @param shares (vector of positive numbers, one for each, or `NULL`) How often
#'   each is taken, up to a factor. `NULL`: as often as each other.
#' @param times (whole number) Steps of the surrogate's chain for a proposal.
#'
#' @details
#' With \eqn{e_i(\theta)}{e_i(theta)} what is left of a row beyond its
#' second-order expansion, \eqn{N(m, \Sigma)}{N(m, Sigma)} the normal
#' distribution that all expansions add up to (see [kernel_smh()]) and \eqn{S}
#' the rows that are `awkward`, the surrogate is
#' \deqn{\hat\pi(\theta) \propto N(\theta; m, \Sigma) \, e^{-e_0(\theta)}
#' \prod_{i \in S} e^{-e_i(\theta)},}{pi^(theta) prop. N(theta; m, Sigma)
#' exp(-e_0(theta)) prod_(i in S) exp(-e_i(theta)),} \eqn{e_0} what is left of
#' the prior. Each of `times` steps accepts a draw
#' \eqn{\theta'}{theta'} with the probability that leaves
#' \eqn{\hat\pi}{pi^} invariant; where they end is accepted with probability
#' \eqn{\prod_{i \notin S} \min(1, e^{-[e_i(\theta') - e_i(\theta)]})}{prod_(i
#' not in S) min(1, exp(-[e_i(theta') - e_i(theta)]))}, from a few rows.
#'
#' * `proposal_independent()`: \eqn{\theta' \sim N(m, \Sigma)}{theta' ~ N(m,
#'   Sigma)}.
#' * `proposal_autoregressive()`: \eqn{\theta' = m + \alpha (\theta - m) +
#'   \sqrt{1 - \alpha^2} \, \Sigma^{1/2} \xi}{theta' = m + alpha (theta - m) +
#'   sqrt(1 - alpha^2) Sigma^(1/2) xi}, \eqn{\xi \sim N(0, I)}{xi ~ N(0, I)}.
#' * `proposal_hmc()`: Hamiltonian Monte Carlo on the surrogate, whose leaps
#'   cost a product with each awkward row; the size of each trajectory's leaps
#'   is drawn between 0.8 and 1.2 of `step_size`.
#' * `proposal_slice()`: one coordinate, drawn at random, by stepping out and
#'   shrinking (Neal, 2003); for tails with a wall in them, through which no
#'   step of a fixed size leads, as that of a level without an event.
#' * `proposal_scales()`, `proposal_marginal()`: see the next section.
#' * `proposal_mixture()`: one of several, at random; of `times` steps each as
#'   many as its share says (to less than one), in an order drawn at random.
#'
#' A chain that goes through several proposals in an order that is fixed is not
#' reversible, and its ends could not be accepted by such a test: so there are
#' mixtures only, whose orders are as likely backwards.
#'
#' @section Hyperparameters:
#' Under a prior with scales of its own, such as [prior_hs()], the surrogate is
#' one of coefficients \eqn{\beta}{beta} and hyperparameters
#' \eqn{\varphi}{phi}, \deqn{\hat\pi(\beta, \varphi) \propto p(\varphi)
#' p(\beta \mid \varphi) \, e^{-Q(\beta)} \prod_{i \in S} e^{-U_i(\beta)},
#' }{pi^(beta, phi) prop. p(phi) p(beta | phi) exp(-Q(beta)) prod_(i in S)
#' exp(-U_i(beta)),} \eqn{Q} the sum of the other rows' expansions: no row sees
#' \eqn{\varphi}{phi}, which costs no look at the data. The test is one of
#' \eqn{\beta}{beta} alone; where it refuses, \eqn{\varphi}{phi} goes back,
#' too. Between proposals \eqn{\varphi}{phi} is also drawn given
#' \eqn{\beta}{beta}, always accepted.
#'
#' * `proposal_scales()`: \eqn{\varphi \mid \beta}{phi | beta} and then
#'   `rounds` times \eqn{\beta \mid \varphi}{beta | phi} and \eqn{\varphi \mid
#'   \beta}{phi | beta}, which reads the same backwards and is reversible
#'   therefore. With \eqn{S} empty, \eqn{\beta \mid \varphi}{beta | phi} is a
#'   draw from its normal distribution (one Cholesky factor), of which it keeps
#'   the share `stay`; else it is accepted by what the awkward rows say.
#' * `proposal_marginal()`: for few hyperparameters, as of [prior_ridge()]:
#'   `rounds` slices of their density with \eqn{\beta}{beta} integrated out,
#'   each of one hyperparameter, drawn at random, given the others, and then
#'   \eqn{\beta \mid \varphi}{beta | phi}, accepted by what the awkward rows
#'   say.
#' * All others move \eqn{\beta}{beta} given \eqn{\varphi}{phi}.
#'
#' @return A spec of class `tall_proposal` for [kernel_smh()].
#' @section Conditions: `tall_error_input` if an argument is not as described;
#'   `tall_error_unsupported`, when the run starts, for `proposal_scales()` and
#'   `proposal_marginal()` of a model without hyperparameters.
#' @references
#' Liu (2001). *Monte Carlo Strategies in Scientific Computing*, section 9.4.3
#' (surrogate transitions). Springer.
#'
#' Cornish, Vanetti, Bouchard-Cote, Deligiannidis & Doucet (2019). Scalable
#' Metropolis-Hastings for exact Bayesian inference with large datasets. *ICML*.
#'
#' Neal (2003). Slice sampling. *Annals of Statistics* 31, 705-767.
#'
#' Duane, Kennedy, Pendleton & Roweth (1987). Hybrid Monte Carlo. *Physics
#' Letters B* 195, 216-222.
#' @examples
#' proposal_hmc()
#' proposal_mixture(
#'   proposal_independent(),
#'   proposal_autoregressive(0.9),
#'   shares = c(9, 1)
#' )
#'
#' # a level whose rows all have the same outcome: a tail that is not normal
#' x <- cbind("(Intercept)" = 1, rare = rep(0:1, c(5000, 20)))
#' y <- c(rbinom(5000, 1, 0.3), numeric(20))
#' model <- model_glm(x, y, prior = prior_normal(0, 2.5))
#' proposal <- proposal_mixture(proposal_slice(), proposal_hmc(), times = 2)
#' kernel <- kernel_smh(proposal = proposal, awkward = 5001:5020)
#' sg_sample(model, kernel, iter = 2000, seed = 1)
#'
#' # a scale that is learnt: beside the coefficients, or these integrated out
#' model <- model_glm(x, y, prior = prior_ridge())
#' proposal <- proposal_mixture(proposal_scales(), proposal_marginal())
#' sg_sample(model, kernel_smh(proposal = proposal), iter = 2000, seed = 1)
#' @name proposals
NULL

#' @rdname proposals
#' @export
proposal_independent <- function() {
  new_spec("proposal", "independent")
}

#' @rdname proposals
#' @export
proposal_autoregressive <- function(stay = 0.9) {
  stay <- check_number(stay, min = 0, max = 1)
  if (stay == 1) {
    abort_expected(stay, "less than 1: at 1 a chain would not move")
  }
  new_spec("proposal", "autoregressive", stay = stay)
}

#' @rdname proposals
#' @export
proposal_hmc <- function(step_size = NULL, leaps = NULL) {
  if (!is.null(step_size)) {
    step_size <- check_number(step_size, positive = TRUE)
  }
  leaps <- check_count(leaps, max = 1e6, allow_null = TRUE)
  new_spec("proposal", "hmc", step_size = step_size, leaps = leaps)
}

#' @rdname proposals
#' @export
proposal_slice <- function(width = 1, coordinates = NULL) {
  width <- check_number(width, positive = TRUE)
  if (!is.null(coordinates)) {
    coordinates <- check_numeric_vector(coordinates)
    bad <- coordinates < 1 | coordinates != round(coordinates)
    if (any(bad)) {
      abort_expected(
        coordinates[bad][[1]],
        "numbers of coordinates, from 1 on",
        arg = "coordinates"
      )
    }
  }
  new_spec("proposal", "slice", width = width, coordinates = coordinates)
}

#' @rdname proposals
#' @export
proposal_scales <- function(rounds = 3, stay = 0) {
  stay <- check_number(stay, min = 0, max = 1)
  if (stay == 1) {
    abort_expected(stay, "less than 1: at 1 a chain would not move")
  }
  rounds <- check_count(rounds, max = 1000)
  new_spec("proposal", "scales", rounds = rounds, stay = stay)
}

#' @rdname proposals
#' @export
proposal_marginal <- function(width = 1.5, rounds = 1) {
  width <- check_number(width, positive = TRUE)
  rounds <- check_count(rounds, max = 1000)
  new_spec("proposal", "marginal", width = width, rounds = rounds)
}

# Of the moves that the recipe has found (see surrogate_moves()): not for users,
# who have none.
proposal_block <- function(stay) {
  new_spec("proposal", "block", stay = stay)
}

most_proposals <- 8

#' @rdname proposals
#' @export
proposal_mixture <- function(..., shares = NULL, times = 1) {
  members <- list(...)
  for (k in seq_along(members)) {
    check_proposal(members[[k]], paste0("..", k))
    if (inherits(members[[k]], "tall_proposal_mixture")) {
      abort_input(
        c(
          "{.fn proposal_mixture} cannot hold another mixture.",
          i = "Give all proposals to one."
        ),
        argument = paste0("..", k)
      )
    }
  }
  n <- length(members)
  if (n == 0 || n > most_proposals) {
    abort_expected(n, "1 to 8 proposals", arg = "...")
  }
  shares <- shares %||% rep(1, n)
  shares <- check_numeric_vector(shares, size = n, positive = TRUE)
  new_spec(
    "proposal",
    "mixture",
    members = members,
    shares = shares / sum(shares),
    times = check_count(times, max = 1000)
  )
}

#' @export
print.tall_proposal_mixture <- function(x, ...) {
  check_no_dots(...)
  cat("<tall_proposal> mixture\n")
  for (k in seq_along(x$args$members)) {
    own <- spec_text(x$args$members[[k]])
    share <- format(100 * x$args$shares[[k]], digits = 3)
    cat("  ", share, "%: ", own, "\n", sep = "")
  }
  cat("  times: ", x$args$times, "\n", sep = "")
  invisible(x)
}

# "slice(width = 2)"
#' @export
spec_text.tall_proposal <- function(spec) {
  args <- Filter(function(value) !is.null(value), spec$args)
  if (length(args) == 0) {
    return(spec$name)
  }
  own <- paste(names(args), "=", vapply(args, arg_text, ""), collapse = ", ")
  paste0(spec$name, "(", own, ")")
}

# "3 of (75% hmc, 25% slice(width = 2))"
#' @export
spec_text.tall_proposal_mixture <- function(spec) {
  args <- spec$args
  members <- vapply(args$members, spec_text, "")
  shares <- vapply(100 * args$shares, format, "", digits = 3)
  members <- paste0("(", paste0(shares, "% ", members, collapse = ", "), ")")
  if (args$times > 1) paste(args$times, "of", members) else members
}

check_proposal <- function(x, arg = caller_arg(x)) {
  if (inherits(x, "tall_proposal")) {
    return(invisible(x))
  }
  is_sweep <- is.list(x) && length(x) > 0 &&
    all(vapply(x, inherits, TRUE, "tall_proposal"))
  if (is_sweep) {
    abort_input(
      c(
        "{.arg {arg}} must be one proposal: one after the other they are not
         reversible, and no test could make them exact.",
        i = "Use {.fn proposal_mixture}, which takes one of them at random."
      ),
      argument = arg
    )
  }
  abort_expected(x, "a proposal, such as `proposal_hmc()`", arg = arg)
}

proposal_members <- function(proposal) {
  is_mixture <- inherits(proposal, "tall_proposal_mixture")
  if (is_mixture) proposal$args$members else list(proposal)
}

# What moves hyperparameters needs some.
check_proposal_model <- function(proposal, model) {
  names <- vapply(proposal_members(proposal), `[[`, "", "name")
  of_hyper <- intersect(names, c("scales", "marginal"))
  if (length(of_hyper) > 0 && !has_hyper(model)) {
    abort_tall(
      "unsupported",
      c(
        "{.code proposal_{of_hyper[[1]]}()} moves hyperparameters, of which this
         {.fn {model$label}} has none.",
        i = "Give it a prior that has some, such as {.fn prior_hs}, or use
             {.fn proposal_independent}."
      ),
      argument = "proposal"
    )
  }
}

# Where none is given: independent draws, of which a share stays near.
hyper_proposal <- function(share = 0.1, rounds = 3) {
  far <- proposal_scales(rounds)
  near <- proposal_scales(1, 0.9)
  if (share == 0) {
    far
  } else if (share == 1) {
    near
  } else {
    proposal_mixture(far, near, shares = c(1 - share, share))
  }
}

# The directions that are sliced, n_dim x their number; NULL: there are none.
proposal_lines <- function(proposal, n_dim) {
  lines <- list()
  for (member in proposal_members(proposal)) {
    if (member$name == "slice") {
      at <- member$args$coordinates %||% seq_len(n_dim)
      if (max(at) > n_dim) {
        abort_expected(
          max(at),
          paste("numbers of coordinates up to", n_dim),
          arg = "coordinates"
        )
      }
      lines <- c(lines, list(at))
    }
  }
  at <- unique(unlist(lines))
  if (!is.null(at)) diag(1, n_dim)[, at, drop = FALSE]
}

# What the core reads: places, shares, and two options of each.
compile_proposal <- function(proposal, n_dim) {
  is_mixture <- inherits(proposal, "tall_proposal_mixture")
  members <- proposal_members(proposal)
  places <- proposal_places[vapply(members, `[[`, "", "name")]
  options <- vapply(members, proposal_options, numeric(2), n_dim)
  list(
    proposals = unname(places),
    shares = if (is_mixture) proposal$args$shares else 1,
    options = as.vector(options),
    inner = if (is_mixture) proposal$args$times else 1
  )
}

proposal_options <- function(proposal, n_dim) {
  args <- proposal$args
  switch(
    proposal$name,
    independent = c(0, 0),
    autoregressive = c(args$stay, 0),
    slice = c(args$width, 0),
    scales = c(args$stay, args$rounds),
    marginal = c(args$width, args$rounds),
    block = c(args$stay, 0),
    hmc = {
      step <- args$step_size %||% (1.2 * n_dim^(-1 / 4))
      c(step, args$leaps %||% ceiling(pi / 2 / step))
    }
  )
}
