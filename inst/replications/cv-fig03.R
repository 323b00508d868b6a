# Baker et al. (2019), Figure 3: matrix factorisation of MovieLens, users varied. Their
# 20,000 iterations, minibatches of 5,000, 5,000 steps to the centre, and log predictive
# density; five seeds. Differs: one step size for all blocks and methods; minibatches of
# half the ratings of 100 users.
source(system.file("replications", "helpers.R", package = "tallbayes"))
source(replication_file("ratings.R"))

# ---- ratings-cv ----
# rMSE of single draws, and of averages, along a chain.
cv_chain <- function(users, seed, method, iter) {
  part <- train[train$user <= users, ]
  held_out <- test[test$user <= users & test$item %in% part$item, ]
  size <- min(5000, nrow(part) %/% 2)
  init <- "authors"
  if (method %in% c("SGLD from the centre", "SGLD-CV")) {
    model <- model_pmf(
      part$user, part$item, part$rating, 20, 3, 1, 300,
      init = "authors"
    )
    set.seed(seed)
    centre <- find_mode(
      model, "sgd",
      max_iter = full(5000, 50), batch_size = size, learning_rate = 5e-5, decay = NULL
    )
    init <- centre$estimate
  }
  fit <- tall_factorize(
    rating ~ user + item,
    part,
    rank = 20,
    newdata = held_out,
    model = "pmf",
    b0 = 300,
    gibbs_every = 10,
    kernel = kernel_sgld(3e-5),
    gradient = switch(method,
      "SGLD-CV" = gradient_cv(centre),
      "SAGA" = gradient_saga(),
      gradient_simple()
    ),
    subsample = subsample_uniform(size, replace = FALSE),
    iter = iter,
    warmup = iter / 2,
    init = init,
    clip = FALSE,
    chains = 1,
    keep = "none",
    seed = seed
  )
  cbind(fit$monitor, users = users, seed = seed, method = method)
}
cv_names <- c("SGLD", "SAGA", "SGLD-CV", "SGLD from the centre")
user_counts <- c(100, 500, 943)
plan_3 <- expand.grid(
  users = user_counts, method = cv_names, seed = seq_len(full(5, 2)),
  iter = full(20000, 100), stringsAsFactors = FALSE
)
by_users <- do.call(rbind, Map(
  function(users, seed, method, iter) {
    once(
      paste("cv-fig03", users, seed, method, iter),
      suppressWarnings(cv_chain(users, seed, method, iter))
    )
  },
  plan_3$users, plan_3$seed, plan_3$method, plan_3$iter
))

# ---- ratings-cv-figure ----
# The mean log density of held-out ratings under the precision 3 of the model, of single
# draws: a function of their mean squared error.
log_density <- function(rmse) 0.5 * log(3 / (2 * pi)) - 1.5 * rmse^2
by_users$label <- factor(paste(by_users$users, "users"), paste(user_counts, "users"))
by_users$method <- factor(by_users$method, cv_names)
draws <- by_users[by_users$statistic == "draw", ]
draws$density <- log_density(draws$value)
# one seed: those of the others lie on it
shown <- draws[draws$seed == 1, ]
print(
  ggplot(shown, aes(iteration, density, colour = method, linetype = method)) +
    geom_line(linewidth = 0.8) +
    facet_wrap(~label) +
    scale_x_log10(breaks = c(100, 1000, 10000), labels = c("100", "1,000", "10,000")) +
    coord_cartesian(ylim = c(-4, -1.4)) +
    scale_colour_manual(
      values = c(palette_methods, "SGLD from the centre" = palette_methods[["SGLD"]]),
      breaks = cv_names, name = NULL
    ) +
    # dashes on top of solid lines: pairs of curves lie on one another
    scale_linetype_manual(
      values = setNames(c("solid", "41", "solid", "12"), cv_names),
      breaks = cv_names, name = NULL
    ) +
    labs(y = "log predictive density")
)

# ---- ratings-cv-verdict ----
# Means over windows of iterations, by users, method and seed; a lead is a seed's own.
window <- function(from, to, field = "density") {
  of <- draws[draws$iteration > full(from, 0) & draws$iteration <= full(to, Inf), ]
  tapply(of[[field]], of[c("users", "method", "seed")], mean)
}
first <- window(0, 200)
early <- window(750, 1500)
late <- window(10000, 20000)
ahead <- function(values, of = "SGLD-CV", than = "SGLD") {
  matrix(values[, of, ] - values[, than, ], nrow(values))
}
each_count <- function(lead) paste(apply(lead, 1, with_error, 3), collapse = ", ")
grows <- function(lead) stats::cor(as.vector(lead), rep(user_counts, ncol(lead))) > 0
verdict(
  "Figure 3",
  if (all(above_zero(ahead(late))) && grows(ahead(late))) {
    TRUE
  } else if (all(above_zero(ahead(first)))) {
    "in part"
  } else {
    FALSE
  },
  "Log predictive density of SGLD-CV less that of SGLD, for 100, 500 and 943 users: over the ",
  "first 200 iterations ", each_count(ahead(first)), ", over iterations 751 to 1,500 ",
  each_count(ahead(early)), ", over the second half of 20,000 ", each_count(ahead(late)),
  ". SGLD-CV less SGLD from the same start, over the second half: ",
  each_count(ahead(late, than = "SGLD from the centre")), ". SAGA, which the paper has as slow, ",
  "less SGLD over iterations 751 to 1,500: ", each_count(ahead(early, "SAGA")), ". Means over ",
  dim(late)[[3]], " seeds (standard errors)."
)

# ---- ratings-cv-table ----
cells_of <- function(values, digits = 3) {
  as.vector(apply(values[, cv_names, , drop = FALSE], 1:2, with_error, digits))
}
averages <- by_users[by_users$statistic == "ergodic", ]
averages <- averages[averages$iteration == max(averages$iteration), ]
averages <- tapply(averages$value, averages[c("users", "method", "seed")], mean)
show_table(
  data.frame(
    users = rep(user_counts, length(cv_names)),
    method = rep(cv_names, each = length(user_counts)),
    "log density, 1 to 200" = cells_of(first),
    "751 to 1,500" = cells_of(early),
    "second half" = cells_of(late),
    "rMSE, second half" = cells_of(window(10000, 20000, "value")),
    "rMSE of averages" = cells_of(averages),
    check.names = FALSE
  )[order(rep(user_counts, length(cv_names))), ],
  caption = paste(
    "Single draws over iterations; averages over the second half, by predictions. Means over",
    "seeds (standard errors)."
  ),
  align = "r"
)

# ---- ratings-cv-variance ----
part <- train[train$user <= 943, ]
model <- model_pmf(part$user, part$item, part$rating, 20, 3, 1, 300, init = "authors")
set.seed(1)
centre <- find_mode(
  model, "sgd",
  max_iter = full(5000, 50), batch_size = 5000, learning_rate = 5e-5, decay = NULL
)
scheme <- subsample_uniform(5000, replace = FALSE)
chain <- sg_sample(
  model, kernel_sgld(3e-5), gradient_simple(), scheme,
  iter = full(1001, 11), warmup = full(1000, 10), chains = 1, init = as.double(centre$estimate), seed = 1
)
state <- as.double(chain$unconstrained)
noise <- c(
  plain = pseudo_variance(model, state, gradient_simple(), scheme),
  cv = pseudo_variance(model, state, gradient_cv(centre), scheme)
)
share <- 3e-5 / 4 * noise[["plain"]] / model$n_dim
c(ratio = noise[["cv"]] / noise[["plain"]], share = share)
