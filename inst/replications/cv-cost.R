# Baker et al. (2019): the cost of a given accuracy, N from 1e4 to 1e7 (no figure of
# theirs). Simulated logistic regressions.
source(system.file("replications", "helpers.R", package = "tallbayes"))
source(replication_file("cv.R"))

# ---- cost-functions ----
# of means and standard deviations, in posterior standard deviations
tolerance <- 0.3
simulate <- function(n_data) {
  x <- matrix(rnorm(n_data * 10), n_data)
  x[, 1] <- 1
  eta <- drop(x %*% c(1, rep(c(0.5, -0.5), length.out = 9)))
  model_glm(x, rbinom(n_data, 1, plogis(eta)), "bernoulli", prior_normal(0, 10))
}

# Iterations until the error of estimates from all draws so far stays below it.
iterations_needed <- function(fit, mode, tolerance) {
  z <- unclass(posterior::as_draws_array(fit))
  z <- sweep(sweep(z, 3, coef(mode)), 3, sqrt(diag(vcov(mode))), "/")
  draws <- seq_len(dim(z)[[1]])
  mean <- apply(z, 2:3, cumsum) / draws
  sd <- sqrt(pmax(apply(z^2, 2:3, cumsum) / draws - mean^2, 0))
  error <- sqrt((rowMeans(mean^2) + rowMeans((sd - 1)^2)) / 2)
  below <- max(0, which(error > tolerance)) + 1
  if (below > max(draws)) NA else below * fit$control$thin
}

cpu <- function(code) sum(system.time(code)[c("user.self", "sys.self")])

# ---- cost-run ----
one_cost <- function(model, mode, gradient, step, iter, chains) {
  size <- 100
  step_size <- step / mean(-diag(mode$hessian))
  run <- function(iter) {
    fit <<- sg_sample(
      model,
      kernel_sgld(step_size),
      gradient = gradient,
      subsample = subsample_uniform(size, replace = FALSE),
      iter = iter,
      warmup = 0,
      thin = max(1, floor(iter / 2000)),
      chains = chains,
      init = coef(mode),
      seed = 1
    )
  }
  fit <- NULL
  start <- cpu(run(1))
  all <- cpu(run(iter))
  needed <- iterations_needed(fit, mode, tolerance)
  data.frame(
    step = step,
    evaluations = size * needed,
    seconds = needed * (all - start) / (iter * chains),
    setup_evaluations = sum(fit$preparation) * model$n_data,
    setup_seconds = start
  )
}

cost_at <- function(n_data, steps, chains) {
  model <- simulate(n_data)
  looking <- cpu(mode <- find_mode(model))
  sgld <- lapply(steps$sgld, function(step) {
    one_cost(model, mode, gradient_simple(), step * 1e4 / n_data, 0.5 * n_data, chains)
  })
  cv <- lapply(steps$cv, function(step) {
    one_cost(model, mode, gradient_cv(at = mode), step, 1000, 8 * chains)
  })
  cost <- rbind(
    data.frame(method = "SGLD", do.call(rbind, sgld)),
    data.frame(method = "SGLD-CV", do.call(rbind, cv))
  )
  cost$setup_seconds <- (cost$setup_seconds + looking) * (cost$method == "SGLD-CV")
  data.frame(n_data = n_data, cost)
}

cost <- once("cv-cost", {
  set.seed(2)
  tuning <- cost_at(1e4, list(sgld = c(0.01, 0.015, 0.02), cv = c(0.5, 0.75, 1)), chains = 32)
  best <- lapply(split(tuning, tuning$method), function(one) {
    one$step[[which.min(one$evaluations)]]
  })
  do.call(rbind, lapply(full(10^(4:7), c(1e4, 2e4)), function(n_data) {
    cost_at(
      n_data, list(sgld = best$SGLD, cv = best$`SGLD-CV`),
      chains = if (n_data < 1e6) 8 else 4
    )
  }))
})

# ---- cost-figure ----
long <- rbind(
  data.frame(cost[c("n_data", "method")], value = cost$evaluations, what = "gradient evaluations"),
  data.frame(cost[c("n_data", "method")], value = cost$seconds, what = "seconds (one core)")
)
whole <- subset(cost, method == "SGLD-CV")
whole <- rbind(
  data.frame(n_data = whole$n_data, value = whole$evaluations + whole$setup_evaluations, what = "gradient evaluations"),
  data.frame(n_data = whole$n_data, value = whole$seconds + whole$setup_seconds, what = "seconds (one core)")
)
long <- rbind(long, data.frame(whole, method = "SGLD-CV with setup"))
slope_of <- function(one) coef(lm(log(value) ~ log(n_data), one))[[2]]
slopes <- sapply(split(long, list(long$method, long$what)), slope_of)
# blanks: outside the frame, whose limits a nudge would move
long$label <- sprintf(
  "   %s\n   (slope %.2f)",
  long$method,
  slopes[paste(long$method, long$what, sep = ".")]
)
cost_colours <- c(palette_methods, "SGLD-CV with setup" = palette_methods[["SGLD-CV"]])
power <- function(x) parse(text = paste0("10^", round(log10(x), 2)))
print(
  ggplot(long, aes(n_data, value, colour = method)) +
    geom_line(aes(linetype = method), linewidth = 0.7) +
    geom_point(size = 1.8) +
    geom_text(
      data = subset(long, n_data == max(n_data)),
      aes(label = label),
      hjust = 0,
      size = 3,
      lineheight = 0.85
    ) +
    facet_wrap(vars(what), scales = "free_y") +
    scale_x_log10(labels = power, breaks = 10^(4:7)) +
    scale_y_log10(labels = power, breaks = 10^(-5:10), expand = expansion(0.08)) +
    scale_colour_manual(values = cost_colours, guide = "none") +
    scale_linetype_manual(values = c("solid", "solid", "21"), guide = "none") +
    coord_cartesian(clip = "off") +
    labs(x = "rows in the data", y = "cost of one chain") +
    theme(plot.margin = margin(5, 95, 5, 5), panel.spacing = unit(6.5, "lines"))
)

# ---- cost-verdict ----
slope <- function(method, what = "gradient evaluations") {
  decimals(slopes[[paste(method, what, sep = ".")]])
}
at <- function(method, n_data, field) {
  cost[cost$method == method & cost$n_data == n_data, field]
}
most <- max(cost$n_data)
ratio_whole <- at("SGLD", most, "evaluations") /
  (at("SGLD-CV", most, "evaluations") + at("SGLD-CV", most, "setup_evaluations"))
verdict(
  "cost of an accuracy",
  abs(as.numeric(slope("SGLD-CV"))) < 0.1 && as.numeric(slope("SGLD")) > 0.9,
  "SGLD's evaluations grow like N^", slope("SGLD"), " and those of SGLD-CV like N^",
  slope("SGLD-CV"), ", from ", plain(at("SGLD-CV", 1e4, "evaluations")), " to ",
  plain(at("SGLD-CV", most, "evaluations")), " (one set of chains for each N)."
)

# ---- cost-table ----
show_table(
  data.frame(
    N = plain(unique(cost$n_data), 2),
    "SGLD" = plain(subset(cost, method == "SGLD")$evaluations, 3),
    "SGLD-CV" = plain(subset(cost, method == "SGLD-CV")$evaluations, 3),
    "setup" = plain(subset(cost, method == "SGLD-CV")$setup_evaluations, 3),
    "SGLD, s" = plain(subset(cost, method == "SGLD")$seconds, 2),
    "SGLD-CV, s" = plain(subset(cost, method == "SGLD-CV")$seconds, 2),
    "setup, s" = plain(subset(cost, method == "SGLD-CV")$setup_seconds, 2),
    check.names = FALSE
  ),
  caption = paste("Gradient evaluations and processor seconds to an error of", tolerance),
  align = "r"
)
