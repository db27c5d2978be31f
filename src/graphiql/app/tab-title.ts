// patches.mjs adds this to @graphiql/react, which calls every operation without a name `<untitled>`.

/** The first field of an operation while it is written, so it may not be parsed yet. */
export function firstField(query: string | null | undefined): string | undefined {
  const text = query?.replace(/#.*/g, '').replace(/\([^()]*\)/g, '');
  return /\{\s*(?:\w+\s*:\s*)?([A-Za-z_]\w*)/.exec(text ?? '')?.[1];
}
