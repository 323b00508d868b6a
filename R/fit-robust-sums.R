# What robust draws are made of: which cluster each row of a fit is of, and one
# pass for the sums of scores and curvatures.

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
      hint = "Give {.arg data} as they were, or {.arg cluster} as a vector."
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
    abort_input(
      c(
        "{.arg {arg}} must say of each row which {arg} it is of.",
        x = "{count_noun(length(bad), 'row')} without: {format_count(bad[[1]])}
             {cli::qty(length(bad))}{?/is the first}.",
        i = "{cli::qty(length(bad))}Leave {?it/them} out of the fit, with
             {.arg subset}, or give {?it/each} a {arg} of its own."
      ),
      argument = arg,
      value = x
    )
  }
  x
}

# ---- the pass ----------------------------------------------------------------

# At theta, coordinates: list(hessian, meat, n_unit, n_row): minus the Hessian
# of the log likelihood; the sum of the products of scores about their mean; how
# many rows or clusters, and rows, there are.
robust_sums <- function(fit, theta, by, counts) {
  d <- length(theta)
  asked <- ask_rows(fit, needs = "responses")
  # weights that are precisions make no rows
  counts <- counts && !has_precisions(fit$family)
  total <- list(hessian = 0, product = 0, score = 0, n_unit = 0, n_row = 0)
  clusters <- if (!is.null(by$values)) new_totals(d)
  add <- function(rows, label) {
    part <- row_scores(fit, rows, theta)
    weight <- part$weight
    score <- weight * part$score
    total$hessian <<- total$hessian + part$hessian
    total$score <<- total$score + colSums(as.matrix(score))
    total$n_row <<- total$n_row + if (counts) sum(weight) else length(weight)
    if (!is.null(clusters)) {
      clusters$add(score, label)
    } else {
      root <- if (counts) sqrt(weight) * part$score else score
      total$product <<- total$product + as.matrix(Matrix::crossprod(root))
    }
  }
  walk_scores(asked, by, function(rows, label) {
    each_block(nrow(rows$x), d, function(at) {
      add(some_rows(rows, at), label[at])
    })
  })
  if (is.null(clusters)) {
    total$n_unit <- total$n_row
  } else {
    found <- clusters$all()
    total$n_unit <- nrow(found)
    total$product <- crossprod(found)
  }
  total$meat <- total$product - tcrossprod(total$score) / total$n_unit
  total
}

# f(rows, labels) of all rows, or of each block of a source.
walk_scores <- function(asked, by, f) {
  labels <- function(data, at) if (!is.null(by$values)) by$values(data, at)
  if (!asked$passes) {
    rows <- asked_rows(asked)
    f(rows, labels(NULL, seq_len(nrow(rows$x))))
    return(invisible())
  }
  fit <- asked$fit
  fit$columns <- union(fit$columns, by$columns)
  gather_rows(fit, pads = FALSE, f = function(block) {
    f(block_of_rows(asked, NULL, block), labels(block$data, block$rows))
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

# Sums of rows by label, over blocks: add(score, label) and all(), a matrix with
# a row for each.
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
  }
  list(add = add, all = function() sums[seq_along(known), , drop = FALSE])
}
