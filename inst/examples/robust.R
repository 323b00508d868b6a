# A regression that outliers do not move: Student's t errors, robust.c.
library(tallbayes)

# Compile a C file of this folder in a temporary one, and load it.
folder <- system.file("examples", package = "tallbayes")
build <- tempfile("robust")
dir.create(build)
invisible(file.copy(file.path(folder, "robust.c"), build))
include <- system.file("include", package = "tallbayes")
writeLines(
  paste0("PKG_CPPFLAGS = -I\"", include, "\""),
  file.path(build, "Makevars")
)
old <- setwd(build)
system2(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "robust.c"))
setwd(old)
dyn.load(file.path(build, paste0("robust", .Platform$dynlib.ext)))

# 20,000 rows; one response in twenty is far off
set.seed(1)
n <- 20000
x <- cbind(1, matrix(rnorm(2 * n), n))
y <- drop(x %*% c(1, -2, 0.5)) + 0.7 * rt(n, 4)
off <- sample(n, n / 20)
y[off] <- y[off] + 20 * abs(x[off, 2])

model <- model_native(
  .Call("robust_model"),
  data = list(x = x, y = y),
  init = c(b0 = 0, b1 = 0, b2 = 0, log_sigma = 0),
  constants = list(df = 4, prior_sd = 2.5, prior_scale = 1),
  variables = c("b0", "b1", "b2", "sigma")
)
print(model)

# nothing to tune: the table has a curvature
fit <- sg_sample(model, seed = 1)
print(summary(fit))
print(coef(lm(y ~ x[, -1])))
