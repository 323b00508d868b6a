#!/bin/sh
# Which file of the core uses which. A file is its .c with the .h of the same
# name; it uses another whose header it includes, or whose functions or tables
# it names. Prints the arrows that point to a room above (see rooms), and those
# that go round, and fails if there is one.
#   circles.sh build/objects/room/file.o ..
set -eu
cd "$(dirname "$0")"
{
  sed 's/^/room /' rooms
  (cd ../../src && grep -oE '^#include "[a-z]+/[a-z0-9-]+\.h"' */*.[ch]) |
    sed -E 's/^([^:]*)\.[ch]:#include "(.*)\.h"$/uses \1 \2/'
  nm -A "$@" |
    sed -E 's#^build/objects/(.*)\.o:[0-9a-f]* *#symbol \1 #'
} | awk '
  function use(from, to) {
    if (from != to && !((from, to) in arrow)) {
      arrow[from, to] = 1
    }
  }
  $1 == "room" { rank[$2] = ++n_room }
  $1 == "uses" { use($2, $3) }
  # an upper case letter is a symbol that others see, U one that is elsewhere
  $1 == "symbol" && $3 == "U" { needed[$2, $4] = 1 }
  $1 == "symbol" && $3 ~ /^[BDRTVW]$|^i$/ { home[$4] = $2 }
  END {
    for (pair in needed) {
      split(pair, part, SUBSEP)
      if (part[2] in home) use(part[1], home[part[2]])
    }
    for (pair in arrow) {
      split(pair, part, SUBSEP)
      split(part[1], from, "/")
      split(part[2], to, "/")
      if (!(from[1] in rank) || !(to[1] in rank) ||
          rank[to[1]] > rank[from[1]]) {
        print "upwards:", part[1], "->", part[2]
        bad = 1
      }
    }
    # Who uses nobody, or is used by nobody, is in no circle: what is left when
    # all of them have gone is.
    do {
      gone = 0
      delete goes_out
      delete comes_in
      for (pair in arrow) {
        split(pair, part, SUBSEP)
        goes_out[part[1]] = comes_in[part[2]] = 1
      }
      for (pair in arrow) {
        split(pair, part, SUBSEP)
        if (!(part[2] in goes_out) || !(part[1] in comes_in)) {
          delete arrow[pair]
          gone = 1
        }
      }
    } while (gone)
    for (pair in arrow) {
      split(pair, part, SUBSEP)
      print "circle:", part[1], "->", part[2]
      bad = 1
    }
    exit bad
  }'
