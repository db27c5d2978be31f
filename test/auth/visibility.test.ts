/** @tags graphql */
import {
  buildClientSchema,
  type GraphQLObjectType,
  type GraphQLSchema,
  getIntrospectionQuery,
  parse,
  printSchema,
  validateSchema,
} from 'graphql';
import { visibleSchema } from '../../middleware/auth.ts';
import { hash, readChoices } from '../engine/choices.ts';
import { Oracle } from './oracle.ts';
import { policiesOf, randomCaller, randomSchema } from './random-case.ts';
import { codes, type Service, schema, scopesOf, serve } from './service.ts';

const policies = (): string[] => [];
async function create(options: object): Promise<Service> {
  const service = await serve(options);
  return service;
}

it.each([
  [null, []],
  [[], []],
  [['a'], ['p']],
  [['admin', 'level'], []],
  [['a', 'b', 'c', 'admin', 'email', 'level', 'write'], ['p']],
] as const)('visibleSchema is valid for %j', (scopes, names) => {
  const visible = visibleSchema(schema, scopes, names);
  expect(validateSchema(visible)).toEqual([]);
  expect(printSchema(visible)).toMatchSnapshot();
});

it('visibleSchema is valid for random schemas and callers, and has no field that its caller may not see', () => {
  let hidden = 0;
  for (let seed = 1; seed <= 25; seed++) {
    const choices = readChoices(Uint8Array.from({ length: 1500 }, (_, index) => hash(String(index), seed)));
    const whole = randomSchema(choices);
    const query = whole.getQueryType() as GraphQLObjectType;
    for (const caller of [undefined, '', 'a', 'a p', randomCaller(choices)]) {
      const scopes = caller?.split(' ') ?? null;
      const who = { scopes, policies: policiesOf(scopes) };
      const visible = visibleSchema(whole, who.scopes, who.policies);
      expect(validateSchema(visible)).toEqual([]);
      const oracle = new Oracle(whole, parse('{ __typename }'), {}, who);
      for (const { name } of Object.values(query.getFields())) {
        if (!oracle.hidesField(query, name)) continue;
        hidden++;
        expect(visible.getQueryType()?.getFields()).not.toHaveProperty(name);
      }
    }
  }
  expect(hidden).toBeGreaterThan(100);
});

it('a caller that may see everything has the schema itself', () => {
  const scopes = ['a', 'b', 'c', 'admin', 'email', 'level', 'write'];
  expect(visibleSchema(schema, scopes, ['p'])).toBe(schema);
});

describe.each(['compiled', 'graphql-js'] as const)('%s', (engine) => {
  it('introspection and validation see what the caller may use; one schema per set', async () => {
    const created: (readonly string[] | null)[] = [];
    const schemaFor = (scopes: readonly string[] | null, whole: GraphQLSchema) => {
      created.push(scopes);
      return visibleSchema(whole, scopes);
    };
    const { post } = await create({
      engine,
      auth: { scopes: scopesOf, policies, schemaFor },
    });
    const introspect = async (scopes?: string) =>
      printSchema(buildClientSchema((await post(getIntrospectionQuery(), scopes)).body.data as never));
    expect(await introspect()).not.toMatch(/secret|mine|email|Admin|level:/i);
    const seen = await introspect('email b');
    expect(seen).toMatch(/email[\s\S]*mine/);
    expect(await introspect('b email')).toBe(seen);
    expect(created).toEqual([null, ['b', 'email']]);
    const hidden = await post('{ secre mine }');
    expect(hidden.status).toBe(400);
    expect(hidden.text).not.toContain('secret');
    expect((await post('{ opn }')).text).toContain('Did you mean');
  });

  it('a value of a hidden type is refused', async () => {
    const auth = { scopes: scopesOf, policies, mode: 'null' as const };
    const { post } = await create({
      engine,
      auth: {
        ...auth,
        schemaFor: (scopes: readonly string[] | null, whole: GraphQLSchema) => visibleSchema(whole, scopes),
      },
    });
    const answer = await post('{ search { ... on Post { title } } }', 'x');
    expect(codes(answer)).toEqual(['FORBIDDEN']);
    expect(answer.body.data).toEqual({ search: null });
  });

  it('a schema that cannot be created refuses, and is tried again', async () => {
    let fails = true;
    const { post } = await create({
      engine,
      onError: false,
      auth: {
        scopes: scopesOf,
        policies,
        schemaFor: async (_: unknown, whole: GraphQLSchema) => {
          if (fails) throw new Error('down');
          return whole;
        },
      },
    });
    expect((await post('{ open }')).status).toBe(500);
    fails = false;
    expect((await post('{ open }')).body).toEqual({ data: { open: 'OPEN' } });
  });
});
