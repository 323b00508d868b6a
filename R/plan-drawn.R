# What a pass over rows draws ahead, chunk after chunk and shard after shard.

#' @export
take_rows_ahead.tall_rows <- function(rows, found, draw, control) {
  args <- list(
    theta = found$theta,
    chol = found$chol,
    draw = draw,
    cores = control$cores
  )
  show <- pass_show(draw$pass + found$passes + 1, control)
  passed <- pass_over(rows, draws_over, args, show, known = found$facts)
  every <- function(name) lapply(passed$parts, `[[`, name)
  out <- even_drawn(every("drawn"), unlist(every("rate")), draw)
  c(out, list(
    total = Reduce(`+`, every("total")),
    sums = Reduce(add_sums, every("sums")),
    facts = passed$facts
  ))
}

# first: rows that count in the shards before, since draws go by the number of a
# row among all of them.
draws_over <- function(rows, args, first) {
  total <- NULL
  psi <- 0
  columns <- new_column_facts()
  draw <- args$draw
  pile <- new_drawn(draw, rows$n_row)
  before <- first
  add <- function(chunk, n, first) {
    draw$first <- before + first
    draw$rate <- pile$rate()
    part <- with_chunk_model(chunk, n, rows, function(model) {
      chunk_draw(model, args$theta, args$chol, args$cores, draw)
    })
    total <<- add_sums(total, part)
    psi <<- psi + part$total
    columns$add(chunk, n)
    at <- part$rows
    if (length(at) > 0) {
      pile$add(list(
        x = chunk$x[at, , drop = FALSE],
        y = select_rows(chunk$y, at),
        weights = chunk$weights[at],
        offset = chunk$offset[at],
        count = part$count,
        psi = part$psi,
        number = draw$first + at
      ))
    }
  }
  end <- function(seen) {
    c(seen, list(
      drawn = pile$all(),
      rate = pile$rate(),
      total = psi,
      sums = total,
      columns = columns$total()
    ))
  }
  list(add = add, end = end)
}

# Rows that are drawn, chunk after chunk. Where they become twice as many as a
# pass is to draw, as a pilot may not have met rows that are drawn often, half
# of the draws are given up, and from there on rows are drawn at half the
# rate.
new_drawn <- function(draw, n_row) {
  parts <- list()
  n <- 0
  rate <- draw$rate
  list(
    add = function(part) {
      parts[[length(parts) + 1]] <<- part
      n <<- n + length(part$count)
      if (n > 2 * most_ahead(n_row)) {
        rate <<- rate / 2
        parts <<- lapply(parts, halve_drawn, draw, rate)
        n <<- sum(vapply(parts, function(part) length(part$count), 0L))
      }
    },
    rate = function() rate,
    all = function() join_drawn(parts)
  )
}

# Each draw of a row stays by the toss of a coin; rows that are looked at always
# (count 0) stay. rate: the one that is left, by which no toss is made twice.
halve_drawn <- function(part, draw, rate) {
  if (length(part$count) == 0) {
    return(part)
  }
  halvings <- round(log2(draw$rate / rate))
  own <- (draw$pass * 16 + halvings) * 2^36
  u <- vapply(part$number, function(number) {
    hash_uniforms(draw$seed, "halve", own + number, 1)
  }, 0)
  count <- stats::qbinom(u, part$count, 0.5)
  keep <- part$count == 0 | count > 0
  out <- lapply(part[names(part) != "x"], `[`, keep)
  out$count <- count[keep]
  out$x <- part$x[keep, , drop = FALSE]
  out
}

# The draws of all shards at the rate of the one that gave up most.
even_drawn <- function(parts, rates, draw) {
  least <- min(rates)
  parts <- Map(function(part, rate) {
    while (rate > 1.5 * least) {
      rate <- rate / 2
      part <- halve_drawn(part, draw, rate)
    }
    part
  }, parts, rates)
  c(join_drawn(parts), list(rate = least))
}

join_drawn <- function(parts) {
  every <- function(name) join_values(lapply(parts, `[[`, name))
  list(
    x = do.call(rbind, lapply(parts, `[[`, "x")),
    y = every("y"),
    weights = every("weights"),
    offset = every("offset"),
    count = every("count"),
    psi = every("psi"),
    number = every("number"),
    batch = every("batch")
  )
}
