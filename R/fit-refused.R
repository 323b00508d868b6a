# Functions of stats and loo that ask for what a posterior does not have: they
# say so, and what does their work instead.

#' What a posterior does not have
#'
#' Functions of \pkg{stats}, \pkg{lme4} and \pkg{loo} that look for a maximum of
#' the likelihood, or for what least squares leave behind, are an error of class
#' `tall_error_unsupported` that names what does their work.
#'
#' * `logLik()`, `AIC()`, `BIC()`, `extractAIC()`: [loo()][loo-tall_glm] and
#'   [log_lik()][log-lik].
#' * `anova()`, `add1()`, `drop1()`, `step()`: [update()][update.tall_glm] and
#'   `loo_compare()`.
#' * `rstandard()`, `rstudent()`:
#'   [residuals(type = "pearson")][fitted-values].
#' * `cooks.distance()`, `hatvalues()`, `influence()`, `dfbeta()`, `dfbetas()`:
#'   `loo::pareto_k_values(loo(fit))`.
#' * `profile()`: [confint()][intervals].
#' * `TukeyHSD()`, `dummy.coef()`, `model.tables()`, `se.contrast()`:
#'   [emmeans][emmeans-tall_glm].
#' * `effects()`, `alias()`, `proj()`: [coef()][fit-methods] and
#'   [vcov()][fit-methods].
#'
#' @examples
#' fit <- tall_glm(am ~ wt, data = mtcars, family = binomial(), seed = 1)
#' try(anova(fit))
#' @name refused
NULL

# A method with the arguments of its generic.
refused <- function(name, because, hint) {
  message <- c(paste0("{.fn ", name, "} ", because), i = hint)
  f <- function() {
    abort_tall("unsupported", message)
  }
  formals(f) <- formals(getExportedValue("stats", name))
  f
}

of_maximum <- "compares maxima of the likelihood, and the fit is a posterior."

by_loo <- "{.code loo_compare(loo(fit), loo(update(fit, . ~ . - x)))} compares
           models by what they predict."

of_squares <- "is of least squares, and the fit is a posterior."

by_residuals <- "{.code residuals(fit, type = \"pearson\")} are in standard
                 deviations of the response."

by_pareto <- "{.code loo::pareto_k_values(loo(fit))} says which observations
              the posterior hangs on."

by_emmeans <- "{.pkg emmeans} takes fits of {.fn tall_glm},
               {.fn tall_glmer}, {.fn tall_polr} and {.fn tall_multinom}."

by_moments <- "{.code coef(fit)} and {.code vcov(fit)} are the posterior's mean
               and covariance."

#' @importFrom stats anova
#' @export
anova.tall_fit <- refused("anova", of_maximum, by_loo)

#' @importFrom stats add1
#' @export
add1.tall_fit <- refused("add1", of_maximum, by_loo)

#' @importFrom stats drop1
#' @export
drop1.tall_fit <- refused("drop1", of_maximum, by_loo)

#' @importFrom stats rstandard
#' @export
rstandard.tall_fit <- refused("rstandard", of_squares, by_residuals)

#' @importFrom stats rstudent
#' @export
rstudent.tall_fit <- refused("rstudent", of_squares, by_residuals)

#' @importFrom stats cooks.distance
#' @export
cooks.distance.tall_fit <- refused("cooks.distance", of_squares, by_pareto)

#' @importFrom stats hatvalues
#' @export
hatvalues.tall_fit <- refused("hatvalues", of_squares, by_pareto)

#' @importFrom stats influence
#' @export
influence.tall_fit <- refused("influence", of_squares, by_pareto)

#' @importFrom stats dfbeta
#' @export
dfbeta.tall_fit <- refused("dfbeta", of_squares, by_pareto)

#' @importFrom stats dfbetas
#' @export
dfbetas.tall_fit <- refused("dfbetas", of_squares, by_pareto)

#' @importFrom stats profile
#' @export
profile.tall_fit <- refused(
  "profile",
  "is of a maximum of the likelihood, and the fit is a posterior.",
  "{.code confint(fit)} and {.code plot(fit)} show the marginal posteriors."
)

#' @importFrom stats TukeyHSD
#' @export
TukeyHSD.tall_fit <- refused("TukeyHSD", of_squares, by_emmeans)

#' @importFrom stats dummy.coef
#' @export
dummy.coef.tall_fit <- refused("dummy.coef", of_squares, by_emmeans)

#' @importFrom stats model.tables
#' @export
model.tables.tall_fit <- refused("model.tables", of_squares, by_emmeans)

#' @importFrom stats se.contrast
#' @export
se.contrast.tall_fit <- refused("se.contrast", of_squares, by_emmeans)

#' @importFrom stats effects
#' @export
effects.tall_fit <- refused("effects", of_squares, by_moments)

#' @importFrom stats alias
#' @export
alias.tall_fit <- refused("alias", of_squares, by_moments)

#' @importFrom stats proj
#' @export
proj.tall_fit <- refused("proj", of_squares, by_moments)
