import { ExpressAdapter } from '@nestjs/platform-express';
import { createServer, type DrainOptions } from 'espalier/server';

/**
 * Nest's adapter for Express on a server that drains: `app.close()` first waits for requests, sockets and event streams, and
 * then destroys the providers that they use.
 */
export class EspalierAdapter extends ExpressAdapter {
  readonly #draining: DrainOptions;
  #server: ReturnType<typeof createServer> | undefined;

  constructor(draining: DrainOptions = {}) {
    super();
    this.#draining = draining;
  }

  override initHttpServer(): void {
    const server = createServer(this.getInstance());
    this.use('/health/live', server.liveness);
    this.use('/health/ready', server.readiness);
    this.#server = server;
    this.setHttpServer(server);
  }

  // Nest awaits this before it destroys anything.
  override async beforeClose(): Promise<void> {
    super.beforeClose();
    await this.#server?.drain(this.#draining);
  }
}
