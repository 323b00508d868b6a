# The recipe of multilevel regressions: the mode, as many nodes as the
# quadrature needs, and then Langevin steps on a few groups where the posterior
# is near normal, exact steps on all of them where it is not, unless these take
# very long and a pilot finds the others safe.

groups_settings <- list(
  error = 0.02,             # of the whitened gradient by nodes, at most,
  told = 0.1,               # or else it is told
  looked = 1000,            # groups by which that is judged
  points = 1000,            # more of them are told,
  most_points = 4000,       # and many more are not taken
  few = 50,                 # groups that are looked at one and all
  sampled = 1000,           # groups by which the shape is judged, where there
  many = 2000,              # are more than these, and it is clear
  near = 0.1,               # sds in which they tell slope and curvature
  errors = 4,               # standard errors it must be clear by
  least = 0.5,              # log density lost, of what a normal one loses
  most = 2,
  seconds = 300,            # of exact steps, where others may do
  several = 120,            # of exact steps of several effects, which are taken
                            # even where others would do
  cheap = 5,                # of these steps, which are up to so many times the
  most_times = 6,           # usual ones an iteration meanwhile,
  told_seconds = 60,        # what takes longer is told before it starts
  dear = 60,                # and fewer where they take longer, but
  least_steps = 3           # as many at least
)

plan_groups <- function(model, control, in_place) {
  ledger <- new_ledger()
  found <- groups_at_mode(model, control, ledger)
  model <- found$model
  mode <- found$mode
  white <- whiten_model(model, mode, in_place)
  recipe <- list(kappa = laplace_kappa(model, mode), nodes = found$nodes)
  must <- why_all_groups(white, recipe)
  # by which many groups are sampled; of fewer, plan_order() makes them
  cubic <- if (is.null(must) && model$n_data > groups_settings$many) {
    spend(ledger, "weights", 1)
    order_weights(white, mode, control)
  }
  far <- if (model$n_data > groups_settings$few) {
    far_reason_of(white, cubic, ledger)
  }
  exact <- suit_steps(recipe_mala(white, mode, recipe, ledger), control)
  seconds <- full_seconds(exact, control)
  is_slow <- seconds > groups_settings$seconds
  tails <- if (is.null(far) && has_long_tails(model, seconds)) {
    "the tails of correlations are long"
  }
  plan <- if (is.null(must %||% tails) && (is.null(far) || is_slow)) {
    plan_order(white, mode, recipe, control, ledger, cubic)
  }
  if (is.null(plan)) {
    plan <- exact
    why <- must %||% far %||% tails %||%
      "Langevin steps on a few groups would not be safe"
    plan$why <- paste0(full_steps(model), " on all groups, since ", why)
    tell_slow_groups(plan, control)
    return(plan)
  }
  n <- plan$recipe$size + length(plan$recipe$always)
  plan$why <- paste0(
    "Langevin steps with control variates of order 2 on ",
    count_noun(n, "group"),
    if (!is.null(far)) {
      paste0(
        "; ", far, ", but ", full_steps(model), " would take about ",
        format_seconds(seconds)
      )
    }
  )
  plan
}

# Langevin steps may be thrown out far from the mode, where correlations near 1
# are: not seen there by steps of 3 sds, and not worth it where exact steps take
# no time.
has_long_tails <- function(model, seconds) {
  length(model$groups$effects) > 1 && seconds <= groups_settings$several
}

# Correlations of effects are known by groups, of which there are few, so that
# their posterior has long tails: more steps from one draw to the next, where
# these cost next to nothing. Where they cost much, draws need not be
# independent.
suit_steps <- function(plan, control) {
  s <- groups_settings
  if (length(plan$model$groups$effects) == 1) {
    return(plan)
  }
  # normal groups take an eighth of what is reckoned at most
  seconds <- full_seconds(plan, control) / if (plan$model$is_exact) 8 else 1
  times <- max(1, min(floor(s$cheap / seconds), s$most_times))
  fewer <- floor(plan$steps * min(1, s$dear / seconds))
  plan$steps <- max(plan$steps * times * (times > 1), fewer, s$least_steps)
  plan
}

# What they are called: nodes leave an error.
full_steps <- function(model) {
  if (model_has_nodes(model)) "Metropolis-adjusted steps" else "exact steps"
}

# Seconds of a run with all groups in every step, by count.
full_seconds <- function(plan, control) {
  n_step <- control$warmup + (control$iter - control$warmup) * plan$steps
  control$chains * n_step * group_pass_seconds(plan)
}

group_pass_seconds <- function(plan) {
  model <- plan$model
  nodes <- if (model$is_exact) 3 else plan$recipe$nodes
  each <- nodes^length(model$groups$effects) + 4
  4e-6 * model$n_data + 1e-8 * each * merged_rows(model)
}

# Before it starts, whatever `refresh` is. given: was the kernel?
tell_slow_groups <- function(plan, control, given = FALSE) {
  seconds <- full_seconds(plan, control)
  if (seconds <= groups_settings$told_seconds) {
    return(invisible())
  }
  groups <- plan$model$groups
  q <- length(groups$effects)
  chains <- control$chains
  helps <- c(
    if (control$cores < chains) paste0("more `cores`, up to ", chains),
    "a smaller `iter`",
    if (q > 1) paste0("fewer effects, as `(1 | ", groups$name, ")`"),
    if (given) "mostly a run without a `kernel`"
  )
  helps <- cli::format_inline("{.or {helps}}")
  cli::cli_inform(c(
    "This will take about {format_seconds(seconds)} of one core.",
    i = "Each step looks at all {count_noun(plan$model$n_data, 'group')}
         {if (model_has_nodes(plan$model)) nodes_text(plan$model)}. Faster:
         {escape_cli(helps)}."
  ))
}

nodes_text <- function(model) {
  n <- get_nodes(model)^length(model$groups$effects)
  paste("at", count_noun(n, "node"), "each")
}

# The reason to look at all groups in every step, whatever it takes; NULL where
# there is none.
why_all_groups <- function(model, recipe) {
  if (model$n_data <= groups_settings$few) {
    "they are few"
  } else if (length(bounded_coordinates(model)) > 0) {
    "a prior has bounds"
  } else if (recipe$kappa > setting("recipe")$laplace_kappa) {
    "a Laplace prior is narrow"
  }
}

# The parameters whose posterior is far from normal, in words; NULL: none.
far_reason_of <- function(model, cubic, ledger) {
  far <- far_coordinates(model, cubic, ledger)
  if (length(far) > 0) {
    paste0(
      "the posterior of ",
      paste0("`", model$variables[far], "`", collapse = ", "),
      " is far from normal"
    )
  }
}

# Which parameters lose far more log density than a normal posterior does by
# steps of 1, 2 and 3 sds, to either side, or far less: a standard deviation
# near 0 does both. cubic: weights of groups, where they are known.
far_coordinates <- function(model, cubic, ledger) {
  s <- groups_settings
  along <- sd_directions(model)
  radii <- setting("recipe")$radii
  steps <- c(radii, -radii)
  if (!is.null(cubic) && model$n_data > s$many) {
    shape <- sampled_shape(model, along, steps, cubic, ledger)
    most <- max(shape$ratio + s$errors * shape$error)
    least <- min(shape$ratio - s$errors * shape$error)
    if (isTRUE(most < s$most && least > s$least)) {
      return(integer())
    }
  }
  points <- do.call(cbind, lapply(steps, function(r) r * along))
  spend(ledger, "recipe", ncol(points) + 1)
  density <- density_at(model, cbind(points, 0))
  n <- ncol(points)
  lost <- matrix(density[[n + 1]] - density[seq_len(n)], ncol(along))
  lost[!is.finite(lost)] <- Inf
  ratio <- sweep(lost, 2, steps^2 / 2, "/")
  which(apply(ratio, 1, max) > s$most | apply(ratio, 1, min) < s$least)
}

# The same by a sample of groups, list(ratio, error): what they lose beyond
# second order stands for what all do, since to second order that is known. One
# group in many adds little to a shape, and where the sample is too small for it
# the standard error says so.
sampled_shape <- function(model, along, steps, cubic, ledger) {
  s <- groups_settings
  d <- ncol(along)
  share <- mix_weights(cubic, "cubic")
  share <- share / sum(share)
  drawn <- with_seed(
    setting("recipe")$pilot_seed,
    sample.int(model$n_data, s$sampled, replace = TRUE, prob = share)
  )
  rows <- sort(unique(drawn))
  times <- tabulate(match(drawn, rows))
  all <- c(s$near, -s$near, steps)
  points <- do.call(cbind, c(lapply(all, function(r) r * along), list(0)))
  spend(ledger, "recipe", ncol(points) * length(rows) / model$n_data)
  value <- row_log_lik(model, points, rows)
  prior <- model_evaluate(model, points, "prior")$log_density
  out <- list(ratio = NULL, error = NULL)
  for (j in seq_len(d)) {
    at <- c(seq(j, by = d, length.out = length(all)), ncol(points))
    beyond <- beyond_second(value[, at, drop = FALSE], steps)
    own <- beyond_second(t(prior[at]), steps)
    each <- beyond / share[rows]
    mean <- colSums(each * times) / s$sampled
    square <- colSums(each^2 * times) / s$sampled
    scale <- steps^2 / 2
    out$ratio <- cbind(out$ratio, 1 - (mean + drop(own)) / scale)
    error <- sqrt(pmax(square - mean^2, 0) / (s$sampled - 1))
    out$error <- cbind(out$error, error / scale)
  }
  out
}

# What functions, in rows, have beyond second order at the steps. Columns: a
# little to either side, at the steps, and at 0.
beyond_second <- function(value, steps) {
  h <- groups_settings$near
  n <- length(steps)
  here <- value[, n + 3]
  slope <- (value[, 1] - value[, 2]) / (2 * h)
  bend <- (value[, 1] + value[, 2] - 2 * here) / h^2
  value[, 2 + seq_len(n), drop = FALSE] - here -
    outer(slope, steps) - outer(bend, steps^2 / 2)
}

# list(model, mode, nodes): the mode, with as many nodes as the quadrature
# needs, which are set.
groups_at_mode <- function(model, control, ledger) {
  found <- groups_mode(model, control, ledger)
  mode <- found$mode
  nodes <- choose_nodes(model, mode, found$nodes, ledger)
  if (nodes != found$nodes[[1]]) {
    forget_mode(model)
    model$start <- as.double(mode$estimate)
    model$traits$start <- model$start
    mode <- model_mode(model, control$cores, control$refresh)
    spend_mode(ledger, mode)
  }
  list(model = model, mode = mode, nodes = nodes)
}

# The numbers of nodes that may be: one, where it is given or exact.
allowed_nodes <- function(model) {
  if (model$is_exact || !is.null(model$nodes)) {
    return(if (model$is_exact) 3 else model$nodes)
  }
  s <- groups_settings
  q <- length(model$groups$effects)
  nodes <- unique(c(first_nodes(q), usual_nodes, more_nodes))
  nodes[nodes^q <= s$most_points]
}

# The mode, and those of the allowed nodes that may do. Where sds are large few
# nodes leave ripples on the posterior, on which a search ends: it is not to
# creep there as long as there are more.
groups_mode <- function(model, control, ledger) {
  allowed <- allowed_nodes(model)
  search <- function(...) {
    model_mode(model, control$cores, control$refresh, ...)
  }
  while (length(allowed) > 1) {
    mode <- withCallingHandlers(
      tryCatch(
        search(least_step = 1e-3),
        tall_error_mode = function(error) NULL
      ),
      tall_warning_mode = function(warning) invokeRestart("muffleWarning")
    )
    if (isTRUE(mode$converged)) {
      break
    }
    spend(ledger, "recipe", mode$passes %||% 0)
    allowed <- allowed[-1]
    set_nodes(model, allowed[[1]])
    forget_mode(model)
  }
  mode <- search()
  spend_mode(ledger, mode)
  list(mode = mode, nodes = allowed)
}

# How many nodes: the first number of `allowed` whose gradient is that of the
# next one, at the mode and one posterior sd of each lambda to either side. Sets
# them.
choose_nodes <- function(model, mode, allowed, ledger) {
  all <- allowed_nodes(model)
  if (length(all) == 1) {
    return(all)
  }
  least <- allowed[[1]]
  # the most is compared with those before it
  allowed <- sort(union(allowed, utils::tail(all, 2)))
  s <- groups_settings
  points <- nodes_points(model, mode)
  n <- min(s$looked, model$n_data)
  index <- floor(seq(1, model$n_data, length.out = n))
  look <- function(nodes) {
    set_nodes(model, nodes)
    spend(ledger, "recipe", ncol(points) * n / model$n_data)
    gradient <- model_evaluate(
      model,
      points,
      "likelihood",
      index = index,
      weight = model$n_data / n,
      density = FALSE
    )$gradient
    forwardsolve(mode$chol, gradient)
  }
  chosen <- allowed[[1]]
  before <- look(chosen)
  error <- 0
  for (nodes in allowed[-1]) {
    after <- look(nodes)
    error <- sqrt(colSums((after - before)^2))
    error <- max(0, error[is.finite(error)])
    if (error <= s$error) {
      break
    }
    chosen <- nodes
    before <- after
  }
  chosen <- max(chosen, least)
  set_nodes(model, chosen)
  tell_nodes(chosen, error, model)
  chosen
}

# error: what the last two numbers of nodes that were looked at differ by, about
# the most that the last can be off by.
tell_nodes <- function(nodes, error, model) {
  s <- groups_settings
  q <- length(model$groups$effects)
  if (error > s$told) {
    name <- model$groups$name
    warn_tall(
      "nodes",
      c(
        "The standard deviations of {.code {name}} are too large for the {nodes}
         nodes{if (q > 1) ' in each dimension'} by which its effects are
         integrated out.",
        x = "The posterior may be off by up to {signif(error, 1)} of its
             standard deviations.",
        i = if (q > 1) {
          "A single effect, {.code (1 | {name})}, is integrated out by more."
        }
      )
    )
  }
  if (nodes^q > s$points) {
    cli::cli_inform(c(
      i = "The effects of each group are integrated out over {nodes^q} nodes:
           fewer effects are faster."
    ))
  }
}

nodes_points <- function(model, mode) {
  at <- as.double(mode$estimate)
  covariance <- vcov(mode)
  lambda <- model$n_coef + seq_len(model$n_lambda)
  steps <- covariance[, lambda, drop = FALSE]
  sd <- sqrt(diag(covariance)[lambda])
  # of an sd near 0 the logarithm may be anything: no more than a factor of e
  sd[seq_along(model$groups$effects)] <-
    pmax(sd[seq_along(model$groups$effects)], 1) *
      sd[seq_along(model$groups$effects)]
  steps <- sweep(steps, 2, sd, "/")
  unname(cbind(at, at + steps, at - steps))
}
