# Ratings, from vectors or a formula: users, items and values, checked and
# numbered.

# list(rating, user, item): the expressions of rating ~ user + item.
check_rating_formula <- function(formula) {
  check_given(formula, arg = "formula")
  ok <- inherits(formula, "formula") && length(formula) == 3 &&
    is.call(formula[[3]]) && identical(formula[[3]][[1]], quote(`+`)) &&
    length(formula[[3]]) == 3
  if (!ok) {
    abort_expected(
      formula,
      "a formula such as rating ~ user + item",
      seen = if (inherits(formula, "formula")) {
        deparse1(formula)
      } else {
        describe(formula)
      },
      arg = "formula"
    )
  }
  parts <- list(
    rating = formula[[2]],
    user = formula[[3]][[2]],
    item = formula[[3]][[3]]
  )
  check_parts_differ(parts, formula)
  c(parts, environment = environment(formula))
}

# Users who are their own items say nothing of either.
check_parts_differ <- function(parts, formula) {
  text <- vapply(parts, deparse1, "")
  again <- anyDuplicated(text)
  if (again > 0) {
    first <- names(text)[[match(text[[again]], text)]]
    abort_input(
      c(
        "{.arg formula} must name three different things, rating, user and item:
         {.code {text[[again]]}} is both {first} and {names(text)[[again]]}.",
        i = "Write {.code rating ~ user + item}."
      ),
      argument = "formula",
      value = formula
    )
  }
}

rating_columns <- function(parts, data) {
  check_given(data, arg = "data")
  values <- lapply(c("user", "item", "rating"), function(part) {
    evaluate_part(parts, part, data, "data")
  })
  args <- vapply(
    c("user", "item", "rating"),
    function(p) deparse1(parts[[p]]),
    ""
  )
  check_ratings(values[[1]], values[[2]], values[[3]], args)
}

evaluate_part <- function(parts, part, data, arg) {
  if (!is.data.frame(data)) {
    abort_expected(data, "a data frame", arg = arg)
  }
  used <- all.vars(parts[[part]])
  check_columns_once(names(data), used, arg = arg)
  tryCatch(
    eval(parts[[part]], data, parts$environment),
    error = function(e) {
      message <- escape_cli(conditionMessage(e))
      abort_input(
        c(
          "{.arg {arg}} must have the columns of the formula.",
          x = message
        ),
        argument = arg
      )
    }
  )
}

# The pairs to predict during the run: list(frame, user, item (row numbers),
# rating (NULL: not given), data: the ratings of the fit, with rows for users
# and items that are new).
new_pairs <- function(parts, newdata, ratings) {
  out <- list(user = numeric(), item = numeric(), data = ratings)
  if (is.null(newdata)) {
    return(out)
  }
  for (side in c("user", "item")) {
    x <- evaluate_part(parts, side, newdata, "newdata")
    arg <- deparse1(parts[[side]])
    extended <- extend_ids(ratings[[side]], x, arg)
    if (is.null(extended$ids$labels)) {
      # all of them are rows of theta
      check_dense(c(rated_ids(ratings[[side]]), extended$index), arg)
    }
    out$data[[side]] <- extended$ids
    out[[side]] <- extended$index
  }
  warn_unrated(
    setdiff(out$user, rated_ids(ratings$user)),
    setdiff(out$item, rated_ids(ratings$item))
  )
  out$frame <- pair_frame(parts, newdata)
  if (all(all.vars(parts$rating) %in% names(newdata))) {
    rating <- evaluate_part(parts, "rating", newdata, "newdata")
    arg <- paste0("newdata$", deparse1(parts$rating))
    out$rating <- check_numeric_vector(rating, most = most_of_data, arg = arg)
  }
  out
}

# Of a side, with repeats: of a file, those of which there is a rating.
rated_ids <- function(side) {
  side$seen %||% side$index
}

pair_frame <- function(parts, newdata) {
  out <- lapply(c("user", "item"), function(side) {
    evaluate_part(parts, side, newdata, "newdata")
  })
  names <- vapply(parts[c("user", "item")], deparse1, "")
  stats::setNames(as.data.frame(out), names)
}

# ids (as check_ids() makes them) with rows for those of x that they lack, and
# the rows of x.
extend_ids <- function(ids, x, arg) {
  if (is.null(ids$labels)) {
    if (is.character(x) || is.factor(x)) {
      abort_expected(x, "numbers, as in the data that were fitted", arg = arg)
    }
    check_id_numbers(x, arg)
    index <- as.double(x)
    ids$n <- max(ids$n, index)
  } else {
    x <- check_labels(x, arg)
    ids$labels <- union(ids$labels, x)
    ids$n <- as.double(length(ids$labels))
    index <- as.double(match(x, ids$labels))
  }
  list(ids = ids, index = index)
}

check_labels <- function(x, arg) {
  x <- as.character(x)
  if (anyNA(x)) {
    abort_value(x, which(is.na(x))[[1]], "not be missing", arg = arg)
  }
  x
}

warn_unrated <- function(users, items) {
  counts <- c(
    if (length(users) > 0) count_noun(length(users), "user"),
    if (length(items) > 0) count_noun(length(items), "item")
  )
  if (length(counts) > 0) {
    what <- paste(counts, collapse = " and ")
    warn_tall(
      "ratings",
      c(
        "{.arg newdata} has {what} without ratings in the data.",
        i = "Their factors are those of the prior."
      ),
      users = users,
      items = items
    )
  }
}

# ---- ratings -----------------------------------------------------------------

# list(user, item, rating); sides as check_ids() makes them.
check_ratings <- function(
  user,
  item,
  rating,
  args = c("user", "item", "rating")
) {
  check_given(user, arg = args[[1]])
  check_given(item, arg = args[[2]])
  rating <- check_numeric_vector(rating, most = most_of_data, arg = args[[3]])
  user <- check_ids(user, args[[1]])
  item <- check_ids(item, args[[2]])
  for (side in list(list(user, args[[1]]), list(item, args[[2]]))) {
    check_same_rows(rating, side[[1]]$index, args[[3]], side[[2]])
  }
  list(user = user, item = item, rating = unname(rating))
}

# So many more numbers than ids: they are no row numbers.
sparse_ids <- 10

# list(index, labels, n): row numbers as doubles, what they are called (NULL:
# the numbers themselves), rows.
check_ids <- function(x, arg) {
  if (is.character(x)) {
    x <- factor(x)
  }
  if (is.factor(x)) {
    bad <- which(is.na(x))
    if (length(bad) > 0) {
      abort_value(x, bad[[1]], "not be missing", arg = arg)
    }
    return(list(
      index = as.double(as.integer(x)),
      labels = levels(x),
      n = as.double(nlevels(x))
    ))
  }
  check_id_numbers(x, arg)
  index <- as.double(x)
  check_dense(index, arg)
  list(index = index, labels = NULL, n = max(index))
}

# Are they row numbers, and not names that happen to be numbers?
check_dense <- function(index, arg) {
  check_density(max(index), length(unique(index)), arg)
}

# n: the largest number.
check_density <- function(n, n_distinct, arg) {
  if (n > 1000 && n > sparse_ids * n_distinct) {
    abort_input(
      c(
        "{.arg {arg}} must be row numbers, but its largest is {format_count(n)},
         and it has {format_count(n_distinct)} different ones.",
        i = "Make them the levels of a factor: {.code factor({arg})}."
      ),
      argument = arg,
      value = n
    )
  }
}

check_id_numbers <- function(x, arg) {
  if (!is_plain_numeric(x)) {
    abort_expected(x, "positive whole numbers, a factor or strings", arg = arg)
  }
  bad <- which(is.na(x) | x < 1 | x != round(x) | is.infinite(x))
  if (length(bad) > 0) {
    must <- "be positive whole numbers, a factor or strings"
    abort_value(x, bad[[1]], must, arg = arg)
  }
}
