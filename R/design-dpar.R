# Rows whose response has two predictors: of the mean, and of a distributional
# parameter (`dpar`, as brms calls it). Both designs are made of one model
# frame, so that the same rows count in both, and stand side by side.

# list(name, formulas): the parameter, and the formulas `mu` and its own, with
# the response on the left of the first alone.
new_dpar <- function(name, mu, own) {
  left <- if (length(own) == 3) own[-2] else own
  formulas <- stats::setNames(list(mu, left), c("mu", name))
  structure(list(name = name, formulas = formulas), class = "tall_dpar_parts")
}

# With `.` written out, and the terms of each; names: of the data's columns.
dpar_terms <- function(dpar, names) {
  empty <- stats::setNames(rep(list(numeric()), length(names)), names)
  response <- all.vars(dpar$formulas$mu[[2]])
  dpar$terms <- lapply(dpar$formulas, function(formula) {
    known <- empty[setdiff(names, if (length(formula) == 2) response)]
    terms <- stats::terms(formula, data = frame_of(known, 0))
    if (length(attr(terms, "offset")) > 0 && length(formula) == 2) {
      abort_tall(
        "unsupported",
        c(
          "The formula of {.field {dpar$name}} must be without offset.",
          i = "Offsets are of the mean."
        ),
        argument = "formula",
        value = formula
      )
    }
    stats::delete.response(terms)
  })
  dpar
}

# A formula with the variables of both, whose frame is that of both.
joint_formula <- function(dpar) {
  variables <- unlist(lapply(dpar$terms, function(terms) {
    as.list(attr(terms, "variables"))[-1]
  }))
  variables <- unique(unname(variables))
  right <- if (length(variables) == 0) {
    1
  } else {
    Reduce(function(a, b) call("+", a, b), variables)
  }
  mu <- dpar$formulas$mu
  out <- call("~", mu[[2]], right)
  class(out) <- "formula"
  environment(out) <- environment(mu)
  out
}

# list(x, contrasts, width) of a frame of that formula: columns of the parameter
# have its name before their own.
dpar_designs <- function(dpar, frame) {
  made <- lapply(dpar$terms, design_matrix, frame = frame)
  for (name in names(made)) {
    check_some_columns(ncol(made[[name]]$x))
  }
  x <- lapply(made, `[[`, "x")
  list(
    x = join_designs(x, dpar$name),
    contrasts = lapply(made, `[[`, "contrasts"),
    width = vapply(x, ncol, 0L)
  )
}

join_designs <- function(x, name) {
  colnames(x[[2]]) <- paste0(name, "_", colnames(x[[2]]))
  out <- cbind(x[[1]], x[[2]])
  rownames(out) <- rownames(x[[1]])
  out
}

# The same of new rows of a fit. dpar: of the fit, with `contrasts`.
new_dpar_designs <- function(dpar, frame) {
  x <- Map(
    function(terms, contrasts) {
      stats::model.matrix(terms, frame, contrasts.arg = contrasts)
    },
    dpar$terms,
    # none of a part is NULL
    dpar$contrasts[names(dpar$terms)]
  )
  join_designs(x, dpar$name)
}
