# The demonstration of README: who survives sepsis? A logistic regression on
# 110,204 hospital admissions with nothing to tune. Writes demo-output/.

library(tallbayes)
options(width = 110)

sepsis <- tall_data("sepsis")

cat(
  "Fitting a logistic regression to",
  format(nrow(sepsis), big.mark = ","),
  "admissions.\n"
)
fit <- tall_glm(
  hospital_outcome_1alive_0dead ~
    age_years + sex_0male_1female + episode_number,
  data = sepsis,
  family = binomial(),
  seed = 1
)

dir.create("demo-output", showWarnings = FALSE)
summary_lines <- capture.output(print(summary(fit)))
writeLines(summary_lines, "demo-output/summary.txt")
cat(summary_lines, sep = "\n")

png("demo-output/trace.png", width = 1600, height = 1000, res = 180)
print(plot(fit, "trace") + bayesplot::theme_default(base_family = "sans"))
invisible(dev.off())

cat("\nWritten: demo-output/summary.txt, demo-output/trace.png\n")
