import type { EventLoopUtilization, IntervalHistogram } from 'node:perf_hooks';
import type { BudgetStats, CacheStats, EventLoopStats, ProcessStats } from '../../types/server.ts';
import { Registry } from './registry.ts';

/** Returns the current numbers of the process. */
export function readProcessStats(): ProcessStats {
  const { rss, heapUsed, arrayBuffers } = process.memoryUsage();
  const { connections = 0, operations = 0, sources = 0, unreleased = 0, groups = 0 } = readGauges('live');
  return {
    eventLoop: readEventLoop(),
    memory: { rss, heapUsed, arrayBuffers },
    live: { connections, operations, sources, unreleased, groups },
    documents: readCache('documents'),
    responses: readCache('responses'),
    files: readCache('files'),
    uploads: readBudget('uploads'),
  };
}

function readCache(kind: GaugeKind): CacheStats {
  const { entries = 0, bytes = 0, maxBytes = 0 } = readGauges(kind);
  return { entries, bytes, maxBytes };
}

function readBudget(kind: GaugeKind): BudgetStats {
  const { bytes = 0, maxBytes = 0 } = readGauges(kind);
  return { bytes, maxBytes };
}

/** Milliseconds between two samples. */
const RESOLUTION = 20;
/** Milliseconds after which a reader begins a new period. */
const PERIOD = 30_000;
const NANOSECONDS = 1e6;

/** The samples from one moment on. */
class Period {
  // Loaded here, since few processes read these figures.
  readonly #hooks = process.getBuiltinModule('node:perf_hooks');
  readonly #delays: IntervalHistogram = this.#hooks.monitorEventLoopDelay({ resolution: RESOLUTION });
  #started = 0;
  #utilization: EventLoopUtilization | undefined;

  constructor() {
    this.#delays.enable();
    this.begin();
  }

  get age(): number {
    return this.#hooks.performance.now() - this.#started;
  }

  begin(): void {
    this.#delays.reset();
    this.#started = this.#hooks.performance.now();
    this.#utilization = this.#hooks.performance.eventLoopUtilization();
  }

  read(): EventLoopStats {
    const delays = this.#delays;
    // A sample is the time between two ticks of a timer, so it contains the interval of the timer.
    const delay = (value: number): number =>
      delays.count === 0 ? 0 : Math.max(0, value / NANOSECONDS - RESOLUTION);
    return {
      mean: delay(delays.mean),
      p50: delay(delays.percentile(50)),
      p99: delay(delays.percentile(99)),
      max: delay(delays.max),
      utilization: this.#hooks.performance.eventLoopUtilization(this.#utilization).utilization,
    };
  }
}

let periods: { older: Period; newer: Period } | undefined;

/**
 * Returns the delay of the event loop in the last 30 to 60 seconds, or since the previous calls if they were
 * earlier. The first call starts the measurement.
 */
function readEventLoop(): EventLoopStats {
  periods ??= { older: new Period(), newer: new Period() };
  const numbers = periods.older.read();
  if (periods.newer.age > PERIOD) {
    periods.older.begin();
    periods = { older: periods.newer, newer: periods.older };
  }
  return numbers;
}

/** Numbers of one part of the package, such as a cache or an endpoint, which are read on demand. */
interface Gauge {
  readonly kind: GaugeKind;
  read(): Readonly<Record<string, number>>;
}

/**
 * `documents`: document caches. `responses`: response caches. `files`: memory budgets of static files.
 * `uploads`: memory budgets of uploads. `live`: sockets and event streams.
 */
export type GaugeKind = 'documents' | 'responses' | 'files' | 'uploads' | 'live';

const gauges = new Registry<Gauge>();

/** Registers the numbers of `owner`, which the gauge may reference: it does not keep the owner alive. */
export function registerGauge(owner: object, gauge: Gauge): void {
  gauges.add(owner, gauge);
}

/** Returns the sums of the numbers of all parts of a kind. */
export function readGauges(kind: GaugeKind): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const gauge of gauges.values) {
    if (gauge.kind !== kind) continue;
    for (const [name, value] of Object.entries(gauge.read())) sums[name] = (sums[name] ?? 0) + value;
  }
  return sums;
}
