# Runs `script` again with one thread for BLAS, which reads their number when it
# is loaded, and with the variables that `environment_of_run` (a list) has; in
# that second run, gives it what common.R has.

if (Sys.getenv("TALLBAYES_BENCH_CHILD") == "") {
  Sys.setenv(
    OPENBLAS_NUM_THREADS = "1",
    OMP_NUM_THREADS = "1",
    MKL_NUM_THREADS = "1",
    TALLBAYES_BENCH_CHILD = "1"
  )
  if (exists("environment_of_run")) {
    do.call(Sys.setenv, environment_of_run)
  }
  quit(status = system2(
    file.path(R.home("bin"), "Rscript"),
    c(script, commandArgs(TRUE))
  ))
}
source(file.path(dirname(script), "common.R"))
