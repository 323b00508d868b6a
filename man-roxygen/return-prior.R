#' @return An object of class `tall_prior`: a list of settings that holds no
#'   data and can be saved, printed and used again.
