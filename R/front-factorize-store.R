# tall_factorize() of a source: one pass numbers users and items and hands out
# the ratings block by block, to memory or to a file.

# list(user, item, rating, ...) as check_ratings() has them, of a source or of a
# data frame with a `store`: then the ratings are in that file, `store`, and
# known of all of them are center and range, and of both sides which have any.
ratings_of <- function(parts, data, store, refresh) {
  check_given(data, arg = "data")
  if (is.data.frame(data) && is.null(store) || !is_rows(data)) {
    return(rating_columns(parts, data))
  }
  source <- data_source(data)
  held_open(source, if (is.null(store)) {
    collect_ratings(parts, source, refresh)
  } else {
    store_ratings(parts, source, store, refresh)
  })
}

is_rows <- function(data) {
  is.data.frame(data) || is_source_like(data)
}

# ---- the pass ----------------------------------------------------------------

# The sides, each as new_ids() finds it. add(user, item, rating, block): codes
# of new_ids() and numbers.
read_ratings <- function(parts, source, refresh, add) {
  sides <- lapply(c(user = "user", item = "item"), function(side) {
    new_ids(parts[[side]])
  })
  wanted <- unlist(lapply(parts[c("user", "item", "rating")], all.vars))
  request <- list(columns = intersect(wanted, source_names(source)))
  take <- function(block) {
    frame <- block_frame(block)
    if (block$row == 1) {
      refuse_dependent_parts(parts, utils::head(frame, 1000))
    }
    own <- lapply(c(user = "user", item = "item"), function(side) {
      value <- part_of_block(parts, side, frame)
      sides[[side]]$add(value, block$row)
    })
    add(own$user, own$item, block_ratings(parts, frame, block$row), block)
    TRUE
  }
  n <- walk_source(source, request, "Reading ratings", refresh, take)
  if (n == 0) {
    abort_source("The source has no rows.", list(block = 0, row = 1))
  }
  lapply(sides, function(side) side$found())
}

# What stands in factor(), NULL where it is another call: the order of levels
# is that of values, which no block has all of.
inside_factor <- function(expression) {
  is_factor <- is.call(expression) && length(expression) == 2 &&
    is.name(expression[[1]]) &&
    as.character(expression[[1]]) %in% c("factor", "as.factor")
  if (is_factor) expression[[2]]
}

part_of_block <- function(parts, part, frame) {
  parts[[part]] <- inside_factor(parts[[part]]) %||% parts[[part]]
  value <- evaluate_part(parts, part, frame, "data")
  if (length(value) != nrow(frame)) {
    text <- deparse1(parts[[part]])
    abort_input(
      c(
        "{.code {text}} must have a value for each row of {.arg data}, not
         {count_noun(length(value), 'value')} for {count_noun(nrow(frame),
         'row')}.",
        i = "Rows are read in blocks: make it a column."
      ),
      argument = "formula"
    )
  }
  value
}

block_ratings <- function(parts, frame, row) {
  x <- part_of_block(parts, "rating", frame)
  arg <- deparse1(parts$rating)
  bad <- if (is_plain_numeric(x)) {
    first_nonfinite(as.double(x), most_of_data)
  } else {
    NA
  }
  if (!is.na(bad)) {
    abort_number(x, bad, arg = arg, where = row_place(row, bad))
  }
  as.double(check_numeric_vector(x, most = most_of_data, arg = arg))
}

# frame: some rows.
refuse_dependent_parts <- function(parts, frame) {
  text <- parts[c("user", "item", "rating")]
  names(text) <- vapply(text, deparse1, "")
  # expressions of its own, a name, say nothing
  name <- stats::terms(~rating)
  bad <- row_dependent(name, frame, parts$environment, text)
  if (length(bad) > 0) {
    abort_input(
      c(
        "{.code {bad[[1]]}} depends on other rows than its own, and of a source
         some are seen at a time.",
        i = "Compute it before, as a column of {.arg data}."
      ),
      argument = "formula",
      value = bad
    )
  }
}

# ---- ids ---------------------------------------------------------------------

# Does the expression leave out levels that no value has?
drops_levels <- function(expression) {
  is.call(expression) && identical(expression[[1]], quote(factor))
}

# Ids that come in blocks: list(add, found). add(x, row) numbers them in the
# order in which they are met; found() is list(n, labels, map, seen), the first
# two as check_ids() has them, then the number that each comes to have (NULL:
# its own), and those of which there is a rating.
new_ids <- function(expression) {
  arg <- deparse1(expression)
  inside <- inside_factor(expression)
  known <- NULL # labels, NULL: ids are row numbers
  has_labels <- FALSE
  is_factor <- FALSE
  same <- TRUE # have all blocks the same levels?
  marks <- new_marks(arg)
  add_labels <- function(x, row) {
    has_labels <<- TRUE
    bad <- which(is.na(x))
    if (length(bad) > 0) {
      place <- row_place(row, bad[[1]])
      abort_value(x, bad[[1]], "not be missing", arg = arg, where = place)
    }
    here <- if (is.factor(x)) levels(x) else unique(x)
    if (is.factor(x)) {
      same <<- same && (!is_factor || identical(here, known))
      is_factor <<- TRUE
    }
    known <<- c(known, here[!here %in% known])
    if (is.factor(x)) match(here, known)[as.integer(x)] else match(x, known)
  }
  add_numbers <- function(x, row) {
    must <- "positive whole numbers, a factor or strings"
    if (!is_plain_numeric(x)) {
      abort_expected(x, must, arg = arg)
    }
    bad <- which(is.na(x) | x < 1 | x != round(x) | is.infinite(x))
    if (length(bad) > 0) {
      place <- row_place(row, bad[[1]])
      abort_value(x, bad[[1]], paste("be", must), arg = arg, where = place)
    }
    as.double(x)
  }
  list(
    add = function(x, row) {
      is_label <- !is.null(inside) || is.character(x) || is.factor(x)
      code <- if (is_label) add_labels(x, row) else add_numbers(x, row)
      marks$add(code)
      code
    },
    found = function() {
      seen <- marks$found()
      if (!has_labels) {
        n <- max(seen)
        check_density(n, length(seen), arg)
        return(list(labels = NULL, n = n, seen = seen))
      }
      text <- as.character(known)
      labels <- if (is_factor && same) text else levels(factor(known))
      if (drops_levels(expression)) {
        labels <- labels[labels %in% text[seen]]
      }
      map <- as.double(match(text, labels))
      n <- as.double(length(labels))
      list(labels = labels, n = n, map = map, seen = sort(map[seen]))
    }
  )
}

# Which of the numbers 1, 2, ... came: a byte each up to the largest.
new_marks <- function(arg) {
  marks <- raw(1000)
  list(
    add = function(x) {
      most <- max(x)
      if (most > 2^30) {
        check_density(most, sum(marks > 0), arg)
      }
      if (most > length(marks)) {
        marks <<- c(marks, raw(max(length(marks), most - length(marks))))
      }
      marks[x] <<- as.raw(1)
    },
    found = function() as.double(which(marks > 0))
  )
}

renumbered <- function(code, side) {
  if (is.null(side$map)) code else side$map[code]
}

# ---- in memory ---------------------------------------------------------------

collect_ratings <- function(parts, source, refresh) {
  most <- memory_for_rows()
  rows <- list()
  bytes <- 0
  add <- function(user, item, rating, block) {
    bytes <<- bytes + 16 * block$n
    if (bytes > most) {
      abort_rows_memory(block, most, ratings_instead)
    }
    rows[[length(rows) + 1]] <<- list(
      user = as.integer(user),
      item = as.integer(item),
      rating = rating
    )
  }
  sides <- read_ratings(parts, source, refresh, add)
  every <- function(name) unlist(lapply(rows, `[[`, name))
  side_of <- function(name) {
    side <- sides[[name]]
    index <- as.double(renumbered(every(name), side))
    list(index = index, labels = side$labels, n = side$n)
  }
  out <- list(user = side_of("user"), item = side_of("item"))
  c(out, list(rating = every("rating")))
}

ratings_instead <- c(
  i = "Give the path of a new file as {.arg store}: the ratings are written
       there, and mapped."
)

# ---- in a file ---------------------------------------------------------------

# Their mean comes last, so that they lie in a file beside it until then, which
# another writer sweeps if this process is killed.
store_ratings <- function(parts, source, file, refresh) {
  raw <- new_writing(file)
  on.exit({
    unlink(raw)
    forget_writing(raw)
  })
  range <- NULL
  writer <- new_store_writer(raw, "double", arg = "store")
  on.exit(writer$abandon(), add = TRUE)
  add <- function(user, item, rating, block) {
    range <<- range(range, rating)
    writer$add(cbind(user = user, item = item, rating = rating))
  }
  sides <- read_ratings(parts, source, refresh, add)
  writer$finish()
  x <- open_store(raw)
  center <- store_mean(x, 3)
  write_ratings(x, file, sides, center)
  out <- lapply(sides, function(side) side[c("labels", "n", "seen")])
  c(out, list(store = open_store(file), center = center, range = range))
}

# The core numbers from 0, and takes ratings about their mean.
write_ratings <- function(x, file, sides, center) {
  writer <- new_store_writer(file, "double", nrow(x), arg = "store")
  on.exit(writer$abandon())
  each_part(x, function(part) {
    for (side in c("user", "item")) {
      part[, side] <- renumbered(part[, side], sides[[side]]) - 1
    }
    part[, "rating"] <- part[, "rating"] - center
    writer$add(part)
  })
  writer$finish()
}

# The mean of a column of a file, as mean() has it to the bit.
store_mean <- function(x, column) {
  n <- as.double(nrow(x))
  sums <- matrix(0, 3, 1)
  each_part(x, function(part) {
    sums <<- .Call(ffi_add_sums, sums, part[, column, drop = FALSE])
  })
  sum <- sums[1:2]
  away <- c(0, 0)
  each_part(x, function(part) {
    away <<- .Call(ffi_add_away, away, part[, column], sum, n)
  })
  .Call(ffi_away_mean, away, sum, n)
}
