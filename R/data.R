# Data sets of the papers. A new one is an entry in `data_sets`, no more.

#' Data sets of the papers
#'
#' Reads one of the data sets on which the methods of this package were
#' published. They are too large for the package, so the file is looked for in
#' the folder named by the environment variable `TALLBAYES_DATA` and then in
#' `tools::R_user_dir("tallbayes", "cache")`; if it is in neither, the error
#' says which file to put where. What was read is compared with a checksum of
#' the parsed content.
#'
#' @param name (string) The data set:
#'   * `"sepsis"`: 110,204 hospital admissions with sepsis; age, sex, number of
#'     the episode, and whether the patient left alive. File `sepsis.csv.xz`.
#'   * `"sepsis_sample"`: a random sample of 5,000 of them, which comes with the
#'     package.
#'   * `"casp"`: 45,730 protein structures; nine physicochemical properties and
#'     the deviation `RMSD` from the native structure. File `casp.csv.xz`.
#'   * `"covertype"`: 581,012 forest cells; ten cartographic variables,
#'     indicators of four wilderness areas and forty soil types, and the cover
#'     type 1 to 7. File `covertype.csv.xz`.
#'
#' @return A data frame with one row per observation, in the order of the
#'   source. There are no missing values.
#' @section Conditions:
#' `tall_error_input` for an unknown name; `tall_error_data` if the file is not
#' on this machine, or if its columns, its number of rows or its checksum differ
#' from those of the data set.
#' @section Sources and licences:
#' All three are from the UCI Machine Learning Repository under CC BY 4.0.
#' * Sepsis Survival Minimal Clinical Records, \doi{10.24432/C53C8N}; Chicco and
#'   Jurman (2020), *Scientific Reports* 10:17156; records of Knoop et al.
#'   (2017), *PLoS ONE* 12(11):e0187990.
#' * Physicochemical Properties of Protein Tertiary Structure, P. S. Rana
#'   (2013), \doi{10.24432/C5QW3H}.
#' * Covertype, J. A. Blackard (1998), \doi{10.24432/C50K5N}; Blackard and Dean
#'   (1999), *Computers and Electronics in Agriculture* 24(3):131-151. Copyright
#'   Jock A. Blackard and Colorado State University.
#' @examples
#' head(tall_data("sepsis_sample"))
#' @export
tall_data <- function(name) {
  name <- check_choice(name, names(data_sets))
  set <- data_sets[[name]]
  path <- data_find(set) %||% abort_no_data(name, set)
  data_check(data_read(path, set), path, set)
}

# What to know of each: `types` has a name and a type for every column;
# `checksum` is data_checksum() of the data frame; `bundled` files come with the
# package.
sepsis_types <- c(
  age_years = "integer",
  sex_0male_1female = "integer",
  episode_number = "integer",
  hospital_outcome_1alive_0dead = "integer"
)

data_sets <- list(
  sepsis = list(
    title = "Sepsis Survival Minimal Clinical Records",
    file = "sepsis.csv.xz",
    header = TRUE,
    types = sepsis_types,
    n_row = 110204,
    checksum = "9e7bd52db31b1bb969bbc1d0c7f76a4e",
    source = "UCI Machine Learning Repository, doi:10.24432/C53C8N",
    licence = "CC BY 4.0",
    sample = "sepsis_sample"
  ),
  sepsis_sample = list(
    title = "Sepsis Survival Minimal Clinical Records (5,000 rows)",
    file = "sepsis-sample.csv.xz",
    header = TRUE,
    types = sepsis_types,
    n_row = 5000,
    checksum = "1b46c88ac30f53ad706bedf1ecb00de9",
    source = "UCI Machine Learning Repository, doi:10.24432/C53C8N",
    licence = "CC BY 4.0",
    bundled = TRUE
  ),
  casp = list(
    title = "Physicochemical Properties of Protein Tertiary Structure",
    file = "casp.csv.xz",
    header = TRUE,
    types = c(
      RMSD = "numeric",
      F1 = "numeric",
      F2 = "numeric",
      F3 = "numeric",
      F4 = "numeric",
      F5 = "numeric",
      F6 = "numeric",
      F7 = "numeric",
      F8 = "integer",
      F9 = "numeric"
    ),
    n_row = 45730,
    checksum = "87482fddb362965c9ce3c62fdaab135a",
    source = "UCI Machine Learning Repository, doi:10.24432/C5QW3H",
    licence = "CC BY 4.0"
  ),
  covertype = list(
    title = "Covertype",
    file = "covertype.csv.xz",
    header = FALSE,
    types = stats::setNames(
      rep("integer", 55),
      c(
        "elevation",
        "aspect",
        "slope",
        "horizontal_distance_hydrology",
        "vertical_distance_hydrology",
        "horizontal_distance_roadways",
        "hillshade_9am",
        "hillshade_noon",
        "hillshade_3pm",
        "horizontal_distance_fire_points",
        paste0("wilderness_", 1:4),
        paste0("soil_", 1:40),
        "cover_type"
      )
    ),
    n_row = 581012,
    checksum = "75192cae9736085225c37edb1dc14164",
    source = "UCI Machine Learning Repository, doi:10.24432/C50K5N",
    licence = "CC BY 4.0"
  )
)

# The folders searched, first match wins.
data_folders <- function() {
  given <- Sys.getenv("TALLBAYES_DATA")
  c(if (nzchar(given)) given, tools::R_user_dir("tallbayes", "cache"))
}

# Path of the file, NULL if it is nowhere.
data_find <- function(set) {
  folders <- if (isTRUE(set$bundled)) {
    system.file("extdata", package = "tallbayes")
  } else {
    data_folders()
  }
  paths <- file.path(folders, set$file)
  paths <- paths[file.exists(paths)]
  if (length(paths) > 0) paths[[1]]
}

data_read <- function(path, set) {
  refuse <- function(e) {
    abort_tall(
      "data",
      c("{.file {path}} cannot be read as {.val {set$title}}."),
      parent = e,
      file = path,
      call = quote(tall_data())
    )
  }
  tryCatch(
    {
      types <- unname(set$types)
      data <- utils::read.csv(path, header = set$header, colClasses = types)
      if (!set$header && ncol(data) == length(types)) {
        names(data) <- names(set$types)
      }
      data
    },
    error = refuse,
    warning = refuse
  )
}

data_check <- function(data, path, set) {
  wrong <- if (!identical(names(data), names(set$types))) {
    wanted <- paste(names(set$types), collapse = ", ")
    paste0("Its columns must be ", wanted, ".")
  } else if (nrow(data) != set$n_row) {
    sprintf(
      "It must have %s, not %s.",
      count_noun(set$n_row, "row"),
      format_count(nrow(data))
    )
  } else if (data_checksum(data) != set$checksum) {
    "The checksum of its content is not the one expected."
  }
  if (!is.null(wrong)) {
    abort_tall(
      "data",
      c(
        "{.file {path}} is not {.val {set$title}}.",
        x = escape_cli(wrong),
        i = "The original is at {set$source}."
      ),
      file = path,
      call = quote(tall_data())
    )
  }
  data
}

# MD5 of the parsed values, so that it does not depend on how a file was
# packed: of the MD5s of the columns, integers as four little-endian bytes,
# other numbers as text of 12 digits, which every platform reads alike.
data_checksum <- function(data) {
  file <- tempfile()
  on.exit(unlink(file))
  column_sum <- function(x) {
    if (is.integer(x)) {
      writeBin(x, file, endian = "little")
    } else {
      writeBin(charToRaw(paste(sprintf("%.12g", x), collapse = "\n")), file)
    }
    unname(tools::md5sum(file))
  }
  sums <- vapply(data, column_sum, "")
  writeBin(charToRaw(paste(c(names(data), sums), collapse = "\n")), file)
  unname(tools::md5sum(file))
}

abort_no_data <- function(name, set) {
  folders <- data_folders()
  where <- if (nzchar(Sys.getenv("TALLBAYES_DATA"))) {
    "The first folder is that of the environment variable
     {.envvar TALLBAYES_DATA}."
  } else {
    "The environment variable {.envvar TALLBAYES_DATA} can name another
     folder."
  }
  abort_tall(
    "data",
    c(
      "The data set {.val {name}} is not on this machine.",
      x = "There is no file {.file {set$file}} in {.file {folders}}.",
      i = "Put it there: {set$title}, {set$source} ({set$licence}).",
      i = where,
      i = if (!is.null(set$sample)) {
        "{.code tall_data(\"{set$sample}\")} is a sample that comes with the
         package."
      }
    ),
    file = set$file,
    folders = folders,
    call = quote(tall_data())
  )
}
