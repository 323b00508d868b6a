# Draws which room of R/ uses which, and fails where an arrow points upwards or
# files go round in a circle.
#
#   Rscript tools/layers.R          the arrows, the offences and their number
#   Rscript tools/layers.R files    and the arrows between files
#   Rscript tools/layers.R write    the picture of CONTRIBUTING.md, drawn anew
#
# A file's room is its prefix (design: prefix is room). A function may use those
# of its own room and of the rooms below; what is above is reached by dispatch
# (a generic stands below, its methods above) or handed in. Within a room it is
# the same from file to file: whoever starts at one never comes back to it.
#
# What counts as a use, of a function or another value at the top of a file:
# * its name, called or not: one that is handed to another function, or kept in
#   a list, is used by who names it, and not by who calls it in the end;
# * a method that is called by its own name, such as `print.tall_fit(x)`;
# * its name as text, where a function is looked up by it: `do.call("name")`;
# * a method uses its generic. A call of a generic uses the generic alone:
#   which method is meant is known to nobody before it runs.
#
# No file may be longer than 500 lines, no name be defined twice, and no
# function have more than 8 arguments but exports and methods of other packages'
# generics.

# From the ground up, and what each knows.
rooms <- c(
  util = "words, checks, conditions, memory, files",
  source = "where rows lie, handed out block by block",
  response = "how an observation depends on its predictors",
  prior = "densities of parameters",
  design = "a formula, and columns made of blocks of rows",
  rows = "the rows of a regression: design, response, who owns what",
  model = "rows x response x prior",
  schedule = "factors of step sizes",
  kernel = "steps",
  gradient = "estimates of the gradient",
  subsample = "which rows a step sees",
  mode = "the mode, curvature and weights",
  run = "a run compiled, advanced, recorded, resumed",
  plan = "what is run where nothing is said",
  fit = "draws, and all that is done with them",
  diag = "how far draws are off",
  tune = "settings found by short runs",
  front = "formulas in, fits out",
  tallbayes = "the package's own page",
  zzz = "what happens when it is loaded"
)
longest <- 500
widest <- 8

# Constructors of entries of a registry, whose fields are their arguments.
entries <- c("prior_kind", "response_entry")

room_of <- function(file) {
  sub("[-.].*", "", file)
}

# ---- what is used ------------------------------------------------------------

# What a file defines at top level: its values, by name; expressions without a
# name are kept as "<file>".
read_values <- function(path) {
  out <- list()
  for (expression in parse(path, keep.source = FALSE)) {
    is_named <- rlang::is_call(expression, c("<-", "="), n = 2) &&
      is.name(expression[[2]])
    name <- if (is_named) as.character(expression[[2]]) else "<file>"
    value <- if (is_named) expression[[3]] else expression
    out <- c(out, stats::setNames(list(value), name))
  }
  out
}

# An expression's parts, without arguments that are left empty.
present_parts <- function(e) {
  parts <- as.list(e)
  is_empty <- vapply(seq_along(parts), function(k) {
    rlang::is_missing(parts[[k]])
  }, TRUE)
  parts[!is_empty]
}

# f(call) of every call within an expression.
each_call <- function(e, f) {
  if (is.call(e)) {
    f(e)
  }
  if (is.call(e) || is.pairlist(e)) {
    for (part in present_parts(e)) {
      each_call(part, f)
    }
  }
}

# Functions that find another by its name, and which of their arguments it is.
finders <- c(
  do.call = 1,
  match.fun = 1,
  get = 1,
  get0 = 1,
  exec = 1,
  call2 = 1,
  Map = 1,
  Filter = 1,
  Reduce = 1,
  mapply = 1,
  lapply = 2,
  sapply = 2,
  vapply = 2
)

# Names that codetools does not see as free: text by which a function is found,
# names behind `tallbayes::`, and the function in `rows <- rows(x)`.
hidden_names <- function(value) {
  found <- character()
  each_call(value, function(e) {
    # also those of other packages, such as rlang::exec()
    head <- if (is.call(e[[1]])) e[[1]][[length(e[[1]])]] else e[[1]]
    at <- if (is.name(head)) finders[as.character(head)] else NA
    if (!is.na(at) && length(e) > at && is.character(e[[at + 1]])) {
      found <<- c(found, e[[at + 1]])
    }
    if (rlang::is_call(e, c("::", ":::")) && e[[2]] == "tallbayes") {
      found <<- c(found, as.character(e[[3]]))
    }
    if (rlang::is_call(e, "<-", n = 2) && is.name(e[[2]])) {
      each_call(e[[3]], function(inner) {
        if (identical(inner[[1]], e[[2]])) {
          found <<- c(found, as.character(e[[2]]))
        }
      })
    }
  })
  found
}

# Free names of an expression, local variables left out.
free_names <- function(value) {
  f <- eval(call("function", NULL, call("{", value)), baseenv())
  unique(c(codetools::findGlobals(f), hidden_names(value)))
}

is_function <- function(value) {
  rlang::is_call(value, "function")
}

is_generic <- function(value) {
  is_dispatch <- FALSE
  if (is_function(value)) {
    each_call(value[[3]], function(e) {
      is_dispatch <<- is_dispatch || identical(e[[1]], quote(UseMethod))
    })
  }
  is_dispatch
}

# The generic of these that a method of that name has; NULL: it is none.
generic_of <- function(name, generics) {
  dots <- gregexpr(".", name, fixed = TRUE)[[1]]
  heads <- substring(name, 1, dots - 1)
  is_there <- heads %in% generics
  if (dots[[1]] > 0 && any(is_there)) heads[is_there][[1]]
}

# The files of a folder: what each defines, and which value of which file uses
# which of another one.
read_house <- function(folder) {
  files <- list.files(folder, pattern = "[.]R$")
  values <- lapply(file.path(folder, files), read_values)
  names(values) <- files
  home <- rep(files, lengths(values))
  names(home) <- unlist(lapply(values, names))
  all <- unlist(unname(values), recursive = FALSE)
  generics <- names(all)[vapply(all, is_generic, TRUE)]
  uses <- lapply(files, function(file) {
    Map(function(name, value) {
      used <- c(free_names(value), generic_of(name, generics))
      used <- intersect(used, names(home))
      used <- used[home[used] != file]
      data.frame(
        file = rep(file, length(used)),
        name = rep(name, length(used)),
        used = used,
        used_file = unname(home[used])
      )
    }, names(values[[file]]), values[[file]])
  })
  arrows <- do.call(rbind, unlist(uses, recursive = FALSE))
  rownames(arrows) <- NULL
  list(folder = folder, files = files, home = home, all = all, arrows = arrows)
}

# ---- what is wrong -----------------------------------------------------------

# Each of these returns a sentence for every offence.

unknown_rooms <- function(house) {
  unknown <- setdiff(room_of(house$files), names(rooms))
  sprintf("no room is called %s", unknown)
}

# the one in the file that is read last would be both
defined_twice <- function(house) {
  names <- names(house$home)
  twice <- setdiff(names[duplicated(names)], "<file>")
  vapply(twice, function(name) {
    where <- paste0("R/", house$home[names == name], collapse = " and ")
    paste(name, "is defined in", where)
  }, "")
}

arrow_text <- function(arrows) {
  sprintf(
    "R/%s: %s uses %s of R/%s",
    arrows$file,
    arrows$name,
    arrows$used,
    arrows$used_file
  )
}

upward_arrows <- function(house) {
  arrows <- house$arrows
  from <- match(room_of(arrows$file), names(rooms))
  to <- match(room_of(arrows$used_file), names(rooms))
  upward <- arrows[which(from < to), ]
  arrow_text(upward[order(upward$file, upward$used_file, upward$used), ])
}

long_files <- function(house) {
  n <- vapply(file.path(house$folder, house$files), function(path) {
    length(readLines(path))
  }, 0)
  sprintf("R/%s has %d lines, more than %d", house$files, n, longest)[
    n > longest
  ]
}

# exports: names that users call, and methods that other packages call.
wide_functions <- function(house, exports) {
  functions <- house$all[vapply(house$all, is_function, TRUE)]
  functions <- functions[!names(functions) %in% c(exports, entries)]
  n <- vapply(functions, function(value) length(value[[2]]), 0)
  where <- house$home[names(functions)]
  sprintf(
    "R/%s: %s has %d arguments, more than %d",
    where,
    names(functions),
    n,
    widest
  )[n > widest]
}

# What NAMESPACE hands out: functions, and methods of those and of generics of
# other packages.
exports_of <- function(path, house) {
  directives <- as.list(parse(path, keep.source = FALSE))
  words <- lapply(directives, function(e) {
    vapply(as.list(e)[-1], function(word) gsub("\"", "", deparse1(word)), "")
  })
  kind <- vapply(directives, function(e) as.character(e[[1]]), "")
  exports <- unlist(words[kind == "export"])
  inner <- setdiff(names(house$home), exports)
  methods <- lapply(words[kind == "S3method"], function(method) {
    if (!method[[1]] %in% inner) {
      # as it is called: in the third place, or as dispatch finds it
      c(method, sub(".*::", "", paste0(method[[1]], ".", method[[2]])))[[3]]
    }
  })
  c(exports, unlist(methods))
}

# ---- circles -----------------------------------------------------------------

# Files from which an arrow leads to each, by name.
targets_of <- function(house) {
  pairs <- unique(house$arrows[c("file", "used_file")])
  targets <- split(pairs$used_file, factor(pairs$file, house$files))
  lapply(targets, sort)
}

# The shortest way from a file of a circle to itself.
way_round <- function(start, targets) {
  before <- character()
  reached <- start
  while (length(reached) > 0) {
    new <- character()
    for (at in reached) {
      for (to in targets[[at]]) {
        if (to == start) {
          return(walk_back(at, before))
        }
        if (!to %in% names(before)) {
          before[[to]] <- at
          new <- c(new, to)
        }
      }
    }
    reached <- new
  }
}

walk_back <- function(at, before) {
  way <- at
  while (way[[1]] %in% names(before)) {
    way <- c(before[[way[[1]]]], way)
  }
  way
}

# Files that lead to each other, and the shortest way round that there is among
# them; the largest circle first.
find_circles <- function(house) {
  targets <- targets_of(house)
  leads <- vapply(targets, function(to) house$files %in% to, !house$files == "")
  leads <- t(leads)
  # twice as far each time
  repeat {
    further <- leads | (leads %*% leads > 0)
    if (identical(further, leads)) {
      break
    }
    leads <- further
  }
  circles <- unique(lapply(which(diag(leads)), function(k) {
    house$files[leads[k, ] & leads[, k]]
  }))
  circles <- circles[order(-lengths(circles))]
  lapply(circles, function(files) {
    ways <- lapply(files, way_round, targets)
    list(files = files, way = ways[[which.min(lengths(ways))]])
  })
}

# A circle, and the functions that make the shortest way round it.
circle_text <- function(circle, house) {
  way <- circle$way
  arrows <- house$arrows
  steps <- Map(function(from, to) {
    step <- arrows[arrows$file == from & arrows$used_file == to, ]
    paste0("\n    ", arrow_text(step), collapse = "")
  }, way, c(way[-1], way[[1]]))
  paste0(
    length(circle$files),
    " files lead back to themselves: ",
    paste0("R/", circle$files, collapse = " "),
    "\n  the shortest way round:",
    paste(unlist(steps), collapse = "")
  )
}

file_circles <- function(house) {
  vapply(find_circles(house), circle_text, "", house)
}

# ---- the picture -------------------------------------------------------------

# A floor for each room, the highest first: its files, and how many uses it
# makes of each room below, by the number of its floor, and of its own.
draw_house <- function(house) {
  from <- factor(room_of(house$arrows$file), names(rooms))
  to <- factor(room_of(house$arrows$used_file), names(rooms))
  floors <- intersect(names(rooms), room_of(house$files))
  floors <- setdiff(floors, c("tallbayes", "zzz"))
  uses <- unclass(table(from, to))[floors, floors]
  cells <- ifelse(uses == 0, ".", uses)
  # of what is above nothing
  cells[upper.tri(cells)] <- ""
  rows <- cbind(
    formatC(seq_along(floors), width = 2),
    formatC(floors, width = -max(nchar(floors)) - 1),
    formatC(c(table(factor(room_of(house$files), floors))), width = 5),
    matrix(formatC(cells, width = 4), length(floors))
  )
  feet <- paste(formatC(seq_along(floors), width = 3), collapse = " ")
  head <- formatC("files", width = nchar(paste(rows[1, 1:3], collapse = " ")))
  lines <- apply(rows[rev(seq_along(floors)), ], 1, function(row) {
    paste0(paste(row[1:3], collapse = " "), paste(row[-(1:3)], collapse = ""))
  })
  unname(sub(" +$", "", c(lines, paste0(head, " ", feet))))
}

markers <- c("<!-- the house: begin -->", "<!-- the house: end -->")

# The page with the picture between its markers.
with_picture <- function(page, picture) {
  at <- match(markers, page)
  if (anyNA(at)) {
    stop("CONTRIBUTING.md has no place for the picture.")
  }
  picture <- c("", "```text", picture, "```", "")
  c(page[seq_len(at[[1]])], picture, page[at[[2]]:length(page)])
}

# ---- all of it ---------------------------------------------------------------

check_house <- function(given) {
  house <- read_house("R")
  cat("How many uses a room makes of each room below:\n\n")
  picture <- draw_house(house)
  writeLines(picture)
  if ("files" %in% given) {
    pairs <- unique(house$arrows[c("file", "used_file")])
    pairs <- pairs[order(pairs$file, pairs$used_file), ]
    cat("\n", sprintf("%s -> %s\n", pairs$file, pairs$used_file), sep = "")
  }
  page <- readLines("CONTRIBUTING.md", encoding = "UTF-8")
  drawn <- with_picture(page, picture)
  if ("write" %in% given) {
    writeLines(drawn, "CONTRIBUTING.md", useBytes = TRUE)
    page <- drawn
  }
  offences <- c(
    unknown_rooms(house),
    defined_twice(house),
    upward_arrows(house),
    long_files(house),
    wide_functions(house, exports_of("NAMESPACE", house)),
    file_circles(house),
    if (!identical(page, drawn)) {
      "the picture of CONTRIBUTING.md is old: Rscript tools/layers.R write"
    }
  )
  cat("\n", sprintf("not ok %s\n", offences), sep = "")
  cat(length(house$files), " passed, ", length(offences), " failed\n", sep = "")
  quit(status = length(offences) > 0)
}

# source()d by a test for the functions above
if (sys.nframe() == 0) {
  if (!dir.exists("R")) {
    stop("Run this from the root of the package.")
  }
  check_house(commandArgs(TRUE))
}
