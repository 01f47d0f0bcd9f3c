"""``python -m benchmarks.labeled [--draws N] [--only PART]``: measure coverage and width, write tables and plot."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from benchmarks.labeled.bias import measured_biases
from benchmarks.labeled.coverage import Cell, measure
from benchmarks.labeled.draws import simple_draws, stratified_draws
from benchmarks.labeled.page import LEAST_COVERAGE, MOST_RATIO, inserted, measured_part, summary_part
from benchmarks.labeled.plot import plot
from benchmarks.labeled.populations import N_LABELS, Population, of_set, simulated
from benchmarks.labeled.scored_sets import scored_sets
from benchmarks.labeled.stopping import Stopped, stopping_cells
from benchmarks.validity.bias import encoded
from benchmarks.validity.data import VARIABLE, DataProblem, LabelledData, data_folder
from benchmarks.validity.progress import tell

ROOT = Path(__file__).resolve().parents[2]
CACHE, MEASURED = ".bench/labeled", "benchmarks/labeled/measured.json"
BIAS = "benchmarks/validity/recorded_bias.json"
PAGE, RESULTS, PLOT = "docs/labeling.md", "benchmarks/labeled/RESULTS.md", "docs/labeling.svg"
PARTS = ("sets", "simulation", "stopping")
# Where the first draws leave a doubt whether coverage is high enough, all draws are taken.
SURELY_ENOUGH, FIRST_DRAWS = 0.965, 1_000


class Measured(Struct):
    """All cells of the last measurement."""

    sets: list[Cell] = []
    simulation: list[Cell] = []
    stopping: list[Stopped] = []


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Exit code: 0 done (or no data), 1 an interval holds too rarely, 2 usage, 3 the data cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.labeled", description=__doc__)
    parser.add_argument("--draws", type=int, default=20_000, metavar="N", help="draws a cell (default: 20000)")
    parser.add_argument("--only", choices=PARTS, help="measure this part; the others stay as they were measured")
    options = parser.parse_args(arguments)
    wanted = [options.only] if options.only else list(PARTS)
    parts: dict[str, list[Any]] = {}
    if "sets" in wanted:
        folder = data_folder(root)
        if folder is None:
            print(f"labeled: sets skipped, no labeled data here ({VARIABLE} names its folder)")
        else:
            try:
                data = LabelledData(folder)
                scored = list(scored_sets(data, root / CACHE))
                (root / BIAS).write_bytes(encoded(measured_biases(data, scored)))
            except DataProblem as problem:
                print(f"labeled: {problem}", file=sys.stderr)
                return 3
            parts["sets"] = measured_cells(map(of_set, scored), options.draws)
    if "simulation" in wanted:
        parts["simulation"] = measured_cells(simulated(), options.draws)
    if "stopping" in wanted:
        parts["stopping"] = stopping_cells(max(100, options.draws // 10))
    if not parts:
        return 0
    found = replace(_read(root / MEASURED), **parts)
    (root / MEASURED).write_bytes(_encoded(found))
    part = measured_part(found.sets, found.simulation, found.stopping)
    for name, text in ((PAGE, summary_part(found.sets, found.simulation)), (RESULTS, part)):
        page = root / name
        page.write_text(inserted(page.read_text(encoding="utf-8"), text), encoding="utf-8")
    (root / PLOT).write_text(plot([*found.sets, *found.simulation]), encoding="utf-8")
    print(part)
    return report_misses([*found.sets, *found.simulation])


def measured_cells(populations: Iterable[Population], n_draws: int) -> list[Cell]:
    """Every population with every number of labels that is not all of it; both ways of drawing, the lower coverage."""
    cells = []
    for population in populations:
        tell(f"{population.name}, {population.scorer} …")
        cells += [_measured(population, n, n_draws) for n in N_LABELS if n < len(population.labels)]
    return cells


def _measured(population: Population, n: int, n_draws: int) -> Cell:
    both = []
    for draw in (stratified_draws, simple_draws):
        cell = measure(population, n, min(n_draws, FIRST_DRAWS), draw)
        if cell.coverage < SURELY_ENOUGH and n_draws > FIRST_DRAWS:
            cell = measure(population, n, n_draws, draw)
        both.append(cell)
    return min(both, key=lambda cell: cell.coverage)


def report_misses(cells: Sequence[Cell]) -> int:
    """Name the cells in which the interval holds too rarely, or is wider than labels alone allow."""
    for cell in cells:
        named = f"{cell.population}, {cell.scorer}, {cell.n_labels} labels"
        if cell.coverage < LEAST_COVERAGE:
            print(f"labeled: {named}: holds in {cell.coverage:.4f}")
        if cell.ratio > MOST_RATIO:
            print(f"labeled: {named}: {cell.ratio:.3f} times as wide as labels alone")
    return int(any(cell.coverage < LEAST_COVERAGE or cell.ratio > MOST_RATIO for cell in cells))


def _read(path: Path) -> Measured:
    return msgspec.json.decode(path.read_bytes(), type=Measured) if path.is_file() else Measured()


def _encoded(found: Measured) -> bytes:
    """One cell a line."""
    parts = {name: getattr(found, name) for name in PARTS}
    lines = {
        name: ",\n".join(f"  {msgspec.json.encode(each).decode()}" for each in cells) for name, cells in parts.items()
    }
    return ("{\n" + ",\n".join(f'"{name}": [\n{text}\n]' for name, text in lines.items()) + "\n}\n").encode()


if __name__ == "__main__":
    sys.exit(main())
