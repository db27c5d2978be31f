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

interface Registry {
  readonly owners: Set<WeakRef<object>>;
  readonly gauges: WeakMap<object, Gauge>;
}

const REGISTRY: unique symbol = Symbol.for('espalier.gauges');

/** The gauges of the process. The ES and the CommonJS build share them. */
function registry(): Registry {
  const holder = globalThis as { [REGISTRY]?: Registry };
  holder[REGISTRY] ??= { owners: new Set(), gauges: new WeakMap() };
  return holder[REGISTRY];
}

/** Removes the references to collected owners, of which a handler per request creates an unlimited number. */
const collected = new FinalizationRegistry<WeakRef<object>>((reference) => {
  registry().owners.delete(reference);
});

/**
 * Registers the numbers of `owner` until it is garbage-collected. The gauge may reference the owner: it does
 * not keep it alive.
 */
export function registerGauge(owner: object, gauge: Gauge): void {
  const { owners, gauges } = registry();
  if (!gauges.has(owner)) {
    const reference = new WeakRef(owner);
    owners.add(reference);
    collected.register(owner, reference);
  }
  gauges.set(owner, gauge);
}

/** Returns the sums of the numbers of all parts of a kind. */
export function readGauges(kind: GaugeKind): Record<string, number> {
  const { owners, gauges } = registry();
  const sums: Record<string, number> = {};
  for (const reference of owners) {
    const owner = reference.deref();
    const gauge = owner === undefined ? undefined : gauges.get(owner);
    if (gauge === undefined) owners.delete(reference);
    else if (gauge.kind === kind) {
      for (const [name, value] of Object.entries(gauge.read())) sums[name] = (sums[name] ?? 0) + value;
    }
  }
  return sums;
}
