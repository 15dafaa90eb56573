"""The course in the real JupyterLab, in a real browser (Playwright drives Debian's Chromium).

Skipped where there is no Chromium, unless DYNGUARD_BROWSER=required says that there must be (CI).
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if CHROMIUM is None:
    reason = "no Chromium on this machine (Debian: apt-get install chromium)"
    if os.environ.get("DYNGUARD_BROWSER") == "required":
        raise RuntimeError(f"DYNGUARD_BROWSER=required, but there is {reason}")
    pytest.skip(reason, allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")

NOTEBOOKS = sorted(p.stem for p in (ROOT / "notebooks").glob("*.ipynb"))
TOKEN = "course"
LAUNCH = """
import sys
import dynguard_lite.__main__ as launcher
launcher.environment = lambda: sys.executable  # this environment, for a copy of the folder
sys.exit(launcher.main(["lab", *sys.argv[1:]]))
"""
FLAGS = """--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync""".split()
#: The state of the notebook in front, from its model: cells are drawn only when they come into sight.
STATE = """() => {
  const panel = window.jupyterapp.shell.currentWidget;
  const model = panel && panel.content && panel.content.model;
  if (!model || !panel.context.isReady) return null;
  const cells = [...model.cells].filter(c => c.type === 'code' && c.sharedModel.getSource().trim());
  const outputs = cells.flatMap(c => c.outputs.toJSON());
  return {
    path: panel.context.path, dirty: model.dirty,
    waiting: cells.filter(c => !c.executionCount).length,
    errors: outputs.filter(o => o.output_type === 'error').map(o => o.ename + ': ' + o.evalue),
    pictures: outputs.filter(o => o.data && o.data['image/svg+xml']).length,
    texts: outputs.map(o => o.text || (o.data && o.data['text/plain']) || '').map(t => [].concat(t).join('')),
  };
}"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """JupyterLab, started by the course's own launcher on a copy of the course; its address."""
    home = tmp_path_factory.mktemp("lab")
    course = home / "course"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (course / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, course / name)
    settings = home / "settings" / "@jupyterlab" / "notebook-extension"
    settings.mkdir(parents=True)
    (settings / "tracker.jupyterlab-settings").write_text(json.dumps({"windowingMode": "none"}))  # draw every cell
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    folders = {f"JUPYTER_{kind}_DIR": str(home / kind.lower()) for kind in ("CONFIG", "DATA", "RUNTIME")}
    env = {**os.environ, **folders, "PYTHONPATH": str(course), "IPYTHONDIR": str(home / "ipython"), "JUPYTER_PLATFORM_DIRS": "1"}
    options = ["--no-browser", f"--port={port}", "--ServerApp.ip=127.0.0.1", f"--IdentityProvider.token={TOKEN}",
               "--LabApp.expose_app_in_browser=True", "--LabApp.news_url=",
               "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
               f"--LabApp.user_settings_dir={home / 'settings'}", f"--LabApp.workspaces_dir={home / 'workspaces'}"]  # fmt: skip
    with open(home / "lab.log", "w") as log:
        server = subprocess.Popen([sys.executable, "-c", LAUNCH, *options], cwd=course, env=env, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(120):
            try:
                urllib.request.urlopen(f"{address}/api?token={TOKEN}", timeout=2).close()
                break
            except OSError:
                assert server.poll() is None, (home / "lab.log").read_text()[-2000:]
                time.sleep(0.5)
        yield address, course
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as p:
        chromium = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(60_000)
    yield page
    context.close()


def wait(page, done, seconds=120):
    """Poll the notebook's model until `done(state)`; the last state."""
    end, state = time.monotonic() + seconds, None
    while time.monotonic() < end:
        state = page.evaluate(STATE)
        if state is not None and done(state):
            return state
        time.sleep(0.25)
    raise AssertionError(f"timed out; the notebook is at {state}")


def open_notebook(page, lab, name):
    page.goto(f"{lab[0]}/lab/tree/notebooks/{name}.ipynb?reset&token={TOKEN}")
    page.wait_for_function("() => window.jupyterapp && window.jupyterapp.shell.currentWidget")
    wait(page, lambda s: s["path"].endswith(f"{name}.ipynb"))


def run_all(page):
    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.ready")
    page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
    return wait(page, lambda s: s["waiting"] == 0)


def painted(page):
    """Sizes of the diagrams as the browser has painted them."""
    page.wait_for_function("() => [...document.querySelectorAll('.jp-RenderedSVG img')].every(i => i.complete)")
    return page.evaluate("() => [...document.querySelectorAll('.jp-RenderedSVG img')].map(i => [i.naturalWidth, i.naturalHeight])")


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_notebook_runs_and_its_pictures_are_painted(lab, page, name):
    saved = json.loads((lab[1] / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))
    expected = sum("image/svg+xml" in o.get("data", {}) for c in saved["cells"] for o in c.get("outputs", []))
    open_notebook(page, lab, name)
    state = run_all(page)
    assert state["errors"] == [] and state["pictures"] == expected
    sizes = painted(page)
    assert len(sizes) == expected and all(w > 60 and h > 40 for w, h in sizes)


def test_pictures_are_readable_in_both_themes(lab, page):
    """A picture brings its own white ground, so that black text stays readable on a dark page."""
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        open_notebook(page, lab, NOTEBOOKS[0])
        page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
        page.wait_for_function("theme => document.body.dataset.jpThemeName === theme", arg=theme)
        image = page.locator(".jp-RenderedSVG img").first
        image.scroll_into_view_if_needed()
        shot = page.evaluate("""async () => {
          const image = document.querySelector('.jp-RenderedSVG img');
          const canvas = Object.assign(document.createElement('canvas'), {width: image.naturalWidth, height: image.naturalHeight});
          const context = canvas.getContext('2d');
          context.drawImage(image, 0, 0);
          const data = context.getImageData(0, 0, canvas.width, canvas.height).data;
          const bright = i => 0.2126 * data[i] + 0.7152 * data[i + 1] + 0.0722 * data[i + 2];
          let dark = 0, light = 0, clear = 0;
          for (let i = 0; i < data.length; i += 4) {
            if (data[i + 3] < 250) clear++; else if (bright(i) < 80) dark++; else if (bright(i) > 200) light++;
          }
          return {dark, light, clear, all: data.length / 4};
        }""")
        assert shot["clear"] < 0.02 * shot["all"] and shot["light"] > 0.5 * shot["all"] and shot["dark"] > 20


def solution(course, name, exercise):
    """The solution that the lesson folds away under an exercise's check, and the index of its stub among all cells."""
    cells = json.loads((course / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    stubs = [i for i, c in enumerate(cells) if "exercise" in c["metadata"].get("tags", [])]
    at = stubs[exercise]
    code = re.search(r"```python\n(.*?)```", "".join(cells[at + 2]["source"]), re.DOTALL)
    return at, code[1]


def test_an_exercise_is_solved_by_typing_and_the_pair_is_saved(lab, page):
    name, course = "03_guard_analysis", lab[1]
    at, code = solution(course, name, 3)  # 3.4: two ints
    open_notebook(page, lab, name)
    run_all(page)
    cell = page.locator(".jp-Notebook-cell").nth(at)
    cell.scroll_into_view_if_needed()
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(code)
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Shift+Enter")
    wait(page, lambda s: "correct\n" in s["texts"])
    page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    wait(page, lambda s: not s["dirty"])
    end = time.monotonic() + 20
    while code.splitlines()[-1].strip() not in (course / "notebooks" / f"{name}.py").read_text(encoding="utf-8"):
        assert time.monotonic() < end, "the .py pair did not follow"
        time.sleep(0.5)


def test_the_link_to_the_next_lesson_opens_it(lab, page):
    open_notebook(page, lab, NOTEBOOKS[1])
    page.locator(".jp-MarkdownOutput a", has_text="next").first.click()
    wait(page, lambda s: s["path"].endswith(f"{NOTEBOOKS[2]}.ipynb"))


def test_a_slider_moved_by_keyboard_redraws_the_picture(lab, page):
    """Controls have names, the picture has a title and a description, its words are readable in both themes."""
    open_notebook(page, lab, "03_guard_analysis")
    run_all(page)
    shown = page.locator(".widget-html-content", has=page.locator("[role=status]")).first
    shown.scroll_into_view_if_needed()
    label = page.locator(".widget-hslider label").first.inner_text()
    assert re.fullmatch(r"\w+\.shape\[\d\]", label)
    picture = shown.locator("svg[role=img]")
    assert picture.locator("title").first.text_content() and picture.locator("desc").first.text_content()
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
        page.wait_for_function("theme => document.body.dataset.jpThemeName === theme", arg=theme)
        before = shown.inner_html()
        page.locator(".widget-hslider .noUi-handle").first.focus()
        page.keyboard.press("ArrowRight")
        end = time.monotonic() + 20
        while shown.inner_html() == before:
            assert time.monotonic() < end, "the picture did not follow the slider"
            time.sleep(0.1)
        assert shown.locator("svg[role=img]").bounding_box()["width"] > 60
        verdict = shown.locator("[role=status] span").first  # its ground and its words are its own in either theme
        colours = verdict.evaluate("e => [getComputedStyle(e).color, getComputedStyle(e).backgroundColor]")
        assert contrast(*colours) >= 4.5


def contrast(one, other):
    """Of two CSS colours `rgb(r, g, b)`, by WCAG 2."""

    def luminance(colour):
        channels = [int(n) / 255 for n in re.findall(r"\d+", colour)[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def test_the_pages_work_offline(browser, tmp_path):
    """`python3 -m dynguard_lite html`: diagrams painted, links followed, nothing asked of a network."""
    code = "import sys; from dynguard_lite._html import main; sys.exit(main(sys.argv[1:]))"
    subprocess.run([sys.executable, "-c", code, "--to", str(tmp_path / "site")], cwd=ROOT, check=True, capture_output=True)
    context = browser.new_context(offline=True)
    page, asked, errors = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((tmp_path / "site" / f"{NOTEBOOKS[0]}.html").as_uri())
    for name in NOTEBOOKS[1:]:
        page.locator(f"a[href$='{name}.html']").last.click()
        page.wait_for_url(f"**/{name}.html")
        pictures = page.evaluate("""() => [...document.querySelectorAll('svg, img')]
          .map(e => e.getBoundingClientRect()).map(r => [r.width, r.height])""")
        saved = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))
        expected = sum("image/svg+xml" in o.get("data", {}) for c in saved["cells"] for o in c.get("outputs", []))
        assert sum(w > 60 and h > 40 for w, h in pictures) >= expected, name
    context.close()
    assert errors == [] and all(url.startswith(("file:", "data:", "blob:")) for url in asked)
