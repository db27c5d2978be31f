// The schema, the documents and the measurement of graphql-blocking.mjs and graphql-search.mjs.
/** Repeats a text that depends on its index. */
export const times = (count, make, glue = ' ') =>
  Array.from({ length: count }, (_, index) => make(index)).join(glue);
export const nested = (count, open, inner, close = '}') => open.repeat(count) + inner + close.repeat(count);
/** A schema with every way in which a document can nest and repeat. */
export const SCHEMA = `
  type Query {
    a(x: Int, in: In, list: [Int], inputs: [In], s: String, json: Json, one: One): Query b: Query hello(s: String): String
    u: U wide: Wide id(v: Json): Int n(v: [[[[Int]]]]): Int
  }
  type Wide { ${times(500, (i) => `field${i}: Int`)} }
  union U = A | B
  type A { f: U g: Int h(x: Int): Int }
  type B { f: U g: String h(x: Int): Int }
  input In { a: In b: Int c: [In] d: Int! = 1 ${times(200, (i) => `key${i}: Int`)} }
  input One @oneOf { a: Int b: String }
  scalar Json
  type Mutation { login(password: String): Boolean }
`;

const chain = (length, below) =>
  `{ ...f0 } ${times(length, (i) => `fragment f${i} on Query { ${below(i + 1)} }`)} fragment f${length} on Query { hello }`;

/** Documents, each the whole attack. */
export const DOCUMENTS = {
  'nesting, 60 levels': `{ ${nested(60, 'a {', 'hello')} }`,
  'nesting, 3000 levels': `{ ${nested(3000, 'a {', 'hello')} }`,
  'open braces, 40 000': '{a'.repeat(40_000),
  'nested lists, 2400 deep': `{ id(v: ${nested(2400, '[', '1', ']')}) }`,
  'nested objects, 3000 deep': `{ id(v: ${nested(3000, '{a:', '1')}) }`,
  'nested list type': `query ($v: ${nested(2400, '[', 'Int', ']')}) { hello }`,
  'inline fragments, 3000 deep': `{ ${nested(3000, '... {', 'hello')} }`,
  'inline fragments, 195 deep': `{ ${nested(195, '... {', 'hello')} }`,
  'circular fragments': '{ ...a } fragment a on Query { ...b } fragment b on Query { ...a }',
  'a circle of 400 fragments': `{ ...f0 } ${times(400, (i) => `fragment f${i} on Query { a { ...f${(i + 1) % 400} } }`)}`,
  'fragments that spread all others': `{ ...f0 } ${times(45, (i) => `fragment f${i} on Query { ${times(45, (j) => `...f${j}`)} }`)}`,
  'fragments in a chain, 300': chain(300, (i) => `a { ...f${i} }`),
  'fragments in a flat chain, 199': chain(199, (i) => `...f${i}`),
  'fragments that double, 30': chain(30, (i) => `a { ...f${i} } b { ...f${i} }`),
  'fragments that double, 12': chain(12, (i) => `a { ...f${i} } b { ...f${i} }`),
  'unused fragments, 500': `{ hello } ${times(500, (i) => `fragment f${i} on Query { hello }`)}`,
  'aliases, 1600': `{ ${times(1600, (i) => `a${i}: hello`)} }`,
  'aliases within the limit': `{ a { ${times(1000, (i) => `a${i}: hello`)} } }`,
  'a login tried 500 times': `mutation { ${times(500, (i) => `l${i}: login(password: "${i}")`)} }`,
  'directives, 800': `{ hello ${times(800, () => '@include(if: true)')} }`,
  'directives within the limit': `{ hello ${times(200, () => '@include(if: true)')} }`,
  'unknown directives, 2400': `{ hello ${times(2400, () => '@x')} }`,
  'fields, 4990 in one place': `{ a { ${times(4990, () => 'hello')} } }`,
  'fields, 4800 in 25 places': `{ ${times(25, (i) => `a${i}: a { ${times(190, () => 'hello')} }`)} }`,
  'merges within the limit': `{ a { ${times(190, () => 'hello(s: "x")')} } }`,
  'merges of deep fields': `{ ${times(60, () => `a { b { a { b { ${times(20, (i) => `h${i}: hello`)} } } } }`)} }`,
  'merges in unions': `{ u { ${times(90, (i) => `... on A { h(x: 1) x${i}: g } ... on B { h(x: 1) y${i}: g }`)} } }`,
  'merges through fragments': `{ ${times(180, (i) => `...f${i}`)} } ${times(180, (i) => `fragment f${i} on Query { a { b { hello } } }`)}`,
  'conflicts, 180 fields': `{ u { ${times(180, (i) => `... on ${i % 2 ? 'A' : 'B'} { x${i % 40}: g }`)} } }`,
  'unknown fields, 4900': `{ wide { ${times(4900, (i) => `feild${i}`)} } }`,
  'unknown arguments, 1600': `{ a(${times(1600, (i) => `arg${i}: 1`)}) { hello } }`,
  'equal arguments, 1600': `{ a(${times(1600, () => 'x: 1')}) { hello } }`,
  'unknown input keys, 1600': `{ a(in: {${times(1600, (i) => `kye${i}: 1`)}}) { hello } }`,
  'equal input keys, 1600': `{ a(in: {${times(1600, () => 'b: 1')}}) { hello } }`,
  'a list of 4900 wrong values': `{ a(list: [${times(4900, () => '"x"')}]) { hello } }`,
  'a list of 4900 values': `{ a(list: [${times(4900, () => '1')}]) { hello } }`,
  'variable definitions, 1200': `query (${times(1200, (i) => `$v${i}: Int`)}) { hello }`,
  'equal variable definitions, 1200': `query (${times(1200, () => '$v: Int')}) { hello }`,
  'unknown variables, 2400': `{ id(v: [${times(2400, (i) => `$v${i}`)}]) }`,
  'variables in many fragments': `query (${times(100, (i) => `$v${i}: Int`)}) { ${times(200, (i) => `...f${i}`)} } ${times(200, (i) => `fragment f${i} on Query { x${i}: a(x: $v${i % 100}) { hello } }`)}`,
  'operations, 990': times(990, (i) => `query q${i} { hello }`),
  'operations within the limit': times(200, (i) => `query q${i} { hello }`),
  'operations of one name, 990': times(990, () => 'query q { hello }'),
  'operations with fragments in common': `${times(400, (i) => `query q${i} { ...f0 }`)} ${times(190, (i) => `fragment f${i} on Query { ...f${i + 1} }`)} fragment f190 on Query { hello }`,
  'operations with fragments in common, within the limit': `${times(200, (i) => `query q${i} { ...f0 }`)} ${times(190, (i) => `fragment f${i} on Query { ...f${i + 1} }`)} fragment f190 on Query { hello }`,
  'anonymous operations, 1600': times(1600, () => '{ hello }'),
  'type definitions, 600': times(600, (i) => `type T${i} { a: Int }`),
  'a huge number': `{ a(x: ${'9'.repeat(99_000)}) { hello } }`,
  'a huge float': `{ a(x: 1e${'9'.repeat(99_000)}) { hello } }`,
  'a long string': `{ hello(s: "${'x'.repeat(99_000)}") }`,
  'a long string of escapes': `{ hello(s: "${'\\u0041'.repeat(16_000)}") }`,
  'a long block string': `{ hello(s: """${' x\n'.repeat(4900)}""") }`,
  'a block string of quotes': `{ hello(s: """${'\\"""'.repeat(24_000)}""") }`,
  'a long name': `{ ${'a'.repeat(99_000)} }`,
  'a comment': `{ hello } #${'x'.repeat(99_000)}`,
  'comments, 4900': `{ hello ${'#\n'.repeat(4900)} }`,
  'lines, 4900, and an error below': `${'\n'.repeat(4900)}{ wide { ${times(3000, (i) => `q${i}`)} } }`,
  'commas, 99 000': `{ hello ${','.repeat(99_000)} }`,
  'over 100 000 characters': `{ hello } #${'x'.repeat(900_000)}`,
  'over 5000 tokens': `{ ${times(30_000, () => 'q')} }`,
  'broken at its end': `{ ${times(4900, () => 'a')} ${'"'}`,
  'introspection, deep': `{ __schema { types { ${nested(6, 'fields { type {', 'name', '} }')} } } }`,
  'introspection, whole and often': `{ ${times(10, (i) => `s${i}: __schema { types { name fields { name type { name } } } }`)} }`,
  'introspection, aliases of aliases': `{ __schema { ${times(3, (i) => `t${i}: types { ${times(3, (j) => `f${j}: fields { name ${times(4, (k) => `n${k}: name`)} }`)} }`)} } }`,
  'introspection, aliases within the limit': `{ __schema { types { ${times(3, (j) => `f${j}: fields { name type { name } }`)} ${times(3, (j) => `i${j}: inputFields { name type { name } }`)} } } }`,
  NUL: '{ hello\u0000 }',
};

/** The resolvers of the schema. */
export const rootValue = {
  hello: 'world',
  a: () => rootValue,
  b: () => rootValue,
  id: 1,
  wide: {},
  login: true,
};

/** Measures iterations of the event loop and keeps the longest, in milliseconds of CPU time and of wall time. */
export function watchLoop() {
  let longest = { cpu: 0, clock: 0 };
  let running = true;
  let before = { ...process.cpuUsage(), clock: performance.now() };
  const turn = () => {
    const after = { ...process.cpuUsage(), clock: performance.now() };
    const clock = after.clock - before.clock;
    const cpu = (after.user + after.system - before.user - before.system) / 1000;
    // Helper threads add to the CPU time, other processes to the wall time.
    if (Math.min(cpu, clock) > longest.cpu) longest = { cpu: Math.min(cpu, clock), clock };
    before = after;
    if (running) setImmediate(turn);
  };
  setImmediate(turn);
  return {
    stop: () => {
      running = false;
      return longest;
    },
  };
}
