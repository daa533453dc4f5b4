#!/bin/sh
# Proves and measures every kernel on this machine's GPU, in under ten minutes. make gpu-bundle
# makes the folder that it lies in, with all it needs: the machine has to have the NVIDIA
# driver, cuBLASLt, and, where the folder cubins holds nothing for its card, NVRTC.
#
#   ./gpu.sh [GPU]        the number of the GPU, 0 at first, as nvidia-smi counts
#
# Results lie in results/ afterwards: report.md and report.json, with logs and clocks beside
# them. It fails if a kernel is wrong. CAPER_TRY=1 measures toy sizes, to try the script itself.
set -u
here=$(cd "$(dirname "$0")" && pwd)
gpu=${1:-0}
out=$here/results
rm -rf "$out"
mkdir -p "$out"
cd "$here" || exit 1
export CUDA_DEVICE_ORDER=PCI_BUS_ID
export CAPER_CUBINS="${CAPER_CUBINS:-$here/cubins}"
export CAPER_CACHE="${CAPER_CACHE:-$out/cache}"
deadline=$(($(date +%s) + 590))

note() { echo "$(date +%H:%M:%S) $*" | tee -a "$out/log.txt" >&2; }
has() { command -v "$1" >/dev/null; }
# within SECONDS COMMAND runs it for so long at most, and no longer than the ten minutes.
within() {
    left=$((deadline - $(date +%s)))
    [ "$left" -gt "$1" ] && left=$1
    shift
    [ "$left" -gt 0 ] || return 124
    timeout "$left" "$@"
}

./caper doctor --json >"$out/doctor.json" 2>"$out/doctor.txt" || { note "caper doctor failed: $out/doctor.txt"; exit 1; }
grep -q '"gpu_ready": *true' "$out/doctor.json" || { note "no usable GPU:"; ./caper doctor >&2; exit 1; }
card="unknown: no nvidia-smi"
if has nvidia-smi; then
    nvidia-smi -i "$gpu" -q -d CLOCK,POWER,MEMORY >"$out/nvidia-smi.txt" 2>&1
    card=$(nvidia-smi -i "$gpu" --query-gpu=name,driver_version,memory.total --format=csv,noheader)
    nvidia-smi -i "$gpu" --query-gpu=timestamp,clocks.sm,clocks.mem,temperature.gpu,power.draw --format=csv -l 1 >"$out/clocks.csv" 2>/dev/null &
    clocks=$!
    trap 'kill "$clocks" 2>/dev/null' EXIT
fi

# test_one TEST runs one against its specification, and leaves a row of each report.
test_one() {
    name=$(basename "$1" .test)
    start=$(date +%s)
    CAPER_TEST_GPU=$gpu within 200 "$1" -test.run 'CUDA|^Test$' -test.v >"$out/$name.log" 2>&1
    case $? in
    0) result=passed ;;
    124) result="not finished" ;;
    *) result=FAILED ;;
    esac
    seconds=$(($(date +%s) - start))
    echo "| $name | $result | $seconds |" >"$out/$name.row"
    echo "{\"test\": \"$name\", \"result\": \"$result\", \"seconds\": $seconds}" >"$out/$name.part"
    [ "$result" = passed ] || note "$name: $result: $out/$name.log"
}

note "kernels against their specifications, on $card"
running=
for test in tests/*.test; do # four at a time: most of the work is the specification's, on the processor
    test_one "$test" &
    running="$running $!"
    # shellcheck disable=SC2086 # numbers, in words of their own
    set -- $running
    [ $# -lt 4 ] && continue
    wait "$1"
    shift
    running=$*
done
# shellcheck disable=SC2086
[ -z "$running" ] || wait $running
{
    echo "# Kernels on a GPU"
    echo
    echo "$card, $(date -u +%Y-%m-%d). Clocks, temperature and power of every second: clocks.csv. Data is random."
    echo
    echo "| test | result | seconds |"
    echo "|---|---|---|"
    cat "$out"/*.row
} >"$out/report.md"
failed=0
! grep -q FAILED "$out"/*.row || failed=1

# measure NAME FLAGS... runs caper bench kernels.
measure() {
    name=$1
    shift
    note "measuring $name"
    if within 150 ./caper bench kernels --device "cuda:$gpu" --json "$@" >"$out/$name.json" 2>"$out/$name.err"; then
        { echo; echo "## $name"; echo; echo "\`caper bench kernels $*\`"; echo; ./caper bench show "$out/$name.json"; } >>"$out/report.md"
    else
        failed=1
        note "$name: $(tail -1 "$out/$name.err")"
        { echo; echo "## $name"; echo; tail -3 "$out/$name.err"; } >>"$out/report.md"
        rm -f "$out/$name.json"
    fi
}
if [ -z "${CAPER_TRY:-}" ]; then
    measure operators --shapes --repeats 5
    measure steps-0.8B --model 0.8B --layers 0 --checkpointing selective --repeats 3
    measure steps-9B --model 9B --layers 8 --checkpointing selective --repeats 3
else
    measure operators --shapes --scale 1024 --repeats 1
    measure steps-0.8B --model 0.8B --layers 1 --scale 16 --prompt 8 --answer 4 --samples 2 --repeats 1
fi

# Each tool finds mistakes of another kind: memory, races, memory that nobody wrote, barriers.
if has compute-sanitizer; then
    for tool in memcheck racecheck initcheck synccheck; do
        for name in rmsnorm swiglu causalconv embedding; do
            [ -x "tests/$name.test" ] || continue
            note "compute-sanitizer $tool: $name"
            CAPER_TEST_GPU=$gpu within 40 compute-sanitizer --tool "$tool" --error-exitcode 9 "tests/$name.test" -test.run '^Test$' >"$out/$tool-$name.log" 2>&1
            case $? in
            9) found="FOUND SOMETHING"; failed=1; note "compute-sanitizer: $out/$tool-$name.log" ;;
            124) found="not finished" ;;
            *) found="nothing found" ;;
            esac
            echo "| $name | $tool | $found |" >>"$out/sanitizer.txt"
        done
    done
    { echo; echo "## compute-sanitizer"; echo; echo "| test | tool | result |"; echo "|---|---|---|"; cat "$out/sanitizer.txt"; } >>"$out/report.md"
else
    note "compute-sanitizer is not here: left out"
fi

{
    echo "{\"card\": \"$card\", \"date\": \"$(date -u +%Y-%m-%d)\", \"passed\": $([ $failed = 0 ] && echo true || echo false),"
    echo " \"tests\": ["
    sed '$!s/$/,/' <<END
$(cat "$out"/*.part)
END
    echo " ],"
    for name in operators steps-0.8B steps-9B; do
        [ -f "$out/$name.json" ] && { echo " \"$name\":"; cat "$out/$name.json"; echo ","; }
    done
    echo " \"machine\":"
    cat "$out/doctor.json"
    echo "}"
} >"$out/report.json"
rm -f "$out"/*.row "$out"/*.part
note "done: $out/report.md"
exit $failed
