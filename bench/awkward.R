# Posteriors that are far from normal in a few directions: is the default right
# there, and what does it cost beside glm()? See README.md.
#
#   Rscript bench/awkward.R [seeds] [otherwise] [case ...]
#
# Cases: awkward-cases.R. Truth: results/references-awkward.csv, made by
# references-awkward.R without the package. Each case is fitted with the default
# draws once for each seed, all as a user calls it. otherwise: each also, with the
# first seed alone, as it would run if no rows were known as they are.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "one-core.R"))
source(file.path(dirname(script), "awkward-cases.R"))

arguments <- commandArgs(TRUE)
n_seed <- if (length(arguments) > 0) as.integer(arguments[[1]]) else 5
wanted <- setdiff(arguments[-1], "otherwise")
if (length(wanted) == 0) wanted <- names(awkward_cases)
bench_start(
  paste(c("awkward", arguments[-1]), collapse = "-"),
  "Posteriors far from normal in a few directions",
  paste("awkward.R", paste(arguments, collapse = " "))
)
truth <- read.csv(
  file.path(bench_folder(), "results", "references-awkward.csv"),
  check.names = FALSE
)

fit_case <- function(case, seed) {
  arguments <- list(case$formula, case$data, binomial(), seed = seed)
  if (!is.null(case$shrink)) {
    arguments$prior <- do.call(prior_hs, case$shrink)
  }
  if (!is.null(case$prior)) {
    arguments$prior <- case$prior
  }
  suppressWarnings(do.call(tall_glm, arguments))
}

# Draws of a reference's parameters, "log x" of parameter x.
draws_of <- function(fit, parameters) {
  draws <- posterior::as_draws_array(fit$draws)
  is_log <- startsWith(parameters, "log ")
  plain <- sub("^log ", "", parameters)
  draws <- posterior::subset_draws(draws, variable = plain)
  draws[, , is_log] <- log(draws[, , is_log])
  draws
}

# Of one fit, the worst of its parameters: off by that many standard deviations, by
# that share of one, each also over its standard error; R-hat and ESS.
worst_of <- function(fit, reference) {
  all <- posterior::summarise_draws(fit$draws, "rhat", "ess_bulk", "ess_tail")
  out <- list(
    rhat = max(all$rhat),
    bulk = min(all$ess_bulk),
    tail = min(all$ess_tail)
  )
  if (nrow(reference) == 0) {
    return(out)
  }
  found <- posterior::summarise_draws(
    draws_of(fit, reference$parameter), "mean", "sd", "mcse_mean", "mcse_sd"
  )
  mean <- (found$mean - reference$mean) / reference$sd
  sd <- found$sd / reference$sd - 1
  z_mean <- mean / sqrt((found$mcse_mean / reference$sd)^2 + reference$error_mean^2)
  z_sd <- sd / sqrt((found$mcse_sd / reference$sd)^2 + reference$error_sd^2)
  k <- which.max(abs(mean))
  c(out, list(
    mean = mean[[k]],
    sd = sd[[which.max(abs(sd))]],
    z = max(abs(z_mean), abs(z_sd)),
    of = reference$parameter[[k]],
    means = mean,
    sds = sd
  ))
}

put_settings <- utils::getFromNamespace("put_settings", "tallbayes")

row_of_case <- function(name, is_otherwise = FALSE) {
  case <- awkward_cases[[name]]()
  if (!is.null(case$shrink) && !exists("prior_hs", mode = "function")) {
    say("- ", name, ": skipped, the package has no prior_hs()")
    return(NULL)
  }
  reference <- truth[truth$case == name, ]
  glm_seconds <- cpu_seconds(suppressWarnings(
    glm(case$formula, binomial(), case$data, model = FALSE, y = FALSE)
  ))
  if (is_otherwise) {
    before <- put_settings(list(recipe = list(awkward_dim = 0)))
    on.exit(put_settings(before))
  }
  fits <- lapply(seq_len(if (is_otherwise) 1 else n_seed), function(seed) {
    seconds <- cpu_seconds(fit <- fit_case(case, seed))
    c(worst_of(fit, reference), list(
      seconds = seconds,
      kernel = fit$kernel$name,
      d = dim(fit$draws)[[3]]
    ))
  })
  of <- function(what) vapply(fits, function(f) f[[what]], 0)
  known <- nrow(reference) > 0
  # what all seeds have in common is no chance
  common <- function(what) {
    max(abs(rowMeans(do.call(cbind, lapply(fits, function(f) f[[what]])))))
  }
  seconds <- stats::median(of("seconds"))
  data.frame(
    case = if (is_otherwise) paste0(name, ", otherwise") else name,
    rows = format(nrow(case$data), big.mark = ","),
    d = fits[[1]]$d,
    kernel = paste(unique(vapply(fits, function(f) f$kernel, "")), collapse = ", "),
    `mean, worst` = if (known) fixed(max(abs(of("mean"))), 3) else "-",
    `all seeds` = if (known) fixed(common("means"), 3) else "-",
    `sd, worst` = if (known) percent(max(abs(of("sd")))) else "-",
    `all seeds ` = if (known) percent(common("sds")) else "-",
    `worst z` = if (known) fixed(max(of("z")), 1) else "-",
    `R-hat` = fixed(max(of("rhat")), 3),
    `ESS bulk` = fixed(min(of("bulk")), 0),
    tail = fixed(min(of("tail")), 0),
    `CPU s` = fixed(seconds, 1),
    `/ glm()` = times(seconds / glm_seconds),
    `ESS / s` = fixed(stats::median(of("bulk") / of("seconds")), 0),
    check.names = FALSE
  )
}

ways <- c(FALSE, if ("otherwise" %in% arguments) TRUE)
rows <- unlist(lapply(wanted, function(name) lapply(ways, row_of_case, name = name)), FALSE)
rows <- do.call(rbind, Filter(Negate(is.null), rows))
if (!is.null(rows)) say_table(rows)
say(
  "Means are off by that many posterior standard deviations, standard deviations\n",
  "by that share, in the worst coefficient of the worst of ", n_seed, " seeds; beside\n",
  "that of the average over seeds. z: over the standard error, the reference's\n",
  "included. R-hat is the largest, ESS the least. Seconds: the median."
)
