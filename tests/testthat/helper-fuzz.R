# Damage: every field of an object in turn is altered, and whatever the package
# does with it must be done, or be an error of a class of its own. Memory is
# looked after by tools/sanitize.sh, which runs the same under the sanitizers.

# Of all damages a sample is taken, always the same one: TALLBAYES_FUZZ times as
# many as by default; Inf: all of them, which takes an hour.
fuzz_factor <- function() as.numeric(Sys.getenv("TALLBAYES_FUZZ", "1"))

# What a value is replaced by: other types, lengths and numbers.
alterations <- function(x) {
  out <- list(
    null = NULL,
    string = "a",
    list = list(1, "a"),
    empty = if (is.vector(x) || is.object(x)) tryCatch(x[0], error = identity),
    missing = NA,
    huge = 1e300,
    negative = -1,
    a_function = function(...) stop("called"),
    pointer = environment()
  )
  if (length(x) > 0 && is.raw(x)) {
    out <- c(out, altered_bytes(x))
  } else if (length(x) > 0 && is.atomic(x)) {
    out <- c(out, altered_values(x))
  }
  if (is.list(x) && length(x) > 0) {
    out$unnamed <- unname(x)
    out$shorter <- x[-1]
    out$longer <- c(x, list(extra = 1))
    out$reversed <- rev(x)
  }
  if (!is.null(attributes(x)) && !is.environment(x)) {
    bare <- x
    attributes(bare) <- NULL
    out$bare <- bare
  }
  out
}

altered_values <- function(x) {
  first <- function(value) {
    x[[1]] <- value
    x
  }
  out <- list(
    first_missing = first(NA),
    longer = c(x, x),
    shorter = x[-1],
    as_text = as.character(x)
  )
  if (is.numeric(x)) {
    out$first_huge <- first(1e300)
    out$first_negative <- first(-5)
    out$first_infinite <- first(Inf)
    out$first_zero <- first(0)
    out$fraction <- x + 0.5
    out$as_integer <- suppressWarnings(as.integer(x))
  }
  out
}

altered_bytes <- function(x) {
  flip <- function(at) {
    x[at] <- xor(x[at], as.raw(255L))
    x
  }
  out <- list(shorter = x[-1], longer = c(x, x))
  for (k in seq(1, length(x), length.out = min(length(x), 12))) {
    out[[paste0("byte_", floor(k))]] <- flip(floor(k))
  }
  out$zero <- raw(length(x))
  out$ones <- rep(as.raw(255L), length(x))
  out
}

# Paths, vectors of positions, to every element of a list, the list's own parts
# first. Data frames and lists of more than `most` elements: the first ones.
element_paths <- function(x, path = integer(), depth = 6, most = 60) {
  found <- list()
  parts <- unclass(x)
  for (k in seq_len(min(length(parts), most))) {
    here <- c(path, k)
    found <- c(found, list(here))
    if (is.list(parts[[k]]) && depth > 1) {
      found <- c(found, element_paths(parts[[k]], here, depth - 1, most))
    }
  }
  found
}

# x with another value at a path; NULL is a value.
with_element <- function(x, path, value) {
  class <- oldClass(x)
  x <- unclass(x)
  if (length(path) == 1) {
    x[path] <- list(value)
  } else {
    x[[path[[1]]]] <- with_element(x[[path[[1]]]], path[-1], value)
  }
  oldClass(x) <- class
  x
}

element_at <- function(x, path) {
  for (k in path) {
    x <- unclass(x)[[k]]
  }
  x
}

path_text <- function(x, path) {
  names <- character()
  for (k in path) {
    x <- unclass(x)
    name <- names(x)[k]
    names <- c(names, if (is.null(name) || !nzchar(name)) k else name)
    x <- x[[k]]
  }
  paste(names, collapse = "$")
}

# list(path, how) of every damage.
damages <- function(x) {
  all <- list()
  for (path in element_paths(x)) {
    for (how in names(alterations(element_at(x, path)))) {
      all <- c(all, list(list(path = path, how = how)))
    }
  }
  all
}

# Some of them, taken evenly.
sampled <- function(all, share) {
  share <- min(length(all), share * fuzz_factor())
  all[unique(ceiling(seq(1, length(all), length.out = share)))]
}

# Of every component in turn one damage, of a kind that was met as seldom as any
# until then; fuzz_factor() times as many, Inf: all.
drawn <- function(x, all, seed = 1) {
  top <- vapply(all, function(damage) damage$path[[1]], 0)
  kind <- sub("_[0-9]+$", "", vapply(all, function(damage) damage$how, ""))
  met <- table(factor(levels = unique(kind)))
  out <- integer()
  with_seed(seed, for (k in unique(top)) {
    left <- sample(which(top == k))
    for (draw in seq_len(min(length(left), fuzz_factor()))) {
      at <- left[[which.min(met[kind[left]])]]
      met[[kind[[at]]]] <- met[[kind[[at]]]] + 1
      left <- setdiff(left, at)
      out <- c(out, at)
    }
  })
  all[out]
}

# The damaged fit as one who knows how would leave it: sealed again.
forged <- function(fit) {
  if (is.list(fit)) seal_fit(fit) else fit
}

# NAMESPACE, read once.
fuzz_methods <- local({
  methods <- NULL
  function() {
    methods <<- methods %||% registered_methods(asNamespace("tallbayes"))
    methods
  }
})

# Those that are bayestestR's of the draws.
described_verbs <- c("hdi", "eti", "spi", "bci", "ci", "p_direction", "p_map",
  "map_estimate", "point_estimate", "estimate_density", "rope", "p_rope",
  "p_significance", "equivalence_test", "describe_posterior", "describe_prior")

# The methods that a fit has, by generic, as functions of it alone; without
# those that need more, or draw by packages that are not there.
methods_of <- function(fit) {
  space <- asNamespace("tallbayes")
  methods <- fuzz_methods()
  found <- list()
  for (generic in unique(methods$generic)) {
    own <- which(methods$generic == generic)
    at <- match(class(fit), methods$class[own])
    at <- own[at[!is.na(at)]]
    if (length(at) > 0) {
      found[[generic]] <- space[[methods$name[[at[[1]]]]]]
    }
  }
  more <- c("emm_basis", "get_predict", "independent_law", "remote_plan",
    "design_of", "predictor", "predicted_names", "predictor_moments",
    "join_draws", "log_density", "read_response", "held_out_monitor",
    "level_effects", "level_moments", "see_engine", "response_law",
    "row_residuals", "expansion_of")
  draws <- c("pairs", "plot", "pp_check")
  # those that fit again take as long as a run
  others <- c("epred_draws", "linpred_draws", "model_info", "model_parameters",
    "update", "kfold", "reloo")
  more <- c(more, described_verbs)
  found <- found[setdiff(names(found), c(more, draws, others))]
  lapply(found, function(f) function(fit) f(fit))
}

# Uses of a forged fit in turns: sg_resume(), where it is given, and the next of
# its methods, or, where many damages are taken, both. Each must be done, or be
# an error of a class of its own; a run that goes on for longer than anyone
# waits is none.
forged_use <- function(uses, resume = NULL) {
  k <- 0
  patiently <- function(code) {
    setTimeLimit(elapsed = 20, transient = TRUE)
    on.exit(setTimeLimit())
    # messages of ours are long in the making
    tryCatch(
      utils::capture.output(code),
      tall_error = function(e) NULL,
      error = function(e) {
        late <- "elapsed time limit"
        if (!grepl(late, conditionMessage(e), fixed = TRUE)) {
          stop(e)
        }
      }
    )
  }
  function(fit) {
    fit <- forged(fit)
    k <<- k + 1
    takes_all <- fuzz_factor() > 1
    if (!is.null(resume) && (takes_all || k %% 2 == 0)) {
      patiently(resume(fit))
    }
    if (is.null(resume) || takes_all || k %% 2 == 1) {
      patiently(uses[[k %% length(uses) + 1]](fit))
    }
  }
}

damaged <- function(x, damage) {
  values <- alterations(element_at(x, damage$path))
  with_element(x, damage$path, values[[damage$how]])
}

# Errors without their backtraces, which take as long as a test is about.
local_no_traces <- function(frame = parent.frame()) {
  options <- list("rlang:::disable_trace_capture" = TRUE)
  withr::local_options(options, .local_envir = frame)
}

# Those of the damages that do not end as they must: text, none where all is
# well. use: a function of the damaged object. Warnings do not count.
fuzz <- function(x, use, damages) {
  local_no_traces()
  found <- character()
  for (damage in damages) {
    where <- paste0(path_text(x, damage$path), ", ", damage$how)
    # what a process that dies was at
    cat(where, "\n", file = Sys.getenv("TALLBAYES_FUZZ_LOG", nullfile()))
    answer <- tryCatch(
      {
        suppressMessages(suppressWarnings(use(damaged(x, damage))))
        NULL
      },
      tall_error = function(e) NULL,
      error = function(e) conditionMessage(e)
    )
    if (!is.null(answer)) {
      found <- c(found, paste0(where, ": ", answer[[1]]))
    }
  }
  found
}

expect_survives <- function(x, use, share = 40, all = damages(x)) {
  found <- fuzz(x, use, sampled(all, share))
  testthat::expect(
    length(found) == 0,
    paste(c("Errors without a class:", found), collapse = "\n")
  )
}

# Functions of a fit, each by itself.
fit_uses <- function(model = NULL) {
  silent <- function(code) invisible(utils::capture.output(code))
  list(
    resume = function(fit) sg_resume(fit, iter = 4, model = model, refresh = 0),
    print = function(fit) silent(print(fit)),
    summary = function(fit) silent(print(summary(fit))),
    draws = function(fit) {
      posterior::as_draws_matrix(fit)
      as.matrix(fit)
      coef(fit)
      vcov(fit)
    },
    predict = function(fit) predict(fit, newdata = head(example_matrix(), 3)),
    checks = function(fit) bias_check(fit),
    tolerance = function(fit) noise_tolerance(fit)
  )
}
