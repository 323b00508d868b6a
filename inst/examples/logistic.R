# Logistic regression in C, logistic.c, against the built-in model_glm().
library(tallbayes)

# Compile a C file of this folder in a temporary one, and load it.
folder <- system.file("examples", package = "tallbayes")
build <- tempfile("logistic")
dir.create(build)
invisible(file.copy(file.path(folder, "logistic.c"), build))
include <- system.file("include", package = "tallbayes")
writeLines(
  paste0("PKG_CPPFLAGS = -I\"", include, "\""),
  file.path(build, "Makevars")
)
old <- setwd(build)
system2(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "logistic.c"))
setwd(old)
dyn.load(file.path(build, paste0("logistic", .Platform$dynlib.ext)))

set.seed(1)
n <- 20000
x <- cbind(a = 1, b = rnorm(n), c = rnorm(n))
y <- rbinom(n, 1, plogis(drop(x %*% c(-1, 1, 0.5))))

ours <- model_native(
  .Call("logistic_model"),
  data = list(x = x, y = y),
  init = c(a = 0, b = 0, c = 0),
  constants = list(prior_sd = 2.5)
)
built_in <- model_glm(x, y, "bernoulli", prior_normal(0, 2.5))

# the same gradients, so the same draws for the same seed
run <- function(model) {
  sg_sample(
    model,
    kernel_sgld(1e-4),
    gradient_cv(),
    subsample_uniform(500),
    iter = 1000,
    seed = 1
  )
}
print(summary(run(ours)))
print(summary(run(built_in)))
