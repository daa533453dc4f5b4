#!/bin/sh
# Matrix products of linear layers by PyTorch and by the engine, in turn, in the virtual
# environment of benchmarks/peers (.venv; about 5 GB, because torch brings CUDA).
#
#   benchmarks/matmul/run.sh [--precision fp32,bf16] [--threads 1,2] [--only TEXT]
set -eu
cd "$(dirname "$0")/../.."
python=.venv/bin/python
[ -x $python ] || python3 -m venv .venv
$python -m pip install --quiet --disable-pip-version-check -r benchmarks/peers/requirements.txt
mkdir -p out
go build -o out/matmul ./benchmarks/matmul
exec $python benchmarks/matmul/matmul.py out/matmul "$@"
