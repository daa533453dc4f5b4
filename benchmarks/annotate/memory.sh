#!/bin/sh
# Streams N rollouts (1,000,000 unless given) through `caper annotate` and prints the memory of the program and of its
# worker processes every ten seconds. The rollouts are those of the built-in benchmark over and over, each with a
# LIMIT of its own beyond all rows, so that every query is new to the cache and every tuple to the run.
#
#   benchmarks/annotate/memory.sh [N]        # needs bin/caper (make build) and some 600 bytes of disk a rollout
set -eu
n=${1:-1000000}
caper=${CAPER:-bin/caper}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

"$caper" sample "$dir/bench" 2>/dev/null
grep -iv ' limit ' "$dir/bench/rollouts/train.jsonl" | awk -v n="$n" '
  { at = index($0, "\",\"source\":"); head[NR] = substr($0, 1, at - 1); tail[NR] = substr($0, at) }
  END { for (i = 0; i < n; i++) { j = i % NR + 1; print head[j] " LIMIT " 1000000 + i tail[j] } }
' >"$dir/rollouts.jsonl"

"$caper" annotate --bench "$dir/bench" --split train --timeout 1s --rollouts "$dir/rollouts.jsonl" --out "$dir/tuples.jsonl" \
  --summary "$dir/summary.json" 2>"$dir/log" &
pid=$!
echo "seconds  caper_MiB  workers_MiB  tuples_MiB"
start=$(date +%s)
while kill -0 $pid 2>/dev/null; do
  own=$(awk '/^VmRSS/ { print int($2 / 1024) }' /proc/$pid/status 2>/dev/null || true)
  workers=$(ps -o rss= --ppid $pid | awk '{ sum += $1 } END { print int(sum / 1024) }')
  written=$(du -m "$dir"/tuples.jsonl* 2>/dev/null | awk '{ sum += $1 } END { print sum + 0 }')
  printf '%7d  %9s  %11s  %10s\n' $(($(date +%s) - start)) "${own:-gone}" "$workers" "$written"
  sleep 10
done
wait $pid
sed -n '1,/^$/p' "$dir/log" | grep -v level=INFO
