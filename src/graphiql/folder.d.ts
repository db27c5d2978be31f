/** Written by the build beside the IDE's files, once for `import` and once for `require`; package.json names both. */
declare module '#graphiql' {
  /** The folder that holds manifest.json and the files. */
  export const folder: string;
}
