"""Words that cannot be read on what is behind them, by the colours of all that they are in and that they lie on.

axe finds out by itself where everything is, which takes four fifths of its time. A browser knows that, and finds the
same.
"""

UNREADABLE = """(part, schemes) => {
  const colourOf = (text) => {
    const numbers = text.match(/[\\d.]+(?:e-\\d+)?/g).map(Number);
    if (/^rgba?\\(/.test(text)) return [...numbers.slice(0, 3), numbers[3] ?? 1];
    if (text.startsWith("color(srgb ")) return [...numbers.slice(0, 3).map((one) => 255 * one), numbers[3] ?? 1];
    throw new Error(`no colour that is known: ${text}`);
  };
  const over = ([...above], below) => {
    const [alpha, rest] = [above[3], below[3] * (1 - above[3])];
    const sum = alpha + rest;
    return [...[0, 1, 2].map((at) => sum && (alpha * above[at] + rest * below[at]) / sum), sum];
  };
  const styles = new Map();
  const styleOf = (one) => {
    if (!styles.has(one)) {
      const { webkitTextFillColor, backgroundColor, backgroundImage, opacity } = getComputedStyle(one);
      const [words, ground] = [webkitTextFillColor, backgroundColor].map(colourOf);
      styles.set(one, { words, ground, isPlain: backgroundImage === "none", opacity: Number(opacity) });
    }
    return styles.get(one);
  };
  // What lies below the middle of an element's first line, whatever it is in, the nearest first.
  const below = (element, { left, top, width, height }) => {
    const all = document.elementsFromPoint(left + width / 2, top + height / 2);
    return all.slice(all.indexOf(element) + 1 || all.length);
  };
  // Of an element within another, as that lets it shine through.
  const groundOf = (one, around) => {
    const [...ground] = styleOf(one).ground;
    for (let part = one; part !== around; part = part.parentElement) ground[3] *= styleOf(part).opacity;
    return ground;
  };
  // Of an element's words and of what is behind them, as whoever looks sees them; null on a picture, as axe has it.
  const seen = (element, lower) => {
    let [words, ground] = [styleOf(element).words, [0, 0, 0, 0]];
    for (let one = element; one !== null; one = one.parentElement) {
      const style = styleOf(one);
      if (ground[3] < 1 && !style.isPlain) return null;
      [words, ground] = [over(words, style.ground), over(ground, style.ground)];
      for (const colour of [words, ground]) colour[3] *= style.opacity;
      const around = one.parentElement;
      for (const other of lower.filter((it) => around?.contains(it) && it !== around && !one.contains(it))) {
        [words, ground] = [words, ground].map((colour) => over(colour, groundOf(other, around)));
      }
    }
    return [words, ground].map((colour) => over(colour, [255, 255, 255, 1]));
  };
  const light = ([...colour]) => {
    const parts = colour.map((one) => one / 255);
    const [red, green, blue] = parts.map((one) => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (both) => {
    const [less, more] = both.map(light).sort((one, other) => one - other);
    return (more + 0.05) / (less + 0.05);
  };
  const wanted = (one) => {
    const { fontSize, fontWeight } = getComputedStyle(one);
    return parseFloat(fontSize) * 0.75 >= (Number(fontWeight) >= 700 ? 14 : 18) ? 3 : 4.5;
  };
  const isOff = (one) => one.closest(":disabled, [aria-disabled=true], [inert]") !== null
    || one.closest("label")?.control?.disabled === true;
  const isSeen = (one) => one.checkVisibility({ opacityProperty: true, visibilityProperty: true })
    && one.getBoundingClientRect().width > 1;
  const lines = new Map();
  for (const root of part === "" ? [document.body] : document.querySelectorAll(part)) {
    const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const { data, parentElement } = texts.currentNode;
      if (!/[^\\s\\p{P}]|·/u.test(data) || lines.has(parentElement)) continue;
      const range = new Range();
      range.selectNodeContents(texts.currentNode);
      lines.set(parentElement, () => range.getClientRects()[0] ?? parentElement.getBoundingClientRect());
    }
    const fields = "textarea, input:not([type=hidden], [type=checkbox], [type=radio])";
    for (const field of root.querySelectorAll(fields)) lines.set(field, () => field.getBoundingClientRect());
  }
  // A browser tells what lies where on the screen alone, and of what a pointer can reach.
  const reached = new CSSStyleSheet();
  reached.replaceSync("* { pointer-events: auto !important }");
  document.adoptedStyleSheets.push(reached);
  const places = new Map();
  const onScreen = (one, line) => {
    const { top, bottom } = line();
    if (top >= 0 && bottom <= innerHeight) return line();
    for (let part = one; part !== null; part = part.parentElement) {
      if (!places.has(part)) places.set(part, { left: part.scrollLeft, top: part.scrollTop });
    }
    one.scrollIntoView({ block: "start", behavior: "instant" });
    return line();
  };
  const looked = [...lines].filter(([one]) => isSeen(one) && !isOff(one))
    .map(([one, line]) => ({ one, lower: below(one, onScreen(one, line)) }));
  for (const [part, place] of places) part.scrollTo({ ...place, behavior: "instant" });
  document.adoptedStyleSheets = document.adoptedStyleSheets.filter((sheet) => sheet !== reached);
  return schemes.flatMap((scheme) => {
    document.documentElement.dataset.mantineColorScheme = scheme;
    styles.clear();
    // In a group that shines through, what it lies on may help: words have to be read without that, too.
    return looked.filter(({ one }) => isSeen(one)).map(({ one, lower }) => {
      const all = [seen(one, lower), seen(one, [])].filter((both) => both !== null).map(contrast);
      return { one, least: Math.min(...all) };
    }).filter(({ one, least }) => least <= wanted(one))
      .map(({ one, least }) => `${scheme} color-contrast: ${least.toFixed(2)} ${one.outerHTML.slice(0, 200)}`);
  });
}"""
"""Returns the elements with words below the contrast that is asked for, with what it is, in each of the schemes.

The page is left in the last one. What lies where is the same in all of them."""
