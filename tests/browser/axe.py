"""What axe finds wrong with a page, in light and in dark."""

from __future__ import annotations

from pathlib import Path

import pytest

AXE = Path("web/dashboard/node_modules/axe-core/axe.min.js")

AXE_IN_OTHER_COLOURS = """(part) => {
  const root = document.documentElement.dataset;
  const looked = (window.looked ??= new Map());
  const named = /^(class|style|type|disabled|aria-(checked|current|disabled|invalid|pressed|selected)|data-.*)$/;
  const own = ({ tagName, attributes }) => tagName + [...attributes]
    .filter(({ name }) => named.test(name) && name !== "data-title")
    .map(({ name, value }) => ` ${name}=${value.replace(/__m__\\S+/g, "")}`).join("");
  const numbers = new Map([[document.documentElement, -1]]);
  const unlooked = [];
  const numberOf = (one) => {
    if (numbers.has(one)) return numbers.get(one);
    const sign = `${numberOf(one.parentElement)} ${own(one)}`;
    if (!looked.has(sign)) {
      looked.set(sign, looked.size);
      unlooked.push(one);
    }
    numbers.set(one, looked.get(sign));
    return looked.get(sign);
  };
  const all = document.querySelectorAll(part === "" ? "body *" : `${part}, ${part} *`);
  const isSeen = (one) => one.checkVisibility() && one.closest("[aria-hidden=true], [inert]") === null;
  for (const one of all) if (isSeen(one)) numberOf(one);
  const isText = (one) => one.nodeType === Node.TEXT_NODE && one.data.trim() !== "";
  const include = unlooked.filter((one) => one.matches("input, textarea") || [...one.childNodes].some(isText));
  if (include.length === 0) return [];
  root.mantineColorScheme = root.mantineColorScheme === "dark" ? "light" : "dark";
  const asked = axe.run({ include }, { resultTypes: ["violations"], runOnly: ["color-contrast"] });
  return asked.then(({ violations }) => violations);
}"""
"""Looks at words that style sheets can tell from all that were looked at before: by what they and all around them are,
and by their classes and states. All others are coloured as those were."""


@pytest.fixture(scope="session")
def axe() -> str:
    return AXE.read_text()


async def violations(page, axe: str, *, part: str = "") -> list[str]:
    """Return what axe finds wrong with the page as it is, or with a part of it, in light and in dark."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(axe)
    # A change of colours styles and paints the whole page anew: first comes the scheme that it is left in already. What
    # is not about colours is the same in the other one.
    first = await page.evaluate("document.documentElement.dataset.mantineColorScheme")
    # Its whole answer names every element that passed, too: to hand that over took most of a second. And of what it
    # fetches before, rules that are at work read media alone: style sheets, which it would parse anew each time, are
    # for rules that nobody switched on.
    wrong = await page.evaluate(
        """part => {
          const spared = { resultTypes: ["violations"], preload: { assets: ["media"] } };
          return axe.run(part === "" ? document : part, spared).then(({ violations }) => violations);
        }""",
        part,
    )
    found = [(first, one) for one in wrong]
    found += [("dark" if first == "light" else "light", one) for one in await page.evaluate(AXE_IN_OTHER_COLOURS, part)]
    return [f"{scheme} {one['id']}: {one['nodes'][0]['html'][:200]}" for scheme, one in found]
