# Baker et al. (2019), Figure 1: logistic regression on covertype, 1, 10 and 100 % of the
# rows. Their settings. Differs: gradient evaluations (theirs: time); the log-loss of
# predicted probabilities above the mode's, over 800 iterations (theirs: of hard labels, at
# every tenth); a second SGLD-CV is centred by Newton.
source(system.file("replications", "helpers.R", package = "tallbayes"))
source(replication_file("cv.R"))

# ---- data ----
cover <- cv_covertype()
held_out <- model_glm(
  cover$x[cover$test, ], cover$y[cover$test], "bernoulli", prior_flat()
)

# ---- figure-1-run ----
four_runs <- function(set) {
  model <- cv_model(cover, set$share)
  newton <- find_mode(model)
  set.seed(1)
  sgd <- find_mode(
    model,
    "sgd",
    init = runif(55),
    max_iter = 1000,
    batch_size = 500,
    learning_rate = set$sgd,
    decay = NULL
  )
  run <- function(gradient, step_size, init) {
    started <- proc.time()
    fit <- sg_sample(
      model,
      kernel_sgld(step_size),
      gradient = gradient,
      subsample = subsample_uniform(500, replace = FALSE),
      iter = full(20000, 1600),
      warmup = 0,
      thin = 20,
      chains = 5,
      init = init,
      seed = 1
    )
    # microseconds of a step, setup included
    list(fit = fit, cpu = 1e6 * cpu_since(started) / (5 * fit$control$iter))
  }
  runs <- list(
    run(gradient_simple(), set$sgld, numeric(55)),
    run(gradient_saga(), set$saga, numeric(55)),
    run(gradient_cv(at = sgd), set$sgld, coef(sgd)),
    run(gradient_cv(at = newton), set$sgld, coef(newton))
  )
  names(runs) <- cv_methods
  list(
    newton = newton, sgd = sgd,
    fits = lapply(runs, `[[`, "fit"), seconds = sapply(runs, `[[`, "cpu")
  )
}

# ---- figure-1-data ----
# Rows looked at before the first step.
setup_rows <- function(fit, size = 500) {
  own <- fit$chains$passes[[1]] * fit$n_data - (fit$control$iter + 1) * size
  shared <- sum(fit$preparation) * fit$n_data
  own + shared
}
excess_of <- function(run) {
  one <- function(name) {
    fit <- run$fits[[name]]
    loss <- matrix(log_loss(fit, held_out, statistic = "draw"), ncol = 5) -
      cv_mode_loss(cover, run$newton)
    bin <- rep(seq_len(nrow(loss) / 40), each = 40)
    each <- apply(loss, 2, function(x) tapply(x, bin, mean))
    data.frame(
      n_data = fit$n_data,
      method = factor(name, cv_methods),
      rows = setup_rows(fit) + 500 * 20 * tapply(seq_len(nrow(loss)), bin, mean),
      excess = rowMeans(each),
      # of the average over five chains
      error = apply(each, 1, sd) / sqrt(5),
      # of each chain over the second half
      chain = I(rep(list(colMeans(tail(loss, nrow(loss) / 2))), nrow(each)))
    )
  }
  do.call(rbind, lapply(cv_methods, one))
}
figure_1 <- once("cv-fig01", suppressWarnings(lapply(
  split(settings, settings$share),
  function(set) {
    run <- four_runs(set)
    list(
      excess = excess_of(run),
      seconds = run$seconds,
      distance = run$sgd$distance,
      passes = run$newton$passes,
      mode_loss = cv_mode_loss(cover, run$newton),
      n_data = run$fits[[1]]$n_data
    )
  }
)))
excess <- do.call(rbind, lapply(figure_1, `[[`, "excess"))
panel_names <- paste("N =", plain(sort(unique(excess$n_data)), 7))
excess$panel <- factor(paste("N =", plain(excess$n_data, 7)), panel_names)
distance <- sapply(figure_1, `[[`, "distance")
seconds <- sapply(figure_1, `[[`, "seconds")

# ---- figure-1 ----
print(
  ggplot(excess, aes(rows / 1e6, excess, colour = method, linetype = method)) +
    geom_line(linewidth = 0.7) +
    facet_wrap(vars(panel)) +
    scale_y_log10(labels = function(x) format(x, scientific = FALSE, drop0trailing = TRUE)) +
    scale_colour_manual(values = cv_colours, name = NULL) +
    scale_linetype_manual(values = cv_lines, name = NULL) +
    guides(colour = guide_legend(nrow = 2)) +
    labs(x = "gradient evaluations (millions)", y = "log-loss above the mode's")
)

# ---- figure-1-verdict ----
# by size of the data and method: the second half of each of five chains
of_chains <- function(n, method) {
  excess$chain[excess$n_data == n & excess$method == method][[1]]
}
sizes_1 <- sort(unique(excess$n_data))
# of averages: the excess of a single chain can be 0
lead_of <- function(n, method, chains = 1:5) {
  mean(of_chains(n, "SGLD")[chains]) / mean(of_chains(n, method)[chains])
}
# and its standard error by the jackknife
lead_error <- function(n, method) {
  4 * sd(vapply(1:5, function(k) lead_of(n, method, -k), 0)) / sqrt(5)
}
over_sizes <- function(value) {
  sapply(cv_methods[3:4], function(m) vapply(sizes_1, value, 0, method = m))
}
lead <- over_sizes(lead_of)
lead_errors <- over_sizes(lead_error)
lead_text <- function(method) {
  digits <- ifelse(lead_errors[, method] < 0.1, 2, 1)
  of_size <- function(x) mapply(decimals, x[, method], digits)
  paste0(of_size(lead), " (", of_size(lead_errors), ")", collapse = ", ")
}
# the last rise, in standard errors
last_rise <- function(method) {
  two <- tail(seq_along(sizes_1), 2)
  decimals(diff(lead[two, method]) / sqrt(sum(lead_errors[two, method]^2)), 1)
}
level <- t(sapply(sizes_1, function(n) {
  vapply(cv_methods, function(m) mean(of_chains(n, m)), 0)
}))
verdict(
  "Figure 1", all(diff(lead[, 1]) > 0) && all(diff(lead[, 2]) > 0),
  "\"The efficiency gains of SGLD-CV over SGLD as the dataset size increases\": over the ",
  "second half of the runs SGLD's excess log-loss is ", lead_text(cv_methods[[3]]),
  " times SGLD-CV's with the authors' centre at N = ", paste(plain(sizes_1, 7), collapse = "; "),
  ", and ", lead_text(cv_methods[[4]]), " times with Newton's (five chains, standard errors by ",
  "the jackknife; the rise to the largest N is ", last_rise(cv_methods[[3]]), " and ",
  last_rise(cv_methods[[4]]), " standard errors)."
)

# ---- figure-1-table ----
show_table(
  data.frame(
    N = plain(sizes_1, 7),
    apply(level, 2, plain, digits = 3),
    lead = plain(lead[, 2], 3),
    check.names = FALSE
  ),
  caption = "Log-loss above the mode's, second half of the runs; lead: SGLD over SGLD-CV by Newton.",
  align = "r"
)

# ---- figure-1-seconds ----
# a step of SAGA over each of the others'
saga_cost <- seconds[rep(2, 3), ] / seconds[-2, ]
seconds_table <- apply(seconds, 2, plain, digits = 3)
colnames(seconds_table) <- panel_names
show_table(
  data.frame(method = cv_methods, seconds_table, check.names = FALSE),
  caption = "Microseconds of processor time for a step with n = 500, setup shared out.",
  align = "r"
)
