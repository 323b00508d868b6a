# Pictures of smooth terms and of effects.

#' Plot smooth terms
#'
#' Curves with their bands, surfaces, and effects of levels.
#'
#' @param x (`tall_gam`) The fit.
#' @param type (string) `"smooth"`, or any type of [plot.tall_fit()]. A fit
#'   without smooth terms has `"trace"` as its default, as other fits.
#' @param smooths (string vector or `NULL`) Which terms, as of
#'   [posterior_smooths()]; `NULL`: all curves, or where there are none
#'   surfaces, or effects of levels.
#' @param prob (number between 0 and 1) Of the bands, at each point.
#' @param partial (whole number) Of how many rows to show partial residuals: the
#'   curve and what is left of the row's response, as a working residual
#'   \eqn{(y_i - \mu_i) / (d \mu_i / d \eta_i)}{(y - mu) / (dmu / deta)} at the
#'   posterior mean. 0: none. Only of curves without `by`.
#' @param rug (`TRUE` or `FALSE`) Ticks at percentiles of the data?
#' @param derivative (`TRUE` or `FALSE`) Derivatives of the curves instead?
#' @param resolution,ndraws As of [posterior_smooths()].
#' @param ... Passed on to [plot.tall_fit()].
#'
#' @return A ggplot, with a panel for each term.
#' @section Conditions: Those of [posterior_smooths()]; `tall_error_stale` where
#'   partial residuals are asked for and the fit has no rows to take them of.
#' @seealso [conditional_effects()] on the scale of the response
#' @examplesIf requireNamespace("ggplot2", quietly = TRUE)
#' fit <- tall_gam(mpg ~ s(wt, k = 6) + s(hp, k = 6), mtcars, seed = 1)
#' plot(fit, "smooth", partial = 32)
#' @export
plot.tall_gam <- function(
  x,
  type = c(
    "smooth",
    "trace",
    "dens",
    "intervals",
    "noise",
    "size",
    "monitor"
  ),
  smooths = NULL,
  prob = 0.95,
  partial = 0,
  rug = TRUE,
  derivative = FALSE,
  resolution = 100,
  ndraws = NULL,
  ...
) {
  if (missing(type) && !has_smooths(x)) {
    type <- "trace"
  }
  type <- check_plot_type(type, c("smooth", own_plots))
  if (type != "smooth") {
    return(plot.tall_fit(x, type, ...))
  }
  check_no_dots(...)
  check_flag(rug)
  partial <- check_count(partial, min = 0)
  rlang::check_installed("ggplot2", "to plot smooth terms")
  shown <- conditional_smooths(
    x,
    smooths,
    prob,
    resolution,
    ndraws,
    derivative
  )
  shapes <- vapply(shown, attr, "", "shape")
  shape <- intersect(c("curve", "surface", "levels"), shapes)[[1]]
  if (!is.null(smooths)) {
    shape <- shapes[[1]]
  }
  left <- names(shown)[shapes != shape]
  if (length(left) > 0) {
    cli::cli_inform(
      "Not in the same picture: {.val {left}}; choose with {.arg smooths}."
    )
  }
  shown <- shown[shapes == shape]
  of_data <- smooth_points(x, shown, if (derivative) 0 else partial, rug)
  draw_panels(shown, shape, of_data, if (derivative) "derivative" else "effect")
}

# One table of several, with a column for the panel, the axes as x and z, and
# what else tells rows apart as group.
panel_table <- function(tables) {
  parts <- lapply(tables, function(table) {
    axes <- attr(table, "axes")
    shape <- attr(table, "shape")
    n_axis <- switch(shape, surface = 2, curve = 1, levels = 0)
    groups <- table[axes[seq_along(axes) > n_axis]]
    data.frame(
      panel = panel_label(table),
      x = if (n_axis > 0) as.double(table[[axes[[1]]]]) else NA_real_,
      z = if (n_axis > 1) as.double(table[[axes[[2]]]]) else NA_real_,
      group = if (length(groups) > 0) {
        as.character(interaction(groups, sep = ", "))
      } else {
        ""
      },
      table[c("estimate__", "lower__", "upper__")]
    )
  })
  out <- do.call(rbind, unname(parts))
  out$panel <- factor(out$panel, unique(out$panel))
  out
}

panel_label <- function(table) {
  attr(table, "label")
}

draw_panels <- function(tables, shape, of_data, ylab) {
  data <- panel_table(tables)
  aes <- ggplot2::aes
  draw <- switch(
    shape,
    curve = draw_curves(data, of_data),
    surface = ggplot2::ggplot(data, aes(.data[["x"]], .data[["z"]])) +
      ggplot2::geom_raster(aes(fill = .data[["estimate__"]])) +
      ggplot2::geom_contour(
        aes(z = .data[["estimate__"]]),
        colour = "grey30",
        linewidth = 0.2
      ) +
      ggplot2::scale_fill_gradient2(name = ylab),
    levels = draw_levels(data)
  )
  axes <- attr(tables[[1]], "axes")
  is_one <- length(tables) == 1
  draw +
    ggplot2::facet_wrap(ggplot2::vars(.data[["panel"]]), scales = "free_x") +
    ggplot2::labs(
      x = if (is_one) axes[[1]] else NULL,
      y = if (shape == "surface" && is_one) axes[[2]] else ylab
    )
}

draw_levels <- function(data) {
  data$group <- stats::reorder(data$group, data$estimate__)
  ggplot2::ggplot(data, ggplot2::aes(.data[["group"]], .data[["estimate__"]])) +
    ggplot2::geom_pointrange(
      ggplot2::aes(ymin = .data[["lower__"]], ymax = .data[["upper__"]]),
      size = 0.2
    )
}

draw_curves <- function(data, of_data) {
  aes <- ggplot2::aes
  has_groups <- any(data$group != "")
  out <- ggplot2::ggplot(data, aes(.data[["x"]], .data[["estimate__"]]))
  if (!is.null(of_data$residuals)) {
    out <- out +
      ggplot2::geom_point(
        aes(y = .data[["y"]]),
        of_data$residuals,
        colour = "grey60",
        size = 0.5
      )
  }
  out <- out +
    ggplot2::geom_ribbon(
      aes(
        ymin = .data[["lower__"]],
        ymax = .data[["upper__"]],
        fill = .data[["group"]]
      ),
      alpha = 0.3,
      show.legend = has_groups
    ) +
    ggplot2::geom_line(
      aes(colour = .data[["group"]]),
      show.legend = has_groups
    )
  if (!is.null(of_data$rug)) {
    out <- out +
      ggplot2::geom_rug(
        aes(x = .data[["x"]]),
        of_data$rug,
        inherit.aes = FALSE,
        alpha = 0.4
      )
  }
  if (!has_groups) {
    out <- out +
      ggplot2::scale_colour_manual(values = "steelblue4") +
      ggplot2::scale_fill_manual(values = "steelblue")
  }
  out + ggplot2::labs(colour = NULL, fill = NULL)
}

# list(rug, residuals): points of the data in panels of curves; NULL where there
# are none. n: of how many rows residuals are wanted.
smooth_points <- function(fit, tables, n, rug) {
  some <- fit$sketch$some
  if (NROW(some) == 0) {
    if (n > 0) {
      abort_tall(
        "stale",
        c(
          "{.arg partial} needs rows of the data, which the fit did not keep.",
          i = "Fit a data frame with {.code keep_data = TRUE}."
        ),
        argument = "partial",
        value = n
      )
    }
    return(list())
  }
  curves <- Filter(function(table) attr(table, "shape") == "curve", tables)
  along <- function(table) {
    axis <- attr(table, "axes")[[1]]
    as.double(eval(str2lang(axis), some, environment(fit$formula)))
  }
  bind <- function(f) {
    parts <- lapply(curves, f)
    out <- do.call(rbind, unname(parts))
    if (!is.null(out)) {
      out$panel <- factor(out$panel, vapply(curves, panel_label, ""))
    }
    out
  }
  out <- list()
  if (rug) {
    out$rug <- bind(function(table) {
      x <- stats::quantile(along(table), (0:100) / 100, names = FALSE)
      data.frame(panel = panel_label(table), x = x)
    })
  }
  if (n > 0) {
    rows <- seq_len(min(n, nrow(some)))
    rows <- unique(round(seq(1, nrow(some), length.out = length(rows))))
    left <- working_residuals(fit, some[rows, , drop = FALSE])
    out$residuals <- bind(function(table) {
      record <- find_smooth(fit, attr(table, "label"))
      if (!is.null(record$by) || length(record$levels) > 0) {
        return(NULL)
      }
      own <- smooth_data(fit, record, some[rows, , drop = FALSE])
      mean <- colMeans(smooth_theta(fit, record))
      at <- drop(smooth_values(record, own) %*% mean)
      data.frame(panel = panel_label(table), x = along(table)[rows],
                 y = at + left)
    })
  }
  out
}

# (y - mu) / (dmu / deta) of rows at the posterior mean.
working_residuals <- function(fit, data) {
  rows <- test_rows(fit, data)
  draws <- choose_draws(fit, NULL)
  eta <- predictor_moments(fit, rows, draws, "link", FALSE)$fit
  mean_at <- function(eta) {
    drop(response_mean(fit$family, matrix(eta, 1)))
  }
  slope <- (mean_at(eta + 1e-4) - mean_at(eta - 1e-4)) / 2e-4
  (rows$y - mean_at(eta)) / slope
}

#' @rdname conditional_effects
#' @export
plot.tall_conditional <- function(x, ...) {
  check_no_dots(...)
  rlang::check_installed("ggplot2", "to plot effects")
  ylab <- switch(
    attr(x, "what"),
    smooth = "effect",
    derivative = "derivative",
    predictor = "linear predictor",
    response = "expected response"
  )
  pictures <- lapply(unclass(x), function(table) {
    draw_panels(list(table), attr(table, "shape"), list(), ylab)
  })
  if (length(pictures) == 1) {
    return(pictures[[1]])
  }
  structure(pictures, what = NULL, class = c("tall_pictures", "list"))
}

#' @export
print.tall_pictures <- function(x, ...) {
  check_no_dots(...)
  for (picture in unclass(x)) {
    print(picture)
  }
  invisible(x)
}
