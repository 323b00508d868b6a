#ifndef TB_DATA_FAULT_H
#define TB_DATA_FAULT_H

/* What is wrong with a file. R/source-file.R words it, in this order. */
enum tb_file_fault {
  TB_FILE_ok,
  TB_FILE_unreadable,  /* it cannot be opened or read */
  TB_FILE_foreign,     /* it is no file of rows */
  TB_FILE_byte_order,  /* it is one of another machine */
  TB_FILE_version,     /* it is one of another version of the format */
  TB_FILE_damaged,     /* its head is not what was written */
  TB_FILE_truncated,   /* rows are missing */
  TB_FILE_full,        /* there is no space for it */
  TB_FILE_unwritable,  /* it cannot be written */
  TB_FILE_memory,      /* there is no memory */
  TB_FILE_unsupported, /* this system maps no files */
  TB_FILE_altered,     /* its rows are not those that were written */
  TB_FILE_exists,      /* there is another file where it is to be */
  TB_FILE_fault_count
};

#endif
