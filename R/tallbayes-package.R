#' tallbayes: Bayesian posteriors of tall data
#'
#' Samples posteriors of models with very many observations by
#' stochastic-gradient Markov chain Monte Carlo. A run is put together from
#' five parts, each made by a small constructor:
#'
#' * a **model** (`model_*()`), which holds the data and the prior,
#' * a **gradient estimator** (`gradient_*()`),
#' * a **subsampling scheme** (`subsample_*()`),
#' * a **kernel** (`kernel_*()`), which moves the chain,
#' * a **schedule** (`schedule_*()`) for the step size.
#'
#' [sg_sample()] runs any combination; [tall_glm()] fits a generalised linear
#' model from a formula with nothing to tune. The result is a `tall_fit`, whose
#' draws are a [posterior::draws_array][posterior::as_draws_array].
#'
#' @section Options:
#' * `mc.cores`: the default of `cores` wherever chains run.
#' * `tallbayes.refresh`: the default of `refresh`, 1 without it; 0 shows no
#'   progress bars, also where a function has no such argument.
#' * `tallbayes.download`: may [tall_data()] download?
#' * `tallbayes.memory_limit`: bytes that [gradient_saga()] may take.
#'
#' @section Environment variables:
#' * `TALLBAYES_DATA`: a folder that [tall_data()] searches first.
#'
#' @useDynLib tallbayes, .registration = TRUE
#' @importFrom rlang %||%
#' @importFrom rlang caller_arg
#' @importFrom rlang caller_env
#' @importFrom rlang .data
#' @keywords internal
"_PACKAGE"
