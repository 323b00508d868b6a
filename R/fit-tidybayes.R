# tidybayes takes fits by the generics of posterior and rstantools; of classes it
# has to be told what the third dimension is called.

#' Classes in tidybayes
#'
#' Functions of \pkg{tidybayes} such as `spread_draws()`, `epred_draws()` and
#' `predicted_draws()` take fits of all front ends. Of classes `epred_draws()`
#' and `linpred_draws()` have a row for each class, in the column `category`, as
#' of brms' fits.
#'
#' @param object (`tall_classes`) The fit.
#' @param newdata (data frame) Where to predict.
#' @param category (string) The column that says which class it is.
#' @param ... Handed on.
#'
#' @return A data frame, as of \pkg{tidybayes}.
#' @examplesIf requireNamespace("tidybayes", quietly = TRUE)
#' fit <- tall_multinom(Species ~ Sepal.Width, iris, iter = 500, seed = 1)
#' tidybayes::epred_draws(fit, iris[1:2, ], ndraws = 3)
#' @name tidybayes-tall_classes
NULL

#' @rdname tidybayes-tall_classes
#' @exportS3Method tidybayes::epred_draws
epred_draws.tall_classes <- function(
  object,
  newdata,
  ...,
  category = ".category"
) {
  NextMethod(category = category)
}

#' @rdname tidybayes-tall_classes
#' @exportS3Method tidybayes::linpred_draws
linpred_draws.tall_classes <- function(
  object,
  newdata,
  ...,
  category = ".category"
) {
  NextMethod(category = category)
}
