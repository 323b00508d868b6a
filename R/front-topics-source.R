# tall_topics() of a source whose rows are cells, list(doc, word, count): one
# pass numbers documents and words block by block.

# What as_documents() has, of a source or of anything else.
documents_of <- function(dtm, vocabulary, refresh) {
  if (!has_cell_rows(dtm)) {
    return(as_documents(dtm, vocabulary))
  }
  source <- data_source(dtm, "dtm")
  cells <- held_open(source, read_cells(source, vocabulary, refresh))
  check_words(
    cells$vocabulary,
    if (is.null(vocabulary)) "dtm" else "vocabulary"
  )
  documents_of_cells(cells, TRUE, "dtm")
}

# Rows of a matrix are documents, those of other sources cells.
has_cell_rows <- function(dtm) {
  of_documents <- c("matrix", "Matrix", "simple_triplet_matrix", "data.frame")
  is_source_like(dtm) && !inherits(dtm, of_documents)
}

# As frame_cells() has them of all rows in a data frame.
read_cells <- function(source, vocabulary, refresh) {
  check_cell_columns(source_names(source), "dtm")
  most <- memory_for_rows()
  docs <- new_values("dtm$doc")
  words <- new_words(vocabulary)
  cells <- list()
  bytes <- 0
  take <- function(block) {
    bytes <<- bytes + 16 * block$n
    if (bytes > most) {
      abort_rows_memory(block, most, topics_instead)
    }
    own <- block_slice(block, cell_columns)
    if (!is.numeric(own$count)) {
      abort_expected(own$count, "numbers", arg = "dtm$count")
    }
    cells[[length(cells) + 1]] <<- list(
      doc = docs$add(own$doc, block$row),
      word = words$add(own$word, block$row),
      count = as.double(own$count)
    )
    TRUE
  }
  request <- list(columns = cell_columns)
  n <- walk_source(source, request, "Reading documents", refresh, take)
  if (n == 0) {
    abort_source("The source has no rows.", list(block = 0, row = 1))
  }
  every <- function(name) unlist(lapply(cells, `[[`, name))
  doc <- docs$found()
  word <- words$found()
  list(
    doc = as.double(match_map(every("doc"), doc$map)),
    word = as.double(match_map(every("word"), word$map)),
    count = every("count"),
    n_doc = length(doc$values),
    vocabulary = as.character(word$values),
    names = as.character(doc$values)
  )
}

# map: what each number comes to be, NULL: itself.
match_map <- function(code, map) {
  if (is.null(map)) code else map[code]
}

topics_instead <- c(
  i = "A model of topics has its documents in memory: leave out rare words, or
       take some of the documents."
)

# ---- values that come in blocks ----------------------------------------------

# Values numbered in the order in which they are met: list(add, found). add(x,
# row): numbers; found(): list(values, map), those that came in their order, as
# sort(unique()) has them of all, and which of them each number is.
new_values <- function(arg) {
  known <- NULL
  levels <- NULL
  same <- TRUE # have all blocks the same levels?
  list(
    add = function(x, row) {
      bad <- which(is.na(x))
      if (length(bad) > 0) {
        place <- row_place(row, bad[[1]])
        abort_value(x, bad[[1]], "not be missing", arg = arg, where = place)
      }
      if (is.factor(x)) {
        same <<- same && (is.null(levels) || identical(levels, levels(x)))
        levels <<- levels(x)
        x <- as.character(x)
      }
      here <- unique(x)
      known <<- c(known, here[!here %in% known])
      match(x, known)
    },
    found = function() {
      values <- if (is.null(levels) || !same) {
        sort(known)
      } else {
        levels[levels %in% known]
      }
      list(values = values, map = match(known, values))
    }
  )
}

# Words are numbers from 1 on, or text.
new_words <- function(vocabulary) {
  arg <- "dtm$word"
  text <- new_values(arg)
  most <- 0
  has_numbers <- FALSE
  list(
    add = function(x, row) {
      if (is.numeric(x) && !is.factor(x)) {
        has_numbers <<- TRUE
        check_word_numbers(x, vocabulary, arg, row)
        most <<- max(most, x)
        return(as.integer(x))
      }
      x <- as.character(x)
      bad <- if (!is.null(vocabulary)) which(!x %in% vocabulary)
      if (length(bad) > 0) {
        place <- row_place(row, bad[[1]])
        abort_value(x, bad[[1]], "be in the vocabulary", arg, place)
      }
      text$add(x, row)
    },
    found = function() {
      if (has_numbers) {
        return(list(values = vocabulary %||% numbered_words(most, arg)))
      }
      found <- text$found()
      if (is.null(vocabulary)) {
        return(found)
      }
      own <- match(found$values, vocabulary)
      list(values = vocabulary, map = own[found$map])
    }
  )
}
