# The record of the package's settings.

test_that("settings are put, and put back", {
  usual <- lapply(rlang::set_names(names(usual_settings)), setting)
  expect_identical(usual, usual_settings)
  local({
    escape <- function(d) 7
    local_settings(
      block_rows = 7L,
      memory = 1e6,
      look = list(rows = 100),
      recipe = list(escape = escape, radii = c(1, 2, 5))
    )
    expect_identical(setting("block_rows"), 7L)
    expect_identical(free_memory(), 1e6)
    expect_identical(
      setting("look"),
      utils::modifyList(usual$look, list(rows = 100))
    )
    expect_identical(setting("recipe")$escape, escape)
    # others, and the same once more
    local({
      local_settings(recipe = list(steps = 3, radii = 4:6), memory = NA_real_)
      expect_identical(setting("recipe")$escape, escape)
      expect_identical(setting("recipe")$radii, 4:6)
      expect_identical(setting("recipe")$steps, 3)
    })
    expect_identical(setting("recipe")$radii, c(1, 2, 5))
    expect_identical(setting("memory"), 1e6)
  })
  now <- lapply(rlang::set_names(names(usual_settings)), setting)
  expect_identical(now, usual)
})

test_that("an error puts settings back, too", {
  try(
    local({
      local_settings(block_rows = 7)
      stop("no")
    }),
    silent = TRUE
  )
  expect_identical(setting("block_rows"), usual_settings$block_rows)
})

test_that("what is no setting is refused, and nothing is changed", {
  expect_error(setting("blok_rows"))
  bad <- list(
    list(blok_rows = 7),
    list(7),
    list(block_rows = "7"),
    list(block_rows = c(7, 8)),
    list(block_rows = NA_real_),
    list(block_rows = NULL),
    list(slice_steps = 7),
    list(look = 7),
    list(look = list(row = 7)),
    list(recipe = list(radii = 1)),
    list(recipe = list(escape = 0.1)),
    list(block_rows = 7, sql_width = "7")
  )
  for (values in bad) {
    expect_error(put_settings(values), class = "tall_error_input")
  }
  error <- expect_error(put_settings(list(recipe = list(steps = TRUE))))
  expect_identical(error$argument, "recipe$steps")
  expect_match(conditionMessage(error), "must be a number, not", fixed = TRUE)
  now <- lapply(rlang::set_names(names(usual_settings)), setting)
  expect_identical(now, usual_settings)
})

test_that("slices grow at most fourfold, and shrink at once", {
  next_slice <- setting("slice_steps")
  expect_identical(next_slice(10, 0), 40)
  expect_identical(next_slice(10, 0.3), 5)
  expect_identical(next_slice(1, 60), 1)
})
