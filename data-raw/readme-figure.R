# The picture of README: trace and density of the sepsis fit. From the root of the
# package, with it installed and the full data at hand (see ?tall_data):
#
#   Rscript data-raw/readme-figure.R

library(tallbayes)
library(ggplot2)

fit <- tall_glm(
  hospital_outcome_1alive_0dead ~
    age_years + sex_0male_1female + episode_number,
  data = tall_data("sepsis"),
  family = binomial(),
  seed = 1,
  refresh = 0
)

draws <- posterior::as_draws_df(fit)
labels <- c(
  age_years = "age (years)",
  sex_0male_1female = "sex (female)",
  episode_number = "episode"
)
long <- do.call(rbind, lapply(names(labels), function(name) {
  data.frame(
    iteration = draws$.iteration,
    chain = factor(draws$.chain),
    variable = labels[[name]],
    value = draws[[name]]
  )
}))
long$variable <- factor(long$variable, labels)

colours <- c("#0b3c5d", "#328cc1", "#d9a21b", "#7a3b69")
trace <- data.frame(long[long$iteration <= 150, ], panel = "first 150 draws of each chain")
dens <- data.frame(long, panel = "posterior density")

# density() drawn on its side, so that both panels share the axis of the values
curve <- do.call(rbind, lapply(
  split(dens, list(dens$variable, dens$chain)),
  function(part) {
    d <- density(part$value, n = 256, adjust = 1.4)
    data.frame(
      variable = part$variable[[1]],
      chain = part$chain[[1]],
      panel = part$panel[[1]],
      value = d$x,
      iteration = d$y / max(d$y)
    )
  }
))

picture <- ggplot(mapping = aes(x = iteration, y = value, colour = chain)) +
  geom_line(data = trace, linewidth = 0.3) +
  geom_path(data = curve, linewidth = 0.7) +
  facet_grid(variable ~ panel, scales = "free", switch = "y") +
  scale_colour_manual(values = colours) +
  labs(x = NULL, y = NULL) +
  theme_minimal(base_size = 11) +
  theme(
    legend.position = "top",
    legend.justification = "right",
    legend.margin = margin(),
    strip.placement = "outside",
    panel.grid.minor = element_blank(),
    panel.spacing.x = unit(1.2, "lines"),
    axis.text.x = element_blank(),
    plot.background = element_rect(fill = "white", colour = NA)
  )

dir.create("man/figures", showWarnings = FALSE)
png(
  "man/figures/README-trace.png",
  width = 760,
  height = 410,
  res = 96,
  type = "cairo"
)
print(picture)
invisible(dev.off())
