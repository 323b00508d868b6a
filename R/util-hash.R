# Uniforms by a hash of the numbers of rows: the same whoever reads them.

# Streams of hashed uniforms, which have nothing to do with each other.
hash_purposes <- c(pilot = 0, draw = 1, shuffle = 2, halve = 3, fold = 4)

# n uniforms on (0, 1) of a purpose, those of the rows first, first + 1, ...
hash_uniforms <- function(seed, purpose, first, n) {
  .Call(ffi_hash_uniforms, seed, hash_purposes[[purpose]], first, n)
}
