/** @tags node-lines graphql slow */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { tlsFiles } from '../exchange.ts';
import { needs, nodeOf } from '../programs.ts';
import { root, type Snippet, snippets } from '../snippets.ts';
import { until } from '../until.ts';

const folder = join(root, 'artifacts/certificate-renewal');

/** The name in the certificate that a new connection gets. */
async function nameOf(port: number): Promise<unknown> {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const { CN } = socket.getPeerCertificate().subject;
  socket.destroy();
  return CN;
}

needs('openssl').it(
  'the server of docs/server.md takes a new certificate, and keeps the old one if the new one is broken',
  async () => {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    for (const name of ['key', 'cert'] as const) copyFileSync(tlsFiles[name], join(folder, `${name}.pem`));
    const { code } = snippets('ts').find((each) => each.code.includes('setSecureContext')) as Snippet;
    const listen = `server.listen(0, '127.0.0.1', () => console.log(server.address().port));`;
    writeFileSync(
      join(folder, 'server.mts'),
      code.replace('server.listen(443);', listen).replace('interval: 10_000', 'interval: 20'),
    );
    const args = ['--experimental-strip-types', '--no-warnings', 'server.mts'];
    const child = spawn(nodeOf(24), args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
    let errors = '';
    child.stderr.on('data', (chunk) => (errors += chunk));
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const port = Number(line);
    const before = await nameOf(port);
    const request =
      'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=renewed';
    spawnSync('openssl', [...request.split(' '), '-keyout', 'key.pem', '-out', 'cert.pem'], { cwd: folder });
    let after: unknown;
    while (after !== 'renewed') after = await nameOf(port);
    expect(before).not.toBe('renewed');
    writeFileSync(join(folder, 'cert.pem'), 'broken');
    await until(() => errors.includes('the new certificate cannot be used'));
    expect(await nameOf(port)).toBe('renewed');
    child.kill();
    await once(child, 'exit');
  },
);
