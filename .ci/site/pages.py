"""What the pages of the repository need before a generator takes them: a navigation, and blank lines before lists."""

import re

ITEM = re.compile(r"^\s*([-*] |\d+\. )")
TABLE = re.compile(r"^\|")
LINK = re.compile(r"\[([^\]]+)\]\(([^)\s#]+\.md)\)")


def groups(index):
    """The navigation, as the headings and lists of docs/README.md have it. A page stands where it is named first."""
    nav, seen = [], set()
    for section in re.split(r"(?m)^## ", index)[1:]:
        head, _, body = section.partition("\n")
        pages = []
        for line in re.findall(r"(?m)^(?:- |\d+\. ).*", body):
            for name, target in LINK.findall(line)[:1]:
                path = target[3:] if target.startswith("../") else "docs/" + target
                if path not in seen and line.startswith(("- [", "1", "2", "3", "4", "5", "6", "7", "8", "9")):
                    seen.add(path)
                    pages.append(path)
        nav.append({head.split(":")[0].strip(): pages})
    return nav


def on_config(config):
    with open(config["docs_dir"] + "/docs/README.md", encoding="utf-8") as file:
        config["nav"] = [{"kith": ["README.md", "docs/README.md"]}] + groups(file.read())
    return config


def spaced(text):
    """Puts a blank line between a paragraph and a list or table behind it, which forges do not need."""
    out, fenced, kind = [], False, ""
    for line in text.split("\n"):
        if line.startswith("```"):
            fenced = not fenced
        now = "list" if ITEM.match(line) else "table" if TABLE.match(line) else "text" if line.strip() else ""
        if kind == "list" and now == "text" and line.startswith(" "):
            now = "list"
        if not fenced and now in ("list", "table") and kind == "text" and not line.startswith("    "):
            out.append("")
        out.append(line)
        kind = now
    return "\n".join(out)


def on_page_markdown(markdown, **_):
    return spaced(markdown)
