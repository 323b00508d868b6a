# The numbers that the package chose for itself, in one record. setting() reads
# one where it is needed. put_settings() changes some, so that a test or a bench
# need not be large for what happens only to the large.
#
# * Sizes say in what pieces work is done. What comes out does not depend on
#   them, up to the order of sums.
# * Limits say what is refused, or cut short with a word, rather than made.
# * Choices say what is run: draws depend on them.

usual_settings <- list(
  # ---- sizes ----
  block_rows = 65536,       # rows of a block where the source may choose
  block_numbers = 2^23,     # numbers of a block of a matrix: 64 MB of doubles,
  block_least = 256,        # but so many rows, however wide they are
  text_bytes = 2^22,        # of a text file: so many at most are read at a time
  written_numbers = 2^21,   # numbers of predictions that are written at once
  sql_width = 1000,         # columns of a result: SQLite has 2,000, PostgreSQL
                            # 1,664
  cell_numbers = 2e5,       # sums by cell in a query: with more, those that no
                            # factor needs are taken over all rows by another
  most_groups = 1e5,        # combinations of levels that a query hands back
  store_settles = 2,        # seconds from which times of a file tell a change
  # steps of the next slice, after n_step took `elapsed` seconds: some 0.15 s,
  # growing at most fourfold at a time
  slice_steps = function(n_step, elapsed) {
    target <- 0.15
    factor <- if (elapsed < target / 4) 4 else target / elapsed
    max(1, floor(n_step * factor))
  },

  # ---- limits ----
  large_matrix = 5e7,       # numbers that are made, or evaluated, unasked
  average_exact = 2e7,      # rows times draws, of averages over rows
  parquet_bytes = 2^30,     # of a file: beyond, it is not read
  rebuilt_bytes = 1e9,      # of rows passed over, brought to memory unasked
  folds_bytes = 1e9,        # of fits whose passes are made together
  kept_bytes = 2^25,        # of rows drawn or tied, that a fit keeps
  effect_bytes = 2e8,       # draws of effects that are kept unasked
  awkward_rows = 5000,      # of kernel_smh(): each proposal looks at them
  memory = NA_real_,        # bytes that are free; NA: what the system says

  # ---- choices ----
  bias_companion = 1,       # of the chains whose bias is estimated, where the
                            # kernel has one, see is_bias_coupled(); 0: none
  chunk_rows = 65536,       # rows that are looked at together; so many at least
                            # may be drawn ahead
  sweeps = list(
    # seconds of a row and factor, of normal responses and of others, and of a
    # row and column: of a core of 2020, about
    normal = 10e-9,
    other = 45e-9,
    column = 2e-9,
    told = 20,              # seconds of a run that is told before it starts
    bytes = 1e9,            # of its memory, likewise
    draw = 1e-3,            # seconds that a draw may take without a word, by
    most = 4,               # several sweeps
    passes = 30,            # by which mixing is foretold,
    pilot = c(30, 20),      # sweeps of warmup, and after it, that say where
    poor = 0.9,             # what a sweep leaves, where that is told
    joint = 0.86            # and where normal effects are drawn jointly, too
  ),
  levels = list(
    # levels of grouping factors that are columns: at most so many, where chains
    # on them take less time than sweeps over the rows, by these counts
    most = 1000,
    bytes = 1e9,            # of all rows in columns in memory
    start = 3,              # seconds of a look and pilots
    steps = 3,              # of a draw
    cube = 5e-11,           # seconds of a factorisation, over columns^3
    square = 3e-9,          # of the products with one
    passes = 2,             # that make sums,
    product = 2e-10         # a row and columns^2
  ),
  most_whitened = 1001,     # parameters, 1,000 columns and an intercept: with
                            # more, scales only are adjusted
  look = list(
    rows = 65536,           # of the pilot; of fewer all are kept
    of_stratum = 100,       # of every level and outcome
    levels = 1000,          # more: that is no design for a pass
    seed = 1                # of which rows they are: the same for every run
  ),
  ties = list(
    most = 65536,           # kinds of rows, as far as a pilot tells,
    share = 1 / 4,          # and of the rows: with more none are tied
    least = 2000            # of rows in memory: of so few none are
  ),
  kinds = list(
    numbers = 4096,         # combinations of whole numbers that levels can have
    most = 2^20             # kinds of rows that one query counts
  ),
  gam = list(
    rows = 5000,            # that a fit keeps for pictures and residuals
    full = 0.8,             # share of its columns that a small basis uses,
    p_value = 0.05,         # and the chance of residuals as much alike;
    alone = 0.9,            # that share where there are no residuals
    concurvity = 0.95       # share of a term in others that is told
  ),
  recipe = list(
    # exact steps from a few rows
    exact_pilot = 400,         # steps
    exact_acceptance = 0.25,   # where fewer are accepted they do not pay
    exact_correlation = 0.02,  # of draws that follow each other
    exact_normal = 0.95,       # where more are accepted tails are not looked at
    exact_tail = 0.5,          # least log density lost there, of a normal one's
    exact_even = 0.8,          # where it is less, or where fewer are accepted,
    exact_often = 0.5,
    exact_share = 0.5,         # more proposals stay near: this share
    tail_heavy = 200,          # rows that are looked at one and all,
    tail_rows = 2000,          # and of the others
    exact_seconds = 10,        # what takes longer is compared with others, and
    exact_ratio = 5,           # taken if it takes no more times their time
    # exact steps with awkward rows
    awkward_dim = 300,         # parameters at most
    awkward_sd = 0.316,        # 1 / sqrt(10): of what ten events tell
    awkward_size = 5e4,        # such rows times parameters at most,
    most_awkward = 5000,       # and of them alone: awkward_rows at most
    awkward_pilot = c(600, 3000), # steps of the surrogate's chains
    awkward_acceptance = 0.1,  # where fewer are accepted they do not pay
    awkward_correlation = 0.1, # of draws that follow each other, by refusals
    # exact steps under priors with hyperparameters
    scales_pilot = c(400, 2000), # steps of the surrogate's chains
    scales_acceptance = 0.1,   # where fewer are accepted they do not pay
    stuck_share = 0.01,        # of a posterior that a surrogate would not leave
    scales_trial = 600,        # steps of a chain by which proposals compare
    scales_correlation = 0.4,  # of draws of hyperparameters that follow each
    dear_seconds = 30,         # other; where a run takes longer, of all draws
    dear_correlation = 0.5,    # this
    few_scales = 20,           # that are moved with coefficients integrated
    few_locals = 6,            # out, and where some are of one coefficient
    few_rows = 10,             # a column: of Gaussian responses slices instead
    # Langevin steps with control variates of order 2
    order_step = 1,            # h at first, whitened coordinates
    order_size = 4,            # smallest minibatch
    order_noise = 0.01,        # h tau_j^2 / (4 - h) at most
    order_bias = 0.04,         # of a variance, beyond two standard errors
    # and of order 1
    step_size = 0.2,       # h, whitened coordinates
    steps = 25,            # steps in an iteration: draws nearly independent
    min_size = 32,         # smallest minibatch
    noise_share = 0.02,    # h tau_j^2 / 4 at most, in the worst coordinate
    pilot_steps = 2000,
    pilot_seed = 1,
    full_share = 1 / 4,    # n >= N / 4: full gradient and Metropolis
    small_data = 2000,     # so few rows: likewise, a pass costs next to nothing
    escape = function(d) 4 * d + 100,
    radii = 1:3,           # sds at which the shape of a posterior is looked at
    max_ratio = 2,         # log density lost there, of what a normal one loses
    max_points = 2000,     # in how many points; with very many parameters less
    far_seconds = 600,     # all rows in every step where it is not normal
    heavy_rows = 10,       # rows that are looked along, besides the parameters
    laplace_kappa = 1,     # sd of the data over scale of a Laplace prior
    # where Langevin steps are not safe: sd bias 2.2 %, mean 0.07 sd at a wall
    barker_sigma = 0.2,
    barker_skewed = 0.35   # of models that are skewed, but without walls: 1.6 %
  )
)

settings_now <- list2env(usual_settings, envir = new.env(parent = emptyenv()))

setting <- function(name) {
  get(name, envir = settings_now, inherits = FALSE)
}

# Puts other values in place of some, by name; of those that are lists, a list
# of what changes. What was before, to be put back by the same function.
put_settings <- function(values) {
  names <- names(values)
  check_setting_names(names, names(usual_settings))
  before <- mget(names, envir = settings_now)
  after <- Map(changed_setting, before, usual_settings[names], values, names)
  list2env(after, envir = settings_now)
  invisible(before)
}

# usual: says of what type and length it must be.
changed_setting <- function(now, usual, value, name) {
  if (is.list(usual)) {
    if (!is.list(value)) {
      abort_setting(value, "a list", name)
    }
    own <- names(value)
    check_setting_names(own, names(usual))
    now[own] <- Map(
      changed_setting,
      now[own],
      usual[own],
      value,
      paste0(name, "$", own)
    )
    return(now)
  }
  if (is.function(usual)) {
    if (!is.function(value)) {
      abort_setting(value, "a function", name)
    }
  } else if (!is_setting_numbers(value, usual)) {
    n <- length(usual)
    abort_setting(value, if (n == 1) "a number" else paste(n, "numbers"), name)
  }
  value
}

is_setting_numbers <- function(value, usual) {
  is_plain_numeric(value) && length(value) == length(usual) &&
    (anyNA(usual) || !anyNA(value))
}

abort_setting <- function(value, expected, name) {
  abort_expected(value, expected, arg = name)
}

check_setting_names <- function(given, known) {
  unknown <- setdiff(given, known)
  if (length(unknown) > 0 || is.null(given)) {
    abort_input(
      "There is no setting {.val {unknown}}.",
      argument = "values",
      expected = known,
      value = given
    )
  }
}
