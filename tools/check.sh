#!/usr/bin/env bash
# Builds the source package and runs R CMD check on it, in check/. Anything
# other than "Status: OK" fails.
set -euo pipefail

R=${R:-R}
root=$(cd "$(dirname "$0")/.." && pwd)
out=$root/check
rm -rf "$out"
mkdir "$out"
cd "$out"

# One thread for BLAS, see Makefile.
export OPENBLAS_NUM_THREADS=${OPENBLAS_NUM_THREADS:-1}

# The clock of the network is not part of the package.
export _R_CHECK_SYSTEM_CLOCK_=0

# Of some 10 MB a third is byte code of R and two fifths pages with pictures.
export _R_CHECK_PKG_SIZES_THRESHOLD_=12

# Packages that tools/setup.R leaves out, or cannot have, may be missing; a note
# of that, and of nothing else, is fine.
missing=$(Rscript -e '
  optional <- c("RTMB", "marginaleffects", "parsnip", "projpred")
  there <- vapply(optional, requireNamespace, TRUE, quietly = TRUE)
  cat(optional[!there])
')
if [ -n "$missing" ]; then
  export _R_CHECK_FORCE_SUGGESTS_=false
fi

# The vignettes were computed before, so the package that is compiled to build
# them need not be fast.
echo 'CFLAGS = -O0 -g0' >"$out/Makevars-build"
R_MAKEVARS_USER=$out/Makevars-build "$R" CMD build "$root"
tarball=$(ls tallbayes_*.tar.gz)
# The size that is noted is that of code and documents: Debian's R compiles with
# debugging symbols, three quarters of the shared object.
echo 'CFLAGS += -g0' >"$out/Makevars"
# R CMD build has just built the vignettes.
R_MAKEVARS_USER=$out/Makevars "$R" CMD check --no-manual --no-build-vignettes \
  "$tarball" || true

status=$(grep '^Status:' tallbayes.Rcheck/00check.log || echo "Status: none")
if [ -n "$missing" ] && [ "$status" = "Status: 1 NOTE" ] &&
  grep -q "^Packages\? suggested but not available for checking:" \
    tallbayes.Rcheck/00check.log; then
  echo "Without $missing."
  status="Status: OK"
fi
if [ "$status" != "Status: OK" ]; then
  for log in tallbayes.Rcheck/00install.out tallbayes.Rcheck/tests/*.fail; do
    if [ -f "$log" ]; then
      echo "---- $log"
      tail -n 60 "$log"
    fi
  done
  echo "R CMD check: $status (must be OK)"
  exit 1
fi
echo "R CMD check: no errors, no warnings, no notes"
