import { GraphQLScalarType, GraphQLSchema, isScalarType } from 'graphql';
import { optionError } from '../options/rules.ts';
import { UPLOAD_OPTIONS } from '../options/scopes.ts';

/** The default `parseValue` of graphql, for scalars without their own function. */
const { parseValue: acceptsAnyValue } = new GraphQLScalarType({ name: 'Any' });

/**
 * The message of graphql-upload's scalar for all values but its own. Its functions have no other mark, and several
 * versions of it may be installed.
 */
const GRAPHQL_UPLOAD = 'Upload value invalid';

/**
 * Refuses a schema whose scalar `Upload` accepts any JSON value, as `scalar Upload` in SDL does without a
 * resolver: clients could send `{"filename":"x"}` in place of a file. The scalar of graphql-upload refuses every file.
 *
 * @throws TypeError (code `ERR_OPTION`).
 */
export function assertUploadScalar(schema: unknown): void {
  const type = schema instanceof GraphQLSchema ? schema.getType('Upload') : undefined;
  if (!isScalarType(type)) return;
  if (type.parseValue === acceptsAnyValue) throw wrongScalar('accepts any JSON value');
  if (String(type.parseValue).includes(GRAPHQL_UPLOAD)) {
    throw wrongScalar('is that of graphql-upload, which refuses the files that graphqlHTTP receives');
  }
}

const wrongScalar = (problem: string): TypeError =>
  optionError(
    { name: 'graphqlHTTP', page: UPLOAD_OPTIONS.page },
    `the scalar "Upload" of the schema ${problem}; pass the scalar Upload of espalier as its resolver (makeExecutableSchema({ typeDefs, resolvers: { Upload } })), or set multipartUploadsEnabled: false`,
  );
