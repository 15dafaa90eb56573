"""`python3 -m dynguard_lite html`: the course as pages that need neither Python nor a network."""

from __future__ import annotations

import argparse
import html
import re
import sys
from pathlib import Path

import nbformat
from nbconvert import HTMLExporter
from nbformat import NotebookNode
from pygments.formatters import HtmlFormatter

ROOT = Path(__file__).resolve().parent.parent
MARK = '<meta name="generator" content="dynguard_lite html">'  # a folder whose index has it may be written over

# nbconvert's own pages load MathJax and RequireJS from the network, and each carries JupyterLab's style sheets.
# Its plain template has neither; a picture's text form stands beside it for those who can't see it.
TEMPLATE = """
{%- extends 'basic/index.html.j2' -%}
{%- block data_svg -%}
<img alt="{{ output.data['text/plain'] | escape_html }}" src="data:image/svg+xml;base64,{{ output.data['image/svg+xml'] | text_base64 }}">
{%- endblock -%}
{%- block data_png -%}
<img alt="{{ output.data['text/plain'] | escape_html }}" src="data:image/png;base64,{{ output.data['image/png'] | replace('\\n', '') }}">
{%- endblock -%}
"""
STYLE = """
:root { color-scheme: light dark; --ground: #ffffff; --text: #1a1a1a; --code: #f3f3f3; --line: #c8c8c8; --link: #0b57a4; }
body { background: var(--ground); color: var(--text); font: 17px/1.55 system-ui, sans-serif; max-width: 52em; margin: auto; padding: 1em; }
a { color: var(--link); }
pre, code { font: 14px/1.45 ui-monospace, monospace; }
pre { padding: .6em .8em; margin: .4em 0; overflow-x: auto; }
.highlight pre, :not(pre) > code { background: var(--code); }
.output pre, .jp-OutputArea pre { border-left: 3px solid var(--line); }
img { max-width: 100%; height: auto; background: #ffffff; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { border: 1px solid var(--line); padding: .25em .6em; text-align: left; vertical-align: top; }
details { border: 1px solid var(--line); padding: .3em .8em; margin: .4em 0; }
:is(h1, h2, h3) code { font-size: .9em; }
.anchor-link { display: none; }
"""
DARK = ":root { --ground: #16181d; --text: #e6e6e6; --code: #24272e; --line: #555b66; --link: #8ec5ff; }"
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
{mark}
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def style() -> str:
    """One sheet for light and dark. Of Pygments' styles, these two keep a contrast of 4.5:1 on the code's ground."""
    light, dark = (HtmlFormatter(style=name, nobackground=True).get_style_defs(".highlight") for name in ("xcode", "monokai"))
    schemes = {"light": light, "dark": f"{DARK}\n{dark}"}
    return STYLE + "".join(f"@media (prefers-color-scheme: {name}) {{\n{rules}\n}}\n" for name, rules in schemes.items())


def page(title: str, body: str) -> str:
    return PAGE.format(mark=MARK, title=html.escape(title), style=style(), body=body)


def title_of(notebook: NotebookNode) -> str:
    """The first heading: `3 · Guard analysis: which looks commit us to what`."""
    text = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    return re.search(r"^# +(.+?) *$", text, re.M)[1].replace("`", "")


def write(folder: Path, notebooks: Path = ROOT / "notebooks") -> list[Path]:
    """A page for each notebook, with the outputs that are saved in it, and an `index.html`; in that order.

    The folder is made unless it is there. FileExistsError where it holds something else; OSError where
    it can't be written.
    """
    index = folder / "index.html"
    if folder.exists() and any(folder.iterdir()) and not (index.is_file() and MARK in index.read_text(encoding="utf-8")):
        raise FileExistsError(f"{folder} is not empty and holds no earlier pages of the course, so it is left as it is. Name a "
                              "new or an empty folder: python3 -m dynguard_lite html --to FOLDER")  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    exporter = HTMLExporter(raw_template=TEMPLATE, exclude_input_prompt=True, exclude_output_prompt=True)
    written, listing = [], []
    for source in sorted(notebooks.glob("*.ipynb")):
        notebook = nbformat.read(source, as_version=4)
        body, _ = exporter.from_notebook_node(notebook)
        body = re.sub(r'href="([\w./-]+)\.ipynb(?=["#])', r'href="\1.html', body)
        title = title_of(notebook)
        written.append(folder / f"{source.stem}.html")
        written[-1].write_text(page(f"{title} | dynguard_lite", body), encoding="utf-8", newline="\n")
        listing.append(f'<li><a href="{source.stem}.html">{html.escape(title)}</a></li>')
    heading = "A course on TorchDynamo's guards and dynamic shapes"
    lessons = "\n".join(listing)
    listed = f"<h1>{heading}</h1>\n<p>Every page shows what its notebook shows when it is run.</p>\n<ul>\n{lessons}\n</ul>"
    index.write_text(page(heading, listed), encoding="utf-8", newline="\n")
    return [*written, index]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m dynguard_lite html")
    parser.add_argument("--to", type=Path, default=ROOT / "site", metavar="FOLDER", help="where to write the pages (default: site)")
    folder = parser.parse_args(argv).to
    try:
        pages = write(folder)
    except OSError as error:
        print(f"The pages were not written. {error}", file=sys.stderr)
        return 1
    print(f"{len(pages)} pages in {folder}. Begin with {pages[-1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
