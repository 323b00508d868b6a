# 20 Newsgroups for the figure on topics: it stands in for the articles of Wikipedia,
# which are not public.

# ---- topics-data ----
news <- tall_data("newsgroups")
train_docs <- news$counts[news$counts$doc <= 11256, ]
set.seed(1)
test_docs <- news$counts[news$counts$doc %in% sample(11257:18745, 1500), ]
