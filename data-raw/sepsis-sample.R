# inst/extdata/sepsis-sample.csv.xz: a simple random sample of 5,000 of the
# 110,204 rows of "Sepsis Survival Minimal Clinical Records", so that examples,
# tests and `make demo` do not depend on the full file.
#
# Source   UCI Machine Learning Repository, doi:10.24432/C53C8N (file of the
#          primary cohort, Norway). Chicco and Jurman (2020), Scientific Reports
#          10:17156; original records Knoop et al. (2017), PLoS ONE 12(11).
# Licence  CC BY 4.0. Changes: rows sampled, order of the source kept.
#
# Run from the root of the package with TALLBAYES_DATA set:
#   Rscript data-raw/sepsis-sample.R

source_file <- file.path(Sys.getenv("TALLBAYES_DATA"), "sepsis.csv.xz")
sepsis <- utils::read.csv(source_file, colClasses = "integer")
stopifnot(nrow(sepsis) == 110204)

set.seed(5000, kind = "Mersenne-Twister", sample.kind = "Rejection")
kept <- sort(sample.int(nrow(sepsis), 5000))

target <- xzfile("inst/extdata/sepsis-sample.csv.xz", "w", compression = 9)
utils::write.csv(sepsis[kept, ], target, row.names = FALSE, quote = FALSE)
close(target)
