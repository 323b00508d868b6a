# Folds of cross-validation: which observations are left out together.

fold_kinds <- c("random", "stratified", "grouped")

# list(of, K, kind, by): of each of the fit's observations the number of its
# fold; how many there are; how they were made, "given" where the user has said;
# what they are by, NULL: nothing.
make_folds <- function(fit, K, folds, group, seed) {
  check_folds(folds)
  if (is.numeric(folds) || is.factor(folds)) {
    if (!is.null(group)) {
      abort_input(
        "{.arg group} has no place where {.arg folds} has the fold of each
         row.",
        argument = "group"
      )
    }
    return(given_folds(fit, folds))
  }
  K <- check_count(K, min = 2, max = fit$n_data)
  by <- if (!is.null(group)) fold_groups(fit, group)
  kind <- folds %||% if (is.null(by)) "random" else "grouped"
  if (kind != "random" && is.null(by)) {
    abort_input(
      "{.code folds = \"{kind}\"} needs {.arg group}: what folds are made by.",
      argument = "group"
    )
  }
  u <- hash_uniforms(as.double(seed), "fold", 0, fit$n_data)
  of <- switch(
    kind,
    random = deal_folds(order(u), K),
    stratified = deal_folds(order(by$code, u), K),
    grouped = group_folds(by$code, u, K)
  )
  list(of = of, K = max(of), kind = kind, by = by$label)
}

check_folds <- function(folds) {
  is_kind <- rlang::is_string(folds) && folds %in% fold_kinds
  is_given <- is.numeric(folds) || is.factor(folds)
  if (!is.null(folds) && !is_kind && !is_given) {
    abort_expected(
      folds,
      paste(
        "\"random\", \"stratified\", \"grouped\", the number of a fold for",
        "each observation, or NULL"
      )
    )
  }
}

# One to each fold in turn, in this order.
deal_folds <- function(order, K) {
  of <- integer(length(order))
  of[order] <- rep_len(seq_len(K), length(order))
  of
}

# Groups in the order of their first uniforms, which is random.
group_folds <- function(code, u, K) {
  first <- !duplicated(code)
  n_group <- sum(first)
  if (n_group < 2) {
    abort_input(
      "{.arg group} must have two groups or more, not {n_group}: one is left
       out, and the fit is to others.",
      argument = "group",
      value = n_group
    )
  }
  rank <- integer(n_group)
  rank[code[first]] <- order(order(u[first]))
  (rank[code] - 1L) %% as.integer(K) + 1L
}

# As loo::kfold_split_random() and its kin make them; numbers that no
# observation has are left out.
given_folds <- function(fit, folds) {
  n <- fit$n_data
  left_out <- as.integer(stats::na.action(fit))
  if (is.null(fit$groups) && length(folds) == n + length(left_out)) {
    folds <- if (length(left_out) > 0) folds[-left_out] else folds
  }
  unit <- if (is.null(fit$groups)) "observation" else "group"
  if (length(folds) != n || anyNA(folds)) {
    abort_input(
      "{.arg folds} must have the fold of each of the fit's
       {count_noun(n, unit)}, not {describe(folds)}.",
      argument = "folds",
      expected = n,
      value = folds
    )
  }
  known <- sort(unique(folds))
  if (length(known) < 2) {
    abort_input(
      "{.arg folds} must have two folds or more, not {length(known)}.",
      argument = "folds",
      value = folds
    )
  }
  list(of = match(folds, known), K = length(known), kind = "given", by = NULL)
}

# list(code, label): a number for each observation, from 1 without gaps.
fold_groups <- function(fit, group) {
  if (rlang::is_string(group) && fit$n_data > 1) {
    group <- stats::reformulate(paste0("`", group, "`"))
  }
  if (!is.null(fit$groups)) {
    return(own_groups(fit, group))
  }
  by <- cluster_source(fit, group, NULL, arg = "group")
  value <- if (has_source(fit)) {
    fit$columns <- union(fit$columns, by$columns)
    gather_rows(fit, pads = FALSE, f = function(block) {
      value <- by$values(block$data, block$rows)
      list(value = if (is.factor(value)) as.character(value) else value)
    })$value
  } else {
    by$values(NULL, seq_len(fit$n_data))
  }
  list(code = match(value, unique(value)), label = by$label)
}

# Observations of such fits are groups already.
own_groups <- function(fit, group) {
  name <- fit$groups$name
  is_own <- inherits(group, "formula") && length(group) == 2 &&
    identical(deparse1(strip_parens(group[[2]])), name)
  if (!is_own) {
    abort_tall(
      "unsupported",
      c(
        "{.arg group} must be {.code ~ {name}}: effects of its groups are
         integrated out, and each is left out whole.",
        i = "{.arg folds} can have the fold of each group."
      ),
      argument = "group"
    )
  }
  list(code = seq_len(fit$n_data), label = name)
}
