# Terms of tall_gam() that have what smooth terms have: told once, at once where
# the formula shows it, after the run where the sums of the mode do.

# Before there are draws: `x + s(x)`. terms: settled.
tell_lines_in_smooths <- function(terms) {
  found <- lines_in_smooths(terms)
  for (k in seq_len(nrow(found))) {
    term <- found$term[[k]]
    other <- found$other[[k]]
    warn_tall(
      "concurvity",
      c(
        "{.code {other}} has a straight line in {.code {term}}, which
         {.arg formula} has once more: the data cannot tell them apart.",
        i = "Leave {.code {term}} out."
      ),
      term = term,
      other = other
    )
  }
}

# data frame(term, other): ordinary terms, and smooth ones that have them.
lines_in_smooths <- function(terms) {
  labels <- attr(terms, "term.labels")
  parts <- lapply(terms_smooths(terms), function(smooth) {
    is_one <- length(smooth$numbers) == 1 && length(smooth$multiplier) == 0 &&
      !is_pooled_smooth(smooth) && !smooth$has_base
    if (!is_one || !smooth$numbers %in% labels || !has_line(smooth$basis)) {
      return(NULL)
    }
    data.frame(term = smooth$numbers, other = smooth$label)
  })
  none <- data.frame(term = character(), other = character())
  do.call(rbind, c(list(none), unname(parts)))
}

# Is a straight line among the columns that are not penalised?
has_line <- function(basis) {
  ends <- basis$range[[1]]
  x <- seq(ends[[1]], ends[[2]], length.out = 20)
  free <- mgcv_basis(basis, list(x))[, basis$penalty == 0, drop = FALSE]
  left <- stats::lm.fit(cbind(1, free), x)$residuals
  max(abs(left)) < 1e-8 * diff(ends)
}

# fit: with its mode, or nothing is told.
tell_concurvity <- function(fit) {
  if (!has_smooths(fit) || is.null(fit$mode$hessian)) {
    return(invisible())
  }
  found <- concurved_terms(fit)
  for (k in seq_len(nrow(found))) {
    term <- found$term[[k]]
    other <- found$other[[k]]
    share <- format_number(signif(100 * found$share[[k]], 3))
    warn_tall(
      "concurvity",
      c(
        "The data can hardly tell {.code {term}} from other terms, which have
         {share} % of it, most of it in {.code {other}}.",
        i = switch(
          found$advice[[k]],
          by = "With an ordered factor, curves of {.arg by} are differences from
                the first level's.",
          inside = "Leave {.code {term}} out: {.code {other}} is of the same
                    variables.",
          "Each by itself is known badly, their sum well: leave one of them out,
           or keep {.arg k} small."
        )
      ),
      term = term,
      other = other
    )
  }
}

# data frame(term, other, share, advice): terms that others have, one of which
# is smooth, each pair once, and none of lines_in_smooths().
concurved_terms <- function(fit) {
  smooths <- terms_smooths(fit$terms)
  pooled <- names(Filter(is_pooled_smooth, smooths))
  of <- columns_of_terms(fit)
  of <- of[setdiff(names(of), pooled)]
  is_smooth <- names(of) %in% names(smooths)
  names <- fit$every_variable[seq_len(fit$n_coef)]
  products <- centred_products(
    likelihood_information(fit)$hessian,
    match("(Intercept)", names)
  )
  known <- lines_in_smooths(fit$terms)
  keys <- paste(c(known$term, known$other), c(known$other, known$term))
  out <- data.frame(
    term = character(),
    other = character(),
    share = double(),
    advice = character()
  )
  share <- function(k, others) {
    shared_part(products, of[[k]], unlist(of[others]))[["estimate"]]
  }
  for (k in seq_along(of)) {
    # ordinary terms are in smooth ones, or are none of ours
    others <- if (is_smooth[[k]]) seq_along(of) else which(is_smooth)
    others <- setdiff(others, k)
    whole <- share(k, others)
    if (whole > setting("gam")$concurvity) {
      each <- vapply(others, share, 1, k = k)
      at <- others[[which.max(each)]]
      term <- names(of)[[k]]
      other <- names(of)[[at]]
      if (!paste(term, other) %in% keys) {
        keys <- c(keys, paste(other, term))
        advice <- advice_of(term, other, smooths)
        out <- rbind(out, data.frame(term, other, share = whole, advice))
      }
    }
  }
  out
}

# "by": the curve of all beside curves of each level; "inside": of variables
# that the other has; "either".
advice_of <- function(term, other, smooths) {
  records <- smooths[intersect(c(term, other), names(smooths))]
  is_by <- vapply(records, function(x) length(x$levels) > 0, TRUE)
  own <- lapply(records, function(x) x$term)
  if (length(records) == 2 && any(is_by) && identical(own[[1]], own[[2]])) {
    return("by")
  }
  vars <- function(label) {
    smooth <- smooths[[label]]
    all.vars(str2expression(c(smooth$term, smooth$by) %||% label))
  }
  if (all(vars(term) %in% vars(other))) "inside" else "either"
}
