import { createServer, type IncomingMessage, type Server } from 'node:http';
import {
  buildSchema,
  type DirectiveNode,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLInputType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getIntrospectionQuery,
  getNamedType,
  getVariableValues,
  isInputObjectType,
  isListType,
  isNonNullType,
  isObjectType,
  isRequiredArgument,
  type OperationDefinitionNode,
  OperationTypeNode,
  parse,
  print,
  validate,
  validateSchema,
  valueFromASTUntyped,
} from 'graphql';
import { authTypeDefs, visibleSchema } from '../../middleware/auth.ts';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { inject, subscribe } from '../../middleware/testing.ts';
import { executeNonIncremental } from '../../src/execution/graphql-js.ts';
import type { AuthOptions } from '../../types/auth.ts';
import { type Choices, hash, readChoices } from '../engine/choices.ts';
import { V17 } from '../graphql/incremental-schema.ts';
import { withDirectives, withIncremental } from '../graphql/random-directives.ts';
import {
  directive,
  type Given,
  policiesOf,
  randomCaller,
  randomDocument,
  valueAt,
  WRAPPERS,
} from './random-case.ts';

// Compares handlers with `schemaFor` with those of the whole schema: an operation has the same result, or it is refused because
// it names what its caller does not see.

const TYPES = ['String', 'String', 'Leaf', 'Colour', 'A', 'B', 'C', 'Node', 'Named', 'Either', 'Query'];
/** `%` is the place of a requirement. Required arguments come first in each list. */
const ARGUMENTS = [
  '(x: Int %, in: In = { i: 1 } %)',
  '(colour: Colour = BLUE %, x: Int! = 4 %)',
  '(in: In! %, colour: Colour %)',
  '(x: Int %, page: Page = {} %, ins: [In!] = [{ colour: BLUE }] %)',
];

const fill = (choices: Choices, text: string, of256: number): string =>
  text.replaceAll('%', () => directive(choices, of256));
const weight = (choices: Choices): string =>
  `${choices.chance(20) ? `@cost(weight: "${1 + choices.choose(4)}")` : ''} ${choices.chance(25) ? `@cacheControl(maxAge: ${10 + choices.choose(3)})` : ''}`;

/** A field as an interface or a type has it; the requirements are added later. */
const field = (choices: Choices, name: string): string => {
  const type = choices.pick(WRAPPERS).replace('_', choices.pick(TYPES));
  return `${name}${choices.chance(110) ? choices.pick(ARGUMENTS) : ''}: ${type} %`;
};

function randomSchema(choices: Choices): GraphQLSchema {
  const fields = (prefix: string, count: number): string[] =>
    Array.from({ length: count }, (_, index) => field(choices, `${prefix}${index}`));
  const filled = (all: readonly string[], of256: number): string =>
    all.map((each) => `${fill(choices, each, of256)} ${weight(choices)}`).join('\n');
  const [node, named] = [fields('n', 2), fields('m', 1)];
  const on = (of256: number): string => `${directive(choices, of256)} ${weight(choices)}`;
  const object = (name: string, interfaces: string, inherited: readonly string[]): string =>
    `type ${name} ${interfaces} ${on(35)} { ${filled(inherited, 30)} ${filled(fields(name.toLowerCase(), 2), 70)} }`;
  const sdl = `${authTypeDefs}
    directive @cost(weight: String!) on FIELD_DEFINITION | OBJECT | INTERFACE | SCALAR | ENUM
    directive @cacheControl(maxAge: Int) on FIELD_DEFINITION | OBJECT | INTERFACE | SCALAR | ENUM
    directive @listSize(slicingArguments: [String!], requireOneSlicingArgument: Boolean) on FIELD_DEFINITION
    directive @note(in: In, page: Page) on FIELD
    scalar Leaf ${directive(choices, 20)}
    enum Colour ${directive(choices, 20)} { RED BLUE }
    input Page { size: Int! = 5 ${directive(choices, 80)} after: String ${directive(choices, 30)} }
    input In {
      i: Int = 3 ${directive(choices, 80)} colour: Colour = RED ${directive(choices, 60)} in: In ${directive(choices, 30)}
      list: [In!] page: Page = { size: 7 } ${directive(choices, 40)}
    }
    interface Node ${on(20)} { ${filled(node, 60)} }
    interface Named implements Node ${on(20)} { ${filled([...node, ...named], 40)} }
    union Either = A | B | C
    ${object('A', 'implements Node & Named', [...node, ...named])}
    ${object('B', 'implements Node', node)}
    ${object('C', '', [])}
    type Query ${on(8)} {
      ${filled(fields('q', 6), 50)}
      sized${fill(choices, '(page: Page = {} %)', 40)}: [Node] ${directive(choices, 30)}
        @listSize(slicingArguments: ["page.size"], requireOneSlicingArgument: false)
    }
    type Mutation { ${filled(fields('w', 2), 40)} }
    type Subscription { ${filled(fields('s', 2), 30)} }`;
  return buildSchema(sdl, { assumeValid: true });
}

/** How a schema determines the types of values. */
const TYPINGS = ['__typename', 'isTypeOf', 'resolveType'] as const;

/** The events of subscriptions: each subscription reads `EVENTS` of them, and waits before each for `turn`. */
const EVENTS = 3;

/** Gives all fields resolvers whose values tell which arguments they received. */
function addResolvers(schema: GraphQLSchema, typing: (typeof TYPINGS)[number], isAsync: boolean): void {
  const typed = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(typed);
    if (typing === '__typename' || typeof value !== 'object' || value === null) return value;
    const { __typename: kind, id } = value as { __typename: string; id: string };
    return { kind, id };
  };
  const kindOf = (value: unknown): string => (value as { readonly kind: string }).kind;
  for (const type of Object.values(schema.getTypeMap())) {
    if (type.name.startsWith('__')) continue;
    if (typing === 'resolveType' && 'resolveType' in type) type.resolveType = kindOf;
    if (!isObjectType(type)) continue;
    if (typing === 'isTypeOf' && /^[ABC]$/.test(type.name))
      type.isTypeOf = (value) =>
        isAsync ? Promise.resolve(kindOf(value) === type.name) : kindOf(value) === type.name;
    for (const definition of Object.values(type.getFields())) {
      definition.resolve = (source, args) => {
        const parent = (source as { id?: string } | undefined)?.id ?? '';
        const given = Object.keys(args).length === 0 ? '' : JSON.stringify(args);
        const id = `${parent.length > 400 ? hash(parent, 3) : parent}.${definition.name}${given}`;
        const value = typed(valueAt(schema, definition.type, id));
        return isAsync && hash(id, 2) % 3 === 0 ? Promise.resolve(value) : value;
      };
      if (type !== schema.getSubscriptionType()) continue;
      definition.subscribe = async function* (_source, _args, context) {
        for (let n = 0; n < EVENTS; n++) {
          await (context as Context).turn(n);
          yield { id: `event${n}` };
        }
      };
    }
  }
}

interface Context {
  /** Resolves when an event may happen. */
  turn(event: number): Promise<void>;
}

// The literal or variable of an argument.

function literal(choices: Choices, type: GraphQLInputType, depth = 0): string {
  if (isNonNullType(type)) return literal(choices, type.ofType, depth);
  if (isListType(type)) return choices.chance(60) ? '[]' : `[${literal(choices, type.ofType, depth + 1)}]`;
  if (!isInputObjectType(type)) {
    if (type.name === 'Colour') return choices.pick(['RED', 'BLUE']);
    return type.name === 'Int' ? choices.pick(['1', '2']) : '"text"';
  }
  const members = Object.values(type.getFields()).filter(() => depth < 3 && choices.chance(70));
  return `{ ${members.map((member) => `${member.name}: ${argument(choices, member.type, depth + 1)}`).join(', ')} }`;
}

const VARIABLES: Readonly<Record<string, string>> = { Int: '$x', Colour: '$colour', In: '$in' };

function argument(choices: Choices, type: GraphQLInputType, depth = 0): string {
  const variable = VARIABLES[String(type)];
  if (variable !== undefined && choices.chance(80)) return variable;
  return !isNonNullType(type) && choices.chance(20) ? 'null' : literal(choices, type, depth);
}

function giveArguments(choices: Choices, { name, args }: GraphQLField<unknown, unknown>): Given {
  const given = args.filter((arg) => isRequiredArgument(arg) || choices.chance(90));
  if (given.length === 0) return { alias: '', text: '' };
  const text = `(${given.map((arg) => `${arg.name}: ${argument(choices, arg.type)}`).join(', ')})`;
  return { alias: `${name}_${hash(text, 4)}: `, text };
}

const randomVariables = (choices: Choices): Record<string, unknown> => ({
  yes: choices.chance(128),
  ...(choices.chance(128) && { no: choices.chance(128) }),
  ...(choices.chance(170) && {
    in: choices.pick([
      {},
      { i: 2 },
      { in: { list: [{ colour: 'RED' }, {}] } },
      { page: { after: 'a' } },
      { page: {} },
      null,
    ]),
  }),
  ...(choices.chance(128) && { x: choices.pick([null, 3]) }),
  ...(choices.chance(128) && { colour: choices.pick([null, 'RED']) }),
});

const bytesOf = (seed: number, length: number): Uint8Array =>
  Uint8Array.from({ length }, (_, index) => hash(String(index), seed));

/** The scopes at each event of a subscription; before it, those of the request. */
interface Rights {
  readonly events: readonly (string | undefined)[];
  at: number;
}
const rightsOf = new Map<string, Rights>();

const scopesIn = (text: string | undefined): string[] | null =>
  text === undefined ? null : text.split(' ').filter(Boolean);
const headerOf = ({ headers }: Pick<IncomingMessage, 'headers'>, name: string): string | undefined =>
  headers[name] === undefined ? undefined : String(headers[name]);

/** A caller may lose or get scopes after its schema was chosen, as over an open socket. */
const auth: AuthOptions<IncomingMessage> = {
  scopes(request, { context }) {
    if (context === undefined) return scopesIn(headerOf(request, 'x-chosen'));
    const rights = rightsOf.get(headerOf(request, 'x-rights') ?? '');
    const held = headerOf(request, 'x-held');
    return scopesIn(rights === undefined || rights.at < 0 ? held : rights.events[rights.at]);
  },
  policies(names, request) {
    const rights = rightsOf.get(headerOf(request, 'x-rights') ?? '');
    const held = headerOf(request, 'x-held');
    const scopes = scopesIn(rights === undefined || rights.at < 0 ? held : rights.events[rights.at]);
    return policiesOf(scopes).filter((name) => names.includes(name));
  },
};

const partFor = (scopes: readonly string[] | null, whole: GraphQLSchema): GraphQLSchema =>
  visibleSchema(whole, scopes, policiesOf(scopes));

type Kind = 'whole' | 'part';
const ENGINES = ['compiled', 'graphql-js'] as const;
const MODES = ['reject', 'null'] as const;
type Pair = Readonly<Record<Kind, Server>>;

/** What differed between the whole schema and a part, or a part that is wrong in itself. */
export interface Difference {
  readonly seed: number;
  readonly what: string;
  readonly details: unknown;
}

export interface Counts {
  cases: number;
  /** Operations with the same result, by transport. */
  readonly equal: Record<string, number>;
  /** Of these, those with data. */
  data: number;
  /** Those with errors of authorization. */
  denied: number;
  refused: number;
  /** Pairs of schemas and callers. */
  parts: number;
  hidden: number;
}

export const noCounts = (): Counts => ({
  cases: 0,
  equal: {},
  data: 0,
  denied: 0,
  refused: 0,
  parts: 0,
  hidden: 0,
});

/** Compares one random schema with its parts for several callers, in `documents` operations each. */
export async function compareSchema(
  seed: number,
  { callers, documents }: { readonly callers: number; readonly documents: number },
  counts: Counts,
): Promise<Difference | undefined> {
  const choices = readChoices(bytesOf(seed, 4000));
  const plain = randomSchema(choices);
  const schema = V17 ? withIncremental(plain) : plain;
  const isAsync = choices.chance(100);
  const typing = choices.pick(TYPINGS);
  addResolvers(schema, typing, isAsync);
  const reports: Record<Kind, unknown[]> = { whole: [], part: [] };
  const endpoints: { close(): Promise<void> }[] = [];
  const serve = (kind: Kind, engine: (typeof ENGINES)[number], mode: (typeof MODES)[number]): Server => {
    const handler = graphqlHTTP(schema, {
      engine,
      graphiql: false,
      limits: { depth: 30 },
      httpCache: { defaultMaxAge: 60 },
      cost: { maxCost: 1e9 },
      onError: (error) => reports[kind].push(error),
      context: (request) => ({ turn: turnOf(request as IncomingMessage) }),
      auth: { ...auth, mode, ...(kind === 'part' && { schemaFor: partFor }) },
    });
    const server = createServer((req, res) => handler(req, res, () => res.end()));
    endpoints.push(attachSubscriptions(server, handler, { contextPer: 'event' }));
    return server;
  };
  const pairs = new Map<string, Pair>();
  const pairOf = (engine: (typeof ENGINES)[number], mode: (typeof MODES)[number]): Pair => {
    const key = `${engine} ${mode}`;
    const pair = pairs.get(key) ?? { whole: serve('whole', engine, mode), part: serve('part', engine, mode) };
    pairs.set(key, pair);
    return pair;
  };
  const differs = (what: string, details: unknown): Difference => ({ seed, what, details });
  try {
    for (let caller = 0; caller < callers; caller++) {
      const own = readChoices(bytesOf(seed * 1000 + caller, 300 + 1500 * documents));
      const chosen = randomCaller(own);
      const held = own.chance(70) ? randomCaller(own) : chosen;
      const part = partFor(scopesIn(chosen), schema);
      counts.parts++;
      if (part !== schema) counts.hidden++;
      const wrong = wrongPart(schema, part, scopesIn(chosen));
      if (wrong !== undefined) return differs(wrong, { chosen });
      const pair = pairOf(own.pick(ENGINES), own.pick(MODES));
      const shown = caller === 0 ? await introspectionOf(pair.part, part, chosen) : undefined;
      if (shown !== undefined) return differs('introspection', { chosen, shown });
      for (let index = 0; index < documents; index++) {
        const operation = own.pick([
          ...Array(6).fill(OperationTypeNode.QUERY),
          OperationTypeNode.MUTATION,
          OperationTypeNode.SUBSCRIPTION,
        ] as OperationTypeNode[]);
        const from = own.chance(190) && part.getRootType(operation) ? part : schema;
        const query = randomOperation(own, schema, from, operation);
        if (query === undefined) continue;
        const invalid = invalidIn(part, query, operation);
        const [engine, mode] = [own.pick(ENGINES), own.pick(MODES)];
        const setting = pairOf(engine, mode);
        for (let run = 0; run < RUNS; run++) {
          const request = randomRequest(own, { query, operation, chosen, held });
          const answers = {
            whole: await answerOf(setting.whole, request),
            part: await answerOf(setting.part, request),
          };
          counts.cases++;
          const refusal = invalid ?? unknownVariable(part, query, request.variables);
          const details = { ...request, engine, mode, typing, isAsync, refusal, ...answers };
          const errors = [...reports.whole, ...reports.part];
          if (errors.length > 0) return differs('report', { ...details, errors: errors.map(String) });
          if (refusal !== undefined) {
            if (!isRefusal(answers.part, request.transport)) return differs('not refused', details);
            counts.refused++;
          } else if (answers.whole !== answers.part) return differs('result', details);
          else {
            counts.equal[request.transport] = (counts.equal[request.transport] ?? 0) + 1;
            if (/"data":\{/.test(answers.part)) counts.data++;
            if (/FORBIDDEN|UNAUTHENTICATED/.test(answers.part)) counts.denied++;
          }
        }
      }
    }
    return undefined;
  } finally {
    await Promise.all(endpoints.map((endpoint) => endpoint.close()));
  }
}

/** Executions of each operation. */
const RUNS = 8;

function randomRequest(
  choices: Choices,
  {
    operation,
    ...params
  }: Pick<Request, 'query' | 'chosen' | 'held'> & { readonly operation: OperationTypeNode },
): Request {
  const isStream = operation === OperationTypeNode.SUBSCRIPTION;
  const rights = Array.from({ length: EVENTS }, () =>
    choices.chance(128) ? params.held : randomCaller(choices),
  );
  return {
    ...params,
    variables: randomVariables(choices),
    rights: isStream ? rights : [],
    transport: isStream ? 'events' : choices.pick(TRANSPORTS),
  };
}

function randomOperation(
  choices: Choices,
  whole: GraphQLSchema,
  from: GraphQLSchema,
  operation: OperationTypeNode,
): string | undefined {
  for (let attempt = 0; attempt < 8; attempt++) {
    let document = parse(
      operation === OperationTypeNode.SUBSCRIPTION
        ? subscriptionOf(choices, from)
        : randomDocument(choices, from, giveArguments, operation),
    );
    if (V17 && operation !== OperationTypeNode.SUBSCRIPTION && choices.chance(80))
      document = withDirectives(from, document, choices);
    const { length } = validate(whole, document);
    if (length === 0 && !/_nothing/.test(print(document))) return print(document);
  }
  return undefined;
}

/** A subscription has one root field. */
function subscriptionOf(choices: Choices, schema: GraphQLSchema): string {
  const root = choices.pick(Object.values(schema.getSubscriptionType()?.getFields() ?? {}));
  if (root === undefined) return '{ a }';
  const { alias, text } = giveArguments(choices, root);
  const type = getNamedType(root.type);
  const isComposite = 'getFields' in type || 'getTypes' in type;
  const selection = isComposite
    ? `{ __typename ${'getFields' in type ? leavesOf(choices, type.getFields()) : ''} }`
    : '';
  const set = `{ ${alias}${root.name}${text} ${selection} }`;
  const definitions = ['$in: In', '$x: Int', '$colour: Colour = BLUE'].filter((each) =>
    set.includes(each.slice(0, each.indexOf(':'))),
  );
  return `subscription ${definitions.length === 0 ? '' : `(${definitions.join(', ')})`} ${set}`;
}

function leavesOf(
  choices: Choices,
  fields: Readonly<Record<string, GraphQLField<unknown, unknown>>>,
): string {
  return Object.values(fields)
    .filter(() => choices.chance(170))
    .map((each) => {
      const { alias, text } = giveArguments(choices, each);
      const type = getNamedType(each.type);
      return `${alias}${each.name}${text} ${'getFields' in type || 'getTypes' in type ? '{ __typename }' : ''}`;
    })
    .join(' ');
}

/** Over HTTP by the media types that a client accepts, or over a WebSocket. */
const TRANSPORTS = V17
  ? ['json', 'json', 'graphql', 'parts', 'parts', 'jsonl', 'socket']
  : ['json', 'json', 'json', 'graphql', 'socket'];

interface Request {
  readonly query: string;
  readonly variables: Record<string, unknown>;
  readonly chosen: string | undefined;
  readonly held: string | undefined;
  readonly rights: readonly (string | undefined)[];
  readonly transport: string;
}

const ACCEPT: Readonly<Record<string, string>> = {
  json: 'application/json',
  graphql: 'application/graphql-response+json',
  parts: 'multipart/mixed;incrementalSpec=v0.2, application/graphql-response+json',
  jsonl: 'application/jsonl, application/graphql-response+json',
};

let requests = 0;
const turnOf = (request: IncomingMessage) => async (event: number) => {
  const rights = rightsOf.get(headerOf(request, 'x-rights') ?? '');
  if (rights !== undefined) rights.at = event;
};

/** The results in a multipart response, or the one of a plain response. */
function resultsIn(text: string): unknown[] {
  const parts = text
    .split(/\r\n---\r\n|\r\n-----\r\n/)
    .map((part) => part.slice(part.indexOf('\r\n\r\n') + 1).trim());
  return parts.filter((part) => part.startsWith('{')).map((part) => JSON.parse(part));
}

/** How graphql 17 groups and orders deferred parts depends on when the client reads. */
function inAnyOrder([first, ...later]: readonly unknown[]): string {
  const parts = later.flatMap((result) => (result as { incremental?: readonly unknown[] }).incremental ?? []);
  return [first, ...parts.map((part) => JSON.stringify(part)).sort()]
    .map((each) => JSON.stringify(each))
    .join('\n');
}

/** The answer as a text: status, the headers that depend on the operation, and the body; or all results. */
async function answerOf(
  server: Server,
  { query, variables, chosen, held, rights, transport }: Request,
): Promise<string> {
  const id = String(requests++);
  const headers = { 'x-chosen': chosen, 'x-held': held, 'x-rights': id };
  if (transport === 'events') rightsOf.set(id, { events: rights, at: -1 });
  try {
    if (transport === 'events' || transport === 'socket') {
      const results: unknown[] = [];
      const reading = await subscribe(server, { query, variables, headers });
      for await (const result of reading) results.push(result);
      return transport === 'socket' ? inAnyOrder(results) : JSON.stringify(results);
    }
    const accept = ACCEPT[transport];
    const response = await inject(server, { query, variables, headers: { ...headers, accept } });
    const shown = ['content-type', 'cache-control', 'graphql-cost'].map((name) => response.headers[name]);
    const text = transport === 'parts' ? inAnyOrder(resultsIn(response.text)) : response.text;
    return `${response.status} ${shown.join(' | ')}\n${text}`;
  } catch (error) {
    return String(error);
  } finally {
    rightsOf.delete(id);
  }
}

const isRefusal = (answer: string, transport: string): boolean => {
  const isInvalid = /GRAPHQL_VALIDATION_FAILED|BAD_USER_INPUT/.test(answer) && !answer.includes('"data"');
  return transport === 'graphql' ? isInvalid && answer.startsWith('400') : isInvalid;
};

/** Why a part refuses a document: what it names that the part does not have. */
function invalidIn(part: GraphQLSchema, query: string, operation: OperationTypeNode): string | undefined {
  if (part.getRootType(operation) == null) return `There is no ${operation}`;
  return validate(part, parse(query))[0]?.message;
}

/** Why a part refuses the variables of a document. */
function unknownVariable(
  part: GraphQLSchema,
  query: string,
  variables: Record<string, unknown>,
): string | undefined {
  const operation = parse(query).definitions.find(({ kind }) => kind === 'OperationDefinition');
  const { variableDefinitions = [] } = operation as OperationDefinitionNode;
  return getVariableValues(part, variableDefinitions, variables).errors?.[0]?.message;
}

/** Compares the introspection of a caller with that of the part. */
async function introspectionOf(
  server: Server,
  part: GraphQLSchema,
  chosen: string | undefined,
): Promise<string | undefined> {
  const query = getIntrospectionQuery();
  const headers = { 'x-chosen': chosen, 'x-held': chosen };
  const { data } = await inject(server, { query, headers });
  const expected = Object(await executeNonIncremental({ schema: part, document: parse(query) }));
  const [one, other] = [data, expected.data].map((each) => JSON.stringify(each));
  return one === other ? undefined : `${one}\n${other}`;
}

// What a part must not have.

interface Annotated {
  readonly astNode?: { readonly directives?: readonly DirectiveNode[] | undefined } | null | undefined;
}

/** Whether an element has a requirement of its own that a caller does not meet. */
function isDenied({ astNode }: Annotated, scopes: readonly string[] | null): boolean {
  return (astNode?.directives ?? []).some(({ name, arguments: [given] = [] }) => {
    if (name.value === 'authenticated') return scopes === null;
    if (name.value !== 'requiresScopes' && name.value !== 'policy') return false;
    const held = name.value === 'policy' ? policiesOf(scopes) : scopes;
    const lists = given === undefined ? [] : (valueFromASTUntyped(given.value) as string[][]);
    return !lists.some((list) => list.every((each) => held?.includes(each) === true));
  });
}

const argumentsOf = (
  field: GraphQLField<unknown, unknown> | GraphQLInputField,
): readonly GraphQLArgument[] => ('args' in field ? field.args : []);

/**
 * What is wrong with a part; undefined if it is valid, has nothing with a requirement that its caller does not meet, and has all
 * else of its object types and input objects.
 */
function wrongPart(
  whole: GraphQLSchema,
  part: GraphQLSchema,
  scopes: readonly string[] | null,
): string | undefined {
  const [invalid] = part === whole ? [] : validateSchema(part);
  if (invalid !== undefined) return invalid.message;
  // A root type stays also if the caller does not meet its requirement.
  const isKnown = ({ type }: { readonly type: GraphQLOutputType | GraphQLInputType }): boolean => {
    const { name } = getNamedType(type);
    return part.getType(name) !== undefined && !isDenied(whole.getType(name) ?? {}, scopes);
  };
  for (const type of Object.values(part.getTypeMap())) {
    const original = whole.getType(type.name);
    if (!isObjectType(original) && !isInputObjectType(original)) continue;
    if (type.name.startsWith('__')) continue;
    const shown: Readonly<Record<string, unknown>> = 'getFields' in type ? type.getFields() : {};
    const above = isObjectType(original) ? original.getInterfaces() : [];
    for (const field of Object.values(original.getFields())) {
      const same = [field, ...above.flatMap((each) => each.getFields()[field.name] ?? [])];
      const isDeniedArgument = ({ name }: GraphQLArgument): boolean =>
        same.some((each) => argumentsOf(each).some((arg) => arg.name === name && isDenied(arg, scopes)));
      const args = argumentsOf(field);
      const isUsable = args.every(
        (arg) => !isRequiredArgument(arg) || (isKnown(arg) && !isDeniedArgument(arg)),
      );
      const coordinate = `${type.name}.${field.name}`;
      const isAllowed = !same.some((each) => isDenied(each, scopes));
      if (field.name in shown && !isAllowed) return `shows ${coordinate}`;
      if (!(field.name in shown) && isAllowed && isUsable && isKnown(field)) {
        // A root type may have the requirement.
        if (isDenied(original, scopes)) continue;
        return `hides ${coordinate}`;
      }
      const given = (shown[field.name] as { readonly args?: readonly GraphQLArgument[] } | undefined)?.args;
      for (const arg of given === undefined ? [] : args) {
        const isShown = given?.some(({ name }) => name === arg.name) === true;
        if (isShown === isDeniedArgument(arg) && (isShown || isKnown(arg)))
          return `${isShown ? 'shows' : 'hides'} ${coordinate}(${arg.name}:)`;
      }
    }
  }
  return undefined;
}
