# The targets that people use. CMake does everything else.
BUILD := build
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: ## install what the build needs (Debian packages, LibTorch in .venv)
	@scripts/setup

build: setup ## build build/megalith
	@scripts/build $(BUILD)

quickstart: build ## train a small model on Shakespeare, or on TEXT=my.txt
	@TEXT="$(TEXT)" scripts/quickstart

test: ## build everything and run all tests
	@scripts/setup --test
	@cmake -S . -B $(BUILD) -G Ninja >/dev/null
	@ninja -C $(BUILD)
	@ctest --test-dir $(BUILD) --output-on-failure --label-exclude '^long$$' -j "$$(nproc)"; code=$$?; scripts/skipped $(BUILD); exit $$code

test-long: ## run the long tests; WHAT=budgets, campaign, hosts, kills, mutants, prediction, ranks or text runs one part
	@scripts/setup --test
	@cmake -S . -B $(BUILD) -G Ninja >/dev/null
	@ninja -C $(BUILD)
	@scripts/test_long $(BUILD) $(WHAT)

fuzz: ## fuzz the config and safetensors parsers for a minute each
	@scripts/fuzz

sanitize: ## test the folders without LibTorch with ASan+UBSan, and the lanes with TSan
	@scripts/sanitize

bench: ## compare with PyTorch, transformers and DeepSpeed; WHAT=step, startup, save, kernels, tokenizers, generation, comm, ranks, dropping, experts or embeddings
	@scripts/bench $(WHAT)

bench-smoke: ## check quickly that a step is not slower than with plain PyTorch
	@scripts/bench smoke

docs: build ## regenerate the reference pages, and build the site in build/site
	@scripts/setup --docs
	@ninja -C $(BUILD) test_config test_report
	@MEGALITH_REGENERATE=1 $(BUILD)/test_config --gtest_filter='Reference.*' >/dev/null; true
	@MEGALITH_REGENERATE=1 $(BUILD)/test_report --gtest_filter='MetricTable.*' >/dev/null; true
	@.venv-docs/bin/python scripts/site $(BUILD)/site

clean: ## remove the build folders
	rm -rf $(BUILD) $(BUILD)-*

.PHONY: help setup build quickstart test test-long fuzz sanitize bench bench-smoke docs clean
