"""For every run of the tests, the notebooks' among them."""

import os
import tempfile


def pytest_configure(config):
    # Solutions that the tests try are nobody's progress.
    os.environ["DYNGUARD_PROGRESS"] = os.path.join(tempfile.mkdtemp(), "progress.json")
    # A slow machine shows a progress bar where a fast one, whose outputs are saved, shows none.
    os.environ["TQDM_DISABLE"] = "1"
    # Where matplotlib has never run, its first import lists the system's fonts. If that takes more than
    # five seconds it says so on stderr, inside a notebook's cell, whose saved output doesn't say so.
    first = not hasattr(config, "workerinput")  # not again in each process that pytest-xdist starts
    if first and config.getoption("nbval", False):
        import matplotlib.font_manager  # noqa: F401
