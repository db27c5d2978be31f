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
import { events } from '../diagnostics/events.ts';
import { markClientError, refusalError } from '../execution/graphql-error.ts';
import { setErrorCode } from '../execution/graphql-js.ts';
import type { EngineSettings, RequestError } from '../execution/types.ts';
import { byOption, wrongReturnValue } from '../options/rules.ts';
import { GRAPHQL_OPTIONS } from '../options/scopes.ts';
import { isObject } from '../options/values.ts';
import {
  type DocumentSize,
  exceedsIntrospection,
  limitExceeded,
  maxCharacters,
  measure,
  STANDARD_QUERIES,
} from './limits.ts';
import type { CoreSettings } from './options.ts';

const NESTING = 'LIMIT_NESTING';

/** A parsed document within the limits. */
export interface Parsed {
  readonly kind: 'document';
  readonly document: DocumentNode;
  readonly size: DocumentSize;
}

/** A document that may be executed. */
export interface Validated extends Parsed {
  /** The document selects `__schema` or `__type`. */
  readonly introspects: boolean;
}

/** Validates document texts in two steps; each step may take milliseconds. */
interface Validator {
  /** Checks length, syntax and limits, in this order. */
  parse(source: string): Parsed | RequestError;
  /** Applies the validation rules. Returns an error of `parse` as it is. */
  validate(schema: GraphQLSchema, parsed: Parsed | RequestError): Validated | RequestError;
}

export function createValidator(
  { limits, validationRules }: Pick<CoreSettings, 'limits' | 'validationRules'>,
  { maxErrors, hideSuggestions }: Pick<EngineSettings, 'maxErrors' | 'hideSuggestions'>,
): Validator {
  const rules: readonly ValidationRule[] = [...specifiedRules, ...validationRules.map(checkedRule)];
  const parseOptions = { maxTokens: limits.tokens };
  const maxLength = maxCharacters(limits);

  // graphql-js finds the location of each error by counting lines from the start.
  const maxLines = maxLength / 20;

  function applyRules(schema: GraphQLSchema, document: DocumentNode): readonly GraphQLError[] {
    const started = performance.now();
    const errors = validate(schema, document, rules, { maxErrors, hideSuggestions })
      .slice(0, maxErrors)
      .map(limitLocations);
    if (events.validate.hasSubscribers) {
      events.validate.publish({ document, errors, duration: performance.now() - started });
    }
    return errors;
  }

  return {
    parse(source) {
      if (source.length > maxLength) {
        const limit = `${maxLength} characters${byOption('limits.tokens')}`;
        return overLimit(refusalError(`The document is longer than ${limit}`, 'LIMIT_CHARACTERS'));
      }
      if (source.length > maxLines && countLines(source) > maxLines) {
        return overLimit(refusalError(`The document has more than ${maxLines} lines`, 'LIMIT_CHARACTERS'));
      }
      const document = parseDocument(source, parseOptions);
      if (document instanceof GraphQLError) {
        if (document.extensions['code'] === NESTING) return overLimit(document);
        if (!isOverTokens(source, limits.tokens, document))
          return { ...refused([document], 'GRAPHQL_PARSE_FAILED'), unparsable: true };
        const limit = `${limits.tokens} tokens${byOption('limits.tokens')}`;
        return overLimit(refusalError(`The document has more than ${limit}`, 'LIMIT_TOKENS'));
      }
      const size = catchGraphQLError(() => measure(document, limits));
      return size instanceof GraphQLError ? overLimit(size) : { kind: 'document', document, size };
    },
    validate(schema, parsed) {
      if (parsed.kind === 'error') return parsed;
      const { document, size } = parsed;
      const errors = catchGraphQLError(() => applyRules(schema, document));
      if (errors instanceof GraphQLError) {
        // A rule has thrown it, such as that of graphql 16 about subscriptions.
        setErrorCode(errors, 'GRAPHQL_VALIDATION_FAILED');
        return overLimit(errors);
      }
      if (errors.length > 0) return refused(errors, 'GRAPHQL_VALIDATION_FAILED');
      const introspects = size.introspection > 0;
      if (introspects && exceedsIntrospection(schema, document)) {
        return overLimit(limitExceeded('introspectionValues', STANDARD_QUERIES));
      }
      return { kind: 'document', document, size, introspects };
    },
  };
}

function parseDocument(source: string, options: { maxTokens: number }): DocumentNode | GraphQLError {
  const started = performance.now();
  const result = catchGraphQLError(() => parse(source, options));
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

/** Returns the result of `step`, or the error that the document caused: a GraphQLError or a stack overflow. */
function catchGraphQLError<T>(step: () => T): T | GraphQLError {
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

/**
 * The token limit error of graphql-js has no code, so it is recognised by its position: no other syntax error
 * can have the position of the first token above the limit.
 */
function isOverTokens(source: string, maxTokens: number, { positions }: GraphQLError): boolean {
  const lexer = new Lexer(new Source(source));
  try {
    for (let count = 0; count <= maxTokens; count += 1) {
      if (lexer.advance().kind === TokenKind.EOF) return false;
    }
  } catch {
    return false;
  }
  return positions?.[0] === lexer.token.start;
}

/** Locations per error. A conflict of two fields may have hundreds, because it lists all fields below them. */
const MAX_LOCATIONS = 10;

/** Keeps the first and the last locations, which are the two sides of a conflict. */
function limitLocations(error: GraphQLError): GraphQLError {
  const { nodes, message, originalError, extensions } = error;
  if (nodes === undefined || nodes.length <= MAX_LOCATIONS) return error;
  const kept = [...nodes.slice(0, MAX_LOCATIONS / 2), ...nodes.slice(-MAX_LOCATIONS / 2)];
  return new GraphQLError(message, { nodes: kept, originalError, extensions });
}

function refused(errors: readonly GraphQLError[], code: string): RequestError {
  for (const error of errors) {
    setErrorCode(error, code);
    markClientError(error);
  }
  return { kind: 'error', errors, status: 400 };
}

/** A factory of rules that was not called would be a rule without an effect: `depthLimit` for `depthLimit(10)`. */
const checkedRule =
  (rule: ValidationRule): ValidationRule =>
  (context) => {
    const visitor = rule(context);
    if (isObject(visitor)) return visitor;
    const accepted = 'a visitor. Pass the rule that a factory returns, such as depthLimit(10)';
    throw wrongReturnValue(GRAPHQL_OPTIONS, 'validationRules', visitor, accepted);
  };

const overLimit = (error: GraphQLError): RequestError => ({
  kind: 'error',
  errors: [error],
  status: 400,
  limit: true,
});
