# What print() says of a summary.

#' @rdname summary.tall_fit
#' @export
print.tall_summary <- function(x, digits = x$digits %||% 3, n = NULL, ...) {
  check_no_dots(...)
  digits <- check_digits(digits)
  n <- check_shown(n, if (isTRUE(x$is_chosen)) Inf else 30)
  print_header(x$fit, x$n_draws)
  table <- x$table
  rownames(table) <- table$variable
  table$variable <- NULL
  ess <- intersect(c("ess_bulk", "ess_tail", "ess_weights"), names(table))
  table[ess] <- round(table[ess])
  is_exact <- kernel_is_exact(x$fit$kernel)
  # of exact draws the footer says that there is none
  has_none <- is_exact && is.null(x$fit$quadrature)
  if (has_none || all(is.na(table$sd_bias))) {
    table$sd_bias <- table$sd_bias_se <- NULL
  } else if (is_exact) {
    most <- paste0("<=", percent_text(table$sd_bias + 5e-4), "%")
    table$sd_bias <- ifelse(is.finite(table$sd_bias), most, "?")
    table$sd_bias_se <- NULL
  } else {
    has_none <- is.na(table$sd_bias)
    table$sd_bias <- bias_text(table$sd_bias, table$sd_bias_se, label = "")
    table$sd_bias[has_none] <- ""
    table$sd_bias_se <- NULL
  }
  table <- without_bases(x$fit, table, isTRUE(x$is_chosen) || identical(n, Inf))
  at <- first_rows(rownames(table), n, auxiliary_variables(x$fit))
  shown <- table[at, , drop = FALSE]
  numbers <- vapply(shown, is.numeric, TRUE)
  shown[numbers] <- lapply(shown[numbers], signif, digits = digits + 1)
  print_estimates(x$fit, shown, digits, isTRUE(x$is_chosen))
  print_more(nrow(table) - length(at))
  if (!is.null(x$ratios)) {
    cat("\n", x$ratios$what, "\n", sep = "")
    print_table(x$ratios$table, digits)
  }
  print_footer(x$fit, agreement = x$table)
  cat_within_width(print_agreement_note(x$table, n_alive(x$fit), x$fit))
  invisible(x)
}

# ---- of a summary, as of a table ----------------------------

#' @rdname summary.tall_fit
#' @param row.names,optional Unused: the generic has them.
#' @export
as.data.frame.tall_summary <- function(
  x,
  row.names = NULL,
  optional = FALSE,
  ...
) {
  check_no_dots(...)
  x$table
}

#' @rdname summary.tall_fit
#' @export
as.matrix.tall_summary <- function(x, ...) {
  check_no_dots(...)
  out <- as.matrix(x$table[-1])
  rownames(out) <- x$table$variable
  out
}

# With two indices those of the matrix; with one, elements of the list.
#' @rdname summary.tall_fit
#' @param i,j,drop Rows and columns of the matrix of numbers, as of any matrix.
#' @export
`[.tall_summary` <- function(x, i, j, drop = TRUE) {
  n_given <- nargs() - !missing(drop)
  if (n_given < 3) {
    return(unclass(x)[i])
  }
  as.matrix(x)[i, j, drop = drop]
}
