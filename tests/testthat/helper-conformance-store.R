# What make() returns, with the rows of its models in such a store.
made_in <- function(type, read_only, make) {
  real_model <- new_model
  local_fault("new_model", function(..., store) {
    real_model(..., store = list(type = type, read_only = read_only))
  })
  make()
}
