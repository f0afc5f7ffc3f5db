"""report.html read by an HTML parser that is not ours: report_page.py WRITE_RUN_REPORT"""
import json
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen, self.scripts, self.resources = [], [], [], []

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        self.resources += [(tag, k, v) for k, v in attributes if k in ("src", "href", "srcset", "action")]
        if tag == "script":
            self.scripts.append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, text):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += text


with tempfile.TemporaryDirectory() as folder:
    subprocess.run([sys.argv[1], folder], check=True)
    text = (Path(folder) / "report.html").read_text(encoding="utf-8")

page = Page()
page.feed(text)
page.close()
assert page.open == [], page.open
assert page.seen.count("script") == 2 and "img" not in page.seen, page.seen
assert page.resources == [], page.resources
assert "http://" not in text and "https://" not in text and "@import" not in text
data = json.loads(page.scripts[0])
assert data["samples"]["list"][-1]["text"] == "</script><img src=x onerror=alert(1)> {{js}} <!-- & \"quoted\""
assert data["facts"]["train"] == ["</script><b>.txt"]
loss = data["curves"]["loss"]
assert len(loss["x"]) <= 1000 and max(loss["max"]) == 10 and min(loss["min"]) <= 10 / 3000 + 1e-8
print("report.html is well-formed, self-contained and holds its data")
