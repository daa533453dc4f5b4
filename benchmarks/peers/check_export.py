"""Opens model folders that caper exported with Python's safetensors, transformers, peft
and tokenizers, and compares what they compute with caper's numbers in peers.json.

    python check_export.py FOLDER...

Exit status 0 when everything agrees, 1 when something does not.
"""

import json
import pathlib
import sys
import tempfile

import torch
from peft import PeftModel
from safetensors import safe_open
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer

# Absolute, on logits and scores of two float32 programs. A trained delta net can be
# worse conditioned: then ten times what float32 costs caper against its own float64.
TOLERANCE = 1e-4
ROUNDINGS = 10


ADAPTER = "adapter_model.safetensors"


def check_weights(folder):
    """safetensors alone: the file opens, and every element is finite."""
    adapter = folder / ADAPTER
    with safe_open(adapter if adapter.exists() else folder / "model.safetensors", framework="pt") as file:
        for name in file.keys():
            assert torch.isfinite(file.get_tensor(name)).all(), name
        return len(file.keys())


def load(folder):
    """The model by its architecture, with every tensor where transformers wants it."""
    config = json.loads((folder / "config.json").read_text())
    reward = config["architectures"][0].endswith("SequenceClassification")
    auto = AutoModelForSequenceClassification if reward else AutoModelForCausalLM
    base = folder
    if (folder / ADAPTER).exists():
        base = json.loads((folder / "adapter_config.json").read_text())["base_model_name_or_path"]
    model, info = auto.from_pretrained(
        base, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
    )
    wrong = {key: sorted(value) for key, value in info.items() if value}
    assert not wrong, f"tensors do not fit: {wrong}"
    assert type(model).__name__ == config["architectures"][0], type(model).__name__
    if base != folder:
        model = load_adapter(model, folder)
    return model.eval(), reward


def load_adapter(model, folder):
    """The base model with the adapter that PEFT reads, and writes again as it was."""
    adapted = PeftModel.from_pretrained(model, folder)
    ours = load_file(folder / ADAPTER)
    with tempfile.TemporaryDirectory() as again:
        adapted.save_pretrained(again)
        theirs = load_file(pathlib.Path(again) / ADAPTER)
    assert ours.keys() == theirs.keys(), set(ours) ^ set(theirs)
    for name in ours:
        assert torch.equal(ours[name], theirs[name]), name
    return adapted.base_model.model


def check_values(model, reward, sequences):
    """Worst difference of logits, or of scores at every token, and what is allowed."""
    worst, allowed = 0.0, TOLERANCE
    for sequence in sequences:
        ids = torch.tensor([sequence["ids"]])
        ours = torch.tensor(sequence["values"])
        with torch.no_grad():
            if reward:
                theirs = model.score(model.model(ids).last_hidden_state)[0]
                last = model(ids).logits[0]  # the class itself reads the last token
                worst = max(worst, (last - ours[-1]).abs().max().item())
            else:
                theirs = model(ids).logits[0]
        assert theirs.shape == ours.shape, (theirs.shape, ours.shape)
        worst = max(worst, (theirs - ours).abs().max().item())
        allowed = max(allowed, ROUNDINGS * sequence["rounding"])
    return worst, allowed


def check_tokenizer(folder, texts):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for case in texts:
        ids = tokenizer.encode(case["text"], add_special_tokens=False)
        assert ids == case["ids"], f"{case['text']!r}: {ids}, caper {case['ids']}"
    return len(texts)


def main():
    failed = False
    for folder in map(pathlib.Path, sys.argv[1:]):
        try:
            results = json.loads((folder / "peers.json").read_text())
            tensors = check_weights(folder)
            model, reward = load(folder)
            worst, allowed = check_values(model, reward, results["sequences"])
            texts = check_tokenizer(folder, results["texts"])
            assert worst <= allowed, f"values differ by {worst:.2g}, allowed {allowed:.2g}"
            print(f"{folder.name}: {tensors} tensors, {type(model).__name__}, values within {worst:.1e} (allowed {allowed:.1e}), {texts} texts alike")
        except Exception as error:  # one bad folder does not hide the others
            failed = True
            print(f"{folder.name}: FAILED: {type(error).__name__}: {error}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
