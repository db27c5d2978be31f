import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  Lexer,
  parse,
  Source,
  specifiedRules,
  TokenKind,
  type ValidationRule,
  validate,
} from 'graphql';
import type { EngineSettings, RequestError } from '../../execution/types.ts';
import { events } from '../diagnostics.ts';
import { refusalError } from '../errors.ts';
import { type Cost, measure } from '../limits/limits.ts';
import type { CoreSettings } from '../options.ts';

const NESTING = 'LIMIT_NESTING';

/** A document within the limits. */
export interface Read {
  readonly document: DocumentNode;
  readonly cost: Cost;
}

/** A document that may be executed. */
export interface Checked extends Read {
  /** It asks for `__schema` or `__type`. */
  readonly introspects: boolean;
}

/** Turns source text into a checked document or says why not, in two steps that each may take milliseconds. */
export interface Checker {
  /** Length, syntax and limits, in this order. */
  read(source: string): Read | RequestError;
  /** Validation. */
  validate(schema: GraphQLSchema, read: Read): Checked | RequestError;
}

/** The checker of one core. */
export function createChecker(
  { limits, validationRules }: CoreSettings,
  { maxErrors, hideSuggestions }: EngineSettings,
): Checker {
  const rules: readonly ValidationRule[] = [...specifiedRules, ...validationRules];
  // graphql before 16.13 knows the first name only.
  const parseOptions = { maxTokens: limits.tokens, maxLexicalTokens: limits.tokens };

  // Each error's location is found by counting lines from the top.
  const mostLines = Math.floor(limits.characters / 20);

  function validated(schema: GraphQLSchema, document: DocumentNode): readonly GraphQLError[] {
    const started = performance.now();
    const errors = validate(schema, document, rules, { maxErrors, hideSuggestions })
      .slice(0, maxErrors)
      .map(withFewPlaces);
    if (events.validate.hasSubscribers) {
      events.validate.publish({ document, errors, duration: performance.now() - started });
    }
    return errors;
  }

  function read(source: string): Read | RequestError {
    if (source.length > limits.characters) {
      return overLimit(
        refusalError(`The document is longer than ${limits.characters} characters`, 'LIMIT_CHARACTERS'),
      );
    }
    if (source.length > mostLines && countLines(source) > mostLines) {
      return overLimit(refusalError(`The document has more than ${mostLines} lines`, 'LIMIT_CHARACTERS'));
    }
    const document = parsed(source, parseOptions);
    if (document instanceof GraphQLError) {
      if (document.extensions['code'] === NESTING) return overLimit(document);
      return isOverTokens(source, limits.tokens, document)
        ? overLimit(refusalError(`The document has more than ${limits.tokens} tokens`, 'LIMIT_TOKENS'))
        : { ...refused([document]), unparsable: true };
    }
    const cost = caught(() => measure(document, limits));
    return cost instanceof GraphQLError ? overLimit(cost) : { document, cost };
  }

  return {
    read,
    validate(schema, { document, cost }) {
      const errors = caught(() => validated(schema, document));
      if (errors instanceof GraphQLError) return overLimit(errors);
      return errors.length > 0 ? refused(errors) : { document, cost, introspects: cost.introspection > 0 };
    },
  };
}

function parsed(source: string, options: { maxTokens: number }): DocumentNode | GraphQLError {
  const started = performance.now();
  const result = caught(() => parse(source, options));
  if (events.parse.hasSubscribers) {
    const failed = result instanceof GraphQLError;
    events.parse.publish({
      source,
      document: failed ? undefined : result,
      errors: failed ? [result] : [],
      duration: performance.now() - started,
    });
  }
  return result;
}

/** The step's value, or the error a document may cause: a GraphQLError, or a stack that ran out in a recursive walk. */
function caught<T>(step: () => T): T | GraphQLError {
  try {
    return step();
  } catch (error) {
    if (error instanceof GraphQLError) return error;
    if (error instanceof RangeError) return refusalError('The document is nested too deeply', NESTING);
    throw error;
  }
}

function countLines(source: string): number {
  let lines = 1;
  for (let at = source.indexOf('\n'); at !== -1; at = source.indexOf('\n', at + 1)) lines += 1;
  for (let at = source.indexOf('\r'); at !== -1; at = source.indexOf('\r', at + 1)) lines += 1;
  return lines;
}

/** graphql-js has only words for its token limit; its error stands at the first token too many, and none of others can. */
function isOverTokens(source: string, most: number, { positions }: GraphQLError): boolean {
  const lexer = new Lexer(new Source(source));
  try {
    for (let count = 0; count <= most; count += 1) {
      if (lexer.advance().kind === TokenKind.EOF) return false;
    }
  } catch {
    return false;
  }
  return positions?.[0] === lexer.token.start;
}

/** Places that one error names at most: one conflict of two fields has hundreds, of all that lies below them. */
const MOST_PLACES = 10;

/** Keeps places of both ends, which are the two sides of a conflict. */
function withFewPlaces(error: GraphQLError): GraphQLError {
  const { nodes, message, originalError, extensions } = error;
  if (nodes === undefined || nodes.length <= MOST_PLACES) return error;
  const few = [...nodes.slice(0, MOST_PLACES / 2), ...nodes.slice(-MOST_PLACES / 2)];
  return new GraphQLError(message, { nodes: few, originalError, extensions });
}

const refused = (errors: readonly GraphQLError[]): RequestError => ({ errors, status: 400 });
const overLimit = (error: GraphQLError): RequestError => ({ errors: [error], status: 400, limit: true });
