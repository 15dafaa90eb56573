"""The program of the README, and its pictures: `python docs/program.py` draws them anew (a test compares)."""

from pathlib import Path

import torch

import dynguard_lite as dg


def program(x, w, b):
    y = x @ w
    if y.shape[0] > 3:
        y = y * 2
    return y + b


INPUTS = torch.ones(4, 2), torch.ones(2, 3), torch.ones(3)
REFUSED = torch.ones(2, 2), torch.ones(2, 3), torch.ones(3)


def pictures() -> dict[str, dg.Drawing]:
    """By file name: one for each analysis, and one with inputs that a guard refuses."""
    drawn = {f"{analysis}.svg": dg.draw(dg.trace(program, *INPUTS, analysis=analysis)) for analysis in dg.ANALYSES}
    return {**drawn, "refused.svg": dg.draw(dg.trace(program, *INPUTS), *REFUSED)}


if __name__ == "__main__":
    for name, picture in pictures().items():
        picture.save(Path(__file__).parent / name)
