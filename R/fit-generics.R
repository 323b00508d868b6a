# Generics of other packages under their own names, so that library(tallbayes)
# is enough. Those of packages that are imported are exported as they are; those
# of packages that may be missing are handed on, so that what dispatches is
# always the generic of that package and nothing of it is loaded before.

#' Generics of rstantools, loo and bayesplot
#'
#' What rstanarm and brms export, too: with these `library(tallbayes)` is enough
#' for `posterior_predict(fit)`. Each calls the generic of the same name of its
#' home package, for objects of any class, and asks for that package where it is
#' not installed. What methods do is told where they are described.
#'
#' @param object,x (object with a method) Such as a [`tall_fit`][tall_fit].
#' @param ... Handed on.
#'
#' @return What the generic of the home package returns.
#' @section Home packages:
#' * \pkg{rstantools}: `posterior_linpred()`, `posterior_epred()`,
#'   `posterior_predict()`, `predictive_error()`, `predictive_interval()`
#'   ([of regressions][posterior-predict]), `posterior_interval()`
#'   ([here][intervals]), `log_lik()` ([here][log-lik]), `bayes_R2()`
#'   ([here][bayes_R2.tall_glm]), `loo_R2()` ([here][loo-metrics]),
#'   `prior_summary()` ([here][prior_summary.tall_fit]).
#' * \pkg{loo}: `loo()`, `waic()` ([here][loo-tall_glm]), `kfold()`
#'   ([here][kfold-tall_glm]), `loo_compare()`.
#' * \pkg{bayesplot}: `pp_check()` ([here][pp_check.tall_glm]).
#'
#' Those of \pkg{posterior}, \pkg{nlme} and \pkg{generics} are
#' [exported as they are][reexports].
#' @section Conditions: an error of class `rlib_error_package_not_found` where
#' the home package is not installed; in a session with a user, an offer to
#' install it.
#' @examplesIf rlang::is_installed(c("rstantools", "loo", "bayesplot"))
#' fit <- tall_glm(am ~ wt, mtcars, binomial(), seed = 1, iter = 1000)
#' heavy <- tall_glm(am ~ 1, mtcars, binomial(), seed = 1, iter = 1000)
#' new <- data.frame(am = 1, wt = c(2, 3))
#' posterior_linpred(fit, newdata = new, ndraws = 3)
#' posterior_epred(fit, newdata = new, ndraws = 3)
#' posterior_predict(fit, newdata = new, ndraws = 3, seed = 1)
#' predictive_error(fit, newdata = new, ndraws = 3, seed = 1)
#' predictive_interval(fit, newdata = new, seed = 1)
#' posterior_interval(fit)
#' prior_summary(fit)
#' dim(log_lik(fit))
#' summary(bayes_R2(fit))
#' summary(loo_R2(fit))
#' loo_compare(loo(fit), loo(heavy))
#' waic(fit)
#' pp_check(fit)
#' @name generics
NULL

#' @rdname generics
#' @export
posterior_linpred <- function(object, ...) {
  hand_on("rstantools", "posterior_linpred")
}

#' @rdname generics
#' @export
posterior_epred <- function(object, ...) {
  hand_on("rstantools", "posterior_epred")
}

#' @rdname generics
#' @export
posterior_predict <- function(object, ...) {
  hand_on("rstantools", "posterior_predict")
}

#' @rdname generics
#' @export
predictive_error <- function(object, ...) {
  hand_on("rstantools", "predictive_error")
}

#' @rdname generics
#' @export
predictive_interval <- function(object, ...) {
  hand_on("rstantools", "predictive_interval")
}

#' @rdname generics
#' @export
posterior_interval <- function(object, ...) {
  hand_on("rstantools", "posterior_interval")
}

#' @rdname generics
#' @export
log_lik <- function(object, ...) {
  hand_on("rstantools", "log_lik")
}

#' @rdname generics
#' @export
bayes_R2 <- function(object, ...) {
  hand_on("rstantools", "bayes_R2")
}

#' @rdname generics
#' @export
loo_R2 <- function(object, ...) {
  hand_on("rstantools", "loo_R2")
}

#' @rdname generics
#' @export
prior_summary <- function(object, ...) {
  hand_on("rstantools", "prior_summary")
}

#' @rdname generics
#' @export
loo <- function(x, ...) {
  hand_on("loo", "loo")
}

#' @rdname generics
#' @export
waic <- function(x, ...) {
  hand_on("loo", "waic")
}

#' @rdname generics
#' @export
kfold <- function(x, ...) {
  hand_on("loo", "kfold")
}

#' @rdname generics
#' @export
loo_compare <- function(x, ...) {
  if (is.list(x) && !inherits(x, c("loo", "tall_fit"))) {
    check_same_rows_of(x) # methods do not see what is in a list
  }
  hand_on("loo", "loo_compare")
}

#' @rdname generics
#' @export
pp_check <- function(object, ...) {
  hand_on("bayesplot", "pp_check")
}

# The call that is being evaluated, to the generic itself, where it was made:
# methods that look at what was written for an argument see that.
hand_on <- function(package, name) {
  rlang::check_installed(package, paste0("for `", name, "()`."))
  call <- sys.call(-1)
  call[[1]] <- call("::", as.name(package), as.name(name))
  eval(call, parent.frame(2))
}

# ---- of packages that are imported -------------------------------------------

#' @importFrom posterior as_draws
#' @export
posterior::as_draws

#' @importFrom posterior as_draws_array
#' @export
posterior::as_draws_array

#' @importFrom posterior as_draws_df
#' @export
posterior::as_draws_df

#' @importFrom posterior as_draws_list
#' @export
posterior::as_draws_list

#' @importFrom posterior as_draws_matrix
#' @export
posterior::as_draws_matrix

#' @importFrom posterior as_draws_rvars
#' @export
posterior::as_draws_rvars

#' @importFrom posterior summarise_draws
#' @export
posterior::summarise_draws
