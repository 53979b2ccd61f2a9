# A thin front for CMake. Everything here can be done with cmake alone; see README.md.
BUILD ?= build
PYTHON ?= python3
JOBS ?= $(shell nproc)
APT_PACKAGES = g++ make cmake ninja-build git python3 \
  libboost-context-dev libcli11-dev libfmt-dev nlohmann-json3-dev libeigen3-dev libbenchmark-dev libtomlplusplus-dev catch2
APT_PACKAGES_HIP = hipcc libamdhip64-dev rocm-device-libs
APT_PACKAGES_DOCS = doxygen clang-format
APT_PACKAGES_VENV = python3-venv
VENV = $(BUILD)/venv

STAGES := $(patsubst stages/%/kernel.cuh,%,$(wildcard stages/*/kernel.cuh))
NUMBERS := $(sort $(foreach s,$(STAGES),$(firstword $(subst _, ,$(s)))))

.PHONY: help
help:
	@echo "make setup            install what is missing (Debian, Ubuntu)"
	@echo "make stage-NN         build one stage, then run ./stage-NN"
	@echo "make stages           build all stages:"
	@for s in $(STAGES); do echo "                        $$s"; done
	@echo "make exercise-NN      write a part of a stage yourself, then run ./exercise-NN"
	@echo "make hint-NN          a hint for the last failure;  make quiz-NN  questions"
	@echo "make reset-NN         the exercise as it was;  make reveal-NN  its solution"
	@echo "make map              how far you have come;  make doctor  what is here"
	@echo "make test             test everything that this machine can test"
	@echo "make test-all         and the wrong solutions of every exercise, as CI does"
	@echo "make report           benchmark what this machine can, then write report.html; QUICK=1 takes less time,"
	@echo "                      FROM=a.json,b.json measures nothing and compares these files"
	@echo "make format           format the code; make check-format only looks"
	@echo "make docs             the book, in docs/html (warnings are errors);  make check-docs  looks it through"
	@echo "make chapters         rewrite what chapters quote: drawings, tables, diffs, profiles"
	@echo "make setup-hip        HIP compiler for AMD GPUs;  make setup-docs  Doxygen, its theme, clang-format"
	@echo "make setup-report     Python packages for the charts, in $(VENV)"
	@echo "CMAKE_FLAGS=...       options for CMake, such as -DSOFTMAX_CUDA=OFF -DSOFTMAX_HIP=OFF (quicker builds)"
	@echo "make clean            remove build folders and programs"

# --- packages
define install_packages
	@missing=""; \
	if ! command -v dpkg-query > /dev/null; then \
	  echo "This is no Debian or Ubuntu; install the equivalents of: $(1)"; exit 0; fi; \
	for p in $(1); do dpkg-query -W -f='$${Status}' $$p 2> /dev/null | grep -q 'ok installed' || missing="$$missing $$p"; done; \
	if [ -z "$$missing" ]; then echo "setup: nothing is missing"; exit 0; fi; \
	echo "setup: installing$$missing"; \
	sudo=""; if [ "$$(id -u)" != 0 ]; then sudo=sudo; fi; \
	$$sudo apt-get update -qq && \
	DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq --no-install-recommends $$missing > /dev/null
endef

.PHONY: setup setup-hip setup-docs
setup:
	$(call install_packages,$(APT_PACKAGES))
setup-hip: setup
	$(call install_packages,$(APT_PACKAGES_HIP))
setup-docs: setup $(VENV)/docs
	$(call install_packages,$(APT_PACKAGES_DOCS))

# --- Python packages, kept apart in $(VENV): the charts of the report, and what the book is made with
.PHONY: report setup-report
setup-report: $(VENV)/report
$(VENV)/report: bench/requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "setup-report: $(PYTHON) is older than Python 3.11, which the charts need: give PYTHON=python3.11 or newer."; exit 2; }
	$(call install_into_venv,setup-report,$<)
$(VENV)/docs: docs/book/requirements.txt
	$(call install_into_venv,setup-docs,$<)

# $(1): who asks, $(2): requirements. The target is the mark of an installation that went well.
define install_into_venv
	@$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null || $(MAKE) --no-print-directory install-venv
	@$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null || { \
	  echo "$(1): $(PYTHON) has no module venv: install python3-venv."; exit 2; }
	@mkdir -p $(BUILD) && echo "$(1): installing into $(VENV)" && \
	{ $(PYTHON) -m venv $(VENV) && $(VENV)/bin/python -m pip install --disable-pip-version-check -q -r $(2); } \
	  > $(BUILD)/venv.log 2>&1 || { tail -n 1 $(BUILD)/venv.log; \
	  echo "$(1): the packages could not be installed; is there a network? The whole output is in $(BUILD)/venv.log."; \
	  exit 2; }
	@touch $@
endef
.PHONY: install-venv
install-venv:
	$(call install_packages,$(APT_PACKAGES_VENV))

comma := ,
report: setup-report $(if $(FROM),,$(BUILD)/CMakeCache.txt)
ifdef FROM
	@$(VENV)/bin/python bench/report.py $(subst $(comma), ,$(FROM))
else
	@cmake --build $(BUILD) --parallel $(JOBS) --target $(addprefix bench-,$(NUMBERS))
	@files="$$($(VENV)/bin/python bench/run.py --bin $(BUILD)/bin --out $(BUILD)/report $(if $(QUICK),--quick))"; ran=$$?; \
	if [ -n "$$files" ]; then $(VENV)/bin/python bench/report.py $$files || exit; fi; exit $$ran
endif

# --- programs: built in $(BUILD), linked into this folder
# CMAKE_FLAGS on the command line configures again.
$(BUILD)/CMakeCache.txt: $(if $(CMAKE_FLAGS),FORCE)
	@if [ -f $@ ] && ! grep -qx 'CMAKE_HOME_DIRECTORY:INTERNAL=$(CURDIR)' $@; then \
	  echo "$(BUILD) was made for another folder than $(CURDIR): run 'make clean' first"; exit 2; fi
	@mkdir -p $(BUILD); log=$(BUILD)/configure.log; \
	cmake -S . -B $(BUILD) $(if $(shell command -v ninja),-G Ninja) $(CMAKE_FLAGS) > $$log 2>&1 || \
	  { grep -A4 'CMake Error' $$log || cat $$log; rm -f $@; \
	    echo "Configuring failed; the whole output is in $$log. Has 'make setup' been run?"; exit 2; }; \
	grep -E '^-- (Backends|Tests|CUDA is)' $$log || true

.PHONY: FORCE stages
stage-%: FORCE $(BUILD)/CMakeCache.txt
	@ls stages/$*_*/kernel.cuh > /dev/null 2>&1 || { echo "There is no stage $*: use one of $(NUMBERS)"; exit 2; }
	@cmake --build $(BUILD) --parallel $(JOBS) --target $@
	@ln -sf $(BUILD)/bin/$@ $@ && echo "run ./$@"
# The learner's file is made if it is missing; only then is it compiled.
exercise-%: FORCE $(BUILD)/CMakeCache.txt
	@ls stages/$*_*/kernel.cuh > /dev/null 2>&1 || { echo "There is no stage $*: use one of $(NUMBERS)"; exit 2; }
	@cmake --build $(BUILD) --parallel $(JOBS) --target $@
	@ln -sf $(BUILD)/bin/$@ $@ && echo "run ./$@"
.PHONY: map doctor workbook
workbook: $(BUILD)/CMakeCache.txt
	@cmake --build $(BUILD) --parallel $(JOBS) --target workbook > $(BUILD)/workbook.log 2>&1 || { cat $(BUILD)/workbook.log; exit 2; }
map doctor: workbook
	@$(BUILD)/bin/workbook $@
# A quiz that is not all correct is no failed build.
quiz-%: FORCE workbook
	@$(BUILD)/bin/workbook quiz $* $(if $(ANSWERS),--answers $(ANSWERS)) $(if $(GPU),--gpu $(GPU)) || [ $$? = 1 ]
hint-% reset-% reveal-%: FORCE workbook
	@$(BUILD)/bin/workbook $(firstword $(subst -, ,$@)) $*
FORCE:
stages: $(addprefix stage-,$(NUMBERS))

# --- checks
.PHONY: test test-all format check-format docs check-docs chapters clean
test: $(BUILD)/CMakeCache.txt
	@cmake --build $(BUILD) --parallel $(JOBS)
	@ctest --test-dir $(BUILD) --output-on-failure --parallel $(JOBS) --label-exclude slow
# The wrong solutions of every exercise as well.
test-all: $(BUILD)/CMakeCache.txt
	@cmake --build $(BUILD) --parallel $(JOBS) --target all trials
	@ctest --test-dir $(BUILD) --output-on-failure --parallel $(JOBS)

SOURCES = $(shell git ls-files '*.cpp' '*.hpp' '*.cuh' '*.cu')
format:
	clang-format -i $(SOURCES)
check-format:
	@clang-format --dry-run -Werror $(SOURCES) && echo "format: $(words $(SOURCES)) files are fine"

# The book: pages are written into $(BUILD)/book, and Doxygen makes it of them and of the headers in common/.
docs: $(VENV)/docs $(BUILD)/CMakeCache.txt
	@cmake --build $(BUILD) --parallel $(JOBS) --target questions > $(BUILD)/docs.log 2>&1 || { cat $(BUILD)/docs.log; exit 2; }
	@rm -rf docs/html && $(VENV)/bin/python docs/book/pages.py $(BUILD)/book --questions $(BUILD)/bin/questions --html docs/html && \
	doxygen $(BUILD)/book/book.doxyfile && $(VENV)/bin/python docs/book/search.py docs/html $(BUILD)/book/pages && echo "docs: docs/html/index.html"
check-docs:
	@$(PYTHON) tests/book_test.py --bin $(BUILD)/bin
# What is generated and committed.
chapters: $(BUILD)/CMakeCache.txt
	@cmake --build $(BUILD) --parallel $(JOBS) --target $(addprefix stage-,$(NUMBERS)) > $(BUILD)/chapters.log 2>&1 || \
	  { cat $(BUILD)/chapters.log; exit 2; }
	@$(PYTHON) bench/tables.py && $(PYTHON) docs/book/refresh.py --bin $(BUILD)/bin

clean:
	rm -rf $(BUILD) docs/html stage-[0-9][0-9] exercise-[0-9][0-9] report.html
