# Functions of R that RTMB has versions of, or that are told from its own.

mask_mark <- "..tallbayes_tape.."

# A copy of a function, and of the functions of the same author that it calls,
# which finds RTMB's versions where it would find those of R itself. RTMB need
# not be attached, and nothing outside of the copy changes. done: pairs of
# functions and their copies, since functions may call each other.
mask_function <- function(f, overloads = tape_overloads(), done = new.env()) {
  if (is.primitive(f)) {
    return(f)
  }
  home <- environment(f)
  mask <- new.env(parent = home)
  assign(mask_mark, TRUE, envir = mask)
  masked <- f
  environment(masked) <- mask
  done$pairs <- c(done$pairs, list(list(f, masked)))
  for (name in names_in(f)) {
    found <- get0(name, envir = home, mode = "function")
    if (is.null(found)) {
      next
    }
    if (is_of_r(found)) {
      if (!is.null(overloads[[name]])) {
        assign(name, overloads[[name]], envir = mask)
      }
    } else if (identical(topenv(environment(found)), topenv(home))) {
      seen <- Find(function(pair) identical(pair[[1]], found), done$pairs)
      copy <- seen[[2]] %||% mask_function(found, overloads, done)
      assign(name, copy, envir = mask)
    }
  }
  masked
}

# Of everything that its code and its defaults mention.
names_in <- function(f) {
  is_given <- function(x) !rlang::is_missing(x)
  code <- c(list(body(f)), Filter(is_given, as.list(formals(f))))
  unique(unlist(lapply(code, all.names)))
}

r_packages <- c("base", "stats", "methods", "utils")

is_of_r <- function(f) {
  is.primitive(f) || environmentName(topenv(environment(f))) %in% r_packages
}

# By name; `::` gives them for stats::dnorm().
tape_overloads <- function() {
  names <- getNamespaceExports("RTMB")
  names <- intersect(
    names,
    unlist(lapply(r_packages, function(package) ls(asNamespace(package))))
  )
  overloads <- mget(names, envir = asNamespace("RTMB"), inherits = TRUE)
  # which RTMB looks up while it records
  for (name in c("c", "[<-", "diag<-")) {
    overloads[[name]] <- late_overload(name)
  }
  overloads[names(own_overloads)] <- own_overloads
  overloads[["::"]] <- function(pkg, name) {
    package <- as.character(substitute(pkg))
    name <- as.character(substitute(name))
    own <- if (package %in% r_packages) overloads[[name]]
    own %||% getExportedValue(package, name)
  }
  overloads
}

late_overload <- function(name) {
  force(name)
  function(...) RTMB::ADoverload(name)(...)
}

is_taped <- function(x) inherits(x, "advector")

tape_outer <- function(X, Y, FUN = "*", ...) {
  if (!is_taped(X) && !is_taped(Y)) {
    return(base::outer(X, Y, FUN, ...))
  }
  n <- c(length(X), length(Y))
  value <- match.fun(FUN)(rep(X, times = n[[2]]), rep(Y, each = n[[1]]), ...)
  dim(value) <- n
  value
}

tape_plogis <- function(
  q,
  location = 0,
  scale = 1,
  lower.tail = TRUE,
  log.p = FALSE
) {
  if (!is_taped(q) && !is_taped(location) && !is_taped(scale)) {
    return(stats::plogis(q, location, scale, lower.tail, log.p))
  }
  z <- (q - location) / scale
  if (!lower.tail) {
    z <- -z
  }
  if (log.p) {
    # without overflow on either side
    (z - abs(z)) / 2 - log1p(exp(-abs(z)))
  } else {
    1 / (1 + exp(-z))
  }
}

tape_dnbinom <- function(x, size, prob, mu, log = FALSE) {
  if (missing(mu)) {
    return(RTMB::dnbinom(x, size, prob, log = log))
  }
  if (!missing(prob)) {
    stop("'prob' and 'mu' both specified")
  }
  if (!is_taped(x) && !is_taped(size) && !is_taped(mu)) {
    return(stats::dnbinom(x, size, mu = mu, log = log))
  }
  # the variance less the mean is mu^2 / size
  log_mu <- base::log(mu)
  RTMB::dnbinom_robust(x, log_mu, 2 * log_mu - base::log(size), log = log)
}

# What RTMB has not, not with all arguments, or only element by element.
own_overloads <- list(
  dnbinom = tape_dnbinom,
  outer = tape_outer,
  plogis = tape_plogis,
  "^" = function(e1, e2) {
    if (is_taped(e1) && identical(e2, 2)) e1 * e1 else base::`^`(e1, e2)
  },
  unlist = function(x, recursive = TRUE, use.names = TRUE) {
    if (is.list(x) && any(vapply(x, is_taped, NA))) {
      return(do.call(late_overload("c"), unname(x)))
    }
    base::unlist(x, recursive, use.names)
  },
  vapply = function(X, FUN, FUN.VALUE, ..., USE.NAMES = TRUE) {
    RTMB::sapply(X, FUN, ..., USE.NAMES = USE.NAMES)
  },
  log = function(x, base = exp(1)) {
    if (missing(base)) base::log(x) else base::log(x) / base::log(base)
  },
  log2 = function(x) base::log(x) / base::log(2),
  log10 = function(x) base::log(x) / base::log(10),
  lchoose = function(n, k) {
    if (!is_taped(n) && !is_taped(k)) {
      return(base::lchoose(n, k))
    }
    lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
  }
)
