import type { Fault } from './errors.ts';
import type { FieldPlan, ResponsePath } from './plan.ts';

/** Properties that make an error more than its text: graphql-js takes them over, and clients may see them. */
const TELLING = ['path', 'nodes', 'source', 'positions', 'extensions'];

/** Nothing about it that `locatedError` would take over. */
export function isPlain(error: unknown): error is Error {
  return error instanceof Error && !TELLING.some((name) => name in error);
}

/** Whether clients are told the place of an error, and nothing else. */
export function isMasked({ error, plan }: Fault): boolean {
  return plan !== undefined && isPlain(error) && error.name !== 'GraphQLError';
}

/** The `errors` of an answer where all are masked: what JSON.stringify would make of them, had they been made. */
export function maskedErrors(faults: readonly Fault[], message: string): string {
  const masked = JSON.stringify(message);
  const texts = faults.map(({ plan, path }) => `{"message":${masked}${placeText(plan as FieldPlan, path)}}`);
  return `[${texts.join(',')}]`;
}

function placeText(plan: FieldPlan, path: ResponsePath | undefined): string {
  const { locationsText } = plan.place();
  return `${locationsText},"path":[${pathText(path)}]`;
}

function pathText(path: ResponsePath | undefined): string {
  let text = '';
  for (let at = path; at !== undefined; at = at.prev) {
    // Names of GraphQL need no escapes.
    const key = typeof at.key === 'number' ? String(at.key) : `"${at.key}"`;
    text = text === '' ? key : `${key},${text}`;
  }
  return text;
}
