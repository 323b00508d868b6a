# What came with `...`, a list, are arguments among `known`.
check_dots_known <- function(given, known) {
  if (length(given) > 0 && (is.null(names(given)) || any(names(given) == ""))) {
    abort_input(
      "Arguments in {.arg ...} must have names.",
      argument = "..."
    )
  }
  if (length(given) > 0) {
    check_known(names(given), known, "argument", arg = "...")
  }
}

# Arguments that functions of stats and car hand on, whatever their value.
any_flag <- list(
  test = function(x) is.logical(x) && length(x) == 1 && !is.na(x),
  expected = "TRUE or FALSE"
)

none_aliased <- list(complete = any_flag)

any_fallback <- list(use.fallback = any_flag)

# Arguments of stan_glm(), brm() and glm() that front ends here do not have:
# what does their work instead.

foreign_arguments <- c(
  # rstanarm
  QR = "Sampling takes place in whitened coordinates already.",
  adapt_delta = "It is NUTS's; `kernel` has the settings of the sampler.",
  algorithm = "`kernel` says which one runs; the default has no settings.",
  control = "It is NUTS's; `kernel` has the settings of the sampler.",
  prior_PD = paste(
    "`tall_glm()` and `tall_gam()` draw from the prior; here simulate from",
    "what `rstantools::prior_summary()` shows."
  ),
  mean_PPD = "`rowMeans(rstantools::posterior_predict(fit))` has these means.",
  sparse = "The design is kept as a dense matrix.",
  prior_covariance = "There are no group-level terms.",
  show_messages = "`refresh = 0` shows no progress.",
  open_progress = "`refresh` sets how often progress is shown.",
  verbose = "`refresh` sets how often progress is shown.",
  save_warmup = "Draws of the warmup are not kept.",
  init_r = "`init` takes starting values.",
  inits = "The argument is `init`.",
  pars = "`variables` says which are kept; `as.matrix(fit, pars = )` selects.",
  plotfun = "The argument is `type`.",
  include = "`variables` says which are kept.",
  # brms
  sample_prior = paste(
    "`tall_glm()` and `tall_gam()` draw from the prior; here simulate from",
    "what `rstantools::prior_summary()` shows."
  ),
  backend = "The sampler is this package's own C code.",
  threads = "`cores` sets the number of threads.",
  threading = "`cores` sets the number of threads.",
  opencl = "There is no code for graphics cards.",
  save_pars = "`keep` says what is kept.",
  autocor = "Observations are independent; others are for `model_custom()`.",
  stanvars = "There is no Stan program; write the model for `model_custom()`.",
  stan_funs = "There is no Stan program; write the model for `model_custom()`.",
  knots = "Give them in the formula, as in `splines::ns(x, knots = )`.",
  data2 = "All variables are taken from `data` or the formula's environment.",
  file = "`saveRDS(fit, file)` saves a fit.",
  file_refit = "`saveRDS(fit, file)` saves a fit.",
  cov_ranef = "Groups are independent; others are for `model_custom()`.",
  nsamples = "`iter`, `warmup` and `chains` set the number of draws.",
  # lme4, glmmTMB, nnet, MASS, others
  REML = paste(
    "There is a posterior: with its prior, `sigma` is averaged over,",
    "not maximised."
  ),
  nAGQ = paste(
    "`tall_glmer()` takes as many quadrature nodes as its gradient needs:",
    "`fit$nodes` says how many."
  ),
  devFunOnly = "`model_glm()` and `model_groups()` give the model alone.",
  dispformula = "The scale is the same for all rows.",
  ziformula = "Zero inflation is for `model_custom()`.",
  zi = "Zero inflation is for `model_custom()`.",
  Hess = "`vcov(fit)` has the posterior covariance matrix.",
  trace = "`refresh` sets how often progress is shown.",
  silent = "`refresh = 0` shows no progress.",
  quiet = "`refresh = 0` shows no progress.",
  MaxNWts = "There is no limit.",
  decay = "`prior = prior_normal(0, scale)` is a decay of 1 / (2 scale^2).",
  size = "`hidden` of `tall_nn()` has the numbers of units.",
  maxit = "`iter` counts draws; the search for the mode needs no limit.",
  epsilon = "The search for the mode ends by itself.",
  burnin = "The argument is `warmup`.",
  n.iter = "The argument is `iter`.",
  n.chains = "The argument is `chains`.",
  n.burnin = "The argument is `warmup`.",
  nthreads = "`cores` sets the number of threads.",
  distribution = "The argument is `family`.",
  random = paste(
    "Group-level terms stand in the formula of `tall_glmer()` or",
    "`tall_gam()`: `y ~ x + (1 | g)`."
  ),
  future = "Chains run on the plan of the package future where they can.",
  # mgcv
  select = "The scale of each smooth term is drawn, and may be near 0.",
  sp = "Smoothing parameters are drawn: `prior_smooth` is their prior.",
  min.sp = "Smoothing parameters are drawn: `prior_smooth` is their prior.",
  gamma = "Smoothing parameters are drawn: `prior_smooth` is their prior.",
  discrete = "Rows are taken as they are: no value is rounded.",
  # glm
  contrasts = "Set them in the data: `contrasts(data$g) <- contr.sum`.",
  model = "`keep_data` says whether the model frame is kept.",
  x = "`model.matrix(fit)` has the design.",
  y = "`model.frame(fit)` has the response.",
  method = "`kernel` says which algorithm runs; the default has no settings.",
  start = "`init` takes starting values.",
  etastart = "`init` takes starting values.",
  mustart = "`init` takes starting values.",
  singular.ok = "With a proper prior, columns may depend on each other.",
  link = "It is the family's: `binomial(\"probit\")`."
)

# Refuse what came with `...`: .known are the arguments that there are.
check_no_foreign <- function(..., .known) {
  given <- dots_names(...)
  if (length(given) == 0) {
    return(invisible())
  }
  if (all(given == "")) {
    check_no_dots(...)
  }
  refuse_foreign(given)
  check_known(
    given[given != ""],
    setdiff(.known, "..."),
    "argument",
    arg = "..."
  )
}

# The first of these names that another package has, with what to do. table: of
# foreign arguments.
refuse_foreign <- function(given, table = foreign_arguments) {
  foreign <- intersect(given, names(table))
  if (length(foreign) > 0) {
    name <- foreign[[1]]
    abort_input(
      c(
        "The argument {.arg {name}} is not used here.",
        i = escape_cli(table[[name]])
      ),
      argument = name
    )
  }
}

# The same of methods.
foreign_to_methods <- c(
  interval = paste(
    "`posterior_epred()` has draws of what is expected, for quantiles;",
    "`predictive_interval()` has intervals of responses that are numbers."
  ),
  allow.new.levels = "Of fits of `tall_glmer()` it is `allow_new_levels`.",
  sample_new_levels = "New groups' effects are drawn from their distribution.",
  random.only = "`ranef(fit)` has the effects of groups.",
  nsamples = "The argument is `ndraws`.",
  nreps = "The argument is `ndraws`.",
  summary = "`posterior_epred()` has the draws.",
  probs = "`posterior_interval(fit, prob = )` has quantiles.",
  robust = "`posterior::summarise_draws(fit, median, mad)` is robust.",
  terms = "Predictions are of all terms.",
  exclude = paste(
    "`predict(fit, newdata, type = \"terms\")` has terms one by one, which",
    "add up."
  ),
  unconditional = "The draws know smoothing parameters as the data tell them.",
  iterms.type = "Bands of smooth terms are quantiles of their draws.",
  block.size = "Rows are taken block by block already.",
  dispersion = "The posterior has the spread of the response in it.",
  na.action = "A missing covariate makes a prediction missing.",
  method = "Intervals are quantiles of the draws, or normal ones.",
  correlation = "`cov2cor(vcov(fit))` has the correlations."
)

# Arguments that a method does not have: most often misspelt ones. .ignore:
# those that other packages hand on, with functions that tell whether their
# value changes nothing here; names start with a dot since `...` may have any
# other.
check_no_dots <- function(..., .ignore = list()) {
  given <- dots_names(...)
  if (length(given) == 0) {
    return(invisible())
  }
  is_known <- given %in% names(.ignore)
  unknown <- unique(given[!is_known & given != ""])
  if (length(unknown) == 0 && all(is_known)) {
    values <- list(...)
    for (name in given) {
      check_ignored(values[[name]], name, .ignore[[name]])
    }
    return(invisible())
  }
  hint <- foreign_to_methods[intersect(unknown, names(foreign_to_methods))]
  abort_input(
    c(
      if (length(unknown) > 0) {
        "The argument{cli::qty(length(unknown))}{?s} {.arg {unknown}} {?is/are}
         not used here."
      } else {
        "An argument without a name is not used here."
      },
      i = if (length(hint) > 0) escape_cli(hint[[1]])
    ),
    argument = if (length(unknown) > 0) unknown else "..."
  )
}

# Names of what came with `...`, "" where there is none; nothing is evaluated.
dots_names <- function(...) {
  given <- as.list(substitute(list(...)))[-1]
  names(given) %||% rep("", length(given))
}

check_ignored <- function(value, name, is_nothing) {
  if (!is_nothing$test(value)) {
    abort_expected(value, is_nothing$expected, is_nothing$hint, arg = name)
  }
}

is_none <- function(x) {
  is.null(x) || (length(x) == 1 && is.atomic(x) && is.na(x))
}

# What tidybayes hands to every model, as brms and rstanarm name it.
no_groups <- local({
  none <- list(
    test = function(x) is_none(x),
    expected = "NULL or NA",
    hint = "The model has no group-level terms that could be left out."
  )
  dpar <- list(
    test = function(x) is_none(x),
    expected = "NULL",
    hint = "Where a parameter has a formula, `posterior_epred(dpar = )` has it."
  )
  list(re_formula = none, re.form = none, dpar = dpar)
})

# The same of methods that have the others as arguments.
no_dpar <- no_groups["dpar"]
