# What databases compute of a response.

# What a database computes of a row, R expressions that dbplyr translates. The
# log density is said once: score and curvature are its derivatives, by
# stats::D(). What D() knows nothing of, or what would cancel, is a step: a
# quantity with a name and a slope of its own. Databases may refuse to round to
# 0 or to infinity: exponents are clipped, see sql_exp().
#   log_lik     up to constants, of a row of weight 1, in eta, y and steps;
#               NULL: it is quadratic, and sums of products are all.
#   steps       list of lists of sql_step() by name, one after the other.
#   bound       list(steps, third): the bound on the third derivative within
#               `reach` of eta, likewise; NULL: there is none.
#   outside     (function) `outside(has_weights)`: is y no response?
# Gives list(log_lik, score, curvature, steps, bound, outside), steps without
# their slopes.
response_in_sql <- function(
  log_lik = NULL,
  steps = list(),
  bound = NULL,
  outside = NULL
) {
  slopes <- sql_slopes(steps)
  score <- if (!is.null(log_lik)) slope_in_eta(log_lik, slopes)
  list(
    log_lik = log_lik,
    score = score,
    curvature = if (!is.null(score)) slope_in_eta(call("-", score), slopes),
    steps = lapply(steps, lapply, `[[`, "value"),
    bound = bound,
    outside = outside
  )
}

# slope: the derivative in eta; NULL: slopes of other steps alone need the step.
sql_step <- function(value, slope = NULL) {
  list(value = value, slope = slope)
}

sql_slopes <- function(steps) {
  every <- unlist(lapply(steps, lapply, `[[`, "slope"), recursive = FALSE)
  c(list(eta = 1), every)
}

# The derivative in eta: that in h at h = 0, where each quantity moves by its
# slope times h.
slope_in_eta <- function(expression, slopes) {
  moved <- Map(function(name, slope) {
    call("+", as.name(name), call("*", slope, quote(h)))
  }, names(slopes), slopes)
  loose <- setdiff(all.vars(expression), c("y", names(slopes)))
  stopifnot("every step of a density needs a slope" = length(loose) == 0)
  slope <- stats::D(do.call(substitute, list(expression, moved)), "h")
  for (name in names(moved)) {
    slope <- put_back(slope, moved[[name]], as.name(name))
  }
  # trees have no parentheses, which SQL needs
  str2lang(deparse1(slope, control = "digits17"))
}

put_back <- function(expression, what, with) {
  if (identical(expression, what)) {
    return(with)
  }
  if (is.call(expression)) {
    expression[-1] <- lapply(expression[-1], put_back, what, with)
  }
  expression
}

# e^x, of x from -300 to 700.
sql_exp <- function(x) {
  bquote(exp(ifelse(.(x) > 700, 700, ifelse(.(x) < -300, -300, .(x)))))
}

# Of u, which is eta less a constant, by z = e^-|u|: soft = log(1 + e^u) and its
# slope p.
logistic_steps <- function(u) {
  list(
    list(z = sql_step(bquote(exp(-ifelse(abs(.(u)) > 300, 300, abs(.(u))))))),
    list(
      p = sql_step(
        bquote(ifelse(.(u) > 0, 1, z) / (1 + z)),
        slope = quote(z / ((1 + z) * (1 + z)))
      ),
      soft = sql_step(
        bquote(ifelse(.(u) > 0, .(u), 0) + log(1 + z)),
        slope = quote(p)
      )
    )
  )
}

# The bound of that, times `size`: |p (1 - p) (1 - 2p)| rises in |u| up to
# log(2 + sqrt(3)), and falls then.
logistic_bound <- function(u, size = 1) {
  third <- quote(s * (1 - s) / ((1 + s) * (1 + s) * (1 + s)))
  list(
    steps = list(
      list(
        far = bquote(abs(.(u)) + reach),
        near = bquote(abs(.(u)) - reach)
      ),
      list(at = quote(ifelse(
        far <= 1.3169578969248,
        far,
        ifelse(near >= 1.3169578969248, near, 1.3169578969248)
      ))),
      list(s = quote(exp(-ifelse(at > 300, 300, at))))
    ),
    third = if (identical(size, 1)) third else bquote(.(size) * (.(third)))
  )
}
