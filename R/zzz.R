# Collated last, when the functions are there.

# What fails on a fit that was altered says so.
local({
  space <- topenv()
  others <- c(
    "bias_check",
    "fssd",
    "ksd",
    "mixing",
    "noise_tolerance",
    "sg_resume",
    "top_terms",
    "topic_terms",
    "zero_variance"
  )
  for (name in guarded_functions(space, others)) {
    assign(name, guard(space[[name]]), envir = space)
  }
})

# What has to be told to packages that may be loaded later, or never.
.onLoad <- function(libname, pkgname) {
  when_loaded("parsnip", register_parsnip)
  when_loaded("marginaleffects", tell_marginaleffects)
}

when_loaded <- function(package, f) {
  if (isNamespaceLoaded(package)) {
    f()
  }
  setHook(packageEvent(package, "onLoad"), f)
}
