# Pictures of fits: bayesplot's, and of noise, sizes and monitors.

#' Plot a fit
#'
#' @param x ([`tall_fit`][tall_fit]) The fit.
#' @param type (string) `"trace"`, `"dens"` (densities by chain), `"intervals"`
#'   (50 and 90 percent intervals), `"noise"` (gradient noise against what the
#'   kernel tolerates, see [noise_tolerance()]), `"size"` (rows of the minibatch
#'   at each draw) or `"monitor"` (see [monitors]). Or any other that
#'   \pkg{bayesplot} draws: the name of a function `bayesplot::mcmc_*()` without
#'   its prefix, such as `"areas"`, `"hist"`, `"acf"`, `"pairs"`, `"rhat"`.
#' @param variables,pars (string vector or `NULL`) Which variables; `NULL`: the
#'   first eight, or as many as the type can show.
#' @param regex_pars (string vector or `NULL`) Regular expressions: variables
#'   that match one of them, beside those of `variables`.
#' @param ... Passed on to the function of \pkg{bayesplot}; what it does not
#'   know is refused.
#'
#' @return A ggplot object, or what the function of \pkg{bayesplot} returns.
#' @section Conditions:
#' `tall_error_input` for an unknown type, variable or argument;
#' `tall_error_unsupported` for the diagnostics of NUTS.
#' @examplesIf requireNamespace("bayesplot", quietly = TRUE)
#' fit <- tall_glm(am ~ wt, data = mtcars, family = binomial(), seed = 1)
#' plot(fit)
#' plot(fit, "intervals")
#' plot(fit, "areas", pars = "wt", prob = 0.5)
#' @export
plot.tall_fit <- function(
  x,
  type = c("trace", "dens", "intervals", "noise", "size", "monitor"),
  variables = pars,
  ...,
  pars = NULL,
  regex_pars = NULL
) {
  type <- check_plot_type(type)
  own <- list(noise = plot_noise, size = plot_size, monitor = plot_monitor)
  if (type %in% names(own)) {
    check_no_dots(...)
    return(own[[type]](x))
  }
  rlang::check_installed("bayesplot", "to plot a fit")
  f <- mcmc_function(type)
  if (grepl("^nuts_", type)) {
    nuts_params.tall_fit(x)
  }
  chosen <- select_variables(x$variables, variables, regex_pars)
  diagnostic <- sub("_hist$", "", type)
  if (diagnostic %in% c("rhat", "neff")) {
    of <- if (diagnostic == "rhat") rhat.tall_fit else neff_ratio.tall_fit
    first <- of(x, variables = chosen)
  } else {
    first <- draws_array(x, shown_variables(x, chosen, type))
  }
  call_bayesplot(f, paste0("mcmc_", type), list(first), list(...))
}

# Those of a fit's own; `dens` are the densities of all chains.
own_plots <- c("trace", "dens", "intervals", "noise", "size", "monitor")

# One of a method's own types, an argument left at its default being the first,
# or what bayesplot draws of draws.
check_plot_type <- function(type, own = own_plots) {
  if (length(type) > 1 && identical(type, own)) {
    return(own[[1]])
  }
  check_string(type, arg = "type")
  known <- unique(c(own, own_plots, bayesplot_types("mcmc")))
  type <- sub("^mcmc_", "", type)
  check_known(type, known, "type", arg = "type")
  type
}

# Names of its functions without their prefix.
bayesplot_types <- function(prefix) {
  if (!requireNamespace("bayesplot", quietly = TRUE)) {
    return(character())
  }
  start <- paste0("^", prefix, "_")
  found <- grep(start, getNamespaceExports("bayesplot"), value = TRUE)
  sort(sub(start, "", found[!grepl("_data$", found)]))
}

mcmc_function <- function(type) {
  if (type == "dens") {
    type <- "dens_overlay"
  }
  getExportedValue("bayesplot", paste0("mcmc_", type))
}

# How many variables a plot shows unasked, and how many it needs.
shown_variables <- function(fit, chosen, type) {
  most <- switch(type, pairs = 6, scatter = , hex = 2, 8)
  least <- if (most < 8) 2 else 1
  if (is.null(chosen)) {
    chosen <- utils::head(fit$variables, most)
    if (length(fit$variables) > most) {
      cli::cli_inform(
        "Showing the first {most} of {length(fit$variables)} variables; choose
         with {.arg variables}."
      )
    }
  }
  exact <- type %in% c("scatter", "hex")
  if (length(chosen) < least || (exact && length(chosen) != least)) {
    many <- if (exact) "two" else "at least two"
    expected <- paste("names of", many, "variables")
    abort_expected(chosen, expected, arg = "variables")
  }
  chosen
}

# f(first, ..., more), a function of bayesplot. It only warns of arguments that
# it does not know.
call_bayesplot <- function(f, name, first, more) {
  # rstanarm's name for the type
  refuse_foreign(intersect(names(more), "plotfun"))
  if (length(more) > 0 && (is.null(names(more)) || any(names(more) == ""))) {
    abort_input(
      "Arguments in {.arg ...} must have names.",
      argument = "..."
    )
  }
  has_default <- vapply(
    formals(f),
    function(x) !is.symbol(x) || nzchar(as.character(x)),
    TRUE
  )
  needed <- names(formals(f))[!has_default][-seq_along(first)]
  # by their position or their name
  needed <- setdiff(needed, c(names(more), names(first), "...", "pit"))
  if (length(needed) > 0) {
    abort_input(
      "{.arg {needed[[1]]}} must be given for {.fn bayesplot::{name}}.",
      argument = needed[[1]]
    )
  }
  unknown <- "arguments were unrecognized and ignored: "
  if (!"..." %in% names(formals(f))) {
    check_dots_known(more, names(formals(f)))
  }
  withCallingHandlers(
    do.call(f, c(first, more)),
    warning = function(w) {
      said <- conditionMessage(w)
      if (grepl(unknown, said, fixed = TRUE)) {
        extra <- strsplit(sub(paste0(".*", unknown), "", said), ", ")[[1]]
        abort_input(
          "The argument{cli::qty(length(extra))}{?s} {.arg {extra}} {?is/are}
           not used by {.fn bayesplot::{name}}.",
          argument = extra
        )
      }
    }
  )
}

# Rows of the minibatch at each draw, by chain.
plot_size <- function(fit) {
  check_has_draws(fit)
  rlang::check_installed("ggplot2", "to plot sizes")
  n <- dim(fit$sizes)[[1]]
  chains <- dim(fit$sizes)[[2]]
  data <- data.frame(
    draw = rep(seq_len(n), chains),
    size = as.numeric(fit$sizes),
    chain = factor(rep(seq_len(chains), each = n))
  )
  ggplot2::ggplot(
    data,
    ggplot2::aes(.data[["draw"]], .data[["size"]], colour = .data[["chain"]])
  ) +
    ggplot2::geom_line(linewidth = 0.3) +
    ggplot2::labs(x = "Draw", y = "Rows in the minibatch", colour = "Chain")
}

#' Pairs of variables
#'
#' @param x ([`tall_fit`][tall_fit]) The fit.
#' @param pars,variables (string vector or `NULL`) Which variables; `NULL`: the
#'   first six.
#' @param regex_pars (string vector or `NULL`) Regular expressions: variables
#'   that match one of them, beside those of `variables`.
#' @param ... Passed on to [bayesplot::mcmc_pairs()]; what it does not know is
#'   refused.
#'
#' @return What [bayesplot::mcmc_pairs()] returns.
#' @examplesIf requireNamespace("bayesplot", quietly = TRUE)
#' fit <- tall_glm(am ~ wt, data = mtcars, family = binomial(), seed = 1)
#' pairs(fit)
#' @importFrom graphics pairs
#' @export
pairs.tall_fit <- function(
  x,
  pars = NULL,
  variables = pars,
  regex_pars = NULL,
  ...
) {
  rlang::check_installed("bayesplot", "to plot a fit")
  chosen <- select_variables(x$variables, variables, regex_pars)
  if (is.null(chosen)) {
    chosen <- utils::head(x$variables, 6)
  }
  draws <- draws_array(x, shown_variables(x, chosen, "pairs"))
  call_bayesplot(bayesplot::mcmc_pairs, "mcmc_pairs", list(draws), list(...))
}
