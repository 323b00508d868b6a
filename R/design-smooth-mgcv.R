# What mgcv makes of a smooth term: smoothCon() its basis, smooth2random() fixed
# and random columns of it, PredictMat() both at new values.

# mgcv's smooth of variables v1, ... n_level: of the factor of bs = "fs".
construct_smooth <- function(spec, data, knots, is_free, n_level = NULL) {
  symbols <- lapply(names(data), as.name)
  n <- length(data[[1]])
  if (is_free) {
    data$w <- rep_len(c(1, 2), n)
  }
  if (!is.null(n_level)) {
    data$f <- factor(rep_len(seq_len(n_level), n), seq_len(n_level))
    symbols <- c(symbols, quote(f))
  }
  settings <- spec[intersect(
    names(spec),
    c("k", "bs", "m", "d", "fx", "xt", "full", "ord", "pc")
  )]
  settings <- settings[!vapply(settings, is.null, TRUE)]
  make <- getExportedValue("mgcv", spec$head)
  label <- smooth_label(spec)
  tryCatch(
    telling_of_smooth(label, {
      call <- as.call(c(quote(make), symbols, lapply(settings, identity),
        if (is_free) list(by = quote(w))))
      made <- eval(call)
      found <- mgcv::smoothCon(
        made,
        as.data.frame(data),
        knots = if (length(knots) > 0) knots,
        absorb.cons = TRUE,
        modCon = 3
      )
      found[[1]]
    }),
    error = function(e) {
      abort_input(
        c(
          "The smooth term {.code {label}} cannot be made.",
          x = escape_cli(trimws(conditionMessage(e)))
        ),
        argument = "formula",
        value = label,
        parent = e
      )
    }
  )
}

# mgcv's warnings, such as of a `k` that is too small, as ours.
telling_of_smooth <- function(label, code) {
  withCallingHandlers(code, warning = function(w) {
    if (!inherits(w, "tall_warning")) {
      warn_tall(
        "smooth",
        c(
          "The smooth term {.code {label}} is not as it was asked for.",
          x = escape_cli(paste0("mgcv: ", trimws(conditionMessage(w)), "."))
        ),
        smooth = label
      )
      rlang::cnd_muffle(w)
    }
  })
}

# list(map, penalty): fixed columns and those of each penalty, by pen.ind, as
# smooth2random() lists random ones of bs = "fs" in another order.
split_smooth <- function(object, label) {
  split <- tryCatch(
    telling_of_smooth(label, mgcv::smooth2random(object, "", type = 2)),
    error = function(e) {
      # as mgcv has it, t2() needs two columns for each penalty
      is_small <- inherits(object, "t2.smooth")
      abort_tall(
        "unsupported",
        if (is_small) {
          c(
            "{.code {label}} has a penalty of a single column.",
            i = "Give it a larger {.arg k}: at least 4."
          )
        } else {
          c(
            "{.code {label}} has penalties that overlap, and is no sum of random
             effects.",
            i = "{.code t2()} is for surfaces, {.code bs = \"tp\"} or
                 {.code \"cr\"} for curves."
          )
        },
        argument = if (is_small) "k" else "formula",
        value = label,
        parent = e
      )
    }
  )
  if (isTRUE(split$fixed)) {
    d <- ncol(object$X)
    return(list(map = diag(d), penalty = integer(d)))
  }
  penalty <- as.integer(split$pen.ind)
  d <- split$trans.D
  u <- split$trans.U
  n_base <- ncol(object$X)
  if (is_by_level(object)) {
    # each level has the same
    n_base <- n_base / length(object$flev)
    penalty <- penalty[seq_len(n_base)]
    d <- d[seq_len(n_base)]
  }
  map <- diag(n_base)
  if (!is.null(u)) {
    map <- u
  }
  list(map = map * rep(d, each = nrow(map)), penalty = penalty)
}

is_by_level <- function(object) inherits(object, "fs.interaction")

# As it is kept; of bs = "fs" the curve of a level.
without_rows <- function(object) {
  if (is_by_level(object)) {
    object$margin.only <- TRUE
  }
  object[c("X", "S", "Xb", "D")] <- NULL
  object
}

# values: of v1, ...; n x columns.
mgcv_basis <- function(basis, values) {
  data <- stats::setNames(values, sprintf("v%d", seq_along(values)))
  data <- as.data.frame(data)
  data$w <- rep(1, nrow(data))
  if (is_by_level(basis$object)) {
    data$f <- factor(rep(1, nrow(data)))
  }
  x <- mgcv::PredictMat(basis$object, data)
  unname(matrix(x, nrow(data))) %*% basis$map
}
