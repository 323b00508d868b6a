# What an entry of the responses is made by: R/response.R has all of them.

# An entry. Required:
#   name        (string) What users write as `family` or `likelihood`.
#   table       (string) Name of the tables in src/responses/.
#   links       (named numbers) Its links, the usual one first: how large a
#               linear predictor is where the mean is at its limit for all that
#               doubles tell (1e-13). Beyond, with a flat prior, the likelihood
#               may rise without end.
#   must        (string) What each response must, "be 0 or 1".
#   draw        (function) `draw(mu, aux, rows)`: random responses in the shape
#               of mu, draws x rows (x classes: without these). aux: a value for
#               each draw, or NULL. rows: list(weight, trials), NULL: 1 each.
# Optional:
#   quantile    (function or NULL) `quantile(p, mu, aux)`, of times to an event:
#               p, mu and aux as of `draw`, mu being e^eta.
#   log_density, restricted_mean (functions or NULL) `(eta, y, weight, aux)` and
#               `(eta, time, aux)`, draws x rows, of times whose law has more
#               parameters than a table takes. NULL: the core's, and an integral
#               of it.
#   wrong       (function or NULL) `wrong(y)`, of responses of several columns:
#               what a row that it cannot have must, in words as `must`.
#   shows       (function) `shows(y)`: which of two kinds of outcome each row
#               has, of which a pilot has some; by default above 0 or not.
#   instead     (string or NULL) What to ask for instead of expected responses,
#               where the table has others: such fits have none.
#   is_inner    (TRUE or FALSE) Is it of a front end, and no user's `family`?
#   size        (number) Trials of each row, where these are known beforehand.
#   family      (function or NULL) `family(link)`: its object of class family.
#   aliases     (strings) What other packages call it.
#   advice      (string or NULL) What to do with values that it must not have.
#   aux_priors  (list) By name shape and rate of the gamma prior of an auxiliary
#               parameter but the first, where none is given.
#   aux_start   (numbers) By name where searches for one begin, natural;
#               otherwise 1, or what the units of the response are.
#   has_units   (TRUE or FALSE) Are responses measured in units that the
#               predictor and the auxiliary parameter share? Priors then follow
#               the standard deviation of the responses, networks standardise.
#   is_quadratic (TRUE or FALSE) Is the log density quadratic in the predictor,
#               the auxiliary parameter given?
#   is_concave  (TRUE, FALSE or function) Is it concave there? `is_concave(y)`
#               where that hangs on the rows.
#   has_trials  (TRUE or FALSE) May rows be several trials, as
#               cbind(successes, failures) or a factor of two levels?
#   takes_proportions (TRUE or FALSE) May they be proportions, with the trials
#               as weights?
#   separation  (string or NULL) What columns do that let the likelihood rise
#               without end; NULL: it cannot.
#   skewness    (string) What makes a posterior skewed; %s stands for "this
#               column".
#   network     (list or NULL) From response_of_networks(); NULL: networks do
#               not have it.
#   sql         (list) By link what databases compute, from response_in_sql(),
#               or a function of known auxiliary parameters that gives that; a
#               link without: rows are brought to R.
response_entry <- function(
  name,
  table,
  links,
  must,
  draw,
  quantile = NULL,
  log_density = NULL,
  restricted_mean = NULL,
  wrong = NULL,
  shows = function(y) y > 0,
  instead = NULL,
  is_inner = FALSE,
  size = 0,
  family = NULL,
  aliases = character(),
  advice = NULL,
  aux_priors = list(),
  aux_start = numeric(),
  has_units = FALSE,
  is_quadratic = FALSE,
  is_concave = TRUE,
  has_trials = FALSE,
  takes_proportions = FALSE,
  separation = NULL,
  skewness = paste(
    "an outcome that (almost) never occurs with %s does that, or a few values",
    "that are huge"
  ),
  network = NULL,
  sql = list()
) {
  stopifnot(
    is.character(name),
    is.character(table),
    is.numeric(links),
    !is.null(names(links)),
    is.character(must),
    identical(names(formals(draw)), c("mu", "aux", "rows"))
  )
  out <- list(
    name = name,
    table = table,
    links = links,
    must = must,
    draw = draw,
    quantile = quantile,
    log_density = log_density,
    restricted_mean = restricted_mean,
    wrong = wrong,
    shows = shows,
    instead = instead,
    is_inner = is_inner,
    size = size,
    family = family,
    aliases = aliases,
    advice = advice,
    aux_priors = aux_priors,
    aux_start = aux_start,
    has_units = has_units,
    is_quadratic = is_quadratic,
    is_concave = is_concave,
    has_trials = has_trials,
    takes_proportions = takes_proportions,
    separation = separation,
    skewness = skewness,
    network = network,
    sql = sql
  )
  structure(out, class = "tall_response")
}

# What networks ask of an entry. Required:
#   suits       (function) `suits(y)`: does tall_nn() take it for y?
#   read        (function) `read(y, arg)`: list(values, levels, n_out),
#               what the core reads, names of levels, outputs of the network.
#   error       (function) `error(mean, y)`: how wrong means are.
#   error_words (string) What that is.
# Optional:
#   quantiles   (function or NULL) `quantiles(mu, aux, weights, p)`: of the
#               responses of each column of mu, draws x rows. NULL: intervals
#               are those of the mean.
#   cdf         (function or NULL) `cdf(y, mu, aux)`, likewise.
response_of_networks <- function(
  suits,
  read,
  error,
  error_words,
  quantiles = NULL,
  cdf = NULL
) {
  list(
    suits = suits,
    read = read,
    error = error,
    error_words = error_words,
    quantiles = quantiles,
    cdf = cdf
  )
}
