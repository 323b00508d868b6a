# Other settings of the package (R/util-settings.R) until the frame ends:
#   local_settings(block_rows = 7, look = list(rows = 500))
local_settings <- function(..., .frame = parent.frame()) {
  before <- put_settings(list(...))
  withr::defer(put_settings(before), envir = .frame)
  invisible(before)
}

# Slices of so many steps.
local_slices <- function(n_step, frame = parent.frame()) {
  local_settings(slice_steps = function(...) n_step, .frame = frame)
}
