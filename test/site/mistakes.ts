// What the text of a page of the built site can get wrong by itself. VitePress escapes texts and attributes, so that each
// `<` starts a tag.

/** What is wrong with a page, as axe-core would say in a browser. */
export function mistakesOf(html: string): string[] {
  const text = /<main\b[\s\S]*<\/main>/.exec(html)?.[0] ?? html;
  const levels = [...text.matchAll(/<h([1-6])\b/g)].map(([, level]) => Number(level));
  const without = (tag: string, attribute: RegExp): string[] =>
    allOf(html, new RegExp(`(<${tag}\\b[^>]*>)`, 'g')).filter((start) => !attribute.test(start));
  const empty = (tag: string): string[] =>
    allOf(text, new RegExp(`(<${tag}\\b[^>]*>[\\s\\S]*?</${tag}>)`, 'g')).filter(
      (element) => !hasName(element),
    );
  return [
    ...(levels.filter((level) => level === 1).length === 1 ? [] : ['The page needs one h1']),
    ...levels
      .filter((level, index) => level > (levels[index - 1] ?? level) + 1)
      .map((level) => `An h${level} follows a heading that is more than one level above`),
    ...repeatedIds(html),
    ...without('img', / alt\b/).map((image) => `No alternative text: ${image}`),
    // The keyboard scrolls only what has the focus.
    ...[...without('pre', / tabindex="0"/), ...without('table', / tabindex="0"/)].map(
      (start) => `Not in the order of the keyboard: ${start}`,
    ),
    ...['a', 'button', 'th', 'summary', 'h[1-6]'].flatMap(empty).map((element) => `No text: ${element}`),
  ];
}

/** Axe-core no longer looks for these. A link leads to the first element with the id. */
export function repeatedIds(html: string): string[] {
  const ids = allOf(html, /\sid="([^"]*)"/g);
  return ids.filter((id, index) => ids.indexOf(id) < index).map((id) => `The id "${id}" occurs again`);
}

const allOf = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map(([, found = '']) => found);

/** Whether an element has a label, a title, a text, or an image with an alternative text. */
const hasName = (element: string): boolean =>
  /^<[^>]* (?:aria-label|title)="[^"]/.test(element) ||
  / alt="[^"]/.test(element) ||
  element.replace(/<[^>]*>|[\s\u200b]/g, '') !== '';
