// Random documents as trees of parts that repeat, and mutations of such trees, for graphql-search.mjs.

let state = 1;

/** Starts the sequence of `random`. */
export function seedRandom(seed) {
  state = seed >>> 0 || 1;
}

/** The next number from 0 to 1 (xorshift32). */
export function random() {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  state >>>= 0;
  return state / 2 ** 32;
}

const below = (count) => Math.floor(random() * count);
const pick = (list) => list[below(list.length)];
const chance = (probability) => random() < probability;
/** A number from 1 to about `most`, small ones more often. */
const size = (most) => Math.max(1, Math.floor(most ** random()));

const COMPOSITE = [
  'a',
  'b',
  'u',
  'f',
  'wide',
  '__schema',
  'types',
  'fields',
  'type',
  'ofType',
  'inputFields',
  'possibleTypes',
  'nope',
];
const LEAVES = ['hello', 'id', 'g', '__typename', 'field1', 'feild', 'name', 'description', 'kind', 'n', 'h'];
const TYPES = ['Query', 'A', 'B', 'U', 'Wide', '__Type', '__Schema', '__Field', 'Nope'];
const VALUES = ['1', '"x"', 'null', '$v', '[1, 2]', '{a: {b: 1}}', '{}', 'ENUM', '1e9', '[[[]]]'];
const ARGUMENTS = ['x', 's', 'v', 'in', 'list', 'json', 'one', 'nope', 'inputs'];
const DIRECTIVES = ['@include(if: true)', '@skip(if: $v)', '@nope', '@include', '@deprecated'];
const NAMING = ['same', 'unique', 'some'];

const repeatCount = () => (chance(0.5) ? 1 : size(chance(0.3) ? 4900 : 300));

function randomPart(level) {
  const kind =
    level === 0 ? 'leaf' : pick(['leaf', 'leaf', 'field', 'field', 'field', 'spread', 'spread', 'inline']);
  const part = {
    kind,
    repeat: repeatCount(),
    naming: pick(NAMING),
    alias: chance(0.4),
    name: pick(kind === 'leaf' ? LEAVES : COMPOSITE),
    type: pick(TYPES),
    target: below(8),
    parts: [],
    arguments: chance(0.2) ? Array.from({ length: size(3) }, randomArgument) : [],
    directives: chance(0.1) ? { text: pick(DIRECTIVES), repeat: size(50) } : undefined,
    depth: chance(0.1) ? size(60) : 1,
  };
  if (kind === 'field' || kind === 'inline') {
    part.parts = Array.from({ length: size(4) }, () => randomPart(level - 1));
  }
  return part;
}

const randomArgument = () => ({
  name: pick(ARGUMENTS),
  value: pick(VALUES),
  repeat: chance(0.3) ? size(1000) : 1,
  list: chance(0.5),
});

const randomSet = () => Array.from({ length: size(4) }, () => randomPart(1 + below(4)));

/** A document as a tree: operations, fragments, and parts with numbers of repetitions. */
export function randomDocument() {
  return {
    operations: chance(0.8) ? 1 : size(200),
    variables: chance(0.2) ? size(1000) : 0,
    parts: randomSet(),
    fragments: Array.from({ length: chance(0.5) ? 0 : size(8) }, () => ({
      repeat: chance(0.4) ? size(400) : 1,
      type: pick(TYPES),
      parts: randomSet(),
      chained: chance(0.3),
    })),
    newlines: chance(0.1) ? size(4900) : 0,
  };
}

/** Copies a document and changes one to three places of it. */
export function mutate(document) {
  const copy = structuredClone(document);
  for (let count = size(3); count > 0; count--) change(copy);
  return copy;
}

function change(document) {
  const sets = [];
  const collect = (parts) => {
    sets.push(parts);
    for (const part of parts) collect(part.parts);
  };
  collect(document.parts);
  for (const fragment of document.fragments) collect(fragment.parts);
  const set = pick(sets);
  const part = set.length > 0 ? pick(set) : undefined;
  const fragment = document.fragments.length > 0 ? pick(document.fragments) : undefined;
  const scale = (count, most) =>
    Math.min(most, Math.max(1, Math.round(count * pick([0.5, 0.8, 1.2, 1.5, 2, 4]))));
  const ofPart = {
    repeat: (it) => ({ repeat: scale(it.repeat, 4900) }),
    more: (it) => ({ repeat: scale(it.repeat, 4900) }),
    depth: (it) => ({ depth: scale(it.depth, 200) }),
    naming: () => ({ naming: pick(NAMING) }),
    alias: (it) => ({ alias: !it.alias }),
    name: (it) => ({
      name: pick(it.kind === 'leaf' ? LEAVES : COMPOSITE),
      type: pick(TYPES),
      target: below(8),
    }),
    arguments: (it) => ({ arguments: [...it.arguments, randomArgument()] }),
    directives: () => ({
      directives: chance(0.5) ? undefined : { text: pick(DIRECTIVES), repeat: size(200) },
    }),
  };
  const ofFragment = {
    repeat: (it) => ({ repeat: scale(it.repeat, 499) }),
    chained: (it) => ({ chained: !it.chained }),
  };
  const ofDocument = {
    operations: (it) => ({ operations: scale(it.operations, 200) }),
    variables: (it) => ({ variables: chance(0.5) ? 0 : scale(it.variables + 1, 1200) }),
    fragments: (it) => ({
      fragments: [
        ...it.fragments,
        { repeat: size(400), type: pick(TYPES), parts: randomSet(), chained: chance(0.3) },
      ],
    }),
  };
  const apply = (target, changes) =>
    target !== undefined && Object.assign(target, pick(Object.values(changes))(target));
  const ofSet = [
    () => set.push(randomPart(2)),
    () => part !== undefined && set.push(structuredClone(part)),
    () => set.length > 1 && set.splice(below(set.length), 1),
  ];
  pick([
    () => apply(part, ofPart),
    () => apply(part, ofPart),
    () => pick(ofSet)(),
    () => apply(fragment, ofFragment),
    () => apply(document, ofDocument),
  ])();
}

const MAX_LENGTH = 95_000;
/** A few less than the limit, for closing braces. */
const MAX_TOKENS = 4700;
const TOKEN = /[\w"]+|[^\s\w"]/g;

/** The text of a document within the limits of characters and tokens: repetitions end where a limit is reached. */
export function render(document) {
  let length = 0;
  let tokens = 0;
  const emit = (text) => {
    length += text.length + 1;
    tokens += (text.match(TOKEN) ?? []).length + 1;
    return text;
  };
  const fragmentNames = document.fragments.flatMap(({ repeat }, f) =>
    Array.from({ length: repeat }, (_, i) => `f${f}_${i}`),
  );

  function repeated(count, make) {
    const texts = [];
    for (let index = 0; index < count && length < MAX_LENGTH && tokens < MAX_TOKENS; index++)
      texts.push(make(index));
    return texts.join(' ');
  }
  function argumentsOf({ arguments: list }) {
    if (list.length === 0) return '';
    const texts = list.map(({ name, value, repeat, list: inList }) =>
      inList
        ? `${name}: [${repeated(repeat, () => emit(value))}]`
        : repeated(repeat, (index) => emit(`${name}${repeat > 1 && index > 0 ? index : ''}: ${value}`)),
    );
    return `(${texts.join(' ')})`;
  }
  const nameOf = ({ naming }, name, index) =>
    naming === 'same' ? name : `${name}${naming === 'unique' ? index : index % 7}`;
  function renderPart(part, index) {
    const directives =
      part.directives === undefined ? '' : repeated(part.directives.repeat, () => emit(part.directives.text));
    if (part.kind === 'spread') {
      if (fragmentNames.length === 0) return emit('__typename');
      const at = part.naming === 'same' ? part.target * 37 : part.naming === 'unique' ? index : index % 7;
      return emit(`...${fragmentNames[at % fragmentNames.length]} ${directives}`);
    }
    if (part.kind === 'inline') {
      const open = `... on ${part.type} ${directives} {`.repeat(part.depth);
      return `${emit(open)} ${renderSet(part.parts)} ${'}'.repeat(part.depth)}`;
    }
    const alias = part.alias ? `${nameOf(part, 'x', index)}: ` : '';
    const name =
      part.alias || part.kind === 'field'
        ? part.name
        : nameOf(part, part.name, index).replace(/\d+$/, (digits) => (part.name === 'hello' ? '' : digits));
    const head = emit(`${alias}${name}${argumentsOf(part)} ${directives}`);
    if (part.kind === 'leaf') return head;
    return `${head} {${`${part.name} {`.repeat(part.depth - 1)} ${renderSet(part.parts)} ${'}'.repeat(part.depth)}`;
  }
  const renderSet = (parts) => {
    const text = parts.map((part) => repeated(part.repeat, (index) => renderPart(part, index))).join(' ');
    return text.trim() === '' ? '__typename' : text;
  };

  const variables =
    document.variables === 0
      ? ''
      : `(${repeated(document.variables, (index) => emit(`$v${index === 0 ? '' : index}: Boolean`))})`;
  const operations = repeated(
    document.operations,
    (index) => `query q${index}${variables} { ${renderSet(document.parts)} }`,
  );
  const fragments = document.fragments.map(({ repeat, type, parts, chained }, f) =>
    repeated(repeat, (index) => {
      const next = chained && index + 1 < repeat ? `...f${f}_${index + 1}` : '';
      return `fragment ${emit(`f${f}_${index}`)} on ${type} { ${renderSet(parts)} ${next} }`;
    }),
  );
  return `${'\n'.repeat(document.newlines)}${operations} ${fragments.join(' ')}`;
}
