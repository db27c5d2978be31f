import { GraphQLError, GraphQLScalarType, Kind, type ValueNode } from 'graphql';
import type { UploadedFile } from '../../types/uploads.ts';
import { UPLOADED } from '../http/body.ts';
import { formatValue } from '../options/rules.ts';

const SPECIFICATION = 'https://github.com/jaydenseric/graphql-multipart-request-spec';

/** An uploaded file, as resolvers receive it. */
export type Upload = UploadedFile;

/**
 * The scalar type of file arguments. Its values come only from file parts of a multipart request, never from
 * JSON values or literals. It cannot be an output type.
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
    throw new GraphQLError(`Upload must be given as a variable, not as a literal (${kindName(node)})`, {
      nodes: node,
    });
  },
  serialize() {
    throw new GraphQLError(
      'Upload is an input type and cannot be returned; return a URL or an object type instead',
    );
  },
});

function kindName(node: ValueNode): string {
  return node.kind === Kind.NULL ? 'null' : node.kind.replace(/Value$/, '').toLowerCase();
}

function isUploadedFile(value: unknown): value is UploadedFile {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, UPLOADED);
}
