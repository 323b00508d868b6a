# Models written in R: coordinates, and what C calls while chains run.

# sigma, beta[1], B[1,2]
custom_names <- function(init) {
  unlist(lapply(names(init), function(name) element_names(name, init[[name]])))
}

element_names <- function(name, value) {
  dim <- dim(value) %||% length(value)
  if (is.null(dim(value)) && length(value) == 1) {
    return(name)
  }
  at <- arrayInd(seq_along(value), dim)
  paste0(name, "[", apply(at, 1, paste, collapse = ","), "]")
}

custom_coordinates <- function(init, kind) {
  prefix <- c(real = "", positive = "log_", unit = "logit_", simplex = "stick_")
  unlist(lapply(names(init), function(name) {
    value <- init[[name]]
    label <- paste0(prefix[[kind[[name]]]], name)
    if (kind[[name]] == "simplex") {
      paste0(label, "[", seq_len(length(value) - 1), "]")
    } else {
      element_names(label, value)
    }
  }))
}

# Of each coordinate the variable that it is a function of; NA: of none alone.
custom_variable_of <- function(init, kind) {
  last <- cumsum(lengths(init))
  unlist(lapply(names(init), function(name) {
    n <- length(init[[name]])
    if (kind[[name]] == "simplex") {
      rep(NA_integer_, n - 1)
    } else {
      last[[name]] - n + seq_len(n)
    }
  }))
}

# The inverse of tb_transform_constrain(), a list.
unconstrain <- function(theta, kind) {
  free <- lapply(names(kind), function(name) {
    x <- as.double(theta[[name]])
    switch(
      kind[[name]],
      real = x,
      positive = log(x),
      unit = stats::qlogis(x),
      simplex = {
        n_free <- length(x) - 1
        rest <- rev(cumsum(rev(x)))[seq_len(n_free)]
        z <- x[seq_len(n_free)] / rest
        stats::qlogis(z) + log(n_free - seq_len(n_free) + 1)
      }
    )
  })
  stats::setNames(free, names(kind))
}

# What tells one model from another, as numbers.
custom_hash <- function(data, init, kind, functions) {
  code <- lapply(functions, function(f) if (!is.null(f)) deparse(body(f)))
  text <- rlang::hash(list(data, lapply(init, dim), lengths(init), kind, code))
  at <- seq(1, nchar(text), by = 8)
  as.double(paste0("0x", substring(text, at, at + 7)))
}

# ---- what C calls ------------------------------------------------------------

# The user's functions as they are; C calls `fail` on their errors, `shape` on
# what is no vector of doubles of the right length (or matrix, or list of such
# vectors).
custom_engine <- function(functions, init, state) {
  list(
    log_lik = functions$log_lik,
    rows = functions$grad_log_lik,
    sum = NULL,
    log_prior = functions$log_prior,
    prior_gradient = functions$grad_log_prior,
    fail = function(name, theta, parent) {
      custom_fail(state, name, theta, parent = parent)
    },
    undefined = function(name, theta) custom_undefined(state, name, theta),
    shape = function(name, value, n, theta) {
      switch(
        name,
        grad_log_lik = custom_rows(value, n, init, state, theta),
        grad_log_prior = custom_prior_gradient(value, init, state, theta),
        custom_numbers(value, n, state, name, theta)
      )
    }
  )
}

n_rows_of <- function(batch) {
  if (is.list(batch)) NROW(.subset2(batch, 1)) else NROW(batch)
}

# The user's gradients of n rows as a matrix n x n_natural.
custom_rows <- function(value, n, init, state, theta) {
  name <- "grad_log_lik"
  sizes <- lengths(init)
  n_natural <- sum(sizes)
  if (is.list(value)) {
    return(custom_flatten(value, n * sizes, state, name, theta, n))
  }
  is_line <- is.null(dim(value)) && (n == 1 || n_natural == 1) &&
    length(value) == n * n_natural
  is_wanted <- is.numeric(value) &&
    (is_line || isTRUE(all.equal(dim(value), c(n, n_natural))))
  if (!is_wanted) {
    custom_fail(
      state,
      name,
      theta,
      reason = paste0(
        "it returned ", describe(value), " where a matrix of ",
        count_noun(n, "row"), " and ", count_noun(n_natural, "column"),
        " is wanted, or a list of arrays as in `init`"
      )
    )
  }
  as.double(value)
}

custom_prior_gradient <- function(value, init, state, theta) {
  sizes <- lengths(init)
  if (is.list(value)) {
    custom_flatten(value, sizes, state, "grad_log_prior", theta)
  } else {
    custom_numbers(value, sum(sizes), state, "grad_log_prior", theta)
  }
}

# A list with the names of init, `sizes` numbers in each, as one vector.
custom_flatten <- function(value, sizes, state, name, theta, n = NULL) {
  names <- names(sizes)
  rows <- if (!is.null(n)) paste(" for", count_noun(n, "row"))
  for (part in names) {
    one <- value[[part]]
    if (!is.numeric(one) || length(one) != sizes[[part]]) {
      custom_fail(
        state,
        name,
        theta,
        reason = paste0(
          "its element `", part, "` is ", describe(one), " where ",
          count_noun(sizes[[part]], "number"), " are wanted", rows
        )
      )
    }
  }
  as.double(unlist(value[names], use.names = FALSE))
}

# What is not a vector of n doubles: integers and logicals are, else words.
custom_numbers <- function(value, n, state, name, theta) {
  if ((is.numeric(value) || is.logical(value)) && length(value) == n) {
    return(as.double(value))
  }
  what <- if (name == "log_lik") " (one for each row of the batch)"
  custom_fail(
    state,
    name,
    theta,
    reason = paste0(
      "it returned ", describe(value), " where ", count_noun(n, "number"),
      what, if (n == 1) " is" else " are", " wanted"
    )
  )
}

# A user's function failed: with an error of its own, or for a reason of ours.
custom_fail <- function(state, name, theta, parent = NULL, reason = NULL) {
  reason <- reason %||% conditionMessage(parent)
  building <- state$building
  if (!is.null(building)) {
    place <- theta_text(theta)
    abort_tall(
      "input",
      c("{.fn {name}} failed: {reason}.", x = "It was called at {place}."),
      argument = name,
      parent = parent,
      call = building
    )
  }
  state$failed <- TRUE
  error <- callback_error(name, theta, reason, parent)
  state$errors <- c(state$errors, list(error))
  stop(error)
}

callback_error <- function(name, theta, reason, parent = NULL) {
  place <- theta_text(theta)
  tryCatch(
    abort_tall(
      "callback",
      c("{.fn {name}} failed: {reason}.", x = "It was called at {place}."),
      status = "callback",
      argument = name,
      theta = theta,
      reason = reason,
      parent = parent,
      call = NULL
    ),
    error = identity
  )
}

# What was noted last, for a model of functions in R.
last_undefined <- function(model) {
  errors <- take_errors(model, "undefined")
  if (length(errors) > 0) errors[[length(errors)]]
}

# A density or gradient was not a number. Kept as an error for the chain that
# stops of it; a Metropolis kernel merely rejects such a proposal.
custom_undefined <- function(state, name, theta) {
  last <- state$undefined[length(state$undefined)]
  is_new <- length(last) == 0 || !identical(last[[1]]$theta, theta)
  if (is_new && length(state$undefined) < 100) {
    error <- callback_error(name, theta, "it, or its derivative, is NA or NaN")
    state$undefined <- c(state$undefined, list(error))
  }
}

# "mu = 0.2, beta[1] = -1, ..."
theta_text <- function(theta) {
  values <- unlist(theta, use.names = FALSE)
  shown <- utils::head(values, 5)
  text <- paste(
    utils::head(custom_names(theta), 5),
    "=",
    format(shown, digits = 4, trim = TRUE),
    collapse = ", "
  )
  paste0(text, if (length(values) > 5) ", ...")
}

# The errors since the last time, oldest first; kind: "errors" or "undefined".
take_errors <- function(model, kind = "errors") {
  errors <- model$state[[kind]]
  if (length(errors) > 0) {
    model$state[[kind]] <- list()
  }
  errors
}
