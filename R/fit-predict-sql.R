# Predictions that a database makes: a lazy table with columns more.

# The table with `.fitted` and `.se.fit`. chosen: as choose_draws() has it.
augment_table <- function(fit, newdata, type, se_fit, chosen) {
  source <- data_source(newdata, "newdata")
  names <- source_names(source)
  check_newdata_columns(fit, names)
  taken <- intersect(c(".fitted", if (se_fit) ".se.fit"), names)
  if (length(taken) > 0) {
    abort_input(
      "{.arg newdata} has the column{cli::qty(length(taken))}{?s} {.val {taken}}
       already.",
      argument = "newdata",
      value = taken
    )
  }
  sql <- tryCatch(
    sql_of_predictions(fit, source, names, type, se_fit, chosen),
    tall_no_sql = function(cnd) {
      abort_tall(
        "unsupported",
        c(
          "The database cannot make these predictions:
           {escape_cli(conditionMessage(cnd))}.",
          i = "{.fn predict} streams the rows to R."
        ),
        argument = "newdata"
      )
    }
  )
  dplyr::tbl(table_connection(source), dbplyr::sql(sql))
}

sql_of_predictions <- function(fit, source, names, type, se_fit, chosen) {
  con <- table_connection(source)
  check_dialect(con)
  s <- predicting_sql(fit, source)
  check_translated(s, con)
  own <- stats::setNames(
    quote_names(con, names),
    sprintf("o%d", seq_along(names))
  )
  centre <- colSums(chosen$theta * chosen$weights)
  covariance <- if (se_fit) {
    crossprod(sqrt(chosen$weights) * sweep(chosen$theta, 2, centre))
  }
  s$cells$centre <- centres_of_parts(s$cells, covariance)
  rows <- sql_design_rows(s, source, more = own)
  rows <- add_eta(rows, s, centre)
  if (se_fit) {
    rows <- add_norm(rows, s, root_of(covariance))
  }
  of <- mean_in_sql(if (type == "response") fit$family$link else "identity")
  rows <- add_steps(rows, of$steps)
  columns <- list(.fitted = of$value, .se.fit = of$deviation)
  columns <- lapply(columns[c(TRUE, se_fit)], sql_translate, con)
  known <- quote_names(con, "known")
  columns <- lapply(columns, function(text) {
    paste0("CASE WHEN ", known, " = 1 THEN ", text, " END")
  })
  back <- stats::setNames(quote_names(con, names(own)), names)
  query_text(con, sql_select(con, c(as.list(back), columns), rows$sql))
}

# What tall_glm() would ask of the table's rows, of the covariates alone; and a
# column that says whether their levels are the fit's.
predicting_sql <- function(fit, source) {
  if (is.null(fit$terms)) {
    no_sql("the fit has no formula")
  }
  # that of the terms has s()
  env <- attr(fit$terms, ".Environment") %||% environment(fit$formula)
  terms <- stats::delete.response(fit$terms)
  columns <- intersect(all.vars(terms), source_names(source))
  given <- fit$offset_source
  columns <- union(columns, intersect(all.vars(given), source_names(source)))
  head <- as.list(source_head(source, columns))
  is_numbers <- vapply(head, is_plain_numeric, TRUE)
  s <- list(
    columns = columns,
    env = env,
    numbers = columns[is_numbers],
    others = columns[!is_numbers],
    y = 0,
    is_complete = TRUE
  )
  variables <- as.list(attr(terms, "variables"))[-1]
  at <- attr(terms, "offset")
  covariates <- variables[setdiff(seq_along(variables), at)]
  s$variables <- sql_variables(covariates, head, env)
  offsets <- c(variables[at], list(given))
  s$offsets <- lapply(offsets, sql_numeric, head, env)
  s$offsets <- Filter(function(e) !is.null(e), s$offsets)
  structure(with_cells(s, fit), class = "tall_sql")
}

# With the design of a fit, and the flag `known`.
with_cells <- function(s, fit) {
  design <- fit$rows$design %||% design_of_frame(fit)
  if (is.null(design$program) || length(design$columns) > sql_columns) {
    no_sql("the design is no SQL")
  }
  why <- smooths_beyond_sql(design)
  if (!is.null(why)) {
    no_sql(why)
  }
  s <- with_bases(s, design)
  s$cells <- cells_of_design(s, design)
  s$flag <- function(con) c(known = sql_known(s, design, con))
  s
}

# Of a fit that has its rows in memory.
design_of_frame <- function(fit) {
  if (is.null(fit$rows$frame)) {
    no_sql("the fit kept no data")
  }
  frame <- fit$rows$frame
  for (name in names(fit$xlevels)) {
    if (!is.factor(frame[[name]])) {
      frame[[name]] <- factor(frame[[name]], fit$xlevels[[name]])
    }
  }
  compile_design(frame, fit$contrasts)
}

# SQL that is 1 where no covariate is missing and every level is known.
sql_known <- function(s, design, con) {
  tests <- vapply(seq_along(s$variables), function(k) {
    own <- quote_names(con, sprintf("v%d", k))
    variable <- s$variables[[k]]
    if (variable$kind != "levels") {
      return(paste(own, "IS NOT NULL"))
    }
    levels <- levels_in_sql(design, variable$name)
    levels <- paste(sql_levels(variable, levels, con), collapse = ", ")
    paste0(own, " IN (", levels, ")")
  }, "")
  if (length(tests) == 0) {
    return("1")
  }
  paste0("CASE WHEN ", paste(tests, collapse = " AND "), " THEN 1 ELSE 0 END")
}

# W with x' V x = ||W x||^2. V may be singular.
root_of <- function(covariance) {
  scale <- sqrt(pmax(diag(covariance), 0))
  scale[scale == 0] <- 1
  tiny <- diag(1e-14, nrow(covariance))
  chol(covariance / tcrossprod(scale) + tiny) * rep(scale, each = length(scale))
}

# Where to centre parts so that x' V x loses no digits: numbers for which the
# predictor varies least, which are near their means. 0 without an intercept.
centres_of_parts <- function(cells, covariance) {
  centre <- cells$centre
  is_alone <- lengths(lapply(cells$columns, `[[`, "factors")) == 0
  own <- which(is_alone & cells$part > 1)
  constant <- which(is_alone & cells$part == 1)
  if (is.null(covariance) || length(own) == 0 || length(constant) == 0) {
    return(centre)
  }
  scale <- sqrt(diag(covariance)[own])
  among <- covariance[own, own, drop = FALSE] / tcrossprod(scale)
  least <- tryCatch(
    -solve(among, covariance[own, constant] / scale) / scale,
    error = function(e) 0
  )
  if (all(is.finite(least))) {
    centre[cells$part[own]] <- least
  }
  centre
}
