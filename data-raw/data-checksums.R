# The checksums and numbers of rows in `data_sets` (R/util-data.R), printed from the
# files as they are, whatever the registry says.
#
# Sources and licences are in ?tall_data. How the files were checked before their
# checksums were taken:
#
#   sepsis       identical to a second public copy; comes with the package
#   casp         with the quotes of the source's header, of the size of CASP.csv
#                (3,528,710 bytes)
#   covertype    identical to covtype.data
#   arrhythmia   identical to arrhythmia.data
#   movielens    without its header, of the size of u.data (1,979,173 bytes);
#                ratings, users and items counted
#   meg          first ten channels; no second copy is known
#   newsgroups   documents, words and tokens counted
#
# Neither the files nor rows of movielens, meg and newsgroups may enter the
# package or the repository.
#
# Run with the package installed and TALLBAYES_DATA set:
#   Rscript data-raw/data-checksums.R

tall <- asNamespace("tallbayes")
for (name in names(tall$data_sets)) {
  for (table in tall$data_sets[[name]]$tables) {
    path <- tall$data_find(list(
      tables = list(table),
      bundled = tall$data_sets[[name]]$bundled
    ))
    data <- tall$table_rows(path, table, table$header)
    checksum <- tall$data_checksum(data)
    ok <- checksum == table$checksum && nrow(data) == table$n_row
    cat(
      table$file,
      nrow(data),
      checksum,
      if (ok) "as registered" else "NOT as registered",
      "\n"
    )
  }
}
