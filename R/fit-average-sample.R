# Rows at which it is looked at what the expansion of an average leaves out, see
# R/fit-average-expansion.R.

# Rows of all groups whose remainders are looked at, and of one.
average_sample <- list(all = 2000, most = 200, least = 20)

# Of each of so many groups.
sample_size <- function(n_group) {
  n <- floor(average_sample$all / n_group)
  max(average_sample$least, min(average_sample$most, n))
}

# Of the weighted mean over these rows, its root mean square over draws; 0 where
# they are all of the group.
rest_error <- function(rest, part) {
  weight <- part$weight
  centred <- rest - drop(rest %*% weight)
  n <- length(weight)
  sqrt(mean(centred^2 %*% weight^2) * n / max(1, n - 1) * (1 - part$share))
}

# Some rows of each group, the same of every set: those with the smallest random
# numbers.
#
# $choose(of): which of a block's rows enter, and the numbers they have.
# $keep(set, chosen, rows, slopes, weight): these rows of a set, and what slopes
# they have (vectors and matrices with a row for each, or lists of such).
# $rows(set, g): list(rows, slopes, weight, share), of a set and a group, and
# which share of the group's rows they are.
average_reservoir <- function() {
  kept <- list()
  number <- 0
  bound <- numeric()
  n_met <- numeric()
  choose <- function(of) {
    number <<- number + 1
    for (g in unique(of)) {
      n_met[g] <<- sum(c(n_met[g], of == g), na.rm = TRUE)
    }
    u <- with_seed(number, stats::runif(length(of)))
    limit <- bound[of]
    which_in <- which(is.na(limit) | u < limit)
    lapply(split(which_in, of[which_in]), function(at) {
      at <- at[order(u[at])]
      at <- utils::head(at, average_sample$most)
      list(at = at, u = u[at])
    })
  }
  keep <- function(set, chosen, rows, slopes, weight) {
    for (g in names(chosen)) {
      at <- chosen[[g]]$at
      own <- list(
        u = chosen[[g]]$u,
        rows = dense_rows(some_rows(rows, at)),
        weight = weight[at],
        slopes = select_nested(slopes, at)
      )
      key <- paste(set, g)
      kept[[key]] <<- least_of(kept[[key]], own, average_sample$most)
      if (length(kept[[key]]$u) == average_sample$most) {
        bound[as.integer(g)] <<- max(kept[[key]]$u)
      }
    }
  }
  rows <- function(set, g) {
    n <- sample_size(length(n_met))
    out <- least_of(NULL, kept[[paste(set, g)]], n)
    out$share <- length(out$u) / n_met[[g]]
    out
  }
  list(choose = choose, keep = keep, rows = rows)
}

# The n rows of both with the smallest numbers.
least_of <- function(old, new, n) {
  both <- if (is.null(old)) new else join_nested(old, new)
  select_nested(both, utils::head(order(both$u), n))
}

dense_rows <- function(rows) {
  rows$x <- as.matrix(rows$x)
  if (!is.null(rows$zeros)) {
    rows$zeros <- dense_rows(rows$zeros)
  }
  rows
}

# Some rows of vectors, matrices and lists of such; and those of two, one after
# the other.
select_nested <- function(x, at) {
  if (is.list(x)) lapply(x, select_nested, at) else select_rows(x, at)
}

join_nested <- function(x, y) {
  if (is.list(x)) {
    Map(join_nested, x, y)
  } else if (is.matrix(x)) {
    rbind(x, y)
  } else {
    c(x, y)
  }
}
