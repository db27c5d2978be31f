const TAG = /(?:^|\s)@(param|returns|throws|default|example)\b/g;

/** The text of a docstring and its tags: `params` by name, `defaultText`, `returns`, `throwsText` and `examples`. */
export function parseDocstring(comment) {
  const text = comment.replace(/^ *\* ?/gm, '').trim();
  const tags = [...text.matchAll(TAG)];
  const doc = {
    text: (tags.length > 0 ? text.slice(0, tags[0].index) : text).trim(),
    params: [],
    examples: [],
    throws: [],
  };
  tags.forEach((tag, index) => {
    const value = text.slice(tag.index + tag[0].length, tags[index + 1]?.index).replace(/^ +/, '');
    addTag(doc, tag[1], value);
  });
  return doc;
}

function addTag(doc, tag, value) {
  const line = value.trim().replace(/\s+/g, ' ');
  if (tag === 'param') {
    const [, name, text] = /^(\w+)(?: -)? (.*)$/.exec(line) ?? [];
    doc.params.push({ name, text });
  } else if (tag === 'example') doc.examples.push(value.replace(/^\n/, '').trimEnd());
  else if (tag === 'throws') doc.throws.push(line);
  else doc[tag === 'default' ? 'defaultText' : 'returns'] = line;
}
