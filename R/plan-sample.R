# sg_sample(): one run. A plan (what will run, in which coordinates) is made
# from the arguments, then executed in slices, then turned into a fit.

#' Sample from the posterior of tall data
#'
#' Runs a model x a gradient estimator x a subsampling scheme x a kernel x a
#' schedule. Without a kernel nothing needs tuning: the settings are found for
#' the model (see *The recipe*).
#'
#' @param model (`tall_model`) The model, from [model_glm()] or another
#'   `model_*()`.
#' @param kernel (`tall_kernel`, what [sg_tune()] returned, or `NULL`) How
#'   chains move: [kernel_sgld()], [kernel_sgbd()], [kernel_mala()] and others.
#'   What was tuned brings its gradient, subsample and schedule, where these are
#'   not given. A kernel runs exactly as given, in the model's own coordinates
#'   (in regressions' front ends, Metropolis kernels
#'   in whitened ones: see *Kernels of front ends* of [kernel_mala()]). `NULL`:
#'   the recipe.
#' @param gradient (`tall_gradient` or `NULL`) How the gradient is estimated.
#'   `NULL`: [gradient_full()] for Metropolis kernels, else [gradient_cv()].
#' @param subsample (`tall_subsample` or `NULL`) How minibatches are drawn.
#'   `NULL`: Hessian-weighted minibatches of \eqn{\max(32, 2.5 (d - 1))} rows
#'   where the model can weigh its rows, else uniform ones.
#' @param schedule (`tall_schedule`) How the step size changes.
#' @param iter (whole number) Iterations of each chain, warmup included.
#' @param warmup (whole number) Iterations that are discarded.
#' @param thin (whole number) Keep every so manyth iteration.
#' @param chains (whole number) Chains.
#' @param cores (whole number) Threads: chains run side by side on one copy of
#'   the data, and more than one a chain share the rows of its sweeps
#'   ([kernel_gibbs()]). The draws do not depend on it. Models whose functions
#'   are R's ([model_custom()]) cannot run in threads: see *Chains on workers*.
#' @param seed (whole number or `NULL`) Seed of the random numbers. `NULL` takes
#'   one from R's generator, so that [set.seed()] alone makes a run
#'   reproducible.
#' @param init (numeric vector of n_dim values, n_dim x chains matrix, or
#'   `NULL`) Starting points, in the parameters (`log_sigma` for `sigma`, as
#'   `names(find_mode(model)$estimate)` has them).
#'   `NULL`: draws from the normal approximation at the mode. Names (of a
#'   matrix: of its rows), where there are any, say which parameter is which; so
#'   do those of vectors of step sizes and of reference points.
#' @param lambda (positive number or `NULL`) Inverse temperature of the Gibbs
#'   posterior, see below. `NULL`: the number of observations, which is Bayes.
#' @param keep (string vector) `"draws"`; with `"gradients"` the gradient at
#'   each draw as well, for later post-processing; or `"none"`: only running
#'   means and standard deviations, with `c("none", "covariance")` the
#'   covariance too.
#' @param variables (strings or `NULL`) Names of the variables whose draws (and
#'   gradients) are kept, where there are too many to keep all. `NULL`: all.
#' @param monitor (list or `NULL`) What to watch while the chains run, see
#'   [monitors].
#' @param refresh (number) 0 is silent; otherwise a progress bar appears on what
#'   takes longer than two seconds.
#' @param ... Unused: other arguments are refused, those of rstanarm and brms
#'   that have no place here with what does their work.
#'
#' @section Units: The gradient is that of the log posterior, summed over the
#' data. Step sizes are variances of the injected noise. `iter` counts warmup
#' and comes before thinning: (iter - warmup) / thin draws of each chain are
#' kept.
#'
#' @section Gibbs posteriors: With the mean loss \eqn{L_n(\theta) = -\frac1N
#' \sum_i \log p(y_i \mid \theta)}{L_n(theta) = -(1/N) sum_i log p(y_i | theta)}
#' and the prior \eqn{p}, what is sampled is \eqn{p_\lambda(\theta) \propto
#' \exp(-\lambda L_n(\theta)) p(\theta)} (Bieringer et al., 2023, eq. 1): the
#' likelihood to the power \eqn{\lambda / N}. All of a run follows it:
#' gradients, their noise, the mode and the recipe; so do [ksd()] and
#' [zero_variance()] of the fit.
#'
#' @section The recipe: With a Gaussian response, sums over the rows are enough,
#' however many there are: weighted means and centred \eqn{X^T W X}, \eqn{X^T W
#' y} and \eqn{y^T W y} from one pass. Where the priors of the coefficients are
#' normal or flat, draws are independent and exact: `sigma` by inverting its
#' distribution function, with the coefficients integrated out, to a millionth
#' of its standard deviation, and the coefficients from their normal
#' distribution given it. That is so with more columns than rows, too.
#' `warmup`, `init` and `cores` change nothing then but which
#' draws are kept (those after the warmup, each `thin`th), and [sg_resume()]
#' adds more. With other priors [kernel_mala()], adapted in warmup, moves on
#' these sums, which is exact and costs the square of the number of columns for
#' a step. A second look at the rows is taken where the columns explain all but
#' 1e-5 of the response's variance. [prior_hs()] says what is done where a prior
#' has hyperparameters, of any response. `fit$plan` and `print()` say what was
#' chosen, and why, for every model.
#'
#' Other generalised linear models, with up to 1,001 parameters: the mode
#' \eqn{\hat\theta} by Newton's method; then [kernel_smh()], whose draws are
#' **exact** and whose steps look at a few rows however many there are. A pilot
#' of 400 steps, the same whatever `seed` is, tells the share that is accepted
#' and the rows of a step, and with them the number of steps from one draw to
#' the next, so that draws are nearly independent; where a tail is heavier than
#' a normal one, these are more, and half of them stay near. Exact steps are not
#' taken where fewer than a quarter are accepted; where they look at more than a
#' quarter of the rows; where, three standard deviations from the mode, less
#' than half the log density is lost that a normal posterior loses, a tail that
#' they would seldom find and not leave; or where they take more than 10
#' seconds, by count, and five times as long as what follows.
#'
#' Where they are not, and there are more than 2,000 rows and up to 300
#' parameters, rows that alone make a posterior far from normal are known as
#' they are: those whose linear predictor the posterior knows less well than ten
#' events would tell it (its standard deviation is above 0.316 in a normal
#' approximation), as of levels with few rows or without events, and those that
#' exact steps would look at always; as many as \eqn{50000/d}{50,000/d}, at
#' least 200 and at most 5,000. Two runs on the surrogate that they make with
#' the expansions of the others (see [proposals]), which look at no other rows,
#' find its mean, where the rows are then expanded, and its covariance; its
#' chain slices the predictors of rows of the first kind, one at a time, and
#' draws all else at once from its normal distribution given them. A pilot of
#' 400 steps says again what is accepted: a tenth is enough, within the same
#' time.
#'
#' Then, with more than 2,000 rows, Leimkuhler-Matthews dynamics with control
#' variates of order 2 (see [gradient_cv()]) in coordinates \eqn{\phi = L^T
#' (\theta - \hat\theta)}{phi = L'(theta - theta-hat)} with \eqn{L L^T =
#' -\nabla^2 \log \pi(\hat\theta)}, in which the posterior is near standard
#' normal: steps of \eqn{h = 1}, cubic weights (see [subsampling_weights()]),
#' and minibatches of 4 rows or as many as make the gradient's noise 1 percent
#' of a variance. \eqn{h} is halved while a pilot run of 2,000 steps finds a
#' variance that is off by more than 4 percent and two standard errors, or a
#' draw with \eqn{\|\phi\|^2 > 4 d + 100}.
#'
#' Where that is not safe either, and for models without a linear predictor that
#' know their Hessian: the same dynamics with \eqn{h = 0.2}, control variates of
#' order 1, robust weights and minibatches of \eqn{n = \max(32, \lceil 2.5 (d -
#' 1) \rceil)} rows. On top of these, rows that would come more than once, and
#' those whose curvature within 4 standard deviations of the mode can be 0.4 or
#' more of the posterior's, are in every minibatch. A pilot measures the
#' gradient noise \eqn{\tau_j^2}; where \eqn{h \tau_j^2 / 4} exceeds 2 percent,
#' \eqn{n} grows in proportion. Where minibatches would hold a quarter of the
#' data or \eqn{N \le 2000}, the full gradient is used with a Metropolis
#' correction ([kernel_mala()], adapted), which is exact. After warmup one
#' iteration is 5 / h steps of the dynamics, so that draws are nearly
#' independent. With more than 1,001 parameters only the scales are adjusted.
#'
#' Of models whose rows cannot be weighed, such as [model_custom()], a posterior
#' that is far from normal at the mode (see below) is sampled exactly by
#' Hamiltonian trajectories on all rows ([kernel_hmc()]), in coordinates that a
#' pilot finds: four chains of 100, 100, 200 and 400 trajectories, each round in
#' those in which the draws of the last one have unit covariance; trajectories
#' are a quarter of a period long, and as many come between draws as make these
#' nearly independent, within 20 seconds by count. Equal rows are looked at
#' once, with their number as weight, where distinct ones are a quarter at
#' most; a
#' regression with classes is sampled so where that takes less than a minute.
#'
#' Models that cannot rewrite their rows are sampled behind a change of
#' coordinates, with minibatches of equally likely rows and without taking out
#' the 2 percent of noise.
#'
#' Of what is not sampled exactly: where a step of 1, 2 or 3 posterior standard
#' deviations from the mode, along a parameter or along the rows that matter
#' most, loses more than twice the log density that it would on a normal
#' posterior, [kernel_sgbd()] with \eqn{\sigma = 0.2} (0.35 for [model_ica()])
#' takes the place of the Langevin steps: no gradient can throw it out. An
#' indicator whose rows all have the same outcome does that, and so does an
#' outlier: a row that weighs nothing at the mode can be a wall one standard
#' deviation away. A warning names the parameters, whose `sd_bias` is then `NA`,
#' and such rows. Barker dynamics in steps of 0.2 stay within about 0.07
#' standard deviations of the mean at a wall, and 3 percent of the standard
#' deviation; where the mode is at the wall, as with a value of 10^6 among
#' values of 1, no kernel knows the scale: bring columns to one unit first. The
#' same happens, with a warning, where chains of Langevin steps are thrown out
#' after all: they are then sampled again. Models that cannot weigh their rows
#' are sampled exactly in both cases, and so are those with a sampled parameter
#' beside the mean, such as a dispersion, where all rows in every step
#' ([kernel_barker()]) take less than ten minutes of one core
#' (`bench/few-events.R`); a message says how long before they start.
#'
#' Exact draws need no copy of the data. Otherwise the recipe makes one that is
#' whitened, or preconditioned: in coordinates in which the posterior is about
#' round; [tall_glm()] works in place. Before a run that will take more than 20
#' seconds of a core by count, a message says so, whatever `refresh` is.
#'
#' @section Chains on workers: R runs in one thread, so the chains of a
#' [model_custom()] run one after another, whatever `cores` is. They run side by
#' side, each as a future, when a plan of the package \pkg{future} says where:
#' `future::plan("multisession", workers = 4)` on this machine, others on a
#' cluster or by a scheduler. The draws are the same for the same `seed`. Data
#' and functions are sent to each worker, with what the functions find in the
#' workspace; what the functions assign elsewhere stays there. A worker finds
#' the gradients at the reference of control variates by itself: one more pass
#' over the data for each chain, which `passes` counts. An interrupt keeps the
#' draws that all chains have made, to the last twentieth of the run, where
#' workers are on this machine; else the call ends without a fit. Monitors run
#' in the workers; one that holds a model of compiled code keeps the chains
#' here. Short runs that look for settings ([sg_tune()], the recipe's pilot)
#' stay here, too.
#'
#' @return A [`tall_fit`][tall_fit].
#' @section Conditions: `tall_error_input` for arguments that are not as
#' described, `tall_error_worker` if a worker fails, `tall_error_unsupported`
#' for parts that cannot work together, `tall_error_improper` if the posterior
#' is not proper, `tall_error_mode` if a mode is needed that it does not have,
#' `tall_error_nonfinite` if a chain cannot start.
#' `tall_warning_prior` if a Laplace prior is narrow for a kernel that does not
#' accept or reject, see [priors]. A chain whose state stops being finite ends
#' with a `tall_warning_nonfinite` and leaves the draws until then; an interrupt
#' (Ctrl-C) gives a `tall_warning_interrupted` and all draws so far.
#' @references
#' Welling & Teh (2011). Bayesian learning via stochastic gradient Langevin
#' dynamics. *ICML*.
#'
#' Baker, Fearnhead, Fox & Nemeth (2019). Control variates for stochastic
#' gradient MCMC. *Statistics and Computing* 29, 599-615.
#'
#' Cornish, Vanetti, Bouchard-Cote, Deligiannidis & Doucet (2019). Scalable
#' Metropolis-Hastings for exact Bayesian inference with large datasets. *ICML*.
#'
#' Nemeth & Fearnhead (2021). Stochastic gradient Markov chain Monte Carlo.
#' *Journal of the American Statistical Association* 116, 433-450.
#' @seealso [sg_resume()] to go on; [tall_glm()] for formulas.
#' @examples
#' x <- cbind("(Intercept)" = 1, age = rnorm(1000))
#' y <- rbinom(1000, 1, plogis(0.5 + x[, "age"]))
#' model <- model_glm(x, y, family = "bernoulli")
#' fit <- sg_sample(model, seed = 1)
#' fit
#'
#' fit <- sg_sample(
#'   model,
#'   kernel_sgld(0.001),
#'   gradient = gradient_cv(),
#'   subsample = subsample_uniform(100),
#'   seed = 1
#' )
#' @export
sg_sample <- function(
  model,
  kernel = NULL,
  gradient = NULL,
  subsample = NULL,
  schedule = schedule_constant(),
  iter = 2000,
  warmup = floor(iter / 2),
  thin = 1,
  chains = 4,
  cores = getOption("mc.cores", 1L),
  seed = NULL,
  init = NULL,
  lambda = NULL,
  keep = "draws",
  variables = NULL,
  monitor = NULL,
  refresh = getOption("tallbayes.refresh", 1),
  ...
) {
  began <- clock()
  check_no_foreign(..., .known = names(formals(sg_sample)))
  check_model(model, may_sweep = TRUE)
  lambda <- check_lambda(lambda, model)
  model <- temper_model(model, lambda)
  control <- check_control(
    iter,
    warmup,
    thin,
    chains,
    cores,
    seed,
    keep,
    refresh
  )
  sampler <- check_sampler(kernel, gradient, subsample, schedule)
  run <- new_run(sampler, control, init, lambda, variables, monitor, began)
  end_clock(sample_model(model, run), began)
}

# What a front end takes through its `...`.
run_argument_names <- function() {
  setdiff(names(formals(sg_sample)), c("model", "..."))
}

# A run as its user asked for it: a sampler, of which NULL is left to the recipe
# and defaults to the model, and by its name what else is known before there is
# a model. sample_model() checks init, variables and monitor against that.
# began: clock() where the call began.
new_run <- function(
  sampler,
  control,
  init = NULL,
  lambda = NULL,
  variables = NULL,
  monitor = NULL,
  began = clock()
) {
  stopifnot(
    inherits(sampler, "tall_sampler"),
    is.list(control) && all(names(formals(check_control)) %in% names(control))
  )
  own <- list(
    control = control,
    init = init,
    lambda = lambda,
    variables = variables,
    monitor = monitor,
    began = began
  )
  structure(c(unclass(sampler), own), class = "tall_run")
}

# The fit of a run, whose lambda the model has. in_place: the model is ours, its
# rows may be rewritten. whitens: a Metropolis kernel that is given moves in
# whitened coordinates.
sample_model <- function(model, run, in_place = FALSE, whitens = FALSE) {
  sampler <- sampler_of(run)
  has_kernel <- !is.null(sampler$kernel)
  control <- run$control
  control["record"] <-
    list(check_recorded(run$variables, model, control$keep))
  control["monitor"] <- list(check_monitor(run$monitor, model))
  # what the recipe knows besides
  found <- control
  found$front <- whitens
  init <- check_init(run$init, model, control$chains)
  check_kernel_bounds(sampler$kernel, model)
  begin_nodes(model)
  check_sweeps(if (!model$traits$is_swept) sampler$kernel, model)
  plan <- if (model$traits$is_swept) {
    plan_sweeps(model, sampler, control)
  } else if (has_kernel) {
    plan_explicit(model, sampler, control)
  } else {
    plan_recipe(model, sampler, found, in_place)
  }
  if (whitens && has_kernel) {
    plan <- plan_front(plan, init, control, in_place)
  }
  sample_plan(plan, model, init, found, run$began)
}

# The fit of a plan for this model. init: of check_init(); found: control, with
# what the recipe knows besides.
sample_plan <- function(plan, model, init, found, began = clock()) {
  control <- found[setdiff(names(found), "front")]
  if (is.null(plan$sums)) {
    plan$init <- plan_init(on_stand_in(plan), init, control)
    plan$kernel <- settle_kernel(plan, is.null(init), control)
    plan$start_chol <- start_chol(plan)
  }
  prepared <- clock_since(began)$elapsed
  move <- function(plan) {
    run_segment(
      plan,
      control,
      new_stretch(
        control$warmup,
        (control$iter - control$warmup) * plan$steps
      ),
      on_futures = use_futures(model, control)
    )
  }
  segment <- move(plan)
  again <- recipe_again(plan, segment, found)
  if (!is.null(again)) {
    again[c("init", "start_chol")] <- plan[c("init", "start_chol")]
    plan <- again
    segment <- move(plan)
  }
  if (!is.null(model$n_all)) {
    plan$why <- sub("^; ", "", paste0(plan$why, told_ties(model$n_data)))
  }
  fit <- new_fit(
    plan,
    control,
    segment,
    time = c(preparation = prepared, sampling = 0)
  )
  fit <- add_quadrature(fit, plan$model, segment)
  warn_segment(fit, segment)
  warn_laplace(plan, model)
  warn_quadrature(fit, model)
  end_clock(seal_fit(fit), began)
}
