# MovieLens 100k and its split u1, for the figures on matrix factorisation.

# ---- ratings-data ----
ratings <- tall_data("movielens")[c("user", "item", "rating")]
test <- ratings[1:20000, ] # the split u1 of MovieLens 100k
train <- ratings[20001:100000, ]
