"""Generation with transformers: the other side of benchmarks/generate.

    peer.py MODEL_FOLDER THREADS

reads one JSON object a line, {"prompts": [[id, ...], ...], "new": N, "greedy": BOOL}, all prompts of
one length, continues each by N tokens in one batch with the key-value cache, and answers
{"seconds": ..., "tokens": [[id, ...], ...]}.
"""

import json
import sys
import time

import torch
import transformers


def main():
    folder, threads = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(threads)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    for line in sys.stdin:
        request = json.loads(line)
        ids = torch.tensor(request["prompts"])
        new = request["new"]
        started = time.perf_counter()
        with torch.inference_mode():
            out = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=not request["greedy"], top_k=0,
                                 max_new_tokens=new, min_new_tokens=new, pad_token_id=0)
        seconds = time.perf_counter() - started
        print(json.dumps({"seconds": seconds, "tokens": out[:, ids.shape[1]:].tolist()}), flush=True)


main()
