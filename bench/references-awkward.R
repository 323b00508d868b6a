# Reference posteriors of the cases of awkward-cases.R, computed without the
# package and by other means than its own. Written to
# results/references-awkward.csv: mean, sd, quantiles and the reference's own
# standard errors (0: quadrature) of each coefficient.
#
#   Rscript bench/references-awkward.R [case ...]
#
# - One factor: given the intercept the likelihood is a product over levels, so the
#   posterior is nested one-dimensional quadratures.
# - Many terms: rows repeat, so the likelihood is a sum over cells. Hamiltonian Monte
#   Carlo on that sum for all but the coefficients of rare levels; those by slices.
# - Horseshoe: rstanarm (NUTS on the primitive parameters), and a Gibbs sampler with
#   Polya-Gamma variables and slices, which must agree.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))
source(file.path(dirname(script), "awkward-cases.R"))
source(file.path(dirname(script), "reference-factor.R"))
source(file.path(dirname(script), "reference-cells.R"))
source(file.path(dirname(script), "reference-horseshoe.R"))

how <- list(
  baseline = factor_reference,
  destinations = factor_reference,
  `two-months` = cells_reference,
  `all-flights` = cells_reference,
  horseshoe = horseshoe_reference
)
path <- file.path(bench_folder(), "results", "references-awkward.csv")
wanted <- commandArgs(TRUE)
for (name in if (length(wanted) > 0) wanted else names(how)) {
  seconds <- cpu_seconds(table <- how[[name]](awkward_cases[[name]]()))
  cat(name, ": ", fixed(seconds, 0), " CPU s\n", sep = "")
  old <- if (file.exists(path)) read.csv(path, check.names = FALSE)
  old <- old[old$case != name, ]
  table <- cbind(case = name, table)
  numbers <- vapply(table, is.numeric, TRUE)
  table[numbers] <- lapply(table[numbers], signif, 6)
  write.csv(rbind(old, table), path, row.names = FALSE)
}
