# What robust draws are made of: which cluster and stratum each row of a fit is
# of, and one pass for the sums of scores and curvatures.

# ---- clusters ----------------------------------------------------------------

# list(label, values, columns): values(data, at), of a block, of rows `at` among
# those that count, a value for each; NULL: no clusters. columns: that blocks of
# a source must have.
cluster_source <- function(fit, cluster, data, arg = "cluster") {
  if (is.null(cluster)) {
    return(list())
  }
  if (!inherits(cluster, "formula")) {
    known <- check_cluster_vector(fit, cluster, arg)
    return(list(label = "", values = function(data, at) known[at]))
  }
  if (length(cluster) != 2) {
    abort_expected(cluster, "a formula without a left side", arg = arg)
  }
  expression <- cluster[[2]]
  if (rlang::is_call(expression, c("+", "*", ":", "/", "|", "%in%"))) {
    abort_input(
      c(
        "{.arg {arg}} must have one expression, not
         {.code {deparse1(cluster)}}.",
        i = "Several columns make one in {.code ~ interaction(a, b)}."
      ),
      argument = arg,
      value = cluster
    )
  }
  of <- function(data) eval(expression, data, environment(cluster))
  columns <- all.vars(cluster)
  out <- list(label = deparse1(expression), columns = columns)
  if (has_source(fit)) {
    missing <- setdiff(columns, source_names(fit$rows$source))
    if (length(missing) > 0) {
      abort_missing_columns(missing, arg = "data")
    }
    out$values <- function(data, at) check_cluster(of(data), length(at), arg)
  } else {
    data <- data_as_it_was(
      fit,
      columns,
      data,
      missing = function(names) abort_missing_columns(names, arg = "data"),
      hint = paste0(
        "Give {.arg data} as they were, or {.arg ",
        arg,
        "} as a vector."
      )
    )
    known <- of(data)
    known <- check_cluster(known, fit$n_data, arg)
    out$values <- function(data, at) known[at]
  }
  out
}

# Rows of the fit: those that it left out may be there, too.
check_cluster_vector <- function(fit, cluster, arg) {
  n <- fit$n_data
  if (is.atomic(cluster) && length(cluster) != n) {
    left_out <- as.integer(stats::na.action(fit))
    if (length(cluster) == n + length(left_out)) {
      cluster <- cluster[-left_out]
    }
  }
  check_cluster(cluster, n, arg)
}

check_cluster <- function(x, n, arg) {
  if (!is.atomic(x) || !is.null(dim(x)) || length(x) != n) {
    abort_input(
      "{.arg {arg}} must have a value for each of the fit's
       {count_noun(n, 'row')}, not {describe(x)}.",
      argument = arg,
      expected = n,
      value = x
    )
  }
  bad <- which(is.na(x))
  if (length(bad) > 0) {
    noun <- if (arg == "strata") "stratum" else arg
    n <- length(bad)
    other <- if (arg != "strata") {
      "{cli::qty(n)}, or give {?it/each} a {noun} of its own"
    }
    abort_input(
      c(
        "{.arg {arg}} must say of each row which {noun} it is of.",
        x = "{count_noun(n, 'row')} without: row
             {format_count(bad[[1]])}{cli::qty(n)}{?/ is the first}.",
        i = paste0(
          "{cli::qty(n)}Leave {?it/them} out of the fit, with {.arg subset}",
          other,
          "."
        )
      ),
      argument = arg,
      value = x
    )
  }
  x
}

# ---- the pass ----------------------------------------------------------------

# At theta, coordinates: list(hessian, meat, n_unit, n_row, n_stratum): minus
# the Hessian of the log likelihood; the sum of the products of scores about
# their mean, of each stratum where there are strata; how many rows or clusters,
# rows, and strata, NULL: none, there are. by, strata: of cluster_source().
# corrects: each stratum's sum counts n / (n - 1) times, n its rows or clusters.
robust_sums <- function(
  fit,
  theta,
  by,
  counts,
  strata = list(),
  corrects = FALSE
) {
  d <- length(theta)
  asked <- ask_rows(fit, needs = "responses")
  # weights that are precisions make no rows
  counts <- counts && !has_precisions(fit$family)
  hessian <- n_row <- 0
  units <- if (!is.null(by$values)) {
    cluster_units(d)
  } else if (!is.null(strata$values)) {
    stratum_units()
  } else {
    row_units(counts)
  }
  add <- function(rows, label, stratum) {
    part <- row_scores(fit, rows, theta)
    weight <- part$weight
    hessian <<- hessian + part$hessian
    n_row <<- n_row + if (counts) sum(weight) else length(weight)
    units$add(as.matrix(part$score), weight, label, stratum)
  }
  walk_scores(asked, by, strata, function(rows, label, stratum) {
    each_block(nrow(rows$x), d, function(at) {
      add(some_rows(rows, at), label[at], stratum[at])
    })
  })
  c(list(hessian = hessian, n_row = n_row), units$sums(corrects))
}

# f(rows, labels, strata) of all rows, or of each block of a source.
walk_scores <- function(asked, by, strata, f) {
  values <- function(of, data, at) if (!is.null(of$values)) of$values(data, at)
  take <- function(rows, data, at) {
    f(rows, values(by, data, at), values(strata, data, at))
  }
  if (!asked$passes) {
    rows <- asked_rows(asked)
    take(rows, NULL, seq_len(nrow(rows$x)))
    return(invisible())
  }
  fit <- asked$fit
  fit$columns <- union(fit$columns, c(by$columns, strata$columns))
  gather_rows(fit, pads = FALSE, f = function(block) {
    take(block_of_rows(asked, NULL, block), block$data, block$rows)
    list()
  })
}

# list(score, weight, hessian) of a block: scores of rows, each as often as its
# weight counts, and minus the Hessian of the sum.
row_scores <- function(fit, rows, theta) {
  family <- fit$family
  coefficients <- seq_len(fit$n_coef)
  is_precision <- has_precisions(family)
  own <- if (is_precision) rows$weight else rows$trials
  weight <- if (is_precision) rep(1, nrow(rows$x)) else rows$weight
  eta <- as.double(rows$x %*% theta[coefficients]) + rows$offset
  at <- aux_coordinates_at(fit, theta)
  of <- function(what) response_derivative(family, what, eta, rows$y, own, at)
  x <- rows$x
  score <- as.double(of("score")) * x
  pull <- function(v) as.matrix(Matrix::crossprod(x, weight * v))
  hessian <- pull(as.double(of("curvature")) * x)
  sampled <- which(is.na(known_values(family, fit$sigma)))
  if (length(sampled) > 0) {
    n_aux <- length(at)
    cross <- of("cross")[, sampled, drop = FALSE]
    pair <- outer(seq_len(n_aux), seq_len(n_aux), function(k, l) {
      pmax(k, l) * (pmax(k, l) - 1) / 2 + pmin(k, l)
    })
    bend <- colSums(weight * of("aux_curvature"))[pair[sampled, sampled]]
    cross <- pull(cross)
    hessian <- rbind(
      cbind(hessian, cross),
      cbind(t(cross), matrix(bend, length(sampled)))
    )
    score <- cbind(score, of("aux_score")[, sampled, drop = FALSE])
  }
  list(score = score, weight = weight, hessian = unname(hessian))
}

# Coordinates of every parameter of the response, known ones among them.
aux_coordinates_at <- function(fit, theta) {
  known <- known_values(fit$family, fit$sigma)
  out <- log(known - response_facts(fit$family)$lower)
  out[is.na(known)] <- theta[-seq_len(fit$n_coef)]
  unname(out)
}

# ---- what varies -------------------------------------------------------------

# Units whose scores vary independently: $add(score, weight, label, stratum) of
# rows, and $sums(corrects): list(meat, n_unit, n_stratum).

# Each row, as often as it counts where weights are counts.
row_units <- function(counts) {
  n <- score <- product <- 0
  add <- function(of_rows, weight, label, stratum) {
    score <<- score + colSums(weight * of_rows)
    root <- if (counts) sqrt(weight) else weight
    product <<- product + crossprod(root * of_rows)
    n <<- n + if (counts) sum(weight) else length(weight)
  }
  sums <- function(corrects) {
    list(meat = product - tcrossprod(score) / n, n_unit = n)
  }
  list(add = add, sums = sums)
}

# Each row, of a survey, in strata.
stratum_units <- function() {
  known <- list()
  add <- function(of_rows, weight, label, stratum) {
    score <- weight * of_rows
    for (rows in split(seq_along(stratum), as.character(stratum))) {
      key <- as.character(stratum[[rows[[1]]]])
      own <- score[rows, , drop = FALSE]
      old <- known[[key]] %||% list(n = 0, score = 0, product = 0)
      known[[key]] <<- list(
        n = old$n + length(rows),
        score = old$score + colSums(own),
        product = old$product + crossprod(own)
      )
    }
  }
  sums <- function(corrects) {
    n <- vapply(known, `[[`, 0, "n")
    check_strata(n, "row")
    meat <- Reduce(`+`, lapply(known, function(own) {
      factor <- if (corrects) own$n / (own$n - 1) else 1
      factor * (own$product - tcrossprod(own$score) / own$n)
    }))
    list(meat = meat, n_unit = sum(n), n_stratum = length(n))
  }
  list(add = add, sums = sums)
}

# Clusters, which lie in one stratum each where there are strata.
cluster_units <- function(d) {
  totals <- new_totals(d)
  stratum_of <- character()
  add <- function(of_rows, weight, label, stratum) {
    at <- totals$add(weight * of_rows, label)
    if (is.null(stratum)) {
      return(invisible())
    }
    stratum <- as.character(stratum)
    new <- at > length(stratum_of)
    stratum_of[at[new]] <<- stratum[new]
    check_nested(label, stratum, stratum_of[at])
  }
  sums <- function(corrects) {
    found <- totals$all()
    has_strata <- length(stratum_of) > 0
    of <- match(stratum_of, unique(stratum_of))
    of <- if (has_strata) of else rep(1L, nrow(found))
    n <- tabulate(of)
    if (has_strata) {
      names(n) <- unique(stratum_of)
      check_strata(n, "cluster")
    }
    centred <- found - (rowsum(found, of) / n)[of, , drop = FALSE]
    factor <- if (has_strata && corrects) n / (n - 1) else rep(1, length(n))
    list(
      meat = crossprod(sqrt(unname(factor))[of] * centred),
      n_unit = nrow(found),
      n_stratum = if (has_strata) length(n)
    )
  }
  list(add = add, sums = sums)
}

# Sums of rows by label, over blocks: add(score, label), which returns the
# number of each row's label, and all(), a matrix with a row for each.
new_totals <- function(d) {
  known <- character()
  sums <- matrix(0, 1024, d)
  add <- function(score, label) {
    own <- unique(label)
    at <- match(label, own)
    part <- Matrix::sparseMatrix(at, seq_along(at), x = 1) %*% score
    key <- as.character(own)
    known <<- c(known, setdiff(key, known))
    if (length(known) > nrow(sums)) {
      more <- max(nrow(sums), length(known) - nrow(sums))
      sums <<- rbind(sums, matrix(0, more, d))
    }
    to <- match(key, known)
    sums[to, ] <<- sums[to, ] + as.matrix(part)
    invisible(to[at])
  }
  list(add = add, all = function() sums[seq_along(known), , drop = FALSE])
}

# n: of each stratum, by name.
check_strata <- function(n, unit) {
  alone <- names(n)[n < 2]
  if (length(alone) > 0) {
    abort_input(
      c(
        "{.arg strata} must have two {unit}s or more each.",
        x = "{.val {alone}} {cli::qty(length(alone))}{?has/have} one.",
        i = "Join {cli::qty(length(alone))}{?it with another stratum/them with
             others}: what one {unit} varies by is not seen."
      ),
      argument = "strata",
      value = alone
    )
  }
}

check_nested <- function(label, stratum, first) {
  bad <- which(stratum != first)
  if (length(bad) > 0) {
    name <- as.character(label[[bad[[1]]]])
    abort_input(
      c(
        "{.arg strata} must have each cluster whole.",
        x = "Cluster {.val {name}} has rows in {.val {first[[bad[[1]]]]}} and in
             {.val {stratum[[bad[[1]]]]}}.",
        i = "Where labels begin anew in each stratum,
             {.code cluster = ~ interaction(stratum, cluster)}."
      ),
      argument = "strata",
      value = name
    )
  }
}
