/** @tags once */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pack, root, scratchFolder, unpack } from '../tarball.ts';

// With these packages each server is its own process: they patch modules when they are loaded.
const PACKAGES = [
  '@opentelemetry/api',
  '@opentelemetry/context-async-hooks',
  '@opentelemetry/exporter-prometheus',
  '@opentelemetry/instrumentation',
  '@opentelemetry/instrumentation-express',
  '@opentelemetry/instrumentation-graphql',
  '@opentelemetry/instrumentation-http',
  '@opentelemetry/sdk-metrics',
  '@opentelemetry/sdk-trace',
  '@sentry/node',
];
const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const folder = scratchFolder();
const project = join(folder, 'project');

function link(name: string, parent: string): void {
  const target = join(project, 'node_modules', name);
  mkdirSync(dirname(target), { recursive: true });
  symlinkSync(join(parent, 'node_modules', name), target);
}

beforeAll(() => {
  unpack(pack(), project);
  for (const name of [...Object.keys(dependencies), 'graphql', 'express']) link(name, root);
  for (const name of PACKAGES) link(name, __dirname);
  writeFileSync(join(project, 'package.json'), '{ "name": "consumer", "private": true }');
  cpSync(join(__dirname, 'telemetry.mjs'), join(project, 'telemetry.mjs'));
}, 60_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Span {
  readonly name: string;
  readonly id: string;
  readonly trace: string;
  readonly parent?: string;
}

interface Output<Recorded> {
  readonly results: unknown[];
  /** The active spans in the resolver of both requests. */
  readonly active: (string | null)[];
  readonly warnings: { code?: string; message: string }[];
  readonly recorded: Recorded;
}

/** Runs two requests in a process with one kind of telemetry. */
function run<Recorded>(mode: string): Output<Recorded> {
  const stdout = execFileSync(process.execPath, ['telemetry.mjs', mode], {
    cwd: project,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const output = JSON.parse(stdout);
  expect(output.results).toEqual([{ data: { hello: 'world' } }, { data: { hello: 'world' } }]);
  return output;
}

const named = (spans: readonly Span[], name: string): Span[] => spans.filter((span) => span.name === name);

it('an operation is a child of the spans of instrumentation-http and instrumentation-express', () => {
  const { active, recorded, warnings } = run<Span[]>('instrumentations');
  const byId = new Map(recorded.map((span) => [span.id, span]));
  const chains = active.map((id) => {
    const names: string[] = [];
    for (let span = byId.get(String(id)); span !== undefined; span = byId.get(String(span.parent))) {
      names.push(span.name);
    }
    return names;
  });
  const chain = ['query', expect.stringMatching(/^middleware/), 'POST /graphql'];
  expect(chains).toEqual([chain, chain]);
  expect(warnings).toEqual([]);
});

it("errors and messages of Sentry's SDK belong to the span of the operation", () => {
  const { active, recorded } = run<{ spans: Span[]; events: { trace: Record<string, string> }[] }>('sentry');
  const traces = named(recorded.spans, 'query').map(({ trace, id }) => [trace, id]);
  expect(traces.map(([, id]) => id)).toEqual(active);
  // Sentry drops a message that equals the previous one.
  expect(recorded.events.map(({ trace }) => [trace['trace_id'], trace['span_id']])).toEqual(
    traces.slice(0, 1),
  );
});

it('the exporter for Prometheus exports the metrics of operations', () => {
  const { recorded } = run<string>('prometheus');
  expect(recorded).toMatch(
    /^graphql_server_request_duration_count\{graphql_operation_type="query",graphql_operation_name="Greet",.*\} 2$/m,
  );
  expect(recorded).toMatch(/^graphql_server_active_requests\{graphql_operation_type="query",.*\} 0$/m);
  expect(recorded).toMatch(/^espalier_cache_requests_total\{.*espalier_cache_hit="true".*\} 1$/m);
  expect(recorded).toMatch(/^espalier_budget_limit\{espalier_budget_name="documents",.*\} 33554432$/m);
});

it('users of instrumentation-graphql get one warning with the package to use instead', () => {
  const { recorded, warnings } = run<Span[]>('graphql');
  expect(warnings).toEqual([
    { code: 'ESPALIER_EXECUTE_REPLACED', message: expect.stringMatching(/Use espalier\/otel instead/) },
  ]);
  expect(named(recorded, 'query')).toHaveLength(2);
});
