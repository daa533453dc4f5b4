"""Training steps in PyTorch and transformers: the other side of benchmarks/step.

    peer.py MODEL_FOLDER THREADS

reads one JSON object a line, {"task": ..., "mode": ..., "sequences": [[id, ...], ...]},
runs one optimiser step on it, and answers {"seconds": ..., "loss": ...} or {"error": ...}.

task: "lm", next-token loss of all sequences; "pairs", preference of each sequence at an even
place over the next one by a score at the last token. All sequences have the same length and
stand beside each other in one batch, as trainers do it that do not share prompts.
mode: "eager", "compile" (torch.compile), "bf16" (autocast on the CPU).

Every combination has its own copy of the model and its own AdamW, from the same weights.
"""

import contextlib
import json
import sys
import time

import torch
import transformers


class Run:
    def __init__(self, folder, task, mode):
        if task == "lm":
            self.model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        else:
            self.model = transformers.AutoModelForSequenceClassification.from_pretrained(folder + "-reward", dtype=torch.float32)
            self.model.config.pad_token_id = -1  # no token is padding: all sequences are of one length
        self.task = task
        # fused is what transformers' Trainer takes, and the fastest.
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
        self.forward = torch.compile(self.model) if mode == "compile" else self.model
        self.context = contextlib.nullcontext
        if mode == "bf16":
            self.context = lambda: torch.autocast("cpu", dtype=torch.bfloat16)

    def loss(self, ids):
        if self.task == "lm":
            return self.forward(input_ids=ids, labels=ids, use_cache=False).loss
        # score reads every position's hidden state; the last token's is the sequence's.
        scores = self.forward(input_ids=ids, use_cache=False).logits[:, 0]
        return -torch.nn.functional.logsigmoid(scores[0::2] - scores[1::2]).mean()

    def step(self, sequences):
        started = time.perf_counter()
        ids = torch.tensor(sequences)
        with self.context():
            loss = self.loss(ids)
        loss.backward()
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        return {"loss": loss.item(), "seconds": time.perf_counter() - started}


def main():
    folder, threads = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(threads)
    transformers.logging.set_verbosity_error()
    runs = {}
    for line in sys.stdin:
        request = json.loads(line)
        key = request["task"], request["mode"]
        try:
            if key not in runs:
                runs[key] = Run(folder, *key)
            answer = runs[key].step(request["sequences"])
        except Exception as error:  # a mode that this version cannot run is a result, too
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), flush=True)


main()
