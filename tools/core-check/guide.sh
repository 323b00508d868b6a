#!/bin/sh
# Builds the core with the members that vignettes/add-a-member.Rmd writes, and
# tests it. Each block of C there is a whole file, which goes where its table
# says, with the lines that the vignette asks for: in the family's registry.c
# and, of a kernel, in test-kernels.c.
#   guide.sh "compiler and flags" "libraries"
set -eu
cd "$(dirname "$0")"
page=../../vignettes/add-a-member.Rmd
out=build/guide
rm -rf $out
mkdir -p $out/src $out/tests
cp *.c *.h $out/tests/

# ---- the blocks --------------------------------------------------------------

# "family room name" of each, whose file is src/room/name.c
awk -v out=$out/src '
  BEGIN {
    room["store"] = "data"; room["response"] = "responses"
    room["model"] = "models"; room["estimator"] = "gradients"
    room["scheme"] = "subsampling"; room["kernel"] = "kernels"
    room["schedule"] = "schedules"
  }
  /^```c$/ { inside = 1; text = ""; name = ""; from = FNR; next }
  inside && /^```$/ {
    inside = 0
    if (name == "") {
      print FILENAME ":" from ": no whole file, it has no table" > "/dev/stderr"
      exit 1
    }
    file = name; gsub("_", "-", file)
    system("mkdir -p " out "/" room[family])
    path = out "/" room[family] "/" file ".c"
    # the compiler tells the lines of the vignette
    printf "#line %d \"%s\"\n%s", from + 1, FILENAME, text > path
    close(path)
    print family, room[family], name, path
    next
  }
  inside {
    text = text $0 "\n"
    if ($0 ~ /^const struct tb_[a-z]+_type tb_/) {
      split($3, part, "_"); family = part[2]
      name = $4; sub("tb_" family "_", "", name)
    }
  }
' $page >$out/members
test -s $out/members

# ---- their lines -------------------------------------------------------------

# that of responses has those of the tests already
registry_of() {
  if [ "$1" = responses ]; then
    echo build/registry-responses.c
  else
    echo ../../src/"$1"/registry.c
  fi
}

while read -r family room name path; do
  registry=$out/src/$room/registry.c
  test -f "$registry" || cp "$(registry_of "$room")" "$registry"
  awk -v name="$name" -f with-member.awk "$registry" \
    >$out/with
  mv $out/with "$registry"
  if [ "$family" = kernel ]; then
    awk -v name="$name" '
      { print }
      !seen && /^    \{\.kernel = / {
        seen = 1; print "    {.kernel = \"" name "\"},"
      }
      END { exit !seen }
    ' $out/tests/test-kernels.c >$out/with
    mv $out/with $out/tests/test-kernels.c
  fi
done <$out/members

# ---- build and test ----------------------------------------------------------

# members alone first: what is wrong with them comes first
own=$(cut -d ' ' -f 4 $out/members)
for path in $own; do
  $1 -c "$path" -o $out/one.o
done
replaced=$(cd $out/src && echo */registry.c)
files=
for path in ../../src/*/*.c; do
  case " $replaced ../ffi " in
  *" ${path#../../src/} "*) ;;
  *)
    case $path in
    ../../src/ffi/*) ;;
    *) files="$files $path" ;;
    esac
    ;;
  esac
done
registries=$(ls $out/src/*/registry.c)
# shellcheck disable=SC2086
$1 $files $registries $own $out/tests/*.c -o $out/check $2
$out/check
