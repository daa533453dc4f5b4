"""One tokenizer of another library, on one thread. It reads jobs from stdin, a line each, does the
job once for nothing and then for a quarter of a second, and answers with a line: the seconds that
it takes and the SHA-256 of the result. See main.go.

    peer.py NAME TOKENIZER_JSON TEXTS.jsonl
"""

import hashlib
import json
import os
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

import numpy


def huggingface(path):
    from tokenizers import Tokenizer

    t = Tokenizer.from_file(path)
    return lambda texts: [e.ids for e in t.encode_batch_fast(texts, add_special_tokens=False)], lambda ids: t.decode(ids).encode()


def kitoken(path):
    import kitoken

    t = kitoken.Kitoken.from_file(path)
    return lambda texts: t.encode_all(texts, True), t.decode


def quicktok(path):  # it has its own copy of the Qwen3 vocabulary
    import quicktok

    t = quicktok.get_encoding("qwen3")
    return lambda texts: [t.encode_batch(texts, 1)[0]], t.decode_bytes


def main():
    name, path, corpus = sys.argv[1:]
    encode, decode = {"tokenizers": huggingface, "kitoken": kitoken, "quicktok": quicktok}[name](path)
    with open(corpus) as f:
        texts = [json.loads(line)["text"] for line in f]
    whole = "\n".join(texts)
    ids = [int(i) for part in encode([whole]) for i in part]
    jobs = {"whole": lambda: encode([whole]), "texts": lambda: encode(texts), "decode": lambda: decode(ids)}
    for job in map(str.strip, sys.stdin):
        jobs[job]()
        start, passes, seconds = time.perf_counter(), 0, 0
        while seconds < 0.25:
            result = jobs[job]()
            passes += 1
            seconds = time.perf_counter() - start
        if job != "decode":
            result = numpy.concatenate([numpy.asarray(part, dtype="<u4") for part in result if len(part)]).tobytes()
        print(seconds / passes, hashlib.sha256(result).hexdigest(), flush=True)


main()
