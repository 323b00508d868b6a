# make demo   fit the sepsis data, write demo-output/
# make test   run every test
# Both install what is missing first; neither asks anything.

R ?= R
RSCRIPT ?= Rscript

# OpenBLAS reads it when R starts. Chains run in threads of our own that call
# BLAS, and with one thread for BLAS draws are the same on every machine.
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: demo test test-beside install document lint check sanitize layers site site-check

demo:
	$(RSCRIPT) tools/setup.R demo
	$(R) CMD INSTALL --no-test-load .
	$(RSCRIPT) tools/vignettes.R
	$(RSCRIPT) tools/demo.R

test:
	$(RSCRIPT) tools/setup.R test
	$(R) CMD INSTALL --no-test-load .
	$(RSCRIPT) tools/test.R

# what works with parsnip and tidybayes, which need newer packages than the other
# tests see; needs the package installed (make test)
test-beside:
	$(RSCRIPT) tools/setup.R beside
	R_LIBS="$$($(RSCRIPT) -e 'source("tools/setup.R")' \
	  -e 'cat(beside_library(), site_library(), Sys.getenv("R_LIBS"), sep = ":")')" \
	  $(RSCRIPT) tools/test.R '^(parsnip|ecosystem)$$'

install:
	$(RSCRIPT) tools/setup.R
	$(R) CMD INSTALL .
	$(RSCRIPT) tools/vignettes.R

# NAMESPACE and man/, from the comments in R/ (needs roxygen2)
document:
	$(RSCRIPT) -e 'roxygen2::roxygenise()'

# the format of the C and the style of the R
lint:
	$(RSCRIPT) tools/setup.R lint
	bash tools/lint.sh

# what comes from a file or is altered by hand, under the sanitizers
sanitize:
	$(RSCRIPT) tools/setup.R test
	bash tools/sanitize.sh

# the source package, checked without errors, warnings or notes
check:
	$(RSCRIPT) tools/setup.R test
	bash tools/check.sh

# which room of R/ uses which; fails where an arrow points upwards
layers:
	$(RSCRIPT) tools/layers.R

# the pages of the package, in docs/; needs it installed (make install)
site:
	$(RSCRIPT) tools/setup.R site
	$(RSCRIPT) tools/site.R

# every link of them, and what a browser says to each
site-check: site
	$(RSCRIPT) tools/site-check.R
