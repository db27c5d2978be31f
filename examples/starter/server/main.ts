import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { createApi } from './app.ts';

const port = Number(process.env.PORT ?? 3000);
const clientDir = fileURLToPath(new URL('../client', import.meta.url));
// In development the folder contains the sources, which Vite serves.
const hasClient = import.meta.url.endsWith('.js') && existsSync(clientDir);

// Longer than the interval of the load balancer's checks, so that it sends no request to a closed port.
const drainDelay = Number(process.env.DRAIN_DELAY ?? 0);

const { server, stop } = createApi({
  dataDir: process.env.DATA_DIR ?? 'data',
  clientDir: hasClient ? clientDir : undefined,
  redisUrl: process.env.REDIS_URL,
});

const url = `http://localhost:${port}`;
server.listen(port, () => console.log(hasClient ? `Open ${url}` : `GraphiQL: ${url}/graphql`));

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void stop(drainDelay));
