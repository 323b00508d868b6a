# A year of flights with some 200 columns: curves of hour, day, temperature and wind,
# beside factors of carrier, destination and month. CPU seconds, effective draws.
#
#   Rscript bench/gam-flights.R [seeds]
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
source(file.path(dirname(script), "common.R"))
stopifnot(
  requireNamespace("mgcv", quietly = TRUE),
  requireNamespace("nycflights13", quietly = TRUE)
)

arguments <- as.integer(commandArgs(TRUE))
n_seed <- if (length(arguments) > 0) arguments[[1]] else 1

weather <- nycflights13::weather[c("origin", "time_hour", "temp", "wind_speed")]
flights <- merge(nycflights13::flights, weather, by = c("origin", "time_hour"))
flights <- na.omit(with(flights, data.frame(
  late = as.integer(arr_delay > 15),
  hour,
  day = as.POSIXlt(ISOdate(year, month, day))$yday + 1,
  temp,
  wind = wind_speed,
  carrier,
  dest,
  month = factor(month)
)))
formula <- late ~ s(hour, k = 15) + s(day, k = 30) + s(temp, k = 15) +
  s(wind, k = 15) + carrier + dest + month

bench_start("gam-flights", "Smooth terms of all flights, with destinations")
say("`", paste(deparse(formula, 200), collapse = ""), "`, ", nrow(flights), " rows.\n")
rows <- lapply(seq_len(n_seed), function(seed) {
  before <- proc.time()
  fit <- suppressWarnings(tall_gam(formula, flights, binomial(), seed = seed))
  used <- sum((proc.time() - before)[1:2])
  found <- posterior::summarise_draws(fit, "rhat", "ess_bulk")
  data.frame(
    seed,
    coordinates = dim(fit$unconstrained)[[3]],
    `CPU s` = format(used, digits = 3),
    `R-hat` = sprintf("%.3f", max(found$rhat)),
    `least ESS` = round(as.double(min(found$ess_bulk))),
    acceptance = format(mean(fit$chains$acceptance), digits = 2),
    `rows a step` = round(mean(fit$chains$rows_thinned)),
    check.names = FALSE
  )
})
say_table(do.call(rbind, rows))
