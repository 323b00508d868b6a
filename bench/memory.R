# Memory of a model, and the peak while it is built. See README.md.
#
#   Rscript bench/memory.R
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "common.R"))
if (!file.exists("/proc/self/clear_refs")) {
  stop("This needs Linux: the peak is that of /proc/self/status.")
}
bench_start("memory", "Memory of a model")

status <- function(field) {
  line <- grep(paste0("^", field, ":"), readLines("/proc/self/status"), value = TRUE)
  1024 * as.numeric(gsub("[^0-9]", "", line))
}
# Peak of resident memory while expr runs, over what there was before.
peak <- function(expr) {
  for (k in 1:3) gc(FALSE, full = TRUE)
  cat("5", file = "/proc/self/clear_refs") # resets the high-water mark
  before <- status("VmRSS")
  value <- force(expr)
  list(value = value, bytes = status("VmHWM") - before)
}
mib <- function(x) fixed(x / 2^20, 0)

measure <- function(label, n_data, d, with = character(), step = "model_glm()") {
  set.seed(1)
  x <- matrix(runif(n_data * d), n_data, d)
  y <- as.double(runif(n_data) < 0.5)
  extra <- list(
    weights = if ("weights" %in% with) runif(n_data) + 0.5,
    offset = if ("offset" %in% with) runif(n_data)
  )
  # everything is loaded and compiled before
  warm <- model_glm(x[1:100, ], y[1:100], "bernoulli", prior_normal(0, 1))
  rm(warm)
  built <- peak(model_glm(
    x, y, "bernoulli", prior_normal(0, 1),
    weights = extra$weights, offset = extra$offset
  ))
  model <- built$value
  allowed <- 1.1 * 8 * n_data * d + 8 * n_data * (2 + length(with))
  memory <- tallbayes:::model_info(model)$memory
  block <- 8 * 4096 * d
  data.frame(
    model = label,
    N = format(n_data, big.mark = ",", scientific = FALSE),
    d = d,
    "x in R, MiB" = mib(8 * n_data * d),
    "model / x" = fixed(memory / (8 * n_data * d), 3),
    "model / allowed" = fixed(memory / allowed, 3),
    "peak / x" = fixed(built$bytes / (8 * n_data * d), 3),
    "peak / allowed" = fixed(built$bytes / (allowed + block), 3),
    met = yes_no(memory <= allowed && built$bytes <= allowed + block),
    check.names = FALSE
  )
}

say("Allowed: 1.1 x 8 N d bytes, and 8 N for each of response, stored scalar, weights,\noffset; the peak (resident memory, over what there was before) one block more.\n")
table <- rbind(
  measure("logistic", 2e6, 20),
  measure("logistic", 581012, 55),
  measure("logistic, weights, offset", 2e6, 20, c("weights", "offset")),
  measure("logistic, narrow", 5e6, 4)
)
say_table(table)

say("The recipe needs the rows whitened. sg_sample() leaves the user's model alone and\nmakes a copy; tall_glm() owns its model and rewrites it in place.\n")
n_data <- 2e6
d <- 20
set.seed(1)
x <- matrix(runif(n_data * d), n_data, d)
y <- as.double(runif(n_data) < 0.5)
model <- model_glm(x, y, "bernoulli", prior_normal(0, 1))
by_model <- peak(sg_sample(model, iter = 100, chains = 1, seed = 1))
rm(model)
data <- data.frame(y = y, x)
rm(x)
by_formula <- peak(tall_glm(y ~ . - 1, data, binomial, iter = 100, chains = 1, seed = 1))
size <- 8 * n_data * d
say_table(data.frame(
  call = c("sg_sample(model)", "tall_glm(formula, data)"),
  "peak / x" = fixed(c(by_model$bytes, by_formula$bytes) / size),
  check.names = FALSE
))
