# Baker et al. (2019), Figure 2: zero-variance control variates on covertype. Differs:
# regression on the gradients of control variates (theirs: plain ones); the centre by
# Newton; one step size (theirs: seven); 10 runs.
source(system.file("replications", "helpers.R", package = "tallbayes"))
source(replication_file("cv.R"))

# ---- zero-variance-run ----
cover <- cv_covertype()
zero_run <- function(model, mode, step_size, gradient) {
  lapply(1:10, function(seed) {
    fit <- sg_sample(
      model,
      kernel_sgld(step_size),
      gradient = gradient,
      subsample = subsample_uniform(500, replace = FALSE),
      iter = full(10000, 1000),
      warmup = 0,
      chains = 1,
      init = coef(mode),
      keep = c("draws", "gradients"),
      seed = seed
    )
    reduced <- zero_variance(fit)
    list(
      draws = if (seed <= 5) thinned(fit),
      reduced = if (seed <= 5) thinned(reduced),
      before = coef(fit),
      after = attr(reduced, "estimates")
    )
  })
}
thinned <- function(draws) {
  unclass(posterior::as_draws_matrix(posterior::thin_draws(posterior::as_draws(draws), 20)))
}
zero_at <- function(k) {
  model <- cv_model(cover, settings$share[[k]])
  mode <- find_mode(model)
  step_size <- settings$sgld[[k]]
  list(
    cv = zero_run(model, mode, step_size, gradient_cv(at = mode)),
    simple = zero_run(model, mode, step_size, gradient_simple()),
    n_data = model$n_data,
    mode_loss = cv_mode_loss(cover, mode)
  )
}
zero <- once("cv-fig02", suppressMessages(suppressWarnings(lapply(1:3, zero_at))))

# ---- zero-variance-numbers ----
# Variance of the averages over the ten runs, by coefficient: before over after.
factor_of <- function(ten) {
  spread <- function(field) apply(sapply(ten, `[[`, field), 1, var)
  spread("before") / spread("after")
}
factors <- lapply(zero, function(z) lapply(z[c("cv", "simple")], factor_of))
middle <- sapply(factors, sapply, median)
loss_of <- function(theta) {
  p <- plogis(tcrossprod(theta, cover$x[cover$test, ]))
  log_loss(p, y = cover$y[cover$test], statistic = "draw")
}
boxes <- do.call(rbind, lapply(1:5, function(k) {
  one <- zero[[3]]$cv[[k]]
  rbind(
    data.frame(run = k, draws = "as sampled", loss = loss_of(one$draws)),
    data.frame(run = k, draws = "zero variance", loss = loss_of(one$reduced))
  )
}))
mode_loss <- zero[[3]]$mode_loss

# ---- figure-2 ----
print(
  ggplot(boxes, aes(factor(run), loss, colour = draws)) +
    geom_boxplot(
      outlier.size = 0.4, linewidth = 0.4, fatten = 1.5,
      position = position_dodge(0.7), width = 0.55
    ) +
    geom_hline(yintercept = mode_loss, linetype = "22", colour = "grey40", linewidth = 0.4) +
    annotate("text", x = 5.65, y = mode_loss, label = "at the mode", hjust = 0, size = 3, colour = "grey40") +
    scale_y_continuous(labels = function(x) format(x, digits = 5)) +
    scale_colour_manual(
      values = c("as sampled" = palette_methods[["SGLD-CV"]], "zero variance" = "#000000"),
      name = NULL
    ) +
    coord_cartesian(clip = "off") +
    labs(x = "run", y = "log-loss of a draw") +
    theme(plot.margin = margin(5, 70, 5, 5))
)

# ---- figure-2-verdict ----
# of each of five runs
falls <- vapply(1:5, function(k) {
  one <- boxes[boxes$run == k, ]
  var(one$loss[one$draws == "as sampled"]) / var(one$loss[one$draws == "zero variance"])
}, 0)
verdict(
  "Figure 2", mean(falls) > 2 && middle["cv", 3] > 2,
  "\"Excellent variance reduction of the chain\": the variance of the log-loss falls by a ",
  "factor of ", with_error(falls, 1), " (five runs, standard error), and, which is what a user ",
  "gains, that of the averages of the coefficients over ten runs by ", plain(middle["cv", 3], 2),
  " (median of 55 coefficients. A single factor is known from ten runs only to within a factor ",
  "of ", plain(qf(0.975, 9, 9), 2), ": the smallest, ", plain(min(factors[[3]]$cv), 2),
  if (min(factors[[3]]$cv) < 1) ", does not say that a coefficient loses)." else ", is above one)."
)

# ---- zero-variance-table ----
middle_table <- apply(middle, 2, plain, digits = 2)
colnames(middle_table) <- paste("N =", plain(sapply(zero, `[[`, "n_data"), 7))
show_table(
  data.frame(gradients = c("SGLD-CV", "SGLD"), middle_table, check.names = FALSE),
  caption = "Variance of averages, before over after (median coefficient).",
  align = "r"
)
