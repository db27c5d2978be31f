/** The members of a response. */
export const RESPONSE_PROPERTIES: Record<string, object> = {
  errors: { type: 'array', minItems: 1, items: { $ref: '#/components/schemas/GraphQLError' } },
  data: { type: ['object', 'null'], additionalProperties: true },
  extensions: { type: 'object', additionalProperties: true },
};

/** The schemas of requests and responses, in JSON Schema 2020-12 as OpenAPI 3.1 has it. */
export const SCHEMAS: Record<string, object> = {
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
export const PARAMETERS: readonly object[] = [
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
export const PARAMETERS_BY_ID: readonly object[] = [
  { name: 'documentId', in: 'query', schema: documentId, description: 'The id of a document' },
  ...PARAMETERS.map((parameter) => ({ ...parameter, required: false })),
];

const byText = SCHEMAS['GraphQLRequest'] as { readonly properties: object };

/** The schemas with the option `documents`: a request has a document or its id. */
export const SCHEMAS_BY_ID: Record<string, object> = {
  ...SCHEMAS,
  GraphQLRequest: {
    type: 'object',
    anyOf: [{ required: ['query'] }, { required: ['documentId'] }],
    properties: { documentId, ...byText.properties },
  },
};
