// Uploads files with apollo-upload-client to the address on the command line, and prints the data of the response.
import { ApolloClient, gql, InMemoryCache } from '@apollo/client';
import UploadHttpLink from 'apollo-upload-client/UploadHttpLink.mjs';

const link = new UploadHttpLink({ uri: process.argv[2] });
const client = new ApolloClient({ cache: new InMemoryCache(), link });
const mutation = gql(
  'mutation ($file: Upload!, $files: [Upload!]) { one(file: $file) { filename text } many(files: $files) { text } }',
);
const file = new File(['first'], 'a.txt', { type: 'text/plain' });
const variables = { file, files: [new File(['second'], 'b.txt'), file] };
process.stdout.write(JSON.stringify((await client.mutate({ mutation, variables })).data));
