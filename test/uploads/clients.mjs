// Uploads a text by one client, named on the command line, and prints what the server said of it.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const [, , name, uri] = process.argv;
const query =
  'mutation ($file: Upload!, $files: [Upload!]) { one(file: $file) { filename text } many(files: $files) { text } }';
const file = new File(['first'], 'a.txt', { type: 'text/plain' });
const variables = { file, files: [new File(['second'], 'b.txt'), file] };

const clients = {
  async urql() {
    const { Client, fetchExchange } = await import('@urql/core');
    const client = new Client({ url: uri, exchanges: [fetchExchange] });
    const { data, error } = await client.mutation(query, variables).toPromise();
    if (error) throw error;
    return data;
  },

  async FormData() {
    const form = new FormData();
    form.append('operations', JSON.stringify({ query, variables: { file: null, files: [null, null] } }));
    form.append(
      'map',
      JSON.stringify({ 0: ['variables.file', 'variables.files.1'], 1: ['variables.files.0'] }),
    );
    form.append('0', file);
    form.append('1', variables.files[0]);
    return (await (await fetch(uri, { method: 'POST', body: form })).json()).data;
  },

  async curl() {
    const fields = [
      `operations=${JSON.stringify({ query, variables: { file: null, files: [null, null] } })}`,
      'map={ "0": ["variables.file", "variables.files.1"], "1": ["variables.files.0"] }',
      '0=first;filename=a.txt',
      '1=second;filename=b.txt',
    ];
    const { stdout } = await promisify(execFile)('curl', [
      '-sS',
      uri,
      ...fields.flatMap((field) => ['-F', field]),
    ]);
    return JSON.parse(stdout).data;
  },
};

process.stdout.write(JSON.stringify(await clients[name]()));
