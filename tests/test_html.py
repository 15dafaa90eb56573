"""The course as pages that work offline: nothing is fetched, every link leads somewhere, every picture is there."""

import base64
import json
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

import dynguard_lite.__main__ as launcher
from dynguard_lite import _html

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"


class Page(HTMLParser):
    """What a page refers to: `links` and `ids`, `loaded` (what a browser fetches by itself), `images`, `title`, `text`."""

    def __init__(self, path):
        super().__init__()
        self.links, self.ids, self.loaded, self.images, self.title, self.text = [], set(), [], [], "", ""
        self._in_title = False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self._in_title = tag == "title"
        self.ids.add(found.get("id"))
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag == "img":
            self.images.append(found)
        elif tag in ("script", "link", "iframe", "object", "embed", "base", "video", "audio"):
            self.loaded.append((tag, found))
        self.loaded += [(tag, found[key]) for key in ("src", "srcset", "data") if key in found and not found[key].startswith("data:")]

    def handle_data(self, data):
        self.title += data if self._in_title else ""
        self._in_title = False
        self.text += data


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("html") / "a folder" / "pages"
    assert _html.main(["--to", str(folder)]) == 0
    return {path.name: Page(path) for path in sorted(folder.iterdir())}, folder


def test_one_page_for_each_notebook_and_an_index(site):
    names = [p.stem for p in sorted(NOTEBOOKS.glob("*.ipynb"))]
    assert list(site[0]) == [*(f"{n}.html" for n in names), "index.html"]
    assert {f"{n}.html" for n in names} <= set(site[0]["index.html"].links)
    titles = [page.title for page in site[0].values()]
    assert len(set(titles)) == len(titles) and "3 · Guard analysis: which looks commit us to what | dynguard_lite" in titles


def test_nothing_is_fetched(site):
    for name, page in site[0].items():
        assert page.loaded == [], name
        text = (site[1] / name).read_text(encoding="utf-8")
        assert "@import" not in text and "url(" not in text and "default-src 'none'" in text


def test_every_link_leads_to_a_page_and_a_place_on_it(site):
    for name, page in site[0].items():
        for link in page.links:
            path, _, place = link.partition("#")
            if not link.startswith(("http://", "https://")):
                assert not path or path in site[0], f"{name}: {link}"
                assert not place or {place, unquote(place)} & site[0][path or name].ids, f"{name}: {link}"  # as browsers look it up


def test_every_picture_and_every_text_of_the_notebooks_is_there(site):
    for source in NOTEBOOKS.glob("*.ipynb"):
        page = site[0][f"{source.stem}.html"]
        outputs = [o for c in json.loads(source.read_text(encoding="utf-8"))["cells"] for o in c.get("outputs", ())]
        data = [o.get("data", {}) for o in outputs]
        pictures = ["".join(d["image/svg+xml"]) for d in data if "image/svg+xml" in d]
        shown = [base64.b64decode(i["src"].partition(",")[2]) for i in page.images if i["src"].startswith("data:image/svg+xml;base64,")]
        assert [ET.canonicalize(s.decode()) for s in shown] == [ET.canonicalize(p) for p in pictures], source.stem
        assert len(page.images) == sum(any(k.startswith("image/") for k in d) for d in data)
        assert all(image["alt"].strip() for image in page.images)
        for output in outputs:
            if output["output_type"] == "stream":
                assert "".join(output["text"]).strip() in page.text, source.stem


def test_written_again_over_its_own_pages_but_not_over_anything_else(site, tmp_path, capsys):
    before = {path.name: path.read_bytes() for path in site[1].iterdir()}
    one = tmp_path / "notebooks"
    one.mkdir()
    (one / "01_ir.ipynb").write_bytes((NOTEBOOKS / "01_ir.ipynb").read_bytes())
    written = _html.write(site[1].parent / "small", one)
    assert _html.write(site[1].parent / "small", one) == written and [p.name for p in written] == ["01_ir.html", "index.html"]
    assert written[0].read_bytes() == before["01_ir.html"]  # the same bytes in every run
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "index.html").write_text("my page")
    assert _html.main(["--to", str(tmp_path / "mine")]) == 1
    assert "is not empty" in capsys.readouterr().err and (tmp_path / "mine" / "index.html").read_text() == "my page"
    for place in ("file", "file/below"):
        (tmp_path / "file").write_text("")
        assert _html.main(["--to", str(tmp_path / place)]) == 1
        assert "The pages were not written" in capsys.readouterr().err


def test_the_launcher_sees_the_folder_from_where_it_is_called(monkeypatch, tmp_path):
    seen = {}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(launcher, "environment", lambda: "python")
    monkeypatch.setattr(launcher, "hand_over", lambda *command, cwd: seen.update(command=command, cwd=cwd) or 0)
    assert launcher.main(["html", "--to", "here"]) == 0
    assert seen == {"command": ("python", "-m", "dynguard_lite._html", "--to", "here"), "cwd": tmp_path}
