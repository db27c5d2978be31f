import { GraphQLError, GraphQLScalarType, Kind, type ValueNode } from 'graphql';
import type { UploadedFile } from '../../types/uploads.ts';
import { formatValue } from '../options/format-value.ts';
import { isUploadedFile } from './file.ts';

const SPECIFICATION = 'https://github.com/jaydenseric/graphql-multipart-request-spec';

/** An uploaded file as resolvers get it. */
export type Upload = UploadedFile;

/**
 * The scalar of file arguments. Its values come only from file parts of a multipart request: no JSON value and no literal
 * can pose as one. It has no output.
 */
export const Upload: GraphQLScalarType<UploadedFile, never> = new GraphQLScalarType<UploadedFile, never>({
  name: 'Upload',
  description: 'A file sent as a part of a multipart request.',
  specifiedByURL: SPECIFICATION,
  parseValue(value) {
    if (isUploadedFile(value)) return value;
    throw new GraphQLError(
      `Upload must be a file part of a multipart request, mapped to a variable (${SPECIFICATION}); got ${formatValue(value)}`,
    );
  },
  parseLiteral(node: ValueNode) {
    throw new GraphQLError(`Upload must be given by a variable, not by a literal (${kindName(node)})`, {
      nodes: node,
    });
  },
  serialize() {
    throw new GraphQLError('Upload has no output: return a URL or fields of your own');
  },
});

function kindName(node: ValueNode): string {
  return node.kind === Kind.NULL ? 'null' : node.kind.replace(/Value$/, '').toLowerCase();
}
