# The rows of a fit of a regression. With fit$blueprint they are its model.

# The rows of a regression's fit, wherever they lie; NULL: it kept none. Of rows
# that are passed over what it kept of them, and the source, if it has that.
kept_rows <- function(fit) {
  if (is_remote_fit(fit)) {
    kept <- fit$remote$rows
    rows <- rows_passes(with_source(kept, fit$source), kept$in_sql)
    rows["facts"] <- list(fit$remote$found$facts)
    return(rows)
  }
  if (!is.null(fit$store)) {
    if (is.null(fit$source)) {
      return(NULL)
    }
    rows <- with_source(fit$store$rows, fit$source)
    return(rows_store(rows, fit$store$x))
  }
  if (!is.null(fit$data)) {
    return(rows_matrix(fit$data, fit$family))
  }
  if (!is.null(fit$frame)) {
    rows_frame(list(frame = fit$frame), frame_request_of(fit))
  }
}

# How the model frame of a fit is read.
frame_request_of <- function(fit) {
  switch(
    sub("tall_blueprint_", "", class(fit$blueprint)[[1]]),
    glm = request_glm(fit$family, isTRUE(fit$sparse)),
    groups = request_groups(fit$family, fit$bars, fit$sigma),
    classes = request_classes(class_methods[[fit$method]]$is_ordered),
    network = request_network()
  )
}

# Were its rows passed over?
is_remote_fit <- function(fit) {
  !is.null(fit$remote)
}
