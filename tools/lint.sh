#!/usr/bin/env bash
# Formatting of the C (clang-format 14, whose other versions differ; see
# .clang-format) and lintr's checks of the R (.lintr). Prints each offence as
# file:line: message; the last line counts files.
#   tools/lint.sh          everything
#   tools/lint.sh c        the C only; `r`: the R only
set -euo pipefail
cd "$(dirname "$0")/.."

what=${1:-all}
passed=0
failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# The binary of version 14, whatever it is called; nothing without one.
find_formatter() {
  local name
  for name in clang-format-14 clang-format; do
    if command -v "$name" >/dev/null &&
      "$name" --version | grep -q 'version 14[.]'; then
      echo "$name"
      return
    fi
  done
}

check_c() {
  local formatter messages n n_failed
  formatter=$(find_formatter)
  if [ -z "$formatter" ]; then
    echo "The format of the C is not checked: there is no clang-format 14."
    return
  fi
  # generated code has no format
  find src inst tests tools -name '*.[ch]' ! -path '*/build/*' \
    ! -path src/base/ziggurat-tables.h | sort >"$log"
  n=$(wc -l <"$log")
  # "file:line:column: error: ..." and the line itself; the first is enough
  messages=$({ xargs "$formatter" --dry-run --Werror <"$log" 2>&1 || true; } |
    sed -nE 's/^([^:]+:[0-9]+):[0-9]+: error: (.*) \[.*/\1: \2/p' |
    uniq)
  if [ -n "$messages" ]; then
    echo "$messages"
  fi
  n_failed=$(echo "$messages" | sed -nE 's/^([^:]+):.*/\1/p' | sort -u | wc -l)
  passed=$((passed + n - n_failed))
  failed=$((failed + n_failed))
}

# Its last line counts, too; its status says no more.
check_r() {
  local counts
  Rscript tools/lint.R 2>&1 | tee "$log" || true
  counts=$(tail -n 1 "$log")
  case $counts in
  *" passed, "*" failed") ;;
  *)
    echo "tools/lint.R: stopped"
    failed=$((failed + 1))
    return
    ;;
  esac
  passed=$((passed + ${counts%% passed*}))
  counts=${counts#*, }
  failed=$((failed + ${counts%% failed*}))
}

if [ "$what" != r ]; then
  check_c
fi
if [ "$what" != c ]; then
  check_r
fi

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
