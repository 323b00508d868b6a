# Automatic differentiation: recording tapes, and whether they are right.

# The gradient of target$f in x: what C or run_tape() run. RTMB's reverse sweep
# is recorded itself, for x alone, and what it does not need is left out.
record <- function(target) {
  x <- seq_len(target$n_x)
  gradient <- function(z) {
    inner <- RTMB::MakeTape(function(x) target$f(x, z), target$z0[x])
    inner$jacfun()(z[x])
  }
  stored <- function(none) {
    z <- RTMB::advector(target$z0)
    # makes all of z one node of the tape, which stores it; a node for each
    # number would take as long as the rest
    -z
    gradient(z)
  }
  tape <- make_tape(stored, numeric())
  lent <- lend_tape(tape, length(target$z0))
  if (!is.null(lent)) {
    return(lent)
  }
  tape <- make_tape(gradient, target$z0)
  list(x = target$z0 + 0, run = function(z) as.double(tape(z)))
}

make_tape <- function(f, x) {
  tape <- with_tape_config(suppressWarnings(RTMB::MakeTape(f, x)))
  tape$simplify("eliminate")
  tape
}

retaped_sum <- function(log_lik, theta, batch, weights) {
  x <- unlist(theta, use.names = FALSE)
  f <- function(x) sum(weights * log_lik(as_theta(x, theta), batch))
  as.double(make_tape(f, x)$jacobian(x))
}

# Of each row, n x n_natural.
retaped_rows <- function(log_lik, theta, batch) {
  x <- unlist(theta, use.names = FALSE)
  n <- NROW(if (is.list(batch)) batch[[1]] else batch)
  f <- function(x) log_lik(as_theta(x, theta), batch)
  if (n <= 2 * length(x)) {
    return(make_tape(f, x)$jacobian(x))
  }
  # sum_k w_k dl_k / dx is linear in w: as many sweeps as parameters, not as
  # rows
  in_weights <- make_tape(
    function(w) RTMB::MakeTape(function(x) sum(w * f(x)), x)$jacfun()(x),
    numeric(n)
  )
  t(in_weights$jacobian(numeric(n)))
}

# Products of matrices and operations on vectors as one node each.
with_tape_config <- function(code) {
  old <- RTMB::TapeConfig(
    matmul = "compact",
    ops = "vectorize",
    math = "vectorize",
    sum = "vectorize",
    sparse = "vectorize",
    comparison = "forbid"
  )
  on.exit(RTMB::TapeConfig(old))
  code
}

# Pointers to a tape and to what it reads and writes, for C; NULL where there
# are none or where an operation could throw an exception through C.
lend_tape <- function(tape, n_z) {
  space <- asNamespace("RTMB")
  wanted <- c("setinvIndex", "ptr_getx", "ptr_gety")
  if (!all(vapply(wanted, exists, NA, envir = space, inherits = FALSE))) {
    return(NULL)
  }
  nodes <- sub("Op$", "", colnames(tape$graph()))
  known <- all(nodes %in% c(tape_nodes, paste0("V", tape_nodes)))
  variables <- tape$data.frame()
  is_input <- variables$Node == 0
  if (!known || nodes[[1]] != "Data" || sum(is_input) != n_z) {
    return(NULL)
  }
  tryCatch(
    {
      pointer <- get(".pointer", as.environment(environment(tape)$mod))
      space$setinvIndex(pointer, which(is_input) - 1L)
      list(
        tape = pointer,
        x = space$ptr_getx(pointer),
        y = space$ptr_gety(pointer),
        keep = tape
      )
    },
    error = function(e) NULL
  )
}

tape_nodes <- c(
  "Abs", "Acos", "Acosh", "Add", "Alloc", "Asin", "Asinh", "Atan", "Atan2",
  "Atanh", "CExpEq", "CExpGe", "CExpGt", "CExpLe", "CExpLt", "CExpNe", "Ceil",
  "Const", "Copy", "Cos", "Cosh", "D_lgamma", "Data", "Dep", "Div", "Exp",
  "Expm1", "Floor", "Ge0", "Inv", "Log", "Log1p", "Lt0", "MatMul", "Max",
  "Min", "Mul", "Neg", "Null", "Pow", "Rep", "Round", "Sign", "Sin", "Sinh",
  "Sqrt", "Sub", "Sum", "Tan", "Tanh", "Trunc", "Zero", "logspace_add",
  "subset", "subset_adj"
)

# What a tape makes of z.
run_tape <- function(made, z, n_x) {
  if (is.null(made$tape)) made$run(z) else .Call(ffi_tape_run, made, z, n_x)
}

# ---- do they work? -----------------------------------------------------------

# TRUE, or list(reason, where, parent).
tape_works <- function(log_lik, at, inputs, rows) {
  at_tape(log_lik, function(masked) {
    # recorded on rows in the opposite order, and on one of them
    is_right(log_lik, masked, at, inputs, rows, rev(rows)) &&
      is_right(log_lik, masked, at, inputs, rows[[1]], rows[[length(rows)]])
  })
}

is_right <- function(log_lik, masked, at, inputs, rows, recorded) {
  made <- record(weighted_log_lik(masked, at, inputs, recorded, kept = rows))
  x <- nudge(at)
  weights <- 1 + cos(seq_along(rows)) / 2
  ours <- run_tape(made, c(x, read_rows(at, inputs, rows), weights), length(x))
  agrees(ours, weighted_value(log_lik, at, rows, weights), x, at)
}

retape_works <- function(log_lik, at, rows) {
  at_tape(log_lik, function(masked) {
    batch <- take_rows(at$data, at$n_data, rows)
    x <- nudge(at)
    weights <- 1 + cos(seq_along(rows)) / 2
    ours <- retaped_sum(masked, as_theta(x, at$init), batch, weights)
    agrees(ours, weighted_value(log_lik, at, rows, weights), x, at)
  })
}

# Without a tape, a function of x.
weighted_value <- function(log_lik, at, rows, weights) {
  batch <- take_rows(at$data, at$n_data, rows)
  function(x) sum(weights * log_lik(as_theta(x, at$init), batch))
}

prior_works <- function(log_prior, at) {
  at_tape(log_prior, function(masked) {
    made <- record(weighted_log_prior(masked, at))
    x <- nudge(at)
    value <- function(x) log_prior(as_theta(x, at$init))
    agrees(run_tape(made, c(x, 1), length(x)), value, x, at)
  })
}

at_tape <- function(f, test) {
  masked <- mask_function(f)
  where <- NULL
  tryCatch(
    withCallingHandlers(
      if (test(masked)) {
        TRUE
      } else {
        list(reason = "what its tape gives disagrees with finite differences")
      },
      error = function(e) where <<- where %||% failing_call()
    ),
    error = function(e) {
      list(
        reason = conditionMessage(e),
        where = if (!is.null(where)) rlang::as_label(where),
        hint = tape_hint(where),
        parent = e
      )
    }
  )
}

# What the user's functions were calling.
failing_call <- function() {
  for (k in rev(seq_len(sys.nframe()))) {
    env <- environment(sys.function(k))
    if (is.null(env) || !exists(mask_mark, envir = env)) {
      next
    }
    below <- which(sys.parents() == k & seq_len(sys.nframe()) > k)
    if (length(below) == 0) {
      return(NULL)
    }
    # the last, as what is an argument of a call is called after it
    at <- below[[length(below)]]
    call <- sys.call(at)
    generic <- get0(".Generic", sys.frame(at), inherits = FALSE)
    if (is.character(generic)) {
      call[[1]] <- as.name(generic) # theta$a > 0, not Ops.advector(theta$a, 0)
    }
    return(call)
  }
}

# A point beside init, within the range of the transforms.
nudge <- function(at) {
  shift <- 0.1 * cos(seq_along(unlist(at$init)))
  first <- 0
  moved <- lapply(names(at$init), function(name) {
    x <- as.double(at$init[[name]])
    by <- shift[first + seq_along(x)]
    first <<- first + length(x)
    switch(
      at$kind[[name]],
      real = x + by,
      positive = x * exp(by),
      unit = stats::plogis(stats::qlogis(x) + by),
      simplex = x * exp(by) / sum(x * exp(by))
    )
  })
  unlist(moved)
}

# The gradient against central differences of `value` in a few directions.
agrees <- function(ours, value, x, at) {
  if (length(ours) != length(x) || !all(is.finite(ours))) {
    return(FALSE)
  }
  kind <- rep(at$kind, lengths(at$init))
  size <- ifelse(kind == "real", pmax(1, abs(x)), abs(x))
  size[kind == "unit"] <- pmin(x, 1 - x)[kind == "unit"]
  here <- try_number(value(x))
  h <- .Machine$double.eps^(1 / 3)
  for (k in 1:3) {
    v <- size * cos(k * seq_along(x)) / sqrt(length(x))
    change <- try_number(value(x + h * v) - value(x - h * v)) / (2 * h)
    if (!isTRUE(is.finite(change)) || !isTRUE(is.finite(here))) {
      next
    }
    room <- 1e-5 * max(abs(change), sum(abs(ours * v))) + 1e-8 * (1 + abs(here))
    if (abs(change - sum(ours * v)) > room) {
      return(FALSE)
    }
  }
  TRUE
}

# ---- what is said of a call that failed --------------------------------------

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
