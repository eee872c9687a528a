"""Reads one scrape in both formats by the parsers of prometheus_client, and compares them.

    parse_metrics.py TEXT OPENMETRICS

Every sample must be in both with the same value. Prints how many families and samples there are.
"""
import sys

from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse_text


def samples(families):
    found = {}
    for family in families:
        for sample in family.samples:
            if sample.name.endswith("_created"):
                continue
            labels = dict(sample.labels)
            if "le" in labels:
                labels["le"] = float(labels["le"])
            key = (sample.name, tuple(sorted(labels.items())))
            assert key not in found, f"{key} is there twice"
            found[key] = sample.value
    return found


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def main():
    text = list(parse_text(read(sys.argv[1])))
    openmetrics = list(parse_openmetrics(read(sys.argv[2])))
    old, new = samples(text), samples(openmetrics)
    for key in sorted(old.keys() ^ new.keys()):
        sys.exit(f"only one format has {key}")
    for key, value in old.items():
        if value != new[key]:
            sys.exit(f"{key}: {value} and {new[key]}")
    units = {family.name: family.unit for family in openmetrics}
    for name, unit in units.items():
        for known in ("bytes", "seconds"):
            if name.endswith(known) and unit != known:
                sys.exit(f"{name} has no unit")
    for family in openmetrics:
        if not family.documentation:
            sys.exit(f"{family.name} has no help")
    print(f"{len(openmetrics)} families, {len(new)} samples")


main()
