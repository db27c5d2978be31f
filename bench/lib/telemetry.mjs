/**
 * Starts the SDK of OpenTelemetry with exporters that discard everything. Returns its API. `share` is the share of sampled
 * traces, `exportMilliseconds` the time between two exports of metrics.
 */
export async function startTelemetry({ share = 1, exportMilliseconds = 60_000 } = {}) {
  const [api, hooks, core, traces, metrics] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/context-async-hooks'),
    import('@opentelemetry/core'),
    import('@opentelemetry/sdk-trace-base'),
    import('@opentelemetry/sdk-metrics'),
  ]);
  const discard = {
    export: (_, done) => done({ code: 0 }),
    shutdown: async () => {},
    forceFlush: async () => {},
  };
  api.context.setGlobalContextManager(new hooks.AsyncLocalStorageContextManager().enable());
  api.propagation.setGlobalPropagator(new core.W3CTraceContextPropagator());
  const root = new traces.TraceIdRatioBasedSampler(share);
  const sampling = share < 1 ? { sampler: new traces.ParentBasedSampler({ root }) } : {};
  const spanProcessors = [new traces.BatchSpanProcessor(discard)];
  api.trace.setGlobalTracerProvider(new traces.BasicTracerProvider({ ...sampling, spanProcessors }));
  const exporter = { ...discard, selectAggregationTemporality: () => 1 };
  const reader = new metrics.PeriodicExportingMetricReader({
    exporter,
    exportIntervalMillis: exportMilliseconds,
    exportTimeoutMillis: exportMilliseconds / 2,
  });
  api.metrics.setGlobalMeterProvider(new metrics.MeterProvider({ readers: [reader] }));
  return api;
}
