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
plan_custom <- function(functions, data, n_data, init, kind, autodiff, call) {
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
    found <- plan_log_lik(functions$log_lik, at, call)
    plan[names(found)] <- found
  }
  if (plan$log_prior == "differences") {
    plan$log_prior <- plan_log_prior(functions$log_prior, at, call)
  }
  plan
}

has_rtmb <- function() {
  rlang::is_installed("RTMB", version = "2.0")
}

# What fails at `init` without a tape is left to check_custom().
plan_log_lik <- function(log_lik, at, call) {
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
    abort_tape("log_lik", outcome, call)
  }
  alone <- inputs[!vapply(inputs, function(k) isTRUE(works(k)), NA)]
  constants <- sort(c(used[!plain[used]], alone))
  if (length(constants) == 0) {
    constants <- used
  }
  list(log_lik = "retape", constants = parts_text(at$data, constants))
}

plan_log_prior <- function(log_prior, at, call) {
  value <- try_number(log_prior(at$init))
  if (!is.double(value) || length(value) != 1 || !is.finite(value)) {
    return("differences")
  }
  outcome <- prior_works(log_prior, at)
  if (!isTRUE(outcome)) {
    abort_tape("log_prior", outcome, call)
  }
  "tape"
}

try_number <- function(expr) {
  tryCatch(suppressWarnings(expr), error = function(e) NULL)
}

abort_tape <- function(name, outcome, call) {
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
    parent = outcome$parent,
    call = call
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

# ---- what C calls ------------------------------------------------------------

# list(tape, prior_tape, sum, rows), as ffi_model_custom() takes them.
autodiff_engine <- function(functions, data, n_data, init, kind, plan, state) {
  at <- list(init = init, kind = kind, data = data, n_data = n_data)
  engine <- list()
  if (plan$log_lik == "tape") {
    masked <- mask_function(functions$log_lik)
    some <- spread_rows(n_data, 50)
    engine$tape <- list(
      inputs = as.double(plan$inputs - 1),
      make = keeping(state, "log_lik", init, function(n) {
        record(weighted_log_lik(masked, at, plan$inputs, rep_len(some, n)))
      })
    )
  }
  if (plan$log_lik == "retape") {
    masked <- mask_function(functions$log_lik)
    engine$sum <- function(theta, batch, weights) {
      withCallingHandlers(
        retaped_sum(masked, theta, batch, weights),
        error = function(e) custom_fail(state, "log_lik", theta, parent = e)
      )
    }
    engine$rows <- function(theta, batch) {
      withCallingHandlers(
        retaped_rows(masked, theta, batch),
        error = function(e) custom_fail(state, "log_lik", theta, parent = e)
      )
    }
  }
  if (plan$log_prior == "tape") {
    masked_prior <- mask_function(functions$log_prior)
    engine$prior_tape <- list(
      inputs = numeric(),
      make = keeping(state, "log_prior", init, function(n) {
        record(weighted_log_prior(masked_prior, at))
      })
    )
  }
  engine
}

# make(n), whose value is kept for as long as the function: C has pointers into
# it.
keeping <- function(state, name, init, make) {
  kept <- list()
  function(n) {
    made <- withCallingHandlers(
      make(n),
      error = function(e) custom_fail(state, name, init, parent = e)
    )
    kept[[length(kept) + 1]] <<- made
    made
  }
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

# ---- functions that RTMB has versions of -------------------------------------

mask_mark <- "..tallbayes_tape.."

# A copy of a function, and of the functions of the same author that it calls,
# which finds RTMB's versions where it would find those of R itself. RTMB need
# not be attached, and nothing outside of the copy changes. done: pairs of
# functions and their copies, since functions may call each other.
mask_function <- function(f, overloads = tape_overloads(), done = new.env()) {
  if (is.primitive(f)) {
    return(f)
  }
  home <- environment(f)
  mask <- new.env(parent = home)
  assign(mask_mark, TRUE, envir = mask)
  masked <- f
  environment(masked) <- mask
  done$pairs <- c(done$pairs, list(list(f, masked)))
  for (name in names_in(f)) {
    found <- get0(name, envir = home, mode = "function")
    if (is.null(found)) {
      next
    }
    if (is_of_r(found)) {
      if (!is.null(overloads[[name]])) {
        assign(name, overloads[[name]], envir = mask)
      }
    } else if (identical(topenv(environment(found)), topenv(home))) {
      seen <- Find(function(pair) identical(pair[[1]], found), done$pairs)
      copy <- seen[[2]] %||% mask_function(found, overloads, done)
      assign(name, copy, envir = mask)
    }
  }
  masked
}

# Of everything that its code and its defaults mention.
names_in <- function(f) {
  is_given <- function(x) !rlang::is_missing(x)
  code <- c(list(body(f)), Filter(is_given, as.list(formals(f))))
  unique(unlist(lapply(code, all.names)))
}

r_packages <- c("base", "stats", "methods", "utils")

is_of_r <- function(f) {
  is.primitive(f) || environmentName(topenv(environment(f))) %in% r_packages
}

# By name; `::` gives them for stats::dnorm().
tape_overloads <- function() {
  names <- getNamespaceExports("RTMB")
  names <- intersect(
    names,
    unlist(lapply(r_packages, function(package) ls(asNamespace(package))))
  )
  overloads <- mget(names, envir = asNamespace("RTMB"), inherits = TRUE)
  # which RTMB looks up while it records
  for (name in c("c", "[<-", "diag<-")) {
    overloads[[name]] <- late_overload(name)
  }
  overloads[names(own_overloads)] <- own_overloads
  overloads[["::"]] <- function(pkg, name) {
    package <- as.character(substitute(pkg))
    name <- as.character(substitute(name))
    own <- if (package %in% r_packages) overloads[[name]]
    own %||% getExportedValue(package, name)
  }
  overloads
}

late_overload <- function(name) {
  force(name)
  function(...) RTMB::ADoverload(name)(...)
}

is_taped <- function(x) inherits(x, "advector")

tape_outer <- function(X, Y, FUN = "*", ...) {
  if (!is_taped(X) && !is_taped(Y)) {
    return(base::outer(X, Y, FUN, ...))
  }
  n <- c(length(X), length(Y))
  value <- match.fun(FUN)(rep(X, times = n[[2]]), rep(Y, each = n[[1]]), ...)
  dim(value) <- n
  value
}

tape_plogis <- function(
  q,
  location = 0,
  scale = 1,
  lower.tail = TRUE,
  log.p = FALSE
) {
  if (!is_taped(q) && !is_taped(location) && !is_taped(scale)) {
    return(stats::plogis(q, location, scale, lower.tail, log.p))
  }
  z <- (q - location) / scale
  if (!lower.tail) {
    z <- -z
  }
  if (log.p) {
    # without overflow on either side
    (z - abs(z)) / 2 - log1p(exp(-abs(z)))
  } else {
    1 / (1 + exp(-z))
  }
}

tape_dnbinom <- function(x, size, prob, mu, log = FALSE) {
  if (missing(mu)) {
    return(RTMB::dnbinom(x, size, prob, log = log))
  }
  if (!missing(prob)) {
    stop("'prob' and 'mu' both specified")
  }
  if (!is_taped(x) && !is_taped(size) && !is_taped(mu)) {
    return(stats::dnbinom(x, size, mu = mu, log = log))
  }
  # the variance less the mean is mu^2 / size
  log_mu <- base::log(mu)
  RTMB::dnbinom_robust(x, log_mu, 2 * log_mu - base::log(size), log = log)
}

# What RTMB has not, not with all arguments, or only element by element.
own_overloads <- list(
  dnbinom = tape_dnbinom,
  outer = tape_outer,
  plogis = tape_plogis,
  "^" = function(e1, e2) {
    if (is_taped(e1) && identical(e2, 2)) e1 * e1 else base::`^`(e1, e2)
  },
  unlist = function(x, recursive = TRUE, use.names = TRUE) {
    if (is.list(x) && any(vapply(x, is_taped, NA))) {
      return(do.call(late_overload("c"), unname(x)))
    }
    base::unlist(x, recursive, use.names)
  },
  vapply = function(X, FUN, FUN.VALUE, ..., USE.NAMES = TRUE) {
    RTMB::sapply(X, FUN, ..., USE.NAMES = USE.NAMES)
  },
  log = function(x, base = exp(1)) {
    if (missing(base)) base::log(x) else base::log(x) / base::log(base)
  },
  log2 = function(x) base::log(x) / base::log(2),
  log10 = function(x) base::log(x) / base::log(10),
  lchoose = function(n, k) {
    if (!is_taped(n) && !is_taped(k)) {
      return(base::lchoose(n, k))
    }
    lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
  }
)

is_taped_model <- function(model) {
  isTRUE(model$plan$log_lik %in% c("tape", "retape"))
}
