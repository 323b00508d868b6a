#' tallbayes: Bayesian posteriors of tall data
#'
#' Samples posteriors of models with very many observations. [tall_glm()] fits a
#' generalised linear model from a formula with nothing to tune; the result is a
#' `tall_fit`, whose draws are a
#' [posterior::draws_array][posterior::as_draws_array].
#' `vignette("getting-started", package = "tallbayes")` takes ten minutes, and
#' `browseVignettes("tallbayes")` lists all guides.
#'
#' @section Fit a model from a formula: [tall_glm()] (linear, logistic, Poisson
#' and other regressions: [response-families]), [tall_multinom()] and
#' [tall_polr()] (classes), [tall_glmer()] (groups), [tall_gam()] (smooth
#' terms), [tall_nn()] (networks), [tall_factorize()] (ratings), [tall_topics()]
#' (documents), [tall_ica()] (independent components). Their [priors] are
#' rstanarm's unless you choose others (`vignette("priors")`). Rows come from
#' data frames, matrices, files, streams or databases: [tall_source].
#'
#' @section Use a fit: [print() and summary()][summary.tall_fit] with the
#' estimated bias, [plot()][plot.tall_fit], [tidy()][tidy-tall_fit],
#' [predict()][predict.tall_glm], [posterior_predict()][posterior-predict],
#' [loo()][loo-tall_glm], [pp_check()][pp_check.tall_glm], [coef() and
#' others][fit-methods], [draws in any format][draws-formats]; [sg_resume()]
#' goes on with a run. What a fit keeps: [tall_fit]; what it prints, line by
#' line: `vignette("reading-the-output")`.
#'
#' @section Is it right: [bias_check()] (a run at half the step size),
#' [noise_tolerance()], [ksd()] and [fssd()] (discrepancies from the posterior),
#' [zero_variance()] (takes Monte Carlo error out), [losses] and
#' [standardised_bias()] (against what is known).
#'
#' @section Put a run together: [sg_sample()] runs any combination of
#'
#' * a **model** ([model_glm()], [model_custom()], [model_native()], ...), which
#'   holds the data and the prior,
#' * a **gradient estimator** ([gradient_cv()], ...),
#' * a **subsampling scheme** ([subsample_weighted()], ...),
#' * a **kernel** ([kernel_sgld()], [kernel_sgbd()], [kernel_smh()],
#'   [kernel_mala()], [kernel_sghmc()], ...), which moves the chain,
#' * a **schedule** ([schedule_constant()], ...) for the step size.
#'
#' [find_mode()] finds the mode, [sg_tune()] step sizes, [monitors] watch a run.
#'
#' @section And else: [tall_data()] has the data sets of the papers,
#' [tall_conditions] the classes of errors and warnings,
#' `citation("tallbayes")` the papers. `vignette("add-a-member", package =
#' "tallbayes")` adds a model, a kernel or an estimator to the package.
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
