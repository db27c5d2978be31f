import { buildSchema, parse, specifiedRules, validate } from 'graphql';
import { yieldToEventLoop } from '../yield-to-event-loop.ts';

/**
 * Lexical tokens from which a document takes long to validate in a new process. Until V8 has compiled the
 * validation rules, they need about ten times as long: 100 ms for a document of the largest size.
 */
const MANY_TOKENS = 1000;

/** Steps after which the rules are compiled. Each takes a few milliseconds. */
const STEPS = 20;

const times = (count: number, make: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => make(index)).join(' ');

/** A document that uses all rules: fields that merge, aliases, arguments, fragments and wrong names. */
const DOCUMENT = `
  query ($v: Int) {
    a(b: $v) { ${times(40, (index) => `x${index}: c`)} ${times(10, () => 'c')} ...f }
    x: a { ... on Query { a { ${times(4, (index) => `unknown${index}`)} } } }
  }
  fragment f on Query { ${times(20, (index) => `y${index % 5}: a(b: 1) { c @include(if: true) }`)} }
`;

let warmingUp: Promise<void> | undefined;

/**
 * Prepares the process for the validation of a document with this number of tokens: the first large document
 * of a process waits until the rules are compiled, and other work runs meanwhile. Processes that get no large
 * document do nothing. Returns undefined if there is nothing to wait for.
 */
export function warmUpValidation(tokens: number | undefined): Promise<void> | undefined {
  if (tokens === undefined || tokens < MANY_TOKENS) return undefined;
  warmingUp ??= validateRepeatedly();
  return warmingUp;
}

async function validateRepeatedly(): Promise<void> {
  await yieldToEventLoop();
  const schema = buildSchema('type Query { a(b: Int): Query c: Int }');
  for (let step = 0; step < STEPS; step++) {
    await yieldToEventLoop();
    validate(schema, parse(DOCUMENT), specifiedRules);
  }
}
