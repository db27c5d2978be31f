import type { OpenApiFragment, OpenApiOptions } from '../../types/graphql.ts';
import type { CoreDocuments } from '../core/by-id.ts';
import type { HttpSettings } from '../graphql/options.ts';
import { GRAPHQL_TYPE, JSON_TYPE } from '../http/negotiation.ts';
import { withoutSlash } from '../http/routing.ts';
import {
  isString,
  type OptionScope,
  oneOf,
  type Rules,
  resolveOptions,
  wrongArgument,
} from '../options/rules.ts';
import { GRAPHQL_OPTIONS } from '../options/scopes.ts';
import { describeTrustedQueries, type JsonSchema, orNull } from './queries.ts';

const REQUEST = { $ref: '#/components/schemas/GraphQLRequest' };
const BATCH = { type: 'array', minItems: 1, items: REQUEST };
/** The response to a GET that prefers HTML. */
const PAGE = { 'text/html': { schema: { type: 'string' } } };
/** The content of a request with files. */
const UPLOAD = {
  'multipart/form-data': {
    schema: { $ref: '#/components/schemas/GraphQLUpload' },
    encoding: { operations: { contentType: JSON_TYPE }, map: { contentType: JSON_TYPE } },
  },
};
const RESPONSE = { $ref: '#/components/schemas/GraphQLResponse' };

type OpenApi = (path: string, options?: OpenApiOptions) => OpenApiFragment;

const SCOPE: OptionScope = { ...GRAPHQL_OPTIONS, name: 'openapi' };
const rules: Rules<Required<OpenApiOptions>> = { version: oneOf('3.1', '3.2') };

/** Creates the function that describes the endpoint at a path, with the options of the handler. */
export function createOpenApi(settings: HttpSettings, documents: CoreDocuments | undefined): OpenApi {
  const withQuery = describeOperations(settings);
  // OpenAPI 3.1 has a closed list of methods.
  const { query: _, ...operations } = withQuery;
  return (path, options) => {
    if (!isString(path) || !path.startsWith('/')) {
      throw wrongArgument(SCOPE, 'path', path, "the path of the mount, such as '/graphql'");
    }
    const { version } = resolveOptions(SCOPE, options, rules);
    const described = version === '3.2' ? withQuery : operations;
    const trusted =
      documents === undefined || !settings.methods.includes('GET')
        ? undefined
        : describeTrustedQueries(withoutSlash(path), documents, (data) => resultResponses(settings, data));
    const schemas = documents === undefined ? SCHEMAS : SCHEMAS_BY_ID;
    return {
      paths: { [path]: described, ...trusted?.paths },
      components: { schemas: { ...schemas, ...trusted?.schemas } },
    };
  };
}

/** The statuses of errors, without and with a body. */
const URL_ERRORS = ['400', '403', '405', '406', '415'];
const BODY_ERRORS = ['400', '403', '405', '406', '408', '413', '415'];

const tags = ['GraphQL'];

/** Describes the methods that the handler accepts. */
function describeOperations(settings: HttpSettings): Record<string, object> {
  const described = { ...inUrl(settings), ...inBody(settings) };
  const names = settings.methods.map((method) => method.toLowerCase());
  return Object.fromEntries(
    names.flatMap((name) => Object.entries(described).filter(([key]) => key === name)),
  );
}

/** Describes the methods whose operation is in the URL. */
function inUrl(settings: HttpSettings): Record<string, object> {
  const { documents, graphiql, getMutations } = settings;
  const parameters = documents === undefined ? PARAMETERS : PARAMETERS_BY_ID;
  const described = responses(settings, URL_ERRORS, graphiql === false ? {} : PAGE);
  const mutations =
    getMutations === false ? 'Queries only.' : 'Queries, and mutations that cannot come from another site.';
  return {
    get: {
      operationId: 'graphqlGet',
      summary: 'Run a GraphQL operation given in the URL',
      description: graphiql === false ? mutations : `${mutations} GraphiQL for requests that prefer HTML.`,
      tags,
      parameters,
      responses: described,
    },
    head: {
      operationId: 'graphqlHead',
      summary: 'The headers of the same GET; never runs a mutation',
      tags,
      parameters,
      responses: Object.fromEntries(
        Object.entries(described).map(([status, { description }]) => [status, { description }]),
      ),
    },
  };
}

/** Describes the methods whose operation is in the body. */
function inBody(settings: HttpSettings): Record<string, object> {
  const { limits, multipartUploadsEnabled } = settings;
  const json = { [JSON_TYPE]: { schema: bodySchema(settings) } };
  const { 422: draft, ...described } = responses(settings, [...BODY_ERRORS, '422']);
  return {
    post: {
      operationId: 'graphqlPost',
      summary: 'Run a GraphQL operation',
      description: `A body of at most ${limits.bodyBytes} bytes, uploads apart.`,
      tags,
      requestBody: { required: true, content: multipartUploadsEnabled ? { ...json, ...UPLOAD } : json },
      responses: responses(settings, BODY_ERRORS),
    },
    query: {
      operationId: 'graphqlQuery',
      summary: 'Run a GraphQL query given in the body; safe and idempotent',
      description: `A body of at most ${limits.bodyBytes} bytes. Mutations get 422.`,
      tags,
      requestBody: { required: true, content: json },
      responses: {
        ...described,
        422: { ...draft, description: 'The operation is a mutation, or the request is not valid' },
      },
    },
  };
}

/** Describes the responses of an operation whose `data` is known. */
function resultResponses(settings: HttpSettings, data: JsonSchema): object {
  const described = responses({ ...settings, batching: false }, URL_ERRORS);
  const schema = {
    ...SCHEMAS['GraphQLResponse'],
    properties: { ...RESPONSE_PROPERTIES, data: orNull(data) },
  };
  const content = { [GRAPHQL_TYPE]: { schema }, [JSON_TYPE]: { schema } };
  for (const status of ['200', '294']) {
    if (described[status] !== undefined) described[status] = { ...described[status], content };
  }
  return described;
}

const bodySchema = ({ batching, limits }: HttpSettings): object =>
  batching ? { oneOf: [REQUEST, { ...BATCH, ...atMost(limits.batch) }] } : REQUEST;

const atMost = (items: number): object => (Number.isFinite(items) ? { maxItems: items } : {});

const WORDS: Record<string, string> = {
  '400': 'The request is malformed, the document is over a limit or cannot be parsed',
  '403': 'The request may come from a page of another site',
  '405': 'The method is not allowed for this operation; see `Allow`',
  '406': 'None of the media types is acceptable',
  '408': 'The body took too long to arrive',
  '413': 'The body, a file or the batch is too large',
  '415': 'The media type, charset or coding of the body is not supported',
  '422': 'The request is well-formed JSON but not valid: parameters, validation, variables',
};

interface Described {
  description: string;
  content: object;
  headers?: object;
}

function responses(
  { statusCodes, batching }: HttpSettings,
  errors: readonly string[],
  page: object = {},
): Record<string, Described> {
  const schema = batching ? { oneOf: [RESPONSE, { type: 'array', items: RESPONSE }] } : RESPONSE;
  const content = { [GRAPHQL_TYPE]: { schema }, [JSON_TYPE]: { schema } };
  const draft = statusCodes === '2026';
  const described: Record<string, Described> = {};
  described['200'] = { description: 'The result', content: { ...content, ...page } };
  if (draft) described['294'] = { description: 'Data together with errors', content };
  for (const status of draft ? [...errors, '422'] : errors) {
    described[status] = { description: WORDS[status] as string, content };
    if (status === '405') described[status].headers = { Allow: { schema: { type: 'string' } } };
  }
  return described;
}

const RESPONSE_PROPERTIES: Record<string, object> = {
  errors: { type: 'array', minItems: 1, items: { $ref: '#/components/schemas/GraphQLError' } },
  data: { type: ['object', 'null'], additionalProperties: true },
  extensions: { type: 'object', additionalProperties: true },
};

/** The schemas of requests and responses, in JSON Schema 2020-12 as OpenAPI 3.1 has it. */
const SCHEMAS: Record<string, object> = {
  GraphQLRequest: {
    type: 'object',
    required: ['query'],
    properties: {
      query: { type: 'string', minLength: 1, description: 'A GraphQL document' },
      operationName: {
        type: ['string', 'null'],
        description: 'The operation to run, where there are several',
      },
      variables: { type: ['object', 'null'], additionalProperties: true },
      extensions: { type: ['object', 'null'], additionalProperties: true },
    },
  },
  GraphQLUpload: {
    type: 'object',
    description: 'GraphQL multipart request specification: operations, map, then the files it names',
    required: ['operations', 'map'],
    properties: {
      operations: { $ref: '#/components/schemas/GraphQLRequest' },
      map: { type: 'object', additionalProperties: { type: 'array', items: { type: 'string' } } },
    },
    additionalProperties: { type: 'string', contentMediaType: 'application/octet-stream' },
  },
  GraphQLResponse: {
    type: 'object',
    properties: RESPONSE_PROPERTIES,
  },
  GraphQLError: {
    type: 'object',
    required: ['message'],
    properties: {
      message: { type: 'string' },
      locations: {
        type: 'array',
        items: {
          type: 'object',
          required: ['line', 'column'],
          properties: { line: { type: 'integer' }, column: { type: 'integer' } },
        },
      },
      path: { type: 'array', items: { type: ['string', 'integer'] } },
      extensions: { type: 'object', additionalProperties: true },
    },
  },
};

const jsonText = { 'application/json': { schema: { type: 'object' } } };

/** The parameters of GET and HEAD. */
const PARAMETERS: readonly object[] = [
  {
    name: 'query',
    in: 'query',
    required: true,
    schema: { type: 'string' },
    description: 'A GraphQL document',
  },
  { name: 'operationName', in: 'query', schema: { type: 'string' } },
  { name: 'variables', in: 'query', content: jsonText, description: 'A JSON object' },
  { name: 'extensions', in: 'query', content: jsonText, description: 'A JSON object' },
];

const documentId = { type: 'string', minLength: 1, description: 'The id of a document' };

/** The parameters of GET and HEAD with the option `documents`, in the order that the specification gives. */
const PARAMETERS_BY_ID: readonly object[] = [
  { name: 'documentId', in: 'query', schema: documentId, description: 'The id of a document' },
  ...PARAMETERS.map((parameter) => ({ ...parameter, required: false })),
];

const byText = SCHEMAS['GraphQLRequest'] as { readonly properties: object };

/** The schemas with the option `documents`: a request has a document or its id. */
const SCHEMAS_BY_ID: Record<string, object> = {
  ...SCHEMAS,
  GraphQLRequest: {
    type: 'object',
    anyOf: [{ required: ['query'] }, { required: ['documentId'] }],
    properties: { documentId, ...byText.properties },
  },
};
