export type { Middleware, NextFunction } from '../types/connect.ts';
export { createServer } from './server.ts';
