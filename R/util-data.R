# Data sets of the papers. A new one is an entry in `data_sets`, no more.

#' Data sets of the papers
#'
#' Reads one of the data sets on which the methods of this package were
#' published. `"sepsis"` comes with the package. The others are too large for
#' it, or may not be passed on, so the file is looked for in the folder named by
#' the environment variable `TALLBAYES_DATA` and then in
#' `tools::R_user_dir("tallbayes", "cache")`. If it is in neither, the archive
#' of the original source is downloaded, where there is one and `download`
#' allows it, and kept in the second folder; otherwise the error says which file
#' to put where. Whatever was read, and wherever it came from, is compared with
#' a checksum of the parsed content.
#'
#' @param name (string) The data set:
#'   * `"sepsis"`: 110,204 hospital admissions with sepsis; age, sex, number of
#'     the episode, and whether the patient left alive. File `sepsis.csv.xz`,
#'     which is read from one of the folders, too, if it is there.
#'   * `"casp"`: 45,730 protein structures; nine physicochemical properties and
#'     the deviation `RMSD` from the native structure. File `casp.csv.xz`.
#'   * `"covertype"`: 581,012 forest cells; ten cartographic variables,
#'     indicators of four wilderness areas and forty soil types, and the cover
#'     type 1 to 7. File `covertype.csv.xz`.
#'   * `"arrhythmia"`: 452 patients; 279 measurements `v1` to `v279` (age, sex,
#'     height, weight, electrocardiogram) and the `class` of arrhythmia, 1
#'     (none) to 16. File `arrhythmia.csv.xz`.
#'   * `"movielens"`: 100,000 ratings, 1 to 5, of 1,682 films (`item`) by 943
#'     users, with the time in seconds since 1970. In their order, rows 1 to
#'     20,000 are the test part of the split `u1`, the others its training part.
#'     File `movielens-100k.tsv.xz`.
#'   * `"meg"`: ten channels of a magnetoencephalogram at 17,730 time points, in
#'     raw units. File `meg10.csv.xz`; no public archive.
#'   * `"newsgroups"`: the counts of 1,000 words in 18,745 documents of twenty
#'     newsgroups, as three tables. Files `newsgroups-w1000-counts.tsv.xz`,
#'     `newsgroups-w1000-docs.tsv.xz` and `newsgroups-w1000-vocab.tsv.xz`; no
#'     public archive.
#' @param download (TRUE or FALSE) May a data set that is not on this machine be
#'   downloaded from its source? By default in interactive sessions only; the
#'   option `tallbayes.download` sets another default. Nothing is ever asked.
#'
#' @return A data frame with one row per observation, in the order of the
#'   source. Only `"arrhythmia"` has missing values, in the columns `v11` to
#'   `v15`.
#'
#'   For `"newsgroups"`, a list of three data frames: `counts` has the columns
#'   `doc`, `word` and `count`, with one row for each word of each document;
#'   `docs` has `doc`, `split` ("train" or "test") and `group` 1 to 20, sorted
#'   by group within each split; `vocab` has `word`, `term` (its first form) and
#'   `members` (all forms, separated by spaces).
#' @section Files:
#' In place of the files named above, either folder may hold the archive of the
#' source under its own name, such as `covertype.zip`: that is what a download
#' leaves in the second. It is moved there only when it has arrived in full and
#' its content was found to be right, so that a download that breaks off leaves
#' nothing behind.
#' @section Conditions:
#' `tall_error_input` for an unknown name; `tall_error_data` if the data set is
#' not on this machine, if a download fails, or if the columns, the number of
#' rows or the checksum of what was read differ from those of the data set. It
#' has the field `file` and, for a file that is not right, `expected` and
#' `found`.
#' @section Sources and licences:
#' From the UCI Machine Learning Repository under CC BY 4.0:
#' * Sepsis Survival Minimal Clinical Records, \doi{10.24432/C53C8N}; Chicco and
#'   Jurman (2020), *Scientific Reports* 10:17156; records of Knoop et al.
#'   (2017), *PLoS ONE* 12(11):e0187990. The package holds the primary cohort
#'   unchanged, `system.file("extdata", "sepsis.md", package = "tallbayes")`
#'   beside it.
#' * Physicochemical Properties of Protein Tertiary Structure, P. S. Rana
#'   (2013), \doi{10.24432/C5QW3H}.
#' * Covertype, J. A. Blackard (1998), \doi{10.24432/C50K5N}; Blackard and Dean
#'   (1999), *Computers and Electronics in Agriculture* 24(3):131-151. Copyright
#'   Jock A. Blackard and Colorado State University.
#' * Arrhythmia, Guvenir, Acar, Muderrisoglu and Quinlan (1997),
#'   \doi{10.24432/C5BS32}; Guvenir et al. (1997), *Computers in Cardiology*
#'   24:433-436.
#'
#' Under terms of their own:
#' * MovieLens 100K, GroupLens; Harper and Konstan (2015), *ACM TiiS* 5(4):19,
#'   \doi{10.1145/2827872}. For research; not to be passed on, nor used
#'   commercially, without permission. A download prints the terms.
#' * MEG data for studies using independent component analysis, Helsinki
#'   University of Technology; Vigario et al. (1998), *NIPS* 10. No licence is
#'   known: for research, not to be passed on.
#' * 20 Newsgroups, K. Lang (1995), in the reduction to 1,000 words by B. Marlin
#'   (PMTK, `20news_w1000`). The newsgroups are under CC BY 4.0 at UCI,
#'   \doi{10.24432/C5C323}; the reduction came without a licence.
#' @examples
#' head(tall_data("sepsis"))
#' @export
tall_data <- function(
  name,
  download = getOption("tallbayes.download", rlang::is_interactive())
) {
  name <- check_choice(name, names(data_sets))
  download <- check_flag(download)
  data_get(name, data_sets[[name]], download)
}

# ---- the registry ----------------------------------------------------------

# A table is a file: `types` has a name and a type for every column, `checksum`
# is data_checksum() of the data frame, `na` the strings that stand for NA.
table_entry <- function(
  file,
  types,
  n_row,
  checksum,
  sep = ",",
  header = TRUE,
  na = character()
) {
  list(
    file = file,
    types = types,
    n_row = n_row,
    checksum = checksum,
    sep = sep,
    header = header,
    na = na
  )
}

# The archive of the source, a zip file, and the file in it that is the table;
# archives have one table. `header`: does that file name its columns?
archive_entry <- function(url, member, header = TRUE) {
  list(url = url, file = basename(url), member = member, header = header)
}

covertype_names <- c(
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

# `bundled` files come with the package; `terms` are printed before a download.
# Without an `archive` there is none.
data_sets <- list(
  sepsis = list(
    title = "Sepsis Survival Minimal Clinical Records",
    source = "UCI Machine Learning Repository, doi:10.24432/C53C8N",
    licence = "CC BY 4.0",
    tables = list(table_entry(
      file = "sepsis.csv.xz",
      types = c(
        age_years = "integer",
        sex_0male_1female = "integer",
        episode_number = "integer",
        hospital_outcome_1alive_0dead = "integer"
      ),
      n_row = 110204,
      checksum = "9e7bd52db31b1bb969bbc1d0c7f76a4e"
    )),
    bundled = TRUE
  ),
  casp = list(
    title = "Physicochemical Properties of Protein Tertiary Structure",
    source = "UCI Machine Learning Repository, doi:10.24432/C5QW3H",
    licence = "CC BY 4.0",
    tables = list(table_entry(
      file = "casp.csv.xz",
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
      checksum = "87482fddb362965c9ce3c62fdaab135a"
    )),
    archive = archive_entry(
      paste0(
        "https://archive.ics.uci.edu/static/public/265/",
        "physicochemical+properties+of+protein+tertiary+structure.zip"
      ),
      "CASP.csv"
    )
  ),
  covertype = list(
    title = "Covertype",
    source = "UCI Machine Learning Repository, doi:10.24432/C50K5N",
    licence = "CC BY 4.0",
    tables = list(table_entry(
      file = "covertype.csv.xz",
      types = stats::setNames(rep("integer", 55), covertype_names),
      n_row = 581012,
      checksum = "75192cae9736085225c37edb1dc14164",
      header = FALSE
    )),
    archive = archive_entry(
      "https://archive.ics.uci.edu/static/public/31/covertype.zip",
      "covtype.data.gz",
      header = FALSE
    )
  ),
  arrhythmia = list(
    title = "Arrhythmia",
    source = "UCI Machine Learning Repository, doi:10.24432/C5BS32",
    licence = "CC BY 4.0",
    tables = list(table_entry(
      file = "arrhythmia.csv.xz",
      types = stats::setNames(
        rep(c("integer", "numeric", "integer"), c(159, 120, 1)),
        c(paste0("v", 1:279), "class")
      ),
      n_row = 452,
      checksum = "5bfbcfeb1baae951c560adc8bd980559",
      header = FALSE,
      na = "?"
    )),
    archive = archive_entry(
      "https://archive.ics.uci.edu/static/public/5/arrhythmia.zip",
      "arrhythmia.data",
      header = FALSE
    )
  ),
  movielens = list(
    title = "MovieLens 100K",
    source = "GroupLens, https://grouplens.org/datasets/movielens/100k/",
    licence = "terms of GroupLens",
    tables = list(table_entry(
      file = "movielens-100k.tsv.xz",
      types = c(
        user = "integer",
        item = "integer",
        rating = "integer",
        timestamp = "integer"
      ),
      n_row = 100000,
      checksum = "12fe5a88a91d87739dea32b6c8eaecc9",
      sep = "\t"
    )),
    archive = archive_entry(
      "https://files.grouplens.org/datasets/movielens/ml-100k.zip",
      "u.data",
      header = FALSE
    ),
    terms = c(
      "MovieLens 100K is used under the terms of GroupLens:",
      "*" = "Do not state or imply that GroupLens or the University of
             Minnesota endorse you.",
      "*" = "Acknowledge the data set in publications: Harper and Konstan
             (2015), doi:10.1145/2827872.",
      "*" = "Do not pass it on without separate permission.",
      "*" = "Do not use it for commercial or revenue-bearing purposes without
             permission.",
      i = "In full: {.url
           https://files.grouplens.org/datasets/movielens/ml-100k-README.txt}"
    )
  ),
  meg = list(
    title = "MEG data for studies using independent component analysis",
    source = "Brain Research Unit, Helsinki University of Technology",
    licence = "no licence known",
    tables = list(table_entry(
      file = "meg10.csv.xz",
      types = stats::setNames(rep("numeric", 10), paste0("ch", 1:10)),
      n_row = 17730,
      checksum = "43519b13e037f7e788eca1d3c90e9714"
    ))
  ),
  newsgroups = list(
    title = "20 Newsgroups, 1,000 words",
    source = "PMTK data collection, 20news_w1000",
    licence = "no licence known for the reduction",
    tables = list(
      counts = table_entry(
        file = "newsgroups-w1000-counts.tsv.xz",
        types = c(doc = "integer", word = "integer", count = "integer"),
        n_row = 546379,
        checksum = "3ef9bf367b85eb402bde0319521b1e86",
        sep = "\t"
      ),
      docs = table_entry(
        file = "newsgroups-w1000-docs.tsv.xz",
        types = c(doc = "integer", split = "character", group = "integer"),
        n_row = 18745,
        checksum = "4e401f94b2ed5f24310af17567f68330",
        sep = "\t"
      ),
      vocab = table_entry(
        file = "newsgroups-w1000-vocab.tsv.xz",
        types = c(word = "integer", term = "character", members = "character"),
        n_row = 1000,
        checksum = "3b7b207a6a46074d58e7369a90325ce6",
        sep = "\t"
      )
    )
  )
)
