# Which tests are of which file of R/: `Rscript tools/tests.R` lists the files
# of R/ with their tests, and fails where one has none.
#
# A file is tested by tests of its name without that of its room
# (R/diag-ksd.R: test-ksd.R), or with it; by those that begin with it
# (R/fit-loo.R: test-loo-compare.R); and by those of what it is a part of
# (R/fit-nn-plot.R: test-nn.R). Files that share others say so here: a pattern
# of names, and the tests.
shared_tests <- c(
  "design-arguments|design-parts|design-frame|design-request" = "inputs",
  "design-compile|design-pilot|design-look" = "design-chunk",
  "(front|fit|response)-hurdle" = "hurdle",
  "design-limits|util-columns|f(ron|i)t-surv.*" = "surv",
  "design-pieces|response-piecewise|fit-proportional" = "surv-pieces",
  "design-strata|fit-hazards" = "surv-strata",
  "(design|model|front|fit)-dpar|response-two" = "dpar",
  "design-pile" = "design-reservoir",
  "design-(terms|foreign)" = "words",
  "design-(kinds-sql|levels)|mode-tied" = "rows-tied",
  "mode-scaled.*|fit-shrinkage" = "model-scaled",
  "design-bars|design-group.*" = "glmer",
  "rows-grouped" = "glmer-store",
  "design-ratings" = "factorize",
  "design-smooth-sql" = "gam-sources",
  "design-rows-sql" = "design-sql",
  "design-smooth-.*" = "design-smooth",
  "diag-gaussian|diag-points" = "theory",
  "diag-pseudo-variance" = "variance",
  "fit-(augment|coef|estimates|interval|print.*|plot|shapes?|draws)" =
    "fit-methods",
  "fit-(pp-check|losses|original|unconstrained|choose)" = "glm-methods",
  "fit-(regression|responses|rows|predictor.*|new-data|predict-fun)" =
    "predict",
  "fit-(emmeans|insight|marginal|tidybayes|stan|test-data)" = "ecosystem",
  "fit-average-(differences|functions|times)" = "average-expansion",
  "fit-savage-dickey" = "hypothesis",
  "fit-write-.*" = "write",
  "(source|front)-alike" = "rows-alike",
  "source-rounded|front-compress" = "compress",
  "fit-(guard|remote)" = "remote-fit",
  "fit-(conditional|sketch|smooths)" = "gam",
  "front-gam-concurvity" = "gam-check",
  "fit-print-table" = "gam",
  "fit-r2" = "glm-methods",
  "fit-prior-summary" = "priors",
  "fit-simulate" = "refused",
  "front-(asked|regression|run)" = "front",
  "front-(append|batches|grown|retract)|(rows|plan)-grown" = "append",
  "front-(folds|refit|reloo|cross|together)" = "kfold",
  "design-together|source-part" = "kfold",
  "f(ron|i)t-levels" = "glmer-levels",
  "gradient" = "conformance-gradient",
  "kernel-gibbs|plan-mixing|plan-sweeps.*|run-effects" = "crossed",
  "design-crossed|fit-crossed|fit-factors" = "glmer-crossed",
  "kernel|kernel-.*" = "conformance-kernel",
  "mode-(lbfgs|newton|point|separation|object|options)" = "mode",
  "mode-(passed|passes|sums|weights|remote)" = "remote",
  "mode-sql|source-sql|plan-sql|source-query" = "sql-engines",
  "model|model-.*" = "conformance-model",
  "plan-.*" = "recipe",
  "prior.*" = "priors",
  "response-.*" = "conformance-response",
  "rows.*" = "remote",
  "run-(advance|segment|record|chains|plan|rows|sums)" = "sample",
  "run-(bias)" = "bias-coupled",
  "run-(fit-model|resume.*|warnings)" = "sample",
  "source|source-(blocks|collect|digest|f.*|parquet|reader|stream)" =
    "conformance-source",
  "source-(csv.*|path|text)" = "source-csv",
  "source-store.*" = "conformance-store",
  "subsample.*" = "conformance-subsample",
  "schedule" = "conformance-schedule",
  "tune-.*" = "tune",
  "util-checks.*" = "checks",
  "util-data.*" = "data",
  "util-hash|util-seal" = "fuzz",
  "util-(memory|words)" = "constants",
  "tallbayes-package|zzz" = "examples"
)

# By file the names of its tests.
tests_of <- function(files, tests) {
  names <- sub("[.]R$", "", files)
  out <- lapply(names, function(name) {
    short <- sub("^[a-z]+-", "", name)
    is_own <- tests %in% c(name, short) |
      startsWith(tests, paste0(short, "-")) |
      startsWith(rep(short, length(tests)), paste0(tests, "-"))
    own <- tests[is_own]
    is_sharer <- vapply(names(shared_tests), function(pattern) {
      grepl(paste0("^(", pattern, ")$"), name)
    }, TRUE)
    union(own, intersect(shared_tests[is_sharer], tests))
  })
  stats::setNames(out, files)
}

# What is of no use in the table: tests that are not there, patterns that no
# file has.
stale_tests <- function(files, tests) {
  names <- sub("[.]R$", "", files)
  is_used <- vapply(names(shared_tests), function(pattern) {
    any(grepl(paste0("^(", pattern, ")$"), names))
  }, TRUE)
  c(names(shared_tests)[!is_used], setdiff(shared_tests, tests))
}

read_files <- function(root) {
  tests <- list.files(file.path(root, "tests", "testthat"), "^test-.*[.]R$")
  list(
    files = list.files(file.path(root, "R"), "[.]R$"),
    tests = sub("^test-(.*)[.]R$", "\\1", tests)
  )
}

if (sys.nframe() == 0) {
  found <- do.call(tests_of, read_files("."))
  for (file in names(found)) {
    cat(file, ": ", paste(found[[file]], collapse = ", "), "\n", sep = "")
  }
  quit(status = as.integer(any(lengths(found) == 0)))
}
