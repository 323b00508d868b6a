# Mauri & Zanella (2024), Figures 6 and 7: N(0, 1) with Laplace and Cauchy noise in its
# gradient. Differs: 40 coordinates at once instead of one chain.
source(system.file("replications", "helpers.R", package = "tallbayes"))
source(replication_file("barker.R"))

# ---- figure-6 ----
heavy <- expand.grid(
  scale = c(0.01, 0.1, 0.5, 1, 2, 5, 10),
  sigma = c(0.1, 0.5),
  method = c("SGLD", "SGBD"),
  noise = c("laplace", "cauchy"),
  stringsAsFactors = FALSE
)
run_heavy <- function(scale, sigma, method, noise) {
  target <- model_density(
    "normal",
    dim = 40,
    gradient_noise = noise,
    noise_scale = scale
  )
  sample_toy(target, method, sigma)
}
heavy[c("bias", "error")] <- once("barker-fig06", t(mapply(
  function(...) {
    bias <- apply(run_heavy(...), 2, quantile, 0.95) - qnorm(0.95)
    c(mean(bias), sd(bias) / sqrt(length(bias)))
  },
  heavy$scale, heavy$sigma, heavy$method, heavy$noise
)))

# ---- figure-6-plot ----
title_noise <- c(laplace = "Laplace noise", cauchy = "Cauchy noise")
facet_noise <- function(x) factor(title_noise[x], title_noise)
print(
  ggplot(heavy, aes(scale, bias, colour = method, linetype = factor(sigma))) +
    geom_line(linewidth = 0.7) +
    geom_point(size = 1) +
    facet_wrap(~ facet_noise(noise), scales = "free_y") +
    scale_x_log10(labels = function(x) format(x, drop0trailing = TRUE, trim = TRUE)) +
    scale_y_continuous(
      trans = scales::pseudo_log_trans(0.05),
      breaks = c(0, 0.1, 0.3, 1, 3, 10, 30, 100)
    ) +
    scale_methods(breaks = c("SGLD", "SGBD")) +
    scale_linetype_manual(values = c("21", "solid")) +
    labs(
      x = "scale of the noise", y = "bias of the 95 % quantile",
      linetype = expression(sigma)
    )
)

# ---- figure-6-verdict ----
heavy_row <- function(method, noise, sigma = 0.5, scale = 5) {
  heavy[heavy$method == method & heavy$noise == noise &
    heavy$sigma == sigma & heavy$scale == scale, ]
}
heavy_text <- function(...) {
  row <- heavy_row(...)
  paste0(plain(row$bias, 3), " (", plain(row$error, 1), ")")
}
large <- heavy$scale >= 1 & heavy$sigma == 0.5
smaller <- heavy$bias[large & heavy$method == "SGBD"] <
  heavy$bias[large & heavy$method == "SGLD"]
verdict(
  "Figure 6", all(smaller),
  "At scale 5 and sigma = 0.5 the 95 % quantile, 1.645, is too large by ",
  heavy_text("SGLD", "laplace"), " with SGLD and Laplace noise, by ",
  heavy_text("SGBD", "laplace"), " with SGBD; with Cauchy noise by ",
  heavy_text("SGLD", "cauchy"), ", which is the breakdown, and by ",
  heavy_text("SGBD", "cauchy"), " (standard errors over 40 coordinates)."
)

# ---- figure-7-plot ----
shown <- expand.grid(
  sigma = c(0.1, 0.5), method = c("SGLD", "SGBD"), noise = c("laplace", "cauchy"),
  stringsAsFactors = FALSE
)
shapes_heavy <- once("barker-fig07", do.call(rbind, lapply(seq_len(nrow(shown)), function(k) {
  s <- shown[k, ]
  draws <- run_heavy(exp(1.5) - 1, s$sigma, s$method, s$noise)
  inside <- draws[abs(draws) < 12]
  estimate <- density(inside, bw = 0.12, from = -5, to = 5)
  data.frame(
    s,
    theta = estimate$x,
    density = estimate$y * length(inside) / length(draws),
    far = mean(abs(draws) > 5),
    row.names = NULL
  )
})))
print(
  ggplot(shapes_heavy, aes(theta, density)) +
    stat_function(fun = dnorm, geom = "area", fill = "grey85", n = 400) +
    geom_line(aes(colour = method, linetype = factor(sigma)), linewidth = 0.7) +
    facet_wrap(~ facet_noise(noise)) +
    scale_methods(breaks = c("SGLD", "SGBD")) +
    scale_linetype_manual(values = c("21", "solid")) +
    labs(x = expression(theta), linetype = expression(sigma))
)

# ---- figure-7-verdict ----
far <- function(method) {
  s <- shapes_heavy
  s$far[s$method == method & s$noise == "cauchy" & s$sigma == 0.5][[1]]
}
verdict(
  "Figure 7", far("SGLD") > 0.1 && far("SGBD") < far("SGLD") / 10,
  "With Cauchy noise and sigma = 0.5 a share of ", plain(far("SGLD"), 2),
  " of SGLD's draws is beyond 5 in absolute value, of SGBD's ", plain(far("SGBD"), 2),
  "; of N(0, 1) it is 6e-7."
)
