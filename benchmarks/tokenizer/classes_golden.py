"""Writes model/tokenizer/testdata/classes.txt: how the tokenizers library splits short texts with each
character, by both patterns. A line has the first of a range of characters that are split alike, and
the lengths of the pieces of a+c+c, c+! and a+c+b. The range ends before that of the next line.

    classes_golden.py OUT.txt
"""

import sys

from tokenizers import Regex, pre_tokenizers

REST = r"|\p{N}| ?[^\s%s\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
START = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?"
QWEN2 = START + r"\p{L}+" + REST % r"\p{L}"
QWEN35 = START + r"[\p{L}\p{M}]+" + REST % r"\p{L}\p{M}"
SPLITTERS = [pre_tokenizers.Split(Regex(e), "isolated") for e in (QWEN2, QWEN35)]


def pieces(c):
    texts = ["a" + c + c, c + "!", "a" + c + "b"]
    return " ".join("+".join(str(b - a) for _, (a, b) in s.pre_tokenize_str(t)) for s in SPLITTERS for t in texts)


def main():
    with open(sys.argv[1], "w") as out:
        start, alike = 0, pieces(chr(0))
        for c in range(1, 0x110001):
            if 0xD800 <= c < 0xE000:
                continue
            now = pieces(chr(c)) if c < 0x110000 else None
            if now != alike:
                out.write(f"{start:X} {alike}\n")
                start, alike = c, now


main()
