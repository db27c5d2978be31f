export { authTypeDefs } from '../src/auth/requirements.ts';
export type * from '../types/auth.ts';
