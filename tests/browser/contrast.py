"""Words that cannot be read on what is behind them, by the colours of all that they are in.

axe finds by where things are what lies behind each word. That takes four fifths of its time, and finds the same.
"""

UNREADABLE = """part => {
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
      const { color, backgroundColor, backgroundImage, opacity, position } = getComputedStyle(one);
      const [words, ground] = [color, backgroundColor].map(colourOf);
      const isPlain = backgroundImage === "none";
      styles.set(one, { words, ground, isPlain, opacity: Number(opacity), isPlaced: position === "absolute" });
    }
    return styles.get(one);
  };
  // What is placed by itself lies on what it is placed beside, such as words on an empty field.
  const below = (one) => {
    const { left, top, width, height } = one.getBoundingClientRect();
    const [x, y] = [left + width / 2, top + height / 2];
    return [...one.parentElement.children].filter((other) => {
      const room = other.getBoundingClientRect();
      return other !== one && room.left < x && x < room.right && room.top < y && y < room.bottom;
    });
  };
  // Of an element's words and of what is behind them, as whoever looks sees them; null on a picture, as axe has it.
  const seen = (element) => {
    let [words, ground] = [styleOf(element).words, [0, 0, 0, 0]];
    for (let one = element; one !== null; one = one.parentElement) {
      const style = styleOf(one);
      if (ground[3] < 1 && !style.isPlain) return null;
      [words, ground] = [over(words, style.ground), over(ground, style.ground)];
      for (const colour of [words, ground]) colour[3] *= style.opacity;
      for (const other of style.isPlaced ? below(one) : []) {
        [words, ground] = [over(words, styleOf(other).ground), over(ground, styleOf(other).ground)];
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
  const withWords = new Set();
  for (const root of part === "" ? [document.body] : document.querySelectorAll(part)) {
    const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      if (/[^\\s\\p{P}]/u.test(texts.currentNode.data)) withWords.add(texts.currentNode.parentElement);
    }
    const fields = "textarea, input:not([type=hidden], [type=checkbox], [type=radio])";
    for (const field of root.querySelectorAll(fields)) withWords.add(field);
  }
  return [...withWords].filter((one) => isSeen(one) && !isOff(one)).map((one) => ({ one, both: seen(one) }))
    .filter(({ one, both }) => both !== null && contrast(both) <= wanted(one))
    .map(({ one, both }) => `${contrast(both).toFixed(2)} ${one.outerHTML.slice(0, 200)}`);
}"""
"""Returns the elements with words below the contrast that is asked for, with what it is."""
