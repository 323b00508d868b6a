# Checks of arguments. Each returns its argument, invisibly and in the type
# that its name promises, or raises a `tall_error_input` that names the
# argument, what it must be and what it is.

# An argument without default is there.
check_given <- function(x, arg = caller_arg(x)) {
  if (missing(x)) {
    abort_input(
      "{.arg {arg}} must be given: it has no default.",
      argument = arg
    )
  }
}

is_plain_numeric <- function(x) {
  is.numeric(x) && !is.object(x)
}

is_number <- function(x) {
  is_plain_numeric(x) && length(x) == 1 && is.null(dim(x))
}

# A finite number, as double.
check_number <- function(
  x,
  min = -Inf,
  max = Inf,
  positive = FALSE,
  allow_null = FALSE,
  arg = caller_arg(x)
) {
  check_given(x, arg = arg)
  if (allow_null && is.null(x)) {
    return(invisible(NULL))
  }
  ok <- is_number(x) &&
    is.finite(x) &&
    x >= min &&
    x <= max &&
    (!positive || x > 0)
  if (!ok) {
    what <- paste(c("a", if (positive) "positive", "number"), collapse = " ")
    expected <- paste0(what, range_text(min, max), or_null(allow_null))
    abort_expected(x, expected, arg = arg)
  }
  invisible(as.double(x))
}

# A whole number, as double: counts of rows may exceed the largest integer. What
# is beyond `most` is a mistake; it is said to those who make it alone.
check_count <- function(
  x,
  min = 1,
  max = Inf,
  allow_null = FALSE,
  most = count_limits$whole,
  arg = caller_arg(x)
) {
  check_given(x, arg = arg)
  if (allow_null && is.null(x)) {
    return(invisible(NULL))
  }
  is_finite <- is_number(x) && is.finite(x)
  if (is_finite && x > most) {
    max <- pmin(max, most)
  }
  ok <- is_finite && x == round(x) && x >= min && x <= max
  if (!ok) {
    expected <- paste0(
      "a whole number",
      range_text(min, max),
      or_null(allow_null)
    )
    abort_expected(x, expected, arg = arg)
  }
  invisible(as.double(x))
}

# What check_count() takes for mistakes.
count_limits <- list(
  whole = 2^53,                    # doubles no longer tell numbers apart
  integer = .Machine$integer.max,
  iter = 1e10,
  chains = 1e6
)

# Threads, or workers. A process has no use for more than `most`, and what asks
# for more need not be an integer of R or C.
check_cores <- function(x, most = 1024, arg = caller_arg(x)) {
  check_count(x, arg = arg)
  if (x > 1 && !blas_takes_threads()) {
    inform_blas(arg)
    x <- 1
  }
  invisible(min(as.double(x), most))
}

# Debian's OpenBLAS without threads of its own (libopenblas0-serial) has no
# locks either: called by several threads at once it gives wrong products, one
# in some thousand. It is known by its folder.
blas_takes_threads <- function(blas = extSoftVersion()[["BLAS"]]) {
  !grepl("openblas-serial", blas, fixed = TRUE)
}

inform_blas <- function(arg) {
  cli::cli_inform(
    c(
      "Chains run one after another, whatever {.arg {arg}} is.",
      x = "R's BLAS, {.pkg libopenblas0-serial}, gives wrong results when
           several threads call it.",
      i = "The package {.pkg libopenblas0-pthread} of Debian is right."
    ),
    class = "tall_message_cores",
    .frequency = "once",
    .frequency_id = "tallbayes_blas"
  )
}

# Significant digits to print.
check_digits <- function(x, arg = caller_arg(x)) {
  check_count(x, max = 22, arg = arg)
}

# TRUE or FALSE.
check_flag <- function(x, arg = caller_arg(x)) {
  if (!is.logical(x) || length(x) != 1 || is.na(x)) {
    abort_expected(x, "TRUE or FALSE", arg = arg)
  }
  invisible(as.logical(x))
}

check_string <- function(x, allow_null = FALSE, arg = caller_arg(x)) {
  if (allow_null && is.null(x)) {
    return(invisible(NULL))
  }
  if (!is.character(x) || length(x) != 1 || is.na(x)) {
    expected <- paste0("a string", or_null(allow_null))
    abort_expected(x, expected, arg = arg)
  }
  invisible(as.character(x))
}

# One of `choices`; an argument left at its default, which is all of them, is
# the first.
check_choice <- function(x, choices, arg = caller_arg(x)) {
  check_given(x, arg = arg)
  if (identical(x, choices)) {
    return(invisible(choices[[1]]))
  }
  if (!is.character(x) || length(x) != 1 || !x %in% choices) {
    expected <- paste0(
      if (length(choices) > 1) "one of ",
      quote_all(choices, last = "or")
    )
    hint <- did_you_mean(x, choices)
    abort_expected(x, expected, hint, arg = arg)
  }
  invisible(x)
}

# NULL, or a whole number as set.seed() takes it.
check_seed <- function(x, arg = caller_arg(x)) {
  check_count(x, min = -Inf, allow_null = TRUE, arg = arg)
  limit <- .Machine$integer.max
  check_count(x, -limit, limit, allow_null = TRUE, arg = arg)
}

# What a function of the user returns; its error is one of the argument.
call_user <- function(f, arg, ...) {
  tryCatch(f(...), error = function(e) {
    if (inherits(e, "tall_error")) {
      rlang::cnd_signal(e)
    }
    abort_input(
      "{.fn {arg}} failed.",
      argument = arg,
      parent = e
    )
  })
}

# Run `code` with the generator seeded, and put back as it was after; NULL: with
# the generator as it is. The kinds are R's defaults, whatever the user's are:
# the same seed, the same numbers.
with_seed <- function(seed, code) {
  if (is.null(seed)) {
    return(force(code))
  }
  keep_generator({
    set.seed(
      seed,
      kind = "Mersenne-Twister",
      normal.kind = "Inversion",
      sample.kind = "Rejection"
    )
    force(code)
  })
}

# R's generator is then what it was before.
keep_generator <- function(code) {
  before <- globalenv()$.Random.seed
  on.exit({
    if (!is.null(before)) {
      assign(".Random.seed", before, globalenv())
    } else if (!is.null(globalenv()$.Random.seed)) {
      rm(".Random.seed", envir = globalenv())
    }
  })
  force(code)
}

check_prob <- function(prob, arg = caller_arg(prob)) {
  ok <- is_number(prob) && is.finite(prob) && prob > 0 && prob < 1
  if (!ok) {
    expected <- "a number between 0 and 1, both excluded"
    abort_expected(prob, expected, arg = arg)
  }
  as.double(prob)
}

interval_probs <- function(prob) {
  (1 + c(-1, 1) * prob) / 2
}

# "5%"
percent <- function(probs, space = " ") {
  paste0(
    format(100 * probs, trim = TRUE, digits = 3, drop0trailing = TRUE),
    space,
    "%"
  )
}

# Columns x two probs, missing where a column is: quantile() without its sort
# of all and its price for each call.
column_quantiles <- function(x, probs) {
  at <- 1 + probs * (nrow(x) - 1)
  low <- floor(at)
  high <- ceiling(at)
  share <- at - low
  wanted <- unique(c(low, high))
  out <- matrix(NA_real_, ncol(x), length(probs))
  for (j in seq_len(ncol(x))) {
    column <- x[, j]
    if (!anyNA(column)) {
      sorted <- sort.int(column, partial = wanted)
      out[j, ] <- (1 - share) * sorted[low] + share * sorted[high]
    }
  }
  out
}
