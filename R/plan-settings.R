# What all plans of the recipe ask: its settings, and what steps take. All
# numbers stand here, once.

recipe_settings <- list(
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
  exact_seconds = 10,        # a run that takes longer is compared with others,
  exact_ratio = 5,           # and taken if it takes no more times their time
  # exact steps with awkward rows
  awkward_dim = 300,         # parameters at most
  awkward_sd = 0.316,        # 1 / sqrt(10): of a predictor that ten events tell
  awkward_size = 5e4,        # such rows times parameters at most
  awkward_pilot = c(600, 3000), # steps of the surrogate's chains
  awkward_acceptance = 0.1,  # where fewer are accepted they do not pay
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

# A model of such rows is that of the pilot's, under the prior of all rows, with
# `remote`: rows (see mode-passes.R), build(known, of) and what passes found.
is_remote <- function(model) {
  !is.null(model$remote)
}

# Rows that tell of such a parameter are not those that tell of the mean:
# minibatches miss them far from the mode, and chains stay there.
samples_aux <- function(model) {
  isTRUE(model$traits$n_aux > 0) && model_has_rows(model)
}

# Of a run of one chain that looks for settings: what it finds depends on the
# model alone.
pilot_control <- function(control, n_step) {
  pilot <- utils::modifyList(
    control,
    list(
      chains = 1,
      thin = n_step,
      seed = recipe_settings$pilot_seed,
      keep = "none",
      refresh = 0
    )
  )
  pilot["monitor"] <- list(NULL)
  pilot["record"] <- list(NULL)
  pilot
}

# steps: for a draw.
steps_of_chain <- function(steps, control) {
  control$warmup + (control$iter - control$warmup) * steps
}

# Steps of Leimkuhler-Matthews from one nearly independent draw to the next.
steps_of_draw <- function(step_size) {
  s <- recipe_settings
  ceiling(s$steps * s$step_size / step_size)
}

# About how long chains that look at all rows in every step take one core:
# products of a block of rows come from the cache, and a response that has a
# parameter of its own takes special functions.
all_rows_seconds <- function(model, steps, control) {
  row <- 1e-9 * model$n_dim + if (samples_aux(model)) 4e-8 else 0
  pass <- if (isTRUE(model$traits$is_users)) {
    pass_seconds(model)
  } else {
    row * model$n_data
  }
  control$chains * steps_of_chain(steps, control) * pass
}

# Of a pass by count, so that what is chosen is the same everywhere: the calls,
# the functions of R or C, the products.
pass_seconds <- function(model) {
  2e-5 + model$n_data * (1e-7 + 2e-9 * model$n_dim)
}

# Of a row that takes a product and a sum.
row_seconds <- function(n_dim) {
  5e-8 + 2e-9 * n_dim
}
