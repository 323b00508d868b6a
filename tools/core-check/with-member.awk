# A family's registry.c with one more member at its end.
#   awk -v name=student -f with-member.awk registry.c
/^#define MEMBERS/ { inside = 1 }
inside && !/\\$/ {
  print $0 " \\"
  print "  MEMBER(" name ")"
  inside = 0
  seen = 1
  next
}
{ print }
END { exit !seen }
