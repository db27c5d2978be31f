/** @tags once */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { Browser } from 'playwright-core';
import { launch } from '../chromium.ts';
import { freePort, nodeOf } from '../programs.ts';
import { root } from '../snippets.ts';
import { pack, scratchFolder } from '../tarball.ts';
import { applyStep, instructionsOf, tutorialSteps } from './tutorial-steps.ts';

// Follows docs/tutorial.md with the packed package on Node 24: its commands, files and operations, in their order.

jest.setTimeout(240_000);

/** What npm does besides the installation takes most of its time. */
const NPM = { npm_config_fund: 'false', npm_config_audit: 'false', npm_config_prefer_offline: 'true' };

const folder = scratchFolder();
const project = join(folder, 'notes');
const steps = tutorialSteps();
const groups = new Set<ChildProcess>();
const picture = join(root, 'examples/photo-wall/pictures/hills-in-may.png');
let browser: Browser;
let environment: NodeJS.ProcessEnv;
let port: string;

beforeAll(async () => {
  const tarball = pack();
  cpSync(tarball.path, join(folder, 'espalier.tgz'));
  port = String(await freePort());
  environment = {
    ...process.env,
    PATH: `${dirname(nodeOf(24))}:${process.env['PATH']}`,
    NODE_ENV: '',
    PORT: port,
  };
  browser = await launch();
});

afterAll(async () => {
  await browser.close();
  for (const { pid } of groups) process.kill(-(pid as number), 'SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

function run(command: string, cwd: string, env: NodeJS.ProcessEnv = {}): string {
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command], {
    cwd,
    encoding: 'utf8',
    env: { ...environment, ...NPM, ...env },
  });
  if (status !== 0) throw new Error(`${command} failed:\n${stdout}${stderr}`);
  return stdout;
}

/** Starts a command in its own process group, as a terminal does. */
function startServer(command: string, cwd: string, options: { uid?: number } = {}): ChildProcess {
  const child = spawn('sh', ['-c', `exec ${command}`], {
    cwd,
    detached: true,
    env: environment,
    stdio: 'pipe',
    ...options,
  });
  groups.add(child);
  child.once('exit', () => groups.delete(child));
  return child;
}

async function send(
  query: string,
): Promise<{ data?: Record<string, unknown>; errors?: { extensions: object }[] }> {
  const response = await fetch(`http://localhost:${port}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  return (await response.json()) as { data: Record<string, unknown> };
}

/** Waits until the server, which --watch restarts, has what a step added. */
async function eventually(check: () => Promise<boolean>): Promise<void> {
  for (;;) {
    if (await check().catch(() => false)) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Does the steps of a section. The port of the tutorial becomes that of the test. */
async function follow(number: number): Promise<void> {
  for (const { kind, argument, code } of steps.filter(({ section }) => section.startsWith(`${number}. `))) {
    if (kind === 'sh' && argument === '') runCommands(code);
    else if (kind === 'sh' && argument === 'serve') startServer(code.trim(), project);
    else if (kind === 'graphql') await eventually(async () => (await send(code)).data !== undefined);
    else if (kind !== 'sh') writeStep(argument, code);
  }
}

function runCommands(code: string): void {
  for (const line of code.trim().split('\n')) {
    if (line === 'cd notes') continue;
    const command = line.replace('install espalier ', 'install ../espalier.tgz ');
    run(command, line === 'mkdir notes' ? folder : project);
  }
}

function writeStep(argument: string, code: string): void {
  const [name, ...mode] = argument.split(' ') as [string, ...string[]];
  const file = join(project, name);
  const content = existsSync(file) ? readFileSync(file, 'utf8') : '';
  writeFileSync(file, applyStep(content, mode.join(' '), code).replaceAll(/\b3000\b/g, port));
}

/** Checks the types of the project, with the declarations of Node and Express that the repository has. */
function compile(): string {
  const compilerOptions = {
    module: 'nodenext',
    target: 'es2023',
    strict: true,
    noEmit: true,
    allowImportingTsExtensions: true,
    erasableSyntaxOnly: true,
    verbatimModuleSyntax: true,
    types: ['node'],
    typeRoots: [join(root, 'node_modules/@types')],
    paths: { express: [join(root, 'node_modules/@types/express/index.d.ts')] },
  };
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  return spawnSync(process.execPath, [tsc, '-p', project], { encoding: 'utf8' }).stdout;
}

async function openPage() {
  const page = await browser.newPage();
  const problems: string[] = [];
  page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
  page.on('pageerror', (error) => problems.push(String(error)));
  await page.goto(`http://localhost:${port}/`);
  return { page, problems };
}

describe('the tutorial', () => {
  it('steps 1 and 2 of the tutorial create a project whose API adds notes and refuses empty ones', async () => {
    await follow(1);
    await follow(2);
    expect((await send('{ notes { text } }')).data?.['notes']).toEqual([
      { text: 'Welcome!' },
      { text: 'Buy milk' },
    ]);
    expect((await send('mutation { addNote(text: "") { id } }')).errors).toMatchObject([
      { message: 'The note has no text', extensions: { code: 'EMPTY_NOTE' } },
    ]);
    const page = await fetch(`http://localhost:${port}/graphql`, { headers: { accept: 'text/html' } });
    expect(await page.text()).toContain('GraphiQL');
  });

  it('step 3 of the tutorial adds a page that lists notes and adds new ones', async () => {
    await follow(3);
    await eventually(async () => (await fetch(`http://localhost:${port}/`)).ok);
    const { page, problems } = await openPage();
    await page.getByRole('textbox', { name: 'Text' }).fill('Water the plants');
    await page.getByRole('button', { name: 'Add' }).click();
    await page.getByText('Water the plants').waitFor();
    await page.getByRole('textbox', { name: 'Text' }).fill(' ');
    await page.getByRole('button', { name: 'Add' }).click();
    await page.getByText('The note has no text').waitFor();
    expect(problems).toEqual([]);
    await page.close();
  });

  it('step 4 of the tutorial shows a note in another window without a reload', async () => {
    await follow(4);
    await eventually(
      async () => (await send('{ __type(name: "Subscription") { name } }')).data?.['__type'] != null,
    );
    const [writer, reader] = [await openPage(), await openPage()];
    await reader.page.getByText('Welcome!').waitFor();
    await writer.page.getByRole('textbox', { name: 'Text' }).fill('Live');
    await writer.page.getByRole('button', { name: 'Add' }).click();
    await reader.page.getByText('Live', { exact: true }).waitFor();
    await Promise.all([writer.page.close(), reader.page.close()]);
  });

  it('step 5 of the tutorial shows the picture of a note in another window', async () => {
    await follow(5);
    await eventually(async () => (await send('{ notes { picture } }')).data !== undefined);
    await eventually(async () => (await fetch(`http://localhost:${port}/pictures/absent`)).status === 404);
    const [writer, reader] = [await openPage(), await openPage()];
    await writer.page.getByRole('textbox', { name: 'Text' }).fill('Hills');
    await writer.page.getByLabel('Picture').setInputFiles(picture);
    await writer.page.getByRole('button', { name: 'Add' }).click();
    const image = reader.page.locator('li', { hasText: 'Hills' }).locator('img');
    await image.waitFor();
    await eventually(() =>
      image.evaluate((each) => (each as unknown as { naturalWidth: number }).naturalWidth > 0),
    );
    await writer.page
      .getByLabel('Picture')
      .setInputFiles({ name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('a') });
    await writer.page.getByRole('textbox', { name: 'Text' }).fill('No picture');
    await writer.page.getByRole('button', { name: 'Add' }).click();
    await writer.page.getByText('a.txt is not a PNG').waitFor();
    expect(readdirSync(join(project, 'data'))).toHaveLength(1);
    expect(writer.problems).toEqual([]);
    await Promise.all([writer.page.close(), reader.page.close()]);
  });

  it('steps 6 and 7 of the tutorial prepare the app for production, and its tests pass', async () => {
    await follow(6);
    await eventually(async () => (await fetch(`http://localhost:${port}/readyz`)).ok);
    for (const { pid } of groups) process.kill(-(pid as number), 'SIGKILL');
    await follow(7);
    expect(run('npm test', project)).toMatch(/pass 3\n/);
    expect(compile()).toBe('');
  });

  it('step 8 of the tutorial deploys the app: the commands of its Dockerfile build it, and it ends with SIGTERM', async () => {
    await follow(8);
    const image = join(folder, 'image');
    mkdirSync(image);
    chmodSync(folder, 0o755);
    const env = { uid: process.getuid?.() === 0 ? 65_534 : undefined, command: '' };
    for (const [instruction, rest] of instructionsOf(readFileSync(join(project, 'Dockerfile'), 'utf8'))) {
      // Docker is not needed: the other instructions do not change the files.
      if (instruction === 'COPY') copyAsDocker(rest.split(' '), image);
      else if (instruction === 'RUN')
        run(rest.replace('chown node', `chown ${env.uid ?? process.getuid?.()}`), image);
      else if (instruction === 'CMD') env.command = (JSON.parse(rest) as string[]).join(' ');
    }
    environment = { ...environment, NODE_ENV: 'production' };
    const child = startServer(env.command, image, env.uid === undefined ? {} : { uid: env.uid });
    await eventually(async () => (await fetch(`http://localhost:${port}/readyz`)).ok);
    expect((await send('{ __schema { queryType { name } } }')).errors).toMatchObject([
      { extensions: { code: 'INTROSPECTION_OFF' } },
    ]);
    const { page } = await openPage();
    await page.getByRole('textbox', { name: 'Text' }).fill('Deployed');
    await page.getByLabel('Picture').setInputFiles(picture);
    await page.getByRole('button', { name: 'Add' }).click();
    await page.locator('li', { hasText: 'Deployed' }).locator('img').waitFor();
    const exit = once(child, 'exit');
    child.kill('SIGTERM');
    expect(await exit).toEqual([0, null]);
    await page.close();
  });

  it('step 8 of the tutorial deploys the app without Docker', async () => {
    const [install, serve] = (steps.find(({ argument }) => argument === 'deploy')?.code ?? '')
      .trim()
      .split('\n');
    rmSync(join(project, 'node_modules'), { recursive: true });
    run(install as string, project);
    const child = startServer(`env ${serve}`, project);
    await eventually(async () => (await fetch(`http://localhost:${port}/readyz`)).ok);
    expect((await send('{ notes { text } }')).data).toEqual({ notes: [{ text: 'Welcome!' }] });
    const exit = once(child, 'exit');
    process.kill(-(child.pid as number), 'SIGTERM');
    await exit;
  });
});

/** Copies files of the project as COPY does, without those of .dockerignore. */
function copyAsDocker(words: string[], target: string): void {
  const ignored = readFileSync(join(project, '.dockerignore'), 'utf8').trim().split('\n');
  const names =
    words[0] === '.' ? readdirSync(project).filter((name) => !ignored.includes(name)) : words.slice(0, -1);
  for (const name of names) cpSync(join(project, name), join(target, name), { recursive: true });
}
