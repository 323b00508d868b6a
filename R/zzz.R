# Collated last, when the functions are there.

# What fails on a fit that was altered says so.
local({
  space <- topenv()
  others <- c(
    "average_comparisons",
    "average_predictions",
    "average_slopes",
    "bias_check",
    "calibration_curve",
    "fssd",
    "ksd",
    "mad_of_fit",
    "mixing",
    "noise_tolerance",
    "perplexity",
    "ph_check",
    "robust_draws",
    "roc_curve",
    "sd_of_fit",
    "sg_resume",
    "smooth_table",
    "shrinkage",
    "tall_append",
    "tall_retract",
    "top_terms",
    "topic_terms",
    "var_of_fit",
    "zero_variance"
  )
  for (name in guarded_functions(space, others)) {
    assign(name, guard(space[[name]]), envir = space)
  }
})

# What has to be told to packages that may be loaded later, or never.
.onLoad <- function(libname, pkgname) {
  # R CMD check would look for them at the functions of stats that have their
  # names
  for (name in names(late_methods)) {
    method <- get(late_methods[[name]], topenv())
    registerS3method(name, "tall_fit", method, asNamespace("posterior"))
  }
  when_loaded("parsnip", register_parsnip)
  when_loaded("marginaleffects", tell_marginaleffects)
}

when_loaded <- function(package, f) {
  if (isNamespaceLoaded(package)) {
    f()
  }
  setHook(packageEvent(package, "onLoad"), f)
}
