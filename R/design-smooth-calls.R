# Calls of s() and t2() in formulas: what they say, and what of that is refused.

is_smooth_call <- function(term, home) {
  is.call(term) && is.symbol(term[[1]]) &&
    as.character(term[[1]]) %in% smooth_names &&
    inherits(
      get0(as.character(term[[1]]), home, mode = "function"),
      "tall_smooth_function"
    )
}

smooth_names <- c("s", "t2")

# As mgcv has it: s(x), s(x,z):w.
smooth_label <- function(spec) {
  paste0(
    spec$head, "(", paste(spec$term, collapse = ","), ")",
    if (!is.null(spec$by)) paste0(":", spec$by)
  )
}

# Variables of a call, such as the factors whose levels a look collects.
smooth_variables <- function(call, home) {
  spec <- check_smooth_call(call, home)
  lapply(unique(c(spec$term, spec$by)), str2lang)
}

# Arguments that mgcv has and that have no place here.
refused_arguments <- list(
  sp = "Smoothing parameters are drawn with the curves: `prior_smooth` says what
    is known of them.",
  id = "Each smooth term has scales of its own.",
  np = "Tensor products are made of the bases as they are."
)

refused_bases <- list(
  ad = "Adaptive smooths have several penalties that overlap: `s(x, k = 30)` is
    as flexible.",
  sz = "Write `s(x) + s(x, g, bs = \"fs\")`: a curve of all, and one of each
    level."
)

# The spec of a call: list(head, term, by, k, bs, ...), text of variables, and
# the values of the settings.
check_smooth_call <- function(call, home, formula = NULL) {
  given <- names(call)[-1] %||% rep("", length(call) - 1)
  own <- get(as.character(call[[1]]), home, mode = "function")
  known <- setdiff(names(formals(own)), c("...", "smooth", "made"))
  shown <- deparse1(call)
  for (name in setdiff(given, c("", known))) {
    hint <- refused_arguments[[name]]
    if (!is.null(hint)) {
      hint <- gsub("\\s+", " ", hint)
    }
    abort_tall(
      "unsupported",
      c(
        "{.arg formula} has {.code {shown}}: {.arg {name}} is no argument of
         smooth terms here.",
        i = escape_cli(hint %||% paste0("They are ", quote_columns(known, 20),
          "."))
      ),
      argument = "formula",
      value = name
    )
  }
  if (!any(given == "")) {
    abort_input(
      "{.arg formula} must have a variable in {.code {shown}}.",
      argument = "formula",
      value = call
    )
  }
  call$made <- FALSE
  spec <- tryCatch(
    eval(call, home),
    error = function(e) {
      if (inherits(e, "tall_error")) {
        rlang::cnd_signal(e)
      }
      abort_input(
        "{.arg formula} has a setting that cannot be evaluated:
         {.code {shown}}.",
        argument = "formula",
        parent = e
      )
    }
  )
  check_smooth_settings(spec, shown)
  spec
}

# mgcv's, or one that the user wrote.
is_known_basis <- function(bs) {
  class <- paste0(bs, ".smooth.spec")
  spaces <- list(asNamespace("mgcv"), globalenv())
  any(vapply(spaces, function(space) {
    method <-
      utils::getS3method("smooth.construct", class, TRUE, envir = space)
    !is.null(method)
  }, TRUE))
}

check_smooth_settings <- function(spec, shown) {
  hint <- refused_bases[intersect(spec$bs, names(refused_bases))]
  if (length(hint) > 0) {
    hint <- gsub("\\s+", " ", hint[[1]])
    bs <- intersect(spec$bs, names(refused_bases))[[1]]
    abort_tall(
      "unsupported",
      c(
        "{.arg formula} has {.code {shown}}, and the basis {.val {bs}} is not
         fitted.",
        i = escape_cli(hint)
      ),
      argument = "bs",
      value = spec$bs
    )
  }
  if (!is.character(spec$bs) || anyNA(spec$bs)) {
    abort_expected(spec$bs, "the name of a basis of mgcv", arg = "bs")
  }
  unknown <- Filter(function(bs) !is_known_basis(bs), spec$bs)
  if (length(unknown) > 0) {
    abort_input(
      c(
        "{.arg formula} has {.code {shown}}, and mgcv knows no basis
         {.val {unknown[[1]]}}.",
        i = "{.code help(\"smooth.terms\", \"mgcv\")} lists them."
      ),
      argument = "bs",
      value = spec$bs
    )
  }
  # NA, -1: mgcv's own
  k <- spec$k[!spec$k %in% c(NA, -1)]
  is_count <- is_plain_numeric(spec$k) || all(is.na(spec$k))
  if (!is_count || length(spec$k) == 0 || any(k < 2 | k != round(k))) {
    abort_expected(spec$k, "a whole number of at least 2", arg = "k")
  }
  if (anyDuplicated(spec$term) > 0) {
    abort_input(
      "{.arg formula} must have each variable once in {.code {shown}}.",
      argument = "formula",
      value = spec$term
    )
  }
}
