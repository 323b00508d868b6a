# The data, the settings and the names that the figures of Baker, Fearnhead, Fox &
# Nemeth (2019) on covertype share.

cv_methods <- c("SGLD", "SAGA", "SGLD-CV, centre by SGD", "SGLD-CV, centre by Newton")
cv_colours <- setNames(palette_methods[c("SGLD", "SAGA", "SGLD-CV", "SGLD-CV")], cv_methods)
cv_lines <- setNames(c("solid", "41", "11", "solid"), cv_methods)

# ---- cv-covertype ----
# Features scaled to [0, 1], a constant, a quarter of the rows held out, of which
# 10,000 are used.
cv_covertype <- function() {
  cover <- tall_data("covertype")
  x <- as.matrix(cover[names(cover) != "cover_type"])
  ends <- apply(x, 2, range)
  x <- cbind("(Intercept)" = 1, scale(x, ends[1, ], ends[2, ] - ends[1, ]))
  y <- as.double(cover$cover_type == 2)
  set.seed(1)
  train <- sample(nrow(x), 0.75 * nrow(x))
  test <- sample(setdiff(seq_len(nrow(x)), train), 10000)
  list(x = x, y = y, train = train, test = test)
}

# Of a share of the training rows.
cv_model <- function(data, share) {
  rows <- head(data$train, floor(share * length(data$train)))
  model_glm(data$x[rows, ], data$y[rows], "bernoulli", prior_laplace(0, 1))
}

cv_mode_loss <- function(data, mode) {
  p <- plogis(drop(data$x[data$test, ] %*% coef(mode)))
  log_loss(p, y = data$y[data$test])
}

# ---- settings ----
settings <- data.frame(
  share = c(0.01, 0.1, 1),
  sgld = c(5e-4, 5e-5, 5e-6),
  saga = c(1e-3, 1e-4, 1e-5),
  # their step size is twice the learning rate
  sgd = c(7e-5, 5e-5, 5e-6) / 2
)
