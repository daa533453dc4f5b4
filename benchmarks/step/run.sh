#!/bin/sh
# Times training steps here and in PyTorch with transformers, in turn, in the virtual
# environment of benchmarks/peers (.venv; about 5 GB, because torch brings CUDA).
#
#   benchmarks/step/run.sh [FLAG...]
set -eu
cd "$(dirname "$0")/../.."
python=.venv/bin/python
[ -x $python ] || python3 -m venv .venv
$python -m pip install --quiet --disable-pip-version-check -r benchmarks/peers/requirements.txt
go run ./benchmarks/step -python $python "$@"
