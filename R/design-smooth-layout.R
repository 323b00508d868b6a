# Where smooth terms are among the columns of a design.

# Those that are settled in terms: list of records by label, see new_smooth().
terms_smooths <- function(terms) {
  settled <- lapply(as.list(attr(terms, "predvars"))[-1], settled_smooth)
  settled <- Filter(function(smooth) !is.null(smooth), settled)
  names(settled) <- vapply(settled, `[[`, "", "label")
  settled
}

# Is a term, by its record, one of effects of groups?
is_grouping <- function(record) {
  length(record$levels) > 0 && is_pooled_smooth(record)
}

# list(columns, blocks): a row for each column of the design that is of a
# smooth term, with where it is (at); one for each block of random columns, and
# how many they are (size). Blocks are numbered over all terms; columns that are
# fixed have 0.
smooth_layout <- function(terms, columns) {
  smooths <- terms_smooths(terms)
  before <- 0L
  parts <- lapply(smooths, function(smooth) {
    own <- smooth$columns[c("name", "kind", "smooth", "block")]
    blocks <- smooth$blocks
    blocks$size <- tabulate(own$block, nrow(blocks))
    own$block[own$block > 0] <- own$block[own$block > 0] + before
    blocks$block <- blocks$block + before
    before <<- before + nrow(blocks)
    at <- match(own$name, columns)
    if (anyNA(at)) {
      abort_corrupt("The design", "columns")
    }
    list(
      columns = cbind(at = at, variable = smooth$label, own),
      blocks = cbind(variable = rep(smooth$label, nrow(blocks)), blocks)
    )
  })
  every <- function(name) {
    out <- do.call(rbind, unname(lapply(parts, `[[`, name)))
    rownames(out) <- NULL
    out
  }
  list(columns = every("columns"), blocks = every("blocks"))
}

# Names of the columns of model.matrix(), with those of smooth terms in place of
# what they are called by the term's text and a number.
smooth_column_names <- function(names, terms) {
  predvars <- as.list(attr(terms, "predvars"))[-1]
  for (k in seq_along(predvars)) {
    smooth <- settled_smooth(predvars[[k]])
    if (!is.null(smooth)) {
      written <- deparse1(attr(terms, "variables")[[k + 1]])
      # a single column is called by the term alone
      suffixes <- if (length(smooth$suffixes) > 1) smooth$suffixes else ""
      at <- match(paste0(written, suffixes), names)
      names[at[!is.na(at)]] <- smooth$columns$name[!is.na(at)]
    }
  }
  names
}

# model.matrix() of a frame, dense or not, with these names.
name_smooths <- function(x, terms) {
  if (length(terms_smooths(terms)) > 0) {
    colnames(x) <- smooth_column_names(colnames(x), terms)
  }
  x
}

# Rows of a fit beyond the knots that were given.
tell_beyond_knots <- function(terms) {
  for (smooth in terms_smooths(terms)) {
    is_anew <- vapply(smooth$numbers, is_periodic, TRUE, smooth = smooth)
    for (name in smooth$numbers[!is_anew]) {
      range <- smooth$range[[name]]
      seen <- smooth$seen[[name]]
      slack <- 1e-9 * diff(range)
      if (seen[[1]] < range[[1]] - slack || seen[[2]] > range[[2]] + slack) {
        like <- smooth$like[[name]]
        numbers <- vapply(c(seen, range), format_like, "", like = like)
        warn_tall("extrapolation", c(
          "{.arg {name}} has values outside of its knots: {.code {smooth$label}}
           goes on beyond them as its basis does.",
          x = "It is from {numbers[[1]]} to {numbers[[2]]}, the knots from
               {numbers[[3]]} to {numbers[[4]]}."
        ))
      }
    }
  }
}

is_pooled_smooth <- function(smooth) {
  any(smooth$bs %in% c("re", "fs"))
}
