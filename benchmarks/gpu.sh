#!/bin/sh
# Proves and measures every kernel on this machine's GPU, in under ten minutes. make gpu-bundle
# makes the folder that it lies in, with all it needs: the machine has to have the NVIDIA
# driver, cuBLASLt, and, where the folder cubins holds nothing for its card, NVRTC.
#
#   ./gpu.sh [GPU]        the number of the GPU, 0 at first
#
# Results lie in results/ afterwards: report.md, and JSON, logs and clocks beside it. It fails
# if a kernel is wrong.
set -u
here=$(cd "$(dirname "$0")" && pwd)
gpu=${1:-0}
out=$here/results
rm -rf "$out"
mkdir -p "$out"
cd "$here" || exit 1
failed=0

note() { echo "$(date +%H:%M:%S) $*" | tee -a "$out/log.txt" >&2; }
clocks() { nvidia-smi -i "$gpu" --query-gpu=clocks.sm,clocks.mem,temperature.gpu,power.draw --format=csv,noheader >>"$out/clocks.txt" 2>/dev/null; }

./caper doctor --json >"$out/doctor.json" 2>"$out/doctor.txt" || { note "caper doctor failed"; exit 1; }
grep -q '"gpu_ready": *true' "$out/doctor.json" || { note "no usable GPU:"; ./caper doctor >&2; exit 1; }
command -v nvidia-smi >/dev/null && nvidia-smi -i "$gpu" -q -d CLOCK,POWER,MEMORY >"$out/nvidia-smi.txt" 2>&1

note "kernels against their specifications"
{
    echo "# Kernels on a GPU"
    echo
    command -v nvidia-smi >/dev/null && nvidia-smi -i "$gpu" --query-gpu=name,driver_version,memory.total --format=csv,noheader
    date -u +%Y-%m-%d
    echo
    echo "| test | result | seconds |"
    echo "|---|---|---|"
} >"$out/report.md"
for test in tests/*.test; do
    name=$(basename "$test" .test)
    start=$(date +%s)
    if CAPER_TEST_GPU=$gpu timeout 120 "$test" -test.run 'CUDA|^Test$' -test.v >"$out/$name.log" 2>&1; then result=passed; else
        result=FAILED
        failed=1
        note "$name failed: $out/$name.log"
    fi
    echo "| $name | $result | $(($(date +%s) - start)) |" >>"$out/report.md"
done

if command -v compute-sanitizer >/dev/null; then
    note "compute-sanitizer"
    for name in rmsnorm swiglu causalconv embedding; do
        [ -x "tests/$name.test" ] || continue
        CAPER_TEST_GPU=$gpu timeout 60 compute-sanitizer --error-exitcode 9 "tests/$name.test" -test.run '^Test$' >"$out/sanitizer-$name.log" 2>&1
        [ $? -eq 9 ] && { failed=1; note "compute-sanitizer found something in $name: $out/sanitizer-$name.log"; }
    done
else
    note "compute-sanitizer is not here: left out"
fi

measure() { # name, then flags of caper bench kernels
    name=$1
    shift
    note "training steps: $name"
    clocks
    if timeout 150 ./caper bench kernels --device "cuda:$gpu" --json "$@" >"$out/$name.json" 2>"$out/$name.err"; then
        { echo; echo "## $name"; echo; echo "\`caper bench kernels $*\`"; echo; ./caper bench show "$out/$name.json"; } >>"$out/report.md"
    else
        failed=1
        note "$name: $(tail -1 "$out/$name.err")"
        { echo; echo "## $name"; echo; tail -3 "$out/$name.err"; } >>"$out/report.md"
    fi
    clocks
}
measure "0.8B" --model 0.8B --layers 0 --checkpointing selective --repeats 3
measure "9B, 8 layers" --model 9B --layers 8 --checkpointing selective --repeats 3

cat >>"$out/report.md" <<'END'

## What others reach, by their own figures

| kernel | theirs |
|---|---|
| bf16 product of the model's shapes | cuBLASLt 770-800 TFLOP/s (H200) |
| linear + log-prob forward, H 4096, V 131k | Liger 706-738 TFLOP/s (H100) |
| attention forward, head_dim 256, causal, 8k | FlashAttention 3 628 TFLOP/s (H100, fp16) |
| attention backward, head_dim 256, 16k | FlashAttention 3 480 TFLOP/s (H200) |
| gated delta rule forward, 16/32 heads x 128, 1 x 8,192 | FlashQLA 0.280 ms, FLA 0.472 ms |
| gated delta rule backward, same | FlashQLA 0.789 ms, FLA 1.444 ms |
| RMSNorm forward, 4096 x 16384 | Liger 0.095 ms (H100) |
| SwiGLU forward, 8192 x 16384 | Liger 0.267 ms (H100) |
END
note "done: $out/report.md"
exit $failed
