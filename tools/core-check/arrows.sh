#!/bin/sh
# A file may include headers of its own room and of those before it in the file
# `rooms`, by what they know. Prints the arrows that point upwards, and fails.
cd "$(dirname "$0")/../../src" || exit 1
rooms=$(tr '\n' ' ' <../tools/core-check/rooms)
grep -noE '^#include "[a-z]+/[a-z-]+\.h"|^#include [<"](R|Rinternals|Rmath|R_ext/[A-Za-z]+)\.h' -r . --include='*.[ch]' |
  sed -E 's#^\./##' |
  awk -F: -v rooms="$rooms" '
    BEGIN {
      n = split(rooms, order, " ")
      for (k = 1; k <= n; ++k) rank[order[k]] = k
    }
    {
      split($1, from, "/")
      room = index($1, "/") > 0 ? from[1] : "ffi"
      if ($3 !~ /"[a-z]+\//) {
        # R: below the doors only the declarations of its BLAS and LAPACK
        if (room != "ffi" && $1 !~ /^base\/(blas|lapack)\.h$/) {
          print $1 ":" $2 ": " $3; bad = 1
        }
        next
      }
      split($3, quoted, "\"")
      split(quoted[2], to, "/")
      if (!(room in rank) || !(to[1] in rank) || rank[to[1]] > rank[room]) {
        print $1 ":" $2 ": " quoted[2]; bad = 1
      }
    }
    END { exit bad }'
