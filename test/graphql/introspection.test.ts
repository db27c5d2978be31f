/** @tags graphql */
import fc from 'fast-check';
import { buildSchema, getIntrospectionQuery } from 'graphql';
import { type GraphQLOptions, graphqlHTTP } from '../../middleware/graphql.ts';
import { type Running, run } from './server.ts';

const times = (count: number, make: (index: number) => string, glue = ' '): string =>
  Array.from({ length: count }, (_, index) => make(index)).join(glue);

const TYPES = 100;
const schema = buildSchema(`
  type Query { ${times(TYPES, (i) => `t${i}: T${i}`)} }
  interface Node { id: ID }
  ${times(TYPES, (i) => `"""${'text '.repeat(i === 1 ? 1000 : 5)}""" type T${i} implements Node { id: ID ${times(14, (j) => `"about it" f${j}(a: In${j}, b: Int = 1): T${(i + j) % TYPES}`)} }`)}
  ${times(20, (i) => `input In${i} { ${times(10, (j) => `k${j}: In${(i + j) % 20} `)} color: Color }`)}
  enum Color { ${times(200, (i) => `C${i}`)} }
`);
const STANDARD = getIntrospectionQuery({
  descriptions: true,
  specifiedByUrl: true,
  inputValueDeprecation: true,
});

describe.each(['compiled', 'graphql-js'] satisfies GraphQLOptions['engine'][])(
  'with the engine %s',
  (engine) => {
    let running: Running;
    beforeAll(async () => {
      running = await run(graphqlHTTP(schema, { engine }));
    });

    async function introspect(query: string): Promise<{ status: number; text: string }> {
      const headers = { 'content-type': 'application/json', accept: 'application/graphql-response+json' };
      const response = await fetch(running.url, { method: 'POST', headers, body: JSON.stringify({ query }) });
      return { status: response.status, text: await response.text() };
    }

    it.each([
      [
        'lists in lists',
        '{ __schema { types { fields { type { fields { name type { name kind description } } } } } } }',
      ],
      [
        'possible types of fields',
        '{ __schema { types { fields { type { possibleTypes { name kind description } interfaces { name kind description } } } } } }',
      ],
      [
        'values of enums of arguments',
        '{ __schema { types { inputFields { type { enumValues { name description } } } } } }',
      ],
      [
        'long descriptions',
        `{ __schema { types { fields { ${times(9, (i) => `t${i}: type { description }`)} } } } }`,
      ],
      [
        'aliases of lists',
        `{ __schema { ${times(9, (i) => `t${i}: types { fields { args { type { ...R } } type { ...R } } }`)} } } fragment R on __Type { ${times(8, () => 'name kind ofType {')} name ${'}'.repeat(8)} }`,
      ],
      [
        'fragments',
        '{ __schema { ...S } } fragment S on __Schema { types { ...A } } fragment A on __Type { fields { type { ...B } } inputFields { type { ...B } } } fragment B on __Type { fields { name isDeprecated args { name } } }',
      ],
    ])('graphqlHTTP refuses an introspection that multiplies the schema: %s', async (_name, query) => {
      const { status, text } = await introspect(query);
      expect([status, JSON.parse(text).errors[0].extensions.code]).toEqual([
        400,
        'LIMIT_INTROSPECTION_VALUES',
      ]);
    });

    it.each([
      ['the query of tools', STANDARD],
      [
        'the query of tools with 15 levels of ofType',
        STANDARD.replace(
          /name\s+(\}\s*)+\}\s*$/,
          `name ${times(6, () => 'ofType { kind name')} ${'}'.repeat(6)} $&`.replace(
            'name  ofType',
            'name ofType',
          ),
        ),
      ],
      [
        'two types by name',
        '{ a: __type(name: "T1") { name description fields { name type { name fields { name } } } } b: __type(name: "Color") { enumValues { name } } }',
      ],
      [
        'the root types',
        '{ __schema { queryType { fields { name args { name type { name } } type { name kind ofType { name } } } } directives { name locations } } }',
      ],
      [
        'all types with their fields',
        '{ __schema { types { name kind fields { name type { name kind ofType { name } } } } } }',
      ],
    ])('graphqlHTTP accepts an ordinary introspection: %s', async (_name, query) => {
      const { status, text } = await introspect(query);
      expect([status, JSON.parse(text).errors]).toEqual([200, undefined]);
    });

    const LEAVES: Record<string, readonly string[]> = {
      __Schema: ['description'],
      __Type: ['kind', 'name', 'description', 'isOneOf'],
      __Field: ['name', 'description', 'isDeprecated'],
      __InputValue: ['name', 'description', 'defaultValue'],
      __EnumValue: ['name', 'description'],
      __Directive: ['name', 'description', 'locations'],
    };
    const CHILDREN: Record<string, readonly [field: string, type: string][]> = {
      __Schema: [
        ['types', '__Type'],
        ['queryType', '__Type'],
        ['directives', '__Directive'],
      ],
      __Type: [
        ['fields', '__Field'],
        ['interfaces', '__Type'],
        ['possibleTypes', '__Type'],
        ['enumValues', '__EnumValue'],
        ['inputFields', '__InputValue'],
        ['ofType', '__Type'],
      ],
      __Field: [
        ['args', '__InputValue'],
        ['type', '__Type'],
      ],
      __InputValue: [['type', '__Type']],
      __EnumValue: [],
      __Directive: [['args', '__InputValue']],
    };
    /** Selections of one introspection type, with up to three aliases of each field. */
    const selection = (type: string, levels: number): fc.Arbitrary<string> => {
      const leaf = fc.constantFrom(...(LEAVES[type] as string[]));
      const children = CHILDREN[type] as [string, string][];
      if (levels === 0 || children.length === 0) return leaf;
      const child = fc
        .constantFrom(...children)
        .chain(([field, of]) => selection(of, levels - 1).map((below) => `${field} { ${below} }`));
      return fc
        .array(fc.oneof({ weight: 1, arbitrary: leaf }, { weight: 3, arbitrary: child }), {
          minLength: 1,
          maxLength: 3,
        })
        .map((parts) => parts.map((part, i) => (i === 0 ? part : `a${i}: ${part}`)).join(' '));
    };

    it('no accepted introspection returns more than ten times the bytes of the query of tools', async () => {
      const most = 10 * (await introspect(STANDARD)).text.length;
      const document = selection('__Schema', 6).map((below) => `{ __schema { ${below} } }`);
      const statuses: Record<number, number> = {};
      await fc.assert(
        fc.asyncProperty(document, async (query) => {
          const { status, text } = await introspect(query);
          statuses[status] = (statuses[status] ?? 0) + 1;
          return text.length < most;
        }),
        { numRuns: 150, seed: 7 },
      );
      expect(statuses[200]).toBeGreaterThan(20);
      expect(statuses[400]).toBeGreaterThan(20);
    });
  },
);
