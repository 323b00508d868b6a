# The design that a look at a source finds: of the pilot's rows, and how all
# rows are read.

# A look, and how it says that rows are read: list(rows, look, pilot, parts),
# `rows` for each_chunk() and others of R/mode-passes.R, `pilot` and `parts` as
# pilot_frame() and frame_parts() have them. Without `rows`: the source is small
# or has too many levels, and all its rows can be had at once.
read_design <- function(source, request, matched, control, call) {
  look <- take_look(source, request, control$refresh, call)
  if (is.null(look) || look$is_whole) {
    return(list(look = look))
  }
  pilot <- pilot_frame(look, request, matched, call)
  refuse_dependent(request, pilot, call)
  parts <- frame_parts(pilot$frame, request$family, call)
  rows <- list(
    source = source,
    request = request,
    design = compile_design(pilot$whole, call = call),
    response_levels = look$response_levels,
    has_weights = !is.null(parts$weights) || !is.null(parts$trials),
    has_offset = !is.null(parts$offset),
    family = request$family,
    n_row = look$n_row,
    digest = look$digest
  )
  list(rows = rows, look = look, pilot = pilot, parts = parts)
}

# The model frames of the pilot's rows, and of these with those at the ends of
# columns; how many rows each of the former stands for.
pilot_frame <- function(look, request, matched, call) {
  n <- nrow(look$frame)
  data <- look$frame
  if (!is.null(look$ends)) {
    data <- bind_frames(list(data, look$ends))
  }
  frame_call <- matched[c(1, match(
    c("formula", "weights", "offset"),
    names(matched),
    0
  ))]
  frame_call$formula <- request$formula
  frame_call$weights <- request$weights
  frame_call$offset <- request$offsets[[length(request$offsets)]]
  frame_call$data <- data
  frame_call$na.action <- stats::na.omit
  frame_call$drop.unused.levels <- TRUE
  frame_call[[1]] <- quote(stats::model.frame)
  whole <- tryCatch(
    eval(frame_call, request$env),
    error = function(e) {
      abort_frame(
        e,
        request$formula,
        frame_call,
        request$known,
        request$env,
        call
      )
    }
  )
  left <- setdiff(seq_len(nrow(data)), as.integer(attr(whole, "na.action")))
  own <- left <= n
  frame <- whole[own, , drop = FALSE]
  attr(frame, "terms") <- attr(whole, "terms")
  frame_call$data <- matched$data
  list(
    data = data,
    whole = whole,
    frame = frame,
    stands = look$weights[left[own]],
    call = frame_call
  )
}

refuse_dependent <- function(request, pilot, call) {
  more <- request[c("weights", "subset")]
  bad <- row_dependent(
    attr(pilot$whole, "terms"),
    pilot$data,
    request$env,
    Filter(function(expression) !is.null(expression), more)
  )
  if (length(bad) == 0) {
    return(invisible())
  }
  abort_input(
    c(
      "The term {.code {bad[[1]]}} depends on other rows than its own, and of so
       many rows some are seen at a time.",
      i = "Compute it before, as a column of {.arg data}, or with fixed numbers:
           {.code cut(x, c(0, 1, 2))}, {.code x - 3.2}."
    ),
    argument = "formula",
    value = bad,
    call = call
  )
}
