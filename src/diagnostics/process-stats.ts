import type { BudgetStats, CacheStats, ProcessStats } from '../../types/health.ts';
import { readEventLoop } from './event-loop.ts';
import { type GaugeKind, readGauges } from './gauges.ts';

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
