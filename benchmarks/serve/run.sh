#!/bin/sh
# A policy run of three steps whose answers come from `transformers serve`, in the virtual
# environment of benchmarks/peers (.venv; about 5 GB, because torch brings CUDA). Before
# it, the server's answers are compared with those of the sampler here.
#
#   benchmarks/serve/run.sh POLICY BENCH [section.key=value...]
#
# POLICY is the folder of a policy that answers some questions of BENCH; more words are
# settings of caper train grpo. Everything is written to out/serve. SERVE_PYTHON names
# another Python with transformers[serving], PORT another port.
set -eu
if [ $# -lt 2 ]; then
    echo "usage: $0 POLICY BENCH [section.key=value...]" >&2
    exit 2
fi
policy=$(realpath "$1") bench=$(realpath "$2")
shift 2
cd "$(dirname "$0")/../.."
python=${SERVE_PYTHON:-}
if [ -z "$python" ]; then
    python=.venv/bin/python
    [ -x $python ] || python3 -m venv .venv
    $python -m pip install --quiet --disable-pip-version-check -r benchmarks/serve/requirements.txt
fi
port=${PORT:-8471}
out=out/serve
rm -rf $out
mkdir -p $out

HF_HUB_OFFLINE=1 $python -c 'from transformers.cli.transformers import main; main()' serve --host 127.0.0.1 --port "$port" --device cpu >$out/server.log 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT INT TERM
url=http://127.0.0.1:$port
tries=0
until $python -c "import urllib.request; urllib.request.urlopen('$url/health')" 2>/dev/null; do
    tries=$((tries + 1))
    if [ $tries -gt 120 ] || ! kill -0 $server 2>/dev/null; then
        echo "transformers serve does not start; the end of $out/server.log:" >&2
        tail -n 5 $out/server.log >&2
        exit 1
    fi
    sleep 1
done

go run ./benchmarks/serve -server "$url/v1" -api transformers -policy "$policy" -bench "$bench"
bin/caper train grpo --config configs/grpo-tiny.toml reward.kind=sparse model.path="$policy" train.bench="$bench" train.out=$out/run \
    train.max_steps=3 train.epochs=1000 train.batch_questions=4 train.validation_split= rollout.per_call=1 \
    rollout.server="$url/v1" rollout.server_api=transformers rollout.server_model="$policy" "$@"
$python - $out/run/metrics.jsonl <<'END'
import json, sys
for line in open(sys.argv[1]):
    m = json.loads(line)
    if m.get("step") and "groups" in m:
        print(f"step {m['step']}: {m['samples']} answers, lost {m.get('lost', {})}, EX {m['ex']:.3f}, groups with a signal {m['groups']}, KL to the reference {m['kl']:.2g}")
END
echo "weights loaded by the server: $(grep -c 'POST /reset' $out/server.log)"
