// A schema written as code, with Pothos: `npx tsx examples/code-first.ts`.
import SchemaBuilder from '@pothos/core';
import { attachSubscriptions, graphqlHTTP, Upload, type UploadedFile } from 'espalier';
import express from 'express';

const builder = new SchemaBuilder<{ Scalars: { Upload: { Input: UploadedFile; Output: never } } }>({});
builder.addScalarType('Upload', Upload);
builder.queryType({ fields: (t) => ({ hello: t.string({ resolve: () => 'world' }) }) });
builder.mutationType();
builder.mutationField('createFile', (t) => {
  const file = t.arg({ type: 'Upload', required: true });
  return t.string({ args: { file }, resolve: (_root, args) => `${args.file.filename} created` });
});
builder.subscriptionType();
builder.subscriptionField('count', (t) => {
  const to = t.arg.int({ required: true });
  return t.int({ args: { to }, subscribe: (_root, args) => count(args.to), resolve: (number) => number });
});
async function* count(to: number) {
  for (let number = 1; number <= to; number++) yield number;
}

const graphql = graphqlHTTP(builder.toSchema());
const app = express().use('/graphql', graphql);
const port = Number(process.env.PORT ?? 3000);
const server = app.listen(port, (error) => {
  if (error) throw error;
  console.log(`GraphiQL on http://localhost:${port}/graphql`);
});
attachSubscriptions(server, graphql);
