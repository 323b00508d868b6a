# Figures of the papers about factorisations of MovieLens 100k, over several seeds:
# Mauri & Zanella (2024), Figure 4, over a grid of step sizes; Baker, Fearnhead, Fox &
# Nemeth (2019), Figure 3, with SGLD from both starts, and Figure 4, zero-variance
# post-processing of all 55,167 parameters' model. See README.md.
#
#   TALLBAYES_DATA=folder Rscript bench/ratings-figures.R [seeds]
source(file.path(
  dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))),
  "common.R"
))
args <- commandArgs(TRUE)
seeds <- seq_len(if (length(args) > 0) as.integer(args[[1]]) else 3)
bench_start("ratings-figures", "Matrix factorisation: the papers' figures, several seeds")

ratings <- tall_data("movielens")[c("user", "item", "rating")]
test <- ratings[1:20000, ]
train <- ratings[20001:100000, ]

# "0.936 (0.002)": mean and standard deviation
spread <- function(x, digits = 3) {
  paste0(fixed(mean(x), digits), " (", fixed(sd(x), digits), ")")
}
verdict <- function(holds) if (holds) "**holds**" else "**does not hold**"

# ---- SGBD, Figure 4 ----------------------------------------------------------

kernels <- list(
  "v-SGBD" = function(sigma) kernel_sgbd(sigma),
  "c-SGBD" = function(sigma) kernel_sgbd(sigma, "corrected"),
  "e-SGBD" = function(sigma) kernel_sgbd(sigma, "extreme"),
  "v-SGLD" = function(sigma) kernel_sgld(sigma^2),
  "c-SGLD" = function(sigma) kernel_sgld(sigma^2, "corrected"),
  "e-SGLD" = function(sigma) kernel_sgld(sigma^2, "extreme")
)
sigmas <- signif(0.0224 * sqrt(2)^(-6:3), 3)
n_iter <- 5000

# Errors at the end of a run, NA if it stopped: of averaged predictions, and of
# single draws on average over the last tenth; iterations until these are below 1.1.
factorise <- function(method, sigma, init, seed) {
  run <- function() {
    tall_factorize(
      rating ~ user + item,
      train,
      rank = 20,
      newdata = test,
      kernel = kernels[[method]](sigma),
      subsample = subsample_uniform(800, replace = FALSE),
      iter = n_iter,
      init = init,
      chains = 1,
      keep = "none",
      seed = seed
    )
  }
  stopped <- data.frame(ergodic = NA, draw = NA, reached = NA)
  monitor <- tryCatch(
    suppressWarnings(run())$monitor,
    tall_error_nonfinite = function(e) NULL
  )
  if (is.null(monitor) || max(monitor$iteration) < n_iter) {
    return(cbind(stopped, method, sigma, init, seed))
  }
  of <- split(monitor, monitor$statistic)
  is_last <- of$draw$iteration > 0.9 * n_iter
  reached <- of$draw$iteration[of$draw$value < 1.1]
  data.frame(
    ergodic = of$ergodic$value[of$ergodic$iteration == n_iter],
    draw = mean(of$draw$value[is_last]),
    reached = if (length(reached) > 0) min(reached) else Inf,
    method, sigma, init, seed
  )
}

grid <- expand.grid(
  seed = seeds,
  sigma = sigmas,
  method = names(kernels),
  init = c("default", "authors"),
  stringsAsFactors = FALSE
)
figure_4 <- do.call(rbind, Map(
  factorise,
  grid$method,
  grid$sigma,
  grid$init,
  grid$seed
))

# methods x what at the step size with the best mean, NULL where a run stopped
best <- function(part, what) {
  do.call(rbind, lapply(names(kernels), function(method) {
    of <- part[part$method == method, ]
    means <- tapply(of[[what]], of$sigma, mean)
    sigma <- as.numeric(names(which.min(means)))
    at <- of[of$sigma == sigma, ]
    data.frame(method, sigma, value = at[[what]], reached = at$reached)
  }))
}
error_table <- function(part, what) {
  cells <- tapply(part[[what]], part[c("sigma", "method")], function(x) {
    if (anyNA(x)) paste0("stops ", sum(is.na(x)), "/", length(x)) else spread(x)
  })
  out <- as.data.frame(cells[, names(kernels)], check.names = FALSE)
  say_table(cbind(sigma = format(sigmas), out))
}

say("## Barker against Langevin dynamics (SGBD, Figure 4)\n")
say(
  "BPMF of rank 20, n = 800, ", n_iter, " iterations, the second half averaged; rMSE of ",
  "20,000\nheld-out ratings, mean over ", length(seeds), " seeds (standard deviation). ",
  "\"stops\": runs whose state\nstopped being finite. Steps of SGLD are sigma^2. The paper ",
  "chose each method's step\nfrom a grid by its error, and so do the claims here.\n"
)
for (init in c("default", "authors")) {
  start <- c(default = "the default start", authors = "the authors' start")[[init]]
  part <- figure_4[figure_4$init == init, ]
  say("## Averaged predictions from ", start, "\n")
  error_table(part, "ergodic")
  say("## Single draws from ", start, "\n")
  error_table(part, "draw")
  ergodic <- best(part, "ergodic")
  draw <- best(part, "draw")
  mean_of <- function(x, column = "value") {
    vapply(names(kernels), function(m) mean(x[x$method == m, column]), 0)
  }
  sd_of <- function(x) vapply(names(kernels), function(m) sd(x$value[x$method == m]), 0)
  sigma_of <- function(x) vapply(names(kernels), function(m) x$sigma[x$method == m][[1]], 0)
  largest <- vapply(names(kernels), function(m) {
    of <- part[part$method == m, ]
    max(of$sigma[!of$sigma %in% of$sigma[is.na(of$ergodic)]])
  }, 0)
  cell <- function(x) paste0(fixed(mean_of(x), 3), " (", fixed(sd_of(x), 3), ")")
  say("## Best of each method from ", start, "\n")
  say_table(data.frame(
    method = names(kernels),
    averaged = cell(ergodic),
    sigma = format(sigma_of(ergodic)),
    "single draws" = cell(draw),
    "sigma " = format(sigma_of(draw)),
    "below 1.1 after" = format(mean_of(draw, "reached"), digits = 3),
    "largest sigma that runs" = format(largest),
    check.names = FALSE
  ))
  e <- mean_of(ergodic)
  d <- mean_of(draw)
  paper <- c("v-SGBD", "e-SGBD", "v-SGLD", "e-SGLD")
  outperforms <- vapply(c("v", "c", "e"), function(v) {
    e[[paste0(v, "-SGBD")]] < e[[paste0(v, "-SGLD")]]
  }, TRUE)
  say("* SGBD is better than SGLD, averaged: ", paste0(
    c("vanilla ", "corrected ", "extreme "), vapply(outperforms, verdict, ""),
    collapse = ", "
  ), ".")
  say(
    "* Averages of v-SGBD are the best of the paper's four: ",
    verdict(names(which.min(e[paper])) == "v-SGBD"), " (",
    names(which.min(e[paper])), "; of all six ", names(which.min(e)), ")."
  )
  say(
    "* Single draws of e-SGBD are the best of the four: ",
    verdict(names(which.min(d[paper])) == "e-SGBD"), " (",
    names(which.min(d[paper])), ").\n"
  )
}

# ---- control variates, Figure 3 ----------------------------------------------

b0 <- 300
centre_of <- function(model, size) {
  find_mode(
    model, "sgd",
    max_iter = 1000, batch_size = size, learning_rate = 5e-5, decay = NULL
  )
}
compare <- function(n_user, step, seed) {
  part <- train[train$user <= n_user, ]
  held_out <- test[test$user <= n_user & test$item %in% part$item, ]
  size <- min(5000, nrow(part) %/% 2)
  model <- model_pmf(
    part$user, part$item, part$rating, 20, 3, 1, b0, init = "authors"
  )
  set.seed(seed)
  centre <- centre_of(model, size)
  run <- function(gradient, init) {
    monitor <- tall_factorize(
      rating ~ user + item,
      part,
      rank = 20,
      newdata = held_out,
      model = "pmf",
      b0 = b0,
      gibbs_every = 10,
      kernel = kernel_sgld(step),
      gradient = gradient,
      subsample = subsample_uniform(size, replace = FALSE),
      iter = 1500,
      init = init,
      clip = FALSE,
      chains = 1,
      keep = "none",
      seed = seed
    )$monitor
    is_draw <- monitor$statistic == "draw" & monitor$iteration > 750
    c(
      ergodic = monitor$value[monitor$statistic == "ergodic" & monitor$iteration == 1500],
      draw = mean(monitor$value[is_draw])
    )
  }
  found <- rbind(
    SGLD = run(gradient_simple(), "authors"),
    same = run(gradient_simple(), centre$estimate),
    "SGLD-CV" = run(gradient_cv(centre), centre$estimate)
  )
  data.frame(method = rownames(found), found, n_user, step, seed)
}
cases <- expand.grid(
  seed = seeds,
  step = c(1e-5, 3e-5, 1e-4),
  n_user = c(100, 500, 943)
)
figure_3 <- do.call(rbind, Map(compare, cases$n_user, cases$step, cases$seed))

say("## SGLD with and without control variates (control variates, Figure 3)\n")
say(
  "PMF of rank 20 with biases, Gamma(1, 300), precisions by Gibbs every 10 iterations, ",
  "n = 5,000\n(half of the ratings of 100 users), 1,500 iterations, ", length(seeds),
  " seeds; rMSE of single draws in the second half.\nSGLD starts where the paper's does, ",
  "or at the centre of the control variates, 1,000\nsteps of stochastic gradient ascent ",
  "from there. Leads: rMSE of SGLD less that of\nSGLD-CV, each seed on its own.\n"
)
leads <- split(figure_3, figure_3[c("step", "n_user")])
say_table(do.call(rbind, lapply(leads, function(x) {
  of <- function(method, what) x[x$method == method, what]
  data.frame(
    users = format(x$n_user[[1]]),
    h = format(x$step[[1]]),
    SGLD = spread(of("SGLD", "draw")),
    "from the centre" = spread(of("same", "draw")),
    "SGLD-CV" = spread(of("SGLD-CV", "draw")),
    "lead" = spread(of("SGLD", "draw") - of("SGLD-CV", "draw"), 4),
    "lead from the centre" = spread(of("same", "draw") - of("SGLD-CV", "draw"), 4),
    check.names = FALSE
  )
})))
lead_at <- function(n_user, method) {
  of <- function(m) {
    x <- figure_3[figure_3$n_user == n_user & figure_3$method == m, ]
    tapply(x$draw, x$step, mean)
  }
  of(method) - of("SGLD-CV")
}
say(
  "* That SGLD-CV is better: ", verdict(all(lead_at(943, "SGLD") > 0)),
  ". That its lead grows with the data: ",
  verdict(all(lead_at(943, "SGLD") > lead_at(100, "SGLD"))),
  ".\n* From the same start SGLD is behind by at most ",
  fixed(max(lead_at(943, "same")), 4), " (943 users): the lead is that of a\n",
  "  start after an ascent, not of control variates.\n"
)

# ---- control variates, Figure 4 ----------------------------------------------

say("## Zero-variance post-processing (control variates, Figure 4)\n")
model <- model_pmf(
  train$user, train$item, train$rating, 20, 3, 1, b0, init = "authors"
)
set.seed(1)
centre <- centre_of(model, 5000)
ends <- function(id, n = 10) as.integer(names(sort(-table(id)))[seq_len(n)])
users <- ends(test$user)
items <- ends(test$item)
of_rows <- function(side, id) {
  factors <- outer(id, 1:20, function(i, k) sprintf("%s[%d,%d]", side, i, k))
  c(factors, sprintf("%s_bias[%d]", side, id))
}
pairs <- expand.grid(user = users, item = items)
means <- function(theta) {
  out <- theta[, sprintf("user_bias[%d]", pairs$user)] +
    theta[, sprintf("item_bias[%d]", pairs$item)]
  for (k in 1:20) {
    out <- out + theta[, sprintf("user[%d,%d]", pairs$user, k)] *
      theta[, sprintf("item[%d,%d]", pairs$item, k)]
  }
  unname(out)
}
n_chain <- 4
reduced <- function(gradient, name, step) {
  fit <- sg_sample(
    model,
    kernel_sgld(step),
    gradient,
    subsample_uniform(5000, replace = FALSE),
    iter = 11000,
    warmup = 1000,
    thin = 2,
    chains = n_chain,
    init = as.double(centre$estimate),
    keep = c("draws", "gradients"),
    variables = c(of_rows("user", users), of_rows("item", items)),
    seed = 1
  )
  zv <- zero_variance(fit, means)
  before <- means(as.matrix(fit))
  after <- matrix(unclass(zv), nrow(before))
  between <- function(x) {
    by_chain <- array(x, c(nrow(x) / n_chain, n_chain, ncol(x)))
    mean(apply(apply(by_chain, 2:3, mean), 2, var))
  }
  falls <- 1 / attr(zv, "variance_ratio")
  rhat <- apply(before, 2, function(x) posterior::rhat(matrix(x, ncol = n_chain)))
  data.frame(
    gradients = name,
    h = format(step),
    "variance falls by" = fixed(median(falls)),
    from = fixed(min(falls)),
    to = fixed(max(falls)),
    "that of chains' means" = fixed(between(before) / between(after)),
    "R-hat" = fixed(median(rhat)),
    check.names = FALSE
  )
}
say(
  "The model of all ", format(model$n_dim, big.mark = ","), " parameters. All their ",
  "gradients as control variates would take\nmore draws than that and a covariance of ",
  fixed(8 * model$n_dim^2 / 2^30, 0), " GiB; the authors' program regresses\nevery factor ",
  "on the 20 gradients of its own row. Here: predictions of 100 pairs of 10 users\nand ",
  "10 items on the 420 gradients of their rows, 20,000 draws. Factors over the pairs,\n",
  "median and range; and of the variance between the means of ", n_chain, " chains, ",
  "which shows\nwhether it is estimates that improve.\n"
)
say_table(do.call(rbind, list(
  reduced(gradient_cv(centre), "control variates", 1e-5),
  reduced(gradient_simple(), "plain", 1e-5),
  reduced(gradient_cv(centre), "control variates", 1e-4),
  reduced(gradient_simple(), "plain", 1e-4)
)))

# ---- the prior of the precisions ---------------------------------------------

say("## Prior of the precisions in model_pmf()\n")
say(
  "Gamma(1, b0) with Barker dynamics as in `tall_factorize(model = \"pmf\")`, 5,000 ",
  "iterations,\naveraged predictions, ", length(seeds), " seeds:\n"
)
prior <- expand.grid(seed = seeds, b0 = c(1, 5, 50, 300))
prior$error <- mapply(function(seed, b0) {
  monitor <- suppressWarnings(tall_factorize(
    rating ~ user + item,
    train,
    newdata = test,
    model = "pmf",
    b0 = b0,
    chains = 1,
    keep = "none",
    seed = seed
  ))$monitor
  monitor$value[monitor$statistic == "ergodic" & monitor$iteration == 5000]
}, prior$seed, prior$b0)
say_table(data.frame(
  b0 = format(unique(prior$b0)),
  rMSE = tapply(prior$error, prior$b0, spread)
))
