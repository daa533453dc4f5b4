"""Writes the benchmark's texts, one {"text": ...} a line, each of them once, from Spider and BIRD data:
of every database its schema as CREATE TABLE statements, of every question its words, its gold SQL
and the SQL that systems predicted, as much of that as is wanted.

    corpus.py DATA_FOLDER OUT.jsonl [MEGABYTES]
"""

import itertools
import json
import pathlib
import random
import sys


def create_tables(schema):
    """The statements that make a database of tables.json."""
    keys = {key for group in schema["primary_keys"] for key in (group if isinstance(group, list) else [group])}
    text = []
    for t, table in enumerate(schema["table_names_original"]):
        lines = []
        for c, (owner, name) in enumerate(schema["column_names_original"]):
            if owner == t:
                lines.append(f"    `{name}` {schema['column_types'][c].upper()}" + (" PRIMARY KEY" if c in keys else ""))
        for here, there in schema["foreign_keys"]:
            owner, name = schema["column_names_original"][here]
            if owner == t:
                other, column = schema["column_names_original"][there]
                lines.append(f"    FOREIGN KEY (`{name}`) REFERENCES `{schema['table_names_original'][other]}`(`{column}`)")
        text.append(f"CREATE TABLE `{table}` (\n" + ",\n".join(lines) + "\n);\n")
    return "\n".join(text)


def texts(data):
    for name in ["spider/tables.json", "bird/dev_tables.json", "bird/train_tables.json"]:
        yield from map(create_tables, json.loads((data / name).read_text()))
    for path in sorted((data / "bird/schemas").glob("*.sql")):
        yield path.read_text()
    for name in ["spider/train.json", "spider/dev.json", "bird/dev.json"]:
        for q in json.loads((data / name).read_text()):
            yield q["question"] + ("\n" + q["evidence"] if q.get("evidence") else "")
            yield q.get("query") or q["SQL"]


def predictions(data):
    for name in ["spider_dev", "bird_dev"]:
        for line in (data / f"predictions/{name}.jsonl").open():
            for p in json.loads(line)["preds"].values():
                yield p["sql"]


def main():
    data, out = pathlib.Path(sys.argv[1]), sys.argv[2]
    want = int(float(sys.argv[3] if len(sys.argv) > 3 else 3) * 1e6)
    chosen, size = {}, 0
    for text in itertools.chain(texts(data), predictions(data)):
        if text not in chosen and size < want:
            chosen[text] = True
            size += len(text.encode())
    shuffled = list(chosen)
    random.Random(1).shuffle(shuffled)
    with open(out, "w") as f:
        for text in shuffled:
            f.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
    print(f"{len(shuffled)} texts, {size / 1e6:.2f} MB", file=sys.stderr)


main()
