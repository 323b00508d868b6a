# Models in C, compiled as a user compiles them.

native_compiled <- new.env()

# Compile a file once, by R CMD SHLIB, and load it: the library, or why not, a
# string.
compile_native <- function(path) {
  file <- basename(path)
  if (is.null(native_compiled[[file]])) {
    folder <- tempfile("native")
    dir.create(folder)
    file.copy(path, folder)
    include <- system.file("include", package = "tallbayes")
    flags <- paste0("-I'", include, "' -Wall")
    result <- withr::with_envvar(
      c(PKG_CPPFLAGS = flags),
      withr::with_dir(
        folder,
        tools::Rcmd(c("SHLIB", file), stdout = "log", stderr = "log")
      )
    )
    library <- paste0(tools::file_path_sans_ext(file), .Platform$dynlib.ext)
    native_compiled[[file]] <- if (result == 0) {
      dyn.load(file.path(folder, library))
    } else {
      paste(readLines(file.path(folder, "log")), collapse = "\n")
    }
  }
  native_compiled[[file]]
}

# Call a routine of a compiled file. (By name alone .Call() would look for it in
# the package.)
call_native <- function(path, name, ...) {
  library <- compile_native(path)
  if (is.character(library)) {
    stop(library)
  }
  .Call(getNativeSymbolInfo(name, library)$address, ...)
}

has_compiler <- function() {
  compiler <- strsplit(tools::Rcmd("config CC", stdout = TRUE)[[1]], " ")[[1]]
  nzchar(Sys.which(compiler[[1]]))
}

skip_without_compiler <- function() {
  if (!has_compiler()) {
    testthat::skip("there is no C compiler")
  }
}

# The pointer to the table of an example, "logistic" or "robust".
native_example <- function(name) {
  path <- system.file(
    "examples",
    paste0(name, ".c"),
    package = "tallbayes",
    mustWork = TRUE
  )
  call_native(path, paste0(name, "_model"))
}

native_logistic <- function(x, y, prior_sd = 2.5) {
  model_native(
    native_example("logistic"),
    data = list(x = x, y = y),
    init = stats::setNames(numeric(ncol(x)), column_names(x)),
    constants = list(prior_sd = prior_sd)
  )
}

native_robust <- function(
  x,
  y,
  df = 4,
  prior_sd = 2.5,
  prior_scale = 1,
  pointer = native_example("robust")
) {
  names <- column_names(x)
  model_native(
    pointer,
    data = list(x = x, y = y),
    init = stats::setNames(numeric(ncol(x) + 1), c(names, "log_sigma")),
    constants = list(df = df, prior_sd = prior_sd, prior_scale = prior_scale),
    variables = c(names, "sigma")
  )
}

native_fixture <- function(file) {
  testthat::test_path("fixtures", file)
}

# Tables of fixtures/native.c.
native_table <- function(kind = 0L) {
  call_native(native_fixture("native.c"), "native_table", kind)
}

# The mean of normal rows in two dimensions, both about 2 and 20 rows; functions
# return `code` where the first parameter is above an edge of theirs.
native_edgy <- function(
  prior = Inf,
  gradient = Inf,
  log_lik = Inf,
  code = 1,
  x = matrix(sin(1:40) + 2, 20)
) {
  edge <- function(x) min(x, .Machine$double.xmax)
  model_native(
    call_native(native_fixture("native.c"), "native_edgy"),
    x,
    c(a = 0, b = 0),
    constants = list(
      edge_prior = edge(prior),
      edge_gradient = edge(gradient),
      edge_log_lik = edge(log_lik),
      code = code
    )
  )
}

# ---- conformance -------------------------------------------------------------

native_entries <- function() {
  if (!has_compiler()) {
    return(list())
  }
  list(
    "native, logistic" = entry_native_logistic(),
    "native, robust" = entry_native_robust(),
    "native, nothing optional" = entry_native_mean()
  )
}

entry_native_logistic <- function(n_data = 70, n_dim = 17, seed = 15) {
  withr::local_seed(seed)
  x <- matrix(stats::rnorm(n_data * n_dim), n_data) / sqrt(n_dim)
  y <- stats::rbinom(n_data, 1, 0.4)
  p <- function(theta) stats::plogis(drop(x %*% theta))
  list(
    name = "native",
    model = native_logistic(x, y, 1.5),
    log_lik = function(theta) stats::dbinom(y, 1, p(theta), log = TRUE),
    log_prior = function(theta) prior_density(prior_normal(0, 1.5), theta),
    row_gradient = function(theta) (y - p(theta)) * x,
    row_hessian = function(theta) {
      v <- p(theta) * (1 - p(theta))
      lapply(seq_len(n_data), function(i) v[[i]] * tcrossprod(x[i, ]))
    },
    lipschitz = NULL,
    lipschitz_prior = NA,
    point = function() stats::runif(n_dim, -1, 1)
  )
}

# Points near the truth, where the posterior is log-concave.
entry_native_robust <- function(n_data = 61, df = 3.5, seed = 16) {
  withr::local_seed(seed)
  x <- cbind(1, matrix(stats::rnorm(2 * n_data), n_data))
  b <- c(0.5, -1, 0.3)
  y <- drop(x %*% b) + 0.7 * stats::rt(n_data, df)
  sigma <- function(theta) exp(theta[[4]])
  u <- function(theta) (y - drop(x %*% theta[1:3])) / sigma(theta)
  w <- function(theta) (df + 1) / (df + u(theta)^2)
  list(
    name = "native",
    model = native_robust(x, y, df, 2, 1.3),
    log_lik = function(theta) {
      stats::dt(u(theta), df, log = TRUE) - theta[[4]]
    },
    log_prior = function(theta) {
      prior_density(prior_normal(0, 2), theta[1:3]) +
        stats::dexp(sigma(theta), 1 / 1.3, log = TRUE) +
        theta[[4]]
    },
    row_gradient = function(theta) {
      wu <- w(theta) * u(theta)
      cbind(wu / sigma(theta) * x, wu * u(theta) - 1)
    },
    row_hessian = function(theta) {
      v <- u(theta)
      q <- df + v^2
      a <- (df + 1) * (df - v^2) / (q * sigma(theta))^2
      c <- 2 * df * (df + 1) * v / (q^2 * sigma(theta))
      lapply(seq_len(n_data), function(i) {
        rbind(
          cbind(a[[i]] * tcrossprod(x[i, ]), c[[i]] * x[i, ]),
          c(c[[i]] * x[i, ], c[[i]] * sigma(theta) * v[[i]])
        )
      })
    },
    lipschitz = NULL,
    lipschitz_prior = NA,
    point = function() c(b, log(0.7)) + stats::runif(4, -0.1, 0.1)
  )
}

native_mean <- function(x, pointer = native_table()) {
  model_native(pointer, x, list(mu = numeric(ncol(x))))
}

entry_native_mean <- function(n_data = 33, seed = 17) {
  withr::local_seed(seed)
  x <- matrix(stats::rnorm(2 * n_data), n_data)
  list(
    name = "native",
    model = native_mean(x),
    log_lik = function(theta) {
      rowSums(stats::dnorm(x, rep(theta, each = n_data), log = TRUE))
    },
    log_prior = function(theta) prior_density(prior_normal(0, 1), theta),
    row_gradient = function(theta) sweep(x, 2, theta),
    lipschitz = NULL,
    lipschitz_prior = NA,
    point = function() stats::runif(2, -2, 2)
  )
}
