#!/bin/sh
# Times the tokenizer against Hugging Face's tokenizers, kitoken and quicktok on 3 MB of
# schemas, questions and SQL, in turn, and checks that all give the same ids; then
# makes the golden files of splitting and of chat templates again, which must not
# change. The Python packages go to a virtual environment of their own
# (out/tokenizer/venv).
#
#   benchmarks/tokenizer/run.sh [DATA]
#
# DATA is the folder with Spider and BIRD data and golden/tokenizer, else ../shared/data.
set -eu
cd "$(dirname "$0")/../.."
data=${1:-../shared/data}
out=out/tokenizer
mkdir -p $out
[ -x $out/venv/bin/python ] || python3 -m venv $out/venv
# trl is here for its files: what it depends on is large and not needed.
grep -v '^trl' benchmarks/tokenizer/requirements.txt >$out/requirements.txt
$out/venv/bin/python -m pip install --quiet --disable-pip-version-check -r $out/requirements.txt
$out/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps "$(grep '^trl' benchmarks/tokenizer/requirements.txt)"

gunzip -c "$data/golden/tokenizer/qwen3_tokenizer.json.gz" >$out/tokenizer.json
$out/venv/bin/python benchmarks/tokenizer/corpus.py "$data" $out/texts.jsonl 3
go build -o $out/tokenizer ./benchmarks/tokenizer
$out/tokenizer -tokenizer $out/tokenizer.json -texts $out/texts.jsonl -python $out/venv/bin/python

for file in model/chat/testdata/golden.jsonl:chat_golden.py model/tokenizer/testdata/classes.txt:classes_golden.py; do
    golden=${file%:*}
    $out/venv/bin/python benchmarks/tokenizer/"${file#*:}" $out/golden
    cmp $out/golden "$golden"
    echo "$golden: what the libraries give today"
done
