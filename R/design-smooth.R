# A smooth term is a variable of the model frame, as splines::ns() is one: s(x)
# is a matrix of numbers, and predvars have what was settled of it, see
# new_smooth(). All that reads rows then carries it.
#
# Each column is a product,
#
#   basis_j(x) 1{levels} multiplier,
#
# a function of the smooth's numbers, an indicator of the levels of its factors,
# and a number (by = z, or the slope of a group's effect); what a term does not
# have is 1.

# s() and t2() for the environment of a formula. knots: of check_knots().
# groups: text of the variables whose values are levels in bs = "re", numbers,
# too, since bars have them. made = FALSE: what was written is wanted, see
# check_smooth_call(). smooth: what was settled.
smooth_functions <- function(knots = NULL, groups = character()) {
  s <- function(..., k = -1, bs = "tp", m = NA, by = NULL, fx = FALSE,
                xt = NULL, pc = NULL, smooth = NULL, made = TRUE) {
    written <- list(head = "s", term = dots_text(substitute(list(...))),
                    by = expression_text(substitute(by)))
    own <- if (is.null(smooth)) {
      list(k = k, bs = bs, m = m, fx = fx, xt = xt, pc = pc,
           groups = if ("re" %in% bs) intersect(written$term, groups))
    }
    if (!made) {
      return(c(written, own))
    }
    smooth_variable(c(written, own), list(...), by, smooth, knots)
  }
  t2 <- function(..., k = NA, bs = "cr", m = NA, d = NA, by = NULL, xt = NULL,
                 full = FALSE, ord = NULL, pc = NULL, smooth = NULL,
                 made = TRUE) {
    written <- list(head = "t2", term = dots_text(substitute(list(...))),
                    by = expression_text(substitute(by)))
    own <- if (is.null(smooth)) {
      list(k = k, bs = bs, m = m, d = d, xt = xt, full = full, ord = ord,
           pc = pc)
    }
    if (!made) {
      return(c(written, own))
    }
    smooth_variable(c(written, own), list(...), by, smooth, knots)
  }
  lapply(list(s = s, t2 = t2), structure, class = "tall_smooth_function")
}

dots_text <- function(dots) {
  vapply(as.list(dots)[-1], deparse1, "")
}

expression_text <- function(expression) {
  if (!is.null(expression)) deparse1(expression)
}

# The value of s() and t2() on rows: n x columns, with what was settled.
smooth_variable <- function(spec, values, by, smooth, knots) {
  names(values) <- spec$term
  if (!is.null(spec$by)) {
    values[[spec$by]] <- by
  }
  smooth <- smooth %||% new_smooth(spec, values, knots)
  out <- smooth_values(smooth, values)
  colnames(out) <- smooth$suffixes
  attr(out, "smooth") <- smooth
  class(out) <- c("tall_smooth_columns", "matrix")
  out
}

#' @importFrom stats makepredictcall
#' @export
makepredictcall.tall_smooth_columns <- function(var, call) {
  settled_call(call, attr(var, "smooth"))
}

# Settings are in what was settled.
settled_call <- function(call, smooth) {
  names <- names(call) %||% rep("", length(call))
  call <- call[names %in% c("", "by")]
  call$smooth <- smooth
  call
}

# A call with what is settled of it on rows: columns, a list; weights: the rows
# that each stands for, NULL: 1.
settle_smooth <- function(call, columns, home, weights = NULL) {
  spec <- check_smooth_call(call, home)
  texts <- unique(c(spec$term, spec$by))
  values <- lapply(stats::setNames(nm = texts), function(text) {
    eval(str2lang(text), columns, home)
  })
  own <- get(as.character(call[[1]]), home, mode = "function")
  knots <- environment(own)$knots
  settled_call(call, new_smooth(spec, values, knots, weights))
}

# ---- on rows -----------------------------------------------------------------

# n x columns. data: a list with the smooth's variables; rows that lack one are
# NA.
smooth_values <- function(smooth, data) {
  values <- smooth_inputs(smooth, data)
  n <- length(values[[1]])
  lacks <- Reduce(`|`, lapply(values, is.na))
  names <- list(NULL, smooth$columns$name)
  if (is_in_table(smooth) && !any(lacks)) {
    out <- columns_of_table(smooth, values)
    dimnames(out) <- names
    return(out)
  }
  there <- which(!lacks)
  out <- matrix(NA_real_, n, nrow(smooth$columns), dimnames = names)
  size <- max(1, floor(2^20 / max(1, nrow(smooth$columns))))
  for (first in seq_len(ceiling(length(there) / size)) * size - size) {
    rows <- there[seq.int(first + 1, min(first + size, length(there)))]
    out[rows, ] <- smooth_block(smooth, lapply(values, `[`, rows))
  }
  out
}

# The variables by their names: numbers, and codes of levels.
smooth_inputs <- function(smooth, data) {
  numbers <- c(smooth$numbers, smooth$multiplier)
  values <- lapply(stats::setNames(nm = numbers), function(name) {
    plain_number(data[[name]], smooth$like[[name]], name)
  })
  codes <- lapply(stats::setNames(nm = names(smooth$levels)), function(name) {
    level_codes(data[[name]], smooth$levels[[name]], name)
  })
  c(values, codes)
}

level_codes <- function(x, levels, name) {
  text <- as.character(x)
  codes <- match(text, levels)
  new <- which(is.na(codes) & !is.na(text))
  if (length(new) > 0) {
    abort_input(
      c(
        "{.arg {name}} has the new level {.val {text[[new[[1]]]]}}, in row
         {format_count(new[[1]])}.",
        i = "The levels known are {.val {levels}}."
      ),
      argument = name,
      expected = levels,
      value = text[[new[[1]]]]
    )
  }
  codes
}

# values: of smooth_inputs(), of rows that lack nothing.
smooth_block <- function(smooth, values) {
  if (is_in_table(smooth)) {
    return(columns_of_table(smooth, values))
  }
  n <- length(values[[1]])
  basis <- mgcv_basis(smooth$basis, unname(values[smooth$numbers]))
  times <- rep(1, n)
  for (name in smooth$multiplier) {
    times <- times * values[[name]]
  }
  code <- joint_codes(smooth, values)
  out <- matrix(0, n, nrow(smooth$columns))
  for (j in seq_len(ncol(out))) {
    level <- smooth$columns$level[[j]]
    at <- smooth$columns$basis[[j]]
    own <- basis[, at] * times
    out[, j] <- if (level > 0) own * (code == level) else own
  }
  out
}

# Of levels of several factors the last varies fastest.
joint_codes <- function(smooth, values) {
  code <- 0
  for (name in names(smooth$levels)) {
    code <- code * length(smooth$levels[[name]]) + values[[name]] - 1
  }
  code + 1
}

# Rows of `data`, numbers, outside of the range that the basis was made for:
# there, curves go on as the basis does. Where one begins anew behind ends that
# were given, that is no extrapolation.
outside_range <- function(smooth, data) {
  outside <- logical(length(data[[1]]))
  for (name in smooth$numbers) {
    if (is_periodic(smooth, name) && name %in% smooth$given) {
      next
    }
    range <- smooth$range[[name]]
    x <- data[[name]]
    outside <- outside | (!is.na(x) & (x < range[[1]] | x > range[[2]]))
  }
  outside
}

# data: of new rows.
tell_extrapolation <- function(terms, data) {
  has_basis <- function(smooth) length(smooth$numbers) > 0
  for (smooth in Filter(has_basis, terms_smooths(terms))) {
    texts <- smooth$numbers
    values <- lapply(stats::setNames(nm = texts), function(text) {
      # a warning such as of log(-1) has come with the columns
      x <- suppressWarnings(
        eval(str2lang(text), data, attr(terms, ".Environment"))
      )
      plain_number(x, smooth$like[[text]], text)
    })
    outside <- outside_range(smooth, values)
    if (any(outside)) {
      at <- which(outside)[[1]]
      shown <- vapply(texts, function(text) {
        own <- smooth$range[[text]]
        like <- smooth$like[[text]]
        paste0(
          text, " = ", format_like(values[[text]][[at]], like),
          ", known from ", format_like(own[[1]], like), " to ",
          format_like(own[[2]], like)
        )
      }, "")
      is_anew <- vapply(texts, is_periodic, TRUE, smooth = smooth) &
        !texts %in% smooth$given
      warn_tall("extrapolation", c(
        "{.code {smooth$label}} is extrapolated in
         {count_noun(sum(outside), 'row')} of {.arg newdata}.",
        x = escape_cli(paste0("Row ", format_count(at), " has ",
          paste(shown, collapse = "; "), ".")),
        i = if (any(is_anew)) {
          name <- texts[is_anew][[1]]
          "It begins anew behind the ends of the data: {.arg knots} says where
           its period ends, as in {.code knots = list({name} = c(0, 24))}."
        }
      ))
    }
  }
}
