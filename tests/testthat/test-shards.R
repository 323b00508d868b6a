# Shards: passed over one by one, here or by workers, with the same result.

shard_rows <- withr::with_seed(1, {
  n <- 30000
  d <- data.frame(x = rnorm(n), z = rnorm(n), w = 1 + (seq_len(n) %% 3) / 2)
  d$g <- sample(c("b", "a"), n, TRUE)
  d$g[29000:29060] <- "rare" # in the last shard alone
  d$count <- rpois(n, exp(0.2 + 0.3 * d$x + 0.2 * (d$g == "b")))
  d$y <- as.double(runif(n) < plogis(-1 + 0.5 * d$x - 0.3 * d$z))
  d$x[c(5, 25000)] <- NA
  d
})

# An empty one among them.
in_shards <- function(rows = shard_rows) {
  lapply(list(1:7000, 7001:20000, integer(), 20001:nrow(rows)), function(at) {
    rows[at, , drop = FALSE]
  })
}

# Streams of data frames in blocks; each(block, shard) is called on each block
# where it is read.
open_shards <- function(frames, each = function(block, shard) NULL) {
  lapply(seq_along(frames), function(shard) {
    frame <- frames[[shard]]
    force(each)
    function() {
      at <- 0
      function() {
        if (at < nrow(frame)) {
          block <- frame[at + seq_len(min(3000, nrow(frame) - at)), ]
          at <<- at + nrow(block)
          each(block, shard)
          block
        }
      }
    }
  })
}

local_pilot <- function(rows = 2000, env = parent.frame()) {
  local_settings(look = list(rows = rows), .frame = env)
}

shard_fit <- function(
  data,
  formula = y ~ splines::ns(x, 3) + z + g,
  family = "bernoulli",
  weights = NULL
) {
  # `weights` is an expression
  eval(bquote(tall_glm(
    formula,
    data = data,
    family = family,
    weights = .(weights),
    chains = 2,
    iter = 200,
    seed = 3,
    refresh = 0
  )))
}

expect_same_fit <- function(a, b) {
  expect_identical(unclass(a$draws), unclass(b$draws))
  expect_identical(a$passed$found, b$passed$found)
  expect_identical(coef(a), coef(b))
}

test_that("shards are the rows of one data frame", {
  local_pilot()
  whole <- shard_fit(as_source(shard_rows))
  parts <- shard_fit(in_shards())
  expect_false(is.null(whole$passed))
  expect_identical(parts$rows$facts$shards, c(6999, 13000, 0, 9999))
  expect_identical(parts$n_missing, whole$n_missing)
  expect_equal(
    parts$passed$found$theta,
    whole$passed$found$theta,
    tolerance = 1e-8
  )
  # chains that used other rows would not be near each other
  expect_equal(unclass(parts$draws), unclass(whole$draws), tolerance = 1e-8)
  # a shard in shards, and a list of one
  nested <- in_shards()
  nested <- list(nested[1:2], nested[3:4])
  expect_same_fit(shard_fit(nested), parts)
  expect_same_fit(shard_fit(list(shard_rows)), whole)
})

test_that("rows are drawn by their numbers among all", {
  local_pilot()
  fit_of <- function(data) {
    shard_fit(data, count ~ x + z, "poisson", weights = quote(w))
  }
  fits <- lapply(list(as_source(shard_rows), in_shards()), fit_of)
  found <- fits[[1]]$passed$found
  draw <- list(radius = 9, phi_bar = 50, rate = 1000 / found$psi, scale = 1,
    seed = 1, pass = 1, first = 0)
  drawn <- lapply(fits, function(fit) {
    found$facts <- fit$rows$facts # where a shard begins
    take_rows_ahead(fit$rows, found, draw, list(refresh = 0, cores = 1))
  })
  whole <- drawn[[1]]
  parts <- drawn[[2]]
  expect_gt(length(whole$y), 100)
  expect_identical(parts$x, whole$x)
  expect_identical(parts$y, whole$y)
  expect_identical(parts$weights, whole$weights)
  expect_identical(parts$count, whole$count)
  expect_equal(parts$total, whole$total, tolerance = 1e-10)
})

test_that("workers find what is found here", {
  local_pilot()
  path <- withr::local_tempfile()
  here <- Sys.getpid()
  streams <- open_shards(in_shards(), function(block, shard) {
    if (Sys.getpid() != here) cat(shard, "\n", file = path, append = TRUE)
  })
  scale <- 2 # the formula's environment has it, and the rows
  rows <- shard_rows
  formula <- y ~ splines::ns(x, 3) + I(z / scale) + g
  by_sums <- count ~ x + g + offset(z / scale)
  alone <- shard_fit(streams, formula)
  sums <- shard_fit(streams, by_sums, "gaussian", weights = quote(w))
  expect_false(file.exists(path))
  local_workers()
  expect_same_fit(shard_fit(streams, formula), alone)
  expect_identical(sort(unique(readLines(path))), c("1 ", "2 ", "4 "))
  more <- shard_fit(streams, by_sums, "gaussian", weights = quote(w))
  expect_same_fit(more, sums)
  expect_identical(more$rows$products, sums$rows$products)
  # and a run that goes on passes over them again
  expect_identical(
    unclass(sg_resume(alone, iter = 100, refresh = 0)$draws),
    unclass({
      future::plan("sequential")
      sg_resume(alone, iter = 100, refresh = 0)$draws
    })
  )
})

test_that("streams that workers open may simulate their rows", {
  local_pilot()
  streams <- open_shards(in_shards(), function(block, shard) {
    set.seed(shard) # else future warns that random numbers were used
  })
  local_workers()
  expect_no_warning(fit <- shard_fit(streams, count ~ x, "gaussian"))
  plain <- shard_fit(open_shards(in_shards()), count ~ x, "gaussian")
  expect_identical(fit$draws, plain$draws)
})

test_that("sums of a Gaussian response are those of one data frame", {
  local_pilot()
  formula <- count ~ x + g + offset(z / 2)
  of <- function(data) shard_fit(data, formula, "gaussian", quote(w))
  whole <- of(as_source(shard_rows))
  parts <- of(in_shards())
  expect_false(is.null(whole$rows$products))
  expect_equal(
    parts$rows$products,
    whole$rows$products,
    tolerance = 1e-10
  )
  expect_equal(unclass(parts$draws), unclass(whole$draws), tolerance = 1e-8)
})

test_that("rows are not sent to workers", {
  rows <- shard_rows
  shift <- function(x) x + away
  away <- 1
  request <- new_request(
    y ~ shift(x) + z,
    names(rows),
    resolve_family("bernoulli"),
    list(weights = quote(w * away))
  )
  env <- slim_env(request)
  expect_setequal(ls(env), c("shift", "away"))
  # a function brings its own environment, and where it was written
  environment(shift) <- list2env(list(away = 1), parent = baseenv())
  shift <- rlang::zap_srcref(shift)
  packed <- pack_args(list(request = request))
  expect_lt(length(serialize(packed, NULL)), 50000)
  expect_gt(length(serialize(request, NULL)), 1e6)

  expect_true(can_travel(as_source(open_shards(in_shards()))$shards[[1]]))
  expect_false(can_travel(as_source(rows)))
  con <- textConnection("")
  withr::defer(close(con))
  expect_false(can_travel(tall_stream(function() con)))
})

test_that("streams that cannot be sent are read here, and this is told", {
  local_workers()
  local_pilot()
  con <- textConnection("")
  withr::defer(close(con))
  streams <- open_shards(in_shards(), function(block, shard) con)
  expect_message(
    fit <- shard_fit(streams, y ~ x + z),
    "shard 1",
    class = "tall_message_cores"
  )
  expect_same_fit(fit, shard_fit(open_shards(in_shards()), y ~ x + z))
  expect_no_message(shard_fit(in_shards(), y ~ x + z))
})

test_that("a shard that fails is told by its number", {
  local_pilot()
  fails <- open_shards(in_shards(), function(block, shard) {
    if (shard == 2) stop("no more paper")
  })
  other <- in_shards()
  other[[4]]$z <- as.character(other[[4]]$z)
  minus <- in_shards()
  minus[[2]]$y[[7]] <- -1
  dies <- open_shards(in_shards(), function(block, shard) {
    if (shard == 4) tools::pskill(Sys.getpid(), tools::SIGKILL)
  })
  for (workers in c(FALSE, TRUE)) {
    if (workers) local_workers("multisession")
    error <- expect_error(shard_fit(fails), class = "tall_error_source")
    expect_identical(error$shard, 2L)
    expect_match(conditionMessage(error), "shard 2 of 4")
    expect_match(conditionMessage(error$parent), "no more paper")
    error <- expect_error(
      shard_fit(open_shards(other)),
      class = "tall_error_source"
    )
    expect_identical(error$shard, 4L)
    error <- expect_error(
      shard_fit(open_shards(minus)),
      class = "tall_error_input"
    )
    expect_identical(error$shard, 2L)
    expect_match(conditionMessage(error), "row 7")
  }
  error <- expect_error(shard_fit(dies), class = "tall_error_worker")
  expect_identical(error$shard, 4L)
})

test_that("an interrupt stops all workers", {
  local_pilot()
  local_workers("multisession")
  path <- withr::local_tempfile()
  streams <- open_shards(in_shards(), function(block, shard) {
    if (shard == 1) rlang::interrupt() # what Ctrl-C does
    cat(shard, "\n", file = path, append = TRUE)
    Sys.sleep(0.5)
  })
  stopped <- tryCatch(shard_fit(streams), interrupt = function(e) "stopped")
  expect_identical(stopped, "stopped")
  if (file.exists(path)) expect_lt(length(readLines(path)), 5)
  expect_true(is.list(shard_fit(open_shards(in_shards()), y ~ x + z)))
})

test_that("looks at shards, merged, are a look at all rows", {
  local_pilot(500)
  rows <- shard_rows
  rows$f <- factor(rows$g)
  rows$out <- factor(rows$y > 0, labels = c("no", "yes"))
  request <- new_request(
    out ~ splines::ns(x, 3) + f,
    names(rows),
    resolve_family("bernoulli")
  )
  look_at <- function(x) look(rows_of_source(as_source(x), request))
  whole <- look_at(rows)
  expect_identical(look_at(in_shards(rows)), whole)
  # levels in an order of their own, which no shard shares with the others
  parts <- lapply(in_shards(rows), function(part) {
    part$f <- factor(part$g, rev(unique(part$g)))
    part
  })
  mixed <- look_at(parts)
  expect_identical(mixed[-(1:4)][-1], whole[-(1:4)][-1])
  expect_identical(mixed$rows, whole$rows)
  expect_identical(mixed$weights, whole$weights)
  expect_identical(levels(mixed$frame$f), c("a", "b", "rare"))
  # streams, whose lengths nobody knows, have rows of other numbers
  streams <- look_at(open_shards(in_shards(rows)))
  expect_identical(streams$n_row, whole$n_row)
  expect_setequal(unique(floor(streams$rows / 2^36)), c(0, 1, 3))
  expect_equal(sum(streams$weights), 29998, tolerance = 0.1)
})
