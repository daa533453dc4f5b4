#!/bin/sh
# Exports models and checks them with Python's safetensors and transformers, in a
# virtual environment of its own (.venv; about 5 GB, because torch brings CUDA).
#
#   benchmarks/peers/run.sh [MODEL_FOLDER...]
#
# Without folders: small random models of every kind, and the demo's if it has run.
set -eu
cd "$(dirname "$0")/../.."
python=.venv/bin/python
[ -x $python ] || python3 -m venv .venv
$python -m pip install --quiet --disable-pip-version-check -r benchmarks/peers/requirements.txt

out=out/peers
rm -rf $out
if [ $# -eq 0 ]; then
    go run ./benchmarks/peers $out
    [ ! -d out/demo/default/model ] || set -- out/demo/default/model
fi
for folder in "$@"; do
    go run ./benchmarks/peers $out "$folder"
done
$python benchmarks/peers/check_export.py $out/*
