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

# ---- means -------------------------------------------------------------------

# What databases compute of the inverse link a(eta): list(steps, value, first,
# second, deviation), a and its derivatives in eta and steps, see
# response_in_sql(); deviation: |a'| times that of eta, `norm`.
mean_in_sql <- function(link) {
  of <- link_means[[link]]
  if (is.null(of)) {
    no_sql(paste0("the link ", link, " has no SQL"))
  }
  of <- of()
  of$deviation <- if (identical(of$first, 1)) {
    quote(norm)
  } else {
    bquote(abs(.(of$first)) * norm)
  }
  of
}

link_means <- list(
  identity = function() list(value = quote(eta), first = 1, second = 0),
  log = function() {
    list(
      steps = list(list(m = sql_exp(quote(eta)))),
      value = quote(m),
      first = quote(m),
      second = quote(m)
    )
  },
  logit = function() {
    steps <- lapply(logistic_steps(quote(eta)), lapply, `[[`, "value")
    steps[[2]] <- list(p = steps[[2]]$p, q = quote(z / ((1 + z) * (1 + z))))
    list(
      steps = steps,
      value = quote(p),
      first = quote(q),
      second = quote(q * (1 - 2 * p))
    )
  },
  inverse = function() {
    list(
      value = quote(1 / eta),
      first = quote(-1 / (eta * eta)),
      second = quote(2 / (eta * eta * eta))
    )
  },
  sqrt = function() {
    list(value = quote(eta * eta), first = quote(2 * eta), second = 2)
  },
  probit = function() {
    list(
      steps = normal_steps(quote(eta)),
      value = quote(ifelse(eta > 0, 1 - tail, tail)),
      first = quote(d),
      second = quote(-eta * d)
    )
  },
  cloglog = function() {
    list(
      steps = list(
        list(up = sql_exp(quote(eta))),
        list(down = quote(exp(-ifelse(up > 700, 700, up))))
      ),
      # 1 - down would have no digits
      value = quote(ifelse(
        up < 1e-3,
        up * (1 - up / 2 * (1 - up / 3 * (1 - up / 4))),
        1 - down
      )),
      first = quote(up * down),
      second = quote(up * down * (1 - up))
    )
  }
)

# Of u the normal density d and P(Z > |u|), `tail`: by Hart's rational function
# (1968, number 5666) and, far out, a continued fraction.
normal_steps <- function(u) {
  top <- c(
    220.206867912376, 221.213596169931, 112.079291497871, 33.912866078383,
    6.37396220353165, 0.700383064443688, 3.52624965998911e-02
  )
  below <- c(
    440.413735824752, 793.826512519948, 637.333633378831, 296.564248779674,
    86.7807322029461, 16.064177579207, 1.75566716318264, 8.83883476483184e-02
  )
  horner <- function(of) {
    Reduce(function(out, a) bquote(.(a) + x * (.(out))), rev(of)[-1],
      rev(of)[[1]])
  }
  list(
    list(x = bquote(ifelse(abs(.(u)) > 24, 24, abs(.(u))))),
    list(e = quote(exp(-x * x / 2))),
    list(
      d = quote(e * 0.3989422804014327),
      tail = bquote(ifelse(
        x < 7.07106781186547,
        e * (.(horner(top))) / (.(horner(below))),
        e * 0.3989422804014327 /
          (x + 1 / (x + 2 / (x + 3 / (x + 4 / (x + 0.65)))))
      ))
    )
  )
}
