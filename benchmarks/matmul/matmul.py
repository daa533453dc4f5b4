"""Matrix products of linear layers by PyTorch (oneDNN, MKL) and by the engine, in turn.

    python matmul.py ENGINE [--precision fp32|bf16] [--threads 1,2] [--rounds 3] [--only TEXT]

ENGINE is the binary of ./benchmarks/matmul. For each shape the two take turns; a turn's
time is its shortest call, a shape's the median over the turns. PyTorch writes into a tensor
that exists, and its bf16 operands are bf16 in memory; the engine's are float32 in memory,
rounded during the call.
"""
import argparse, statistics, subprocess, time
import torch

CUBE = [("cube", 1024, 1024, 1024)]
SKINNY = [(f"rows {rows}", rows, i, o) for rows in (512, 2048) for i, o in (
    (64, 64), (64, 192), (192, 64), (128, 128), (128, 384), (384, 128),
    (256, 256), (256, 768), (768, 256), (64, 2560), (256, 4096))]
DECODE = [(f"decode {rows}", rows, i, o) for rows in (1, 4, 8, 32) for i, o in ((64, 192), (256, 256), (256, 768), (768, 256), (256, 4096))]
WORK = [("y", *s) for s in CUBE + SKINNY + DECODE] + [(f, *s) for f in ("dx", "dw") for s in CUBE + SKINNY]


def torch_product(form, rows, i, o, dtype):
    x, w, y = (torch.randn(shape, dtype=dtype) for shape in ((rows, i), (o, i), (rows, o)))
    if form == "y":
        return lambda: torch.mm(x, w.t(), out=y)
    if form == "dx":
        return lambda: torch.mm(y, w, out=x)
    return lambda: torch.mm(y.t(), x, out=w)


def shortest(f, seconds):
    f()
    best, calls, end = 1e9, 0, time.perf_counter() + seconds
    while calls < 5 or time.perf_counter() < end:
        calls += 1
        start = time.perf_counter()
        f()
        best = min(best, time.perf_counter() - start)
    return best


def main():
    p = argparse.ArgumentParser()
    p.add_argument("engine")
    p.add_argument("--precision", default="fp32,bf16")
    p.add_argument("--threads", default="1,2")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=0.03, help="of one turn")
    p.add_argument("--only", default="")
    a = p.parse_args()
    ours = subprocess.Popen([a.engine], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for precision in a.precision.split(","):
        dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[precision]
        for threads in map(int, a.threads.split(",")):
            torch.set_num_threads(threads)
            print(f"\n{precision}, {threads} threads: GFLOP/s\n{'product':>9} {'':12}{'rows':>5} {'in':>5} {'out':>5} {'torch':>7} {'caper':>7}  ratio")
            ratios = {}
            for form, kind, rows, i, o in WORK:
                if a.only not in f"{form} {kind} {rows} {i} {o}":
                    continue
                f = torch_product(form, rows, i, o, dtype)
                theirs, mine = [], []
                for _ in range(a.rounds):
                    theirs.append(shortest(f, a.seconds))
                    time.sleep(0.005)  # OpenMP's threads wait for more work at full speed for a while
                    ours.stdin.write(f"{form} {rows} {i} {o} {threads} {precision} {a.seconds}\n")
                    ours.stdin.flush()
                    mine.append(float(ours.stdout.readline()))
                theirs, mine = statistics.median(theirs), statistics.median(mine)
                flops = 2e-9 * rows * i * o
                ratios.setdefault(kind.split()[0], []).append(theirs / mine)
                print(f"{form:>9} {kind:12}{rows:5} {i:5} {o:5} {flops/theirs:7.1f} {flops/mine:7.1f}  {theirs/mine:.2f}", flush=True)
            for kind, r in ratios.items():
                print(f"  {kind}: least {min(r):.2f}, geometric mean {statistics.geometric_mean(r):.2f}")


main()
