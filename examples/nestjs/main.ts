import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { EspalierAdapter } from './espalier.adapter.js';
import { UsersModule } from './users.module.js';

const module = process.argv[2] === 'users' ? UsersModule : AppModule;
const port = Number(process.env['PORT'] ?? 3000);
// A little longer than the interval of the load balancer's checks of /health/ready.
const adapter = new EspalierAdapter({ delay: Number(process.env['DRAIN_DELAY'] ?? 0) });

const app = await NestFactory.create(module, adapter);
app.enableShutdownHooks(['SIGINT', 'SIGTERM']);
await app.listen(port);
console.log(`http://localhost:${port}/graphql`);
