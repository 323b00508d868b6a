# sg_tune()'s result: the table, what it says, a picture.

rung_table <- function(arms, rung) {
  field <- function(name, type) vapply(arms, function(arm) arm[[name]], type)
  data.frame(
    rung = rung,
    arm = field("index", 0L),
    iterations = field("iterations", 0),
    gradients = field("gradients", 0),
    seconds = field("seconds", 0),
    score = field("score", 0),
    survived = field("survived", TRUE),
    status = field("status", "")
  )
}

check_survivors <- function(arms, rung) {
  if (any(vapply(arms, function(arm) arm$survived, TRUE))) {
    return(invisible())
  }
  shown <- utils::head(
    arms[order(vapply(arms, function(arm) arm$index, 0L))],
    5
  )
  where <- vapply(shown, function(arm) escape_cli(stop_text(arm)), "")
  more <- length(arms) - length(shown)
  abort_tall(
    "nonfinite",
    c(
      "Every arm stopped in rung {rung}.",
      stats::setNames(where, rep("x", length(where))),
      if (more > 0) c(x = "... and {more} more."),
      i = "Try smaller step sizes, or give {.arg init} closer to the mode."
    ),
    status = "nonfinite",
    iteration = shown[[1]]$stopped_at,
    coordinate = shown[[1]]$place$coordinate,
    value = shown[[1]]$place$value
  )
}

# "sigma = 3: `age` became Inf at iteration 12"
stop_text <- function(arm) {
  because <- status_entry(arm$status, arm$place)$because
  paste0(
    arm$label,
    ": ",
    sub("[.]$", "", because),
    " at iteration ",
    format_count(arm$stopped_at)
  )
}

# ---- result ------------------------------------------------------------------

new_tune <- function(race, arms, grid, judge, about) {
  best <- arms[[race$best]]
  at <- match("arm", names(race$rungs))
  rungs <- cbind(
    race$rungs[seq_len(at)],
    grid[race$rungs$arm, , drop = FALSE],
    race$rungs[-seq_len(at)]
  )
  rownames(rungs) <- NULL
  # the last row of each arm; later rungs, then better scores, first
  last <- rungs[!duplicated(rungs$arm, fromLast = TRUE), ]
  last <- last[order(-last$rung, last$score), ]
  rownames(last) <- NULL
  structure(
    c(
      list(
        kernel = best$kernel,
        gradient = best$plan$gradient,
        subsample = best$subsample,
        schedule = best$plan$schedule,
        best = grid[race$best, , drop = FALSE],
        rungs = rungs,
        arms = last,
        tuned = names(grid),
        metric = judge$metric,
        spent = sum(last[[about$unit]]),
        scoring = race$scored,
        interrupted = race$interrupted
      ),
      about
    ),
    class = "tall_tune"
  )
}

#' @export
print.tall_tune <- function(x, ...) {
  check_no_dots(...)
  top <- x$arms[1, ]
  n_rung <- max(x$rungs$rung)
  cat(
    "<tall_tune> ", count_noun(nrow(x$arms), "arm"), " in ",
    count_noun(n_rung, "rung"), ", scored by ", toupper(x$metric), "\n",
    sep = ""
  )
  cat(
    "Best: ", row_text(x$best, 1), " (", toupper(x$metric), " ",
    format(top$score, digits = 3), " in rung ", top$rung, ")\n\n",
    sep = ""
  )
  shown <- lapply(split(x$rungs, x$rungs$rung), function(rung) {
    data.frame(
      rung = rung$rung[[1]],
      arms = nrow(rung),
      stopped = sum(rung$status != "ok"),
      # of the best arm; those that stopped made few
      iterations = rung$iterations[order(rung$score)][[1]],
      best = min(rung$score, na.rm = TRUE),
      median = stats::median(rung$score, na.rm = TRUE)
    )
  })
  print(do.call(rbind, shown), row.names = FALSE, digits = 3)
  cat_within_width(cat("\n", paste0(tune_notes(x), "\n"), sep = ""))
  invisible(x)
}

# Lines below the tables.
tune_notes <- function(x) {
  spent <- if (x$unit == "gradients") {
    passes <- paste0(
      " (", format(x$spent / x$n_data, digits = 3), " passes over the data)"
    )
    paste0(
      format_count(x$spent), " gradient evaluations", if (x$n_data > 0) passes
    )
  } else {
    paste(format(x$spent, digits = 3), "seconds")
  }
  c(
    paste0(
      "Sampling took ",
      spent,
      ", scoring ",
      format_count(x$scoring),
      " passes."
    ),
    if (!is.null(x$interrupted)) {
      paste0(
        "The race was interrupted in rung ",
        x$interrupted,
        ", which is left out."
      )
    },
    one_rung_note(x),
    edge_notes(x)
  )
}

# A race of one rung drops nothing on its way.
one_rung_note <- function(x) {
  if (max(x$rungs$rung) > 1 || !is.null(x$interrupted)) {
    return(NULL)
  }
  paste0(
    "The budget bought one rung only, of ",
    count_noun(nrow(x$arms), "arm"),
    ": each was scored once, after ",
    format_count(max(x$arms$iterations)),
    " iterations at most. More than one takes ",
    format_count(ceiling(x$eta^2 - 1e-9)),
    " arms; a larger `budget` makes longer runs."
  )
}

# The best of a grid may lie beyond it.
edge_notes <- function(x) {
  unlist(lapply(setdiff(x$tuned, "size"), function(name) {
    values <- x$arms[[name]]
    best <- x$best[[name]]
    if (!is.numeric(values) || length(unique(values)) < 2) {
      return(NULL)
    }
    which <- if (best == max(values)) {
      "largest"
    } else if (best == min(values)) {
      "smallest"
    }
    if (!is.null(which)) {
      paste0("The best ", name, " is the ", which, " of the grid: extend it.")
    }
  }))
}

#' @export
summary.tall_tune <- function(object, ...) {
  check_no_dots(...)
  class(object) <- c("summary.tall_tune", class(object))
  object
}

#' @export
print.summary.tall_tune <- function(x, ...) {
  check_no_dots(...)
  cat(
    "Arms by ", toupper(x$metric), ", those that came furthest first\n\n",
    sep = ""
  )
  columns <- c("rung", x$tuned, "iterations", "gradients", "score", "status")
  shown <- x$arms[columns]
  for (name in x$tuned) {
    if (is.list(shown[[name]])) {
      shown[[name]] <- vapply(shown[[name]], arg_text, "")
    }
  }
  print(utils::head(shown, 30), row.names = FALSE, digits = 3)
  if (nrow(shown) > 30) {
    cat("# ... with ", nrow(shown) - 30, " more\n", sep = "")
  }
  cat_within_width(cat("\n", paste0(tune_notes(x), "\n"), sep = ""))
  invisible(x)
}

#' Plot a tuning race
#'
#' The scores of all arms against what was tuned, rung by rung; arms that went
#' on are filled.
#'
#' @param x (`tall_tune`) What [sg_tune()] returned.
#' @param ... Not used.
#' @return A `ggplot` object. Arms that stopped have no score and are left out.
#' @examples
#' model <- model_gaussian(matrix(rnorm(2000), 1000), covariance = diag(2))
#' grid <- list(step_size = 10^seq(-6, -3, length.out = 7), size = c(10, 100))
#' tuned <- sg_tune(model, kernel_sgld, grid, budget = 2e5, seed = 1)
#' plot(tuned)
#' @export
plot.tall_tune <- function(x, ...) {
  check_no_dots(...)
  rlang::check_installed("ggplot2", "to plot a tuning race")
  table <- x$rungs[is.finite(x$rungs$score), ]
  # arms on their way out would flatten the others
  limit <- 1000 * min(table$score[table$score > 0])
  is_far <- table$score > limit
  table$score <- pmin(table$score, limit)
  table$rung <- factor(paste("rung", table$rung))
  is_axis <- vapply(table[x$tuned], is.numeric, TRUE) & x$tuned != "size"
  axis <- c(x$tuned[is_axis], "arm")[[1]]
  panels <- setdiff(x$tuned, axis)
  table$panel <- if (length(panels) > 0) {
    vapply(seq_len(nrow(table)), function(k) row_text(table[panels], k), "")
  } else {
    ""
  }
  table$panel <- factor(table$panel, unique(table$panel[order(table$arm)]))
  picture <- ggplot2::ggplot(
    table,
    ggplot2::aes(
      x = .data[[axis]],
      y = .data[["score"]],
      colour = .data[["rung"]]
    )
  ) +
    ggplot2::geom_line() +
    ggplot2::geom_point(ggplot2::aes(shape = .data[["survived"]]), size = 2.5) +
    ggplot2::scale_shape_manual(
      values = c(`TRUE` = 16, `FALSE` = 1),
      labels = c(`TRUE` = "goes on, or wins", `FALSE` = "dropped")
    ) +
    ggplot2::scale_y_log10() +
    ggplot2::labs(
      y = toupper(x$metric),
      colour = NULL,
      shape = NULL,
      caption = if (any(is_far)) {
        paste(
          count_noun(sum(is_far), "score"),
          "above",
          format_number(signif(limit, 2)),
          "drawn there"
        )
      }
    )
  if (axis != "arm" && all(table[[axis]] > 0)) {
    picture <- picture + ggplot2::scale_x_log10()
  }
  if (length(panels) > 0) {
    picture <- picture + ggplot2::facet_wrap("panel")
  }
  picture
}

# "sigma = 0.001, size = 100"
row_text <- function(grid, k) {
  values <- vapply(grid, function(column) arg_text(column[[k]]), "")
  paste(names(grid), "=", values, collapse = ", ")
}
