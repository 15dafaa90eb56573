"""What holds of every notebook, apart from its outputs being right, which nbval compares.

Each rule is a function that raises AssertionError and says what to do. The second half of this file
builds a small course that keeps every rule, breaks them one at a time, and expects each break to be
refused: a check that can't fail would look just the same as one that passes.
"""

import copy
import json
import re
import statistics
from pathlib import Path

import jupytext
import nbformat
import pytest
from nbformat.v4 import new_output

from dynguard_lite import _regenerate

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
MAP = "00_start_here"

SVG = "image/svg+xml"
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:href|src)=\"([^\"]+)\"")
FENCED = re.compile(r"^```.*?^```", re.M | re.S)


class Book:
    """A notebook as a pair of files, either of which may be missing."""

    def __init__(self, path):
        self.folder, self.name = path.parent, path.stem
        self.number = self.name[:2]
        self.ipynb, self.py = path.with_suffix(".ipynb"), path.with_suffix(".py")
        self.again = f"python3 -m dynguard_lite regenerate {self.name}"

    @property
    def text(self):
        assert self.ipynb.is_file(), f"{self.py.name} has no .ipynb: {self.again}"
        return self.ipynb.read_bytes().decode("utf-8")

    @property
    def notebook(self):
        return nbformat.reads(self.text, as_version=nbformat.NO_CONVERT)

    def cells(self, kind=None):
        """(its number counted from 1, cell) for all cells, or for those of a kind."""
        return [(i, c) for i, c in enumerate(self.notebook.cells, 1) if kind in (None, c.cell_type)]

    def prose(self):
        """The text of the markdown cells, without fenced code."""
        return "\n\n".join(FENCED.sub("", cell.source) for _, cell in self.cells("markdown"))

    def neighbours(self):
        names = [book.name for book in books(self.folder)]
        here = names.index(self.name)
        return (names[here - 1] if here else None), (names[here + 1] if here + 1 < len(names) else None)


def books(folder):
    """All notebooks of a folder in the course's order, those that are half a pair included."""
    names = {path.stem for kind in ("*.py", "*.ipynb") for path in folder.glob(kind)}
    return [Book(folder / f"{name}.ipynb") for name in sorted(names)]


def lines(cell):
    """Lines of text; the blank ones that a formatter puts around definitions are nothing to read."""
    return sum(map(bool, map(str.strip, cell.source.splitlines())))


# ---- the rules ----------------------------------------------------------------------------------


def pair_is_equal(book):
    """Kind, text and tags, cell by cell: `jupytext --test` and `--diff` compare less."""
    cells = book.notebook.cells
    assert book.py.is_file(), f"{book.ipynb.name} has no .py, which is a notebook's source"
    source = jupytext.read(book.py, fmt="py:percent").cells
    for number, (ours, theirs) in enumerate(zip(source, cells, strict=False), 1):
        for what, a, b in [
            ("kind", ours.cell_type, theirs.cell_type),
            ("text", ours.source, theirs.source),
            ("tags", ours.metadata.get("tags", []), theirs.metadata.get("tags", [])),
        ]:
            assert a == b, f"cell {number}: {what} in .py and .ipynb differ ({book.again}):\n{a}\n--\n{b}"
    assert len(source) == len(cells), f"{len(source)} cells in .py, {len(cells)} in .ipynb ({book.again})"


def every_code_cell_was_executed_in_order(book):
    """nbval passes a cell that was never run."""
    for expected, (number, cell) in enumerate(book.cells("code"), 1):
        count = cell.execution_count
        assert count == expected, f"cell {number}: executed as number {count}, expected {expected}"


def no_cell_ended_in_an_error(book):
    for number, cell in book.cells("code"):
        for output in cell.outputs:
            failed = output.output_type == "error"
            assert not failed, f"cell {number}: {output.get('ename')}: catch it, print type and message"


def tags_are_known(book):
    """nbval reads tags and comments that skip a cell; a cell whose output isn't compared shows no diagram."""
    known = {"exercise", "check", "nbval-ignore-output"}
    for number, cell in book.cells():
        tags = set(cell.metadata.get("tags", []))
        assert tags <= known, f"cell {number}: tags {sorted(tags - known)}, expected some of {sorted(known)}"
        comment = re.search(r"^\s*#\s*(NBVAL_\w+|PYTEST_VALIDATE_\w+)", cell.source, re.M)
        assert not comment, f"cell {number}: {comment[1]}: use a tag, which readers don't see"
        if "nbval-ignore-output" in tags:
            diagram = any(SVG in output.get("data", {}) for output in cell.outputs)
            assert not diagram, f"cell {number}: a diagram in a cell whose output is not compared"


MACHINE = re.compile(
    r"""0x[0-9a-f]{5,}                             # an address
      | site-packages | dist-packages | ipykernel_ | ipython-input
      | (?<![\w.:/])/(?:home|root|Users|tmp|private|var/folders|usr|opt|work|mnt)/\w
      | \b[A-Z]:\\{1,2}(?:Users|Program|Windows)
    """,
    re.VERBOSE,
)


def nothing_tells_of_the_machine(book):
    """Of the machine, the user or the process that saved the notebook."""
    # a home as short as a word of the prose could be is no sign
    here = {str(path) for path in (Path.home(), NOTEBOOKS.parent) if len(path.parts) > 2}
    for number, cell in book.cells():
        texts = {"source": cell.source, "attachments": str(cell.get("attachments", ""))}
        for output in cell.get("outputs", ()):
            texts |= {kind: str(data) for kind, data in output.get("data", {}).items()}
            texts |= {output.get("name", "stream"): output.get("text", "")}
        for kind, text in texts.items():
            if not kind.startswith("image/") or kind == SVG:
                found = MACHINE.search(text)
                told = found[0] if found else next((path for path in here if path in text), None)
                assert told is None, f"cell {number}, {kind}: {told!r} will differ on another machine"


def pictures_have_a_text(book):
    """For a screen reader, a terminal and a notebook that isn't trusted; and no `<...Drawing object>`."""
    for number, cell in book.cells("code"):
        for output in cell.outputs:
            data = output.get("data", {})
            if any(kind.startswith("image/") for kind in data):
                text = data.get("text/plain", "").strip()
                assert text, f"cell {number}: a picture without text/plain"
                assert SVG not in data or not text.startswith("<"), f"cell {number}: {text} says nothing"


def no_widget_state(book):
    """What a kernel that is gone held. The text beside a widget stays."""
    assert "widgets" not in book.notebook.metadata, "the notebook's metadata hold widget state"
    for number, cell in book.cells("code"):
        for output in cell.outputs:
            held = _regenerate.WIDGET_VIEW in output.get("data", {})
            assert not held, f"cell {number}: a widget's random id"


def regenerate_would_write_the_same(book):
    """Metadata, ids, key order, line ends: all but the outputs, which nbval compares."""
    ids = [cell.get("id") for cell in json.loads(book.text)["cells"]]  # nbformat mends them when it reads
    assert len(ids) == len(set(ids)), "two cells have one id"
    notebook = book.notebook
    assert book.text == nbformat.writes(notebook) + "\n", f"not saved by: {book.again}"

    stripped = copy.deepcopy(notebook)
    _regenerate.strip(stripped)
    assert stripped == notebook, f"run times or widgets are saved; not saved by: {book.again}"

    for cell in stripped.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    expected = _regenerate.read_source(book.py)
    for number, (a, b) in enumerate(zip(stripped.cells, expected.cells, strict=True), 1):
        assert a == b, f"cell {number}: not as written by {book.again}:\n{a}\n--\n{b}"
    assert stripped == expected, f"metadata are not as written by {book.again}: {stripped.metadata}"


def size_is_a_lessons(book):
    """25 to 50 cells, stubs and checks of exercises aside; code cells of 8 lines (median), 30 at most."""
    cells = [c for c in book.cells() if not {"exercise", "check"} & set(c[1].metadata.get("tags", ()))]
    least = 3 if book.name == MAP else 25
    assert least <= len(cells) <= 50, f"{len(cells)} cells, expected {least} to 50"
    code = [(lines(cell), number) for number, cell in book.cells("code")]
    longest, number = max(code, default=(0, 0))
    assert longest <= 30, f"cell {number}: {longest} lines of code, expected 30 at most"
    median = statistics.median(count for count, _ in code) if code else 0
    assert median <= 8, f"half of the code cells have more than {median} lines, expected 8"


def words(book):
    """What is read on the way through: markdown, tables included, as separated by spaces.

    Not counted: fenced code, folded hints and solutions, the addresses of links, HTML tags, and signs
    that stand alone (a dash, the bars and rules of a table).
    """
    text = re.sub(r"<details>.*?</details>", "", book.prose(), flags=re.S)
    text = re.sub(r"\]\([^)]*\)|</?\w[^>]*>", " ", text)
    return sum(any(map(str.isalnum, word)) for word in text.split())


def prose_is_short(book):
    count = words(book)
    assert count < 1800, f"{count} words of prose, expected fewer than 1,800"


def opening_says_what_why_and_how_long(book):
    first = book.notebook.cells[0]
    assert first.cell_type == "markdown", "the first cell is not text"
    if book.name == MAP:
        assert re.match(r"# \S", first.source), "the first cell does not begin with a title"
        return
    title = rf"# {int(book.number)} · \S"
    assert re.match(title, first.source), f"the first cell does not begin with a title: {title}"
    for what in r"\*\*The question\.\*\* \S.*\?", r"\*Know first:\* \S", r"\*About \d+ minutes\.\*":
        assert re.search(what, first.source), f"the first cell lacks {what}"


def closing_is_complete(book):
    if book.name != MAP:
        headings = re.findall(r"^## (.*)$", book.prose(), re.M)
        for needed in "Summary", "Where this lives in PyTorch":
            assert needed in headings, f"no heading {needed!r} among {headings}"


def navigation_leads_to_the_neighbours(book):
    """At the top and at the end, to what stands before and after in the folder."""
    previous, following = book.neighbours()
    if book.name == MAP:
        targets = re.findall(r"\]\((\w+)\.ipynb\)", book.prose())
        lacking = {other.name for other in books(book.folder)} - {MAP, *targets}
        assert not lacking, f"the map has no link to {sorted(lacking)}"
        return
    parts = [f"[← previous]({previous}.ipynb)", f"[map]({MAP}.ipynb)"]
    expected = " · ".join(parts + [f"[next →]({following}.ipynb)"] * (following is not None))
    for where in 0, -1:
        last_line = book.notebook.cells[where].source.rstrip().rpartition("\n")[2]
        place = "first" if where == 0 else "last"
        assert last_line == expected, f"the {place} cell ends with {last_line!r}, expected {expected!r}"


def anchors(book):
    """What `#...` can lead to: JupyterLab makes it from a heading's text, dashes for spaces."""
    headings = re.findall(r"^#+ +(.*?) *$", book.prose(), re.M)
    plain = [re.sub(r"[`*]|\]\([^)]*\)|\[", "", heading) for heading in headings]
    given = re.findall(r"\bid=\"([^\"]+)\"", book.prose())
    return {*given, *(heading.replace(" ", "-") for heading in plain)}


def links_resolve(book):
    for link in (a or b for a, b in LINK.findall(book.prose())):
        if re.match(r"https?://|mailto:|attachment:|data:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (book.folder / path).resolve() if path else book.ipynb
        assert target.exists(), f"link to {link}: there is no such file"
        if anchor:
            assert target.suffix == ".ipynb", f"link to {link}: only notebooks have anchors"
            known = anchors(Book(target))
            assert anchor in known, f"link to {link}: no such heading among {sorted(known)}"


RULES = [
    pair_is_equal,
    every_code_cell_was_executed_in_order,
    no_cell_ended_in_an_error,
    tags_are_known,
    nothing_tells_of_the_machine,
    pictures_have_a_text,
    no_widget_state,
    regenerate_would_write_the_same,
    size_is_a_lessons,
    prose_is_short,
    opening_says_what_why_and_how_long,
    closing_is_complete,
    navigation_leads_to_the_neighbours,
    links_resolve,
]


@pytest.mark.parametrize("book", books(NOTEBOOKS), ids=lambda book: book.name)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_notebook(rule, book):
    if rule is not pair_is_equal and not (book.ipynb.is_file() and book.py.is_file()):
        pytest.skip("half a pair, which pair_is_equal reports")
    rule(book)


def test_the_course_begins_with_its_map():
    names = [book.name for book in books(NOTEBOOKS)]
    assert names[0] == MAP
    numbers = [int(name[:2]) for name in names]
    assert numbers == list(range(len(numbers)))


# ---- the rules, broken --------------------------------------------------------------------------

DRAWING = "<svg xmlns='http://www.w3.org/2000/svg'><text>s0 = 4</text></svg>"
COURSE = {MAP: "The course", "01_one": "1 · One", "02_two": "2 · Two", "03_three": "3 · Three"}


def source_of(name):
    """A notebook that keeps every rule, as py:percent."""
    if name == MAP:
        listing = "\n".join(f"# - [{COURSE[other]}]({other}.ipynb)" for other in list(COURSE)[1:])
        return f"# %% [markdown]\n# # The course\n#\n{listing}\n\n# %%\nx = 1\n\n# %%\nx\n"
    names = list(COURSE)
    here = names.index(name)
    nav = f"# [← previous]({names[here - 1]}.ipynb) · [map]({MAP}.ipynb)"
    nav += f" · [next →]({names[here + 1]}.ipynb)" if here + 1 < len(names) else ""
    cells = [
        f"# %% [markdown]\n# # {COURSE[name]}\n#\n# **The question.** Why?\n#\n"
        f"# *Know first:* nothing. *About 5 minutes.*\n#\n{nav}",
        "# %%\nx = [0x1F, 'torch/_dynamo/guards.py']",
        *[f"# %%\nx[{i}:]" for i in range(20)],
        "# %% [markdown]\n# ## A `heading` of *this*\n# [Here](#A-heading-of-this), "
        "[one](01_one.ipynb#Summary), "
        "[there](https://pytorch.org/x#y).\n#\n# ```python\n# d[0](no_link)\n# ```",
        '# %% tags=["exercise"]\nraise_ = 1',
        '# %% tags=["nbval-ignore-output"]\nx',
        f"# %% [markdown]\n# ## Summary\n# - s\n#\n# ## Where this lives in PyTorch\n# Here.\n#\n{nav}",
    ]
    return "\n\n".join(cells) + "\n"


@pytest.fixture
def course(tmp_path):
    for name in COURSE:
        (tmp_path / f"{name}.py").write_text(source_of(name), encoding="utf-8", newline="\n")
        make(tmp_path / f"{name}.py")
    return tmp_path


def make(source):
    """The `.ipynb` of a `.py`, as if executed: each code cell shows a drawing."""
    notebook = _regenerate.read_source(source)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for count, cell in enumerate(code, 1):
        cell.execution_count = count
        data = {"text/plain": f"v{count}", **({} if "tags" in cell.metadata else {SVG: DRAWING})}
        cell.outputs = [new_output("execute_result", data, execution_count=count)]
    save(source.with_suffix(".ipynb"), notebook)


def save(path, notebook):
    path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8", newline="\n")


@pytest.mark.parametrize("name", COURSE)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_good_notebook_keeps_the_rule(course, rule, name):
    rule(Book(course / f"{name}.ipynb"))


def code_cell(notebook, index=0):
    return [cell for cell in notebook.cells if cell.cell_type == "code"][index]


def outputs(*added):
    def edit(notebook):
        code_cell(notebook).outputs.extend(added)

    return edit


def show(**data):
    return outputs(new_output("display_data", {kind.replace("__", "/"): text for kind, text in data.items()}))


def cell(**values):
    return lambda notebook: code_cell(notebook).update(values)


def tag(*tags):
    return lambda notebook: code_cell(notebook).metadata.update(tags=list(tags))


def metadata(**values):
    return lambda notebook: notebook.metadata.update(values)


def drop_text(notebook):
    del code_cell(notebook).outputs[0].data["text/plain"]


def say_object(notebook):
    code_cell(notebook).outputs[0].data["text/plain"] = "<dynguard_lite.draw.Drawing object>"


def run_time(notebook):
    code_cell(notebook).metadata["execution"] = {"iopub.execute_input": "2025-01-01T00:00:00Z"}


def cut(notebook):
    del notebook.cells[5]


IPYNB_FAULTS = [
    (pair_is_equal, cell(source="x = 2"), "cell 2: text"),
    (pair_is_equal, tag("check"), "cell 2: tags"),
    (pair_is_equal, lambda notebook: notebook.cells.pop(), "26 cells in .py, 25 in .ipynb"),
    (pair_is_equal, cut, "cell 6: text"),
    (every_code_cell_was_executed_in_order, cell(execution_count=None), "number None, expected 1"),
    (every_code_cell_was_executed_in_order, cell(execution_count=2), "number 2, expected 1"),
    (every_code_cell_was_executed_in_order, cut, "cell 6: executed as number 6, expected 5"),
    (no_cell_ended_in_an_error, outputs(new_output("error", ename="ValueError", evalue="odd")), "ValueError"),
    (tags_are_known, tag("nbval-skip"), "nbval-skip"),
    (tags_are_known, tag("raises-exception"), "raises-exception"),
    (tags_are_known, tag("nbval-ignore-output"), "a diagram in a cell"),
    (tags_are_known, cell(source="x = 1\n# NBVAL_SKIP"), "NBVAL_SKIP"),
    (tags_are_known, cell(source="#NBVAL_IGNORE_OUTPUT\nx"), "NBVAL_IGNORE_OUTPUT"),
    (nothing_tells_of_the_machine, show(text__plain="<object at 0x7f3a5c0d1e80>"), "0x7f3a5c0d1e80"),
    (nothing_tells_of_the_machine, show(text__html="<b>/home/ada/x.py</b>"), "/home/a"),
    (nothing_tells_of_the_machine, show(text__plain=f"{NOTEBOOKS.parent / 'x'}"), "another machine"),
    (nothing_tells_of_the_machine, show(text__plain="at C:\\Users\\ada"), "C:"),
    (nothing_tells_of_the_machine, cell(source="open('/tmp/x')"), "cell 2, source: '/tmp/x'"),
    (
        nothing_tells_of_the_machine,
        outputs(new_output("stream", name="stderr", text="/var/folders/zz/T/ipykernel_71/5.py:1: Warning")),
        "stderr",
    ),
    (nothing_tells_of_the_machine, show(text__plain="lib/site-packages/torch/nn.py"), "site-packages"),
    (pictures_have_a_text, drop_text, "cell 2: a picture without"),
    (pictures_have_a_text, say_object, "says nothing"),
    (pictures_have_a_text, show(image__png="aGFsbG8="), "a picture without"),
    (no_widget_state, metadata(widgets={"state": {}}), "widget state"),
    (no_widget_state, outputs(new_output("display_data", {_regenerate.WIDGET_VIEW: {}})), "random id"),
    (regenerate_would_write_the_same, metadata(jupytext={"formats": "ipynb,py"}), "metadata are not"),
    (regenerate_would_write_the_same, metadata(language_info={"name": "python"}), "metadata are not"),
    (regenerate_would_write_the_same, run_time, "run times"),
    (regenerate_would_write_the_same, cell(id="deadbeef"), "cell 2: not as written"),
    (regenerate_would_write_the_same, cell(metadata={"collapsed": True}), "cell 2: not as written"),
]


def rule_name(value):
    return getattr(value, "__name__", None)


@pytest.mark.parametrize(("rule", "edit", "message"), IPYNB_FAULTS, ids=rule_name)
def test_a_fault_in_an_ipynb_is_refused(course, rule, edit, message):
    book = Book(course / "02_two.ipynb")
    notebook = book.notebook
    edit(notebook)
    save(book.ipynb, notebook)
    with pytest.raises(AssertionError, match=message):
        rule(book)


def insert(text):
    """Put a cell in the middle."""
    return lambda source: source.replace("# %%\nx[7:]", f"{text}\n\n# %%\nx[7:]")


def replace(old, new, count=-1):
    def edit(source):
        assert old in source
        return source.replace(old, new, count)

    return edit


LONG = "# %%\n" + "\n".join(f"y = {i}" for i in range(31))
MANY = "\n\n".join(f"# %%\nz = {i}" for i in range(25))
WORDS = "# %% [markdown]\n# " + "word " * 1800
HINTS = "# %% [markdown]\n# <details><summary>Hint</summary>\n#\n# " + "word " * 1800 + "\n#\n# </details>"

PY_FAULTS = [
    (size_is_a_lessons, insert(MANY + "\n# %%\ny = 0\n"), "51 cells"),
    (size_is_a_lessons, lambda source: re.sub(r"# %%\nx\[[78]:\]\n\n", "", source), "23 cells, expected 25"),
    (size_is_a_lessons, insert(LONG), "31 lines of code"),
    (size_is_a_lessons, lambda source: re.sub(r"(x\[\d+:\])", r"\1\n" * 9, source), "more than 9"),
    (prose_is_short, insert(WORDS), "words of prose"),
    (opening_says_what_why_and_how_long, replace("# # 2 · Two", "# # Two"), "begin with a title"),
    (opening_says_what_why_and_how_long, replace("# # 2 · Two", "# # 3 · Two"), "begin with a title"),
    (opening_says_what_why_and_how_long, replace("**The question.** Why?", "Why?"), "The question"),
    (opening_says_what_why_and_how_long, replace("*Know first:*", "Know first:"), "Know first"),
    (opening_says_what_why_and_how_long, replace("5 minutes", "a while"), "minutes"),
    (closing_is_complete, replace("# ## Summary", "# ## End"), "no heading 'Summary'"),
    (closing_is_complete, replace("# ## Where this", "# ## It"), "no heading 'Where this lives in PyTorch'"),
    (navigation_leads_to_the_neighbours, replace("(01_one.ipynb)", f"({MAP}.ipynb)"), "first cell ends"),
    (navigation_leads_to_the_neighbours, replace("next →", "next"), "first cell ends"),
    (navigation_leads_to_the_neighbours, replace("Here.\n#\n# [← ", "Here.\n#\n# ["), "last cell ends"),
    (links_resolve, insert("# %% [markdown]\n# [x](04_none.ipynb)"), "04_none.ipynb: there is no such file"),
    (links_resolve, insert('# %% [markdown]\n# <img src="none.png">'), "none.png: there is no such file"),
    (links_resolve, insert("# %% [markdown]\n# [x](01_one.ipynb#Nowhere)"), "no such heading"),
    (links_resolve, insert("# %% [markdown]\n# [x](#Nowhere)"), "no such heading"),
]


@pytest.mark.parametrize(("rule", "edit", "message"), PY_FAULTS, ids=rule_name)
def test_a_fault_in_both_files_is_refused(course, rule, edit, message):
    book = Book(course / "02_two.ipynb")
    before = book.py.read_text(encoding="utf-8")
    after = edit(before)
    assert after != before
    book.py.write_text(after, encoding="utf-8")
    make(book.py)
    with pytest.raises(AssertionError, match=message):
        rule(book)


def test_hints_do_not_count_as_prose(course):
    book = Book(course / "02_two.ipynb")
    before = words(book)
    book.py.write_text(insert(HINTS)(book.py.read_text(encoding="utf-8")), encoding="utf-8")
    make(book.py)
    assert 20 < words(book) == before < 40


def test_a_map_that_leaves_out_a_notebook_is_refused(course):
    book = Book(course / f"{MAP}.ipynb")
    text = book.py.read_text(encoding="utf-8")
    book.py.write_text(text.replace("(02_two.ipynb)", "(01_one.ipynb)"), encoding="utf-8")
    make(book.py)
    with pytest.raises(AssertionError, match="02_two"):
        navigation_leads_to_the_neighbours(book)


def test_half_a_pair_is_refused(course):
    (course / "01_one.ipynb").unlink()
    (course / "02_two.py").unlink()
    assert [book.name for book in books(course)] == list(COURSE)
    with pytest.raises(AssertionError, match=r"01_one.py has no .ipynb: .*regenerate 01_one"):
        pair_is_equal(Book(course / "01_one.py"))
    with pytest.raises(AssertionError, match=r"02_two.ipynb has no .py"):
        pair_is_equal(Book(course / "02_two.ipynb"))


def test_cells_with_one_id_are_refused(course):
    book = Book(course / "02_two.ipynb")
    first, second = (cell.id for cell in book.notebook.cells[:2])
    book.ipynb.write_text(book.text.replace(second, first), encoding="utf-8", newline="\n")
    with pytest.raises(AssertionError, match="two cells have one id"):
        regenerate_would_write_the_same(book)


def test_crlf_is_refused(course):
    book = Book(course / "02_two.ipynb")
    book.ipynb.write_bytes(book.text.replace("\n", "\r\n").encode())
    with pytest.raises(AssertionError, match="not saved by"):
        regenerate_would_write_the_same(book)


def test_every_rule_has_been_seen_to_fail():
    assert {rule for rule, _, _ in IPYNB_FAULTS + PY_FAULTS} == set(RULES)
