#!/bin/sh
# Trains a small reward model for a few steps with --metrics-addr, asks for its metrics
# meanwhile, writes its event file, and reads both with the programs that they are for, in
# a virtual environment of its own (.venv-observe). RUN folders are read likewise.
#
#   benchmarks/observe/run.sh [RUN...]
set -eu
cd "$(dirname "$0")/../.."
python=.venv-observe/bin/python
[ -x $python ] || python3 -m venv .venv-observe
$python -m pip install --quiet --disable-pip-version-check -r benchmarks/observe/requirements.txt

for run in "$@"; do
    bin/caper report tensorboard "$run"
    $python benchmarks/observe/check.py "$run"
done
[ $# -eq 0 ] || exit 0

out=out/observe
port=19464
rm -rf $out
mkdir -p $out
bin/caper sample $out/bench
head -n 400 $out/bench/rollouts/train.jsonl >$out/rollouts.jsonl
bin/caper annotate --bench $out/bench --split train --rollouts $out/rollouts.jsonl --out $out/tuples.jsonl
bin/caper train prm --config configs/prm-tiny.toml train.tuples=$out/tuples.jsonl train.out=$out/run \
    train.max_steps=40 train.validate_every=10 --metrics-addr 127.0.0.1:$port &
training=$!
while kill -0 $training 2>/dev/null; do
    if curl -sf http://127.0.0.1:$port/metrics >$out/now.txt && [ -s $out/now.txt ]; then cp $out/now.txt $out/metrics.txt; fi
    sleep 0.2
done
wait $training
bin/caper report tensorboard $out/run
$python benchmarks/observe/check.py $out/run $out/metrics.txt
