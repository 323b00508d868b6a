# Parts of a source: all rows but those of a fold. Of fits to several parts the
# passes can be made together, one over the source in the place of one over each
# part: see pass_together().

# fold: of each row of the source a whole number; the rows of fold `out` are
# left out, and none beyond. log: of new_log(); NULL: it is read by itself.
source_part <- function(source, fold, out, log = NULL) {
  if (inherits(source, "tall_source_frame")) {
    return(source$data[!fold %in% out, , drop = FALSE])
  }
  structure(
    list(source = source, fold = fold, out = out, log = log),
    class = c("tall_source_part", "tall_source")
  )
}

# take(block): what stays of a block of the source, block after block; NULL:
# nothing.
part_taker <- function(part) {
  n_before <- 0
  function(block) {
    fold <- part$fold[n_before + seq_len(block$n)]
    n_before <<- n_before + block$n
    keep <- which(!fold %in% part$out)
    if (length(keep) == block$n) {
      return(block)
    }
    if (length(keep) > 0) {
      columns <- lapply(block$columns, column_rows, block$first + keep)
      list(columns = columns, first = 0, n = length(keep))
    }
  }
}

#' @export
source_open.tall_source_part <- function(source, columns = NULL) {
  reader <- source_open(source$source, columns)
  take <- part_taker(source)
  next_block <- function() {
    while (!is.null(block <- reader$next_block())) {
      part <- take(block)
      if (!is.null(part)) {
        return(part)
      }
    }
  }
  list(next_block = next_block, close = reader$close)
}

#' @export
source_names.tall_source_part <- function(source) {
  in_log(source, "names", source_names(source$source))
}

#' @export
source_head.tall_source_part <- function(source, columns = NULL) {
  of <- paste(c("head", columns), collapse = " ")
  in_log(source, of, source_head.default(source, columns))
}

#' @export
source_size.tall_source_part <- function(source) {
  source_size(source$source) - sum(source$fold %in% source$out)
}

# ---- fits that are begun again -----------------------------------------------

# What passes over a part have found, for a fit that is begun again after each
# of them: until there it does what it did, with what they found then. A pass
# that is not in the log ends the code by a condition of class tall_pass:
# whoever made the log makes it, with those of others, adds what it found, and
# begins the code again. Closed, it has no part any more.
new_log <- function() {
  found <- list()
  known <- list()
  at <- 0
  is_open <- TRUE
  add <- function(value = NULL, condition = NULL, is_stage = FALSE) {
    entry <- list(value = value, condition = condition, is_stage = is_stage)
    found[[length(found) + 1]] <<- entry
  }
  # what was found next; NULL: nothing yet
  told <- function() if (at < length(found)) found[[at + 1]]
  list(
    add = add,
    begin = function() at <<- 0,
    # does code what it did before?
    is_behind = function() at < length(found),
    pass = function(pass) {
      if (is.null(told())) {
        rlang::signal("", class = "tall_pass", pass = pass)
        stop("A pass was wanted that nobody makes.")
      }
      at <<- at + 1
      if (!is.null(found[[at]]$condition)) {
        rlang::cnd_signal(found[[at]]$condition)
      }
      found[[at]]$value
    },
    # the value of code that makes no pass, the first time alone
    know = function(name, code) {
      if (!name %in% names(known)) {
        known[[name]] <<- code
      }
      known[[name]]
    },
    # the value of code, whose passes are forgotten then
    stage = function(code) {
      if (!isTRUE(told()$is_stage)) {
        first <- at
        value <- code
        found <<- found[seq_len(first)]
        add(value, is_stage = TRUE)
        at <<- first
      }
      at <<- at + 1
      found[[at]]$value
    },
    is_open = function() is_open,
    close = function() {
      is_open <<- FALSE
      found <<- known <<- list()
    }
  )
}

# NULL: passes over the source are made as they come.
source_log <- function(source) {
  log <- source[["log"]]
  if (inherits(source, "tall_source_part") && !is.null(log) && log$is_open()) {
    log
  }
}

# Of code that is not to be done again.
in_log <- function(source, name, code) {
  log <- source_log(source)
  if (is.null(log)) code else log$know(name, code)
}

# The same of code that makes passes.
in_stage <- function(source, code) {
  log <- source_log(source)
  if (is.null(log)) code else log$stage(code)
}
