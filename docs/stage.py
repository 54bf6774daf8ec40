"""Gathers the pages of the site in build/docs, for ``make docs``: those of docs/, and what they link to elsewhere.

Links are written as they are right in the repository, where docs/frameworks.md has ``../examples/train_jax.py``. In the
site docs/ is the root, and examples/ lies within it: so links that cross that border are changed here.

Links to files that do not exist, and pages that the nav of mkdocs.yml lacks or has too many, end it with an error: the
builder itself looks only at links between pages. With a command, as ``make docs-serve`` has it, the command is run,
and what is edited is gathered again until it ends.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
STAGE = ROOT / "build" / "docs"
LINK = re.compile(r"(\]\()(?!https?:|mailto:|#)([^)#\s]+)")
IN_NAV = re.compile(r": (\S+\.md)$", re.MULTILINE)
_LOOK_EVERY_S = 0.5


def in_repository(page: Path, link: str) -> Path:
    """Where a link of a page leads to, as seen from the root of the repository."""
    return Path(os.path.relpath(ROOT / page.parent / link, ROOT))


def in_site(path: Path) -> Path:
    return path.relative_to("docs") if path.parts[0] == "docs" else path


def staged(page: Path) -> str:
    """The text of a page, with links that are right in the site."""

    def adapted(match: re.Match[str]) -> str:
        target = in_site(in_repository(page, match[2]))
        return match[1] + Path(os.path.relpath(target, in_site(page).parent)).as_posix()

    return LINK.sub(adapted, (ROOT / page).read_text("utf-8"))


def links(page: Path) -> list[Path]:
    found = [in_repository(page, link) for _, link in LINK.findall((ROOT / page).read_text("utf-8"))]
    return list(dict.fromkeys(found))


def gathered() -> list[Path]:
    """All files of the site: those in docs/, and those that pages link to, as seen from the root of the repository."""
    found = [path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*") if path.suffix in {".md", ".css"}]
    found += [path.relative_to(ROOT) for path in (ROOT / "docs" / "images").iterdir()]
    for page in found:  # which grows meanwhile
        if page.suffix == ".md":
            found += [path for path in links(page) if path not in found and (ROOT / path).is_file()]
    return found


def problems(found: list[Path]) -> list[str]:
    pages = [path for path in found if path.suffix == ".md"]
    broken = [f"{page} links to {to}" for page in pages for to in links(page) if not (ROOT / to).is_file()]
    shown, in_nav = {in_site(page).as_posix() for page in pages}, IN_NAV.findall((ROOT / "mkdocs.yml").read_text())
    return broken + [f"the nav and the pages differ in {name}" for name in sorted(shown ^ set(in_nav))]


def stage() -> None:
    for path in gathered():
        target, source = STAGE / in_site(path), ROOT / path
        if target.exists() and target.stat().st_mtime >= source.stat().st_mtime:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            target.write_text(staged(path), "utf-8")
        else:
            shutil.copyfile(source, target)


def main() -> None:
    if wrong := problems(gathered()):
        sys.exit("\n".join(wrong))
    shutil.rmtree(STAGE, ignore_errors=True)
    stage()
    if command := sys.argv[1:]:
        with contextlib.suppress(KeyboardInterrupt), subprocess.Popen(command) as server:
            while server.poll() is None:
                time.sleep(_LOOK_EVERY_S)
                stage()


if __name__ == "__main__":
    main()
