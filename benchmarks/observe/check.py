"""Compares what TensorBoard's own reader and Prometheus' own parser find in a run with its metrics.jsonl.

    python check.py RUN [EXPOSITION]

RUN/tensorboard was written by `caper report tensorboard RUN`; EXPOSITION is what /metrics answered while the
run was under way. Values in event files are float32.
"""
import json
import sys

from prometheus_client.parser import text_string_to_metric_families
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def flatten(prefix, value, scalars, counts):
    if isinstance(value, (bool, int, float)):
        scalars[prefix] = float(value)
    elif isinstance(value, list) and value and all(type(x) in (int, float) for x in value):
        counts[prefix] = value
    elif isinstance(value, dict) and value and all(k.isdigit() for k in value):
        counts[prefix] = [value.get(str(i), 0) for i in range(1 + max(map(int, value)))]
    elif isinstance(value, dict):
        for key, inner in value.items():
            flatten(f"{prefix}/{key}", inner, scalars, counts)


def main():
    run = sys.argv[1]
    expected, histograms = {}, {}
    for text in open(f"{run}/metrics.jsonl"):
        line = json.loads(text)
        step, scalars, counts = line.pop("step"), {}, {}
        for name, value in line.items():
            flatten(name, value, scalars, counts)
        for name, value in scalars.items():
            expected.setdefault(name, []).append((step, value))
        for name, value in counts.items():
            histograms.setdefault(name, []).append((step, value))

    events = EventAccumulator(f"{run}/tensorboard", size_guidance={"scalars": 0, "histograms": 0})
    events.Reload()
    assert set(events.Tags()["scalars"]) == set(expected), set(events.Tags()["scalars"]) ^ set(expected)
    assert set(events.Tags()["histograms"]) == set(histograms)
    values = 0
    for name, points in expected.items():
        found = events.Scalars(name)
        assert [e.step for e in found] == [step for step, _ in points], name
        for event, (_, value) in zip(found, points):
            assert abs(event.value - value) <= 1e-6 * abs(value) + 1e-37, (name, event, value)
            values += 1
    for name, points in histograms.items():
        for event, (step, counts) in zip(events.Histograms(name), points, strict=True):
            assert event.step == step and event.histogram_value.num == sum(counts), (name, step)
            assert list(event.histogram_value.bucket) == counts, (name, step)
    print(f"{run}: TensorBoard reads {values} values of {len(expected)} scalars and {len(histograms)} histograms, as in metrics.jsonl")

    if len(sys.argv) > 2:
        gauges = 0
        for family in text_string_to_metric_families(open(sys.argv[2]).read()):
            assert family.type == "gauge" and family.name.startswith("caper_train_"), family
            name = family.name.removeprefix("caper_train_")
            for sample in family.samples:
                of = sample.labels.get("of")
                points = expected.get(name if of is None else f"{name}/{of}", [])
                assert name == "step" or name in histograms or sample.value in [v for _, v in points], sample
                gauges += 1
        assert gauges > 0, "no gauge"
        print(f"{sys.argv[2]}: Prometheus' parser reads {gauges} gauges, each a value of metrics.jsonl")


main()
