/** The module that the build writes to dist/graphiql. */
declare module '#graphiql' {
  interface BuiltFile {
    /** The media type. */
    readonly type: string;
    /** Returns the bytes as brotli in base64. */
    load(): string;
  }
  /** The files that the page loads first. */
  export const page: import('./page.ts').PageFiles;
  export const files: Readonly<Record<string, BuiltFile>>;
}
