#!/bin/sh
# Execution accuracy by the official test-suite evaluator and by caper, on the same
# files, one after the other: the verdicts have to agree, and the times are compared.
#
#   benchmarks/evaluators/run.sh BENCH PREDICTIONS [FOLDER_OF_EVALUATION_PY]
#
# BENCH is a folder in Spider layout, PREDICTIONS a file in any form that caper reads.
# Without the folder the evaluator is cloned. Its Python packages go to a virtual
# environment of their own (out/evaluators/venv).
set -eu
[ $# -ge 2 ] || { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
bench=$(realpath "$1") predictions=$(realpath "$2") official=${3:-}
[ -z "$official" ] || official=$(realpath "$official")
cd "$(dirname "$0")/../.."

out=out/evaluators
mkdir -p $out
[ -x $out/venv/bin/python ] || python3 -m venv $out/venv
$out/venv/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/evaluators/requirements.txt
if [ -z "$official" ]; then
    official=$out/test-suite-sql-eval
    [ -d $official ] || git clone --quiet https://github.com/taoyds/test-suite-sql-eval $official
fi
go run ./benchmarks/evaluators -bench "$bench" -pred "$predictions" -official "$official" -python $out/venv/bin/python -out $out
