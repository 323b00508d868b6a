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
# $keep(set, chosen, rows, slopes, weight): these rows of a set.
# $rows(set, g): list(x, offset, slopes, weight, share), of a set and a group,
# and which share of the group's rows they are.
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
        x = as.matrix(design_rows(rows$x, at)),
        offset = rows$offset[at],
        weight = weight[at],
        slopes = lapply(slopes, `[`, at)
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
  x <- rbind(old$x, new$x)
  u <- c(old$u, new$u)
  at <- utils::head(order(u), n)
  list(
    u = u[at],
    x = x[at, , drop = FALSE],
    offset = c(old$offset, new$offset)[at],
    weight = c(old$weight, new$weight)[at],
    slopes = lapply(stats::setNames(nm = names(new$slopes)), function(name) {
      c(old$slopes[[name]], new$slopes[[name]])[at]
    })
  )
}
