// A mutation that takes a file: `npx tsx examples/uploads.ts`, then
// curl localhost:3000/graphql -F 'operations={"query":"mutation($file:Upload!){hash(file:$file)}","variables":{"file":null}}' \
//   -F 'map={"0":["variables.file"]}' -F 0=@package.json
import { createHash } from 'node:crypto';
import { pipeline } from 'node:stream/promises';
import { graphqlHTTP, Upload, type UploadedFile } from 'espalier/graphql';
import express from 'express';
import { GraphQLNonNull, GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';

const hash = {
  type: GraphQLString,
  args: { file: { type: new GraphQLNonNull(Upload) } },
  async resolve(_root: unknown, { file }: { file: UploadedFile }) {
    const sha256 = createHash('sha256');
    await pipeline(file.createReadStream(), sha256);
    return `${file.filename}: ${file.size} bytes, SHA-256 ${sha256.digest('hex')}`;
  },
};
const mutation = new GraphQLObjectType({ name: 'Mutation', fields: { hash } });
const query = new GraphQLObjectType({ name: 'Query', fields: { hello: { type: GraphQLString } } });

const uploads = { maxFileBytes: 5 * 1024 * 1024, maxFiles: 3 };
const app = express().use('/graphql', graphqlHTTP(new GraphQLSchema({ query, mutation }), { uploads }));
const port = Number(process.env.PORT ?? 3000);
app.listen(port, (error) => {
  if (error) throw error;
  console.log(`Uploads to http://localhost:${port}/graphql`);
});
