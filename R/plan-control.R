# Arguments of sg_sample() that say how long, how often and what to keep.

check_control <- function(
  iter,
  warmup,
  thin,
  chains,
  cores,
  seed,
  keep,
  refresh
) {
  most <- count_limits$iter
  iter <- check_count(iter, most = most, arg = "iter")
  warmup <- check_count(warmup, min = 0, most = most, arg = "warmup")
  thin <- check_count(thin, most = most, arg = "thin")
  if (iter <= warmup) {
    abort_input(
      "{.arg iter} must be larger than {.arg warmup}, {format_count(warmup)},
       not {format_count(iter)}.",
      argument = "iter",
      expected = warmup + 1,
      value = iter
    )
  }
  if (iter - warmup < thin) {
    abort_input(
      "{.arg thin} must be at most {.code iter - warmup},
       {format_count(iter - warmup)}, not {format_count(thin)}.",
      argument = "thin",
      expected = iter - warmup,
      value = thin
    )
  }
  seed <- check_seed(seed, arg = "seed")
  if (is.null(seed)) {
    seed <- sample.int(.Machine$integer.max, 1)
  }
  list(
    iter = iter,
    warmup = warmup,
    thin = thin,
    chains = check_count(chains, most = count_limits$chains, arg = "chains"),
    cores = check_cores(cores, arg = "cores"),
    seed = seed,
    keep = check_keep(keep),
    refresh = check_number(refresh, min = 0, arg = "refresh")
  )
}

check_keep <- function(keep) {
  if (!is.character(keep) || length(keep) == 0) {
    abort_expected(
      keep,
      "\"draws\", c(\"draws\", \"gradients\") or \"none\"",
      arg = "keep"
    )
  }
  check_known(keep, c("draws", "gradients", "none", "covariance"), arg = "keep")
  if ("none" %in% keep && any(c("draws", "gradients") %in% keep)) {
    abort_input(
      "{.arg keep} cannot hold {.val none} together with {.val draws} or
       {.val gradients}.",
      argument = "keep",
      value = keep
    )
  }
  if ("none" %in% keep) keep else union("draws", setdiff(keep, "covariance"))
}

# The numbers of the variables whose draws are kept; NULL: all.
check_recorded <- function(variables, model, keep) {
  if (is.null(variables)) {
    return(NULL)
  }
  if (!is.character(variables) || length(variables) == 0 || anyNA(variables)) {
    abort_expected(variables, "names of variables or NULL", arg = "variables")
  }
  if ("none" %in% keep) {
    abort_input(
      "{.arg variables} must be {.code NULL} where {.arg keep} is {.val none}:
       there are no draws.",
      argument = "variables",
      value = variables
    )
  }
  if (length(model$variables) != length(model$coordinates)) {
    abort_tall(
      "unsupported",
      c(
        "{.code {model$label}()} has other variables than parameters: draws of
         some of them cannot be kept alone.",
        i = "Leave {.arg variables} out."
      ),
      argument = "variables"
    )
  }
  check_known(variables, model$variables, "variable", arg = "variables")
  sort(unique(match(variables, model$variables)))
}

# The sampler that a user gave.
check_sampler <- function(kernel, gradient, subsample, schedule) {
  if (inherits(kernel, "tall_tune")) {
    # what sg_tune() found, but for what is given beside it
    tuned <- kernel
    kernel <- tuned$kernel
    gradient <- gradient %||% tuned$gradient
    subsample <- subsample %||% tuned$subsample
    check_spec(schedule, "tall_schedule", "schedule_*()", arg = "schedule")
    if (schedule_is_constant(schedule)) {
      schedule <- tuned$schedule
    }
  }
  check_spec(
    kernel,
    "tall_kernel",
    "kernel_*()",
    allow_null = TRUE,
    arg = "kernel"
  )
  check_spec(
    gradient,
    "tall_gradient",
    "gradient_*()",
    allow_null = TRUE,
    arg = "gradient"
  )
  check_spec(
    subsample,
    "tall_subsample",
    "subsample_*()",
    allow_null = TRUE,
    arg = "subsample"
  )
  check_spec(schedule, "tall_schedule", "schedule_*()", arg = "schedule")
  new_sampler(kernel, gradient, subsample, schedule)
}

# n_dim x chains, in the parameters; NULL stays.
check_init <- function(init, model, chains) {
  if (is.null(init)) {
    return(NULL)
  }
  if (is.matrix(init)) {
    check_matrix(init, n_row = model$n_dim, n_col = chains, arg = "init")
    at <- stats::setNames(seq_len(nrow(init)), rownames(init))
    at <- match_names(at, model$coordinates, arg = "init")
    init <- init[at, , drop = FALSE]
  } else {
    init <- check_numeric_vector(init, size = model$n_dim, arg = "init")
    init <- match_names(init, model$coordinates)
  }
  init <- matrix(as.double(init), model$n_dim, chains)
  check_inside(init, model)
  init
}
