import { createHash } from 'node:crypto';
import { Upload } from 'espalier';
import {
  GraphQLInputObjectType,
  GraphQLInt,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLSchema,
  GraphQLString,
} from 'graphql';

/** The arguments of the tests' resolvers, in order. Refused requests are not recorded. */
export type Seen = Upload[];

const FileInfo = new GraphQLObjectType({
  name: 'FileInfo',
  fields: {
    filename: { type: GraphQLString },
    mimetype: { type: GraphQLString },
    encoding: { type: GraphQLString },
    fieldName: { type: GraphQLString },
    size: { type: GraphQLInt },
    text: { type: GraphQLString },
    sha256: { type: GraphQLString },
  },
});

const Form = new GraphQLInputObjectType({
  name: 'Form',
  fields: () => ({
    file: { type: Upload },
    title: { type: GraphQLString },
    files: { type: new GraphQLList(Upload) },
  }),
});

async function describeFile(file: Upload): Promise<object> {
  const { filename, mimetype, encoding, fieldName, size } = file;
  const hash = createHash('sha256');
  for await (const chunk of file.createReadStream()) hash.update(chunk);
  const text = (size ?? 0) < 10_000 ? await file.text() : undefined;
  return { filename, mimetype, encoding, fieldName, size, text, sha256: hash.digest('hex') };
}

/** A schema of mutations that take files in every way there is, and record their arguments in `seen`. */
export function createSchema(seen: Seen): GraphQLSchema {
  const take = (file: Upload): Promise<object> => {
    seen.push(file);
    return describeFile(file);
  };
  const takeAll = (files: readonly Upload[]): Promise<object[]> => Promise.all(files.map(take));
  return new GraphQLSchema({
    query: new GraphQLObjectType({
      name: 'Query',
      fields: { hello: { type: GraphQLString, resolve: () => 'world' } },
    }),
    mutation: new GraphQLObjectType({
      name: 'Mutation',
      fields: {
        one: {
          type: FileInfo,
          args: { file: { type: new GraphQLNonNull(Upload) } },
          resolve: (_, { file }) => take(file),
        },
        many: {
          type: new GraphQLList(FileInfo),
          args: { files: { type: new GraphQLList(new GraphQLNonNull(Upload)) } },
          resolve: (_, { files }) => takeAll(files),
        },
        form: {
          type: new GraphQLList(FileInfo),
          args: { form: { type: Form } },
          resolve: (_, { form }) => takeAll([form.file, ...(form.files ?? [])].filter(Boolean)),
        },
        unread: {
          type: GraphQLString,
          args: { file: { type: Upload } },
          resolve: (_, { file }) => {
            seen.push(file);
            return file.filename;
          },
        },
        fails: {
          type: GraphQLString,
          args: { file: { type: Upload } },
          resolve: (_, { file }) => {
            seen.push(file);
            file.createReadStream();
            throw new Error('the resolver failed');
          },
        },
      },
    }),
  });
}

const INFO_FIELDS = '{ filename mimetype encoding fieldName size text sha256 }';
export const ONE = `mutation ($file: Upload!) { one(file: $file) ${INFO_FIELDS} }`;
export const MANY = `mutation ($files: [Upload!]) { many(files: $files) ${INFO_FIELDS} }`;
export const FORM = `mutation ($form: Form) { form(form: $form) ${INFO_FIELDS} }`;
