# The picture of README: posterior densities of the sepsis fit beside glm()'s
# normal law, and what the draws cost. From the root of the
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
likelihood <- glm(formula(fit), binomial(), tall_data("sepsis"))
ml <- coef(summary(likelihood))

# each chain's density, and the normal law at the maximum of the likelihood
curve <- do.call(rbind, lapply(names(labels), function(name) {
  chains <- lapply(split(draws[[name]], draws$.chain), function(value) {
    density(value, n = 256, adjust = 1.4)[c("x", "y")]
  })
  at <- range(unlist(lapply(chains, `[[`, "x")))
  x <- seq(at[[1]], at[[2]], length.out = 256)
  y <- dnorm(x, ml[name, "Estimate"], ml[name, "Std. Error"])
  all <- c(chains, list("glm()" = list(x = x, y = y)))
  do.call(rbind, lapply(names(all), function(of) {
    data.frame(
      variable = labels[[name]],
      of = if (of == "glm()") of else paste("chain", of),
      x = all[[of]]$x,
      y = all[[of]]$y
    )
  }))
}))
curve$variable <- factor(curve$variable, labels)
curve$of <- factor(curve$of, c(paste("chain", 1:4), "glm()"))

said <- sprintf(
  "%s exact draws. Of %s rows there were %.1f passes in all, and a step looked at %.2f rows.",
  format(posterior::ndraws(draws), big.mark = ","),
  format(nobs(fit), big.mark = ","),
  fit$passes,
  mean(fit$sizes)
)
colours <- c("#0b3c5d", "#328cc1", "#d9a21b", "#7a3b69", "grey30")

picture <- ggplot(curve, aes(x, y, colour = of, linetype = of)) +
  geom_line(linewidth = 0.6) +
  facet_wrap(~variable, scales = "free") +
  scale_colour_manual(values = colours) +
  scale_linetype_manual(values = c(rep("solid", 4), "22")) +
  scale_y_continuous(breaks = NULL) +
  labs(x = NULL, y = "posterior density", colour = NULL, linetype = NULL, title = said) +
  theme_minimal(base_size = 11) +
  theme(
    plot.title = element_text(size = 10),
    plot.title.position = "plot",
    legend.position = "bottom",
    legend.margin = margin(),
    panel.grid.minor = element_blank(),
    panel.spacing.x = unit(1.2, "lines"),
    plot.background = element_rect(fill = "white", colour = NA)
  )

dir.create("man/figures", showWarnings = FALSE)
png(
  "man/figures/README-posterior.png",
  width = 760,
  height = 300,
  res = 96,
  type = "cairo"
)
print(picture)
invisible(dev.off())
