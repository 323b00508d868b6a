# The two tables of Mauri & Zanella (2024) as their experiments used them: a list of
# the covariates `x` and responses `y` of the training and the test part.

# Sepsis: raw covariates and a constant, y = left alive.
barker_sepsis <- function() {
  data <- tall_data("sepsis")
  x <- cbind(
    age = data$age_years,
    sex = data$sex_0male_1female,
    episode = data$episode_number,
    const = 1
  )
  set.seed(123)
  train <- sample(nrow(x), as.integer(0.8 * nrow(x)))
  list(x = x[train, ], y = data$hospital_outcome_1alive_0dead[train])
}

# Arrhythmia: without class 16 and 33 columns (constant, missing or collinear), the
# first 100 of the others, scaled twice (all rows, then the training part), a
# constant last; y = any arrhythmia.
barker_arrhythmia <- function() {
  data <- tall_data("arrhythmia")
  data <- data[data$class < 16, ]
  y <- as.double(data$class != 1)
  left_out <- c(
    11:15, 20, 22, 46, 48, 51, 61, 62, 68, 70, 75, 80, 84, 85, 86, 116, 132, 133,
    140, 142, 144, 146, 152, 157, 158, 165, 205, 265, 275
  )
  kept <- setdiff(names(data), c("class", paste0("v", left_out)))[1:100]
  x <- scale(as.matrix(data[kept]))
  set.seed(123)
  train <- sample(nrow(x), as.integer(0.8 * nrow(x)))
  center <- colMeans(x[train, ])
  sd <- apply(x[train, ], 2, stats::sd)
  x <- cbind(scale(x, center, sd), const = 1)
  list(x = x[train, ], y = y[train], x_test = x[-train, ], y_test = y[-train])
}
