# caper: build, try, test. Needs Go and a C compiler; nothing else.

GO ?= go

.PHONY: build demo demo-full test test-cuda nvrtc invariants lint bench peers evaluators tokenizers generate observe step matmul checkpoint cubins gpu-bundle clean

build:            ## the binary, at bin/caper
	$(GO) build -o bin/caper ./cmd/caper

demo: build       ## the whole loop on built-in data, its policies in small; ends in out/demo/report.html
	rm -rf out/demo
	bin/caper demo --out out/demo

demo-full: build  ## the same with policies at full length and three seeds, up to 40 minutes; ends in out/demo-full/report.html
	rm -rf out/demo-full
	bin/caper demo --full --out out/demo-full

test: lint        ## every part against its specification, but CUDA kernels
	$(GO) test -vet=off ./...
	CGO_CFLAGS=-O1 $(GO) test -vet=off -race -short $(RACE)

test-cuda:        ## CUDA kernels on the processor, and the engine on an emulated GPU; needs g++. After make nvrtc, kernels compiled for cards
	$(if $(wildcard out/nvrtc),CAPER_NVRTC=$(NVRTC)) CAPER_TEST_GPU=emulated $(GO) test -timeout 30m ./kernels/... ./cuda/... ./benchmarks/kernels
	CAPER_TEST_GPU=emulated $(GO) test -timeout 30m -run CUDA ./model/... ./cmd/caper

# NVIDIA's compiler of kernels: one of your own by CAPER_NVRTC, or that of make nvrtc.
NVRTC = $(or $(CAPER_NVRTC),$(CURDIR)/out/nvrtc/nvidia/cu13/lib)

nvrtc: out/nvrtc  ## NVIDIA's compiler of kernels (90 MB from PyPI), for make test-cuda and make cubins; needs pip
out/nvrtc:
	rm -rf $@.part
	python3 -m pip install --quiet --disable-pip-version-check --no-deps --target $@.part nvidia-cuda-nvrtc==13.0.88
	mv $@.part $@

invariants:       ## every tuple of the demo and of Spider dev, executed again beside the annotator
	CAPER_TEST_TUPLES=all $(GO) test -count=1 -v -run Invariants ./annotate

# The packages that run goroutines. SQLite, which has to be compiled anew for the race detector,
# takes half as long with -O1; kernels choose their own flags. lint has vetted all.
RACE = ./sqlexec ./data/... ./annotate ./eval ./train/... ./model/remote ./solve

lint:             ## formatting and vet
	@files=$$("$$($(GO) env GOROOT)/bin/gofmt" -l .) && [ -z "$$files" ] || { echo "run gofmt -w on:" $$files; exit 1; }
	$(GO) vet ./...

bench:            ## kernels and end-to-end steps, on this machine
	$(GO) test -run '^$$' -bench . -benchmem ./...

peers: build      ## an exported model against Python safetensors and transformers, in a venv of its own
	benchmarks/peers/run.sh

evaluators: build ## Spider's official evaluator and caper in turn: make evaluators BENCH=folder PRED=file [OFFICIAL=folder]
	benchmarks/evaluators/run.sh $(BENCH) $(PRED) $(OFFICIAL)

tokenizers:       ## the tokenizer against tokenizers, kitoken and quicktok: make tokenizers [DATA=folder]
	benchmarks/tokenizer/run.sh $(DATA)

observe: build    ## a run's TensorBoard file and Prometheus metrics, read by tensorboard and prometheus-client: make observe [RUNS="folders"]
	benchmarks/observe/run.sh $(RUNS)

policy-server: build ## three policy steps on answers of transformers serve: make policy-server POLICY=folder BENCH=folder
	benchmarks/serve/run.sh $(POLICY) $(BENCH)

step:             ## training steps against PyTorch and transformers, and with against without shared prompts
	benchmarks/step/run.sh

generate:         ## generation against transformers' generate, in the same venv as peers
	benchmarks/generate/run.sh

matmul:           ## matrix products of linear layers by PyTorch and caper in turn, in the venv of peers
	benchmarks/matmul/run.sh

checkpoint:       ## a random 0.8B checkpoint (1.5 GB twice, in out/checkpoint) loaded, run, saved: below 2.2 times its size in memory
	$(GO) run ./benchmarks/checkpoint make out/checkpoint
	$(GO) run ./benchmarks/checkpoint check out/checkpoint

cubins: build $(if $(CAPER_NVRTC),,nvrtc) ## all kernels compiled by NVRTC, beside the binary, which then needs none; and what they take of a card
	rm -rf bin/cubins
	CAPER_NVRTC=$(NVRTC) bin/caper bench cubins --out bin/cubins >bin/kernels.md

gpu-bundle: $(if $(CAPER_NVRTC),,nvrtc) ## out/gpu-bundle.tgz: binary, compiled kernels, test binaries and gpu.sh, for a machine with a GPU and no Go
	rm -rf out/gpu-bundle
	mkdir -p out/gpu-bundle/tests
	cp benchmarks/gpu.sh out/gpu-bundle/
	$(GO) build -ldflags="-s -w" -o out/gpu-bundle/caper ./cmd/caper
	CAPER_NVRTC=$(NVRTC) out/gpu-bundle/caper bench cubins --out out/gpu-bundle/cubins >out/gpu-bundle/kernels.md
	for op in $$(dirname $$(grep -l "engine.NewKernelText\|GPU().MatMul" kernels/*/cuda.go)); do \
		$(GO) test -c -ldflags="-s -w" -o out/gpu-bundle/tests/$$(basename $$op).test ./$$op || exit 1; done
	$(GO) test -c -ldflags="-s -w" -o out/gpu-bundle/tests/model.test ./model
	tar -C out -czf out/gpu-bundle.tgz gpu-bundle

clean:
	rm -rf bin out
