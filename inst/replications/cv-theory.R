# Baker et al. (2019), Proposition 1 and Theorem 1, held against a chain (no figure of
# theirs).
source(system.file("replications", "helpers.R", package = "tallbayes"))
source(replication_file("cv.R"))

# ---- theory-run ----
simulate_linear <- function(n_data) {
  x <- matrix(rnorm(2 * n_data), n_data)
  y <- drop(x %*% c(1, -1)) + rnorm(n_data)
  model_glm(x, y, "gaussian", prior_normal(0, 1), sigma = 1)
}

# W2 of two normal distributions; `root` is the second one's standard deviation matrix
root_of <- function(s) {
  e <- eigen(s, TRUE)
  e$vectors %*% (sqrt(pmax(e$values, 0)) * t(e$vectors))
}
w2_normal <- function(draws, mean, covariance) {
  s <- cov(draws)
  root <- root_of(covariance)
  cross <- root_of(root %*% s %*% root)
  sqrt(sum((colMeans(draws) - mean)^2) + sum(diag(s + covariance - 2 * cross)))
}

theory_at <- function(n_data, error = 1) {
  model <- simulate_linear(n_data)
  mode <- find_mode(model)
  rows <- lipschitz(model)
  smoothness <- sum(rows)
  convexity <- min(eigen(-mode$hessian)$values)
  sd <- sqrt(diag(vcov(mode)))
  start <- sum((10 * sd)^2)
  center <- sum(sd^2)
  budget <- sgldcv_budget(error, convexity, smoothness, 2, start, center)
  fit <- sg_sample(
    model,
    kernel_sgld(budget$step_size),
    gradient = gradient_cv(at = coef(mode) + sd),
    subsample = subsample_weighted(budget$size, weights = rows[-1]),
    init = coef(mode) + 10 * sd,
    iter = budget$iter,
    warmup = 0,
    thin = floor(budget$iter / 200),
    chains = full(1000, 50),
    seed = 1
  )
  draws <- unclass(posterior::as_draws_array(fit))
  iter <- seq_len(dim(draws)[[1]]) * fit$control$thin
  bound <- sgldcv_bound(
    convexity, smoothness, 2, budget$step_size, budget$size, iter, start, center
  )
  measured <- apply(draws, 1, w2_normal, coef(mode), vcov(mode))
  data.frame(
    n_data, error,
    ratio = smoothness / convexity,
    size = budget$size, budget = budget$iter, limit = budget$limit,
    iter, bound = sqrt(convexity) * bound$bound, measured = sqrt(convexity) * measured
  )
}
theory <- once("cv-theory", {
  set.seed(3)
  do.call(rbind, lapply(full(10^(4:6), 1e4), theory_at))
})

# ---- theory-figure ----
curves <- rbind(
  data.frame(theory[c("n_data", "iter")], value = theory$bound, curve = "bound"),
  data.frame(theory[c("n_data", "iter")], value = theory$measured, curve = "measured")
)
curves$panel <- stats::reorder(paste("N =", plain(curves$n_data, 7)), curves$n_data)
print(
  ggplot(curves, aes(iter / 1000, value, colour = curve, linetype = curve)) +
    geom_hline(yintercept = 1, colour = "grey60", linewidth = 0.4) +
    annotate(
      "text",
      x = 9.5, y = 1, label = "error asked for",
      vjust = -0.6, hjust = 1, size = 3, colour = "grey40"
    ) +
    geom_line(linewidth = 0.7) +
    facet_wrap(vars(panel)) +
    scale_x_continuous(breaks = c(0, 3, 6, 9)) +
    scale_y_log10(labels = function(x) format(x, drop0trailing = TRUE)) +
    scale_colour_manual(
      values = c(bound = "#000000", measured = palette_methods[["SGLD-CV"]]), name = NULL
    ) +
    scale_linetype_manual(values = c(bound = "41", measured = "solid"), name = NULL) +
    labs(x = "iterations (thousands)", y = expression(sqrt(m) ~ W[2]))
)

# ---- theory-verdict ----
final_theory <- do.call(rbind, lapply(split(theory, theory$n_data), function(one) {
  first_below <- function(curve) one$iter[max(0, which(curve > one$error[[1]])) + 1]
  data.frame(
    N = one$n_data[[1]],
    size = one$size[[1]],
    budget = one$budget[[1]],
    bound = tail(one$bound, 1),
    measured = mean(tail(one$measured, 20)),
    "bound below" = first_below(one$bound),
    "measured below" = first_below(one$measured),
    check.names = FALSE
  )
}))
# W2 of 1,000 draws of the posterior itself: the noise in what is measured
set.seed(4)
floor_of <- mean(replicate(full(200, 5), w2_normal(matrix(rnorm(2000), 1000), c(0, 0), diag(2))))
below <- all(theory$measured <= theory$bound)
verdict(
  "the bound", below && diff(range(final_theory$budget)) < 0.1 * min(final_theory$budget),
  "The measured distance is ", if (below) "never" else "sometimes", " above the bound; the ",
  "budgets are ", several(final_theory$budget, 4), " iterations of ",
  several(unique(final_theory$size)), " row for 1e4, 1e5 and 1e6 rows. The chains end at ",
  plain(mean(final_theory$measured), 2), "; 1,000 draws of the posterior itself would show ",
  plain(floor_of, 2), "."
)

# ---- theory-table ----
show_table(
  as.data.frame(lapply(final_theory, plain, digits = 3), check.names = FALSE),
  caption = paste(
    "Settings for an error of 1, and what came of them: distances at the end,",
    "iterations until they stay below 1."
  ),
  align = "r"
)
