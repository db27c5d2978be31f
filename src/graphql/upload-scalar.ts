import { GraphQLScalarType, GraphQLSchema, isScalarType } from 'graphql';
import { optionError } from '../options/resolve-options.ts';
import { UPLOAD_OPTIONS } from '../options/scopes.ts';

/** The default `parseValue` of graphql, for scalars without their own function. */
const { parseValue: acceptsAnyValue } = new GraphQLScalarType({ name: 'Any' });

/**
 * Refuses a schema whose scalar `Upload` accepts any JSON value, as `scalar Upload` in SDL does without a
 * resolver: clients could send `{"filename":"x"}` in place of a file.
 *
 * @throws TypeError (code `ERR_OPTION`).
 */
export function assertUploadScalar(schema: unknown): void {
  const type = schema instanceof GraphQLSchema ? schema.getType('Upload') : undefined;
  if (!isScalarType(type) || type.parseValue !== acceptsAnyValue) return;
  throw optionError(
    { name: 'graphqlHTTP', page: UPLOAD_OPTIONS.page },
    'the scalar "Upload" of the schema accepts any JSON value; pass the scalar Upload of espalier as its resolver (makeExecutableSchema({ typeDefs, resolvers: { Upload } })), or set multipartUploadsEnabled: false',
  );
}
