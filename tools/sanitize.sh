#!/usr/bin/env bash
# The package in R under AddressSanitizer and UndefinedBehaviorSanitizer: tests
# of what comes from a file or from the user's own hands (tests/testthat/
# test-fuzz.R), or those of a filter.
#   tools/sanitize.sh [filter]
# TALLBAYES_FUZZ=10 takes ten times as many damages, Inf all of them. Says where
# it was when a sanitizer stops it.
set -euo pipefail
cd "$(dirname "$0")/.."

filter=${1:-fuzz}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/package" "$work/library"

# a copy: instrumented objects must not lie where others build
git ls-files -z --cached --others --exclude-standard -- ':!vignettes' ':!bench' |
  xargs -0 cp --parents -t "$work/package"

flags="-fsanitize=address,undefined,float-cast-overflow"
cat >"$work/Makevars" <<EOF
CFLAGS = -g -O1 -fno-omit-frame-pointer -fno-sanitize-recover=all $flags
LDFLAGS = $flags
EOF

run() {
  env ASAN_OPTIONS=detect_leaks=0:detect_odr_violation=0 \
    UBSAN_OPTIONS=print_stacktrace=1 \
    LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)" \
    "$@"
}

R_MAKEVARS_USER="$work/Makevars" MAKEFLAGS="-j$(nproc)" \
  R CMD INSTALL --no-test-load --no-docs --library="$work/library" \
  "$work/package" >"$work/install.log" 2>&1 || {
  cat "$work/install.log"
  exit 1
}

export TALLBAYES_FUZZ_LOG="$work/at"
export R_LIBS="$work/library${R_LIBS:+:$R_LIBS}"
if ! run Rscript tools/test.R "$filter"; then
  if [ -s "$work/at" ]; then
    echo "The last damage: $(cat "$work/at")"
  fi
  exit 1
fi
