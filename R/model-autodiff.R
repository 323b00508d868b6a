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
