# model_ica(): independent components, and what tall_ica() shares with it.

#' @rdname tall_ica
#' @export
model_ica <- function(x, prior_sd = 1, storage = c("double", "float")) {
  x <- check_components(x)
  prior_sd <- check_number(prior_sd, positive = TRUE)
  build_ica(x, prior_sd, storage = storage)
}

# reference: the unmixing matrix that variables are aligned with.
build_ica <- function(x, prior_sd, reference = NULL, storage = "double") {
  k <- ncol(x)
  new_model(
    "ica",
    c(list(x = x, prior_sd = prior_sd), if (!is.null(reference)) {
      list(reference = reference)
    }),
    variables = paste0("W[", row(diag(k)), ",", col(diag(k)), "]"),
    n_source = k,
    prior = NULL,
    traits = model_traits(
      start = as.double(diag(k)),
      # sources that are nearly normal leave rotations that only the tails bound
      is_far_from_normal = TRUE,
      # N log |det W|
      has_data_free = TRUE
    ),
    label = "model_ica",
    store = store_of(storage, x)
  )
}

check_components <- function(x, arg = "x") {
  check_given(x, arg = arg)
  if (is.data.frame(x)) {
    x <- as.matrix(x)
  }
  x <- as_double_matrix(check_matrix(x, most = most_of_data, arg = arg))
  if (nrow(x) < ncol(x)) {
    abort_input(
      c(
        "{.arg {arg}} must have at least as many rows as columns: a row is an
         observation.",
        x = "It is {nrow(x)} x {ncol(x)}."
      ),
      argument = arg,
      value = dim(x)
    )
  }
  constant <- which(.Call(ffi_column_sds, x) == 0)
  if (length(constant) > 0) {
    name <- column_names(x)[[constant[[1]]]]
    abort_input(
      "{.arg {arg}} must have no constant column, which {.val {name}} is.",
      argument = arg,
      value = name
    )
  }
  # a direction without variance: W grows there until the prior stops it
  size <- eigen(stats::cor(x), symmetric = TRUE, only.values = TRUE)$values
  if (size[[length(size)]] < length(size) * .Machine$double.eps) {
    abort_input(
      c(
        "{.arg {arg}} must have linearly independent columns.",
        i = "Leave out those that others determine."
      ),
      argument = arg
    )
  }
  x
}

ica_standards <- c("sphere", "scale", "none")

# Columns are standardised by x -> L^-1 (x - center).
ica_scaling <- function(x, standardise) {
  k <- ncol(x)
  scale <- switch(
    standardise,
    sphere = t(chol(stats::cov(x))),
    scale = diag(.Call(ffi_column_sds, x), k),
    none = diag(k)
  )
  list(
    center = if (standardise == "none") numeric(k) else unname(colMeans(x)),
    scale = unname(scale),
    names = colnames(x)
  )
}

standard_columns <- function(x, scaling) {
  t(forwardsolve(scaling$scale, t(x) - scaling$center))
}

# An unmixing matrix to begin with.
ica_start <- function(x, init) {
  k <- ncol(x)
  # nothing to unmix; fastICA takes no single column
  if (k == 1 && is.character(init)) {
    check_choice(init, c("fastICA", "identity"), arg = "init")
    return(diag(1))
  }
  if (identical(init, "fastICA")) {
    rlang::check_installed(
      "fastICA",
      "to begin the search",
      call = error_frame()
    )
    found <- fastICA::fastICA(x, k)
    # its sources have variance 1, logistic ones pi^2 / 3
    return(t(found$K %*% found$W) * pi / sqrt(3))
  }
  if (identical(init, "identity")) {
    return(diag(k))
  }
  if (is.character(init)) {
    return(check_choice(init, c("fastICA", "identity"), arg = "init"))
  }
  init <- check_matrix(init, n_row = k, n_col = k, arg = "init")
  if (rcond(init) < .Machine$double.eps) {
    abort_input(
      "{.arg init} must be a regular matrix: this one is singular.",
      argument = "init"
    )
  }
  init
}
