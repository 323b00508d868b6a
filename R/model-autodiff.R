# Gradients of model_custom() by automatic differentiation, through RTMB:
# plan_custom() finds out how, autodiff_engine() makes what C calls
# (src/ffi/tape.c).
#
# A tape reads x | rows of the data | weights and writes the gradient in x of
# the weighted log likelihood of as many rows as it was made for. Data that a
# tape cannot read (strings, dates, what `log_lik` compares or counts with) are
# constants on it; a model that uses such data is taped again for each
# minibatch. Integers, logicals and the codes of factors can be read where
# `log_lik` calculates with them or picks parameters by them: whether that is
# all it does is found out by trying.

# ---- the plan ----------------------------------------------------------------

# Where gradients come from. log_lik, log_prior: "function" (the user's),
# "tape", "retape" (a tape for each minibatch) or "differences"; inputs: the
# parts of the data that tapes read; constants: those used that they cannot.
plan_custom <- function(functions, data, n_data, init, kind, autodiff) {
  without <- function(f) if (is.null(f)) "differences" else "function"
  plan <- list(
    log_lik = without(functions$grad_log_lik),
    log_prior = without(functions$grad_log_prior)
  )
  if (!autodiff || !has_rtmb()) {
    return(plan)
  }
  at <- list(init = init, kind = kind, data = data, n_data = n_data)
  if (plan$log_lik == "differences") {
    found <- plan_log_lik(functions$log_lik, at)
    plan[names(found)] <- found
  }
  if (plan$log_prior == "differences") {
    plan$log_prior <- plan_log_prior(functions$log_prior, at)
  }
  plan
}

has_rtmb <- function() {
  rlang::is_installed("RTMB", version = "2.0")
}

# What fails at `init` without a tape is left to check_custom().
plan_log_lik <- function(log_lik, at) {
  rows <- telling_rows(at$data, at$n_data)
  batch <- take_rows(at$data, at$n_data, rows)
  value <- try_number(log_lik(at$init, batch))
  is_good <- is.double(value) && length(value) == length(rows) &&
    all(is.finite(value))
  if (!is_good) {
    return(NULL)
  }
  used <- Filter(
    function(k) uses_part(log_lik, at, batch, k, value),
    seq_along(data_parts(at$data))
  )
  plain <- vapply(data_parts(at$data), is_tape_number, NA)
  inputs <- used[plain[used]]
  works <- function(inputs) tape_works(log_lik, at, inputs, rows)
  if (all(plain[used]) && isTRUE(works(inputs))) {
    return(list(log_lik = "tape", inputs = inputs))
  }
  # a parameter may be to blame, or a part of the data
  outcome <- retape_works(log_lik, at, rows)
  if (!isTRUE(outcome)) {
    abort_tape("log_lik", outcome)
  }
  alone <- inputs[!vapply(inputs, function(k) isTRUE(works(k)), NA)]
  constants <- sort(c(used[!plain[used]], alone))
  if (length(constants) == 0) {
    constants <- used
  }
  list(log_lik = "retape", constants = parts_text(at$data, constants))
}

plan_log_prior <- function(log_prior, at) {
  value <- try_number(log_prior(at$init))
  if (!is.double(value) || length(value) != 1 || !is.finite(value)) {
    return("differences")
  }
  outcome <- prior_works(log_prior, at)
  if (!isTRUE(outcome)) {
    abort_tape("log_prior", outcome)
  }
  "tape"
}

try_number <- function(expr) {
  tryCatch(suppressWarnings(expr), error = function(e) NULL)
}

abort_tape <- function(name, outcome) {
  gradient <- paste0("grad_", name)
  reason <- sub("[.]$", "", outcome$reason)
  abort_input(
    c(
      "{.fn {name}} could not be differentiated: {reason}.",
      x = if (!is.null(outcome$where)) "It was at {.code {outcome$where}}.",
      i = outcome$hint,
      i = "Write it without comparisons of parameters and with functions that
           {.pkg RTMB} knows, give {.arg {gradient}}, or take central
           differences with {.code autodiff = FALSE}."
    ),
    argument = name,
    parent = outcome$parent
  )
}

# What RTMB has for a call that failed, as a sentence; NULL where nothing is
# known.
tape_hint <- function(call) {
  name <- called_function(call)
  if (is.null(name)) {
    return(NULL)
  }
  instead <- tape_instead[[name]]
  known <- intersect(getNamespaceExports("RTMB"), distributions(name))
  if (!is.null(instead)) {
    paste0("{.pkg RTMB} has no {.fn ", name, "}, but ", instead, ".")
  } else if (name %in% getNamespaceExports("RTMB")) {
    arguments_hint(name, call)
  } else if (length(known) > 0) {
    known <- paste0("{.fn ", sort(known), "}", collapse = ", ")
    paste0("{.pkg RTMB} has no {.fn ", name, "}. It has ", known, ".")
  }
}

# The name of a function that is called as f() or package::f().
called_function <- function(call) {
  if (!is.call(call)) {
    return(NULL)
  }
  f <- call[[1]]
  if (rlang::is_call(f, c("::", ":::"), n = 2)) {
    f <- f[[3]]
  }
  if (is.name(f)) as.character(f)
}

# Those of `stats` of the same kind, as dnorm() and dgamma() are: where a name
# is one of them.
distributions <- function(name) {
  letter <- substr(name, 1, 1)
  # those with random numbers: dnorm() has rnorm()
  random <- grep("^r", getNamespaceExports("stats"), value = TRUE)
  all <- paste0(letter, substring(random, 2))
  if (letter %in% c("d", "p", "q") && name %in% all) all
}

# RTMB's version is there, but not for all arguments: methods say which must be
# missing.
arguments_hint <- function(name, call) {
  f <- getExportedValue("RTMB", name)
  if (!methods::is(f, "standardGeneric")) {
    return(NULL)
  }
  lacking <- lapply(methods::findMethods(f), function(method) {
    at <- method@defined
    at@names[at@.Data == "missing"]
  })
  lacking <- Reduce(intersect, lacking[lengths(lacking) > 0])
  known <- setdiff(names(formals(args(f))), lacking)
  given <- names(match.call(args(f), call, expand.dots = FALSE))
  lacking <- intersect(given, lacking)
  if (length(lacking) == 0) {
    return(NULL)
  }
  paste0(
    "Of the arguments of {.fn ", name, "}, {.pkg RTMB} knows ",
    paste0("{.arg ", known, "}", collapse = ", "),
    ", but not ",
    paste0("{.arg ", lacking, "}", collapse = ", "),
    "."
  )
}

# The same by what RTMB has, or in other words.
tape_instead <- list(
  beta = "{.code exp(lbeta(a, b))} is the same",
  choose = "{.code exp(lchoose(n, k))} is the same",
  dgeom = "{.code dnbinom(x, 1, prob)} is the same",
  dmvnorm = "{.fn RTMB::dmvnorm} is the same",
  dunif = "{.code -log(max - min)} is the same between the bounds",
  factorial = "{.code exp(lgamma(x + 1))} is the same",
  gamma = "{.code exp(lgamma(x))} is the same for a positive number",
  lfactorial = "{.code lgamma(x + 1)} is the same",
  mahalanobis = "{.fn solve}, and {.fn RTMB::dmvnorm} for a normal density",
  pmax = "{.code (a + b + abs(a - b)) / 2} is the larger one",
  pmin = "{.code (a + b - abs(a - b)) / 2} is the smaller one",
  plnorm = "{.code pnorm(log(q), meanlog, sdlog)} is the same"
)

# ---- the data ----------------------------------------------------------------

# A list of arrays, whatever the data are.
data_parts <- function(data) {
  if (is.list(data)) unclass(data) else list(data)
}

# "`g` is a factor, `k` integer"
parts_text <- function(data, which) {
  if (!is.list(data)) {
    return(paste("the data are", typeof(data)))
  }
  text <- vapply(names(data)[which], function(name) {
    x <- data[[name]]
    kind <- if (is.factor(x)) "a factor" else if (is.object(x)) class(x)[[1]]
    paste0("`", name, "` is ", kind %||% typeof(x))
  }, "")
  paste(text, collapse = ", ")
}

is_tape_number <- function(x) {
  is.factor(x) ||
    (typeof(x) %in% c("double", "integer", "logical") && !is.object(x))
}

# Rows as a batch. The data have the observation as their last dimension.
take_rows <- function(data, n_data, rows) {
  take <- function(x) {
    dim <- dim(x)
    if (is.null(dim)) {
      return(x[rows])
    }
    k <- length(dim)
    names <- dimnames(x)
    dim(x) <- c(length(x) / n_data, n_data)
    x <- array(x[, rows], c(dim[-k], length(rows)))
    x <- aperm(x, c(k, seq_len(k - 1)))
    if (!is.null(names)) {
      dimnames(x) <- names[c(k, seq_len(k - 1))]
    }
    x
  }
  if (!is.list(data)) {
    return(take(data))
  }
  as_batch(lapply(unclass(data), take), data, length(rows))
}

# Parts in the form of the data.
as_batch <- function(parts, data, n) {
  attributes(parts) <- NULL
  names(parts) <- names(data)
  if (is.data.frame(data)) {
    class(parts) <- "data.frame"
    attr(parts, "row.names") <- .set_row_names(n)
  }
  parts
}

# Rows on which a tape that went wrong is told from one that did not: some of
# all, and of each of the first columns the smallest, the largest, a zero and
# the levels.
telling_rows <- function(data, n_data) {
  some <- spread_rows(n_data, 20)
  searched <- spread_rows(n_data, 1e5)
  columns <- unlist(
    lapply(Filter(is_tape_number, data_parts(data)), function(x) {
      m <- length(x) / n_data
      lapply(seq_len(min(m, 20)), function(j) x[(searched - 1) * m + j])
    }),
    recursive = FALSE
  )
  telling <- lapply(utils::head(columns, 20), function(x) {
    levels <- utils::head(seq_along(levels(x)), 50)
    x <- as.double(x)
    values <- c(min(x, na.rm = TRUE), max(x, na.rm = TRUE), 0, levels)
    searched[stats::na.omit(match(values, x))]
  })
  # unlike the data themselves, which a function may see by another way
  rev(unique(c(some, unlist(telling))))
}

# Does it matter to log_lik that a part is there?
uses_part <- function(log_lik, at, batch, k, value) {
  if (!is.list(batch)) {
    return(TRUE)
  }
  batch[[k]] <- NULL
  !identical(try_number(log_lik(at$init, batch)), value)
}

# ---- tapes -------------------------------------------------------------------

# The parameters as `theta`, from their numbers, which may be on a tape.
as_theta <- function(x, init) {
  last <- cumsum(lengths(init))
  theta <- lapply(seq_along(init), function(k) {
    n <- length(init[[k]])
    one <- x[last[[k]] - n + seq_len(n)]
    shape_as(one, init[[k]])
  })
  stats::setNames(theta, names(init))
}

shape_as <- function(x, like) {
  if (!is.null(dim(like))) {
    dim(x) <- dim(like)
    dimnames(x) <- dimnames(like)
  } else if (!is.null(names(like))) {
    names(x) <- names(like)
  }
  x
}

# sum_k c_k l_k as a function of x and z = x | rows | c; z0: where to record
# it, with what a tape reads from `rows` of the data, and the rest from those
# `kept`.
weighted_log_lik <- function(log_lik, at, inputs, rows, kept = rows) {
  batch <- take_rows(at$data, at$n_data, kept)
  parts <- data_parts(batch)
  n <- length(rows)
  n_x <- length(unlist(at$init))
  n_of <- lengths(parts)[inputs]
  end <- n_x + cumsum(n_of)
  n_z <- n_x + sum(n_of) + n
  f <- function(x, z) {
    for (k in seq_along(inputs)) {
      one <- z[end[[k]] - n_of[[k]] + seq_len(n_of[[k]])]
      parts[[inputs[[k]]]] <- shape_as(one, parts[[inputs[[k]]]])
    }
    batch <- if (is.list(batch)) as_batch(parts, batch, n) else parts[[1]]
    sum(z[n_z - n + seq_len(n)] * log_lik(as_theta(x, at$init), batch))
  }
  z0 <- c(unlist(at$init), read_rows(at, inputs, rows), rep(1, n))
  list(f = f, z0 = as.double(z0), n_x = n_x)
}

# The numbers that a tape reads.
read_rows <- function(at, inputs, rows) {
  parts <- data_parts(take_rows(at$data, at$n_data, rows))
  unlist(lapply(parts[inputs], as.double))
}

# The same of the prior: z = x | 1.
weighted_log_prior <- function(log_prior, at) {
  n_x <- length(unlist(at$init))
  list(
    f = function(x, z) z[n_x + 1] * log_prior(as_theta(x, at$init)),
    z0 = as.double(c(unlist(at$init), 1)),
    n_x = n_x
  )
}
