/** The streams of a process. */
export interface Output {
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
}

/** Wrong arguments of a command. */
export class UsageError extends Error {}

/** Runs a command with its arguments; returns the exit code. */
export type Command = (args: readonly string[], output: Output) => Promise<0 | 1>;
