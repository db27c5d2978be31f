// The process of one contestant: starts it and reports its CPU time and memory.
import { createServer } from 'node:http';
import { replyToMessages } from './reply.mjs';

const { BENCH_TOPIC, BENCH_CONTESTANT, BENCH_GRAPHQL } = process.env;
let running;

if (BENCH_GRAPHQL === '17') {
  const { registerHooks } = await import('node:module');
  registerHooks({
    resolve: (specifier, context, next) => next(specifier === 'graphql' ? 'graphql17' : specifier, context),
  });
}

replyToMessages(async ({ ask }) => {
  if (ask === 'start') {
    running = await start();
    return { port: running.port };
  }
  if (ask === 'stop') {
    await running.close?.();
    return {};
  }
  const { maxRSS } = process.resourceUsage();
  return { cpu: running.cpu(), rss: process.memoryUsage.rss(), peakRss: maxRSS * 1024 };
});

async function start() {
  const { topic } = await import(BENCH_TOPIC);
  const made = await topic.contestants[BENCH_CONTESTANT]();
  if (typeof made.port === 'number') return { cpu: ownCpu, ...made };
  const isServer = typeof made.address === 'function';
  const server = isServer ? made : createServer(made);
  if (!server.listening) {
    await new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, '127.0.0.1', resolve);
    });
  }
  return { port: server.address().port, cpu: ownCpu };
}

function ownCpu() {
  const { user, system } = process.cpuUsage();
  return user + system;
}
