# emmeans of classes: probabilities, and the predictors they are made of.

#' @rdname emmeans-tall_glm
#' @exportS3Method emmeans::emm_basis
emm_basis.tall_classes <- function(
  object,
  trms,
  xlev,
  grid,
  mode = "latent",
  rescale = c(0, 1),
  ...
) {
  modes <- if (is_ordinal(object)) ordered_modes else class_modes
  # the first is what is asked for by default
  mode <- if (missing(mode)) modes[[1]] else check_choice(mode, modes)
  x <- grid_columns(object, trms, xlev, grid)
  draws <- plain_draws(object)
  attr(draws, "n.chains") <- posterior::nchains(object$draws)
  if (!is_ordinal(object)) {
    if (mode == "latent") {
      return(class_scores(object, x, draws))
    }
    return(grid_means(grid_probs(object, x, draws), draws, list(
      ylevs = class_levels(object),
      estName = "prob"
    )))
  }
  if (mode %in% c("latent", "linear.predictor")) {
    return(ordered_scores(object, x, draws, mode, rescale))
  }
  shift <- grid_offset(trms, grid)
  ordered_values(object, grid_probs(object, x, draws, shift), draws, mode)
}

ordered_modes <- c(
  "latent", "linear.predictor", "cum.prob", "exc.prob", "prob", "mean.class"
)

class_modes <- c("prob", "latent")

# Rows of the grid x columns of the design.
grid_columns <- function(fit, trms, xlev, grid) {
  frame <- stats::model.frame(
    trms,
    grid,
    na.action = stats::na.pass,
    xlev = xlev
  )
  contrasts <- fit$contrasts %||% fit[["design"]]$contrasts
  x <- stats::model.matrix(trms, frame, contrasts.arg = contrasts)
  x[, fit$design_columns, drop = FALSE]
}

# Those of a formula, or the one that is in the grid by another name.
grid_offset <- function(trms, grid) {
  if (".offset." %in% names(grid)) {
    return(grid[[".offset."]])
  }
  shift <- numeric(nrow(grid))
  for (at in attr(trms, "offset")) {
    shift <- shift + eval(attr(trms, "variables")[[at + 1]], grid)
  }
  shift
}

class_levels <- function(fit) {
  name <- deparse1(stats::formula(fit)[[2]])
  stats::setNames(list(fit$response_levels), name)
}

# Draws x rows x classes.
grid_probs <- function(fit, x, draws, offset = numeric(nrow(x))) {
  rows <- list(x = unname(x), offset = offset)
  predictor(fit, rows, list(theta = unname(draws)), "response")
}

# What emmeans takes: `draws` of what rows of X make of parameters.
emmeans_basis <- function(x, draws, misc) {
  list(
    X = x,
    bhat = colMeans(draws),
    # every coefficient has a posterior
    nbasis = matrix(NA),
    V = stats::cov(draws),
    dffun = function(k, dfargs) Inf,
    dfargs = list(),
    misc = misc,
    post.beta = draws
  )
}

# Of values themselves, draws x rows (x levels, slowest).
grid_means <- function(values, draws, misc) {
  values <- matrix(values, nrow(draws))
  attr(values, "n.chains") <- attr(draws, "n.chains")
  # offsets are in them
  emmeans_basis(diag(1, ncol(values)), values, c(misc, list(offset.mult = 0)))
}

# ---- unordered ---------------------------------------------------------------

# Predictors of all classes, the first one's 0, less their mean.
class_scores <- function(fit, x, draws) {
  n <- length(fit$response_levels)
  centred <- rbind(0, diag(n - 1)) - 1 / n
  x <- kronecker(centred, x)
  colnames(x) <- colnames(draws)
  emmeans_basis(x, draws, list(
    ylevs = class_levels(fit),
    tran = "log",
    inv.lbl = "e^y"
  ))
}

# ---- ordered -----------------------------------------------------------------

# The predictor of the latent variable less the mean of the thresholds, on
# another scale; or thresholds less the predictor.
ordered_scores <- function(fit, x, draws, mode, rescale) {
  k <- ncol(draws) - ncol(x)
  if (mode == "latent") {
    rescale <- check_numeric_vector(rescale, size = 2)
    x <- rescale[[2]] * cbind(x, matrix(-1 / k, nrow(x), k))
    colnames(x) <- colnames(draws)
    # as emmeans shifts them for polr()
    cuts <- ncol(draws) - k + seq_len(k)
    draws[, cuts] <- draws[, cuts] - rescale[[1]] / rescale[[2]]
    return(emmeans_basis(x, draws, list(offset.mult = rescale[[2]])))
  }
  cuts <- kronecker(diag(k), matrix(1, nrow(x)))
  x <- cbind(kronecker(matrix(-1, k), x), cuts)
  colnames(x) <- colnames(draws)
  emmeans_basis(x, draws, list(
    ylevs = list(cut = cut_names(fit)),
    tran = class_methods[[fit$method]]$link,
    inv.lbl = "cumprob",
    offset.mult = -1
  ))
}

cut_names <- function(fit) {
  levels <- fit$response_levels
  paste0(levels[-length(levels)], "|", levels[-1])
}

# probs: draws x rows x classes.
ordered_values <- function(fit, probs, draws, mode) {
  n <- dim(probs)[[3]]
  if (mode == "prob") {
    return(grid_means(probs, draws, list(
      ylevs = class_levels(fit),
      estName = "prob"
    )))
  }
  if (mode == "mean.class") {
    values <- probs[, , 1]
    for (k in seq_len(n)[-1]) {
      values <- values + k * probs[, , k]
    }
    return(grid_means(values, draws, list(estName = "mean.class")))
  }
  values <- probs[, , -n, drop = FALSE]
  for (k in seq_len(n - 1)[-1]) {
    values[, , k] <- values[, , k] + values[, , k - 1]
  }
  values <- if (mode == "exc.prob") 1 - values else values
  misc <- list(ylevs = list(cut = cut_names(fit)), estName = mode)
  grid_means(values, draws, misc)
}
