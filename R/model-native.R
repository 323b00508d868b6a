# Models in C or C++ of a user, member "native" of src/models/registry.c.

#' Your own model in C or C++
#'
#' A posterior whose functions you have written in C or C++ against the header
#' `tallbayes.h` and compiled. It runs in threads, at the speed of the models
#' that are built in.
#'
#' @param pointer (external pointer) The address of a `struct tb_native_type`,
#'   made in your compiled code by `R_MakeExternalPtr()` or, with Rcpp,
#'   `Rcpp::XPtr` (without a finalizer: `XPtr<...>(&type, false)`).
#' @param data (numeric matrix, or named list of numeric vectors and matrices)
#'   The observations: a row, or an element of a vector, each. A matrix alone is
#'   named `"data"`. All of it is copied once, row by row, into memory that the
#'   chains share.
#' @param init (named numeric vector, or named list of numeric arrays) Where
#'   chains and the search for the mode begin. It also says how many parameters
#'   there are and what they are called: `list(b = c(0, 0), s = 1)` makes
#'   `b[1]`, `b[2]` and `s`.
#' @param constants (named list of numeric vectors and matrices) What does not
#'   belong to one observation: hyperparameters, knots, ... Found in C like the
#'   data, by name.
#' @param variables (character vector, or `NULL`) What the parameters are called
#'   after the table's `constrain()`, such as `sigma` for a sampled `log_sigma`:
#'   to be given if, and only if, the table has one.
#'
#' @details `system.file("include", "tallbayes.h", package = "tallbayes")`
#' documents the table and every function; `system.file("examples", package =
#' "tallbayes")` has two complete models, `robust.c` (a regression with
#' Student's t errors) and `logistic.c`, each with an R script. Compile with `R
#' CMD SHLIB` (add the header's folder to `PKG_CPPFLAGS`), with
#' `Rcpp::sourceCpp()` and `// [[Rcpp::depends(tallbayes)]]`, or in a package
#' with `LinkingTo: tallbayes`.
#'
#' Required are `prior`, `gradient` and `log_lik`. With `curvature`, the model
#' is sampled without tuning, behind a change of coordinates; without, give
#' [sg_sample()] a kernel. [find_mode()] goes by L-BFGS, as the posterior need
#' not be log-concave; where it is, `method = "newton"` is faster. With
#' `n_scalar` and `add_scalar`, control variates store a few numbers a row and
#' [gradient_saga()] needs as little memory. Subsampling weights come from rows'
#' gradients and Hessians.
#'
#' The table is copied, and `pointer` is kept for as long as the model lives.
#' Where the library was unloaded, or loaded again after it was compiled anew,
#' the models made before are lost: on Linux and macOS using one is a
#' `tall_error_stale`, elsewhere do not `dyn.unload()` a library before its
#' models are gone. Like every model it is lost when the R object is saved and
#' read again.
#'
#' @return A `tall_model` for [sg_sample()] and [find_mode()].
#' @section Conditions: `tall_error_input` if `pointer` is no pointer to a
#' table, if the table was compiled for another version of `tallbayes.h` or
#' lacks a required function (which is named), if `data` is not numeric, not
#' finite or of parts with different numbers of rows, if `init` has no names, or
#' if the table's `create()` refuses the data.
#' @seealso `vignette("your-own-model")`
#' @examples
#' \dontrun{
#' # needs a C compiler; 5 seconds
#' folder <- system.file("examples", package = "tallbayes")
#' source(file.path(folder, "robust.R"))
#' # which hands the table of functions to
#' model_native(.Call("robust_model"), data, init, constants)
#' }
#' @export
model_native <- function(
  pointer,
  data,
  init,
  constants = list(),
  variables = NULL
) {
  table <- check_table(pointer)
  check_given(data)
  data <- if (is.matrix(data)) {
    list(data = as_double_matrix(check_matrix(data)))
  } else {
    check_arrays(data, "data")
  }
  constants <- if (length(constants) > 0) check_arrays(constants, "constants")
  check_together(data, constants)
  start <- check_named_init(init)
  variables <- check_variables(variables, start, table)
  tryCatch(
    new_model(
      "native",
      c(
        list(
          table = pointer,
          n_dim = as.double(length(start)),
          n_data = as.double(NROW(data[[1]]))
        ),
        data,
        constants
      ),
      variables = variables,
      coordinates = names(start),
      table = pointer,
      title = table$name,
      traits = model_traits(
        start = unname(start),
        # nothing says that the log density is concave
        mode_method = "lbfgs",
        is_users = TRUE
      ),
      label = "model_native"
    ),
    tall_error_argument = function(e) {
      abort_refused(table, c(data, constants))
    }
  )
}

check_table <- function(pointer, arg = "pointer") {
  check_given(pointer, arg = arg)
  if (typeof(pointer) != "externalptr") {
    abort_expected(
      pointer,
      "an external pointer to a `struct tb_native_type`",
      "Call the compiled function that makes it, with `.Call()`.",
      arg = arg
    )
  }
  table <- .Call(ffi_native_info, pointer)
  if (table$version == 0) {
    abort_input(
      c(
        "{.arg {arg}} does not point to a {.code struct tb_native_type}.",
        i = "Its first member must be {.code TALLBAYES_API_VERSION}. A pointer
             that was saved with R and read again points nowhere."
      ),
      argument = arg
    )
  }
  if (table$version != table$current) {
    abort_input(
      c(
        "{.arg {arg}} points to a table of version {table$version} of
         {.file tallbayes.h}; this is version {table$current}.",
        i = "Compile it again with the header of the package installed now."
      ),
      argument = arg,
      expected = table$current,
      value = table$version
    )
  }
  if (!is.null(table$missing)) {
    is_needed <- table$missing == "add_scalar"
    why <- if (is_needed) " as its `n_scalar` is not 0" else ""
    abort_input(
      "{.arg {arg}} points to a table without {.code {table$missing}}, which is
       required{why}.",
      argument = arg,
      expected = table$missing
    )
  }
  table
}

# A named list of numeric vectors and matrices, as doubles.
check_arrays <- function(x, arg) {
  if (!is.list(x) || is.data.frame(x) || length(x) == 0) {
    expected <- if (arg == "data") "a numeric matrix or" else "NULL or"
    hint <- if (is.data.frame(x)) "Make a list of its columns, or a matrix."
    abort_expected(
      x,
      paste(expected, "a named list of numeric vectors and matrices"),
      hint,
      arg = arg
    )
  }
  check_names(names(x), arg)
  Map(
    function(value, name) {
      name <- paste0(arg, "$", name)
      if (is.matrix(value)) {
        as_double_matrix(check_matrix(value, arg = name))
      } else {
        unname(check_numeric_vector(value, arg = name))
      }
    },
    x,
    names(x)
  )
}

# Every element has a name, and no other has it.
check_names <- function(names, arg) {
  if (is.null(names) || anyNA(names) || any(names == "")) {
    abort_input(
      "{.arg {arg}} must have names, one for each element.",
      argument = arg,
      value = names
    )
  }
  if (anyDuplicated(names)) {
    twice <- names[duplicated(names)][[1]]
    abort_input(
      "{.arg {arg}} must have different names, but {.val {twice}} comes twice.",
      argument = arg,
      value = twice
    )
  }
}

# Rows agree, and no constant hides an array of the data.
check_together <- function(data, constants) {
  for (name in names(data)[-1]) {
    check_same_rows(
      data[[1]],
      data[[name]],
      arg = paste0("data$", names(data)[[1]]),
      arg_y = paste0("data$", name)
    )
  }
  both <- intersect(names(constants), names(data))
  if (length(both) > 0) {
    abort_input(
      "{.arg constants} must have other names than {.arg data}, but {.val
       {both}} {?is/are} in both.",
      argument = "constants",
      value = both
    )
  }
}

# One vector of all parameters, with a name for each.
check_named_init <- function(init, arg = "init") {
  check_given(init, arg = arg)
  if (!is.list(init)) {
    init <- check_numeric_vector(init, arg = arg)
    check_names(names(init), arg)
    return(init)
  }
  if (length(init) == 0) {
    abort_expected(init, "at least one parameter", arg = arg)
  }
  check_names(names(init), arg)
  out <- Map(
    function(value, name) {
      where <- paste0(arg, "$", name)
      if (!is_plain_numeric(value) || length(value) == 0) {
        abort_expected(value, "a numeric array", arg = where)
      }
      check_finite(value, arg = where)
      stats::setNames(as.double(value), element_names(name, value))
    },
    init,
    names(init)
  )
  unlist(unname(out))
}

check_variables <- function(variables, start, table) {
  if (!table$has_constrain) {
    if (!is.null(variables)) {
      abort_input(
        c(
          "{.arg variables} has no use: the table {.val {table$name}} has no
           {.code constrain}.",
          i = "The names of {.arg init} are those of the draws."
        ),
        argument = "variables",
        value = variables
      )
    }
    return(names(start))
  }
  n <- length(start)
  if (!is.character(variables) || length(variables) != n) {
    abort_expected(
      variables,
      paste0(
        "a character vector of ", count_noun(n, "name"),
        ", as the table has `constrain`"
      ),
      arg = "variables"
    )
  }
  check_names(variables, "variables")
  variables
}

abort_refused <- function(table, arrays) {
  shape <- vapply(
    arrays,
    function(x) paste(dim(x) %||% length(x), collapse = " x "),
    ""
  )
  given <- paste0(names(arrays), " (", shape, ")", collapse = ", ")
  abort_input(
    c(
      "{.code create} of the table {.val {table$name}} refused its data.",
      x = "It was given {given}."
    ),
    argument = "data"
  )
}
