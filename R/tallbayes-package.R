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
#' * `OPENBLAS_NUM_THREADS`, `MKL_NUM_THREADS`: threads of R's BLAS, which reads
#'   them when R starts. See below.
#'
#' @section Threads and the last digits: The draws of a run depend on its
#' `seed`, not on `cores`, when R's BLAS uses one thread, as with
#' `OPENBLAS_NUM_THREADS=1` before R starts. With more, BLAS adds up large
#' products in other orders, so that modes, weights, whitened coordinates and
#' the gradients of [model_network()] and [model_ica()] can differ in their last
#' digits (about 1e-14), from machine to machine and with the number of threads.
#' So they do between one BLAS and another. The chains are then other draws of
#' the same posterior once such a digit has turned a proposal down, or has been
#' carried far enough. Chains run in threads of ours (`cores`) that call BLAS,
#' so one BLAS thread is also the fastest unless cores are idle.
#' `sessionInfo()` names the BLAS: R's own reference BLAS takes 4 to 15 times as
#' long for the sums over rows that need it, networks among them. Debian's
#' libopenblas0-pthread is what `make demo` and `make test` install; its
#' libopenblas0-serial gives wrong results in threads and makes `cores` 1.
#'
#' @useDynLib tallbayes, .registration = TRUE
#' @importFrom rlang %||%
#' @importFrom rlang caller_arg
#' @importFrom rlang caller_env
#' @importFrom rlang .data
#' @keywords internal
"_PACKAGE"
