// What is wrong with a page as it is drawn, in words; an empty list if nothing is.
() => {
  const troubles = [];
  const clip = (text) => text.trim().replace(/\s+/g, " ").slice(0, 60);
  const wide = document.scrollingElement.scrollWidth - window.innerWidth;
  if (wide > 0) troubles.push(`the page is ${wide} px wider than the screen`);

  // Cards: none over another, and nothing sticks out of one, but where it can be scrolled.
  const cards = [...document.querySelectorAll(".card")].map((card) => [card, card.getBoundingClientRect()]);
  cards.forEach(([card, a], i) => {
    const title = clip(card.querySelector("h2").textContent);
    for (const [other, b] of cards.slice(i + 1)) {
      const overlaps = a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
      if (overlaps) troubles.push(`"${title}" overlaps "${clip(other.querySelector("h2").textContent)}"`);
    }
    if (card.scrollWidth > card.clientWidth + 1) troubles.push(`"${title}" is clipped`);
    for (const part of card.querySelectorAll("*")) {
      if (part.closest(".scroll") || part.closest("pre") || part.closest("svg")) continue;
      const box = part.getBoundingClientRect();
      if (box.width && (box.right > a.right + 1 || box.left < a.left - 1))
        troubles.push(`<${part.tagName}> sticks out of "${title}"`);
    }
  });

  // Texts of pictures stay in their picture.
  for (const text of document.querySelectorAll("svg text")) {
    const inner = text.getBoundingClientRect();
    const outer = text.ownerSVGElement.getBoundingClientRect();
    if (inner.right > outer.right + 2 || inner.left < outer.left - 2 || inner.bottom > outer.bottom + 2)
      troubles.push(`"${clip(text.textContent)}" is cut off by its picture`);
  }

  // Every text: large enough, and to be told from what is behind it.
  const parse = (colour) => (colour.match(/[\d.]+/g) || []).map(Number);
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (part) => {
    for (let at = part; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const part = walk.currentNode.parentElement;
    if (!walk.currentNode.textContent.trim() || ["title", "STYLE"].includes(part.tagName)) continue;
    const box = part.getBoundingClientRect();
    if (box.width < 2 || part.classList.contains("unseen")) continue;
    const style = getComputedStyle(part);
    const at = part.closest("svg") && part.getScreenCTM ? part.getScreenCTM() : null;
    const size = parseFloat(style.fontSize) * (at ? Math.hypot(at.a, at.b) : 1);
    if (size < 9.95) troubles.push(`"${clip(part.textContent)}" is ${size.toFixed(1)} px`);
    const [one, two] = [luminance(parse(at ? style.fill : style.color)), luminance(behind(part))];
    const contrast = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    if (contrast < 4.5) troubles.push(`"${clip(part.textContent)}" has a contrast of ${contrast.toFixed(1)}`);
  }

  // What those who do not see it are told.
  if (!document.documentElement.lang || !document.title) troubles.push("no language, or no title");
  for (const svg of document.querySelectorAll("svg"))
    if (svg.getAttribute("role") !== "img" || !svg.getAttribute("aria-label")) troubles.push("a picture says nothing");
  for (const cell of document.querySelectorAll("th"))
    if (!["row", "col"].includes(cell.scope)) troubles.push("a title of a table without scope");
  return [...new Set(troubles)];
}
