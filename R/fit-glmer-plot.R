# Pictures of groups: their effects in order, and how far they were drawn to
# the population.

#' Plot a multilevel fit
#'
#' @param x (`tall_glmer`) The fit, from [tall_glmer()]; of the method for
#'   `tall_ranef` what [ranef()][tall_glmer-methods] made of it.
#' @param type (string) `"caterpillar"`: the effects of groups in their order,
#'   with intervals. `"shrinkage"`: each group's effect as the fit has it
#'   against what its own rows alone say; the slope of the points is how much
#'   of it is believed, and rows decide it; of one grouping factor. Or any type
#'   of [plot.tall_fit()].
#' @param prob (number between 0 and 1) Probability of the intervals of
#'   `"caterpillar"`, those of a normal distribution.
#' @param n (whole number) The most groups of a factor to draw. Of more, as many
#'   are taken, evenly spaced in the order of the effects (`"caterpillar"`) or
#'   of the sizes (`"shrinkage"`).
#' @param ... Passed on to [plot.tall_fit()].
#'
#' @details What a group's rows alone say is the mean of the normal
#' distribution whose product with the population's, at the posterior mean of
#' the parameters, has
#' the mean and covariance of the effects. With a Gaussian response it is the
#' estimate by least squares; with others it stays finite where all responses of
#' a group are 0. Groups whose rows cannot tell effects apart are left out.
#'
#' @return A ggplot object.
#' @section Conditions: `tall_error_stale` where the fit did not keep its data.
#' @examplesIf requireNamespace("ggplot2", quietly = TRUE)
#' d <- data.frame(g = rep(1:60, each = 10), x = rnorm(600))
#' d$y <- rbinom(600, 1, plogis(d$x + rnorm(60)[d$g]))
#' fit <- tall_glmer(y ~ x + (1 | g), data = d, family = binomial(), seed = 1)
#' plot(fit, "caterpillar")
#' plot(fit, "shrinkage")
#' plot(ranef(fit))
#' @export
plot.tall_glmer <- function(
  x,
  type = c(
    "trace",
    "dens",
    "intervals",
    "caterpillar",
    "shrinkage",
    "noise",
    "size",
    "monitor"
  ),
  prob = 0.95,
  n = 500,
  ...
) {
  own <- c("caterpillar", "shrinkage")
  type <- check_plot_type(
    type,
    append(own_plots, own, match("intervals", own_plots))
  )
  if (!type %in% own) {
    if (!missing(prob)) {
      return(plot.tall_fit(x, type, prob = prob, ...))
    }
    return(plot.tall_fit(x, type, ...))
  }
  check_no_dots(...)
  prob <- check_prob(prob)
  n <- check_count(n)
  rlang::check_installed("ggplot2", "to plot a fit")
  if (type == "caterpillar") {
    plot_caterpillar(ranef(x), prob, n)
  } else {
    plot_shrinkage(x, n)
  }
}

#' @rdname plot.tall_glmer
#' @export
plot.tall_crossed <- function(
  x,
  type = c(
    "trace",
    "dens",
    "intervals",
    "caterpillar",
    "noise",
    "size",
    "monitor"
  ),
  prob = 0.95,
  n = 500,
  ...
) {
  if (identical(type, "shrinkage")) {
    abort_tall(
      "unsupported",
      c(
        "{.code type = \"shrinkage\"} is of one grouping factor: what the rows
         of a group alone say depends on the effects of the other factors, which
         are not known.",
        i = "{.code type = \"caterpillar\"} has the effects of all factors."
      ),
      argument = "type",
      value = type
    )
  }
  if (missing(type)) {
    type <- "trace"
  }
  if (!identical(type, "caterpillar") && missing(prob)) {
    return(plot.tall_glmer(x, type, ...))
  }
  plot.tall_glmer(x, type, prob = prob, n = n, ...)
}

#' @rdname plot.tall_glmer
#' @export
plot.tall_ranef <- function(x, prob = 0.95, n = 500, ...) {
  check_no_dots(...)
  prob <- check_prob(prob)
  n <- check_count(n)
  rlang::check_installed("ggplot2", "to plot effects")
  plot_caterpillar(x, prob, n)
}

#' @export
print.tall_ranef <- function(x, n = 10, ...) {
  check_no_dots(...)
  n <- check_count(n)
  for (name in names(x)) {
    table <- x[[name]]
    cat(
      "Effects of ", count_noun(nrow(table), "group"), " of ", name,
      ": posterior means\n",
      sep = ""
    )
    shown <- utils::head(table, n)
    attr(shown, "sd") <- NULL
    print(shown, digits = 3)
    if (nrow(table) > n) {
      cat("# ... with ", count_noun(nrow(table) - n, "more group"), "\n",
        sep = ""
      )
    }
  }
  invisible(x)
}

# At most n of the places 1..size, evenly spaced, both ends among them.
spread_places <- function(size, n) {
  if (size <= n) seq_len(size) else unique(round(seq(1, size, length.out = n)))
}

# effects: of ranef(). A panel for each effect of each factor.
plot_caterpillar <- function(effects, prob, n) {
  z <- stats::qnorm((1 + prob) / 2)
  is_several <- length(effects) > 1
  data <- do.call(rbind, lapply(names(effects), function(name) {
    part <- caterpillar_table(effects[[name]], z, n)
    if (is_several) {
      part$effect <- paste0(name, ": ", part$effect)
    }
    part
  }))
  data$effect <- factor(data$effect, unique(data$effect))
  sizes <- vapply(effects, nrow, 1L)
  of <- if (is_several) "groups" else paste("groups of", names(effects))
  ggplot2::ggplot(
    data,
    ggplot2::aes(.data$place, .data$mean, ymin = .data$lower,
      ymax = .data$upper)
  ) +
    ggplot2::geom_hline(yintercept = 0, colour = "grey60") +
    ggplot2::geom_linerange(colour = "#9ecae1", linewidth = 0.4) +
    ggplot2::geom_point(colour = "#08519c", size = 0.6) +
    ggplot2::facet_wrap(
      "effect",
      scales = if (is_several) "free" else "free_y"
    ) +
    ggplot2::labs(
      x = paste0(of, ", in the order of their effect"),
      y = paste0("effect, mean and ", percent_of(prob), " interval"),
      caption = if (is_several && any(sizes > n)) {
        paste(format_count(n), "groups of each factor at most")
      } else if (any(sizes > n)) {
        paste(format_count(n), "of", format_count(sizes[[1]]), "groups")
      }
    )
}

# mean: a data frame of ranef(); z: half the width of intervals, in sds
caterpillar_table <- function(mean, z, n) {
  sd <- attr(mean, "sd")
  do.call(rbind, lapply(names(mean), function(effect) {
    at <- order(mean[[effect]])
    at <- at[spread_places(length(at), n)]
    data.frame(
      effect = effect,
      place = rank(mean[[effect]], ties.method = "first")[at],
      mean = mean[[effect]][at],
      lower = mean[[effect]][at] - z * sd[[effect]][at],
      upper = mean[[effect]][at] + z * sd[[effect]][at]
    )
  }))
}

percent_of <- function(prob) paste0(format(100 * prob), "%")

plot_shrinkage <- function(fit, n) {
  own <- shrinkage_table(fit)
  at <- order(own$size)
  own$effect <- factor(own$effect, fit$groups$effects)
  groups <- unique(own$group[at])
  shown <- groups[spread_places(length(groups), n)]
  data <- own[own$group %in% shown, ]
  ggplot2::ggplot(
    data,
    ggplot2::aes(.data$alone, .data$mean, colour = log10(.data$size))
  ) +
    ggplot2::geom_abline(colour = "grey60") +
    ggplot2::geom_hline(yintercept = 0, colour = "grey60") +
    ggplot2::geom_point(size = 1, alpha = 0.8) +
    ggplot2::scale_colour_viridis_c(
      labels = function(v) format_count(round(10^v)),
      direction = -1
    ) +
    ggplot2::facet_wrap("effect", scales = "free") +
    ggplot2::labs(
      x = "effect by the group's rows alone",
      y = "posterior mean of the effect",
      colour = "rows",
      caption = if (length(groups) > length(shown)) {
        paste(
          format_count(length(shown)), "of", format_count(length(groups)),
          "groups"
        )
      }
    )
}

# group, effect, size, mean and what its rows alone say, for each group and
# effect. With V and m the covariance and mean of the effects, S that of the
# population, the rows' own precision is V^-1 - S^-1, and V^-1 m what it is
# multiplied with.
shrinkage_table <- function(fit) {
  model <- plain_model(fit)
  theta <- rowMeans(groups_theta(fit, NULL))
  found <- .Call(
    ffi_groups_moments,
    model$pointer,
    matrix(theta),
    getOption("mc.cores", 1L)
  )
  if (is.integer(found)) {
    abort_status(found)
  }
  q <- length(fit$groups$effects)
  here <- model_variables(model, theta)
  factor <- matrix(covariance_factors(fit, t(here), fit$groups$name), q)
  population <- chol2inv(t(factor))
  n <- length(fit$groups$levels)
  mean <- matrix(found$mean, q)
  square <- array(found$square, c(q, q, n))
  alone <- vapply(
    seq_len(n),
    function(g) {
      v <- square[, , g] - tcrossprod(mean[, g])
      inverse <- solve(matrix(v, q))
      own <- inverse - population
      # nothing that rounding could not have made
      if (min(eigen(own, TRUE, TRUE)$values) < 1e-6 * max(diag(inverse))) {
        return(rep(NA_real_, q))
      }
      drop(solve(own, inverse %*% mean[, g]))
    },
    numeric(q)
  )
  out <- data.frame(
    group = rep(fit$groups$levels, each = q),
    effect = rep(fit$groups$effects, n),
    size = rep(fit$groups$sizes, each = q),
    mean = as.vector(mean),
    alone = as.vector(alone)
  )
  out[!is.na(out$alone), ]
}
