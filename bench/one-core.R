# Runs `script` again with one thread for BLAS, which reads their number when it
# is loaded; in that second run, gives it what common.R has.

if (Sys.getenv("TALLBAYES_BENCH_CHILD") == "") {
  Sys.setenv(
    OPENBLAS_NUM_THREADS = "1",
    OMP_NUM_THREADS = "1",
    MKL_NUM_THREADS = "1",
    TALLBAYES_BENCH_CHILD = "1"
  )
  quit(status = system2(
    file.path(R.home("bin"), "Rscript"),
    c(script, commandArgs(TRUE))
  ))
}
source(file.path(dirname(script), "common.R"))
