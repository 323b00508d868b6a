# A family's registry.c with one more member at its end.
#   awk -v family=response -v name=student -f with-member.awk registry.c
BEGIN { type = "tb_" family "_type"; member = "tb_" family "_" name }
!seen && $0 ~ "^const struct " type "[*] const " {
  seen = 1; print "extern const struct " type " " member ";"
}
seen == 1 && sub("NULL", "\\&" member ", NULL") { seen = 2 }
{ print }
END { exit seen != 2 }
